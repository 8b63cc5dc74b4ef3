"""What a finished run says on the terminal: findings, what its collections show, and where its files lie."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from advsets.errors import UserError, describe_os_error
from advsets.evaluation.collected_summary import collection_folders, collection_text
from advsets.evaluation.findings import findings_text
from advsets.io import read_table


def print_summary(run: Path, stream: TextIO) -> None:
    """Print the findings of every data set of `run`, what its collections show, and the paths of what it made.

    Raises
    ------
    UserError
        If the run has neither findings nor an evaluated collection yet.
    """
    try:
        folders = sorted((run / "evaluation").iterdir())
    except FileNotFoundError:
        folders = []
    except OSError as error:
        raise UserError(describe_os_error(error)) from None
    paths = [path for folder in folders if (path := folder / "findings.parquet").is_file()]
    collections = collection_folders(run / "evaluation")
    if not paths and not collections:
        raise UserError(
            f"{run}: neither evaluation/*/findings.parquet nor tables in evaluation/collected/ found;"
            " give the folder of a finished run"
        )
    if paths:
        print(findings_text([read_table(path, "findings") for path in paths]), file=stream)
    for folder in collections:
        print(collection_text(folder), file=stream)
    for title, found in (
        ("Report", [run / "report.html"]),
        ("Findings", [run / "evaluation" / "findings.md"]),
        ("Tables of collections", collections),
        ("Scores by training set in LaTeX", [run / "evaluation" / "collected" / "cross_training.tex"]),
        ("Figures", sorted((run / "figures").glob("*.pdf"))),
        ("Filtered sets", sorted((run / "filtered").glob("*/*"))),
    ):
        present = [path for path in found if path.exists()]
        if present:
            print(f"{title}:", *(f"  {path}" for path in present), sep="\n", file=stream)
