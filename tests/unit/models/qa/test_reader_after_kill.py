"""Fine-tuning of a reader that was killed with SIGKILL goes on as if nothing had happened."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
import textwrap

import polars as pl

from advsets.models.qa.finetune import fine_tune_questions

KILLED = """
    import os, pickle, signal, sys
    import torch

    torch.set_num_threads(1)
    from advsets.models import training
    from advsets.models.qa.finetune import fine_tune_questions

    step, steps = training._step, []

    def counted(*args):
        steps.append(None)
        if len(steps) == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*args)

    training._step = counted
    arguments, keywords = pickle.load(open(sys.argv[1], "rb"))
    fine_tune_questions(*arguments, **keywords)
"""


def test_it_ends_with_the_same_weights_bit_for_bit(readers, kit, tmp_path, capsys):
    settings = dataclasses.replace(kit.FINE_TUNE, epochs=3, checkpoint_every_steps=5)
    row, path = kit.model_row(), kit.model_json("bert")
    arguments = (row, path, "made_up", readers.questions(60, before=8), settings, readers.WINDOWS)
    keywords = {"seed": 3, "device": "cpu", "work": tmp_path / "work"}
    keywords |= {"out": tmp_path / "checkpoint", "log": tmp_path / "log.parquet"}
    (tmp_path / "job.pickle").write_bytes(pickle.dumps((arguments, keywords)))
    (tmp_path / "killed.py").write_text(textwrap.dedent(KILLED))
    command = [sys.executable, tmp_path / "killed.py", tmp_path / "job.pickle"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == -9
    assert not keywords["out"].exists()
    fine_tune_questions(*arguments, **keywords)
    assert "going on after step 12 of 18" in capsys.readouterr().err
    whole = {"out": tmp_path / "whole", "log": tmp_path / "whole.parquet", "work": tmp_path / "work2"}
    fine_tune_questions(*arguments, **(keywords | whole))
    for name in ("model.safetensors", "head.safetensors", "advsets.json"):
        assert (keywords["out"] / name).read_bytes() == (whole["out"] / name).read_bytes()
    logs = [pl.read_parquet(log).drop("duration_s") for log in (keywords["log"], whole["log"])]
    assert logs[0].equals(logs[1])
