"""`advsets import-predictions`: what it writes and says, also for a user's own examples."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from advsets.cli import main
from advsets.io import empty_frame, read_table, write_table

PREDICTIONS = "uid,said,pe,pn,pc\nu2,e,0.6,0.3,0.1\nu1,n,0.6,0.3,0.1\nu7,c,0.1,0.1,0.8\n"
OPTIONS = (
    *("--id-column", "uid", "--label-column", "said", "--probability-columns", "pe", "pn", "pc"),
    *("--probability-order", "e", "n", "c", "--labels", "e=yes", "n=maybe", "c=no"),
)
OWN = "example_id,label\nu1,yes\nu2,no\nu3,maybe\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "p.csv").write_text(PREDICTIONS, encoding="utf-8")
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    return tmp_path


def run(folder: Path, *options: str, file: str = "p.csv", examples: str = "own.csv", out: str = "o.parquet") -> int:
    paths = [str(folder / file), "--examples", str(folder / examples), "--out", str(folder / out)]
    return main(["import-predictions", *paths, *options])


def test_own_examples(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files, *OPTIONS) == 0
    table = read_table(files / "o.parquet", "predictions")
    assert table.rows() == [("u1", "maybe", [0.3, 0.1, 0.6]), ("u2", "yes", [0.3, 0.1, 0.6])]
    told = capsys.readouterr().out
    assert "2 of 3 examples have a prediction, joined by example_id" in told
    assert "1 examples have none" in told and "1 of 3 rows are of no example" in told
    assert "1 rows predict a label that is less probable" in told
    assert "probabilities in the order maybe, no, yes" in told


def test_prepared_examples_join_by_source_id_in_the_given_order(files: Path) -> None:
    examples = empty_frame("examples")
    rows = {"example_id": ["a", "b"], "source_id": ["u1", "u2"], "label": ["yes", "no"]}
    filled = {name: rows.get(name, [None, None]) for name in examples.columns}
    filled |= {"split": ["validation"] * 2, "text_a": ["x", "y"]}
    write_table(pl.DataFrame(filled, examples.schema), files / "evaluation.parquet", "examples")
    assert run(files, *OPTIONS, "--label-order", "yes", "maybe", "no", examples="evaluation.parquet") == 0
    table = read_table(files / "o.parquet", "predictions")
    assert table.rows() == [("a", "maybe", [0.6, 0.3, 0.1]), ("b", "yes", [0.6, 0.3, 0.1])]


def test_answers(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "answers.json").write_text(json.dumps({"u1": "Rome", "u7": ""}), encoding="utf-8")
    (files / "questions.csv").write_text("example_id,question\nu1,Where?\nu2,Who?\n", encoding="utf-8")
    assert run(files, file="answers.json", examples="questions.csv") == 0
    assert read_table(files / "o.parquet", "answer_predictions")["predicted_answer"].to_list() == ["Rome"]
    assert "1 of 2 examples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "e:yes"], "--labels: found 'e:yes'; allowed: RAW=NAME"),
        (["--labels", "e=yes", "e=no"], "--labels: found 'e' twice"),
        (["--label-order", "yes", "no"], "--label-order: 'maybe', a label of"),
        (["--probability-order", "e", "e"], "probability_order: found ['e', 'e']; allowed: each entry once"),
        (["--key", "source_id"], "joined with 'source_id', which the examples have not"),
        (["--id-column", "id"], "column 'id' is missing; found: uid, said, pe, pn, pc"),
        (["--labels", "e=yes", "n=perhaps"], "--labels n=perhaps: no example has the label 'perhaps'; allowed: maybe,"),
        (["--answer-column", "said"], "--label-column: found 'said' for answers, which have no labels"),
        (["--answer-column", "said", "--label-column", ""], "--probability-columns: found ['pe', 'pn', 'pc'] for"),
    ],
)
def test_wrong_options(files: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(files, *OPTIONS, *options)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1
    assert not (files / "o.parquet").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "e=yes"], "--labels: found {'e': 'yes'} for answers, which have no labels"),
        (["--probability-order", "e", "n"], "--probability-order: found ['e', 'n'] for answers"),
    ],
)
def test_labels_of_answers(files: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(files, "--id-column", "uid", "--answer-column", "said", *options)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,label\nu1,yes\n",
            "found 1 rows with columns id, label; allowed: a row per example with column example_id",
        ),
        ("example_id,label\n", "found no rows; allowed: a row per example"),
        ("example_id,label\nu1,yes\n,no\n", "line 3: an example_id is missing; allowed: one row per example"),
        ("example_id,label\nu1,yes\nu1,no\n", "line 2: example_id 'u1' stands twice; allowed: one row per"),
        ("example_id\nu1\nu2\n", "found 0 labels in column label; allowed: two or more, or --label-order"),
    ],
)
def test_wrong_examples(files: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "own.csv").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        run(files, *OPTIONS)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["answers", "questions"])
def test_half_a_surrogate_pair_is_told(files: Path, broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"answers": "Rome", "questions": "Where?"} | {broken: "\ud800"}
    (files / "answers.json").write_text(json.dumps({"u1": texts["answers"]}), encoding="utf-8")
    row = {"example_id": "u1", "question": texts["questions"]}
    (files / "questions.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        run(files, file="answers.json", examples="questions.jsonl")
    told = capsys.readouterr().err
    assert f"{files / broken}.json" in told and "holds half of a surrogate pair" in told and told.count("\n") == 1


def test_what_is_no_predictions_is_not_replaced(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"mine": [1]}).write_parquet(files / "o.parquet")
    with pytest.raises(SystemExit):
        run(files, *OPTIONS)
    assert "something else than table predictions stands there" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(files, *OPTIONS, out="o.csv")
    assert "allowed: .parquet" in capsys.readouterr().err
    assert run(files, *OPTIONS, out="new.parquet") == run(files, *OPTIONS, out="new.parquet") == 0
