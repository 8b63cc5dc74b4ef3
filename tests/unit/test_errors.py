"""A user's mistake is one line and exit code 2; a fault of ours keeps its traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from advsets.errors import EXIT_USER_ERROR, UserError, allowed, describe_os_error, user_errors


def failing(error: BaseException, log: Path | None = None) -> int:
    with pytest.raises(SystemExit) as caught, user_errors(log):
        raise error
    return int(str(caught.value.code))


def test_message_is_one_line() -> None:
    assert str(UserError("config.yaml:\n  key  'a'\tis\r\n\nwrong\n")) == "config.yaml: key 'a' is wrong"


def test_user_error_is_one_line_on_stderr_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(UserError("data.csv, row 3:\nlabel 'x'; allowed: a, b; mend the row")) == EXIT_USER_ERROR == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "advsets: error: data.csv, row 3: label 'x'; allowed: a, b; mend the row\n"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "the disk is full: free some space and run again"),
        (errno.EDQUOT, "the disk quota is used up: free some space and run again"),
        (errno.EROFS, "the file system is read-only: choose another folder"),
        (errno.EACCES, "permission denied: change its permissions or choose another folder"),
        (errno.EPERM, "not permitted: change its permissions or choose another folder"),
        (errno.ENOENT, "no such file or folder: check the path"),
        (errno.EISDIR, "it is a folder where a file was expected: check the path"),
        (errno.EEXIST, "something else stands there already: remove it or choose another path"),
        (errno.ENOTDIR, "a file stands where a folder was expected: check the path"),
        (errno.EFBIG, "the file grew beyond the limit of the shell or file system: raise it (ulimit -f)"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_os_errors_name_the_file_and_what_to_do(code: int, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(OSError(code, os.strerror(code), "results/x.parquet")) == 2
    assert capsys.readouterr().err == f"advsets: error: results/x.parquet: {advice}\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the output: the disk is full: free some space and run again",
        ),
        (ConnectionError("cannot reach\n  example.org"), "cannot reach example.org"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_os_errors_without_a_file_name_invent_none(error: OSError, line: str) -> None:
    assert describe_os_error(error) == line


def test_log_gets_the_same_line_after_what_it_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "step.log"
    log.write_text("before\n", encoding="utf-8")
    failing(UserError("größe: falsch"), log)
    assert log.read_text(encoding="utf-8") == "before\n" + capsys.readouterr().err


def test_log_that_cannot_be_written_hides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(UserError("the mistake"), tmp_path / "no" / "folder.log") == 2
    assert capsys.readouterr().err == "advsets: error: the mistake\n"


def test_an_interrupt_is_one_line_and_exit_code_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(KeyboardInterrupt()) == 130
    assert failing(KeyboardInterrupt("the same command goes on after round 3")) == 130
    lines = ["advsets: interrupted", "advsets: interrupted; the same command goes on after round 3"]
    assert capsys.readouterr().err.splitlines() == lines


def test_log_takes_file_names_that_are_no_utf_8(tmp_path: Path) -> None:
    failing(UserError(os.fsdecode(b"t\xe4.csv: wrong")), tmp_path / "step.log")
    assert (tmp_path / "step.log").read_text(encoding="utf-8") == "advsets: error: t\\udce4.csv: wrong\n"


def test_faults_of_ours_and_closed_pipes_pass() -> None:
    with pytest.raises(ZeroDivisionError), user_errors():
        raise ZeroDivisionError
    with pytest.raises(BrokenPipeError), user_errors():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_process_shows_no_traceback() -> None:
    code = "from advsets.errors import *\nwith user_errors(): open('/no/such/file')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "advsets: error: /no/such/file: no such file or folder: check the path\n"


def test_allowed_shortens_long_lists() -> None:
    assert allowed(["a", 1, None]) == "a, 1, None"
    assert allowed(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert allowed([" 0", "0", "", "a\tb", "a b"]) == "' 0', 0, '', 'a\\tb', a b"
    assert allowed(range(100), limit=3) == "0, 1, 2, … (100 in all)"
