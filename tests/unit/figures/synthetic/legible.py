"""What is wrong with the text of a drawn figure: too small, outside, or over other text."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from advsets.figures import style


def drawn_texts(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> list[Text]:
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


def faults(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> dict[str, list]:
    """Texts by fault; empty where every text can be read."""
    texts = drawn_texts(figure, monkeypatch)
    if not texts:
        return {"none at all": [figure]}
    boxes = np.array([Text.get_window_extent(text).extents for text in texts])
    labels = [text.get_text() for text in texts]
    small = [label for text, label in zip(texts, labels, strict=True) if text.get_fontsize() < style.SMALLEST_PT]
    width, height = figure.get_size_inches() * figure.dpi
    outside = (boxes[:, :2] < -1).any(axis=1) | (boxes[:, 2] > width + 1) | (boxes[:, 3] > height + 1)
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    overlap = ((high - low) > 1.0).all(axis=2)
    found = {
        "small": small,
        "outside": [label for label, out in zip(labels, outside, strict=True) if out],
        "overlap": [(labels[i], labels[j]) for i, j in zip(*np.nonzero(np.triu(overlap, 1)), strict=True)],
    }
    return {fault: where for fault, where in found.items() if where}
