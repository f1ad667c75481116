"""Special functions that are compositions of the library's operators, in float32.

Each operation is rounded by itself, so that a job can record them. Errors are stated
where they are more than some units of the last place.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ._call import elementwise, need
from ._elements import logaddexp, maximum, minimum
from ._functions import _float
from ._registry import handles

Tensor = torch.Tensor


def _exp(x: Tensor) -> Tensor:
    return elementwise("exp", (), x)


def _log(x: Tensor) -> Tensor:
    return elementwise("log", (), x)


def _polynomial(z: Tensor, coefficients: list[float]) -> Tensor:
    """Horner's scheme; coefficients from the highest power to the lowest."""
    y = torch.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        y = y * z + c
    return y


# ---- the gamma function ----

# (-1)^k (zeta(k) - 1) / k for k = 13 down to 2; then 1 - Euler's constant; then 0.
_ZETA_LESS_1 = (
    [0.644934066848, 0.20205690316, 0.0823232337111, 0.0369277551434, 0.0173430619844]
    + [0.00834927738192, 0.00407735619794, 0.00200839282608, 0.000994575127818]
    + [0.000494188604119, 0.000246086553308, 0.000122713347579]
)
_AROUND_2 = [
    *reversed([(-1) ** k * z / k for k, z in enumerate(_ZETA_LESS_1, 2)]),
    0.42278433509846713,
    0.0,
]
_STIRLING = [1 / 1260, -1 / 360, 1 / 12]
_LARGE = 6.5


def _from_poles(x: Tensor) -> Tensor:
    """pi times the difference of x and the nearest whole number, which is exact before the
    product."""
    return (x - x.round()) * math.pi


def _log_gamma(x: Tensor) -> Tensor:
    """For x > 0. Below 6.5 x is moved to within 1/2 of 2, where a series is evaluated, and products
    of x, x + 1 ... or x - 1, x - 2 ... correct for that; from 6.5 on Stirling's formula."""
    below, near = torch.ones_like(x), x
    for least in (1.5, 0.5):
        smaller = x < least
        below = torch.where(smaller, below * near, below)
        near = torch.where(smaller, near + 1.0, near)
    above = torch.ones_like(x)
    for i in range(1, 5):
        larger = x - float(i) >= 1.5
        above = torch.where(larger, above * (x - float(i)), above)
        near = torch.where(larger, x - float(i), near)
    small = _polynomial(near - 2.0, _AROUND_2) + _log(above) - _log(below)
    log, part = _log(x), 1.0 / x
    tail = part * _polynomial(part * part, _STIRLING) + 0.5 * math.log(2 * math.pi)
    large = x * (log - 1.0) - 0.5 * log + tail
    return torch.where(x < _LARGE, small, large)


@handles("lgamma")
def log_gamma(x: Tensor) -> Tensor:
    """The error is at most 2^-21 of the larger of |value| and 1 for x > 0. For x < 0, where zeros
    lie near each pole, it is at most 2^-21 of the largest of the three added terms. Infinite at the
    poles."""
    x = _float(x)
    need(x)
    size = x.abs()
    y = _log_gamma(size)
    sine = elementwise("sin", (), _from_poles(torch.where(size < math.inf, x, 0.0))).abs()
    reflected = math.log(math.pi) - _log(size) - _log(sine) - y
    y = torch.where((x < 0) & (size > 0), reflected, y)
    return torch.where(size == math.inf, size, y)


@handles("digamma", "special_digamma")
def digamma(x: Tensor) -> Tensor:
    """From 6 on the asymptotic series; below 6 the recurrence with 1 / x; below 0 reflection. The
    error is at most 2^-20 of the larger of |value| and 1."""
    x = _float(x)
    need(x)
    size, less = x.abs(), torch.zeros_like(x)
    at = size
    for _ in range(6):
        small = at < 6.0
        less = torch.where(small, less + 1.0 / at, less)
        at = torch.where(small, at + 1.0, at)
    part = 1.0 / (at * at)
    series = part * _polynomial(part, [-1 / 252, 1 / 120, -1 / 12])
    y = _log(at) - 0.5 / at + series - less
    slope = math.pi / elementwise("tan", (), _from_poles(torch.where(size < math.inf, x, 0.0)))
    pole = (x < 0) & (x == x.round())
    y = torch.where(x < 0, y + 1.0 / size - slope, y)
    y = torch.where(size < 2.0**-40, -1.0 / x, y)
    return torch.where(pole, math.nan, y)


@handles("mvlgamma")
def log_gamma_of_matrices(x: Tensor, p: int) -> Tensor:
    y = torch.full_like(_float(x), p * (p - 1) / 4 * math.log(math.pi))
    for i in range(p):
        y = y + log_gamma(_float(x) - i / 2)
    return y


# ---- tails of the normal distribution ----

# For x >= 0, (1 + 2 x) exp(x^2) erfc(x) is this polynomial in (x - 3) / (x + 3), interpolated at
# Chebyshev points. Relative error 5e-9; 2^-22 with float32's rounding.
_TAIL = [
    *[7.731024228e-05, -9.254516683e-05, -0.0007264536791, 0.001875079124, 0.00249911687],
    *[-0.02376357644, 0.06831656777, -0.1192752753, 0.1296441143, -0.04756215693],
    *[-0.1356210694, 1.253008056],
]


def _scaled_tail(x: Tensor) -> Tensor:
    """exp(x^2) erfc(x) for x >= 0."""
    y = _polynomial(1.0 - 6.0 / (x + 3.0), _TAIL)
    return y / (1.0 + 2.0 * x)


def _gauss(x: Tensor, factor: float) -> Tensor:
    """exp(factor x^2). x is split into 12 high bits, whose square is exact, and the rest, which
    gives a second factor."""
    x = torch.where(x.abs() < 2.0**60, x, 2.0**60)
    c = x * 4097.0
    high = c - (c - x)
    return _exp(high * high * factor) * _exp((x - high) * (x + high) * factor)


@handles("erfc", "special_erfc")
def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), accurate where it is small, too."""
    x = _float(x)
    need(x)
    size = x.abs()
    tail = _scaled_tail(size) * _gauss(size, -1.0)
    near = 1.0 - elementwise("erf", (), x)
    return torch.where(size < 0.5, near, torch.where(x < 0, 2.0 - tail, tail))


@handles("special_erfcx")
def scaled_erfc(x: Tensor) -> Tensor:
    """exp(x^2) erfc(x)."""
    x = _float(x)
    need(x)
    size = x.abs()
    tail = _scaled_tail(size)
    return torch.where(x < 0, 2.0 * _gauss(size, 1.0) - tail, tail)


@handles("special_log_ndtr")
def log_normal_probability(x: Tensor) -> Tensor:
    """Below -1 the logarithm of the scaled tail minus x^2 / 2, which does not underflow."""
    x = _float(x)
    tail = _log(0.5 * _scaled_tail(x.abs() * math.sqrt(0.5))) - 0.5 * x * x
    rest = -0.5 * erfc(torch.where(x < -1.0, 0.0, x) * math.sqrt(0.5))
    return torch.where(x < -1.0, tail, elementwise("log1p", (), rest))


# ---- logarithms, angles and others ----


@handles("special_entr")
def entropy(x: Tensor) -> Tensor:
    x = _float(x)
    y = -x * _log(x)
    return torch.where(x == 0, 0.0, torch.where(x < 0, -math.inf, y))


@handles("special_xlog1py")
def xlog1py(x: Any, y: Any) -> Tensor:
    """x log(1 + y); 0 where x is 0, unless y is NaN."""
    y = _float(y if isinstance(y, Tensor) else torch.full_like(x, float(y), dtype=torch.float32))
    log = elementwise("log1p", (), y)
    return torch.where(y != y, math.nan, torch.where(torch.eq(y * 0.0 + x, 0.0), 0.0, x * log))


@handles("logaddexp2")
def logaddexp2(a: Tensor, b: Tensor) -> Tensor:
    """Computed by logaddexp, which has natural logarithms."""
    return logaddexp(a * math.log(2), b * math.log(2)) * (1 / math.log(2))


@handles("sinc", "special_sinc")
def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x). The sine's argument is x minus the nearest whole number."""
    x = _float(x)
    whole = x.round()
    odd = whole - 2.0 * (whole * 0.5).floor()
    sine = elementwise("sin", (), _from_poles(x)) * (1.0 - 2.0 * odd)
    return torch.where(x == 0, 1.0, sine / (x * math.pi))


@handles("hypot")
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Divides the smaller by the larger number first, so that no square overflows or underflows."""
    most, least = maximum(x.abs(), y.abs()), minimum(x.abs(), y.abs())
    q = least / most
    size = most * elementwise("sqrt", (), 1.0 + q * q)
    size = torch.where(most == 0, most, size)
    return torch.where((x.abs() == math.inf) | (y.abs() == math.inf), math.inf, size)


@handles("angle")
def angle(x: Tensor) -> Tensor:
    """pi for negative numbers, 0 for others."""
    x = _float(x)
    return torch.where(x != x, x, torch.where(x < 0, math.pi, 0.0))


@handles("polar")
def polar(size: Tensor, angle: Tensor) -> Tensor:
    return torch.complex(size * elementwise("cos", (), angle), size * elementwise("sin", (), angle))


@handles("ldexp")
def times_power_of_two(x: Tensor, exponent: Tensor) -> Tensor:
    return _float(x) * elementwise("exp2", (), _float(exponent))


@handles("round.decimals")
def rounded(x: Tensor, *, decimals: int) -> Tensor:
    power = float(f"1e{abs(decimals)}")  # rounded correctly, unlike the C library's pow
    return (x * power).round() / power if decimals >= 0 else (x / power).round() * power
