"""Floating-point modes: rounding, subnormals flushed to zero, exceptions that interrupt.

The library computes with the default modes whatever the thread's are. PyTorch does not, nor do
Python and numpy: torch.set_flush_denormal, fesetround and libraries that were built with
-ffast-math change them for a thread, and threads inherit them from the one that starts them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from .._library import lib, path

# PyDLL keeps Python's lock: this runs at each operator, too short for other threads to run.
changed: Callable[[], int] = ctypes.PyDLL(os.fspath(path())).ro_modes
changed.restype = ctypes.c_uint64  # type: ignore[attr-defined]
_Parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
_alone = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


@functools.cache
def _openmp(name: str) -> int | None:
    """The address of a function of PyTorch's OpenMP."""
    try:
        torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return ctypes.cast(torch_cpu[name], ctypes.c_void_p).value
    except (OSError, AttributeError):  # this PyTorch was built without OpenMP
        return None


def torch_parallel() -> int | None:
    """The address of GOMP_parallel, by which the library borrows PyTorch's OpenMP threads. These
    spin for milliseconds after each operator, and would compete with the library's own threads."""
    return _openmp("GOMP_parallel")


class Team(ctypes.Structure):
    """Threads and the modes that they had: ro_team_modes of the library."""

    _fields_ = [("number", ctypes.c_void_p), ("modes", ctypes.POINTER(ctypes.c_uint64))]

    def __init__(self, threads: int) -> None:
        self.parallel, number = torch_parallel() or 0, _openmp("omp_get_thread_num")
        # A forked child has no other threads, and libgomp would wait for its parent's for ever.
        if threads == 1 or not self.parallel or not number or _forked:
            threads, number = 1, ctypes.cast(_alone, ctypes.c_void_p).value
        self.threads = threads
        super().__init__(number, (ctypes.c_uint64 * threads)())

    def each(self, body: Any) -> None:
        """Calls body(self) on each thread of the team."""
        if self.threads == 1 or _forked:
            body(ctypes.byref(self))
        else:
            address = ctypes.cast(body, ctypes.c_void_p)
            _Parallel(self.parallel)(address, ctypes.addressof(self), self.threads, 0)


def set_default(threads: int) -> Team:
    """Sets the default modes on this thread and on PyTorch's other threads."""
    own, team = Team(1), Team(threads)
    own.each(lib.ro_team_modes_set)  # first, since threads that this one starts inherit its modes
    team.each(lib.ro_team_modes_set)
    team.modes[0] = own.modes[0]
    return team


def set_back(team: Team) -> None:
    """Restores the modes that the threads had."""
    if any(team.modes[: team.threads]):
        team.each(lib.ro_team_modes_restore)
    elif changed():  # changed since then, and no operator has run since
        set_default(1)


@contextlib.contextmanager
def default_modes() -> Iterator[None]:
    """Computes with the default modes, if this thread has others, and restores them afterwards."""
    team = set_default(torch.get_num_threads()) if changed() else None
    try:
        yield
    finally:
        if team:
            set_back(team)
