"""Made-up tables of annotators' agreement and soft labels."""

from __future__ import annotations

import math

from synthetic.study import LABELS, Study, measure_of, noise, runs_of, summary


def _agreement(study: Study, dataset: str) -> list[dict]:
    measure = measure_of(study, dataset)
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
                    mean = None if n == 0 else 0.82 + shift + 0.01 * noise("agreement", adversary, seed, str(label))
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
    for adversary in study.adversaries if measure_of(study, dataset) == "agreement" else ():
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


def _soft_scores(study: Study, dataset: str) -> list[dict]:
    if measure_of(study, dataset) != "agreement":
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
                away = 1 - study.accuracy(model) + shift + 0.01 * noise("soft", str(adversary), str(seed), model)
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
            **summary(0.75 - shift * study.accuracy(adversary), 1 - shift),
        }
        for adversary, seed in (runs_of(study) if measure_of(study, dataset) != "none" else ())
        for weighting, shift in shifts.items()
    ]


BUILDERS = {
    "agreement": _agreement,
    "agreement_histogram": _agreement_histogram,
    "soft_scores": _soft_scores,
    "agreement_matched": _agreement_matched,
}
