"""Data sets of the Hugging Face hub, or local folders in its format, saved as Parquet.

Conventions
-----------
The commit that `revision` names at the first download is recorded and used from then on, also
when the branch has moved. Class labels stay integers, as the hub stores them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from advsets.datasets.checksums import folder_sha256
from advsets.datasets.file import local_path
from advsets.datasets.members import SPLITS, named, read_members
from advsets.datasets.raw import RawTable
from advsets.datasets.record import describe_file
from advsets.datasets.tabular import read_rows
from advsets.errors import UserError
from advsets.io import atomic_path
from advsets.registry import DatasetRow

REUSABLE = True


def fetch(row: DatasetRow, folder: Path, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Save the splits of the recorded or newly resolved commit as Parquet files in `folder`."""
    import datasets
    import huggingface_hub

    datasets.disable_progress_bars()
    repo = row.source["repo"]
    local = local_path(repo, f"data set {row.name}: source.repo")
    with _one_line(row, folder):
        if local.is_dir():
            repo, resolved = str(local), {"content_sha256": folder_sha256(local)}
        else:
            resolved = {"commit": _commit(repo, (earlier or {}).get("commit") or row.source["revision"])}
        for split in SPLITS:
            if split in named(row.source):
                _save(row, repo, split, resolved.get("commit"), folder)
    files = [
        {"key": s, **describe_file(folder / f"{s}.parquet", f"{s}.parquet")} for s in SPLITS if s in named(row.source)
    ]
    libraries = {"datasets": datasets.__version__, "huggingface_hub": huggingface_hub.__version__}
    return {"files": files, "libraries": libraries, **resolved}


def read(row: DatasetRow, folder: Path, record: dict[str, Any], wanted: dict[str, list[str]]) -> dict[str, RawTable]:
    """Tables of the saved splits."""
    paths = {entry["key"]: folder / entry["name"] for entry in record["files"]}
    return read_members(paths, wanted, lambda path, split, columns: read_rows(path, columns))


def _commit(repo: str, revision: str) -> str:
    """Commit of a revision, asked once without retries, so that a hub out of reach is told at once."""
    from huggingface_hub import HfApi

    sha = HfApi().dataset_info(repo, revision=revision, timeout=30).sha
    if sha is None:
        raise UserError(
            f"{repo}: the hub tells no commit for revision {revision!r}; give a commit as `source.revision`"
        )
    return sha


def _save(row: DatasetRow, repo: str, split: str, commit: str | None, folder: Path) -> None:
    from datasets import load_dataset

    dataset = load_dataset(repo, row.source["config"], split=row.source[split], revision=commit)
    with atomic_path(folder / f"{split}.parquet") as temporary:
        dataset.to_parquet(str(temporary))


@contextmanager
def _one_line(row: DatasetRow, folder: Path) -> Iterator[None]:
    """Faults of the hub, the network and the data set builder as one line."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, OfflineModeIsEnabled

    source = row.source
    what = (
        f"data set {row.name}: cannot load {source['repo']} (config {source['config']}, revision {source['revision']})"
    )
    try:
        yield
    except OfflineModeIsEnabled:
        raise UserError(f"{what}: HF_HUB_OFFLINE is set; unset it, or {_by_hand(row)}") from None
    except HfHubHTTPError as error:
        raise UserError(f"{what}: {_first(error)}; correct `source`, or log in with `hf auth login`") from None
    except (HTTPError, ConnectionError, TimeoutError) as error:
        raise UserError(
            f"{what}: the hub is unreachable ({_first(error)}); check the network, or {_by_hand(row)}"
        ) from None
    except (HFValidationError, DatasetsError, ValueError, RuntimeError, FileNotFoundError) as error:
        raise UserError(f"{what}: {_first(error)}; correct `source`") from None


def _by_hand(row: DatasetRow) -> str:
    repo = row.source["repo"]
    return (
        f"on a machine with network run `hf download --repo-type dataset {repo} --local-dir FOLDER`,"
        " copy FOLDER here, and give its path as `source.repo`"
    )


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
