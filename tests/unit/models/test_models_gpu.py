"""Every class of the study on a CUDA device, and two devices against one; skipped where there are none."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
import torch

from advsets.models.embed import embed
from advsets.models.finetune import fine_tune
from advsets.models.parallel import run_on
from advsets.models.predict import predict

N_DEVICES = torch.cuda.device_count() if torch.cuda.is_available() else 0
KINDS = ("bert", "roberta", "albert", "bart", "electra", "deberta", "deberta-v2")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(N_DEVICES == 0, reason="no CUDA device")]


def _places(folder):
    return {"out": folder / "checkpoint", "log": folder / "log.parquet", "work": folder / "work", "seed": 3}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recompute", [False, True])
def test_it_learns_in_bf16_and_its_vectors_are_those_of_the_cpu(kit, tmp_path, kind, recompute):
    row = kit.model_row(pooling="last" if kind == "bart" else "first")
    settings = dataclasses.replace(kit.FINE_TUNE, gradient_checkpointing=recompute, tokens_per_pass=64)
    job = (row, kit.model_json(f"hub:{kind}"), kit.dataset_row(), kit.sentences(96), settings)
    fine_tune(*job, **_places(tmp_path), device="cuda")
    examples, found = kit.sentences(40), {}
    for device in ("cpu", "cuda"):
        embed(tmp_path / "checkpoint", examples, tmp_path / device, kit.INFERENCE, device=device)
        found[device] = np.stack(pl.read_parquet(tmp_path / device)["embedding"].to_numpy())
    assert np.abs(found["cpu"] - found["cuda"]).max() < 1e-3
    predict(tmp_path / "checkpoint", examples, tmp_path / "p.parquet", kit.INFERENCE, device="cuda")
    assert (pl.read_parquet(tmp_path / "p.parquet")["predicted_label"] == examples["label"]).mean() > 0.9


@pytest.mark.skipif(N_DEVICES < 2, reason="one CUDA device or none")
def test_two_devices_fine_tune_like_one(kit, tmp_path):
    settings = dataclasses.replace(kit.FINE_TUNE, tokens_per_pass=24)
    row = kit.model_row(precision="float32")
    job = (row, kit.model_json("bert"), kit.dataset_row(), kit.sentences(81), settings)
    logs = []
    for name, devices in (("one", ["cuda:0"]), ("two", ["cuda:0", "cuda:1"])):
        run_on(devices, fine_tune, *job, **_places(tmp_path / name))
        logs.append(pl.read_parquet(tmp_path / name / "log.parquet"))
    assert np.allclose(logs[0]["loss"], logs[1]["loss"], rtol=1e-3)
