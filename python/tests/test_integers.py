"""Operators on integers: the same results in all settings, and refusals."""

import os
import subprocess
import sys
from pathlib import Path

import integers
import pytest
import torch
import torch.nn.functional as F

from repops.torch import LeftoverError, reproducible

HERE = Path(__file__).parent


def printed(capability):
    return subprocess.run(
        [sys.executable, HERE / "integers.py", "1", "3"],
        env={**os.environ, "ATEN_CPU_CAPABILITY": capability},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_ties_and_places_named_twice_have_one_result():
    runs = [run for c in ("default", "avx2") for run in printed(c).split(".\n")[:-1]]
    assert len(runs) == 4 and runs[0].count("\n") == len(integers.CASES)
    for other in runs[1:]:
        assert other.splitlines() == runs[0].splitlines()


REFUSED = {
    "logspace": lambda x: torch.logspace(0, 9, 10, dtype=torch.int64),
    "airy_ai": lambda x: torch.special.airy_ai(x),
    "histogram": lambda x: torch.histogram(x.double(), 3),
    "_int_mm": lambda x: torch._int_mm(torch.ones(32, 32, dtype=torch.int8), torch.ones(32, 32)),
    "avg_pool2d": lambda x: F.avg_pool2d(x.reshape(1, 2, 2), 2),
    "quantize_per_tensor": lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
    "dequantize": lambda x: QUANTIZED.dequantize(),
    "weight": lambda x: torch.bincount(x.abs(), x.double()),
    "log": lambda x: torch.complex(*COMPLEX).log(),
}
QUANTIZED = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
COMPLEX = torch.ones(2, 3)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_exact_is_refused(name):
    x = torch.tensor([3, -1, 4, -1])
    with reproducible(), pytest.raises(LeftoverError):
        REFUSED[name](x)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("wide", [torch.float32, torch.float64, torch.bfloat16])
def test_numbers_beyond_an_integer_are_the_nearest(dtype, wide):
    inf, limits = float("inf"), torch.iinfo(dtype)
    x = torch.tensor([3.9, -inf, inf, float("nan"), 3e19, -3e19], dtype=wide)
    low, high = limits.min, limits.max
    with reproducible():
        for y in (x.to(dtype), torch.zeros(6, dtype=dtype).copy_(x)):
            assert y.dtype is dtype and y.tolist() == [3, low, high, 0, high, low]
        assert x.to(torch.bool).all()


def test_numbers_at_the_ends_of_an_integer_are_converted():
    with reproducible():
        assert torch.tensor([-1.0, -0.9, 255.9, 256.0]).to(torch.uint8).tolist() == [0, 0, 255, 255]
        assert torch.tensor([-128.0, 127.9]).half().to(torch.int8).tolist() == [-128, 127]
        ends = [-(2.0**63), 2.0**63 - 1024]
        assert torch.tensor(ends, dtype=torch.float64).long().tolist() == [int(e) for e in ends]


def test_results_of_floats_are_not_written_to_integers():
    x = torch.tensor([1, 2])
    for write in (lambda: x.pow_(0.5), lambda: torch.exp(x, out=x), lambda: x.mul_(0.5)):
        with reproducible(), pytest.raises(RuntimeError, match="can't be cast"):
            write()


def test_spaces_of_integers_are_those_of_fractions():
    with reproducible():
        for first, last, count in ((0, 10, 7), (5, -9, 50), (3, 3, 1), (0, 10**6, 77)):
            ours = torch.linspace(first, last, count, dtype=torch.int64).tolist()
            parts = max(1, count - 1)
            sums = [first * parts + i * (last - first) for i in range(count)]
            assert ours == [abs(s) // parts * (1 if s > 0 else -1) for s in sums]
