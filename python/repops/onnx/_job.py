"""Jobs of a model: answers to inputs, or training of its initializers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import Error
from ..jobs import Job
from ._graph import Port, shown
from ._model import Model, told_dims
from ._types import HALVES, NAMES, TYPES

Tensor = torch.Tensor
NO_LISTS = "what a job reads and gives are tensors"


class Answers(torch.nn.Module):
    """Buffers that hold a step's outputs, by the names of the model's outputs."""

    def __init__(self, model: Model, outputs: tuple[Any, ...]) -> None:
        super().__init__()
        self.names: list[str] = []
        for port, t in zip(model.outputs, outputs):
            if not isinstance(t, Tensor):
                told = f"output {shown(port.name)} is a {port.kind}"
                raise Error(f"{model.whole.path}: {told}; {NO_LISTS}")
            self.names.append(self._name(port.name))
            zero = t.numel() and not t.reshape(-1)[0]  # the first state must differ from the answer
            start = torch.full(t.shape, int(zero), dtype=t.dtype)
            self.register_buffer(self.names[-1], start)

    def _name(self, name: str) -> str:
        own = "".join(c if c.isalnum() or c in "_-/:" else "_" for c in name) or "output"
        while hasattr(self, own):
            own += "_"
        return own

    def put(self, outputs: tuple[Any, ...]) -> None:
        for name, t in zip(self.names, outputs):
            getattr(self, name).copy_(t.detach())


def array_of(port: Port, x: Any, what: str) -> np.ndarray:
    """Data for an input, checked, in the type in which it is computed."""
    a = np.asarray(x)
    if port.type not in TYPES:
        raise Error(f"{what} is {NAMES.get(port.type, '?')}, which no program has")
    own = "float32" if port.type in HALVES else NAMES[port.type]
    if a.dtype.name in ("float16", "bfloat16") and port.type in HALVES:
        a = a.astype(np.float32)
    if a.dtype.name != own:
        raise Error(f"{what} is {a.dtype.name}; expected {own}")
    return a


def _rank(port: Port) -> int | None:
    return None if port.dims is None else len(port.dims)


def arrays(model: Model, data: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], int]:
    """Arrays for all inputs, and the number of steps. An array with one dimension more than its
    input has each step's values; other arrays are the same in each step."""
    found, steps = {}, set()
    for port in model.inputs:
        if port.name not in data:
            raise Error(f"{model.whole.path}: the data have no {shown(port.name)}")
        what = f"{model.whole.path}: {shown(port.name)} of the data"
        if data[port.name] is None or isinstance(data[port.name], list):
            raise Error(
                f"{model.whole.path}: input {shown(port.name)} is a {port.kind}; {NO_LISTS}"
            )
        a = array_of(port, data[port.name], what)
        rank = _rank(port)
        if rank is not None and a.ndim not in (rank, rank + 1):
            told = told_dims(port.dims)
            raise Error(f"{what} is {list(a.shape)}; expected {told}, or this for each step")
        if rank is not None and a.ndim == rank + 1:
            steps.add(a.shape[0])
        found[port.name] = a
    for name in data:
        if name not in found:
            raise Error(f"{model.whole.path} has no input {shown(name)}, which the data have")
    if len(steps) > 1:
        raise Error(f"the data are of {sorted(steps)} steps; expected one number")
    return found, steps.pop() if steps else 1


def _declared(job: Job, model: Model, data: dict[str, np.ndarray], steps: int) -> list[Any]:
    """Tables that stand for the inputs, with shapes and types. Inputs without dimensions become
    [1]."""
    given: list[Any] = []
    for port in model.inputs:
        if not data[port.name].size:  # an empty tensor cannot be declared
            t = torch.from_numpy(data[port.name])
            given.append((t, t.shape, t.dtype))
            continue
        a, rank = data[port.name], _rank(port)
        each = rank is not None and a.ndim == rank + 1
        lines = a if each else np.broadcast_to(a, (steps, *a.shape))
        shape = lines.shape[1:]
        flat = lines.reshape(steps, *shape) if shape else lines.reshape(steps, 1)
        flat = np.require(flat, requirements=["C", "W"])  # torch shares its memory
        t = job.table(flat, name=port.name, allow_large=True)
        given.append((t, shape, torch.from_numpy(np.empty(0, a.dtype)).dtype))
    return given


def _read(given: list[Any]) -> list[Tensor]:
    """The inputs in the shapes and types that the model reads."""
    made = []
    for t, shape, dtype in given:
        t = t.reshape(shape) if tuple(t.shape) != tuple(shape) else t
        made.append(t if t.dtype is dtype else t.to(dtype))
    return made


class Answering:
    """A job in which each step answers one batch of inputs. The state is the outputs, and is kept
    every `interval` steps."""

    def __init__(
        self,
        model: Model,
        data: Mapping[str, Any],
        folder: str | os.PathLike[str],
        seed: int = 0,
        interval: int = 1,
    ) -> None:
        own, self.steps = arrays(model, data)
        self.model = model
        self.job = Job(Path(folder), seed=seed, steps=self.steps, checkpoint_interval=interval)
        self.given = _declared(self.job, model, own, self.steps)
        for source in self.job._sources:
            source.load(0)
        with self.job, torch.no_grad():
            self.first = model(*_read(self.given))
        self.answers = Answers(model, self.first)

    def step(self) -> None:
        with torch.no_grad():
            self.answers.put(self.model(*_read(self.given)))

    def capture(self) -> str:
        with self.job:
            return self.job.capture(self.step, {"model": self.model, "answer": self.answers})

    def check(self, steps: int = 1, verde: str | None = None) -> None:
        """Checks that the command `verde` computes the block's bits."""
        self.job.check(min(steps, self.steps), verde)
