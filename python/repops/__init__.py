"""Neural-network operators with one exact meaning: the same bits on every machine.

Every operator of the library is a function here by its own name: inputs are numpy arrays or
anything with DLPack, attributes are keywords, output shapes follow. `repops.fused` joins operators
in one call, `repops.torch` runs unmodified PyTorch models, and `repops.jobs` makes their training a
job that runs without Python.

    >>> import numpy as np, repops
    >>> repops.matmul(np.ones((2, 3), "f4"), np.ones((3, 4), "f4"))
"""

from __future__ import annotations

from typing import Any

from . import fused as fused
from ._arrays import bfloat16 as bfloat16
from ._commit import commitment as commitment
from ._commit import root as root
from ._context import Context as Context
from ._context import current as current
from ._library import VERSION as __version__
from ._library import Error as Error
from ._operators import FUNCTIONS as OPERATORS

globals().update(OPERATORS)


def reproducible(leftovers: str = "error", threads: int = 0) -> Any:
    """`repops.torch.reproducible`: in this block PyTorch has the same bits on every machine."""
    from . import torch as own

    return own.reproducible(leftovers, threads)


def __getattr__(name: str) -> Any:
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"repops has no {name}")


__all__ = [
    "__version__",
    "Context",
    "Error",
    "OPERATORS",
    "bfloat16",
    "commitment",
    "current",
    "fused",
    "reproducible",
    "root",
    *OPERATORS,
]
