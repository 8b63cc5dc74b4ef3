"""Made-up tables of a whole run for every test of figures."""

from __future__ import annotations

import functools
from collections.abc import Callable

import polars as pl
import pytest
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from synthetic.cases import CASES, make_tables
from synthetic.study import Study

from advsets.figures import registry


@pytest.fixture(scope="session")
def cases() -> dict[str, Study]:
    return CASES


@pytest.fixture(scope="session")
def tables_of() -> Callable[[str], dict[str, pl.DataFrame]]:
    """Tables of a case by its name."""
    return functools.cache(lambda case: make_tables(CASES[case]))


@pytest.fixture(scope="session")
def drawn(tables_of) -> Callable[[str, str], tuple[Figure, pl.DataFrame]]:
    """Figure and data by figure name and case, drawn once; for tests that only look."""
    return functools.cache(lambda name, case: registry.draw(name, tables_of(case), CASES[case].context()))


@pytest.fixture(scope="session")
def by_gid() -> Callable[..., list[Artist]]:
    """Artists of a figure that carry a group id."""
    return lambda figure, gid, kind=Artist: [a for a in figure.findobj(kind) if a.get_gid() == gid]
