"""Remove what a finished run no longer needs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Renamed to before removal: a removal that is killed leaves no half checkpoint under its name.
_DOOMED = "checkpoint.removed"


def clean_checkpoints(
    run: str,
    embeddings: Sequence[str],
    predictions: Sequence[str],
    collected: Mapping[str, Sequence[str]],
) -> list[Path]:
    """Remove the checkpoints from which everything planned is made, and leftover scratch folders.

    Parameters
    ----------
    run : str
        Folder of the run.
    embeddings : sequence of str
        Folders `<run>/embeddings/<dataset>/<adversary>/seed<k>`; both splits must be there.
    predictions : sequence of str
        Files `<run>/predictions/<dataset>/<evaluated_model>/seed<k>/evaluation.parquet`.
    collected : mapping of str to sequence of str
        Predictions on every evaluation set, all of which must be there, by the folder of the model:
        `<run>/collected/<collection>/models/<training_set>/<model>/seed<k>`.

    Returns
    -------
    list of Path
        Removed folders; one line on each goes to stderr.
    """
    root = Path(run)
    done = [
        root / "models" / Path(e).relative_to(root / "embeddings").parts[0] / "adversary" / Path(*Path(e).parts[-2:])
        for e in embeddings
        if all((Path(e) / f"{split}.parquet").is_file() for split in ("train", "evaluation"))
    ]
    done += [
        root / "models" / Path(p).parts[-4] / "evaluated_model" / Path(*Path(p).parts[-3:-1])
        for p in predictions
        if Path(p).is_file()
    ]
    done += [Path(folder) for folder, made in collected.items() if all(Path(path).is_file() for path in made)]
    removed = []
    for folder in done:
        _remove(folder / _DOOMED)
        for target in (folder / "checkpoint", folder / "checkpoint.work"):
            if target.is_dir():
                size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
                _remove(target.rename(folder / _DOOMED))
                print(f"advsets: removed {target} ({size / 2**20:.0f} MiB)", file=sys.stderr)
                removed.append(target)
    if not removed:
        print("advsets: no checkpoint to remove", file=sys.stderr)
    return removed


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)
