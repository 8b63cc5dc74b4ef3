"""Questions of a fetched data set, read by the format that its row names.

Conventions
-----------
A format (`questions.format` of the row) is the module of that name in `advsets.datasets`, with
`read_counted(path, split)`: the tables, and how many questions are left out, by reason. It is
imported only when a row names it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from advsets.datasets import sources, squad
from advsets.datasets.members import SPLITS
from advsets.datasets.questions.records import Counted, Frames
from advsets.errors import UserError, allowed
from advsets.registry import DatasetRow


def read_source(row: DatasetRow, raw: Path) -> tuple[dict[str, Frames], Counted]:
    """Tables `questions` and `answer_mismatches` of `train` and, if the source has it, `evaluation`.

    Beside them, how many questions the format leaves out.

    Raises
    ------
    UserError
        If the files are not in the format, have changed since they were fetched, or are not there.
    """
    name = row.questions["format"]
    paths = sources.paths(row, raw)
    if paths is None:
        if name != "squad":
            raise UserError(
                f"data set {row.name}: questions.format {name!r} of a package's archive; allowed: 'squad', as rows;"
                " use another kind of source"
            )
        tables = sources.read(row, raw, dict.fromkeys(SPLITS, squad.COLUMNS))
        return {split: squad.from_rows(table, split) for split, table in tables.items()}, []
    beside = sorted(set(paths) - set(SPLITS))
    if beside:
        raise UserError(
            f"data set {row.name}: source.{beside[0]}: questions have no labels; allowed: {allowed(SPLITS)}; remove it"
        )
    module = import_module(f"advsets.datasets.{name}")
    splits = [split for split in SPLITS if split in paths]
    read = {split: module.read_counted(paths[split], split) for split in splits}
    left_out: Counted = [(split, why, n, True) for split, (_, counts) in read.items() for why, n in counts.items()]
    return {split: frames for split, (frames, _) in read.items()}, left_out
