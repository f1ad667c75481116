"""Warns, once in a process, that a thread or process started in a block is not in the block.

It computes with PyTorch's bits, and nothing else would say so.
"""

from __future__ import annotations

import multiprocessing
import threading
import warnings
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

# Threads of these modules compute no tensors.
_QUIET = (
    "tqdm",
    "torch.utils.data",
    "multiprocessing.queues",
    "multiprocessing.pool",
    "multiprocessing.resource_sharer",
    "concurrent.futures.process",
)
_patched: list[tuple[Any, Any, Any]] = []  # class, our `start`, the `start` before
_told: set[str] = set()


def _tell(what: str) -> None:
    if what not in _told:
        _told.add(what)
        warnings.warn(
            f"a {what} that starts in the block is in none: PyTorch computes there, with other "
            "bits, unless it enters a block of its own. (This is said once.)",
            stacklevel=3,
        )


def _quiet(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None) if type(thread) is threading.Thread else type(thread)
    return str(getattr(target, "__module__", "")).startswith(_QUIET)


def _forked(process: Any) -> bool:
    """Is the process forked? Then it starts inside the block."""
    method = getattr(process, "_start_method", None) or multiprocessing.get_start_method()
    return method == "fork"


def watch(active: Callable[[], Any]) -> None:
    """Patches `start` of threads and processes. active() is the block of the calling thread, or
    None."""
    start_a_thread, start_a_process = threading.Thread.start, BaseProcess.start

    def thread(self: threading.Thread) -> None:
        if active() is not None and not _quiet(self):
            _tell("thread")
        start_a_thread(self)

    def process(self: Any) -> None:
        enters = any(getattr(a, "enters_block", False) for a in getattr(self, "_args", ()))
        if active() is not None and not enters and not _forked(self):
            _tell("process")
        start_a_process(self)

    _patched[:] = [
        (threading.Thread, thread, start_a_thread),
        (BaseProcess, process, start_a_process),
    ]
    for kind, own, _ in _patched:
        kind.start = own


def rest() -> None:
    """Undoes the patches, except where somebody else has patched since."""
    for kind, own, before in _patched:
        if kind.start is own:
            kind.start = before
