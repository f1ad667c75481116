"""Special functions by series, computed in float64 and rounded to float32 once.

Compositions of the library's operators would not be accurate enough, so jobs cannot record these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from . import _here as here
from ._call import Leftover
from ._functions import _float, exp64, narrow, normal_quantile, pow64, sqrt64
from ._registry import handles
from ._special import digamma

Tensor = torch.Tensor

# B(2 j) / (2 j)! for j = 1 to 8.
_BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160]
_BERNOULLI += [-691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000]
_LEAST = -1000.0


def _zeta64(s: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + k)^-s over k >= 0: terms with q + k < 10 one by one, the rest by the
    Euler-Maclaurin formula."""
    if bool((q < _LEAST).any()):
        raise Leftover(f"it has arguments below {_LEAST:.0f}, which would be counted up from")
    s, q = torch.broadcast_tensors(s, q)
    y = torch.zeros_like(q)
    while bool((q < 10.0).any()):
        small = q < 10.0
        y = torch.where(small, y + pow64(q, -s), y)
        q = torch.where(small, q + 1.0, q)
    power = pow64(q, -s)
    y = y + power * (q / (s - 1.0) + 0.5)
    rising, part = s, power / q
    for j, b in enumerate(_BERNOULLI, 1):
        y = y + b * rising * part
        rising = rising * (s + (2 * j - 1)) * (s + 2 * j)
        part = part / (q * q)
    return y


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    """zeta(s, q) with its poles: infinite at q = 0, -1, ... and s = 1; NaN for q < 0 unless s is
    whole."""
    at = torch.where(q == q, q, 1.0)
    y = _zeta64(torch.where(s > 1, s, 2.0), torch.where(at.abs() < 2.0**40, at, 2.0**40))
    y = torch.where((q < 0) & (s != s.floor()), math.nan, y)
    y = torch.where((q <= 0) & (q == q.floor()), math.inf, y)
    y = torch.where(s == 1, math.inf, torch.where(s > 1, y, math.nan))
    y = torch.where(q == math.inf, torch.where(s > 1, 0.0, y), y)
    return torch.where(q == q, y, math.nan)


@handles("special_zeta")
def zeta(s: Any, q: Any) -> Tensor:
    s, q = (v if isinstance(v, Tensor) else here.tensor(float(v)) for v in (s, q))
    return narrow(_zeta, _float(s), _float(q))


@handles("polygamma")
def polygamma(n: int, x: Tensor) -> Tensor:
    """(-1)^(n + 1) n! zeta(n + 1, x), in float64."""
    if n == 0:
        return digamma(x)
    factor = (-1) ** (n + 1) * float(math.factorial(n))
    return narrow(lambda q: factor * _zeta(torch.full_like(q, n + 1.0), q), _float(x))


@handles("special_ndtri")
def ndtri(p: Tensor) -> Tensor:
    """The p-quantile of the normal distribution, to 2^-29."""
    return narrow(lambda q: normal_quantile(q - 0.5, torch.where(q < 0.5, q, 1.0 - q)), _float(p))


# ---- modified Bessel functions of the first kind ----

_EDGE = 20.0


def _bessel(x: Tensor, order: int, scaled: bool) -> Tensor:
    """The power series of x^2 / 4 for |x| < 20, the asymptotic series from there on."""
    size = x.abs()
    q = torch.where(size < _EDGE, size * size * 0.25, 0.0)
    small = torch.ones_like(x)
    for k in range(50, 0, -1):
        small = 1.0 + small * q / (k * (k + order))
    small = small * size * 0.5 if order else small
    part = torch.where(size < _EDGE, 1 / _EDGE, 1.0 / size) * 0.125
    large = torch.ones_like(x)
    for k in range(20, 0, -1):
        large = 1.0 - large * part * ((4 * order - (2 * k - 1) ** 2) / k)
    large = large * sqrt64(part) * (2.0 / math.sqrt(math.pi))
    growth = exp64(-size if scaled else size)
    small, large = (small * growth, large) if scaled else (small, large * growth)
    y = torch.where(size < _EDGE, small, large)
    return torch.where(x < 0, -y, y) if order else y


def _of_order(order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    return lambda x: narrow(lambda v: _bessel(v, order, scaled), _float(x))


for _order in (0, 1):
    _names = [f"special_i{_order}", f"special_modified_bessel_i{_order}"] + ["i0"] * (1 - _order)
    handles(*_names)(_of_order(_order, False))
    handles(f"special_i{_order}e")(_of_order(_order, True))
