"""Functions that the library has no operator for, from correctly rounded float64 operations.

torch's own sin, pow and so on differ between instruction sets. These use only +, -, *, /, numpy's
square root and bit operations of whole float64 tensors, which IEEE 754 fixes, and round the result
to float32 once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import _here as here
from ._call import Leftover, elementwise, need
from ._registry import handles, of_float64

_LN2_HI, _LN2_LO = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
# pi / 2 in three parts; the first two have 33 bits each, so that their multiples are exact.
_PI2 = tuple(
    float.fromhex(h) for h in ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")
)
_EXPONENT, _MANTISSA = 1023, (1 << 52) - 1


def _horner(z: torch.Tensor, coefficients: list[float]) -> torch.Tensor:
    p = torch.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        p = p.mul_(z).add_(c)
    return p


def _power_of_two(n: torch.Tensor) -> torch.Tensor:
    return ((n.to(torch.int64) + _EXPONENT) << 52).view(torch.float64)


def exp64(x: torch.Tensor) -> torch.Tensor:
    """exp in float64, with an error of about 2^-52; NaN stays NaN."""
    c = torch.where(x > 720.0, 720.0, torch.where(x < -760.0, -760.0, x))
    c = torch.where(c == c, c, 0.0)
    n = (c * (1 / math.log(2))).round()
    r = (c - n * _LN2_HI) - n * _LN2_LO
    p = _horner(r, [1 / math.factorial(i) for i in range(14, -1, -1)])
    half = (n * 0.5).floor()
    y = p * _power_of_two(half) * _power_of_two(n - half)
    y = torch.where(x > 720.0, math.inf, torch.where(x < -760.0, 0.0, y))
    return torch.where(x == x, y, x)


def log64(x: torch.Tensor) -> torch.Tensor:
    """log in float64; NaN below 0."""
    small = x < 2.0**-1022
    raw = torch.where((x > 0) & (x < math.inf), torch.where(small, x * 2.0**54, x), 1.0)
    raw = raw.view(torch.int64)
    m = ((raw & _MANTISSA) | (_EXPONENT << 52)).view(torch.float64)
    e = ((raw >> 52) - _EXPONENT).to(torch.float64) - torch.where(small & (x > 0), 54.0, 0.0)
    big = m > math.sqrt(2)
    m, e = torch.where(big, m * 0.5, m), torch.where(big, e + 1.0, e)
    s = (m - 1.0) / (m + 1.0)
    y = (s + s) * _horner(s * s, [1 / (2 * i + 1) for i in range(11, -1, -1)])
    y = e * _LN2_HI + (e * _LN2_LO + y)
    y = torch.where(x == 0, -math.inf, torch.where(x == math.inf, math.inf, y))
    return torch.where(x >= 0, y, math.nan)


def _turn(x: torch.Tensor, quarter: int) -> torch.Tensor:
    size = x.abs()
    if bool(((size >= 2.0**30) & (size < math.inf)).any()):
        raise Leftover("it has angles of 2^30 or more, which the parts of pi / 2 do not tell")
    k = (x * (2 / math.pi)).round()
    r = ((x - k * _PI2[0]) - k * _PI2[1]) - k * _PI2[2]
    z = r * r
    odd = [(-1) ** i / math.factorial(2 * i + 1) for i in range(8, -1, -1)]
    even = [(-1) ** i / math.factorial(2 * i) for i in range(8, -1, -1)]
    j = torch.where(size < math.inf, k, 0.0).to(torch.int64) + quarter
    y = torch.where(j % 2 == 0, r * _horner(z, odd), _horner(z, even))
    y = torch.where(j & 2 == 0, y, -y)
    return torch.where(size < math.inf, y, math.nan)


def sin64(x: torch.Tensor) -> torch.Tensor:
    """sin in float64, for x below 2^30."""
    return _turn(x, 0)


def cos64(x: torch.Tensor) -> torch.Tensor:
    """cos in float64, for x below 2^30."""
    return _turn(x, 1)


def log1p64(x: torch.Tensor) -> torch.Tensor:
    """log(1 + x), corrected by the rounding error of 1 + x."""
    u = 1.0 + x
    y = log64(u) + torch.where((u > 0) & (u < math.inf), (x - (u - 1.0)) / u, 0.0)
    return y


def expm164(x: torch.Tensor) -> torch.Tensor:
    """exp(x) - 1; near 0 by its power series."""
    small = x.abs() < 0.35
    near = torch.where(small, x, 0.0)
    series = near * _horner(near, [1 / math.factorial(i) for i in range(15, 0, -1)])
    return torch.where(small, series, exp64(x) - 1.0)


def pow64(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x to the power of y in float64; for negative x NaN unless y is whole."""
    power = exp64(y * log64(x.abs()))
    whole, odd = y == y.floor(), (y * 0.5) != (y * 0.5).floor()
    signed = torch.where(whole & odd & (x < 0), -power, power)
    signed = torch.where((x < 0) & ~whole & (x.abs() < math.inf), math.nan, signed)
    return torch.where((y == 0) | (x == 1), 1.0, signed)


@of_float64("sqrt")
def sqrt64(x: torch.Tensor) -> torch.Tensor:
    """The correctly rounded square root. On CPUs torch takes it from MKL, which rounds about one in
    a hundred otherwise; CUDA's is correct."""
    if not x.is_cpu:
        with _disable_current_modes():
            return torch.sqrt(x)
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.sqrt(x.detach().numpy(), out=np.empty(x.shape)))


@of_float64("rsqrt")
def rsqrt64(x: torch.Tensor) -> torch.Tensor:
    return 1.0 / sqrt64(x)


def atan64(x: torch.Tensor) -> torch.Tensor:
    """Halves the angle three times, after which the series' argument is below 0.2."""
    big = x.abs() > 1.0
    t = torch.where(big, 1.0 / x, x)
    for _ in range(3):
        t = t / (1.0 + sqrt64(1.0 + t * t))
    y = 8.0 * t * _horner(t * t, [(-1) ** i / (2 * i + 1) for i in range(11, -1, -1)])
    quarter = torch.copysign(torch.full_like(x, math.pi / 2), x)
    return torch.where(big, quarter - y, y)


def atan264(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The angle of (x, y), between -pi and pi; the signs of zeros count."""
    y, x = torch.broadcast_tensors(y, x)
    large = torch.where(x.abs() > y.abs(), x.abs(), y.abs())
    scale = torch.where((large == 0) | (large == math.inf), 1.0, large)
    corner = torch.where((x.abs() == math.inf) & (y.abs() == math.inf), 1.0, 0.0)
    a, b = (
        torch.where(corner > 0, 1.0, y.abs() / scale),
        torch.where(corner > 0, 1.0, x.abs() / scale),
    )
    angle = torch.where(a == 0, 0.0, atan64(a / b))
    return torch.copysign(torch.where(torch.signbit(x), math.pi - angle, angle), y)


def asin64(x: torch.Tensor) -> torch.Tensor:
    """The angle of the point (sqrt(1 - x^2), x)."""
    return torch.where(x.abs() <= 1, atan264(x, sqrt64(((1.0 - x) * (1.0 + x)).abs())), math.nan)


def acos64(x: torch.Tensor) -> torch.Tensor:
    """The angle of the point (x, sqrt(1 - x^2))."""
    return torch.where(x.abs() <= 1, atan264(sqrt64(((1.0 - x) * (1.0 + x)).abs()), x), math.nan)


def asinh64(x: torch.Tensor) -> torch.Tensor:
    """log(x + sqrt(x^2 + 1)), in a form without cancellation near 0."""
    a = x.abs()
    y = log1p64(a + a * a / (1.0 + sqrt64(a * a + 1.0)))
    return torch.copysign(torch.where(a == math.inf, a, y), x)


def acosh64(x: torch.Tensor) -> torch.Tensor:
    """log(x + sqrt(x^2 - 1)), in a form without cancellation near 1."""
    d = x - 1.0
    return torch.where(x >= 1, log1p64(d + sqrt64((d * (x + 1.0)).abs())), math.nan)


def atanh64(x: torch.Tensor) -> torch.Tensor:
    """log((1 + x) / (1 - x)) / 2."""
    return 0.5 * (log1p64(x) - log1p64(-x))


# Inverse of the normal distribution: P. J. Acklam's rational approximations, relative error 1.2e-9.
_MIDDLE = (
    [
        -3.969683028665376e01,
        2.209460984245205e02,
        -2.759285104469687e02,
        1.383577518672690e02,
        -3.066479806614716e01,
        2.506628277459239e00,
    ],
    [
        -5.447609879822406e01,
        1.615858368580409e02,
        -1.556989798598866e02,
        6.680131188771972e01,
        -1.328068155288572e01,
        1.0,
    ],
)
_TAIL = (
    [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e00,
        -2.549732539343734e00,
        4.374664141464968e00,
        2.938163982698783e00,
    ],
    [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0],
)


def normal_quantile(half: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """The quantile of probability p = 1/2 + half, to 2^-29. below: the smaller of p and 1 - p."""
    z = half * half
    middle = half * _horner(z, _MIDDLE[0]) / _horner(z, _MIDDLE[1])
    q = exp64(0.5 * log64(-2.0 * log64(below)))  # torch may take a square root from MKL
    tail = _horner(q, _TAIL[0]) / _horner(q, _TAIL[1])
    y = torch.where(half.abs() <= 0.5 - 0.02425, middle, torch.where(half < 0, tail, -tail))
    y = torch.where(below == 0, torch.where(half > 0, math.inf, -math.inf), y)
    return torch.where(half.abs() <= 0.5, y, math.nan)


def erfinv64(x: torch.Tensor) -> torch.Tensor:
    """The inverse of erf, to 2^-29; infinite at -1 and 1."""
    half = x * 0.5
    return normal_quantile(half, 0.5 - half.abs()) * math.sqrt(0.5)


def _of_base(base: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: log64(x) * (1 / math.log(base))


# The float32 versions are operators of the library: rows RO_TORCH of operators.def.
_FLOAT64: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": exp64,
    "log": log64,
    "sigmoid": lambda x: 1.0 / (1.0 + exp64(-x)),
    "tanh": lambda x: torch.copysign(-_less(x) / (2.0 + _less(x)), x),
    "sin": sin64,
    "cos": cos64,
    "tan": lambda x: sin64(x) / cos64(x),
    "log1p": log1p64,
    "expm1": expm164,
    "log2": _of_base(2),
    "exp2": lambda x: exp64(x * math.log(2)),
    "sinh": lambda x: (expm164(x) - expm164(-x)) * 0.5,
    "cosh": lambda x: (exp64(x) + exp64(-x)) * 0.5,
    "atan": atan64,
    "asin": asin64,
    "acos": acos64,
    "asinh": asinh64,
    "acosh": acosh64,
    "atanh": atanh64,
}


def _less(x: torch.Tensor) -> torch.Tensor:
    """exp(-2 |x|) - 1."""
    return expm164(-2.0 * x.abs())


def narrow(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Applies a float64 function to float32 tensors and rounds the result once."""
    need(*inputs)
    return function(*[t.to(torch.float64) for t in inputs]).to(torch.float32)


def _float(x: torch.Tensor) -> torch.Tensor:
    return x if x.is_floating_point() else x.float()


def _register() -> None:
    for name, function in _FLOAT64.items():
        of_float64(name)(function)


_register()


@handles("erfinv")
def erfinv(x: torch.Tensor) -> torch.Tensor:
    return erfinv64(x) if x.dtype is torch.float64 else narrow(erfinv64, _float(x))


_LOG10_2 = float.fromhex("0x1.34413509f79ffp-2")


@handles("log10")
def log10(x: torch.Tensor) -> torch.Tensor:
    """log2(x) times log10(2): both are rounded."""
    if x.dtype is torch.float64:
        return _of_base(10)(x)
    return elementwise("log2", (), _float(x)) * _LOG10_2


def root(x: torch.Tensor) -> torch.Tensor:
    """The correctly rounded square root, in float32 or float64."""
    return sqrt64(x) if x.dtype is torch.float64 else elementwise("sqrt", (), _float(x))


_POWERS: dict[float, Callable[[torch.Tensor], torch.Tensor]] = {
    0.0: torch.ones_like,
    0.5: root,
    1.0: torch.clone,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -0.5: lambda x: torch.reciprocal(root(x)),
    -1.0: torch.reciprocal,
    -2.0: lambda x: torch.reciprocal(x * x),
}


@handles("pow.Tensor_Scalar")
def power(x: torch.Tensor, exponent: float) -> torch.Tensor:
    """x to a power; some exponents are products, quotients or roots."""
    if float(exponent) in _POWERS:
        return _POWERS[float(exponent)](x if x.is_floating_point() else x.float())
    if x.dtype is torch.float64:
        return pow64(x, torch.full_like(x, float(exponent)))
    return elementwise("pow", (), _float(x), here.full((), float(exponent)))


@handles("pow.Tensor_Tensor")
def power_of_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if torch.result_type(x, y) is torch.float64:
        return pow64(*torch.broadcast_tensors(x.double(), y.double()))
    return elementwise("pow", (), x.float(), y.float())


@handles("pow.Scalar")
def power_of_number(base: float, y: torch.Tensor) -> torch.Tensor:
    if y.dtype is torch.float64:
        return pow64(torch.full_like(y, float(base)), y)
    return elementwise("pow", (), here.full((), float(base)), _float(y))
