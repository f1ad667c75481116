"""The block in which torch's operators are the library's."""

from __future__ import annotations

import collections
import ctypes
import functools
import os
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .._context import Context
from .._library import Error
from . import functional
from ._call import Leftover
from ._routes import resolve, routes, views

_OWN = (str(Path(torch.__file__).parent) + os.sep, str(Path(__file__).parent) + os.sep)
POLICIES = ("error", "warn", "list")


class LeftoverError(Error):
    """An operator that the library does not have was called. The text says which, why and where."""


def user_frame(frame: FrameType | None) -> tuple[FrameType | None, bool]:
    """The innermost frame that is neither torch's nor this package's, and whether the engine of
    autograd stands before it: then an operator of a backward pass is called."""
    engine = False
    while frame and (
        frame.f_code.co_filename.startswith(_OWN) or frame.f_code.co_filename[0] == "<"
    ):
        engine = engine or frame.f_code.co_name == "_engine_run_backward"
        frame = frame.f_back
    return frame, engine


def where() -> str:
    """File and line of that frame."""
    frame = user_frame(sys._getframe(1))[0]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "unknown"


# ---- losses that torch takes apart before a dispatch mode sees them, and that the library has ----

_LOSS = torch.ops.aten.cross_entropy_loss.default
_whole_lock = threading.Lock()
_whole_blocks = 0
_whole: torch.library.Library | None = None
_fast_attention = True  # layers of attention have a single operator for inference: not here


def _cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """The library's own inside a block, which has the bits of Verde's programs, where it has it."""
    rows = x.dim() == 2 and x.dtype is torch.float32 and target.dtype is torch.int64
    plain = rows and target.shape == x.shape[:1] and weight is None and not label_smoothing
    # The library's has no rule for vmap and forward derivatives.
    plain = plain and torch._C._functorch.peek_interpreter_stack() is None
    if active() is None or not plain or reduction not in (1, 2):
        return _LOSS.decompose(x, target, weight, reduction, ignore_index, label_smoothing)
    return functional.cross_entropy(x, target, ignore_index, ("mean", "sum")[reduction - 1])


def _whole_loss(mode: reproducible, func: Any, args: tuple, kwargs: dict) -> Any:
    """Without autograd, torch does not take it apart."""
    with mode:
        return _cross_entropy(*args, **kwargs)


routes[_LOSS] = _whole_loss


def _take_whole() -> None:
    """While any thread is in a block. A mode of functions would see this loss too, but it would
    also be asked at each attribute of each tensor. torch's fast path of encoders that are evaluated
    is one operator, and is off meanwhile."""
    global _whole, _whole_blocks, _fast_attention
    with _whole_lock:
        _whole_blocks += 1
        if _whole is None:
            _fast_attention = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
            _whole = torch.library.Library("aten", "IMPL")
            _whole.impl("cross_entropy_loss", _cross_entropy, "AutogradCPU")


def _leave_whole() -> None:
    global _whole, _whole_blocks, _fast_attention
    with _whole_lock:
        _whole_blocks -= 1
        if _whole_blocks == 0 and _whole is not None:
            _whole._destroy()
            _whole = None
            torch.backends.mha.set_fastpath_enabled(_fast_attention)


@functools.cache
def torch_parallel() -> int | None:
    """The function that lends PyTorch's threads of OpenMP. They spin for milliseconds after each
    operator of PyTorch's, so that the library's own threads would compete with them for cores."""
    try:
        torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return ctypes.cast(torch_cpu.GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError):  # a PyTorch without OpenMP
        return None


_autocast_is_on = torch.is_autocast_enabled
_disabled = torch.Tensor.__torch_dispatch__  # of all classes that leave operators to others
_local = threading.local()


def _check_device(device: Any) -> None:
    if torch.device(device).type not in ("cpu", "meta"):
        raise Leftover(f"it goes to {device}, and only the CPU's memory is supported")


def active() -> reproducible | None:
    """The innermost block that this thread is in."""
    return getattr(_local, "block", None)


def _after_fork() -> None:
    """A child of fork has none of OpenMP's threads, and libgomp would wait for them for ever."""
    if active() is not None:
        torch.set_num_threads(1)


os.register_at_fork(after_in_child=_after_fork)


class reproducible(TorchDispatchMode):
    """with repops.torch.reproducible(): torch's operators have the same bits on every machine.

    Build the model, train and evaluate it inside. leftovers: what happens at an operator that the
    library does not have: "error" raises LeftoverError, "warn" warns and "list" counts in the
    attribute `leftovers` by (operator, reason, place); both then let torch compute it, so that
    nothing can be said of its bits. threads: those that compute, torch's own operators too; 0: as
    many as torch has.
    """

    def __init__(self, leftovers: str = "error", threads: int = 0) -> None:
        super().__init__()
        if leftovers not in POLICIES:
            raise Error(f"leftovers is {leftovers!r}; expected one of {list(POLICIES)}")
        self.policy = leftovers
        self.leftovers: collections.Counter[tuple[str, str, str]] = collections.Counter()
        self._threads, self._depth = threads, 0
        self._context: Context | None = None
        self._outer: reproducible | None = None

    def __enter__(self) -> reproducible:
        if self._depth == 0:
            # The context comes first: it alone can fail, and then nothing was entered.
            self._torch_threads = torch.get_num_threads()
            threads = self._threads or self._torch_threads
            self._context = Context(threads, parallel=torch_parallel()).__enter__()
            torch.set_num_threads(threads)
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()
            _take_whole()
            self._outer, _local.block = active(), self
        self._depth += 1
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._depth -= 1
        if self._depth == 0:
            _local.block = self._outer
            _leave_whole()
            self._stance.__exit__(*exception)
            torch.set_num_threads(self._torch_threads)
            if self._context is not None:
                self._context.__exit__()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would put a microsecond around each operator. Nothing is compiled in a block."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types and any(t.__torch_dispatch__ is not _disabled for t in types):
            return NotImplemented  # a jagged tensor calls operators on its parts, which come here
        if func in views and not kwargs:
            return func._op(*args)
        kwargs = kwargs or {}
        try:
            if _autocast_is_on("cpu"):
                raise Leftover(
                    "autocast is on: it computes in types whose bits depend on the machine"
                )
            if kwargs and kwargs.get("device") is not None:
                _check_device(kwargs["device"])
            return (routes.get(func) or resolve(func))(self, func, args, kwargs)
        except Leftover as reason:
            return self._left(func, str(reason), args, kwargs)

    def _left(self, func: Any, reason: str, args: tuple, kwargs: dict) -> Any:
        text = f"{func} at {where()}: {reason}"
        if self.policy == "error":
            raise LeftoverError(text) from None
        if self.policy == "warn":
            warnings.warn(f"not reproducible: {text}", stacklevel=2)
        self.leftovers[(str(func), reason, where())] += 1
        return func(*args, **kwargs)
