"""Ensembles from files, from arrays and from a chain of nodes: one result, joined by id, resumed after kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from advsets import AFLite
from advsets.aflite.chain import collect, run_node, start_node
from advsets.aflite.outfolder import OUTPUT_FILES
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.cli import main
from advsets.errors import UserError
from advsets.io import read_json, read_table

SETTINGS: dict[str, Any] = {
    "n_partitions": 8,
    "train_size": 40,
    "slice_size": 12,
    "min_retained": 60,
    "threshold": 0.7,
    "max_rounds": 3,
}
FLAGS = [part for name, value in SETTINGS.items() for part in (f"--{name.replace('_', '-')}", str(value))]
Pair = tuple[Path, Path]
TABLES = {"retained": "retained", "retained_train": "retained", "round_scores": "round_scores", "rounds": "rounds"}


@pytest.fixture
def members(member_files: Callable[..., Pair], tmp_path: Path) -> list[Pair]:
    """Two representations of the same rows: labels show in the first feature of one, the second of the other."""
    return [member_files(tmp_path / name, seed=seed, informative=at) for name, seed, at in (("a", 1, 0), ("b", 2, 1))]


def run(members: list[Pair], out: Path, combination: str = "mean", **changes: Any) -> None:
    train, evaluation = map(list, zip(*members, strict=True))
    settings = FilterSettings(**{**SETTINGS, **changes})
    filter_files(
        train, evaluation, out, settings, combination=combination, seed=3, threads=1, device="cpu", progress=False
    )


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    frames = {name: read_table(folder / f"{name}.parquet", table) for name, table in TABLES.items()}
    return {name: frame.drop([c for c in frame.columns if c.endswith("_s")]) for name, frame in frames.items()}


def assert_same(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> None:
    for name, frame in one.items():
        assert_frame_equal(frame, other[name], check_exact=True)


def command(members: list[Pair], out: Path, *more: str) -> list[str]:
    first, *others = members
    also = [part for pair in others for part in ("--also", *map(str, pair))]
    fast = ("--seed", "3", "--threads", "1", "--device", "cpu")
    return ["filter", *map(str, first), *also, "--out", str(out), *fast, *FLAGS, *more]


@pytest.mark.parametrize("combination", ["mean", "minimum"])
def test_chain_command_and_class_give_one_result(members, tmp_path: Path, combination: str) -> None:
    train, evaluation = zip(*members, strict=True)
    nodes = [tmp_path / "chain" / f"{n:03d}" for n in range(SETTINGS["max_rounds"] + 1)]
    start_node(train, evaluation, nodes[0], settings=SETTINGS, seed=3, combination=combination)
    for previous, node in zip(nodes, nodes[1:], strict=False):
        run_node(previous, train, evaluation, node, n_rounds=1, threads=1, device="cpu")
    collect(nodes, tmp_path / "chain")
    golden = tables(tmp_path / "chain")
    assert 0 < golden["retained"]["retained"].sum() < 60 and golden["rounds"].height == 3

    assert main(command(members, tmp_path / "command", "--combination", combination)) == 0
    assert_same(golden, tables(tmp_path / "command"))

    frames = [[pl.read_parquet(path) for path in pair] for pair in members]
    (X, X_eval), (first, first_eval) = zip(*frames, strict=True), frames[0]
    found = AFLite(**SETTINGS, random_state=3, device="cpu", combination=combination).fit(
        [frame["embedding"].to_list() for frame in X],
        first["label"],
        ids=first["example_id"],
        eval_set=([frame["embedding"].to_list() for frame in X_eval], first_eval["label"]),
        eval_ids=first_eval["example_id"],
    )
    kept = first_eval["example_id"].filter(pl.Series(found.eval_retained_)).sort()
    assert kept.to_list() == golden["retained"].filter("retained")["example_id"].to_list()
    key = ["filtering_round", "split", "example_id"]
    assert_frame_equal(golden["round_scores"], found.round_scores_.sort(key), check_exact=True)
    assert found.n_features_in_ == [4, 4]


@pytest.mark.parametrize("combination", ["mean", "minimum"])
def test_one_adversary_twice_keeps_what_it_keeps_alone(members, tmp_path: Path, combination: str) -> None:
    run(members[:1], tmp_path / "alone")
    run([members[0]] * 2, tmp_path / "twice", combination)
    alone, twice = tables(tmp_path / "alone"), tables(tmp_path / "twice")
    for name in ("retained", "retained_train"):
        assert_frame_equal(alone[name], twice[name], abs_tol=1e-12)
    assert not alone["retained"]["retained"].all()
    run(members, tmp_path / "both", combination)
    assert not tables(tmp_path / "both")["retained"].equals(twice["retained"])


def test_rows_are_joined_by_id_whatever_their_order(members, tmp_path: Path) -> None:
    run(members, tmp_path / "out")
    for number, pair in enumerate(members):
        for path in pair:
            frame = pl.read_parquet(path)
            frame.sample(fraction=1, shuffle=True, seed=number + 5).write_parquet(path)
    run(members, tmp_path / "turned")
    assert_same(tables(tmp_path / "out"), tables(tmp_path / "turned"))


def test_without_an_evaluation_set(members, tmp_path: Path) -> None:
    run(members, tmp_path / "both")
    alone = [str(train) for train, _ in members]
    out = ["--out", str(tmp_path / "train"), "--seed", "3", "--threads", "1", "--device", "cpu"]
    assert main(["filter", alone[0], "--also", alone[1], *out, *FLAGS]) == 0
    found = tables(tmp_path / "train")
    assert_frame_equal(found["retained_train"], tables(tmp_path / "both")["retained_train"], check_exact=True)
    assert found["retained"].is_empty()


def test_what_is_recorded(members, tmp_path: Path) -> None:
    run(members, tmp_path / "out", "minimum")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(OUTPUT_FILES)
    record = read_json(tmp_path / "out" / "settings.json")
    assert (
        record["combination"] == "minimum" and [len(m["standardisation"]["mean"]) for m in record["members"]] == [4] * 2
    )
    files = [record["inputs"], *record["inputs"]["also"]]
    assert [(one["train"]["path"], one["evaluation"]["path"]) for one in files] == [
        tuple(map(str, pair)) for pair in members
    ]
    run(members[:1], tmp_path / "alone", "minimum")
    alone = read_json(tmp_path / "alone" / "settings.json")
    assert not {"combination", "members"} & set(alone) and "also" not in alone["inputs"]


@pytest.mark.parametrize(
    ("number", "combination", "difference"),
    [
        (2, "minimum", "combination minimum here and mean there"),
        (1, "mean", "1 adversaries here and 2 there"),
        (3, "mean", "other content of the training set of adversary 2"),
    ],
)
def test_another_ensemble_is_another_run(
    members, tmp_path: Path, number: int, combination: str, difference: str
) -> None:
    run(members, tmp_path / "out")
    other = [members[0], members[0]] if number == 3 else members[:number]
    with pytest.raises(UserError, match=f"holds a finished run on other input .*{difference}"):
        run(other, tmp_path / "out", combination)


def rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    change(pl.read_parquet(path)).write_parquet(path)


BAD: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "missing ids": (
        lambda f: f.slice(2),
        r"example_ids differ: 2 missing \(first {split}-00000, {split}-00001\); allowed: the same examples as in .*a/",
    ),
    "other ids": (
        lambda f: f.with_columns(pl.col("example_id").replace({f["example_id"][3]: "new"})),
        r"example_ids differ: 1 missing \(first {split}-00003\), 1 unknown \(first new\)",
    ),
    "repeated ids": (
        lambda f: pl.concat([f, f.head(1)]),
        "example_id '{split}-00000' stands in more than one row",
    ),
    "another label": (
        lambda f: f.with_columns(label=pl.when(pl.int_range(pl.len()) == 1).then(pl.lit("1")).otherwise("label")),
        r"1 example\(s\) of another label, first '{split}-00001': '1' here and '0' there",
    ),
    "groups here only": (
        lambda f: f.with_columns(group_id=pl.lit("g")),
        r"example\(s\) of another group_id, first '{split}-00000': 'g' here and none there",
    ),
}


@pytest.mark.parametrize("split", ["train", "evaluation"])
@pytest.mark.parametrize("kind", BAD)
def test_other_examples_are_one_line_that_names_the_file(
    members, tmp_path: Path, kind: str, split: str, capsys
) -> None:
    change, message = BAD[kind]
    if kind == "another label":
        for pair in members:
            rewrite(pair[0 if split == "train" else 1], lambda f: f.with_columns(label=pl.col("label").sort()))
    path = members[1][0 if split == "train" else 1]
    rewrite(path, change)
    with pytest.raises(UserError, match=f"b/{split}.parquet: .*{message.replace('{split}', split)}") as caught:
        run(members, tmp_path / "out")
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


def test_labels_are_compared_by_name(members, tmp_path: Path) -> None:
    for path in members[1]:
        rewrite(path, lambda f: f.with_columns(pl.col("label").replace({"0": "no", "1": "yes"})))
    with pytest.raises(UserError, match=r"120 example\(s\) of another label, first 'train-00000': '(no|yes)' here"):
        run(members, tmp_path / "out")


def test_groups_of_other_names_are_other_groups(members, tmp_path: Path) -> None:
    for letter, pair in zip("gh", members, strict=True):
        for path in pair:
            rewrite(
                path, lambda f, letter=letter: f.with_columns(group_id=letter + (pl.int_range(pl.len()) // 2).cast(str))
            )
    with pytest.raises(
        UserError, match="120 example.* of another group_id, first 'train-00000': 'h0' here and 'g0' there"
    ):
        run(members, tmp_path / "out")
    run(members, tmp_path / "out", use_groups=False)


def test_multiple_choice_with_classification(members, tmp_path: Path, write_rows) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2, 4))
    choice = write_rows(tmp_path / "train.parquet", X, np.arange(120) % 2)
    with pytest.raises(
        UserError, match=r"it is multiple choice \(candidates\), but .*a/train.parquet is classification"
    ):
        filter_files([members[0][0], choice], None, tmp_path / "out", FilterSettings(**SETTINGS), device="cpu")


def test_candidates_must_be_as_many(tmp_path: Path, write_rows) -> None:
    rng, label, files = np.random.default_rng(0), np.arange(60) % 2, []
    for name, n_choices in (("a", 3), ("b", 4)):
        (tmp_path / name).mkdir()
        files.append(write_rows(tmp_path / name / "train.parquet", rng.normal(size=(60, n_choices, 4)), label))
    settings = FilterSettings(n_partitions=4, train_size=20)
    with pytest.raises(UserError, match="60 example.* of another number of candidates, .* 4 here and 3 there"):
        filter_files(files, None, tmp_path / "out", settings, device="cpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t", "v", "--also", "t2"], "command line: --also t2: 1 path(s); allowed: TRAIN EVALUATION"),
        (["t", "v", "--also", "t2", "v2", "t3", "v3"], "--also t2 v2 t3 v3: 4 path(s); allowed: TRAIN EVALUATION"),
        (["t", "--also", "t2", "v2"], "--also t2 v2: 2 path(s); allowed: TRAIN alone, as there is no evaluation set"),
        (["t", "v", "--combination", "minimum"], "--combination minimum of one adversary; allowed: with --also only"),
    ],
)
def test_members_on_the_command_line(arguments: list[str], message: str, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["filter", *arguments, "--out", "out"])
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_an_unknown_combination_is_refused(members, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="combination: 'max' is not allowed; allowed: mean, minimum"):
        run(members, tmp_path / "out", "max")


DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
import torch  # the slow import, once; polars must not be loaded before a fork

out = Path(sys.argv[1])
arguments = json.loads(sys.argv[2])

def child(folder, log):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(out.parent / log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        from advsets.cli import main

        os._exit(main([*arguments, "--out", str(folder)]))
    return pid

def n_nodes():
    return len(list((out / ".rounds").glob("[0-9]*.json")))

assert os.waitpid(child(out.parent / "whole", "whole.log"), 0)[1] == 0
pid = child(out, "killed.log")
while n_nodes() < 4:
    time.sleep(0.002)
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
left = n_nodes() - 1
status = os.waitpid(child(out, "last.log"), 0)[1]
print(json.dumps({"left": left, "status": status, "log": (out.parent / "last.log").read_text()}))
"""


def test_a_killed_ensemble_goes_on_where_it_was(tmp_path: Path, member_files) -> None:
    members = [member_files(tmp_path / name, seed=seed, n_train=400) for name, seed in (("a", 1), ("b", 2))]
    first, *others = command(members, tmp_path / "x")[1:3], *(["--also", *map(str, pair)] for pair in members[1:])
    settings = ["--n-partitions", "48", "--slice-size", "0.05", "--max-rounds", "12", "--threshold", "0.6"]
    arguments = ["filter", *first, *(part for also in others for part in also), "--combination", "minimum", *settings]
    arguments += ["--threads", "1", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    driver = [sys.executable, "-c", DRIVER, str(tmp_path / "out"), json.dumps(arguments)]
    done = subprocess.run(driver, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["status"] == 0 and f"going on after round {report['left']}" in report["log"], report["log"]
    assert f": round {report['left']}:" not in report["log"] and f": round {report['left'] + 1}:" in report["log"]
    assert_same(tables(tmp_path / "whole"), tables(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(OUTPUT_FILES)


def arrays(n: int = 80, n_eval: int = 30) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y, y_eval = rng.integers(2, size=n), rng.integers(2, size=n_eval)
    X = [rng.normal(size=(n, width)) + y[:, None] for width in (4, 6)]
    return {"X": X, "y": y, "eval_set": ([rng.normal(size=(n_eval, width)) for width in (4, 6)], y_eval)}


def model(**changes: Any) -> AFLite:
    settings = {"n_partitions": 4, "slice_size": 0.15, "threshold": 0.6, "max_rounds": 2, "combination": "mean"}
    return AFLite(**{**settings, "device": "cpu", **changes})


def test_arrays_of_other_widths_and_kinds_of_arguments() -> None:
    given = arrays()
    one = model().fit(**given, ids=map(str, range(80)), eval_ids=(f"v{i}" for i in range(30)))
    X = [array.tolist() for array in given["X"]]
    other = model().fit(
        tuple(X),
        iter(given["y"].tolist()),
        (str(i) for i in range(80)),
        None,
        given["eval_set"],
        [f"v{i}" for i in range(30)],
    )
    np.testing.assert_array_equal(one.eval_margin_, other.eval_margin_)
    assert one.n_features_in_ == [4, 6] and not hasattr(one, "feature_names_in_")
    assert one.rounds_["n_partitions"].to_list() == [8] * one.n_rounds_


def test_multiple_choice_members() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=80)
    X = [rng.normal(size=(80, 3, width)) + 1.5 * np.eye(3)[y][:, :, None] for width in (5, 2)]
    one, other = model().fit(X, y), model().fit([X[0], list(X[1])], y)
    np.testing.assert_array_equal(one.margin_, other.margin_)
    assert not one.retained_.all()
    np.testing.assert_array_equal(
        model().fit([X[0]], y).removed_in_round_, model(combination=None).fit(X[0], y).removed_in_round_
    )


def wrong(kind: str) -> dict[str, Any]:
    given = arrays()
    (A, B), y, (E, y_eval) = given["X"], given["y"], given["eval_set"]
    return {
        "rows": {"X": [A, B[:-1]], "y": y},
        "labels": {"X": [A, B], "y": y[:-1]},
        "one array": {"X": A, "y": y},
        "stacked": {"X": np.stack([A, A]), "y": y},
        "none": {"X": [], "y": y},
        "one evaluation": {"X": [A, B], "y": y, "eval_set": (E[:1], y_eval)},
        "evaluation rows": {"X": [A, B], "y": y, "eval_set": ([E[0], E[1][:-2]], y_eval)},
        "width": {"X": [A, B], "y": y, "eval_set": (E[::-1], y_eval)},
        "nan": {"X": [A, np.where(np.isin(B, B[7, 1]), np.nan, B)], "y": y},
        "candidates": {"X": [A, [B[:2]] * 80], "y": y},
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("rows", r"training rows: X lists arrays of shape \(80, 4\), \(79, 6\) for 80 labels; allowed: one array per"),
        ("labels", r"training rows: X lists arrays of shape \(80, 4\), \(80, 6\) for 79 labels"),
        (
            "one array",
            r"X is an array of shape \(80, 4\) with combination 'mean'; allowed: a list of one X per adversary",
        ),
        ("stacked", r"X is an array of shape \(2, 80, 4\) with combination 'mean'"),
        ("none", "X is a list without arrays with combination 'mean'"),
        ("one evaluation", r"evaluation rows: X lists 1 .* shape \(30, 4\), .* 2 of shape \(80, 4\), \(80, 6\)"),
        ("evaluation rows", r"evaluation rows: X lists arrays of shape \(30, 4\), \(28, 6\) for 30 labels"),
        ("width", "evaluation rows of adversary 1: vectors have 6 elements, those of training rows of adversary 1 4"),
        ("nan", r"training rows of adversary 2: 1 example\(s\) .*NaN.* first 7"),
        ("candidates", "training rows of adversary 2: it is multiple choice .*, but training rows of adversary 1 is"),
    ],
)
def test_arrays_that_cannot_be_used(kind: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        model().fit(**wrong(kind))
    assert "\n" not in str(caught.value)


def test_arrays_without_a_combination_are_told_of_it() -> None:
    given = arrays()
    message = r"X lists 2 arrays of shape \(80, 4\), \(80, 6\) for 80 labels; .* set combination to mean or minimum"
    with pytest.raises(UserError, match=message):
        model(combination=None).fit(given["X"], given["y"])
    with pytest.raises(UserError, match="combination: 'max' is not allowed; allowed: mean, minimum"):
        model(combination="max").fit(**given)
