"""Read the tables that figures need and put those of all data sets and filter runs together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

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


def read_tables(
    paths: Mapping[str, Sequence[str | Path]], datasets: Sequence[str], adversary_runs: Sequence[tuple[str, int]]
) -> dict[str, pl.DataFrame]:
    """Tables of a figure by name, those of all data sets and filter runs together.

    Parameters
    ----------
    paths : mapping of table name to paths
        Evaluation tables: one path per data set. `rounds`, `round_scores` and `retained`: data
        set by data set, one path per filter run.
    datasets : sequence of str
        Data sets in the order of the paths.
    adversary_runs : sequence of (adversary, adversary_seed)
        Filter runs of a data set in the order of the paths.
    """
    runs = [(dataset, adversary, int(seed)) for dataset in datasets for adversary, seed in adversary_runs]
    return {
        name: filter_table(name, [(*run, path) for run, path in zip(runs, files, strict=True)])
        if name in _COLUMNS
        else evaluation_table(name, files)
        for name, files in paths.items()
    }


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
    frames = [
        _read(name, path).select(
            pl.lit(dataset, pl.String).alias("dataset"),
            pl.lit(adversary, pl.String).alias("adversary"),
            pl.lit(seed, pl.Int64).alias("adversary_seed"),
            pl.all(),
        )
        for dataset, adversary, seed, path in runs
    ]
    if frames:
        return pl.concat(frames)
    keys = {"dataset": pl.String(), "adversary": pl.String(), "adversary_seed": pl.Int64()}
    return pl.DataFrame(schema=keys).hstack(empty_frame(name).select(_COLUMNS[name]))


def _read(name: str, path: str | Path) -> pl.DataFrame:
    frame = read_table(path, name, _COLUMNS[name])
    return frame.filter(pl.col("split") == "evaluation") if name == "round_scores" else frame
