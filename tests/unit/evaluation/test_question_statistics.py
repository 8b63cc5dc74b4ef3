"""Statistics of questions: words, shared n-grams, kinds, and the tables of a set."""

from __future__ import annotations

import json
import os
import time
import unicodedata
from pathlib import Path

import polars as pl
import pytest

from advsets.evaluation.collected.kinds import ANSWER_TYPES, QUESTION_WORDS, answer_type, question_word
from advsets.evaluation.collected.statistics import question_tables, write_statistics
from advsets.evaluation.collected.words import RunsOfWords, longest_shared_runs, words
from advsets.io import empty_frame, read_table, write_table
from advsets.seeding import rng_for

SCHEMA = empty_frame("questions").schema


def frame(*rows: tuple[str, str, str, list[str]], split: str = "test") -> pl.DataFrame:
    """Questions of (example_id, context, question, answers); a passage is its own document."""
    full = [
        {
            "example_id": example_id,
            "source_id": None,
            "split": split,
            "document_id": context[:3],
            "passage_id": context,
            "context": context,
            "question": question,
            "answers": answers,
            "answer_starts": [context.find(a) for a in answers],
        }
        for example_id, context, question, answers in rows
    ]
    return pl.DataFrame(full, schema=SCHEMA)


def shared_by_hand(first: list[str], second: list[str]) -> int:
    """Longest common run by comparing all starts."""
    best = 0
    for i in range(len(first)):
        for j in range(len(second)):
            n = 0
            while i + n < len(first) and j + n < len(second) and first[i + n] == second[j + n]:
                n += 1
            best = max(best, n)
    return best


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What's Luther's 95-thesis_list?", ["what", "s", "luther", "s", "95", "thesis", "list"]),
        ("1,500 m (4.5 %)", ["1", "500", "m", "4", "5"]),
        ("“Ça va” — ❤ …", ["ça", "va"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("क़िला हिन्दी", ["क़िला", "हिन्दी"]),
        ("co\u00adop\u200der", ["cooper"]),
        ("東京は\u3000大きい。", ["東京は", "大きい"]),
        ("?!", []),
        ("", []),
    ],
)
def test_words(text, expected) -> None:
    assert words(text) == [unicodedata.normalize("NFC", word) for word in expected]


def test_composed_and_decomposed_letters_are_the_same_word() -> None:
    assert words("Ame\u0301lie") == words("Am\u00e9lie") == ["am\u00e9lie"]


def test_case_is_kept_on_request() -> None:
    assert words("The Ring, ÉTÉ", fold=False) == ["The", "Ring", "ÉTÉ"]


@pytest.mark.parametrize("n_words", [1, 2, 3, 12])
def test_longest_shared_run_is_that_of_all_pairs(n_words) -> None:
    for draw in range(60):
        rng = rng_for(0, "runs", n_words, draw)
        first = [str(w) for w in rng.integers(0, n_words, size=int(rng.integers(0, 30)))]
        second = [str(w) for w in rng.integers(0, n_words, size=int(rng.integers(0, 12)))]
        assert RunsOfWords(first).longest_shared(second) == shared_by_hand(first, second), (first, second)


def test_shared_runs_cross_sentences_but_not_passages() -> None:
    first, second = "He left Rome. In 1527 it fell.", "The cat sat."
    assert longest_shared_runs([first, second, first], ["Who left Rome in 1527?", "left Rome", "Of Rome?"]) == [4, 0, 1]


def test_a_passage_of_one_word_over_and_over_is_quick() -> None:
    start = time.process_time()
    assert longest_shared_runs(["the " * 20_000], ["the " * 5_000]) == [5_000]
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("In what year did he die?", "what"),
        ("When he died, who followed?", "when"),
        ("WHO's there", "who"),
        ("How many are there?", "how many"),
        ("And how  much?", "how much"),
        ("How's it done, and how many times?", "how"),
        ("Tell me how", "how"),
        ("To whom was it given?", "whose/whom"),
        ("Whose was it?", "whose/whom"),
        ("Name the largest somewhat showy whatnot.", "other"),
        ("", "other"),
    ],
)
def test_question_word(question, kind) -> None:
    assert question_word(question) == kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("24 August 1991", "date"),
        ("the early 11th century", "date"),
        ("nineteenth century", "date"),
        ("1990s", "date"),
        ("'90s", "date"),
        ("476 AD", "date"),
        ("1914 to 1918", "date"),
        ("from Monday to Friday", "date"),
        ("1812 Overture", "number"),
        ("2,000", "number"),
        ("about $45 million US", "number"),
        ("three", "number"),
        ("16 percent", "number"),
        ("one of the largest cities in all Europe", "phrase"),
        ("4th Infantry Division", "capitalised"),
        ("The University of Chicago", "capitalised"),
        ("Apollo 11", "capitalised"),
        ("Luther's Bible", "capitalised"),
        ("First World War", "capitalised"),
        ("to break the seal", "clause"),
        ("retirement age will be increased", "clause"),
        ("white flight", "phrase"),
        ("the", "word"),
        ("petroleum", "word"),
        ("❤", "other"),
        ("", "other"),
        (None, "other"),
    ],
)
def test_answer_type(answer, kind) -> None:
    assert answer_type(answer) == kind


CONTEXT = "Rome fell in 476. Some say later."
ROWS = [
    ("q1", CONTEXT, "When did Rome fall?", ["476", "in 476"]),
    ("q2", CONTEXT, "What fell in 476, some say?", ["Rome"]),
    ("q3", "A dog barked.", "Why?", []),
]


def test_tables_by_hand() -> None:
    tables = question_tables("c", "d", frame(*ROWS[:1], split="train"), frame(*ROWS))
    statistics = tables["question_statistics"].filter(split="test").row(0, named=True)
    assert statistics == {
        "collection": "c",
        "dataset": "d",
        "split": "test",
        "n_documents": 2,
        "n_passages": 2,
        "n_questions": 3,
        "question_words_mean": pytest.approx((4 + 6 + 1) / 3),
        "question_words_sd": pytest.approx((((1 / 3) ** 2 + (7 / 3) ** 2 + (8 / 3) ** 2) / 2) ** 0.5),
        "answer_words_mean": pytest.approx((1.5 + 1) / 2),
        "answer_words_sd": pytest.approx(0.125**0.5),
        "overlap_mean": pytest.approx((1 + 5 + 0) / 3),
        "overlap_sd": pytest.approx(7**0.5),
    }
    overlap = tables["question_overlap"].filter(split="test")
    assert overlap["overlap"].to_list() == [0, 1, 2, 3, 4, 5]
    assert overlap["n_questions"].to_list() == [1, 1, 0, 0, 0, 1]
    kinds = tables["question_kinds"].filter((pl.col("split") == "test") & (pl.col("n_questions") > 0))
    assert kinds.select("aspect", "kind", "n_questions").rows() == [
        ("answer_type", "capitalised", 1),
        ("answer_type", "number", 1),
        ("answer_type", "other", 1),
        ("question_word", "what", 1),
        ("question_word", "when", 1),
        ("question_word", "why", 1),
    ]
    alone = tables["question_statistics"].filter(split="train").row(0, named=True)
    assert alone["n_questions"] == 1 and alone["overlap_sd"] is None


def test_every_kind_has_a_row_in_every_split_and_shares_add_to_one() -> None:
    kinds = question_tables("c", "d", frame(*ROWS[:1], split="train"), frame(*ROWS))["question_kinds"]
    assert len(kinds) == 2 * (len(QUESTION_WORDS) + len(ANSWER_TYPES))
    totals = kinds.group_by("split", "aspect").agg(pl.col("share").sum())
    assert len(totals) == 4 and totals["share"].to_list() == pytest.approx([1] * 4)


def test_no_questions_no_rows() -> None:
    for table in question_tables("c", "d", frame(), frame()).values():
        assert table.is_empty()


def test_order_of_rows_changes_nothing() -> None:
    rng = rng_for(0, "order")
    vocabulary = ["what", "when", "the", "Rome", "fell", "in", "1527", "and", "then"]
    rows = []
    for i in range(200):
        drawn = [" ".join(rng.choice(vocabulary, size=int(n))) for n in (30, *rng.integers(1, 9, size=4))]
        rows.append((f"q{i}", drawn[0], drawn[1], drawn[2:]))
    first = question_tables("c", "d", frame(), frame(*rows))
    second = question_tables("c", "d", frame(), frame(*rows[::-1]))
    assert all(first[name].equals(second[name]) for name in first)


def test_tables_of_a_collection_are_written(tmp_path) -> None:
    paths = {name: tmp_path / f"{name}.parquet" for name in question_tables("c", "d", frame(), frame())}
    for i in range(2):
        write_table(frame(*ROWS[: i + 1], split="train"), tmp_path / f"train{i}", "questions")
        write_table(frame(*ROWS), tmp_path / f"evaluation{i}", "questions")
    files = [[tmp_path / f"{part}{i}" for i in range(2)] for part in ("train", "evaluation")]
    write_statistics("c", ["one", "two"], *files, paths)
    for name, path in paths.items():
        expected = [
            question_tables("c", dataset, frame(*ROWS[: i + 1], split="train"), frame(*ROWS))[name]
            for i, dataset in enumerate(("one", "two"))
        ]
        assert read_table(path, name).equals(pl.concat(expected))
    write_statistics("c", [], [], [], paths)
    assert all(read_table(path, name).is_empty() for name, path in paths.items())


DATA = os.environ.get("ADVSETS_DATA_DIR", "")


@pytest.mark.real_data
@pytest.mark.skipif(not DATA, reason="ADVSETS_DATA_DIR is not set")
def test_overlap_falls_from_squad_to_sets_written_against_a_model() -> None:
    parts = {
        "squad": "squad/train_subset.json",
        **{d: f"adversarialqa/{d}_train_subset.json" for d in ("dbidaf", "dbert", "droberta")},
    }
    means = {}
    for name, file in parts.items():
        articles = json.loads((Path(DATA) / file).read_text(encoding="utf-8"))["data"]
        rows = [
            (str(qa["id"]), paragraph["context"], qa["question"], [a["text"] for a in qa["answers"]])
            for article in articles
            for paragraph in article["paragraphs"]
            for qa in paragraph["qas"]
        ]
        statistics = question_tables("c", name, frame(*rows, split="train"), frame())["question_statistics"]
        assert statistics["n_questions"].to_list() == [len(rows)]
        means[name] = statistics["overlap_mean"][0]
    assert all(means["squad"] - means[name] > 0.5 for name in means if name != "squad")
