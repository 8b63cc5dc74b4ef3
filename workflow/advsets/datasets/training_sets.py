"""Put the training rows of several data sets together, for models that are scored on other sets.

Conventions
-----------
Ids become `<data set>/<id>`. A training row whose text (a question: whose passage) stands in an
evaluation set of the collection is left out and counted, whichever data set it comes from.
`max_train` is dealt out evenly among the data sets, drawn by whole groups or passages in an
order that hangs on the passage alone: subsets of two data sets with the same passages are on
the same passages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from advsets.collected import training_shares
from advsets.datasets.duplicates import text_keys
from advsets.datasets.roles import holds_questions
from advsets.datasets.splitting import subsample_mask
from advsets.errors import UserError
from advsets.io import read_table, write_table
from advsets.tables import TABLES

IN_EVALUATION = "text equals an evaluation row's of the collection"
PASSAGE_IN_EVALUATION = "passage of an evaluation set of the collection"
OTHER_PASSAGE = "passage is not in all of passages_of"
BEYOND = "beyond max_train"

Counts = dict[str, int]


def join_examples(
    train: Mapping[str, pl.DataFrame],
    evaluation: Sequence[pl.DataFrame],
    *,
    max_train: int | None,
    seed: int,
    where: str = "training set",
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training set out of tables `examples`, by data set.

    Parameters
    ----------
    where : str
        What messages call the training set.

    Returns
    -------
    train, dropped : DataFrame
        Tables `examples` (label counts are left out: their order is a data set's own) and `dropped`.

    Raises
    ------
    UserError
        If nothing is left of a data set.
    """
    seen = pl.concat([text_keys(frame) for frame in evaluation]) if evaluation else pl.Series([], dtype=pl.String)
    counts: dict[str, Counts] = {name: {} for name in train}
    parts = {}
    for name, frame in train.items():
        left = _drop(frame, ~text_keys(frame).is_in(seen.unique().to_list()), IN_EVALUATION, counts[name])
        parts[name] = left.with_columns(
            pl.format("{}/{}", pl.lit(name), "example_id").alias("example_id"),
            pl.lit(None, dtype=pl.List(pl.Int64)).alias("label_count"),
        )
    parts = _limited(parts, ("group_id", "label"), max_train, seed, counts, where)
    return _together(parts, "examples"), _dropped(counts)


def join_questions(
    train: Mapping[str, pl.DataFrame],
    evaluation: Mapping[str, pl.DataFrame],
    *,
    passages_of: Sequence[pl.DataFrame] = (),
    max_train: int | None,
    seed: int,
    where: str = "training set",
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training set out of tables `questions`, by data set.

    Parameters
    ----------
    evaluation : mapping of data set to DataFrame
        Evaluation sets of the collection. Those questions of the joined data sets that are of
        split `validation` there choose the checkpoint.
    passages_of : sequence of DataFrame
        Training tables whose common passages are the only ones kept; empty: all are.
    where : str
        What messages call the training set.

    Returns
    -------
    train, dropped : DataFrame
        Tables `questions`, with splits `train` and `validation`, and `dropped`.
    """
    counts: dict[str, Counts] = {name: {} for name in train}
    seen = {passage for frame in evaluation.values() for passage in frame["passage_id"]}
    parts = {}
    for name, frame in train.items():
        left = _drop(frame, ~frame["passage_id"].is_in(list(seen)), PASSAGE_IN_EVALUATION, counts[name])
        if passages_of:
            shared = set.intersection(*(set(other["passage_id"]) for other in passages_of))
            left = _drop(left, left["passage_id"].is_in(list(shared)), OTHER_PASSAGE, counts[name])
        parts[name] = left.with_columns(pl.format("{}/{}", pl.lit(name), "example_id").alias("example_id"))
    parts = _limited(parts, ("passage_id", "split"), max_train, seed, counts, where)
    for name in train:
        if name in evaluation:
            chosen = evaluation[name].filter(pl.col("split") == "validation")
            named = chosen.with_columns(pl.format("{}/{}", pl.lit(name), "example_id").alias("example_id"))
            parts[f"{name}, validation"] = named
    return _together(parts, "questions"), _dropped(counts)


def _drop(frame: pl.DataFrame, keep: pl.Series, reason: str, counts: Counts) -> pl.DataFrame:
    counts[reason] = counts.get(reason, 0) + int((~keep).sum())
    return frame.filter(keep)


def _limited(
    parts: dict[str, pl.DataFrame],
    columns: tuple[str, str],
    max_train: int | None,
    seed: int,
    counts: Mapping[str, Counts],
    where: str,
) -> dict[str, pl.DataFrame]:
    """Every data set's share of `max_train`; refuses a data set or a label of which nothing is left."""
    unit, stratum = columns
    out = {}
    shares = training_shares(max_train or 0, len(parts))
    for share, (name, frame) in zip(shares, parts.items(), strict=True):
        kept = frame
        if max_train is not None and not frame.is_empty():
            units = frame.select(pl.coalesce(unit, "example_id")).to_series()
            kept = _drop(frame, subsample_mask(units, frame[stratum], share, seed), BEYOND, counts[name])
        if kept.is_empty():
            raise UserError(
                f"{where}: no training rows of {name} are left ({_reasons(counts[name])}); allowed: one or more; raise"
                " max_train, name other passages_of, or leave the data set out"
            )
        lost = sorted(set(frame[stratum]) - set(kept[stratum]))
        if lost:
            raise UserError(
                f"{where}: of {name}'s {stratum} {lost[0]!r} no training row fits into {share} rows, drawn by whole"
                f" groups; allowed: every {stratum} in the draw; raise max_train"
            )
        out[name] = kept
    return out


def _reasons(counts: Counts) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in counts.items()) or "it has none"


def _together(parts: Mapping[str, pl.DataFrame], table: str) -> pl.DataFrame:
    return pl.concat([frame.select(TABLES[table].column_names) for frame in parts.values()])


def _dropped(counts: Mapping[str, Counts]) -> pl.DataFrame:
    total: Counter[str] = Counter()
    for part in counts.values():
        total.update(part)
    rows = [{"split": "train", "reason": r, "n_examples": n, "dropped": True} for r, n in sorted(total.items())]
    schema = {"split": pl.String, "reason": pl.String, "n_examples": pl.Int64, "dropped": pl.Boolean}
    return pl.DataFrame(rows, schema=schema)


def write_training_set(
    train: Mapping[str, Path],
    evaluation: Mapping[str, Path],
    passages_of: Sequence[Path],
    out: Path,
    dropped: Path,
    *,
    max_train: int | None,
    seed: int,
    where: str,
) -> None:
    """Read, join and write: of questions if the tables hold questions, of examples otherwise."""
    table = "questions" if holds_questions(next(iter(train.values()))) else "examples"
    parts = {name: read_table(path, table) for name, path in train.items()}
    others = {name: read_table(path, table) for name, path in evaluation.items()}
    if table == "questions":
        shared = [read_table(path, table) for path in passages_of]
        joined, counts = join_questions(parts, others, passages_of=shared, max_train=max_train, seed=seed, where=where)
    else:
        joined, counts = join_examples(parts, list(others.values()), max_train=max_train, seed=seed, where=where)
    write_table(joined, out, table)
    write_table(counts, dropped, "dropped")
