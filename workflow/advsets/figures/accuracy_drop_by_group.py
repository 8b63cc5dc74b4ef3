"""Drop in accuracy by family and pretraining objective of the adversary: own, same group, and others."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_LOOKS = {
    "self": layout.PointLook("own model", style.VERMILLION, "o"),
    "same": layout.PointLook("other models of the group", style.PURPLE, "s"),
    "other": layout.PointLook("models of other groups", style.BLUE, "^", filled=False),
}
_PANELS = {
    "drop_pct_points": "Drop against random subsets\n(percentage points)",
    "residual_log_odds": "Beyond adversary and model effects\n(log-odds; below 0: harmed more)",
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: a row per family, then one per objective, of the adversaries."""
    data = shown(tables, context)
    names = frames.all_datasets(data, context)
    parts = [data.filter(pl.col("dataset") == name) for name in names]
    heights = [0.3 * len(_rows(part)) + 0.95 if len(part) else 0.9 for part in parts]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.4)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        layout.heading(block, context.dataset_title(name))
        _block(block, part)
    figure.legend(handles=_legend(), loc="outside lower right", ncols=3)
    return figure, data


def shown(tables: frames.Tables, context: FigureContext) -> pl.DataFrame:
    """One row per grouping, group of the adversary and relation: means over cells, and the range over them."""
    cells = tables["penalty_cells"].with_columns(
        drop_pct_points=100 * (pl.col("accuracy_random") - pl.col("accuracy_filtered"))
    )
    keys = ["dataset", "grouping", "group", "relation"]
    parts = []
    for grouping, groups in (("family", context.families), ("objective", context.objectives)):
        known = {name: groups.get(name) or "not given" for name in {*cells["adversary"], *cells["evaluated_model"]}}
        group = pl.col("adversary").replace_strict(known, return_dtype=pl.String)
        same = group == pl.col("evaluated_model").replace_strict(known, return_dtype=pl.String)
        relation = (
            pl.when(pl.col("relation") == "self")
            .then(pl.lit("self"))
            .when(same)
            .then(pl.lit("same"))
            .otherwise(pl.lit("other"))
        )
        parts.append(cells.with_columns(grouping=pl.lit(grouping), group=group, relation=relation))
    return (
        pl.concat(parts)
        .filter(pl.col("drop_pct_points").is_not_null())
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("n_cells"),
            pl.col(list(_PANELS)).mean(),
            *(pl.col(name).min().alias(f"{name}_low") for name in _PANELS),
            *(pl.col(name).max().alias(f"{name}_high") for name in _PANELS),
        )
        .sort(keys)
    )


def _rows(part: pl.DataFrame) -> list[tuple[str, str]]:
    return sorted(part.select("grouping", "group").unique().iter_rows())


def _block(block: SubFigure, part: pl.DataFrame) -> None:
    rows = _rows(part)
    if not rows:
        layout.say(block.subplots(), "No adversary has left examples of this data set.")
        return
    left, right = block.subplots(1, 2, sharey=True)
    for axes, measure in zip((left, right), _PANELS, strict=True):
        _points(axes, part, rows, measure)
        axes.axvline(0, color="black", linewidth=0.8, linestyle=(0, (3, 2)))
        axes.set_xlabel(_PANELS[measure])
    layout.named_rows(left, [group for _, group in rows])
    n_families = sum(grouping == "family" for grouping, _ in rows)
    for axes in (left, right):
        axes.axhline(n_families - 0.5, color=style.MUTED, linewidth=0.8)


def _points(axes: Axes, part: pl.DataFrame, rows: list[tuple[str, str]], measure: str) -> None:
    for i, (relation, look) in enumerate(_LOOKS.items()):
        own = part.filter(pl.col("relation") == relation)
        at = [rows.index(pair) + 0.22 * (i - 1) for pair in own.select("grouping", "group").iter_rows()]
        layout.bounded_points(axes, at, own, measure, look, gid=relation)


def _legend() -> list[Line2D]:
    return [look.handle() for look in _LOOKS.values()]
