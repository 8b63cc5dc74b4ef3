"""Made-up tables of collections of adversarial sets: ANLI-like and AdversarialQA-like, with their awkward cases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from advsets.figures.context import FigureContext
from advsets.io import check_frame, polars_dtype
from advsets.seeding import rng_for
from advsets.tables import TABLES

CLASSES = 3
LOOP_BASE = {"R1": "bert-large", "R2": "roberta-large", "R3": "roberta-large", "D-BERT": "mini", "D-RoBERTa": "roberta"}
LOOP_TITLE = {"R1": "BERT-large", "R2": "RoBERTa-large", "R3": "RoBERTa-large ensemble", "D-BERT": "BERT-large"}
IMPORTED = {
    "bert-r1": ("bert-large", ("R1",), ()),
    "roberta-from-r2": ("roberta-large", ("R2",), ("R1",)),
    "roberta-from-r3": ("roberta-large", ("R3",), ("R1", "R2")),
    "roberta-all": ("roberta-large", (), ("R1", "R2", "R3")),
    "bert-all": ("bert-large", (), ("R1", "R2", "R3")),
    "xlnet-all": (None, (), ("R1", "R2", "R3")),
    "roberta-snli": ("roberta-large", (), ()),
    "bert-snli": ("bert-large", (), ()),
}
TITLES = {"D-BERT": "AdversarialQA D(BERT)", "D-RoBERTa": "AdversarialQA D(RoBERTa)", "squad": "SQuAD 1.1 test"}


def _noise(*key: str | int) -> float:
    return float(rng_for(0, "collected", *key).normal())


@dataclass(frozen=True)
class Collection:
    """What a made-up collection is made of; `learned` says how far above chance a model comes."""

    name: str = "anli"
    questions: bool = False
    standard: tuple[str, ...] = ("snli", "mnli")
    adversarial: tuple[str, ...] = ("R1", "R2", "R3")
    training_sets: tuple[str, ...] = ("snli_mnli",)
    models: tuple[str, ...] = ("static", "mini", "bert-large")
    imported: tuple[str, ...] = tuple(IMPORTED)
    seeds: tuple[int, ...] = (0, 1, 2)
    titles: dict[str, str] = field(default_factory=dict)
    with_bounds: bool = True
    by_people: bool = True
    n: int = 1000

    @property
    def sets(self) -> tuple[str, ...]:
        return self.standard + self.adversarial

    @property
    def measures(self) -> tuple[str, ...]:
        return ("exact_match", "f1") if self.questions else ("accuracy",)

    def learned(self, model: str) -> float:
        everyone = (*self.models, *self.imported)
        return 0 if model == "static" else (everyone.index(model) + 1) / (len(everyone) + 1)

    def relation(self, model: str, dataset: str) -> str:
        if dataset in self.standard:
            return "standard"
        base, loop, _ = IMPORTED.get(model, (model, (), ()))
        if dataset in loop:
            return "in_the_loop"
        own = LOOP_BASE.get(dataset)
        if base and own and base == own:
            return "self"
        return "same_family" if base and own and base.split("-")[0] == own.split("-")[0] else "other"

    def score(self, model: str, training_set: str, dataset: str, seed: int | None, measure: str) -> float:
        if self.relation(model, dataset) == "in_the_loop":
            return 0.0 if dataset == "R1" else 0.19
        floor = {"accuracy": 1 / 3, "f1": 0.05, "exact_match": 0.0}[measure]
        reach = 0.55 if dataset in self.standard else 0.25
        penalty = 0.05 if self.relation(model, dataset) == "self" else 0.0
        trained = 0.03 * (list(self.training_sets).index(training_set) + 1) if training_set in self.training_sets else 0
        noise = 0.012 * _noise(model, training_set, dataset, str(seed), measure)
        return max(floor + (reach + trained) * self.learned(model) - penalty + noise, 0.0)

    def instances(self) -> Iterator[tuple[str, str, int | None]]:
        for training_set in self.training_sets:
            for model in self.models:
                yield from ((training_set, model, seed) for seed in self.seeds)
        yield from (("imported", model, None) for model in self.imported)


@dataclass(frozen=True)
class CollectedStudy:
    """The collections of a made-up run; those of `without_rows` are configured, but nothing was scored."""

    collections: tuple[Collection, ...] = (Collection(),)
    without_rows: tuple[str, ...] = ()

    def context(self) -> FigureContext:
        sets = [name for c in self.collections for name in c.sets]
        models = [name for c in self.collections for name in (*c.models, *c.imported)]
        titles = {k: v for c in self.collections for k, v in c.titles.items()}
        return FigureContext(
            dataset_titles={name: titles.get(name, TITLES.get(name, name.upper())) for name in sets},
            model_titles={name: titles.get(name, name) for name in models},
            collections={c.name: c.sets for c in self.collections} | dict.fromkeys(self.without_rows, ("other",)),
            training_sets={c.name: c.training_sets for c in self.collections},
        )


def _bounds(name: str, value: float | None, half: float, known: bool) -> dict[str, float | None]:
    ends = (None, None) if value is None or not known else (value - half, value + half)
    return {name: value, f"{name}_low": ends[0], f"{name}_high": None if ends[1] is None else min(ends[1], 1.0)}


def _sets(c: Collection) -> Iterator[dict]:
    for dataset in c.sets:
        made_against = dataset in c.adversarial
        for measure in c.measures:
            yield {
                "dataset": dataset,
                "construction": "adversarial" if made_against else "standard",
                "collection_round": int(dataset[1:]) if dataset in ("R1", "R2", "R3") else None,
                "model_in_the_loop": LOOP_TITLE.get(dataset, "a model with a long name") if made_against else None,
                "family": LOOP_BASE.get(dataset, "bert").split("-")[0] if made_against else None,
                "measure": measure,
                "n_examples": c.n if made_against else 5 * c.n,
                "chance": None if c.questions else 1 / CLASSES,
                "majority": {"accuracy": 0.345, "f1": 0.062, "exact_match": 0.0}[measure],
                "n_with_annotators": 0 if c.questions or not made_against else c.n // 2,
                "agreement_mean": None if c.questions or not made_against else 0.93,
                "unanimous_share": None if c.questions or not made_against else 0.85,
            }


def _scores(c: Collection) -> Iterator[dict]:
    for training_set, model, seed in c.instances():
        for dataset in c.adversarial if training_set == "imported" else c.sets:
            for measure in c.measures:
                value = c.score(model, training_set, dataset, seed, measure)
                yield {
                    "training_set": training_set,
                    "evaluated_model": model,
                    "model_seed": seed,
                    "dataset": dataset,
                    "measure": measure,
                    "relation": c.relation(model, dataset),
                    "in_the_loop": c.relation(model, dataset) == "in_the_loop",
                    "n_examples": c.n,
                    "n_missing": 0,
                    **_bounds("mean_score", value, 0.9 / math.sqrt(c.n), c.with_bounds),
                    "saw_training_part": dataset in IMPORTED[model][2] if model in IMPORTED else False,
                }


def _correlation(c: Collection) -> Iterator[dict]:
    for training_set in (*c.training_sets, *(["imported"] if c.imported else [])):
        names = c.adversarial if training_set == "imported" else c.sets
        for i, dataset in enumerate(names):
            for other in names[i + 1 :]:
                for measure in c.measures:
                    tau = math.tanh(0.5 + 0.4 * _noise(training_set, dataset, other, measure))
                    n_models = len(c.imported if training_set == "imported" else c.models)
                    yield {
                        "training_set": training_set,
                        "dataset": dataset,
                        "other_dataset": other,
                        "measure": measure,
                        "n_models": n_models,
                        **_bounds("tau_b", tau if n_models > 1 else None, 0.2, c.with_bounds),
                    }


def _penalty(c: Collection) -> Iterator[dict]:
    cells = list(_penalty_cells(c))
    for training_set in sorted({cell["training_set"] for cell in cells}):
        for measure in c.measures:
            for relation in ("self", "same_family"):
                values = [
                    cell["residual_log_odds"]
                    for cell in cells
                    if (cell["training_set"], cell["measure"], cell["relation"]) == (training_set, measure, relation)
                ]
                mean = sum(values) / len(values) if values else None
                yield {
                    "training_set": training_set,
                    "measure": measure,
                    "relation": relation,
                    "n_cells": len(values),
                    **_bounds("penalty_log_odds", mean, 0.11, c.with_bounds),
                }


def _penalty_cells(c: Collection) -> Iterator[dict]:
    shift = {"self": -0.3, "same_family": -0.1}
    pairs = dict.fromkeys((training_set, model) for training_set, model, _ in c.instances())
    for training_set, model in pairs:
        for dataset in c.adversarial:
            for measure in c.measures:
                relation = c.relation(model, dataset)
                seed = None if training_set == "imported" else c.seeds[0]
                residual = shift.get(relation, 0.05) + 0.1 * _noise("residual", model, dataset, measure)
                yield {
                    "training_set": training_set,
                    "evaluated_model": model,
                    "dataset": dataset,
                    "measure": measure,
                    "relation": relation,
                    "mean_score": c.score(model, training_set, dataset, seed, measure),
                    "residual_log_odds": None if relation == "in_the_loop" else residual,
                }


def _cross_training(c: Collection) -> Iterator[dict]:
    for model in c.models:
        for dataset in c.sets:
            for measure in c.measures:
                values = {t: [c.score(model, t, dataset, seed, measure) for seed in c.seeds] for t in c.training_sets}
                means = {t: sum(v) / len(v) for t, v in values.items()}
                for training_set, mean in means.items():
                    off = [(v - mean) ** 2 for v in values[training_set]]
                    yield {
                        "evaluated_model": model,
                        "training_set": training_set,
                        "dataset": dataset,
                        "measure": measure,
                        "n_train": 5400,
                        "n_seeds": len(off),
                        "mean_score": mean,
                        "score_sd": math.sqrt(sum(off) / (len(off) - 1)) if len(off) > 1 else None,
                        "best": mean == max(means.values()),
                    }


def _model_in_the_loop(c: Collection) -> Iterator[dict]:
    for training_set in c.training_sets[:1]:
        for model in c.models:
            for dataset in c.sets:
                people = c.by_people and c.relation(model, dataset) == "self"
                for how in ("full_set", "by_selection", *(["by_people"] if people else [])):
                    chosen = how == "by_selection"
                    n = c.n - int(c.n * c.score(model, training_set, dataset, 0, c.measures[0])) if chosen else c.n
                    for seed in c.seeds:
                        for measure in c.measures:
                            full = c.score(model, training_set, dataset, seed, measure)
                            loop = chosen and seed == c.seeds[0]
                            yield {
                                "training_set": training_set,
                                "evaluated_model": model,
                                "dataset": dataset,
                                "how": how,
                                "loop_seed": c.seeds[0] if chosen else None,
                                "model_seed": seed,
                                "measure": measure,
                                "in_the_loop": loop,
                                "n_examples": n,
                                "mean_score": None if n == 0 else 0.02 if loop else full * (0.6 if chosen else 1),
                            }


BUILDERS = {
    "collected_sets": _sets,
    "collected_scores": _scores,
    "collected_correlation": _correlation,
    "collected_penalty": _penalty,
    "collected_penalty_cells": _penalty_cells,
    "cross_training": _cross_training,
    "model_in_the_loop": _model_in_the_loop,
}


def make_collected(study: CollectedStudy) -> dict[str, pl.DataFrame]:
    """Every table of the collections, each checked against its declaration."""
    made = {}
    for name, build in BUILDERS.items():
        rows = [{"collection": c.name, **row} for c in study.collections for row in build(c)]
        schema = {column.name: polars_dtype(column) for column in TABLES[name].columns}
        made[name] = check_frame(pl.DataFrame(rows, schema=schema), TABLES[name])
    return made
