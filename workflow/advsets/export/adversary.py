"""Who decided what a filtered set keeps: one model, or several whose scores the filter combined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from advsets.registry import ModelRow

COMBINATIONS = {
    "mean": "the classifiers on all of their representations count alike, so predictability is the share of all that"
    " are right",
    "minimum": "predictability is that by the adversary whose classifiers predict the example worst, so an example"
    " leaves only where those of every adversary predict it",
}
"""What `combination` does, for the card."""


@dataclass(frozen=True)
class Member:
    """A model, its fine-tuning settings, and the record of where its weights were fetched from (model.json)."""

    model: ModelRow
    fine_tune: dict[str, Any]
    source: dict[str, Any]

    @property
    def title(self) -> str:
        return self.model.title or self.model.name

    def described(self) -> dict[str, Any]:
        """What the card says of it."""
        model = self.model
        return {
            "name": model.name,
            "family": model.family,
            "pretraining objective": model.objective,
            "parameters (millions)": model.parameters_m,
            "encoder layers kept": "all" if model.n_layers is None else model.n_layers,
            "random start": model.random_init,
            "frozen": model.freeze,
            "representation": f"{model.pooling} token" if model.pooling != "mean" else "mean of tokens",
            "licence": model.licence,
            **source_record(self.source, "source"),
        }


@dataclass(frozen=True)
class Adversary:
    """Name by which the set is filed, its members, and how their scores became one."""

    name: str
    members: tuple[Member, ...]
    combination: str = "mean"

    @property
    def is_ensemble(self) -> bool:
        return len(self.members) > 1

    @property
    def title(self) -> str:
        """Of the member, or for an ensemble its name."""
        return f"the ensemble {self.name}" if self.is_ensemble else self.members[0].title

    @property
    def emphasised(self) -> str:
        return listed(f"*{member.title}*" for member in self.members)

    @property
    def families(self) -> str:
        return ", ".join(sorted({member.model.family for member in self.members}))


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def side_by_side(columns: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Rows of a table with one column per mapping; what one of them lacks is a dash."""
    keys = dict.fromkeys(key for column in columns for key in column)
    return [[key, *(column.get(key, "–") for column in columns)] for key in keys]


def source_record(record: dict[str, Any], requested: str) -> dict[str, Any]:
    """Where something came from, without paths of the machine that fetched it."""
    asked = record.get(requested, {})
    known = {key: record[key] for key in ("commit", "revision", "sha256") if record.get(key)}
    files = record.get("files", [])
    named = [f"{PurePath(f['name']).name} ({f['sha256']})" for f in files] if isinstance(files, list) else []
    shown = {
        f"source: {key}": _public(key, value) for key, value in {**asked, **known}.items() if value not in (None, {})
    }
    return {**shown, **({"files (sha256)": "; ".join(named)} if named else {})}


def _public(key: str, value: Any) -> Any:
    """Value without credentials in addresses and without folders of local files."""
    if key == "url":
        parts = urlsplit(str(value))
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    if isinstance(value, str) and PurePath(value).is_absolute():
        return PurePath(value).name
    return value
