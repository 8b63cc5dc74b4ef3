"""Labels that other people gave to evaluation rows later, joined by the source's key.

Conventions
-----------
Their file is fetched like a data set's, into `more_annotators/` below its raw files, with a
record of its own. Counts stand in the order of the classes, then of `other_labels`; labels are
mapped by name, so a list of counts, which says by its order what it counts, is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl

from advsets.datasets.annotators import checked_counts, count_votes
from advsets.datasets.columns import column_texts
from advsets.datasets.file import check_unchanged
from advsets.datasets.raw import RawTable
from advsets.datasets.record import read_record
from advsets.datasets.sources import MORE_ANNOTATORS, more_annotators_row
from advsets.datasets.tabular import read_rows
from advsets.errors import UserError, allowed
from advsets.io import empty_frame
from advsets.registry import DatasetRow

JOINED = "more annotators: rows joined"
DROPPED = "more annotators: ids of rows that were dropped"
UNKNOWN = "more annotators: ids that no row has"


def join(
    row: DatasetRow, raw: Path, source_ids: pl.Series, evaluation: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Counts of more annotators for the evaluation rows that have any.

    Parameters
    ----------
    raw : Path
        Folder of the data set's fetched files.
    source_ids : Series of str
        Keys of all evaluation rows of the source, those of dropped rows included.
    evaluation : DataFrame
        Evaluation rows that are kept, with `example_id` and `source_id`.

    Returns
    -------
    labels : DataFrame
        Table `more_annotators`; without rows where the data set names no more annotators.
    counted : dict of str to int
        Ids by what became of them, for the table `dropped`; empty where none are named.

    Raises
    ------
    UserError
        If an id is missing or stands twice, a label is unknown, or no id is one of the source's.
    """
    extra, more = more_annotators_row(row), row.more_annotators
    if extra is None or more is None:
        return empty_frame("more_annotators"), {}
    votes = _votes(row, _read(extra, raw / MORE_ANNOTATORS, more["columns"]), more)
    known = votes["source_id"].is_in(source_ids.drop_nulls().unique().to_list())
    if not known.any():
        raise _nothing_joined(row, votes, source_ids)
    joined = votes.join(evaluation.select("example_id", "source_id"), on="source_id", how="inner")
    twice = joined.filter(pl.col("source_id").is_duplicated())["source_id"].unique().sort()
    if len(twice):
        raise UserError(
            f"data set {row.name}: more_annotators: id {twice[0]!r} is the source_id of several evaluation rows"
            f" ({len(twice)} such ids); allowed: ids of one row each; correct `columns.source_id`"
        )
    counted = {
        JOINED: joined.height,
        DROPPED: int(known.sum()) - joined.height,
        UNKNOWN: votes.height - int(known.sum()),
    }
    _tell(row, counted, evaluation.height)
    return joined.select("example_id", "label_count"), counted


def _votes(row: DatasetRow, table: RawTable, more: dict[str, Any]) -> pl.DataFrame:
    """Columns `source_id` and `label_count` of the file; rows without any vote are left out."""
    ids = column_texts(table, more["columns"]["source_id"], "source_id")
    for i, key in enumerate(ids):
        if not key:
            raise UserError(f"{table.at(i)}: the id is missing; fill it, or remove the row")
    votes = pl.DataFrame(
        {"source_id": ids, "label_count": _counts(row, table, more)},
        schema={"source_id": pl.String, "label_count": pl.List(pl.Int64)},
    )
    twice = votes.filter(pl.col("source_id").is_duplicated())["source_id"].unique().sort()
    if len(twice):
        raise UserError(
            f"{table.where}: id {twice[0]!r} stands in several rows ({len(twice)} such ids); allowed: one row for each"
            " id; mend the file, or correct `more_annotators.columns.source_id`"
        )
    return votes.filter(pl.col("label_count").is_not_null())


def _counts(row: DatasetRow, table: RawTable, more: dict[str, Any]) -> list[list[int] | None]:
    names, mapping = [*row.label_order, *row.other_labels], more["labels"] or row.labels
    given = more["columns"]["label_count"]
    if given is None:
        values = table.column(more["columns"]["annotator_labels"], "annotator_labels")
        return [count_votes(value, mapping, names, table.at(i)) for i, value in enumerate(values)]
    values = table.column(given, "label_count")
    for i, value in enumerate(values):
        if isinstance(value, list) or (isinstance(value, str) and value.lstrip().startswith("[")):
            raise UserError(
                f"{table.at(i)}: column {given!r} is a list, which does not say what each count is of; allowed: a"
                " mapping of label to count; give the column that has it"
            )
    return [checked_counts(value, mapping, names, table.at(i)) for i, value in enumerate(values)]


def _read(extra: DatasetRow, folder: Path, columns: dict[str, str | None]) -> RawTable:
    record = read_record(extra, folder)
    (entry,) = (entry for entry in record["files"] if entry.get("key") == "file")
    if record["kind"] == "file":
        check_unchanged(entry, folder)
    return read_rows(folder / entry["name"], [name for name in columns.values() if name is not None])


def _nothing_joined(row: DatasetRow, votes: pl.DataFrame, source_ids: pl.Series) -> UserError:
    found = source_ids.drop_nulls()
    keys = f"those of `columns.source_id`, e.g. {found[0]!r}" if len(found) else "none, as `columns.source_id` is null"
    return UserError(
        f"data set {row.name}: more_annotators: none of {votes.height} ids is that of an evaluation row (e.g."
        f" {allowed(votes['source_id'].head(1).to_list())}); allowed: {keys}; correct one of the two columns"
    )


def _tell(row: DatasetRow, counted: dict[str, int], n_evaluation: int) -> None:
    print(
        f"advsets: data set {row.name}: more annotators for {counted[JOINED]} of {n_evaluation} evaluation rows;"
        f" {counted[DROPPED]} of their ids are of rows that were dropped, {counted[UNKNOWN]} of no row",
        file=sys.stderr,
    )
