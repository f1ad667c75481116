"""What a step keeps where no program can see it: plain values of Python that it changes, generators
of random numbers, clocks and files."""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
import random
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ..torch._mode import user_frame

VALUES_MAX = 1 << 20  # values that are looked at
# What these hold is declared elsewhere, or is torch's own business.
_OWN = (torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device, torch.Generator)
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_SKIPPED = {
    "_parameters",
    "_buffers",
    "_modules",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_profile_hook_name",
    "_zero_grad_profile_name",
    "_step_count",
    "_opt_called",
}
_LIBRARIES = ("torch", "numpy", "repops", "builtins", "collections", "functools", "typing")

Found = dict[str, Any]


class _Search:
    def __init__(self) -> None:
        self.found: Found = {}
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no identity is used again

    def look(self, path: str, value: Any) -> None:
        """Notes what is plain, and goes into what holds other values."""
        if len(self.found) >= VALUES_MAX or isinstance(value, _OWN):
            return
        if isinstance(value, _PLAIN):
            self.found[path] = repr(value)
            return
        if isinstance(value, (np.ndarray, np.generic)):
            self.found[path] = hash(np.asarray(value).tobytes())
            return
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        self._into(path, value)

    def _into(self, path: str, value: Any) -> None:
        if isinstance(value, dict):
            self.found[path] = len(value)
            for key, item in list(value.items()):
                if isinstance(key, _PLAIN) and key not in _SKIPPED:
                    self.look(f"{path}[{key!r}]", item)
        elif isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
            self.found[path] = len(value)
            for i, item in enumerate(value):
                self.look(f"{path}[{i}]", item)
        elif isinstance(value, (set, frozenset)):
            self.found[path] = sorted(map(repr, value))
        elif isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)):
            self.found[path] = _state_of(value)
        elif isinstance(value, (types.FunctionType, functools.partial, types.MethodType)):
            self._function(path, value)
        elif isinstance(value, torch.nn.Module):
            self._module(path, value)
        elif hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType)):
            self._attributes(path, value)
        elif isinstance(value, Iterator):
            self.found[path] = _place_in(value)

    def _attributes(self, path: str, value: Any) -> None:
        for name, item in list(vars(value).items()):
            if name not in _SKIPPED:
                self.look(f"{path}.{name}", item)

    def _module(self, path: str, module: torch.nn.Module) -> None:
        self._attributes(path, module)
        for name, child in module.named_children():
            self.look(f"{path}.{name}", child)

    def _function(self, path: str, function: Any) -> None:
        if isinstance(function, functools.partial):
            for i, item in enumerate((function.func, *function.args, *function.keywords.values())):
                self.look(f"{path}.partial[{i}]", item)
            return
        if isinstance(function, types.MethodType):
            self.look(f"{path}.__self__", function.__self__)
            self.look(path, function.__func__)
            return
        if (function.__module__ or "").split(".")[0] in _LIBRARIES:
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # it is empty
                self.look(name, cell.cell_contents)
        for name in _names(code):
            if name in function.__globals__:
                self.look(name, function.__globals__[name])
        for i, item in enumerate(function.__defaults__ or ()):
            self.look(f"{path}.__defaults__[{i}]", item)


def _names(code: types.CodeType) -> Iterator[str]:
    """Global names that it uses, and functions inside of it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return hash(generator.getstate())
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state()
        return hash(repr(state[1].tobytes()) + repr(state[2:]))
    return repr(generator.bit_generator.state)


def _place_in(iterator: Any) -> Any:
    """How far an iterator is, where it says so."""
    state = getattr(iterator, "__reduce__", None)
    try:
        return repr(state()[1:]) if state is not None else "?"
    except Exception:  # noqa: BLE001
        frame = getattr(iterator, "gi_frame", None)
        return None if frame is None else (frame.f_lineno, repr(sorted(frame.f_locals)))


def values_of(step: Any, **objects: Any) -> Found:
    """All plain values that a step and these objects can reach, by their paths."""
    search = _Search()
    for name, value in objects.items():
        search.look(name, value)
    search.look("step", step)
    search.found["the state of `random`"] = hash(random.getstate())
    search.found["the state of `numpy.random`"] = _state_of(np.random.mtrand._rand)
    return search.found


def changed(before: Found, after: Found) -> list[str]:
    """Paths whose values differ, or that one of both lacks."""
    names = [n for n in after if before.get(n, _NONE) != after[n]]
    return names + [n for n in before if n not in after]


_NONE = object()

# ---- clocks and files ----

_CLOCKS = {
    getattr(time, name)
    for name in (
        "time",
        "time_ns",
        "monotonic",
        "monotonic_ns",
        "perf_counter",
        "perf_counter_ns",
        "process_time",
        "localtime",
        "gmtime",
    )
}
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen")
_FILES = {builtins.open, os.open, os.read, os.stat, os.listdir, os.urandom, os.getpid}


def _is_standard(file: str) -> bool:
    return file.startswith(_STANDARD) and "-packages" + os.sep not in file


@contextlib.contextmanager
def watching() -> Iterator[list[tuple[str, str]]]:
    """Notes the user's calls of clocks and files: what, and where."""
    found: list[tuple[str, str]] = []
    before = sys.getprofile()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event != "c_call":
            return
        try:
            known = argument in _CLOCKS or argument in _FILES
        except TypeError:  # what has no hash is none of them
            return
        if not known:
            return
        while frame and _is_standard(frame.f_code.co_filename):
            frame = frame.f_back
        if user_frame(frame)[0] is frame and frame is not None:
            what = "a clock" if argument in _CLOCKS else "a file or the system"
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            found.append((f"{what} ({argument.__name__})", place))

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)
