"""Versions of our own code, so that an edit of its logic reruns the steps that use it."""

from __future__ import annotations

import ast
from functools import cache
from hashlib import blake2b
from pathlib import Path

from advsets.errors import UserError

_PACKAGE = Path(__file__).resolve().parent


def code_version(*modules: str) -> str:
    """Hash of the syntax trees of modules given relative to the package, e.g. "aflite/rounds.py".

    A folder stands for every module in it and below. Comments, docstrings (also those of
    constants) and layout do not count.

    Raises
    ------
    UserError
        If a module does not exist.
    """
    digest = blake2b(digest_size=8)
    for module in modules:
        path = _PACKAGE / module
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not all(f.is_file() for f in files) or not files:
            raise UserError(f"{path}: no such module; correct the `code` parameter of the rule")
        for file in files:
            digest.update(_tree(file).encode())
    return digest.hexdigest()


@cache
def _tree(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not _is_docstring(s)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
