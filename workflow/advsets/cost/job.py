"""A job of a planned run, as the estimate sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
        """Rule, or "figures" for the rule of any one figure."""
        return "figures" if self.rule.startswith("draw_") else self.rule

    @property
    def kind(self) -> tuple[str, ...]:
        """What jobs that take equally long have in common: all but seed and place in a chain."""
        kept = sorted(item for item in self.wildcards.items() if item[0] not in ("seed", "node"))
        return (self.rule, *(f"{name}={value}" for name, value in kept))
