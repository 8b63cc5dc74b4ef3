"""What the questions of each set look like: shared n-grams, question words, answer types and lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from advsets.evaluation.collected.kinds import ANSWER_TYPES, QUESTION_WORDS
from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_TABLES = ("question_statistics", "question_overlap", "question_kinds")
_SPLITS = ("train", "validation", "test")
_LONGEST_OVERLAP = 10
_PANELS = {"question_word": (QUESTION_WORDS, "Question word"), "answer_type": (ANSWER_TYPES, "Answer type")}
_COUNTS = {
    "n_documents": ("documents", "{:,}"),
    "n_passages": ("passages", "{:,}"),
    "n_questions": ("questions", "{:,}"),
    "question_words_mean": ("question (words)", "{:.1f}"),
    "answer_words_mean": ("answer (words)", "{:.1f}"),
}
_BLOCK_IN = 2.1
_LINE_PT, _LABEL_PT, _COLUMN_PT = 12, 66, 33


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per set: lengths, histogram of the shared n-gram, question words, answer types.

    Bars are the evaluation questions (`test`, where there is none `validation`), lines and
    diamonds those for training. Axes are the same in all blocks.
    """
    shown = _shown(tables)
    sets = _sets(shown["question_statistics"], context)
    figure = style.new_figure(_BLOCK_IN * max(len(sets), 0.5) + 0.35)
    if not sets:
        layout.say(figure.subplots(), "No set of the collections has questions.")
    several = len({collection for collection, _ in sets}) > 1
    for (collection, dataset), block in zip(sets, layout.blocks(figure, [1.0] * len(sets)), strict=True):
        own = pl.col("collection").eq(collection) & pl.col("dataset").eq(dataset)
        title = context.dataset_title(dataset) + (f", {collection}" if several else "")
        layout.heading(block, layout.shorten(title, 95))
        _block(block, {name: frame.filter(own) for name, frame in shown.items()}, _highest(shown), _widths(shown))
    if sets:
        figure.legend(handles=_legend(), loc="outside lower right", ncols=2)
    data = [shown[name].with_columns(table=pl.lit(name)) for name in _TABLES]
    return figure, pl.concat(data, how="diagonal")


def _shown(tables: frames.Tables) -> dict[str, pl.DataFrame]:
    """The tables in order, the overlaps of ten words and more in one bin."""
    overlap = (
        tables["question_overlap"]
        .sort("collection", "dataset", "split", "overlap")
        .with_columns(pl.col("overlap").clip(upper_bound=_LONGEST_OVERLAP))
        .group_by("collection", "dataset", "split", "overlap", maintain_order=True)
        .agg(pl.col("n_questions", "share").sum())
    )
    keys = ["collection", "dataset", "split"]
    return {
        "question_statistics": tables["question_statistics"].sort(keys),
        "question_overlap": overlap,
        "question_kinds": tables["question_kinds"].sort([*keys, "aspect", "kind"]),
    }


def _sets(statistics: pl.DataFrame, context: FigureContext) -> list[tuple[str, str]]:
    """Collections and their sets in configured order."""
    found = set(statistics.select("collection", "dataset").iter_rows())
    known = [(collection, dataset) for collection, names in context.collections.items() for dataset in names]
    return [pair for pair in known if pair in found] + sorted(found - set(known))


def _highest(shown: Mapping[str, pl.DataFrame]) -> dict[str, float]:
    """Largest share of each panel, over all sets."""
    kinds = shown["question_kinds"].group_by("aspect").agg(pl.col("share").max())
    return {"overlap": shown["question_overlap"]["share"].max(), **dict(kinds.iter_rows())}


def _widths(shown: Mapping[str, pl.DataFrame]) -> list[float]:
    """Widths (inches) of the four panels without their labels."""
    text = (_LABEL_PT + _COLUMN_PT * shown["question_statistics"]["split"].n_unique()) / 72
    rest = style.DOUBLE_COLUMN_IN - text - 2.0
    return [text, 0.36 * rest, 0.32 * rest, 0.32 * rest]


def _block(block: SubFigure, part: dict[str, pl.DataFrame], highest: dict[str, float], widths: Sequence[float]) -> None:
    splits = [split for split in _SPLITS if split in set(part["question_statistics"]["split"])]
    evaluation = "test" if "test" in splits else "validation"
    lengths, histogram, *panels = block.subplots(1, 4, width_ratios=widths)
    _lengths(lengths, part["question_statistics"], splits)
    _histogram(histogram, part, evaluation, highest["overlap"])
    for axes, aspect in zip(panels, _PANELS, strict=True):
        _kinds(axes, part["question_kinds"].filter(aspect=aspect), aspect, evaluation, highest[aspect])


def _lengths(axes: Axes, statistics: pl.DataFrame, splits: list[str]) -> None:
    """Counts and mean lengths as text, a column per split."""
    axes.set_axis_off()
    rows = {row["split"]: row for row in statistics.iter_rows(named=True)}
    for line, (label, _) in enumerate(_COUNTS.values(), 1):
        _write(axes, (0, 0), line, label, "left")
    for i, split in enumerate(splits, 1):
        x = (0, _LABEL_PT + i * _COLUMN_PT)
        _write(axes, x, 0, {"validation": "valid."}.get(split, split), "right", style.MUTED)
        for line, (column, (_, form)) in enumerate(_COUNTS.items(), 1):
            value = rows[split][column]
            _write(axes, x, line, "–" if value is None else form.format(value), "right")


def _write(
    axes: Axes, place: tuple[float, float], line: int, text: str, side: Literal["left", "right"], colour: str = "black"
) -> None:
    """Write text on a line from the top, at a share of the width and points beside it."""
    x, beside = place
    axes.annotate(
        text,
        xy=(x, 1),
        xycoords="axes fraction",
        xytext=(beside, -_LINE_PT * (line + 0.5)),
        textcoords="offset points",
        ha=side,
        va="center",
        fontsize=style.SMALLEST_PT,
        color=colour,
        annotation_clip=False,
    )


def _histogram(axes: Axes, part: dict[str, pl.DataFrame], evaluation: str, highest: float) -> None:
    edges = [i - 0.5 for i in range(_LONGEST_OVERLAP + 2)]
    for split in (evaluation, "train"):
        rows = part["question_overlap"].filter(split=split)
        share = dict(rows.select("overlap", "share").iter_rows())
        heights = [share.get(i, 0.0) for i in range(_LONGEST_OVERLAP + 1)]
        if rows.is_empty():
            continue
        if split == "train":
            axes.stairs(heights, edges, color=style.VERMILLION, linewidth=1.2, gid="train")
        else:
            axes.stairs(heights, edges, fill=True, color=style.BLUE, linewidth=0, gid="evaluation")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, 1.3 * highest)
    axes.set_xticks([0, 5, _LONGEST_OVERLAP], ["0", "5", f"{_LONGEST_OVERLAP}+"])
    layout.percent(axes.yaxis)
    axes.set_ylabel("Questions (%)")
    axes.set_xlabel("Words")
    axes.set_title("Longest shared n-gram", fontsize=8, fontweight="normal")
    _means(axes, part["question_statistics"], evaluation)


def _means(axes: Axes, statistics: pl.DataFrame, evaluation: str) -> None:
    """Mean and standard deviation as text inside, above the bars."""
    by_split = {row["split"]: row for row in statistics.iter_rows(named=True)}
    shown = [split for split in (evaluation, "train") if split in by_split]
    for line, split in enumerate(shown):
        row = by_split[split]
        spread = "" if row["overlap_sd"] is None else f" ± {row['overlap_sd']:.1f}"
        text = f"{split}: {row['overlap_mean']:.1f}{spread}"
        _write(axes, (1, 0), line, text, "right", _colour(split))


def _kinds(axes: Axes, rows: pl.DataFrame, aspect: str, evaluation: str, highest: float) -> None:
    kinds, title = _PANELS[aspect]
    for split in (evaluation, "train"):
        share = dict(rows.filter(split=split).select("kind", "share").iter_rows())
        if not share:
            continue
        values, at = [share.get(kind, 0.0) for kind in kinds], range(len(kinds))
        if split == "train":
            axes.plot(values, at, "D", color=style.VERMILLION, markersize=2.6, linestyle="none", gid="train")
        else:
            axes.barh(at, values, 0.72, color=style.BLUE, linewidth=0, gid="evaluation")
    axes.set_yticks(range(len(kinds)), kinds, fontsize=style.SMALLEST_PT)
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlim(0, 1.05 * highest)
    layout.percent(axes.xaxis)
    axes.set_xlabel("Questions (%)")
    axes.set_title(title, fontsize=8, fontweight="normal")


def _colour(split: str) -> str:
    return style.VERMILLION if split == "train" else style.BLUE


def _legend() -> list[Line2D | Patch]:
    return [
        Patch(facecolor=style.BLUE, label="evaluation questions"),
        Line2D([], [], color=style.VERMILLION, marker="D", markersize=2.6, linewidth=1.2, label="training questions"),
    ]
