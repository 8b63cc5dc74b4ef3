"""Two processes on two CPU devices do the work of one."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from advsets.errors import UserError
from advsets.models import inference, parallel
from advsets.models.embed import embed
from advsets.models.finetune import fine_tune
from advsets.models.parallel import devices_of, run_on

CPUS = ["cpu", "cpu"]
PARENT = """
    import pickle, sys
    from advsets.models.finetune import fine_tune
    from advsets.models.parallel import run_on
    arguments, keywords = pickle.load(open(sys.argv[1], "rb"))
    run_on(["cpu", "cpu"], fine_tune, *arguments, **keywords)
"""


@pytest.fixture(scope="module")
def job(kit):
    """Arguments of a fine-tuning run: 65 rows to train on leave one for the last batch, where one rank has none."""
    settings = dataclasses.replace(kit.FINE_TUNE, checkpoint_every_steps=5, tokens_per_pass=24)
    return kit.model_row(), kit.model_json("bert"), kit.dataset_row(), kit.sentences(81), settings


def _places(folder):
    return {"out": folder / "checkpoint", "log": folder / "log.parquet", "work": folder / "work", "seed": 3}


@pytest.fixture(scope="module")
def shared(job, tmp_path_factory):
    """Folder of a run that two processes shared."""
    folder = tmp_path_factory.mktemp("shared")
    run_on(CPUS, fine_tune, *job, **_places(folder))
    return folder


def test_two_processes_fine_tune_like_one(kit, job, shared, tmp_path):
    fine_tune(*job, **_places(tmp_path), device="cpu")
    logs = [pl.read_parquet(folder / "log.parquet").drop("duration_s") for folder in (shared, tmp_path)]
    assert json.loads((tmp_path / "checkpoint" / "advsets.json").read_text())["n_train"] % 8 == 1
    assert logs[0]["selection_accuracy"].equals(logs[1]["selection_accuracy"])
    assert np.allclose(logs[0]["loss"], logs[1]["loss"], rtol=1e-4)
    predictions = [
        kit.predict(folder / "checkpoint", kit.sentences(40), tmp_path / f"{k}.parquet")["probabilities"]
        for k, folder in enumerate((shared, tmp_path))
    ]
    assert np.abs(np.stack(predictions[0].to_numpy()) - np.stack(predictions[1].to_numpy())).max() < 1e-3
    assert sorted(p.name for p in shared.iterdir()) == ["checkpoint", "log.parquet"]


def _children(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _wait(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="no /proc here")
def test_a_killed_job_leaves_no_process_and_goes_on_to_the_same_weights(job, shared, tmp_path, capsys):
    (tmp_path / "job.pickle").write_bytes(pickle.dumps((job, _places(tmp_path))))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path / "job.pickle")]
    parent = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    _wait((tmp_path / "work" / "state.pt").is_file)
    ranks = _children(parent.pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert len(ranks) == 2
    _wait(lambda: not any(map(_runs, ranks)), 10)
    assert not (tmp_path / "checkpoint").exists()
    assert list(tmp_path.glob("advsets-ranks-*")) == []
    run_on(CPUS, fine_tune, *job, **_places(tmp_path))
    assert "going on after step " in capsys.readouterr().err
    for name in ("model.safetensors", "advsets.json"):
        assert (tmp_path / "checkpoint" / name).read_bytes() == (shared / "checkpoint" / name).read_bytes()


def test_two_processes_embed_every_row_once(kit, tuned, tmp_path):
    examples = kit.sentences(2 * inference.SHARD_ROWS + 77)
    run_on(CPUS, embed, tuned, examples, tmp_path / "two.parquet", kit.INFERENCE)
    kit.embed(tuned, examples, tmp_path / "one.parquet")
    assert (tmp_path / "two.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()
    assert pl.read_parquet(tmp_path / "two.parquet")["example_id"].equals(examples["example_id"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.parquet", "two.parquet"]


def test_a_users_mistake_in_a_process_is_one_line_here(kit, tuned, tmp_path):
    with pytest.raises(UserError, match="embed: dtype 'int8'; allowed: float32, float16; correct it"):
        run_on(CPUS, embed, tuned, kit.sentences(3), tmp_path / "e", dataclasses.replace(kit.INFERENCE, dtype="int8"))


def test_a_process_that_fails_is_told_with_its_traceback(tuned, tmp_path, capfd):
    with pytest.raises(RuntimeError, match="process [12] of 2 ended with exit status 1"):
        run_on(CPUS, embed, tuned, None, tmp_path / "e", None)
    assert "AttributeError" in capfd.readouterr().err


def test_one_device_needs_no_process(monkeypatch):
    calls = []
    monkeypatch.setattr(parallel, "_processes", None)
    run_on(["cuda"], lambda *a, **k: calls.append((a, k)), 1, x=2)
    assert calls == [((1,), {"x": 2, "device": "cuda"})]


@pytest.mark.parametrize(
    ("device", "n_granted", "n_visible", "devices"),
    [
        ("cpu", 4, 0, ["cpu"]),
        ("cuda", 1, 4, ["cuda"]),
        ("cuda", 2, 2, ["cuda:0", "cuda:1"]),
        ("cuda", 4, 2, ["cuda:0", "cuda:1"]),
        ("cuda", 2, 8, ["cuda:0", "cuda:1"]),
        ("cuda", 4, 1, ["cuda"]),
    ],
)
def test_devices_are_those_granted_and_here(monkeypatch, device, n_granted, n_visible, devices):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_visible)
    assert devices_of(device, n_granted) == devices


def test_a_device_lock_lasts_until_the_last_process_has_ended(tmp_path, monkeypatch):
    import fcntl

    from advsets.devices import device_for

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def is_locked():
        with (tmp_path / "0").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    with device_for(1, tmp_path, ["0"]):
        other = subprocess.Popen(["sleep", "60"])  # as most are started: the lock is not its own
        lasting = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert is_locked()
        lasting.kill()
        lasting.wait()
        assert not is_locked()
    finally:
        for process in (other, lasting):
            process.kill()
            process.wait()


LEAVER = """
    import shutil, sys, threading, time
    from pathlib import Path
    from advsets.models import parallel
    remove = shutil.rmtree
    shutil.rmtree = lambda *a, **k: (time.sleep(0.5), remove(*a, **k))
    threading.Thread(target=parallel._end_with_parent, args=(Path(sys.argv[1]),), daemon=True).start()
    time.sleep(0.1)
    parallel._leave_at_once(3)
"""


def test_a_rank_that_fails_as_its_parent_dies_still_removes_its_folder(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    (folder / "job").touch()
    command = [sys.executable, "-c", textwrap.dedent(LEAVER), str(folder)]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60).returncode == 1
    assert not folder.exists()


def test_a_rank_that_fails_beside_a_living_parent_leaves_at_once(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(LEAVER), str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        assert process.wait(60) == 3
    finally:
        process.stdin.close()
    assert tmp_path.exists()
