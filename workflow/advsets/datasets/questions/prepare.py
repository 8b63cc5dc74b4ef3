"""Make the `questions` tables of a data set from its raw files.

Conventions
-----------
A passage is on one side: training questions on a passage of the evaluation part are dropped,
whatever the other settings, also those on passages whose evaluation questions `max_evaluation`
left out. A question stands twice where passage and question are equal after case folding and
squeezing white space; it may have other answers.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from advsets.datasets.duplicates import text_key
from advsets.datasets.questions.gold import has_place, with_majority_answers
from advsets.datasets.questions.halves import HALVES, half_of_each
from advsets.datasets.questions.reading import read_source
from advsets.datasets.questions.records import DROPPED, Counted
from advsets.datasets.splitting import evaluation_mask, subsample_mask
from advsets.errors import UserError, allowed
from advsets.io import polars_dtype, write_table
from advsets.registry import DatasetRow
from advsets.tables import TABLES

NO_PLACE = "no answer at a known place"
PASSAGE = "passage of an evaluation question"
TWICE = "stands twice"


def prepare_questions(
    row: DatasetRow,
    raw: Path,
    out: Path,
    *,
    seed: int,
    drop_train_duplicates: bool,
    max_train: int | None,
    max_evaluation: int | None,
) -> None:
    """Write `train`, `evaluation`, `mismatches` and `dropped` (`.parquet`) to `out`.

    A source with one file is split by `evaluation_fraction`, the share of its passages that
    become the evaluation part; without it all questions train and `evaluation` is empty. Of
    evaluation questions `split` is `test`, or with `questions.halves_by_document` also
    `validation`. Neither split hangs on `seed`.

    Parameters
    ----------
    raw : Path
        Folder of the fetched files, with `source.json`.
    seed : int
        Keys the draw of `max_train` and `max_evaluation`.
    drop_train_duplicates : bool
        Of training questions that stand twice drop all but the first by id; they are counted anyway.
    max_train, max_evaluation : int or None
        At most so many questions.

    Raises
    ------
    UserError
        In one line, naming file and question, when the data cannot be used or nothing is left of it.
    """
    tables, left_out = read_source(row, raw)
    questions, mismatches = (pl.concat([parts[i] for parts in tables.values()]).sort("example_id") for i in (0, 1))
    _check_ids(row, questions)
    if row.questions["majority_answer"]:
        questions = with_majority_answers(questions)
    if "evaluation" not in tables or row.evaluation_fraction is not None:
        questions = _split(row, questions, "evaluation" in tables)
    train, evaluation = (questions.filter(pl.col("split") == split) for split in ("train", "evaluation"))
    counted = list(left_out)
    train, placeless = _kept(train, has_place(), NO_PLACE, counted)
    train, _ = _kept(train, ~pl.col("passage_id").is_in(evaluation["passage_id"].unique().to_list()), PASSAGE, counted)
    train = _without_repeats(train, drop_train_duplicates, counted)
    evaluation = _without_repeats(evaluation, False, counted)
    train = _limit(train, max_train, "max_train", seed, counted)
    evaluation = _limit(evaluation, max_evaluation, "max_evaluation", seed, counted)
    _check_left(row, train, questions, counted, sum(n for split, _, n, _ in left_out if split == "train"))
    if not evaluation.is_empty():
        evaluation = _with_halves(row, evaluation)
    write_table(train, out / "train.parquet", "questions")
    write_table(evaluation, out / "evaluation.parquet", "questions")
    write_table(_mismatches(mismatches, questions, placeless), out / "mismatches.parquet", "answer_mismatches")
    write_table(_dropped(row, counted), out / "dropped.parquet", "dropped")


def _check_ids(row: DatasetRow, questions: pl.DataFrame) -> None:
    """Refuse ids that stand in both files; within a file readers do."""
    twice = questions.filter(pl.col("example_id").is_duplicated())["example_id"].unique().sort()
    if len(twice):
        raise UserError(
            f"data set {row.name}: {len(twice)} ids stand in train and evaluation: {allowed(twice.to_list(), 5)};"
            " allowed: ids that are unique over both; mend one of the files"
        )


def _split(row: DatasetRow, questions: pl.DataFrame, has_evaluation: bool) -> pl.DataFrame:
    """Draw the evaluation part from a source with one file, by passage; without a share all train."""
    if has_evaluation:
        raise UserError(
            f"data set {row.name}: `evaluation_fraction` {row.evaluation_fraction}, but the source has evaluation"
            " questions; allowed: one of the two; set `evaluation_fraction` to null, or remove `source.evaluation`"
        )
    if row.evaluation_fraction is None:
        return questions
    drawn = evaluation_mask(questions["passage_id"], row.evaluation_fraction)
    for split, n in (("evaluation", int(drawn.sum())), ("train", int((~drawn).sum()))):
        if n == 0:
            raise UserError(
                f"data set {row.name}: `evaluation_fraction` {row.evaluation_fraction} of"
                f" {questions['passage_id'].n_unique()} passages leaves no {split} questions; give more passages, or"
                " change the fraction"
            )
    side = pl.when(drawn).then(pl.lit("evaluation")).otherwise(pl.lit("train"))
    return questions.with_columns(side.alias("split"))


def _kept(train: pl.DataFrame, keep: pl.Expr, reason: str, counted: Counted) -> tuple[pl.DataFrame, list[str]]:
    """Training questions that are kept, and ids of the others, which are counted."""
    kept, gone = train.filter(keep), train.filter(~keep)["example_id"].to_list()
    counted.append(("train", reason, len(gone), True))
    return kept, gone


def _without_repeats(questions: pl.DataFrame, drop: bool, counted: Counted) -> pl.DataFrame:
    """Count questions that stand twice, and perhaps drop all but the first."""
    keys = [text_key([passage, question]) for passage, question in questions.select("passage_id", "question").rows()]
    first = pl.Series(keys, dtype=pl.String).is_first_distinct()
    if not questions.is_empty():
        counted.append((questions["split"][0], TWICE, int((~first).sum()), drop))
    return questions.filter(first) if drop else questions


def _limit(questions: pl.DataFrame, n_max: int | None, key: str, seed: int, counted: Counted) -> pl.DataFrame:
    if n_max is None or questions.height <= n_max:
        return questions
    one_label = pl.repeat("", questions.height, eager=True)
    kept = questions.filter(subsample_mask(questions["example_id"], one_label, n_max, seed))
    counted.append((questions["split"][0], f"beyond {key}", questions.height - kept.height, True))
    return kept


def _with_halves(row: DatasetRow, evaluation: pl.DataFrame) -> pl.DataFrame:
    """Name the split of evaluation questions: `test`, or halves."""
    if not row.questions["halves_by_document"]:
        return evaluation.with_columns(pl.lit(HALVES[1]).alias("split"))
    halved = evaluation.with_columns(half_of_each(evaluation))
    for half in HALVES:
        if not (halved["split"] == half).any():
            raise UserError(
                f"data set {row.name}: questions.halves_by_document: {evaluation.height} evaluation questions on"
                f" {evaluation['passage_id'].n_unique()} passages leave none for {half}; allowed: two passages or more;"
                " take more questions, or set it to false"
            )
    return halved


def _check_left(
    row: DatasetRow, train: pl.DataFrame, questions: pl.DataFrame, counted: Counted, n_left_out: int
) -> None:
    if train.is_empty():
        n_read = n_left_out + int((questions["split"] == "train").sum())
        why = ", ".join(f"{n}: {reason}" for split, reason, n, gone in counted if split == "train" and gone and n)
        raise UserError(
            f"data set {row.name}: of {n_read} training questions none is left ({why}); give more questions, or change"
            " what took them"
        )


def _mismatches(mismatches: pl.DataFrame, questions: pl.DataFrame, placeless: list[str]) -> pl.DataFrame:
    """The readers' mismatches with the split that their question came to, and what became of it."""
    outcome = pl.when(pl.col("example_id").is_in(placeless)).then(pl.lit(DROPPED)).otherwise(pl.col("outcome"))
    split = questions.select("example_id", "split")
    return mismatches.drop("split").join(split, on="example_id").with_columns(outcome.alias("outcome"))


def _dropped(row: DatasetRow, counted: Counted) -> pl.DataFrame:
    schema = {column.name: polars_dtype(column) for column in TABLES["dropped"].columns}
    frame = pl.DataFrame(counted, schema=schema, orient="row")
    return frame.with_columns(pl.col("split").replace("evaluation", row.evaluation_split))
