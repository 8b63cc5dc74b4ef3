"""Made-up tables of filter runs, round by round."""

from __future__ import annotations

import polars as pl
from synthetic.study import Study

from advsets.seeding import rng_for


def _runs(study: Study) -> list[tuple[str, str, int]]:
    return [(d, a, s) for d in study.datasets for a in study.adversaries for s in study.seeds]


def rounds(study: Study) -> pl.DataFrame:
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


def round_scores(study: Study) -> pl.DataFrame:
    frames = []
    for dataset, adversary, seed, number, _, _, n, _ in rounds(study).iter_rows():
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
