"""Where a model's weights come from: the hub, a local folder, or an installed package.

Conventions
-----------
`model.json`: kind, path (folder in the hub's format), revision (hub: the commit; else null),
files (name to size) and sha256 of the files that decide results. Nothing heavy is imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from advsets.errors import UserError, reason
from advsets.io import read_json, write_json
from advsets.registry import ModelRow

_CONFIG = ("*.json", "*.txt", "*.model", "*.tiktoken")
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model", "sentencepiece.bpe.model")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def fetch_model(model: ModelRow, folder: Path) -> None:
    """Make a model's files available and write `folder/model.json`; a second call does nothing.

    Parameters
    ----------
    model : ModelRow
        `source.kind` is `hub` (downloaded to `folder/snapshot`), `path` or `package` (used
        where they lie).

    Raises
    ------
    UserError
        If the hub cannot be reached, the id is unknown, or files are missing.
    """
    record = folder / "model.json"
    found = read_json(record) if record.is_file() else None
    if found is not None and found["source"] == model.source and _is_whole(found):
        return
    kind = model.source["kind"]
    if kind == "hub":
        where, revision = _fetch_from_hub(model, folder, found)
    else:
        where, revision = (_package_folder(model) if kind == "package" else _local_folder(model)), None
    files = _model_files(model, where)
    write_json(
        record,
        {
            "kind": kind,
            "source": model.source,
            "path": str(where.resolve()),
            "revision": revision,
            "files": {path.name: path.stat().st_size for path in files},
            "sha256": _hash(files),
        },
    )


def _is_whole(record: dict[str, Any]) -> bool:
    where = Path(record["path"])
    return all((where / n).is_file() and (where / n).stat().st_size == size for n, size in record["files"].items())


def _local_folder(model: ModelRow) -> Path:
    path = Path(os.path.expandvars(model.source["path"])).expanduser()
    if not path.is_dir():
        raise UserError(
            f"models: {model.name}: source.path: {path} is no folder; put the model there or correct the path"
        )
    return path


def _package_folder(model: ModelRow) -> Path:
    package, folder = model.source["package"], model.source["folder"]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"models: {model.name}: source.package: {package!r} is not installed;"
            f" run `pip install {package.replace('_', '-')}` in this environment"
        )
    path = Path(next(iter(spec.submodule_search_locations))) / folder
    if not path.is_dir():
        raise UserError(f"models: {model.name}: source.folder: {path} is no folder; correct it or reinstall {package}")
    return path


def _model_files(model: ModelRow, folder: Path) -> list[Path]:
    """Files that decide results; raises `UserError` for a folder that is no model."""
    where = f"models: {model.name}: {folder}"
    if not (folder / "config.json").is_file():
        raise UserError(f"{where}: no config.json; allowed: a folder in the hub's format; check the path")
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise UserError(f"{where}: no tokenizer; allowed: tokenizer.json or a vocabulary; add it to the folder")
    weights = _first_match(folder)
    if not weights and not model.random_init:
        raise UserError(f"{where}: no weights; allowed: model.safetensors or pytorch_model.bin; add them to the folder")
    settings = {path for pattern in _CONFIG for path in folder.glob(pattern)}
    return sorted(settings) + ([] if model.random_init else weights)


def _first_match(folder: Path) -> list[Path]:
    return next((found for pattern in _WEIGHTS if (found := sorted(folder.glob(pattern)))), [])


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        with path.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _fetch_from_hub(model: ModelRow, folder: Path, found: dict[str, Any] | None) -> tuple[Path, str | None]:
    """Download the configuration, tokenizer and weights of one commit to `folder/snapshot`."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from huggingface_hub import HfApi, snapshot_download

    repo, revision = model.source["repo"], model.source.get("revision", "main")
    recorded = found["revision"] if found is not None and found["source"] == model.source else None
    partial, where, endpoint = folder / "snapshot.part", folder / "snapshot", os.environ.get("HF_ENDPOINT")
    try:
        info = HfApi(endpoint=endpoint).model_info(repo, revision=recorded or revision, timeout=30)
        names = [sibling.rfilename for sibling in info.siblings or []]
        weights = next((p for p in _WEIGHTS if any(Path(n).match(p) and "/" not in n for n in names)), None)
        wanted = [*_CONFIG, *([weights] if weights and not model.random_init else [])]
        # fnmatch's * crosses folders: leave out what lies in sub-folders (other frameworks' weights)
        snapshot_download(
            repo,
            revision=info.sha,
            local_dir=partial,
            allow_patterns=wanted,
            ignore_patterns=["*/*"],
            max_workers=4,
            endpoint=endpoint,
        )
    except Exception as error:  # network, HTTP and hub errors have no common base below Exception
        if (where / "config.json").is_file():
            print(f"models: {model.name}: the hub cannot be reached; using {where}", file=sys.stderr, flush=True)
            return where, recorded or _commit_by_hand(where)
        raise UserError(_hub_message(model, error, where)) from None
    shutil.rmtree(partial / ".cache", ignore_errors=True)
    shutil.rmtree(where, ignore_errors=True)
    os.replace(partial, where)
    return where, str(info.sha)


def _commit_by_hand(where: Path) -> str | None:
    """Commit of files that `hf download --local-dir` put there, if it left its notes."""
    notes = where / ".cache" / "huggingface" / "download" / "config.json.metadata"
    return notes.read_text(encoding="utf-8").split()[0] if notes.is_file() else None


def _hub_message(model: ModelRow, error: Exception, where: Path) -> str:
    """What went wrong with the hub, and what to fetch by hand."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    repo, revision = model.source["repo"], model.source.get("revision", "main")
    start = f"models: {model.name}: hub model {repo!r}, revision {revision!r}"
    if isinstance(error, GatedRepoError):
        return f"{start}: access is restricted; ask for it on the hub and log in with `hf auth login`"
    if isinstance(error, RepositoryNotFoundError):
        return f"{start}: the hub has no such model (or it is private); correct source.repo"
    if isinstance(error, RevisionNotFoundError):
        return f"{start}: the hub has no such revision; correct source.revision"
    return (
        f"{start}: cannot be downloaded ({reason(error, limit=160)}); go online and run again, or run"
        f" `hf download {repo} --revision {revision} --local-dir DIR` elsewhere and copy DIR to {where}"
    )
