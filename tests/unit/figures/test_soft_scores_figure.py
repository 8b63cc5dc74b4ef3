"""Soft scores show what their CSV says, of more annotators where there are any."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.text import Text

from advsets.figures import registry

PANELS = ["js_distance", "kl_nats", "majority_accuracy"]


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def test_points_are_the_data(drawn, cases, by_gid) -> None:
    figure, data = drawn("soft_scores", "base")
    models = list(cases["base"].models)
    for gid, subset, shift in (("full_set", "full_set", -0.16), ("retained", "filtered", 0.16)):
        lines = by_gid(figure, gid, Line2D)
        assert len(lines) == len(PANELS)
        for line, measure in zip(lines, PANELS, strict=True):
            rows = data.filter(pl.col("subset") == subset)
            wanted = dict(rows.group_by("evaluated_model").agg(pl.col(measure).mean()).iter_rows())
            found = {models[round(y - shift)]: x for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
            assert found == pytest.approx(wanted)
    spans = by_gid(figure, "random_subset", LineCollection)
    assert len(spans) == len(PANELS) * len(models)
    random = data.filter(pl.col("subset") == "random_subset").group_by("evaluated_model")
    lowest = dict(random.agg(pl.col("js_distance_low").min()).iter_rows())
    ends = [span.get_segments()[0] for span in spans[: len(models)]]
    assert {models[round(left[1])]: left[0] for left, _ in ends} == pytest.approx(lowest)


def test_more_annotators_come_before_own(drawn, cases, tables_of) -> None:
    _, data = drawn("soft_scores", "seeds")
    found = dict(data.group_by("dataset").agg(pl.col("annotators").unique().first()).iter_rows())
    assert found == {"reviews": "own", "snli": "more_annotators"}
    context = dataclasses.replace(cases["seeds"].context(), annotators={"snli": "ChaosNLI"})
    figure, _ = registry.draw("soft_scores", tables_of("seeds"), context)
    headings = [text for text in texts(figure) if "(n = " in text]
    assert headings[0].startswith("Reviews (n = 1,066 with labels of its annotators; retained ")
    assert headings[1].startswith("Snli (n = 177 with labels of ChaosNLI; retained ")


def test_data_sets_without_annotators_say_so(drawn, by_gid) -> None:
    figure, data = drawn("soft_scores", "no_annotators")
    assert data.is_empty() and not by_gid(figure, "full_set")
    assert "This data set has no annotator labels to compare with." in texts(figure)
    figure, data = drawn("soft_scores", "mixed")
    assert set(data["dataset"]) == {"reviews"}
    assert sum("no annotator labels" in text for text in texts(figure)) == 2


@pytest.mark.parametrize("case", ["seeds", "one_adversary", "one_model", "empty", "all_empty", "many"])
def test_edge_cases_are_drawn(case, drawn) -> None:
    figure, data = drawn("soft_scores", case)
    assert len(data)
    figure.draw_without_rendering()
