"""What a finished run says on the terminal: findings, and where its files lie."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from advsets.errors import UserError, describe_os_error
from advsets.evaluation.findings import findings_text
from advsets.io import read_table


def print_summary(run: Path, stream: TextIO) -> None:
    """Print the findings of every data set of `run` and the paths of its report and figures.

    Raises
    ------
    UserError
        If the run has no findings yet.
    """
    try:
        folders = sorted((run / "evaluation").iterdir())
    except FileNotFoundError:
        folders = []
    except OSError as error:
        raise UserError(describe_os_error(error)) from None
    paths = [path for folder in folders if (path := folder / "findings.parquet").is_file()]
    if not paths:
        raise UserError(f"{run}: no evaluation/*/findings.parquet found; give the folder of a finished run")
    print(findings_text([read_table(path, "findings") for path in paths]), file=stream)
    for title, found in (
        ("Report", [run / "report.html"]),
        ("Findings", [run / "evaluation" / "findings.md"]),
        ("Figures", sorted((run / "figures").glob("*.pdf"))),
        ("Filtered sets", sorted((run / "filtered").glob("*/*"))),
    ):
        present = [path for path in found if path.exists()]
        if present:
            print(f"{title}:", *(f"  {path}" for path in present), sep="\n", file=stream)
