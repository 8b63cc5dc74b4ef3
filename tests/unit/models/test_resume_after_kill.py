"""A child process is killed with SIGKILL in the middle; the rerun ends as if nothing had happened."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import textwrap

import polars as pl
import pytest
import torch

from advsets.models import inference, resume
from advsets.models.finetune import fine_tune

KILLED = """
    import os, pickle, signal, sys
    import torch

    torch.set_num_threads(1)
    from advsets.models import embed, finetune, inference, training

    def killed_on_call(module, name, n):
        original, calls = getattr(module, name), []

        def counted(*args, **kwargs):
            calls.append(None)
            if len(calls) == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(module, name, counted)

    job, arguments, keywords = pickle.load(open(sys.argv[1], "rb"))
    if job == "embed":
        inference.SHARD_ROWS = 8
        killed_on_call(inference, "_write_shard", 4)
        embed.embed(*arguments, **keywords)
    else:
        killed_on_call(training, "_step", 17)
        finetune.fine_tune(*arguments, **keywords)
"""


def _run_killed(tmp_path, *job):
    import pickle

    (tmp_path / "job.pickle").write_bytes(pickle.dumps(job))
    (tmp_path / "job.py").write_text(textwrap.dedent(KILLED))
    done = subprocess.run(
        [sys.executable, tmp_path / "job.py", tmp_path / "job.pickle"], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture
def settings(kit):
    return dataclasses.replace(kit.FINE_TUNE, epochs=3, checkpoint_every_steps=5)


def test_fine_tuning_goes_on_to_the_same_weights_bit_for_bit(kit, settings, tmp_path, capsys):
    def job(name):
        out = tmp_path / name
        paths = {"out": out / "checkpoint", "log": out / "log.parquet", "work": out / "work"}
        arguments = (kit.model_row(), kit.model_json("bert"), kit.dataset_row(), kit.sentences(70), settings)
        return arguments, {"seed": 3, "device": "cpu", **paths}

    arguments, keywords = job("whole")
    fine_tune(*arguments, **keywords)
    arguments, keywords = job("killed")
    _run_killed(tmp_path, "fine_tune", arguments, keywords)
    assert not keywords["out"].exists()
    assert (keywords["work"] / "state.pt").exists()
    capsys.readouterr()
    fine_tune(*arguments, **keywords)
    assert "going on after step 15 of 21" in capsys.readouterr().err
    for name in ("model.safetensors", "advsets.json"):
        assert (tmp_path / "killed/checkpoint" / name).read_bytes() == (
            tmp_path / "whole/checkpoint" / name
        ).read_bytes()
    whole, resumed = (
        pl.read_parquet(tmp_path / name / "log.parquet").drop("duration_s") for name in ("whole", "killed")
    )
    assert resumed.equals(whole)
    assert not keywords["work"].exists()


def test_embedding_keeps_finished_shards(kit, tuned, tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "SHARD_ROWS", 8)
    out = tmp_path / "e.parquet"
    _run_killed(tmp_path, "embed", (tuned, kit.sentences(60), out, kit.INFERENCE), {"device": "cpu"})
    assert not out.exists()
    (parts,) = tmp_path.glob(".e.parquet.*.parts")
    assert len(list(parts.glob("*.parquet"))) == 3
    computed = []
    write = inference._write_shard
    monkeypatch.setattr(
        inference, "_write_shard", lambda shard, path, table: (computed.append(path.name), write(shard, path, table))
    )
    resumed = kit.embed(tuned, kit.sentences(60), out)
    assert len(computed) == 5
    assert not parts.exists()
    assert resumed.equals(kit.embed(tuned, kit.sentences(60), tmp_path / "whole.parquet"))


def test_the_state_of_another_run_is_not_taken_over(tmp_path):
    resume.save_state({"fingerprint": resume.fingerprint("a", 1), "step": 3}, tmp_path / "work")
    assert resume.read_state(tmp_path / "work", resume.fingerprint("a", 1))["step"] == 3
    assert resume.read_state(tmp_path / "work", resume.fingerprint("a", 2)) is None
    assert not (tmp_path / "work").exists()


def test_saved_weights_that_do_not_fit_are_a_fault(kit, tuned):
    from advsets.models.checkpoint import load_checkpoint

    classifier = load_checkpoint(tuned, torch.device("cpu")).classifier.requires_grad_(True)
    weights = resume.trained_weights(classifier)
    weights.pop("network.classifier.bias")
    with pytest.raises(ValueError, match="does not fit"):
        resume.restore_weights(classifier, weights)


def test_a_finished_checkpoint_is_replaced_whole(kit, tmp_path):
    settings = dataclasses.replace(kit.FINE_TUNE, epochs=1)
    for seed in (0, 1):
        checkpoint = kit.tune("bert", kit.sentences(32), tmp_path, settings=settings, seed=seed)
    assert json.loads((checkpoint / "advsets.json").read_text())["seed"] == 1
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
