"""Drop in accuracy for every adversary and evaluated model, against random subsets of the same size."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_MOST_WITH_DECIMALS = 9


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one heat map per data set, adversaries from weakest (top) to strongest."""
    data = shown(tables)
    names = frames.datasets(data, context)
    parts = {name: data.filter(pl.col("dataset") == name) for name in names}
    heights = [max(0.24 * part["adversary"].n_unique(), 0.7) + 1.9 for part in parts.values()]
    widest = max((part["evaluated_model"].n_unique() for part in parts.values()), default=1)
    figure = style.new_figure(sum(heights) + 0.4, max(style.DOUBLE_COLUMN_IN, 2.6 + 0.34 * widest))
    norm = _norm(data)
    for (name, part), block in zip(parts.items(), layout.blocks(figure, heights), strict=True):
        axes = block.subplots()
        stability = frames.of_dataset(tables, name)["rank_stability"]
        _map(block, axes, part, stability, norm, context)
        layout.heading(block, f"{context.dataset_title(name)} ({frames.sizes(stability)})")
    figure.legend(handles=_legend(data), loc="outside lower left", ncols=3)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """One row per cell; `drop_pct_points` is accuracy on random subsets minus on the filtered one, times 100."""
    return (
        tables["penalty_cells"]
        .with_columns(drop_pct_points=100 * (pl.col("accuracy_random") - pl.col("accuracy_filtered")))
        .select(
            "dataset",
            "adversary",
            "evaluated_model",
            "relation",
            "accuracy_random",
            "accuracy_filtered",
            "drop_pct_points",
        )
        .sort("dataset", "adversary", "evaluated_model")
    )


def _norm(data: pl.DataFrame) -> Normalize:
    values = data["drop_pct_points"].drop_nulls()
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)  # type: ignore[arg-type]
    return Normalize(min(low, 0.0), max(high, 1.0))


def _map(
    block: SubFigure, axes: Axes, part: pl.DataFrame, stability: pl.DataFrame, norm: Normalize, context: FigureContext
) -> None:
    strength = frames.strengths(stability)
    rows = frames.weakest_first({name: strength.get(name) for name in part["adversary"].unique()}, context)
    columns = _columns(part["evaluated_model"].unique().to_list(), rows, context)
    kept = dict(stability.group_by("adversary").agg(pl.col("n_retained").mean()).iter_rows())
    cells = {
        (a, m): (drop, relation)
        for a, m, drop, relation in part.select(
            "adversary", "evaluated_model", "drop_pct_points", "relation"
        ).iter_rows()
    }
    values = [[cells.get((a, m), (None, ""))[0] for m in columns] for a in rows]
    image = axes.imshow(
        [[float("nan") if v is None else v for v in line] for line in values],
        cmap=style.SEQUENTIAL_MAP,
        norm=norm,
        aspect="auto",
    )
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_yticks(range(len(rows)), [_row_label(a, kept, context) for a in rows])
    axes.set_xticks(range(len(columns)), [layout.shorten(context.model_title(m)) for m in columns], rotation=90)
    axes.set_xlabel("Evaluated model")
    axes.set_ylabel("Adversary\n(n retained)")
    for i, adversary in enumerate(rows):
        for j, model in enumerate(columns):
            drop, relation = cells.get((adversary, model), (None, ""))
            _cell(axes, i, j, drop, relation, norm, decimals=len(columns) <= _MOST_WITH_DECIMALS)
    block.colorbar(image, ax=axes, label="Drop in accuracy\n(percentage points)", fraction=0.05, pad=0.02)


def _columns(models: list[str], rows: list[str], context: FigureContext) -> list[str]:
    """Evaluated models in the adversaries' order, so that own cells lie on the diagonal, then the others."""
    return [m for m in rows if m in models] + context.order_models(m for m in models if m not in rows)


def _row_label(adversary: str, kept: dict[str, float], context: FigureContext) -> str:
    n = f" ({kept[adversary]:,.0f})" if adversary in kept else ""
    return layout.shorten(context.model_title(adversary)) + n


def _cell(axes: Axes, i: int, j: int, drop: float | None, relation: str, norm: Normalize, decimals: bool) -> None:
    if drop is None:
        text, colour = "–", style.MUTED
    else:
        text = f"{drop:.1f}" if decimals else f"{drop:.0f}"
        text = text.replace("-", "−")
        colour = style.ink_on(float(norm(drop)))
    axes.text(j, i, text, ha="center", va="center", fontsize=style.SMALLEST_PT, color=colour, gid="cell")
    if relation in ("self", "same_family"):
        own = relation == "self"
        axes.add_patch(
            Rectangle(
                (j - 0.46, i - 0.44),
                0.92,
                0.88,
                fill=False,
                edgecolor=style.VERMILLION,
                linewidth=1.8 if own else 0.9,
                linestyle="-" if own else (0, (2, 1.5)),
                gid=relation,
            )
        )


def _legend(data: pl.DataFrame) -> list[Line2D]:
    handles = [Line2D([], [], color=style.VERMILLION, linewidth=1.8, label="own adversary (same base model)")]
    if (data["relation"] == "same_family").any():
        handles.append(
            Line2D(
                [],
                [],
                color=style.VERMILLION,
                linewidth=0.9,
                linestyle=(0, (2, 1.5)),
                label="adversary of the same family",
            )
        )
    if data["drop_pct_points"].null_count():
        handles.append(Line2D([], [], linestyle="none", label="–: empty subset"))
    return handles
