"""The commitment of a model's and an optimizer's state (PROTOCOL.md section 2)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .. import _commit
from .._library import Error
from ._call import DTYPES

_CODES = {**DTYPES, torch.bfloat16: 5, torch.float16: 6, torch.int8: 7}
if hasattr(torch, "uint16"):
    _CODES[torch.uint16] = 4

Named = Iterator[tuple[str, Any]]


def _of_model(model: Any) -> Named:
    """Parameters, then buffers that are part of the state dict, each once, in the model's order."""
    if isinstance(model, Mapping):
        yield from model.items()
        return
    yield from model.named_parameters()
    kept = set(model.state_dict())
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in kept)


def _of_optimizer(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> Named:
    """What the optimizer keeps for each parameter, in the order of its groups."""
    place = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            name = names.get(id(p), f"parameter {place}")
            place += 1
            for key, value in sorted(optimizer.state.get(p, {}).items()):
                if value is not None:
                    yield f"{name}.{key}", value


def _tensor(name: str, value: Any) -> torch.Tensor:
    if isinstance(value, bool) or not isinstance(value, (int, float, torch.Tensor)):
        raise Error(f"{name} is a {type(value).__name__}; expected a tensor or a number")
    if isinstance(value, int):  # Python's ints become int64 and floats float64, on every machine.
        return torch.tensor(value, dtype=torch.int64, device="cpu")
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64, device="cpu")
    return value


def commitment_of(name: str, value: Any) -> str:
    """The commitment of one value of a state."""
    t = _tensor(name, value).detach().cpu().contiguous()
    t = t.clone() if t._is_zerotensor() else t  # zeros without memory, as the gradient of a sign
    if t.is_sparse or t.is_quantized:
        raise Error(f"{name} is sparse or quantized; expected a dense tensor")
    size = t.numel() * t.element_size()
    shape = _commit.shape(_CODES.get(t.dtype), t.shape, size, name)
    return _commit.of_memory(shape, t.data_ptr()).hex()


def commitments(model: Any, optimizer: torch.optim.Optimizer | None = None) -> dict[str, str]:
    """The commitment of each tensor of a state, by name. Where `hash` differs, it shows which
    tensors do.

    model: a module, or a mapping of names to tensors. A state has parameters, buffers, and what the
    optimizer keeps of each parameter."""
    state = list(_of_model(model))
    names = {id(t): name for name, t in state}
    if optimizer is not None:
        state += _of_optimizer(optimizer, names)
    found: dict[str, str] = {}
    for name, value in state:
        if name in found:
            raise Error(f"two tensors of the state are called {name}")
        found[name] = commitment_of(name, value)
    return found


def hash(model: Any, optimizer: torch.optim.Optimizer | None = None) -> str:
    """The commitment of a state, as 64 hexadecimal digits: equal if all bits of it are.

    It is the root over the commitments of all tensors (PROTOCOL.md 2.3), in the order of
    `commitments`. Settings, such as the learning rate, are not part of the state."""
    return _commit.root(commitments(model, optimizer).values())


class HashLog:
    """Keeps the hash after each step of an optimizer, and writes it to a file if one is given.

    >>> with HashLog(model, optimizer, "hashes.txt") as log:
    ...     train()
    >>> log.hashes[-1]

    Each line of the file has the step's number, from 1 on, and the hash: `diff` of two files shows
    the first step that differs. every: 10 hashes steps 10, 20 and so on."""

    def __init__(
        self,
        model: Any,
        optimizer: torch.optim.Optimizer,
        file: str | os.PathLike[str] | None = None,
        every: int = 1,
    ) -> None:
        if every < 1:
            raise Error(f"every is {every}; expected at least 1")
        self.hashes: list[str] = []
        self._model, self._optimizer, self._file, self._every = model, optimizer, file, every
        self._steps = 0

    def __enter__(self) -> HashLog:
        self._out = open(self._file, "w") if self._file is not None else None
        self._hook = self._optimizer.register_step_post_hook(self._stepped)
        return self

    def __exit__(self, *exception: object) -> None:
        self._hook.remove()
        if self._out:
            self._out.close()

    def _stepped(self, *_: Any) -> None:
        self._steps += 1
        if self._steps % self._every:
            return
        self.hashes.append(hash(self._model, self._optimizer))
        if self._out:
            self._out.write(f"{self._steps} {self.hashes[-1]}\n")
            self._out.flush()
