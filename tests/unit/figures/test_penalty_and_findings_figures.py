"""Penalty dots and the table of findings show what their CSV says."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.lines import Line2D
from matplotlib.text import Text

from advsets.figures import registry
from advsets.figures.findings import number_text

RELATIONS = ("self", "same_family", "other")


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def test_dots_means_and_intervals(drawn, tables_of, by_gid) -> None:
    figure, data = drawn("penalty", "base")
    table = tables_of("base")["penalty"]
    for relation in RELATIONS:
        (dots,) = by_gid(figure, f"cells_{relation}", Line2D)
        rows = data.filter(pl.col("relation") == relation)
        cells = rows.filter(pl.col("kind") == "cell")
        assert list(dots.get_xdata()) == sorted(cells["residual_log_odds"])
        (mean,) = by_gid(figure, f"mean_{relation}", Line2D)
        assert mean.get_xdata()[0] == pytest.approx(sum(cells["residual_log_odds"]) / len(cells))
        intervals = by_gid(figure, f"interval_{relation}", Line2D)
        fitted = table.filter(pl.col("relation") == relation)
        assert [list(line.get_xdata()) for line in intervals] == [
            list(row) for row in fitted.select("penalty_low", "penalty_high").iter_rows()
        ]


def test_cells_are_counted(drawn) -> None:
    figure, _ = drawn("penalty", "base")
    assert {"own adversary\n(5 cells)", "same family\n(12 cells)", "other models\n(13 cells)"} <= set(texts(figure))
    assert "Reviews (interval over examples)" in texts(figure)


def test_relations_without_cells_are_left_out(drawn, by_gid) -> None:
    figure, data = drawn("penalty", "one_model")
    assert set(data["relation"]) == {"self"}
    assert "own adversary\n(1 cell)" in texts(figure)
    assert not by_gid(figure, "mean_other")


def test_no_residuals(drawn) -> None:
    figure, data = drawn("penalty", "all_empty")
    assert data.is_empty()
    assert any("No residuals" in text for text in texts(figure))


@pytest.mark.parametrize("case", ["seeds", "one_adversary", "empty", "mixed"])
def test_edge_cases_are_drawn(case, drawn) -> None:
    figure, data = drawn("penalty", case)
    assert len(data)
    figure.draw_without_rendering()


def test_every_verdict_is_written(drawn, tables_of, by_gid) -> None:
    figure, data = drawn("findings", "base")
    assert data.equals(tables_of("base")["findings"])
    written = texts(figure)
    for row in data.iter_rows(named=True):
        assert any(text.replace("\n", " ") == row["statement"] for text in written)
        assert any(text.replace("\n", " ") == row["measure"] for text in written)
    for verdict in ("holds", "does not hold", "undecided"):
        assert written.count(verdict) == (data["verdict"] == verdict).sum()
    looks = {(line.get_marker(), line.get_fillstyle()) for line in by_gid(figure, "verdict", Line2D)}
    assert len(looks) == 3, "verdicts differ by shape, not by colour alone"


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ((14.23, 12.9, 15.64), "14.2\n[12.9, 15.6]"),
        ((-0.1104, -0.13, -0.09), "−0.11\n[−0.13, −0.09]"),
        ((0.5, None, None), "0.5"),
        ((0.5, float("nan"), 1.0), "0.5"),
        ((None, None, None), "not measured"),
        ((float("nan"), 0.0, 1.0), "not measured"),
    ],
)
def test_numbers(numbers, wanted) -> None:
    assert number_text(*numbers) == wanted


def test_long_texts_make_rows_taller(tables_of, cases) -> None:
    short = tables_of("small")["findings"]
    long = short.with_columns(measure=pl.lit("a measure that takes rather many words to say what it is " * 3))
    context = cases["small"].context()
    heights = [registry.draw("findings", {"findings": table}, context)[0].get_figheight() for table in (short, long)]
    assert heights[1] > heights[0] + 0.5
