"""Predictions that others made, as a table like that of our own models.

Conventions
-----------
Rows are joined by id, labels by name; a row's place means nothing. What the file has for ids that
our examples lack is counted and left out; examples that the file lacks are counted and get no row,
so that scores count them as wrong. The file's label wins over its probabilities. Probabilities
that the file does not give are empty lists, not guesses; so are the best answers of a question.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from advsets.datasets.columns import column_texts
from advsets.datasets.questions.records import text_of
from advsets.datasets.raw import RawTable
from advsets.datasets.roles import holds_questions
from advsets.errors import UserError, allowed
from advsets.evaluation.collected.imported_file import VALUES, read_file, unique_ids
from advsets.evaluation.collected.probabilities import probability_reader
from advsets.io import polars_dtype, read_table, write_table
from advsets.labels import map_label
from advsets.registry import ImportedModel
from advsets.tables import TABLES

Row = tuple[int, str]
"""Row of the file, and the example that it is of."""


@dataclass(frozen=True)
class ImportReport:
    """What became of a file's rows, and of our examples.

    `n_rows` of the file are `n_joined` + `n_unknown` (ids that no example has); `n_missing`
    examples have no row. `n_not_most_probable` joined rows predict a label that is less
    probable than another one of theirs.
    """

    n_rows: int
    n_joined: int
    n_missing: int
    n_unknown: int
    n_not_most_probable: int = 0

    def text(self, path: Path, key: str) -> str:
        """The counts in words, a line each."""
        lines = [
            f"{self.n_joined} of {self.n_joined + self.n_missing} examples have a prediction, joined by {key}",
            f"{self.n_missing} examples have none and count as wrong",
            f"{self.n_unknown} of {self.n_rows} rows are of no example and are left out",
        ]
        if self.n_not_most_probable:
            lines.append(
                f"{self.n_not_most_probable} rows predict a label that is less probable than another; it is kept"
            )
        return "\n".join(f"{path}: {line}" for line in lines)


def import_to_table(
    model: ImportedModel,
    path: Path,
    examples: Path,
    label_order: Sequence[str],
    out: Path,
    *,
    labels: Mapping[str, str] | None = None,
) -> ImportReport:
    """`import_predictions` on a prepared table `examples` or `questions`; what was joined is told on stderr."""
    is_qa = holds_questions(examples)
    name, more = ("questions", ["question"]) if is_qa else ("examples", [])
    frame = read_table(examples, name, ["example_id", "source_id", *more])
    report = import_predictions(model, path, frame, label_order, out, labels=labels)
    print(report.text(path, model.key), file=sys.stderr)
    return report


def import_predictions(
    model: ImportedModel,
    path: Path,
    examples: pl.DataFrame,
    label_order: Sequence[str],
    out: Path,
    *,
    labels: Mapping[str, str] | None = None,
) -> ImportReport:
    """Write a file's predictions as table `predictions`, or `answer_predictions` of questions.

    Parameters
    ----------
    model : ImportedModel
        What the file's columns, ids and labels are.
    path : Path
        CSV, TSV, JSON, JSONL or Parquet, each also as .gz.
    examples : DataFrame
        Table `examples` or `questions`; `example_id` and the model's `key` are enough.
    label_order : sequence of str
        Label names in the order in which probabilities are written; empty for questions.
    labels : mapping of str to str, optional
        The data set's raw labels to names, for a model without `labels` of its own; by default
        raw labels are the names.

    Raises
    ------
    UserError
        In one line, naming file and row: an id is missing, stands twice in the file or is that of
        several examples; no id is one of ours; a label is unknown; a prediction is missing, or
        probabilities are not finite, negative, in no stated order, or do not sum to about 1.
    """
    table = read_file(path, model.columns)
    ids = unique_ids(table, model.columns["id"])
    rows = _joined(model, table, ids, examples)
    n_other = 0
    if "question" in examples.columns or model.columns["answer"] is not None:
        write_table(_answers(model, table, rows), out, "answer_predictions")
    else:
        frame, n_other = _labels(model, table, rows, label_order, labels)
        write_table(frame, out, "predictions")
    return ImportReport(table.n_rows, len(rows), examples.height - len(rows), table.n_rows - len(rows), n_other)


def _joined(model: ImportedModel, table: RawTable, ids: list[str], examples: pl.DataFrame) -> list[Row]:
    """Rows of the file whose id is that of an example."""
    if model.key not in examples.columns or not examples[model.key].count():
        raise UserError(
            f"{table.where}: the ids are to be joined with {model.key!r}, which the examples have not; allowed:"
            " source_id or example_id, whichever they have; correct `key`"
        )
    ours: dict[str, str] = {}
    repeated = set()
    for key, example_id in examples.select(model.key, pl.col("example_id").alias("own")).drop_nulls(model.key).rows():
        if key in ours:
            repeated.add(key)
        ours[key] = example_id
    rows = [(i, ours[key]) for i, key in enumerate(ids) if key in ours]
    for i, key in enumerate(ids):
        if key in repeated:
            raise UserError(
                f"{table.at(i)}: id {key!r} is the {model.key} of several examples ({len(repeated)} such ids), so it"
                " does not say which one the prediction is of; allowed: ids of one example each; join by example_id,"
                " or correct `columns.source_id` of the data set"
            )
    if not rows:
        raise UserError(
            f"{table.where}: none of {len(ids)} ids is that of an example, e.g. {ids[0]!r}; allowed: {model.key} such"
            f" as {next(iter(ours))!r}; check that predictions and examples belong together, and which column is the id"
        )
    return rows


def _answers(model: ImportedModel, table: RawTable, rows: list[Row]) -> pl.DataFrame:
    name = model.columns["answer"] or VALUES
    if name not in table.columns:
        raise UserError(f"{table.where}: no column of answers is named; found: {allowed(table.found, 30)}; name it")
    answers = column_texts(table, name, "answer")
    for i, _ in rows:
        if answers[i] is None:
            raise UserError(
                f"{table.at(i)}: no answer; allowed: a text, which may be empty; write it, or remove the row (a"
                " question without a row counts as wrong)"
            )
        text_of(answers[i], table.at(i), "answer")
    n = len(rows)
    columns: dict[str, list[Any]] = {
        "example_id": [example_id for _, example_id in rows],
        "predicted_answer": [answers[i] for i, _ in rows],
        "answer_start": [-1] * n,
        "logit": [None] * n,
        "best_answers": [[]] * n,
        "best_logits": [[]] * n,
    }
    return _frame("answer_predictions", columns)


def _labels(
    model: ImportedModel,
    table: RawTable,
    rows: list[Row],
    label_order: Sequence[str],
    labels: Mapping[str, str] | None,
) -> tuple[pl.DataFrame, int]:
    """Table `predictions`, and how many rows do not predict their most probable label."""
    given = model.labels or labels or {name: name for name in label_order}
    mapping = {str(raw): name for raw, name in given.items()}
    name_of = partial(_name_of, mapping=mapping, label_order=label_order)
    spec, column = model.columns["probabilities"], model.columns["predicted_label"]
    if column is None and not spec:
        column = VALUES
        if VALUES not in table.columns:
            raise UserError(
                f"{table.where}: no column of predictions is named; found: {allowed(table.found, 30)}; name that of"
                " predicted labels or of probabilities"
            )
    shares = _probabilities(
        table, rows, spec and probability_reader(spec, model.probability_order, label_order, table, name_of)
    )
    predicted = (
        [label_order[p.index(max(p))] for p in shares]
        if column is None
        else [name_of(table.columns[column][i], table.at(i)) for i, _ in rows]
    )
    n_other = sum(p[label_order.index(name)] < max(p) for p, name in zip(shares, predicted, strict=True) if p)
    ids = [example_id for _, example_id in rows]
    return _frame("predictions", {"example_id": ids, "predicted_label": predicted, "probabilities": shares}), n_other


def _probabilities(table: RawTable, rows: list[Row], read: Any) -> list[list[float]]:
    if not read:
        return [[] for _ in rows]
    shares = []
    for i, _ in rows:
        found = read(i)
        if found is None:
            raise UserError(
                f"{table.at(i)}: no probabilities; allowed: one for each label in every row; fill them, or remove the"
                " row (an example without a row counts as wrong)"
            )
        shares.append(found)
    return shares


def _name_of(raw: object, where: str, *, mapping: Mapping[str, str], label_order: Sequence[str]) -> str:
    """Label name of a raw label, which must be one of ours."""
    try:
        name = map_label(raw, mapping, where)
    except UserError:
        name = _shown(raw)
    if name is None:
        raise UserError(
            f"{where}: no predicted label; allowed: a label in every row; fill it, or remove the row (an example"
            " without a row counts as wrong)"
        )
    if name not in label_order:
        raise UserError(
            f"{where}: unknown label {_shown(raw)}; allowed:"
            f" {allowed(raw for raw, name in mapping.items() if name in label_order)}; map it in `labels`"
        )
    return name


def _shown(value: object) -> str:
    return repr(value if isinstance(value, (int, float, str)) or value is None else str(value))[:60]


def _frame(table: str, columns: dict[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema={c.name: polars_dtype(c) for c in TABLES[table].columns})
