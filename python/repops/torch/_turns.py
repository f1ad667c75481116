"""Cosines and sines of parts of a turn, correctly rounded to float32: the constants of transforms.

They are computed in integers, so that every machine has the same bits. k / n turns are reduced to
an eighth of a turn exactly, by the symmetries of the circle; there both series of Taylor are summed
with BITS bits behind the point. Their error is below 2^-(BITS - 8): where numbers this far apart
round to two different float32, more bits decide.
"""

from __future__ import annotations

import functools
import math

import numpy as np

BITS = 128


@functools.lru_cache(8)
def _pi(bits: int) -> int:
    """pi 2^bits, cut off, by Machin's formula."""
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
    """Cosine and sine of x, in units of 2^-bits."""
    sums, term, i = [0, 0], 1 << bits, 0
    while term:
        sums[i & 1] += -term if i & 2 else term
        i += 1
        term = (term * x >> bits) // i
    return sums[0], sums[1]


def _rounded(value: int, bits: int) -> float:
    """The float32 that is nearest to value 2^-bits, which is not subnormal; ties to even."""
    cut = max(0, value.bit_length() - 24)
    kept, rest = value >> cut, value & ((1 << cut) - 1)
    half = 1 << cut >> 1
    kept += rest > half or (rest == half and cut > 0 and kept & 1)
    return math.ldexp(kept, cut - bits)


@functools.lru_cache(1 << 16)
def _both(k: int, n: int) -> tuple[float, float]:
    """Cosine and sine of k / n turns, 0 <= k / n <= 1/8, rounded."""
    bits = BITS
    while k:
        found = _series(2 * _pi(bits) * k // n, bits)
        least, most = ([_rounded(v + e, bits) for v in found] for e in (-256, 256))
        if least == most:
            return least[0], least[1]
        bits *= 2
    return 1.0, 0.0


def _turn(k: int, n: int) -> tuple[float, float]:
    """The same for any k below n: a quarter of a turn has 2 n parts of 1 / (8 n) turns."""
    quarter, rest = divmod(8 * k, 2 * n)
    swapped = rest > n
    part = 2 * n - rest if swapped else rest
    common = math.gcd(part, 8 * n)
    c, s = _both(part // common, 8 * n // common)
    c, s = (s, c) if swapped else (c, s)
    for _ in range(quarter):
        c, s = -s, c
    return c + 0.0, s + 0.0  # no zero is negative


@functools.lru_cache(64)
def turns(n: int) -> np.ndarray:
    """[n, 2], float32: cosine and sine of k / n turns for each k."""
    return np.array([_turn(k, n) for k in range(n)], "<f4")
