"""Imports go to lower layers or stay in their own sub-package; heavy libraries stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "workflow" / "advsets"
LAYERS = {
    **dict.fromkeys(["errors", "tables", "labels", "seeding", "answers"], 0),
    **dict.fromkeys(
        [
            *("io", "config", "registry", "code", "job", "devices", "cleaning", "keys", "variants"),
            *("collected", "schemas", "imported_rows"),
        ],
        1,
    ),
    "datasets": 2,
    **dict.fromkeys(["models", "stats"], 3),
    **dict.fromkeys(["aflite", "attacks"], 4),
    **dict.fromkeys(["evaluation", "curation", "annotation", "cost"], 5),
    **dict.fromkeys(["figures", "export"], 6),
    **dict.fromkeys(["cli", "__init__"], 7),
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(module: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("relative")
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_imports_go_down(module: Path) -> None:
    own = part_of(module)
    assert own in LAYERS, f"{module}: give {own} a layer"
    for name in imports_of(module):
        assert name != "relative", f"{module}: use absolute imports"
        assert not name.startswith("snakemake"), f"{module}: the package never imports snakemake"
        if name.startswith("advsets."):
            other = name.split(".")[1]
            if other != own and other in LAYERS:
                allowed_level = LAYERS[other] < LAYERS[own] or (LAYERS[own] == LAYERS[other] <= 1)
                assert allowed_level, f"{module}: {own} imports {other}, which is not below it"


@pytest.mark.parametrize(
    ("statement", "banned"),
    [
        ("import advsets.aflite.chain", ["torch", "numpy", "polars", "pyarrow", "transformers"]),
        ("import advsets.aflite.rounds, advsets.aflite.run", ["transformers", "datasets"]),
        ("import advsets.figures.registry, advsets.figures.style", ["torch"]),
        ("import advsets.evaluation.findings", ["torch", "transformers", "datasets"]),
        ("import advsets.cost.estimate, advsets.cost.report", ["torch", "numpy", "polars", "pyarrow", "transformers"]),
        ("import advsets.cli", ["torch", "transformers", "datasets", "matplotlib"]),
    ],
)
def test_light_modules_stay_light(statement: str, banned: list[str]) -> None:
    code = f"import sys; {statement}; print([m for m in {banned!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


SOLVER = ("logreg", "objective", "pooled", "preconditioner", "scoring", "solver")


@pytest.mark.parametrize("module", SOLVER)
def test_solver_needs_torch_only(module: str) -> None:
    allowed = {"torch", "__future__"} | set(sys.stdlib_module_names)
    for name in imports_of(PACKAGE / "aflite" / f"{module}.py"):
        own = name.startswith(tuple(f"advsets.aflite.{solver}." for solver in SOLVER))
        assert own or name.split(".")[0] in allowed or LAYERS.get((name.split(".") + [""])[1]) == 0, name


@pytest.mark.parametrize("script", sorted((PACKAGE.parent / "scripts").glob("*.py")), ids=lambda p: p.name)
def test_scripts_are_adapters(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    functions = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    assert functions == ["main"]
    body = script.read_text(encoding="utf-8").split('"""', 2)[2]
    assert len([line for line in body.splitlines() if line.strip()]) <= 40


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_sizes(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert (node.end_lineno or 0) - node.lineno < 80, f"{module}: {node.name} is too long"
