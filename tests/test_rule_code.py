"""Each rule's `code` parameter counts every module that decides its output."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "advsets"
RULES = ROOT / "workflow" / "rules"
PLUMBING = {"cleaning.py", "devices.py", "errors.py", "io.py", "job.py", "registry.py", "seeding.py", "tables"}
"""Reading, writing, checking and telling; and keyed draws, whose modules of use are counted."""
DELIBERATE = {
    "fetch_dataset.py": {"datasets"},  # a download is not repeated because code around it changes
    "fetch_model.py": {"models"},
    "filter_collect.py": {"aflite"},  # joins the rounds; their arithmetic is counted where it is done
    "write_findings.py": {"evaluation", "stats"},  # words of finished tables
    # words of a finished table; the drawing modules give it names and the order alone
    "write_cross_training.py": {
        f"figures/{m}.py" for m in ("style", "frames", "layout", "collected", "cross_training")
    },
    "figure.py": {"figures"},  # counted by the figure's own name, which a rule made in a loop holds
    # a record without logic; and processes around the same work
    "embed.py": {"models/settings.py", "models/parallel.py"},
    "predict.py": {"models/settings.py", "models/parallel.py"},
    # the settings that decide reach the rule's params
    "fine_tune.py": {
        *("models/settings.py", "models/parallel.py"),
        *("config.py", "collected.py", "imported_rows.py", "schemas.py"),
    },
    "fine_tune_collected.py": {"models/settings.py", "models/parallel.py", "collected.py"},
    "predict_collected.py": {"models/settings.py", "models/parallel.py"},
}


def _imported(module: Path) -> set[Path]:
    found: set[Path] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "advsets":
            continue
        base = PACKAGE.joinpath(*(node.module or "").split(".")[1:])
        found |= {base / f"{alias.name}.py" for alias in node.names} if base.is_dir() else {base.with_suffix(".py")}
    return {path for path in found if path.is_file()}


def _closure(script: Path) -> set[str]:
    seen: set[Path] = set()
    waiting = [script]
    while waiting:
        new = _imported(waiting.pop()) - seen
        seen |= new
        waiting += new
    return {path.relative_to(PACKAGE).as_posix() for path in seen}


def _classifier() -> set[str]:
    text = re.search(r"CLASSIFIER = \[(.*?)\n\]", (RULES / "common.smk").read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    return {f"models/{name}.py" for name in re.findall(r'^        "(\w+)",$', text.group(1), re.MULTILINE)}


def _rules() -> list[tuple[str, str, set[str]]]:
    """Rule file, script, and what its `code` counts, for each rule with a `code` parameter."""
    found = []
    for path in sorted(RULES.glob("*.smk")):
        for block in re.split(r"^ *rule\b.*:$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            script = re.search(r"scripts/(\w+\.py)", block)
            code = re.search(r"code_version\((.*?)\),\n    ", block, re.DOTALL)
            if script and code:
                counted = set(re.findall(r'"([\w/.]+)"', code.group(1)))
                found.append(
                    (path.name, script.group(1), counted | (_classifier() if "*CLASSIFIER" in block else set()))
                )
    return found


RULES_WITH_CODE = _rules()


def test_the_rules_are_found():
    assert {script for _, script, _ in RULES_WITH_CODE} >= {
        "fine_tune.py",
        "embed.py",
        "filter_rounds.py",
        "evaluate.py",
    }
    assert {"models/backbone.py", "models/first_token.py"} <= _classifier()


@pytest.mark.parametrize(("file", "script", "counted"), RULES_WITH_CODE, ids=[s for _, s, _ in RULES_WITH_CODE])
def test_every_module_that_decides_the_output_is_counted(file, script, counted):
    covering = counted | PLUMBING | DELIBERATE.get(script, set())
    used = _closure(ROOT / "workflow" / "scripts" / script)
    missing = {m for m in used if not any(m == c or m.startswith(f"{c}/") for c in covering)}
    assert not missing, f"{file}: code of {script} does not count {sorted(missing)}"
