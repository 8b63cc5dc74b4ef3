"""A child process is killed with SIGKILL in the middle; the rerun ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import resource
import subprocess
import sys
import textwrap

import polars as pl
import pytest
import torch

from advsets.errors import UserError
from advsets.models import inference, resume
from advsets.models.checkpoint import load_checkpoint, save_checkpoint
from advsets.models.finetune import fine_tune

KILLED = """
    import os, pickle, signal, sys
    import torch

    torch.set_num_threads(1)
    from advsets.models import embed, finetune, inference, training

    inference.SHARD_ROWS = 8

    def killed_on_call(module, name, n):
        original, calls = getattr(module, name), []

        def counted(*args, **kwargs):
            calls.append(None)
            if len(calls) == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(module, name, counted)

    killed_on_call(inference, "_write_shard", 4)
    killed_on_call(training, "_step", 17)
    for function, (arguments, keywords) in zip(
        (finetune.fine_tune, embed.embed), pickle.load(open(sys.argv[1], "rb")), strict=True
    ):
        child = os.fork()
        if child == 0:
            function(*arguments, **keywords)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""


@pytest.fixture(scope="module")
def killed(kit, tuned, tmp_path_factory):
    """Arguments of a fine-tuning and of an embedding run that were killed; one interpreter starts both."""
    folder = tmp_path_factory.mktemp("killed")
    settings = dataclasses.replace(kit.FINE_TUNE, epochs=3, checkpoint_every_steps=5)
    tuning = (kit.model_row(), kit.model_json("bert"), kit.dataset_row(), kit.sentences(70), settings)
    paths = {"out": folder / "checkpoint", "log": folder / "log.parquet", "work": folder / "work"}
    embedding = (tuned, kit.sentences(60), folder / "e.parquet", kit.INFERENCE)
    jobs = [(tuning, {"seed": 3, "device": "cpu", **paths}), (embedding, {"device": "cpu"})]
    (folder / "jobs.pickle").write_bytes(pickle.dumps(jobs))
    (folder / "killed.py").write_text(textwrap.dedent(KILLED))
    command = [sys.executable, folder / "killed.py", folder / "jobs.pickle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return jobs


def test_fine_tuning_goes_on_to_the_same_weights_bit_for_bit(killed, tmp_path, capsys):
    arguments, keywords = killed[0]
    assert not keywords["out"].exists()
    assert (keywords["work"] / "state.pt").exists()
    fine_tune(*arguments, **keywords)
    assert "going on after step 15 of 21" in capsys.readouterr().err
    assert not keywords["work"].exists()
    whole = {"out": tmp_path / "checkpoint", "log": tmp_path / "log.parquet", "work": tmp_path / "work"}
    fine_tune(*arguments, **(keywords | whole))
    for name in ("model.safetensors", "advsets.json"):
        assert (keywords["out"] / name).read_bytes() == (tmp_path / "checkpoint" / name).read_bytes()
    logs = [pl.read_parquet(path).drop("duration_s") for path in (keywords["log"], whole["log"])]
    assert logs[0].equals(logs[1])


def test_embedding_keeps_finished_shards(kit, killed, tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "SHARD_ROWS", 8)
    checkpoint, examples, out, _ = killed[1][0]
    assert not out.exists()
    (parts,) = out.parent.glob(".e.parquet.*.parts")
    assert len(list(parts.glob("*.parquet"))) == 3
    computed, write = [], inference._write_shard

    def counted(shard, path, table):
        computed.append(path.name)
        write(shard, path, table)

    monkeypatch.setattr(inference, "_write_shard", counted)
    resumed = kit.embed(checkpoint, examples, out)
    assert len(computed) == 5
    assert not parts.exists()
    assert resumed.equals(kit.embed(checkpoint, examples, tmp_path / "whole.parquet"))


def test_the_state_of_another_run_is_not_taken_over(tmp_path):
    resume.save_state({"fingerprint": resume.fingerprint("a", 1), "step": 3}, tmp_path / "work")
    assert resume.read_state(tmp_path / "work", resume.fingerprint("a", 1))["step"] == 3
    assert resume.read_state(tmp_path / "work", resume.fingerprint("a", 2)) is None
    assert not (tmp_path / "work").exists()


def test_saved_weights_that_do_not_fit_are_a_fault(kit, tuned):
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


@contextlib.contextmanager
def small_disk():
    """A limit of 20 kB on the size of a file stands in for a full disk; the weights take 75 kB.

    Over before pytest reports, whose output may be a file too.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_with_the_state_it_stopped_at(kit, tmp_path):
    kit.model_json("bert")
    with small_disk(), pytest.raises(OSError, match=r"work/state.pt|work/best.pt"):
        kit.tune("bert", kit.sentences(32), tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.name.endswith(".part")] == []


def test_a_full_disk_leaves_no_half_written_checkpoint(tuned, tmp_path):
    loaded = load_checkpoint(tuned, torch.device("cpu"))
    with small_disk(), pytest.raises(UserError, match="checkpoint: weights cannot be written.*free some disk space"):
        save_checkpoint(loaded.classifier, loaded.tokenizer, loaded.description, tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []
