"""Seeds for torch's DataLoader: its order and its workers' numbers follow from one seed."""

from __future__ import annotations

import random
from typing import Any

import torch


def seed_worker(worker: int) -> None:
    """worker_init_fn of a DataLoader: Python's and numpy's numbers follow torch's seed of it."""
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed)


def loader(dataset: Any, seed: int, **options: Any) -> torch.utils.data.DataLoader:
    """A DataLoader whose order follows from the seed alone, whatever else draws numbers.

    options are DataLoader's. Iterate inside the reproducible block: it shuffles by Philox.
    """
    generator = torch.Generator().manual_seed(seed)
    options = {"worker_init_fn": seed_worker, "generator": generator, **options}
    return torch.utils.data.DataLoader(dataset, **options)
