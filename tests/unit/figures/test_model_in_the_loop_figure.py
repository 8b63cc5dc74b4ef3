"""The figure of a model's seeds in its loop: dots, means and deviations, the instance in the loop apart."""

from __future__ import annotations

import dataclasses
import functools
import statistics

import polars as pl
import pytest
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.text import Text
from synthetic.collected import make_collected
from synthetic.collected_cases import COLLECTED
from synthetic.legible import faults

from advsets.figures import registry

NAME = "model_in_the_loop"


def table(case: str) -> pl.DataFrame:
    return make_collected(COLLECTED[case])[NAME]


@functools.cache
def drawn(case: str):
    return registry.draw(NAME, {NAME: table(case)}, COLLECTED[case].context())


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def panel(figure, title: str):
    (axes,) = [axes for axes in figure.axes if axes.get_title(loc="left") == title]
    return axes


def rows_of(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def at(axes, gid: str, row: int) -> list[float]:
    """Values of a kind of points in this row of the panel."""
    lines = [line for line in axes.get_lines() if line.get_gid() == gid]
    return [float(x) for line in lines for x, y in line.get_xydata() if abs(y - row) < 0.4]


def test_rows_name_their_examples() -> None:
    axes = panel(drawn("base")[0], "bert-large, trained on snli_mnli")
    n = table("base").filter(evaluated_model="bert-large", dataset="R1", how="by_selection")["n_examples"][0]
    found = rows_of(axes)
    start = found.index("R1")
    assert found[:2] == ["SNLI", "whole set, n = 1,000"]
    assert found[start : start + 4] == [
        "R1",
        "whole set, n = 1,000",
        f"by selection, not by people (seed 0), n = {n:,}",
        "by people, against this base, n = 1,000",
    ]
    assert len(found) == 5 * 3 + 1


@pytest.mark.parametrize("how", ["full_set", "by_selection"])
def test_dots_mean_and_deviation(how) -> None:
    figure, data = drawn("base")
    axes = panel(figure, "mini, trained on snli_mnli")
    row = rows_of(axes).index("R2") + (1 if how == "full_set" else 2)
    own = table("base").filter(evaluated_model="mini", dataset="R2", how=how)
    others = own.filter(~pl.col("in_the_loop"))["mean_score"].to_list()
    assert len(others) == (3 if how == "full_set" else 2)
    assert sorted(at(axes, f"instance_{how}", row)) == pytest.approx(sorted(others))
    mean, sd = statistics.mean(others), statistics.stdev(others)
    assert at(axes, f"mean_{how}", row) == pytest.approx([mean])
    spans = [c.get_segments()[0] for c in axes.collections if c.get_gid() == f"deviation_{how}"]
    (span,) = [segment for segment in spans if segment[0][1] == row]
    assert span[:, 0].tolist() == pytest.approx([mean - sd, mean + sd])
    assert f"{100 * mean:.1f} ± {100 * sd:.1f}, {len(others)} seeds" in texts(axes)
    assert at(axes, "in_the_loop", row) == ([] if how == "full_set" else [0.02])
    (summary,) = data.filter(kind="mean", evaluated_model="mini", dataset="R2", how=how).iter_rows(named=True)
    assert (summary["mean_score"], summary["score_sd"]) == (pytest.approx(mean), pytest.approx(sd))
    assert summary["n_seeds"] == len(others)


def test_all_instances_stand_in_the_data() -> None:
    _, data = drawn("questions")
    rows = table("questions")
    assert set(data["measure"]) == {"exact_match", "f1"}
    assert data.filter(kind="instance").select(rows.columns).sort(rows.columns).equals(rows.sort(rows.columns))


def test_questions_are_drawn_by_f1() -> None:
    figure, _ = drawn("questions")
    axes = panel(figure, "bert-large, trained on squad")
    own = table("questions").filter(evaluated_model="bert-large", dataset="squad", how="full_set", measure="f1")
    assert at(axes, "mean_full_set", 1) == pytest.approx([own["mean_score"].mean()])
    assert "F1 (%)" in [a.get_xlabel() for a in figure.axes]


def test_chance_stands_where_labels_are_known() -> None:
    study = COLLECTED["base"]
    context = dataclasses.replace(study.context(), label_orders={"R2": ("a", "b", "c")})
    figure, _ = registry.draw(NAME, {NAME: table("base")}, context)
    lines = [c for c in figure.findobj(LineCollection) if c.get_gid() == "chance"]
    assert [line.get_segments()[0][:, 0].tolist() for line in lines] == [[1 / 3, 1 / 3]] * 3
    assert not [c for c in drawn("base")[0].findobj(LineCollection) if c.get_gid() == "chance"]


def test_one_seed_and_no_examples() -> None:
    figure, data = drawn("one_model")
    axes = panel(figure, "mini, trained on snli_mnli")
    assert texts(axes).count("only the instance in the loop") == 3
    assert [text for text in texts(axes) if text.endswith(", 1 seed") and "±" not in text]
    assert data.filter(kind="mean")["score_sd"].null_count() == data.filter(kind="mean").height
    rows = table("base").with_columns(
        mean_score=pl.when(how="by_selection").then(None).otherwise("mean_score"),
        n_examples=pl.when(how="by_selection").then(0).otherwise("n_examples").cast(pl.Int64),
    )
    figure, data = registry.draw(NAME, {NAME: rows}, COLLECTED["base"].context())
    assert texts(figure).count("no examples") == 3 * 5
    assert data.filter(kind="mean", how="by_selection").is_empty()


def test_instances_of_several_loops_have_rows_of_their_own() -> None:
    first = table("base")
    second = first.filter(how="by_selection").with_columns(
        loop_seed=pl.lit(1, pl.Int64), in_the_loop=pl.col("model_seed") == 1
    )
    figure, _ = registry.draw(NAME, {NAME: pl.concat([first, second])}, COLLECTED["base"].context())
    found = rows_of(panel(figure, "mini, trained on snli_mnli"))
    assert [text.split(",")[1] for text in found if text.startswith("by selection")][:2] == [
        " not by people (seed 0)",
        " not by people (seed 1)",
    ]


def test_nothing_to_show_is_said() -> None:
    figure, data = drawn("none")
    assert data.is_empty() and "This run has no collection of adversarial sets." in texts(figure)
    for case in ("empty", "only_imported"):
        assert "No model of this collection was trained, so none was in a loop." in texts(drawn(case)[0])


@pytest.mark.parametrize("case", ["base", "both", "many", "one_model", "empty", "none", "only_imported"])
def test_text_is_legible(case, monkeypatch) -> None:
    figure, _ = registry.draw(NAME, {NAME: table(case)}, COLLECTED[case].context())
    assert faults(figure, monkeypatch) == {}


def test_row_order_changes_no_byte(tmp_path) -> None:
    rows, context = table("questions"), COLLECTED["questions"].context()
    files = [
        registry.save(*registry.draw(NAME, {NAME: made}, context), tmp_path / stem)
        for stem, made in (("a", rows), ("b", rows.sample(fraction=1, shuffle=True, seed=1)))
    ]
    assert [a.read_bytes() == b.read_bytes() for a, b in zip(*files, strict=True)] == [True] * 3


def test_stars_and_dots_differ_by_shape() -> None:
    figure, _ = drawn("base")
    markers = {line.get_marker() for line in figure.findobj(Line2D) if line.get_gid() == "in_the_loop"}
    means = {line.get_marker() for line in figure.findobj(Line2D) if (line.get_gid() or "").startswith("mean_")}
    assert markers == {"*"} and len(means) == 3
