"""The command `advsets import-predictions`: a file of predictions and the examples that they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from advsets.datasets.columns import column_texts
from advsets.datasets.questions.records import text_of
from advsets.datasets.tabular import read_rows
from advsets.errors import UserError, allowed
from advsets.evaluation.collected.imported import ImportReport, import_predictions
from advsets.io import check_file, parquet_schema
from advsets.registry import ImportedModel
from advsets.schemas import validate
from advsets.tables import TABLES

COLUMNS = ("example_id", "source_id", "label", "question")
"""Columns of the examples that an import uses; the first is needed."""


def import_file(
    path: Path,
    examples_path: Path,
    out: Path,
    keys: Mapping[str, Any],
    label_order: Sequence[str],
    stream: TextIO,
) -> ImportReport:
    """Import a file's predictions on the examples of another, and say what was joined.

    Parameters
    ----------
    examples_path : Path
        Table `examples` or `questions`, or any table with `example_id` and, for labels, `label`.
    out : Path
        Parquet file to write; what stands there is replaced if it is such a table.
    keys : mapping
        `key`, `columns`, `probability_order` and `labels` of a row of the predictions tables. A
        `key` of None is `source_id` where the examples have it, else `example_id`.
    label_order : sequence of str
        Order of the probabilities that are written; empty: the examples' labels, sorted.

    Raises
    ------
    UserError
        As `import_predictions`; also if the examples have no usable ids or labels, or something
        else than predictions stands at `out`.
    """
    examples = read_examples(examples_path)
    key = keys["key"] or ("source_id" if "source_id" in examples.columns else "example_id")
    row = {**keys, "key": key, "files": {"examples": str(path)}}
    model = ImportedModel.from_config("model", validate({"model": row}, "predictions", "command line")["model"])
    table = "answer_predictions" if "question" in examples.columns or model.columns["answer"] else "predictions"
    _check_out(out, table)
    order = []
    if table == "predictions":
        order = _label_order(examples, examples_path, label_order)
        _check_label_names(model.labels or {}, order)
    else:
        _check_no_labels(model)
    report = import_predictions(model, path, examples, order, out)
    print(report.text(path, key), file=stream)
    if model.columns["probabilities"]:
        print(f"{out}: probabilities in the order {', '.join(order)}", file=stream)
    return report


def label_names(pairs: Sequence[str]) -> dict[str, str] | None:
    """Raw labels to names, of texts RAW=NAME; None without any."""
    names: dict[str, str] = {}
    for pair in pairs:
        raw, equals, name = pair.rpartition("=")
        if not (raw and equals and name) or raw in names:
            found = f"{raw!r} twice" if raw in names else repr(pair)
            raise UserError(f"command line: --labels: found {found}; allowed: RAW=NAME, each RAW once; correct it")
        names[raw] = name
    return names or None


def _check_label_names(labels: Mapping[str, str], order: Sequence[str]) -> None:
    for raw, name in labels.items():
        if name not in order:
            raise UserError(
                f"command line: --labels {raw}={name}: no example has the label {name!r}; allowed: {allowed(order)};"
                " correct it, or name all labels in --label-order"
            )


def _check_no_labels(model: ImportedModel) -> None:
    """Refuse what is said of labels where the file holds answers."""
    given = {
        "--label-column": model.columns["predicted_label"],
        "--probability-columns": model.columns["probabilities"],
        "--probability-order": list(model.probability_order),
        "--labels": model.labels,
    }
    for flag, value in given.items():
        if value:
            raise UserError(
                f"command line: {flag}: found {value!r} for answers, which have no labels; allowed:"
                f" --answer-column; remove {flag}, or give examples with labels and no --answer-column"
            )


def read_examples(path: Path) -> pl.DataFrame:
    """Those of `COLUMNS` that a table has any value in, as text; ids that are no key raise `UserError`."""
    check_file(path, "a table of examples")
    table = read_rows(path, COLUMNS)
    if "example_id" not in table.columns:
        raise UserError(
            f"{path}: found {table.n_rows} rows with columns {allowed(table.found, 30) or 'none'}; allowed: a row per"
            " example with column example_id; add it"
        )
    texts = {name: column_texts(table, name, name) for name in COLUMNS if name in table.columns}
    for name, column in texts.items():
        for i, text in enumerate(column):
            text_of(text or "", table.at(i), name)
    frame = pl.DataFrame(
        {name: pl.Series([text or None for text in column], dtype=pl.String) for name, column in texts.items()}
    )
    if frame.is_empty():
        raise UserError(f"{path}: found no rows; allowed: a row per example; give a table with examples")
    ids = frame["example_id"]
    for unfit, what in ((ids.is_null(), "is missing"), (ids.is_duplicated(), "stands twice")):
        if unfit.any():
            i = int(unfit.arg_max() or 0)
            shown = "an example_id" if ids[i] is None else f"example_id {ids[i]!r}"
            raise UserError(
                f"{table.at(i)}: {shown} {what}; allowed: one row per example, each with an id of its own; mend the"
                " table"
            )
    return frame.select(name for name in frame.columns if frame[name].count())


def _label_order(examples: pl.DataFrame, path: Path, given: Sequence[str]) -> list[str]:
    """Given order, which holds all gold labels, or these, sorted."""
    gold = sorted(set(examples["label"].drop_nulls())) if "label" in examples.columns else []
    missing = sorted(set(gold) - set(given))
    if given and missing:
        raise UserError(
            f"command line: --label-order: {missing[0]!r}, a label of {path}, is missing; allowed: all of"
            f" {allowed(gold)}; add it"
        )
    if not given and len(gold) < 2:
        raise UserError(
            f"{path}: found {len(gold)} labels in column label; allowed: two or more, or --label-order; give it, or"
            " --answer-column for answers to questions"
        )
    return list(given) or gold


def _check_out(out: Path, table: str) -> None:
    """Refuse to replace anything but predictions."""
    if out.suffix != ".parquet":
        raise UserError(f"{out}: unknown kind of file; allowed: .parquet; change the name")
    if out.exists() and set(parquet_schema(out).names) != set(TABLES[table].column_names):
        raise UserError(
            f"{out}: something else than table {table} stands there; allowed: a new file, or such a table;"
            " choose another --out"
        )
