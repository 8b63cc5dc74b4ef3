"""Agreement, by labels or by the flag of low agreement, shows what its CSV says."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.lines import Line2D
from matplotlib.text import Text

from advsets.figures import registry


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


@pytest.mark.parametrize(("case", "measure"), [("base", "agreement"), ("flag", "low_agreement")])
def test_dots_are_the_data(case, measure, drawn, cases, by_gid) -> None:
    figure, data = drawn("agreement", case)
    means = data.filter(pl.col("kind") == "mean")
    assert set(means["measure"]) == {measure}
    classes = [None, "entailment", "neutral", "contradiction"]
    for subset in ("retained", "removed"):
        lines = by_gid(figure, subset, Line2D)
        assert len(lines) == len(classes)
        for line, gold in zip(lines, classes, strict=True):
            rows = means.filter(pl.col("gold_label").eq_missing(gold) & (pl.col("subset") == subset))
            assert list(line.get_xdata()) == rows["value"].to_list()
            assert list(line.get_ydata()) == [cases[case].adversaries.index(name) for name in rows["adversary"]]
    full = [line.get_xdata()[0] for line in by_gid(figure, "full_set", Line2D)]
    wanted = [
        means.filter(pl.col("gold_label").eq_missing(gold) & (pl.col("subset") == "full_set"))["value"].mean()
        for gold in classes
    ]
    assert full == pytest.approx(wanted)


def test_label_and_heading_of_agreement(drawn) -> None:
    figure, _ = drawn("agreement", "base")
    assert "Mean agreement with the gold label (% of annotators)" in texts(figure)
    assert "Reviews (n = 1,066 with annotator data; retained 190–438)" in texts(figure)


def test_histogram_is_the_data(drawn, by_gid) -> None:
    figure, data = drawn("agreement", "base")
    bars = data.filter(pl.col("kind") == "histogram")
    lines = by_gid(figure, "histogram", Line2D)
    shown = bars.filter(pl.col("subset") == "retained")["adversary"].unique(maintain_order=True).to_list()
    assert len(lines) == len(shown) == 4, "four of five adversaries"
    assert {"static", "mini-6"} <= set(shown)
    by_label = {line.get_label(): line for line in lines}
    rows = bars.filter((pl.col("adversary") == "static") & (pl.col("subset") == "retained"))
    assert list(by_label["retained by static"].get_ydata()) == rows["share"].to_list()
    full = bars.filter(pl.col("subset") == "full_set")
    heights = [patch.get_height() for patch in lines[0].axes.patches]
    assert heights == full["share"].to_list()


def test_flag_alone_has_no_histogram(drawn, by_gid) -> None:
    figure, data = drawn("agreement", "flag")
    assert "Examples flagged for low agreement (%)" in texts(figure)
    assert not by_gid(figure, "histogram")
    assert set(data["kind"]) == {"mean"}


def test_flag_of_more_examples_wins_over_labels_of_few(tables_of, cases) -> None:
    tables = dict(tables_of("small"))
    flagged = pl.col("n_examples") + 1
    share = {f"low_agreement_{name}": pl.lit(0.25) for name in ("share", "low", "high")}
    tables["agreement"] = tables["agreement"].with_columns(n_flagged=flagged, **share)
    figure, data = registry.draw("agreement", tables, cases["small"].context())
    assert set(data["measure"]) == {"low_agreement"} and set(data["value"]) == {0.25}
    assert "Reviews (n = 1,067 with annotator data; retained 253–377)" in texts(figure)
    tables["agreement"] = tables["agreement"].with_columns(n_flagged=pl.col("n_examples") // 2)
    _, data = registry.draw("agreement", tables, cases["small"].context())
    assert set(data.filter(pl.col("kind") == "mean")["measure"]) == {"agreement"}


def test_no_annotator_data_is_said_plainly(drawn, by_gid) -> None:
    figure, data = drawn("agreement", "no_annotators")
    assert data.is_empty()
    assert any("no annotator data" in text for text in texts(figure))
    assert not by_gid(figure, "retained")


def test_nulls_alone_count_as_no_annotator_data(tables_of, cases) -> None:
    """As the evaluation writes them for a data set without annotators."""
    tables = dict(tables_of("small"))
    measures = [name for name in tables["agreement"].columns if name.startswith(("agreement_", "low_", "label_"))]
    nothing = [pl.lit(None, pl.Float64).alias(name) for name in measures]
    zero = [pl.lit(0, pl.Int64).alias("n_examples"), pl.lit(None, pl.Int64).alias("n_flagged")]
    tables["agreement"] = tables["agreement"].with_columns(*nothing, *zero)
    figure, data = registry.draw("agreement", tables, cases["small"].context())
    assert data.is_empty()
    assert any("no annotator data" in text for text in texts(figure))


def test_each_data_set_by_its_own_measure(drawn) -> None:
    figure, data = drawn("agreement", "mixed")
    measures = dict(
        data.filter(pl.col("kind") == "mean").group_by("dataset").agg(pl.col("measure").first()).iter_rows()
    )
    assert measures == {"reviews": "agreement", "snli": "low_agreement"}
    assert set(data.filter(pl.col("kind") == "histogram")["dataset"]) == {"reviews"}
    assert sum("no annotator data" in text for text in texts(figure)) == 1


@pytest.mark.parametrize("case", ["seeds", "one_adversary", "one_model", "empty", "all_empty"])
def test_edge_cases_are_drawn(case, drawn) -> None:
    figure, _ = drawn("agreement", case)
    figure.draw_without_rendering()
