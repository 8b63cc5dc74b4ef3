"""What a figure needs besides its tables: titles, families, objectives, label orders, thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advsets.registry import DatasetRow, ImportedModel, ModelRow


@dataclass(frozen=True)
class FigureContext:
    """Display names and settings; names without a title are shown as they are.

    The order of `dataset_titles` and `model_titles` is the order of the configuration and
    decides the order of facets, and of models wherever strength does not. `thresholds` are the
    predictabilities (0-1) above which the filter removes a row, by data set; `annotators` the names
    of more annotators. `collections` are the evaluation sets of each collection and `training_sets`
    what its models are trained on, both in configured order, standard sets first.
    """

    dataset_titles: Mapping[str, str] = field(default_factory=dict)
    model_titles: Mapping[str, str] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    label_orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    annotators: Mapping[str, str] = field(default_factory=dict)
    objectives: Mapping[str, str] = field(default_factory=dict)
    collections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    training_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_rows(
        cls,
        datasets: Iterable[DatasetRow],
        models: Iterable[ModelRow],
        thresholds: Mapping[str, float],
        label_orders: Mapping[str, tuple[str, ...]] | None = None,
        imported: Iterable[ImportedModel] = (),
        collections: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> FigureContext:
        """Context of a run.

        Parameters
        ----------
        datasets, models : iterables of rows
            In the order of the configuration.
        thresholds : mapping of data set to float
            Predictability (0-1) above which the filter removes a row.
        label_orders : mapping, optional
            Label orders over those of the rows, e.g. of multiple-choice data sets, whose rows
            have none; their number of candidates gives the level of chance.
        imported : iterable of rows, optional
            Models with predictions that others made; named after those of the run.
        collections : mapping, optional
            `collections` of the validated configuration.
        """
        datasets, models, parts = list(datasets), list(models), collections or {}
        scored: list[ModelRow | ImportedModel] = [*models, *imported]
        orders = {row.name: row.label_order for row in datasets} | dict(label_orders or {})
        return cls(
            {row.name: row.title for row in datasets},
            {row.name: row.title or row.name for row in scored},
            {row.name: row.family or "" for row in scored},
            orders,
            thresholds,
            {row.name: row.more_annotators["title"] for row in datasets if row.more_annotators},
            {row.name: row.objective for row in models},
            {name: (*part["standard"], *part["adversarial"]) for name, part in parts.items()},
            {name: tuple(part["training_sets"]) for name, part in parts.items()},
        )

    def dataset_title(self, name: str) -> str:
        return _one_line(self.dataset_titles.get(name) or name)

    def model_title(self, name: str) -> str:
        return _one_line(self.model_titles.get(name) or name)

    def chance(self, dataset: str) -> float | None:
        """Accuracy of guessing every label alike (0-1); None when the labels are not known."""
        labels = self.label_orders.get(dataset) or ()
        return 1 / len(labels) if labels else None

    def order_datasets(self, names: Iterable[str]) -> list[str]:
        return _in_order(names, self.dataset_titles)

    def order_models(self, names: Iterable[str]) -> list[str]:
        return _in_order(names, self.model_titles)

    def order_collections(self, names: Iterable[str]) -> list[str]:
        return _in_order(names, self.collections)

    def order_sets(self, collection: str, names: Iterable[str]) -> list[str]:
        """Evaluation sets of a collection in its order, then those of the configuration."""
        return _in_order(names, dict.fromkeys([*self.collections.get(collection, ()), *self.dataset_titles]))

    def order_training_sets(self, collection: str, names: Iterable[str]) -> list[str]:
        return _in_order(names, dict.fromkeys(self.training_sets.get(collection, ())))

    def order_labels(self, dataset: str, names: Iterable[str]) -> list[str]:
        return _in_order(names, dict.fromkeys(self.label_orders.get(dataset, ())))


def _one_line(title: str) -> str:
    return " ".join(title.split()) or title


def _in_order(names: Iterable[str], known: Mapping[str, object]) -> list[str]:
    place = {name: i for i, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (place.get(name, len(place)), name))
