"""Placing labels, ordering models, naming counts, reading tables."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advsets.errors import UserError
from advsets.figures import frames, inputs, layout, style
from advsets.figures.context import FigureContext
from advsets.io import polars_dtype, write_table
from advsets.registry import DatasetRow, ImportedModel, ModelRow
from advsets.tables import TABLES


@given(st.lists(st.floats(0, 100), max_size=8))
def test_spread_keeps_gap_order_and_bounds(positions) -> None:
    placed = layout.spread(positions, 10, 0, 100)
    ordered = [placed[i] for i in sorted(range(len(positions)), key=lambda i: (positions[i], i))]
    assert all(b - a >= 10 - 1e-9 for a, b in zip(ordered, ordered[1:], strict=False))
    assert all(-1e-9 <= value <= 100 + 1e-9 for value in placed)


def test_spread_moves_only_what_it_must() -> None:
    assert layout.spread([10, 30, 90], 10, 0, 100) == pytest.approx([10, 30, 90])
    assert layout.spread([50, 50, 50], 10, 0, 100) == pytest.approx([40, 50, 60])
    assert layout.spread([90, 2, 50], 10, 5, 100) == pytest.approx([90, 5, 50])
    assert layout.spread([], 10, 0, 100) == []
    too_many = layout.spread([1.0] * 30, 10, 0, 100)
    assert sorted(too_many) == pytest.approx([10.0 * i for i in range(30)])


def test_shorten_keeps_both_ends() -> None:
    assert layout.shorten("short") == "short"
    assert layout.shorten("organisation/very-long-model-name-large-17") == "organisation/v…l-name-large-17"
    assert len(layout.shorten("x" * 99)) == layout.LONGEST_NAME


def test_styles_are_distinct() -> None:
    looks = style.series_styles(map(str, range(77))).values()
    assert len({(look.colour, look.marker) for look in looks}) == 77


def test_looks_do_not_depend_on_who_is_drawn() -> None:
    context = FigureContext(model_titles={"a": "A", "b": "B", "c": "C"})
    assert frames.looks(["c"], context)["c"] == frames.looks(["a", "b", "c"], context)["c"]
    assert set(frames.looks(["new", "a"], context)) == {"a", "new"}


def test_strength_orders_and_places() -> None:
    context = FigureContext(model_titles={"x": "X", "y": "Y", "z": "Z"})
    assert frames.weakest_first({"x": 0.9, "y": None, "z": 0.5}, context) == ["y", "z", "x"]
    assert frames.x_positions({"x": 0.9, "y": None, "z": 0.5}, context) == ({"z": 0.5, "x": 0.9}, True)
    assert frames.x_positions({"z": None, "y": None}, context) == ({"y": 1.0, "z": 2.0}, False)


@pytest.mark.parametrize(
    ("counts", "wanted"), [([], "0"), ([1066], "1,066"), ([190, 1438, 300], "190–1,438"), ([12.4, 12.1], "12")]
)
def test_count_range(counts, wanted) -> None:
    assert frames.count_range(counts) == wanted


@pytest.mark.parametrize(("n", "most", "wanted"), [(3, 4, "abc"), (5, 4, "abde"), (26, 3, "amz"), (26, 2, "az")])
def test_evenly(n, most, wanted) -> None:
    assert frames.evenly(list("abcdefghijklmnopqrstuvwxyz"[:n]), most) == list(wanted)


def dataset_row(**changes) -> DatasetRow:
    row = {
        "title": "Reviews",
        "task": "sequence_classification",
        "label_order": ["bad", "good"],
        "labels": None,
        "source": {"kind": "file", "train": "x"},
        "columns": {},
        "evaluation_split": "validation",
        "evaluation_fraction": None,
        "licence": "MIT",
        "citation": "",
        "homepage": "",
        "language": "en",
        "other_labels": [],
        "evaluation_columns": {},
        "more_annotators": None,
        "model_in_the_loop": None,
        "questions": {},
        "filter": {},
        "fine_tune": {},
    }
    return DatasetRow.from_config("reviews", {**row, **changes})


def model_row(name: str, title: str) -> ModelRow:
    return ModelRow.from_config(
        name,
        {
            "title": title,
            "source": {"kind": "hub", "repo": "o/m"},
            "family": "mini",
            "objective": "masked",
            "parameters_m": None,
            "n_layers": 2,
            "random_init": False,
            "config_overrides": {},
            "freeze": "none",
            "pooling": "mean",
            "precision": "auto",
            "gpus": 1,
            "fine_tune": {},
            "licence": "MIT",
        },
    )


def test_context_of_rows() -> None:
    context = FigureContext.from_rows(
        [dataset_row()], [model_row("b", "B model"), model_row("a", "")], {"reviews": 0.6}
    )
    assert context.dataset_title("reviews") == "Reviews" and context.dataset_title("else") == "else"
    assert (context.model_title("b"), context.model_title("a")) == ("B model", "a")
    assert context.order_models(["a", "b", "0"]) == ["b", "a", "0"]
    assert context.order_labels("reviews", ["other", "good", "bad"]) == ["bad", "good", "other"]
    assert context.chance("reviews") == 0.5 and context.chance("else") is None
    assert context.thresholds == {"reviews": 0.6} and context.families == {"a": "mini", "b": "mini"}
    multiple_choice = dataset_row(label_order=[], task="multiple_choice")
    assert FigureContext.from_rows([multiple_choice], [], {}).chance("reviews") is None
    by_hand = FigureContext.from_rows([multiple_choice], [], {}, {"reviews": ("0", "1", "2", "3")})
    assert by_hand.chance("reviews") == 0.25


def test_context_of_collections() -> None:
    imported = ImportedModel.from_config(
        "theirs",
        {
            "title": "Their model",
            "family": None,
            "base_model": None,
            "trained_on": "reviews",
            "saw": [],
            "in_the_loop_of": ["R1"],
            "licence": "MIT",
            "files": {"R1": "r1.csv"},
            "sha256": {},
            "key": "source_id",
            "columns": {},
            "probability_order": [],
            "labels": None,
        },
    )
    collections = {
        "second": {"standard": ["reviews"], "adversarial": ["R2", "R1"], "training_sets": {"z": {}, "a": {}}},
        "first": {"standard": [], "adversarial": ["R1"], "training_sets": {}},
    }
    context = FigureContext.from_rows(
        [dataset_row()], [model_row("b", "B")], {}, imported=[imported], collections=collections
    )
    assert context.order_models(["theirs", "b"]) == ["b", "theirs"] and context.model_title("theirs") == "Their model"
    assert context.families["theirs"] == ""
    assert context.order_collections(["first", "other", "second"]) == ["second", "first", "other"]
    assert context.order_sets("second", ["R1", "R2", "reviews", "x"]) == ["reviews", "R2", "R1", "x"]
    assert context.order_sets("unknown", ["x", "reviews"]) == ["reviews", "x"]
    assert context.order_training_sets("second", ["a", "z"]) == ["z", "a"]
    assert context.order_training_sets("first", ["z", "a"]) == ["a", "z"]


def full_table(name: str, rows: dict) -> pl.DataFrame:
    """A table as it is written: columns that are not given are zero or null."""
    frame = pl.DataFrame(rows)
    missing = [c for c in TABLES[name].columns if c.name not in rows]
    return frame.with_columns(pl.lit(None if c.nullable else 0).cast(polars_dtype(c)).alias(c.name) for c in missing)


def test_read_tables_puts_runs_together(tmp_path) -> None:
    paths = []
    for number in range(4):
        paths.append(tmp_path / f"{number}.parquet")
        write_table(
            full_table("rounds", {"filtering_round": [1], "n_evaluation_before": [number]}), paths[-1], "rounds"
        )
    tables = inputs.read_tables({"rounds": paths}, ["d1", "d2"], [("a", 0), ("b", 3)])
    assert tables["rounds"].select("dataset", "adversary", "adversary_seed", "n_evaluation_before").rows() == [
        ("d1", "a", 0, 0),
        ("d1", "b", 3, 1),
        ("d2", "a", 0, 2),
        ("d2", "b", 3, 3),
    ]
    with pytest.raises(ValueError, match="zip"):
        inputs.read_tables({"rounds": paths[:3]}, ["d1", "d2"], [("a", 0), ("b", 3)])


def test_only_evaluation_scores_are_read(tmp_path) -> None:
    path = tmp_path / "scores.parquet"
    rows = {
        "filtering_round": [1, 1],
        "split": ["train", "evaluation"],
        "example_id": ["t", "e"],
        "predictability": [0.5, 0.75],
        "removed": [False, True],
    }
    write_table(full_table("round_scores", rows), path, "round_scores")
    table = inputs.filter_table("round_scores", [("d", "a", 0, path)])
    assert table.select("split", "predictability", "removed").rows() == [("evaluation", 0.75, True)]


def test_no_runs_and_empty_tables_keep_their_columns(tmp_path) -> None:
    path = tmp_path / "rounds.parquet"
    write_table(full_table("rounds", {"filtering_round": [1]}).clear(), path, "rounds")
    empty, none = inputs.filter_table("rounds", [("d", "a", 0, path)]), inputs.filter_table("rounds", [])
    assert empty.schema == none.schema and empty.is_empty() and none.is_empty()


def test_evaluation_tables_of_several_data_sets(tables_of, tmp_path) -> None:
    table = tables_of("mixed")["penalty"]
    for dataset in ("reviews", "snli"):
        write_table(table.filter(pl.col("dataset") == dataset), tmp_path / f"{dataset}.parquet", "penalty")
    read = inputs.read_tables({"penalty": [tmp_path / "snli.parquet", tmp_path / "reviews.parquet"]}, [], [])["penalty"]
    assert read["dataset"].to_list() == ["snli", "snli", "reviews", "reviews"]
    with pytest.raises(UserError, match="no such file"):
        inputs.evaluation_table("penalty", [tmp_path / "absent.parquet"])


@pytest.mark.parametrize(("n_words", "shrinks"), [(3, False), (21, True)])
def test_a_heading_fits_its_block_in_letters_large_enough(n_words: int, shrinks: bool) -> None:
    figure = style.new_figure(2.0)
    (block,) = layout.blocks(figure, [1])
    layout.heading(block, "word " * n_words)
    block.subplots()
    figure.draw_without_rendering()
    title = block.texts[0] if block.texts else block._suptitle
    assert title.get_window_extent().x1 <= figure.bbox.width
    assert title.get_fontsize() >= style.SMALLEST_PT
    assert (title.get_fontsize() < 8.5) == shrinks
