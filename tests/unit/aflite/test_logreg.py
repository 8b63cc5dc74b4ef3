"""The batched solver against scikit-learn and scipy, one problem at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from advsets.aflite import logreg, objective, pooled
from advsets.aflite.logreg import Fits, fit_classifiers
from advsets.aflite.objective import Data, Objective
from advsets.aflite.pooled import Pooled
from advsets.aflite.preconditioner import Preconditioner
from advsets.aflite.scoring import score_examples


def draw(rng, n, d, n_classes, spread=1.0):
    """Features (n, d) float32 around class means, and classes of which each is there."""
    y = rng.permutation(np.arange(n) % n_classes)
    means = rng.normal(size=(n_classes, d)) * spread / np.sqrt(d)
    return (rng.normal(size=(n, d)) + means[y]).astype(np.float32), y


def draw_masks(rng, y, n_partitions, n_classes):
    """Random subsets that hold at least one example of each class."""
    masks = rng.random((n_partitions, len(y))) < rng.uniform(0.2, 0.9)
    for mask in masks:
        for label in range(n_classes):
            mask[rng.choice(np.flatnonzero(y == label))] = True
    return masks


def draw_choices(rng, n, d, sizes=(2, 5)):
    counts = rng.integers(sizes[0], sizes[1] + 1, n)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    x = rng.normal(size=(offsets[-1], d)).astype(np.float32)
    scorer = rng.normal(size=d)
    y = np.array([np.argmax(x[a:b] @ scorer + rng.gumbel(size=b - a)) for a, b in pairwise(offsets)])
    return x, y, offsets


def fit(x, y, masks, offsets=None, **options) -> Fits:
    options = {"n_classes": 2, "tolerance": 1e-8} | options
    offsets = None if offsets is None else torch.from_numpy(offsets)
    return fit_classifiers(
        torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(masks), offsets=offsets, **options
    )


def loss_and_gradient(w, x, y, C):
    """Objective and gradient of one fit in plain float64; `w` (n_outputs, n_features + 1)."""
    z = np.column_stack([x.astype(np.float64), np.ones(len(x))])
    scores = z @ w.T
    if len(w) == 1:
        scores = np.column_stack([np.zeros(len(x)), scores])
    loss = -log_softmax(scores, axis=1)[np.arange(len(y)), y].sum()
    residual = softmax(scores, axis=1)
    residual[np.arange(len(y)), y] -= 1
    gradient = C * residual[:, -len(w) :].T @ z
    gradient[:, :-1] += w[:, :-1]
    return C * loss + 0.5 * (w[:, :-1] ** 2).sum(), gradient


def reference(x, y, C, max_iter=1000):
    model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=max_iter).fit(x.astype(np.float64), y)
    w = np.column_stack([model.coef_, model.intercept_])
    return w, np.abs(loss_and_gradient(w, x, y, C)[1]).max() / len(y)


def centred(w):
    """Coefficients without the one shift of all intercepts that changes no probability."""
    return w if len(w) == 1 else w - np.eye(w.shape[1])[-1] * w[:, -1].mean()


def predict(x, fits: Fits):
    """Predicted classes (n_partitions, n_examples)."""
    w = fits.coefficients.numpy()
    scores = np.einsum("nd,pkd->pkn", x.astype(np.float64), w[:, :, :-1]) + w[:, :, -1:]
    return (scores[:, 0] > 0).astype(int) if w.shape[1] == 1 else scores.argmax(1)


@pytest.mark.parametrize("problem", range(20))
def test_fits_equal_scikit_learn(problem):
    rng = np.random.default_rng(problem)
    n_classes = int(rng.choice([2, 2, 3, 4, 5]))
    n, d = int(10 ** rng.uniform(1.2, 3.3)), int(10 ** rng.uniform(0, 2.3))
    n_partitions, C = int(rng.integers(1, 31)), 10 ** rng.uniform(-2, 2)
    x, y = draw(rng, n, d, n_classes, rng.uniform(0, 3))
    masks = draw_masks(rng, y, n_partitions, n_classes)
    fits = fit(x, y, masks, n_classes=n_classes, C=C)
    assert fits.status == ["converged"] * n_partitions
    for p in range(0, n_partitions, -(-n_partitions // 3)):
        rows = masks[p]
        expected, norm = reference(x[rows], y[rows], C)
        assert norm < 1e-8, "the reference itself is not converged"
        w = fits.coefficients[p].numpy()
        value, gradient = loss_and_gradient(w, x[rows], y[rows], C)
        assert value <= loss_and_gradient(expected, x[rows], y[rows], C)[0] * (1 + 1e-6)
        assert np.abs(gradient).max() / rows.sum() <= 1.01e-8
        np.testing.assert_allclose(centred(w), centred(expected), rtol=0, atol=1e-4 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("problem", range(12))
def test_any_size_predicts_as_scikit_learn(problem):
    """N 10 to 5,000, d 1 to 600, 2 to 5 classes, 1 to 100 partitions: held-out predictions of a float64 Newton."""
    rng = np.random.default_rng(1000 + problem)
    n_classes = int(rng.integers(2, 6))
    n, d = int(10 ** rng.uniform(1, 3.7)), int(10 ** rng.uniform(0, 2.78))
    n_partitions = int(10 ** rng.uniform(0, 2))
    x, y = draw(rng, max(n, 2 * n_classes), d, n_classes, rng.uniform(0.5, 4))
    masks = draw_masks(rng, y, n_partitions, n_classes)
    fits = fit(x, y, masks, n_classes=n_classes, tolerance=1e-5)
    assert fits.status == ["converged"] * n_partitions
    n_different = n_predictions = 0
    chosen = range(0, n_partitions, -(-n_partitions // 3))
    for p, predicted in ((p, predict(x, fits)[p]) for p in chosen):
        held_out = ~masks[p]
        if held_out.any():
            expected, norm = reference(x[masks[p]], y[masks[p]], 1.0)
            assert norm < 1e-8, "the reference itself is not converged"
            scores = x[held_out].astype(np.float64) @ expected[:, :-1].T + expected[:, -1]
            right = scores.argmax(1) if len(expected) > 1 else (scores[:, 0] > 0).astype(int)
            n_different += int((right != predicted[held_out]).sum())
            n_predictions += int(held_out.sum())
    assert n_different <= max(0.0002 * n_predictions, 1)


@pytest.mark.parametrize("fits_per_group", [1, 2, 3])
@pytest.mark.parametrize("kind", ["binary", "classes", "choice"])
def test_gradient_equals_finite_differences(kind, fits_per_group):
    rng = np.random.default_rng(1)
    if kind == "choice":
        x, y, offsets = draw_choices(rng, 40, 3)
        data = Data(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(offsets), 0)
    else:
        n_classes = 2 if kind == "binary" else 4
        x, y = draw(rng, 40, 3, n_classes)
        data = Data(torch.from_numpy(x), torch.from_numpy(y), None, n_classes)
    in_subset = torch.from_numpy(rng.random((40, 3)) < 0.6)
    many = Objective(data, in_subset, 0.7, 16, map, fits_per_group)
    w = torch.from_numpy(rng.normal(size=(2, data.n_outputs, data.n_columns)))
    chosen = torch.tensor([0, 2])
    _, gradient = many.evaluate(w, chosen, torch.float64)
    for index in np.ndindex(*w.shape):
        step = torch.zeros_like(w)
        step[index] = 1e-5
        up, down = (many.evaluate(w + sign * step, chosen, torch.float64)[0] for sign in (1, -1))
        expected = torch.zeros(2, dtype=torch.float64)
        expected[index[0]] = gradient[index]
        torch.testing.assert_close((up - down) / 2e-5, expected, rtol=1e-6, atol=1e-6)
    low_value, low_gradient = many.evaluate(w, chosen, torch.float32)
    torch.testing.assert_close(low_value, many.evaluate(w, chosen, torch.float64)[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(low_gradient, gradient, rtol=1e-4, atol=1e-5)


def choice_loss(w, x, y, offsets, mask, C):
    value, gradient = 0.5 * w @ w, w.copy()
    for i in np.flatnonzero(mask):
        rows = x[offsets[i] : offsets[i + 1]].astype(np.float64)
        share = softmax(rows @ w)
        value -= C * np.log(share[y[i]])
        gradient += C * (share @ rows - rows[y[i]])
    return value, gradient


@pytest.mark.parametrize("sizes", [(4, 4), (2, 5), (1, 3)])
def test_multiple_choice_equals_scipy(sizes):
    rng = np.random.default_rng(2)
    x, y, offsets = draw_choices(rng, 150, 6, sizes)
    masks = rng.random((3, 150)) < 0.5
    fits = fit(x, y, masks, offsets, C=0.5, block_rows=64)
    assert fits.status == ["converged"] * 3 and fits.coefficients.shape == (3, 1, 7)
    for w, mask in zip(fits.coefficients.numpy()[:, 0], masks, strict=True):
        found = minimize(choice_loss, np.zeros(6), (x, y, offsets, mask, 0.5), "BFGS", True, options={"gtol": 1e-8})
        assert np.abs(found.jac).max() < 1e-6
        np.testing.assert_allclose(w[:-1], found.x, atol=1e-6)
        assert w[-1] == 0


def test_multiple_choice_with_two_candidates_is_binary_on_the_difference():
    rng = np.random.default_rng(3)
    x, y, offsets = draw_choices(rng, 200, 4, (2, 2))
    w = fit(x, y, np.ones((1, 200), bool), offsets).coefficients[0, 0, :-1].numpy()
    difference = x[1::2].astype(np.float64) - x[::2]
    model = LogisticRegression(solver="newton-cholesky", tol=1e-10, fit_intercept=False).fit(difference, y)
    np.testing.assert_allclose(w, model.coef_[0], atol=1e-6)


def test_permuted_candidates_permute_predictions():
    rng = np.random.default_rng(4)
    x, y, offsets = draw_choices(rng, 120, 5)
    masks = rng.random((6, 120)) < 0.5
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(offsets)])
    moved = np.array([np.flatnonzero(order[a:b] == a + y[i])[0] for i, (a, b) in enumerate(pairwise(offsets))])
    assert (moved != y).any()
    fits, shuffled = fit(x, y, masks, offsets), fit(x[order], moved, masks, offsets)
    torch.testing.assert_close(shuffled.coefficients, fits.coefficients, rtol=0, atol=1e-6)
    options = {"n_classes": 0, "offsets": torch.from_numpy(offsets), "held_out": ~torch.from_numpy(masks)}
    before = score_examples(torch.from_numpy(x), torch.from_numpy(y), fits, **options)
    after = score_examples(torch.from_numpy(x[order]), torch.from_numpy(moved), shuffled, **options)
    assert torch.equal(before.n_correct, after.n_correct)
    torch.testing.assert_close(before.margin, after.margin, rtol=0, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_doubled_rows_and_halved_c_change_nothing(n_classes):
    rng = np.random.default_rng(5)
    x, y = draw(rng, 200, 8, n_classes)
    masks = draw_masks(rng, y, 5, n_classes)
    once = fit(x, y, masks, n_classes=n_classes, C=2.0)
    twice = fit(np.repeat(x, 2, 0), np.repeat(y, 2), np.repeat(masks, 2, 1), n_classes=n_classes, C=1.0)
    torch.testing.assert_close(twice.coefficients, once.coefficients, rtol=0, atol=1e-6)


def test_repeated_rows_act_as_weights():
    rng = np.random.default_rng(6)
    x, y = draw(rng, 150, 6, 3)
    weight = rng.integers(1, 4, 150)
    fits = fit(np.repeat(x, weight, 0), np.repeat(y, weight), np.ones((1, weight.sum()), bool), n_classes=3)
    model = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(x.astype(np.float64), y, sample_weight=weight)
    expected = centred(np.column_stack([model.coef_, model.intercept_]))
    np.testing.assert_allclose(centred(fits.coefficients[0].numpy()), expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_permuted_rows_permute_the_result_and_nothing_else(n_classes):
    rng = np.random.default_rng(7)
    x, y = draw(rng, 600, 20, n_classes)
    masks = draw_masks(rng, y, 9, n_classes)
    order, fit_order = rng.permutation(600), rng.permutation(9)
    fits = fit(x, y, masks, n_classes=n_classes)
    shuffled = fit(x[order], y[order], masks[fit_order][:, order], n_classes=n_classes)
    torch.testing.assert_close(shuffled.coefficients, fits.coefficients[fit_order], rtol=0, atol=1e-6)
    assert (predict(x[order], shuffled) == predict(x, fits)[fit_order][:, order]).all()


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
@pytest.mark.parametrize("kind", ["binary", "classes", "choice"])
def test_thread_count_changes_no_bit(monkeypatch, kind, tolerance):
    rng = np.random.default_rng(8)
    if kind == "choice":
        x, y, offsets = draw_choices(rng, 120, 6)
    else:
        (x, y), offsets = draw(rng, 400, 6, 2 if kind == "binary" else 3), None
    masks = rng.random((4, len(y))) < 0.4
    monkeypatch.setattr(objective, "MAX_PARTIAL_SUMS", 4)
    before, results = torch.get_num_threads(), []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            fits = fit(x, y, masks, offsets, n_classes=2 if kind == "binary" else 3, tolerance=tolerance, block_rows=32)
            assert torch.get_num_threads() == n_threads
            results.append(fits)
    finally:
        torch.set_num_threads(before)
    for fits in results[1:]:
        assert torch.equal(fits.coefficients, results[0].coefficients)
        assert torch.equal(fits.gradient_norm, results[0].gradient_norm)


def test_reported_norm_is_that_of_an_independent_gradient():
    rng = np.random.default_rng(9)
    x, y = draw(rng, 1000, 30, 3)
    masks = draw_masks(rng, y, 6, 3)
    for tolerance in (1e-3, 1e-5, 1e-7):
        fits = fit(x, y, masks, n_classes=3, tolerance=tolerance)
        true = [
            np.abs(loss_and_gradient(w, x[m], y[m], 1.0)[1]).max() / m.sum()
            for w, m in zip(fits.coefficients.numpy(), masks, strict=True)
        ]
        assert fits.status == ["converged"] * 6 and max(true) <= 1.05 * tolerance
        np.testing.assert_allclose(fits.gradient_norm.numpy(), true, rtol=0.05, atol=0.05 * tolerance)


def test_tighter_tolerance_lowers_the_norm_and_changes_hardly_a_prediction():
    rng = np.random.default_rng(10)
    x, y = draw(rng, 2000, 40, 3, spread=2.0)
    masks = draw_masks(rng, y, 10, 3)
    loose, tight = (fit(x, y, masks, n_classes=3, tolerance=t) for t in (1e-5, 1e-7))
    assert loose.gradient_norm.max() <= 1e-5 and tight.gradient_norm.max() <= 1e-7
    assert tight.n_passes > loose.n_passes
    assert (predict(x, loose) != predict(x, tight)).mean() < 0.0002


def test_pass_limit_is_reported_as_stopped():
    rng = np.random.default_rng(11)
    x, y = draw(rng, 300, 20, 3)
    masks = draw_masks(rng, y, 4, 3)
    fits = fit(x, y, masks, n_classes=3, max_passes=3)
    assert fits.n_passes == 3 and fits.status == ["stopped"] * 4
    assert (fits.gradient_norm > 1e-8).all() and fits.coefficients.isfinite().all()
    worst = np.abs(loss_and_gradient(fits.coefficients[0].numpy(), x[masks[0]], y[masks[0]], 1.0)[1]).max()
    np.testing.assert_allclose(fits.gradient_norm[0], worst / masks[0].sum(), rtol=1e-3)


def test_values_that_are_not_finite_are_reported_as_failed():
    rng = np.random.default_rng(12)
    x, y = draw(rng, 50, 3, 2)
    x[4, 1] = np.nan
    fits = fit(x, y, np.ones((2, 50), bool))
    assert fits.status == ["failed", "failed"] and fits.coefficients.isfinite().all()


def test_class_missing_from_a_subset_keeps_its_column():
    rng = np.random.default_rng(13)
    x, y = draw(rng, 300, 5, 4)
    masks = np.stack([rng.random(300) < 0.5, (y != 2) & (rng.random(300) < 0.5)])
    fits = fit(x, y, masks, n_classes=4, tolerance=1e-5)
    assert fits.coefficients.shape == (2, 4, 6) and fits.coefficients.isfinite().all()
    assert fits.status == ["converged"] * 2
    predicted = predict(x, fits)
    assert set(predicted[0]) == {0, 1, 2, 3} and set(predicted[1]) == {0, 1, 3}
    expected, _ = reference(x[masks[1]], np.where(y == 3, 2, y)[masks[1]], 1.0)
    assert (predicted[1] == np.array([0, 1, 3])[(np.column_stack([x, np.ones(300)]) @ expected.T).argmax(1)]).all()


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_subset_of_one_class_ends_with_finite_coefficients(tolerance):
    rng = np.random.default_rng(14)
    x, y = draw(rng, 60, 4, 2)
    masks = np.stack([y == 1, y == 0, np.ones(60, bool)])
    fits = fit(x, y, masks, tolerance=tolerance)
    assert fits.coefficients.isfinite().all() and set(fits.status) <= {"converged", "stopped"}
    assert (predict(x, fits)[:2] == np.array([[1], [0]])).all()
    alone = fit(x, y, masks[:1], tolerance=tolerance)
    assert alone.coefficients.isfinite().all() and (predict(x, alone) == 1).all()


def collinear(rng, x):
    return np.concatenate([x, x[:, :3], x[:, :3] + 1e-3 * rng.normal(size=(len(x), 3))], 1).astype(np.float32)


HARD = {
    "scales from 1e-4 to 1e4": lambda rng, x: x * np.logspace(-4, 4, x.shape[1], dtype=np.float32),
    "large means": lambda rng, x: x + np.float32(100),
    "collinear": collinear,
    "constant column": lambda rng, x: np.concatenate([x, 0 * x[:, :1], 0 * x[:, :1] + 3], 1),
    "heavy tails": lambda rng, x: (x * np.exp(rng.normal(size=x.shape))).astype(np.float32),
    "more features than rows": lambda rng, x: rng.normal(size=(len(x), 3 * len(x))).astype(np.float32),
}


@pytest.mark.filterwarnings("ignore:Line search of Newton solver")
@pytest.mark.parametrize(("spread", "C"), [(0.5, 1.0), (20.0, 100.0)])
@pytest.mark.parametrize("name", HARD)
def test_hard_problems_converge(name, spread, C):
    """Badly scaled, collinear or nearly separable: the objective is still within 1e-6 of a float64 Newton's."""
    rng = np.random.default_rng(15)
    n_classes = 2 if name == "more features than rows" else 3
    x, y = draw(rng, 120, 12, n_classes, spread)
    x = HARD[name](rng, x)
    masks = draw_masks(rng, y, 4, n_classes)
    fits = fit(x, y, masks, n_classes=n_classes, C=C, tolerance=1e-7)
    assert fits.status == ["converged"] * 4
    for w, mask in zip(fits.coefficients.numpy(), masks, strict=True):
        value, gradient = loss_and_gradient(w, x[mask], y[mask], C)
        assert np.abs(gradient).max() / mask.sum() <= 1.01e-7
        assert value <= loss_and_gradient(reference(x[mask], y[mask], C)[0], x[mask], y[mask], C)[0] * (1 + 1e-6)


ILL_CONDITIONED = ["scales from 1e-4 to 1e4", "collinear", "nearly separable"]


@pytest.mark.filterwarnings("ignore:Line search of Newton solver")
@pytest.mark.parametrize("start", ["zero", "pooled"])
@pytest.mark.parametrize("name", ["plain", *ILL_CONDITIONED])
def test_default_tolerance_predicts_as_the_converged_fit(name, start):
    """Of 20,000 held-out predictions fewer than 0.02 % differ from a float64 Newton's."""
    rng = np.random.default_rng(21)
    x, y = draw(rng, 4000, 24, 3, 12.0 if name == "nearly separable" else 2.0)
    x = HARD[name](rng, x) if name in HARD else x
    masks = np.stack([rng.permutation(4000) < 1500 for _ in range(8)])
    fits = fit(x, y, masks, n_classes=3, tolerance=1e-5, start=start)
    assert fits.status == ["converged"] * 8
    n_different = 0
    for predicted, mask in zip(predict(x, fits), masks, strict=True):
        w, norm = reference(x[mask], y[mask], 1.0)
        assert norm < 1e-8, "the reference itself is not converged"
        scores = x[~mask].astype(np.float64) @ w[:, :-1].T + w[:, -1]
        n_different += int((scores.argmax(1) != predicted[~mask]).sum())
    assert n_different < 0.0002 * (~masks).sum()


@pytest.mark.parametrize("kind", ["binary", "classes", "choice"])
def test_masked_and_gathered_forms_agree(monkeypatch, kind):
    rng = np.random.default_rng(22)
    if kind == "choice":
        x, y, offsets = draw_choices(rng, 300, 6)
    else:
        n_classes = 2 if kind == "binary" else 3
        (x, y), offsets = draw(rng, 300, 6, n_classes), None
    options = {"n_classes": 3 if kind == "classes" else 2, "offsets": offsets, "block_rows": 64}
    masks = rng.random((9, 300)) < 0.15
    found = {}
    for size in (1, 2, 4, 9):
        monkeypatch.setattr(logreg, "fits_per_group", lambda *_, size=size: size)
        found[size] = fit(x, y, masks, **options)
        assert found[size].status == ["converged"] * 9
        torch.testing.assert_close(found[size].coefficients, found[1].coefficients, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "classes", "choice"])
def test_divided_partitions_give_the_fits_of_one_device(kind):
    rng = np.random.default_rng(23)
    if kind == "choice":
        x, y, offsets = draw_choices(rng, 300, 6)
    else:
        (x, y), offsets = draw(rng, 300, 6, 2 if kind == "binary" else 3), None
    options = {"n_classes": 3 if kind == "classes" else 2, "offsets": offsets, "tolerance": 1e-7}
    masks = rng.random((5, 300)) < 0.4
    one, three, many = (fit(x, y, masks, device=["cpu"] * n, **options) for n in (1, 3, 8))
    for other in (three, many):
        assert other.status == one.status == ["converged"] * 5
        torch.testing.assert_close(other.coefficients, one.coefficients, rtol=0, atol=1e-5)
        assert other.gradient_norm.shape == one.gradient_norm.shape


def test_form_is_chosen_by_share_and_number_of_fits():
    assert logreg.fits_per_group(0.5, 64, 3) == 64
    assert logreg.fits_per_group(0.01, 64, 3) < 64
    sizes = [logreg.fits_per_group(share, 64, 3) for share in (0.001, 0.01, 0.03, 0.1, 0.4)]
    assert sizes == sorted(sizes)
    assert logreg.fits_per_group(0.2, 1, 1) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_preconditioner_steers_the_path_only(monkeypatch, n_classes):
    rng = np.random.default_rng(16)
    x, y = draw(rng, 400, 10, n_classes)
    masks = draw_masks(rng, y, 5, n_classes)
    full = fit(x, y, masks, n_classes=n_classes)
    monkeypatch.setattr(pooled, "MAX_VARIABLES", 1)
    bound = fit(x, y, masks, n_classes=n_classes)
    monkeypatch.undo()
    monkeypatch.setattr(pooled, "MIN_SAMPLE", 50)
    monkeypatch.setattr(pooled, "SAMPLE_PER_FEATURE", 1)
    sampled = fit(x, y, masks, n_classes=n_classes)
    for other in (bound, sampled):
        assert other.status == ["converged"] * 5
        torch.testing.assert_close(other.coefficients, full.coefficients, rtol=0, atol=1e-6)


def test_pooled_hessian_saves_passes(monkeypatch):
    rng = np.random.default_rng(17)
    x, y = draw(rng, 3000, 20, 3)
    x = (x @ rng.normal(size=(20, 20))).astype(np.float32)
    masks = rng.random((8, 3000)) < 0.5
    preconditioned = fit(x, y, masks, n_classes=3, tolerance=1e-5).n_passes
    monkeypatch.setattr(
        logreg,
        "fit_pooled",
        lambda *_: Pooled(
            Preconditioner(torch.eye(42).double(), torch.eye(21).double(), map), torch.zeros(2, 21).double(), 1.0
        ),
    )
    assert 4 * preconditioned <= fit(x, y, masks, n_classes=3, tolerance=1e-5).n_passes


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    d=st.integers(1, 12),
    n_classes=st.integers(2, 4),
    n_partitions=st.integers(1, 6),
    block_rows=st.integers(1, 70),
)
def test_any_shape_converges_and_scores_like_a_loop(seed, n, d, n_classes, n_partitions, block_rows):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)).astype(np.float32), rng.integers(0, n_classes, n)
    masks = rng.random((n_partitions, n)) < 0.6
    masks[:, rng.integers(n)] = True
    fits = fit(x, y, masks, n_classes=n_classes, tolerance=1e-5, block_rows=block_rows)
    assert fits.coefficients.shape == (n_partitions, 1 if n_classes == 2 else n_classes, d + 1)
    assert fits.status == ["converged"] * n_partitions
    scores = score_examples(
        *map(torch.from_numpy, (x, y)),
        fits,
        n_classes=n_classes,
        held_out=~torch.from_numpy(masks),
        block_rows=block_rows,
    )
    right = (predict(x, fits) == y) & ~masks
    assert scores.n_correct.tolist() == right.sum(0).tolist()
    assert scores.n_held_out.tolist() == (~masks).sum(0).tolist()
    assert scores.n_correct_per_partition.tolist() == right.sum(1).tolist()
    assert scores.n_held_out_per_partition.tolist() == (~masks).sum(1).tolist()
    assert torch.equal(scores.margin.isnan(), scores.n_held_out == 0)


def hand_made(*coefficients) -> Fits:
    w = torch.tensor(coefficients, dtype=torch.float64)
    return Fits(w, torch.zeros(len(w), dtype=torch.float64), 0, ["converged"] * len(w))


def test_binary_scores_by_hand():
    fits = hand_made([[1.0, 0.0]], [[-2.0, 1.0]])
    x, y = torch.tensor([[3.0], [0.0], [-1.0]]), torch.tensor([1, 0, 0])
    held_out = torch.tensor([[True, True, False], [True, False, False]])
    # scores: 3, 0, -1 and -5, 1, 3; a score of 0 predicts class 0
    scores = score_examples(x, y, fits, n_classes=2, held_out=held_out)
    assert scores.n_correct.tolist() == [1, 1, 0] and scores.n_held_out.tolist() == [2, 1, 0]
    assert scores.margin[:2].tolist() == [-1.0, 0.0] and scores.margin[2].isnan()
    assert scores.n_correct_per_partition.tolist() == [2, 0]
    everyone = score_examples(x, y, fits, n_classes=2)
    assert everyone.n_correct.tolist() == [1, 1, 1] and everyone.n_held_out.tolist() == [2, 2, 2]
    assert everyone.margin.tolist() == [-1.0, -0.5, -1.0]


def test_class_scores_by_hand():
    fits = hand_made([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    # x = 2 scores 2, 2, 1: the first of equal scores is predicted; x = 0 scores 0, 0, 1
    x, y = torch.tensor([[2.0], [2.0], [0.0]]), torch.tensor([0, 1, 2])
    scores = score_examples(x, y, fits, n_classes=3)
    assert scores.n_correct.tolist() == [1, 0, 1] and scores.margin.tolist() == [0.0, 0.0, 1.0]


def test_choice_scores_by_hand():
    fits = hand_made([[1.0, 0.0]], [[-1.0, 0.0]])
    x, y = torch.tensor([[1.0], [4.0], [2.0], [0.0], [5.0]]), torch.tensor([1, 1])
    scores = score_examples(x, y, fits, n_classes=0, offsets=torch.tensor([0, 2, 5]), block_rows=1)
    assert scores.n_correct.tolist() == [1, 1] and scores.margin.tolist() == [0.0, -1.5]
    together = score_examples(x, y, fits, n_classes=0, offsets=torch.tensor([0, 2, 5]))
    assert together.margin.tolist() == [0.0, -1.5]


def test_no_examples_to_score():
    scores = score_examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64), hand_made([[1.0, 0.0]]), n_classes=2)
    assert scores.margin.shape == (0,) and scores.n_correct_per_partition.tolist() == [0]


def test_features_are_not_changed():
    rng = np.random.default_rng(18)
    x, y = draw(rng, 80, 3, 3)
    before = x.copy()
    fit(x, y, np.ones((2, 80), bool), n_classes=3)
    assert (x == before).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((10, 2))}, "float64"),
        ({"y": np.arange(10) % 3}, "from 0 to 2"),
        ({"masks": np.ones((2, 9), bool)}, r"masks \(2, 9\)"),
        ({"masks": np.arange(20).reshape(2, 10) < 10}, "subset 1 is empty"),
        ({"y": np.zeros(9, np.int64), "masks": np.ones((2, 9), bool)}, "one row per example"),
        ({"offsets": np.arange(11)[::-1].copy()}, "rising offsets"),
        ({"tolerance": 0.0}, "tolerance 0.0"),
    ],
)
def test_what_does_not_fit_together_is_told(change, message):
    arguments = {"x": np.zeros((10, 2), np.float32), "y": np.arange(10) % 2, "masks": np.ones((2, 10), bool)}
    with pytest.raises(ValueError, match=message):
        fit(**(arguments | change))
