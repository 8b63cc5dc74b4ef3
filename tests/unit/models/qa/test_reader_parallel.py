"""Two processes on two CPU devices read passages like one."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import polars as pl

from advsets.models import inference
from advsets.models.parallel import run_on
from advsets.models.qa.finetune import fine_tune_questions
from advsets.models.qa.predict import predict_questions


def test_two_processes_learn_like_one(readers, kit, tmp_path):
    """Long passages among short ones, passes so small that one process makes the same, a last step of one question."""
    short, long = readers.questions(51), readers.questions(30, before=40, seed=1)
    table = pl.concat([short, long]).with_columns(
        example_id=pl.Series([f"q{i:04d}" for i in range(81)]), passage_id=pl.Series([f"p{i:03d}" for i in range(81)])
    )
    settings = dataclasses.replace(kit.FINE_TUNE, epochs=2, tokens_per_pass=36)
    job = (kit.model_row(), kit.model_json("bert"), "made_up", table, settings, readers.WINDOWS)
    places = {
        name: {"out": tmp_path / name / "c", "log": tmp_path / name / "log.parquet", "work": tmp_path / name / "w"}
        for name in ("one", "two")
    }
    fine_tune_questions(*job, **places["one"], seed=3, device="cpu")
    run_on(["cpu", "cpu"], fine_tune_questions, *job, **places["two"], seed=3)
    about = json.loads((places["one"]["out"] / "advsets.json").read_text())
    assert about["n_train"] % settings.batch_size == 1
    one, two = (pl.read_parquet(places[name]["log"]).drop("duration_s") for name in ("one", "two"))
    assert one["selection_accuracy"].equals(two["selection_accuracy"])
    assert np.allclose(one["loss"], two["loss"], rtol=1e-4)
    answers = [readers.predict(places[name]["out"], table, tmp_path / f"{name}.parquet") for name in ("one", "two")]
    assert (answers[0]["predicted_answer"] == answers[1]["predicted_answer"]).mean() > 0.97
    assert np.allclose(answers[0]["logit"], answers[1]["logit"], atol=1e-2)


def test_two_processes_answer_every_question_once(readers, kit, reader, tmp_path):
    n = 2 * inference.SHARD_ROWS + 7
    table = readers.questions(n, seed=6)
    run_on(["cpu", "cpu"], predict_questions, reader, table, tmp_path / "two.parquet", kit.INFERENCE, readers.WINDOWS)
    readers.predict(reader, table, tmp_path / "one.parquet")
    assert (tmp_path / "two.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()
    assert pl.read_parquet(tmp_path / "two.parquet")["example_id"].equals(table["example_id"])
