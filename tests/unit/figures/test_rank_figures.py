"""Bump chart and rank stability show what their CSV says."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text


def test_bump_lines_are_ranks(drawn, cases, by_gid) -> None:
    figure, data = drawn("rank_bump_chart", "base")
    study = cases["base"]
    lines = by_gid(figure, "rank", Line2D)
    assert len(lines) == len(study.models)
    for line, model in zip(lines, study.models, strict=True):
        rows = data.filter(pl.col("evaluated_model") == model)
        by_adversary = dict(rows.select("adversary", "rank").iter_rows())
        assert list(line.get_xdata()) == list(range(len(study.adversaries) + 1))
        assert list(line.get_ydata()) == [by_adversary[name] for name in (None, *study.adversaries)]
    assert lines[0].axes.yaxis_inverted()


def test_bump_rings_are_own_adversaries(drawn, cases, by_gid) -> None:
    figure, data = drawn("rank_bump_chart", "base")
    points = [tuple(p) for ring in by_gid(figure, "own_adversary", PathCollection) for p in ring.get_offsets().tolist()]
    own = data.filter(pl.col("adversary") == pl.col("evaluated_model"))
    wanted = {(cases["base"].adversaries.index(a) + 1, r) for a, r in own.select("adversary", "rank").iter_rows()}
    assert set(points) == wanted and len(points) == 5


def test_bump_means_and_points_of_seeds(drawn, tables_of, by_gid) -> None:
    figure, data = drawn("rank_bump_chart", "seeds")
    ranks = tables_of("seeds")["ranks"].filter(
        (pl.col("dataset") == "snli") & (pl.col("adversary") == "mini-2") & (pl.col("evaluated_model") == "mini-1")
    )
    shown = data.filter(
        (pl.col("dataset") == "snli") & (pl.col("adversary") == "mini-2") & (pl.col("evaluated_model") == "mini-1")
    )
    assert shown.filter(pl.col("adversary_seed").is_null())["rank"].item() == pytest.approx(
        sum(ranks["rank_filtered"]) / 3
    )
    assert len(shown) == 4
    assert sum(len(p.get_offsets()) for p in by_gid(figure, "adversary_seed", PathCollection)) == 2 * 2 * 3 * 3


def test_tied_ranks_are_named_apart(drawn, cases) -> None:
    figure, _ = drawn("rank_bump_chart", "tied")
    names = [text for text in figure.findobj(Annotation) if "#" in text.get_text()]
    assert len(names) == 2 * len(cases["tied"].models)


def test_bump_marks_empty_subsets(drawn, by_gid) -> None:
    figure, _ = drawn("rank_bump_chart", "empty")
    assert len(by_gid(figure, "empty", Text)) == 1


def test_stability_points_intervals_and_random_range(drawn, by_gid) -> None:
    figure, data = drawn("rank_stability", "base")
    (points,) = by_gid(figure, "tau_b", Line2D)
    assert points.get_xdata() == pytest.approx(data["adversary_strength"].to_list())
    assert points.get_ydata() == pytest.approx(data["tau_b"].to_list())
    (random,) = by_gid(figure, "random_subset", LineCollection)
    ends = [(s[0][1], s[1][1]) for s in random.get_segments()]
    assert ends == [pytest.approx(row) for row in data.select("tau_b_random_low", "tau_b_random_high").iter_rows()]
    bars = [c for c in points.axes.collections if c is not random and isinstance(c, LineCollection)]
    spans = [(s[0][1], s[1][1]) for s in bars[0].get_segments()]
    assert spans == [pytest.approx(row) for row in data.select("tau_b_low", "tau_b_high").iter_rows()]


def test_stability_of_several_seeds(drawn, by_gid) -> None:
    figure, data = drawn("rank_stability", "seeds")
    assert sum(len(line.get_xdata()) for line in by_gid(figure, "tau_b", Line2D)) == len(data) == 2 * 2 * 3
    means = by_gid(figure, "mean_over_seeds", Line2D)
    wanted = data.filter(pl.col("dataset") == "reviews").group_by("adversary_strength").agg(pl.col("tau_b").mean())
    assert means[0].get_ydata() == pytest.approx(wanted.sort("adversary_strength")["tau_b"].to_list())


def test_stability_heading_gives_sizes(drawn) -> None:
    figure, _ = drawn("rank_stability", "base")
    assert "Reviews (n = 1,066; retained 190–438)" in [text.get_text() for text in figure.findobj(Text)]


def test_one_model_has_no_ranking(drawn, by_gid) -> None:
    figure, data = drawn("rank_stability", "one_model")
    assert data["tau_b"].null_count() == len(data) == 1
    assert any("at least two evaluated models" in text.get_text() for text in figure.findobj(Text))
    assert not by_gid(figure, "tau_b")


@pytest.mark.parametrize("name", ["rank_bump_chart", "rank_stability"])
@pytest.mark.parametrize("case", ["one_adversary", "one_model", "all_empty", "no_strength"])
def test_edge_cases_are_drawn(name, case, drawn) -> None:
    figure, data = drawn(name, case)
    assert len(data)
    figure.draw_without_rendering()
