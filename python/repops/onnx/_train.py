"""Training of a model's initializers as a job."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from .._library import Error
from ..jobs import Job
from ._graph import Graph, shown
from ._job import array_of
from ._model import Model
from ._types import TYPES

Tensor = torch.Tensor
# Inputs that are not weights: by operator, their positions.
_NO_WEIGHTS = {
    "BatchNormalization": (3, 4), "Resize": (1, 2), "Clip": (1, 2), "Pad": (2,), "Dropout": (1,),
    "QuantizeLinear": (1,), "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6),
    "QLinearMatMul": (1, 4, 6), "Pow": (1,), "Range": (0, 1, 2),
}  # fmt: skip
OPTIMIZERS: dict[str, Any] = {
    "sgd": (torch.optim.SGD, {"lr": 0.01}, {}),
    "adam": (torch.optim.Adam, {"lr": 1e-3}, {"fused": True}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-3}, {"fused": True}),
}


def chosen(graph: Graph, frozen: Sequence[str]) -> set[str]:
    """Names of initializers to train: float32 weights of more than one element that match no
    pattern of `frozen`."""
    never: set[str] = set()
    for node in graph.nodes:
        never.update(node.inputs[i] for i in _NO_WEIGHTS.get(node.kind, ()) if i < len(node.inputs))
    found = {
        name
        for name, t in graph.constants.items()
        if t.dtype is torch.float32 and t.numel() > 1 and name not in never
    }
    for pattern in frozen:
        gone = {n for n in found if fnmatch.fnmatchcase(n, pattern)}
        if not gone:
            raise Error(f"--freeze {shown(pattern)} fits no initializer that is trained")
        found -= gone
    return found


# ---- losses ----


def _cross_entropy(y: Tensor, labels: Tensor) -> Tensor:
    """Classes are the last dimension; for images the second."""
    if y.shape[:-1] == labels.shape:
        return F.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1))
    return F.cross_entropy(y, labels)


def _of_floats(function: Any) -> Any:
    def loss(y: Tensor, target: Tensor) -> Tensor:
        if y.numel() == target.numel():
            target = target.reshape(y.shape)
        value: Tensor = function(y, target.to(torch.float32))
        return value

    return loss


LOSSES: dict[str, Any] = {
    "cross_entropy": _cross_entropy,
    "mse": _of_floats(F.mse_loss),
    "l1": _of_floats(F.l1_loss),
    "bce_with_logits": _of_floats(F.binary_cross_entropy_with_logits),
}


class Loss:
    """ "cross_entropy:LOGITS,LABELS", or "output:LOSS" for an output that is the loss."""

    def __init__(self, text: str, model: Model) -> None:
        kind, _, rest = text.partition(":")
        names = rest.split(",") if rest else []
        want = 1 if kind == "output" else 2
        if kind != "output" and kind not in LOSSES or len(names) != want:
            known = ", ".join(f"{k}:OUTPUT,TARGET" for k in LOSSES)
            raise Error(f"the loss is {shown(text)}; expected {known} or output:OUTPUT")
        outputs = [o.name for o in model.outputs]
        if names[0] not in outputs:
            told = ", ".join(shown(o) for o in outputs)
            raise Error(f"the loss reads output {shown(names[0])}; the model has {told}")
        self.at, self.kind = outputs.index(names[0]), kind
        self.target = names[1] if len(names) > 1 else None

    def of(self, outputs: tuple[Any, ...], target: Any) -> Tensor:
        y: Tensor = outputs[self.at]
        if self.kind == "output":
            return y.reshape(-1).mean() if y.numel() > 1 else y.reshape(())
        value: Tensor = LOSSES[self.kind](y, target)
        return value


def optimizer_of(text: str, model: Model) -> Any:
    """An optimizer from text such as "adamw" or "adamw:lr=0.001,weight_decay=0.1"."""
    kind, _, rest = text.partition(":")
    if kind not in OPTIMIZERS:
        raise Error(f"the optimizer is {shown(kind)}; expected {', '.join(OPTIMIZERS)}")
    make, settings, always = OPTIMIZERS[kind]
    settings = dict(settings)
    for part in rest.split(",") if rest else []:
        name, _, number = part.partition("=")
        try:
            settings[name] = float(number)
        except ValueError:
            raise Error(f"{shown(part)} of the optimizer: expected NAME=NUMBER") from None
    parameters = list(model.parameters())
    if not parameters:
        raise Error(f"{model.whole.path} has no initializer that could be trained")
    try:
        return make(parameters, **settings, **always)
    except (TypeError, ValueError) as error:
        raise Error(f"the optimizer refuses {shown(rest)}: {error}") from None


class Training:
    """A job that trains a model on rows of arrays."""

    def __init__(
        self,
        model: Model,
        data: Mapping[str, Any],
        folder: str | os.PathLike[str],
        loss: str,
        optimizer: str = "adamw",
        batch: int = 8,
        steps: int = 100,
        seed: int = 0,
        order: Any = None,
    ) -> None:
        self.model, self.loss = model, Loss(loss, model)
        self.job = Job(Path(folder), seed=seed, steps=steps)
        arrays = self._arrays(data)
        rows = self.job.rows(*arrays.values(), batch=batch, order=order)
        self.rows = dict(zip(arrays, rows if isinstance(rows, tuple) else (rows,)))
        with self.job:
            self.optimizer = optimizer_of(optimizer, model)
            for source in self.job._sources:
                source.load(0)
            with torch.no_grad():
                value = self.loss.of(model(*self._inputs()), self._target())
        if value.numel() != 1 or value.dtype is not torch.float32:
            raise Error(f"the loss is {value.dtype} {list(value.shape)}; expected one float32")

    def _arrays(self, data: Mapping[str, Any]) -> dict[str, np.ndarray]:
        path, found = self.model.whole.path, {}
        for port in self.model.inputs:
            if port.name not in data:
                raise Error(f"{path}: the data have no {shown(port.name)}")
            what = f"{path}: {shown(port.name)} of the data"
            found[port.name] = array_of(port, data[port.name], what)
        target = self.loss.target
        if target is not None and target not in found:
            if target not in data:
                raise Error(f"{path}: the data have no {shown(target)}, which the loss reads")
            found[target] = np.asarray(data[target])
        for name in data:
            if name not in found:
                raise Error(f"{path}: neither the model nor the loss reads {shown(name)}")
        return found

    def _inputs(self) -> list[Tensor]:
        dtypes = [TYPES[p.type] for p in self.model.inputs]
        own = [self.rows[p.name] for p in self.model.inputs]
        return [t if t.dtype is d else t.to(d) for t, d in zip(own, dtypes)]

    def _target(self) -> Any:
        return None if self.loss.target is None else self.rows[self.loss.target]

    def step(self) -> Tensor:
        value = self.loss.of(self.model(*self._inputs()), self._target())
        value.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()
        return value

    def capture(self) -> str:
        self.model.train()
        with self.job:
            return self.job.capture(self.step, self.model, self.optimizer)

    def check(self, steps: int = 3, verde: str | None = None) -> list[float]:
        return self.job.check(steps, verde)
