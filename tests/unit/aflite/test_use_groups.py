"""Whether groups count is a setting: without it a `group_id` column changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings

SMALL = {"n_partitions": 8, "train_size": 0.3, "slice_size": 0.1, "max_rounds": 3}


def write(path: Path, n: int, key: int, groups: bool) -> Path:
    rng = np.random.default_rng(key)
    label = rng.integers(2, size=n)
    vectors = (rng.normal(size=(n, 4)) + 1.2 * label[:, None]).astype(np.float32)
    columns = {"example_id": [f"{path.stem}{i}" for i in range(n)], "label": [str(k) for k in label]}
    if groups:
        columns["group_id"] = [f"{path.stem}-{i // 4}" for i in range(n)]
    pl.DataFrame({**columns, "embedding": vectors}).write_parquet(path)
    return path


@pytest.mark.parametrize("use_groups", [True, False])
def test_groups_count_only_where_asked_for(tmp_path: Path, use_groups: bool) -> None:
    kept = []
    for groups in (True, False):
        folder = tmp_path / str(groups)
        folder.mkdir()
        files = write(folder / "train.parquet", 80, 0, groups), write(folder / "evaluation.parquet", 60, 1, groups)
        settings = FilterSettings(**SMALL, use_groups=use_groups)
        filter_files(*files, folder / "out", settings, threads=1, device="cpu", progress=False)
        kept.append(pl.read_parquet(folder / "out" / "retained.parquet"))
    assert kept[0].equals(kept[1]) is not use_groups
    if use_groups:
        by_group = kept[0].with_columns(group=pl.col("example_id").str.extract(r"(\d+)").cast(pl.Int64) // 4)
        assert by_group.group_by("group").agg(pl.col("retained").n_unique())["retained"].max() == 1
