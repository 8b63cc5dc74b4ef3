from __future__ import annotations

import json
import shutil

import numpy as np
import polars as pl
import pytest

from advsets.errors import UserError
from advsets.io import read_table


def _permuted(checkpoint, target, names):
    """Copy of a checkpoint with its outputs, weights and names alike, in the reverse order."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(checkpoint, target)
    weights = load_file(target / "model.safetensors")
    for key in ("classifier.weight", "classifier.bias"):
        weights[key] = weights[key].flip(0).contiguous()
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((target / "config.json").read_text())
    config["id2label"] = {str(k): name for k, name in enumerate(names)}
    config["label2id"] = {name: k for k, name in enumerate(names)}
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_probabilities_are_those_of_a_plain_call(kit, tuned, tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    examples = kit.sentences(6)
    kit.predict(tuned, examples, tmp_path / "p.parquet")
    found = read_table(tmp_path / "p.parquet", "predictions")
    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(tuned).eval(),
        AutoTokenizer.from_pretrained(tuned),
    )
    with torch.inference_mode():
        direct = [model(**tokenizer(t, return_tensors="pt")).logits[0].softmax(0) for t in examples["text_a"]]
    probabilities = np.stack(found["probabilities"].to_numpy())
    assert np.allclose(probabilities, torch.stack(direct).numpy(), atol=1e-6)
    assert found["predicted_label"].to_list() == [["bad", "good"][p.argmax()] for p in probabilities]


def test_permuted_outputs_give_the_same_scores(kit, tuned, tmp_path):
    other = _permuted(tuned, tmp_path / "other", ["good", "bad"])
    plain = kit.predict(tuned, kit.sentences(30), tmp_path / "a.parquet")
    assert kit.predict(other, kit.sentences(30), tmp_path / "b.parquet").equals(plain)


def test_a_checkpoint_made_elsewhere_is_mapped_by_name_whatever_the_case(kit, tuned, tmp_path):
    other = _permuted(tuned, tmp_path / "other", ["GOOD", "BAD"])
    (other / "advsets.json").unlink()
    plain = kit.predict(tuned, kit.sentences(30), tmp_path / "a.parquet")
    mapped = kit.predict(other, kit.sentences(30), tmp_path / "b.parquet", label_order=("bad", "good"))
    assert mapped.equals(plain)
    with pytest.raises(UserError, match="label order is unknown; give the data set's label_order"):
        kit.predict(other, kit.sentences(30), tmp_path / "c.parquet")


def test_outputs_without_names_are_told(kit, tuned, tmp_path):
    other = _permuted(tuned, tmp_path / "other", ["LABEL_0", "LABEL_1"])
    (other / "advsets.json").unlink()
    with pytest.raises(
        UserError, match="outputs are named LABEL_0, LABEL_1; allowed: bad, good; the outputs have no names"
    ):
        kit.predict(other, kit.sentences(3), tmp_path / "p.parquet", label_order=("bad", "good"))


def test_labels_of_another_task_are_told(kit, tuned, tmp_path):
    with pytest.raises(UserError, match="outputs are named bad, good; allowed: no, yes; rename"):
        kit.predict(tuned, kit.sentences(3), tmp_path / "p.parquet", label_order=("no", "yes"))


def test_contradicting_label_maps_are_told(kit, tuned, tmp_path):
    shutil.copytree(tuned, tmp_path / "other")
    kit.edit_json(tmp_path / "other" / "config.json", label2id={"good": 0, "bad": 1})
    with pytest.raises(UserError, match="id2label and label2id disagree"):
        kit.predict(tmp_path / "other", kit.sentences(3), tmp_path / "p.parquet")


def test_multiple_choice_learns_and_candidates_are_interchangeable(kit, chooser, tmp_path):
    examples = kit.choices(60)
    plain = kit.predict(chooser, examples, tmp_path / "a.parquet")
    assert (plain["predicted_label"] == examples["label"]).mean() > 0.9
    turned = examples.with_columns(pl.col("candidates").list.reverse())
    mirrored = kit.predict(chooser, turned, tmp_path / "b.parquet")
    for straight, mirror, answers in zip(
        plain["probabilities"], mirrored["probabilities"].list.reverse(), examples["candidates"], strict=True
    ):
        assert len(straight) == len(answers)
        assert straight.sum() == pytest.approx(1)
        assert np.allclose(straight, mirror, atol=1e-6)


def test_a_checkpoint_without_its_head_is_told(kit, chooser, tmp_path):
    shutil.copytree(chooser, tmp_path / "other")
    (tmp_path / "other" / "head.safetensors").unlink()
    with pytest.raises(UserError, match="head.safetensors: no such file; fine-tune the model again"):
        kit.predict(tmp_path / "other", kit.choices(3), tmp_path / "p.parquet")
