"""Discrete Fourier transforms of float32 and complex64, of stages that are operators.

Complex numbers are pairs of float32 (_complex.py), and e(t) is exp(-2 pi i t) in a forward
transform, exp(2 pi i t) in an inverse one; its values are correctly rounded (_turns.py). The
transform of n numbers x[j] is X[k], the sum of x[j] e(j k / n) over j:

- n <= 64, or n <= 256 with no divisor from 2 to 64: a product of the row of x, 2 n numbers, and a
  matrix of 2 n rows and columns, by `matmul`.
- n = a b, a being the largest divisor with a <= 64 and a a <= n: with j = j1 b + j2 and
  k = k1 + a k2, transforms of a numbers x[j1 b + j2] for each j2; their element k1 times
  e(j2 k1 / n); of these, transforms of b numbers for each k1. (Cooley and Tukey)
- any other n: x[j] c[j], with c[j] = e(j j / (2 n)), is followed by zeros up to the smallest power
  of two m >= 2 n - 1, transformed forward, multiplied by h, transformed inversely; element k times
  c[k] is X[k]. h is the forward transform of the conjugates of c[|j|], which is divided by m.
  (Bluestein)

Several dimensions are transformed one after the other, from the last one to the first; of real
numbers the last one first, of real results the last one last. A scale is 1 / n or 1 / sqrt(n),
computed in float64 and rounded to float32, n being the number of all elements that are transformed
together; results are multiplied by it at the end. A real result of n numbers comes from the first
n // 2 + 1, whose conjugates the others are; imaginary parts of the first one, and of the middle one
if n is even, do not count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._context import current
from . import _here as here
from ._call import expect, matmul, need
from ._complex import joined, pairs
from ._registry import handles
from ._turns import turns

Tensor = torch.Tensor
DIRECT, DIRECT_PRIME = 64, 256
KEPT = 64  # how many lengths' constants are cached


@functools.lru_cache(4096)
def _divisor(n: int) -> int:
    """The first factor of n. Returns n if n is not split, 0 if it is neither split nor small."""
    if n <= DIRECT:
        return n
    most = min(DIRECT, math.isqrt(n))
    largest = next((a for a in range(most, 1, -1) if n % a == 0), 0)
    return largest or (n if n <= DIRECT_PRIME else 0)


def _kept(values: np.ndarray) -> Tensor:
    """The values as float32 on the context's device."""
    with _disable_current_modes():
        return torch.from_numpy(np.ascontiguousarray(values, "f4")).to(current().device or "cpu")


def _signed(n: int, places: np.ndarray, inverse: bool) -> np.ndarray:
    """e(places / n) as pairs."""
    values = turns(n)[places % n]
    return values if inverse else values * np.array([1, -1], "f4")


@here.kept(KEPT)
def _matrix(n: int, inverse: bool, given: bool, wanted: bool) -> Tensor:
    """[2 n, 2 n]: the matrix that multiplies a row of pairs. given: the input is complex; otherwise
    it is real, and the matrix has n rows. wanted: likewise for the result and the columns."""
    k = np.arange(n)
    c, s = np.moveaxis(_signed(n, k[:, None] * k, inverse), -1, 0)
    whole = np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], 1)  # [n, 2, n, 2]
    part = whole[:, : 1 + given, :, : 1 + wanted]
    return _kept(part.reshape(n * (1 + given), n * (1 + wanted)))


Factor = tuple[Tensor, Tensor]


def _factor(w: np.ndarray) -> Factor:
    """Pairs c + d i as the factors (c, c) and (-d, d) that _times takes."""
    c, d = w[..., 0], w[..., 1]
    return _kept(np.stack([c, c], -1)), _kept(np.stack([-d, d], -1))


def _times(y: Tensor, factor: Factor) -> Tensor:
    """(a + b i) (c + d i) as a c + b (-d), b c + a d: has the bits of _complex.py's products, with
    fewer operators."""
    return y * factor[0] + y.flip(-1) * factor[1]


@here.kept(KEPT)
def _twiddles(n: int, a: int, inverse: bool) -> Factor:
    """The twiddle factors e(j2 k1 / n), [b, a, 2]."""
    return _factor(_signed(n, np.arange(n // a)[:, None] * np.arange(a), inverse))


@here.kept(KEPT)
def _chirp(n: int, inverse: bool) -> tuple[Tensor, Factor, Factor]:
    """c as pairs [n, 2], c as a factor, and h as a factor, [m, 2]."""
    m = 1 << (2 * n - 2).bit_length()
    j = np.arange(n)
    c = _signed(2 * n, j * j, inverse)
    around = np.zeros((m, 2), "f4")
    around[:n] = c * np.array([1, -1], "f4")
    around[m - n + 1 :] = around[1:n][::-1]
    with _disable_current_modes(), current() if current().device is None else current().host:
        h = _rows(_kept(around)[None], False, True)[0] * (1.0 / m)
    return _kept(c), _factor(c), _factor(h.numpy())


def _rows(x: Tensor, inverse: bool, wanted: bool) -> Tensor:
    """The transforms of complex rows [rows, n, 2] or real rows [rows, n]. wanted: return pairs;
    otherwise real parts only."""
    given = x.dim() == 3
    rows, n = x.shape[:2]
    a = _divisor(n)
    if a == 0:
        return _by_chirp(x, inverse, wanted)
    if a == n:
        y = matmul(x.reshape(rows, -1), _matrix(n, inverse, given, wanted))
        return y.reshape(rows, n, 2) if wanted else y
    b, kept = n // a, (2,) if wanted else ()
    y = _turned(x, rows, a, b)
    y = matmul(y.reshape(rows * b, -1), _matrix(a, inverse, given, True))
    y = _times(y.reshape(rows, b, a, 2), _twiddles(n, a, inverse))
    y = _rows(_turned(y, rows, b, a).reshape(rows * a, b, 2), inverse, wanted)
    return _turned(y, rows, a, b).reshape(rows, n, *kept)


def _turned(x: Tensor, rows: int, first: int, second: int) -> Tensor:
    """[rows, first, second, ...] transposed to [rows, second, first, ...]."""
    return x.reshape(rows, first, second, -1).transpose(1, 2)


def _by_chirp(x: Tensor, inverse: bool, wanted: bool) -> Tensor:
    n = x.shape[1]
    c, by_c, by_h = _chirp(n, inverse)
    y = _times(x, by_c) if x.dim() == 3 else x.unsqueeze(-1) * c
    y = torch.cat([y, here.zeros(len(y), len(by_h[0]) - n, 2)], 1)
    y = _rows(_times(_rows(y, False, True), by_h), True, True)[:, :n]
    return _times(y, by_c) if wanted else y[..., 0] * c[:, 0] - y[..., 1] * c[:, 1]


def _along(x: Tensor, dim: int, inverse: bool, given: bool, wanted: bool) -> Tensor:
    """Transforms along dimension `dim`, which counts from the front."""
    pair = (2,) if given else ()
    x = x.movedim(dim, -1 - given)
    y = _rows(x.reshape(-1, x.shape[-1 - given], *pair), inverse, wanted)
    y = y.reshape(*x.shape[: x.dim() - given], *((2,) if wanted else ()))
    return y.movedim(-1 - wanted, dim)


def _all(x: Tensor, dims: Sequence[int], inverse: bool) -> Tensor:
    """Transforms pairs along several dimensions."""
    for d in reversed(dims):
        x = _along(x, d, inverse, True, True)
    return x


def _scaled(y: Tensor, n: int, normalization: int) -> Tensor:
    """normalization: 0: none; 1: divide by the root of n; 2: divide by n."""
    if normalization == 0 or n == 1:
        return y
    return y * (1.0 / (math.sqrt(n) if normalization == 1 else n))


def _dims(x: Tensor, dim: Sequence[int]) -> list[int]:
    return [d % x.dim() for d in dim]


def _count(x: Tensor, dims: Sequence[int]) -> int:
    return math.prod([x.shape[d] for d in dims])


@handles("_fft_c2c")
def complex_transform(z: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    if not z.numel() or not dim:
        return z.clone()
    dims = _dims(z, dim)
    y = _all(pairs(z), dims, not forward)
    return joined(_scaled(y, _count(z, dims), normalization))


@handles("_fft_r2c")
def transform_of_real(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    need(x)
    *dims, last = _dims(x, dim)
    kept = x.shape[last] // 2 + 1 if onesided else x.shape[last]
    if not x.numel():
        size = [kept if d == last else n for d, n in enumerate(x.shape)]
        return here.empty(size, dtype=torch.complex64)
    y = _along(x, last, False, False, True).narrow(last, 0, kept)
    y = _all(y, dims, False)
    return joined(_scaled(y, _count(x, [*dims, last]), normalization))


def _whole(y: Tensor, dim: int, n: int) -> Tensor:
    """Completes a transform of real numbers: all n elements from the first half."""
    y = y.movedim(dim, 0)
    re, im = y.unbind(-1)
    inner, zero = im[1 : (n + 1) // 2], torch.zeros_like(im[:1])
    middle = [zero] if n % 2 == 0 else []
    re = torch.cat([re, re[1 : (n + 1) // 2].flip(0)])
    im = torch.cat([zero, inner, *middle, -inner.flip(0)])
    return torch.stack([re, im], -1).movedim(0, dim)


@handles("_fft_c2r")
def real_transform(z: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    *dims, last = _dims(z, dim)
    n = last_dim_size
    expect(z.shape[last] == n // 2 + 1, "its last dimension has another size")
    if not z.numel():
        return here.empty([n if d == last else m for d, m in enumerate(z.shape)])
    y = _whole(_all(pairs(z), dims, True), last, n)
    y = _along(y, last, True, True, False)
    return _scaled(y, _count(z, dims) * n, normalization).contiguous()


# ---- frequencies ----


def _frequencies(places: Tensor, n: int, d: float) -> Tensor:
    return places * (1.0 / (n * d))


@handles("fft_rfftfreq")
def rfftfreq(n: int, d: float = 1.0, **how: Any) -> Tensor:
    return _frequencies(_numbered(0, n // 2 + 1, how), n, d)


@handles("fft_fftfreq")
def fftfreq(n: int, d: float = 1.0, **how: Any) -> Tensor:
    both = [_numbered(0, (n + 1) // 2, how), _numbered(-(n // 2), 0, how)]
    return _frequencies(torch.cat(both), n, d)


def _numbered(first: int, end: int, how: dict[str, Any]) -> Tensor:
    return here.arange(first, end, dtype=how.get("dtype") or torch.get_default_dtype())
