"""Figures of alternatives to filtering by one adversary show what their tables say."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.lines import Line2D

NAMES = [
    "accuracy_by_predictability",
    "accuracy_drop_by_group",
    "agreement_matched",
    "aggregate_ranks",
    "ensembles",
    "sensitivity",
]


def _points(lines) -> list[tuple[float, float]]:
    return [(x, y) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_curves_are_the_accuracies_of_bins_with_examples(drawn, cases, by_gid) -> None:
    figure, data = drawn("accuracy_by_predictability", "base")
    lines = by_gid(figure, "model", Line2D)
    assert len(lines) == len(cases["base"].models) * len(cases["base"].adversaries)
    known = data.filter(pl.col("accuracy").is_not_null())
    assert len(_points(lines)) == len(known)
    assert sorted(y for _, y in _points(lines)) == pytest.approx(sorted(known["accuracy"]))


def test_six_of_many_adversaries_have_a_panel_and_the_heading_says_so(drawn) -> None:
    figure, _ = drawn("accuracy_by_predictability", "many")
    assert sum(bool(axes.lines) for axes in figure.axes) == 6
    headings = [part.get_suptitle() for part in figure.subfigs]
    assert any("6 of 18 adversaries shown" in text for text in headings)


def test_matched_and_retained_stand_at_their_accuracy(drawn, tables_of, by_gid) -> None:
    figure, _ = drawn("agreement_matched", "base")
    table = tables_of("base")["agreement_matched"]
    for weighting in ("retained", "matched", "agreement_weighted"):
        rows = table.filter(weighting=weighting)
        wanted = sorted([*rows["accuracy_mean"], *rows["tau_b"]])
        assert sorted(x for x, _ in _points(by_gid(figure, weighting, Line2D))) == pytest.approx(wanted)


def test_without_annotators_the_figure_says_so(drawn) -> None:
    figure, data = drawn("agreement_matched", "mixed")
    texts = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert "no annotator data" in texts
    assert len(data)


def test_ranks_by_method_stand_at_their_rank(drawn, tables_of, by_gid) -> None:
    figure, _ = drawn("aggregate_ranks", "base")
    rows = tables_of("base")["aggregate_ranks"].filter(method="weighted")
    assert sorted(x for x, _ in _points(by_gid(figure, "weighted", Line2D))) == sorted(rows["rank"])


def test_single_adversaries_are_pooled_to_mean_and_range(drawn, tables_of) -> None:
    _, data = drawn("aggregate_ranks", "base")
    pooled = data.filter((pl.col("kind") == "stability") & (pl.col("method") == "single_adversary")).to_dicts()[0]
    rows = tables_of("base")["aggregate_stability"].filter(method="single_adversary")
    assert pooled["tau_b_draws"] == pytest.approx(rows["tau_b_draws_mean"].mean())
    assert pooled["tau_b_draws_low"] == rows["tau_b_draws_mean"].min()


def test_cells_are_grouped_by_family_and_objective(drawn, tables_of) -> None:
    _, data = drawn("accuracy_drop_by_group", "base")
    cells = tables_of("base")["penalty_cells"].filter(pl.col("accuracy_filtered").is_not_null())
    assert data.filter(grouping="family")["n_cells"].sum() == data.filter(grouping="objective")["n_cells"].sum()
    assert data.filter(grouping="family")["n_cells"].sum() == len(cells)
    mini = data.filter(grouping="family", group="mini", relation="same").to_dicts()[0]
    wanted = cells.filter(pl.col("adversary").str.starts_with("mini") & (pl.col("relation") == "same_family"))
    drop = 100 * (wanted["accuracy_random"] - wanted["accuracy_filtered"])
    assert mini["drop_pct_points"] == pytest.approx(drop.mean())
    assert mini["drop_pct_points_high"] == pytest.approx(drop.max())


def test_filters_without_others_have_no_excess(drawn, by_gid, cases) -> None:
    figure, data = drawn("ensembles", "base")
    assert data["comparison"].n_unique() == 3
    data = data.filter(pl.col("comparison") == "middle")
    assert data["filter"].to_list()[: len(cases["base"].adversaries)] == sorted(cases["base"].adversaries)
    assert len(_points(by_gid(figure, "mean", Line2D))) == 1
    assert len(_points(by_gid(figure, "single", Line2D))) == 2 * (len(cases["base"].adversaries) + 1)


def test_the_legend_names_the_kinds_of_filters_there_are(tables_of, cases) -> None:
    from advsets.figures import registry

    tables = tables_of("base")
    for kinds in ({"single"}, {"single", "mean"}):
        rows = tables["ensembles"].filter(pl.col("kind").is_in(sorted(kinds)))
        figure, _ = registry.draw("ensembles", {**tables, "ensembles": rows}, cases["base"].context())
        assert len(figure.legends[0].get_texts()) == len(kinds)


def test_changed_values_have_a_row_each_and_the_base_a_line(drawn, by_gid) -> None:
    figure, data = drawn("sensitivity", "base")
    changed = data.filter(pl.col("setting") != "base")
    assert len(_points(by_gid(figure, "jaccard", Line2D))) == len(changed)
    assert len(by_gid(figure, "base", Line2D)) == data["adversary"].n_unique()
    labels = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert "threshold 0.7" in labels and "seed of the draws 3" in labels


@pytest.mark.parametrize("name", NAMES)
def test_empty_tables_are_drawn(name, tables_of, cases) -> None:
    from advsets.figures import registry

    empty = {key: table.clear() for key, table in tables_of("base").items()}
    figure, data = registry.draw(name, empty, cases["base"].context())
    figure.draw_without_rendering()
    assert data.is_empty()
