"""Filters of a run beside those of single adversaries with its settings: ensembles, and one setting changed."""

from __future__ import annotations

import re
from typing import Any

from advsets.errors import UserError, allowed
from advsets.schemas import did_you_mean


def ensembles(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Ensembles of adversaries of a completed configuration: name to `members`, sorted, and `combination`.

    With `leave_one_family_out` there is one `without_<family>` per family, where others are left.

    Raises
    ------
    UserError
        For a member that is no adversary of the run, or a name that a model has.
    """
    found = {
        name: {"members": sorted(row["members"]), "combination": row["combination"]}
        for name, row in config["ensembles"].items()
    }
    if config["leave_one_family_out"]:
        families = {a: config["model_rows"][a]["family"] for a in config["adversaries"]}
        for family in sorted(set(families.values())):
            members = sorted(a for a in families if families[a] != family)
            if members:
                found.setdefault(f"without_{_name_part(family)}", {"members": members, "combination": "mean"})
    for name, row in found.items():
        if name in config["model_rows"]:
            raise UserError(f"ensembles: {name!r} is the name of a model too; allowed: another name; rename it")
        for member in row["members"]:
            if member not in config["adversaries"]:
                hint = did_you_mean(member, config["adversaries"]) or "; add it to adversaries or remove it here"
                raise UserError(
                    f"ensembles: {name}.members: {member!r} is no adversary of the run; allowed:"
                    f" {allowed(config['adversaries'], 20)}{hint}"
                )
    return found


VARIED = ("threshold", "train_size", "n_partitions", "seed")
"""What `sensitivity` may change, one at a time."""


def filter_variants(config: dict[str, Any]) -> dict[tuple[str, str, str], int | float]:
    """Filters to run once more: (adversary, setting, value as text) to the value; the run's own values are left out.

    Raises
    ------
    UserError
        For an adversary that is none of the run.
    """
    found = {}
    for adversary in config["sensitivity"]["adversaries"]:
        if adversary not in config["adversaries"]:
            hint = did_you_mean(adversary, config["adversaries"]) or "; add it to adversaries or remove it here"
            raise UserError(
                f"sensitivity.adversaries: {adversary!r} is no adversary of the run; allowed:"
                f" {allowed(config['adversaries'], 20)}{hint}"
            )
        for setting in VARIED:
            base = config["seed"] if setting == "seed" else config["filter"][setting]
            for value in config["sensitivity"][setting]:
                if value != base:
                    found[adversary, setting, f"{value:g}" if isinstance(value, float) else str(value)] = value
    return found


def _name_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)
