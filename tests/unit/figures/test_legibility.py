"""Text is drawn inside the figure, large enough, and never over other text."""

from __future__ import annotations

import pytest
from synthetic.legible import faults

from advsets.figures import registry, style

NAMES = [
    "accuracy_by_adversary_strength",
    "accuracy_drop_heatmap",
    "rank_bump_chart",
    "rank_stability",
    "retained_share_by_round",
    "predictability_histogram",
    "agreement",
    "penalty",
    "findings",
    "soft_scores",
    "accuracy_by_predictability",
    "agreement_matched",
    "aggregate_ranks",
    "ensembles",
    "sensitivity",
    "accuracy_drop_by_group",
    "question_statistics",
]
CHECKS = [
    *((name, "base") for name in NAMES),
    *((name, "many") for name in (*NAMES[:4], *NAMES[-7:])),
    ("accuracy_by_adversary_strength", "empty"),
    ("accuracy_drop_heatmap", "one_model"),
    ("rank_bump_chart", "tied"),
    ("agreement", "mixed"),
    ("soft_scores", "many"),
    ("soft_scores", "mixed"),
    ("question_statistics", "mixed"),
]


@pytest.mark.parametrize(("name", "case"), CHECKS)
def test_text_is_legible(name, case, tables_of, cases, monkeypatch) -> None:
    figure, _ = registry.draw(name, tables_of(case), cases[case].context())
    assert faults(figure, monkeypatch) == {}


def test_the_check_sees_overlap(monkeypatch) -> None:
    figure = style.new_figure(2.0)
    axes = figure.subplots()
    axes.text(0.5, 0.5, "one")
    axes.text(0.5, 0.5, "two")
    assert faults(figure, monkeypatch)["overlap"] == [("one", "two")]


def test_the_check_sees_what_is_small_or_outside(monkeypatch) -> None:
    figure = style.new_figure(2.0)
    figure.text(0.5, 0.5, "small", fontsize=5)
    figure.text(0.98, 0.2, "far to the right")
    assert faults(figure, monkeypatch) == {"small": ["small"], "outside": ["far to the right"]}
    assert "none at all" in faults(style.new_figure(2.0), monkeypatch)
