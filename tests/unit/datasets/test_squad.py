"""SQuAD 1.1 in and out: places to the code point, answers checked, and one line for what is malformed."""

from __future__ import annotations

import copy
import gzip
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advsets.datasets.questions.records import passage_id
from advsets.datasets.squad import read_questions, write_squad
from advsets.errors import UserError
from advsets.io import check_frame
from advsets.tables import TABLES

CONTEXT = "Zoe\u0301 met 👩🏽\u200d🚀\u3000in\u2003Łódź; Łódź is old."


def question(key: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "question": f"Who is {key}?",
        "answers": [{"text": text, "answer_start": start} for text, start in answers],
        **more,
    }


def document(*qas: dict[str, Any], context: str = CONTEXT, title: Any = "Poland") -> dict[str, Any]:
    return {"version": "1.1", "data": [{"title": title, "paragraphs": [{"context": context, "qas": list(qas)}]}]}


def saved(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_tables_are_as_declared_and_places_are_code_points(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "q.json",
        document(question("q1", ("Zoe\u0301", 0), ("👩🏽\u200d🚀", 9), plausible=7), question("q2", ("Łódź", 17))),
    )
    questions, mismatches = read_questions(path, "train")
    check_frame(questions, TABLES["questions"])
    check_frame(mismatches, TABLES["answer_mismatches"])
    assert mismatches.is_empty()
    first = questions.row(0, named=True)
    assert first["example_id"] == first["source_id"] == "q1"
    assert first["split"] == "train" and first["document_id"] == "Poland" and first["context"] == CONTEXT
    assert first["answers"] == ["Zoe\u0301", "👩🏽\u200d🚀"] and first["answer_starts"] == [0, 9]
    for row in questions.iter_rows(named=True):
        for answer, start in zip(row["answers"], row["answer_starts"], strict=True):
            assert row["context"][start : start + len(answer)] == answer


@pytest.mark.parametrize("title", [None, ""])
def test_without_a_title_a_passage_is_its_own_document(tmp_path: Path, title: str | None) -> None:
    frame, _ = read_questions(saved(tmp_path / "q.json", document(question("q", ("met", 5)), title=title)), "train")
    assert frame["document_id"].to_list() == frame["passage_id"].to_list() == [passage_id(CONTEXT)]


def test_a_passage_set_differently_is_the_same_passage() -> None:
    assert passage_id(CONTEXT) == passage_id(f" {CONTEXT.upper().lower()}\n".replace("\u3000", "  "))
    assert passage_id(CONTEXT) != passage_id(CONTEXT[:-1])


def test_an_answer_that_is_not_at_its_place_is_listed(tmp_path: Path) -> None:
    qas = [
        question("moved", ("met", 6), ("met", 6), ("Zoe\u0301", 0)),
        question("twice", ("Łódź", 3)),
        question("absent", ("Warsaw", 0), ("Warsaw", 900)),
        question("overlapping", ("aa", 0)),
    ]
    content = document(*qas[:3])
    content["data"][0]["paragraphs"].append({"context": "baaa", "qas": qas[3:]})
    questions, mismatches = read_questions(saved(tmp_path / "q.json", content), "evaluation")
    check_frame(mismatches, TABLES["answer_mismatches"])
    starts = dict(questions.select("example_id", "answer_starts").rows())
    assert starts == {"moved": [5, 5, 0], "twice": [-1], "absent": [-1, -1], "overlapping": [-1]}
    assert mismatches.sort("example_id", "answer_start").rows() == [
        ("evaluation", "absent", "Warsaw", 0, CONTEXT[:6], "kept_without_offset"),
        ("evaluation", "absent", "Warsaw", 900, "", "kept_without_offset"),
        ("evaluation", "moved", "met", 6, "et ", "moved"),
        ("evaluation", "overlapping", "aa", 0, "ba", "kept_without_offset"),
        ("evaluation", "twice", "Łódź", 3, CONTEXT[3:7], "kept_without_offset"),
    ]


def _changed(*path: Any, value: Any = None, remove: bool = False) -> Any:
    content: Any = copy.deepcopy(document(question("q1", ("met", 5)), question("q2", ("is", 28))))
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return content


PARAGRAPH = ("data", 0, "paragraphs", 0)
FIRST = (*PARAGRAPH, "qas", 0)
AT = "article 1, paragraph 1, question 1"
MALFORMED = {
    "list": ([1], "found a list"),
    "no data": ({"version": "1.1"}, "key 'data' is missing; found: version"),
    "data no list": ({"data": {}}, "data: found a dict"),
    "article": ({"data": ["x"]}, "article 1: found a str, 'x'"),
    "nothing": ({"data": []}, "holds no questions"),
    "title": (_changed("data", 0, "title", value=3), "article 1: title: found a int, '3'"),
    "no paragraphs": (_changed("data", 0, "paragraphs", remove=True), "article 1: key 'paragraphs' is missing"),
    "no context": (_changed(*PARAGRAPH, "context", remove=True), "paragraph 1: key 'context' is missing; found: qas"),
    "empty context": (_changed(*PARAGRAPH, "context", value=" \u3000"), "the context is empty"),
    "context": (_changed(*PARAGRAPH, "context", value=["a"]), "article 1, paragraph 1: context: found a list"),
    "no qas": (_changed(*PARAGRAPH, "qas", remove=True), "key 'qas' is missing"),
    "no id": (_changed(*FIRST, "id", remove=True), f"{AT}: key 'id' is missing"),
    "id": (_changed(*FIRST, "id", value=7), f"{AT}: id: found a int"),
    "empty id": (_changed(*FIRST, "id", value=""), f"{AT} (id ''): the id is empty"),
    "duplicate": (_changed(*FIRST, "id", value="q2"), "question 2 (id 'q2'): id 'q2' stands twice (also "),
    "no question": (_changed(*FIRST, "question", remove=True), f"{AT} (id 'q1'): key 'question' is missing"),
    "empty question": (_changed(*FIRST, "question", value="\t"), f"{AT} (id 'q1'): the question is empty"),
    "null question": (_changed(*FIRST, "question", value=None), "question: found nothing (null)"),
    "no answers": (_changed(*FIRST, "answers", value=[]), f"{AT} (id 'q1'): there is no answer"),
    "answers": (_changed(*FIRST, "answers", value="met"), f"{AT} (id 'q1'): answers: found a str"),
    "answer": (_changed(*FIRST, "answers", 0, value="met"), f"{AT} (id 'q1'), answer 1: found a str"),
    "no text": (_changed(*FIRST, "answers", 0, "text", remove=True), "answer 1: key 'text' is missing"),
    "text": (_changed(*FIRST, "answers", 0, "text", value=5), f"{AT} (id 'q1'), answer 1: text: found a int"),
    "empty text": (_changed(*FIRST, "answers", 0, "text", value=""), f"{AT} (id 'q1'): answer 1 is empty"),
    "no start": (_changed(*FIRST, "answers", 0, "answer_start", remove=True), "key 'answer_start' is missing"),
    "negative": (_changed(*FIRST, "answers", 0, "answer_start", value=-1), "answer_start: found a int, '-1'"),
    "fraction": (_changed(*FIRST, "answers", 0, "answer_start", value=5.0), "answer_start: found a float"),
    "bool": (_changed(*FIRST, "answers", 0, "answer_start", value=True), "answer_start: found a bool"),
    "huge": (_changed(*FIRST, "answers", 0, "answer_start", value=2**70), "answer 1 starts at 11805"),
    "half in question": (_changed(*FIRST, "question", value="\ud800?"), "question: holds half of a surrogate pair"),
    "half in id": (_changed(*FIRST, "id", value="\udfff"), "id: holds half of a surrogate pair"),
    "half in answer": (_changed(*FIRST, "answers", 0, "text", value="\ud83d"), "text: holds half of a surrogate"),
    "half in context": (_changed(*PARAGRAPH, "context", value="a\udc00"), "context: holds half of a surrogate pair"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_malformed_is_told_with_its_place(tmp_path: Path, case: str) -> None:
    content, message = MALFORMED[case]
    path = saved(tmp_path / "q.json", content)
    with pytest.raises(UserError) as caught:
        read_questions(path, "train")
    text = str(caught.value)
    assert text.startswith(str(path)) and message in text and text.count(";") >= 1
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.json", b"", "not valid JSON (Expecting value at line 1, column 1)"),
        ("q.json", b'{"data": [\n{]}', "not valid JSON"),
        ("q.json", b"[" * 100_000, "nested too deep"),
        ("q.json", b'{"data": "\xff"}', "holds the byte 0xff, which is not UTF-8"),
        ("q.json.gz", b"{}", "not a gzip file"),
        ("q.json.gz", gzip.compress(b'{"data": []}')[:-9], "cut off or damaged"),
        ("q.txt", b"{}", "ends in '.txt'; allowed: .json (SQuAD 1.1)"),
        ("q.jsonl", b'{"id": "a", "context": "b"}\n', "column 'question' is missing; found: id, context"),
        ("q.csv", b"id,context,question,answers\na,b,c,d\n", "line 2 (id 'a'): answers: found a str, 'd'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_questions(tmp_path / name, "train")
    assert str(caught.value).startswith(str(tmp_path / name)) and message in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_questions(tmp_path / "q.json", "train")


def test_byte_order_mark_compression_and_line_breaks_change_nothing(tmp_path: Path) -> None:
    content = document(question("q1", ("met", 5)), question("q2", ("Łódź", 17)))
    wanted = read_questions(saved(tmp_path / "q.json", content), "train")
    raw = b"\xef\xbb\xbf" + json.dumps(content, indent=1, ensure_ascii=False).encode().replace(b"\n", b"\r\n")
    (tmp_path / "b.json").write_bytes(raw)
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(raw))
    for name in ("b.json", "c.json.gz"):
        found = read_questions(tmp_path / name, "train")
        assert all(a.equals(b) for a, b in zip(found, wanted, strict=True)), name


ROWS = [
    {"id": "q1", "title": "Poland", "context": CONTEXT, "question": "Who is q1?", "answers": [("met", 5), ("is", 28)]},
    {"id": "q2", "title": "", "context": "A cat. " * 3, "question": "Who is q2?", "answers": [("cat", 9)]},
]


def as_lists(row: dict[str, Any]) -> dict[str, Any]:
    texts, starts = zip(*row["answers"], strict=True)
    return {**row, "answers": {"text": list(texts), "answer_start": list(starts)}}


def test_rows_give_the_same_tables_as_json(tmp_path: Path) -> None:
    import datasets

    lists = [as_lists(row) for row in ROWS]
    pl.DataFrame(lists).write_parquet(tmp_path / "q.parquet")
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists), encoding="utf-8")
    datasets.Dataset.from_list(lists).save_to_disk(str(tmp_path / "folder"))
    wanted, mismatches = read_questions(tmp_path / "q.jsonl", "evaluation")
    assert wanted["answer_starts"].to_list() == [[5, 28], [9]] and mismatches.is_empty()
    assert wanted["document_id"].to_list() == ["Poland", passage_id("a cat. a CAT. A cat.")]
    for name in ("q.parquet", "folder"):
        found, _ = read_questions(tmp_path / name, "evaluation")
        assert found.equals(wanted), name
    write_squad(wanted, tmp_path / "q.json")
    assert read_questions(tmp_path / "q.json", "evaluation")[0].equals(wanted)


def test_lists_of_rows_of_unequal_length_are_refused(tmp_path: Path) -> None:
    row = {**as_lists(ROWS[0]), "answers": {"text": ["met", "is"], "answer_start": [5]}}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(UserError, match=r"line 1 \(id 'q1'\), answers: found a list.*two lists of one length"):
        read_questions(path, "train")


def test_an_answer_without_a_place_cannot_be_written(tmp_path: Path) -> None:
    frame, _ = read_questions(saved(tmp_path / "q.json", document(question("q1", ("Warsaw", 0)))), "evaluation")
    with pytest.raises(UserError, match="question 'q1': the place of answer 'Warsaw' in its passage is not known"):
        write_squad(frame, tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


ODD = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("e\u0301\u200d🏽👩🚀\u3000\u2028\x00\ufeff😀")),
    min_size=1,
    max_size=30,
).filter(str.strip)


@st.composite
def passages(draw: st.DrawFn) -> tuple[str, str, list[list[tuple[str, int]]]]:
    context, asked = draw(ODD), []
    for _ in range(draw(st.integers(1, 3))):
        answers = []
        for _ in range(draw(st.integers(1, 3))):
            start = draw(st.integers(0, len(context) - 1))
            text = context[start : draw(st.integers(start + 1, len(context)))]
            answers += [(text, start)] if text.strip() else []
        asked += [answers] if answers else []
    return draw(st.sampled_from(["", "Title", "Ünïcode 🏽"])), context, asked


@settings(deadline=None, max_examples=60)
@given(st.lists(passages(), min_size=1, max_size=4))
def test_random_unicode_survives_reading_and_writing(tmp_path_factory: Any, made: list[Any]) -> None:
    data, n = [], 0
    for title, context, asked in made:
        qas = []
        for answers in asked:
            n += 1
            qas.append(question(f"q{n:02}", *answers))
        data.append({"title": title, "paragraphs": [{"context": context, "qas": qas}]})
    if not n:
        return
    folder = tmp_path_factory.mktemp("squad")
    frame, mismatches = read_questions(saved(folder / "in.json", {"data": data}), "train")
    assert mismatches.is_empty() and frame.height == n
    for row in frame.iter_rows(named=True):
        for answer, start in zip(row["answers"], row["answer_starts"], strict=True):
            assert row["context"][start : start + len(answer)] == answer
    write_squad(frame, folder / "out.json")
    again, mismatches = read_questions(folder / "out.json", "train")
    assert mismatches.is_empty() and again.sort("example_id").equals(frame.sort("example_id"))


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="needs ADVSETS_DATA_DIR")
def test_the_parts_at_hand_hold_every_answer_at_its_place(tmp_path: Path) -> None:
    root = Path(os.environ["ADVSETS_DATA_DIR"])
    sizes = {"squad/dev_subset": 1797, "squad/train_subset": 353}
    sizes |= {
        f"adversarialqa/{s}_validation_subset": n for s, n in (("dbidaf", 200), ("dbert", 199), ("droberta", 200))
    }
    sizes |= {f"adversarialqa/{s}_train_subset": n for s, n in (("dbidaf", 776), ("dbert", 787), ("droberta", 788))}
    for name, n_questions in sizes.items():
        frame, mismatches = read_questions(root / f"{name}.json", "evaluation")
        assert frame.height == n_questions and mismatches.is_empty(), name
        write_squad(frame, tmp_path / "out.json")
        again, _ = read_questions(tmp_path / "out.json", "evaluation")
        assert again.sort("example_id").equals(frame.sort("example_id")), name
