"""Scores any model's predictions on a filtered set: full set, filtered subset, random subsets of its size.

Conventions
-----------
Predictions are joined by `example_id`, never by position. A missing prediction counts as wrong
and is counted. Ids that the set does not have are reported and left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.errors import UserError, allowed
from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import aligned
from advsets.evaluation.prediction_files import read_predictions
from advsets.evaluation.settings import EvaluateSettings
from advsets.io import atomic_path, read_table, readable, write_table
from advsets.stats.bootstrap import masked_sums, percentile_interval, range_over_draws, ratio, subset_sums

SUBSETS = ("full_set", "filtered", "random_subset")


@dataclass(frozen=True)
class FilteredSet:
    """Gold labels and mask of a folder, sorted by `example_id`."""

    folder: Path
    frame: pl.DataFrame

    @property
    def retained(self) -> NDArray[np.bool_]:
        return self.frame["retained"].to_numpy()


def read_set(folder: Path) -> FilteredSet:
    """Set written by `advsets filter`, or an exported one."""
    for name in ("retained.parquet", "evaluation_labels.parquet"):
        if not (folder / name).is_file():
            raise UserError(
                f"{folder}: no {name}; allowed: the output of `advsets filter`, or a filtered set; check --set"
            )
    path = folder / "evaluation_labels.parquet"
    labels = read_table(path, "evaluation_labels").sort("example_id")
    if labels.is_empty():
        raise UserError(f"{path}: no examples; allowed: at least one row; filter again")
    retained = read_table(folder / "retained.parquet", "retained", ["example_id", "retained"])
    mask = aligned(retained, labels["example_id"], folder / "retained.parquet", path)["retained"]
    return FilteredSet(folder, labels.with_columns(retained=mask))


def evaluate_predictions(
    predictions: Sequence[Path],
    set_dir: Path,
    out: Path | None,
    settings: EvaluateSettings,
    *,
    model_names: Sequence[str] | None = None,
    other_labels: Sequence[str] = (),
    stream: TextIO | None = None,
) -> pl.DataFrame:
    """Table `own_scores` of one or more prediction files, printed and optionally written.

    Parameters
    ----------
    predictions : sequence of Path
        One file per model with `example_id` and `predicted_label` (or `prediction`).
    set_dir : Path
        Folder with `retained.parquet` and `evaluation_labels.parquet`.
    out : Path or None
        CSV or Parquet file to write.
    model_names : sequence of str, optional
        Names in the table; the file names by default.
    other_labels : sequence of str
        Labels that may be predicted although no example has them as gold label.
    stream : text stream, optional
        Where the table is printed; standard output by default.

    Raises
    ------
    UserError
        If a file or the set does not fit; the message names it.
    """
    if out is not None:
        _check_out(out)
    names = list(model_names) if model_names is not None else _names(predictions)
    chosen = read_set(set_dir)
    notes: list[str] = []
    joined = [_joined(path, chosen, other_labels, notes) for path in predictions]
    frame = table_frame("own_scores", _rows(names, np.stack(joined, axis=1), chosen.retained, settings))
    if out is not None:
        _write(frame, out)
    print(_as_text(frame, notes, settings), end="", file=stream or sys.stdout)
    return frame


def _check_out(out: Path) -> None:
    """Raise `UserError` for a file that cannot hold scores, or holds something else."""
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(f"{out}: unknown kind of file; allowed: .csv, .parquet; change the name")
    if out.exists() and not _is_scores(out):
        raise UserError(
            f"{out}: something else than scores stands there; allowed: a new file, or scores written before;"
            " choose another --out"
        )


def _is_scores(path: Path) -> bool:
    """Whether a file has the columns of table `own_scores`."""
    wanted = set(table_frame("own_scores", []).columns)
    try:
        with path.open("rb") as handle:
            frame = pl.scan_parquet(handle) if path.suffix == ".parquet" else pl.scan_csv(handle)
            return set(frame.collect_schema().names()) == wanted
    except (pl.exceptions.PolarsError, OSError):
        return False


def _names(paths: Sequence[Path]) -> list[str]:
    """File names without endings, or whole paths where these repeat."""
    stems = [readable(path.name.split(".")[0] or path.name) for path in paths]
    names = stems if len(set(stems)) == len(stems) else [readable(path) for path in paths]
    if len(set(names)) < len(names):
        raise UserError(f"predictions: {allowed(names)}: a file is given twice; allowed: each once; remove one")
    return names


def _joined(path: Path, chosen: FilteredSet, other_labels: Sequence[str], notes: list[str]) -> NDArray[np.int64]:
    """1 right, 0 wrong, -1 missing, for each example of the set."""
    frame = read_predictions(path)
    unknown = frame.join(chosen.frame, on="example_id", how="anti")["example_id"].sort()
    if len(unknown) == frame.height:
        raise UserError(
            f"{path}: none of the {frame.height} example_id is in {chosen.folder}, e.g. {unknown[0]!r};"
            f" allowed: ids such as {chosen.frame['example_id'][0]!r}; check that predictions and set belong together"
        )
    _check_labels(frame, path, sorted({*chosen.frame["label"].unique().to_list(), *other_labels}))
    both = chosen.frame.join(frame, on="example_id", how="left", maintain_order="left")
    n_missing = both["predicted_label"].null_count()
    if n_missing:
        notes.append(f"{path}: {n_missing} of {both.height} examples have no prediction and count as wrong")
    if len(unknown):
        notes.append(f"{path}: {len(unknown)} unknown example_id left out: {allowed(unknown.to_list(), 5)}")
    return (both["predicted_label"] == both["label"]).cast(pl.Int64).fill_null(-1).to_numpy()


def _check_labels(frame: pl.DataFrame, path: Path, labels: list[str]) -> None:
    wrong = frame.with_row_index(offset=1).filter(
        pl.col("predicted_label").is_not_null() & ~pl.col("predicted_label").is_in(labels)
    )
    if wrong.height:
        first = wrong.row(0, named=True)
        raise UserError(
            f"{path}: row {first['index']}: unknown label {first['predicted_label']!r} ({wrong.height} rows have"
            f" unknown labels); allowed: {allowed(labels)}; map the labels to these names"
        )


def _rows(
    names: list[str], outcome: NDArray[np.int64], retained: NDArray[np.bool_], settings: EvaluateSettings
) -> Iterator[dict[str, Any]]:
    right, missing = outcome == 1, outcome == -1
    subsets = np.column_stack([np.ones(len(retained), dtype=bool), retained])
    sizes = subsets.sum(axis=0)
    values = np.column_stack([right, np.ones(len(right), dtype=bool)])
    sums = masked_sums(values, subsets, settings.n_bootstrap, settings.seed)
    low, high = percentile_interval(ratio(sums[..., :-1], sums[..., -1:]), settings.confidence)
    point, n_missing = ratio(subsets.T @ right.astype(float), sizes[:, None]), subsets.T @ missing.astype(np.int64)
    random = subset_sums(np.column_stack([right, missing]), sizes[1:], settings.n_random_subsets, settings.seed)[:, 0]
    mean, lowest, highest = range_over_draws(ratio(random[:, : len(names)], sizes[1]))
    missing_random = np.rint(random[:, len(names) :].mean(axis=0)).astype(int)
    for m, name in enumerate(names):
        for s, subset in enumerate(SUBSETS[:2]):
            yield _row(name, subset, sizes[s], n_missing[s, m], point[s, m], low[s, m], high[s, m])
        yield _row(name, "random_subset", sizes[1], missing_random[m], mean[m], lowest[m], highest[m])


def _row(
    name: str, subset: str, n_examples: int, n_missing: int, value: float, low: float, high: float
) -> dict[str, Any]:
    return {
        "evaluated_model": name,
        "subset": subset,
        "n_examples": int(n_examples),
        "n_missing": int(n_missing),
        "accuracy": value,
        "accuracy_low": low,
        "accuracy_high": high,
    }


def _write(frame: pl.DataFrame, out: Path) -> None:
    if out.suffix == ".parquet":
        return write_table(frame, out, "own_scores")
    with atomic_path(out) as temporary, temporary.open("wb") as handle:
        frame.write_csv(handle)
    return None


def _as_text(frame: pl.DataFrame, notes: list[str], settings: EvaluateSettings) -> str:
    width = max(len("model"), *(len(name) for name in frame["evaluated_model"]))
    lines = [f"{'model':<{width}}  {'subset':<13}  {'examples':>8}  {'missing':>7}  accuracy  interval or range"]
    for row in sorted(frame.to_dicts(), key=lambda r: (r["evaluated_model"], SUBSETS.index(r["subset"]))):
        numbers = ["none" if row[c] is None else f"{row[c]:.4f}" for c in ("accuracy", "accuracy_low", "accuracy_high")]
        lines.append(
            f"{row['evaluated_model']:<{width}}  {row['subset']:<13}  {row['n_examples']:>8}  {row['n_missing']:>7}"
            f"  {numbers[0]:>8}  {numbers[1]} to {numbers[2]}"
        )
    lines.append(
        f"full_set, filtered: {settings.confidence:.0%} interval, {settings.n_bootstrap} bootstrap draws over examples;"
        f" random_subset: range over {settings.n_random_subsets} random subsets of the filtered size."
    )
    return "\n".join([*lines, *notes]) + "\n"
