"""From questions to a checkpoint to answers."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
import torch

from advsets.answers import exact_match
from advsets.errors import UserError
from advsets.io import read_table
from advsets.models import inference
from advsets.models.batching import collate
from advsets.models.qa.finetune import Spans
from advsets.models.qa.reader import load_reader
from advsets.models.qa.spans import mark_gold
from advsets.models.qa.windows import WindowSettings, cut_windows

KINDS = ("bert", "roberta", "albert", "bart", "electra", "deberta", "deberta-v2")


def _digest(checkpoint):
    return json.loads((checkpoint / "advsets.json").read_text())["weights_sha256"]


def test_it_learns_a_trivial_task_and_describes_itself(readers, reader, tmp_path):
    table = readers.questions(60, seed=1)
    readers.predict(reader, table, tmp_path / "p.parquet")
    found = read_table(tmp_path / "p.parquet", "answer_predictions")
    assert readers.score(found, table) > 0.9
    assert (found["best_answers"].list.first() == found["predicted_answer"]).all()
    assert (found["best_logits"].list.first() == found["logit"]).all()
    for logits in found["best_logits"]:
        assert logits.is_sorted(descending=True)
    description = json.loads((reader / "advsets.json").read_text())
    assert (description["task"], description["dataset"], description["head"]) == ("extractive_qa", "made_up", "advsets")
    assert (description["n_train"], description["n_selection"]) == (96, 24)
    log = read_table(reader.parent / "training_log.parquet", "training_log")
    assert log["selection_accuracy"].drop_nulls().max() > 0.9
    assert not (reader.parent / "work").exists()


def test_an_answer_in_a_late_window_is_found(readers, reader, tmp_path, capsys):
    table = readers.questions(40, before=80, seed=2)
    found = readers.predict(reader, table, tmp_path / "p.parquet")
    assert "40 questions in" in (told := capsys.readouterr().err)
    assert int(told.split("40 questions in ")[1].split()[0]) >= 160
    assert found["answer_start"].min() > 150
    assert readers.score(found, table) > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_learns_it(readers, tmp_path, kind):
    # BART's decoder sees a word only through its encoder, and must learn first where to look.
    n, settings = (400, {"epochs": 12, "learning_rate": 2e-3}) if kind == "bart" else (120, {})
    checkpoint = readers.tune(f"hub:{kind}", readers.questions(n), tmp_path, max_length=64, **settings)
    table = readers.questions(30, seed=1)
    assert readers.score(readers.predict(checkpoint, table, tmp_path / "p.parquet", max_length=64), table) > 0.8


@pytest.mark.parametrize(
    ("row", "settings"),
    [
        ({"n_layers": 1, "random_init": True}, {}),
        ({"n_layers": 0, "freeze": "backbone", "pooling": "mean"}, {"learning_rate": 5e-2}),
        (
            {"freeze": "embeddings", "pooling": "last"},
            {"gradient_checkpointing": True, "tokens_per_pass": 100, "epochs": 12},
        ),
    ],
)
def test_rows_of_the_models_table_are_heeded(readers, miniature, tmp_path, row, settings):
    checkpoint = readers.tune("bert", readers.questions(120), tmp_path, row=row, **settings)
    loaded = load_reader(checkpoint, torch.device("cpu")).classifier
    assert loaded.words_only == (row.get("n_layers") == 0)
    assert loaded.network.config.num_hidden_layers == row.get("n_layers", 2)
    start = load_start(miniature("bert"))
    kept = loaded.network.get_input_embeddings().weight.equal(start)
    assert kept == ("freeze" in row)
    table = readers.questions(30, seed=1)
    assert readers.score(readers.predict(checkpoint, table, tmp_path / "p.parquet"), table) > 0.8


def load_start(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]


def test_batches_and_the_order_of_rows_change_nothing(readers, reader, tmp_path):
    table = pl.concat([readers.questions(20, seed=3), readers.questions(20, before=50, seed=4)])
    table = table.with_columns(example_id=pl.Series([f"q{i:04d}" for i in range(40)]))
    one = readers.predict(reader, table, tmp_path / "a.parquet", tokens_per_batch=1)
    many = readers.predict(reader, table.reverse(), tmp_path / "b.parquet", tokens_per_batch=10**6)
    exact = ["example_id", "predicted_answer", "answer_start", "best_answers"]
    assert one.select(exact).equals(many.select(exact))
    assert np.allclose(np.concatenate(one["best_logits"]), np.concatenate(many["best_logits"]), atol=1e-4)
    assert (tmp_path / "a.parquet").read_bytes() == _again(readers, reader, table, tmp_path, tokens_per_batch=1)


def _again(readers, reader, table, folder, **settings):
    readers.predict(reader, table.sample(fraction=1, shuffle=True, seed=5), folder / "again.parquet", **settings)
    return (folder / "again.parquet").read_bytes()


def test_the_order_of_rows_and_test_rows_play_no_part_and_the_seed_does(readers, tmp_path):
    train = readers.questions(40)
    tested = readers.questions(12, seed=9).with_columns(
        split=pl.lit("test"), example_id=pl.concat_str(pl.lit("t"), "example_id")
    )
    runs = {"plain": (train, 0), "turned": (pl.concat([tested, train.reverse()]), 0), "seeded": (train, 1)}
    digests = {
        name: _digest(readers.tune("bert", table, tmp_path / name, seed=seed, epochs=1))
        for name, (table, seed) in runs.items()
    }
    assert digests["plain"] == digests["turned"] != digests["seeded"]


def test_validation_rows_choose_the_checkpoint_by_exact_match(readers, tmp_path):
    train = readers.questions(48).with_columns(split=pl.Series(["train"] * 32 + ["validation"] * 16))
    checkpoint = readers.tune("bert", train, tmp_path, epochs=3)
    description = json.loads((checkpoint / "advsets.json").read_text())
    assert (description["n_train"], description["n_selection"]) == (32, 16)
    chosen = train.filter(pl.col("split") == "validation")
    found = readers.predict(checkpoint, chosen, tmp_path / "p.parquet")
    share = np.mean([exact_match(a, g) for a, g in zip(found["predicted_answer"], chosen["answers"], strict=True)])
    log = read_table(tmp_path / "training_log.parquet", "training_log")
    assert log["selection_accuracy"].max() == share > 0


def test_a_slice_that_chooses_is_of_whole_passages(readers, tmp_path):
    checkpoint = readers.tune("bert", readers.questions(40), tmp_path, epochs=1, selection_share=0.15)
    assert json.loads((checkpoint / "advsets.json").read_text())["n_selection"] == 8  # 6 wanted, 4 a passage


def test_questions_that_cannot_be_learned_are_left_out_and_counted(readers, tmp_path, capsys):
    table = readers.questions(40)
    answers, starts = table["answers"].to_list(), table["answer_starts"].to_list()
    starts[0], starts[1] = [-1], [-1]
    starts[2], answers[2] = [-1, *starts[2]], ["elsewhere", *answers[2]]  # the second has a place
    long = readers.questions(1, before=80)["context"][0]
    contexts = [*table["context"][:-1], long]
    starts[-1], answers[-1] = [0], [long]  # no window of 32 tokens holds it
    table = readers.questions_frame(contexts, answers, starts)
    checkpoint = readers.tune("bert", table, tmp_path, epochs=1)
    told = capsys.readouterr().err
    assert "made_up: 2 of 40 training questions left out: their answers have no place" in told
    assert "made_up: 1 of 38 training questions left out: no window holds their answer" in told
    description = json.loads((checkpoint / "advsets.json").read_text())
    assert description["n_train"] + description["n_selection"] == 37
    with pytest.raises(UserError, match="made_up: no training question whose answer stands in a window"):
        readers.tune("bert", table[:2], tmp_path / "none")


def test_the_loss_is_one_softmax_over_the_passage_in_all_windows(readers, reader):
    loaded = load_reader(reader, torch.device("cpu"))
    table = pl.concat([readers.questions(2, before=40, seed=6), readers.questions(3, seed=7)])
    table = table.with_columns(example_id=pl.Series([f"q{i}" for i in range(5)]))
    settings = WindowSettings(window_stride=20, max_answer_tokens=8, n_best=1)
    windows = cut_windows(table, loaded.tokenizer, 24, settings, "mini")
    pairs = zip(table["answers"], table["answer_starts"], strict=True)
    gold = mark_gold(windows, [(s[0], s[0] + len(a[0])) for a, s in pairs])
    marked = [int(sum(gold.begins[a:b].sum() for a, b in windows.bounds(row))) for row in range(5)]
    assert max(marked) > 1 and gold.held.all()
    spans = Spans(windows, gold, table["context"].to_list(), table["answers"].to_list(), settings)
    batch = collate(windows.data, np.array([3, 0, 4, 1]), "cpu")
    scores = loaded.classifier.scores(batch.inputs).double()
    losses, sequence = [], 0
    for row in batch.rows:
        total = {0: 0.0, 1: 0.0}
        right = {0: 0.0, 1: 0.0}
        for start, stop in windows.bounds(int(row)):
            for token in range(start, stop):
                if windows.places[token] >= 0:
                    for side, mark in ((0, gold.begins), (1, gold.ends)):
                        value = float(scores[sequence, token - start, side].exp())
                        total[side] += value
                        right[side] += value if mark[token] else 0.0
            sequence += 1
        losses.append(-sum(np.log(right[side] / total[side]) for side in (0, 1)) / 2)
    assert float(spans.loss(scores, batch)) == pytest.approx(np.mean(losses), rel=1e-9)
    assert spans.outcome(scores, batch)[1] == pytest.approx(np.sum(losses), rel=1e-9)


def test_finished_shards_of_answers_are_kept(readers, reader, tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "SHARD_ROWS", 8)
    table, write = readers.questions(30, seed=8), inference._write_shard

    def stops(shard, path, name):
        if path.name == "000002.parquet":
            raise KeyboardInterrupt
        write(shard, path, name)

    monkeypatch.setattr(inference, "_write_shard", stops)
    with pytest.raises(KeyboardInterrupt):
        readers.predict(reader, table, tmp_path / "p.parquet")
    written = []
    monkeypatch.setattr(inference, "_write_shard", lambda *args: (written.append(args[1].name), write(*args)))
    resumed = readers.predict(reader, table, tmp_path / "p.parquet")
    assert written == ["000002.parquet", "000003.parquet"]
    assert [path.name for path in tmp_path.iterdir()] == ["p.parquet"]
    assert resumed.equals(readers.predict(reader, table, tmp_path / "whole.parquet"))


def test_empty_tables_and_empty_passages_are_answered_with_nothing(readers, reader, tmp_path):
    assert readers.predict(reader, readers.questions(0), tmp_path / "none.parquet").height == 0
    table = readers.questions_frame([" ", "the old coat"], [["x"], ["coat"]], [[-1], [8]])
    found = readers.predict(reader, table, tmp_path / "p.parquet")
    assert found.row(0, named=True) == {
        "example_id": "q0000", "predicted_answer": "", "answer_start": -1, "logit": None,
        "best_answers": [], "best_logits": [],
    }  # fmt: skip
    assert found["answer_start"][1] >= 0


def test_checkpoints_of_another_task_are_told(readers, reader, kit, tuned, tmp_path):
    with pytest.raises(UserError, match="task 'sequence_classification'; allowed here: extractive_qa; use"):
        readers.predict(tuned, readers.questions(3), tmp_path / "p.parquet")
    with pytest.raises(UserError, match="task 'extractive_qa'; allowed here: sequence_classification, multiple_choice"):
        kit.predict(reader, kit.sentences(3), tmp_path / "p.parquet")
    with pytest.raises(UserError, match="max_length 65; allowed: up to 64"):
        readers.predict(reader, readers.questions(3), tmp_path / "p.parquet", max_length=65)
