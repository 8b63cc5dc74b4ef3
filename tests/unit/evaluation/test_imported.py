"""Predictions that others made: every format and form, joined by id and by name, and what is said of wrong ones."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advsets.errors import UserError
from advsets.evaluation.collected.imported import ImportReport, import_predictions, import_to_table
from advsets.io import empty_frame, read_table, write_table
from advsets.registry import ImportedModel
from advsets.schemas import validate

ORDER = ("entailment", "neutral", "contradiction")
LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}
EXAMPLES = pl.DataFrame(
    {
        "example_id": ["x1", "x2", "x3", "x4"],
        "source_id": ["u1", "u2", "u3", "u4"],
        "label": ["entailment", "neutral", "contradiction", "neutral"],
    }
)
# u9 is of no example, u4 has no prediction; the order is not that of the examples.
ROWS: list[dict[str, Any]] = [
    {"uid": "u3", "said": "c", "p": [0.1, 0.2, 0.7]},
    {"uid": "u9", "said": "e", "p": [0.9, 0.05, 0.05]},
    {"uid": "u1", "said": "n", "p": [0.2, 0.5, 0.3]},
    {"uid": "u2", "said": "e", "p": [0.6, 0.25, 0.15]},
]
BY_NAME = {
    "x1": ("neutral", {"entailment": 0.2, "neutral": 0.5, "contradiction": 0.3}),
    "x2": ("entailment", {"entailment": 0.6, "neutral": 0.25, "contradiction": 0.15}),
    "x3": ("contradiction", {"entailment": 0.1, "neutral": 0.2, "contradiction": 0.7}),
}


def model(**keys: Any) -> ImportedModel:
    row = {
        "files": {"some_set": "file"},
        "columns": {"id": "uid", "predicted_label": "said", "probabilities": "p"},
        "probability_order": ["e", "n", "c"],
        "labels": LABELS,
        **keys,
    }
    return ImportedModel.from_config("m", validate({"m": row}, "predictions", "table")["m"])


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def separated(rows: list[dict[str, Any]], separator: str) -> bytes:
    quote = '"' if separator == "," else ""
    lines = [separator.join(rows[0])]
    for row in rows:
        fields = [json.dumps(v) if isinstance(v, (list, dict)) else str(v) for v in row.values()]
        lines.append(separator.join(f"{quote}{field}{quote}".replace('""', '"') for field in fields))
    return ("\n".join(lines) + "\n").encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(rows).write_parquet(buffer)
    return buffer.getvalue()


def parquet_map(rows: list[dict[str, Any]]) -> bytes:
    """Parquet whose probabilities are a map column."""
    return with_pairs(rows, [list(row["p"].items()) for row in rows])


def parquet_pairs(pairs: list[tuple[str, float]]) -> bytes:
    """The same of one row with these pairs."""
    return with_pairs([{"uid": "u1", "said": "e"}], [pairs])


def with_pairs(rows: list[dict[str, Any]], pairs: list[list[tuple[str, float]]]) -> bytes:
    maps = pa.array(pairs, pa.map_(pa.string(), pa.float64()))
    table = pa.table({"uid": [row["uid"] for row in rows], "said": [row["said"] for row in rows], "p": maps})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    def write(data: bytes | list[dict[str, Any]], name: str = "p.jsonl") -> Path:
        (tmp_path / name).write_bytes(jsonl(data) if isinstance(data, list) else data)
        return tmp_path / name

    return write


def imported(
    path: Path, given: ImportedModel | None = None, order: tuple[str, ...] = ORDER, **options: Any
) -> tuple[dict[str, tuple[str, list[float]]], ImportReport]:
    out = path.parent / "out" / "predictions.parquet"
    report = import_predictions(given or model(), path, EXAMPLES, order, out, **options)
    frame = read_table(out, "predictions")
    return {row["example_id"]: (row["predicted_label"], row["probabilities"]) for row in frame.to_dicts()}, report


def expected(order: tuple[str, ...]) -> dict[str, tuple[str, list[float]]]:
    return {key: (label, [shares[name] for name in order]) for key, (label, shares) in BY_NAME.items()}


@pytest.mark.parametrize("order", [ORDER, ("contradiction", "entailment", "neutral")])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("p.csv", separated(ROWS, ",")),
        ("p.csv.gz", gzip.compress(separated(ROWS, ","))),
        ("p.tsv", separated(ROWS, "\t")),
        ("p.json", json.dumps(ROWS, indent=1).encode()),
        ("p.jsonl", jsonl(ROWS)),
        ("p.jsonl.gz", gzip.compress(jsonl(ROWS))),
        ("p.parquet", parquet(ROWS)),
        ("p.parquet.gz", gzip.compress(parquet(ROWS))),
    ],
)
def test_every_format_gives_the_same_table(put: Any, name: str, data: bytes, order: tuple[str, ...]) -> None:
    found, report = imported(put(data, name), order=order)
    assert found == expected(order)
    assert report == ImportReport(n_rows=4, n_joined=3, n_missing=1, n_unknown=1, n_not_most_probable=0)


def test_order_of_rows_changes_nothing(put: Any) -> None:
    first, _ = imported(put(ROWS))
    assert imported(put(ROWS[::-1], "q.jsonl"))[0] == first


MAPPED = [{**row, "p": dict(zip("cne", row["p"][::-1], strict=True))} for row in ROWS]
SPREAD = [{"uid": r["uid"], "said": r["said"], **dict(zip("enc", r["p"], strict=True))} for r in ROWS]
FORMS: dict[str, tuple[bytes, str, dict[str, Any]]] = {
    "mapping of label to share": (jsonl(MAPPED), "p.jsonl", {"probability_order": []}),
    "mapping as text": (separated(MAPPED, "\t"), "p.tsv", {"probability_order": []}),
    "struct of Parquet": (parquet(MAPPED), "p.parquet", {"probability_order": []}),
    "map of Parquet": (parquet_map(MAPPED), "p.parquet", {"probability_order": []}),
    "one column per label, by name": (separated(SPREAD, ","), "p.csv", {"probability_order": []}),
    "one column per label, in another order": (
        separated(SPREAD, ","),
        "p.csv",
        {"columns": {"id": "uid", "predicted_label": "said", "probabilities": ["n", "e", "c"]}},
    ),
    "records by id": (
        json.dumps({row["uid"]: {"said": row["said"], "p": row["p"]} for row in ROWS}).encode(),
        "p.json",
        {"columns": {"predicted_label": "said", "probabilities": "p"}},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_probabilities(put: Any, form: str) -> None:
    data, name, keys = FORMS[form]
    if form.startswith("one column"):
        columns = {"id": "uid", "predicted_label": "said", "probabilities": ["e", "n", "c"]}
        keys = {"columns": columns, **keys, "probability_order": list("nec") if "another" in form else []}
    assert imported(put(data, name), model(**keys))[0] == expected(ORDER)


def test_most_probable_label_where_none_is_given_and_ties_go_to_the_first(put: Any) -> None:
    rows = [{"uid": "u1", "p": [0.4, 0.2, 0.4]}, {"uid": "u2", "p": [0.3, 0.3, 0.4]}]
    given = model(columns={"id": "uid", "probabilities": "p"})
    found, report = imported(put(rows), given)
    assert {key: label for key, (label, _) in found.items()} == {"x1": "entailment", "x2": "contradiction"}
    assert report.n_not_most_probable == 0


def test_label_of_the_file_wins_and_is_counted(put: Any) -> None:
    rows = [{"uid": "u1", "said": "n", "p": [0.6, 0.3, 0.1]}, {"uid": "u2", "said": "n", "p": [0.4, 0.4, 0.2]}]
    found, report = imported(put(rows))
    assert [label for label, _ in found.values()] == ["neutral", "neutral"]
    assert report.n_not_most_probable == 1


def test_labels_alone_have_no_probabilities(put: Any) -> None:
    columns = {"id": "uid", "predicted_label": "said"}
    found, _ = imported(put(ROWS), model(columns=columns, probability_order=[]))
    assert found == {key: (label, []) for key, (label, _) in BY_NAME.items()}


def test_json_object_of_id_to_label(put: Any) -> None:
    path = put(json.dumps({row["uid"]: row["said"] for row in ROWS}).encode(), "p.json")
    found, report = imported(path, model(columns={}, probability_order=[]))
    assert {key: label for key, (label, _) in found.items()} == {k: label for k, (label, _) in BY_NAME.items()}
    assert (report.n_joined, report.n_unknown) == (3, 1)


def test_labels_of_the_data_set_serve_where_the_model_has_none(put: Any) -> None:
    rows = [{"uid": "u1", "said": 0}, {"uid": "u2", "said": 2.0}]
    given = model(columns={"id": "uid", "predicted_label": "said"}, labels=None, probability_order=[])
    mapping: Any = {0: "entailment", 1: "neutral", 2: "contradiction"}  # as YAML has it
    found, _ = imported(put(rows), given, labels=mapping)
    assert [label for label, _ in found.values()] == ["entailment", "contradiction"]
    with pytest.raises(UserError, match="unknown label 0; allowed: entailment, neutral, contradiction; map it"):
        imported(put(rows), given)


def test_example_ids_join_by_example_id(put: Any) -> None:
    rows = [{**row, "uid": row["uid"].replace("u", "x")} for row in ROWS]
    assert imported(put(rows), model(key="example_id"))[0] == expected(ORDER)


def test_duplicated_source_ids_are_refused_only_where_they_matter(put: Any, tmp_path: Path) -> None:
    twice = EXAMPLES.with_columns(pl.col("source_id").replace("u4", "u1"))
    with pytest.raises(UserError, match="line 3: id 'u1' is the source_id of several examples .*join by example_id"):
        import_predictions(model(), put(ROWS), twice, ORDER, tmp_path / "o.parquet")
    without = [row for row in ROWS if row["uid"] != "u1"]
    assert import_predictions(model(), put(without), twice, ORDER, tmp_path / "o.parquet").n_joined == 2


def row(**change: Any) -> list[dict[str, Any]]:
    """The rows with the third one changed."""
    return [{**r, **(change if i == 2 else {})} for i, r in enumerate(ROWS)]


WRONG: dict[str, tuple[list[dict[str, Any]] | bytes, str, dict[str, Any], str]] = {
    "id twice": (row(uid="u3"), "p.jsonl", {}, "line 3: id 'u3' stands in line 1 too; allowed: one prediction"),
    "no id": (row(uid=None), "p.jsonl", {}, "line 3: the id is missing"),
    "unknown label": (row(said="x"), "p.jsonl", {}, "line 3: unknown label 'x'; allowed: e, n, c; map it in `labels`"),
    "no label": (row(said=""), "p.jsonl", {}, "line 3: no predicted label; allowed: a label in every row; fill it"),
    "not finite": (row(p=[0.2, float("nan"), 0.8]), "p.jsonl", {}, "line 3: probability 'nan' of 'neutral'"),
    "infinite": (row(p=[float("inf"), 0, 0]), "p.jsonl", {}, "line 3: probability 'inf' of 'entailment'"),
    "negative": (
        row(p=[-0.2, 0.4, 0.8]),
        "p.jsonl",
        {},
        "line 3: probability '-0.2' of 'entailment'; allowed: a number",
    ),
    "no number": (row(p=[True, 0, 0]), "p.jsonl", {}, "line 3: probability 'True' of 'entailment'"),
    "percentages": (row(p=[20, 50, 30]), "p.jsonl", {}, "line 3: probability '20' .* no percentage"),
    "wrong sum": (row(p=[0.5, 0.5, 0.5]), "p.jsonl", {}, "line 3: the probabilities sum to 1.5; allowed: 1, but for"),
    "too few": (row(p=[0.5, 0.5]), "p.jsonl", {}, "line 3: found 2 probabilities; allowed: 3, one for each of"),
    "too many": (row(p=[0.1, 0.2, 0.3, 0.4]), "p.jsonl", {}, "line 3: found 4 probabilities; allowed: 3"),
    "empty list": (row(p=[]), "p.jsonl", {}, "line 3: found 0 probabilities"),
    "no probabilities": (row(p=None), "p.jsonl", {}, "line 3: no probabilities; allowed: one for each label in every"),
    "text": (row(p="0.1 0.2 0.7"), "p.jsonl", {}, "line 3: probabilities '0.1 0.2 0.7'; allowed: a list or a mapping"),
    "a number": (row(p=0.7), "p.jsonl", {}, "line 3: probabilities '0.7'; allowed: a list or a mapping; mend the row"),
    "mapping lacks a label": (row(p={"e": 0.5, "n": 0.5}), "p.jsonl", {}, "line 3: found probabilities of entailment"),
    "mapping of others": (row(p={"e": 1, "n": 0, "z": 0}), "p.jsonl", {}, "line 3: unknown label 'z'"),
    "order not stated": (ROWS, "p.jsonl", {"probability_order": []}, "line 1: found a list .* order is not stated"),
    "order too short": (
        ROWS,
        "p.jsonl",
        {"probability_order": ["e", "n"]},
        "probability_order: found probabilities of",
    ),
    "order of others": (
        ROWS,
        "p.jsonl",
        {"probability_order": ["e", "n", "b"]},
        "probability_order: unknown label 'b'",
    ),
    "columns without an order": (
        [{"uid": "u1", "said": "e", "p1": 1, "p2": 0, "p3": 0}],
        "p.jsonl",
        {"columns": {"id": "uid", "probabilities": ["p1", "p2", "p3"]}, "probability_order": []},
        "columns of probabilities: unknown label 'p1'",
    ),
    "columns and order of other lengths": (
        [{"uid": "u1", "p1": 1, "p2": 0}],
        "p.jsonl",
        {"columns": {"id": "uid", "probabilities": ["p1", "p2"]}},
        "found 2 columns of probabilities and 3 labels in `probability_order`",
    ),
    "half of the columns": (
        b"uid,e,n,c\nu1,0.5,,0.5\n",
        "p.csv",
        {"columns": {"id": "uid", "probabilities": ["e", "n", "c"]}},
        "line 2: probability '' of 'neutral'",
    ),
    "column missing": (ROWS, "p.jsonl", {"columns": {"id": "id"}}, "column 'id' is missing; found: uid, said, p; name"),
    "no prediction named": (
        ROWS,
        "p.jsonl",
        {"columns": {"id": "uid"}},
        "no column of predictions is named; found: uid",
    ),
    "columns called otherwise than stated": (
        b"uid,said,n,e,c\nu1,e,.1,.7,.2\n",
        "p.csv",
        {"columns": {"id": "uid", "predicted_label": "said", "probabilities": ["n", "e", "c"]}},
        "columns n, e, c are called after labels and stand in another order than `probability_order`, e, n, c;",
    ),
    "label twice in a map of Parquet": (
        parquet_pairs([("e", 0.5), ("n", 0.3), ("c", 0.1), ("e", 0.1)]),
        "p.parquet",
        {"probability_order": []},
        "probabilities name 'e' twice; allowed: each label once",
    ),
    "label twice in a text": (
        b'uid\tsaid\tp\nu1\te\t{"e": 0.5, "n": 0.3, "e": 0.2}\n',
        "p.tsv",
        {"probability_order": []},
        "key 'e' stands twice in an object",
    ),
    "no id named": (
        ROWS,
        "p.jsonl",
        {"columns": {"predicted_label": "said"}},
        "no id column is named; allowed: null for",
    ),
    "no example": (
        row(uid="u8")[1:3],
        "p.jsonl",
        {},
        "none of 2 ids is that of an example, e.g. 'u9'; allowed: source",
    ),
    "empty": (b"", "p.jsonl", {}, "holds no predictions"),
    "empty list of rows": (b"[]", "p.json", {}, "holds no predictions"),
    "header alone": (b"uid,said,p\n", "p.csv", {}, "holds no predictions"),
    "unknown kind": (b"x", "p.xlsx", {}, "ends in '.xlsx'; allowed: .jsonl"),
    "broken": (b'{"uid": "u1"', "p.json", {}, "not valid JSON"),
    "array without ids": (b"[1]", "p.json", {"columns": {}}, "found a JSON list and no id column is named"),
    "key twice": (b'{"u1": "e", "u1": "n"}', "p.json", {"columns": {}}, "key 'u1' stands twice in an object"),
    "records and labels": (
        b'{"u1": "e", "u2": {}}',
        "p.json",
        {"columns": {}},
        "entry 1: found a str where others are",
    ),
    "broken object": (b'{"u1": "e"', "p.json", {"columns": {}}, "not valid JSON"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_told_in_one_line(put: Any, case: str) -> None:
    data, name, keys, message = WRONG[case]
    path = put(data, name)
    with pytest.raises(UserError, match=message) as caught:
        imported(path, model(**keys))
    text = str(caught.value)
    assert text.startswith(str(path)) and "\n" not in text
    assert not (path.parent / "out").exists()


def test_rows_of_no_example_are_counted_whatever_they_hold(put: Any) -> None:
    rows = [{**r, "said": "?", "p": [7]} if r["uid"] == "u9" else r for r in ROWS]
    assert imported(put(rows))[0] == expected(ORDER)


def test_rounded_probabilities_are_kept_as_they_are(put: Any) -> None:
    found, _ = imported(put([{"uid": "u1", "said": "e", "p": [0.33, 0.33, 0.33]}]))
    assert found["x1"][1] == [0.33, 0.33, 0.33]


def test_examples_without_the_key(put: Any, tmp_path: Path) -> None:
    for examples in (EXAMPLES.drop("source_id"), EXAMPLES.with_columns(source_id=pl.lit(None, pl.String))):
        with pytest.raises(UserError, match="joined with 'source_id', which the examples have not; .*correct `key`"):
            import_predictions(model(), put(ROWS), examples, ORDER, tmp_path / "o.parquet")


QUESTIONS = pl.DataFrame({"example_id": ["q1", "q2", "q3"], "source_id": ["a", "b", "c"], "question": ["?", "?", "?"]})
ANSWERS = {"b": "in Rome", "z": "no", "a": ""}


@pytest.mark.parametrize(
    ("name", "data", "columns"),
    [
        ("p.json", json.dumps(ANSWERS).encode(), {}),
        ("p.json.gz", gzip.compress(json.dumps(ANSWERS).encode()), {}),
        ("p.csv", b"uid,text\nb,in Rome\nz,no\na,\n", {"id": "uid", "answer": "text"}),
        ("p.json", json.dumps({k: {"text": v} for k, v in ANSWERS.items()}).encode(), {"answer": "text"}),
    ],
)
def test_answers_to_questions(put: Any, tmp_path: Path, name: str, data: bytes, columns: dict[str, str]) -> None:
    out = tmp_path / "answers.parquet"
    report = import_predictions(model(columns=columns), put(data, name), QUESTIONS, (), out)
    frame = read_table(out, "answer_predictions")
    assert frame["predicted_answer"].to_list() == ["", "in Rome"]
    assert frame.drop("predicted_answer").rows() == [("q1", -1, None, [], []), ("q2", -1, None, [], [])]
    assert report == ImportReport(n_rows=3, n_joined=2, n_missing=1, n_unknown=1)


@pytest.mark.parametrize(
    ("data", "columns", "message"),
    [
        ({"a": None}, {}, "entry 1: no answer; allowed: a text, which may be empty"),
        ({"a": ["x"]}, {}, "entry 1: .*found a list"),
        ({"a": {"text": "x"}}, {}, "no column of answers is named; found: text; name it"),
    ],
)
def test_wrong_answers(put: Any, tmp_path: Path, data: Any, columns: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        import_predictions(
            model(columns=columns), put(json.dumps(data).encode(), "p.json"), QUESTIONS, (), tmp_path / "o.parquet"
        )


def prepared(table: str, out: Path, **columns: list[Any]) -> Path:
    """A prepared table with these columns; others are empty."""
    empty = empty_frame(table)
    n = len(columns["example_id"])
    texts = {name: [""] * n for name, dtype in empty.schema.items() if dtype == pl.String}
    lists: dict[str, Any] = {name: [[]] * n for name, dtype in empty.schema.items() if isinstance(dtype, pl.List)}
    nothing = {name: [None] * n for name in empty.columns}
    write_table(pl.DataFrame({**nothing, **lists, **texts, **columns}, empty.schema), out, table)
    return out


def test_prepared_tables(put: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = {name: EXAMPLES[name].to_list() for name in ("example_id", "source_id")}
    examples = prepared("examples", tmp_path / "evaluation.parquet", **ids)
    report = import_to_table(model(), put(ROWS), examples, ORDER, tmp_path / "o.parquet")
    assert read_table(tmp_path / "o.parquet", "predictions").height == report.n_joined == 3
    told = capsys.readouterr().err
    assert "p.jsonl: 3 of 4 examples have a prediction, joined by source_id" in told
    questions = prepared("questions", tmp_path / "q.parquet", example_id=["q1"], source_id=["a"])
    answers = put(json.dumps(ANSWERS).encode(), "a.json")
    import_to_table(model(columns={}), answers, questions, (), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", "answer_predictions")["predicted_answer"].to_list() == [""]
