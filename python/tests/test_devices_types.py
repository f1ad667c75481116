"""Conversions of floats, in the block on the CPU and on a device: a NaN that is converted or
computed becomes its type's own, and one that is moved keeps its bits. CUDA and PyTorch's kernels
for CPUs convert NaNs in several ways."""

import math

import pytest
import torch
from torch.nn import functional as F

from repops.torch import LeftoverError, reproducible

# For each type: the integers of its size, its NaN, and other NaNs, both quiet and signalling.
KINDS = {
    torch.float16: (torch.int16, 0x7E00, [0x7C01, -0x3FF, 0x7E12, -0x1EE, 0x7FFF, -1]),
    torch.bfloat16: (torch.int16, 0x7FC0, [0x7F81, -0x7F, 0x7FC1, -0x3F, 0x7FFF, -1]),
    torch.float32: (
        torch.int32,
        0x7FC00000,
        [0x7F800001, -0x7FFFFF, 0x7FC12345, -0x3EDCBB, 0x7FFFFFFF, -1],
    ),
    torch.float64: (
        torch.int64,
        0x7FF8 << 48,
        [0x7FF0000000000001, -0xFFFFFFFFFFFFF, 0x7FF8123456789ABC, -0x7EDCBA9876544, -1],
    ),
}
PAIRS = [(a, b) for a in KINDS for b in KINDS if a is not b]
# Numbers of which some are rounded, become subnormal or infinite, or stay as they are.
NUMBERS = [0.0, -0.0, 1.0, 0.1, -65519.0, 65520.0, 3e38, 1e300, 6e-8, 3e-41, -1e-310, math.inf]


def odd(dtype, count=42):
    """NaNs and numbers in turn; the count covers vector code and its scalar remainder."""
    kind, _, nans = KINDS[dtype]
    x = torch.tensor(NUMBERS, dtype=torch.float64).to(dtype).repeat(4)[:count]
    words = torch.tensor(nans, dtype=kind).repeat(count)[: len(x[::2])]
    x.view(kind)[::2] = words
    return x


def words(t):
    t = t.detach().cpu()
    t = torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
    return t.contiguous().view(KINDS[t.dtype][0]).flatten().tolist()


def wanted(x, dtype):
    """The words of x in a type, with this type's own NaN."""
    (kind, own, _), y = KINDS[dtype], x.to(dtype)
    return torch.where(y != y, torch.tensor(own, dtype=kind), y.view(kind)).flatten().tolist()


@pytest.fixture(params=["cpu", "device"])
def place(request):
    if request.param == "cpu":
        return torch.device("cpu")
    return request.getfixturevalue("device")


def _into(x, dtype):
    return torch.empty(x.shape, dtype=dtype, device=x.device)


def _each(x, dtype):
    made = [_into(x, dtype)]
    torch._foreach_copy_(made, [x])
    return made[0]


def _through_inference(x, dtype):
    with torch.inference_mode():
        return x.to(dtype)


def _part(x, dtype):
    y = torch.zeros(len(x), 2, dtype=dtype, device=x.device)
    y[:, 1] = x
    return y[:, 1]


# Conversions of all elements of x.
WAYS = {
    "converted": lambda x, dtype: x.to(dtype),
    "in inference": _through_inference,
    "copied": lambda x, dtype: _into(x, dtype).copy_(x),
    "copied to a part": _part,
    "copied in a list": _each,
    "as another": lambda x, dtype: x.type_as(_into(x, dtype)),
    "from the CPU": lambda x, dtype: x.cpu().to(x.device, dtype),
    "to the CPU": lambda x, dtype: x.to("cpu", dtype),
    "joined": lambda x, dtype: torch.cat([x], out=_into(x, dtype)),
    "stacked": lambda x, dtype: torch.stack([x], out=_into(x[None], dtype))[0],
    "sliced": lambda x, dtype: torch.slice_scatter(_into(x, dtype), x),
    "selected": lambda x, dtype: torch.select_scatter(_into(x[None], dtype), x, 0, 0)[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("types", PAIRS, ids=str)
def test_a_nan_that_is_converted_is_its_types_own(place, types, way):
    x = odd(types[0])
    with reproducible():
        y = WAYS[way](x.to(place), types[1])
    assert y.dtype is types[1]
    assert words(y) == wanted(x, types[1])


# Functions of two tensors that are moved: the results have the bits of both in one type.
MIXED = {
    "joined": lambda x, y: torch.cat([x, y]),
    "three joined": lambda x, y: torch.cat([y, x, y[:3]]),
    "stacked": lambda x, y: torch.stack([x, y]),
    "one above the other": lambda x, y: torch.vstack([x, y]),
    "chosen": lambda x, y: torch.where(y > 0, x, y),
    "one chosen": lambda x, y: torch.where(y > 0, x[2], y),
    "blocks": lambda x, y: torch.block_diag(x, y),
    "signs": lambda x, y: torch.copysign(x, y),
    "a gradient": lambda x, y: torch.ops.aten.threshold_backward(x, y, 0.5),
}


def _by_hand(x, dtype):
    """x in another type, with the words that the block gives."""
    kind = KINDS[dtype][0]
    return x if x.dtype is dtype else torch.tensor(wanted(x, dtype), dtype=kind).view(dtype)


@pytest.mark.parametrize("what", MIXED)
@pytest.mark.parametrize("types", PAIRS, ids=str)
def test_of_two_types_one_is_converted(place, types, what):
    x, y = (odd(t) for t in types)
    dtype = MIXED[what](x, y).dtype
    with reproducible():
        z = MIXED[what](x.to(place), y.to(place))
    assert z.dtype is dtype
    assert words(z) == words(MIXED[what](_by_hand(x, dtype), _by_hand(y, dtype)))


# The same, of the first tensor's type.
OF_FIRST = {
    "filled": lambda x, y: torch.fill(x, y[0]),
    "filled in place": lambda x, y: x.clone().fill_(y[4]),
    "masked": lambda x, y: x.masked_fill(x > 0, y[2]),
    "masked in place": lambda x, y: x.clone().masked_fill_(x > 0, y[2]),
    "rows filled": lambda x, y: x.index_fill(0, torch.tensor([1, 4]).to(x.device), y[2]),
    "sliced": lambda x, y: torch.slice_scatter(x, y[3:9], 0, 1, 7),
    "selected": lambda x, y: torch.select_scatter(x.reshape(2, -1), y[: len(x) // 2], 0, 1),
    "on a diagonal": lambda x, y: torch.diagonal_scatter(x.reshape(2, -1), y[:2]),
    "assigned": lambda x, y: _assigned(x.clone(), y),
}


def _assigned(x, y):
    x[3:7], x[9] = y[:4], y[2]
    return x


@pytest.mark.parametrize("what", OF_FIRST)
@pytest.mark.parametrize("types", PAIRS, ids=str)
def test_the_other_tensor_becomes_of_the_first_ones_type(place, types, what):
    x, y = (odd(t) for t in types)
    with reproducible():
        z = OF_FIRST[what](x.to(place), y.to(place))
    assert words(z) == words(OF_FIRST[what](x, _by_hand(y, types[0])))


# Their results are of the wider type, and written to the narrower one.
NARROWED = {
    "signs in place": lambda x, y: x.clone().copysign_(y),
    "signs": lambda x, y: torch.copysign(x, y, out=torch.empty_like(x)),
    "joined": lambda x, y: torch.cat([x, y], out=x.new_empty(2 * len(x))),
    "stacked": lambda x, y: torch.stack([x, y], out=x.new_empty(2, len(x))),
    "chosen": lambda x, y: torch.where(y > 0, x, y, out=torch.empty_like(x)),
}


@pytest.mark.parametrize("what", NARROWED)
@pytest.mark.parametrize("types", PAIRS, ids=str)
def test_results_are_written_to_a_narrower_type(place, types, what):
    x, y = (odd(t) for t in types)
    wide = torch.promote_types(*types)
    if what == "chosen" and wide is not x.dtype:
        pytest.skip("PyTorch refuses it")
    with reproducible():
        z = NARROWED[what](x.to(place), y.to(place))
    z_wide = NARROWED[what](_by_hand(x, wide), _by_hand(y, wide))
    assert z.dtype is x.dtype and words(z) == words(_by_hand(z_wide, x.dtype))


# Integers of numbers beyond their type's range, which processors convert in several ways.
WHOLE = {
    "filled": lambda n, x: torch.stack([torch.fill(n[:1], v) for v in x]),
    "sliced": lambda n, x: torch.slice_scatter(n, x),
    "selected": lambda n, x: torch.select_scatter(n[None], x, 0, 0),
    "on a diagonal": lambda n, x: torch.diagonal_scatter(n.diag(), x).diagonal(),
    "in inference": lambda n, x: _through_inference(x, n.dtype),
}


@pytest.mark.parametrize("what", WHOLE)
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_integers_are_the_nearest_to_a_float(place, dtype, what):
    x = torch.tensor([math.nan, math.inf, -math.inf, 3e9, -3e9, 2.5, -1.0]).to(dtype)
    most = torch.iinfo(torch.int32)
    with reproducible():
        n = WHOLE[what](torch.zeros(7, dtype=torch.int32).to(place), x.to(place))
    assert n.flatten().tolist() == [0, most.max, most.min, most.max, most.min, 2, -1]


def rounds(name):
    f = getattr(torch, name)
    return {
        f"by {name}": f,
        f"by {name} in place": lambda x: getattr(x.clone(), f"{name}_")(),
        f"by {name}, out": lambda x: f(x, out=torch.empty_like(x)),
    }


# Functions of one tensor, which torch computes: NaNs become those of their types.
ROUNDED = {k: f for name in ("floor", "ceil", "trunc", "round") for k, f in rounds(name).items()}
ROUNDED["a fraction"] = lambda x: torch.frexp(x)[0]
ROUNDED["the largest"] = lambda x: x.clamp(max=math.inf)
ROUNDED["sorted"] = lambda x: x.sort(stable=True)[0]


@pytest.mark.parametrize("what", ROUNDED)
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_a_nan_that_is_rounded_is_its_types_own(place, dtype, what):
    if dtype is torch.bfloat16 and what == "a fraction":
        pytest.skip("a device refuses it")
    x = odd(dtype)
    with reproducible():
        y = ROUNDED[what](x.to(place))
    assert words(y) == wanted(ROUNDED[what](x), dtype)


def _channels(x):
    return x[:40].reshape(1, 2, 4, 5).contiguous(memory_format=torch.channels_last)


# Functions of one tensor and an index, which move elements.
MOVED = {
    "cloned": lambda x, i: x.clone(),
    "joined": lambda x, i: torch.cat([x[:5], x[5:]]),
    "chosen": lambda x, i: torch.where(x > 0, x, x.flip(0)),
    "masked": lambda x, i: x.masked_fill(x > 0, 2.0),
    "taken": lambda x, i: torch.cat([x[i], x.gather(0, i), x.index_select(0, i), x.take(i)]),
    "padded": lambda x, i: F.pad(_channels(x), (1, 1, 0, 1), value=3.0),
    "reflected": lambda x, i: F.pad(_channels(x), (1, 1, 0, 1), mode="reflect"),
    "with other signs": lambda x, i: torch.copysign(x, x.flip(0)),
    "repeated": lambda x, i: x.roll(3).repeat(2).repeat_interleave(2),
    "of a triangle": lambda x, i: x[:36].reshape(6, 6).tril(),
    "assigned": lambda x, i: _assigned(x.clone(), x.flip(0)),
}


@pytest.mark.parametrize("what", MOVED)
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_a_nan_that_is_moved_keeps_its_bits(place, dtype, what):
    x, i = odd(dtype), torch.tensor([4, 0, 2])
    with reproducible():
        y = MOVED[what](x.to(place), i.to(place))
    assert words(y) == words(MOVED[what](x, i))


# For the parts of complex numbers, ways to conjugates.
CONJUGATES = {
    "computed": lambda z: z.conj_physical(),
    "resolved": lambda z: z.conj().resolve_conj(),
    "cloned": lambda z: z.conj().clone(),
    "copied": lambda z: torch.empty_like(z).copy_(z.conj()),
    "in an order": lambda z: z.reshape(6, 7).t().conj().clone().t().flatten(),
    "of conjugates": lambda z: z.conj().conj_physical().conj_physical(),
}


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("what", CONJUGATES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_conjugates_of_nans_have_another_sign(place, dtype, what):
    kind = KINDS[dtype][0]
    x = odd(dtype)
    z = torch.view_as_complex(torch.stack([x, x.flip(0)], -1))
    turned = (x.flip(0).view(kind) ^ torch.iinfo(kind).min).view(dtype)
    with reproducible():
        y = CONJUGATES[what](z.to(place))
        own = z.to(place).conj().imag
        parts = [own.clone(), torch.empty_like(own).copy_(own)]
    assert words(y) == words(torch.stack([x, turned], -1))
    assert all(words(part) == words(turned) for part in parts)


# PyTorch's kernels for CPUs move some halves by way of float32.
WIDENED = {
    "a gradient": lambda x: torch.ops.aten.threshold_backward(x.flip(0), x, 0.5),
    "scattered": lambda x: x.scatter(0, torch.tensor([4, 0, 2]).to(x.device), x.flip(0)[:3]),
    "a number scattered": lambda x: x.scatter(0, torch.tensor([4, 0, 2]).to(x.device), 2.0),
    "a longer line": lambda x: F.interpolate(x[:40].reshape(1, 2, 20), 30),
    "a larger image": lambda x: F.interpolate(_channels(x), (5, 7), mode="nearest-exact"),
    "a larger volume": lambda x: F.interpolate(x[:40].reshape(1, 1, 2, 4, 5), (2, 5, 7)),
}


@pytest.mark.parametrize("what", WIDENED)
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_halves_that_are_widened_have_their_types_nan(place, dtype, what):
    x = odd(dtype)
    with reproducible():
        y = WIDENED[what](x.to(place))
    z = WIDENED[what](x)
    assert words(y) == (wanted(z, dtype) if x.element_size() == 2 else words(z))


def test_what_leaves_a_device_is_converted_before(device, simulated):
    x = odd(torch.float32)
    for copy in (
        lambda x: x.to("cpu", torch.float16),
        lambda x: torch.empty(42, dtype=torch.float16).copy_(x, non_blocking=True),
    ):
        with reproducible():
            there = x.to(device)
            simulated.theirs.clear()
            y = copy(there)
        assert simulated.theirs["masked_fill_"] == 1  # NaNs are overwritten there
        assert words(y) == wanted(x, torch.float16)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_a_device_converts_no_bytes_of_floats(device, dtype):
    x = torch.ones(3).to(device)
    with reproducible():
        for convert in (lambda: x.to(dtype), lambda: torch.ones(3).to(dtype).to(device).half()):
            with pytest.raises(LeftoverError, match=f"it converts .*{dtype}"):
                convert()
