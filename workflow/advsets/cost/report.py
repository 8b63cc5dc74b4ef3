"""The estimate in lines for people."""

from __future__ import annotations

from typing import Any

from advsets.cost.estimate import Estimate, Stage
from advsets.cost.job import Job

HEAD = "Cost of what is to run"
_COLUMNS = ("stage", "jobs", "GPU hours", "CPU hours", "disk GB", "rates")


def cost_lines(config: dict[str, Any], found: Estimate) -> list[str]:
    """Table by stage, its sum, and what the figures rest on."""
    rows = [_COLUMNS, *(_row(name, stage) for name, stage in found.stages.items()), _row("total", found.total)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = [f"{HEAD} (run {config['run']})"]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 5)), row[5]]
        lines.append("  ".join(cells).rstrip())
    return [*lines, *_notes(config, found)]


def _row(name: str, stage: Stage) -> tuple[str, ...]:
    rates = ", ".join(f"{n:,} {source}" for source, n in sorted(stage.sources.items()))
    hours = [_number(seconds / 3600) for seconds in (stage.gpu_s, stage.cpu_s)]
    return (name, f"{stage.n_jobs:,}", *hours, _number(stage.disk / 1e9), rates)


def _notes(config: dict[str, Any], found: Estimate) -> list[str]:
    cost = config["cost"]
    notes = [
        f"Assumed: GPU {cost['gpu_tflops']:g} TFLOP/s in 16 bits and {cost['gpu_float32_tflops']:g} in 32,"
        f" {cost['utilisation']:.0%} of it used, a training step no shorter than {cost['step_s']:g} s;"
        f" CPU thread {cost['cpu_gflops']:g} GFLOP/s, {cost['filter_gflops']:g} where it filters;"
        " 6 operations per parameter and token to train, 2 to infer."
        " Measured rates replace these as jobs finish."
    ]
    if any(stage.n_jobs for name, stage in found.stages.items() if name == "filter_rounds"):
        notes.append("Filtering is counted as if each chain went on as long as its settings allow.")
    if found.longest is not None:
        seconds, job = found.longest
        notes.append(f"Longest job: {_job(job)}, {_number(seconds / 3600)} h.")
    if found.total.scratch:
        notes.append(f"Beside this, each fine-tuning under way keeps up to {_number(found.total.scratch / 1e9)} GB.")
    if found.unsized:
        notes.append(f"Not counted, as their size is not known yet: {', '.join(found.unsized)} (row keys: cost).")
    return notes


def _job(job: Job) -> str:
    return " ".join((job.rule, *job.wildcards.values()))


def _number(value: float) -> str:
    """Two significant digits below 10, whole numbers above."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}" if value else "0"
