"""Training and evaluation sets of collections in the estimate, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.cost.estimate import estimate
from advsets.cost.job import Job
from advsets.cost.report import cost_lines
from advsets.cost.sizes import model_size
from advsets.cost.texts import TextsSize, evaluation_size, training_size
from advsets.cost.work import Work, work_of

NOWHERE = Path("nowhere")


def tune(training_set: str, model: str = "plain", collection: str = "sentences", seed: int = 0) -> Job:
    wildcards = {"collection": collection, "training_set": training_set, "model": model, "seed": str(seed)}
    name = f"tune/{training_set}/{model}/{seed}.tsv"
    return Job("fine_tune_collected", wildcards, name, 1, 2, True)


def predict(training_set: str, dataset: str, model: str = "plain", collection: str = "sentences") -> Job:
    wildcards = {**tune(training_set, model, collection).wildcards, "dataset": dataset}
    return Job("predict_collected", wildcards, f"predict/{training_set}/{dataset}/{model}.tsv", 1, 2, True)


def work(config: dict[str, Any], job: Job) -> Work | None:
    collection, training_set, model = (job.wildcards[key] for key in ("collection", "training_set", "model"))
    tuned = job.rule == "fine_tune_collected"
    size = (
        training_size(config, collection, training_set, NOWHERE)
        if tuned
        else evaluation_size(config, job.wildcards["dataset"], NOWHERE)
    )
    return work_of(job, config, size, model_size(config, model))


def write_rows(path: Path, *, train: int = 0, validation: int = 0, test: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"split": ["train"] * train + ["validation"] * validation + ["test"] * test}).write_parquet(path)


def test_training_sets_have_the_rows_of_their_data_sets(collected_config: dict[str, Any]) -> None:
    # 1,000 of 20 tokens and 500 of 35: 37,500 tokens in 1,500 rows
    assert training_size(collected_config, "sentences", "both", NOWHERE) == TextsSize(1500, 0, 25.0, None)
    # 351 and 350 of them
    size = training_size(collected_config, "sentences", "equal", NOWHERE)
    assert size is not None and size.rows == 701 and size.tokens == pytest.approx((351 * 20 + 350 * 35) / 701)
    assert training_size(collected_config, "sentences", "not_known", NOWHERE) is None
    assert training_size(collected_config, "quiz", "asked", NOWHERE) == TextsSize(300, 0, 160.0, 20)
    # half of the 40 evaluation questions choose the checkpoint
    assert training_size(collected_config, "quiz", "halved", NOWHERE) == TextsSize(400, 20, 170.0, 20)


def test_limits_of_the_split_count_in_collections(collected_config: dict[str, Any]) -> None:
    collected_config["split"] |= {"max_train": 300, "max_evaluation": 30}
    assert training_size(collected_config, "sentences", "both", NOWHERE) == TextsSize(600, 0, 27.5, None)
    assert evaluation_size(collected_config, "pairs", NOWHERE) == TextsSize(30, 0, 20.0, None)


def test_evaluation_needs_no_training_rows(collected_config: dict[str, Any]) -> None:
    assert evaluation_size(collected_config, "only_evaluated", NOWHERE) == TextsSize(50, 0, 100.0, 20)
    assert evaluation_size(collected_config, "halved", NOWHERE) == TextsSize(20, 0, 200.0, 20)
    assert evaluation_size(collected_config, "unknown", NOWHERE) is None


def test_tables_that_are_made_go_before_the_rows(collected_config: dict[str, Any], tmp_path: Path) -> None:
    run = tmp_path / "results" / "small"
    write_rows(run / "data/unknown/train.parquet", train=40)
    write_rows(run / "data/pairs/train.parquet", train=8)
    size = training_size(collected_config, "sentences", "not_known", tmp_path)
    assert size is not None and size.rows == 48
    write_rows(run / "collected/sentences/training/not_known/train.parquet", train=45)
    size = training_size(collected_config, "sentences", "not_known", tmp_path)
    assert size is not None and (size.rows, size.selection) == (45, 0)
    write_rows(run / "questions/halved/evaluation.parquet", validation=7, test=9)
    size = training_size(collected_config, "quiz", "halved", tmp_path)
    assert size is not None and (size.rows, size.selection) == (400, 7)
    assert evaluation_size(collected_config, "halved", tmp_path) == TextsSize(9, 0, 200.0, 20)
    write_rows(run / "collected/quiz/training/halved/train.parquet", train=90, validation=6)
    size = training_size(collected_config, "quiz", "halved", tmp_path)
    assert size is not None and (size.rows, size.selection) == (90, 6)
    (run / "collected/quiz/training/halved/train.parquet").write_bytes(b"cut")
    size = training_size(collected_config, "quiz", "halved", tmp_path)
    assert size is not None and size.rows == 400


@pytest.mark.parametrize(
    ("tokens", "max_length", "expected"),
    [
        (60, 64, 60),
        # the question takes 16 of 64, windows share 20 of the other 48: further ones begin after 28 more
        (65, 64, 65 + 36),
        (92, 64, 92 + 36),
        (93, 64, 93 + 2 * 36),
        # a question keeps half of 20 at most, windows share half of the other 10
        (26, 20, 26 + 2 * 15),
    ],
)
def test_windows_of_a_long_passage(tokens: int, max_length: int, expected: int) -> None:
    assert TextsSize(1, 0, tokens, 20).tokens_of(max_length) == expected
    assert TextsSize(1, 0, tokens, None).tokens_of(max_length) == min(tokens, max_length)


def test_fine_tuning_on_training_sets(collected_config: dict[str, Any]) -> None:
    # 3 epochs x 25 tokens x 1e8 parameters x (6 x 1,350 trained + 2 x 150 selecting rows)
    found = work(collected_config, tune("both"))
    assert found == Work(flop=pytest.approx(6.3e13), half=True, steps=3 * 85, disk=4e8, scratch=1.6e9)
    # 400 questions learned, 20 select; 170 tokens in windows of 64: five, four of them with 36 tokens more
    found = work(collected_config, tune("halved", collection="quiz"))
    assert found is not None and found.steps == 3 * 40
    assert found.flop == pytest.approx(3 * (170 + 4 * 36) * 1e8 * (6 * 400 + 2 * 20))
    collected_config["fine_tune"]["max_train_examples"] = 100
    found = work(collected_config, tune("halved", collection="quiz"))
    assert found is not None and found.flop == pytest.approx(3 * 314 * 1e8 * (6 * 100 + 2 * 20))
    found = work(collected_config, tune("both"))
    assert found is not None and found.flop == pytest.approx(3 * 25 * 1e8 * (6 * 90 + 2 * 10))


def test_predicting_evaluation_sets(collected_config: dict[str, Any]) -> None:
    found = work(collected_config, predict("both", "hard_pairs", "shared"))
    assert found == Work(flop=2 * 90 * 35 * 1e8, half=False, read=4e7, disk=90 * 22)
    collected_config["question_answering"]["n_best"] = 5
    found = work(collected_config, predict("asked", "only_evaluated", collection="quiz"))
    # 100 tokens: two windows more than one of 64
    assert found == Work(flop=pytest.approx(2 * 50 * (100 + 2 * 36) * 1e8), half=False, read=4e8, disk=50 * 5 * 19)


def test_what_collections_do_not_tell_is_named(collected_config: dict[str, Any], tmp_path: Path) -> None:
    jobs = [
        tune("not_known"),
        tune("both", "unknown_size"),
        predict("both", "unknown"),
        Job("fetch_model", {"model": "unknown_size"}, None, 0, 1, True),
    ]
    found = estimate(collected_config, jobs, tmp_path)
    assert found.unsized == ["data set unknown", "model unknown_size"]
    assert dict(found.total.sources) == {"assumed": 1, "unknown": 3}
    assert found.total.gpu_s == 0


def test_collections_in_the_report(collected_config: dict[str, Any], tmp_path: Path) -> None:
    def short(rule: str, **wildcards: str) -> Job:
        return Job(rule, {"collection": "sentences", **wildcards}, None, 0, 1, True)

    jobs = [
        short("import_predictions", imported_model="m", dataset="pairs"),
        short("join_training_set", training_set="both"),
        tune("both"),
        tune("both", seed=1),
        predict("both", "pairs"),
        short("evaluate_collection"),
        short("question_statistics"),
        Job("write_cross_training", {}, None, 0, 1, True),
    ]
    lines = cost_lines(collected_config, estimate(collected_config, jobs, tmp_path))
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["fine_tune", "2"],
        ["predict", "1"],
        ["evaluate_collection", "5"],
        ["total", "8"],
    ]
    assert any(line.startswith("Longest job: predict_collected sentences both plain 0 pairs, ") for line in lines)


def test_seeds_of_a_training_set_tell_each_other_their_time(collected_config: dict[str, Any], tmp_path: Path) -> None:
    made = tune("both", seed=1)
    path = tmp_path / str(made.benchmark)
    path.parent.mkdir(parents=True)
    path.write_text("s\n500\n", encoding="utf-8")
    done = Job(made.rule, made.wildcards, made.benchmark, made.gpus, made.threads, False)
    stage = estimate(collected_config, [done, tune("both"), tune("equal")], tmp_path).stages["fine_tune"]
    assert dict(stage.sources) == {"measured": 1, "scaled": 1}
    # beyond their start of 10 s, in proportion to the rows learned and their tokens
    equal, both = (work(collected_config, tune(name)) for name in ("equal", "both"))
    assert equal is not None and both is not None
    assert stage.gpu_s == pytest.approx(500 + 10 + 490 * equal.flop / both.flop)
