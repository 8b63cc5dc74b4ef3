from __future__ import annotations

from pathlib import Path

import pytest

from advsets.config import load_run_config
from advsets.errors import UserError
from advsets.variants import ensembles, filter_variants

PROJECT = Path(__file__).resolve().parents[2]


def _beyond(**changes):
    base = {"run": "r", "datasets": ["hutto_movies"], "adversaries": ["static_embeddings", "minilm_l1", "minilm_l3"]}
    return load_run_config({**base, "evaluated_models": ["minilm_l1"], **changes}, PROJECT)


def test_ensembles_are_sorted_and_one_leaves_out_each_family():
    two = {"members": ["minilm_l3", "minilm_l1"], "combination": "minimum"}
    assert ensembles(_beyond(ensembles={"two": two}, leave_one_family_out=True)) == {
        "two": {"members": ["minilm_l1", "minilm_l3"], "combination": "minimum"},
        "without_minilm": {"members": ["static_embeddings"], "combination": "mean"},
        "without_static": {"members": ["minilm_l1", "minilm_l3"], "combination": "mean"},
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"ensembles": {"two": {"members": ["minilm_l1", "minilm_l6"]}}},
            "ensembles: two.members: 'minilm_l6' is no adversary",
        ),
        (
            {"ensembles": {"minilm_l1": {"members": ["minilm_l1", "minilm_l3"]}}},
            "'minilm_l1' is the name of a model too",
        ),
        ({"sensitivity": {"adversaries": ["minilm_l6"]}}, "sensitivity.adversaries: 'minilm_l6' is no adversary"),
    ],
)
def test_names_that_the_run_lacks_are_told(changes, message):
    with pytest.raises(UserError, match=message):
        run = _beyond(**changes)
        ensembles(run)
        filter_variants(run)


def test_variants_leave_out_the_runs_own_values():
    varied = {"adversaries": ["minilm_l1"], "threshold": [0.7, 0.75], "seed": [0, 4], "train_size": [0.2, 50]}
    assert filter_variants(_beyond(sensitivity=varied)) == {
        ("minilm_l1", "threshold", "0.7"): 0.7,
        ("minilm_l1", "train_size", "0.2"): 0.2,
        ("minilm_l1", "train_size", "50"): 50,
        ("minilm_l1", "seed", "4"): 4,
    }
