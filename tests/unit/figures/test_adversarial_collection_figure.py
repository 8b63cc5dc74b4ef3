"""The figure of adversarial collections shows every score where it belongs, with what the model is to the set."""

from __future__ import annotations

import dataclasses
import functools

import polars as pl
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.lines import Line2D
from matplotlib.text import Text
from synthetic.collected import make_collected
from synthetic.collected_cases import COLLECTED
from synthetic.legible import faults

from advsets.figures import registry

NAME = "adversarial_collection"


@functools.cache
def drawn(case: str):
    return registry.draw(NAME, make_collected(COLLECTED[case]), COLLECTED[case].context())


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def panels(figure, gid: str) -> list:
    return [axes for axes in figure.axes if axes.get_gid() == gid]


def marks(axes, gid: str) -> list[tuple[float, float]]:
    return sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in axes.get_lines() if line.get_gid() == gid)


def rings(axes) -> list[tuple[float, float]]:
    found = [c for c in axes.collections if isinstance(c, PathCollection) and c.get_gid() == "own_adversary"]
    return sorted(tuple(map(float, c.get_offsets()[0])) for c in found)


def means(case: str, dataset: str, measure: str = "accuracy", training_set: str = "snli_mnli") -> dict[str, float]:
    scores = make_collected(COLLECTED[case])["collected_scores"]
    rows = scores.filter(dataset=dataset, measure=measure, training_set=training_set)
    return dict(rows.group_by("evaluated_model").agg(pl.col("mean_score").mean()).iter_rows())


def test_points_stand_at_their_means() -> None:
    figure, _ = drawn("base")
    facets = panels(figure, "facet")
    assert [axes.get_title(loc="left").split("\n")[0] for axes in facets] == ["R1", "R2", "R3"]
    standard = means("base", "snli")
    for axes, dataset in zip(facets, ("R1", "R2", "R3"), strict=True):
        score = means("base", dataset)
        wanted = sorted((standard[model], score[model]) for model in ("static", "mini", "bert-large"))
        assert [v for pair in marks(axes, "model") for v in pair] == pytest.approx([v for p in wanted for v in p])


def test_published_predictions_have_columns_of_their_own() -> None:
    figure, data = drawn("base")
    (axes,) = panels(figure, "columns")
    found = marks(axes, "model") + marks(axes, "in_the_loop")
    assert len(found) == 8 * 3
    for column, dataset in enumerate(("R1", "R2", "R3")):
        wanted = means("base", dataset, training_set="imported")
        inside = [y for x, y in found if abs(x - column) < 0.45]
        assert sorted(inside) == pytest.approx(sorted(wanted.values()))
    assert data.filter(pl.col("training_set") == "imported")["standard_score"].null_count() == 8 * 3


def test_instances_in_the_loop_are_stars_with_their_names() -> None:
    figure, data = drawn("base")
    (axes,) = panels(figure, "columns")
    stars = [line for line in axes.get_lines() if line.get_gid() == "in_the_loop"]
    assert {line.get_marker() for line in stars} == {"*"}
    assert sorted(line.get_ydata()[0] for line in stars) == pytest.approx([0.0, 0.19, 0.19])
    labels = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
    assert labels == [
        "R1 n = 1,000 ★ bert-r1",
        "R2 n = 1,000 ★ roberta- from-r2",
        "R3 n = 1,000 ★ roberta- from-r3",
    ]
    assert not any(star in rings(axes) for star in marks(axes, "in_the_loop"))
    assert data.filter("in_the_loop")["evaluated_model"].to_list() == ["bert-r1", "roberta-from-r2", "roberta-from-r3"]


def test_the_base_of_the_model_in_the_loop_is_ringed() -> None:
    figure, data = drawn("base")
    own = data.filter((pl.col("relation") == "self") & (pl.col("kind") == "mean"))
    placed = own.filter(pl.col("standard_score").is_not_null())
    assert sum((rings(axes) for axes in panels(figure, "facet")), []) == [
        (pytest.approx(x), pytest.approx(y)) for x, y in placed.select("standard_score", "mean_score").iter_rows()
    ]
    (axes,) = panels(figure, "columns")
    unplaced = own.filter(pl.col("standard_score").is_null())
    assert len(unplaced) == 8 and len(placed) == 1
    assert sorted(y for _, y in rings(axes)) == pytest.approx(sorted(unplaced["mean_score"]))


def test_models_that_saw_the_training_part_are_hollow() -> None:
    figure, _ = drawn("base")
    scores = make_collected(COLLECTED["base"])["collected_scores"].filter(training_set="imported")
    (axes,) = panels(figure, "columns")
    hollow = [
        line.get_ydata()[0]
        for line in axes.get_lines()
        if line.get_gid() in ("model", "in_the_loop") and line.get_markerfacecolor() == "white"
    ]
    assert sorted(hollow) == pytest.approx(sorted(scores.filter("saw_training_part")["mean_score"]))
    assert "hollow: saw the training part" in texts(figure)
    assert "hollow: saw the training part" not in texts(drawn("no_imported")[0])


@pytest.mark.parametrize("case", ["base", "no_bounds", "no_standard"])
def test_what_is_not_above_chance_is_crossed(case) -> None:
    figure, data = drawn(case)
    rows = data.filter((pl.col("kind") == "mean") & (pl.col("construction") == "adversarial") & ~pl.col("in_the_loop"))
    low = pl.coalesce("mean_score_low", "mean_score")
    wanted = rows.filter(low <= 1 / 3)
    crosses = [y for axes in figure.axes for _, y in marks(axes, "not_above")]
    assert sorted(crosses) == pytest.approx(sorted(wanted["mean_score"]))
    assert "static" in set(wanted["evaluated_model"]) and len(wanted) < len(rows)
    assert "not above chance" in texts(figure)


def test_levels_and_diagonal_are_drawn_and_told() -> None:
    figure, _ = drawn("base")
    for axes in panels(figure, "facet"):
        lines = {line.get_gid(): line for line in axes.get_lines()}
        assert set(lines["chance"].get_ydata()) == {1 / 3} and set(lines["majority"].get_ydata()) == {0.345}
        assert list(lines["diagonal"].get_xdata()) == list(lines["diagonal"].get_ydata()) == [0, 1]
        assert "chance 33.3 %" in axes.get_title(loc="left") and "majority 34.5 %" in axes.get_title(loc="left")
        assert "n = 1,000" in axes.get_title(loc="left")
    (axes,) = panels(figure, "columns")
    levels = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_gid() == "chance"]
    assert [line.get_segments()[0][:, 1].tolist() for line in levels] == [[1 / 3, 1 / 3]] * 3


def test_penalty_and_tau_are_told() -> None:
    study = COLLECTED["base"]
    tables = make_collected(study)
    figure, _ = drawn("base")
    (own,) = tables["collected_penalty"].filter(training_set="snli_mnli", relation="self").iter_rows(named=True)
    value, low, high = (f"{own['penalty_log_odds' + end]:.2f}".replace("-", "−") for end in ("", "_low", "_high"))
    assert (
        f"anli: models trained on snli_mnli\nself-adversary penalty {value} [{low}, {high}] log-odds (1 cell)"
        in texts(figure)
    )
    (tau,) = tables["collected_correlation"].filter(training_set="snli_mnli", dataset="snli", other_dataset="R2")[
        "tau_b"
    ]
    assert f"tau-b {tau:.2f} [" in panels(figure, "facet")[1].get_title(loc="left").replace("\n", " ")
    title = panels(figure, "columns")[0].get_title(loc="left").replace("\n", " ")
    assert "Published predictions" in title and "(8 cells)" in title and "1–2: " in title and "2–3: " in title
    turned = tables["collected_correlation"].rename({"dataset": "other_dataset", "other_dataset": "dataset"})
    again, _ = registry.draw(NAME, {**tables, "collected_correlation": turned}, study.context())
    assert [axes.get_title(loc="left") for axes in again.axes] == [axes.get_title(loc="left") for axes in figure.axes]


def test_the_standard_set_is_the_first_configured() -> None:
    study = COLLECTED["base"]
    context = dataclasses.replace(study.context(), collections={"anli": ("mnli", "snli", "R3", "R2", "R1")})
    figure, data = registry.draw(NAME, make_collected(study), context)
    assert set(data["standard_dataset"].drop_nulls()) == {"mnli"}
    facets = panels(figure, "facet")
    assert [axes.get_title(loc="left").split("\n")[0] for axes in facets] == ["R3", "R2", "R1"]
    assert "Accuracy on MNLI (%)" in [axes.get_xlabel() for axes in facets]


def test_questions_show_f1_and_keep_exact_match() -> None:
    figure, data = drawn("questions")
    assert set(data["measure"]) == {"f1", "exact_match"}
    facets = panels(figure, "facet")
    assert len(facets) == 3 * 2
    wanted = means("questions", "D-BERT", "f1", "squad")
    assert sorted(y for _, y in marks(facets[0], "model")) == pytest.approx(sorted(wanted.values()))
    assert not any(line.get_gid() == "chance" for line in facets[0].get_lines())
    assert "whole passage 6.2 %" in facets[0].get_title(loc="left")
    assert {"not above whole passage", "whole passage as answer"} <= set(texts(figure))


def test_rows_of_seeds_and_means() -> None:
    _, data = drawn("base")
    own = data.filter(evaluated_model="mini", dataset="R1")
    assert own.select("kind", "model_seed", "n_seeds").rows() == [
        ("mean", None, 3),
        *(("seed", s, 1) for s in range(3)),
    ]
    mean, seeds = own.filter(kind="mean"), own.filter(kind="seed")
    assert mean["mean_score"][0] == pytest.approx(seeds["mean_score"].mean())
    assert mean["mean_score_low"][0] == seeds["mean_score_low"].min()
    assert mean["mean_score_high"][0] == seeds["mean_score_high"].max()
    assert data.filter(kind="mean").height == 3 * 5 + 8 * 3


def test_nothing_to_show_is_said() -> None:
    figure, data = drawn("none")
    assert data.is_empty() and "This run has no collection of adversarial sets." in texts(figure)
    figure, data = drawn("empty")
    assert data.is_empty()
    assert {"planned", "No model was scored on an adversarial set of this collection."} <= set(texts(figure))
    assert {"anli", "Published predictions (no score on a standard set)"} <= {
        line for text in texts(drawn("only_imported")[0]) for line in text.split("\n")
    }


def test_twelve_sets_take_three_rows() -> None:
    figure, _ = drawn("many")
    facets = panels(figure, "facet")
    assert len(facets) == 12
    places = {tuple(round(v, 3) for v in axes.get_position().bounds[:1]) for axes in facets}
    assert len(places) == 4
    assert len({axes.get_ylim() for axes in facets}) == len({axes.get_xlim() for axes in facets}) == 1


def test_row_order_changes_no_byte(tmp_path) -> None:
    study = COLLECTED["both"]
    tables = make_collected(study)
    shuffled = {name: frame.sample(fraction=1, shuffle=True, seed=1) for name, frame in tables.items()}
    files = [
        registry.save(*registry.draw(NAME, made, study.context()), tmp_path / stem)
        for stem, made in (("a", tables), ("b", shuffled))
    ]
    assert [a.read_bytes() == b.read_bytes() for a, b in zip(*files, strict=True)] == [True] * 3


@pytest.mark.parametrize("case", COLLECTED)
def test_text_is_legible(case, monkeypatch) -> None:
    figure, _ = registry.draw(NAME, make_collected(COLLECTED[case]), COLLECTED[case].context())
    assert faults(figure, monkeypatch) == {}


def test_wide_and_broken_titles_are_legible(monkeypatch) -> None:
    study = COLLECTED["both"]
    titles = ["ADVERSARIAL NLI ROUND ONE, MNLI GENRES", "DYNABENCH NLI ROUND TWO,\nHUMAN WRITTEN", "long " * 40]
    named = {name: titles[i % 3] for i, name in enumerate(study.context().dataset_titles)}
    figure, _ = registry.draw(NAME, make_collected(study), dataclasses.replace(study.context(), dataset_titles=named))
    assert faults(figure, monkeypatch) == {}


def test_no_line_is_drawn_without_bounds() -> None:
    figure, _ = drawn("no_bounds")
    lines = [c for c in figure.findobj(LineCollection) if c.get_gid() in ("interval", "standard_interval")]
    assert not lines
    assert [c for c in drawn("base")[0].findobj(LineCollection) if c.get_gid() == "standard_interval"]
    assert not [line for line in figure.findobj(Line2D) if line.get_gid() == "interval"]
