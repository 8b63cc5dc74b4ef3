"""Retained shares and predictability histograms show what their CSV says."""

from __future__ import annotations

import collections
import dataclasses

import polars as pl
import pytest
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from matplotlib.text import Text

from advsets.figures import registry
from advsets.figures.context import FigureContext
from advsets.figures.predictability_histogram import selected_rounds, shown


def test_shares_by_hand() -> None:
    rounds = pl.DataFrame(
        {
            "dataset": ["d"] * 3,
            "adversary": ["a"] * 3,
            "adversary_seed": [0, 0, 1],
            "filtering_round": [1, 2, 1],
            "n_train_before": [100, 90, 100],
            "n_train_removed": [10, 5, 20],
            "n_evaluation_before": [40, 20, 40],
            "n_evaluation_removed": [20, 10, 30],
        }
    )
    _, data = registry.draw("retained_share_by_round", {"rounds": rounds}, FigureContext())
    mean = data.filter(pl.col("adversary_seed").is_null() & (pl.col("split") == "evaluation"))
    # seed 1 stopped after round 1 with 10 of 40 left
    assert mean["retained_share"].to_list() == pytest.approx([1.0, (0.5 + 0.25) / 2, (0.25 + 0.25) / 2])
    assert mean["n_retained"].to_list() == pytest.approx([40, 15, 10])
    train = data.filter((pl.col("adversary_seed") == 0) & (pl.col("split") == "train"))
    assert train["retained_share"].to_list() == pytest.approx([1.0, 0.9, 0.85])


def test_lines_per_adversary_and_split(drawn, cases, by_gid) -> None:
    figure, data = drawn("retained_share_by_round", "base")
    for split in ("evaluation", "train"):
        lines = by_gid(figure, split, Line2D)
        assert len(lines) == len(cases["base"].adversaries)
        for line, adversary in zip(lines, cases["base"].adversaries, strict=True):
            rows = data.filter((pl.col("split") == split) & (pl.col("adversary") == adversary))
            assert list(line.get_xdata()) == rows["filtering_round"].to_list()
            assert list(line.get_ydata()) == rows["retained_share"].to_list()
    assert not by_gid(figure, "adversary_seed")


def test_points_of_seeds(drawn, by_gid) -> None:
    figure, data = drawn("retained_share_by_round", "seeds")
    points = sum(len(p.get_offsets()) for p in by_gid(figure, "adversary_seed", PathCollection))
    single = data.filter(pl.col("adversary_seed").is_not_null() & (pl.col("split") == "evaluation"))
    assert points == len(single) > 0


@pytest.mark.parametrize(
    ("last", "wanted"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (12, [1, 2, 6, 12])]
)
def test_selected_rounds(last, wanted) -> None:
    assert selected_rounds(last) == wanted


def scores_of(values: list[float], removed: list[bool]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "dataset": "d",
            "adversary": "a",
            "adversary_seed": 0,
            "filtering_round": 1,
            "split": "evaluation",
            "predictability": values,
            "removed": removed,
        }
    )


def test_edges_of_bins() -> None:
    values = [0.0, 0.05, 0.0501, 48 / 64, 49 / 64, 1.0]
    data = shown(scores_of(values, [False] * 4 + [True] * 2), FigureContext())
    kept = data.filter(pl.col("n_retained") > 0).select("bin_low", "n_retained").rows()
    assert kept == [(0.0, 2), (pytest.approx(0.05), 1), (pytest.approx(0.7), 1)], "48 of 64 lies below the threshold"
    gone = data.filter(pl.col("n_removed") > 0).select("bin_low", "n_removed").rows()
    assert gone == [(pytest.approx(0.75), 1), (pytest.approx(0.95), 1)]
    assert len(data) == 20


def test_histograms_are_the_data(drawn, cases, by_gid) -> None:
    figure, data = drawn("predictability_histogram", "small")
    panels = data.select("adversary", "filtering_round").unique(maintain_order=True).rows()
    kept, gone = (by_gid(figure, gid, StepPatch) for gid in ("retained", "removed"))
    assert len(kept) == len(gone) == len(panels)
    assert len(by_gid(figure, "threshold", Line2D)) == len(panels)
    assert {line.get_xdata()[0] for line in by_gid(figure, "threshold", Line2D)} == {0.75}
    for (adversary, number), low, high in zip(panels, kept, gone, strict=True):
        rows = data.filter((pl.col("adversary") == adversary) & (pl.col("filtering_round") == number))
        n = rows["n_retained"].sum() + rows["n_removed"].sum()
        assert low.get_data().values == pytest.approx((rows["n_retained"] / n).to_list())
        assert high.get_data().baseline == pytest.approx((rows["n_retained"] / n).to_list())
        assert high.get_data().values == pytest.approx(((rows["n_retained"] + rows["n_removed"]) / n).to_list())
        assert f"round {number} (n = {n:,})" in low.axes.get_title(loc="left")


def test_each_data_set_has_its_own_threshold(tables_of, cases, by_gid) -> None:
    context = dataclasses.replace(cases["seeds"].context(), thresholds={"reviews": 0.75, "snli": 0.6})
    figure, data = registry.draw("predictability_histogram", tables_of("seeds"), context)
    panels = data.select("dataset", "adversary", "filtering_round").unique()["dataset"].value_counts()
    found = collections.Counter(line.get_xdata()[0] for line in by_gid(figure, "threshold", Line2D))
    assert found == {context.thresholds[name]: n for name, n in panels.rows()}
    assert any(text.get_text() == "threshold (60 %, 75 %)" for text in figure.findobj(Text))


def test_all_rows_of_a_round_are_counted(drawn, tables_of) -> None:
    _, data = drawn("predictability_histogram", "small")
    scores = tables_of("small")["round_scores"]
    for adversary, number, n in (
        data.group_by("adversary", "filtering_round")
        .agg(pl.sum_horizontal("n_retained", "n_removed").sum())
        .iter_rows()
    ):
        assert n == len(scores.filter((pl.col("adversary") == adversary) & (pl.col("filtering_round") == number)))


def test_many_adversaries_are_thinned_out(drawn) -> None:
    figure, data = drawn("predictability_histogram", "many")
    assert data["adversary"].n_unique() == 6
    assert {"m00", "m17"} <= set(data["adversary"])
    assert any("6 of 18 adversaries" in text.get_text() for text in figure.findobj(Text))


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("predictability_histogram", "round_scores", "No filtering round has scores."),
        ("retained_share_by_round", "rounds", "No filtering round was run."),
    ],
)
def test_no_filtering_round(name, table, message, tables_of, cases) -> None:
    figure, data = registry.draw(name, {table: tables_of("small")[table].clear()}, cases["small"].context())
    assert data.is_empty()
    assert message in [text.get_text() for text in figure.findobj(Text)]
    bare, _ = registry.draw(name, {table: tables_of("small")[table].clear()}, FigureContext())
    bare.draw_without_rendering()


@pytest.mark.parametrize("case", ["one_adversary", "one_model", "all_empty"])
def test_edge_cases_are_drawn(case, drawn) -> None:
    for name in ("retained_share_by_round", "predictability_histogram"):
        figure, data = drawn(name, case)
        assert len(data)
        figure.draw_without_rendering()
