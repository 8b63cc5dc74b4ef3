from __future__ import annotations

import pytest
import torch
import transformers as t

from advsets.models.first_token import CLASSES, keep_first_token

SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "initializer_range": 0.2,
}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
EXTRA = {"deberta": RELATIVE, "deberta-v2": RELATIVE | {"conv_kernel_size": 3, "conv_act": "gelu"}}


def _network(kind: str, n_layers: int, auto=t.AutoModelForSequenceClassification):
    torch.manual_seed(2)
    config = t.AutoConfig.for_model(kind, **SIZES, **EXTRA.get(kind, {}), num_hidden_layers=n_layers)
    return auto.from_config(config).eval()


def _inputs() -> dict[str, torch.Tensor]:
    mask = torch.tensor([[1] * 9, [1] * 4 + [0] * 5])
    return {"input_ids": torch.randint(5, 30, (2, 9)) * mask + (1 - mask), "attention_mask": mask}


@pytest.mark.parametrize("kind", CLASSES)
def test_scores_and_gradients_of_each_class_are_those_of_the_whole_layer(kind):
    whole, cut = _network(kind, 2), _network(kind, 2)
    assert keep_first_token(cut)
    inputs, found = _inputs(), {}
    for name, network in (("whole", whole), ("cut", cut)):
        scores = network(**inputs).logits
        scores.logsumexp(1).sum().backward()
        found[name] = scores
    assert torch.allclose(found["cut"], found["whole"], atol=1e-6)
    for (name, wanted), parameter in zip(whole.named_parameters(), cut.parameters(), strict=True):
        assert torch.allclose(parameter.grad, wanted.grad, atol=1e-5), name


@pytest.mark.parametrize("kind", CLASSES)
def test_the_last_layer_is_one_token_long(kind):
    network = _network(kind, 2, t.AutoModel)
    wanted = network(**(inputs := _inputs())).last_hidden_state
    keep_first_token(network)
    found = network(**inputs).last_hidden_state
    assert found.shape == (2, 1, 16)
    assert torch.allclose(found, wanted[:, :1], atol=1e-6)


@pytest.mark.parametrize(("kind", "n_layers"), [("bert", 0), ("deberta-v2", 1)])
def test_a_network_that_needs_every_token_is_left_alone(kind, n_layers):
    network = _network(kind, n_layers)
    assert not keep_first_token(network)
    assert network(**_inputs()).logits.shape == (2, 2)


def test_an_unknown_class_is_left_alone():
    assert not keep_first_token(t.DistilBertModel(t.DistilBertConfig(vocab_size=9, dim=8, n_heads=2, hidden_dim=8)))
