"""A step logs, limits threads, says mistakes in one line, and is the only writer of its output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advsets import job
from advsets.errors import UserError
from advsets.job import output_lock, step


@pytest.fixture(autouse=True)
def threads_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in job._THREAD_VARIABLES:
        monkeypatch.setenv(variable, "99")


class TestStep:
    def test_stderr_goes_to_terminal_and_log(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        log, before = tmp_path / "logs" / "x.log", sys.stderr
        with step(log, 1, [str(tmp_path / "out")]):
            print("größe: 1", file=sys.stderr)
            print("stdout stays out")
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("stdout stays out\n", "größe: 1\n")
        assert log.read_text(encoding="utf-8") == "größe: 1\n"
        assert sys.stderr is before

    def test_log_is_added_to(self, tmp_path: Path) -> None:
        for text in ("first", "second"):
            with step(tmp_path / "x.log", 1, [str(tmp_path / "out")]):
                print(text, file=sys.stderr)
        assert (tmp_path / "x.log").read_text() == "first\nsecond\n"

    def test_progress_bars_stay_out_of_the_log(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with step(tmp_path / "x.log", 1, [str(tmp_path / "out")]):
            sys.stderr.write("\r 10 %")
            sys.stderr.write("\r100 %\n")
            sys.stderr.write("done\n")
        assert capsys.readouterr().err == "\r 10 %\r100 %\ndone\n"
        assert (tmp_path / "x.log").read_text() == "done\n"

    @pytest.mark.parametrize(("threads", "value"), [(3, "3"), (1, "1"), (0, "1")])
    def test_threads_are_limited_by_the_environment(self, tmp_path: Path, threads: int, value: str) -> None:
        with step(tmp_path / "x.log", threads, [str(tmp_path / "out")]):
            found = {name: os.environ[name] for name in job._THREAD_VARIABLES}
        assert set(found.values()) == {value}
        assert {"OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"} <= set(found)

    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (UserError("data.csv:\nempty; add rows"), "data.csv: empty; add rows"),
            (
                PermissionError(13, "Permission denied", "x"),
                "x: permission denied: change its permissions or choose another",
            ),
        ],
    )
    def test_a_mistake_is_one_line_in_both(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception, line: str
    ) -> None:
        before = sys.stderr
        with pytest.raises(SystemExit) as caught, step(tmp_path / "x.log", 1, [str(tmp_path / "out")]):
            raise error
        assert caught.value.code == 2
        shown = capsys.readouterr().err
        assert shown.startswith(f"advsets: error: {line}") and shown.count("\n") == 1
        assert (tmp_path / "x.log").read_text() == shown
        assert sys.stderr is before

    def test_a_fault_of_ours_leaves_its_traceback_in_the_log(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError), step(tmp_path / "x.log", 1, [str(tmp_path / "out")]):
            _ = 1 / 0
        text = (tmp_path / "x.log").read_text()
        assert text.startswith("Traceback") and text.endswith("ZeroDivisionError: division by zero\n")

    def test_each_attempt_that_fails_keeps_its_log(self, tmp_path: Path) -> None:
        log = tmp_path / "seed0.log"
        for text in ("first", "second"):
            with pytest.raises(ZeroDivisionError), step(log, 1, [str(tmp_path / "out")]):
                print(text, file=sys.stderr)
                _ = 1 / 0
            log.unlink()  # as the engine does before it tries a job again
        with step(log, 1, [str(tmp_path / "out")]):
            print("third", file=sys.stderr)
        kept = {path.name: path.read_text().splitlines()[0] for path in tmp_path.glob("*.log")}
        assert kept == {"seed0.attempt1.log": "first", "seed0.attempt2.log": "second", "seed0.log": "third"}

    def test_a_disk_without_hard_links_keeps_the_log_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(ZeroDivisionError), step(tmp_path / "x.log", 1, [str(tmp_path / "out")]):
            _ = 1 / 0
        assert [path.name for path in tmp_path.glob("*.log")] == ["x.log"]

    def test_a_log_on_a_full_disk_hides_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        if not Path("/dev/full").is_char_device():
            pytest.skip("no device /dev/full here")
        (tmp_path / "x.log").symlink_to("/dev/full")
        with pytest.raises(SystemExit), step(tmp_path / "x.log", 1, [str(tmp_path / "out")]):
            raise UserError("the mistake")
        assert capsys.readouterr().err == "advsets: error: the mistake\n"

    @pytest.mark.parametrize(
        ("log", "output", "line"),
        [
            ("file/x.log", "out", "file: something else stands there already: remove it or choose another path"),
            ("file/y/x.log", "out", "file/y: a file stands where a folder was expected: check the path"),
        ],
    )
    def test_a_folder_that_cannot_be_made_is_one_line(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], log: str, output: str, line: str
    ) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(SystemExit) as caught, step(tmp_path / log, 1, [str(tmp_path / output)]):
            raise AssertionError("the step must not run")
        assert caught.value.code == 2
        assert capsys.readouterr().err == f"advsets: error: {tmp_path}/{line}\n"


WRITER = """
    import sys, time
    from pathlib import Path
    from advsets.job import step
    folder, name, output = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with step(folder / f"{name}.log", 1, [str(folder / output)]):
        with (folder / "events").open("a") as events:
            events.write(f"{name} starts\\n")
        while not (folder / f"{name} may end").exists():
            time.sleep(0.005)
        with (folder / "events").open("a") as events:
            events.write(f"{name} ends\\n")
"""


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


class Writers:
    """Processes that each run one step and end when they may."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, output: str = "out.parquet") -> None:
        arguments = [sys.executable, "-c", textwrap.dedent(WRITER), str(self.folder), name, output]
        self.processes[name] = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)

    def events(self) -> list[str]:
        path = self.folder / "events"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, event: str) -> None:
        wait_until(lambda: event in self.events())

    def wait_for_waiting(self, name: str) -> None:
        log = self.folder / f"{name}.log"
        wait_until(lambda: log.exists() and "another process is writing it; waiting" in log.read_text())

    def let_end(self, name: str) -> int:
        (self.folder / f"{name} may end").touch()
        return self.processes[name].wait(60)


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    started = Writers(tmp_path)
    yield started
    for process in started.processes.values():
        process.kill()
        process.wait()


class TestLock:
    def test_second_writer_waits_for_the_first(self, writers: Writers) -> None:
        writers.start("a")
        writers.wait_for("a starts")
        writers.start("b")
        writers.wait_for_waiting("b")
        assert writers.events() == ["a starts"]
        assert writers.let_end("a") == 0
        writers.wait_for("b starts")
        assert writers.let_end("b") == 0
        assert writers.events() == ["a starts", "a ends", "b starts", "b ends"]

    def test_kill_frees_the_lock(self, writers: Writers) -> None:
        writers.start("a")
        writers.wait_for("a starts")
        writers.start("b")
        writers.wait_for_waiting("b")
        writers.processes["a"].send_signal(signal.SIGKILL)
        writers.wait_for("b starts")
        assert writers.let_end("b") == 0
        assert writers.events() == ["a starts", "b starts", "b ends"]
        assert (writers.folder / "a.attempt1.log").exists() and not (writers.folder / "b.attempt1.log").exists()

    def test_other_outputs_do_not_wait(self, writers: Writers) -> None:
        writers.start("a", "out.parquet")
        writers.wait_for("a starts")
        writers.start("b", "other.parquet")
        writers.wait_for("b starts")
        assert "a ends" not in writers.events()

    def test_lock_is_freed_by_an_error_and_lies_in_its_folder(self, tmp_path: Path) -> None:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError), output_lock(tmp_path / "data" / "out.parquet", tmp_path):
                _ = 1 / 0
        assert [path.name for path in tmp_path.iterdir()] == [".locks"]
        with output_lock(tmp_path / "data" / "out.parquet", tmp_path):
            pass


def test_job_imports_nothing_heavy() -> None:
    code = "import sys, advsets.job; print([m for m in ('numpy', 'polars', 'torch', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
