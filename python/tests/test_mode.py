"""The block: what it routes and refuses, views, in-place and out= variants, random numbers."""

import concurrent.futures
import contextlib
import math
import multiprocessing
import os
import threading
import warnings

import numpy
import pytest
import torch
import torch.nn.functional as F
from compare import close, compare

import repops
import repops.torch
from repops.torch import LeftoverError, _mode, _routes, _starts, _whole, reproducible


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# ---- leftovers ----


def test_a_leftover_is_an_error_that_names_it_and_its_place():
    with reproducible(), pytest.raises(LeftoverError) as error:
        torch.special.airy_ai(torch.ones(3))
    assert "aten.special_airy_ai.default" in str(error.value)
    assert f"{__file__}:" in str(error.value)


def test_a_leftover_of_the_backward_pass_is_an_error():
    x = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)
    y = (x @ x).sum()
    with reproducible(), pytest.raises(LeftoverError):
        y.backward()


def test_leftovers_can_be_warnings_or_a_list():
    with (
        reproducible(leftovers="warn"),
        pytest.warns(UserWarning, match="aten.special_airy_ai.default at .*test_mode.py"),
    ):
        torch.special.airy_ai(torch.ones(3))
    with reproducible(leftovers="list") as mode, warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            torch.special.airy_ai(torch.ones(3))
    [((name, reason, place), count)] = mode.leftovers.items()
    assert (
        name == "aten.special_airy_ai.default" and count == 2 and "test_mode.py" in place and reason
    )


def test_an_unknown_policy_is_refused():
    with pytest.raises(repops.Error, match="expected one of"):
        reproducible(leftovers="ignore")


def test_autocast_is_refused_unless_it_is_off():
    x = torch.ones(2, 2)
    with reproducible():
        with (
            torch.autocast("cpu", dtype=torch.bfloat16),
            pytest.raises(LeftoverError, match="autocast"),
        ):
            x @ x
        with torch.autocast("cpu", enabled=False):
            assert (x @ x == 2).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(2, 2, dtype=torch.float64) @ torch.ones(2, 2, dtype=torch.float64),
        lambda: torch.ones(2, 2, dtype=torch.bfloat16).exp(),
        lambda: torch.ones(2, dtype=torch.complex64).log(),
        lambda: torch.fft.fft(torch.ones(4, dtype=torch.float64)),
        lambda: torch.special.airy_ai(torch.ones(3)),
        lambda: torch.linalg.svd(torch.eye(3)),
        lambda: F.scaled_dot_product_attention(*[torch.ones(1, 1, 4, 8, dtype=torch.float64)] * 3),
        lambda: torch.ones(3).to_sparse() + torch.ones(3).to_sparse(),
    ],
)
def test_what_is_not_routed_is_never_silent(call):
    with reproducible(), pytest.raises(LeftoverError):
        call()


def test_integers_are_exact_and_need_no_route():
    with reproducible():
        assert torch.cumsum(torch.arange(5), 0).tolist() == [0, 1, 3, 6, 10]
        assert torch.arange(6).reshape(2, 3).sum().item() == 15
        with pytest.raises(LeftoverError):
            torch.special.airy_ai(torch.arange(1, 4))


def test_compiled_functions_run_eagerly_inside():
    calls = []

    def backend(graph, inputs):
        calls.append(graph)
        return graph.forward

    function = torch.compile(torch.special.airy_ai, backend=backend)
    with reproducible(), pytest.raises(LeftoverError):
        function(torch.ones(3))
    assert not calls


def test_the_package_has_a_shorthand():
    with repops.reproducible() as mode:
        assert isinstance(mode, reproducible)


# ---- values against torch in float64 ----

X = torch.linspace(-6, 6, 401)
UNARY = [
    (torch.exp, 2e-7),
    (torch.tanh, 2e-7),
    (torch.erf, 2e-7),
    (torch.sigmoid, 4e-7),
    (torch.sin, 1e-7),
    (torch.cos, 1e-7),
    (torch.tan, 1e-7),
    (torch.expm1, 1e-7),
    (torch.exp2, 1e-7),
    (torch.sinh, 1e-7),
    (torch.cosh, 1e-7),
    (F.silu, 4e-7),
    (F.gelu, 2e-6),
    (F.softplus, 1e-6),
    (F.logsigmoid, 1e-6),
    (F.elu, 1e-6),
    (lambda x: F.gelu(x, approximate="tanh"), 2e-6),
    (F.relu, 0),
    (F.leaky_relu, 1e-7),
    (F.hardswish, 1e-6),
    (F.hardsigmoid, 1e-6),
    (F.relu6, 0),
    (torch.square, 1e-7),
    (lambda x: x.pow(3), 2e-7),
    (lambda x: x.abs().pow(2.75), 1e-7),
    (lambda x: 1.75**x, 1e-7),
    (lambda x: x.pow(torch.tensor(5.0)), 1e-7),
]
POSITIVE = [
    (torch.log, 2e-7),
    (torch.rsqrt, 2e-7),
    (torch.sqrt, 1e-7),
    (torch.log2, 1e-7),
    (torch.log10, 1e-7),
    (torch.log1p, 1e-7),
    (torch.reciprocal, 1e-7),
    (lambda x: x.pow(-1.5), 1e-7),
    (lambda x: x.pow(-0.5), 2e-7),
]


@pytest.mark.parametrize("function, bound", UNARY + POSITIVE)
def test_functions_of_elements_and_their_gradients(function, bound):
    x = X.abs() + 0.01 if (function, bound) in POSITIVE else X.clone()
    exact = x.double().requires_grad_()
    expected = function(exact)
    expected.sum().backward()
    own = x.clone().requires_grad_()
    with reproducible():
        y = function(own)
        y.sum().backward()
    close(y.detach(), expected.detach(), bound, max(2e-7, bound))
    close(own.grad, exact.grad, 4e-6, 4e-6)


def test_functions_at_their_limits():
    inf = math.inf
    with reproducible():
        assert torch.log(torch.tensor([0.0, inf])).tolist() == [-inf, inf]
        assert torch.log2(torch.tensor([0.0, inf])).tolist() == [-inf, inf]
        assert torch.tensor([0.0, 2.0, inf]).pow(-1.5).tolist()[::2] == [inf, 0.0]
        assert torch.tensor([-8.0, -1.0]).pow(torch.tensor([3.0, 0.5])).isnan().tolist() == [
            False,
            True,
        ]
        assert torch.tensor([-2.0]).pow(torch.tensor([3.0])).item() == -8
        assert torch.exp2(torch.tensor([-1e4, 1e4])).tolist() == [0, inf]
        assert (
            torch.tensor([math.nan]).sin().isnan().all() and torch.tensor([inf]).cos().isnan().all()
        )
        assert torch.erfinv(torch.tensor([-1.0, 0.0, 1.0])).tolist() == [-inf, 0, inf]
    x = torch.linspace(-0.999, 0.999, 1001)
    with reproducible():
        y = torch.erfinv(x)
    close(y, torch.erfinv(x.double()), 1e-7)


def test_sin_of_large_angles():
    x = torch.arange(0, 2**20, 997).float()
    with reproducible():
        y = x.sin()
    close(y, x.double().sin(), 0, 1e-7)


REDUCTIONS = [
    lambda x: x.sum(),
    lambda x: x.sum(0),
    lambda x: x.sum(-1),
    lambda x: x.sum((0, 2)),
    lambda x: x.mean(),
    lambda x: x.mean((1, 2), keepdim=True),
    lambda x: x.var(1),
    lambda x: x.std(),
    lambda x: x.norm(),
    lambda x: x.norm(dim=1),
    lambda x: x.norm(p=1),
    lambda x: x.abs().amax(0),
    lambda x: x.logsumexp(1),
    lambda x: torch.var_mean(x, 0)[0],
    lambda x: x.softmax(1),
    lambda x: x.log_softmax(-1),
    lambda x: x.softmax(0),
    lambda x: F.normalize(x, dim=-1),
    lambda x: F.cosine_similarity(x[0], x[1], dim=0),
]


@pytest.mark.parametrize("function", REDUCTIONS)
def test_reductions_and_their_gradients(function):
    x = torch.randn(5, 70, 33)
    compare(function, x)


LAYERS = [
    (lambda a, b: a @ b, (3, 40, 50), (50, 7)),
    (lambda a, b: a @ b, (3, 40, 50), (3, 50, 7)),
    (lambda a, b: torch.einsum("bij,kj->bik", a, b), (3, 4, 5), (6, 5)),
    (lambda a, b: a @ b, (50,), (50,)),
    (lambda a, b: a @ b, (3, 50), (50,)),
    (lambda a, b, c: F.linear(a, b, c), (2, 9, 30), (20, 30), (20,)),
    (lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), (4, 6), (4, 5), (5, 6)),
    (lambda a, b, c: torch.baddbmm(a, b, c), (2, 4, 6), (2, 4, 5), (2, 5, 6)),
    (lambda a, b, c: F.layer_norm(a, (30,), b, c), (4, 9, 30), (30,), (30,)),
    (lambda a: F.layer_norm(a, (9, 30)), (4, 9, 30)),
    (lambda a, b: F.rms_norm(a, (30,), b, 1e-5), (4, 9, 30), (30,)),
    (lambda a, b, c: F.group_norm(a, 3, b, c), (2, 6, 5, 4), (6,), (6,)),
    (lambda a, b, c: F.batch_norm(a, None, None, b, c, True), (8, 6, 5, 4), (6,), (6,)),
    (
        lambda a, b, c: F.batch_norm(
            a, torch.zeros(6, dtype=a.dtype), torch.ones(6, dtype=a.dtype), b, c, False
        ),
        (8, 6, 5, 4),
        (6,),
        (6,),
    ),
    (lambda a, b, c: F.batch_norm(a, None, None, b, c, True), (200, 6), (6,), (6,)),
    (lambda a, b, c: F.conv2d(a, b, c, stride=2, padding=1), (2, 4, 9, 8), (6, 4, 3, 3), (6,)),
    (lambda a, b: F.conv2d(a, b, groups=2, dilation=2), (2, 4, 9, 8), (6, 2, 3, 3)),
    (lambda a, b, c: F.conv2d(a, b, c, stride=(1, 3)), (2, 4, 9, 8), (6, 4, 1, 1), (6,)),
    (lambda a, b, c: F.conv1d(a, b, c, stride=2, padding=1), (2, 4, 19), (6, 4, 3), (6,)),
    (lambda a, b: F.conv1d(a, b, stride=2), (2, 4, 19), (6, 4, 1)),
    (
        lambda a, b, c: F.conv_transpose2d(a, b, c, stride=2, padding=1, output_padding=1),
        (2, 4, 5, 6),
        (4, 6, 3, 3),
        (6,),
    ),
    (lambda a: F.max_pool2d(a, 3, 2, 1), (2, 4, 9, 8)),
    (lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), (2, 4, 9, 8)),
    (lambda a: F.adaptive_avg_pool2d(a, (2, 3)), (2, 4, 8, 9)),
    (lambda a: F.adaptive_avg_pool2d(a, 1), (2, 4, 8, 9)),
    (lambda a, b: F.mse_loss(a, b), (7, 5), (7, 5)),
    (lambda a, b: F.l1_loss(a, b), (7, 5), (7, 5)),
    (lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()), (7, 5), (7, 5)),
    (lambda a, b: torch.lerp(a, b, 0.3), (7, 5), (7, 5)),
    (lambda a, b, c: torch.addcmul(a, b, c, value=0.3), (7, 5), (7, 5), (7, 5)),
    (lambda a, b: torch.addcdiv(a, b, b.abs() + 1, value=0.3), (7, 5), (7, 5)),
    (lambda a, b: torch.add(a, b, alpha=0.3) - torch.sub(a, b, alpha=2) * 3, (7, 5), (7, 5)),
    (lambda a, b: torch.maximum(a, b) + torch.minimum(a, b.abs()), (7, 5), (7, 5)),
    (lambda a, b: F.prelu(a, b), (7, 5, 4), (5,)),
    (lambda a: torch.unsafe_split(a, 3, 1)[1], (7, 8)),
    (lambda a: a.clamp(-0.5, 0.7) + a.clamp(min=0) + a.clamp_max(1), (7, 5)),
    # Swin's windows of an image: six dimensions.
    (
        lambda a: F.gelu(a.roll((-2, -1), (1, 2)).view(2, 2, 4, 3, 4, 5).permute(0, 1, 3, 2, 4, 5)),
        (2, 8, 12, 5),
    ),
]


@pytest.mark.parametrize("case", LAYERS)
def test_layers_and_their_gradients(case):
    function, *shapes = case
    compare(function, *[torch.randn(s) for s in shapes], absolute=5e-5)


ATTENTION = [
    {},
    {"is_causal": True},
    {"scale": 0.3},
    {"attn_mask": torch.tensor([[[[0.0] * 8 + [-math.inf] * 2]], [[[0.0] * 10]]])},
    {"attn_mask": torch.ones(10, 10).tril().bool()},
    {"attn_mask": torch.randn(2, 4, 10, 10)},
]


@pytest.mark.parametrize("options", ATTENTION)
@pytest.mark.parametrize("layout", ["dense", "tokens", "slices"])
def test_attention_and_its_gradients(options, layout):
    def function(x):
        if layout == "dense":
            q, k, v = x.reshape(3, 2, 4, 10, 6)
        elif layout == "tokens":
            q, k, v = x.reshape(3, 2, 10, 4, 6).transpose(2, 3)
        else:
            q, k, v = (
                t.reshape(2, 10, 4, 6).transpose(1, 2) for t in x.reshape(2, 10, 72).split(24, 2)
            )
        mask = options.get("attn_mask")
        mask = mask.to(x.dtype) if mask is not None and mask.is_floating_point() else mask
        return F.scaled_dot_product_attention(
            q, k, v, **{**options, **({} if mask is None else {"attn_mask": mask})}
        )

    compare(function, torch.randn(3 * 2 * 4 * 10 * 6))


def test_attention_of_few_keys_heads_and_dropout():
    q, kv = torch.randn(2, 4, 10, 6), torch.randn(2, 2, 2, 10, 6)
    compare(lambda a, b: F.scaled_dot_product_attention(a, b[0], b[1], enable_gqa=True), q, kv)
    with reproducible():
        torch.manual_seed(1)
        a = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        torch.manual_seed(1)
        assert (a == F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)).all()
        assert (a != F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)).any()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(9, 7), (2, 7, 3, 2)])
def test_cross_entropy(reduction, weighted, shape):
    target = torch.randint(0, 7, (shape[0], *shape[2:]))
    target.view(-1)[1] = -100
    weight = torch.rand(7) if weighted else None

    def function(x):
        w = None if weight is None else weight.to(x.dtype)
        return F.cross_entropy(x, target, w, reduction=reduction)

    compare(function, torch.randn(shape))


def test_embeddings_and_sums_at_places():
    ids = torch.tensor([[1, 4, 1], [0, 1, 2]])
    compare(lambda t: F.embedding(ids, t, padding_idx=2), torch.randn(6, 5))
    compare(lambda t: t[ids], torch.randn(6, 5))
    compare(lambda t: t[ids, torch.tensor([0, 1, 1])], torch.randn(6, 5))
    compare(lambda t: t.gather(1, ids), torch.randn(2, 5))
    compare(lambda t: t.index_select(1, torch.tensor([1, 1, 3])), torch.randn(2, 5))
    compare(
        lambda a, b: a.index_add(1, torch.tensor([1, 1, 3]), b),
        torch.randn(2, 5),
        torch.randn(2, 3),
    )
    compare(lambda a, b: a.scatter_add(0, ids[:, :2], b), torch.randn(6, 2), torch.randn(2, 2))


# ---- views, in-place, out= ----


def test_views_share_memory():
    with reproducible():
        x = torch.zeros(4, 6)
        for view in (
            x.t(),
            x[1:3],
            x.view(2, 12),
            x.transpose(0, 1)[::2],
            x.unfold(1, 2, 2),
            x.diagonal(),
        ):
            view.fill_(1)
        assert x.sum().item() == 24
        assert x.view(-1).data_ptr() == x.data_ptr()


def test_in_place_variants_write_where_they_are_called():
    x = torch.rand(3, 4) + 0.5
    for name, args in [
        ("exp_", ()),
        ("tanh_", ()),
        ("pow_", (2.5,)),
        ("clamp_", (0.6, 0.8)),
        ("addcmul_", (x, x)),
        ("lerp_", (x * 2, 0.3)),
        ("sigmoid_", ()),
        ("sin_", ()),
        ("add_", (x,)),
        ("rsqrt_", ()),
    ]:
        with reproducible():
            base = torch.cat([x, x])
            part = base[:3]
            assert getattr(part, name)(*args) is part
            expected = getattr(x.clone(), name.rstrip("_"))(*args)
            assert torch.equal(base[:3], expected) and torch.equal(base[3:], x), name


def test_relu_in_place_has_its_gradient():
    x = torch.randn(9, requires_grad=True)
    with reproducible():
        F.relu(x * 2, inplace=True).sum().backward()
    assert torch.equal(x.grad, (x > 0) * 2.0)


def test_out_variants_write_what_they_are_given():
    a, b = torch.randn(4, 5), torch.randn(5, 3)
    with reproducible():
        out = torch.empty(4, 3)
        assert torch.mm(a, b, out=out) is out and torch.equal(out, a @ b)
        wide = torch.zeros(4, 6)
        torch.mm(a, b, out=wide[:, ::2])
        assert torch.equal(wide[:, ::2], a @ b) and not wide[:, 1::2].any()
        out = torch.empty(0)
        torch.sum(a, 1, out=out)
        assert torch.equal(out, a.sum(1))
        torch.exp(a, out=out)
        assert torch.equal(out, a.exp())
        values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
        torch.topk(a, 2, out=(values, places))
        assert torch.equal(values, a.topk(2)[0])


MADE = {
    "rand": lambda **k: torch.rand(3, **k),
    "randn": lambda **k: torch.randn(2, 3, **k),
    "rand of a generator": lambda **k: torch.rand(3, generator=torch.manual_seed(5), **k),
    "randperm": lambda **k: torch.randperm(9, **k),
    "randperm of a generator": lambda **k: torch.randperm(9, generator=torch.manual_seed(5), **k),
    "randint": lambda **k: torch.randint(7, (5,), **k),
    "randint from a number": lambda **k: torch.randint(-2, 7, (5,), **k),
    "normal": lambda **k: torch.normal(1.0, 2.0, (3,), **k),
    "arange": lambda **k: torch.arange(5, **k),
    "arange of floats": lambda **k: torch.arange(0.5, 9, 0.3, **k),
    "linspace": lambda **k: torch.linspace(0, 1, 7, **k),
    "logspace": lambda **k: torch.logspace(0, 1, 7, **k),
}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("name", MADE)
def test_numbers_are_made_in_given_tensors(name, kind):
    real = ("rand", "randn", "rand of a generator", "normal", "logspace")
    if kind is torch.int64 and name in real:
        pytest.skip("it makes no integers")
    with reproducible():
        torch.manual_seed(3)
        expected = MADE[name](dtype=kind)
        for _ in range(2):  # the first call is checked
            torch.manual_seed(3)
            out = torch.empty(0, dtype=kind)
            assert MADE[name](out=out) is out and torch.equal(out, expected)


def test_a_result_that_its_tensor_cannot_hold_is_refused():
    with reproducible(), pytest.raises(LeftoverError, match="torch.int64 cannot hold"):
        torch.bernoulli(torch.ones(3), out=torch.empty(3, dtype=torch.int64))
    with reproducible(), pytest.raises(RuntimeError, match="can't be cast"):
        torch.exp(torch.ones(3), out=torch.empty(3, dtype=torch.int64))


def test_operators_of_lists_are_those_of_their_elements():
    with reproducible():
        xs = [torch.rand(3) + 1, torch.rand(2, 2) + 1]
        ys = [x * 2 for x in xs]
        lists = [
            (
                torch._foreach_add(xs, ys, alpha=0.3),
                [torch.add(x, y, alpha=0.3) for x, y in zip(xs, ys)],
            ),
            (torch._foreach_mul(xs, 1.5), [x * 1.5 for x in xs]),
            (torch._foreach_sqrt(xs), [x.sqrt() for x in xs]),
            (torch._foreach_exp(xs), [x.exp() for x in xs]),
            (torch._foreach_norm(xs), [x.norm() for x in xs]),
            (torch._foreach_norm(xs, math.inf), [x.norm(math.inf) for x in xs]),
            (torch._foreach_pow(xs, 2.5), [x.pow(2.5) for x in xs]),
            (
                torch._foreach_addcdiv(xs, ys, xs, 0.7),
                [torch.addcdiv(x, y, x, value=0.7) for x, y in zip(xs, ys)],
            ),
            (
                torch._foreach_addcmul(xs, ys, xs, [0.7, 2]),
                [torch.addcmul(x, y, x, value=v) for x, y, v in zip(xs, ys, (0.7, 2))],
            ),
            (
                torch._foreach_addcmul(xs, ys, xs, torch.tensor([0.75, 2.0])),
                [torch.addcmul(x, y, x, value=v) for x, y, v in zip(xs, ys, (0.75, 2))],
            ),
            (torch._foreach_lerp(xs, ys, 0.3), [torch.lerp(x, y, 0.3) for x, y in zip(xs, ys)]),
            (torch._foreach_pow(0.9, xs), [torch.pow(0.9, x) for x in xs]),
            (torch._foreach_maximum(xs, 1.5), [x.clamp(min=1.5) for x in xs]),
            (torch._foreach_minimum(xs, [1.5, 1.2]), [xs[0].clamp(max=1.5), xs[1].clamp(max=1.2)]),
            (torch._foreach_maximum(xs, ys), ys),
            (
                torch._foreach_norm(xs, 2, dtype=torch.float64),
                [torch.linalg.vector_norm(x, dtype=torch.float64) for x in xs],
            ),
        ]
        for ours, expected in lists:
            assert all(torch.equal(a, b) for a, b in zip(ours, expected))
        copies = [x.clone() for x in xs]
        torch._foreach_mul_(copies, torch.tensor(3.0))
        torch._foreach_addcdiv_(copies, ys, xs, 0.7)
        assert all(
            torch.equal(c, torch.addcdiv(x * 3, y, x, value=0.7)) for c, x, y in zip(copies, xs, ys)
        )
        torch._foreach_minimum_(copies, [1.0, 4.0])
        assert copies[0].max() == 1 and copies[1].max() <= 4
        torch.ops.aten._foreach_maximum.Scalar_out(xs, 1.5, out=copies)
        assert all(torch.equal(c, x.clamp(min=1.5)) for c, x in zip(copies, xs))


WRONG_LISTS = {
    "fewer tensors": lambda x: torch._foreach_maximum(x, x[:1]),
    "more tensors": lambda x: torch._foreach_pow(x, x + x),
    "more numbers": lambda x: torch._foreach_maximum(x, [1.0, 2.0, 3.0]),
    "more numbers in a tensor": lambda x: torch._foreach_addcmul(x, x, x, torch.ones(3)),
    "a tensor of no dimension": lambda x: torch._foreach_addcmul(x, x, x, torch.tensor(3.0)),
    "no tensor": lambda x: torch._foreach_norm([]),
    "a narrower type": lambda x: torch._foreach_norm([v.double() for v in x], 2, torch.float32),
}


@pytest.mark.parametrize("name", WRONG_LISTS)
def test_wrong_lists_have_the_error_of_torch(name):
    xs, errors = [torch.ones(3), torch.ones(2)], []
    for block in (contextlib.nullcontext(), reproducible()):
        with block, pytest.raises(RuntimeError) as error:
            WRONG_LISTS[name](xs)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


def test_layouts_of_memory_do_not_change_bits():
    x, w = torch.randn(2, 4, 9, 8), torch.randn(6, 4, 3, 3)
    with reproducible():
        for function in (
            lambda t: F.conv2d(t, w),
            lambda t: F.max_pool2d(t, 2),
            F.gelu,
            lambda t: t.sum((0, 2, 3)),
            lambda t: F.batch_norm(t, None, None, training=True),
            lambda t: t.norm(),
        ):
            last = x.contiguous(memory_format=torch.channels_last)
            assert torch.equal(function(x), function(last))
        assert F.conv2d(last, w).is_contiguous(memory_format=torch.channels_last)
        assert F.conv2d(x, w).is_contiguous()


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_windows_of_one_tap_have_the_bits_of_conv2d(stride, order):
    x = torch.randn(3, 300, 9, 8).to(memory_format=order).requires_grad_()
    w = torch.randn(40, 300, 1, 1).to(memory_format=order).requires_grad_()
    with reproducible():
        y = F.conv2d(x, w, stride=stride)
        dy = torch.randn(y.shape).to(memory_format=order)
        y.backward(dy)
        norm = w.grad.norm()
    assert w.grad.stride() == w.stride() and norm.item() > 0
    a, d = (t.detach().permute(0, 2, 3, 1).contiguous() for t in (x, dy))
    b, at = w.detach().permute(2, 3, 1, 0).contiguous(), dict(zip(("stride_h", "stride_w"), stride))
    for own, theirs in (
        (y.permute(0, 2, 3, 1), repops.conv2d(a, b, **at)),
        (x.grad.permute(0, 2, 3, 1), repops.conv2d_dx(d, b, **at, shape=list(a.shape))),
        (w.grad.permute(2, 3, 1, 0), repops.conv2d_dw(a, d, **at, shape=list(b.shape))),
    ):
        assert own.detach().contiguous().numpy().tobytes() == theirs.numpy().tobytes()


def test_orders_of_weights_change_no_bit_and_gradients_keep_them():
    for shape, groups in (
        ((6, 4, 3, 3), 1),
        ((6, 4, 1, 1), 1),
        ((8, 1, 5, 3), 8),
        ((40, 33, 3, 3), 1),
    ):
        x = torch.randn(3, shape[1] * groups, 9, 8)
        w = torch.randn(shape)
        orders = [
            w,
            w.contiguous(memory_format=torch.channels_last),
            w.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        ]
        results = []
        for own in orders:
            with reproducible():
                own = own.detach().requires_grad_()
                a = x.clone().requires_grad_()
                y = F.conv2d(a, own, padding=1, groups=groups)
                y.square().sum().backward()
                results.append((y.detach(), a.grad, own.grad, own.grad.norm()))
            assert own.grad.stride() == own.stride()
        for other in results[1:]:
            assert all(torch.equal(p, q) for p, q in zip(results[0], other))


def test_pooling_wider_than_the_image():
    for size in (1, 2, 3):
        x = torch.randn(2, 3, 5, size, requires_grad=True)
        plain = x.detach().clone().requires_grad_()
        F.max_pool2d(plain, (3, 5), 1, (1, 2)).square().sum().backward()
        with reproducible():
            F.max_pool2d(x, (3, 5), 1, (1, 2)).square().sum().backward()
        assert torch.allclose(x.grad, plain.grad)


def test_no_elements():
    with reproducible():
        assert torch.empty(0, 3).sum(0).tolist() == [0, 0, 0]
        assert torch.empty(0, 3).sum(1).shape == (0,)
        assert torch.empty(0).norm().item() == 0
        assert (torch.empty(2, 0) @ torch.empty(0, 3)).tolist() == [[0] * 3] * 2
        assert torch.empty(0, 4).exp().shape == (0, 4)


# ---- random numbers ----

DRAWS = [
    lambda: torch.rand(5),
    lambda: torch.randn(5),
    lambda: torch.empty(5).uniform_(2, 3),
    lambda: torch.randperm(7),
    lambda: torch.empty(5).normal_(1, 2),
    lambda: torch.randint(0, 100, (5,)),
    lambda: torch.empty(5).exponential_(),
    lambda: torch.bernoulli(torch.full((9,), 0.5)),
    lambda: F.dropout(torch.ones(9)),
    lambda: torch.rand_like(torch.ones(3)),
    lambda: torch.multinomial(torch.ones(9), 4),
    lambda: torch.multinomial(torch.ones(9), 20, replacement=True),
    lambda: torch.normal(torch.zeros(4), torch.ones(4)),
    lambda: torch.normal(0.0, 1.0, (4,)),
    lambda: torch.normal(torch.zeros(4), 2.0),
    lambda: torch.nn.init.trunc_normal_(torch.empty(9)),
    lambda: torch.nn.init.kaiming_normal_(torch.empty(3, 4)),
    lambda: torch.empty(5, dtype=torch.int64).random_(10),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_state_of_the_generator_says_which_numbers_follow(draw):
    with reproducible():
        state = torch.get_rng_state()
        first, second = draw(), draw()
        with torch.random.fork_rng(devices=[]):
            draw()
        third = draw()
        torch.set_rng_state(state)
        assert (
            torch.equal(draw(), first)
            and torch.equal(draw(), second)
            and torch.equal(draw(), third)
        )
        assert not torch.equal(first, second)


def test_a_generator_of_ones_own_is_used():
    with reproducible():
        state = torch.get_rng_state()
        one = torch.randn(5, generator=torch.Generator().manual_seed(3))
        assert torch.equal(one, torch.randn(5, generator=torch.Generator().manual_seed(3)))
        assert torch.equal(state, torch.get_rng_state())


def test_distributions():
    with reproducible():
        u, n, e = torch.rand(40000), torch.randn(40000), torch.empty(40000).exponential_(2)
        kept = F.dropout(torch.ones(40000), 0.25)
        i = torch.randint(-3, 4, (40000,))
        picked = torch.multinomial(torch.tensor([1.0, 2.0, 0.0, 5.0]), 40000, replacement=True)
    assert (
        0 <= u.min()
        and u.max() < 1
        and abs(u.mean() - 0.5) < 0.01
        and abs(u.var() - 1 / 12) < 0.005
    )
    assert abs(n.mean()) < 0.02 and abs(n.std() - 1) < 0.02 and abs(e.mean() - 0.5) < 0.02
    assert set(kept.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert abs((kept == 0).float().mean() - 0.25) < 0.02
    assert set(i.tolist()) == set(range(-3, 4)) and abs(i.float().mean()) < 0.05
    share = torch.bincount(picked, minlength=4) / 40000
    assert share[2] == 0 and (share - torch.tensor([1, 2, 0, 5]) / 8).abs().max() < 0.02


def test_checkpointing_repeats_the_numbers_of_dropout():
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 8))
    gradients = []
    for again in (False, True):
        x = torch.ones(4, 8, requires_grad=True)
        with reproducible():
            torch.manual_seed(5)
            y = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
            y.sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_a_loader_shuffles_by_its_seed():
    data = list(range(20))
    with reproducible():
        orders = []
        for noise in (0, 3):
            torch.rand(noise)
            batches = repops.torch.data.loader(data, seed=4, batch_size=6, shuffle=True)
            orders.append([b.tolist() for b in batches])
    assert orders[0] == orders[1] and sum(orders[0], []) != data


class Noisy(torch.utils.data.Dataset):
    """Items that draw random numbers and compute."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.randn(3).exp() * i


def test_workers_of_a_loader_are_in_the_block_however_they_start():
    def items(start):
        return list(
            repops.torch.data.loader(
                Noisy(), seed=4, batch_size=2, num_workers=1, multiprocessing_context=start
            )
        )

    _starts._told.clear()
    with reproducible(), warnings.catch_warnings():
        warnings.filterwarnings("error", "a process that starts in the block")
        forked, spawned = items("fork"), items("spawn")
    assert len(forked) == len(spawned) == 2
    assert all(torch.equal(a, b) for a, b in zip(forked, spawned))
    outside = items("spawn")
    assert not any(torch.equal(a, b) for a, b in zip(outside, spawned))


def test_a_loader_keeps_a_worker_init_fn_of_ones_own():
    seen = []
    loader = repops.torch.data.loader([1], seed=4, worker_init_fn=seen.append)
    loader.worker_init_fn(3)
    assert seen == [3]


def test_a_block_that_cannot_start_leaves_nothing_behind():
    from torch._dynamo import eval_frame

    before, stance = repops.current(), eval_frame._stance
    with pytest.raises(repops.Error, match="threads"), reproducible(threads=-1):
        pass
    assert repops.current() is before and eval_frame._stance == stance
    with reproducible():
        assert eval_frame._stance != stance
    assert eval_frame._stance == stance


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_library_computes_with_torchs_threads(two_threads):
    assert _mode.torch_parallel()
    x = torch.randn(600, 600)
    with reproducible():
        x @ x  # starts torch's threads
        before = len(os.listdir("/proc/self/task"))
        x @ x
        x.exp()
        assert len(os.listdir("/proc/self/task")) == before and repops.current().threads == 2


def test_threads_are_torchs_too_and_only_inside(two_threads):
    with reproducible(threads=3):
        assert torch.get_num_threads() == repops.current().threads == 3
        with reproducible():
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == 2


def test_a_child_of_fork_computes_alone(two_threads):
    x = torch.randn(600, 600)
    with reproducible():
        y = x @ x
        child = os.fork()
        if child == 0:
            os._exit(0 if torch.equal(x @ x, y) else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_cross_entropy_is_torchs_own_after_the_last_block():
    x, target = torch.randn(7, 5), torch.arange(7) % 5
    plain = F.cross_entropy(x, target)
    inner, outer = reproducible(), reproducible()
    with outer:
        own = F.cross_entropy(x, target)
        with inner:
            assert torch.equal(F.cross_entropy(x, target), own)
        with torch.inference_mode():
            assert torch.equal(F.cross_entropy(x, target), own)
        assert torch.equal(torch.nn.CrossEntropyLoss()(x, target), own)
        others = []
        thread = threading.Thread(target=lambda: others.append(F.cross_entropy(x, target)))
        thread.start()
        thread.join()
        assert torch.equal(others[0], plain)  # that thread is outside of the block
    assert _whole._kernels is None and torch.equal(F.cross_entropy(x, target), plain)


def test_sparse_inputs_are_refused_by_name():
    w = torch.randn(5, 7).to_sparse_csr()
    with reproducible(), pytest.raises(LeftoverError, match="mm.default"):
        w @ w.t()


def test_errors_and_leftovers_of_what_torch_computes():
    z = torch.ones(2, dtype=torch.complex128)
    with reproducible():
        for _ in range(2):  # the second time the route is cached
            with pytest.raises(RuntimeError, match="shape '\\[2\\]' is invalid"):
                torch.ones(3).view(2)
            with pytest.raises(LeftoverError, match="add.Tensor at .*complex"):
                z + z
    with reproducible(leftovers="list") as block:
        assert all(torch.equal(z + z, torch.full((2,), 2, dtype=z.dtype)) for _ in range(2))
    assert sum(block.leftovers.values()) == 2


def test_square_roots_in_float64_are_rounded_as_ieee_754_says():
    from repops.torch._functions import sqrt64

    scale = torch.tensor([2.0 ** (i % 2000 - 1000) for i in range(4099)], dtype=torch.float64)
    x = torch.rand(4099, dtype=torch.float64) * scale
    assert sqrt64(x).tolist() == [math.sqrt(v) for v in x.tolist()]
    assert sqrt64(x[::2]).tolist() == [math.sqrt(v) for v in x[::2].tolist()]
    assert sqrt64(torch.tensor(-1.0, dtype=torch.float64)).isnan() and not sqrt64(x[0]).dim()


def test_an_encoder_is_evaluated_without_torchs_fast_path():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    own, x = torch.nn.TransformerEncoder(layer, 1).eval(), torch.randn(2, 3, 8)
    pad = torch.tensor([[False, False, False], [False, False, True]])
    with torch.no_grad():
        expected = own(x, src_key_padding_mask=pad)
        with reproducible():
            y = own(x, src_key_padding_mask=pad)
    assert torch.backends.mha.get_fastpath_enabled()
    close(y[~pad], expected[~pad].double(), 1e-5, 1e-5)


def numbers(*shape):
    return ((torch.arange(math.prod(shape)) * 7 % 11).reshape(shape) / 8).requires_grad_()


def test_attention_of_jagged_tensors():
    drawn, ends = numbers(18, 2, 8).detach(), ([0, 3, 8, 9], [0, 1, 11, 18])

    def attended(kind):
        q, k = (
            torch.nested.nested_tensor_from_jagged(drawn[: at[-1]].to(kind), torch.tensor(at))
            for at in ends
        )
        given = [t.detach().requires_grad_() for t in (q, k)]
        q, k = (t.transpose(1, 2) for t in given)
        y = F.scaled_dot_product_attention(q, k * 2, k)
        assert y.is_nested and y.dim() == 4 and y.shape[:2] == q.shape[:2]
        y = y.transpose(1, 2).flatten(-2).values()
        return [y.detach(), *(g.values() for g in torch.autograd.grad(y.square().sum(), given))]

    exact = attended(torch.float64)
    with reproducible():
        ours = attended(torch.float32)
    for own, wanted in zip(ours, exact, strict=True):
        close(own, wanted, 1e-5, 1e-5)


def nested(*shapes):
    return torch.nested.nested_tensor([numbers(*s) for s in shapes], requires_grad=True)


def nested_layer():
    x, w, b = nested((2, 3), (4, 3)), numbers(5, 3), numbers(5)
    y = list(F.linear(x, w, b).unbind())
    torch.cat(y).sum().backward()
    return [*y, w.grad, b.grad, *x.grad.unbind()]


def nested_product():
    a, b = nested((2, 3), (4, 3)), nested((3, 5), (3, 7))
    return list((a @ b).unbind())


def filtered():
    x, kernel = numbers(16), numbers(16)
    y = torch.fft.irfft(torch.fft.rfft(x.double(), 32) * torch.fft.rfft(kernel.double(), 32))
    (y * y).sum().backward()
    return [y, x.grad, kernel.grad]


LEFT = {
    "a layer of nested tensors": nested_layer,
    "products of nested tensors": nested_product,
    "FFT of float64": filtered,
    "eigenvalues": lambda: list(torch.linalg.eigh(numbers(4, 4) + 4 * torch.eye(4))),
}


@pytest.mark.parametrize("policy", ["list", "warn"])
@pytest.mark.parametrize("name", LEFT)
def test_leftovers_and_their_gradients_are_those_of_torch(name, policy):
    expected = LEFT[name]()
    with warnings.catch_warnings(), reproducible(policy) as block:
        warnings.simplefilter("ignore")
        own = LEFT[name]()
    assert block.leftovers and len(own) == len(expected)
    assert all(torch.equal(a, b) for a, b in zip(own, expected))


def test_what_the_block_cannot_compute_is_torchs_or_an_error_of_torchs():
    def broken(*arguments, **options):
        raise ValueError("broken")

    func, x = torch.ops.aten.cumsum.default, torch.ones(3)
    with pytest.MonkeyPatch.context() as patch, reproducible("list") as block:
        patch.setitem(_routes.routes, func, broken)
        assert x.cumsum(0).tolist() == [1, 2, 3]
        assert [reason for _, reason, _ in block.leftovers] == [
            "the block cannot compute it: broken"
        ]
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.cumsum(2)
        assert sum(block.leftovers.values()) == 1
    with pytest.MonkeyPatch.context() as patch, reproducible():
        patch.setitem(_routes.routes, func, broken)
        with pytest.raises(ValueError, match="broken"):
            x.cumsum(0)


def test_a_fused_step_that_is_left_to_torch_is_done_once():
    def stepped(inside):
        a, b = torch.nn.Parameter(torch.ones(4)), torch.nn.Parameter(torch.ones(8, 2)[:, 0])
        optimizer = torch.optim.AdamW([a, b], lr=0.1, fused=True, amsgrad=True)
        for p in (a, b):
            p.grad = torch.full(p.shape, 0.5)
            optimizer.state[p] = {
                n: torch.zeros_like(p) for n in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
            }
            optimizer.state[p]["step"] = torch.tensor(0.0)
        optimizer.state[b]["exp_avg"] = torch.zeros(8, dtype=torch.float64)
        try:
            with inside:
                optimizer.step()
        except RuntimeError:  # the optimizer does not take other types
            pass
        return a.detach()

    assert torch.equal(stepped(reproducible("list")), stepped(contextlib.nullcontext()))


# ---- float64, masks, complex numbers: what is exact, or moves ----

WIDE = torch.linspace(0.3, 5.0, 15, dtype=torch.float64).reshape(5, 3)
EXACT_WIDE = {
    "sqrt": lambda x: x.sqrt(),
    "sqrt in place": lambda x: x.clone().sqrt_(),
    "sqrt of lists": lambda x: torch._foreach_sqrt([x, x.t()])[1],
    "pow of a half": lambda x: x**0.5,
    "pow of minus a half": lambda x: x**-0.5,
    "pow of none": lambda x: x**0,
    "square": lambda x: x.square(),
    "arithmetic": lambda x: (1 - x) * x / (x + 0.1) - x.reciprocal(),
    "relu": lambda x: (x - 1).relu(),
    "comparisons": lambda x: torch.where(x < x.flip(0), x, torch.maximum(x, x.roll(1))),
    "selection": lambda x: torch.cat([x[[1, 0]], x.amax(1, keepdim=True).expand(5, 3)]).sort()[0],
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
    "rsqrt": lambda x: x.rsqrt(),
    "extremes": lambda x: torch.fmax(x, x.roll(1)) - torch.fmin(x, 2.0 - x) + x.aminmax()[1],
    "shrinking": lambda x: F.hardshrink(x - 2) + F.softshrink(x - 2) + F.threshold(x, 2, 0.5),
    "angles": lambda x: x.rad2deg() - x.deg2rad(),
    "blocks": lambda x: torch.block_diag(x, x.rot90()) + x.count_nonzero(),
    "running extremes": lambda x: x.cummax(0)[0] + x.roll(2, 0).cummin(1)[0],
    "places": lambda x: x.take(torch.tensor([3, 1])),
}

# The gradients of these add numbers, or round in another order.
OTHER_SLOPES = set("selection extremes places".split())
OTHER_SLOPES |= {"sqrt of lists", "pow of minus a half", "running extremes"}


def gradient_of(function):
    x = WIDE.clone().requires_grad_()
    y = function(x)
    y.backward(torch.ones_like(y))
    return x.grad


@pytest.mark.parametrize("name", EXACT_WIDE)
def test_operations_of_float64_that_ieee_754_rounds_are_taken(name):
    function = EXACT_WIDE[name]
    expected, slope = function(WIDE), gradient_of(function) if name != "sqrt of lists" else None
    with reproducible():
        y = function(WIDE)
        assert y.dtype is torch.float64 and (y - expected).abs().max() <= 2.0**-48
        if name not in OTHER_SLOPES:
            assert (gradient_of(function) - slope).abs().max() <= 2.0**-46


def test_square_roots_of_float64_are_numpys():
    x = torch.rand(5000, dtype=torch.float64)
    with reproducible():
        assert (x.sqrt().numpy() == numpy.sqrt(x.numpy())).all()
        assert torch.tensor(15.0, dtype=torch.float64).sqrt().item() == math.sqrt(15.0)


def test_masks_become_sparse_and_complex_numbers_pairs():
    mask, pairs = torch.rand(4, 4) > 0.5, torch.randn(3, 2, requires_grad=True)
    with reproducible():
        sparse = mask.to_sparse()
        assert torch.equal(sparse.indices(), mask.nonzero().t())
        assert torch.equal(sparse.to_dense(), mask)
        z = torch.view_as_complex(pairs)
        assert torch.equal(z, torch.complex(pairs[:, 0], pairs[:, 1]))
        again = torch.view_as_real(z)
        again.backward(torch.ones(3, 2))
        assert torch.equal(again, pairs) and torch.equal(pairs.grad, torch.ones(3, 2))


def test_a_factor_of_zero_is_not_multiplied_by_nan():
    one, nan = torch.ones(2, 2), torch.full((2, 2), math.nan)
    with reproducible():
        for y in (
            torch.addmm(one, nan, nan, alpha=0),
            torch.addmm(one[0], nan, nan, alpha=0),
            torch.baddbmm(one[None], nan[None], nan[None], alpha=0),
            torch.addmv(one[0], nan, nan[0], alpha=0),
            torch.addmm(nan, one, one, beta=0, alpha=0.5),
        ):
            assert (y == 1).all()
        assert (torch.addmm(nan, nan, nan, beta=0, alpha=0) == 0).all()


# ---- threads and processes outside of the block ----


def warned(start):
    _starts._told.clear()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with reproducible():
            for _ in range(2):
                start()
    return [str(w.message) for w in found if "starts in the block" in str(w.message)]


def in_a_thread():
    thread = threading.Thread(target=torch.ones, args=(3,))
    thread.start()
    thread.join()


def in_a_pool():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(torch.ones, 3).result()


def process(method):
    child = multiprocessing.get_context(method).Process(target=int)
    child.start()
    child.join()


@pytest.mark.parametrize(
    "what, start",
    [
        ("a thread", in_a_thread),
        ("a thread", in_a_pool),
        ("a process", lambda: process("spawn")),
        (None, lambda: process("fork")),
    ],
)
def test_a_thread_or_process_that_is_in_no_block_is_told_once(what, start):
    messages = warned(start)
    assert len(messages) == (1 if what else 0)
    assert not what or messages[0].startswith(f"{what} that starts in the block is in none")


def test_a_block_that_another_thread_is_in_cannot_be_entered():
    block, errors = reproducible(), []

    def other():
        try:
            with block:
                pass
        except repops.Error as error:
            errors.append(str(error))

    def started():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

    with block, block:
        started()
        assert _whole.active() is block
    assert len(errors) == 1 and "a block of its own" in errors[0]
    started()
    with block:
        assert _whole.active() is block
    assert len(errors) == 1 and _whole.active() is None


def test_threads_start_as_ever_outside_the_block():
    before = threading.Thread.start
    with reproducible():
        assert threading.Thread.start is not before
    assert threading.Thread.start is before
    _starts._told.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_a_thread()
