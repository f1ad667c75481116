"""PyTorch with the same bits on every machine.

>>> import torch, repops.torch
>>> with repops.torch.reproducible():
...     model = torch.nn.Linear(4, 4)
...     model(torch.ones(2, 4)).sum().backward()
"""

from __future__ import annotations

# Each module whose name starts with _ registers handlers of operators.
from . import (  # noqa: F401
    _activations,
    _axes,
    _bags,
    _bits,
    _complex,
    _ctc,
    _detection,
    _distances,
    _distributed,
    _elements,
    _fourier,
    _fractional,
    _functions,
    _grids,
    _indexing,
    _least,
    _linear,
    _losses,
    _lu,
    _margins,
    _nearest,
    _norms,
    _operators,
    _optimizers,
    _pools,
    _products,
    _random,
    _recurrent,
    _scans,
    _selection,
    _series,
    _sparse,
    _special,
    _sums,
    _ties,
    _volume_pools,
    _volumes,
    _windows,
)
from . import data as data
from . import functional as functional
from . import optim as optim
from ._mode import LeftoverError as LeftoverError
from ._mode import reproducible as reproducible
from ._state import HashLog as HashLog
from ._state import commitments as commitments
from ._state import hash as hash
from ._trace import Difference as Difference
from ._trace import Operation as Operation
from ._trace import Trace as Trace
from ._trace import diff as diff

__all__ = [
    "Difference",
    "HashLog",
    "LeftoverError",
    "Operation",
    "Trace",
    "commitments",
    "data",
    "diff",
    "functional",
    "hash",
    "optim",
    "reproducible",
]
