"""NaNs in the block have one bit pattern, the library's and programs'."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs
import repops.torch
from repops.torch._products import FLASH
from repops.torch._registry import FLOAT64, HANDLERS
from repops.torch._routes import OWN

INF, NAN = math.inf, math.nan
CANONICAL = {torch.float32: 0x7FC00000, torch.float64: 0x7FF8000000000000}
COUNT = 20  # covers vector code and its scalar remainder
SIGNS = torch.tensor([1.0, -1.0]).repeat(COUNT // 2)[None, None]


def words(t):
    """The bit patterns of t's NaNs, of which there must be one."""
    t = torch.view_as_real(t) if t.is_complex() else t
    whole = torch.int32 if t.dtype is torch.float32 else torch.int64
    found = t.detach().contiguous()[t.isnan()].view(whole)
    assert len(found)
    return set(found.tolist())


def full(value, dtype=torch.float32):
    return torch.full((COUNT,), value, dtype=dtype)


OPERATIONS = {
    "add": lambda x: x + -x,
    "sub": lambda x: x - x,
    "mul": lambda x: x * 0.0,
    "div": lambda x: x / x,
    "a number": lambda x: x - INF,
    "alpha": lambda x: torch.sub(x, x, alpha=2),
    "in place": lambda x: x.clone().sub_(x),
    "out": lambda x: torch.sub(x, x, out=torch.empty(COUNT)),
    "each": lambda x: torch._foreach_sub([x], [x])[0],
    "negated": lambda x: -(x - x),
    "negated in place": lambda x: (x - x).neg_(),
    "lerp": lambda x: torch.lerp(x, -x, 0.5),
    "addcmul": lambda x: torch.addcmul(x, x, -x),
    "remainder": lambda x: torch.remainder(x, 3.0),
    "mean": lambda x: torch.stack([x, -x]).mean(0),
    "var": lambda x: torch.stack([x, x, x]).var(0),
    "matmul": lambda x: torch.outer(x, x) @ torch.zeros(COUNT, 2),
    "convolution": lambda x: F.conv1d(x.view(1, 1, -1), torch.zeros(1, 1, 3), torch.ones(1)),
    "interpolate": lambda x: F.interpolate(x * SIGNS, 30, mode="linear"),
    "normalize": lambda x: F.normalize(x, dim=0),
    "complex": lambda x: torch.complex(x, x) * torch.complex(x, x),
    "a view": lambda x: torch.stack([x, x]).t().sub(INF),
    "empty beside": lambda x: torch._foreach_sub([x[:0], x], [x[:0], x])[1],
}


def each_in_place(x):
    given = [x.clone()]
    torch._foreach_sub_(given, [x])
    return given[0]


OPERATIONS["each in place"] = each_in_place


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_nan_has_one_pattern(name):
    with repops.torch.reproducible():
        assert words(OPERATIONS[name](full(INF))) == {CANONICAL[torch.float32]}


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "in place"])
def test_a_nan_of_float64_has_one_pattern(name):
    with repops.torch.reproducible():
        x = full(INF, torch.float64)
        assert words(OPERATIONS[name](x)) == {CANONICAL[torch.float64]}


WIDE = {
    **{n: getattr(torch, n, None) or getattr(F, n, None) for n in FLOAT64},
    "leaky_relu_backward": lambda x: torch.ops.aten.leaky_relu_backward(x, x, 0.1, False),
    "softshrink_backward": lambda x: torch.ops.aten.softshrink_backward(x, x, 0.5),
    **{f.__name__: f for f in (torch.neg, torch.abs, torch.round, torch.reciprocal)},
    "a root": lambda x: x**0.5,
    "a root in place": lambda x: x.clone().sqrt_(),
    "the largest": lambda x: torch.maximum(x, x),
}


@pytest.mark.parametrize("where", ["cpu", "device"])
@pytest.mark.parametrize("name", WIDE)
def test_functions_of_float64_give_that_one(request, name, where):
    odd = torch.tensor([-1, 0x7FF0000000000001] * COUNT).view(torch.float64)
    x = torch.cat([odd, torch.tensor([-INF, -2.0], dtype=torch.float64)])
    x = x if where == "cpu" else x.to(request.getfixturevalue("device"))
    with repops.torch.reproducible():
        assert words(WIDE[name](x).cpu()) == {CANONICAL[torch.float64]}


def test_a_nan_of_another_pattern_becomes_that_one():
    odd = torch.full((COUNT,), -1, dtype=torch.int32).view(torch.float32)
    with repops.torch.reproducible():
        assert words(odd) == {-1} and words(odd.clone()) == {-1}  # moves keep bits
        for y in (odd + 1, 1 / odd, odd.exp(), odd.lerp(odd, 0.5), odd.sum(), -odd):
            assert words(y) == {CANONICAL[torch.float32]}
    assert words(odd) == {-1}


def test_other_numbers_stay():
    x = torch.tensor([INF, -INF, 0.0, -0.0, 3e38, -3e38, 2.0**-149, NAN, 1.0])
    with repops.torch.reproducible():
        y = x * 1.0
    assert torch.equal(y.view(torch.int32), x.view(torch.int32))


def test_gradients_have_it_too():
    with repops.torch.reproducible():
        x = full(INF).requires_grad_()
        (x * x - x).sum().backward()
        a, b = full(INF).requires_grad_(), full(0.0).requires_grad_()
        (a / b).backward(full(0.0))
    assert words(b.grad) | words(a.grad) == {CANONICAL[torch.float32]}
    assert x.grad.isinf().all()


def spoiled(*size):
    """Rows of numbers, some with infinities or NaN."""
    x = torch.arange(math.prod(size), dtype=torch.float32).reshape(-1, size[-1]).sin()
    x[1, 0], x[2, 1], x[3, :2] = INF, NAN, torch.tensor([INF, -INF])
    return x.reshape(size)


def by_autograd(f, *inputs):
    own = [x.clone().requires_grad_() for x in inputs]
    y = f(*own)
    return [y, *torch.autograd.grad(y, own, spoiled(*y.shape))]


VARIANTS = {"gelu by tanh", "causal attention"}
# For each handler whose results are not checked for NaNs, a call.
LIBRARYS = {
    "mm": lambda: [torch.mm(spoiled(6, 5), spoiled(5, 4))],
    "bmm": lambda: [torch.bmm(spoiled(2, 6, 5), spoiled(2, 5, 4))],
    "mv": lambda: [torch.mv(spoiled(6, 5), spoiled(5, 5)[:, 0])],
    "dot": lambda: [torch.dot(full(INF), full(0.0))],
    "vdot": lambda: [torch.vdot(full(INF), full(0.0))],
    "linear": lambda: by_autograd(F.linear, spoiled(6, 5), spoiled(4, 5), torch.ones(4)),
    "gelu": lambda: by_autograd(F.gelu, spoiled(6, 5)),
    "gelu by tanh": lambda: by_autograd(lambda x: F.gelu(x, approximate="tanh"), spoiled(6, 5)),
    "layer norm": lambda: by_autograd(
        lambda x, w, b: F.layer_norm(x, (5,), w, b), spoiled(6, 5), torch.ones(5), torch.ones(5)
    ),
    "attention": lambda: by_autograd(
        F.scaled_dot_product_attention, *(spoiled(1, 2, 6, 4) for _ in range(3))
    ),
    "causal attention": lambda: by_autograd(
        lambda *x: F.scaled_dot_product_attention(*x, is_causal=True),
        *(spoiled(1, 2, 6, 4) for _ in range(3)),
    ),
}


@pytest.mark.parametrize("name", LIBRARYS)
def test_what_the_library_computes_has_it_already(name):
    with repops.torch.reproducible():
        made = LIBRARYS[name]()
    found = [words(t) for t in made if t is not None and t.isnan().any()]
    assert found and set().union(*found) == {CANONICAL[torch.float32]}


NAMES = {
    "linear": ("repops::linear_rows", "repops::linear_grads"),
    "gelu": ("gelu", "gelu_backward"),
    "layer norm": ("native_layer_norm", "native_layer_norm_backward"),
    "attention": (FLASH, f"{FLASH}_backward"),
}


def test_all_that_are_not_looked_at_are_tried():
    assert {n for name in LIBRARYS for n in NAMES.get(name, (name,))} - VARIANTS == OWN
    assert OWN <= HANDLERS.keys()


class Spoilt(nn.Module):
    """The state has numbers that give NaNs, whose sign depends on the processor."""

    def __init__(self):
        super().__init__()
        odd = torch.tensor(-1, dtype=torch.int32).view(torch.float32)
        self.register_buffer("x", torch.tensor([INF, -INF, 0.0, odd, 1.0]))
        self.register_buffer("y", torch.zeros(5))
        self.w = nn.Parameter(torch.ones(5))


STEPS = {
    "sub": lambda m: m.x - m.x,
    "add": lambda m: m.x + m.x.neg(),
    "mul": lambda m: m.x * 0.0,
    "div": lambda m: m.x / m.x,
    "neg": lambda m: -(m.x - m.x),
    "abs": lambda m: (m.x - m.x).abs(),
    "alpha": lambda m: torch.sub(m.x, m.x, alpha=3),
    "lerp": lambda m: m.x.lerp(-m.x, 0.25),
    "relu": lambda m: (m.x - m.x).relu(),
    "max": lambda m: torch.maximum(m.x - m.x, m.x),
    "floor": lambda m: m.x.floor(),
    "halves": lambda m: m.x.half().float(),
    "bfloat16": lambda m: m.x.bfloat16().float(),
    "another type": lambda m: torch.where(m.x > 0, m.x, m.x.half()) + 0.0,
    "joined": lambda m: torch.cat([m.x[:2], m.x[2:].half()]) + 0.0,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_job_has_the_blocks_bits(command, tmp_path, name):
    job = repops.jobs.Job(tmp_path / "job", steps=2, checkpoint_interval=1)
    with job:
        model = Spoilt()
        optimizer = torch.optim.SGD([model.w], lr=0.1)

        def step():
            model.y.copy_(STEPS[name](model))
            loss = model.w.square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

    job.capture(step, model, optimizer)
    job.check(2, command)
    y = job.run(tmp_path / "run").torch()["y"]
    assert words(y) == {CANONICAL[torch.float32]}


@pytest.mark.parametrize("rows", [0, 3])
def test_the_mean_of_no_losses_is_that_one(rows):
    x, target = torch.zeros(rows, 4), torch.full((rows,), -100)
    with repops.torch.reproducible():
        loss = F.cross_entropy(x, target)
    assert loss.view(torch.int32).item() == 0x7FC00000
