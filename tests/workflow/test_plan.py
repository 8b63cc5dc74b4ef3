"""The plan of the whole study: as many jobs as the design says, made without heavy imports, and what it will cost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advsets import config as settings

pytestmark = pytest.mark.workflow
PROJECT = Path(__file__).resolve().parents[2]
STUDY = ("--configfile", "config/config.yaml")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a dry run of the study prints, with every module that it imports."""
    root = tmp_path_factory.mktemp("study")
    for name in ("Snakefile", "workflow", "config", "profiles", "envs"):
        (root / name).symlink_to(PROJECT / name)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", *STUDY],
        cwd=root,
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def counts(plan: str) -> dict[str, int]:
    """Jobs by rule, as Snakemake counts them."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", plan, re.MULTILINE)}


def test_jobs_by_rule(counts: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    config = settings.load_run_config(settings.read_yaml(PROJECT / "config/config.yaml"))
    assert (len(config["datasets"]), len(config["adversaries"]), len(config["evaluated_models"])) == (4, 18, 18)
    nodes = sum(settings.n_nodes(settings.filter_settings(config, name)) for name in config["datasets"])
    expected = {
        "fetch_dataset": 4,
        "fetch_model": 18,
        "prepare_dataset": 4,
        "fine_tune": 2 * 4 * 18,
        "embed": 2 * 4 * 18,
        "predict": 4 * 18,
        "filter_start": 4 * 18,
        "filter_rounds": 18 * nodes,
        "filter_collect": 4 * 18,
        "evaluate_models": 4,
        "export_set": 4 * 18,
    }
    assert {rule: counts[rule] for rule in expected} == expected
    assert counts["total"] == sum(n for rule, n in counts.items() if rule != "total")


def test_chains_are_bundled_so_that_planning_takes_seconds(counts: dict[str, int]) -> None:
    assert counts["filter_rounds"] <= 10 * 4 * 18


def test_planning_imports_nothing_heavy(plan: str) -> None:
    imported = set(re.findall(r"^import time:.*\| +(\S+)$", plan, re.MULTILINE))
    assert "snakemake.dag" in imported and "advsets.cost.estimate" in imported
    assert not imported & {"torch", "transformers", "datasets", "sklearn", "scipy", "matplotlib"}


def test_a_dry_run_ends_with_the_cost(plan: str, counts: dict[str, int]) -> None:
    lines = plan[plan.index("Cost of what is to run (run study)") :].splitlines()
    told = {match[1]: match for line in lines if (match := re.match(r"(\w+) +([\d,]+) +([\d.,]+) +([\d.,]+) ", line))}
    for rule in ("fine_tune", "embed", "predict", "filter_rounds", "export_set"):
        assert int(told[rule][2].replace(",", "")) == counts[rule]
    assert float(told["fine_tune"][3].replace(",", "")) > 100, "GPU hours of a study of 18 models"
    assert float(told["fine_tune"][4].replace(",", "")) == 0, "CPU hours: the study is planned for GPUs on any machine"
    assert not any("Not counted" in line for line in lines), "every row of the study tells its size"


def test_the_command_tells_what_is_left(smoke, workspace) -> None:
    def cost(root: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "advsets.cli", "cost", "--config", "config/smoke.yaml"]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    before = cost(workspace.root)
    assert before.returncode == 0, before.stderr
    assert before.stdout.startswith("Cost of what is to run (run smoke)\n")
    assert re.search(r"^fine_tune +4 ", before.stdout, re.MULTILINE)
    after = cost(smoke.root)
    assert after.stdout == "Nothing is left to run.\n", after.stdout + after.stderr


def test_the_command_says_in_one_line_what_is_wrong(workspace) -> None:
    def cost(*arguments: str, cwd: Path) -> str:
        command = [sys.executable, "-m", "advsets.cli", "cost", *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    assert "no Snakefile here" in cost(cwd=workspace.root / "config")
    (workspace.root / "bad.yaml").write_text("run: x\ndatasets: [nothing]\n", encoding="utf-8")
    assert "key 'adversaries' is missing" in cost("--config", "bad.yaml", cwd=workspace.root)


def test_a_run_tells_its_cost_before_it_starts(workspace) -> None:
    done = workspace.run("fetch", "--cores", "1", "--configfile", "config/smoke.yaml")
    text = done.stdout
    assert text.index("Cost of what is to run (run smoke)") < text.index("Fetching model minilm_l1")


STAGES = {
    "download": "fetch_dataset fetch_model fetch_predictions",
    "prepare": "prepare_dataset prepare_questions",
    "join": "join_training_set",
    "fine-tune": "fine_tune fine_tune_collected",
    "embed": "embed",
    "filter": "filter_start filter_rounds filter_collect filter_variant",
    "predict": "predict predict_collected",
    "import": "import_predictions",
    "export": "export_set",
}


def stage_of(rule: str) -> str | None:
    for stage, rules in STAGES.items():
        if rule in rules.split():
            return stage
    if rule.startswith("evaluate_") or rule in ("write_findings", "question_statistics"):
        return "evaluate"
    if rule == "write_cross_training":
        return "figures"
    assert rule == "all" or rule.startswith("draw_"), f"{rule}: give it a stage here and in the README"
    return "figures" if rule.startswith("draw_") else None


def reachable(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Every pair of stages of which the second needs the first, directly or not."""
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return found
        found |= more


@pytest.mark.parametrize(("number", "run"), [(0, "smoke"), (1, "collected")])
def test_the_pictures_in_the_readme_are_the_graph_of_stages(workspace, number: int, run: str) -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    picture = text.split("```mermaid")[number + 1].split("```")[0]
    step = r'([\w-]+)(?:\["[^"]*"\])?'
    chains = [re.split(r" --(?: [^>]*? --)?> ", line.strip()) for line in picture.splitlines() if "-->" in line]
    names = [[re.fullmatch(step, part)[1] for part in chain] for chain in chains]
    drawn = {pair for chain in names for pair in zip(chain, chain[1:], strict=False)}

    graph = workspace.run("--rulegraph", "--configfile", f"config/{run}.yaml").stdout
    rules = dict(re.findall(r'^\s*(\d+)\s*\[\s*label = "(\w+)"', graph, re.MULTILINE))
    needs = {tuple(map(stage_of, (rules[a], rules[b]))) for a, b in re.findall(r"(\d+) -> (\d+)", graph)}
    needs = {(a, b) for a, b in needs if a and b and a != b}
    assert len(needs) >= 10
    assert drawn <= needs, "an arrow for which no step of the one stage needs one of the other"
    assert reachable(drawn) == reachable(needs)
