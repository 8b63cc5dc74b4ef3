"""Statistics of questions: one block per set, ten words and more in one bar, whatever splits there are."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.patches import StepPatch
from matplotlib.text import Text

from advsets.figures import registry
from advsets.figures.context import FigureContext

TABLES = ("question_statistics", "question_overlap", "question_kinds")


@pytest.fixture
def tables(tables_of) -> dict[str, pl.DataFrame]:
    """The tables of three sets."""
    return {name: tables_of("mixed")[name] for name in TABLES}


def only(tables, *splits: str) -> dict[str, pl.DataFrame]:
    return {name: frame.filter(pl.col("split").is_in(splits)) for name, frame in tables.items()}


def heading_texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_fontweight() == "bold" and text.get_text()]


def test_a_block_per_set_in_configured_order(tables) -> None:
    context = FigureContext({"snli": "First", "reviews": "Third"}, collections={"written": ("snli", "piqa", "reviews")})
    figure, _ = registry.draw("question_statistics", tables, context)
    assert heading_texts(figure) == ["First", "piqa", "Third"]


def test_collections_are_named_where_there_are_several(tables) -> None:
    again = {n: pl.concat([f, f.with_columns(collection=pl.lit("more"))]) for n, f in tables.items()}
    figure, _ = registry.draw("question_statistics", again, FigureContext(collections={"written": ("piqa",)}))
    assert heading_texts(figure)[0] == "piqa, written" and len(heading_texts(figure)) == 6


def test_ten_words_and_more_are_one_bar(tables, by_gid) -> None:
    figure, data = registry.draw("question_statistics", tables, FigureContext())
    bars = data.filter((pl.col("table") == "question_overlap") & (pl.col("split") == "test"))
    bars = bars.filter(pl.col("dataset") == "snli").sort("overlap")
    assert bars["overlap"].to_list() == list(range(11))
    assert bars["n_questions"].to_list() == [1, 14, 30, 22, 12, 8, 4, 3, 2, 1, 3]
    for gid in ("evaluation", "train"):
        drawn = by_gid(figure, gid, StepPatch)
        assert len(drawn) == 3
        assert drawn[0].get_data().values.tolist() == pytest.approx(bars["share"].to_list())


@pytest.mark.parametrize(
    ("splits", "n_evaluation", "n_train"),
    [(("test",), 1, 0), (("train",), 0, 1), (("train", "validation"), 1, 1), (("train", "validation", "test"), 1, 1)],
)
def test_splits_that_are_there_are_drawn(tables, by_gid, splits, n_evaluation, n_train) -> None:
    one = {name: frame.filter(pl.col("dataset") == "snli") for name, frame in only(tables, *splits).items()}
    figure, _ = registry.draw("question_statistics", one, FigureContext())
    assert len(by_gid(figure, "evaluation", StepPatch)) == n_evaluation
    assert len(by_gid(figure, "train", StepPatch)) == n_train
    shown = {text.get_text() for text in figure.findobj(Text)}
    assert {"valid." if split == "validation" else split for split in splits} <= shown


def test_nothing_to_show(tables) -> None:
    figure, data = registry.draw("question_statistics", only(tables), FigureContext())
    assert data.is_empty()
    assert "No set of the collections has questions." in {text.get_text() for text in figure.findobj(Text)}


def test_order_of_rows_changes_nothing(tables) -> None:
    shuffled = {name: frame.sample(fraction=1, shuffle=True, seed=3) for name, frame in tables.items()}
    first, second = (registry.draw("question_statistics", t, FigureContext())[1] for t in (tables, shuffled))
    assert first.equals(second)
