"""Data sets of the Hugging Face hub, or local folders in its format, saved as Parquet.

Conventions
-----------
The commit that `revision` names at the first download is recorded and used from then on, also
when the branch has moved. Class labels stay integers, as the hub stores them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from advsets.datasets.checksums import folder_sha256
from advsets.datasets.members import SPLITS, named, read_members
from advsets.datasets.raw import RawTable
from advsets.datasets.record import describe_file
from advsets.datasets.tabular import read_rows
from advsets.errors import UserError, allowed, reason
from advsets.io import atomic_path, local_path
from advsets.registry import DatasetRow

REUSABLE = True


def fetch(row: DatasetRow, folder: Path, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Save the splits of the recorded or newly resolved commit as Parquet files in `folder`."""
    repo = row.source["repo"]
    local = local_path(repo, f"data set {row.name}: source.repo")
    with _one_line(row):
        if local.is_dir():
            repo, resolved = str(local), {"content_sha256": folder_sha256(local)}
        else:
            resolved = {"commit": _commit(repo, (earlier or {}).get("commit") or row.source["revision"])}
        splits = [split for split in SPLITS if split in named(row.source)]
        _save(row, repo, splits, resolved.get("commit"), folder)
    files = [{"key": split, **describe_file(folder / f"{split}.parquet", f"{split}.parquet")} for split in splits]
    return {"files": files, "libraries": {name: version(name) for name in ("datasets", "huggingface_hub")}, **resolved}


def read(row: DatasetRow, folder: Path, record: dict[str, Any], wanted: dict[str, list[str]]) -> dict[str, RawTable]:
    """Tables of the saved splits."""
    return read_members(paths(row, folder, record), wanted, lambda path, split, columns: read_rows(path, columns))


def paths(row: DatasetRow, folder: Path, record: dict[str, Any]) -> dict[str, Path]:
    """Saved splits by key."""
    return {entry["key"]: folder / entry["name"] for entry in record["files"]}


def _commit(repo: str, revision: str) -> str:
    """Commit of a revision, asked once without retries, so that a hub out of reach is told at once."""
    from huggingface_hub import HfApi

    sha = HfApi().dataset_info(repo, revision=revision, timeout=30).sha
    if sha is None:
        raise UserError(
            f"{repo}: the hub tells no commit for revision {revision!r}; give a commit as `source.revision`"
        )
    return sha


def _save(row: DatasetRow, repo: str, splits: list[str], commit: str | None, folder: Path) -> None:
    """Write the splits; whatever their builder raises is told in one line."""
    import datasets
    from huggingface_hub.errors import HTTPError

    datasets.disable_progress_bars()
    names = [row.source[split] for split in splits]
    try:
        loaded = datasets.load_dataset(repo, row.source["config"], split=names, revision=commit)
    except (HTTPError, ConnectionError, TimeoutError):
        raise
    except Exception as error:  # whatever readers of damaged files raise
        if isinstance(error, OSError) and error.errno and not isinstance(error, FileNotFoundError):
            raise
        why = "a file is empty" if isinstance(error, StopIteration) else reason(error.__cause__ or error, n_lines=2)
        advice = "mend its files" if commit is None else f"run `hf cache rm dataset/{repo}` to fetch its files anew"
        raise UserError(
            f"{_what(row)}, splits {allowed(names)}: {why}; correct `source`, or where files are damaged {advice}"
        ) from None
    for split, dataset in zip(splits, loaded, strict=True):
        with atomic_path(folder / f"{split}.parquet") as temporary:
            dataset.to_parquet(str(temporary))


@contextmanager
def _one_line(row: DatasetRow) -> Iterator[None]:
    """Faults of the hub and the network as one line."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, OfflineModeIsEnabled

    try:
        yield
    except OfflineModeIsEnabled:
        raise UserError(f"{_what(row)}: HF_HUB_OFFLINE is set; unset it, or {_by_hand(row)}") from None
    except HfHubHTTPError as error:
        raise UserError(
            f"{_what(row)}: {reason(error, n_lines=2)}; correct `source`, or log in with `hf auth login`"
        ) from None
    except (HTTPError, ConnectionError, TimeoutError) as error:
        raise UserError(
            f"{_what(row)}: the hub is unreachable ({reason(error, n_lines=2)}); check the network, or {_by_hand(row)}"
        ) from None
    except HFValidationError as error:
        raise UserError(
            f"{_what(row)}: neither a folder here nor a hub id ({reason(error, n_lines=2)}); correct `source`"
        ) from None


def _what(row: DatasetRow) -> str:
    source = row.source
    config = f" (config {source['config']})" if source["config"] else ""
    return f"data set {row.name}: cannot load {source['repo']}{config} at revision {source['revision']}"


def _by_hand(row: DatasetRow) -> str:
    return (
        f"on a machine with network run `hf download --repo-type dataset {row.source['repo']} --local-dir FOLDER`,"
        " copy FOLDER here, and give its path as `source.repo`"
    )
