"""Finds state that no program can see: Python values that a step changes, random generators, clocks
and files."""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import datetime
import functools
import gc
import io
import logging
import os
import random
import sys
import time
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._library import Error
from ..torch._mode import _OWN as _TORCHS
from ..torch._mode import user_frame

COUNTERS = ("step",)  # optimizers' counters, which a program derives from the step's number
VALUES_MAX = 1 << 20  # values that are examined
LIST_MAX = 1000  # plain values of a list that are examined one by one
MANY = (
    f"the step reaches more than {VALUES_MAX} values of Python, too many to look for what it "
    "changes; keep data out of what it names, and declare them: job.rows, job.windows, job.table"
)
ARRAY_BYTES_MAX = 64 << 20  # larger numpy arrays are not examined
# The content of these is declared elsewhere, or belongs to torch.
_OWN = (torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device)
PLAIN = (int, float, complex, str, bytes, bool, type(None))
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
_LIBRARIES = {*sys.stdlib_module_names, "torch", "numpy", "repops"}

Found = dict[str, Any]


class _Search:
    def __init__(self) -> None:
        self.found: Found = {}
        self.objects: dict[str, Any] = {}  # objects that are not plain, by path
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # keeps objects alive, so that no id is reused
        self._times: Counter[str] = Counter()  # how often each path occurred

    def look(self, path: str, value: Any) -> None:
        """Notes a plain value, or searches an object that holds other values."""
        if len(self.found) >= VALUES_MAX:
            raise Error(MANY)
        if not isinstance(value, PLAIN):
            self.objects.setdefault(path, value)
        if isinstance(value, _OWN):
            return
        if isinstance(value, PLAIN):
            self._note(path, repr(value))
            return
        if isinstance(value, (np.ndarray, np.generic)):
            self._array(path, np.asarray(value))
            return
        if id(value) in self._seen or type(value).__module__.startswith("repops.jobs"):
            return
        self._seen.add(id(value))
        self._kept.append(value)
        self._into(path, value)

    def _array(self, path: str, a: np.ndarray) -> None:
        if a.flags.writeable and a.nbytes <= ARRAY_BYTES_MAX:
            self._note(path, (a.shape, hash(a.tobytes())))

    def _note(self, path: str, value: Any) -> None:
        """Notes a value. Paths may repeat, as for variables of functions of the same name."""
        self._times[path] += 1
        times = self._times[path]
        self.found[path if times == 1 else f"{path} ({times})"] = value

    def _into(self, path: str, value: Any) -> None:
        if isinstance(value, dict):
            self._note(path, len(value))
            for i, (key, item) in enumerate(list(value.items())):
                if isinstance(key, torch.Tensor) and isinstance(item, dict):  # optimizer state
                    item = {k: v for k, v in item.items() if k not in COUNTERS}
                if isinstance(key, PLAIN):
                    self.look(f"{path}[{key!r}]", item)
                else:
                    self.look(f"{path}[{type(key).__name__} {i}]", item)
        elif isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
            if len(value) > LIST_MAX and all(isinstance(v, PLAIN) for v in value):
                self._note(path, hash("\n".join(map(repr, value))))
                return
            self._note(path, len(value))
            for i, item in enumerate(value):
                self.look(f"{path}[{i}]", item)
        elif isinstance(value, (set, frozenset)):
            plain = [repr(v) for v in value if isinstance(v, PLAIN)]
            self._note(path, (len(value), sorted(plain)))
            for i, item in enumerate(v for v in value if not isinstance(v, PLAIN)):
                self.look(f"{path}[{i}]", item)
        elif isinstance(value, _GENERATORS):
            self._note(path, _state_of(value))
        elif isinstance(value, types.GeneratorType):
            self._generator(path, value)
        elif isinstance(value, (types.FunctionType, functools.partial, types.MethodType)):
            self._function(path, value)
        elif isinstance(value, torch.nn.Module):
            self._module(path, value)
        elif isinstance(value, types.ModuleType):
            return
        elif isinstance(value, type):
            self._class(path, value)
        elif isinstance(value, contextvars.ContextVar):
            self.look(path, value.get(None))
        elif isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
            self._iterator(path, value)
        elif _is_value(value):
            self._note(path, repr(value))
        else:
            self._attributes(path, value)

    def _generator(self, path: str, generator: Any) -> None:
        """Notes where a generator is suspended, and searches its variables."""
        frame = generator.gi_frame
        self._note(path, None if frame is None else frame.f_lasti)
        for name, item in ({} if frame is None else frame.f_locals).items():
            self.look(f"{path}.{name}", item)

    def _iterator(self, path: str, iterator: Any) -> None:
        """Searches what an iterator's __reduce__ would restore it from."""
        try:
            made = iterator.__reduce__()[1:]
        except Exception:  # noqa: BLE001 - it has none
            return
        for i, item in enumerate(made):
            self.look(f"{path}.{i}", item)

    def _class(self, path: str, kind: type) -> None:
        """Searches the attributes of the user's classes, which their objects share."""
        for own in kind.__mro__:
            if _is_library(own):
                continue
            for name, item in list(vars(own).items()):
                if not name.startswith("__") and not isinstance(item, _DESCRIPTORS):
                    self.look(f"{own.__name__}.{name}", item)

    def _attributes(self, path: str, value: Any) -> None:
        for name, item in list(getattr(value, "__dict__", {}).items()):
            if name not in _SKIPPED:
                self.look(f"{path}.{name}", item)
        for own in type(value).__mro__:
            slots = own.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                with contextlib.suppress(AttributeError):
                    self.look(f"{path}.{name}", getattr(value, name))
        self.look(type(value).__name__, type(value))

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
        if _is_library(function):
            return
        code, own = function.__code__, function.__qualname__.rpartition("<locals>.")[2]
        used = set(_names(code))
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # the cell is empty
                self._global(f"{own}: {name}", cell.cell_contents, used)
        for name in sorted(used):
            if name in function.__globals__:
                self._global(f"{own}: {name}", function.__globals__[name], used)
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        for i, item in enumerate(defaults):
            self.look(f"{own}: default argument {i}", item)
        for name, item in list(vars(function).items()):
            self.look(f"{own}.{name}", item)

    def _global(self, name: str, value: Any, used: set[str]) -> None:
        """Searches a global variable; of a user's module only the names that a function uses."""
        if not isinstance(value, types.ModuleType):
            self.look(name, value)
        elif value.__name__.split(".")[0] not in _LIBRARIES:
            for inner in sorted(used & vars(value).keys()):
                if not isinstance(vars(value)[inner], types.ModuleType):
                    self.look(f"{name}.{inner}", vars(value)[inner])


def _is_value(x: Any) -> bool:
    """Is it an object of a C type of the standard library whose repr tells its value (range, date,
    array)?"""
    kind = type(x)
    plain: Any = object.__repr__
    told = kind.__repr__ is not plain and not hasattr(x, "__dict__")
    return told and kind.__module__ in sys.stdlib_module_names and not isinstance(x, types.CellType)


def _is_library(x: Any) -> bool:
    return (getattr(x, "__module__", None) or "").split(".")[0] in _LIBRARIES


def _names(code: types.CodeType) -> Iterator[str]:
    """Global names that the code and functions inside it use."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
_DESCRIPTORS = (types.FunctionType, classmethod, staticmethod, property, types.MemberDescriptorType)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return hash(generator.get_state().numpy().tobytes())
    if isinstance(generator, random.Random):
        return hash(generator.getstate())
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state()
        return hash(repr(state[1].tobytes()) + repr(state[2:]))
    return repr(generator.bit_generator.state)


def values_of(step: Any, called: Iterable[Any] = (), **objects: Any) -> _Search:
    """All plain values that are reachable from a step, from these objects and from functions that
    it called, by path."""
    search = _Search()
    with _disable_current_modes(), _not_too_deep():
        for name, value in objects.items():
            search.look(name, value)
        search.look("step", step)
        for function in called:
            search.look(function.__qualname__, function)
        search.look("os.environ", dict(os.environ))
    search.found["a mode of torch"] = (torch.is_grad_enabled(), torch.get_default_dtype())
    search.found["the state of `random`"] = hash(random.getstate())
    search.found["the state of `numpy.random`"] = _state_of(np.random.mtrand._rand)
    return search


@contextlib.contextmanager
def _not_too_deep() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise Error(MANY) from None


def changed(before: _Search, after: _Search) -> list[str]:
    """Paths where a value was added, removed or changed, or where an object was replaced by another
    known one. A path below another changed path is left out."""
    one, other = before.found, after.found
    names = [n for n in other if one.get(n, _NONE) != other[n]]
    names += [n for n in one if n not in other]
    known = {id(x) for x in before.objects.values()}
    for path, x in after.objects.items():
        if path in before.objects and before.objects[path] is not x and id(x) in known:
            names.append(path)
    names = list(dict.fromkeys(names))
    return [n for n in names if not any(n.startswith((f"{m}[", f"{m}.")) for m in names)]


_NONE = object()

# ---- functions that are called, clocks and files ----

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
} | {datetime.datetime.now, datetime.datetime.utcnow, datetime.date.today}
_FILES = {
    builtins.open,
    os.open,
    os.read,
    os.stat,
    os.listdir,
    os.urandom,
    os.getpid,
    builtins.input,
}
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen")


def _is_standard(file: str) -> bool:
    return file.startswith(_STANDARD) and "-packages" + os.sep not in file


def _is_own(file: str) -> bool:
    """Is the file part of the standard library, torch or this package?"""
    return _is_standard(file) or file.startswith((*_TORCHS, "<frozen"))


def _outside(function: Any) -> str:
    """Names what a C function reads from outside the step, such as a clock; "": nothing."""
    try:
        if function in _CLOCKS:
            return "a clock"
        known = function in _FILES or isinstance(getattr(function, "__self__", None), io.IOBase)
    except TypeError:  # an unhashable function is not in the sets
        return ""
    return "a file or the system" if known and function.__name__ not in _WRITES else ""


_WRITES = ("write", "writelines", "flush")  # output is not state


class Watch:
    """Notes calls of clocks and files in the user's code, and the user's functions that are
    called."""

    def __init__(self) -> None:
        self.outside: list[tuple[str, str]] = []  # what is read, and where
        self._codes: set[types.CodeType] = set()

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            self._codes.add(frame.f_code)
        elif event == "c_call" and (what := _outside(argument)):
            self._note(frame, f"{what} ({argument.__name__})")

    def _note(self, frame: types.FrameType | None, what: str) -> None:
        while frame and _is_standard(frame.f_code.co_filename):
            if frame.f_code.co_filename == logging.__file__:  # nobody reads a log record's time
                return
            frame = frame.f_back
        if frame and user_frame(frame)[0] is frame:
            self.outside.append((what, f"{frame.f_code.co_filename}:{frame.f_lineno}"))

    def functions(self) -> list[Any]:
        """The user's functions that were called."""
        own = [c for c in self._codes if not _is_own(c.co_filename)]
        found = (
            [f for f in gc.get_referrers(*own) if isinstance(f, types.FunctionType)] if own else []
        )
        return sorted(
            (f for f in found if not _is_library(f)),
            key=lambda f: (f.__code__.co_filename, f.__code__.co_firstlineno, f.__qualname__),
        )

    def __enter__(self) -> Watch:
        self._before = sys.getprofile()
        sys.setprofile(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        sys.setprofile(self._before)
