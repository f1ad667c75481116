"""ONNX models in the block, and as jobs.

>>> model = repops.onnx.load("model.onnx")
>>> with repops.torch.reproducible():
...     (logits,) = model(x)

`python3 -m repops.onnx model.onnx --data inputs.npz --out job` makes a job. See docs/onnx.md.
"""

from __future__ import annotations

# Importing these registers their operators.
from . import (  # noqa: F401
    _activations,
    _arithmetic,
    _attention,
    _control,
    _images,
    _learners,
    _losses,
    _movement,
    _norms,
    _places,
    _pools,
    _products,
    _quantized,
    _random,
    _recurrent,
    _reductions,
    _refused,
    _resize,
    _signals,
    _training,
)
from ._model import Model as Model
from ._model import load as load

__all__ = ["Model", "load"]
