"""A job of a planned run, as the estimate sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_STAGES = {
    "fine_tune_collected": "fine_tune",
    "predict_collected": "predict",
    "import_predictions": "evaluate_collection",
    "join_training_set": "evaluate_collection",
    "question_statistics": "evaluate_collection",
    "write_cross_training": "evaluate_collection",
}
"""Rules of collections that are told together with another."""


@dataclass(frozen=True)
class Job:
    """One job: its rule and wildcards, where its benchmark stands, what it takes, whether it is still to run."""

    rule: str
    wildcards: Mapping[str, str]
    benchmark: str | None
    gpus: int
    threads: int
    to_run: bool

    @property
    def stage(self) -> str:
        """What the job is told under: a rule, or "figures"."""
        return _STAGES.get(self.pace, self.pace)

    @property
    def pace(self) -> str:
        """Jobs whose rates stand for each other: of the same rule, or "figures" for the rule of any one figure."""
        return "figures" if self.rule.startswith("draw_") else self.rule

    @property
    def kind(self) -> tuple[str, ...]:
        """What jobs that take equally long have in common: all but seed and place in a chain."""
        kept = sorted(item for item in self.wildcards.items() if item[0] not in ("seed", "node"))
        return (self.rule, *(f"{name}={value}" for name, value in kept))
