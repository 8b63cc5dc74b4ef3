"""A table as it stood in the source, with the place of every row for messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from advsets.errors import UserError, allowed


@dataclass(frozen=True)
class RawTable:
    """Columns of one split.

    `where` names the file, `unit` and `numbers` (length n_rows) the place of each row in it,
    `found` all columns of the file, of which `columns` holds those that were asked for.
    `labels`, if given, comes from a file of its own and stands for the label column.
    """

    where: str
    columns: dict[str, list[Any]]
    numbers: Sequence[int]
    found: Sequence[str]
    unit: str = "row"
    labels: RawTable | None = field(default=None)

    @property
    def n_rows(self) -> int:
        return len(self.numbers)

    def at(self, i: int) -> str:
        """Place of row `i`, for messages."""
        return f"{self.where}, {self.unit} {self.numbers[i]}"

    def column(self, name: str, purpose: str) -> list[Any]:
        """Values of a column; a missing one raises `UserError` that lists those found."""
        if name not in self.columns:
            raise UserError(
                f"{self.where}: column {name!r} ({purpose}) is missing; found: {allowed(self.found, 30)};"
                f" correct `columns` of the data set"
            )
        return self.columns[name]
