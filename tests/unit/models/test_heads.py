from __future__ import annotations

import pytest
import torch

from advsets.models.heads import group_scores, pool

HIDDEN = torch.arange(2 * 4 * 3, dtype=torch.float32).reshape(2, 4, 3)
RIGHT = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
LEFT = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])


@pytest.mark.parametrize(
    ("mask", "pooling", "rows"),
    [
        (RIGHT, "first", [[0], [0]]),
        (LEFT, "first", [[2], [0]]),
        (RIGHT, "last", [[1], [3]]),
        (LEFT, "last", [[3], [3]]),
        (RIGHT, "mean", [[0, 1], [0, 1, 2, 3]]),
        (LEFT, "mean", [[2, 3], [0, 1, 2, 3]]),
    ],
)
def test_pool_reads_unmasked_tokens_only(mask, pooling, rows):
    wanted = torch.stack([HIDDEN[i, which].mean(0) for i, which in enumerate(rows)])
    assert pool(HIDDEN, mask, pooling).equal(wanted)


def test_group_scores_keeps_examples_of_different_size_apart():
    scores = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]], requires_grad=True)
    grouped = group_scores(scores, torch.tensor([2, 3]))
    assert grouped.tolist() == [[1.0, 2.0, -torch.inf], [3.0, 4.0, 5.0]]
    assert grouped.softmax(1)[0, 2] == 0
    torch.nn.functional.cross_entropy(grouped, torch.tensor([1, 0])).backward()
    assert bool(torch.isfinite(scores.grad).all())
    assert scores.grad[:2].sum() == pytest.approx(0, abs=1e-7)
