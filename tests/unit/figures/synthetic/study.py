"""What a made-up run is made of, and the numbers that its tables share."""

from __future__ import annotations

from dataclasses import dataclass, field

from advsets.figures.context import FigureContext
from advsets.seeding import rng_for

MODELS = ("static", "mini-1", "mini-2", "mini-3", "mini-6", "other-1")
LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Study:
    """What a synthetic run is made of."""

    datasets: tuple[str, ...] = ("reviews",)
    models: tuple[str, ...] = MODELS
    adversaries: tuple[str, ...] = MODELS[:5]
    seeds: tuple[int, ...] = (0,)
    empty: tuple[str, ...] = ()
    unknown_strength: tuple[str, ...] = ()
    measure: str = "agreement"  # agreement | flag | none
    measures: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    n_full: int = 1066
    n_rounds: int = 12
    identical_ranks: bool = False

    def context(self) -> FigureContext:
        titles = {m: self.titles.get(m, m.replace("mini-", "MiniLM, layers: ")) for m in self.models}
        return FigureContext(
            dataset_titles={d: d.capitalize() for d in self.datasets},
            model_titles=titles,
            families={m: m.split("-")[0] for m in self.models},
            objectives={m: "masked" if m.startswith("mini") else "none" for m in self.models},
            label_orders={d: LABELS for d in self.datasets},
            thresholds=dict.fromkeys(self.datasets, 0.75),
        )

    def accuracy(self, model: str) -> float:
        return 0.55 + 0.35 * (self.models.index(model) + 1) / len(self.models)

    def strength(self, adversary: str) -> float | None:
        return None if adversary in self.unknown_strength else self.accuracy(adversary)

    def n_kept(self, adversary: str, seed: int) -> int:
        return 0 if adversary in self.empty else int(self.n_full * (1.02 - self.accuracy(adversary))) + 7 * seed

    def relation(self, adversary: str, model: str) -> str:
        if adversary == model:
            return "self"
        return "same_family" if adversary.split("-")[0] == model.split("-")[0] else "other"


def noise(*key: str | int) -> float:
    return float(rng_for(0, *key).normal())


def filtered_accuracy(study: Study, dataset: str, adversary: str, seed: int, model: str) -> float | None:
    if adversary in study.empty:
        return None
    drop = (
        0.75 * (study.accuracy(adversary) - 0.5)
        + {"self": 0.07, "same_family": 0.02, "other": 0.0}[study.relation(adversary, model)]
    )
    value = study.accuracy(model) - drop + 0.012 * noise(dataset, adversary, seed, model)
    return min(max(value, 0.02), 0.98)


def measure_of(study: Study, dataset: str) -> str:
    return study.measures.get(dataset, study.measure)


def bounds(name: str, value: float | None, half: float) -> dict[str, float | None]:
    ends = (None, None) if value is None else (value - half, value + half)
    return {name: value, f"{name}_low": ends[0], f"{name}_high": ends[1]}


def summary(value: float | None, tau: float | None) -> dict[str, float | None]:
    change = None if tau is None else 2 * (1 - tau)
    return {**bounds("accuracy_mean", value, 0.03), **bounds("tau_b", tau, 0.15), "rank_change_mean": change}


def runs_of(study: Study) -> list[tuple[str, int]]:
    return [(a, s) for a in study.adversaries for s in study.seeds]
