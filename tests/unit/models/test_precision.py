from __future__ import annotations

import pytest
import torch

from advsets.errors import UserError
from advsets.models.precision import device_errors, finite, half_dtype, prepare_device

CPU = torch.device("cpu")


def test_rows_that_are_not_finite_are_named():
    values = torch.tensor([[1.0, 2.0], [torch.nan, 0.0], [0.0, torch.inf], [1.0, 1.0]])
    with pytest.raises(UserError, match="not finite for example_id b, c;"):
        finite(lambda: values, ["a", "b", "c", "d"], None, CPU)


def test_half_precision_is_tried_again_in_float32(capsys):
    """2e5 is beyond float16 but not beyond float32; autocast makes the product overflow."""
    left, right = torch.full((2, 4), 500.0), torch.full((4, 3), 100.0)
    left[1] = 0.0
    values = finite(lambda: left @ right, ["a", "b"], torch.float16, CPU)
    assert values.dtype == torch.float32
    assert values[0].tolist() == [200_000.0] * 3
    assert capsys.readouterr().err == "not finite in torch.float16 for a: computed again in float32\n"


@pytest.mark.parametrize("precision", ["auto", "bf16", "fp16", "float32"])
def test_the_cpu_computes_in_float32(precision):
    assert half_dtype(precision, CPU, training=True) is None


def test_dtypes_on_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    cuda = torch.device("cuda")
    assert half_dtype("auto", cuda, training=True) is torch.bfloat16
    assert half_dtype("auto", cuda, training=False) is None
    assert half_dtype("fp16", cuda, training=False) is torch.float16
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert half_dtype("auto", cuda, training=True) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_told():
    assert prepare_device("auto").type == "cpu"
    with pytest.raises(UserError, match="device 'cuda': torch finds no GPU here; allowed: cpu"):
        prepare_device("cuda")


def test_a_full_gpu_is_told():
    with pytest.raises(UserError, match="ran out of memory; lower tokens_per_batch"), device_errors("tokens_per_batch"):
        raise torch.OutOfMemoryError
