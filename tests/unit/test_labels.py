"""Raw labels become names, annotators' counts become agreement, entropy and a modal label."""

from __future__ import annotations

import math

import numpy as np
import pytest

from advsets.errors import UserError
from advsets.labels import agreement, entropy_bits, map_label, modal_label

NUMBERS = {"0": "negative", "1": "positive"}


@pytest.mark.parametrize(
    ("raw", "label"),
    [
        (0, "negative"),
        (1, "positive"),
        (1.0, "positive"),
        (-0.0, "negative"),
        (np.int64(1), "positive"),
        (np.float64(0.0), "negative"),
        ("1", "positive"),
        (" 0\n", "negative"),
        (True, "positive"),
        (False, "negative"),
    ],
)
def test_numbers_map_by_value(raw: object, label: str) -> None:
    assert map_label(raw, NUMBERS, "row 1") == label


@pytest.mark.parametrize("mapping", [{"True": "yes", "False": "no"}, {"true": "yes", "false": "no"}])
def test_booleans_map_by_name_too(mapping: dict[str, str]) -> None:
    assert map_label(True, mapping, "row 1") == "yes"
    assert map_label(False, mapping, "row 1") == "no"


@pytest.mark.parametrize("raw", [None, "-", "-1", -1, -1.0, "", "  ", "null", "None", "NaN", math.nan])
def test_rows_without_gold_label_give_none(raw: object) -> None:
    assert map_label(raw, NUMBERS, "row 1") is None


def test_mapping_wins_over_no_gold() -> None:
    assert map_label(-1, {"-1": "negative", "1": "positive"}, "row 1") == "negative"
    assert map_label("none", {"none": "none", "some": "some"}, "row 1") == "none"


@pytest.mark.parametrize("raw", ["positve", 2, 0.5, math.inf, -2, "1.0", "01", [1], "POSITIVE"])
def test_unknown_labels_name_the_row_and_what_is_allowed(raw: object) -> None:
    with pytest.raises(UserError) as caught:
        map_label(raw, NUMBERS, "train.csv, row 17")
    assert str(caught.value) == (
        f"train.csv, row 17: label {str(raw)!r} is not in the mapping; allowed: 0, 1;"
        " add it to `labels` of the data set, or mend the row"
    )


@pytest.mark.parametrize(
    ("counts", "label"),
    [([3, 1, 1], "a"), ([0, 0, 1], "c"), ([2, 2, 1], None), ([1, 1, 1], None), ([0, 0, 0], None), ([], None)],
)
def test_modal_label(counts: list[int], label: str | None) -> None:
    assert modal_label(counts, ["a", "b", "c"]) == label


def test_agreement_counts_all_annotators() -> None:
    assert agreement([3, 1, 1], "a", ["a", "b", "c"]) == 0.6
    assert agreement([0, 5, 0], "a", ["a", "b", "c"]) == 0.0
    # One of five gave a label that is no class of the task: its count follows those of the classes.
    assert agreement([3, 1, 1], "a", ["a", "b"]) == 0.6


@pytest.mark.parametrize(
    ("counts", "bits"),
    [([5, 0], 0.0), ([1, 1], 1.0), ([1, 1, 1, 1], 2.0), ([2, 1, 1], 1.5), ([3, 1], 0.8112781244591328), ([7], 0.0)],
)
def test_entropy_bits(counts: list[int], bits: float) -> None:
    assert entropy_bits(counts) == pytest.approx(bits, abs=1e-15)
    assert math.copysign(1, entropy_bits(counts)) == 1


def test_nobody_asked_is_not_full_agreement() -> None:
    with pytest.raises(ValueError, match="no annotator"):
        entropy_bits([0, 0])
    with pytest.raises(ValueError, match="no annotator"):
        agreement([0, 0], "a", ["a", "b"])
