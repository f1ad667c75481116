"""Seeds for torch's DataLoader: its order and its workers' random numbers follow from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from ._mode import active, reproducible


def seed_worker(worker: int) -> None:
    """worker_init_fn of a DataLoader: seeds Python's and numpy's generators by the worker's torch
    seed."""
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed)


class _Start:
    """Runs first in each worker. A worker that was not forked is outside the block, and enters one.

    It is pickled for such a worker when the workers start, and carries the block's policy."""

    enters_block = True

    def __init__(self, then: Callable[[int], Any], leftovers: str | None = None) -> None:
        self._then, self._leftovers = then, leftovers

    def __call__(self, worker: int) -> None:
        if self._leftovers is not None and active() is None:
            reproducible(self._leftovers).__enter__()
        self._then(worker)

    def __reduce__(self) -> tuple[Any, ...]:
        block = active()
        return _Start, (self._then, block.policy if block else None)


def loader(dataset: Any, seed: int, **options: Any) -> torch.utils.data.DataLoader:
    """A DataLoader whose order depends on the seed alone, whatever else draws numbers.

    options are DataLoader's. Iterate inside the reproducible block: it shuffles by Philox, and the
    workers are in it too, however they start. Numbers that a worker draws depend on the seed and
    from num_workers, as in torch.
    """
    generator = torch.Generator().manual_seed(seed)
    start = _Start(options.pop("worker_init_fn", None) or seed_worker)
    options = {"generator": generator, **options, "worker_init_fn": start}
    return torch.utils.data.DataLoader(dataset, **options)
