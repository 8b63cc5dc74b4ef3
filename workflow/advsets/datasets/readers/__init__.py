"""Readers of archives from the package index, one module each, by name.

A reader has `read(archive, options) -> RawTable`, of one table that is split afterwards.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from advsets.errors import UserError, allowed

READERS = ("vader_hutto",)


def reader(name: str) -> ModuleType:
    """Module of a reader; an unknown name raises `UserError`."""
    if name not in READERS:
        raise UserError(f"reader {name!r}; allowed: {allowed(READERS)}; correct `source.reader` of the data set")
    return import_module(f"advsets.datasets.readers.{name}")
