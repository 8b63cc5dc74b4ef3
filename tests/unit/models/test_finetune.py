from __future__ import annotations

import dataclasses
import json

import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from advsets.errors import UserError
from advsets.io import read_table
from advsets.models import finetune
from advsets.models.training import learning_rate


def _accuracy(kit, checkpoint, examples, out):
    predicted = kit.predict(checkpoint, examples, out).sort("example_id")["predicted_label"]
    return (predicted == examples.sort("example_id")["label"]).mean()


@pytest.mark.parametrize("kind", ["roberta", "electra", "albert", "deberta"])
def test_encoder_classes_learn_a_trivial_task(kit, tmp_path, kind):
    checkpoint = kit.tune(kind, kit.sentences(96), tmp_path)
    assert json.loads((checkpoint / "advsets.json").read_text())["head"] == "transformers"
    assert _accuracy(kit, checkpoint, kit.sentences(40), tmp_path / "p.parquet") > 0.9


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("bart", {"pooling": "last"}),
        ("bert", {"pooling": "mean", "freeze": "embeddings"}),
        ("bert", {"pooling": "mean", "n_layers": 1, "random_init": True}),
        ("bert", {"pooling": "mean", "n_layers": 0, "freeze": "backbone"}),
        ("albert", {"pooling": "mean", "n_layers": 0, "freeze": "backbone"}),
    ],
)
def test_own_head_learns_a_trivial_task(kit, tmp_path, kind, row):
    settings = dataclasses.replace(kit.FINE_TUNE, learning_rate=2e-2 if row.get("freeze") == "backbone" else 3e-3)
    checkpoint = kit.tune(kind, kit.sentences(96), tmp_path, settings=settings, **row)
    assert json.loads((checkpoint / "advsets.json").read_text())["head"] == "advsets"
    assert _accuracy(kit, checkpoint, kit.sentences(40), tmp_path / "p.parquet") > 0.9


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_learns_too(kit, tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(finetune, "half_dtype", lambda *_, **__: dtype)
    checkpoint = kit.tune("bert", kit.sentences(96), tmp_path)
    weights = load_file(checkpoint / "model.safetensors").values()
    assert all(tensor.dtype == torch.float32 for tensor in weights)
    assert _accuracy(kit, checkpoint, kit.sentences(40), tmp_path / "p.parquet") > 0.9


def test_a_gradient_that_is_not_finite_stops_with_the_ids_of_its_batch(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(torch.nan))
    with pytest.raises(UserError, match="the gradient of step 1 is not finite; its batch: e000"):
        kit.tune("bert", kit.sentences(32), tmp_path)


def test_sentence_pairs_are_told_apart(kit, tmp_path):
    words = [kit.GOOD[0], kit.BAD[0]]
    pairs = [(a, b) for a in words for b in words] * 20
    frame = kit.examples_frame(
        [f"{a} soup" for a, _ in pairs],
        ["good" if b == words[0] else "bad" for _, b in pairs],
        text_b=[f"{b} soup" for _, b in pairs],
    )
    checkpoint = kit.tune("bert", frame, tmp_path)
    assert _accuracy(kit, checkpoint, frame, tmp_path / "p.parquet") == 1.0


def test_log_has_falling_loss_and_a_selection_accuracy_per_epoch(kit, tuned):
    log = read_table(tuned.parent / "training_log.parquet", "training_log")
    ends = log.filter(pl.col("selection_accuracy").is_not_null())
    assert ends["epoch"].to_list() == [1.0, 2.0, 3.0, 4.0]
    assert ends["selection_accuracy"].max() > 0.9
    assert log["loss"][-1] < log["loss"][0] / 2
    assert log["step"][-1] == 4 * 12  # 96 of 120 rows are trained on, 8 a step
    assert not (tuned.parent / "work").exists()


def test_checkpoint_describes_itself(kit, tuned):
    description = json.loads((tuned / "advsets.json").read_text())
    assert description["label_order"] == ["bad", "good"]
    assert set(description["tokenizer"]) == {"class", "tokenizers", "transformers"}
    assert (description["n_train"], description["n_selection"], description["seed"]) == (96, 24, 0)
    assert json.loads((tuned / "config.json").read_text())["id2label"] == {"0": "bad", "1": "good"}


def test_row_order_does_not_matter_and_the_seed_does(kit, tmp_path):
    settings = dataclasses.replace(kit.FINE_TUNE, epochs=1)
    train, digests = kit.sentences(48), []
    for name, frame, seed in (("a", train, 0), ("b", train.reverse(), 0), ("c", train, 1)):
        checkpoint = kit.tune("bert", frame, tmp_path / name, settings=settings, seed=seed)
        digests.append(json.loads((checkpoint / "advsets.json").read_text())["weights_sha256"])
    assert digests[0] == digests[1] != digests[2]


def test_frozen_embeddings_stay_as_they_are(kit, miniature, tmp_path):
    checkpoint = kit.tune("bert", kit.sentences(32), tmp_path, freeze="embeddings")
    before, after = load_file(miniature("bert") / "model.safetensors"), load_file(checkpoint / "model.safetensors")
    words, layer = "embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight"
    assert before[words].equal(after[f"bert.{words}"])
    assert not before[layer].equal(after[f"bert.{layer}"])


def test_learning_rate_rises_and_falls_to_zero(kit):
    settings = dataclasses.replace(kit.FINE_TUNE, learning_rate=1.0, warmup_share=0.2)
    rates = [learning_rate(step, 10, settings) for step in range(10)]
    assert rates == pytest.approx([0.5, 1.0, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": pl.lit("good")}, "all 40 training rows have label 'good'.*two classes"),
        ({"label": pl.lit("fine")}, "label 'fine' in the training rows; allowed: bad, good"),
        ({"group_id": pl.lit("g")}, "selection_share 0.2 takes all 40 training examples in 1 groups"),
        ({"example_id": pl.lit("same")}, "example_id 'same' occurs twice"),
    ],
)
def test_unusable_training_rows_are_told_in_one_line(kit, tmp_path, change, message):
    with pytest.raises(UserError, match=message) as error:
        kit.tune("bert", kit.sentences(40).with_columns(**change), tmp_path)
    assert "\n" not in str(error.value)


def test_empty_training_rows_are_told(kit, tmp_path):
    with pytest.raises(UserError, match="no training rows"):
        kit.tune("bert", kit.sentences(0), tmp_path)


def test_multiple_choice_label_beyond_the_candidates_is_told(kit, tmp_path):
    frame = kit.choices(12).with_columns(label=pl.lit("7"))
    with pytest.raises(UserError, match="'e00000' has label '7' and 2 candidates; allowed: 0 to 1"):
        kit.tune("bert", frame, tmp_path, dataset=kit.dataset_row("multiple_choice"))


def test_more_tokens_than_positions_are_told(kit, tmp_path):
    settings = dataclasses.replace(kit.FINE_TUNE, max_length=64)
    with pytest.raises(UserError, match="max_length 64; allowed: up to 63"):
        kit.tune("roberta", kit.sentences(32), tmp_path, settings=settings)
