"""Errors that a user can mend, told in one line.

Conventions
-----------
Every message names the file, row or key, what was found, what is allowed and what to do.
`UserError` is never shown with a traceback; anything else is a fault of ours and is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
"""What shells report for a process that Ctrl-C (SIGINT) ended."""


class UserError(Exception):
    """A mistake in input or surroundings that the message tells how to mend."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def allowed(values: Iterable[object], limit: int = 12) -> str:
    """List allowed values for a message, shortened after `limit`; quoted where white space would be lost."""
    items = [_visible(str(v)) for v in values]
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown}, … ({len(items)} in all)"


def _visible(text: str) -> str:
    return text if text and text == " ".join(text.split()) else repr(text)


def reason(error: BaseException, n_lines: int = 1, limit: int | None = None) -> str:
    """First lines of a library's message in one, cut to `limit` characters; its type where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:n_lines])[:limit] or type(error).__name__


def describe_os_error(error: OSError) -> str:
    """One line for a failed read or write, with what to do about it."""
    advice = {
        errno.ENOSPC: "the disk is full: free some space and run again",
        errno.EDQUOT: "the disk quota is used up: free some space and run again",
        errno.EFBIG: "the file grew beyond the limit of the shell or file system: raise it (ulimit -f)",
        errno.EROFS: "the file system is read-only: choose another folder",
        errno.EACCES: "permission denied: change its permissions or choose another folder",
        errno.EPERM: "not permitted: change its permissions or choose another folder",
        errno.ENOENT: "no such file or folder: check the path",
        errno.EISDIR: "it is a folder where a file was expected: check the path",
        errno.EEXIST: "something else stands there already: remove it or choose another path",
        errno.ENOTDIR: "a file stands where a folder was expected: check the path",
    }.get(error.errno or 0)
    what = advice or error.strerror or str(error) or type(error).__name__
    where = error.filename or ("the output" if advice else "")
    return " ".join((f"{where}: {what}" if where else what).split())


@contextlib.contextmanager
def user_errors(log: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Turn a user's mistake into one line on stderr (and in `log`) and exit code 2; Ctrl-C into one and 130."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        print("; ".join(["advsets: interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except (UserError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        line = describe_os_error(error) if isinstance(error, OSError) else str(error)
        print(f"advsets: error: {line}", file=sys.stderr)
        if log is not None:
            with (
                contextlib.suppress(OSError),
                Path(log).open("a", encoding="utf-8", errors="backslashreplace") as handle,
            ):
                handle.write(f"advsets: error: {line}\n")
        sys.exit(EXIT_USER_ERROR)
