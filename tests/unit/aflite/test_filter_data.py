"""What files and arrays are read, and how each one that cannot be used is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advsets.aflite.data import load
from advsets.errors import UserError

N = 12
IDS = [f"e{i:02d}" for i in range(N)]
LABELS = ["yes", "no"] * (N // 2)
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)


def write(path: Path, drop: str | None = None, **columns: Any) -> Path:
    table = {"example_id": IDS, "label": LABELS, "embedding": X.tolist(), **columns}
    table = {name: value for name, value in table.items() if name != drop and value is not None}
    pq.write_table(pa.table(table), path, row_group_size=5)
    return path


def change(values: list[Any], at: int, value: Any) -> list[Any]:
    return [value if i == at else other for i, other in enumerate(values)]


def vectors(dtype: pa.DataType) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(X.astype(dtype.to_pandas_dtype()).ravel(), dtype), 3)


@pytest.mark.parametrize("dtype", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("fixed", [True, False])
def test_vectors_of_any_float_type(tmp_path: Path, dtype: pa.DataType, fixed: bool) -> None:
    column = vectors(dtype) if fixed else vectors(dtype).cast(pa.list_(dtype))
    data = load(write(tmp_path / "t.parquet", embedding=column), None, standardise=False)
    assert data.train.x.dtype == np.float32
    np.testing.assert_array_equal(data.train.x, X.astype(dtype.to_pandas_dtype()).astype(np.float32))


def test_rows_come_in_canonical_order_whatever_the_file_order(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(N)
    path = write(
        tmp_path / "t.parquet",
        example_id=[IDS[i] for i in order],
        label=[LABELS[i] for i in order],
        embedding=X[order].tolist(),
        group_id=[f"g{i // 2}" for i in order],
    )
    train = load(path, None, standardise=False).train
    assert train.ids == IDS and train.labels.tolist() == [1, 0] * (N // 2)
    np.testing.assert_array_equal(train.x, X)
    assert train.groups is not None and train.groups.tolist() == [i // 2 for i in range(N)]


def test_candidates_of_any_count_come_in_canonical_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    candidates = [rng.normal(size=(n, 3)).astype(np.float32) for n in rng.integers(2, 5, size=N)]
    order = rng.permutation(N)
    path = write(
        tmp_path / "t.parquet",
        drop="embedding",
        example_id=[IDS[i] for i in order],
        label=pa.array([int(i) % 2 for i in order]),
        candidates=[candidates[i].tolist() for i in order],
    )
    train = load(path, None, standardise=False).train
    assert train.offsets is not None and train.offsets.tolist() == np.cumsum([0, *map(len, candidates)]).tolist()
    np.testing.assert_array_equal(train.x, np.concatenate(candidates))
    assert train.labels.tolist() == [i % 2 for i in range(N)]


def test_integer_and_categorical_labels_and_integer_ids(tmp_path: Path) -> None:
    integers = write(tmp_path / "i.parquet", label=pa.array([1, 0] * 6), example_id=pa.array(range(100, 100 + N)))
    categories = write(tmp_path / "c.parquet", label=pa.array(["1", "0"] * 6).dictionary_encode())
    data = load(integers, categories, standardise=True)
    assert data.label_order == ["0", "1"] and data.train.labels.tolist() == data.evaluation.labels.tolist()
    assert data.train.ids[0] == "100"


def test_files_of_polars_are_read(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"example_id": IDS, "label": LABELS, "embedding": X}, schema_overrides={"embedding": pl.Array(pl.Float32, 3)}
    )
    frame.write_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(load(tmp_path / "t.parquet", None, standardise=False).train.x, X)


def test_features_are_standardised_by_the_training_rows(tmp_path: Path) -> None:
    constant = np.c_[X, np.full(N, 0.1, np.float32)]
    train = write(tmp_path / "t.parquet", embedding=constant.tolist())
    other = write(tmp_path / "v.parquet", embedding=(constant + 2).tolist(), example_id=[f"v{i}" for i in range(N)])
    data = load(train, other, standardise=True)
    mean, scale = X.astype(np.float64).mean(0), X.astype(np.float64).std(0)
    np.testing.assert_allclose(data.train.x[:, :3], (X - mean) / scale, atol=1e-6)
    assert (data.train.x[:, 3] == 0).all()
    assert data.standardisation is not None and data.standardisation.scale[3] == 1
    by_id = sorted(range(N), key=lambda i: f"v{i}")
    np.testing.assert_allclose(data.evaluation.x[:, :3], (X[by_id] + 2 - mean) / scale, atol=1e-6)


BAD = {
    "missing id column": (
        {"drop": "example_id"},
        r"t\.parquet: column 'example_id' is missing; found: label, embedding",
    ),
    "missing label column": ({"drop": "label"}, "column 'label' is missing"),
    "missing vectors": (
        {"drop": "embedding"},
        r"column 'embedding' \(or 'candidates' for multiple choice\) is missing",
    ),
    "duplicate ids": ({"example_id": change(IDS, 3, "e07")}, "example_id 'e07' stands in more than one row"),
    "null id": ({"example_id": change(IDS, 3, None)}, "row 4 has no example_id"),
    "null label": ({"label": change(LABELS, 3, None)}, r"1 row\(s\) without a label, first e03"),
    "one class": ({"label": ["yes"] * N}, "every row has label 'yes'; allowed: at least two labels"),
    "float label": ({"label": pa.array([0.0, 1.0] * 6)}, "column 'label' is double; allowed: string or integer"),
    "NaN": ({"embedding": change(X.tolist(), 4, [1.0, float("nan"), 0.0])}, r"1 example\(s\) .*NaN.* first e04"),
    "infinity": ({"embedding": change(X.tolist(), 4, [1.0, float("inf"), 0.0])}, "first e04"),
    "too large": ({"embedding": change(X.tolist(), 4, [1.0, 1e200, 0.0])}, "too large for float32, first e04"),
    "null element": ({"embedding": change(X.tolist(), 4, [1.0, None, 0.0])}, "first e04"),
    "null vector": ({"embedding": change(X.tolist(), 4, None)}, "example 'e04' has no vector"),
    "ragged": (
        {"embedding": change(X.tolist(), 9, [1.0, 2.0])},
        "example 'e09' has a vector of 2 elements, .* one of 3",
    ),
    "no elements": ({"embedding": pa.array([[]] * N, pa.list_(pa.float32()))}, "vectors have no elements"),
    "text vectors": ({"embedding": ["a"] * N}, "column 'embedding' is string; allowed: a list of float16"),
    "integer vectors": (
        {"embedding": [[1, 2]] * N},
        r"column 'embedding' is list<.*int64.*; allowed: a list of float16",
    ),
    "both kinds": ({"candidates": [[[1.0], [2.0]]] * N}, "both an 'embedding' and a 'candidates' column"),
    "no rows": (
        {
            "example_id": pa.array([], pa.string()),
            "label": pa.array([], pa.string()),
            "embedding": vectors(pa.float32())[:0],
        },
        "it has no rows",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_training_file_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    columns, message = BAD[case]
    with pytest.raises(UserError, match=message) as caught:
        load(write(tmp_path / "t.parquet", **columns), None, standardise=True)
    assert str(tmp_path / "t.parquet") in str(caught.value) and "\n" not in str(caught.value)
    assert "allowed: " in str(caught.value)


PAIRS = [[[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]]] * N
BAD_CHOICES = {
    "index out of range": ({"label": change(["0", "1"] * 6, 5, "2")}, "'e05' has label '2'; allowed: .* 0 to 1"),
    "negative index": ({"label": pa.array(change([0, 1] * 6, 5, -1))}, "'e05' has label '-1'"),
    "name for an index": ({"label": change(["0", "1"] * 6, 5, "b")}, "'e05' has label 'b'"),
    "one candidate": ({"candidates": change(PAIRS, 6, [[1.0, 2.0, 3.0]])}, r"'e06' has 1 candidate vector\(s\)"),
    "no candidates": ({"candidates": change(PAIRS, 6, [])}, r"'e06' has 0 candidate vector\(s\)"),
    "null candidates": ({"candidates": change(PAIRS, 6, None)}, "'e06' has no vector"),
    "null candidate": ({"candidates": change(PAIRS, 6, [[1.0, 2.0, 3.0], None])}, "'e06' has no vector"),
    "ragged": ({"candidates": change(PAIRS, 6, [[1.0, 2.0], [1.0, 2.0]])}, "'e06' has a vector of 2 elements"),
    "NaN": ({"candidates": change(PAIRS, 6, [[1.0, 2.0, 3.0], [1.0, 2.0, float("nan")]])}, "first e06"),
    "flat": ({"candidates": X.tolist()}, "column 'candidates' is list<.*; allowed: a list of vectors"),
}


@pytest.mark.parametrize("case", BAD_CHOICES)
def test_a_bad_multiple_choice_file_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    columns, message = BAD_CHOICES[case]
    full = {"drop": "embedding", "label": ["0", "1"] * 6, "candidates": PAIRS, **columns}
    with pytest.raises(UserError, match=message) as caught:
        load(write(tmp_path / "t.parquet", **full), None, standardise=True)
    assert str(tmp_path / "t.parquet") in str(caught.value) and "\n" not in str(caught.value)


OTHER_IDS = [f"v{i:02d}" for i in range(N)]
BAD_PAIRS = {
    "id in both": (
        {"example_id": change(OTHER_IDS, 2, "e05")},
        r"1 example_id\(s\) also stand in .*t\.parquet",
    ),
    "other dimension": ({"embedding": X[:, :2].tolist()}, r"vectors have 2 elements, those of .*t\.parquet 3"),
    "unknown label": ({"label": change(LABELS, 2, "maybe")}, "label 'maybe' does not occur in .*; allowed: no, yes"),
    "other kind": (
        {"drop": "embedding", "label": ["0", "1"] * 6, "candidates": PAIRS},
        r"it is multiple choice .* but .*t\.parquet is classification",
    ),
}


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_an_evaluation_file_that_does_not_fit_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    columns, message = BAD_PAIRS[case]
    other = write(tmp_path / "v.parquet", **{"example_id": OTHER_IDS, **columns})
    with pytest.raises(UserError, match=message) as caught:
        load(write(tmp_path / "t.parquet"), other, standardise=True)
    assert str(caught.value).startswith(str(other)) and "\n" not in str(caught.value)


def test_a_missing_file_and_one_that_is_not_parquet(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none.parquet: no such file"):
        load(tmp_path / "none.parquet", None, standardise=True)
    (tmp_path / "text.parquet").write_text("example_id,label\n")
    with pytest.raises(UserError, match="text.parquet: not a readable Parquet file"):
        load(tmp_path / "text.parquet", None, standardise=True)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_reading_keeps_one_copy_in_float32(tmp_path: Path) -> None:
    """Peak memory above that of the imports stays below 1.5 times the float32 matrix, for a float64 file too."""
    n, d, step = 60_000, 768, 2000
    path = tmp_path / "big.parquet"
    values = np.random.default_rng(0).normal(size=step * d).astype(np.float16).astype(np.float64)
    block = pa.ListArray.from_arrays(pa.array(np.arange(step + 1) * d, pa.int32()), pa.array(values))
    schema = pa.schema([("example_id", pa.string()), ("label", pa.string()), ("embedding", block.type)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n, step):
            ids = pa.array([f"e{i:06d}" for i in range(start, start + step)])
            writer.write_table(pa.table([ids, pa.array(["a", "b"] * (step // 2)), block], schema=schema))
    code = f"""
import re, torch, polars, numpy as np
from pathlib import Path
from advsets.aflite import data, reading
peak = lambda: 1024 * int(re.search("VmHWM: *\\\\t*(.*) kB", Path("/proc/self/status").read_text())[1])
before = peak()
loaded = data.load(Path({str(path)!r}), None, standardise=True)
loaded.train.shrink(np.arange(0, {n}, 2))
assert loaded.train.x.shape == ({n // 2}, {d})
print((peak() - before) / ({n} * {d} * 4))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 0.9 < float(done.stdout) < 1.5
