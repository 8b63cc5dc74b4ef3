"""Small filtering problems, as arrays and as Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def make_rows() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """`make_rows(n, n_classes, n_features, seed)`: vectors and labels, half of them easy to tell."""

    def make(n: int = 160, n_classes: int = 2, n_features: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        y = rng.integers(n_classes, size=n)
        centres = np.random.default_rng(99).normal(size=(n_classes, n_features)) * 2
        X = centres[y] * rng.random((n, 1)) + rng.normal(size=(n, n_features))
        return X.astype(np.float32), y

    return make


@pytest.fixture
def write_rows() -> Callable[..., Path]:
    """`write_rows(path, X, y, ids, groups)`: a file of embeddings, or of candidates for three axes."""

    def write(path: Path, X: Any, y: Any, ids: Any = None, groups: Any = None, **columns: Any) -> Path:
        n = len(y)
        table: dict[str, Any] = {
            "example_id": [f"{path.stem}-{i:05d}" for i in range(n)] if ids is None else list(ids),
            "label": [str(label) for label in y],
        }
        name = "candidates" if isinstance(X, np.ndarray) and X.ndim == 3 else "embedding"
        table[name] = X.tolist() if isinstance(X, np.ndarray) else X
        if groups is not None:
            table["group_id"] = list(groups)
        table.update(columns)
        pq.write_table(pa.table(table), path, row_group_size=64)
        return path

    return write


@pytest.fixture
def files(tmp_path: Path, make_rows: Callable[..., Any], write_rows: Callable[..., Path]) -> tuple[Path, Path]:
    """Embeddings of 150 training rows and 60 evaluation rows."""
    train = write_rows(tmp_path / "train.parquet", *make_rows(150))
    return train, write_rows(tmp_path / "evaluation.parquet", *make_rows(60, seed=3))


@pytest.fixture
def member_files(write_rows: Callable[..., Path]) -> Callable[..., tuple[Path, Path]]:
    """`member_files(folder, seed, informative)`: train and evaluation files of one representation of fixed rows.

    Labels and ids are the same for every seed; they show in feature `informative` alone.
    """

    def build(
        folder: Path, seed: int, informative: int = 0, n_train: int = 120, flip: bool = False
    ) -> tuple[Path, Path]:
        folder.mkdir()
        files = []
        for split, n in (("train", n_train), ("evaluation", 60)):
            y = np.random.default_rng(n).integers(2, size=n)
            X = np.random.default_rng([seed, n]).normal(size=(n, 4)).astype(np.float32)
            X[:, informative] += 2.0 * y - 1.0
            files.append(write_rows(folder / f"{split}.parquet", X, 1 - y if flip else y))
        return files[0], files[1]

    return build
