"""Text is drawn inside the figure, large enough, and never over other text."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text

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


def drawn_texts(figure, monkeypatch) -> list[Text]:
    """Texts that are really drawn: ticks out of view and hidden parts are not."""
    figure.draw_without_rendering()
    texts: dict[int, Text] = {}
    original = Text.draw

    def record(self, renderer, *args, **kwargs):
        if self.get_visible() and self.get_text().strip():
            texts[id(self)] = self
        return original(self, renderer, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Text, "draw", record)
        figure.canvas.draw()
    return list(texts.values())


@pytest.mark.parametrize(("name", "case"), CHECKS)
def test_text_is_legible(name, case, tables_of, cases, monkeypatch) -> None:
    figure, _ = registry.draw(name, tables_of(case), cases[case].context())
    texts = drawn_texts(figure, monkeypatch)
    assert texts
    boxes = np.array([Text.get_window_extent(text).extents for text in texts])
    labels = [text.get_text() for text in texts]
    small = [label for text, label in zip(texts, labels, strict=True) if text.get_fontsize() < style.SMALLEST_PT]
    assert not small
    width, height = figure.get_size_inches() * figure.dpi
    outside = (boxes[:, :2] < -1).any(axis=1) | (boxes[:, 2] > width + 1) | (boxes[:, 3] > height + 1)
    assert not outside.any(), [label for label, out in zip(labels, outside, strict=True) if out]
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    overlap = ((high - low) > 1.0).all(axis=2)
    pairs = [(labels[i], labels[j]) for i, j in zip(*np.nonzero(np.triu(overlap, 1)), strict=True)]
    assert not pairs


def test_the_check_sees_overlap(monkeypatch) -> None:
    figure = style.new_figure(2.0)
    axes = figure.subplots()
    axes.text(0.5, 0.5, "one")
    axes.text(0.5, 0.5, "two")
    texts = drawn_texts(figure, monkeypatch)
    assert {"one", "two"} <= {text.get_text() for text in texts}
    first, second = (Text.get_window_extent(t) for t in texts if t.get_text() in ("one", "two"))
    assert first.overlaps(second)
