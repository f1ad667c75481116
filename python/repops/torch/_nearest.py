"""Resizes images by their nearest elements, as torch's CPU kernels choose them. Which element is
chosen depends on the type, the sizes, the number of channels and the order of memory. So the
numbers of an axis go once through the kernel that would take the image's elements."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch._prims_common import suggest_memory_format
from torch.utils._python_dispatch import _disable_current_modes

from .. import _context
from . import _here as here
from ._axes import Taps, resized_backward
from ._call import Leftover
from ._registry import handles, on_devices

Tensor = torch.Tensor
_NAMES = [f"{k}{n}d" for k in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)]
KERNELS: dict[str, Any] = {name: getattr(torch.ops.aten, name).default for name in _NAMES}
_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}
_CHANNELS = 4  # channels_last has a kernel of its own for this many channels or more
_EXACT = 2**24  # float32 holds all whole numbers up to this one


def _is_last(x: Tensor) -> bool:
    return x.dim() > 3 and x.is_contiguous(memory_format=_LAST[x.dim() - 2])


@here.kept(512)
def _of_axes(
    kernel: Any, size: tuple[int, ...], channels: int, last: bool, kind: Any, out: Any, scales: Any
) -> tuple[Tensor, ...]:
    """For each axis, returns which input element each output element takes."""
    order, found = _LAST[len(size)] if last else torch.contiguous_format, []
    with _disable_current_modes():
        for d, n in enumerate(size):
            if n > _EXACT:
                raise Leftover(f"one of its axes has more than {_EXACT} elements")
            shape = [1, 1, *(n if e == d else 1 for e in range(len(size)))]
            numbers = torch.arange(n, dtype=kind, device="cpu").reshape(shape)
            numbers = numbers.expand(1, channels, *size).contiguous(memory_format=order)
            moved = kernel(numbers, out, *scales)[0, 0].movedim(d, 0)
            places = moved.reshape(out[d], -1)[:, 0].long()
            found.append(places.to(_context.current().device or "cpu"))
    return tuple(found)


def _axes(kernel: Any, x: Tensor, size: Any, out: Any, scales: Any) -> tuple[Tensor, ...]:
    """The same for an image of this size, by the kernel for tensors like x: x is the image itself,
    or the output's gradient. The kernel computes in float64 or float32, as wide as its numbers;
    halves in float32."""
    kind = torch.float64 if x.dtype is torch.float64 else torch.float32
    channels = min(x.shape[1], _CHANNELS)
    return _of_axes(kernel, tuple(size), channels, _is_last(x), kind, tuple(out), tuple(scales))


def places(kernel: Any, x: Tensor, out: Any, scales: Any) -> Tensor:
    """Returns the index of each output element among the flat elements of an image."""
    size = x.shape[2:]
    first, *rest = _axes(kernel, x, size, out, scales)
    for n, own in zip(size[1:], rest):
        first = first[..., None] * n + own
    return first.reshape(-1)


def _ordered(y: Tensor, x: Tensor) -> Tensor:
    """Returns y in the order of memory that torch gives x resized."""
    return y.contiguous(memory_format=suggest_memory_format(x))


def indexed(fixed: Any, kernel: Any, x: Tensor, out: Any, *scales: Any) -> Tensor:
    """Resizes an image in the step of a job, where `fixed` makes constants of the places. Torch's
    own decomposition finds other places than its kernels for some sizes."""
    axes = [fixed(own) for own in _axes(kernel, x, x.shape[2:], out, scales)]
    at = [own.reshape(-1, *[1] * (len(axes) - 1 - d)) for d, own in enumerate(axes)]
    return _ordered(torch.ops.aten._unsafe_index.Tensor(x, [None, None, *at]), x)


def _register() -> None:
    for name, kernel in KERNELS.items():

        def forward(x: Tensor, out: Any, *scales: Any, kernel: Any = kernel) -> Tensor:
            flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
            y = flat.index_select(2, places(kernel, x, out, scales))
            return _ordered(y.reshape(*x.shape[:2], *out), x)

        def backward(
            dy: Tensor, out: Any, shape: Any, *scales: Any, kernel: Any = kernel
        ) -> Tensor:
            axes: list[tuple[int, Taps]] = [
                (2 + d, (own.reshape(1, -1), None))
                for d, own in enumerate(_axes(kernel, dy, shape[2:], out, scales))
            ]
            return resized_backward(dy, shape, axes[::-1])

        on_devices(f"{name}.default")(forward)
        handles(f"{name}_backward.default")(backward)


_register()
