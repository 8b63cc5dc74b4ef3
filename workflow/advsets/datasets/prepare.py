"""Make the `examples` tables of a data set from its raw files."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from advsets.datasets import sources
from advsets.datasets.columns import extract, wanted_columns
from advsets.datasets.duplicates import add_ids, text_keys
from advsets.datasets.splitting import evaluation_mask, subsample_mask, train_roles
from advsets.errors import UserError
from advsets.io import write_table
from advsets.registry import DatasetRow
from advsets.tables import TABLES

EQUAL_TEXT = "text equals an evaluation row's"


def prepare(
    row: DatasetRow,
    raw: Path,
    out: Path,
    *,
    seed: int,
    adversary_fraction: float,
    drop_train_duplicates: bool,
    max_train: int | None,
    max_evaluation: int | None,
) -> None:
    """Write `train.parquet`, `evaluation.parquet` and `dropped.parquet` to `out`.

    Parameters
    ----------
    raw : Path
        Folder of the fetched files, with `source.json`.
    seed : int
        Keys the draw of the adversary's training rows and of `max_train`, `max_evaluation`.
    adversary_fraction : float
        Share of the training units (groups, or rows) that fine-tune the adversary.
    drop_train_duplicates : bool
        Drop training rows whose text equals an evaluation row's; they are counted anyway.
    max_train, max_evaluation : int or None
        At most so many rows, drawn by label.

    Raises
    ------
    UserError
        In one line, naming file and row, when the data cannot be used.
    """
    wanted = {split: wanted_columns(row, split) for split in ("train", "evaluation")}
    tables = sources.read(row, raw, wanted)
    frame = pl.concat(
        [extract(row, t, split).with_columns(pl.lit(split).alias("split")) for split, t in tables.items()]
    )
    frame = frame.with_columns(text_keys(frame))
    if "evaluation" not in tables:
        frame = _split(row, frame)
    counted = [_counted(frame, "drop_reason")]
    frame = add_ids(frame.filter(pl.col("drop_reason").is_null()))
    train, evaluation = (frame.filter(pl.col("split") == split) for split in ("train", "evaluation"))
    evaluation = _limit(evaluation, max_evaluation, "max_evaluation", seed, counted)
    train = _without_equal_texts(train, evaluation, drop_train_duplicates, counted)
    train = _limit(train, max_train, "max_train", seed, counted)
    for name, part in (("train", train), ("evaluation", evaluation)):
        _check_classes(row, part, name)
    roles = train_roles(train["group_id"].fill_null(train["text_key"]), adversary_fraction, seed)
    train = train.with_columns(roles.alias("train_role"))
    _check_roles(row, train, adversary_fraction)
    write_table(_as_examples(train, "train"), out / "train.parquet", "examples")
    write_table(_as_examples(evaluation, row.evaluation_split), out / "evaluation.parquet", "examples")
    write_table(_dropped(counted, row.evaluation_split), out / "dropped.parquet", "dropped")


def _split(row: DatasetRow, frame: pl.DataFrame) -> pl.DataFrame:
    """Draw the evaluation set from a source with one table, equal texts on one side."""
    if row.evaluation_fraction is None:
        raise UserError(
            f"data set {row.name}: the source has no evaluation rows and `evaluation_fraction` is null;"
            " allowed: one of the two; set `evaluation_fraction`, or `source.evaluation`"
        )
    drawn = evaluation_mask(frame["group_id"].fill_null(frame["text_key"]), row.evaluation_fraction)
    return frame.with_columns(pl.when(drawn).then(pl.lit("evaluation")).otherwise(pl.lit("train")).alias("split"))


def _units(frame: pl.DataFrame) -> pl.Series:
    return frame.select(pl.col("group_id").fill_null(pl.col("example_id"))).to_series()


def _without_equal_texts(
    train: pl.DataFrame, evaluation: pl.DataFrame, drop: bool, counted: list[pl.DataFrame]
) -> pl.DataFrame:
    equal = train["text_key"].is_in(evaluation["text_key"].unique().to_list())
    counted.append(_line("train", EQUAL_TEXT, int(equal.sum()), drop))
    return train.filter(~equal) if drop else train


def _limit(frame: pl.DataFrame, n_max: int | None, key: str, seed: int, counted: list[pl.DataFrame]) -> pl.DataFrame:
    if n_max is None or frame.height <= n_max:
        return frame
    kept = frame.filter(subsample_mask(_units(frame), frame["label"], n_max, seed))
    counted.append(_line(frame["split"][0], f"beyond {key}", frame.height - kept.height, True))
    return kept


def _counted(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    counts = frame.filter(pl.col(column).is_not_null()).group_by("split", pl.col(column).alias("reason")).len()
    return counts.select(
        "split", "reason", pl.col("len").cast(pl.Int64).alias("n_examples"), pl.lit(True).alias("dropped")
    )


def _line(split: str, reason: str, n_examples: int, dropped: bool) -> pl.DataFrame:
    return pl.DataFrame({"split": [split], "reason": [reason], "n_examples": [n_examples], "dropped": [dropped]})


def _dropped(counted: list[pl.DataFrame], evaluation_split: str) -> pl.DataFrame:
    return pl.concat(counted).with_columns(pl.col("split").replace("evaluation", evaluation_split))


def _check_classes(row: DatasetRow, frame: pl.DataFrame, split: str) -> None:
    if frame.is_empty():
        raise UserError(f"data set {row.name}: no {split} rows are left; see that they have texts and gold labels")
    labels = frame["label"].unique().to_list()
    if len(labels) < 2 and not row.is_multiple_choice:
        raise UserError(
            f"data set {row.name}: all {frame.height} {split} rows have the label {labels[0]!r};"
            " allowed: two classes or more; check `columns.label`, or take more rows"
        )


def _check_roles(row: DatasetRow, train: pl.DataFrame, adversary_fraction: float) -> None:
    for role in ("adversary", "filtering"):
        if not (train["train_role"] == role).any():
            raise UserError(
                f"data set {row.name}: `adversary_fraction` {adversary_fraction} leaves no {role} rows of"
                f" {train.height} training rows ({_units(train).n_unique()} groups);"
                " take more rows or groups, or change the fraction"
            )


def _as_examples(frame: pl.DataFrame, split: str) -> pl.DataFrame:
    if "train_role" not in frame.columns:
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias("train_role"))
    return frame.with_columns(pl.lit(split).alias("split")).select(TABLES["examples"].column_names)
