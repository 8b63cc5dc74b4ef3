"""Download one source archive with pip's own settings, without building or running it.

Run as a script, in a process of its own: `pip_download.py PACKAGE VERSION OUT`. `pip download`
would run the package's set-up code to learn its metadata, and takes five times as long. This
asks pip (21 to 26) for its link finder and session, so that index addresses, credentials,
certificates, proxies and caches are those of the user's pip.conf and `PIP_*` variables.
Prints the archive's file name. Exit codes: 3 no such version on the index, 4 transfer failed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

NOT_FOUND, FAILED = 3, 4
_DEFAULT_RETRIES = 5


def main(package: str, version: str, out: str) -> int:
    """Write the archive to `out`; returns the exit code."""
    from pip._internal.commands import create_command
    from pip._vendor.packaging.specifiers import SpecifierSet

    command: Any = create_command("download")
    options, _ = command.parse_args(["--no-deps", "--no-binary", ":all:", f"{package}=={version}"])
    if options.retries == _DEFAULT_RETRIES:
        options.retries = 1
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        best = finder.find_best_candidate(package, SpecifierSet(f"=={version}")).best_candidate
        if best is None:
            return NOT_FOUND
        try:
            response = session.get(best.link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True)
            response.raise_for_status()
            with Path(out).open("wb") as handle:
                for chunk in iter(lambda: response.raw.read(1 << 16), b""):
                    handle.write(chunk)
        except Exception as error:
            print(error, file=sys.stderr)
            return FAILED
    print(best.link.filename)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
