"""Every benchmark: what is measured against what, and the goal of its ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

AT_LEAST, AT_MOST = "at least", "at most"


@dataclass(frozen=True)
class Row:
    """One benchmark; `module:name` under `rows/` measures it, `short` ones run with `--small` too."""

    name: str
    what: str
    against: str
    goal: float
    goal_is: str
    where: str
    short: bool = False
    free_threads: bool = False

    def function(self) -> Callable[..., dict[str, Any]]:
        """Function of keyword `small` that returns at least `ratio`; where `also_met` is false the goal is not met."""
        module, name = self.where.split(":")
        return getattr(import_module(f"rows.{module}"), name)


_ROUND = "one round, 64 fits and predictions, 23,703 x 384, 3 classes, train_size 10,000"
ROWS = (
    Row("round", _ROUND, "fastest converged scikit-learn way", 20, AT_LEAST, "rounds:converged", short=True),
    Row(
        "round_default",
        _ROUND,
        "plain scikit-learn loop, default tolerance, threads as they come",
        50,
        AT_LEAST,
        "rounds:default_loop",
        short=True,
        free_threads=True,
    ),
    Row(
        "round_large",
        "one round, 64 fits and predictions, 100,000 x 768, 3 classes, train_size 20,000",
        "fastest converged scikit-learn way",
        8,
        AT_LEAST,
        "rounds:large",
    ),
    Row(
        "pass",
        "seconds per solver pass",
        "its two bare matrix products, a column per class",
        1.3,
        AT_MOST,
        "passes:overhead",
        short=True,
    ),
    Row(
        "filter",
        "a whole AFLite run to its stop, I/O included",
        "fastest converged scikit-learn way, from two rounds",
        20,
        AT_LEAST,
        "whole:run",
    ),
    Row("growth_n", "seconds of all passes, N to 4 N rows", "linear (exponent)", 1.1, AT_MOST, "growth:rows"),
    Row(
        "growth_m",
        "seconds of all passes, 16 to 256 partitions",
        "linear (exponent)",
        1.0,
        AT_MOST,
        "growth:partitions",
    ),
    Row(
        "growth_d", "seconds of all passes, 384 to 1,536 features", "linear (exponent)", 1.1, AT_MOST, "growth:features"
    ),
    Row(
        "memory",
        "peak memory above imports, 200,000 x 768 float16 on disk",
        "X in float32",
        1.5,
        AT_MOST,
        "memory:peak",
    ),
    Row(
        "memory_large",
        "peak memory above imports, 500,000 x 1,024 float16 on disk",
        "X in float32",
        1.5,
        AT_MOST,
        "memory:peak_large",
    ),
    Row("embed", "embed, tokens per second", "sentence-transformers encode", 1.2, AT_LEAST, "models:embed", short=True),
    Row(
        "fine_tune",
        "fine-tune, examples per second",
        "transformers Trainer, grouped by length, accuracies within 0.5 points",
        1.2,
        AT_LEAST,
        "models:fine_tune",
    ),
    Row(
        "evaluate",
        "18 x 18 accuracies of 10,000 examples, 1,000 bootstrap draws",
        "vectorised NumPy",
        3,
        AT_LEAST,
        "evaluation:bootstrap",
    ),
    Row(
        "start_up",
        "filter job, start-up to its first products",
        "import of torch alone",
        1.3,
        AT_MOST,
        "start:filter_job",
        short=True,
    ),
)
