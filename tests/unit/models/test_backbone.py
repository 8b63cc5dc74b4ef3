from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from advsets.errors import UserError
from advsets.models import backbone
from advsets.models.checkpoint import load_checkpoint
from advsets.models.classifier import Classifier, new_classifier

NAMES = ("bad", "good")


def _new(kit, folder, **row):
    return new_classifier(kit.model_row(**row), folder, backbone.load_config(folder), "sequence_classification", NAMES)


def _without(folder, target, part):
    """Copy of a model whose weights lack every key with `part` in it."""
    shutil.copytree(folder, target)
    weights = load_file(target / "model.safetensors")
    kept = {key: tensor for key, tensor in weights.items() if part not in key}
    assert len(kept) < len(weights)
    save_file(kept, target / "model.safetensors", metadata={"format": "pt"})
    return target


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_missing_backbone_weight_is_an_error(kit, miniature, tmp_path, pooling):
    folder = _without(miniature("bert"), tmp_path / "m", "layer.1.output.dense.weight")
    with pytest.raises(
        UserError, match=r"1 weights outside the task head are missing.*layer.1.output.dense.weight"
    ) as error:
        _new(kit, folder, pooling=pooling)
    assert "\n" not in str(error.value)


def test_a_weight_of_another_shape_is_an_error(kit, miniature, tmp_path):
    shutil.copytree(miniature("bert"), tmp_path / "m")
    kit.edit_json(tmp_path / "m" / "config.json", vocab_size=99)
    with pytest.raises(UserError, match="word_embeddings.weight"):
        _new(kit, tmp_path / "m")


def test_a_missing_pooler_belongs_to_the_head(kit, miniature, tmp_path):
    folder = _without(miniature("bert"), tmp_path / "m", "pooler")
    whole, without = _new(kit, miniature("bert")), _new(kit, folder)
    for key, tensor in whole.network.base_model.encoder.state_dict().items():
        assert without.network.base_model.encoder.state_dict()[key].equal(tensor)


def test_a_missing_layer_that_is_cut_away_is_none(kit, miniature, tmp_path, capfd):
    folder = _without(miniature("bert"), tmp_path / "m", "encoder.layer.1.")
    assert len(_new(kit, folder, n_layers=1).network.bert.encoder.layer) == 1
    with pytest.raises(UserError, match="16 weights outside the task head"):
        _new(kit, folder)
    assert capfd.readouterr().err == ""  # no load report, no progress bar


def test_the_pooler_of_a_cut_model_starts_fresh(kit, miniature):
    stored = load_file(miniature("bert") / "model.safetensors")["pooler.dense.weight"]
    assert _new(kit, miniature("bert")).network.bert.pooler.dense.weight.equal(stored)
    assert not _new(kit, miniature("bert"), n_layers=1).network.bert.pooler.dense.weight.equal(stored)


def test_random_start_takes_overrides_and_no_weights(kit, miniature, tmp_path):
    shutil.copytree(miniature("bert"), tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    made = _new(kit, tmp_path / "m", random_init=True, config_overrides={"hidden_size": 16, "num_hidden_layers": 1})
    assert (made.n_features, len(made.network.bert.encoder.layer)) == (16, 1)


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "deberta"])
def test_layers_are_cut_from_above(kit, miniature, kind):
    whole, cut = _new(kit, miniature(kind)), _new(kit, miniature(kind), n_layers=1)
    kept = cut.network.base_model.encoder.state_dict()
    assert kept and all(
        tensor.equal(whole.network.base_model.encoder.state_dict()[key]) for key, tensor in kept.items()
    )
    assert not any("layer.1." in key for key in kept)


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("bert", {"n_layers": 3}, "n_layers 3: the model has 2 layers; allowed: 0 to 2"),
        ("bart", {"n_layers": 1, "pooling": "last"}, "n_layers 1: BartConfig has an encoder and a decoder"),
        ("bart", {}, "pooling 'first': the first token of BartConfig's decoder sees no text; allowed: last, mean"),
        ("t5", {"pooling": "last"}, "T5Model makes no decoder input of the text"),
        ("gpt2", {}, "pooling 'first': the first token of GPT2Config's decoder sees no text"),
        ("bert", {"n_layers": 0}, "pooling 'first' with n_layers: 0 is the same vector for every text; allowed: mean"),
        ("bert", {"config_overrides": {"hidden_size": 8}}, "config_overrides with random_init: false"),
        ("bert", {"config_overrides": {"hiden_size": 8}, "random_init": True}, "'hiden_size' is no key of BertConfig"),
    ],
)
def test_rows_that_ask_for_the_impossible_are_told(kit, miniature, kind, row, message):
    with pytest.raises(UserError, match=message) as error:
        _new(kit, miniature(kind), **row)
    assert str(error.value).startswith("models: mini: ")


def _odd(kind):
    """Configurations of classes that cannot be cut like the miniatures of the other tests."""
    import transformers as t

    sizes = {"vocab_size": 20, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48}
    match kind:
        case "modernbert":
            marks = {f"{name}_token_id": 2 for name in ("bos", "eos", "cls", "sep")}
            return t.ModernBertConfig(**sizes, **marks, num_hidden_layers=2, pad_token_id=0)
        case "funnel":
            layers = {"block_sizes": [2, 2], "block_repeats": [1, 1], "num_decoder_layers": 1}
            heads = {"d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 48}
            return t.FunnelConfig(vocab_size=20, architectures=["FunnelModel"], **layers, **heads)
        case "longformer":
            return t.LongformerConfig(**sizes, num_hidden_layers=2, attention_window=[4, 4])
        case "canine":
            return t.CanineConfig(**sizes, num_hidden_layers=2)
    raise ValueError(kind)


NO_NETWORK = [
    ("modernbert", {"n_layers": 0}, "n_layers 0, config_overrides {}: no network can be made of this ModernBertConfig"),
    ("modernbert", {"n_layers": 0, "random_init": True}, "no network can be made of this ModernBertConfig"),
    ("funnel", {"n_layers": 1}, "does not support the setting of `num_hidden_layers`. Please set `block_sizes`"),
    ("longformer", {"n_layers": 1}, "should equal `config.num_hidden_layers`"),
    ("canine", {"n_layers": 0}, "no network can be made of this CanineConfig (`get_input_embeddings` not"),
    ("bert", {"config_overrides": {"hidden_size": "x"}}, "Field 'hidden_size' expected int, got str"),
    (
        "bert",
        {"config_overrides": {"hidden_size": 33}},
        "{'hidden_size': 33}: no network can be made of this BertConfig",
    ),
    ("bert", {"config_overrides": {"num_attention_heads": 0}}, "no network can be made of this BertConfig"),
    ("electra", {"config_overrides": {"hidden_size": 33}}, "mat1 and mat2 shapes cannot be multiplied"),
]


@pytest.mark.parametrize(("kind", "row", "message"), NO_NETWORK)
def test_networks_that_cannot_be_made_are_told(kit, miniature, tmp_path, kind, row, message):
    import transformers as t

    folder = tmp_path / "m"
    if kind in ("bert", "electra"):
        folder, row = miniature(kind), {"random_init": True, **row}
    else:
        t.AutoModel.from_config(_odd(kind)).save_pretrained(folder)
        assert _new(kit, folder, pooling="mean").n_features == 32
    with pytest.raises(UserError) as error:
        _new(kit, folder, pooling="mean", **row)
    text = str(error.value)
    assert text.startswith("models: mini: n_layers ") and message in text and text.endswith("; change or remove them")
    assert "\n" not in text


def test_config_that_makes_no_network_is_told(kit, miniature, tuned, tmp_path):
    for name, source in (("m", miniature("bert")), ("c", tuned)):
        shutil.copytree(source, tmp_path / name)
        kit.edit_json(tmp_path / name / "config.json", hidden_size=33)
    with pytest.raises(UserError, match=r"models: mini: .*BertConfig \(.*\); mend config.json of its source"):
        _new(kit, tmp_path / "m")
    with pytest.raises(UserError, match="c/config.json: no network can be made of this BertConfig"):
        load_checkpoint(tmp_path / "c", torch.device("cpu"))


def test_trying_a_network_out_draws_nothing(kit, miniature, monkeypatch):
    tried = []
    monkeypatch.setattr(Classifier, "scores", lambda self, inputs: tried.append(torch.rand(1)))
    torch.manual_seed(3)
    _new(kit, miniature("bert"), random_init=True, config_overrides={"num_hidden_layers": 2})
    after = torch.get_rng_state()
    torch.manual_seed(3)
    _new(kit, miniature("bert"), random_init=True)
    assert len(tried) == 1 and torch.get_rng_state().equal(after)


def test_broken_weights_are_told(kit, miniature, tmp_path):
    shutil.copytree(miniature("bert"), tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(UserError, match="weights cannot be loaded"):
        _new(kit, tmp_path / "m")


def test_broken_folders_are_told(kit, miniature, tmp_path):
    with pytest.raises(UserError, match="no config.json"):
        backbone.load_config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no-such-type"}))
    with pytest.raises(UserError, match="transformers cannot use it"):
        backbone.load_config(tmp_path)
    with pytest.raises(UserError, match="no usable tokenizer"):
        backbone.load_tokenizer(tmp_path)


@pytest.mark.parametrize(("kind", "longest"), [("bert", 64), ("roberta", 63), ("deberta", None), ("bart", 64)])
def test_longest_input(kit, miniature, kind, longest):
    pooling = "last" if kind == "bart" else "first"
    assert backbone.longest_input(_new(kit, miniature(kind), pooling=pooling).network) == longest
