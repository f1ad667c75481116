"""Steps of optimizers: against torch in float64, and the fused against the library's own."""

import pytest
import torch

from repops.torch import optim, reproducible


def parameters(dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return [
        torch.nn.Parameter(torch.randn(s, generator=generator).to(dtype))
        for s in ((7, 5), (5,), (2, 3, 4, 4))
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
