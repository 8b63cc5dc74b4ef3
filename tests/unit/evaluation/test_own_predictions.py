"""A user's own predictions: every format, joined by id, and what is said when something is wrong."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advsets.errors import UserError
from advsets.evaluation.own_predictions import evaluate_predictions
from advsets.evaluation.prediction_files import read_predictions
from advsets.evaluation.settings import EvaluateSettings
from advsets.io import read_table, write_table
from advsets.seeding import rng_for

SETTINGS = EvaluateSettings(
    n_bootstrap=200, confidence=0.9, n_random_subsets=50, n_agreement_bins=1, n_predictability_bins=1, seed=0
)
IDS = ["e1", "e2", "e3", "e4"]
GOLD = ["yes", "no", "yes", "no"]
PREDICTED = ["yes", "no", "no", "yes"]


def write_set(folder: Path, ids: list[str], gold: list[str], kept: list[bool]) -> Path:
    write_table(
        pl.DataFrame({"example_id": ids, "label": gold}), folder / "evaluation_labels.parquet", "evaluation_labels"
    )
    frame = pl.DataFrame({"example_id": ids, "retained": kept}).with_columns(
        removed_in_round=pl.lit(None, pl.Int64), predictability=pl.lit(0.5), margin=pl.lit(0.0)
    )
    write_table(frame, folder / "retained.parquet", "retained")
    return folder


@pytest.fixture
def set_dir(tmp_path: Path) -> Path:
    return write_set(tmp_path / "set", IDS, GOLD, [False, True, True, True])


def score(path: Path, set_dir: Path, **options: object) -> dict[str, dict]:
    frame = evaluate_predictions([path], set_dir, None, SETTINGS, **{"stream": io.StringIO(), **options})
    return {row["subset"]: row for row in frame.to_dicts()}


def csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


RECORDS = [{"example_id": i, "predicted_label": p} for i, p in zip(IDS, PREDICTED, strict=True)]
JSONL = "\n".join(map(json.dumps, RECORDS))
CSV = "example_id,predicted_label\n" + "".join(f"{r['example_id']},{r['predicted_label']}\n" for r in RECORDS)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("p.csv", CSV.encode()),
        ("p.tsv", CSV.replace(",", "\t").encode()),
        ("p.csv.gz", gzip.compress(CSV.encode())),
        ("p.jsonl", JSONL.encode()),
        ("p.jsonl.gz", gzip.compress(JSONL.encode())),
        ("p.json", json.dumps(RECORDS).encode()),
        ("p.json", json.dumps(dict(zip(IDS, PREDICTED, strict=True))).encode()),
        ("p.csv", b"\xef\xbb\xbf" + CSV.replace("predicted_label", "prediction").encode()),
    ],
)
def test_every_format_gives_the_same_scores(tmp_path: Path, set_dir: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    found = score(tmp_path / name, set_dir)
    assert (found["full_set"]["n_examples"], found["full_set"]["accuracy"]) == (4, 0.5)
    assert (found["filtered"]["n_examples"], found["filtered"]["accuracy"]) == (3, pytest.approx(1 / 3))


def test_parquet_with_more_columns_in_any_order(tmp_path: Path, set_dir: Path) -> None:
    frame = pl.DataFrame({"predicted_label": PREDICTED, "score": [0.1] * 4, "example_id": IDS})
    frame[[3, 1, 0, 2]].write_parquet(tmp_path / "p.parquet")
    found = score(tmp_path / "p.parquet", set_dir)
    assert (found["full_set"]["accuracy"], found["filtered"]["accuracy"]) == (0.5, pytest.approx(1 / 3))


@pytest.mark.parametrize("values", [[0, 1, 2, 0], [0.0, 1.0, 2.0, 0.0], ["0", "1", "2", "0"]])
def test_multiple_choice_takes_integers(tmp_path: Path, values: list) -> None:
    folder = write_set(tmp_path / "set", IDS, ["0", "1", "1", "2"], [True] * 4)
    pl.DataFrame({"example_id": IDS, "predicted_label": values}).write_parquet(tmp_path / "p.parquet")
    assert score(tmp_path / "p.parquet", folder)["full_set"]["accuracy"] == 0.5
    csv(tmp_path / "p.csv", "example_id,prediction\n" + "".join(f"{i},{v}\n" for i, v in zip(IDS, values, strict=True)))
    assert score(tmp_path / "p.csv", folder)["full_set"]["accuracy"] == 0.5


def test_integer_ids_are_strings(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", ["10", "11"], ["no", "yes"], [True, True])
    pl.DataFrame({"example_id": [11, 10], "predicted_label": ["yes", "yes"]}).write_parquet(tmp_path / "p.parquet")
    assert score(tmp_path / "p.parquet", folder)["full_set"]["accuracy"] == 0.5


def test_missing_predictions_count_as_wrong_and_unknown_ids_are_told(tmp_path: Path, set_dir: Path) -> None:
    path = csv(tmp_path / "p.csv", "example_id,predicted_label\ne1,yes\ne2,no\nzz,no\ne3,\n")
    stream = io.StringIO()
    found = score(path, set_dir, stream=stream)
    assert (found["full_set"]["accuracy"], found["full_set"]["n_missing"]) == (0.5, 2)
    assert (found["filtered"]["accuracy"], found["filtered"]["n_missing"]) == (pytest.approx(1 / 3), 2)
    assert "2 of 4 examples have no prediction and count as wrong" in stream.getvalue()
    assert "1 unknown example_id left out: zz" in stream.getvalue()


def test_intervals_equal_a_brute_force_bootstrap(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 120
    ids, right, kept = [f"{i:03d}" for i in range(n)], rng.random(n) < 0.7, rng.random(n) < 0.4
    folder = write_set(tmp_path / "set", ids, ["no"] * n, kept.tolist())
    predicted = np.where(right, "no", "yes").tolist()
    pl.DataFrame({"example_id": ids, "predicted_label": predicted}).write_parquet(tmp_path / "p.parquet")
    found = score(tmp_path / "p.parquet", folder, other_labels=["yes"])
    drawn = [rng_for(0, "bootstrap", b).integers(0, n, n) for b in range(200)]
    expected = np.quantile([right[d][kept[d]].mean() for d in drawn], [0.05, 0.95])
    np.testing.assert_allclose([found["filtered"]["accuracy_low"], found["filtered"]["accuracy_high"]], expected)
    chance = [right[rng_for(0, "random_subset", r).permutation(n) < kept.sum()].mean() for r in range(50)]
    row = found["random_subset"]
    assert (row["accuracy_low"], row["accuracy_high"]) == (pytest.approx(min(chance)), pytest.approx(max(chance)))
    assert row["accuracy"] == pytest.approx(np.mean(chance))


def test_an_empty_filtered_subset(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", IDS, GOLD, [False] * 4)
    stream = io.StringIO()
    found = score(csv(tmp_path / "p.csv", CSV), folder, stream=stream)
    assert (found["filtered"]["n_examples"], found["filtered"]["accuracy"]) == (0, None)
    assert found["random_subset"]["accuracy"] is None
    assert "none to none" in stream.getvalue()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_several_models_are_written_and_printed(tmp_path: Path, set_dir: Path, suffix: str) -> None:
    paths = [csv(tmp_path / "good.csv", CSV), csv(tmp_path / "bad.csv", CSV.replace("yes", "no"))]
    stream, out = io.StringIO(), tmp_path / "deep" / f"scores.{suffix}"
    frame = evaluate_predictions(paths, set_dir, out, SETTINGS, stream=stream)
    assert frame["evaluated_model"].unique().sort().to_list() == ["bad", "good"]
    written = pl.read_csv(out) if suffix == "csv" else read_table(out, "own_scores")
    assert written.equals(frame)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1 + 6 + 1
    assert lines[4].split()[:5] == ["good", "full_set", "4", "0", "0.5000"]
    assert lines[5].split()[:5] == ["good", "filtered", "3", "0", "0.3333"]


def test_equal_file_names_are_told_apart(tmp_path: Path, set_dir: Path) -> None:
    for part in "xy":
        (tmp_path / part).mkdir()
        csv(tmp_path / part / "p.csv", CSV)
    paths = [tmp_path / part / "p.csv" for part in "xy"]
    frame = evaluate_predictions(paths, set_dir, None, SETTINGS, stream=io.StringIO())
    assert set(frame["evaluated_model"]) == {str(path) for path in paths}
    with pytest.raises(UserError, match="a file is given twice"):
        evaluate_predictions([paths[0]] * 2, set_dir, None, SETTINGS)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "p.csv",
            "example_id,predicted_label\ne1,maybe\ne2,sure\n",
            r"row 1: unknown label 'maybe' \(2 rows .* allowed: no, yes",
        ),
        ("p.csv", "example_id,predicted_label\ne1,yes\ne1,no\n", r"1 repeated example_id: e1"),
        ("p.csv", "id,predicted_label\ne1,yes\n", r"column 'example_id' is missing; found: id, predicted_label"),
        (
            "p.csv",
            "example_id,label\ne1,yes\n",
            r"column 'predicted_label' is missing; .* predicted_label or prediction",
        ),
        ("p.csv", "", r"p.csv: not readable as .csv"),
        ("p.csv", "example_id,predicted_label\n", r"no predictions"),
        ("p.csv", "example_id,predicted_label\n,yes\n", r"row 1: no example_id"),
        (
            "p.csv",
            "example_id,predicted_label\nq1,yes\n",
            r"none of the 1 example_id is in .*, e.g. 'q1'; allowed: ids such as 'e1'",
        ),
        ("p.json", "{", r"p.json: not readable as .json"),
        ("p.json", "[1, 2]", r"neither a list of records nor an object"),
        ("p.jsonl", "[1]\n", r"a line is not an object"),
        ("p.parquet", "no parquet", r"p.parquet: not readable as .parquet"),
        ("p.csv.gz", "no gzip", r"p.csv.gz: not readable as .gz"),
        ("p.xlsx", "x", r"unknown kind of file; allowed: .csv, .tsv"),
        ("p", "x", r"unknown kind of file"),
    ],
)
def test_bad_predictions_give_one_line(tmp_path: Path, set_dir: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        score(csv(tmp_path / name, text), set_dir)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_absent_files_are_named(tmp_path: Path, set_dir: Path) -> None:
    with pytest.raises(UserError, match="gone.csv: no such file"):
        read_predictions(tmp_path / "gone.csv")
    path = csv(tmp_path / "p.csv", CSV)
    with pytest.raises(UserError, match=r"no retained.parquet; allowed: the output of `advsets filter`"):
        score(path, tmp_path)
    with pytest.raises(UserError, match=r"scores.txt: unknown kind of file; allowed: .csv, .parquet"):
        evaluate_predictions([path], set_dir, tmp_path / "scores.txt", SETTINGS)


@pytest.mark.parametrize("what", ["predictions", "set", "other"])
def test_scores_replace_nothing_but_scores(tmp_path: Path, set_dir: Path, what: str) -> None:
    path = csv(tmp_path / "p.csv", CSV)
    other = csv(tmp_path / "notes.csv", "a,b\n1,2\n")
    out = {"predictions": path, "set": set_dir / "retained.parquet", "other": other}[what]
    before = out.read_bytes()
    with pytest.raises(UserError, match="something else than scores stands there; allowed: a new file"):
        evaluate_predictions([path], set_dir, out, SETTINGS)
    assert out.read_bytes() == before
    for suffix in ("csv", "parquet"):
        for _ in range(2):
            evaluate_predictions([path], set_dir, set_dir / f"scores.{suffix}", SETTINGS, stream=io.StringIO())


def test_set_whose_files_disagree(tmp_path: Path, set_dir: Path) -> None:
    path = set_dir / "retained.parquet"
    pl.read_parquet(path).head(3).write_parquet(path)
    with pytest.raises(UserError, match=r"retained.parquet: 1 missing example_id: e4"):
        score(csv(tmp_path / "p.csv", CSV), set_dir)


def test_the_same_scores_for_any_row_order(tmp_path: Path, set_dir: Path) -> None:
    head, *rows = CSV.splitlines()
    orders: list[Callable[[list[str]], list[str]]] = [list, lambda r: r[::-1], sorted]
    found = [score(csv(tmp_path / "p.csv", "\n".join([head, *order(rows)])), set_dir) for order in orders]
    assert found[0] == found[1] == found[2]
