"""Steps of models whose weights are not in memory: results that depend on weights have a shape, a
place and reserved memory, but are not computed."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..torch._integers import tensors

Tensor = torch.Tensor
SMALL = 1 << 16  # bytes; below, reserving memory costs more than it saves
ALONE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


class Unshaped(Exception):
    """The result's shape depends on values that do not exist."""


def blank(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Zeros, in memory that the system only provides when it is written to."""
    if math.prod(size) == 0:
        return torch.empty_strided(tuple(size), tuple(stride), dtype=dtype)
    last = sum((n - 1) * s for n, s in zip(size, stride))
    return reserved(last + 1, dtype).as_strided(tuple(size), tuple(stride))


def reserved(count: int, dtype: torch.dtype) -> Tensor:
    """Makes a row of `count` zeros, which take memory only where they are written if it is long."""
    size = count * dtype.itemsize
    if size < SMALL:
        return torch.zeros(count, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, size, flags=ALONE), dtype=dtype)


class _Twins:
    """Meta tensors that stand for others; the same tensor always has the same twin."""

    def __init__(self) -> None:
        self._of: dict[int, Tensor] = {}  # by the id of the original
        self.known: dict[int, Tensor] = {}  # originals by the id of the twin

    def twin(self, t: Tensor) -> Tensor:
        if id(t) not in self._of:
            own = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
            self._of[id(t)], self.known[id(own)] = own, t
        return self._of[id(t)]

    def all_of(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.twin(value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.all_of, value))
        return torch.device("meta") if isinstance(value, torch.device) else value

    def has_views(self, out: Any) -> bool:
        own = {t.untyped_storage()._cdata for t in self._of.values()}
        made = [t for t in tensors([out]) if id(t) not in self.known]
        return any(t.untyped_storage()._cdata in own for t in made)

    def back(self, value: Any) -> Any:
        """The original of a twin; new reserved memory for other meta tensors."""
        if isinstance(value, Tensor):
            known = self.known.get(id(value))
            return blank(value.shape, value.stride(), value.dtype) if known is None else known
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.back, value))
        return value


def of_operator(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operator's results, as far as shapes determine them. A view is computed as it is."""
    if func.is_view:
        return func(*args, **kwargs)
    twins = _Twins()
    with _disable_current_modes():
        named = {k: twins.all_of(v) for k, v in kwargs.items()}
        try:
            out = func(*twins.all_of(args), **named)
        except NotImplementedError as error:
            raise Unshaped(str(error)) from None
        if not twins.has_views(out):
            return twins.back(out)
    return func(*args, **kwargs)  # its schema does not say that it is a view


def zeros(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of an operator that makes dense zeros, or tensors with undefined content."""
    if kwargs.get("layout") not in (None, torch.strided):
        return func(*args, **kwargs)
    return of_operator(func, args, {**kwargs, "device": torch.device("meta")})
