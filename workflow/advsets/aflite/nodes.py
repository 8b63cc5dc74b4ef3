"""Files of a chain's nodes that need polars, and the tables collected from them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from advsets.aflite.chain import node_file, read_record
from advsets.aflite.data import FilterData
from advsets.aflite.rounds import RoundResult, lines_frame, nothing_left
from advsets.aflite.settings import Counts, FilterSettings
from advsets.aflite.state import FilterState
from advsets.io import arrow_file, atomic_path, check_frame, empty_frame, read_table, write_json, write_table
from advsets.tables import TABLES

RESULT_FILES = ("retained.parquet", "retained_train.parquet", "round_scores.parquet", "rounds.parquet")


def start_record(data: FilterData, settings: FilterSettings, counts: Counts, seed: int) -> dict[str, Any]:
    """Record of a chain before its first round; standardisation is that of the training rows."""
    return {
        "settings": settings.to_json(),
        "seed": int(seed),
        "counts": counts.to_json(),
        **_standardisation_record(data),
    }


def _standardisation_record(data: FilterData) -> dict[str, Any]:
    """Key `standardisation`, or for an ensemble `combination` and each member's own in `members`."""
    if len(data.members) == 1:
        return {"standardisation": standardisation_json(data)}
    members = [{"standardisation": standardisation_json(member)} for member in data.members]
    return {"combination": data.combination, "members": members}


def standardisation_json(data: FilterData) -> dict[str, list[float]] | None:
    """Mean and scale per feature, or None if features are used as they are."""
    statistics = data.standardisation
    if statistics is None:
        return None
    return {"mean": statistics.mean.tolist(), "scale": statistics.scale.tolist()}


def write_node(
    prefix: Path, data: FilterData, state: FilterState, results: Sequence[RoundResult], record: dict[str, Any]
) -> None:
    """Write a node's files; `record` is that of the node before, or of the start."""
    scores = pl.concat([result.scores for result in results]) if results else empty_frame("round_scores")
    write_table(scores, node_file(prefix, "scores.parquet"), "round_scores")
    frame = state.to_frame(data.train.ids, data.evaluation.ids)
    write_table(frame, node_file(prefix, "state.parquet"), "filter_state")
    new_record = {
        **record,
        "filtering_round": state.filtering_round,
        "stop_reason": state.stop_reason,
        "stopped": state.stop_reason is not None,
        "lines": [result.line for result in results],
    }
    write_json(node_file(prefix, "json"), new_record)


def collect_nodes(nodes: Sequence[Path], out_dir: Path) -> None:
    """Write the tables of a chain whose last node has stopped, into `out_dir`; warn if they keep no evaluation row."""
    records = [read_record(node) for node in nodes]
    if not records or not records[-1]["stopped"]:
        raise ValueError(f"{nodes[-1] if nodes else 'no node'}: filtering has not ended there")
    state = read_table(node_file(nodes[-1], "state.parquet"), "filter_state")
    for split, name in (("evaluation", "retained.parquet"), ("train", "retained_train.parquet")):
        part = state.filter(pl.col("split") == split).select(TABLES["retained"].column_names)
        write_table(part, out_dir / name, "retained")
        if split == "evaluation" and len(part) and not part["retained"].any():
            print(f"advsets: warning: {out_dir / name}: {nothing_left(len(part))}", file=sys.stderr)
    _write_scores(nodes, out_dir / "round_scores.parquet")
    lines = [line for record in records for line in record["lines"]]
    write_table(lines_frame(lines), out_dir / "rounds.parquet", "rounds")


def _write_scores(nodes: Sequence[Path], path: Path) -> None:
    """Write all rounds' scores, one row group per round, with one round in memory at a time."""
    schema = empty_frame("round_scores").to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    with (
        atomic_path(path) as temporary,
        arrow_file(temporary, "wb") as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for scores in _scores_by_round(nodes):
            checked = check_frame(scores, TABLES["round_scores"]).sort(list(TABLES["round_scores"].key))
            arrow = checked.to_arrow(compat_level=pl.CompatLevel.oldest())
            writer.write_table(arrow, row_group_size=max(1, len(checked)))


def _scores_by_round(nodes: Sequence[Path]) -> Iterator[pl.DataFrame]:
    for node in nodes:
        path = node_file(node, "scores.parquet")
        if path.stat().st_size == 0:
            continue
        frame = read_table(path, "round_scores")
        yield from (part for _, part in sorted(frame.partition_by("filtering_round", as_dict=True).items()))
