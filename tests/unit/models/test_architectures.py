"""Every class of the study on a miniature with the hub's files and its own tokenizer, from text to table."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil

import numpy as np
import polars as pl
import pytest
import torch

from advsets.models import finetune, inference
from advsets.models.backbone import load_tokenizer

KINDS = ("bert", "roberta", "albert", "bart", "electra", "deberta", "deberta-v2")
TOKENIZERS = {
    "bert": ("BertTokenizer", "[CLS]", "[SEP]"),
    "electra": ("BertTokenizer", "[CLS]", "[SEP]"),
    "roberta": ("RobertaTokenizer", "<s>", "</s>"),
    "bart": ("RobertaTokenizer", "<s>", "</s>"),
    "albert": ("AlbertTokenizer", "[CLS]", "[SEP]"),
    "deberta": ("DebertaTokenizer", "[CLS]", "[SEP]"),
    "deberta-v2": ("DebertaV2Tokenizer", "[CLS]", "[SEP]"),
}
TEXTS = ["Then a LOVELY soup!", "the old captain's kettle, rather dreary", "caf\u00e9 cafe\u0301 \u2014 zyzzyva"]


def _row(kind):
    return {"pooling": "last"} if kind == "bart" else {}


@pytest.fixture(scope="module")
def checkpoints(kit, tmp_path_factory):
    """Checkpoint per class, fine-tuned on sentences; do not change it."""
    made = {}

    def build(kind):
        if kind not in made:
            out = tmp_path_factory.mktemp(kind)
            made[kind] = kit.tune(f"hub:{kind}", kit.sentences(96), out, **_row(kind))
        return made[kind]

    return build


def _accuracy(predictions, examples):
    return (predictions.sort("example_id")["predicted_label"] == examples.sort("example_id")["label"]).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_a_trivial_task(kit, checkpoints, tmp_path, kind):
    checkpoint = checkpoints(kind)
    head = json.loads((checkpoint / "advsets.json").read_text())["head"]
    assert head == ("advsets" if kind == "bart" else "transformers")
    assert _accuracy(kit.predict(checkpoint, kit.sentences(40), tmp_path / "p.parquet"), kit.sentences(40)) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_it_chooses_among_candidates_by_the_same_own_head(kit, tmp_path, kind):
    dataset = kit.dataset_row("multiple_choice")
    settings = dataclasses.replace(kit.FINE_TUNE, epochs=6)
    checkpoint = kit.tune(f"hub:{kind}", kit.choices(90), tmp_path, dataset=dataset, settings=settings, **_row(kind))
    assert json.loads((checkpoint / "advsets.json").read_text())["head"] == "advsets"
    examples = kit.choices(40)
    plain = kit.predict(checkpoint, examples, tmp_path / "a.parquet")
    assert _accuracy(plain, examples) > 0.9
    turned = examples.with_columns(pl.col("candidates").list.reverse())
    mirrored = kit.predict(checkpoint, turned, tmp_path / "b.parquet")["probabilities"].list.reverse()
    for straight, mirror in zip(plain["probabilities"], mirrored, strict=True):
        assert np.allclose(straight, mirror, atol=1e-5)
    vectors = kit.embed(checkpoint, examples, tmp_path / "e.parquet")
    assert vectors["candidates"].list.len().to_list() == examples["candidates"].list.len().to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_the_classs_own_and_stay_so_in_the_checkpoint(miniature, checkpoints, kind):
    name, first, last = TOKENIZERS[kind]
    source, saved = load_tokenizer(miniature(f"hub:{kind}")), load_tokenizer(checkpoints(kind))
    assert type(source).__name__ == type(saved).__name__ == name and source.is_fast
    assert json.loads((checkpoints(kind) / "advsets.json").read_text())["tokenizer"]["class"] == name
    for text in TEXTS:
        assert source(text)["input_ids"] == saved(text)["input_ids"]
        pair = source(text, "so they say")
        assert pair["input_ids"] == saved(text, "so they say")["input_ids"]
        tokens = source.convert_ids_to_tokens(pair["input_ids"])
        assert (tokens[0], tokens[-1]) == (first, last) and tokens.count(last) >= 2
    known = source(TEXTS[0].lower())["input_ids"]
    assert source.unk_token_id not in known and len(known) > 5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bart"])
def test_the_representation_is_the_last_layer_at_the_first_token(kit, checkpoints, tmp_path, kind):
    from transformers import AutoModel, AutoTokenizer

    examples = kit.sentences(5)
    found = np.stack(kit.embed(checkpoints(kind), examples, tmp_path / "e.parquet")["embedding"].to_numpy())
    model = AutoModel.from_pretrained(checkpoints(kind)).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoints(kind))
    layers = {k: [] for k in (-1, -2)}
    with torch.inference_mode():
        for text in examples["text_a"]:
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
            assert len(states) == 3  # embeddings and two layers
            for k, vectors in layers.items():
                vectors.append(states[k][0, 0].numpy())
    assert np.allclose(found, np.stack(layers[-1]), atol=1e-5)
    assert not np.allclose(found, np.stack(layers[-2]), atol=1e-2)


def test_the_representation_of_bart_is_its_decoders_state_at_the_end_of_the_text(kit, checkpoints, tmp_path):
    """The state that transformers' own classification head reads, of a decoder that was given the text."""
    from transformers import AutoTokenizer, BartForSequenceClassification

    checkpoint = checkpoints("bart")
    examples = kit.sentences(4).with_columns(text_b=pl.lit("so they say"))
    found = np.stack(kit.embed(checkpoint, examples, tmp_path / "e.parquet")["embedding"].to_numpy())
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = BartForSequenceClassification.from_pretrained(checkpoint, ignore_mismatched_sizes=True).eval()
    read = []
    model.classification_head.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0][0].numpy()))
    direct = []
    with torch.inference_mode():
        for a, b in zip(examples["text_a"], examples["text_b"], strict=True):
            inputs = tokenizer(a, b, return_tensors="pt")
            model(**inputs)
            shifted = torch.cat([torch.tensor([[2]]), inputs["input_ids"][:, :-1]], 1)
            output = model.model(**inputs, decoder_input_ids=shifted, output_hidden_states=True)
            assert inputs["input_ids"][0, -1] == tokenizer.eos_token_id
            direct.append(output.decoder_hidden_states[-1][0, -1].numpy())
    assert np.allclose(found, np.stack(read), atol=1e-5)
    assert np.allclose(found, np.stack(direct), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_in_a_batch_change_nothing(kit, checkpoints, tmp_path, kind):
    examples = kit.sentences(24)
    alone, together = (
        np.stack(
            kit.embed(checkpoints(kind), examples, tmp_path / f"{n}.parquet", tokens_per_batch=n)[
                "embedding"
            ].to_numpy()
        )
        for n in (1, 10**6)
    )
    assert np.abs(alone - together).max() < 1e-5


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, torch.bfloat16) for kind in KINDS] + [(kind, torch.float16) for kind in ("deberta", "deberta-v2")],
)
def test_it_learns_in_half_precision(kit, tmp_path, monkeypatch, kind, dtype):
    monkeypatch.setattr(finetune, "half_dtype", lambda *_, **__: dtype)
    checkpoint = kit.tune(f"hub:{kind}", kit.sentences(96), tmp_path, **_row(kind))
    assert _accuracy(kit.predict(checkpoint, kit.sentences(40), tmp_path / "p.parquet"), kit.sentences(40)) > 0.9


@pytest.mark.parametrize("kind", ["deberta", "deberta-v2"])
def test_values_that_float16_cannot_hold_are_computed_again(kit, checkpoints, tmp_path, monkeypatch, capsys, kind):
    """A layer whose inner values pass 65,504 gives infinities in float16; its output is ordinary in float32."""
    from safetensors.torch import load_file, save_file

    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoints(kind), checkpoint)
    weights = load_file(checkpoint / "model.safetensors")
    (name,) = (key for key in weights if key.endswith("encoder.layer.0.intermediate.dense.weight"))
    weights[name] *= 1e5
    save_file(weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
    exact = kit.embed(checkpoint, kit.sentences(6), tmp_path / "a.parquet")
    capsys.readouterr()
    monkeypatch.setattr(inference, "half_dtype", lambda *_, **__: torch.float16)
    found = kit.embed(checkpoint, kit.sentences(6), tmp_path / "b.parquet")
    assert re.search(r"not finite in torch.float16 for e0000\d.*: computed again in float32", capsys.readouterr().err)
    assert found.equals(exact)
