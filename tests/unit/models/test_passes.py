"""Gradients of a batch in several passes, and of layers computed twice, are those of the whole batch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from advsets.errors import UserError
from advsets.models.backbone import load_tokenizer
from advsets.models.batching import tokenise
from advsets.models.passes import cut_passes

KINDS = ("bert", "roberta", "albert", "bart", "electra", "deberta", "deberta-v2")
NO_DROPOUT = {
    "random_init": True,
    "config_overrides": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
}


class _Stopped(Exception):
    pass


@pytest.fixture
def first_step(kit, tmp_path, monkeypatch):
    """Gradients of the first step of a fine-tuning run, and how often a linear layer was computed in it."""

    def run(kind, *, task="sequence_classification", row=None, **settings):
        gradients, calls, forward = [], [], torch.nn.Linear.forward

        def stop(parameters, limit):
            gradients.extend(p.grad for p in parameters if p.grad is not None)
            raise _Stopped

        def counted(self, values):
            calls.extend([1] * torch.is_grad_enabled())
            return forward(self, values)

        with monkeypatch.context() as patched, pytest.raises(_Stopped):
            patched.setattr(torch.nn.utils, "clip_grad_norm_", stop)
            patched.setattr(torch.nn.Linear, "forward", counted)
            kit.tune(
                kind,
                kit.choices(60) if task == "multiple_choice" else kit.sentences(60),
                tmp_path,
                dataset=kit.dataset_row(task),
                settings=dataclasses.replace(kit.FINE_TUNE, **settings),
                **(row or {}),
            )
        return gradients, len(calls)

    return run


def _differ(found, wanted):
    """Largest difference of two lists of gradients, by the largest gradient."""
    assert len(found) == len(wanted) > 10
    scale = max(float(gradient.abs().max()) for gradient in wanted)
    return max(float((a - b).abs().max()) for a, b in zip(found, wanted, strict=True)) / scale


@pytest.mark.parametrize("task", ["sequence_classification", "multiple_choice"])
@pytest.mark.parametrize("n_tokens", [1, 40])
def test_passes_add_up_to_the_batch(first_step, task, n_tokens):
    whole, n_calls = first_step("bert", task=task, row=NO_DROPOUT)
    parts, n_calls_of_parts = first_step("bert", task=task, row=NO_DROPOUT, tokens_per_pass=n_tokens)
    assert n_calls_of_parts == 8 * n_calls if n_tokens == 1 else n_calls < n_calls_of_parts < 8 * n_calls
    assert _differ(parts, whole) < 1e-5


def test_passes_draw_dropout_of_their_own(first_step):
    whole, _ = first_step("bert")
    parts, _ = first_step("bert", tokens_per_pass=1)
    again, _ = first_step("bert", tokens_per_pass=1)
    assert _differ(parts, again) == 0
    assert _differ(parts, whole) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_layers_computed_twice_give_the_same_gradient_with_dropout(first_step, kind):
    row = {"pooling": "last"} if kind == "bart" else {}
    plain, n_calls = first_step(f"hub:{kind}", row=row)
    twice, n_calls_twice = first_step(f"hub:{kind}", row=row, gradient_checkpointing=True)
    assert n_calls_twice > 1.4 * n_calls
    assert _differ(twice, plain) < 1e-5


def test_a_class_without_layers_to_compute_again_is_told(kit, tmp_path, monkeypatch):
    import transformers as t

    monkeypatch.setattr(t.BertPreTrainedModel, "supports_gradient_checkpointing", False)
    settings = dataclasses.replace(kit.FINE_TUNE, gradient_checkpointing=True)
    with pytest.raises(
        UserError, match="BertForSequenceClassification cannot compute its layers again; allowed: false"
    ):
        kit.tune("bert", kit.sentences(20), tmp_path, settings=settings)


@pytest.fixture(scope="module")
def data(kit, miniature):
    return tokenise(kit.choices(50), load_tokenizer(miniature("bert")), "multiple_choice", 32)


@pytest.mark.parametrize(("n_tokens", "n_examples"), [(None, 50), (None, 7), (60, 50), (60, 2), (1, 50)])
def test_passes_cover_the_batch_in_its_order_within_their_limits(data, n_tokens, n_examples):
    batch = np.random.default_rng(0).permutation(50)
    passes = cut_passes(data, batch, n_tokens, n_examples)
    assert np.concatenate([p.rows for p in passes]).tolist() == batch.tolist()
    assert [p.start for p in passes] == np.cumsum([0, *(len(p.rows) for p in passes)])[:-1].tolist()
    for part in passes:
        padded = data.lengths[part.rows].max() * data.counts[part.rows].sum()
        assert len(part.rows) == 1 or (len(part.rows) <= n_examples and padded <= (n_tokens or padded))
    if n_tokens == 60:  # none could have taken the first example of the next
        for part, after in zip(passes, passes[1:], strict=False):
            rows = [*part.rows, after.rows[0]]
            assert len(part.rows) == n_examples or data.lengths[rows].max() * data.counts[rows].sum() > n_tokens


def test_memory_settings_do_not_part_a_killed_run_from_its_state(kit, tmp_path, monkeypatch, capsys):
    from advsets.models import training

    steps, step = [], training._step

    def killed(*arguments):
        if len(steps) == 9:
            raise KeyboardInterrupt
        steps.append(arguments)
        return step(*arguments)

    monkeypatch.setattr(training, "_step", killed)
    with pytest.raises(KeyboardInterrupt):
        kit.tune("bert", kit.sentences(60), tmp_path)
    monkeypatch.undo()
    settings = dataclasses.replace(kit.FINE_TUNE, tokens_per_pass=64, gradient_checkpointing=True)
    kit.tune("bert", kit.sentences(60), tmp_path, settings=settings)
    assert "going on after step 7 of 24" in capsys.readouterr().err
