"""Synthetic tables of a whole run, each checked against its declaration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl
import pytest
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from advsets.evaluation.collected.kinds import ANSWER_TYPES, QUESTION_WORDS
from advsets.figures import registry
from advsets.figures.context import FigureContext
from advsets.io import check_frame
from advsets.seeding import rng_for
from advsets.tables import TABLES

MODELS = ("static", "mini-1", "mini-2", "mini-3", "mini-6", "other-1")
LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Study:
    """What a synthetic run is made of."""

    datasets: tuple[str, ...] = ("reviews",)
    models: tuple[str, ...] = MODELS
    adversaries: tuple[str, ...] = MODELS[:5]
    seeds: tuple[int, ...] = (0,)
    empty: tuple[str, ...] = ()
    unknown_strength: tuple[str, ...] = ()
    measure: str = "agreement"  # agreement | flag | none
    measures: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    n_full: int = 1066
    n_rounds: int = 12
    identical_ranks: bool = False

    def context(self) -> FigureContext:
        titles = {m: self.titles.get(m, m.replace("mini-", "MiniLM, layers: ")) for m in self.models}
        return FigureContext(
            dataset_titles={d: d.capitalize() for d in self.datasets},
            model_titles=titles,
            families={m: m.split("-")[0] for m in self.models},
            objectives={m: "masked" if m.startswith("mini") else "none" for m in self.models},
            label_orders={d: LABELS for d in self.datasets},
            thresholds=dict.fromkeys(self.datasets, 0.75),
        )

    def accuracy(self, model: str) -> float:
        return 0.55 + 0.35 * (self.models.index(model) + 1) / len(self.models)

    def strength(self, adversary: str) -> float | None:
        return None if adversary in self.unknown_strength else self.accuracy(adversary)

    def n_kept(self, adversary: str, seed: int) -> int:
        return 0 if adversary in self.empty else int(self.n_full * (1.02 - self.accuracy(adversary))) + 7 * seed

    def relation(self, adversary: str, model: str) -> str:
        if adversary == model:
            return "self"
        return "same_family" if adversary.split("-")[0] == model.split("-")[0] else "other"


def _noise(*key: str | int) -> float:
    return float(rng_for(0, *key).normal())


def _filtered(study: Study, dataset: str, adversary: str, seed: int, model: str) -> float | None:
    if adversary in study.empty:
        return None
    drop = (
        0.75 * (study.accuracy(adversary) - 0.5)
        + {"self": 0.07, "same_family": 0.02, "other": 0.0}[study.relation(adversary, model)]
    )
    value = study.accuracy(model) - drop + 0.012 * _noise(dataset, adversary, seed, model)
    return min(max(value, 0.02), 0.98)


def _accuracy(study: Study, dataset: str) -> list[dict]:
    rows = []
    for model in study.models:
        full = study.accuracy(model)
        cells = [("full_set", None, None, study.n_full, full, full - 0.02, full + 0.02)]
        for adversary in study.adversaries:
            for seed in study.seeds:
                n = study.n_kept(adversary, seed)
                value = _filtered(study, dataset, adversary, seed, model)
                half = 0.0 if n == 0 else 1.96 * math.sqrt(0.25 / n)
                missing = value is None
                cells.append(
                    (
                        "filtered",
                        adversary,
                        seed,
                        n,
                        value,
                        None if missing else value - half,
                        None if missing else value + half,
                    )
                )
                random = (None,) * 3 if missing else (full, full - half / 1.5, full + half / 1.5)
                cells.append(("random_subset", adversary, seed, n, *random))
        names = ("subset", "adversary", "adversary_seed", "n_examples", "accuracy", "accuracy_low", "accuracy_high")
        rows += [
            {"dataset": dataset, "evaluated_model": model, "model_seed": seed, **dict(zip(names, cell, strict=True))}
            for cell in cells
            for seed in study.seeds
        ]
    return rows


def _ranked(values: dict[str, float | None]) -> dict[str, float | None]:
    known = {k: v for k, v in values.items() if v is not None}
    return {
        k: None if v is None else 1 + sum(o > v for o in known.values()) + (sum(o == v for o in known.values()) - 1) / 2
        for k, v in values.items()
    }


def _ranks(study: Study, dataset: str) -> list[dict]:
    full = {m: study.accuracy(m) for m in study.models}
    rows = []
    for adversary in study.adversaries:
        for seed in study.seeds:
            filtered = {m: _filtered(study, dataset, adversary, seed, m) for m in study.models}
            if study.identical_ranks and adversary not in study.empty:
                filtered = dict(full)
            before, after = _ranked(full), _ranked(filtered)
            rows += [
                {
                    "dataset": dataset,
                    "adversary": adversary,
                    "adversary_seed": seed,
                    "evaluated_model": m,
                    "accuracy_full_set": full[m],
                    "accuracy_filtered": filtered[m],
                    "rank_full_set": before[m],
                    "rank_filtered": after[m],
                    "adversary_strength": study.strength(adversary),
                }
                for m in study.models
            ]
    return rows


def _rank_stability(study: Study, dataset: str) -> list[dict]:
    rows = []
    for adversary in study.adversaries:
        for seed in study.seeds:
            n = study.n_kept(adversary, seed)
            tau = None if n == 0 or len(study.models) < 2 else 1 - 1.6 * (study.accuracy(adversary) - 0.5) + 0.04 * seed
            rows.append(
                {
                    "dataset": dataset,
                    "adversary": adversary,
                    "adversary_seed": seed,
                    "n_retained": n,
                    "retained_share": n / study.n_full,
                    "adversary_strength": study.strength(adversary),
                    "tau_b": tau,
                    "tau_b_low": None if tau is None else tau - 0.2,
                    "tau_b_high": None if tau is None else min(tau + 0.15, 1.0),
                    "tau_b_random_mean": None if tau is None else 0.9,
                    "tau_b_random_low": None if tau is None else 0.7,
                    "tau_b_random_high": None if tau is None else 1.0,
                    "rank_change_mean": None if tau is None else 1.2,
                    "rank_change_random_mean": None if tau is None else 0.3,
                }
            )
    return rows


def _penalty_cells(study: Study, dataset: str) -> list[dict]:
    shift = {"self": -0.45, "same_family": -0.15, "other": 0.05}
    rows = []
    for adversary in study.adversaries:
        for model in study.models:
            relation = study.relation(adversary, model)
            value = _filtered(study, dataset, adversary, 0, model)
            rows.append(
                {
                    "dataset": dataset,
                    "adversary": adversary,
                    "evaluated_model": model,
                    "relation": relation,
                    "accuracy_full_set": study.accuracy(model),
                    "accuracy_filtered": value,
                    "accuracy_random": None if value is None else study.accuracy(model),
                    "residual_log_odds": None
                    if value is None
                    else shift[relation] + 0.12 * _noise("residual", dataset, adversary, model),
                }
            )
    return rows


def _penalty(study: Study, dataset: str) -> list[dict]:
    cells = _penalty_cells(study, dataset)
    rows = []
    for relation in ("self", "same_family"):
        values = [
            c["residual_log_odds"] for c in cells if c["relation"] == relation and c["residual_log_odds"] is not None
        ]
        mean = sum(values) / len(values) if values else None
        rows.append(
            {
                "dataset": dataset,
                "relation": relation,
                "n_cells": len(values),
                "penalty_log_odds": mean,
                "penalty_low": None if mean is None else mean - 0.1,
                "penalty_high": None if mean is None else mean + 0.12,
                "interval_over": "examples",
            }
        )
    return rows


def _measure(study: Study, dataset: str) -> str:
    return study.measures.get(dataset, study.measure)


def _agreement(study: Study, dataset: str) -> list[dict]:
    measure = _measure(study, dataset)
    rows = []
    for adversary in study.adversaries if measure != "none" else ():
        for seed in study.seeds:
            kept = study.n_kept(adversary, seed)
            for label in (None, *LABELS):
                for subset, n, shift in (
                    ("full_set", study.n_full, 0.0),
                    ("retained", kept, -0.12),
                    ("removed", study.n_full - kept, 0.03),
                ):
                    n = n if label is None else n // 3
                    mean = None if n == 0 else 0.82 + shift + 0.01 * _noise("agreement", adversary, seed, str(label))
                    half = 0.0 if n == 0 else 0.4 / math.sqrt(n)
                    low, high = (None, None) if mean is None else (mean - half, mean + half)
                    flag = measure == "flag"
                    rows.append(
                        {
                            "dataset": dataset,
                            "adversary": adversary,
                            "adversary_seed": seed,
                            "gold_label": label,
                            "subset": subset,
                            "n_examples": n,
                            "n_flagged": n if flag else None,
                            "agreement_mean": None if flag else mean,
                            "agreement_low": None if flag else low,
                            "agreement_high": None if flag else high,
                            "label_entropy_bits_mean": None if flag or mean is None else 0.6,
                            "low_agreement_share": (None if mean is None else 1 - mean) if flag else None,
                            "low_agreement_low": (None if high is None else 1 - high) if flag else None,
                            "low_agreement_high": (None if low is None else 1 - low) if flag else None,
                        }
                    )
    return rows


def _agreement_histogram(study: Study, dataset: str) -> list[dict]:
    rows = []
    for adversary in study.adversaries if _measure(study, dataset) == "agreement" else ():
        for seed in study.seeds:
            kept = study.n_kept(adversary, seed)
            own = 1.2 - 0.8 * study.adversaries.index(adversary) / len(study.adversaries)
            for subset, n, slope in (
                ("full_set", study.n_full, 2.0),
                ("retained", kept, own),
                ("removed", study.n_full - kept, 2.6),
            ):
                weights = [math.exp(slope * i / 4) * (i >= 3) for i in range(10)]
                shares = [w / sum(weights) for w in weights]
                rows += [
                    {
                        "dataset": dataset,
                        "adversary": adversary,
                        "adversary_seed": seed,
                        "subset": subset,
                        "bin_low": i / 10,
                        "bin_high": (i + 1) / 10,
                        "n_examples": round(share * n),
                        "share": share if n else None,
                    }
                    for i, share in enumerate(shares)
                ]
    return rows


_FINDINGS = (
    (
        "a",
        "Accuracy falls on filtered subsets.",
        "holds",
        "mean drop against size-matched random subsets, percentage points",
        14.2,
        12.9,
        15.6,
    ),
    (
        "b",
        "Stronger adversaries make harder subsets.",
        "holds",
        "Spearman correlation of strength and mean drop",
        0.9,
        0.4,
        1.0,
    ),
    (
        "c",
        "The ranking of models changes more than by chance.",
        "undecided",
        "tau-b minus mean tau-b of random subsets",
        -0.21,
        -0.55,
        0.04,
    ),
    (
        "d",
        "Retained examples have lower annotator agreement, also within gold class.",
        "holds",
        "difference of mean agreement, share",
        -0.11,
        -0.13,
        -0.1,
    ),
    (
        "e",
        "A model fine-tuned from the adversary's base model is hurt more.",
        "does not hold",
        "self-adversary penalty, log-odds",
        None,
        None,
        None,
    ),
)


def _findings(study: Study, dataset: str) -> list[dict]:
    keys = ("finding", "statement", "verdict", "measure", "value", "low", "high")
    return [
        {
            "dataset": dataset,
            **dict(zip(keys, row, strict=True)),
            "detail": f"over {len(study.adversaries)} adversaries, n = {study.n_full}",
        }
        for row in _FINDINGS
    ]


def _soft_scores(study: Study, dataset: str) -> list[dict]:
    if _measure(study, dataset) != "agreement":
        return []
    rows = []
    for annotators, n_full in (("own", study.n_full), ("more_annotators", study.n_full // 6)):
        if annotators == "more_annotators" and dataset != "snli":
            continue
        for model in study.models:
            runs = [("full_set", None, None, n_full, 0.0)]
            for adversary in study.adversaries:
                for seed in study.seeds:
                    n = study.n_kept(adversary, seed) * n_full // study.n_full
                    runs += [("filtered", adversary, seed, n, 0.06), ("random_subset", adversary, seed, n, 0.0)]
            for subset, adversary, seed, n, shift in runs:
                row = {
                    "dataset": dataset,
                    "annotators": annotators,
                    "subset": subset,
                    "adversary": adversary,
                    "adversary_seed": seed,
                    "evaluated_model": model,
                    "n_examples": n,
                    "n_majority": n,
                }
                away = 1 - study.accuracy(model) + shift + 0.01 * _noise("soft", str(adversary), str(seed), model)
                for name, value in {
                    "js_distance": 0.15 + away / 2,
                    "kl_nats": 0.2 + 2 * away,
                    "cross_entropy_nats": 0.9 + 2 * away,
                    "majority_accuracy": 1 - away,
                }.items():
                    half = 0.5 / math.sqrt(max(n, 1))
                    row |= {
                        name: value if n else None,
                        f"{name}_low": value - half if n else None,
                        f"{name}_high": value + half if n else None,
                    }
                rows.append(row)
    return rows


def _bounds(name: str, value: float | None, half: float) -> dict[str, float | None]:
    ends = (None, None) if value is None else (value - half, value + half)
    return {name: value, f"{name}_low": ends[0], f"{name}_high": ends[1]}


def _summary(value: float | None, tau: float | None) -> dict[str, float | None]:
    change = None if tau is None else 2 * (1 - tau)
    return {**_bounds("accuracy_mean", value, 0.03), **_bounds("tau_b", tau, 0.15), "rank_change_mean": change}


def _runs_of(study: Study) -> list[tuple[str, int]]:
    return [(a, s) for a in study.adversaries for s in study.seeds]


def _accuracy_by_predictability(study: Study, dataset: str) -> list[dict]:
    return [
        {
            "dataset": dataset,
            "adversary": adversary,
            "adversary_seed": seed,
            "evaluated_model": model,
            "relation": study.relation(adversary, model),
            "bin_low": b / 5,
            "bin_high": (b + 1) / 5,
            "n_examples": 0 if b == 2 else 100 + b,
            **_bounds("accuracy", None if b == 2 else min(0.1 + 0.17 * b + study.accuracy(model) / 5, 1), 0.04),
        }
        for adversary, seed in _runs_of(study)
        for model in study.models
        for b in range(5)
    ]


def _agreement_matched(study: Study, dataset: str) -> list[dict]:
    shifts = {"full_set": 0.0, "retained": 0.3, "matched": 0.22, "agreement_weighted": 0.27}
    return [
        {
            "dataset": dataset,
            "adversary": adversary,
            "adversary_seed": seed,
            "weighting": weighting,
            "measure": "agreement",
            "n_examples": study.n_full if weighting == "full_set" else study.n_kept(adversary, seed),
            "agreement_mean": 0.8 - shift / 3,
            **_summary(0.75 - shift * study.accuracy(adversary), 1 - shift),
        }
        for adversary, seed in (_runs_of(study) if _measure(study, dataset) != "none" else ())
        for weighting, shift in shifts.items()
    ]


_METHODS = ("full_set", "weighted", "weighted_by_family", "mean_rank", "bradley_terry")


def _methods_of(study: Study) -> list[tuple[str, str | None, int | None]]:
    return [*((m, None, None) for m in _METHODS), *(("single_adversary", a, s) for a, s in _runs_of(study))]


def _aggregate_ranks(study: Study, dataset: str) -> list[dict]:
    rows = []
    for method, adversary, seed in _methods_of(study):
        for i, model in enumerate(study.models):
            rank = len(study.models) - i
            bounds = _bounds("method_score", study.accuracy(model), 0.05) | _bounds("rank", float(rank), 1.0)
            keys = {"dataset": dataset, "method": method, "adversary": adversary, "adversary_seed": seed}
            rows.append({**keys, "evaluated_model": model, **bounds})
    return rows


def _aggregate_stability(study: Study, dataset: str) -> list[dict]:
    return [
        {
            "dataset": dataset,
            "method": method,
            "adversary": adversary,
            "adversary_seed": seed,
            "tau_b_full_set": 0.7,
            "tau_b_draws_mean": 0.6 + 0.01 * i,
            "tau_b_draws_low": 0.4,
            "tau_b_draws_high": 0.9,
            "tau_b_unseen": None if len(study.adversaries) == 1 else 0.5,
        }
        for i, (method, adversary, seed) in enumerate(_methods_of(study))
    ]


def _ensembles(study: Study, dataset: str) -> list[dict]:
    filters = [(a, "single", [a], s) for a, s in _runs_of(study)]
    filters += [("single adversaries, mean", "single", [], s) for s in study.seeds]
    every = list(study.adversaries)
    filters += [(n, k, every, s) for n, k in (("all", "mean"), ("lowest", "minimum")) for s in study.seeds]
    return [
        {
            "dataset": dataset,
            "filter": name,
            "kind": kind,
            "adversary_seed": seed,
            "members": members,
            "n_retained": study.n_kept(name, seed) if name in study.adversaries else None,
            "comparison": comparison,
            "n_examples": n_examples,
            **_summary(0.6, 0.5 if members else None),
            "accuracy_members": 0.5,
            "accuracy_others": 0.6,
            **_bounds("own_excess", None if members == every else -0.2, 0.1),
        }
        for comparison, n_examples in (("smallest", 400), ("middle", 500), ("largest", 700))
        for name, kind, members, seed in filters
    ]


def _sensitivity(study: Study, dataset: str) -> list[dict]:
    values = [("base", ""), ("threshold", "0.7"), ("threshold", "0.8"), ("n_partitions", "128"), ("seed", "3")]
    return [
        {
            "dataset": dataset,
            "adversary": adversary,
            "setting": setting,
            "setting_value": value,
            "n_retained": 300,
            "n_retained_base": 310,
            "jaccard": 1.0 if setting == "base" else 0.8,
            "jaccard_random_mean": 0.17,
            "jaccard_random_low": 0.15,
            "jaccard_random_high": 0.2,
            **_summary(0.5 + 0.02 * i, 0.6),
        }
        for adversary in study.adversaries[:2]
        for i, (setting, value) in enumerate(values)
    ]


def _per_split(study: Study, dataset: str) -> list[dict]:
    return [{"collection": "written", "dataset": dataset, "split": split} for split in ("train", "validation", "test")]


def _question_statistics(study: Study, dataset: str) -> list[dict]:
    return [
        {
            **split,
            "n_documents": 442,
            "n_passages": 18_891,
            "n_questions": 87_599,
            "question_words_mean": 10.3,
            "question_words_sd": 3.6,
            "answer_words_mean": None if split["split"] == "train" else 3.2,
            "answer_words_sd": None if split["split"] == "train" else 3.0,
            "overlap_mean": 3.0,
            "overlap_sd": None if split["split"] == "train" else 1.8,
        }
        for split in _per_split(study, dataset)
    ]


def _question_overlap(study: Study, dataset: str) -> list[dict]:
    counts = [1, 14, 30, 22, 12, 8, 4, 3, 2, 1, 1, 0, 2]
    return [
        {**split, "overlap": n, "n_questions": count, "share": count / 100}
        for split in _per_split(study, dataset)
        for n, count in enumerate(counts)
    ]


def _question_kinds(study: Study, dataset: str) -> list[dict]:
    return [
        {**split, "aspect": aspect, "kind": kind, "n_questions": n, "share": n / (len(kinds) * (len(kinds) + 1) / 2)}
        for split in _per_split(study, dataset)
        for aspect, kinds in (("question_word", QUESTION_WORDS), ("answer_type", ANSWER_TYPES))
        for n, kind in enumerate(kinds, 1)
    ]


_BUILDERS = {
    "question_statistics": _question_statistics,
    "question_overlap": _question_overlap,
    "question_kinds": _question_kinds,
    "accuracy_by_predictability": _accuracy_by_predictability,
    "agreement_matched": _agreement_matched,
    "aggregate_ranks": _aggregate_ranks,
    "aggregate_stability": _aggregate_stability,
    "ensembles": _ensembles,
    "sensitivity": _sensitivity,
    "accuracy": _accuracy,
    "ranks": _ranks,
    "rank_stability": _rank_stability,
    "penalty_cells": _penalty_cells,
    "penalty": _penalty,
    "agreement": _agreement,
    "agreement_histogram": _agreement_histogram,
    "soft_scores": _soft_scores,
    "findings": _findings,
}


def _frame(name: str, rows: list[dict]) -> pl.DataFrame:
    from advsets.io import polars_dtype

    schema = {c.name: polars_dtype(c) for c in TABLES[name].columns}
    return check_frame(pl.DataFrame(rows, schema=schema), TABLES[name])


def _runs(study: Study) -> list[tuple[str, str, int]]:
    return [(d, a, s) for d in study.datasets for a in study.adversaries for s in study.seeds]


def _rounds(study: Study) -> pl.DataFrame:
    rows = []
    for dataset, adversary, seed in _runs(study):
        train, evaluation = 5000, study.n_full
        target = study.n_kept(adversary, seed)
        n_rounds = study.n_rounds - study.adversaries.index(adversary) % 3 - seed
        for number in range(1, max(n_rounds, 1) + 1):
            gone = max(round((evaluation - target) * (0.6 if number < n_rounds else 1.0)), 0)
            rows.append((dataset, adversary, seed, number, train, 100, evaluation, gone))
            train, evaluation = train - 100, evaluation - gone
    return pl.DataFrame(
        rows,
        schema={
            "dataset": pl.String,
            "adversary": pl.String,
            "adversary_seed": pl.Int64,
            "filtering_round": pl.Int64,
            "n_train_before": pl.Int64,
            "n_train_removed": pl.Int64,
            "n_evaluation_before": pl.Int64,
            "n_evaluation_removed": pl.Int64,
        },
        orient="row",
    )


def _round_scores(study: Study) -> pl.DataFrame:
    frames = []
    for dataset, adversary, seed, number, _, _, n, _ in _rounds(study).iter_rows():
        draws = rng_for(0, "scores", dataset, adversary, seed, number).beta(2.5 / number**0.3, 1.2, size=max(n // 4, 1))
        score = pl.Series("predictability", (draws * 64).round() / 64)
        frames.append(
            pl.DataFrame({"predictability": score}).select(
                dataset=pl.lit(dataset),
                adversary=pl.lit(adversary),
                adversary_seed=pl.lit(seed, pl.Int64),
                filtering_round=pl.lit(number, pl.Int64),
                split=pl.lit("evaluation"),
                predictability=pl.col("predictability"),
                removed=pl.col("predictability") > 0.75,
            )
        )
    return pl.concat(frames)


def make_tables(study: Study) -> dict[str, pl.DataFrame]:
    """Every table of a run as figures receive them: all data sets and filter runs together."""
    tables = {
        name: pl.concat(_frame(name, build(study, dataset)) for dataset in study.datasets)
        for name, build in _BUILDERS.items()
    }
    return {**tables, "rounds": _rounds(study), "round_scores": _round_scores(study)}


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


@pytest.fixture(scope="session")
def cases() -> dict[str, Study]:
    return CASES


@pytest.fixture(scope="session")
def tables_of() -> Callable[[str], dict[str, pl.DataFrame]]:
    """Tables of a case by its name."""
    return functools.cache(lambda case: make_tables(CASES[case]))


@pytest.fixture(scope="session")
def drawn(tables_of) -> Callable[[str, str], tuple[Figure, pl.DataFrame]]:
    """Figure and data by figure name and case, drawn once; for tests that only look."""
    return functools.cache(lambda name, case: registry.draw(name, tables_of(case), CASES[case].context()))


@pytest.fixture(scope="session")
def by_gid() -> Callable[..., list[Artist]]:
    """Artists of a figure that carry a group id."""
    return lambda figure, gid, kind=Artist: [a for a in figure.findobj(kind) if a.get_gid() == gid]
