from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from advsets.models.dropout import drop_out, light_dropout

CPU = torch.device("cpu")


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_asked_share_is_dropped_and_the_mean_stays(rate):
    torch.manual_seed(3)
    found = drop_out(torch.ones(400_001), rate)
    kept = found[found != 0]
    assert (found == 0).double().mean().item() == pytest.approx(rate, abs=4e-3)
    assert kept.unique().numel() == 1
    assert kept[0].item() == pytest.approx(1 / (1 - rate), rel=1e-4)


def test_neighbours_from_one_draw_are_dropped_independently():
    torch.manual_seed(4)
    dropped = (drop_out(torch.ones(400_000), 0.5) == 0).double().view(-1, 4)
    correlations = torch.corrcoef(dropped.T) - torch.eye(4)
    assert correlations.abs().max() < 0.015
    assert dropped.mean(0).tolist() == pytest.approx([0.5] * 4, abs=8e-3)


def test_gradients_flow_through_what_is_kept():
    torch.manual_seed(5)
    values = torch.randn(1000, requires_grad=True)
    found = drop_out(values, 0.25)
    found.sum().backward()
    assert torch.allclose(values.grad * values, found)


def test_everything_or_nothing_can_be_dropped():
    values = torch.randn(7)
    assert drop_out(values, 1.0).eq(0).all()
    with light_dropout(CPU):
        assert functional.dropout(values, 0.0) is values
        assert functional.dropout(values, 0.9, training=False) is values
        assert nn.Dropout(0.9).eval()(values).equal(values)


def test_equal_seeds_give_equal_masks_on_any_number_of_threads():
    masks, before = [], torch.get_num_threads()
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        torch.manual_seed(6)
        masks.append(drop_out(torch.ones(50_003), 0.1))
    torch.set_num_threads(before)
    assert masks[0].equal(masks[1])


def test_modules_of_torch_use_it_inside_the_context_only(monkeypatch):
    calls = []
    monkeypatch.setattr("advsets.models.dropout.drop_out", lambda values, rate: calls.append(rate) or values)
    module = nn.Dropout(0.3).train()
    module(torch.ones(3))
    with light_dropout(CPU):
        module(torch.ones(3))
        functional.scaled_dot_product_attention(*torch.randn(3, 1, 1, 4, 8), dropout_p=0.2)
    module(torch.ones(3))
    assert calls == [0.3, 0.2]


@pytest.mark.parametrize("mask", ["none", "bool", "float"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_is_torchs_but_for_the_draws(monkeypatch, mask, scale):
    monkeypatch.setattr("advsets.models.dropout.drop_out", lambda values, rate: values)
    torch.manual_seed(8)
    query, key, value = torch.randn(3, 2, 3, 5, 8)
    seen = torch.rand(2, 1, 5, 5) > 0.3
    seen[..., 0] = True
    masks = {"none": None, "bool": seen, "float": torch.where(seen, 0.0, -1e4)}
    with light_dropout(CPU):
        found = functional.scaled_dot_product_attention(query, key, value, masks[mask], dropout_p=0.5, scale=scale)
    wanted = functional.scaled_dot_product_attention(query, key, value, masks[mask], scale=scale)
    assert torch.allclose(found, wanted, atol=1e-6)


def test_causal_attention_is_left_to_torch():
    torch.manual_seed(9)
    query, key, value = torch.randn(3, 1, 2, 4, 8)
    with light_dropout(CPU):
        torch.manual_seed(1)
        found = functional.scaled_dot_product_attention(query, key, value, dropout_p=0.5, is_causal=True)
    torch.manual_seed(1)
    wanted = functional.scaled_dot_product_attention(query, key, value, dropout_p=0.5, is_causal=True)
    assert found.equal(wanted)
