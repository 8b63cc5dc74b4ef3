"""Score of each model by training set on each evaluation set, mean and deviation over fine-tuning seeds."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from advsets.figures import collected, frames, layout, style
from advsets.figures.context import FigureContext

_ROW_IN, _TITLE_IN, _AROUND_IN, _CELL_IN = 0.34, 0.27, 1.15, 0.95
_LETTERS = 16
Cells = Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]]


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per collection: a heat map per model, training sets by evaluation sets."""
    data = collected.underlined(tables["cross_training"])
    names = collected.collections(data, context)
    if not names:
        return layout.nothing("This run has no collection of adversarial sets."), data
    parts = [data.filter(pl.col("collection") == name) for name in names]
    heights = [_height(part) for part in parts]
    widest = max(part["dataset"].n_unique() for part in parts)
    figure = style.new_figure(sum(heights) + 0.25, max(style.DOUBLE_COLUMN_IN, 2.8 + _CELL_IN * widest))
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        layout.heading(block, _heading(name, part))
        if len(part):
            _block(block, part, name, context)
        else:
            layout.say(block.subplots(), "No model was trained and scored for this collection.")
    if legend := _legend(data):
        figure.legend(handles=legend, loc="outside lower left", ncols=2)
    layout.settle(figure)
    for axes in figure.axes:
        _underline(axes)
    return figure, data


def _height(part: pl.DataFrame) -> float:
    if not len(part):
        return 0.9
    rows = part.select("evaluated_model", "training_set").n_unique()
    return _AROUND_IN + _TITLE_IN * part["evaluated_model"].n_unique() + _ROW_IN * rows


def _heading(name: str, part: pl.DataFrame) -> str:
    if not len(part):
        return name
    seeds = frames.count_range(part["n_seeds"])
    return f"{name}: {_titles(part)} in %, {seeds} {'seed' if seeds == '1' else 'seeds'}"


def _measures(part: pl.DataFrame) -> list[str]:
    """`exact_match` and `f1`, or `accuracy`, in the order in which a cell has them."""
    return sorted(part["measure"].unique())


def _titles(part: pl.DataFrame) -> str:
    return " / ".join(collected.MEASURES[measure] for measure in _measures(part))


def _block(block: SubFigure, part: pl.DataFrame, collection: str, context: FigureContext) -> None:
    models = context.order_models(part["evaluated_model"])
    sets = context.order_sets(collection, part["dataset"])
    rows = {m: part.filter(pl.col("evaluated_model") == m) for m in models}
    trained = {m: context.order_training_sets(collection, own["training_set"]) for m, own in rows.items()}
    heights = [len(names) for names in trained.values()]
    grid = block.subplots(len(models), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    norm = _norm(part)
    for axes, model in zip(grid, models, strict=True):
        image = _map(axes, rows[model], trained[model], sets, norm)
        axes.set_title(layout.shorten(context.model_title(model), 60), fontsize=8.0)
    labels = [
        "\n".join(textwrap.wrap(context.dataset_title(name), _LETTERS, max_lines=3, placeholder="…")) for name in sets
    ]
    grid[-1].set_xticks(range(len(sets)), labels)
    grid[-1].set_xlabel("Evaluation set")
    block.supylabel("Training set\n(n examples)", fontsize=8.0, multialignment="center")
    bar = block.colorbar(image, ax=list(grid), label=f"{_drawn_title(part)} (%)", fraction=0.04, pad=0.02)
    layout.percent(bar.ax.yaxis)


def _drawn_title(part: pl.DataFrame) -> str:
    return collected.MEASURES[collected.drawn_measure(part["measure"])]


def _norm(part: pl.DataFrame) -> Normalize:
    values = part.filter(pl.col("measure") == collected.drawn_measure(part["measure"]))["mean_score"]
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    return Normalize(low, max(high, low + 0.01))


def _map(axes: Axes, own: pl.DataFrame, trained: Sequence[str], sets: Sequence[str], norm: Normalize) -> Any:
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in own.iter_rows(named=True):
        cells.setdefault((row["training_set"], row["dataset"]), {})[row["measure"]] = row
    measures, drawn = _measures(own), collected.drawn_measure(own["measure"])
    colours = [[_value(cells.get((t, s), {}).get(drawn)) for s in sets] for t in trained]
    image = axes.imshow(colours, cmap=style.SEQUENTIAL_MAP, norm=norm, aspect="auto")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    n_train = dict(own.select("training_set", "n_train").iter_rows())
    axes.set_yticks(range(len(trained)), [f"{layout.shorten(t)} ({n_train[t]:,})" for t in trained])
    for i, line in enumerate(colours):
        for j, value in enumerate(line):
            ink = style.MUTED if value != value else style.ink_on(float(norm(value)))
            _cell(axes, i, j, [cells.get((trained[i], sets[j]), {}).get(measure) for measure in measures], ink)
    return image


def _value(row: Mapping[str, Any] | None) -> float:
    return float("nan") if row is None else float(row["mean_score"])


def _cell(axes: Axes, i: int, j: int, rows: Sequence[Mapping[str, Any] | None], ink: str) -> None:
    """Means above, deviations below; of two measures left and right of a stroke."""
    sides = [(0.0, "center")] if len(rows) == 1 else [(-4.0, "right"), (4.0, "left")]
    if len(rows) == 2:
        _write(axes, i, j, "/", (0.0, 5.0), "center", ink)
    for row, (x, side) in zip(rows, sides, strict=True):
        if row is None:
            _write(axes, i, j, "–", (x, 0.0), side, ink)
            continue
        has_sd = row["score_sd"] is not None
        up = 5.0 if has_sd or len(rows) == 2 else 0.0
        mean = _write(axes, i, j, collected.share(row["mean_score"]), (x, up), side, ink)
        mean.set_gid("best" if row["underlined"] else "cell")
        if has_sd:
            _write(axes, i, j, f"±{collected.share(row['score_sd'])}", (x, -5.0), side, ink).set_gid("deviation")


def _write(axes: Axes, i: int, j: int, text: str, shift: tuple[float, float], side: str, ink: str) -> Annotation:
    return axes.annotate(
        text,
        (j, i),
        xytext=shift,
        textcoords="offset points",
        ha=side,
        va="center_baseline",
        fontsize=style.SMALLEST_PT,
        color=ink,
    )


def _underline(axes: Axes) -> None:
    """Line below the best scores; the figure must be settled, as their extent gives its length."""
    for text in [t for t in axes.texts if t.get_gid() == "best"]:
        box = text.get_window_extent()
        (left, y), (right, _) = axes.transData.inverted().transform([(box.x0, box.y0 - 0.5), (box.x1, box.y0 - 0.5)])
        axes.plot([left, right], [y, y], color=text.get_color(), linewidth=0.9, gid="underline")


def _legend(data: pl.DataFrame) -> list[Line2D]:
    handles = []
    if data["underlined"].any():
        handles.append(Line2D([], [], color="black", linewidth=0.9, label="best training set of the model on this set"))
    if len(data["score_sd"].drop_nulls()):
        handles.append(Line2D([], [], linestyle="none", label="±: standard deviation over seeds"))
    return handles
