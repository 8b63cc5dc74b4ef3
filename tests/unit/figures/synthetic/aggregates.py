"""Made-up tables over several adversaries: findings, rankings, ensembles, other settings."""

from __future__ import annotations

from synthetic.study import Study, bounds, runs_of, summary

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


_METHODS = ("full_set", "weighted", "weighted_by_family", "mean_rank", "bradley_terry")


def _methods_of(study: Study) -> list[tuple[str, str | None, int | None]]:
    return [*((m, None, None) for m in _METHODS), *(("single_adversary", a, s) for a, s in runs_of(study))]


def _aggregate_ranks(study: Study, dataset: str) -> list[dict]:
    rows = []
    for method, adversary, seed in _methods_of(study):
        for i, model in enumerate(study.models):
            rank = len(study.models) - i
            interval = bounds("method_score", study.accuracy(model), 0.05) | bounds("rank", float(rank), 1.0)
            keys = {"dataset": dataset, "method": method, "adversary": adversary, "adversary_seed": seed}
            rows.append({**keys, "evaluated_model": model, **interval})
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
    filters = [(a, "single", [a], s) for a, s in runs_of(study)]
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
            **summary(0.6, 0.5 if members else None),
            "accuracy_members": 0.5,
            "accuracy_others": 0.6,
            **bounds("own_excess", None if members == every else -0.2, 0.1),
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
            **summary(0.5 + 0.02 * i, 0.6),
        }
        for adversary in study.adversaries[:2]
        for i, (setting, value) in enumerate(values)
    ]


BUILDERS = {
    "findings": _findings,
    "aggregate_ranks": _aggregate_ranks,
    "aggregate_stability": _aggregate_stability,
    "ensembles": _ensembles,
    "sensitivity": _sensitivity,
}
