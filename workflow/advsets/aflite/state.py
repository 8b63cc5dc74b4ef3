"""State of a filtering run between rounds, and the table that holds it.

Conventions
-----------
Rows stand in canonical order: sorted by `example_id`, training rows apart from evaluation
rows. Scores are those of the last round in which the row took part. `removed_in_round` is 0
while a row is retained (null in tables); `margin` is nan where unknown (null in tables).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advsets.aflite.selection import ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

SPLITS = ("train", "evaluation")


@dataclass(frozen=True)
class SplitState:
    """Where the rows of one split stand; arrays have shape (n_examples,) and are never written to."""

    removed_in_round: NDArray[np.int64]
    n_held_out: NDArray[np.int64]
    n_correct: NDArray[np.int64]
    margin: NDArray[np.float64]

    @classmethod
    def start(cls, n_examples: int) -> SplitState:
        """All rows retained, none scored."""
        zeros = np.zeros(n_examples, dtype=np.int64)
        return cls(zeros, zeros, zeros, np.full(n_examples, np.nan))

    @property
    def retained(self) -> NDArray[np.bool_]:
        return self.removed_in_round == 0

    @property
    def predictability(self) -> NDArray[np.float64]:
        """n_correct / n_held_out, nan where never held out."""
        return ratio(self.n_correct, self.n_held_out)

    def after(
        self,
        rows: NDArray[np.int64],
        n_held_out: NDArray[np.int64],
        n_correct: NDArray[np.int64],
        margin: NDArray[np.float64],
        removed: NDArray[np.bool_],
        filtering_round: int,
    ) -> SplitState:
        """State in which `rows` have these scores and those `removed` are gone."""
        new = replace(
            self,
            removed_in_round=self.removed_in_round.copy(),
            n_held_out=self.n_held_out.copy(),
            n_correct=self.n_correct.copy(),
            margin=self.margin.copy(),
        )
        new.n_held_out[rows], new.n_correct[rows], new.margin[rows] = n_held_out, n_correct, margin
        new.removed_in_round[rows[removed]] = filtering_round
        return new


@dataclass(frozen=True)
class FilterState:
    """State after `filtering_round` rounds; `stop_reason` is None while filtering goes on."""

    train: SplitState
    evaluation: SplitState
    filtering_round: int = 0
    stop_reason: str | None = None

    def split(self, name: str) -> SplitState:
        return self.train if name == "train" else self.evaluation

    def to_frame(self, train_ids: Sequence[str], evaluation_ids: Sequence[str]) -> pl.DataFrame:
        """Table `filter_state`."""
        import polars as pl

        frames = [_frame(self.train, train_ids, "train"), _frame(self.evaluation, evaluation_ids, "evaluation")]
        return pl.concat(frames)

    @classmethod
    def from_frame(
        cls,
        frame: pl.DataFrame,
        train_ids: Sequence[str],
        evaluation_ids: Sequence[str],
        filtering_round: int,
        stop_reason: str | None,
    ) -> FilterState:
        """State of a `filter_state` table, for these ids in canonical order.

        Raises
        ------
        ValueError
            If the table holds other ids: it belongs to other input.
        """
        import polars as pl

        splits = []
        for name, ids in zip(SPLITS, (train_ids, evaluation_ids), strict=True):
            part = frame.filter(pl.col("split") == name).sort("example_id")
            if part["example_id"].to_list() != list(ids):
                raise ValueError(f"filter_state: the {name} ids are not those of the input")
            splits.append(
                SplitState(
                    part["removed_in_round"].fill_null(0).to_numpy(),
                    part["n_held_out"].to_numpy(),
                    part["n_correct"].to_numpy(),
                    part["margin"].fill_null(float("nan")).to_numpy(),
                )
            )
        return cls(splits[0], splits[1], filtering_round, stop_reason)


def score_columns(
    n_held_out: NDArray[np.int64], n_correct: NDArray[np.int64], margin: NDArray[np.float64]
) -> list[pl.Series]:
    """Score columns as tables have them, unknown values null."""
    import polars as pl

    return [
        pl.Series("n_held_out", n_held_out, dtype=pl.Int64),
        pl.Series("n_correct", n_correct, dtype=pl.Int64),
        pl.Series("predictability", ratio(n_correct, n_held_out), dtype=pl.Float64).fill_nan(None),
        pl.Series("margin", margin, dtype=pl.Float64).fill_nan(None),
    ]


def _frame(state: SplitState, ids: Sequence[str], split: str) -> pl.DataFrame:
    import polars as pl

    removed_in = pl.Series("removed_in_round", state.removed_in_round, dtype=pl.Int64)
    columns = [
        pl.Series("example_id", list(ids), dtype=pl.String),
        pl.Series("split", [split] * len(ids), dtype=pl.String),
        pl.Series("retained", state.retained, dtype=pl.Boolean),
        removed_in.set(removed_in == 0, None),
        *score_columns(state.n_held_out, state.n_correct, state.margin),
    ]
    return pl.DataFrame(columns)
