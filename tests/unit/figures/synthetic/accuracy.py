"""Made-up tables of accuracy, ranks and penalty."""

from __future__ import annotations

import math

from synthetic.study import Study, bounds, filtered_accuracy, noise, runs_of


def _accuracy(study: Study, dataset: str) -> list[dict]:
    rows = []
    for model in study.models:
        full = study.accuracy(model)
        cells = [("full_set", None, None, study.n_full, full, full - 0.02, full + 0.02)]
        for adversary in study.adversaries:
            for seed in study.seeds:
                n = study.n_kept(adversary, seed)
                value = filtered_accuracy(study, dataset, adversary, seed, model)
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
            filtered = {m: filtered_accuracy(study, dataset, adversary, seed, m) for m in study.models}
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
            value = filtered_accuracy(study, dataset, adversary, 0, model)
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
                    else shift[relation] + 0.12 * noise("residual", dataset, adversary, model),
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
            **bounds("accuracy", None if b == 2 else min(0.1 + 0.17 * b + study.accuracy(model) / 5, 1), 0.04),
        }
        for adversary, seed in runs_of(study)
        for model in study.models
        for b in range(5)
    ]


BUILDERS = {
    "accuracy": _accuracy,
    "ranks": _ranks,
    "rank_stability": _rank_stability,
    "penalty_cells": _penalty_cells,
    "penalty": _penalty,
    "accuracy_by_predictability": _accuracy_by_predictability,
}
