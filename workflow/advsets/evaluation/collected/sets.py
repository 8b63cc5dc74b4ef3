"""Table `collected_sets`: what each evaluation set of a collection is, and what no skill scores on it.

Conventions
-----------
`chance` is one over the number of labels. `majority` is the share of the most frequent gold label
of the set; for questions the score of the whole passage given as the answer, which is what a model
reaches that finds no span at all. Agreement is over the examples with labels of single annotators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from advsets.answers import exact_match, f1
from advsets.evaluation.collected.study import CollectedStudy, ScoredSet
from advsets.evaluation.frames import table_frame
from advsets.labels import agreement


def collected_sets(
    study: CollectedStudy, examples: Mapping[str, pl.DataFrame], counts: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """Facts of every set.

    Parameters
    ----------
    examples : mapping of data set to DataFrame
        Tables `examples` or `questions`, as they are scored.
    counts : mapping of data set to DataFrame
        Tables `more_annotators`, which hold verifiers' labels where a set has no others.
    """
    rows = []
    for one in study.sets:
        frame = examples[one.name]
        known = _agreement(one, frame, counts.get(one.name))
        for measure in one.measures:
            loop = one.row.model_in_the_loop or {}
            rows.append(
                {
                    "collection": study.collection,
                    "dataset": one.name,
                    "construction": one.construction,
                    "collection_round": loop.get("collection_round"),
                    "model_in_the_loop": loop.get("title"),
                    "family": loop.get("family"),
                    "measure": measure,
                    "n_examples": one.n_examples,
                    "chance": np.nan if one.row.is_extractive_qa else 1 / len(one.row.label_order),
                    "majority": _majority(one, frame, measure),
                    **known,
                }
            )
    return table_frame("collected_sets", rows)


def _majority(one: ScoredSet, frame: pl.DataFrame, measure: str) -> float:
    if not one.row.is_extractive_qa:
        return float(frame["label"].value_counts()["count"].max()) / frame.height  # type: ignore[arg-type]
    score = exact_match if measure == "exact_match" else f1
    pairs = zip(frame["context"], frame["answers"], strict=True)
    return float(np.mean([score(context, list(answers)) for context, answers in pairs]))


def _agreement(one: ScoredSet, frame: pl.DataFrame, more: pl.DataFrame | None) -> dict[str, Any]:
    shares: list[float] = []
    if not one.row.is_extractive_qa:
        shares = frame["agreement"].drop_nulls().to_list()
        if not shares and more is not None:
            shares = _shares(one, frame, more)
    return {
        "n_with_annotators": len(shares),
        "agreement_mean": float(np.mean(shares)) if shares else np.nan,
        "unanimous_share": float(np.mean([share == 1 for share in shares])) if shares else np.nan,
    }


def _shares(one: ScoredSet, frame: pl.DataFrame, more: pl.DataFrame) -> list[float]:
    """Share of the other annotators who gave the gold label."""
    order = list(one.row.label_order + one.row.other_labels)
    joined = frame.select("example_id", "label").join(more, on="example_id", how="inner")
    return [
        agreement(counts, label, order)
        for label, counts in zip(joined["label"], map(list, joined["label_count"]), strict=True)
        if sum(counts)
    ]
