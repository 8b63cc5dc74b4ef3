"""From a row and its files to examples tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from advsets.errors import UserError
from advsets.io import check_frame
from advsets.tables import TABLES

WORDS = ["no", "yes"]


def record(i: int, **more: Any) -> dict[str, Any]:
    return {"text": f"text number {i}", "label": WORDS[i % 2], **more}


TRAIN = [record(i) for i in range(60)]
DEV = [record(i) for i in range(100, 120)]


@pytest.fixture
def two_files(make_row: Any, write_jsonl: Any) -> Callable[..., Any]:
    def make(train: list[Any] = TRAIN, evaluation: list[Any] = DEV, **keys: Any) -> Any:
        source = {
            "kind": "file",
            "train": write_jsonl("train.jsonl", train),
            "evaluation": write_jsonl("dev.jsonl", evaluation),
        }
        return make_row(source, **keys)

    return make


def dropped(tables: dict[str, pl.DataFrame]) -> dict[tuple[str, str], tuple[int, bool]]:
    return {(s, r): (n, d) for s, r, n, d in tables["dropped"].rows()}


def test_tables_are_as_declared(two_files: Any, prepare: Any) -> None:
    tables = prepare(two_files())
    for name, table in (("train", "examples"), ("evaluation", "examples"), ("dropped", "dropped")):
        check_frame(tables[name], TABLES[table])
    assert tables["train"].height == 60 and tables["evaluation"].height == 20
    assert set(tables["train"]["split"]) == {"train"} and set(tables["evaluation"]["split"]) == {"validation"}
    assert set(tables["train"]["train_role"]) == {"adversary", "filtering"}
    assert tables["evaluation"]["train_role"].null_count() == 20
    assert sorted(tables["train"]["text_a"]) == sorted(r["text"] for r in TRAIN)


def test_row_order_changes_nothing(two_files: Any, prepare: Any) -> None:
    train = [*TRAIN, record(3), record(3), {**record(3), "label": "no"}]
    first = prepare(two_files(train), max_train=40)
    shuffled = train.copy()
    random.Random(1).shuffle(shuffled)
    second = prepare(two_files(shuffled, DEV[::-1]), max_train=40)
    for name, table in first.items():
        assert table.equals(second[name]), name


def test_one_file_is_split_by_group_whatever_the_seed(make_row: Any, write_jsonl: Any, prepare: Any) -> None:
    rows = [record(i, document=f"d{i // 3}") for i in range(300)]
    row = make_row(
        {"kind": "file", "train": write_jsonl("all.jsonl", rows)},
        evaluation_fraction=0.3,
        columns={"group_id": "document"},
        evaluation_split="test",
    )
    tables = prepare(row)
    groups = {name: set(tables[name]["group_id"]) for name in ("train", "evaluation")}
    assert not groups["train"] & groups["evaluation"]
    assert tables["train"].height + tables["evaluation"].height == 300
    assert 0.2 < tables["evaluation"].height / 300 < 0.4
    assert set(tables["evaluation"]["split"]) == {"test"}
    roles = tables["train"].group_by("group_id").agg(pl.col("train_role").n_unique())
    assert roles["train_role"].max() == 1
    other = prepare(row, seed=7)
    assert other["evaluation"].equals(tables["evaluation"])
    assert not other["train"]["train_role"].equals(tables["train"]["train_role"])


def test_equal_texts_of_one_file_stay_on_one_side(make_row: Any, write_jsonl: Any, prepare: Any) -> None:
    rows = [record(i) for i in range(40)] * 2
    row = make_row({"kind": "file", "train": write_jsonl("all.jsonl", rows)}, evaluation_fraction=0.5)
    tables = prepare(row)
    assert dropped(tables)["train", "text equals an evaluation row's"] == (0, True)
    roles = tables["train"].group_by("text_a").agg(pl.col("train_role").n_unique())
    assert roles["train_role"].max() == 1


def test_equal_texts_are_counted_and_dropped_from_train_by_option(two_files: Any, prepare: Any) -> None:
    train = [*TRAIN, {"text": "TEXT   number\t100 ", "label": "no"}]
    kept = prepare(two_files(train), drop_train_duplicates=False)
    assert kept["train"].height == 61
    assert dropped(kept)["train", "text equals an evaluation row's"] == (1, False)
    assert set(kept["train"]["example_id"]).isdisjoint(kept["evaluation"]["example_id"])
    gone = prepare(two_files(train))
    assert gone["train"].height == 60
    assert dropped(gone)["train", "text equals an evaluation row's"] == (1, True)
    assert gone["evaluation"].equals(kept["evaluation"])


def test_ids_of_equal_texts_are_numbered(two_files: Any, prepare: Any) -> None:
    tables = prepare(two_files([*TRAIN, record(1), record(1)]))
    ids = tables["train"].filter(pl.col("text_a") == "text number 1")["example_id"].to_list()
    assert ids == [ids[0], f"{ids[0]}-1", f"{ids[0]}-2"] and len(ids[0]) == 16


def test_rows_without_gold_label_or_text_are_dropped_and_counted(two_files: Any, prepare: Any) -> None:
    odd = [{"text": "a", "label": value} for value in ("-", -1, None, "")] + [
        {"text": "  ", "label": "yes"},
        {"label": "no"},
    ]
    tables = prepare(two_files(TRAIN + odd, DEV + odd[:1]))
    counts = dropped(tables)
    assert counts["train", "no gold label"] == (4, True)
    assert counts["train", "empty text"] == (2, True)
    assert counts["validation", "no gold label"] == (1, True)
    assert tables["train"].height == 60


def test_modal_vote_agreement_and_other_labels(two_files: Any, prepare: Any) -> None:
    votes = [["yes"] * 3 + ["no"], ["no"] * 4 + ["?"], ["yes", "no"], ["?", "?", "no"], [], ["yes", None, ""]]
    rows = [{"text": f"t{i}", "votes": v} for i, v in enumerate(votes)]
    row = two_files(
        rows + [{"text": f"r{i}", "votes": [WORDS[i % 2]]} for i in range(30)],
        rows,
        other_labels=["unsure"],
        labels={"no": "no", "yes": "yes", "?": "unsure"},
        columns={"label": None, "annotator_labels": "votes"},
    )
    tables = prepare(row, drop_train_duplicates=False)
    found = {r["text_a"]: r for r in tables["evaluation"].iter_rows(named=True)}
    assert {t: r["label"] for t, r in found.items()} == {"t0": "yes", "t1": "no", "t5": "yes"}
    assert found["t0"]["label_count"] == [1, 3, 0] and found["t0"]["agreement"] == 0.75
    assert found["t1"]["label_count"] == [4, 0, 1] and found["t1"]["agreement"] == 0.8
    assert found["t1"]["label_entropy_bits"] == pytest.approx(0.7219, abs=1e-4)
    assert found["t5"]["agreement"] == 1.0 and found["t5"]["label_entropy_bits"] == 0.0
    counts = dropped(tables)
    assert counts["validation", "annotators are tied"] == (1, True)
    assert counts["validation", "gold label unsure is no class of the task"] == (1, True)
    assert counts["validation", "no gold label"] == (1, True)


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ("counts", {"counts": [3, 2]}),
        ("counts", {"counts": {"yes": 2, "no": 3}}),
        ("counts", {"counts": "[3, 2]"}),
        (["n_no", "n_yes"], {"n_no": 3, "n_yes": "2"}),
    ],
)
def test_counts_in_every_form(two_files: Any, prepare: Any, spec: Any, values: dict[str, Any]) -> None:
    train, dev = ([{**r, **values} for r in rows] for rows in (TRAIN, DEV))
    table = prepare(two_files(train, dev, columns={"label_count": spec}))["evaluation"]
    assert table["label_count"].to_list() == [[3, 2]] * 20
    assert sorted(table["agreement"].unique()) == [0.4, 0.6]


def test_flag_ids_and_columns_of_the_evaluation_file(two_files: Any, prepare: Any) -> None:
    train = [{"first": "a", "second": str(i), "label": WORDS[i % 2]} for i in range(30)]
    dev = [
        {"first": "b", "second": str(i), "gold": i % 2, "hard": v, "key": "k"}
        for i, v in enumerate([True, "0", None, 1])
    ]
    row = two_files(
        train,
        dev,
        labels={"0": "no", "1": "yes", "no": "no", "yes": "yes"},
        columns={"text_a": ["first", "second"]},
        evaluation_columns={"label": "gold", "low_agreement": "hard", "source_id": "key"},
    )
    table = prepare(row)["evaluation"].sort("text_a")
    assert table["text_a"].to_list() == ["b 0", "b 1", "b 2", "b 3"]
    assert table["label"].to_list() == ["no", "yes", "no", "yes"]
    assert table["low_agreement"].to_list() == [True, False, None, True]
    assert table["source_id"].to_list() == ["k"] * 4


def test_ids_of_a_column(two_files: Any, prepare: Any) -> None:
    train, dev = ([{**r, "id": int(r["text"].split()[-1])} for r in rows] for rows in (TRAIN, DEV))
    table = prepare(two_files(train, dev, columns={"example_id": "id"}))["evaluation"]
    assert table["example_id"].to_list() == [str(i) for i in range(100, 120)]
    assert table["source_id"].equals(table["example_id"], check_names=False)


def test_multiple_choice(two_files: Any, prepare: Any) -> None:
    def item(i: int, n: int, **more: Any) -> dict[str, Any]:
        return {"text": f"q{i}", "answers": [f"a{i}{k}" for k in range(n)], "label": i % n, "votes": [0, 0, 1], **more}

    row = two_files(
        [item(i, 2 + i % 2) for i in range(20)],
        [item(99, 3), item(100, 2, label=-1)],
        task="multiple_choice",
        label_order=[],
        columns={"candidates": "answers", "annotator_labels": "votes"},
    )
    tables = prepare(row)
    only = tables["evaluation"].row(0, named=True)
    assert only["candidates"] == ["a990", "a991", "a992"] and only["label"] == "0" and only["label_count"] == [2, 1, 0]
    assert dropped(tables)["validation", "no gold label"] == (1, True)


def test_candidates_of_a_csv_as_json(make_row: Any, prepare: Any, tmp_path: Any) -> None:
    rows = "".join(f'q{i},"[""left"", ""right""]",{i % 2}\n' for i in range(30))
    (tmp_path / "a.csv").write_text(f"text,answers,label\n{rows}", encoding="utf-8")
    source = {"kind": "file", "train": str(tmp_path / "a.csv")}
    keys = {"task": "multiple_choice", "label_order": [], "columns": {"candidates": "answers"}}
    tables = prepare(make_row(source, evaluation_fraction=0.4, **keys))
    assert tables["train"]["candidates"].to_list()[0] == ["left", "right"]


def test_equal_question_with_other_candidates_is_another_text(two_files: Any, prepare: Any) -> None:
    def item(q: str, a: str, label: int) -> dict[str, Any]:
        return {"text": q, "x": a, "y": "other", "label": label}

    row = two_files(
        [item(f"q{i}", "a", i % 2) for i in range(20)] + [item("same", "left", 0), item("same", "right", 1)],
        [item("same", "right", 1)],
        task="multiple_choice",
        label_order=[],
        columns={"candidates": ["x", "y"]},
    )
    assert dropped(prepare(row))["train", "text equals an evaluation row's"] == (1, True)


def test_bytes_that_are_no_text_are_told(make_row: Any, prepare: Any, tmp_path: Any) -> None:
    frame = pl.DataFrame([record(i) for i in range(40)]).with_columns(pl.col("text", "label").cast(pl.Binary))
    source = {"kind": "file", "train": str(tmp_path / "a.parquet")}
    frame.write_parquet(tmp_path / "a.parquet")
    tables = prepare(make_row(source, evaluation_fraction=0.4))
    assert set(tables["train"]["text_a"]) < {r["text"] for r in (record(i) for i in range(40))}
    bad = pl.Series("text", [b"fine"] * 39 + [b"\xff"])
    frame.with_columns(bad).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet, row 1: column 'text' \(text_a\): found bytes that are not UTF-8"):
        prepare(make_row(source, evaluation_fraction=0.4))


def test_nan_is_missing(two_files: Any, prepare: Any) -> None:
    odd = [{"text": float("nan"), "label": "no"}, {"text": "u", "label": float("nan")}]
    counts = dropped(prepare(two_files(TRAIN + odd)))
    assert counts["train", "empty text"] == (1, True) and counts["train", "no gold label"] == (1, True)


def test_limits_draw_by_label_and_are_counted(two_files: Any, prepare: Any) -> None:
    train = [{"text": f"t{i}", "label": "yes" if i < 150 else "no"} for i in range(200)]
    tables = prepare(two_files(train), max_train=40, max_evaluation=10)
    assert dict(tables["train"]["label"].value_counts().rows()) == {"yes": 30, "no": 10}
    assert dict(tables["evaluation"]["label"].value_counts().rows()) == {"yes": 5, "no": 5}
    assert dropped(tables)["train", "beyond max_train"] == (160, True)
    assert dropped(tables)["validation", "beyond max_evaluation"] == (10, True)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("no rows", {"train": []}, "train.jsonl: holds no rows"),
    (
        "label",
        {"train": [*TRAIN, record(0, label="maybe")]},
        "train.jsonl, line 61: label 'maybe' is not in the mapping",
    ),
    ("class", {"train": [record(0), record(2)]}, "all 2 train rows have the label 'no'"),
    ("class of evaluation", {"evaluation": [record(100)]}, "all 1 evaluation rows have the label 'no'"),
    ("column", {"columns": {"text_a": "sentence"}}, "column 'sentence' (text_a) is missing; found: text, label"),
    (
        "unlabelled",
        {"train": [record(0, label="-")]},
        "no train rows are left: 1 of 1 train rows are dropped (no gold label); give more rows, or change what took",
    ),
    ("annotators", {"columns": {"label": None}}, "columns.label is null; allowed: only with annotators"),
    (
        "negative count",
        {"train": [record(0, c=[1, -1])], "columns": {"label_count": "c"}},
        "line 1: annotator count -1; allowed: whole numbers from 0",
    ),
    *(
        (f"count {value}", {"train": [record(0, c=count)], "columns": {"label_count": "c"}}, f"annotator count {value}")
        for value, count in (
            ("nan", [float("nan"), 1]),
            ("inf", {"no": float("inf")}),
            ("1" + "0" * 30, [10**30, 1]),
            ("1" + "0" * 39, [1, 10**400]),
            ("2000000000", "[2000000000, 1]"),
        )
    ),
    (
        "counts nested too deep",
        {"train": [record(0, c="[" * 100_000)], "columns": {"label_count": "c"}},
        "line 1: annotators '[[[[",
    ),
    *(
        (
            f"{key} of {value!r}",
            {"train": [record(0, c=value)], "columns": {key: "c"}},
            f"train.jsonl, line 1: column 'c' ({key}): found a {type(value).__name__}, {value}; allowed: a text or a"
            " number; mend the row, or correct `columns`",
        )
        for key in ("text_a", "text_b", "example_id", "source_id", "group_id", "label")
        for value in (["no"], {"a": 1})
    ),
    (
        "length of counts",
        {"train": [record(0, c=[1, 2, 3])], "columns": {"label_count": "c"}},
        "line 1: found 3 annotator counts; allowed: 2, in the order no, yes",
    ),
    ("share as count", {"train": [record(0, c=[0.5, 1])], "columns": {"label_count": "c"}}, "annotator count 0.5"),
    ("votes", {"train": [record(0, v="no")], "columns": {"annotator_labels": "v"}}, "annotators 'no'; allowed: a list"),
    (
        "unknown vote",
        {"train": [record(0, v=["no", "perhaps"])], "columns": {"annotator_labels": "v"}},
        "line 1, annotator label: label 'perhaps' is not in the mapping",
    ),
    ("surrogate", {"train": [*TRAIN, {"text": "bad \ud800 text", "label": "no"}]}, "line 61: a text holds half of a"),
    ("flag", {"train": [record(0, f="often")], "columns": {"low_agreement": "f"}}, "low_agreement 'often'; allowed"),
    (
        "ids",
        {
            "train": [record(i, id="x" if i < 2 else str(i)) for i in range(9)],
            "evaluation": [record(50, id="e")],
            "columns": {"example_id": "id"},
        },
        "1 duplicate ids: x; id 'x' stands twice",
    ),
    (
        "ids across",
        {
            "train": [record(i, id=i) for i in range(9)],
            "evaluation": [record(50, id=3)],
            "columns": {"example_id": "id"},
        },
        "id '3' stands in train and evaluation",
    ),
    (
        "id missing",
        {"train": [record(0, id="a"), record(1)], "evaluation": [record(50, id="c")], "columns": {"example_id": "id"}},
        "train.jsonl, line 2: the id is missing",
    ),
]


@pytest.mark.parametrize(("keys", "message"), [pytest.param(k, m, id=i) for i, k, m in WRONG])
def test_bad_input_is_told_in_one_line(two_files: Any, prepare: Any, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        prepare(two_files(**keys))
    assert message in str(caught.value) and "\n" not in str(caught.value)


CHOICES: list[tuple[dict[str, Any], str]] = [
    ({"label": 2}, "line 1: label '2' is not in the mapping; allowed: 0, 1"),
    ({"label": "A"}, "label 'A' is not in the mapping; allowed: 0, 1"),
    ({"answers": ["only one"]}, "line 1: found 1 candidates; allowed: two or more"),
    ({"answers": "none"}, "candidates 'none'; allowed: a list of texts"),
    ({"answers": ["a", ["b"]]}, "line 1: an entry of column 'answers' (candidates): found a list, ['b']; allowed: a"),
    ({"answers": "[" * 100_000}, "candidates '[[[["),
]


@pytest.mark.parametrize(("change", "message"), CHOICES)
def test_bad_candidates(two_files: Any, prepare: Any, change: dict[str, Any], message: str) -> None:
    item = {"text": "q", "answers": ["a", "b"], "label": 0}
    row = two_files(
        [{**item, **change}], [item], task="multiple_choice", label_order=[], columns={"candidates": "answers"}
    )
    with pytest.raises(UserError) as caught:
        prepare(row)
    assert message in str(caught.value)


def test_mapped_label_outside_the_candidates(two_files: Any, prepare: Any) -> None:
    item = {"text": "q", "answers": ["a", "b"], "label": "C"}
    columns = {"candidates": "answers"}
    row = two_files([item], [item], task="multiple_choice", label_order=[], labels={"C": "2"}, columns=columns)
    with pytest.raises(UserError, match="label '2'; allowed: the index of a candidate, 0, 1, or -1"):
        prepare(row)


def test_one_file_needs_a_fraction(make_row: Any, write_jsonl: Any, prepare: Any) -> None:
    with pytest.raises(UserError, match="`evaluation_fraction` is null"):
        prepare(make_row({"kind": "file", "train": write_jsonl("all.jsonl", TRAIN)}))


def test_a_fraction_beside_evaluation_rows_is_refused(two_files: Any, prepare: Any) -> None:
    with pytest.raises(UserError, match=r"`evaluation_fraction` 0\.2, but the source has evaluation rows .*dev\.jsonl"):
        prepare(two_files(evaluation_fraction=0.2))


def test_a_setting_that_leaves_too_few_rows_is_named(
    make_row: Any, write_jsonl: Any, two_files: Any, prepare: Any
) -> None:
    def told(row: Any, **settings: Any) -> str:
        with pytest.raises(UserError) as caught:
            prepare(row, **settings)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    one = make_row({"kind": "file", "train": write_jsonl("all.jsonl", TRAIN)}, evaluation_fraction=0.0001)
    text = told(one)
    assert "no evaluation rows are left: `evaluation_fraction` 0.0001 draws 0 of 60 rows; give more rows" in text
    text = told(two_files(), max_evaluation=1)
    assert "all 1 evaluation rows have the label 'no': `split.max_evaluation` 1 keeps 1 of 20 evaluation rows;" in text
    text = told(two_files(), max_train=1)
    assert "all 1 train rows have the label 'no': `split.max_train` 1 keeps 1 of 60 train rows;" in text
    groups = [record(i, g=f"g{i // 10}") for i in range(60)]
    text = told(two_files(groups, [record(100, g="x"), record(101, g="y")], columns={"group_id": "g"}), max_train=4)
    assert "no train rows are left: `split.max_train` 4 keeps 0 of 60 train rows;" in text
    text = told(two_files(DEV))
    assert "no train rows are left: `split.drop_train_duplicates` drops 20 of 20 training rows;" in text


THREE = {"label_order": ["no", "yes", "perhaps"]}


def perhaps(n: int, start: int) -> list[dict[str, Any]]:
    return [{"text": f"perhaps {i}", "label": "perhaps"} for i in range(start, start + n)]


@pytest.mark.parametrize(
    ("n_train", "n_evaluation", "settings", "message"),
    [
        (0, 3, {}, "label 'perhaps' has 3 evaluation rows and no filtered train rows (train 0 in all)"),
        (1, 3, {"adversary_fraction": 0.9}, "no filtered train rows (train 1 in all)"),
        (1, 3, {"max_train": 20}, "`split.max_train` 20 keeps 20 of 61 train rows;"),
    ],
)
def test_filtered_rows_must_have_the_labels_of_the_evaluation_set(
    two_files: Any, prepare: Any, n_train: int, n_evaluation: int, settings: dict[str, Any], message: str
) -> None:
    row = two_files(TRAIN + perhaps(n_train, 0), DEV + perhaps(n_evaluation, 100), **THREE)
    with pytest.raises(UserError) as caught:
        prepare(row, **settings)
    for part in (message, "label 'perhaps' has", "`split.adversary_fraction`", "to `other_labels`"):
        assert part in str(caught.value), part
    without = two_files(TRAIN + perhaps(n_train, 0), DEV + perhaps(n_evaluation, 100), other_labels=["perhaps"])
    tables = prepare(without, **settings)
    assert set(tables["train"]["label"]) == set(tables["evaluation"]["label"]) == {"no", "yes"}


def test_a_label_that_is_not_evaluated_is_warned_of(two_files: Any, prepare: Any, capsys: Any) -> None:
    prepare(two_files(TRAIN + perhaps(40, 0), DEV, **THREE))
    assert "no evaluation row has label 'perhaps'; nothing is measured for it" in capsys.readouterr().err


def test_labels_of_every_part(two_files: Any, prepare: Any) -> None:
    tables = prepare(two_files(TRAIN + perhaps(40, 0), DEV + perhaps(3, 100), **THREE))
    filtered = tables["train"].filter(pl.col("train_role") == "filtering")
    assert set(filtered["label"]) == set(tables["evaluation"]["label"]) == set(THREE["label_order"])


@pytest.mark.parametrize(("fraction", "role"), [(0.02, "adversary"), (0.98, "filtering")])
def test_a_part_of_train_with_one_class_is_refused(two_files: Any, prepare: Any, fraction: float, role: str) -> None:
    row = two_files([{"text": f"t{i}", "label": "yes" if i == 0 else "no"} for i in range(200)])
    message = f"all . {role} rows of train have the label 'no': `split.adversary_fraction` {fraction} gives "
    with pytest.raises(UserError, match=message):
        prepare(row, adversary_fraction=fraction)


def test_multiple_choice_labels_may_differ_between_parts(two_files: Any, prepare: Any) -> None:
    def item(i: int, label: int) -> dict[str, Any]:
        return {"text": f"q{i}", "answers": ["a", "b", "c"], "label": label}

    keys = {"task": "multiple_choice", "label_order": [], "columns": {"candidates": "answers"}}
    train = [*(item(i, 0) for i in range(30)), item(31, -1), item(32, -1)]
    tables = prepare(two_files(train, [item(i, 2) for i in range(40, 45)], **keys))
    assert set(tables["train"]["label"]) == {"0"} and set(tables["evaluation"]["label"]) == {"2"}
    assert dropped(tables)["train", "no gold label"] == (2, True)


def test_too_few_units_for_two_roles(two_files: Any, prepare: Any) -> None:
    train = [record(i, g="same") for i in range(10)]
    with pytest.raises(UserError, match=r"leaves no (adversary|filtering) rows of 10 training rows \(1 groups\)"):
        prepare(two_files(train, [record(i, g="other") for i in range(50, 54)], columns={"group_id": "g"}))
