"""One node of a chain of rounds: files of the node before in, files of this node out.

A node `<prefix>` is three files, `<prefix>.json` being written last:

| file | content |
|---|---|
| `<prefix>.json` | filtering_round, stop_reason, stopped, settings, seed, counts, lines of this node (table `rounds`) |
| `<prefix>.state.parquet` | every row after these rounds (table `filter_state`) |
| `<prefix>.scores.parquet` | scores of these rounds (table `round_scores`); a file of no bytes stands for no rows |

A node after the stop copies the state on and imports nothing but the standard library:
heavy modules are imported inside the functions that need them.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advsets.aflite import kept
from advsets.io import atomic_path, read_json, write_json

if TYPE_CHECKING:
    from advsets.aflite.data import FilterData
    from advsets.aflite.state import FilterState


def start_node(
    train: Path | Sequence[Path],
    evaluation: Path | Sequence[Path] | None,
    out_prefix: Path,
    *,
    settings: dict[str, Any],
    seed: int,
    combination: str = "mean",
) -> None:
    """Check the embeddings and write the first node: every row retained, no round run.

    Parameters
    ----------
    train, evaluation : Path or sequence of Path
        Embeddings of one adversary, or of each member of an ensemble, in the same order.
    combination : {"mean", "minimum"}
        How an ensemble's scores become one, see `advsets.aflite.ensemble`.

    Raises
    ------
    UserError
        If files or settings cannot be used.
    """
    from advsets.aflite.members import load_members
    from advsets.aflite.nodes import start_record, write_node
    from advsets.aflite.rounds import start_state
    from advsets.aflite.settings import FilterSettings

    checked = FilterSettings(**settings)
    data = load_members(
        train,
        evaluation,
        standardise=checked.standardise,
        use_groups=checked.use_groups,
        combination=combination,
    )
    counts = checked.resolve(len(data.train.ids), len(data.evaluation.ids))
    state = start_state(data, counts)
    write_node(out_prefix, data, state, [], start_record(data, checked, counts, seed))


def run_node(
    previous: Path,
    train: Path | Sequence[Path],
    evaluation: Path | Sequence[Path] | None,
    out_prefix: Path,
    *,
    n_rounds: int,
    threads: int | None = None,
    device: str = "auto",
    code: str | None = None,
) -> None:
    """Run up to `n_rounds` rounds after node `previous`, or pass its state on if filtering has ended.

    Settings, seed and combination are those of the first node. How rounds are bundled into nodes changes no table.
    With `code`, a hash of the code that rounds depend on, the node is kept until the chain is
    collected, and taken from there if it is asked for again (see `advsets.aflite.kept`).
    """
    record = read_record(previous)
    if record["stopped"]:
        _pass_on(previous, record, out_prefix)
        return
    key = None
    if code is not None:
        before = [node_file(previous, "json"), node_file(previous, "state.parquet")]
        key = kept.key_of(before, [*_paths(train), *_paths(evaluation)], n_rounds, device, code)
        if kept.take(out_prefix, key):
            print(f"advsets: {out_prefix}: kept from an attempt that did not end", file=sys.stderr)
            return
    from advsets.aflite.compute import resolve_device, thread_limit
    from advsets.aflite.members import load_members
    from advsets.aflite.nodes import write_node
    from advsets.aflite.rounds import run_rounds
    from advsets.aflite.settings import Counts, FilterSettings

    settings, counts, seed = FilterSettings(**record["settings"]), Counts(**record["counts"]), record["seed"]
    data = load_members(
        train,
        evaluation,
        standardise=settings.standardise,
        use_groups=settings.use_groups,
        combination=record.get("combination", "mean"),
    )
    state = _read_state(previous, record, data)
    place = resolve_device(device)
    with thread_limit(threads):
        results = list(run_rounds(state, data, settings, counts, seed, n_rounds=n_rounds, device=place))
    data.release()
    write_node(out_prefix, data, results[-1].state if results else state, results, record)
    if key is not None:
        kept.keep(out_prefix, key)


def collect(nodes: Sequence[Path], out_dir: Path) -> None:
    """Write tables `retained`, `retained_train`, `round_scores` and `rounds` of a chain into `out_dir`."""
    from advsets.aflite.nodes import collect_nodes

    collect_nodes(nodes, out_dir)
    kept.forget(nodes[0].parent)


def read_record(prefix: Path) -> dict[str, Any]:
    """Content of `<prefix>.json`."""
    return read_json(node_file(prefix, "json"))


def node_file(prefix: Path, suffix: str) -> Path:
    """Path of one file of a node; `suffix` is `json`, `state.parquet` or `scores.parquet`."""
    return prefix.with_name(f"{prefix.name}.{suffix}")


def _pass_on(previous: Path, record: dict[str, Any], out_prefix: Path) -> None:
    """Write a node without rounds. The state is copied, not linked: a link would be older than its inputs."""
    with atomic_path(node_file(out_prefix, "state.parquet")) as temporary:
        shutil.copyfile(node_file(previous, "state.parquet"), temporary)
    with atomic_path(node_file(out_prefix, "scores.parquet")):
        pass
    write_json(node_file(out_prefix, "json"), {**record, "lines": []})


def _read_state(previous: Path, record: dict[str, Any], data: FilterData) -> FilterState:
    from advsets.aflite.state import FilterState
    from advsets.io import read_table

    frame = read_table(node_file(previous, "state.parquet"), "filter_state")
    return FilterState.from_frame(
        frame, data.train.ids, data.evaluation.ids, record["filtering_round"], record["stop_reason"]
    )


def _paths(given: Path | Sequence[Path] | None) -> list[Path]:
    if given is None:
        return []
    return [given] if isinstance(given, Path) else list(given)
