"""What the figure of adversarial collections says in words: headings, titles and names of columns."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from advsets.collected import IMPORTED
from advsets.figures import collected, frames, layout, style
from advsets.figures.context import FigureContext

_LEAST_LETTERS = 6
_FILLED = 0.93
"""Share of a width that text may take: panels turn out a little narrower than planned."""
_LONGEST_LOOP = 30
_MOST_PAIRS = 3


@dataclass(frozen=True)
class Notes:
    """Texts of a run's collections."""

    tables: frames.Tables
    context: FigureContext

    def levels(self, collection: str, measure: str) -> dict[str, tuple[float | None, float | None]]:
        """Chance and majority level (0-1) of each set, None where there is none."""
        rows = self._sets(collection, measure)
        return {name: (chance, most) for name, chance, most in rows.select("dataset", "chance", "majority").iter_rows()}

    def heading(self, collection: str, training_set: str, measure: str) -> str:
        """Collection, training set, and the self-adversary penalty of the models trained on it."""
        title = collection if training_set == IMPORTED else f"{collection}: models trained on {training_set}"
        penalty = "" if training_set == IMPORTED else self._penalty(collection, training_set, measure)
        return f"{title}\n{penalty}" if penalty else title

    def facet(
        self, collection: str, training_set: str, dataset: str, measure: str, standard: str | None, width_in: float
    ) -> str:
        """Title, model in the loop, n, levels, and tau-b with the standard set, in lines of `width_in` inches."""
        width = 72 * width_in
        tau = self._tau(collection, training_set, measure, [dataset, standard or ""])
        phrases = [*self._of_set(collection, dataset, measure), *(f"tau-b {text}" for _, text in tau)]
        return "\n".join([*_wrapped(self.context.dataset_title(dataset), width, 2), *_packed(phrases, width)])

    def standard(self, dataset: str | None, measure: str) -> str:
        """Label of the x axis."""
        title = layout.shorten(self.context.dataset_title(dataset or ""))
        return f"{collected.MEASURES[measure]} on {title} (%)"

    def column(self, rows: pl.DataFrame, dataset: str, measure: str, width_in: float, alone: bool) -> str:
        """Name of a set and the instances that were in its loop, in lines that fit the width (inches).

        What the facets' titles say of a set stands here if there are none (`alone`).
        """
        width = 72 * width_in - style.SMALLEST_PT / 2
        own = rows.filter(pl.col("dataset") == dataset)
        loop = self.context.order_models(own.filter("in_the_loop")["evaluated_model"])
        of_set = self._of_set(rows["collection"][0], dataset, measure)
        lines = [
            *_wrapped(self.context.dataset_title(dataset), width, 3),
            *(line for text in of_set if alone or text.startswith("n =") for line in _wrapped(text, width, 3)),
            *(line for name in loop for line in _wrapped(f"★ {self.context.model_title(name)}", width, 3)),
        ]
        return "\n".join(lines)

    def unplaced(self, rows: pl.DataFrame, measure: str, width_in: float) -> str:
        """Title of the panel of models without a standard score, with penalty and tau-b of imported ones."""
        collection, all_imported = rows["collection"][0], (rows["training_set"] == IMPORTED).all()
        width = 72 * width_in
        pairs = self._tau(collection, IMPORTED, measure, self.context.order_sets(collection, rows["dataset"]))
        title = f"{'Published predictions' if all_imported else 'Models'} (no score on a standard set)"
        told = [[text] for text in (self._penalty(collection, IMPORTED, measure),) if text]
        told += [_told(pairs)] if pairs else []
        if told and not all_imported:
            told[0][0] = f"Published predictions: {told[0][0]}"
        return "\n".join([*_wrapped(title, width, 3), *(line for part in told for line in _packed(part, width))])

    def _of_set(self, collection: str, dataset: str, measure: str) -> list[str]:
        rows = self._sets(collection, measure).filter(pl.col("dataset") == dataset)
        phrases = []
        for row in rows.iter_rows(named=True):
            if row["model_in_the_loop"]:
                phrases.append(f"against {layout.shorten(row['model_in_the_loop'], _LONGEST_LOOP)}")
            phrases.append(f"n = {row['n_examples']:,}")
            names = {"chance": "chance", "majority": "majority" if row["chance"] is not None else "whole passage"}
            known = {name: row[key] for key, name in names.items() if row[key] is not None}
            phrases += [f"{name} {collected.share(value)} %" for name, value in known.items()]
        return phrases

    def _sets(self, collection: str, measure: str) -> pl.DataFrame:
        return self.tables["collected_sets"].filter(
            (pl.col("collection") == collection) & (pl.col("measure") == measure)
        )

    def _penalty(self, collection: str, training_set: str, measure: str) -> str:
        rows = self.tables["collected_penalty"].filter(
            (pl.col("collection") == collection)
            & (pl.col("training_set") == training_set)
            & (pl.col("measure") == measure)
            & (pl.col("relation") == "self")
            & pl.col("penalty_log_odds").is_not_null()
        )
        for row in rows.iter_rows(named=True):
            text = collected.with_interval(*(row[f"penalty_log_odds{end}"] for end in ("", "_low", "_high")))
            return f"self-adversary penalty {text} log-odds ({row['n_cells']} cell{'s' if row['n_cells'] != 1 else ''})"
        return ""

    def _tau(self, collection: str, training_set: str, measure: str, sets: list[str]) -> list[tuple[str, str]]:
        """Known tau-b of each pair of these sets, either of which may stand first in the table."""
        rows = self.tables["collected_correlation"].filter(
            (pl.col("collection") == collection)
            & (pl.col("training_set") == training_set)
            & (pl.col("measure") == measure)
            & pl.col("tau_b").is_not_null()
        )
        known = {
            frozenset((row["dataset"], row["other_dataset"])): collected.with_interval(
                row["tau_b"], row["tau_b_low"], row["tau_b_high"]
            )
            for row in rows.iter_rows(named=True)
        }
        return [
            (f"{i + 1}–{j + 1}", known[frozenset((sets[i], sets[j]))])
            for i, j in combinations(range(len(sets)), 2)
            if frozenset((sets[i], sets[j])) in known
        ]


def _told(pairs: list[tuple[str, str]]) -> list[str]:
    """Phrases on tau-b between sets: each pair of a few, of many the range."""
    if not pairs:
        return []
    if len(pairs) == 1:
        return [f"tau-b of the two sets {pairs[0][1]}"]
    if len(pairs) <= _MOST_PAIRS:
        return ["tau-b of columns", *(f"{name}: {text}" for name, text in pairs)]
    values = [float(text.split()[0].replace("−", "-")) for _, text in pairs]
    return [f"tau-b of two sets {collected.number(min(values))} to {collected.number(max(values))}"]


def _fits(line: str, width: float) -> bool:
    return layout.text_width(line, style.SMALLEST_PT) <= _FILLED * width


def _wrapped(text: str, width: float, most: int) -> list[str]:
    """Lines of at most `width` points, each of as many letters as the widest of them allows."""
    letters = max(layout.letters_in(text, width, style.SMALLEST_PT), _LEAST_LETTERS)
    while True:
        lines = textwrap.wrap(text, letters, max_lines=most, placeholder="…")
        if letters == _LEAST_LETTERS or all(_fits(line, width) for line in lines):
            return lines
        letters -= 1


def _packed(phrases: list[str], width: float) -> list[str]:
    """Phrases one after the other in lines of `width` points, each unbroken where it fits."""
    lines: list[str] = []
    for phrase in phrases:
        if lines and _fits(f"{lines[-1]}, {phrase}", width):
            lines[-1] += f", {phrase}"
        else:
            lines += _wrapped(phrase, width, 4)
    return lines
