"""Says that a thread or process that starts in a block is in none, once in a process.

It computes by PyTorch, which nothing else would tell.
"""

from __future__ import annotations

import multiprocessing
import threading
import warnings
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

# Threads of these modules compute nothing.
_QUIET = (
    "tqdm",
    "torch.utils.data",
    "multiprocessing.queues",
    "multiprocessing.pool",
    "multiprocessing.resource_sharer",
    "concurrent.futures.process",
)
_patched: list[tuple[Any, Any, Any]] = []  # the class, its new `start`, the one before
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
    """Then it is in the block."""
    method = getattr(process, "_start_method", None) or multiprocessing.get_start_method()
    return method == "fork"


def watch(active: Callable[[], Any]) -> None:
    """From now on. active: the block of the thread that calls."""
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
    """No longer. What somebody else has patched since then stays."""
    for kind, own, before in _patched:
        if kind.start is own:
            kind.start = before
