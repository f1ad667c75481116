"""Operators on integers, with ties and repeated indices: prints a hash of each result.

Tensors are so large that torch divides them among threads.
"""

import hashlib
import sys

import torch
import torch.nn.functional as F

from repops.torch import reproducible

PLACES = torch.arange(400_000) * 7919 % 50
VALUES = torch.arange(400_000) * 6113 % 199 - 99
ROWS = VALUES[:60_000].reshape(200, 300)
TIES = ROWS % 5
IMAGE = VALUES[:120_000].reshape(1, 3, 100, 400)
SMALL = [torch.arange(-128, 128).to(torch.int8).reshape(shape) for shape in ((-1, 1), (1, -1))]

CASES = {
    "index_put": lambda: torch.zeros(50, dtype=torch.int64).index_put((PLACES,), VALUES),
    "index_put of floats": lambda: torch.zeros(50).index_put((PLACES,), VALUES.float()),
    "index_put that adds": lambda: PLACES[:50].index_put((PLACES,), VALUES, accumulate=True),
    "index_copy": lambda: torch.zeros(50, dtype=torch.int64).index_copy(0, PLACES, VALUES),
    "index_copy of floats": lambda: torch.zeros(50).index_copy(0, PLACES, VALUES.float()),
    "index_copy of rows": lambda: TIES[:5].index_copy(0, PLACES[:200] % 5, ROWS),
    "index_add": lambda: TIES[:5].index_add(0, PLACES[:200] % 5, ROWS),
    "index_reduce": lambda: TIES[:5].index_reduce(0, PLACES[:200] % 5, ROWS, "prod"),
    "largest of bags": lambda: F.embedding_bag(PLACES.reshape(-1, 8), TIES.float(), mode="max"),
    "scatter": lambda: TIES.scatter(1, TIES + 2, ROWS),
    "scatter of floats": lambda: torch.zeros(200, 300).scatter(1, TIES + 2, ROWS.float()),
    "scatter that multiplies": lambda: TIES.scatter(0, TIES + 2, ROWS, reduce="multiply"),
    "scatter_add": lambda: TIES.scatter_add(0, TIES + 2, ROWS),
    "scatter_reduce": lambda: TIES.scatter_reduce(0, TIES + 2, ROWS, "mean"),
    "sort": lambda: torch.sort(TIES, 1)[1],
    "sort that need not be stable": lambda: torch.sort(TIES, dim=1, stable=False)[1],
    "sort of floats that need not be stable": lambda: torch.sort(TIES.float(), stable=False)[1],
    "argsort": lambda: torch.argsort(TIES.to(torch.uint8), 1),
    "topk": lambda: torch.topk(TIES, 9, 1)[1],
    "argmax": lambda: torch.stack([TIES.argmax(1), TIES.max(1)[1], TIES.min(1)[1]]),
    "argmax of all": lambda: torch.stack([VALUES.argmax(), VALUES.argmin()]),
    "cummax": lambda: torch.cat([TIES.cummax(1)[1], TIES.cummin(0)[1]]),
    "aminmax": lambda: torch.stack(ROWS.aminmax(dim=1)),
    "median": lambda: torch.stack([VALUES.median(), VALUES.nanmedian()]),
    "median, kthvalue and mode": lambda: torch.cat(
        [TIES.median(1)[1], TIES.kthvalue(7, 1)[1], TIES.float().mode(1)[1]]
    ),
    "put": lambda: TIES.put(PLACES, VALUES),
    "unique": lambda: torch.unique(VALUES, sorted=False, return_inverse=True)[1],
    "unique rows": lambda: torch.unique(TIES[:, :2], dim=0, return_inverse=True)[1],
    "max_pool2d": lambda: F.max_pool2d(IMAGE % 5, 3, return_indices=True)[1],
    "conv2d": lambda: F.conv2d(IMAGE, ROWS[:5, :27].reshape(5, 3, 3, 3)),
    "matmul": lambda: ROWS.to(torch.int8) @ ROWS.to(torch.int8).t(),
    "linspace": lambda: torch.linspace(-1000, 777, 100_003, dtype=torch.int32),
    "nearest": lambda: F.interpolate(IMAGE.to(torch.uint8), scale_factor=1.37),
    "nearest-exact": lambda: F.interpolate(IMAGE.to(torch.uint8), (133, 234), mode="nearest-exact"),
    "bilinear": lambda: F.interpolate(IMAGE.to(torch.uint8), (133, 234), mode="bilinear"),
    "quotients": lambda: (VALUES * 10**15 + 7) / (PLACES * 7 + 1),
    "rounded": lambda: (VALUES * 92233720368547757).float(),
    "whole quotients": lambda: torch.cat([VALUES // (PLACES + 1), VALUES % (PLACES + 1)]),
    "whole quotients of bytes": lambda: torch.div(
        SMALL[0], torch.where(SMALL[1] == 0, 3, SMALL[1]), rounding_mode="trunc"
    ),
    "fmod": lambda: torch.fmod(SMALL[0], torch.where(SMALL[1] == 0, 3, SMALL[1])),
    "pow": lambda: torch.cat([VALUES**PLACES, VALUES**7, (VALUES.abs() + 2) ** -PLACES]),
    "shifts": lambda: torch.cat([VALUES << (PLACES + 20), VALUES >> (PLACES + 20)]),
    "shifts of bytes": lambda: torch.stack([SMALL[0] << SMALL[1] % 9, SMALL[0] >> SMALL[1] % 9]),
    "bincount": lambda: torch.bincount(PLACES),
    "gcd": lambda: torch.stack([torch.gcd(PLACES, VALUES), torch.lcm(PLACES, VALUES)]),
    "cumprod": lambda: torch.cat([ROWS.cumprod(1), ROWS.cumsum(0)]),
    "cross": lambda: torch.linalg.cross(ROWS[:, :3], ROWS[:, 3:6]),
    "floats to integers": lambda: (VALUES * 0.7).to(torch.int8),
}


def main(thread_counts):
    for threads in thread_counts:
        with reproducible(threads=threads):
            for name, case in CASES.items():
                result = case()
                print(name, result.dtype, hashlib.sha256(result.numpy().tobytes()).hexdigest())
        print(".")


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]])
