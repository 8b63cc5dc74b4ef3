"""The smoke run through sbatch: a local run's tables in spite of killed jobs; a cancelled job leaves the rest whole."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slurm
TUNED = ("fine_tune:", "role=adversary", "model=minilm_l1")
CHAIN = ("filter_rounds:", "adversary=minilm_l1")
PREDICTED = ("predict:", "evaluated_model=minilm_l1")
N_ATTEMPTS = 3
"""One and the profile's retries."""


@dataclass
class Outcome:
    """A run of the smoke configuration and what it asked the scheduler for."""

    workspace: Any
    returncode: int
    output: str
    submissions: list[Any]
    killed_tuning: str
    killed_chain: str

    def of(self, job: str) -> Any:
        return next(submission for submission in self.submissions if submission.job == job)


def rules_of(submissions: list[Any]) -> Counter[str]:
    """Submissions by rule, or by group."""
    members = {"chain": "filter", "sets": "evaluate", "set_figures": "draw", "model_figures": "draw"}
    names = [submission.name.split("_wildcards_")[0] for submission in submissions]
    return Counter(next((g for g, rule in members.items() if n.startswith(f"{g}_{rule}")), n) for n in names)


def kill_when(cluster: Any, folder: Path, pattern: str, marks: tuple[str, ...]) -> Any:
    """Kill one job once a file of its work is there."""
    return cluster.watch(lambda: cluster.kill(*marks) if any(folder.glob(pattern)) else [], 1)


@pytest.fixture(scope="module")
def outcome(cluster, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Run in which a fine-tuning and a filtering chain are killed once each."""
    workspace = cluster.workspace(tmp_path_factory.mktemp("slurm"))
    results = workspace.root / "results" / "smoke"
    n_before = len(cluster.submissions())
    tuning = kill_when(cluster, results, "models/*/adversary/minilm_l1/*/checkpoint.work/*", TUNED)
    chain = kill_when(cluster, results, "aflite/*/minilm_l1/*/nodes/002.json", CHAIN)
    try:
        done = workspace.run(*cluster.smoke_run)
    finally:
        killed = [*tuning.stop(), *chain.stop()]
    assert len(killed) == 2, done.stdout[-6000:]
    return Outcome(workspace, done.returncode, done.stdout, cluster.submissions()[n_before:], *killed)


def assert_same_tables(expected: Any, found: Any) -> None:
    tables, others = expected.tables("smoke"), found.tables("smoke")
    assert tables.keys() == others.keys()
    assert len(tables) > 20
    for path, frame in tables.items():
        assert frame.equals(others[path]), path


def test_the_run_ends_with_the_tables_of_a_local_run(outcome: Outcome, local_run) -> None:
    assert outcome.returncode == 0, outcome.output[-6000:]
    assert_same_tables(local_run, outcome.workspace)
    leftovers = [p for p in outcome.workspace.root.rglob("results/**/*") if p.name.endswith((".part", ".work"))]
    assert not leftovers


def test_a_chain_is_one_submission_and_so_are_short_steps(outcome: Outcome) -> None:
    counted = rules_of(outcome.submissions)
    n_chains = len(list(outcome.workspace.root.glob("results/smoke/aflite/*/*/*/retained.parquet")))
    retries = 1
    assert n_chains >= 2 and counted["chain"] == n_chains + retries
    assert counted["fine_tune"] == 4 + retries
    assert {name: counted[name] for name in ("prepare_dataset", "embed", "predict", "evaluate_models")} == {
        "prepare_dataset": 1,
        "embed": 4,
        "predict": 2,
        "evaluate_models": 1,
    }
    assert {name: counted[name] for name in ("sets", "set_figures", "model_figures")} == {
        "sets": 2,
        "set_figures": 1,
        "model_figures": 1,
    }
    alone = {"filter_start", "filter_rounds", "filter_collect", "export_set", "evaluate_agreement", "write_findings"}
    alone |= {
        "evaluate_ensemble_agreement",
        "fetch_dataset",
        "fetch_model",
        "draw_agreement",
        "draw_penalty",
        "draw_rank_stability",
    }
    assert not alone & set(counted)


def test_each_step_asks_for_what_the_configuration_says(outcome: Outcome) -> None:
    retried = {outcome.of(job).name for job in (outcome.killed_tuning, outcome.killed_chain)}
    wanted = {
        "fine_tune": ("gpu", 3000, 20, 1),
        "embed": ("gpu", 2000, 10, 1),
        "predict": ("gpu", 2000, 10, 1),
        "prepare_dataset": ("batch", 500, 3, 0),
        "evaluate_models": ("batch", 1000, 5, 0),
    }
    for submission in outcome.submissions:
        rule = submission.name.split("_wildcards_")[0]
        if rule in wanted and submission.name not in retried:
            found = (submission.partition, submission.memory_mb, submission.minutes, submission.n_gpus)
            assert found == wanted[rule], submission


def test_figures_of_one_submission_share_what_two_need(outcome: Outcome) -> None:
    (figures,) = [s for s in outcome.submissions if s.name.startswith("model_figures")]
    assert (figures.n_cpus, figures.memory_mb) == (2, 2 * 500)


@pytest.mark.parametrize("kind", ["killed_tuning", "killed_chain"])
def test_a_killed_job_is_retried_with_more_memory_and_time(outcome: Outcome, kind: str) -> None:
    killed = outcome.of(getattr(outcome, kind))
    later = [s for s in outcome.submissions if int(s.job) > int(killed.job) and s.name == killed.name]
    assert killed.state not in ("COMPLETED", "RUNNING")
    again = max(later, key=lambda s: s.memory_mb)
    assert again.state == "COMPLETED"
    assert (again.memory_mb, again.minutes) == (2 * killed.memory_mb, 2 * killed.minutes)
    assert again.n_gpus == killed.n_gpus


def test_the_retried_chain_asks_for_the_time_of_all_its_nodes(outcome: Outcome) -> None:
    assert outcome.of(outcome.killed_chain).minutes == 6 * 2
    assert outcome.of(outcome.killed_chain).memory_mb == 1500


def test_rounds_that_had_ended_are_not_computed_again(outcome: Outcome) -> None:
    logs = outcome.workspace.root.glob("results/smoke/logs/filter_rounds/*/minilm_l1/seed0/00[12].log")
    texts = [path.read_text(encoding="utf-8") for path in logs]
    assert len(texts) == 2
    assert all("kept from an attempt that did not end" in text for text in texts)


def test_the_log_of_a_killed_attempt_is_kept_beside_that_of_the_last(outcome: Outcome) -> None:
    root = outcome.workspace.root / "results"
    folder = root / "smoke/logs/fine_tune/hutto_movies/adversary/minilm_l1"
    assert sorted(p.name for p in folder.glob("*.log")) == ["seed0.attempt1.log", "seed0.log"]
    for job in (outcome.killed_tuning, outcome.killed_chain):
        (log,) = (root / "slurm_logs").rglob(f"{job}.log")
        assert log.stat().st_size > 0
    finished = [s.job for s in outcome.submissions if s.state == "COMPLETED"]
    assert not [path for path in (root / "slurm_logs").rglob("*.log") if path.stem in finished]


def test_a_cancelled_job_leaves_the_rest_whole_and_a_rerun_completes(outcome: Outcome, cluster, local_run) -> None:
    workspace, results = outcome.workspace, outcome.workspace.root / "results" / "smoke"
    for name in ("predictions", "evaluation", "figures", "filtered"):
        shutil.rmtree(results / name)
    watcher = cluster.watch(lambda: cluster.cancel(*PREDICTED), N_ATTEMPTS)
    try:
        done = workspace.run(*cluster.smoke_run)
    finally:
        cancelled = watcher.stop()
    assert done.returncode != 0
    states = {s.job: (s.state, s.memory_mb) for s in cluster.submissions() if s.job in cancelled}
    assert sorted(states.values()) == [("CANCELLED", 2000 * attempt) for attempt in range(1, N_ATTEMPTS + 1)]
    predicted = {path.parts[-3] for path in (results / "predictions").rglob("*.parquet")}
    assert predicted == {"static_embeddings"}
    made = {path.stem for path in (results / "figures").glob("*.pdf")}
    assert {"agreement", "retained_share_by_round", "predictability_histogram"} <= made
    assert "rank_stability" not in made
    assert len(list((results / "filtered").glob("*/*/README.md"))) == 3
    again = workspace.run(*cluster.smoke_run)
    assert again.returncode == 0, again.stdout[-6000:]
    counts = dict(re.findall(r"^(\w+) +(\d+)$", again.stdout, re.MULTILINE))
    assert counts["predict"] == "1" and not {"evaluate_agreement", "export_set", "fine_tune"} & set(counts)
    assert_same_tables(local_run, workspace)
