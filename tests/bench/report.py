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
    """How often each goal is reached (1 is the goal, to the right is better), and how seconds grow with sizes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [r for r in results if r["ratio"]]
    growth = [r for r in shown if "seconds_by_size" in r]
    widths = [5, 3] if growth else [1]
    figure, panels = plt.subplots(
        1, len(widths), figsize=(10 if growth else 6.5, 0.8 + 0.32 * len(shown)), width_ratios=widths, squeeze=False
    )
    _draw_goals(panels[0, 0], shown)
    if growth:
        _draw_growth(panels[0, 1], growth)
    figure.suptitle(_machine(results).split(", blas")[0], fontsize=8)
    figure.tight_layout()
    for suffix in ("png", "pdf"):
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=200)
    plt.close(figure)


def _draw_goals(axes: Any, shown: list[Result]) -> None:
    from matplotlib.ticker import FormatStrFormatter, NullFormatter

    reached = [r["ratio"] / r["goal"] if r["goal_is"] == "at least" else r["goal"] / r["ratio"] for r in shown]
    places = list(range(len(shown)))[::-1]
    axes.axvline(1, color="black", linewidth=0.9)
    axes.hlines(places, 1, reached, color="0.6", linewidth=1.2)
    for r, x, y in zip(shown, reached, places, strict=True):
        axes.plot([x], [y], "o" if r["met"] else "X", color="#0072B2" if r["met"] else "#D55E00", markersize=7)
        label = f"{r['ratio']:.3g} (goal: {r['goal_is']} {r['goal']:g})"
        axes.annotate(label, (max(x, 1), y), xytext=(8, 0), textcoords="offset points", va="center", fontsize=7)
    axes.set_yticks(places, [r["row"] for r in shown], fontsize=8)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xscale("log")
    axes.set_xlim(min([*reached, 1]) / 1.3, max([*reached, 1]) * 3)
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("Ratio as a multiple of its goal (inverted where the goal is a most)", fontsize=8)


def _draw_growth(axes: Any, growth: list[Result]) -> None:
    for r, marker, colour in zip(growth, "os^", ("#0072B2", "#009E73", "#D55E00"), strict=False):
        sizes = [int(size) for size in r["seconds_by_size"]]
        seconds = list(r["seconds_by_size"].values())
        times = [size / sizes[0] for size in sizes]
        axes.plot(
            times,
            [s / seconds[0] for s in seconds],
            marker=marker,
            color=colour,
            label=f"{r['row']}: {sizes[0]:,} to {sizes[-1]:,}, exponent {r['ratio']:.2f}",
        )
    longest = max(max(map(int, r["seconds_by_size"])) / min(map(int, r["seconds_by_size"])) for r in growth)
    axes.plot([1, longest], [1, longest], color="black", linewidth=0.9, linestyle=(0, (1, 2)), label="linear")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("Size, as a multiple of the smallest", fontsize=8)
    axes.set_ylabel("Seconds of a pass, as a multiple", fontsize=8)
    axes.legend(fontsize=6.5, frameon=False)
