"""Curves by adversary strength and the heat map of the drop show what their CSV says."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

CURVES = "accuracy_by_adversary_strength"
HEAT_MAP = "accuracy_drop_heatmap"


def curve_rows(data: pl.DataFrame, dataset: str, model: str) -> pl.DataFrame:
    return data.filter(
        (pl.col("dataset") == dataset)
        & (pl.col("subset") == "filtered")
        & pl.col("adversary_seed").is_null()
        & (pl.col("evaluated_model") == model)
    ).sort("adversary_strength")


@pytest.mark.parametrize("case", ["base", "seeds", "many"])
def test_one_line_per_evaluated_model(case, drawn, cases, by_gid) -> None:
    figure, data = drawn(CURVES, case)
    study = cases[case]
    lines = by_gid(figure, "filtered", Line2D)
    assert len(lines) == len(study.models) * len(study.datasets)
    wanted = [curve_rows(data, dataset, model) for dataset in study.datasets for model in study.models]
    for line, rows in zip(lines, wanted, strict=True):
        assert line.get_xdata() == pytest.approx(rows["adversary_strength"].to_list())
        assert line.get_ydata() == pytest.approx(rows["accuracy"].to_list())


def test_lines_differ_by_more_than_colour(drawn, by_gid) -> None:
    figure, _ = drawn(CURVES, "many")
    looks = [(line.get_marker(), line.get_linestyle()) for line in by_gid(figure, "filtered", Line2D)]
    assert len(set(looks)) == len(looks) == 18


def test_own_adversary_is_circled(drawn, cases, by_gid) -> None:
    figure, data = drawn(CURVES, "base")
    own = data.filter(pl.col("own_adversary") & (pl.col("subset") == "filtered"))
    rings = by_gid(figure, "own_adversary", PathCollection)
    points = sorted(tuple(point) for ring in rings for point in ring.get_offsets().tolist())
    assert len(points) == len(cases["base"].adversaries) == 5
    wanted = sorted(own.select("adversary_strength", "accuracy").iter_rows())
    assert points == [pytest.approx(row) for row in wanted]


def test_seeds_become_points_and_the_line_their_mean(drawn, tables_of, by_gid) -> None:
    figure, data = drawn(CURVES, "seeds")
    points = sum(len(p.get_offsets()) for p in by_gid(figure, "adversary_seed", PathCollection))
    assert points == 2 * 2 * 3 * 3  # data sets, adversaries, adversary seeds, models
    table = tables_of("seeds")["accuracy"]
    for dataset, subset, adversary, model, mean in (
        data.filter(pl.col("adversary_seed").is_null())
        .select("dataset", "subset", "adversary", "evaluated_model", "accuracy")
        .iter_rows()
    ):
        rows = table.filter(
            (pl.col("dataset") == dataset)
            & (pl.col("subset") == subset)
            & pl.col("adversary").eq_missing(adversary)
            & (pl.col("evaluated_model") == model)
        )
        assert mean == pytest.approx(sum(rows["accuracy"]) / len(rows))


def test_random_band_full_set_and_chance(drawn, cases, by_gid) -> None:
    figure, data = drawn(CURVES, "base")
    bands = by_gid(figure, "random_subset")
    assert len(bands) == len(cases["base"].models)
    rows = data.filter((pl.col("subset") == "random_subset") & (pl.col("evaluated_model") == "static"))
    heights = bands[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(rows["accuracy_low"].min())
    assert heights.max() == pytest.approx(rows["accuracy_high"].max())
    full = [float(line.get_ydata()[0]) for line in by_gid(figure, "full_set", Line2D)]
    wanted = data.filter(pl.col("subset") == "full_set").sort("accuracy")["accuracy"]
    assert sorted(full) == pytest.approx(wanted.to_list())
    assert [line.get_ydata()[0] for line in by_gid(figure, "chance", Line2D)] == pytest.approx([1 / 3, 1 / 3])


def test_empty_subset_and_unknown_strength(drawn, by_gid) -> None:
    figure, data = drawn(CURVES, "empty")
    assert data.filter(pl.col("adversary") == "mini-3", pl.col("subset") == "filtered")["accuracy"].null_count() == 4
    assert len(by_gid(figure, "empty", Text)) == 1
    assert all(len(line.get_xdata()) == 3 for line in by_gid(figure, "filtered", Line2D))
    headings = [text.get_text() for text in figure.findobj(Text) if "not shown" in text.get_text()]
    assert headings == ["Reviews (n = 1,066; retained 0–407; 1 of 4 adversaries not shown: strength unknown)"]


def test_without_any_strength_adversaries_stand_in_order(drawn, by_gid) -> None:
    figure, _ = drawn(CURVES, "no_strength")
    assert all(list(line.get_xdata()) == [1.0, 2.0, 3.0] for line in by_gid(figure, "filtered", Line2D))


@pytest.mark.parametrize("name", [CURVES, HEAT_MAP])
@pytest.mark.parametrize("case", ["one_adversary", "one_model", "all_empty", "mixed"])
def test_edge_cases_are_drawn(name, case, drawn, cases) -> None:
    figure, data = drawn(name, case)
    assert set(data["dataset"]) == set(cases[case].datasets)
    figure.draw_without_rendering()


def test_cells_are_annotated_and_outlined(drawn, cases, by_gid) -> None:
    figure, data = drawn(HEAT_MAP, "base")
    study = cases["base"]
    cells = {tuple(map(round, text.get_position())): text.get_text() for text in by_gid(figure, "cell", Text)}
    assert len(cells) == len(study.adversaries) * len(study.models) == len(data)
    for adversary, model, drop in data.select("adversary", "evaluated_model", "drop_pct_points").iter_rows():
        place = (study.models.index(model), study.adversaries.index(adversary))  # weakest first in both
        assert cells[place] == f"{drop:.1f}".replace("-", "−")
    assert len(by_gid(figure, "self", Rectangle)) == (data["relation"] == "self").sum() == 5
    assert len(by_gid(figure, "same_family", Rectangle)) == (data["relation"] == "same_family").sum() == 12
    own = [(round(box.get_x() + 0.46), round(box.get_y() + 0.44)) for box in by_gid(figure, "self", Rectangle)]
    assert sorted(own) == [(i, i) for i in range(5)]


def test_drop_is_against_random_subsets(drawn, tables_of) -> None:
    _, data = drawn(HEAT_MAP, "base")
    cell = tables_of("base")["penalty_cells"].row(3, named=True)
    shown = data.filter(
        (pl.col("adversary") == cell["adversary"]) & (pl.col("evaluated_model") == cell["evaluated_model"])
    )
    assert shown["drop_pct_points"].item() == pytest.approx(100 * (cell["accuracy_random"] - cell["accuracy_filtered"]))


def test_empty_cells_say_so(drawn, by_gid) -> None:
    figure, data = drawn(HEAT_MAP, "empty")
    assert (
        [text.get_text() for text in by_gid(figure, "cell", Text)].count("–")
        == data["drop_pct_points"].null_count()
        == 4
    )
