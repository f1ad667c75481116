"""Optimizer steps: against torch in float64, and torch's fused ones against the library's own."""

import concurrent.futures

import numpy
import pytest
import torch

import repops
from repops.torch import _optimizers, optim, reproducible


def parameters(dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return [
        torch.nn.Parameter(torch.randn(s, generator=generator).to(dtype))
        for s in ((7, 5), (5,), (2, 3, 4, 4), ())
    ]


def gradients():
    generator = torch.Generator().manual_seed(2)
    return [[torch.randn(p.shape, generator=generator) for p in parameters()] for _ in range(6)]


GRADIENTS = gradients()


def steps(optimizer, params, clip=None):
    for step in GRADIENTS:
        for p, g in zip(params, step):
            p.grad = g.to(p.dtype, copy=True)
        if clip:
            torch.nn.utils.clip_grad_norm_(params, clip)
        optimizer.step()
    return [p.detach().clone() for p in params]


TORCH = [
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "fused": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "foreach": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "foreach": False}),
    (torch.optim.AdamW, {"lr": 0.01, "foreach": False, "amsgrad": True}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "fused": True}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "maximize": True, "fused": True}),
    (
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "fused": True},
    ),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "foreach": True}),
    (torch.optim.SGD, {"lr": 0.1, "fused": True}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "foreach": False}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True, "fused": True}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True, "fused": True}),
    (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True, "foreach": True}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "fused": True}),
    (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "fused": True}),
    (torch.optim.RMSprop, {"lr": 0.01, "foreach": False}),
    (torch.optim.Adagrad, {"lr": 0.01, "foreach": False}),
]


@pytest.mark.parametrize("kind, options", TORCH)
def test_optimizers_of_torch(kind, options):
    exact = parameters(torch.float64)
    plain = {k: v for k, v in options.items() if k not in ("fused", "foreach")}
    expected = steps(kind(exact, **plain), exact, 2.0)
    own = parameters()
    with reproducible():
        result = steps(kind(own, **options), own, 2.0)
    for a, b in zip(result, expected):
        assert (a.double() - b).abs().max() < 2e-5


def test_fused_adamw_is_the_library_s():
    one, two = parameters(), parameters()
    with reproducible():
        a = steps(torch.optim.AdamW(one, lr=0.01, weight_decay=0.1, fused=True), one)
    b = steps(optim.AdamW(two, lr=0.01, weight_decay=0.1), two)
    assert all(torch.equal(x, y) for x, y in zip(a, b))


@pytest.mark.parametrize("momentum, nesterov", [(0.0, False), (0.9, False), (0.9, True)])
def test_own_optimizers_against_float64(momentum, nesterov):
    exact, own = parameters(torch.float64), parameters()
    options = {"lr": 0.1, "momentum": momentum, "nesterov": nesterov, "weight_decay": 0.05}
    expected = steps(torch.optim.SGD(exact, **options), exact, 1.5)
    result = steps(optim.SGD(own, **options, max_norm=1.5), own)
    assert all((a.double() - b).abs().max() < 2e-6 for a, b in zip(result, expected))


def test_clipping_is_that_of_the_step():
    one, two = parameters(), parameters()
    a = steps(optim.AdamW(one, lr=0.01, max_norm=1.0), one)
    b = steps(optim.AdamW(two, lr=0.01, max_norm=1e9), two)
    assert any(not torch.equal(x, y) for x, y in zip(a, b))
    for p in one:
        p.grad = torch.ones(p.shape)
    count = sum(p.numel() for p in one)
    assert abs(optim.clip_grad_norm_(one, 1.0).item() - count**0.5) < 1e-4
    assert abs(sum((p.grad**2).sum() for p in one).item() - 1) < 1e-5


def test_a_state_that_was_saved_goes_on():
    whole, part = parameters(), parameters()
    expected = steps(optim.AdamW(whole, lr=0.01), whole)
    first = optim.AdamW(part, lr=0.01)
    for i, step in enumerate(GRADIENTS):
        if i == 3:
            saved = first.state_dict()
            first = optim.AdamW(part, lr=0.01)
            first.load_state_dict(saved)
        for p, g in zip(part, step):
            p.grad = g.clone()
        first.step()
    assert all(torch.equal(p.detach(), e) for p, e in zip(part, expected))


def one_step(kind, width, **options):
    """An optimizer after one step, and its parameter."""
    p = torch.nn.Parameter(torch.ones(width))
    optimizer = kind([p], lr=0.1, **options)
    p.grad = torch.ones(width)
    optimizer.step()
    return optimizer, p


OWN = [(optim.AdamW, {}), (optim.SGD, {"momentum": 0.9})]
FUSED = [
    (torch.optim.AdamW, {"fused": True}),
    (torch.optim.Adam, {"fused": True}),
    (torch.optim.AdamW, {"fused": True, "amsgrad": True}),
    (torch.optim.SGD, {"fused": True, "momentum": 0.9}),
    (torch.optim.SGD, {"fused": True, "momentum": 0.9, "dampening": 0.1}),
    (torch.optim.Adagrad, {"fused": True}),
    (torch.optim.AdamW, {"foreach": True}),
    (torch.optim.AdamW, {"foreach": False}),
    (torch.optim.SGD, {"foreach": True, "momentum": 0.9}),
]


@pytest.mark.parametrize("kind, options", [*OWN, *FUSED])
@pytest.mark.parametrize("widths", [(4, 100000), (100000, 4)])
def test_a_state_of_another_size_is_refused(kind, options, widths):
    with reproducible():
        saved = one_step(kind, widths[0], **options)[0].state_dict()
        optimizer, p = one_step(kind, widths[1], **options)
        before = p.detach().clone()
        optimizer.load_state_dict(saved)
        with pytest.raises((repops.Error, RuntimeError), match=r"size|and its parameter \["):
            optimizer.step()
        if "foreach" not in options:  # otherwise weights are decayed first
            assert torch.equal(p, before)


@pytest.mark.parametrize("kind, options", OWN)
def test_states_and_gradients_that_the_library_does_not_take_are_errors(kind, options):
    def altered(change, text):
        optimizer, p = one_step(kind, (4, 6), **options)
        state = optimizer.state[p]
        name = "exp_avg_sq" if "exp_avg_sq" in state else "momentum_buffer"
        change(state, name, p)
        with pytest.raises(repops.Error, match=text):
            optimizer.step()

    def state_is(make):
        return lambda state, name, p: state.update({name: make(state[name])})

    altered(state_is(lambda t: t.double()), "float64")
    altered(state_is(lambda t: t.to_sparse()), "sparse")
    altered(state_is(lambda t: t.t().contiguous().t()), "do not lie alike")
    altered(state_is(lambda t: torch.empty(8, 6)[::2].copy_(t)), "do not lie alike")
    altered(state_is(lambda t: t[:1].expand(4, 6)), "do not lie alike")
    if kind is optim.AdamW:  # SGD's momentum starts as zeros
        altered(lambda state, name, p: state.pop(name), "a state has")
    altered(lambda state, name, p: setattr(p, "grad", p.grad.to_sparse()), "sparse")


def test_a_gradient_may_lie_otherwise():
    one, two = one_step(optim.AdamW, (4, 6)), one_step(optim.AdamW, (4, 6))
    one[1].grad, two[1].grad = torch.rand(6, 4).t(), None
    two[1].grad = one[1].grad.contiguous()
    one[0].step(), two[0].step()
    assert torch.equal(one[1], two[1])


REFUSED = [
    (optim.AdamW, {"lr": -1.0}, "Invalid learning rate: -1"),
    (optim.AdamW, {"lr": float("nan")}, "Invalid learning rate: nan"),
    (optim.AdamW, {"eps": -1.0}, "Invalid epsilon value"),
    (optim.AdamW, {"betas": (1.5, 2)}, "Invalid beta parameters"),
    (optim.AdamW, {"betas": (0.9, 1.0)}, "Invalid beta parameters"),
    (optim.AdamW, {"weight_decay": -1.0}, "Invalid weight_decay value"),
    (optim.AdamW, {"max_norm": -1.0}, "max_norm is -1"),
    (optim.SGD, {"lr": -1.0}, "Invalid learning rate"),
    (optim.SGD, {"momentum": -1.0}, "Invalid momentum value"),
    (optim.SGD, {"weight_decay": -1.0}, "Invalid weight_decay value"),
    (optim.SGD, {"nesterov": True}, "Nesterov momentum requires a momentum"),
]


@pytest.mark.parametrize("kind, options, text", REFUSED)
def test_options_that_torch_refuses_are_refused(kind, options, text):
    with pytest.raises(ValueError, match=text):
        kind(parameters(), **options)
    if "max_norm" not in options:
        with pytest.raises(ValueError, match=text):
            kind([{"params": parameters(), **options}])


def test_a_norm_below_zero_is_refused():
    with pytest.raises(ValueError, match="max_norm is -1"):
        optim.clip_grad_norm_(parameters(), -1)


def test_an_infinite_norm_of_finite_gradients_shows():
    # As in a job of Verde, whose clip_scale gives NaN. PyTorch's function gives 0.
    own, torch_s = parameters(), parameters()
    for p in (*own, *torch_s):
        p.grad = torch.full_like(p, 1e20)
    assert optim.clip_grad_norm_(own, 1.0) == float("inf")
    assert all(p.grad.isnan().all() for p in own)
    with reproducible():
        assert torch.nn.utils.clip_grad_norm_(torch_s, 1.0) == float("inf")
    assert all((p.grad == 0).all() for p in torch_s)


def test_torch_is_not_asked_about_states_of_another_size():
    # PyTorch's kernel would write out of bounds.
    for policy in ("list", "warn"):
        with reproducible(policy):
            optimizer, p = one_step(torch.optim.AdamW, 100000, fused=True)
            optimizer.state[p]["exp_avg"] = torch.zeros(4)
            with pytest.raises(
                repops.Error, match=r"exp_avg is \[4\], and its parameter \[100000\]"
            ):
                optimizer.step()


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.95])
def test_corrections_are_those_of_the_operator_and_end(beta):
    expected = numpy.zeros(1, "f4")
    for step in range(1, 400):
        expected = repops.bias_correction(expected, beta=beta)
        assert _optimizers.correction(beta, step).item() == expected[0]
    assert _optimizers.correction(beta, 10**12).item() == expected[0]  # from here on the same


def test_threads_that_ask_for_corrections_at_once_get_the_same():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda step: _optimizers.correction(0.9985, step).item(), [3000] * 64)
    expected = numpy.zeros(1, "f4")
    for _ in range(3000):
        expected = repops.bias_correction(expected, beta=0.9985)
    assert set(found) == {expected[0]}
