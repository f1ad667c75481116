"""Cosines and sines of fractions of a turn, correctly rounded to float32: constants of transforms.

They are computed with integers, so that every machine has the same bits. k / n turns are reduced to
at most an eighth of a turn exactly, by symmetries; there both Taylor series are summed with BITS
fractional bits. Their error is below 2^-(BITS - 8): if the bounds at this distance round to
different float32 numbers, more bits are used.
"""

from __future__ import annotations

import functools
import math

import numpy as np

BITS = 128


@functools.lru_cache(8)
def _pi(bits: int) -> int:
    """pi 2^bits, truncated, by Machin's formula."""
    more = bits + 16

    def arctan_of_one_over(q: int) -> int:
        term = total = (1 << more) // q
        i = 1
        while term:
            term //= -q * q
            i += 2
            total += term // i
        return total

    return 4 * (4 * arctan_of_one_over(5) - arctan_of_one_over(239)) >> 16


def _series(x: int, bits: int) -> tuple[int, int]:
    """Cosine and sine of x; x and the results are in units of 2^-bits."""
    sums, term, i = [0, 0], 1 << bits, 0
    while term:
        sums[i & 1] += -term if i & 2 else term
        i += 1
        term = (term * x >> bits) // i
    return sums[0], sums[1]


def _rounded(value: int, bits: int) -> float:
    """The float32 nearest to value 2^-bits, ties to even. The result must not be subnormal."""
    cut = max(0, value.bit_length() - 24)
    kept, rest = value >> cut, value & ((1 << cut) - 1)
    half = 1 << cut >> 1
    kept += rest > half or (rest == half and cut > 0 and kept & 1)
    return math.ldexp(kept, cut - bits)


@functools.lru_cache(1 << 16)
def _both(k: int, n: int) -> tuple[float, float]:
    """Correctly rounded cosine and sine of k / n turns, 0 <= k / n <= 1/8."""
    bits = BITS
    while k:
        found = _series(2 * _pi(bits) * k // n, bits)
        least, most = ([_rounded(v + e, bits) for v in found] for e in (-256, 256))
        if least == most:
            return least[0], least[1]
        bits *= 2
    return 1.0, 0.0


def _turn(k: int, n: int) -> tuple[float, float]:
    """The same for 0 <= k < n, in units of 1 / (8 n) turn, of which a quarter turn has 2 n."""
    quarter, rest = divmod(8 * k, 2 * n)
    swapped = rest > n
    part = 2 * n - rest if swapped else rest
    common = math.gcd(part, 8 * n)
    c, s = _both(part // common, 8 * n // common)
    c, s = (s, c) if swapped else (c, s)
    for _ in range(quarter):
        c, s = -s, c
    return c + 0.0, s + 0.0  # turns -0 into +0


@functools.lru_cache(64)
def turns(n: int) -> np.ndarray:
    """[n, 2], float32: cosine and sine of k / n turns for each k below n."""
    return np.array([_turn(k, n) for k in range(n)], "<f4")
