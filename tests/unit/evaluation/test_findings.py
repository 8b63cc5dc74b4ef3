"""Findings hold where they are planted, do not where the opposite is, and are undecided otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from advsets.evaluation.findings import STATEMENTS, findings, findings_markdown, findings_text, verdict
from advsets.evaluation.measures import Measured
from advsets.evaluation.study import Study
from advsets.evaluation.write import MAKERS, study_of, write_tables
from advsets.io import read_table

Make = Callable[..., Study]
MODELS = "abcde"
N = 1500


def world(make_study: Make, sign: float, models: str = MODELS, adversaries: str = MODELS, **changes: object) -> Study:
    """Set in which each adversary keeps what is hard for it (sign -1: what is easy)."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=N)
    ability = dict(zip(MODELS, np.linspace(-0.5, 2.0, 5), strict=True))
    taste = {m: rng.normal(size=N) for m in MODELS}
    margin = {m: ability[m] - difficulty + 1.2 * taste[m] for m in MODELS}
    correct = {(m, 0): margin[m] + rng.logistic(size=N) * 0.3 > 0 for m in models}
    retained = {
        (m, 0): sign * margin[m] < np.quantile(sign * margin[m], 0.5 - 0.1 * i) for i, m in enumerate(adversaries)
    }
    votes = np.clip(np.rint(4 - difficulty + rng.normal(size=N)), 2, 5) / 5
    return make_study(correct, retained, agreement=votes.tolist(), **changes)


def verdicts(study: Study) -> dict[str, str]:
    return dict(findings(study).select("finding", "verdict").iter_rows())


def test_planted_findings_hold(make_study: Make) -> None:
    found = verdicts(world(make_study, 1.0))
    assert found == {"a": "holds", "b": "holds", "c": "holds", "d": "holds", "e": "holds"}


def test_the_opposite_does_not_hold(make_study: Make) -> None:
    found = verdicts(world(make_study, -1.0))
    assert (found["a"], found["d"], found["e"]) == ("does not hold",) * 3
    assert found["b"] != "holds"


def test_random_subsets_are_not_taken_for_filtered_ones(make_study: Make) -> None:
    rng = np.random.default_rng(5)
    ability = np.linspace(0.5, 0.9, 5)
    wrong = 0
    for _ in range(12):
        correct = {(m, 0): rng.random(400) < p for m, p in zip(MODELS, ability, strict=True)}
        retained = {(m, 0): rng.random(400) < 0.4 for m in MODELS}
        study = make_study(correct, retained, agreement=(rng.integers(2, 6, 400) / 5).tolist())
        wrong += sum(verdict != "undecided" for verdict in verdicts(study).values())
    assert wrong <= 8  # 60 verdicts at 95 %: 3 expected


def test_values_equal_the_tables(make_study: Make) -> None:
    study = world(make_study, 1.0)
    found = {row["finding"]: row for row in findings(study).to_dicts()}
    cells = MAKERS["accuracy"](study).pivot("subset", index=["adversary", "evaluated_model"], values="accuracy")
    cells = cells.drop_nulls("filtered")
    assert found["a"]["value"] == pytest.approx((cells["filtered"] - cells["random_subset"]).mean())
    stability = MAKERS["rank_stability"](study)
    assert found["c"]["value"] == pytest.approx((stability["tau_b_random_mean"] - stability["tau_b"]).mean())
    table = MAKERS["agreement"](study).filter(pl.col("gold_label").is_null())
    means = table.pivot("subset", index="adversary", values="agreement_mean")
    gap = (means["retained"] - means["removed"]).mean()
    assert f"overall {gap:.3f}" in found["d"]["detail"]
    assert found["e"]["value"] == MAKERS["penalty"](study).filter(pl.col("relation") == "self")["penalty_log_odds"][0]
    assert "one fine-tuning seed per evaluated model" in found["a"]["detail"]


def test_lower_agreement_from_class_balance_alone_does_not_count(make_study: Make) -> None:
    # "no" examples have low agreement and are kept more often; within a class nothing differs
    rng = np.random.default_rng(1)
    no = np.arange(N) % 2 == 0
    kept = rng.random(N) < np.where(no, 0.8, 0.2)
    votes = np.where(no, 0.6, 1.0) - 0.1 * (rng.random(N) < 0.5)
    labels = np.where(no, "no", "yes").tolist()
    study = make_study({("a", 0): [1] * N}, {("a", 0): kept}, labels=labels, agreement=votes.tolist())
    row = findings(study).filter(pl.col("finding") == "d").to_dicts()[0]
    assert abs(row["value"]) < 0.02
    assert "overall -0.2" in row["detail"]
    assert row["verdict"] == "undecided"


def test_the_flag_is_used_where_it_covers_more(make_study: Make) -> None:
    rng = np.random.default_rng(2)
    kept = rng.random(N) < 0.5
    flag = rng.random(N) < np.where(kept, 0.6, 0.2)
    votes = [0.6 if i < 100 else None for i in range(N)]
    study = make_study({("a", 0): [1] * N}, {("a", 0): kept}, agreement=votes, low_agreement=flag.tolist())
    row = findings(study).filter(pl.col("finding") == "d").to_dicts()[0]
    assert row["verdict"] == "holds"
    assert "low-agreement share" in row["measure"]
    assert row["value"] == pytest.approx(-0.4, abs=0.06)
    assert row["low"] < row["value"] < row["high"] < 0


def test_too_little_is_undecided(make_study: Make) -> None:
    study = world(make_study, 1.0, models="ab", adversaries="ab")
    found = {row["finding"]: row for row in findings(study).to_dicts()}
    for letter in "bc":
        assert found[letter]["verdict"] == "undecided"
        assert "3 needed" in found[letter]["detail"]


def test_few_random_subsets_cannot_decide_the_ranking(make_study: Make) -> None:
    study = world(make_study, 1.0, changes={"n_random_subsets": 5})
    assert verdicts(study)["c"] == "undecided"


@pytest.mark.parametrize("kept", [0, 1])
def test_one_model_and_an_empty_or_whole_subset(make_study: Make, kept: int) -> None:
    study = make_study({("a", 0): [1, 0, 1, 0]}, {("a", 0): [kept] * 4})
    assert set(verdicts(study).values()) == {"undecided"}


def test_no_models_and_no_adversaries(make_study: Make) -> None:
    assert set(verdicts(make_study({}, {("a", 0): [1, 0]})).values()) == {"undecided"}
    assert set(verdicts(make_study({("a", 0): [1, 0]}, {})).values()) == {"undecided"}


@pytest.mark.parametrize(
    ("low", "high", "below", "expected"),
    [
        (-2, -1, True, "holds"),
        (-2, -1, False, "does not hold"),
        (1, 2, False, "holds"),
        (1, 2, True, "does not hold"),
        (-1, 1, True, "undecided"),
        (0, 1, False, "undecided"),
        (float("nan"), 1, False, "undecided"),
    ],
)
def test_rule(low: float, high: float, below: bool, expected: str) -> None:
    assert verdict(Measured(0.0, low, high, "", ""), below=below) == expected
    assert verdict(Measured(0.0, low, high, "", "", "too few"), below=below) == "undecided"


def test_shown_to_people(make_study: Make) -> None:
    frame = findings(world(make_study, 1.0))
    text, markdown = findings_text([frame]), findings_markdown([frame, frame])
    for statement in STATEMENTS.values():
        assert statement in text
        assert markdown.count(statement) == 2
    assert markdown.count("| holds |") == 10
    assert max(map(len, text.splitlines())) <= 110
    value = frame["value"][0]
    assert f"{value:.3f} [" in text


def test_every_table_is_written_and_shuffled_files_give_equal_ones(make_study: Make, tmp_path: Path) -> None:
    study = world(make_study, 1.0, label_count=[[3, 2]] * N)
    write_tables(study, {name: tmp_path / "first" / f"{name}.parquet" for name in MAKERS})
    inputs = study.inputs
    tables = (inputs.predictions, inputs.retained, inputs.round_scores)
    for path in [inputs.examples, *(path for paths in tables for path in paths.values())]:
        pl.read_parquet(path).sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
    again = Study(
        type(study.inputs)(**{f: getattr(study.inputs, f) for f in study.inputs.__dataclass_fields__}), study.settings
    )
    write_tables(again, {name: tmp_path / "second" / f"{name}.parquet" for name in MAKERS})
    for name in MAKERS:
        first, second = (read_table(tmp_path / part / f"{name}.parquet", name) for part in ("first", "second"))
        assert first.height
        assert first.equals(second), name


def test_a_study_is_made_from_configured_rows(make_study: Make) -> None:
    inputs = make_study({("a", 0): [1, 0, 1, 1]}, {("b", 0): [1, 0, 1, 0]}).inputs
    dataset = SimpleNamespace(name="toy", label_order=("no", "yes"))
    models = [SimpleNamespace(name="a", family="f"), SimpleNamespace(name="b", family="f")]
    settings = {"n_bootstrap": 5, "confidence": 0.9, "n_random_subsets": 5, "n_agreement_bins": 2, "seed": 1}
    settings["n_predictability_bins"] = 2
    study = study_of(dataset, models, inputs.examples, inputs.predictions, inputs.retained, settings)
    assert study.inputs.relation("a", "b") == "same_family"
    assert MAKERS["ranks"](study)["accuracy_filtered"].to_list() == [1.0]
