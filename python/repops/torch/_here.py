"""Creates tensors on the device of the current operator, and of float32, in which the library
computes: torch's functions would use the program's default device and default type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .. import _context

_CPU = torch.device("cpu")


def _there(make: Callable[..., torch.Tensor], real: bool = False) -> Callable[..., torch.Tensor]:
    def made(*args: Any, **kwargs: Any) -> torch.Tensor:
        if real and "dtype" not in kwargs:
            kwargs["dtype"] = torch.float32
        if "device" in kwargs:
            return make(*args, **kwargs)
        return make(*args, device=_context.current().device or _CPU, **kwargs)

    return made


empty, zeros, ones = (_there(f, True) for f in (torch.empty, torch.zeros, torch.ones))
full, eye = (_there(f, True) for f in (torch.full, torch.eye))
arange, triu_indices = (_there(f) for f in (torch.arange, torch.triu_indices))
tensor = _there(torch.tensor)  # waits for a CUDA device; see number


def kept(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """functools.lru_cache for functions that make tensors, with an entry for each device and
    stream: another stream might read a tensor before it is written."""

    def keep(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.lru_cache(count)
        def of(place: Any, *args: Any) -> Any:
            return make(*args)

        @functools.wraps(make)
        def call(*args: Any) -> Any:
            context = _context.current()
            place = None if context.device is None else (context.device, context.stream)
            return of(place, *args)

        return call

    return keep


def number(value: float, dims: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A number as a tensor of 0 or 1 dimensions. On a device a kernel fills it, because a copy from
    the host would have to wait."""
    if _context.current().device is None:
        return torch.tensor([value] if dims else value, dtype=dtype, device=_CPU)
    if abs(value) > 65504 and abs(value) > torch.finfo(dtype).max:  # torch would not fill it in
        value = torch.tensor(value, dtype=dtype, device=_CPU).item()
    return full((1,) * dims, value, dtype=dtype)


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def beside(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A value for x, to which torch passes numbers as tensors without dimensions in the CPU's
    memory. On a device a kernel fills a tensor with its bits, as for number."""
    if x.is_cpu or not value.is_cpu or value.dim():
        return value
    bits = _BITS.get(value.element_size())
    if bits is None:
        return value.to(x.device)
    return full((), value.view(bits).item(), dtype=bits).view(value.dtype)
