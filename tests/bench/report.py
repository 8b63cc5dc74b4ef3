"""A line, a table, a JSON file and a figure of what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def line(result: Result) -> str:
    """One row as text."""
    if result.get("error"):
        return f"{result['row']}: {result['error']}"
    verdict = "met" if result["met"] else "not met"
    seconds = "".join(f"; {key} {result[key]:.3g}" for key in ("ours_s", "peer_s", "whole_step_s") if key in result)
    return f"{result['row']}: {result['ratio']:.2f} (goal: {result['goal_is']} {result['goal']:g}; {verdict}{seconds})"


def table(results: list[Result]) -> str:
    """Markdown table of all rows, and the machine."""
    rows = ["| row | what | against | ratio | goal | met |", "|---|---|---|---|---|---|"]
    for r in results:
        ratio = r["error"] if r.get("error") else f"{r['ratio']:.2f}"
        rows.append(
            f"| {r['row']} | {r['what']} | {r['against']} | {ratio} | {r['goal_is']} {r['goal']:g} |"
            f" {'yes' if r['met'] else 'no'} |"
        )
    return "\n".join(["", *rows, "", _machine(results), ""])


def write(results: list[Result], path: Path) -> None:
    """Write the JSON file, and beside it the figure as PNG and PDF."""
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    _draw(results, path)


def _machine(results: list[Result]) -> str:
    found = results[0]["machine"] if results else {}
    return "Machine: " + ", ".join(f"{key} {value}" for key, value in found.items())


def _draw(results: list[Result], path: Path) -> None:
    """How often each goal is reached: 1 is the goal, to the right is better."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [r for r in results if r["ratio"]]
    reached = [r["ratio"] / r["goal"] if r["goal_is"] == "at least" else r["goal"] / r["ratio"] for r in shown]
    figure, axes = plt.subplots(figsize=(7.2, 0.6 + 0.36 * len(shown)), layout="constrained")
    places = list(range(len(shown)))[::-1]
    axes.axvline(1, color="black", linewidth=0.9)
    axes.hlines(places, 1, reached, color="0.6", linewidth=1.2)
    for r, x, y in zip(shown, reached, places, strict=True):
        axes.plot([x], [y], "o" if r["met"] else "X", color="#0072B2" if r["met"] else "#D55E00", markersize=7)
        label = f"{r['ratio']:.3g} ({r['goal_is']} {r['goal']:g})"
        axes.annotate(label, (x, y), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7)
    axes.set_yticks(places, [r["row"] for r in shown])
    axes.set_ylim(-0.6, len(shown) - 0.3)
    axes.set_xscale("log")
    low, high = min([*reached, 1]), max([*reached, 1])
    axes.set_xlim(low / 1.4, high * 1.4)
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.xaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.set_xlabel("Ratio as a multiple of its goal (goals of the kind “at most” inverted)")
    axes.set_title(_machine(results).split(", blas")[0], fontsize=7, loc="left")
    for suffix in ("png", "pdf"):
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=200)
    plt.close(figure)
