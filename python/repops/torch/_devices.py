"""Devices of a block. Each thread and stream has a context of the library, which computes in the
stream's order on torch's tensors, without copying them. Its temporary memory also comes from
torch."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._context import Context
from .._library import PTR
from ._call import Leftover

_LEND = ctypes.CFUNCTYPE(PTR, PTR, ctypes.c_size_t, PTR)
_GIVE_BACK = ctypes.CFUNCTYPE(None, PTR, PTR, PTR)
DEFAULT_STREAM = 1  # cudaStreamLegacy: for a context, 0 means no stream


class Kind(NamedTuple):
    """A type of devices. The library calls its device N cuda:N."""

    stream: Callable[[int], int]  # the current CUDA stream of this thread on device N
    current: Callable[[], int]  # the device of tensors that are made without an index
    captures: Callable[[], bool]  # whether the stream is being captured as a graph


KINDS = {
    "cuda": Kind(
        lambda index: torch._C._cuda_getCurrentRawStream(index) or DEFAULT_STREAM,
        lambda: torch.cuda.current_device(),
        lambda: torch.cuda.is_current_stream_capturing(),
    )
}


def _memory(device: torch.device) -> tuple[Any, Any]:
    """Functions through which the library borrows memory from torch's allocator, in the stream's
    order."""
    held: dict[int, torch.Tensor] = {}

    def lend(user: Any, size: int, stream: Any) -> int | None:
        try:
            with _disable_current_modes():
                block = torch.empty(size, dtype=torch.uint8, device=device)
        except RuntimeError:  # the library reports it; no exception may pass through it
            return None
        held[block.data_ptr()] = block
        return block.data_ptr()

    def give_back(user: Any, block: int, stream: Any) -> None:
        del held[block]

    return _LEND(lend), _GIVE_BACK(give_back)


class DeviceContext(Context):
    """A context that computes on a device. host: the block's context for the CPU."""

    def __init__(self, device: torch.device, stream: int, host: Context) -> None:
        self._functions = _memory(device)
        lend, give_back = (ctypes.cast(f, PTR).value for f in self._functions)
        backend = f"cuda:{device.index}"
        super().__init__(1, backend, None, stream, lend, give_back)
        self.device, self.host = device, host


class Devices:
    """The devices of one block, which computes on one device beside the CPU."""

    def __init__(self, host: Context) -> None:
        self._host = host
        self._device: torch.device | None = None
        self._contexts: dict[tuple[int, int], DeviceContext] = {}

    def context(self, device: torch.device) -> DeviceContext:
        """Returns the context of this thread and its current stream."""
        if device != self._device:
            device = self._checked(device)
        kind = KINDS[device.type]
        if kind.captures():
            raise Leftover("a CUDA graph is captured, which cannot hold the library")
        key = threading.get_ident(), kind.stream(device.index)
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = DeviceContext(device, key[1], self._host)
        return found

    def _checked(self, device: torch.device) -> torch.device:
        if device.type not in KINDS:
            raise Leftover(f"it is on {device}; expected the CPU or CUDA")
        if device.index is None:
            device = torch.device(device.type, KINDS[device.type].current())
        if self._device not in (None, device):
            raise Leftover(
                f"it is on {device}, and the block has tensors on {self._device}; expected one "
                "device beside the CPU"
            )
        self._device = device
        return device


def device_of(values: Any) -> torch.device | None:
    """Returns the device of the first tensor outside the CPU's memory. A list may have tensors in
    both memories: torch then takes each of them by itself."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if not value.is_cpu and not value.is_meta:
                return value.device
        elif isinstance(value, (list, tuple)) and value:
            found = device_of(value)
            if found is not None:
                return found
    return None
