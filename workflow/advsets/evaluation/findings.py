"""Table `findings`: what the paper found, and whether it holds here.

Conventions
-----------
Rule of every verdict: `holds` if the interval lies wholly on the claimed side of 0, `does not
hold` if it lies wholly on the other side, `undecided` if it includes 0 or there is too little to
decide. Finding (d) holds if it does both within gold class and overall.
Findings are those of Phang et al. 2021 on adversarial filtering.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import polars as pl

from advsets.evaluation import measures
from advsets.evaluation.frames import table_frame
from advsets.evaluation.measures import Measured
from advsets.evaluation.study import Study

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
UNDECIDED = "undecided"

STATEMENTS = {
    "a": "Accuracy falls on filtered subsets, against random subsets of the same size.",
    "b": "Accuracy falls more with stronger adversaries.",
    "c": "The ranking of models changes more than by chance.",
    "d": "Retained examples have lower annotator agreement, also within gold class.",
    "e": "A model of the adversary's own base model is harmed more than others.",
}


def findings(study: Study) -> pl.DataFrame:
    """Findings (a) to (e) for one data set."""
    within, overall = measures.agreement_gap(study)
    rows = [
        _row(study, "a", measured := measures.accuracy_drop(study), verdict(measured, below=True)),
        _row(study, "b", measured := measures.drop_by_strength(study), verdict(measured, below=False)),
        _row(study, "c", measured := measures.rank_instability(study), verdict(measured, below=False)),
        _row(study, "d", within, _both(verdict(within, below=True), verdict(overall, below=True)), overall),
        _row(study, "e", measured := measures.own_penalty(study), verdict(measured, below=True)),
    ]
    return table_frame("findings", rows)


def verdict(measured: Measured, *, below: bool) -> str:
    """Verdict on a number that is claimed to lie below (or above) 0."""
    if measured.undecidable or not measured.low <= measured.high:  # also where a bound is NaN
        return UNDECIDED
    if measured.low <= 0 <= measured.high:
        return UNDECIDED
    return HOLDS if (measured.high < 0) == below else DOES_NOT_HOLD


def _both(first: str, second: str) -> str:
    if DOES_NOT_HOLD in (first, second):
        return DOES_NOT_HOLD
    return HOLDS if first == second == HOLDS else UNDECIDED


def _row(
    study: Study, letter: str, measured: Measured, decided: str, overall: Measured | None = None
) -> dict[str, Any]:
    detail = measured.detail
    if overall is not None:
        detail = f"overall {number_text(overall.value, overall.low, overall.high)}; {detail}"
    if measured.undecidable:
        detail = f"undecided: {measured.undecidable}; {detail}"
    return {
        "dataset": study.inputs.dataset,
        "finding": letter,
        "statement": STATEMENTS[letter],
        "verdict": decided,
        "measure": measured.measure,
        "value": measured.value,
        "low": measured.low,
        "high": measured.high,
        "detail": detail,
    }


def findings_markdown(frames: Iterable[pl.DataFrame]) -> str:
    """Findings of one or more data sets as Markdown, one table each."""
    parts = ["# Findings\n"]
    for frame in frames:
        rows = frame.sort("finding").to_dicts()
        parts.append(f"## {rows[0]['dataset']}\n")
        parts.append("| finding | verdict | value [interval] | measure | detail |\n|---|---|---|---|---|")
        parts += [
            f"| ({r['finding']}) {r['statement']} | {r['verdict']} | {_value(r)} | {r['measure']} | {r['detail']} |"
            for r in rows
        ]
        parts.append("")
    parts.append(
        "*holds*: the interval lies on the claimed side of 0; *does not hold*: on the other side;"
        " *undecided*: it includes 0, or there is too little to decide.\n"
    )
    return "\n".join(parts)


def findings_text(frames: Iterable[pl.DataFrame], width: int = 100) -> str:
    """Findings for the terminal."""
    lines = []
    for frame in frames:
        rows = frame.sort("finding").to_dicts()
        lines.append(f"Findings on {rows[0]['dataset']}:")
        for row in rows:
            lines.append(f"  ({row['finding']}) {row['statement']}  {row['verdict'].upper()}")
            text = f"{_value(row)}: {row['measure']}. {row['detail']}."
            lines += textwrap.wrap(text, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines) + "\n"


def _value(row: dict[str, Any]) -> str:
    return number_text(row["value"], row["low"], row["high"])


def number_text(value: float | None, low: float | None, high: float | None) -> str:
    """A number with its interval, or `none`."""
    shown = ["none" if x is None or x != x else f"{x:.3f}" for x in (value, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if shown[0] != "none" else "none"
