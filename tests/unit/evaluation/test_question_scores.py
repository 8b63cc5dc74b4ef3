"""`advsets score qa`: published scores to two decimals, what is missing or unknown, and files that do not fit."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.cli import main
from advsets.errors import UserError
from advsets.evaluation.question_scores import answer_scores, read_answers, score_questions

CONTEXT = "The cat sat on a mat in the old town of Ghent"
GOLD = {"q1": ["The cat", "cat"], "q2": ["old town of Ghent"], "q3": ["The"], "q4": ["a mat"]}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    def save(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return save


@pytest.fixture
def gold(write: Any) -> Path:
    qas = [
        {"id": key, "question": "?", "answers": [{"text": a, "answer_start": CONTEXT.find(a)} for a in answers]}
        for key, answers in GOLD.items()
    ]
    return write("gold.json", {"data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]})


def test_scores_by_hand(gold: Path, write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {"zz": "x", "q3": "a", "q2": "the Old town", "q1": "cat."}
    path, out = write("p.json", answers), tmp_path / "scores.csv"
    assert main(["score", "qa", str(gold), str(path), "--out", str(out)]) == 0
    lines = {line[:19].strip(): line[19:].strip() for line in capsys.readouterr().out.splitlines()}
    assert lines["questions"] == "4"
    assert lines["exact match"] == "50.00"
    assert lines["F1"] == f"{100 * (1 + 2 * 2 / 6) / 4:.2f}"
    assert lines["missing predictions"] == "1 (counted as wrong)"
    assert lines["unknown ids"] == "1 (left out: zz)"
    rows = {row["example_id"]: row for row in pl.read_csv(out).to_dicts()}
    assert {key: row["exact_match"] for key, row in rows.items()} == {"q1": 1, "q2": 0, "q3": 1, "q4": 0}
    assert rows["q3"]["f1"] == 0 and rows["q2"]["f1"] == pytest.approx(2 / 3) and rows["q1"]["n_answers"] == 2


def test_a_missing_answer_is_wrong_even_where_nothing_would_match(gold: Path, write: Any, capsys: Any) -> None:
    scores = score_questions(gold, write("p.json", {"q3": None, "q1": "", "q4": "mat"}), None)
    found = dict(scores.select("example_id", "exact_match").rows())
    assert found == {"q1": 0, "q2": 0, "q3": 0, "q4": 1}
    assert scores.filter(pl.col("predicted_answer").is_null())["example_id"].to_list() == ["q2", "q3"]
    assert "missing predictions  2" in capsys.readouterr().out


def test_order_of_either_file_changes_nothing(gold: Path, write: Any, capsys: Any) -> None:
    answers = {"q1": "dog cat", "q2": "Ghent", "q3": "x", "q4": "mat"}
    first = score_questions(gold, write("p.json", answers), None)
    content = json.loads(gold.read_text(encoding="utf-8"))
    content["data"][0]["paragraphs"][0]["qas"].reverse()
    other = score_questions(write("g.json", content), write("r.json", dict(reversed(answers.items()))), None)
    assert other.equals(first)
    assert capsys.readouterr().out.count("unknown ids          0\n") == 2


@pytest.mark.parametrize("name", ["scores.csv", "scores.json"])
def test_scores_replace_scores_and_nothing_else(gold: Path, write: Any, tmp_path: Path, name: str) -> None:
    predictions, out = write("p.json", {"q1": "cat"}), tmp_path / name
    for _ in range(2):
        scores = score_questions(gold, predictions, out)
    if out.suffix == ".json":
        assert json.loads(out.read_text(encoding="utf-8")) == scores.to_dicts()
    out.write_text("[{}]" if out.suffix == ".json" else "a,b\n", encoding="utf-8")
    with pytest.raises(UserError, match="something else than scores stands there"):
        score_questions(gold, predictions, out)
    with pytest.raises(UserError, match=r"allowed: \.csv, \.json"):
        score_questions(gold, predictions, tmp_path / "scores.xlsx")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"q1": ["cat"]}, "id 'q1': answer: found a list, \"['cat']\"; allowed: a text"),
        ({"q1": {"text": "cat"}}, "id 'q1': answer: found a dict"),
        ({"q1": 7}, "id 'q1': answer: found a int"),
        ({"q1": "\ud800"}, "id 'q1': answer: holds half of a surrogate pair"),
        ([{"id": "q1"}], "found a list; allowed: an object of id to answer"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"q1": "a", "q2": "b", "q1": "c"}', "key 'q1' stands twice in an object"),
        ({"x": "cat"}, "none of the 1 ids is in"),
        ({}, "none of the 0 ids is in"),
    ],
)
def test_predictions_that_do_not_fit(gold: Path, write: Any, content: Any, message: str, capsys: Any) -> None:
    path = write("p.json", content)
    with pytest.raises(SystemExit, match="2"):
        main(["score", "qa", str(gold), str(path)])
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith(f"advsets: error: {path}")
    assert message in output.err and output.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_pipe_is_not_waited_for(kind: str, gold: Path, write: Any, tmp_path: Path) -> None:
    out = tmp_path / f"scores.{kind}"
    os.mkfifo(out)
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for the pipe"))
    signal.alarm(10)
    try:
        with pytest.raises(UserError, match="something else than scores stands there"):
            score_questions(gold, write("p.json", {"q1": "cat"}), out)
    finally:
        signal.alarm(0)


def test_a_missing_file_is_told(gold: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; give the path of a JSON object"):
        read_answers(tmp_path / "p.json")
    with pytest.raises(UserError, match="no such file; give the path of a file of questions"):
        score_questions(tmp_path / "g.json", gold, None)


PUBLISHED = {
    "bert_ensemble": {"all": (78.52, 88.37), "san_mrc": (84.26, 91.36), "xquad": (74.82, 86.45)},
    "logistic_regression": {"all": (37.06, 47.87), "san_mrc": (40.28, 50.48), "xquad": (34.98, 46.18)},
}
SIZES = {"all": 1797, "san_mrc": 705, "xquad": 1092}


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
@pytest.mark.parametrize("system", PUBLISHED)
def test_published_scores(system: str, write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(os.environ["ADVSETS_DATA_DIR"]) / "squad"
    for part, (exact, f1) in PUBLISHED[system].items():
        content = json.loads((folder / "dev_subset.json").read_text(encoding="utf-8"))
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                paragraph["qas"] = [q for q in paragraph["qas"] if part in ("all", q["source"])]
        scores = score_questions(write("gold.json", content), folder / "predictions" / f"{system}.json", None)
        printed = capsys.readouterr().out
        assert scores.height == SIZES[part]
        assert f"exact match          {exact:.2f}\nF1                   {f1:.2f}\n" in printed, (system, part)
        if system == "logistic_regression" and part == "all":
            assert "missing predictions  2 (counted as wrong)" in printed


def test_any_table_of_answers_can_be_scored() -> None:
    frame = pl.DataFrame({"example_id": ["b", "a"], "answers": [["x y"], ["z"]]})
    assert answer_scores(frame, {"b": "x", "c": "z"}).rows() == [
        ("a", 1, None, 0, 0.0),
        ("b", 1, "x", 0, pytest.approx(2 / 3)),
    ]
