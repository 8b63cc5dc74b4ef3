"""GPUs and memory of a model's jobs: they reach the jobs, and rerun nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.workflow


def test_gpus_of_a_model_are_those_of_its_jobs(workspace, tmp_path: Path) -> None:
    config = yaml.safe_load((workspace.root / "config/smoke.yaml").read_text(encoding="utf-8"))
    rows = yaml.safe_load((workspace.root / "config/models.yaml").read_text(encoding="utf-8"))
    table, run = tmp_path / "models.yaml", tmp_path / "run.yaml"
    table.write_text(yaml.safe_dump({"wide": {**rows["minilm_l1"], "gpus": 2}, "narrow": rows["minilm_l1"]}))
    models = ["wide", "narrow"]
    shared = {key: config[key] for key in ("run", "datasets", "split", "fine_tune", "filter")}
    asked = {"model_tables": [str(table)], "adversaries": models, "evaluated_models": models, "device": "auto"}
    run.write_text(yaml.safe_dump({**shared, **asked}))
    plain = workspace.root / "plain.smk"  # jobs with a message tell no resources
    plain.write_text('include: "Snakefile"\n\nfor rule_of_ours in workflow.rules:\n    rule_of_ours.message = None\n')
    plan = ("all", "-n", "-s", str(plain), "--cores", "2", "--configfile", str(run), "--resources", "gpu=4")
    done = workspace.run(*plan)
    assert done.returncode == 0, done.stdout
    found = set()
    for block in re.split(r"^\[", done.stdout, flags=re.MULTILINE):
        rule = re.search(r"^(?:local)?rule (fine_tune|embed|predict):", block, re.MULTILINE)
        if rule:
            (model,) = re.findall(r"(?:model|adversary)=(\w+)", block.split("wildcards:")[1].splitlines()[0])
            found.add((rule[1], model, int(re.search(r"resources:.*\bgpu=(\d)", block)[1])))
    assert found == {
        (rule, m, n) for rule in ("fine_tune", "embed", "predict") for m, n in (("wide", 2), ("narrow", 1))
    }


def test_memory_settings_rerun_nothing(smoke, tmp_path: Path) -> None:
    text = (smoke.root / "config/smoke.yaml").read_text(encoding="utf-8")
    changed = tmp_path / "changed.yaml"
    memory = "  epochs: 1\n  tokens_per_pass: 64\n  gradient_checkpointing: true\n"
    changed.write_text(text.replace("  epochs: 1\n", memory), encoding="utf-8")
    assert "tokens_per_pass" in changed.read_text(encoding="utf-8")
    done = smoke.run("-n", "--cores", "2", "--configfile", str(changed))
    assert "Nothing to be done" in done.stdout, done.stdout
