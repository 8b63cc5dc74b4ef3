"""Read the tables that figures need and put those of all data sets and filter runs together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from advsets.io import empty_frame, read_table
from advsets.tables import TABLES

_COLUMNS = {
    "round_scores": ["filtering_round", "split", "predictability", "removed"],
    "rounds": [
        "filtering_round",
        "n_train_before",
        "n_train_removed",
        "n_evaluation_before",
        "n_evaluation_removed",
    ],
    "retained": TABLES["retained"].column_names,
}


class FilterRun(NamedTuple):
    """One table of one filter run."""

    dataset: str
    adversary: str
    adversary_seed: int
    path: Path


def evaluation_table(name: str, paths: Iterable[str | Path]) -> pl.DataFrame:
    """Evaluation table `name` of all data sets, one file each."""
    frames = [read_table(path, name) for path in paths]
    return pl.concat(frames) if frames else empty_frame(name)


def filter_table(name: str, runs: Iterable[tuple[str, str, int, str | Path]]) -> pl.DataFrame:
    """Table `rounds`, `round_scores` or `retained` of all filter runs.

    Parameters
    ----------
    name : str
        Name of the table.
    runs : iterable of (dataset, adversary, adversary_seed, path)

    Returns
    -------
    pl.DataFrame
        Columns `dataset`, `adversary`, `adversary_seed` and those of the table that figures
        use; of `round_scores` the evaluation rows only, which keeps it small.
    """
    keys = {"dataset": pl.String(), "adversary": pl.String(), "adversary_seed": pl.Int64()}
    frames = [
        _read(name, run.path).select(
            *(pl.lit(value, dtype).alias(key) for (key, dtype), value in zip(keys.items(), run[:3], strict=True)),
            pl.all(),
        )
        for run in (FilterRun(*run) for run in runs)
    ]
    if frames:
        return pl.concat(frames)
    return pl.DataFrame(schema=keys).hstack(empty_frame(name).select(_COLUMNS[name]))


def _read(name: str, path: str | Path) -> pl.DataFrame:
    frame = read_table(path, name, _COLUMNS[name])
    return frame.filter(pl.col("split") == "evaluation") if name == "round_scores" else frame
