"""Filter two Parquet files of embeddings, or those of several adversaries, resuming at the last whole round.

Inputs and settings are checked before anything is made. Rounds are kept in `<out>/.rounds/` as
nodes of a chain until the tables are written; a finished run has nothing to do, and a folder
that holds another run, or files of others, is left alone unless it may be overwritten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from advsets.aflite.chain import node_file, read_record
from advsets.aflite.compute import resolve_device, thread_limit
from advsets.aflite.data import FilterData
from advsets.aflite.members import Files, load_members
from advsets.aflite.nodes import collect_nodes, start_record, write_node
from advsets.aflite.outfolder import (
    LABELS_FILE,
    SETTINGS_FILE,
    check_free,
    describe_run,
    describe_tables,
    is_finished,
    last_round,
    lock,
    made_folder,
    rounds_folder,
)
from advsets.aflite.rounds import run_rounds, start_state
from advsets.aflite.settings import MEAN, Counts, FilterSettings, check_combination
from advsets.aflite.state import FilterState
from advsets.errors import UserError, describe_os_error
from advsets.io import read_table, write_json, write_table

Say = Callable[[str], None]


def filter_files(
    train: Files,
    evaluation: Files | None,
    out: Path,
    settings: FilterSettings,
    *,
    combination: str = MEAN,
    seed: int = 0,
    threads: int | None = None,
    device: str = "auto",
    progress: bool = True,
    overwrite: bool = False,
) -> None:
    """Filter an evaluation set (and the training set) with AFLite.

    Parameters
    ----------
    train, evaluation : Path or sequence of Path
        Parquet files of embeddings, of one adversary or of several in the same order, whose rows are
        joined by `example_id`; without an evaluation set this is standard AFLite.
    out : Path
        Folder for `retained.parquet`, `retained_train.parquet`, `round_scores.parquet`,
        `rounds.parquet`, `evaluation_labels.parquet` and `settings.json`.
    settings : FilterSettings
    combination : {"mean", "minimum"}
        How the scores of several adversaries become one, see `advsets.aflite.ensemble`.
    seed : int
        Key of the draws.
    threads : int, optional
        CPU threads; by default as many as torch takes. Changes no result.
    device : str
        "auto", "cpu" or "cuda".
    progress : bool
        Whether to print a line per round to stderr.
    overwrite : bool
        Replace what another run, or someone else, has left in `out` under the names above.

    Raises
    ------
    UserError
        If input, settings or the output folder cannot be used, `out` holds something else, or
        another run writes to it.
    """
    say = _say if progress else _say_nothing
    try:
        with thread_limit(threads):
            place = resolve_device(device)
            check_combination(combination)
            run = describe_run(train, evaluation, settings, seed, combination)
            read = partial(
                load_members,
                train,
                evaluation,
                standardise=settings.standardise,
                use_groups=settings.use_groups,
                combination=combination,
            )
            try:
                _filter(read, out, settings, run, place, overwrite, say)
            except KeyboardInterrupt:
                if done := last_round(out, run):
                    raise KeyboardInterrupt(f"the same command goes on after round {done}") from None
                raise
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UserError(describe_os_error(error)) from error


def _filter(
    read: Callable[[], FilterData],
    out: Path,
    settings: FilterSettings,
    run: dict[str, Any],
    device: str,
    overwrite: bool,
    say: Say,
) -> None:
    if (out / ".lock").exists():
        with lock(out):
            pass
    if _has_nothing_to_do(out, run, overwrite, say):
        return
    data = read()
    counts = settings.resolve(len(data.train.ids), len(data.evaluation.ids))
    start = start_state(data, counts)
    with made_folder(out), lock(out):
        if _has_nothing_to_do(out, run, overwrite, say):
            return
        with rounds_folder(out, run, say) as rounds:
            nodes = _run(data, settings, counts, start, run["seed"], rounds, device, say)
            data.release()
            _finish(out, data, nodes, {**run, "device": device})


def _has_nothing_to_do(out: Path, run: dict[str, Any], overwrite: bool, say: Say) -> bool:
    """Whether `out` holds this run already; raises `UserError` if it holds something else."""
    if is_finished(out, run):
        say(f"{out}: finished before with the same input and settings; nothing to do")
        return True
    check_free(out, run, overwrite=overwrite)
    return False


def _run(
    data: FilterData,
    settings: FilterSettings,
    counts: Counts,
    start: FilterState,
    seed: int,
    rounds: Path,
    device: str,
    say: Say,
) -> list[Path]:
    """Run the rounds that are missing in folder `rounds`; return the prefixes of all nodes."""
    nodes = sorted(path.with_suffix("") for path in rounds.glob("[0-9]*.json"))
    if not nodes:
        nodes = [rounds / _name(0)]
        write_node(nodes[0], data, start, [], start_record(data, settings, counts, seed))
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
    """Write the tables, and `settings.json` once they all stand; `record` is what of it is known already."""
    (out / SETTINGS_FILE).unlink(missing_ok=True)
    collect_nodes(nodes, out)
    labels = [str(i) if data.is_multiple_choice else data.label_order[i] for i in data.evaluation.labels.tolist()]
    schema = {"example_id": pl.String, "label": pl.String}
    frame = pl.DataFrame({"example_id": data.evaluation.ids, "label": labels}, schema=schema)
    write_table(frame, out / LABELS_FILE, "evaluation_labels")
    last = read_record(nodes[-1])
    kept = {name: last[name] for name in ("counts", "stop_reason", "standardisation", "members") if name in last}
    tables = describe_tables(out)
    write_json(out / SETTINGS_FILE, {**record, **kept, "n_rounds": last["filtering_round"], "tables": tables})


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
