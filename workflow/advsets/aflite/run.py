"""Filter two Parquet files of embeddings, resuming at the last whole round.

Rounds are kept in `<out>/.rounds/` as nodes of a chain until the tables are written; a run
on other input or settings starts afresh, and a finished one has nothing to do.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from advsets import __version__
from advsets.aflite.chain import node_file, read_record
from advsets.aflite.compute import resolve_device, thread_limit
from advsets.aflite.data import FilterData, load
from advsets.aflite.nodes import collect_nodes, standardisation_json, start_record, write_node
from advsets.aflite.outfolder import (
    LABELS_FILE,
    SETTINGS_FILE,
    describe_input,
    is_finished,
    lock,
    rounds_folder,
    run_key,
)
from advsets.aflite.rounds import run_rounds, start_state
from advsets.aflite.settings import FilterSettings
from advsets.aflite.state import FilterState
from advsets.errors import UserError, describe_os_error
from advsets.io import read_table, write_json, write_table

Say = Callable[[str], None]


def filter_files(
    train: Path,
    evaluation: Path | None,
    out: Path,
    settings: FilterSettings,
    *,
    seed: int = 0,
    threads: int | None = None,
    device: str = "auto",
    progress: bool = True,
) -> None:
    """Filter an evaluation set (and the training set) with AFLite.

    Parameters
    ----------
    train, evaluation : Path
        Parquet files of embeddings; without an evaluation set this is standard AFLite.
    out : Path
        Folder for `retained.parquet`, `retained_train.parquet`, `round_scores.parquet`,
        `rounds.parquet`, `evaluation_labels.parquet` and `settings.json`.
    settings : FilterSettings
    seed : int
        Key of the draws.
    threads : int, optional
        CPU threads; by default as many as torch takes. Changes no result.
    device : str
        "auto", "cpu" or "cuda".
    progress : bool
        Whether to print a line per round to stderr.

    Raises
    ------
    UserError
        If input, settings or the output folder cannot be used, or another run writes to `out`.
    """
    say = _say if progress else _say_nothing
    try:
        out.mkdir(parents=True, exist_ok=True)
        with lock(out), thread_limit(threads):
            _filter(train, evaluation, out, settings, seed, resolve_device(device), say)
    except OSError as error:
        raise UserError(describe_os_error(error)) from error


def _filter(
    train: Path, evaluation: Path | None, out: Path, settings: FilterSettings, seed: int, device: str, say: Say
) -> None:
    inputs = {"train": describe_input(train), "evaluation": None if evaluation is None else describe_input(evaluation)}
    key = run_key(inputs, settings, seed)
    if is_finished(out, key):
        say(f"{out}: finished before with the same input and settings; nothing to do")
        return
    rounds = rounds_folder(out, key, say)
    data = load(train, evaluation, standardise=settings.standardise, use_groups=settings.use_groups)
    nodes = _run(data, settings, seed, rounds, device, say)
    _finish(out, data, nodes, {"key": key, "inputs": inputs, "version": __version__, "device": device})
    shutil.rmtree(rounds)


def _run(data: FilterData, settings: FilterSettings, seed: int, rounds: Path, device: str, say: Say) -> list[Path]:
    """Run the rounds that are missing in folder `rounds`; return the prefixes of all nodes."""
    counts = settings.resolve(len(data.train.ids), len(data.evaluation.ids))
    nodes = sorted(path.with_suffix("") for path in rounds.glob("[0-9]*.json"))
    if not nodes:
        nodes = [rounds / _name(0)]
        record = start_record(data, settings, counts, seed)
        write_node(nodes[0], data, start_state(data, counts), [], record)
    record = read_record(nodes[-1])
    frame = read_table(node_file(nodes[-1], "state.parquet"), "filter_state")
    ids = data.train.ids, data.evaluation.ids
    state = FilterState.from_frame(frame, *ids, record["filtering_round"], record["stop_reason"])
    if state.filtering_round:
        say(f"going on after round {state.filtering_round}")
    for result in run_rounds(state, data, settings, counts, seed, device=device):
        nodes.append(rounds / _name(result.state.filtering_round))
        write_node(nodes[-1], data, result.state, [result], record)
        say(progress_line(result.line))
    return nodes


def _finish(out: Path, data: FilterData, nodes: list[Path], record: dict[str, Any]) -> None:
    """Write the tables, and `settings.json` once they all stand."""
    (out / SETTINGS_FILE).unlink(missing_ok=True)
    collect_nodes(nodes, out)
    labels = [str(i) if data.is_multiple_choice else data.label_order[i] for i in data.evaluation.labels.tolist()]
    schema = {"example_id": pl.String, "label": pl.String}
    frame = pl.DataFrame({"example_id": data.evaluation.ids, "label": labels}, schema=schema)
    write_table(frame, out / LABELS_FILE, "evaluation_labels")
    last = read_record(nodes[-1])
    kept = {name: last[name] for name in ("settings", "seed", "counts", "stop_reason")}
    n_rounds, statistics = last["filtering_round"], standardisation_json(data)
    write_json(out / SETTINGS_FILE, {**record, **kept, "n_rounds": n_rounds, "standardisation": statistics})


def progress_line(line: dict[str, Any]) -> str:
    """What one round did, from its row of table `rounds`."""
    accuracy = line["held_out_accuracy"]
    text = (
        f"round {line['filtering_round']}: {line['n_train_removed']} of {line['n_train_before']} training rows removed"
        f" ({line['n_tied_at_cut']} tied at the cut), {line['n_evaluation_removed']} of {line['n_evaluation_before']}"
        f" evaluation rows; held-out accuracy {'unknown' if accuracy is None else f'{accuracy:.3f}'};"
        f" {line['n_converged']} of {line['n_partitions']} fits converged; {line['duration_s']:.1f} s"
    )
    return text if line["stop_reason"] is None else f"{text}; stop: {line['stop_reason']}"


def _name(filtering_round: int) -> str:
    return f"{filtering_round:06d}"


def _say(text: str) -> None:
    print(f"advsets: {text}", file=sys.stderr, flush=True)


def _say_nothing(text: str) -> None:
    del text
