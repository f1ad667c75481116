"""Floating-point modes that a program sets change no bit in the block, and are restored after
it. Nor does the default type."""

import ctypes
import platform
import subprocess
import sys
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F

from repops.torch import _modes, functional, optim, reproducible
from repops.torch import hash as state_hash

# FTZ, DAZ, rounding down, up and toward zero, and traps for all exceptions except inexact: as
# differences from the default register.
MODES = {
    "x86_64": {
        "FTZ": 0x8000,
        "DAZ": 0x40,
        "FTZ and DAZ": 0x8040,
        "down": 0x2000,
        "up": 0x4000,
        "toward zero": 0x6000,
        "interrupting": 0x0F80,
    },
    "aarch64": {"FZ": 0x1000000, "up": 0x400000, "down": 0x800000, "toward zero": 0xC00000},
}.get(platform.machine(), {})


def numbers(n, low, high):
    return torch.empty(n).uniform_(low, high, generator=torch.Generator().manual_seed(n))


N = 100_000  # so large that PyTorch uses threads
X, Y = numbers(N, -2, 2), numbers(N + 1, 0.5, 3)[:N].clone()
TINY = numbers(N + 2, -4, 4)[:N] * 2.0**-127  # half of these are subnormal
D = TINY.double() * 2.0**-896  # subnormal in float64
POSITIVE = TINY.abs() + 2.0**-149
IMAGE = numbers(2 * 3 * 9 * 9, -1, 1).reshape(2, 3, 9, 9)
M = numbers(64 * 64, -1, 1).reshape(64, 64) * 2.0**-70

PROBES = {
    "add": lambda: TINY + 2.0**-140,
    "sub": lambda: TINY - TINY.roll(1),
    "mul": lambda: TINY * 0.5,
    "mul of subnormals": lambda: TINY * 3.0,
    "products that round": lambda: X * Y,
    "div": lambda: X / Y,
    "div to subnormals": lambda: TINY / Y,
    "reciprocal": lambda: torch.reciprocal(Y * 2.0**126),
    "sqrt": lambda: POSITIVE.sqrt(),
    "rsqrt": lambda: POSITIVE.rsqrt(),
    "to float64": lambda: TINY.double(),
    "from float64": lambda: (X.double() * 2.0**-127).float(),
    "float64 add": lambda: D + 2.0**-1060,
    "float64 mul": lambda: D * 0.3,
    "float64 div": lambda: D / 3.0,
    "to bfloat16": lambda: X.bfloat16(),
    "to float16": lambda: (X * 2.0**-14).half(),
    "from integers": lambda: torch.arange(2**24, 2**24 + N).float(),
    "eq": lambda: TINY == 0,
    "lt": lambda: TINY < POSITIVE * 0.5,
    "where": lambda: torch.where(TINY != 0, 1.0, 0.0),
    "nonzero": lambda: TINY.nonzero(),
    "clamp": lambda: TINY.clamp(min=2.0**-140),
    "maximum": lambda: torch.maximum(TINY, TINY.flip(0)),
    "round": lambda: (X * 3).round(),
    "addcmul": lambda: torch.addcmul(TINY, X, TINY, value=0.3),
    "lerp": lambda: torch.lerp(TINY, X, 0.3),
    "sum": lambda: TINY.sum(),
    "sum along": lambda: TINY.reshape(100, -1).sum(0),
    "mean": lambda: TINY.reshape(100, -1).mean(1),
    "norm": lambda: M.norm(),
    "cumsum": lambda: TINY.reshape(1000, 100).cumsum(1),
    "cumprod": lambda: X.reshape(1000, 100).cumprod(1),
    "prod": lambda: X.reshape(1000, 100).prod(1),
    "logcumsumexp": lambda: X.reshape(1000, 100).logcumsumexp(1),
    "exp": lambda: (X * 50).exp(),
    "log": lambda: POSITIVE.log(),
    "sin": lambda: X.sin(),
    "tan": lambda: TINY.tan(),
    "pow": lambda: Y**1.7,
    "log1p": lambda: TINY.log1p(),
    "expm1": lambda: TINY.expm1(),
    "atan2": lambda: torch.atan2(TINY, X),
    "matmul": lambda: M @ M,
    "softmax": lambda: (X * 60).reshape(100, -1).softmax(1),
    "conv2d": lambda: F.conv2d(IMAGE, IMAGE[:, :, :3, :3], torch.ones(2) * 0.1),
    "linspace": lambda: torch.linspace(0, 1e-38, 1001),
    "full": lambda: torch.full((1000,), 1e-39) * 1.0,
    "interpolate": lambda: F.interpolate(IMAGE, size=(13, 7), mode="bilinear"),
    "qr": lambda: torch.linalg.qr(M[:5, :4])[0],
    "normal": lambda: torch.randn(1000, generator=torch.Generator().manual_seed(1)) * 2.0**-126,
    "quantile": lambda: TINY.sort()[0][N // 3] * 1.5,
    "gradient": lambda: gradient(),
    "AdamW": lambda: trained(),
}


def gradient():
    x = (TINY * 0.7).requires_grad_()
    (x * x.tanh() * 2.0**-3).sum().backward()
    return x.grad


def trained():
    p = torch.nn.Parameter(TINY[:1000].clone())
    optimizer = torch.optim.AdamW([p], lr=1e-3, foreach=True)
    p.grad = TINY[1000:2000].clone()
    optimizer.step()
    return p.detach()


def as_bits(t):
    sized = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.contiguous().view(sized[t.element_size()])


def results(probes=PROBES):
    return {name: as_bits(probe()) for name, probe in probes.items()}


def set_modes(modes):
    team = _modes.Team(1)
    team.modes[0] = modes
    _modes.set_back(team)
    assert _modes.changed() == modes


def in_thread(function, *arguments):
    """Runs on a new thread with workers of its own, whose modes end with it."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*arguments)))
    thread.start()
    thread.join()
    return found[0]


def in_block(modes, threads, when):
    torch.set_num_threads(threads)
    if when == "after the workers started":
        X + Y
    if when != "inside":
        set_modes(modes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with reproducible():
            if when == "inside":
                set_modes(modes)
            found = results()
    assert _modes.changed() == (0 if when == "inside" else modes)
    return found


@pytest.fixture(scope="module")
def expected():
    with reproducible():
        return results()


def different(a, b):
    return [name for name in a if not torch.equal(a[name], b[name])]


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_the_process_change_no_bit(mode, expected):
    for threads in (1, 2, 3):
        when = ("before", "after the workers started", "inside")[threads - 1]
        assert not different(expected, in_thread(in_block, MODES[mode], threads, when)), threads


@pytest.mark.parametrize("when", ["before", "after the workers started", "inside"])
@pytest.mark.parametrize("mode", [m for m in ("FTZ and DAZ", "FZ") if m in MODES])
def test_modes_change_no_bit_whenever_they_are_set(mode, when, expected):
    assert not different(expected, in_thread(in_block, MODES[mode], 3, when))


@pytest.mark.parametrize("mode", [m for m in MODES if m != "interrupting"])
def test_outside_the_block_the_modes_do_change_bits(mode):
    single = {n: PROBES[n] for n in ("mul", "products that round", "add", "lt", "div", "full")}

    def outside(modes):
        set_modes(modes)
        return results(single)

    assert different(in_thread(outside, 0), in_thread(outside, MODES[mode]))


@pytest.mark.parametrize("mode", MODES)
def test_functions_and_optimizers_without_a_block_have_the_same_bits(mode):
    small, target = IMAGE * 2.0**-126, torch.arange(64) % 5

    def own(modes):
        set_modes(modes)
        x, w = M.clone().requires_grad_(), M[:, :5].t().contiguous().requires_grad_()
        y = functional.linear(x, w, small[0, 0, 0, :5].clone())
        image = functional.conv2d(small, IMAGE[:, :, :3, :3], small[0, 0, 0, :2])
        functional.cross_entropy(y, target).backward()
        optim.clip_grad_norm_([x, w], 2.0**-124)
        optim.AdamW([x, w], lr=1e-3, max_norm=2.0**-124).step()
        assert _modes.changed() == modes
        return {i: as_bits(t.detach()) for i, t in enumerate([y, image, x.grad, w.grad, x, w])}

    assert not different(in_thread(own, 0), in_thread(own, MODES[mode]))


def test_a_change_inside_is_said_and_undone():
    if "FTZ" not in MODES:
        pytest.skip("torch.set_flush_denormal is for x86-64")

    def told():
        with reproducible(), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert torch.set_flush_denormal(True)
            y = TINY * 0.5
            return y, [str(w.message) for w in found], _modes.changed()

    y, messages, left = in_thread(told)
    assert torch.equal(y, TINY * 0.5) and left == 0
    assert len(messages) == 1 and "floating-point modes were changed" in messages[0]
    assert "test_floating.py" in messages[0]


def test_a_library_of_fast_math_that_is_loaded_inside_changes_nothing(tmp_path, top):
    source, built = top / "tests" / "link" / "fastmath.c", tmp_path / "fastmath.so"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", built], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")

    def loaded():
        with reproducible(), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ctypes.CDLL(str(built))
            assert _modes.changed()
            y = TINY * 0.5
            return y, len(found)

    y, warned = in_thread(loaded)
    assert torch.equal(y, TINY * 0.5) and warned == 1


def test_a_child_of_fork_has_its_own_modes():
    if not MODES:
        pytest.skip("modes of this processor are not known")
    code = f"""
import os, torch
from repops.torch import _modes, reproducible
torch.set_num_threads(2)
torch.ones(100000) + 1
team = _modes.Team(1)
team.modes[0] = {next(iter(MODES.values()))}
child = os.fork()
if child == 0:
    _modes.set_back(team)
    with reproducible():
        right = _modes.changed() == 0
    os._exit(0 if right and _modes.changed() == team.modes[0] else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


def _of_float32(place="cpu"):
    """Losses and weights of a model of float32, whatever the default type is."""
    real = {"dtype": torch.float32}
    torch.manual_seed(1)
    with reproducible():
        layers = [torch.nn.Conv2d(2, 4, 3, **real), torch.nn.BatchNorm2d(4, **real)]
        layers += [torch.nn.GELU(), torch.nn.Flatten(), torch.nn.LayerNorm(64, **real)]
        own = torch.nn.Sequential(*layers, torch.nn.Linear(64, 5, **real)).to(place)
        x, y = torch.randn(3, 2, 6, 6, **real).to(place), torch.tensor([0, 3, 4]).to(place)
        kinds = [lambda p: torch.optim.AdamW(p, fused=True), lambda p: optim.SGD(p, max_norm=0.1)]
        kinds.append(lambda p: torch.optim.SGD(p, 0.1, fused=True, momentum=0.9))
        for kind in kinds:
            optimizer = kind(own.parameters())
            optimizer.zero_grad()
            z = F.grid_sample(x, x.permute(0, 2, 3, 1).tanh(), align_corners=False)
            loss = F.cross_entropy(own(z), y) + own(x).norm()
            (loss + F.multi_margin_loss(own(x), y)).backward()
            optim.clip_grad_norm_(own.parameters(), 0.5)
            optimizer.step()
        return loss.dtype, loss.item(), state_hash(own)


def test_the_default_type_changes_no_bits():
    expected = _of_float32()
    torch.set_default_dtype(torch.float64)
    try:
        assert _of_float32() == expected
    finally:
        torch.set_default_dtype(torch.float32)
