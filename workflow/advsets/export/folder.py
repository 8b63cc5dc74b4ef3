"""Write a filtered evaluation set as a folder that `datasets.load_dataset` reads.

| file | content |
|---|---|
| `README.md` | the card; its front matter names the data file, so nothing else is loaded |
| `data/<split>-00000-of-00001.parquet` | the retained examples |
| `retained.parquet` | what was decided on every evaluation row |
| `evaluation_labels.parquet` | gold label of every evaluation row |

The last two are what `advsets evaluate --set` reads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from advsets.errors import UserError, allowed
from advsets.export.adversary import Adversary
from advsets.export.card import CardFacts, card_text
from advsets.io import read_table, write_table, write_text
from advsets.registry import DatasetRow

if TYPE_CHECKING:
    from datasets import Features

_ALWAYS = ("example_id", "text_a", "label", "predictability", "margin")
_IN_ORDER = (
    *("example_id", "source_id", "text_a", "text_b", "candidates", "label", "group_id"),
    *("label_count", "agreement", "label_entropy_bits", "low_agreement", "predictability", "margin"),
)


def export_set(
    dataset: DatasetRow,
    adversary: Adversary,
    examples: Path,
    retained: Path,
    agreement: Path | None,
    settings: dict[str, Any],
    source: dict[str, Any],
    out: Path,
) -> None:
    """Write the folder `out`, whole or not at all; an earlier one is replaced.

    `label` is a `ClassLabel` whose names are the stored label order; for multiple choice its
    number is the index of the right candidate. Optional columns without any value in the full
    evaluation set are left out.

    Parameters
    ----------
    dataset : DatasetRow
    adversary : Adversary
        The model, or the ensemble, whose representations decided what is kept.
    examples : Path
        Table `examples` of the full evaluation set.
    retained : Path
        Table `retained` of the evaluation rows.
    agreement : Path or None
        Table `agreement` of the data set, with rows of this adversary.
    settings : dict
        Every setting that shaped the set, for the card, but for fine-tuning; `adversary_seed` among them.
    source : dict
        Record of the fetched data set (source.json).
    out : Path
        Folder to write.

    Raises
    ------
    UserError
        If the tables do not belong together.
    """
    rows = _joined(read_table(examples, "examples"), examples, read_table(retained, "retained"), retained)
    names, columns = _label_names(dataset, rows, examples), _columns(rows)
    facts = CardFacts(
        dataset=dataset,
        adversary=adversary,
        label_names=names,
        rows=rows,
        columns=columns,
        agreement=None if agreement is None else _own_agreement(agreement, dataset, adversary, settings),
        settings=settings,
        source=source,
    )
    with _atomic_folder(out) as folder:
        data = folder / "data" / f"{dataset.evaluation_split}-00000-of-00001.parquet"
        _write_parquet(rows.filter(pl.col("retained")), columns, names, data)
        write_table(rows.select("example_id", "label"), folder / "evaluation_labels.parquet", "evaluation_labels")
        write_table(read_table(retained, "retained"), folder / "retained.parquet", "retained")
        write_text(folder / "README.md", card_text(facts))


def _joined(examples: pl.DataFrame, examples_path: Path, mask: pl.DataFrame, mask_path: Path) -> pl.DataFrame:
    """Examples with the columns of the mask, sorted by `example_id`."""
    missing = examples.join(mask, on="example_id", how="anti")["example_id"]
    unknown = mask.join(examples, on="example_id", how="anti")["example_id"]
    if len(missing) or len(unknown):
        name = (missing if len(missing) else unknown)[0]
        raise UserError(
            f"{mask_path}: example_id {name!r} stands in one of it and {examples_path} only ({len(missing)} without a"
            f" decision, {len(unknown)} unknown); allowed: the same ids in both; filter this evaluation set again"
        )
    return examples.join(mask, on="example_id", how="inner").sort("example_id")


def _label_names(dataset: DatasetRow, rows: pl.DataFrame, path: Path) -> list[str]:
    """Names of the `ClassLabel`: the stored label order, or the indices of the candidates."""
    if dataset.is_multiple_choice:
        names = [str(i) for i in range(max(map(len, rows["candidates"].drop_nulls()), default=0))]
    else:
        names = list(dataset.label_order)
    for label in rows["label"].unique().sort():
        if label not in names:
            raise UserError(
                f"{path}: label {label!r} is none of data set {dataset.name}; allowed: {allowed(names)};"
                " prepare the data set again"
            )
    return names


def _columns(rows: pl.DataFrame) -> list[str]:
    return [name for name in _IN_ORDER if name in _ALWAYS or rows[name].null_count() < len(rows)]


def _features(columns: list[str], names: list[str]) -> Features:
    from datasets import ClassLabel, Features, List, Value

    kinds: dict[str, Any] = {
        "label": ClassLabel(names=names),
        "candidates": List(Value("string")),
        "label_count": List(Value("int64")),
        "low_agreement": Value("bool"),
        **{name: Value("float64") for name in ("agreement", "label_entropy_bits", "predictability", "margin")},
    }
    return Features({name: kinds.get(name, Value("string")) for name in columns})


def _write_parquet(kept: pl.DataFrame, columns: list[str], names: list[str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = {name: i for i, name in enumerate(names)}
    values = {name: kept[name].to_list() for name in columns}
    values["label"] = [number[label] for label in values["label"]]
    path.parent.mkdir(parents=True)
    table = pa.table(values, schema=_features(columns, names).arrow_schema)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        if len(table):  # `datasets` fails on a row group without rows
            writer.write_table(table)


def _own_agreement(path: Path, dataset: DatasetRow, adversary: Adversary, settings: dict[str, Any]) -> pl.DataFrame:
    """Rows of this data set, adversary and seed; none where the data set has no annotators."""
    table = read_table(path, "agreement").filter(pl.col("dataset") == dataset.name)
    own = table.filter(
        (pl.col("adversary") == adversary.name) & (pl.col("adversary_seed") == int(settings["adversary_seed"]))
    )
    if len(table) and not len(own):
        raise UserError(
            f"{path}: no rows of adversary {adversary.name!r}, seed {settings['adversary_seed']}; found:"
            f" {allowed(table['adversary'].unique().sort())}; measure the agreement of this run again"
        )
    return own


@contextlib.contextmanager
def _atomic_folder(out: Path) -> Iterator[Path]:
    """Folder beside `out`, renamed over it on success and removed on failure."""
    part, old = (out.parent / f".{out.name}.{kind}" for kind in ("part", "old"))
    for left_over in (part, old):
        shutil.rmtree(left_over, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        if out.exists():
            os.replace(out, old)
        os.replace(part, out)
    finally:
        for left_over in (part, old):
            shutil.rmtree(left_over, ignore_errors=True)
