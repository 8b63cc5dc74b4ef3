"""Hours and bytes of the jobs that a run still has to do.

Conventions
-----------
Seconds of a job, by the first of these that is known:
- measured: mean over finished jobs of the same rule, data set and model;
- scaled: by its work, at the rate of the finished jobs of the same rule, start-up taken off;
- assumed: start-up, work over the configured rate of the device (on a GPU no less than the configured time of
  each optimiser step), and reading; or, where a rule's work is not known in advance, a configured constant.
GPU hours count every GPU that a job holds, CPU hours every thread of a job that holds none.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advsets.config import all_models
from advsets.cost.job import Job
from advsets.cost.sizes import DatasetSize, ModelSize, dataset_size, model_size
from advsets.cost.texts import TextsSize, evaluation_size, training_size, unsized_parts
from advsets.cost.work import SIZED, Work, model_of, work_of
from advsets.variants import ensembles

MEASURED, SCALED, ASSUMED, UNKNOWN = "measured", "scaled", "assumed", "unknown"


@dataclass
class Stage:
    """Sums over the jobs of one stage."""

    n_jobs: int = 0
    gpu_s: float = 0.0
    cpu_s: float = 0.0
    disk: float = 0.0
    scratch: float = 0.0
    sources: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Estimate:
    """Sums by stage in the order of the last job of each, the longest job, and data sets and models of unknown size."""

    stages: dict[str, Stage]
    longest: tuple[float, Job] | None
    unsized: list[str]

    @property
    def total(self) -> Stage:
        stages = self.stages.values()
        return Stage(
            n_jobs=sum(s.n_jobs for s in stages),
            gpu_s=sum(s.gpu_s for s in stages),
            cpu_s=sum(s.cpu_s for s in stages),
            disk=sum(s.disk for s in stages),
            scratch=max((s.scratch for s in stages), default=0.0),
            sources=sum((s.sources for s in stages), Counter()),
        )


def estimate(config: dict[str, Any], jobs: Iterable[Job], root: Path = Path(".")) -> Estimate:
    """Cost of the jobs that are still to run; finished ones tell rates by their benchmark files."""
    jobs = list(jobs)
    works = _Works(config, root)
    rates = _Rates(config["cost"], jobs, works, root)
    stages: dict[str, Stage] = {}
    longest: tuple[float, Job] | None = None
    unsized: set[str] = set()
    for job in jobs:
        if not job.to_run:
            continue
        work, (seconds, source) = works.of(job), rates.seconds(job)
        stage = stages[job.stage] = stages.pop(job.stage, Stage())
        stage.n_jobs += 1
        stage.sources[source] += 1
        stage.gpu_s += seconds * job.gpus
        stage.cpu_s += 0 if job.gpus else seconds * job.threads
        if work is not None:
            stage.disk += work.disk
            stage.scratch = max(stage.scratch, work.scratch)
        if source == UNKNOWN:
            unsized |= works.unsized(job)
        elif longest is None or seconds > longest[0]:
            longest = (seconds, job)
    return Estimate(stages, longest, sorted(unsized))


class _Works:
    """Work of jobs, with the sizes of each data set, training set and model looked up once."""

    def __init__(self, config: dict[str, Any], root: Path) -> None:
        self._config, self._root = config, root
        self._data = {name: dataset_size(config, name, root) for name in config["dataset_rows"]}
        self._models = {name: model_size(config, name) for name in [*all_models(config), *ensembles(config)]}
        self._texts = {name: evaluation_size(config, name, root) for name in config["collected_rows"]["datasets"]}
        self._training = {
            (collection, name): training_size(config, collection, name, root)
            for collection, part in config["collections"].items()
            for name in part["training_sets"]
        }

    def of(self, job: Job) -> Work | None:
        return work_of(job, self._config, self._data_of(job), self._model_of(job))

    def unsized(self, job: Job) -> set[str]:
        """Data sets and model of a job, those whose size is not known."""
        names = set() if self._model_of(job) else {f"model {model_of(job)}"}
        if self._data_of(job) is not None:
            return names
        if job.rule != "fine_tune_collected":
            return names | {f"data set {job.wildcards['dataset']}"}
        parts = unsized_parts(self._config, job.wildcards["collection"], job.wildcards["training_set"], self._root)
        return names | {f"data set {name}" for name in parts}

    def _data_of(self, job: Job) -> DatasetSize | TextsSize | None:
        if job.rule == "fine_tune_collected":
            return self._training[job.wildcards["collection"], job.wildcards["training_set"]]
        sizes = self._texts if job.rule == "predict_collected" else self._data
        return sizes.get(job.wildcards.get("dataset", ""))

    def _model_of(self, job: Job) -> ModelSize | None:
        return self._models.get(model_of(job) or "")


class _Rates:
    """Seconds of jobs, by what is known of finished ones."""

    def __init__(self, cost: dict[str, Any], jobs: list[Job], works: _Works, root: Path) -> None:
        self._cost, self._works = cost, works
        by_kind: dict[tuple[str, ...], list[float]] = defaultdict(list)
        by_pace: dict[str, list[tuple[Job, float]]] = defaultdict(list)
        for job in jobs:
            seconds = None if job.to_run or job.benchmark is None else benchmark_seconds(root / job.benchmark)
            if seconds is not None:
                by_kind[job.kind].append(seconds)
                by_pace[job.pace].append((job, seconds))
        self._by_kind = {kind: sum(values) / len(values) for kind, values in by_kind.items()}
        self._scale = {pace: self._scale_of(found) for pace, found in by_pace.items()}

    def seconds(self, job: Job) -> tuple[float, str]:
        """Seconds of a job, and where they come from."""
        if job.kind in self._by_kind:
            return self._by_kind[job.kind], MEASURED
        assumed = self._assumed(job)
        if assumed is None:
            return 0.0, UNKNOWN
        scale, start = self._scale.get(job.pace), self._start(job)
        return (assumed, ASSUMED) if scale is None else (start + scale * (assumed - start), SCALED)

    def _scale_of(self, finished: list[tuple[Job, float]]) -> float | None:
        """Seconds that finished jobs took beyond their start, over those assumed for them."""
        taken = assumed = 0.0
        for job, seconds in finished:
            expected, start = self._assumed(job), self._start(job)
            if expected is not None:
                taken += max(0.0, seconds - start)
                assumed += expected - start
        return taken / assumed if assumed > 0 else None

    def _start(self, job: Job) -> float:
        return float(self._cost["job_start_s"]) if job.rule in SIZED else 0.0

    def _assumed(self, job: Job) -> float | None:
        cost, work = self._cost, self._works.of(job)
        if job.rule not in SIZED:
            return float(cost["other_job_s"])
        if work is None:
            return None
        if job.gpus:
            peak = cost["gpu_tflops"] if work.half else cost["gpu_float32_tflops"]
            computing = max(work.flop / (job.gpus * cost["utilisation"] * peak * 1e12), work.steps * cost["step_s"])
        else:
            rate = cost["filter_gflops"] if job.rule.startswith("filter_") else cost["cpu_gflops"]
            computing = work.flop / (job.threads * rate * 1e9)
        return float(self._start(job) + computing + work.read / (cost["read_mb_s"] * 1e6))


def benchmark_seconds(path: Path) -> float | None:
    """Wall clock of a benchmark file (mean over its lines); None if it is not there or holds none."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            seconds = [float(line["s"]) for line in csv.DictReader(file, delimiter="\t")]
    except (OSError, KeyError, TypeError, ValueError):
        return None
    return sum(seconds) / len(seconds) if seconds else None
