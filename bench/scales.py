"""Counts where fixed products of training data can be rounded by one fma on sm_90a (repops/cuda/gemm/wgmma_sums.cuh).

    python3 bench/scales.py [--only NAME] [--threads N]

Needs torch, transformers and torchvision. The models of bench/digits.py are trained for some steps. Then all products of one more step,
with at most LINES lines of each factor, are divided into the parts of a warp: 16 rows by the columns of a tile, a chunk of k. A part
whose lines have scales too far apart is rounded by integers instead. A row of the table is a model and a direction, with 24 and 16 bits.
"""

import argparse

import digits
import harness
import numpy as np
import torch

LINES, ROWS = 4096, 16
TILES = {24: 64, 16: 96}  # columns of a tile, by bits
LEAST, MOST = -149, 73  # range of the power of two of a sum: wgmma_is_plain


def powers(x, bits):
    """Returns the powers of two of the scales of lines [line, chunk], 2^0 for a line of zeros, and which
    lines are not finite."""
    x = np.pad(x, ((0, 0), (0, -x.shape[1] % digits.CHUNK))).reshape(x.shape[0], -1, digits.CHUNK)
    most = np.abs(x).max(axis=-1).view(np.int32)
    exponent = np.maximum((most + 0x1FFFF) >> 23, 1) - 126
    none = np.rint(np.ldexp(np.abs(x).max(axis=-1).astype(np.float64), bits - 1 - exponent)) == 0
    return np.where(none, 0, exponent - (bits - 1)), most >= 0x7F800000


def ends(power, count):
    """Returns the least and the most power of each group of `count` lines, [group, chunk]."""
    power = np.pad(power, ((0, -power.shape[0] % count), (0, 0)))
    groups = power.reshape(-1, count, power.shape[1])
    return groups.min(axis=1), groups.max(axis=1)


def count(a, b, bits):
    """Returns the number of parts of a warp, how many of them are rounded by integers, and the
    range of all sums' powers."""
    (of_a, bad_a), (of_b, bad_b) = powers(a, bits), powers(b, bits)
    (low_a, high_a), (low_b, high_b) = ends(of_a, ROWS), ends(of_b, TILES[bits])
    low, high = low_a[:, None] + low_b[None], high_a[:, None] + high_b[None]
    slow = (low < LEAST) | (high > MOST)
    if bad_a.any() or bad_b.any():
        raise SystemExit("a factor is not finite")
    return np.array([slow.size, slow.sum(), low.min(), high.max()])


def measure(name):
    torch.manual_seed(1)
    model, loss, steps, rate = digits.MODELS[name]()
    digits.train(model, loss, steps, rate)
    rows = {}
    for direction, a, b in digits.factors(model, loss, steps):
        a, b = (x[:LINES].contiguous().numpy() for x in (a, b))
        for bits in TILES:
            rows.setdefault((direction, bits), []).append(count(a, b, bits))
    for direction in ("forward", "gradient_x", "gradient_w"):
        cells = []
        for bits in TILES:
            parts, slow, low, high = np.array(rows[direction, bits]).T
            cells.append(f"{slow.sum():,} of {parts.sum():,}; 2^{low.min()} to 2^{high.max()}")
        harness.row(f"{name}, {steps} steps", direction, *cells)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    harness.head("Model", "Direction", "24 bits", "16 bits", left=4)
    for name in digits.MODELS:
        if options.only in name and "later" not in name:
            measure(name)


if __name__ == "__main__":
    main()
