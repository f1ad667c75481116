"""Comparisons with torch in float64."""

import torch

from repops.torch import reproducible


def close(ours, exact, relative, absolute=2e-7):
    error = (ours.double() - exact).abs()
    assert (error <= relative * exact.abs() + absolute).all(), error.max()


def compare(function, *inputs, absolute=2e-5):
    exact = [t.double().requires_grad_() if t.is_floating_point() else t for t in inputs]
    own = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
    expected = function(*exact)
    weight = torch.randn(expected.shape)
    (expected * weight.double()).sum().backward()
    with reproducible():
        y = function(*own)
        (y * weight).sum().backward()
    close(y.detach(), expected.detach(), 2e-5, absolute)
    for a, b in zip(own, exact):
        if a.is_floating_point() and b.grad is not None:
            close(a.grad, b.grad, 2e-5, absolute)
    return y
