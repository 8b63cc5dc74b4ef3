"""Training sets out of several data sets: what is left out, how many of each, on which passages."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from advsets.datasets.training_sets import (
    BEYOND,
    IN_EVALUATION,
    OTHER_PASSAGE,
    PASSAGE_IN_EVALUATION,
    join_examples,
    join_questions,
    write_training_set,
)
from advsets.errors import UserError
from advsets.io import empty_frame, read_table, write_table


def examples(texts: list[str], start: str = "t", **columns: list) -> pl.DataFrame:
    n = len(texts)
    given = {
        "example_id": [f"{start}{i}" for i in range(n)],
        "split": ["train"] * n,
        "text_a": texts,
        "label": ["ab"[i % 2] for i in range(n)],
        **columns,
    }
    schema = empty_frame("examples").schema
    return pl.DataFrame([pl.Series(name, given.get(name, [None] * n), dtype=dtype) for name, dtype in schema.items()])


def questions(passages: list[str], start: str = "q", splits: list[str] | None = None) -> pl.DataFrame:
    n = len(passages)
    return pl.DataFrame(
        {
            "example_id": [f"{start}{i}" for i in range(n)],
            "source_id": [f"{start}{i}" for i in range(n)],
            "split": splits or ["train"] * n,
            "document_id": passages,
            "passage_id": passages,
            "context": [f"text of {p}" for p in passages],
            "question": [f"what {start}{i}?" for i in range(n)],
            "answers": [["text"]] * n,
            "answer_starts": [[0]] * n,
        }
    )


def counts(dropped: pl.DataFrame) -> dict[str, int]:
    return dict(zip(dropped["reason"], dropped["n_examples"], strict=True))


class TestExamples:
    def test_ids_name_their_data_set_and_texts_of_evaluation_are_left_out(self) -> None:
        parts = {"one": examples(["x", "Y  z", "w"]), "two": examples(["y Z", "v"])}
        joined, dropped = join_examples(parts, [examples(["y z"], "e")], max_train=None, seed=0)
        assert joined["example_id"].to_list() == ["one/t0", "one/t2", "two/t1"]
        assert counts(dropped) == {IN_EVALUATION: 2}
        assert joined["label_count"].null_count() == 3

    def test_each_data_set_has_its_share(self) -> None:
        parts = {"one": examples([f"a{i}" for i in range(50)]), "two": examples([f"b{i}" for i in range(20)])}
        joined, dropped = join_examples(parts, [], max_train=25, seed=0)
        of = joined["example_id"].str.split("/").list.first().value_counts()
        assert dict(of.iter_rows()) == {"one": 13, "two": 12}
        assert counts(dropped) == {IN_EVALUATION: 0, BEYOND: 45}

    def test_row_order_does_not_matter(self) -> None:
        frame = examples([f"a{i}" for i in range(40)])
        one, _ = join_examples({"d": frame}, [], max_train=10, seed=3)
        other, _ = join_examples({"d": frame.reverse()}, [], max_train=10, seed=3)
        assert set(one["example_id"]) == set(other["example_id"]) and one.height == 10
        changed, _ = join_examples({"d": frame}, [], max_train=10, seed=4)
        assert set(one["example_id"]) != set(changed["example_id"])

    def test_nothing_left_is_one_line(self) -> None:
        with pytest.raises(UserError, match="no training rows of one are left \\(1 text equals an evaluation row's"):
            join_examples({"one": examples(["x"])}, [examples(["x"], "e")], max_train=None, seed=0)


class TestQuestions:
    def test_passages_of_evaluation_sets_are_left_out(self) -> None:
        parts = {"one": questions(["p", "q", "r"])}
        joined, dropped = join_questions(parts, {"other": questions(["q", "s"], "e")}, max_train=None, seed=0)
        assert joined["passage_id"].to_list() == ["p", "r"]
        assert counts(dropped) == {PASSAGE_IN_EVALUATION: 1}

    def test_validation_questions_of_the_data_set_choose_the_checkpoint(self) -> None:
        evaluation = {
            "one": questions(["v", "w"], "e", ["validation", "test"]),
            "other": questions(["u"], "f", ["validation"]),
        }
        joined, _ = join_questions({"one": questions(["p"])}, evaluation, max_train=None, seed=0)
        assert dict(zip(joined["example_id"], joined["split"], strict=True)) == {
            "one/q0": "train",
            "one/e0": "validation",
        }

    def test_only_shared_passages(self) -> None:
        parts = {"one": questions(["p", "q", "r", "r"])}
        shared = [questions(["r", "q", "x"]), questions(["r", "p"])]
        joined, dropped = join_questions(parts, {}, passages_of=shared, max_train=None, seed=0)
        assert joined["passage_id"].to_list() == ["r", "r"]
        assert counts(dropped)[OTHER_PASSAGE] == 2

    def test_equal_sizes_are_of_the_same_passages(self) -> None:
        passages = [f"p{i:02d}" for i in range(40)]
        drawn = {
            name: join_questions({name: questions(passages, name)}, {}, max_train=10, seed=0)[0]
            for name in ("one", "two")
        }
        assert drawn["one"].height == 10
        assert set(drawn["one"]["passage_id"]) == set(drawn["two"]["passage_id"])


@pytest.mark.parametrize("max_train", [None, 8])
def test_a_data_set_that_is_all_evaluation_is_told_whatever_the_limit(max_train: int | None) -> None:
    with pytest.raises(UserError, match="no training rows of one are left \\(2 text equals an evaluation row's"):
        join_examples({"one": examples(["x", "y"])}, [examples(["y", "x"], "e")], max_train=max_train, seed=0)
    with pytest.raises(UserError, match="no training rows of one are left \\(2 passage of an evaluation set"):
        join_questions(
            {"one": questions(["p", "q"])},
            {"two": questions(["p", "q"], "e", ["test", "test"])},
            max_train=max_train,
            seed=0,
        )


def test_what_is_left_out_is_counted_by_data_set() -> None:
    parts = {"a": examples(["x", "y", "z"]), "b": examples(["x", "y"], "f")}
    with pytest.raises(UserError, match="no training rows of b are left \\(2 text equals an evaluation row's"):
        join_examples(parts, [examples(["x", "y"], "e")], max_train=None, seed=0)


def test_a_label_whose_groups_are_too_large_for_the_draw_is_told() -> None:
    frame = examples([f"t{i}" for i in range(48)]).with_columns(
        group_id=pl.Series(["g"] * 40 + [f"s{i}" for i in range(8)]), label=pl.Series(["yes"] * 40 + ["no"] * 8)
    )
    with pytest.raises(UserError, match="^here: of d's label 'yes' no training row fits into 24 rows, drawn by whole"):
        join_examples({"d": frame}, [], max_train=24, seed=0, where="here")
    joined, _ = join_examples({"d": frame}, [], max_train=48, seed=0)
    assert joined.height == 48


@pytest.mark.parametrize("table", ["examples", "questions"])
def test_files_are_read_by_what_they_hold(tmp_path: Path, table: str) -> None:
    make = examples if table == "examples" else questions
    train, evaluation = tmp_path / "train.parquet", tmp_path / "evaluation.parquet"
    write_table(make(["p", "q"]), train, table)
    write_table(make(["r"], "e"), evaluation, table)

    def write(scored: Path, where: str) -> None:
        out, dropped = tmp_path / "out.parquet", tmp_path / "dropped.parquet"
        write_training_set({"d": train}, {"d": scored}, [], out, dropped, max_train=None, seed=0, where=where)

    write(evaluation, "training set")
    assert read_table(tmp_path / "out.parquet", table).height == 2
    assert read_table(tmp_path / "dropped.parquet", "dropped")["dropped"].all()
    with pytest.raises(UserError, match=r"^collections: c.training_sets: t: no training rows of d are left"):
        write(train, "collections: c.training_sets: t")
