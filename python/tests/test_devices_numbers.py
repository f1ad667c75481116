"""On a device: sums with a factor, and numbers of other types or in the CPU's memory beside the
device's tensors, as on the CPU."""

import pytest
import torch
from torch.nn import functional as F

from repops.torch import LeftoverError, reproducible

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
    "one in a list": lambda to: torch._foreach_add([to(X)], [to(NUMBER)], alpha=0.1)[0],
    "a number of the device": lambda to: to(X).add(to(NUMBER), alpha=0.1),
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


# ---- numbers of other types, in both memories ----

NUMBERS = {
    "float64": NUMBER,
    "float16": HALF,
    "bfloat16": NUMBER.bfloat16(),
    "too large": NUMBER * 1e300,
    "NaN": torch.tensor(-1).view(torch.float64),
    "float16's NaN": torch.tensor(-1, dtype=torch.int16).view(torch.float16),
}
OPERATIONS = {
    **{name: getattr(torch, name) for name in ("add", "sub", "mul", "div", "rsub")},
    **{name: getattr(torch, name) for name in ("maximum", "minimum", "fmin", "copysign", "le")},
    "turned": lambda x, n: n / x,
    "in place": lambda x, n: x.clone().add_(n).mul_(n).sub_(n).div_(n),
    "addcmul": lambda x, n: x.addcmul(x, n, value=0.3).addcmul(n, n),
    "addcdiv": lambda x, n: x.addcdiv(x, n, value=0.3),
    "lerp": lambda x, n: torch.lerp(x, x.flip(0), n),
    "lists": lambda x, n: torch._foreach_mul([x], n)[0],
    "where": lambda x, n: torch.where(x > 0, x, n),
    "whole vectors": lambda x, n: x * n.to(x.device).expand(len(x)),
}


@pytest.mark.parametrize("there", [True, False], ids=["device", "cpu"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("what", OPERATIONS)
def test_numbers_of_other_types_have_the_bits_of_the_cpu(device, what, number, there):
    n = NUMBERS[number]
    if what in ("rsub", "addcmul", "addcdiv", "lerp") and n.element_size() == 2:
        pytest.skip("refused for halves everywhere")
    same(device, lambda to: OPERATIONS[what](to(X), to(n) if there else n))


def test_numbers_that_a_type_cannot_hold_are_infinite(device):
    for compute in (
        lambda to: to(X) * -1e300,
        lambda to: to(X).clamp(-1e300, 3.5e38) / 3.4028235677973364e38,
        lambda to: to(X).half().clamp(65519.0, 65520.0),
    ):
        same(device, compute)


def test_gradients_of_numbers_have_the_bits_of_the_cpu(device):
    def gradient(to):
        n = to(NUMBER).clone().requires_grad_()
        x = to(X).clone().requires_grad_()
        (x * n / (n + x.abs())).sum().backward()
        return torch.cat([x.grad, n.grad.reshape(1)])

    assert same(device, gradient).dtype is torch.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_prelu_has_the_bits_of_the_cpu(device, dtype):
    kind = torch.int32 if dtype is torch.float32 else torch.int64

    def gradients(to):
        x, w = to(X).to(dtype).requires_grad_(), to(torch.tensor([0.3], dtype=dtype))
        y, dy = F.prelu(x, w.requires_grad_()), to(X).to(dtype).flip(0)
        dy.view(kind)[-1] = -1  # a NaN that is not the library's
        return torch.cat([y, *torch.autograd.grad(y, [x, w], dy)])

    same(device, gradients)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_signs_of_halves_have_the_bits_of_the_cpu(device, dtype):
    kinds = torch.tensor([-1, 0x7FFF, 0, -0x8000, 1, -0x7FFF], dtype=torch.int16)
    for compute in (torch.abs, torch.neg):
        same(device, lambda to, compute=compute: compute(to(kinds).view(dtype)).view(kinds.dtype))


@pytest.mark.parametrize("compute", [torch.reciprocal, lambda x: x * x[2], lambda x: x + 1])
def test_what_rounds_to_halves_is_refused(device, compute):
    with reproducible(), pytest.raises(LeftoverError, match="float16"):
        compute(X.to(device).half())


# ---- numbers in the CPU's memory beside integers ----

INTEGERS = ["gcd", "lcm", "bitwise_and", "bitwise_left_shift", "add", "fmod", "remainder", "pow"]


@pytest.mark.parametrize("what", INTEGERS)
def test_integers_beside_a_number_have_the_bits_of_the_cpu(device, what):
    compute, x = getattr(torch, what), torch.arange(1, 9)
    for number in (torch.tensor(6), torch.tensor(6, dtype=torch.int8)):
        for dtype in (torch.int64, torch.int16, torch.uint8):
            same(device, lambda to, n=number, t=dtype: compute(to(x).to(t), n))
            same(device, lambda to, n=number, t=dtype: compute(n, to(x).to(t)))
