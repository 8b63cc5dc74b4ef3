"""Make the `examples` tables of a data set from its raw files."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from advsets.datasets import more_annotators, sources
from advsets.datasets.columns import extract, wanted_columns
from advsets.datasets.duplicates import add_ids, text_keys
from advsets.datasets.splitting import evaluation_mask, subsample_mask, train_roles
from advsets.datasets.sufficiency import check_parts, check_split
from advsets.errors import UserError, allowed
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
    """Write `train`, `evaluation`, `more_annotators` and `dropped` (`.parquet`) to `out`.

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
        In one line, naming file and row, when the data cannot be used, or what is left of it
        cannot be filtered.
    """
    wanted = {split: wanted_columns(row, split) for split in ("train", "evaluation")}
    tables = sources.read(row, raw, wanted)
    frame = pl.concat(
        [extract(row, t, split).with_columns(pl.lit(split).alias("split")) for split, t in tables.items()]
    )
    frame = frame.with_columns(text_keys(frame))
    facts: dict[str, list[str]] = {"train": [], "evaluation": []}
    if "evaluation" not in tables:
        frame = _split(row, frame, facts)
    elif row.evaluation_fraction is not None:
        raise UserError(
            f"data set {row.name}: `evaluation_fraction` {row.evaluation_fraction}, but the source has evaluation rows"
            f" ({tables['evaluation'].where}); allowed: one of the two; set `evaluation_fraction` to null, or remove"
            " the evaluation rows from the source"
        )
    counted = [_counted(frame, "drop_reason")]
    _note_dropped(frame, facts)
    source_ids = frame.filter(pl.col("split") == "evaluation")["source_id"]
    frame = add_ids(frame.filter(pl.col("drop_reason").is_null()))
    train, evaluation = (frame.filter(pl.col("split") == split) for split in ("train", "evaluation"))
    evaluation = _limit(evaluation, max_evaluation, "max_evaluation", seed, counted, facts)
    train = _without_equal_texts(train, evaluation, drop_train_duplicates, counted, facts)
    train = _limit(train, max_train, "max_train", seed, counted, facts)
    for name, part in (("train", train), ("evaluation", evaluation)):
        check_split(row, part, name, facts[name])
    roles = train_roles(train["group_id"].fill_null(train["text_key"]), adversary_fraction, seed)
    train = train.with_columns(roles.alias("train_role"))
    check_parts(row, train, evaluation, adversary_fraction, facts["train"] + facts["evaluation"])
    labels, joined = more_annotators.join(row, raw, source_ids, evaluation)
    counted += [_line("evaluation", reason, n, False) for reason, n in joined.items()]
    write_table(labels, out / "more_annotators.parquet", "more_annotators")
    write_table(_as_examples(train, "train"), out / "train.parquet", "examples")
    write_table(_as_examples(evaluation, row.evaluation_split), out / "evaluation.parquet", "examples")
    write_table(_dropped(counted, row.evaluation_split), out / "dropped.parquet", "dropped")


def _split(row: DatasetRow, frame: pl.DataFrame, facts: dict[str, list[str]]) -> pl.DataFrame:
    """Draw the evaluation set from a source with one table, equal texts on one side."""
    if row.evaluation_fraction is None:
        raise UserError(
            f"data set {row.name}: the source has no evaluation rows and `evaluation_fraction` is null;"
            " allowed: one of the two; set `evaluation_fraction`, or `source.evaluation`"
        )
    drawn = evaluation_mask(frame["group_id"].fill_null(frame["text_key"]), row.evaluation_fraction)
    fact = f"`evaluation_fraction` {row.evaluation_fraction} draws {int(drawn.sum())} of {frame.height} rows"
    for known in facts.values():
        known.append(fact)
    return frame.with_columns(pl.when(drawn).then(pl.lit("evaluation")).otherwise(pl.lit("train")).alias("split"))


def _units(frame: pl.DataFrame) -> pl.Series:
    return frame.select(pl.col("group_id").fill_null(pl.col("example_id"))).to_series()


def _without_equal_texts(
    train: pl.DataFrame,
    evaluation: pl.DataFrame,
    drop: bool,
    counted: list[pl.DataFrame],
    facts: dict[str, list[str]],
) -> pl.DataFrame:
    equal = train["text_key"].is_in(evaluation["text_key"].unique().to_list())
    n_equal = int(equal.sum())
    counted.append(_line("train", EQUAL_TEXT, n_equal, drop))
    if not drop:
        return train
    if n_equal:
        facts["train"].append(f"`split.drop_train_duplicates` drops {n_equal} of {train.height} training rows")
    return train.filter(~equal)


def _limit(
    frame: pl.DataFrame,
    n_max: int | None,
    key: str,
    seed: int,
    counted: list[pl.DataFrame],
    facts: dict[str, list[str]],
) -> pl.DataFrame:
    if n_max is None or frame.height <= n_max:
        return frame
    kept = frame.filter(subsample_mask(_units(frame), frame["label"], n_max, seed))
    split = frame["split"][0]
    counted.append(_line(split, f"beyond {key}", frame.height - kept.height, True))
    facts[split].append(f"`split.{key}` {n_max} keeps {kept.height} of {frame.height} {split} rows")
    return kept


def _counted(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    counts = frame.filter(pl.col(column).is_not_null()).group_by("split", pl.col(column).alias("reason")).len()
    return counts.select(
        "split", "reason", pl.col("len").cast(pl.Int64).alias("n_examples"), pl.lit(True).alias("dropped")
    )


def _note_dropped(frame: pl.DataFrame, facts: dict[str, list[str]]) -> None:
    for split, known in facts.items():
        reasons = frame.filter(pl.col("split") == split)["drop_reason"]
        dropped = reasons.drop_nulls()
        if len(dropped):
            why = allowed(dropped.unique().sort().to_list(), 3)
            known.append(f"{len(dropped)} of {len(reasons)} {split} rows are dropped ({why})")


def _line(split: str, reason: str, n_examples: int, dropped: bool) -> pl.DataFrame:
    return pl.DataFrame({"split": [split], "reason": [reason], "n_examples": [n_examples], "dropped": [dropped]})


def _dropped(counted: list[pl.DataFrame], evaluation_split: str) -> pl.DataFrame:
    return pl.concat(counted).with_columns(pl.col("split").replace("evaluation", evaluation_split))


def _as_examples(frame: pl.DataFrame, split: str) -> pl.DataFrame:
    if "train_role" not in frame.columns:
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias("train_role"))
    return frame.with_columns(pl.lit(split).alias("split")).select(TABLES["examples"].column_names)
