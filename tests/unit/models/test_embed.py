from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import polars as pl
import pytest
import torch

from advsets.errors import UserError
from advsets.io import read_table
from advsets.models import inference


def _matrix(frame):
    return np.stack(frame["embedding"].to_numpy())


def test_embedding_is_the_last_layer_of_the_first_token(kit, tuned, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    examples = kit.sentences(5)
    found = kit.embed(tuned, examples, tmp_path / "e.parquet")
    model, tokenizer = AutoModel.from_pretrained(tuned).eval(), AutoTokenizer.from_pretrained(tuned)
    with torch.inference_mode():
        direct = [model(**tokenizer(t, return_tensors="pt")).last_hidden_state[0, 0] for t in examples["text_a"]]
    assert np.allclose(_matrix(found), torch.stack(direct).numpy(), atol=1e-6)


def test_bart_gives_the_decoders_last_token(kit, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    checkpoint = kit.tune(
        "bart", kit.sentences(32), tmp_path, pooling="last", settings=dataclasses.replace(kit.FINE_TUNE, epochs=1)
    )
    examples = kit.sentences(4)
    found = kit.embed(checkpoint, examples, tmp_path / "e.parquet")
    model, tokenizer = AutoModel.from_pretrained(checkpoint).eval(), AutoTokenizer.from_pretrained(checkpoint)
    with torch.inference_mode():
        direct = [model(**tokenizer(t, return_tensors="pt")).last_hidden_state[0, -1] for t in examples["text_a"]]
    assert np.allclose(_matrix(found), torch.stack(direct).numpy(), atol=1e-6)


def test_word_embeddings_are_averaged(kit, miniature, tmp_path):
    from transformers import AutoModel

    row = {
        "n_layers": 0,
        "freeze": "backbone",
        "pooling": "mean",
        "settings": dataclasses.replace(kit.FINE_TUNE, epochs=1),
    }
    checkpoint = kit.tune("deberta", kit.sentences(32), tmp_path, **row)
    found = kit.embed(checkpoint, kit.examples_frame(["soup lamp"], ["good"]), tmp_path / "e.parquet")
    words = AutoModel.from_pretrained(miniature("deberta")).get_input_embeddings().weight
    wanted = words[[2, 5, 5 + 6, 3]].mean(0).detach().numpy()  # [CLS] soup lamp [SEP]
    assert np.allclose(_matrix(found)[0], wanted, atol=1e-7)


@pytest.mark.parametrize("fixture", ["tuned", "chooser"])
def test_batches_of_any_size_give_equal_vectors(kit, fixture, request, tmp_path):
    checkpoint = request.getfixturevalue(fixture)
    examples = kit.sentences(64) if fixture == "tuned" else kit.choices(64)
    results = []
    for name, budget in (("one", 1), ("seven", 7 * 12), ("all", 10**6)):
        frame = kit.embed(checkpoint, examples, tmp_path / f"{name}.parquet", tokens_per_batch=budget)
        column = frame[frame.columns[-1]]
        results.append(np.stack((column.explode() if fixture == "chooser" else column).to_numpy()))
    assert np.abs(results[0] - results[1]).max() < 1e-5
    assert np.abs(results[0] - results[2]).max() < 1e-5


def test_a_text_beside_one_ten_times_longer_has_the_same_vector(kit, tuned, tmp_path):
    texts = ["lovely soup", " ".join(["rather lovely soup"] * 10)]
    alone = kit.embed(tuned, kit.examples_frame(texts[:1], ["good"]), tmp_path / "a.parquet")
    beside = kit.embed(tuned, kit.examples_frame(texts, ["good"] * 2), tmp_path / "b.parquet")
    assert np.abs(_matrix(alone)[0] - _matrix(beside)[0]).max() < 1e-5


def test_rows_are_sorted_and_whatever_order_they_came_in(kit, tuned, tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "SHARD_ROWS", 16)
    examples = kit.sentences(40)
    kit.embed(tuned, examples, tmp_path / "a.parquet")
    kit.embed(tuned, examples.sample(fraction=1, shuffle=True, seed=1), tmp_path / "b.parquet")
    a, b = (read_table(tmp_path / f"{name}.parquet", "embeddings") for name in "ab")
    assert a["example_id"].to_list() == examples["example_id"].to_list()
    assert a.equals(b)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_candidate_vectors_have_one_per_candidate(kit, chooser, tmp_path):
    kit.embed(chooser, kit.choices(6), tmp_path / "e.parquet", dtype="float16")
    frame = read_table(tmp_path / "e.parquet", "candidate_embeddings")
    assert frame["candidates"].list.len().to_list() == [2, 3, 4, 2, 3, 4]
    assert frame.schema["candidates"] == pl.List(pl.Array(pl.Float16(), 32))


def test_no_examples_give_an_empty_table(kit, tuned, tmp_path):
    kit.embed(tuned, kit.sentences(0), tmp_path / "e.parquet")
    assert read_table(tmp_path / "e.parquet", "embeddings").height == 0


def _with_infinite_word(tuned, target):
    """Copy of a checkpoint whose vector of the rare word is infinite."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(tuned, target)
    weights = load_file(target / "model.safetensors")
    weights["bert.embeddings.word_embeddings.weight"][4] = torch.inf
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    return target


def test_values_that_are_not_finite_stop_with_the_ids(kit, tuned, tmp_path):
    checkpoint = _with_infinite_word(tuned, tmp_path / "checkpoint")
    examples = kit.sentences(20).with_columns(
        text_a=pl.when(pl.col("example_id").is_in(["e00003", "e00011"]))
        .then(pl.lit(f"soup {kit.RARE}"))
        .otherwise("text_a")
    )
    for run in (kit.embed, kit.predict):
        with pytest.raises(UserError, match="not finite for example_id e00003, e00011;"):
            run(checkpoint, examples, tmp_path / "e.parquet")
        assert not (tmp_path / "e.parquet").exists()


def test_another_tokenizer_is_another_key(kit, tuned, tmp_path, monkeypatch):
    """Shards left by a killed run are not taken over when the tokenizer has changed since."""
    monkeypatch.setattr(inference, "SHARD_ROWS", 8)
    monkeypatch.setattr(inference, "_join", lambda paths, out: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        kit.embed(tuned, kit.sentences(16), tmp_path / "e.parquet")
    (left,) = tmp_path.glob(".e.parquet.*.parts")
    monkeypatch.undo()
    monkeypatch.setattr(inference, "SHARD_ROWS", 8)
    other = tmp_path / "other"
    shutil.copytree(tuned, other)
    text = (other / "tokenizer.json").read_text()
    (other / "tokenizer.json").write_text(
        text.replace('"lovely"', '"swap"').replace('"awful"', '"lovely"').replace('"swap"', '"awful"')
    )
    changed = kit.embed(other, kit.sentences(16), tmp_path / "e.parquet")
    assert not left.exists()
    assert not changed.equals(kit.embed(tuned, kit.sentences(16), tmp_path / "f.parquet"))
