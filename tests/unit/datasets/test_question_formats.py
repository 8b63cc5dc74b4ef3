"""DROP and NaturalQuestions: which questions are kept, where their answers stand, and what is said of the others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.datasets import drop, natural_questions, sources
from advsets.datasets.questions.prepare import prepare_questions
from advsets.errors import UserError
from advsets.io import check_frame
from advsets.tables import TABLES

PASSAGE = "In 1527 the Rams beat Ram City, 14 to 7. A fan 🏈 cheere\u0301d: Rams! Ram won."
NO_DATE = {"day": "", "month": "", "year": ""}


def pair(key: str, spans: list[str], number: Any = "", date: dict[str, str] | None = None, **more: Any) -> dict:
    answer = {"number": number, "date": NO_DATE | (date or {}), "spans": spans}
    return {"query_id": key, "question": f"What of {key}?", "answer": answer, **more}


def section(*pairs: dict, **more: Any) -> dict[str, Any]:
    return {"passage": PASSAGE, "qa_pairs": list(pairs), **more}


def write(path: Path, value: Any) -> Path:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def checked(tables: tuple[pl.DataFrame, pl.DataFrame]) -> list[dict[str, Any]]:
    """Rows of `questions`, every answer cut from its passage at its place."""
    check_frame(tables[0], TABLES["questions"])
    assert check_frame(tables[1], TABLES["answer_mismatches"]).is_empty()
    rows = tables[0].rows(named=True)
    for row in rows:
        for answer, start in zip(row["answers"], row["answer_starts"], strict=True):
            assert row["context"][start : start + len(answer)] == answer
    return rows


@pytest.mark.parametrize("name", ["drop.json", "drop.json.gz"])
def test_drop_keeps_single_spans_of_the_passage(tmp_path: Path, name: str) -> None:
    document = {
        "nfl_1": section(
            pair("whole", [" Ram "]),
            pair("accent", ["cheere\u0301d"], validated_answers=[{"spans": ["a", "b"]}]),
            pair("mark", ["🏈"]),
            pair("end", ["Ram won."]),
            pair("case", ["rams"]),
            pair("amid", ["am"]),
            pair("two", ["Rams", "Ram City"]),
            pair("none", []),
            pair("blank", [" "]),
            pair("number", [], number="7"),
            pair("zero", [], number=0),
            pair("both", ["Rams"], number="7"),
            pair("date", [], date={"year": "1527"}),
            wiki_url="https://en.example.org/wiki/Rams",
        ),
        "history_2": section(pair("other", ["1527"])),
    }
    path = write(tmp_path / name, document)
    (questions, mismatches), left_out = drop.read_counted(path, "evaluation")
    rows = checked((questions, mismatches))
    assert {row["example_id"]: (row["answers"], row["answer_starts"]) for row in rows} == {
        "whole": (["Ram"], [PASSAGE.index("Ram City")]),
        "accent": (["cheere\u0301d"], [PASSAGE.index("cheer")]),
        "mark": (["🏈"], [PASSAGE.index("🏈")]),
        "end": (["Ram won."], [PASSAGE.index("Ram won")]),
        "other": (["1527"], [3]),
    }
    assert left_out == {
        drop.NUMBER: 3,
        drop.DATE: 1,
        drop.SEVERAL: 1,
        drop.NO_ANSWER: 2,
        drop.ELSEWHERE: 2,
    }
    documents = {row["document_id"] for row in rows}
    assert "https://en.example.org/wiki/Rams" in documents and len(documents) == 2
    assert questions["passage_id"].n_unique() == 1
    assert drop.read_counted(path, "evaluation")[0][0].equals(questions)


def faulty_pair(**changes: Any) -> dict[str, Any]:
    return {"s": section({**pair("q", ["Rams"]), **changes})}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "found a list, '[]'; allowed: an object of sections"),
        ({"s": {"qa_pairs": []}}, "section 's': key 'passage' is missing; found: qa_pairs; give"),
        ({"s": {"passage": "x", "qa_pairs": {}}}, "section 's': qa_pairs: found a dict, '{}'; allowed: a list"),
        ({"s": section({"question": "x"})}, "section 's', question 1: key 'query_id' is missing"),
        (faulty_pair(answer=None), "question 1 (id 'q'): found nothing (null); allowed: an object"),
        (faulty_pair(answer={"number": "", "spans": [3]}), "(id 'q'): spans: found a int, '3'; allowed: a text"),
        (faulty_pair(answer={"number": "", "spans": ["Rams"]}), "key 'date' is missing; found: number, spans"),
        (faulty_pair(answer={"number": "", "spans": [], "date": "x"}), "date: found a str, 'x'; allowed: an object"),
        ({"s": section(pair("q", ["Rams"]), pair("q", ["Ram"]))}, "id 'q' stands twice"),
        ({"s": section(pair("q", []), pair("p", [], number="1"))}, "none of 2 questions can be used (1: answer is a n"),
        ({}, "holds no questions"),
        ("{", "not valid JSON"),
    ],
)
def test_drop_tells_what_is_wrong(tmp_path: Path, document: Any, message: str) -> None:
    path = write(tmp_path / "drop.json", document)
    with pytest.raises(UserError) as caught:
        drop.read_counted(path, "train")
    assert message in str(caught.value) and str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_drop_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        drop.read_counted(tmp_path / "drop.json", "train")


TEXT = (
    "<H1> Google </H1> <P> Google , a <B> company </B> founded by Larry\u00a0Page & Ame\u0301lie 🏈 in < 1998 > . </P>"
    ' <Table> <Tr> <Td_colspan="2"> 1998 </Td> </Tr> </Table> <Ul> <Li> one </Li> </Ul>'
)
TOKENS = TEXT.split(" ")
PARAGRAPH = (TOKENS.index("<P>"), TOKENS.index("</P>") + 1)
TABLE = (TOKENS.index("<Table>"), TOKENS.index("</Table>") + 1)
ITEM = (TOKENS.index("<Li>"), TOKENS.index("</Li>") + 1)
CONTEXT = "Google , a company founded by Larry\u00a0Page & Ame\u0301lie 🏈 in < 1998 > ."


def place(*words: str) -> tuple[int, int]:
    """Range from the first word's last token before the table to that of the last word."""
    start = TOKENS.index(words[0], PARAGRAPH[0])
    return start, TOKENS.index(words[-1], start) + 1


def token_range(span: tuple[int, int]) -> dict[str, int]:
    return {"start_token": span[0], "end_token": span[1]}


def annotation(long: tuple[int, int] = (-1, -1), *short: tuple[int, int], answer: str = "NONE") -> dict[str, Any]:
    return {
        "long_answer": {**token_range(long), "candidate_index": -1 if long[0] < 0 else 0},
        "short_answers": [token_range(span) for span in short],
        "yes_no_answer": answer,
    }


def line(key: Any, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "example_id": key,
        "question_text": "who founded google",
        "document_url": "https://en.example.org//w/index.php?title=Google_Inc&amp;oldid=1",
        "document_text": TEXT,
        "long_answer_candidates": [{**token_range(PARAGRAPH), "top_level": True}],
        "annotations": list(annotations),
        **more,
    }


def original(entry: dict[str, Any]) -> dict[str, Any]:
    """The line with its tokens as the evaluation questions have them."""
    tokens = [
        {"token": t.replace("_", " "), "html_token": t.startswith("<") and len(t) > 1, "start_byte": 0, "end_byte": 1}
        for t in TOKENS
    ]
    kept = {key: value for key, value in entry.items() if key != "document_text"}
    return {**kept, "document_title": "Google Inc", "document_html": "<html>", "document_tokens": tokens}


LINES = [
    line(11, annotation(PARAGRAPH, place("Larry\u00a0Page"))),
    line(12, annotation(PARAGRAPH, place("<B>", "founded"))),
    line("13", annotation(PARAGRAPH, place("🏈", "1998"))),
    line(14, annotation(PARAGRAPH, place("Ame\u0301lie"))),
    line(15, annotation(ITEM, (ITEM[0] + 1, ITEM[0] + 2))),
    line(
        16,
        annotation(PARAGRAPH, place("1998")),
        annotation(TABLE, (TABLE[0] + 3, TABLE[0] + 4)),
        annotation(PARAGRAPH, place("in", "1998")),
        annotation(PARAGRAPH, place("Google"), place("company")),
        annotation(ITEM, (ITEM[0] + 1, ITEM[0] + 2)),
        annotation(PARAGRAPH, place("1998")),
    ),
    line(20, annotation(TABLE, (TABLE[0] + 3, TABLE[0] + 4)), annotation(PARAGRAPH, place("1998"))),
    line(21, annotation()),
    line(22, annotation(PARAGRAPH)),
    line(23, annotation(PARAGRAPH, answer="YES")),
    line(24, annotation(PARAGRAPH, place("Google"), place("company"))),
    line(25, annotation(ITEM, place("Google"))),
    line(26, annotation(PARAGRAPH, place("<B>"))),
    line(27),
]


def jsonl(lines: list[dict[str, Any]]) -> str:
    return "\n\n".join(json.dumps(entry, ensure_ascii=False) for entry in lines) + "\n"


@pytest.mark.parametrize("name", ["nq.jsonl", "nq.jsonl.gz"])
@pytest.mark.parametrize("form", [lambda entry: entry, original], ids=["simplified", "original"])
def test_natural_questions_keep_short_answers_outside_tables(tmp_path: Path, name: str, form: Any) -> None:
    path = write(tmp_path / name, jsonl([form(entry) for entry in LINES]))
    tables, left_out = natural_questions.read_counted(path, "train")
    rows = checked(tables)
    assert {row["example_id"]: row["answers"] for row in rows} == {
        "11": ["Larry\u00a0Page"],
        "12": ["company founded"],
        "13": ["🏈 in < 1998"],
        "14": ["Ame\u0301lie"],
        "15": ["one"],
        "16": ["1998", "in < 1998", "1998"],
    }
    assert {row["context"] for row in rows} == {CONTEXT, "one"}
    assert {row["document_id"] for row in rows} == {"Google Inc"}
    assert left_out == {
        natural_questions.TABLE: 1,
        natural_questions.NO_LONG: 1,
        natural_questions.NO_SHORT: 1,
        natural_questions.YES_OR_NO: 1,
        natural_questions.SEVERAL: 1,
        natural_questions.OUTSIDE: 1,
        natural_questions.MARKUP: 1,
        natural_questions.NO_ANNOTATION: 1,
    }


def test_a_page_without_a_title_is_known_by_its_address(tmp_path: Path) -> None:
    good = annotation(PARAGRAPH, place("1998"))
    lines = [line(1, good, document_url="https://x.org/a?b=c"), line(2, good, document_url=None)]
    rows = checked(natural_questions.read_counted(write(tmp_path / "nq.jsonl", jsonl(lines)), "train")[0])
    assert rows[0]["document_id"] == "https://x.org/a?b=c"
    assert rows[1]["document_id"] == rows[1]["passage_id"]


GOOD = line(1, annotation(PARAGRAPH, place("1998")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (jsonl([GOOD]) + "{", ", line 2: not valid JSON"),
        ("[]", "found a list, '[]'; allowed: an object"),
        (jsonl([{**GOOD, "example_id": True}]), "example_id: found a bool, 'True'; allowed: a text"),
        (jsonl([{k: v for k, v in GOOD.items() if k != "document_text"}]), "key 'document_tokens' is missing"),
        (jsonl([{**GOOD, "annotations": None}]), "annotations: found nothing (null); allowed: a list"),
        (jsonl([line(1, annotation((3, 900), (4, 5)))]), "(id '1'), long_answer: found tokens 3 to 900; allowed: a ra"),
        (jsonl([line(1, annotation(PARAGRAPH, (7, 7)))]), "short_answers: found tokens 7 to 7; allowed"),
        (jsonl([line(1, annotation(PARAGRAPH, ("a", 7)))]), "short_answers: found a dict"),  # type: ignore[arg-type]
        (jsonl([line(1, annotation())]), "none of 1 questions can be used (1: no long answer)"),
        (jsonl([GOOD, GOOD]), "id '1' stands twice"),
        ("", "holds no questions"),
    ],
)
def test_natural_questions_tell_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "nq.jsonl", text)
    with pytest.raises(UserError) as caught:
        natural_questions.read_counted(path, "train")
    assert message in str(caught.value) and str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_natural_questions_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        natural_questions.read_counted(tmp_path / "nq.jsonl", "train")


def _prepared(make_row: Any, folder: Path, files: dict[str, Path], form: str) -> dict[str, pl.DataFrame]:
    source = {"kind": "file", **{key: str(path) for key, path in files.items()}}
    row = make_row(source, task="extractive_qa", label_order=[], questions={"format": form})
    sources.fetch(row, folder / "raw")
    settings = {"seed": 0, "drop_train_duplicates": True, "max_train": None, "max_evaluation": None}
    prepare_questions(row, folder / "raw", folder / "out", **settings)
    return {name: pl.read_parquet(folder / "out" / f"{name}.parquet") for name in ("train", "evaluation", "dropped")}


def test_what_is_left_out_is_counted_in_the_prepared_set(make_row: Any, tmp_path: Path) -> None:
    train = {"s": {"passage": "A lone cat.", "qa_pairs": [pair("t", ["cat"]), pair("n", [], number="1")]}}
    evaluation = {"s": section(pair("e", ["Rams"]), pair("m", ["Rams", "Ram"]), pair("k", ["x"]))}
    files = {
        "train": write(tmp_path / "a.json", train),
        "evaluation": write(tmp_path / "b.json", evaluation),
    }
    tables = _prepared(make_row, tmp_path, files, "drop")
    assert tables["train"]["example_id"].to_list() == ["t"]
    assert tables["evaluation"].select("example_id", "split").rows() == [("e", "test")]
    counted = {(r["split"], r["reason"]): r["n_examples"] for r in tables["dropped"].rows(named=True)}
    assert counted["train", drop.NUMBER] == 1
    assert counted["validation", drop.SEVERAL] == counted["validation", drop.ELSEWHERE] == 1


def test_questions_that_the_format_left_out_are_told_when_none_is_left(make_row: Any, tmp_path: Path) -> None:
    files = {
        "train": write(tmp_path / "a.jsonl", jsonl([line(1, annotation(PARAGRAPH, place("1998"))), LINES[7]])),
        "evaluation": write(tmp_path / "b.jsonl", jsonl([original(line(2, annotation(PARAGRAPH, place("1998"))))])),
    }
    with pytest.raises(UserError, match="of 2 training questions none is left .1: no long answer, 1: passage of an ev"):
        _prepared(make_row, tmp_path, files, "natural_questions")
