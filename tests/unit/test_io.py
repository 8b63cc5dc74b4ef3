"""Tables are checked, sorted and renamed into place; what cannot be read is said in one line."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from advsets.errors import UserError, user_errors
from advsets.io import (
    atomic_path,
    check_frame,
    empty_frame,
    parquet_schema,
    read_json,
    read_table,
    write_json,
    write_table,
    write_text,
)
from advsets.tables import TABLES

RETAINED = {
    "example_id": ["b", "a", "c"],
    "retained": [True, False, True],
    "removed_in_round": [None, 1, None],
    "predictability": [0.5, 1.0, None],
    "margin": [0.1, 2.0, None],
}


needs_full_device = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device /dev/full here")


def retained() -> pl.DataFrame:
    return pl.DataFrame(RETAINED)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestAtomicPath:
    def test_renames_on_success_and_leaves_nothing_beside(self, tmp_path: Path) -> None:
        target = tmp_path / "new" / "x.txt"
        with atomic_path(target) as temporary:
            assert temporary.parent == target.parent and not target.exists()
            temporary.write_text("whole")
        assert target.read_text() == "whole"
        assert names_in(target.parent) == ["x.txt"]

    @pytest.mark.parametrize("fault", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
    def test_exception_leaves_the_old_file_and_nothing_else(self, tmp_path: Path, fault: type[BaseException]) -> None:
        target = tmp_path / "x.txt"
        target.write_text("old")
        with pytest.raises(fault), atomic_path(target) as temporary:
            temporary.write_text("half")
            raise fault
        assert target.read_text() == "old"
        assert names_in(tmp_path) == ["x.txt"]

    def test_file_has_the_usual_permissions(self, tmp_path: Path) -> None:
        old = os.umask(0o027)
        try:
            write_text(tmp_path / "x.txt", "text")
        finally:
            os.umask(old)
        assert (tmp_path / "x.txt").stat().st_mode & 0o777 == 0o640

    def test_killed_writer_never_leaves_a_half_file(self, tmp_path: Path) -> None:
        target = tmp_path / "numbers.json"
        code = f"""
            import itertools
            from advsets.io import atomic_path
            for n in itertools.count():
                with atomic_path({str(target)!r}) as temporary, temporary.open("w") as handle:
                    for _ in range(50):
                        handle.write(f"{{n}}\\n" * 2000)
                        handle.flush()
        """
        chance = random.Random(0)
        for _ in range(6):
            writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
            while not target.exists():
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.1))
            writer.send_signal(signal.SIGKILL)
            assert writer.wait() == -signal.SIGKILL
            lines = target.read_text().splitlines()
            assert len(lines) == 100_000 and len(set(lines)) == 1
            target.unlink()

    @needs_full_device
    def test_full_disk_names_the_target(self, tmp_path: Path) -> None:
        target = tmp_path / "x.txt"
        with pytest.raises(OSError) as caught, atomic_path(target), open("/dev/full", "w", buffering=1) as full:
            full.write("text\n")
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(target))
        assert names_in(tmp_path) == []

    @needs_full_device
    def test_full_disk_is_seen_through_polars_errors(self, tmp_path: Path) -> None:
        target = tmp_path / "x.parquet"
        with pytest.raises(OSError) as caught, atomic_path(target):
            pl.DataFrame({"a": range(100_000)}).write_parquet("/dev/full")
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(target))

    def test_errors_about_other_files_keep_their_name(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError) as caught, atomic_path(tmp_path / "x.txt"):
            Path("/no/such/file").read_text()
        assert caught.value.filename == "/no/such/file"

    def test_errors_about_the_temporary_file_name_the_target(self, tmp_path: Path) -> None:
        for target in (Path("/proc/x.csv"), tmp_path / ("n" * 240 + ".csv")):
            with pytest.raises(OSError) as caught:
                write_text(target, "text")
            assert caught.value.filename == str(target)
        (tmp_path / "taken").mkdir()
        with pytest.raises(OSError) as caught:
            write_text(tmp_path / "taken", "text")
        assert caught.value.filename == str(tmp_path / "taken")

    def test_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError) as caught:
            write_text(tmp_path / "file" / "x.txt", "text")
        assert caught.value.filename.startswith(str(tmp_path / "file"))


@contextlib.contextmanager
def file_size_limit() -> Iterator[None]:
    """No file of this process grows beyond 10 kB; over before pytest reports, whose output may be a file too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_file_size_limit_gives_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(2000)]
    with file_size_limit(), pytest.raises(SystemExit), user_errors():
        write_table(pl.DataFrame({"example_id": ids, "label": "a"}), tmp_path / "x.parquet", "evaluation_labels")
    assert capsys.readouterr().err == (
        f"advsets: error: {tmp_path / 'x.parquet'}: the file grew beyond the limit of the shell or file system:"
        " raise it (ulimit -f)\n"
    )
    assert names_in(tmp_path) == []


class TestWriteTable:
    def test_round_trip_in_declared_order_sorted_by_key(self, tmp_path: Path) -> None:
        write_table(retained().select(reversed(retained().columns)), tmp_path / "r.parquet", "retained")
        back = read_table(tmp_path / "r.parquet", "retained")
        assert back.equals(retained().sort("example_id"))
        assert back.columns == TABLES["retained"].column_names

    def test_rows_in_any_order_give_equal_bytes(self, tmp_path: Path) -> None:
        n = 5000
        frame = pl.DataFrame(
            {
                "example_id": [f"e{i}" for i in range(n)],
                "label": ["a", "b"] * (n // 2),
                "group_id": [None if i % 3 else f"g{i}" for i in range(n)],
                "embedding": pl.Series([[i / 7, -i / 3] for i in range(n)], dtype=pl.Array(pl.Float32, 2)),
            }
        )
        digests = set()
        for seed in range(4):
            shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
            if seed == 3:  # the same rows in several chunks
                shuffled = pl.concat([shuffled[:7], shuffled[7:4000], shuffled[4000:]], rechunk=False)
            write_table(shuffled, tmp_path / "e.parquet", "embeddings")
            digests.add(hashlib.sha256((tmp_path / "e.parquet").read_bytes()).hexdigest())
        assert len(digests) == 1

    def test_thread_count_does_not_change_the_bytes(self, tmp_path: Path) -> None:
        code = """
            import polars as pl, sys
            from advsets.io import write_table
            n = 300_000
            frame = pl.select(example_id=pl.format("e{}", pl.int_range(n)), label=pl.lit("a"))
            write_table(frame, sys.argv[1], "evaluation_labels")
        """
        for threads in ("1", "4"):
            environment = {**os.environ, "POLARS_MAX_THREADS": threads}
            arguments = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / threads)]
            subprocess.run(arguments, env=environment, check=True)
        assert (tmp_path / "1").read_bytes() == (tmp_path / "4").read_bytes()
        assert pq.ParquetFile(tmp_path / "1").num_row_groups == 3

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda f: f.drop("margin"), r"missing \['margin'\], unknown \[\]"),
            (lambda f: f.with_columns(extra=1), r"missing \[\], unknown \['extra'\]"),
            (
                lambda f: f.with_columns(pl.col("removed_in_round").cast(pl.Int32)),
                "removed_in_round is Int32, wanted int64",
            ),
            (lambda f: f.with_columns(pl.col("margin").cast(pl.Float32)), "margin is Float32, wanted float64"),
            (lambda f: f.with_columns(retained=None), "retained is Null, wanted bool"),
            (lambda f: f.with_columns(retained=pl.Series([True, None, True])), "retained has 1 nulls"),
            (lambda f: f.with_columns(example_id=pl.Series(["a", None, "b"])), "example_id has 1 nulls"),
            (lambda f: f.with_columns(example_id=pl.lit("a")), r"key \('example_id',\) is not unique"),
        ],
    )
    def test_refuses_what_is_not_declared(self, tmp_path: Path, change: object, message: str) -> None:
        frame = change(retained())  # type: ignore[operator]
        with pytest.raises(ValueError, match=message):
            write_table(frame, tmp_path / "r.parquet", "retained")
        assert names_in(tmp_path) == []

    def test_null_keys_count_as_equal(self) -> None:
        row = {"subset": "full_set", "adversary": None, "adversary_seed": None, "evaluated_model": "m", "model_seed": 0}
        values = {"dataset": "d", "n_examples": 1, "accuracy": 1.0, "accuracy_low": 1.0, "accuracy_high": 1.0}
        schema = {c.name: empty_frame("accuracy").schema[c.name] for c in TABLES["accuracy"].columns}
        frame = pl.DataFrame([{**row, **values}], schema=schema)
        assert check_frame(frame, TABLES["accuracy"]).height == 1
        with pytest.raises(ValueError, match="is not unique"):
            check_frame(pl.concat([frame, frame]), TABLES["accuracy"])

    def test_vectors_are_single_or_half_precision(self) -> None:
        def candidates(inner: pl.DataType) -> pl.DataFrame:
            vectors = pl.Series([[[1.0, 2.0], [3.0, 4.0]]], dtype=pl.List(pl.Array(inner, 2)))
            head = {"example_id": "a", "label": "0", "group_id": pl.Series([None], dtype=pl.String)}
            return pl.DataFrame({**head, "candidates": vectors})

        for inner in (pl.Float32(), pl.Float16()):
            check_frame(candidates(inner), TABLES["candidate_embeddings"])
        with pytest.raises(ValueError, match="wanted list<vector>"):
            check_frame(candidates(pl.Float64()), TABLES["candidate_embeddings"])

    def test_empty_frame_passes_its_own_check(self) -> None:
        for name, table in TABLES.items():
            if "embeddings" not in name:
                assert check_frame(empty_frame(name), table).height == 0


class TestReadTable:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        write_table(retained(), tmp_path / "r.parquet", "retained")
        return tmp_path / "r.parquet"

    def message(self, path: Path, columns: list[str] | None = None) -> str:
        with pytest.raises(UserError) as caught:
            read_table(path, "retained", columns)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_reads_some_columns_in_the_order_asked(self, path: Path) -> None:
        assert read_table(path, "retained", ["retained", "example_id"]).columns == ["retained", "example_id"]

    def test_missing_file(self, tmp_path: Path) -> None:
        path = tmp_path / "no.parquet"
        assert self.message(path) == f"{path}: no such file; give the path of a Parquet file"
        assert self.message(tmp_path) == f"{tmp_path}: it is a folder; give the path of a Parquet file"
        assert "it is a pipe or device, not a file" in self.message(Path("/dev/null"))

    @pytest.mark.parametrize(
        "content", [b"", b"example_id,retained\na,true\n", b"PAR1" + b"x" * 100 + b"\x10\0\0\0PAR1"]
    )
    def test_not_parquet(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "some.name.with.dots.parquet"
        path.write_bytes(content)
        message = self.message(path)
        assert message.startswith(f"{path}: not a readable Parquet file (")
        assert message.endswith("); write it again")

    def test_damaged_pages(self, path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[4:60] = b"\xff" * 56
        path.write_bytes(content)
        assert self.message(path).startswith(f"{path}: not a readable Parquet file (")

    def test_missing_column(self, path: Path) -> None:
        retained().drop("margin").write_parquet(path)
        assert self.message(path) == (
            f"{path}: column 'margin' is missing; found: example_id, retained, removed_in_round, predictability;"
            " allowed: a table with columns example_id, retained, removed_in_round, predictability, margin;"
            " rename or add the column"
        )
        assert read_table(path, "retained", ["example_id", "retained"]).height == 3

    def test_wrong_dtype(self, path: Path) -> None:
        retained().with_columns(pl.col("retained").cast(pl.Int64)).write_parquet(path)
        assert self.message(path) == f"{path}: column 'retained' is Int64; allowed: bool; convert the column"

    def test_file_names_that_are_no_utf_8(self, tmp_path: Path) -> None:
        path = tmp_path / os.fsdecode(b"r\xe4.parquet")
        write_table(retained(), path, "retained")
        assert read_table(path, "retained").equals(retained().sort("example_id"))
        write_json(tmp_path / "x.json", {"path": str(path)})
        assert read_json(tmp_path / "x.json") == {"path": str(path)}

    def test_schema_without_data(self, path: Path) -> None:
        assert parquet_schema(path).names == TABLES["retained"].column_names


class TestJson:
    def test_round_trip_is_sorted_and_readable(self, tmp_path: Path) -> None:
        write_json(tmp_path / "x.json", {"b": [1, None], "a": "ü"})
        assert (tmp_path / "x.json").read_text(encoding="utf-8") == (
            '{\n  "a": "ü",\n  "b": [\n    1,\n    null\n  ]\n}\n'
        )
        assert read_json(tmp_path / "x.json") == {"a": "ü", "b": [1, None]}

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"", "line 1 column 1"),
            (b'{"a": 1,\n "b"}', "line 2 column 5"),
            (b"\xff\xfe", "utf-8"),
            (b"{} {}", "Extra data"),
            (b'{"a": [{"b": 1, "c": 2, "b": 1}]}', "key 'b' stands twice in an object"),
        ],
    )
    def test_broken(self, tmp_path: Path, content: bytes, why: str) -> None:
        path = tmp_path / "x.json"
        path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            read_json(path)
        assert str(caught.value).startswith(f"{path}: not valid JSON (")
        assert why in str(caught.value)
        assert str(caught.value).endswith("; mend the file or delete it and run again")

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_json(tmp_path / "x.json")
