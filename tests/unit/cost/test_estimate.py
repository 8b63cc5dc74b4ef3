"""Hours of a plan: measured, scaled or assumed, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advsets.cost.estimate import benchmark_seconds, estimate
from advsets.cost.job import Job
from advsets.cost.report import HEAD, cost_lines

HEADER = "s\th:m:s\tmax_rss\n"


def predict(model: str = "plain", seed: int = 0, *, to_run: bool = True, gpus: int = 1, dataset: str = "pairs") -> Job:
    wildcards = {"dataset": dataset, "evaluated_model": model, "seed": str(seed)}
    return Job("predict", wildcards, f"predict/{dataset}/{model}/seed{seed}.tsv", gpus, 2, to_run)


def finish(root: Path, job: Job, *seconds: float) -> Job:
    path = root / str(job.benchmark)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + "".join(f"{s}\t0:00:01\t100\n" for s in seconds), encoding="utf-8")
    return job


def test_assumed_seconds(config: dict[str, Any], tmp_path: Path) -> None:
    # 10 to start, 8e11 operations at 10 TFLOP/s x 0.5, 0.4 GB at 100 MB/s
    stage = estimate(config, [predict(seed=s) for s in range(3)], tmp_path).stages["predict"]
    assert stage.gpu_s == pytest.approx(3 * (10 + 0.16 + 4)) and stage.cpu_s == 0
    assert (stage.n_jobs, stage.disk, dict(stage.sources)) == (3, 3 * 4400, {"assumed": 3})
    # two devices halve the operations' time and count twice
    stage = estimate(config, [predict(gpus=2)], tmp_path).stages["predict"]
    assert stage.gpu_s == pytest.approx(2 * (10 + 0.08 + 4))
    # without a device: two threads of 10 GFLOP/s
    stage = estimate(config, [predict(gpus=0)], tmp_path).stages["predict"]
    assert stage.cpu_s == pytest.approx(2 * (10 + 40 + 4)) and stage.gpu_s == 0


def test_training_in_16_bits_has_its_own_rate(config: dict[str, Any], tmp_path: Path) -> None:
    def job(model: str) -> Job:
        wildcards = {"dataset": "pairs", "role": "adversary", "model": model, "seed": "0"}
        return Job("fine_tune", wildcards, None, 1, 2, True)

    found = estimate(config, [job("plain")], tmp_path).stages["fine_tune"]
    assert found.gpu_s == pytest.approx(10 + 1.68e13 / 5e13) and found.scratch == 1.6e9
    assert estimate(config, [job("shared")], tmp_path).total.gpu_s == pytest.approx(10 + 0.56e13 / 5e12)


def test_a_step_on_a_gpu_takes_a_least_time(config: dict[str, Any], tmp_path: Path) -> None:
    config["cost"]["step_s"] = 0.1
    wildcards = {"dataset": "pairs", "role": "adversary", "model": "plain", "seed": "0"}
    # 450 rows in batches of 16, three times: 87 steps
    assert estimate(config, [Job("fine_tune", wildcards, None, 1, 2, True)], tmp_path).total.gpu_s == pytest.approx(
        18.7
    )
    on_cpu = estimate(config, [Job("fine_tune", wildcards, None, 0, 2, True)], tmp_path).total
    assert on_cpu.cpu_s == pytest.approx(2 * (10 + 1.68e13 / 2e10))


def test_filtering_has_its_own_rate_on_a_cpu(config: dict[str, Any], tmp_path: Path) -> None:
    chain = {"dataset": "pairs", "adversary": "plain", "seed": "0", "node": "001"}
    config["cost"]["filter_gflops"] = 1e-4
    # 856,000 operations on two threads of 1e5 a second, and 14,000 bytes read
    found = estimate(config, [Job("filter_rounds", chain, None, 0, 2, True)], tmp_path).total
    assert found.cpu_s == pytest.approx(2 * (10 + 4.28 + 0.00014))


def test_measured_seconds_of_the_same_data_set_and_model(config: dict[str, Any], tmp_path: Path) -> None:
    done = [
        finish(tmp_path, predict(seed=1, to_run=False), 30, 50),
        finish(tmp_path, predict(seed=2, to_run=False), 20),
    ]
    stage = estimate(config, [*done, predict(seed=0)], tmp_path).stages["predict"]
    assert (stage.n_jobs, stage.gpu_s, dict(stage.sources)) == (1, 30.0, {"measured": 1})


def test_other_finished_jobs_of_the_rule_scale_the_assumption(config: dict[str, Any], tmp_path: Path) -> None:
    # assumed 10 + 4.16; it took 10 + 8.32, so that twice as much is expected of the others beyond their start
    done = finish(tmp_path, predict(to_run=False), 18.32)
    stage = estimate(config, [done, predict("shared")], tmp_path).stages["predict"]
    assert stage.gpu_s == pytest.approx(10 + 2 * (0.16 + 0.4))
    assert dict(stage.sources) == {"scaled": 1}


def test_a_job_that_is_to_run_again_tells_no_rate(config: dict[str, Any], tmp_path: Path) -> None:
    again = finish(tmp_path, predict(), 1000)
    assert dict(estimate(config, [again], tmp_path).total.sources) == {"assumed": 1}


def test_rules_without_sizes_take_a_constant_until_one_is_measured(config: dict[str, Any], tmp_path: Path) -> None:
    def draw(figure: str, to_run: bool) -> Job:
        return Job(f"draw_{figure}", {}, f"figure/{figure}.tsv", 0, 1, to_run)

    assert estimate(config, [draw("a", True), draw("b", True)], tmp_path).stages["figures"].cpu_s == 14
    done = finish(tmp_path, draw("c", False), 21)
    stage = estimate(config, [done, draw("a", True)], tmp_path).stages["figures"]
    assert (stage.cpu_s, dict(stage.sources)) == (pytest.approx(21), {"scaled": 1})


def test_what_has_no_size_is_named_and_not_counted(config: dict[str, Any], tmp_path: Path) -> None:
    jobs = [predict("unknown_size"), predict(dataset="unknown"), predict()]
    found = estimate(config, jobs, tmp_path)
    assert found.unsized == ["data set unknown", "model unknown_size"]
    assert found.total.gpu_s == pytest.approx(14.16)
    assert dict(found.total.sources) == {"assumed": 1, "unknown": 2}
    done = finish(tmp_path, predict("unknown_size", seed=1, to_run=False), 40)
    found = estimate(config, [*jobs, done], tmp_path)
    assert found.total.gpu_s >= 40 and dict(found.total.sources)["measured"] == 1


@pytest.mark.parametrize("text", ["", "s\th:m:s\n", "a\tb\n1\t2\n", "s\nfast\n"])
def test_benchmarks_that_tell_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.tsv").write_text(text, encoding="utf-8")
    assert benchmark_seconds(tmp_path / "b.tsv") is None
    assert benchmark_seconds(tmp_path / "missing.tsv") is None


def test_lines(config: dict[str, Any], tmp_path: Path) -> None:
    jobs = [
        finish(tmp_path, predict(seed=1, to_run=False), 7200),
        predict(seed=0),
        predict("unknown_size"),
        Job("export_set", {"dataset": "pairs", "adversary": "plain"}, None, 0, 1, True),
    ]
    lines = cost_lines(config, estimate(config, jobs, tmp_path))
    assert lines[0] == f"{HEAD} (run tiny)"
    assert [line.split() for line in lines[1:5]] == [
        ["stage", "jobs", "GPU", "hours", "CPU", "hours", "disk", "GB", "rates"],
        ["predict", "2", "2.0", "0", "0.00", "1", "measured,", "1", "unknown"],
        ["export_set", "1", "0", "0.00", "0", "1", "assumed"],
        ["total", "3", "2.0", "0.00", "0.00", "1", "assumed,", "1", "measured,", "1", "unknown"],
    ]
    assert lines[5].startswith(
        "Assumed: GPU 100 TFLOP/s in 16 bits and 10 in 32, 50% of it used, a training step no shorter than 0.001 s;"
    )
    assert lines[6] == "Longest job: predict pairs plain 0, 2.0 h."
    assert lines[7] == "Not counted, as their size is not known yet: model unknown_size (row keys: cost)."
