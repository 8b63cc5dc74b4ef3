"""Labels in a file of their own, joined with evaluation rows by the source's key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.datasets import sources
from advsets.errors import UserError
from advsets.io import check_frame
from advsets.registry import DatasetRow
from advsets.tables import TABLES

NAMES = ("no", "yes")
TRAIN = [{"text": f"train {i}", "label": NAMES[i % 2]} for i in range(40)]
DEV = [{"key": f"k{i}", "text": f"dev {i}", "label": "-" if i == 7 else NAMES[i % 2]} for i in range(8)]
COLUMNS = {"source_id": "uid", "label_count": "counter"}
LABELS = {"n": "no", "y": "yes", "u": "unsure"}


@pytest.fixture
def make(make_row: Any, write_jsonl: Any) -> Callable[..., DatasetRow]:
    def row(votes: list[Any], dev: list[Any] = DEV, **keys: Any) -> DatasetRow:
        source = {"kind": "file", "train": write_jsonl("train.jsonl", TRAIN), "evaluation": write_jsonl("d.jsonl", dev)}
        more = {
            "title": "Many",
            "columns": COLUMNS,
            "labels": LABELS,
            "source": {"kind": "file", "file": write_jsonl("votes.jsonl", votes)},
            **keys,
        }
        return make_row(source, other_labels=["unsure"], evaluation_columns={"source_id": "key"}, more_annotators=more)

    return row


def vote(key: str, **counts: int) -> dict[str, Any]:
    return {"uid": key, "counter": counts}


def joined(tmp_path: Path) -> dict[str, list[int]]:
    out = tmp_path / "out"
    more = pl.read_parquet(out / "more_annotators.parquet")
    check_frame(more, TABLES["more_annotators"])
    keys = pl.read_parquet(out / "evaluation.parquet").select("example_id", "source_id")
    return dict(more.join(keys, on="example_id").select("source_id", "label_count").rows())


def test_counts_stand_in_label_order_whatever_theirs(make: Any, prepare: Any, tmp_path: Path, capsys: Any) -> None:
    votes = [vote("k3", y=70, n=30), vote("k0", n=1, u=90, y=9), vote("k7", y=100), vote("zz", y=100), vote("k5")]
    tables = prepare(make(votes))
    assert joined(tmp_path) == {"k3": [30, 70, 0], "k0": [1, 9, 90]}
    counted = {reason: (n, dropped) for split, reason, n, dropped in tables["dropped"].rows() if "more" in reason}
    assert counted == {
        "more annotators: rows joined": (2, False),
        "more annotators: ids of rows that were dropped": (1, False),
        "more annotators: ids that no row has": (1, False),
    }
    assert (
        "advsets: data set toy: more annotators for 2 of 7 evaluation rows; 1 of their ids are of rows that were"
        " dropped, 1 of no row"
    ) in capsys.readouterr().err


def test_lists_of_single_labels(make: Any, prepare: Any, tmp_path: Path) -> None:
    votes = [{"uid": "k1", "said": ["y", "n", "y", ""]}, {"uid": "k2", "said": None}]
    prepare(make(votes, columns={"source_id": "uid", "annotator_labels": "said"}))
    assert joined(tmp_path) == {"k1": [1, 2, 0]}


def test_labels_of_the_data_set_serve_where_no_others_are_given(make: Any, prepare: Any, tmp_path: Path) -> None:
    prepare(make([vote("k1", yes=2, no=1)], labels=None))
    assert joined(tmp_path) == {"k1": [1, 2, 0]}


def test_without_more_annotators_the_table_is_empty(
    make_row: Any, write_jsonl: Any, prepare: Any, tmp_path: Path
) -> None:
    tables = prepare(make_row({"kind": "file", "train": write_jsonl("a.jsonl", TRAIN)}, evaluation_fraction=0.5))
    assert joined(tmp_path) == {}
    assert not tables["dropped"]["reason"].str.contains("more annotators").any()


def test_changed_votes_are_told(make: Any, prepare: Any, tmp_path: Path) -> None:
    row = make([vote("k1", y=1)])
    prepare(row)
    (tmp_path / "votes.jsonl").write_text('{"uid": "k1", "counter": {"n": 1}}\n', encoding="utf-8")
    from advsets.datasets.prepare import prepare as again

    settings = {"adversary_fraction": 0.5, "drop_train_duplicates": True, "max_train": None, "max_evaluation": None}
    with pytest.raises(
        UserError, match=r"votes\.jsonl: the content has changed since it was recorded; .*more_annotators/"
    ):
        again(row, tmp_path / "raw", tmp_path / "out", seed=0, **settings)
    prepare(row)
    assert joined(tmp_path) == {"k1": [1, 0, 0]}


def test_rows_beyond_the_limit_are_counted(make: Any, prepare: Any) -> None:
    tables = prepare(make([vote(f"k{i}", y=1) for i in range(8)]), max_evaluation=4)
    counted = dict(
        tables["dropped"].filter(pl.col("reason").str.contains("more")).select("reason", "n_examples").rows()
    )
    assert counted == {
        "more annotators: rows joined": 4,
        "more annotators: ids of rows that were dropped": 4,
        "more annotators: ids that no row has": 0,
    }


def test_missing_file_is_told_before_anything_is_fetched(make: Any, tmp_path: Path) -> None:
    row = make([], source={"kind": "file", "file": "nowhere.jsonl"})
    with pytest.raises(UserError, match="data set toy, more_annotators: source.file: .*nowhere.jsonl: no such file"):
        sources.fetch(row, tmp_path / "raw")
    assert not (tmp_path / "raw" / "source.json").exists()


@pytest.mark.parametrize(
    ("votes", "dev", "message"),
    [
        ([vote("k1", y=1), vote("k1", n=1)], DEV, "votes.jsonl: id 'k1' stands in several rows (1 such ids);"),
        ([vote("", y=1)], DEV, "votes.jsonl, line 1: the id is missing; fill it, or remove the row"),
        (
            [{"uid": "k1", "counter": [3, 4, 5]}],
            DEV,
            "votes.jsonl, line 1: column 'counter' is a list, which does not say",
        ),
        (
            [{"uid": "k1", "counter": "[3, 4]"}],
            DEV,
            "votes.jsonl, line 1: column 'counter' is a list, which does not say",
        ),
        ([vote("k1", maybe=1)], DEV, "votes.jsonl, line 1, annotator counts: label 'maybe' is not in the mapping;"),
        ([vote("k1", y=-1)], DEV, "votes.jsonl, line 1: annotator count -1; allowed: whole numbers from 0"),
        ([{"uid": "k1"}], DEV, "votes.jsonl: column 'counter' (label_count) is missing; found: uid;"),
        (
            [vote("zz", y=1)],
            DEV,
            "data set toy: more_annotators: none of 1 ids is that of an evaluation row (e.g. zz); allowed: those of"
            " `columns.source_id`, e.g. 'k0'; correct one of the two columns",
        ),
        (
            [vote("k1", y=1)],
            [{**r, "key": "k1"} for r in DEV],
            "data set toy: more_annotators: id 'k1' is the source_id of several evaluation rows (1 such ids);"
            " allowed: ids",
        ),
    ],
)
def test_bad_votes_are_told_in_one_line(
    make: Any, prepare: Any, tmp_path: Path, votes: Any, dev: Any, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        prepare(make(votes, dev))
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)
    assert "\n" not in str(caught.value)
