"""Comparisons with torch in float64, and comparisons of bits between settings."""

import os
import subprocess
import sys

import torch

from repops.torch import reproducible


def close(ours, exact, relative, absolute=2e-7):
    """Compares within bounds; NaNs and infinities must be where the exact result has them."""
    ours = ours.double()
    error = torch.where((ours == exact) | (ours.isnan() & exact.isnan()), 0.0, (ours - exact).abs())
    assert (error <= relative * exact.nan_to_num().abs() + absolute).all(), error.max()


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


def same_in_settings(module):
    """module.hashed() must be equal with scalar code and one thread, and as set here with one and
    two."""
    own = {"ATEN_CPU_CAPABILITY": "default", "REPOPS_CPU": "scalar", "OMP_NUM_THREADS": "1"}
    name = module.__name__
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}; print({name}.hashed())"],
        env={**os.environ, **own},
        cwd=os.path.dirname(__file__),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert module.hashed() == done.stdout.strip()
