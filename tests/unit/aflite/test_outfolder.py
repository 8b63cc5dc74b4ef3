"""Which folders a run writes to: new ones, its own, and others only if it may overwrite them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.aflite import run as run_module
from advsets.aflite.outfolder import OUTPUT_FILES
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError

SMALL = {"n_partitions": 4, "slice_size": 0.15, "threshold": 0.6, "max_rounds": 2}


def run(files: tuple[Path, Path | None], out: Path, *, overwrite: bool = False, seed: int = 0, **changes: Any) -> None:
    settings = FilterSettings(**{**SMALL, **changes})
    filter_files(*files, out, settings, seed=seed, threads=1, device="cpu", overwrite=overwrite)


@pytest.fixture
def finished(tmp_path: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> Path:
    run(files, tmp_path / "out")
    capsys.readouterr()
    return tmp_path / "out"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", OUTPUT_FILES)
def test_files_of_others_are_left_alone_unless_they_may_go(tmp_path: Path, files, name: str) -> None:
    out = tmp_path / "foreign"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    (out / name).write_text('{"editor": "wide"}')
    with pytest.raises(UserError, match=f"foreign/{name}: stands there already .* --overwrite"):
        run(files, out)
    assert contents(out) == {"notes.txt": b"mine", name: b'{"editor": "wide"}'}
    run(files, out, overwrite=True)
    assert {path.name for path in out.iterdir()} == {"notes.txt", *OUTPUT_FILES}


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"seed": 9}, "seed 9 here and 0 there"),
        ({"threshold": 0.7}, "threshold 0.7 here and 0.6 there"),
        ({"input": True}, "other content of the training set"),
    ],
)
def test_another_run_is_refused_by_what_differs(
    finished: Path, files, make_rows, write_rows, change: dict[str, Any], difference: str
) -> None:
    before = contents(finished)
    if change.pop("input", False):
        write_rows(files[0], *make_rows(150, seed=8))
    with pytest.raises(UserError, match=f"holds a finished run .*{difference}.*--overwrite"):
        run(files, finished, **change)
    assert contents(finished) == before
    run(files, finished, overwrite=True, **change)
    assert contents(finished)["settings.json"] != before["settings.json"]


def stop_after_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "_finish", stop)


def test_an_unfinished_run_goes_on_and_another_is_refused(
    tmp_path: Path, finished: Path, files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in (tmp_path / "new", finished):  # the second replaces a finished run when it is stopped
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="goes on after round 2"):
            stop_after_rounds(patch)
            run(files, out, seed=1, overwrite=True)
        with pytest.raises(UserError, match="run on other input or settings"):
            run(files, out, seed=2)
        capsys.readouterr()
        run(files, out, seed=1)
        assert ": round " not in capsys.readouterr().err
        assert {path.name for path in out.iterdir()} == set(OUTPUT_FILES)


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_table_is_named_and_computed_again(
    finished: Path, files, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    table = finished / "retained.parquet"
    whole = table.read_bytes()
    if damage == "missing":
        table.unlink()
    else:
        table.write_bytes(whole[:100] if damage == "cut" else whole[:50] + b"x" + whole[51:])
    run(files, finished)
    assert "out: retained.parquet missing or not as written; computing again" in capsys.readouterr().err
    assert table.read_bytes() == whole
    run(files, finished)
    assert "nothing to do" in capsys.readouterr().err


def test_tables_are_recorded_with_size_and_hash(finished: Path) -> None:
    tables = json.loads((finished / "settings.json").read_text())["tables"]
    assert {name: entry["size"] for name, entry in tables.items()} == {
        name: (finished / name).stat().st_size for name in OUTPUT_FILES if name != "settings.json"
    }


def test_a_run_that_fails_leaves_nothing(tmp_path: Path, files, write_rows, make_rows) -> None:
    X, y = make_rows(40)
    one_label = write_rows(tmp_path / "one.parquet", X, [0] * 40)
    with_nan = X.copy()
    with_nan[3, 1] = float("nan")
    broken = write_rows(tmp_path / "nan.parquet", with_nan, y)
    whole_groups = write_rows(tmp_path / "whole.parquet", X, y, groups=[f"g{label}" for label in y])
    before = set(tmp_path.iterdir())
    cases: list[tuple[tuple[Path, Path | None], dict[str, Any], str]] = [
        ((one_label, None), {}, "every row has label"),
        ((broken, files[1]), {}, "NaN"),
        ((files[0], tmp_path), {}, "it is a folder"),
        ((tmp_path / "none.parquet", None), {}, "no such file"),
        (files, {"train_size": 5000}, "train_size"),
        ((whole_groups, None), {"train_size": 25, "min_retained": 30}, "none would be held out"),  # in round 1
    ]
    for inputs, changes, message in cases:
        with pytest.raises(UserError, match=message):
            run(inputs, tmp_path / "a" / "b", **changes)
        assert set(tmp_path.iterdir()) == before
    kept = tmp_path / "kept"
    kept.mkdir()
    with pytest.raises(UserError):
        run((one_label, None), kept)
    assert kept.is_dir() and not any(kept.iterdir())


def test_an_interrupt_before_the_first_round_leaves_nothing(
    tmp_path: Path, files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "run_rounds", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(files, tmp_path / "out")
    assert caught.value.args == () and not (tmp_path / "out").exists()


def test_an_emptied_evaluation_set_gives_a_warning(
    tmp_path: Path, make_rows, write_rows, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = make_rows(150)
    easy = write_rows(tmp_path / "easy.parquet", X[:8] * 0 + 30.0 * (X[y == 1].mean(0) - X[y == 0].mean(0)), [1] * 8)
    train = write_rows(tmp_path / "t.parquet", X, y)
    run((train, easy), tmp_path / "out")
    assert not pl.read_parquet(tmp_path / "out" / "retained.parquet")["retained"].any()
    assert "warning: " in (err := capsys.readouterr().err) and "none of 8 evaluation rows is left" in err
    shutil.rmtree(tmp_path / "out")
    run((train, None), tmp_path / "out")
    assert "warning" not in capsys.readouterr().err
