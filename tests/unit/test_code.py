"""The version of a module changes with its logic and with nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advsets import code
from advsets.errors import UserError

MODULE = '''"""Docstring."""

LIMIT = 3
"""What it is."""


class Thing:
    """A thing."""

    size: int = 1


def double(x: int) -> int:
    """Twice x."""
    # A comment.
    if x > LIMIT:
        return 2 * x
    return x + x


def nothing() -> None:
    """Do nothing."""
'''


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Version of a package with `m.py` as given and `sub/a.py`, `sub/deep/b.py`."""
    monkeypatch.setattr(code, "_PACKAGE", tmp_path)
    (tmp_path / "sub" / "deep").mkdir(parents=True)

    def compute(m: str = MODULE, a: str = "A = 1", b: str = "B = 1", modules: tuple[str, ...] = ("m.py",)) -> str:
        (tmp_path / "m.py").write_text(m, encoding="utf-8")
        (tmp_path / "sub" / "a.py").write_text(a, encoding="utf-8")
        (tmp_path / "sub" / "deep" / "b.py").write_text(b, encoding="utf-8")
        code._tree.cache_clear()
        return code.code_version(*modules)

    yield compute
    code._tree.cache_clear()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# A comment.", "# Another one.\n    # And more."),
        ("    # A comment.\n", ""),
        ('"""Twice x."""', '"""Two times x.\n\n    And a second line.\n    """'),
        ('    """Twice x."""\n', ""),
        ('"""Docstring."""\n', ""),
        ('"""A thing."""', '""""""'),
        ('"""What it is."""\n', ""),
        ('"""Do nothing."""', "pass"),
        ("2 * x", "(2  *  x)"),
        ("LIMIT = 3\n", "LIMIT = 3\n\n\n\n"),
        ("x > LIMIT:\n        return", "x > LIMIT: return"),
    ],
)
def test_comments_docstrings_and_layout_keep_it(version: Callable[..., str], old: str, new: str) -> None:
    edited = MODULE.replace(old, new)
    assert edited != MODULE
    assert version(edited) == version()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("2 * x", "3 * x"),
        ("2 * x", "x * 2"),
        ("x > LIMIT", "x >= LIMIT"),
        ("    return x + x", "    return 'x + x'"),
        ("size: int = 1", "size: int = 2"),
        ("double", "twice"),
    ],
)
def test_logic_changes_it(version: Callable[..., str], old: str, new: str) -> None:
    assert MODULE.replace(old, new) != MODULE
    assert version(MODULE.replace(old, new)) != version()


def test_a_folder_stands_for_all_modules_below(version: Callable[..., str]) -> None:
    before = version(modules=("sub",))
    assert version(a="A = 2", modules=("sub",)) != before
    assert version(b="B = 2", modules=("sub",)) != before
    assert version(a="A = 1  # one", b="B = 1\n", modules=("sub",)) == before
    assert version("LIMIT = 9", modules=("sub",)) == before


def test_several_modules_all_count(version: Callable[..., str]) -> None:
    before = version(modules=("m.py", "sub/a.py"))
    assert version(a="A = 2", modules=("m.py", "sub/a.py")) != before
    assert version("LIMIT = 9", modules=("m.py", "sub/a.py")) != before
    assert version(b="B = 2", modules=("m.py", "sub/a.py")) == before


@pytest.mark.parametrize("module", ["no.py", "no_folder", "empty"])
def test_missing_modules_are_named(version: Callable[..., str], tmp_path: Path, module: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        version(modules=("m.py", module))
    assert str(caught.value) == f"{tmp_path / module}: no such module; correct the `code` parameter of the rule"


def test_our_own_package_has_a_version() -> None:
    assert code.code_version("seeding.py") == code.code_version("seeding.py")
    assert code.code_version("seeding.py") != code.code_version("labels.py")
