"""Every table of a made-up run, each checked against its declaration, and the runs that tests draw."""

from __future__ import annotations

import polars as pl
from synthetic import accuracy, aggregates, annotators, questions
from synthetic.collected import make_collected
from synthetic.collected_cases import COLLECTED
from synthetic.rounds import round_scores, rounds
from synthetic.study import MODELS, Study

from advsets.io import check_frame, polars_dtype
from advsets.tables import TABLES

_BUILDERS = {
    **accuracy.BUILDERS,
    **annotators.BUILDERS,
    **aggregates.BUILDERS,
    **questions.BUILDERS,
}


def _frame(name: str, rows: list[dict]) -> pl.DataFrame:
    schema = {c.name: polars_dtype(c) for c in TABLES[name].columns}
    return check_frame(pl.DataFrame(rows, schema=schema), TABLES[name])


def make_tables(study: Study) -> dict[str, pl.DataFrame]:
    """Every table of a run as figures receive them: all data sets and filter runs together."""
    tables = {
        name: pl.concat(_frame(name, build(study, dataset)) for dataset in study.datasets)
        for name, build in _BUILDERS.items()
    }
    return {
        **tables,
        **make_collected(COLLECTED["base"]),
        "rounds": rounds(study),
        "round_scores": round_scores(study),
    }


LONG = {f"m{i:02d}": f"organisation-{i:02d}/very-long-pretrained-model-name-v3-large-{i:02d}" for i in range(18)}
CASES = {
    "base": Study(),
    "small": Study(models=MODELS[1:4], adversaries=MODELS[1:3], n_rounds=4),
    "seeds": Study(
        models=MODELS[1:4], adversaries=MODELS[1:3], seeds=(0, 1, 2), datasets=("reviews", "snli"), n_rounds=6
    ),
    "many": Study(models=tuple(LONG), adversaries=tuple(LONG), titles=LONG),
    "one_adversary": Study(models=MODELS[1:4], adversaries=MODELS[1:2], n_rounds=1),
    "one_model": Study(models=MODELS[1:2], adversaries=MODELS[1:2], n_rounds=2),
    "empty": Study(
        models=MODELS[1:5], adversaries=MODELS[1:5], empty=("mini-3",), unknown_strength=("mini-1",), n_rounds=4
    ),
    "all_empty": Study(models=MODELS[1:3], adversaries=MODELS[1:3], empty=MODELS[1:3], n_rounds=2),
    "no_strength": Study(models=MODELS[1:4], adversaries=MODELS[1:4], unknown_strength=MODELS[1:4], n_rounds=2),
    "tied": Study(models=MODELS[1:5], adversaries=MODELS[1:4], identical_ranks=True, n_rounds=2),
    "flag": Study(models=MODELS[1:4], adversaries=MODELS[1:3], measure="flag", n_rounds=2),
    "no_annotators": Study(models=MODELS[1:4], adversaries=MODELS[1:3], measure="none", n_rounds=2),
    "mixed": Study(
        models=MODELS[1:4],
        adversaries=MODELS[1:3],
        datasets=("reviews", "snli", "piqa"),
        measures={"snli": "flag", "piqa": "none"},
        n_rounds=2,
    ),
}
