"""On a device: sums with a factor, and numbers of other types or in the CPU's memory beside the
device's tensors, as on the CPU."""

import pytest
import torch

from repops.torch import reproducible

LARGE = 2**24 + 1  # float32 does not have it


def same(device, compute):
    """Computes on the CPU and on the device, and returns the CPU's result."""
    found = []
    with reproducible():
        for place in (torch.device("cpu"), device):
            y = compute(lambda x, place=place: x.to(place))
            found.append((y.dtype, y.shape, y.detach().cpu()))
    (cpu_type, cpu_shape, cpu), (dtype, shape, y) = found
    assert (dtype, shape) == (cpu_type, cpu_shape)
    assert y.contiguous().numpy().tobytes() == cpu.contiguous().numpy().tobytes()
    return cpu


X = torch.arange(-30.0, 37.0) / 7
WHOLE = torch.tensor([LARGE, -LARGE, 3, 2**40 + 2**16 + 1, 0])
NUMBER = torch.tensor(0.3, dtype=torch.float64)
HALF = torch.tensor(0.3, dtype=torch.float16)

FACTORS = {
    "large integers": lambda to: to(torch.ones(5)).add(to(WHOLE), alpha=3),
    "large integers, subtracted": lambda to: to(torch.ones(5)).sub(to(WHOLE), alpha=3),
    "from what is subtracted": lambda to: torch.rsub(to(WHOLE), to(torch.ones(5)), alpha=3),
    "integers and a number": lambda to: torch.rsub(to(WHOLE), 0.7, alpha=3),
    "integers plus a number": lambda to: to(WHOLE).add(0.7, alpha=0.1),
    "bytes": lambda to: to(torch.ones(5)).add(to(WHOLE).to(torch.uint8), alpha=300.5),
    "bytes and integers": lambda to: to(WHOLE).add(to(WHOLE).to(torch.uint8), alpha=300),
    "booleans": lambda to: to(X).add(to(X) > 0, alpha=0.1),
    "a number of the program": lambda to: to(X).add(0.3, alpha=0.1),
    "a number of float64": lambda to: to(X).double().sub(0.3, alpha=0.1),
    "a number of the CPU": lambda to: to(X).add(NUMBER, alpha=0.1),
    "one of float16": lambda to: to(X).add(HALF, alpha=0.1),
    "one of integers": lambda to: to(X).sub(torch.tensor(LARGE), alpha=3),
    "one in place": lambda to: to(X).clone().add_(NUMBER, alpha=0.1),
    "two types": lambda to: to(X).add(to(X).double() / 3, alpha=0.1),
    "two types, turned round": lambda to: (to(X).double() / 3).add(to(X), alpha=0.1),
}


@pytest.mark.parametrize("what", FACTORS)
def test_sums_with_a_factor_have_the_bits_of_the_cpu(device, what):
    same(device, FACTORS[what])


def test_a_factor_multiplies_in_the_type_of_the_sum(device):
    """Bytes would wrap, and 0-dim float64 numbers would be rounded after the product."""
    ones, bytes_ = torch.ones(2), torch.tensor([200, 3], dtype=torch.uint8)
    found = same(device, lambda to: to(ones).add(to(bytes_), alpha=3))
    assert found.tolist() == [601, 10]
    found = same(device, lambda to: to(ones).long().sub(to(bytes_), alpha=3))
    assert found.tolist() == [-599, -8]
    found = same(device, lambda to: torch.rsub(to(bytes_), to(ones), alpha=3))
    assert found.tolist() == [-599, -8]
    found = same(device, lambda to: to(X).add(NUMBER, alpha=0.1))
    assert torch.equal(found, X + NUMBER.float() * 0.1)


@pytest.mark.parametrize("place", ["cpu", "device"])
def test_integers_have_no_factor_that_is_none(device, place):
    x = torch.arange(3).to(device if place == "device" else "cpu")
    with reproducible(), pytest.raises(RuntimeError, match="alpha must not be a floating point"):
        x.add(x, alpha=0.5)
