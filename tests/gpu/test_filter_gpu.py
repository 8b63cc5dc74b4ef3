"""The filter on a CUDA device against the CPU; every test skips where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from advsets import AFLite
from advsets.aflite.logreg import fit_classifiers
from advsets.aflite.scoring import score_examples

N_DEVICES = torch.cuda.device_count() if torch.cuda.is_available() else 0
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(N_DEVICES == 0, reason="no CUDA device")]


def problem(n: int, d: int, n_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    x = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y] * 0.2
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("share", [0.02, 0.4])
def test_predictions_are_those_of_the_cpu(n_classes: int, share: float) -> None:
    x, y = problem(20_000, 128, n_classes)
    masks = torch.rand(32, len(y), generator=torch.Generator().manual_seed(0)) < share
    found = {}
    for device in ("cpu", "cuda"):
        fits = fit_classifiers(x, y, masks, n_classes=n_classes, device=device)
        assert set(fits.status) == {"converged"}
        found[device] = score_examples(x, y, fits, n_classes=n_classes, held_out=~masks, device=device)
    differing = (found["cpu"].n_correct - found["cuda"].n_correct).abs().sum()
    assert differing < 0.0002 * (~masks).sum()
    torch.testing.assert_close(found["cuda"].margin, found["cpu"].margin, rtol=0, atol=1e-2)


def test_hardly_a_row_leaves_on_one_device_only() -> None:
    x, y = problem(6_000, 64, 3)
    evaluation, gold = problem(2_000, 64, 3)
    found = {}
    for device in ("cpu", "cuda"):
        aflite = AFLite(n_partitions=32, train_size=1_000, slice_size=200, max_rounds=1, random_state=0, device=device)
        found[device] = aflite.fit(x.numpy(), y.numpy(), eval_set=(evaluation.numpy(), gold.numpy()))
    one, other = found["cpu"], found["cuda"]
    differing = one.retained_ != other.retained_
    assert np.abs(one.predictability_[differing] - other.predictability_[differing]).max(initial=0) <= 1 / 32
    assert differing.mean() <= 0.002, np.flatnonzero(differing)
    assert (one.eval_retained_ != other.eval_retained_).mean() <= 0.002


@pytest.mark.skipif(N_DEVICES < 2, reason="one CUDA device or none")
def test_several_devices_give_the_fits_of_one() -> None:
    x, y = problem(20_000, 128, 3)
    masks = torch.rand(32, len(y), generator=torch.Generator().manual_seed(0)) < 0.3
    names = [f"cuda:{index}" for index in range(N_DEVICES)]
    one, all_of_them = (fit_classifiers(x, y, masks, n_classes=3, device=device) for device in ("cuda:0", names))
    torch.testing.assert_close(all_of_them.coefficients, one.coefficients, rtol=0, atol=1e-4)
