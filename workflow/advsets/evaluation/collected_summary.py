"""What a collection shows, in lines for the terminal: the self-adversary penalty, and who does best on each set."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import polars as pl

from advsets.evaluation.collected.study import IN_THE_LOOP
from advsets.evaluation.findings import number_text
from advsets.evaluation.inputs import SAME_FAMILY, SELF
from advsets.io import read_table

TABLES_READ = ("collected_sets", "collected_ranks", "collected_penalty", "collected_penalty_cells")
_SPACE = "\N{NO-BREAK SPACE}"
_RELATIONS = {SELF: "same base model", SAME_FAMILY: "same family"}
_MEASURES = {"accuracy": "accuracy", "f1": "F1", "exact_match": "exact match"}


def collection_folders(evaluation: Path) -> list[Path]:
    """Folders of the collections that are evaluated, below the folder `evaluation` of a run."""
    folders = sorted((evaluation / "collected").glob("*"))
    return [folder for folder in folders if all((folder / f"{name}.parquet").is_file() for name in TABLES_READ)]


def collection_text(folder: Path, width: int = 100) -> str:
    """Penalty with its interval, then by set the models' ranks and scores; of questions by F1."""
    sets, ranks, penalty, cells = (read_table(folder / f"{name}.parquet", name) for name in TABLES_READ)
    lines = [f"Collection {folder.name}:", *_penalty(penalty)]
    key = ["collection", "training_set", "dataset", "measure", "evaluated_model"]
    ranked = ranks.join(cells.select(*key, "relation"), on=key, how="left")
    shown = sets.filter(pl.col("measure") != "exact_match")
    for one in shown.sort("construction", "dataset", descending=[True, False]).to_dicts():
        lines.append(f"  {_set(one)}")
        own = ranked.filter(dataset=one["dataset"], measure=one["measure"])
        for (training_set,), part in own.sort("training_set", "rank").group_by("training_set", maintain_order=True):
            text = f"{training_set}: {', '.join(_place(row) for row in part.to_dicts())}"
            lines += textwrap.wrap(text, width, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return "\n".join(lines).replace(_SPACE, " ") + "\n"


def _penalty(penalty: pl.DataFrame) -> list[str]:
    rows = penalty.filter(pl.col("n_cells") > 0).sort(
        "training_set", "measure", "relation", descending=[False, False, True]
    )
    if rows.is_empty():
        return ["  No model is of the base or the family of a model in the loop: no self-adversary penalty."]
    lines = ["  Self-adversary penalty (log-odds [interval]; below 0: hit harder than others):"]
    for row in rows.to_dicts():
        value = number_text(*(row[f"penalty_log_odds{end}"] for end in ("", "_low", "_high")))
        lines.append(
            f"    {row['training_set']}, {_MEASURES[row['measure']]}, {_RELATIONS[row['relation']]}: {value},"
            f" {row['n_cells']} {'cell' if row['n_cells'] == 1 else 'cells'}"
        )
    return lines


def _set(one: dict[str, Any]) -> str:
    """A set, whom it was written against, and what guessing scores there."""
    against = f"against {one['model_in_the_loop']}" if one["model_in_the_loop"] else "standard set"
    levels = [f"chance {one['chance']:.3f}"] if one["chance"] is not None else []
    if one["majority"] is not None:
        name = "most frequent label" if levels else "whole passage as answer"
        levels.append(f"{name} {one['majority']:.3f}")
    return f"{one['dataset']}, {against} ({'; '.join([_MEASURES[one['measure']], *levels])}), best first"


def _place(row: dict[str, Any]) -> str:
    note = " (in the loop)" if row["relation"] == IN_THE_LOOP else ""
    return f"{row['rank']:g} {row['evaluated_model']} {row['mean_score']:.3f}{note}".replace(" ", _SPACE)
