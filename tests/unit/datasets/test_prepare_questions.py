"""From a row of task extractive_qa and its files to questions tables."""

from __future__ import annotations

import gzip
import json
import os
import random
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.datasets import sources
from advsets.datasets.questions.halves import half_of_each
from advsets.datasets.questions.prepare import NO_PLACE, PASSAGE, TWICE, prepare_questions
from advsets.datasets.questions.records import passage_id
from advsets.datasets.raw import RawTable
from advsets.errors import UserError
from advsets.io import check_frame
from advsets.tables import TABLES

NAMES = ("train", "evaluation", "mismatches", "dropped")
SETTINGS: dict[str, Any] = {"seed": 0, "drop_train_duplicates": True, "max_train": None, "max_evaluation": None}


def context(name: str) -> str:
    return f"Passage {name} tells of a cat and of one dog."


def entry(key: str, *answers: str, start: int | None = None, question: str | None = None) -> dict[str, Any]:
    """Question on `context(key up to its hyphen)`; `start` is a wrong place of every answer."""
    text = context(key.split("-")[0])
    given = [{"text": a, "answer_start": text.find(a) if start is None else start} for a in answers or ("cat",)]
    return {"id": key, "question": question or f"What of {key}?", "answers": given}


def document(entries: list[dict[str, Any]], titles: dict[str, str] | None = None) -> dict[str, Any]:
    """SQuAD document, one article per title (of a passage's name) and one paragraph per passage."""
    articles: dict[str, dict[str, list[Any]]] = {}
    for one in entries:
        name = one["id"].split("-")[0]
        articles.setdefault((titles or {}).get(name, ""), {}).setdefault(context(name), []).append(one)
    paragraphs = {t: [{"context": c, "qas": qas} for c, qas in parts.items()] for t, parts in articles.items()}
    return {"data": [{"title": title, "paragraphs": parts} for title, parts in paragraphs.items()]}


def many(names: Iterable[str], n: int = 3) -> list[dict[str, Any]]:
    return [entry(f"{name}-{i}") for name in names for i in range(n)]


@pytest.fixture
def files(make_row: Any, tmp_path: Path) -> Callable[..., Any]:
    def make(train: Any, evaluation: Any = None, **keys: Any) -> Any:
        source = {"kind": "file"}
        for name, entries in (("train", train), ("evaluation", evaluation)):
            if entries is not None:
                content = document(entries, keys.get("titles")) if isinstance(entries, list) else entries
                (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
                source[name] = str(tmp_path / f"{name}.json")
        keys.pop("titles", None)
        return make_row(source, task="extractive_qa", label_order=[], **keys)

    return make


@pytest.fixture
def prepare(tmp_path: Path) -> Callable[..., dict[str, pl.DataFrame]]:
    def run(row: Any, **settings: Any) -> dict[str, pl.DataFrame]:
        raw, out = tmp_path / "raw", tmp_path / "out"
        sources.fetch(row, raw)
        prepare_questions(row, raw, out, **{**SETTINGS, **settings})
        tables = {name: pl.read_parquet(out / f"{name}.parquet") for name in NAMES}
        for name, table in zip(NAMES, ("questions", "questions", "answer_mismatches", "dropped"), strict=True):
            check_frame(tables[name], TABLES[table])
        return tables

    return run


def dropped(tables: dict[str, pl.DataFrame]) -> dict[tuple[str, str], tuple[int, bool]]:
    return {(s, r): (n, d) for s, r, n, d in tables["dropped"].rows() if n}


def ids(frame: pl.DataFrame) -> set[str]:
    return set(frame["example_id"])


def test_two_files(files: Any, prepare: Any) -> None:
    tables = prepare(files(many("ab"), many("cd", 2)))
    assert ids(tables["train"]) == {f"{n}-{i}" for n in "ab" for i in range(3)}
    assert ids(tables["evaluation"]) == {"c-0", "c-1", "d-0", "d-1"}
    assert set(tables["train"]["split"]) == {"train"} and set(tables["evaluation"]["split"]) == {"test"}
    assert tables["mismatches"].is_empty() and dropped(tables) == {}
    assert tables["dropped"]["split"].to_list().count("validation") == 1


def test_order_in_the_files_changes_nothing(files: Any, prepare: Any) -> None:
    keys: dict[str, Any] = {"questions": {"halves_by_document": True}, "evaluation_fraction": 0.5}
    entries = many("abcdefghijklmnop", 4) + [
        entry("a-9", "cat", "a cat", start=0),
        entry("b-0b", question="What of b-0?"),
    ]
    first = prepare(files(entries, **keys), max_train=20, max_evaluation=12)
    random.Random(2).shuffle(entries)
    second = prepare(files(entries, **keys), max_train=20, max_evaluation=12)
    for name in NAMES:
        assert first[name].equals(second[name]), name
    assert first["train"].height == 20 and first["evaluation"].height == 12
    other = prepare(files(entries, **keys), max_train=20, max_evaluation=12, seed=1)
    assert ids(other["train"]) != ids(first["train"])
    counts = dropped(first)
    assert counts["train", "beyond max_train"][1] and counts["validation", "beyond max_evaluation"][1]


def test_a_share_of_the_passages_is_evaluated_whatever_the_seed(files: Any, prepare: Any) -> None:
    names = [f"n{i}" for i in range(52)]
    row = files(many(names), evaluation_fraction=0.25)
    tables = prepare(row)
    passages = [set(tables[name]["passage_id"]) for name in ("train", "evaluation")]
    assert not passages[0] & passages[1] and len(passages[0] | passages[1]) == len(names)
    assert 5 <= len(passages[1]) <= 22 and tables["evaluation"].height == 3 * len(passages[1])
    assert prepare(row, seed=5)["evaluation"].equals(tables["evaluation"])
    some = prepare(files(many(names[:20]), evaluation_fraction=0.25))
    assert set(some["evaluation"]["passage_id"]) == passages[1] & {passage_id(context(name)) for name in names[:20]}


def test_one_file_without_a_share_trains(files: Any, prepare: Any) -> None:
    tables = prepare(files(many("ab"), questions={"halves_by_document": True}))
    assert tables["train"].height == 6 and tables["evaluation"].is_empty()
    assert set(tables["dropped"]["split"]) == {"train"}


def test_a_passage_of_the_evaluation_part_never_trains(files: Any, prepare: Any) -> None:
    shouted = document(many("b", 2))
    shouted["data"][0]["paragraphs"][0]["context"] = "  PASSAGE B\u3000tells of a  CAT and of one dog. "
    shouted["data"][0]["paragraphs"][0]["qas"] = [
        {"id": f"x{i}", "question": f"x{i}?", "answers": [{"text": "dog", "answer_start": 38}]} for i in range(2)
    ]
    tables = prepare(files(many("abc"), shouted), drop_train_duplicates=False, max_evaluation=1)
    assert {key.split("-")[0] for key in ids(tables["train"])} == {"a", "c"}
    assert dropped(tables)["train", PASSAGE] == (3, True)
    assert tables["evaluation"].height == 1


def test_questions_that_stand_twice(files: Any, prepare: Any) -> None:
    train = [*many("a", 2), entry("a-5", "dog", question="what of  A-1?"), entry("b-0", question="What of a-1?")]
    evaluation = [*many("c", 1), entry("c-7", question="What of c-0?")]
    row = files(train, evaluation)
    gone, kept = prepare(row), prepare(row, drop_train_duplicates=False)
    assert ids(kept["train"]) - ids(gone["train"]) == {"a-5"}
    assert dropped(gone) == {("train", TWICE): (1, True), ("validation", TWICE): (1, False)}
    assert dropped(kept) == {("train", TWICE): (1, False), ("validation", TWICE): (1, False)}
    assert gone["evaluation"].equals(kept["evaluation"]) and gone["evaluation"].height == 2


def test_answers_at_unknown_places(files: Any, prepare: Any) -> None:
    train = [entry("a-0"), entry("a-1", "a", start=3), entry("a-2", "dog", start=3), entry("a-3", "cat", "mouse")]
    train[3]["answers"][1]["answer_start"] = 0
    tables = prepare(files(train, [entry("b-0", "a", start=3), entry("b-1", "one dog", start=3)]))
    starts = {row["example_id"]: row["answer_starts"] for n in NAMES[:2] for row in tables[n].iter_rows(named=True)}
    dog, cat = context("a").find("dog"), context("a").find("cat")
    assert starts == {"a-0": [cat], "a-2": [dog], "a-3": [cat, -1], "b-0": [-1], "b-1": [context("b").find("one dog")]}
    assert dropped(tables) == {("train", NO_PLACE): (1, True)}
    assert tables["mismatches"].select("split", "example_id", "outcome").rows() == [
        ("evaluation", "b-0", "kept_without_offset"),
        ("evaluation", "b-1", "moved"),
        ("train", "a-1", "dropped"),
        ("train", "a-2", "moved"),
        ("train", "a-3", "kept_without_offset"),
    ]


def test_mismatches_go_where_their_question_goes(files: Any, prepare: Any) -> None:
    entries = [entry(f"{name}-0", "a", start=3) for name in "abcdefghijklmnop"] + [
        e for e in many("abcdefghijklmnop", 4) if not e["id"].endswith("-0")
    ]
    tables = prepare(files(entries, evaluation_fraction=0.5))
    evaluated = {key for key in ids(tables["evaluation"]) if key.endswith("-0")}
    found = {
        (split, outcome): {*part["example_id"]}
        for (split, outcome), part in tables["mismatches"].group_by("split", "outcome")
    }
    assert found["evaluation", "kept_without_offset"] == evaluated and 0 < len(evaluated) < 16
    assert found["train", "dropped"] == {f"{name}-0" for name in "abcdefghijklmnop"} - evaluated


def test_the_majority_of_annotators_is_the_only_gold_answer(files: Any, prepare: Any) -> None:
    given = {
        "b-0": (["dog", "The cat.", "cat", "a cat"], "cat"),
        "b-1": (["dog", "cat"], "dog"),
        "b-2": (["one dog", "cat", "dog", "cat", "dog"], "cat"),
    }
    evaluation = []
    for key, (answers, _) in given.items():
        made = entry(key, *answers)
        for answer in made["answers"]:
            answer["answer_start"] = max(answer["answer_start"], 0)
        evaluation.append(made)
    train = [entry("a-0", "cat", "dog", "dog")]
    plain = prepare(files(train, evaluation))
    assert plain["evaluation"]["answers"].to_list() == [answers for answers, _ in given.values()]
    tables = prepare(files(train, evaluation, questions={"majority_answer": True}))
    text = context("b")
    for row in tables["evaluation"].iter_rows(named=True):
        wanted = given[row["example_id"]][1]
        assert row["answers"] == [wanted] and row["answer_starts"] == [text.find(wanted)]
    assert tables["train"]["answers"].to_list() == [["dog"]]
    assert tables["mismatches"]["answer"].to_list() == ["The cat."]


SIZES = {"one": [4], "two": [3, 5], "odd": [1, 1, 1], "uneven": [10, 1, 1, 1], "half": [2, 3, 5, 4], "pair": [2, 2]}


def _documents(sizes: dict[str, list[int]]) -> pl.DataFrame:
    rows = [
        (f"{title}-{p}-{q}", title, f"{title}-{p}")
        for title, counts in sizes.items()
        for p, count in enumerate(counts)
        for q in range(count)
    ]
    return pl.DataFrame(rows, schema=["example_id", "document_id", "passage_id"], orient="row")


def test_each_document_is_halved_as_far_as_whole_passages_allow() -> None:
    frame = _documents(SIZES)
    halved = frame.with_columns(half_of_each(frame))
    assert halved.group_by("passage_id").agg(pl.col("split").n_unique())["split"].max() == 1
    gaps = {
        title: abs(2 * int((part["split"] == "test").sum()) - part.height)
        for (title,), part in halved.group_by("document_id")
    }
    assert gaps == {"one": 4, "two": 2, "odd": 1, "uneven": 7, "half": 0, "pair": 0}
    # 7 - 4 - 2 - 1: every document pulls against those before it
    assert (halved["split"] == "test").sum() * 2 == halved.height
    shuffled = frame.sample(fraction=1, shuffle=True, seed=4)
    other = shuffled.with_columns(half_of_each(shuffled)).sort("example_id")
    assert other.equals(halved.sort("example_id"))


def test_division_is_as_good_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    for case in range(40):
        sizes = [draw.randint(1, 9) for _ in range(draw.randint(2, 8))]
        frame = _documents({f"t{case}": sizes})
        n = int((half_of_each(frame) == "test").sum())
        sums = {sum(s for i, s in enumerate(sizes) if mask >> i & 1) for mask in range(2 ** len(sizes))}
        assert abs(2 * n - sum(sizes)) == min(abs(2 * total - sum(sizes)) for total in sums), sizes


def test_documents_of_one_passage_part_evenly() -> None:
    frame = _documents({f"p{i}": [1 + i % 5] for i in range(200)})
    halved = half_of_each(frame)
    assert abs(int((halved == "test").sum()) * 2 - frame.height) <= 5
    first = set(frame.filter(halved == "test")["document_id"])
    assert 40 < len(first & {f"p{i}" for i in range(100)}) < 60


def test_halves_of_a_row(files: Any, prepare: Any) -> None:
    titles = {name: "one" if name in "cdef" else "two" for name in "cdefgh"}
    row = files(many("ab"), many("cdefgh", 2), questions={"halves_by_document": True}, titles=titles)
    evaluation = prepare(row)["evaluation"]
    counts = dict(
        evaluation.group_by("document_id", "split")
        .len()
        .select(pl.concat_list("document_id", "split").list.join("/"), "len")
        .rows()
    )
    assert counts == {"one/test": 4, "one/validation": 4, "two/test": 2, "two/validation": 2}


ONE_ROW = [
    {
        "id": "b-0",
        "title": "t",
        "context": context("b"),
        "question": "?",
        "answers": {"text": ["cat"], "answer_start": [21]},
    }
]


def test_a_file_by_address_may_spread_over_lines(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "train.json").write_text(json.dumps(document(many("ab")), indent=1), encoding="utf-8")
    (folder / "dev.json.gz").write_bytes(gzip.compress(json.dumps(document(many("c")), indent=1).encode()))
    source = {"kind": "url", "url": f"file://{folder}/", "train": "train.json", "evaluation": "dev.json.gz"}
    tables = prepare(make_row(source, task="extractive_qa", label_order=[]))
    assert (tables["train"].height, tables["evaluation"].height) == (6, 3)


def test_a_cut_file_by_address_is_not_kept(make_row: Any, tmp_path: Path) -> None:
    text = json.dumps(document(many("ab")), indent=1)
    (tmp_path / "train.json").write_text(text[:-20], encoding="utf-8")
    row = make_row({"kind": "url", "url": f"file://{tmp_path}/", "train": "train.json"}, task="extractive_qa")
    with pytest.raises(UserError, match="no readable table"):
        sources.fetch(row, tmp_path / "raw")


def test_a_member_of_an_archive(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(json.dumps(document(many("ab"))), encoding="utf-8")
    with tarfile.open(tmp_path / "squad.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "train.json", "squad/train.json")
    source = {"kind": "url", "url": f"file://{tmp_path}/squad.tar.gz", "train": "squad/train.json"}
    assert prepare(make_row(source, task="extractive_qa"))["train"].height == 6


def test_rows_in_the_form_of_the_hub(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    train = [{**ONE_ROW[0], "id": f"a-{i}", "context": context("a"), "question": f"{i}?"} for i in range(3)]
    pl.DataFrame(train).write_parquet(repo / "train.parquet")
    pl.DataFrame(ONE_ROW).write_parquet(repo / "validation.parquet")
    source = {"kind": "hub", "repo": str(repo), "train": "train", "evaluation": "validation"}
    tables = prepare(make_row(source, task="extractive_qa", questions={"majority_answer": True}))
    assert tables["train"].height == 3 and tables["evaluation"]["answers"].to_list() == [["cat"]]
    assert tables["evaluation"]["document_id"].to_list() == ["t"]


def test_a_saved_folder_with_both_splits(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    import datasets

    parts = {"train": [{**ONE_ROW[0], "id": "a-0", "context": context("a")}], "validation": ONE_ROW}
    saved = datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name, rows in parts.items()})
    saved.save_to_disk(str(tmp_path / "saved"))
    tables = prepare(make_row({"kind": "file", "train": str(tmp_path / "saved")}, task="extractive_qa"))
    assert ids(tables["train"]) == {"a-0"} and ids(tables["evaluation"]) == {"b-0"}


def test_rows_of_a_packages_reader(make_row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {name: [row[name] for row in ONE_ROW] for name in ONE_ROW[0]}
    monkeypatch.setattr(sources, "paths", lambda row, raw: None)
    monkeypatch.setattr(
        sources, "read", lambda row, raw, wanted: {"train": RawTable("a.tar.gz", columns, [1], list(columns))}
    )
    row = make_row({"kind": "file", "train": "x"}, task="extractive_qa")
    prepare_questions(row, tmp_path, tmp_path, **SETTINGS)
    assert pl.read_parquet(tmp_path / "train.parquet")["example_id"].to_list() == ["b-0"]
    other = make_row({"kind": "file", "train": "x"}, task="extractive_qa", questions={"format": "drop"})
    with pytest.raises(UserError, match="questions.format 'drop' of a package's archive; allowed: 'squad'"):
        prepare_questions(other, tmp_path, tmp_path, **SETTINGS)


CANNOT: list[tuple[Any, Any, dict[str, Any], str]] = [
    (many("ab"), many("b"), {}, "3 ids stand in train and evaluation: b-0, b-1, b-2"),
    (many("ab"), many("c"), {"evaluation_fraction": 0.5}, "but the source has evaluation questions"),
    (many("a"), None, {"evaluation_fraction": 0.5}, "`evaluation_fraction` 0.5 of 1 passages leaves no"),
    ([entry("a-0", "a", start=3)], many("c"), {}, "of 1 training questions none is left (1: no answer at a known"),
    (many("a"), many("c"), {"questions": {"halves_by_document": True}}, "passages leave none for"),
    ([entry("a-7", "cat", start=-1)], None, {}, "(id 'a-7'), answer 1: answer_start: found a int, '-1'"),
]


@pytest.mark.parametrize("case", range(len(CANNOT)))
def test_what_cannot_be_prepared_is_told(files: Any, prepare: Any, case: int) -> None:
    train, evaluation, keys, message = CANNOT[case]
    with pytest.raises(UserError) as caught:
        prepare(files(train, evaluation, **keys))
    assert message in str(caught.value)


def test_label_files_are_refused(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps(document(many("a"))), encoding="utf-8")
    (tmp_path / "labels.txt").write_text("x\n", encoding="utf-8")
    source = {"kind": "file", "train": str(tmp_path / "q.json"), "train_labels": str(tmp_path / "labels.txt")}
    with pytest.raises(UserError, match=r"source\.train_labels: questions have no labels"):
        prepare(make_row(source, task="extractive_qa"))


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
def test_parts_of_squad_and_adversarialqa(make_row: Any, prepare: Any) -> None:
    keys: dict[str, Any] = {"task": "extractive_qa", "label_order": [], "evaluation_fraction": 0.2}
    source = {"kind": "file", "train": "${ADVSETS_DATA_DIR}/squad/dev_subset.json"}
    tables = prepare(make_row(source, **keys, questions={"halves_by_document": True}))
    train, evaluation = tables["train"], tables["evaluation"]
    gone = sum(n for n, is_dropped in dropped(tables).values() if is_dropped)
    assert train.height + evaluation.height + gone == 1797 and tables["mismatches"].is_empty()
    assert not set(train["passage_id"]) & set(evaluation["passage_id"])
    share = evaluation["passage_id"].n_unique() / (evaluation["passage_id"].n_unique() + train["passage_id"].n_unique())
    assert 0.15 < share < 0.25
    n_test = int((evaluation["split"] == "test").sum())
    assert abs(2 * n_test - evaluation.height) <= 4
    for name, n_train, n_evaluation in (("dbidaf", 776, 200), ("dbert", 787, 199), ("droberta", 788, 200)):
        parts = {
            key: f"${{ADVSETS_DATA_DIR}}/adversarialqa/{name}_{part}_subset.json"
            for key, part in (("train", "train"), ("evaluation", "validation"))
        }
        tables = prepare(make_row({"kind": "file", **parts}, task="extractive_qa", label_order=[]))
        counts = dropped(tables)
        assert tables["evaluation"].height == n_evaluation, name
        assert tables["train"].height + sum(n for (s, _), (n, d) in counts.items() if s == "train" and d) == n_train
