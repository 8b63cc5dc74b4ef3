"""Order of the examples by difficulty to one adversary, as its filter saw them.

Conventions
-----------
Hardest first: examples that stayed, then those removed in the last round, down to those removed
in the first. Among them the less predictable is harder, then the one of smaller margin, by the
scores of the last round in which each took part; remaining ties go by keyed hash of the id.
An example without predictability counts as hardest of its kind, as the filter leaves it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.inputs import aligned
from advsets.evaluation.study import Study
from advsets.io import read_table
from advsets.seeding import id_hashes, mix


def places(study: Study, retained: Path) -> NDArray[np.int64]:
    """Place of each example from 0, the hardest, by a table `retained`; shape (n_examples,)."""
    ids = study.inputs.frame["example_id"]
    frame = aligned(read_table(retained, "retained"), ids, retained, study.inputs.examples)
    stays = np.iinfo(np.int64).max
    left_in = frame["removed_in_round"].fill_null(stays).to_numpy()
    predictability = frame["predictability"].fill_null(-1.0).to_numpy()
    margin = frame["margin"].cast(pl.Float64).fill_null(float("-inf")).to_numpy()
    ties = mix(id_hashes(ids.to_list()), study.settings.seed, "difficulty")
    order = np.lexsort((ties, margin, predictability, -left_in))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order))
    return found


def retained_mask(study: Study, retained: Path) -> NDArray[np.bool_]:
    """Examples that a table `retained` keeps, shape (n_examples,)."""
    frame = read_table(retained, "retained", ["example_id", "retained"])
    return aligned(frame, study.inputs.frame["example_id"], retained, study.inputs.examples)["retained"].to_numpy()


def hardest(place: NDArray[np.int64], n_examples: int) -> NDArray[np.bool_]:
    """The `n_examples` hardest of these places, shape of `place`."""
    return place < n_examples
