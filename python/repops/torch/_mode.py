"""The block in which torch's operators are the library's."""

from __future__ import annotations

import collections
import os
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from .._context import Context, current
from .._library import Error
from ._call import Leftover, Misfit
from ._devices import Devices, device_of
from ._editions import computed
from ._integers import tensors
from ._modes import changed, set_back, set_default, torch_parallel
from ._registry import OF_SPARSE
from ._routes import direct, resolve, routes
from ._whole import LEAVES, active, enter, leave

_OWN = (str(Path(torch.__file__).parent) + os.sep, str(Path(__file__).parent.parent) + os.sep)
_LISTS = ("aten::_foreach_", "aten::_fused_", "aten::_amp_")  # they write outputs in turn
_FAKE = "its tensors are fake, as those of torch.export, whose graphs cannot hold the library"
POLICIES = ("error", "warn", "list")


class LeftoverError(Error):
    """The program called an operator that the library does not have. The text says which, why and
    where."""


def user_frame(frame: FrameType | None) -> tuple[FrameType | None, bool]:
    """The innermost frame that is neither torch's nor this package's, and whether autograd's engine
    was found before it: the operator then belongs to a backward pass."""
    engine = False
    while frame and (
        frame.f_code.co_filename.startswith(_OWN) or frame.f_code.co_filename[0] == "<"
    ):
        engine = engine or frame.f_code.co_name == "_engine_run_backward"
        frame = frame.f_back
    return frame, engine


def where() -> str:
    """File and line of the user's frame."""
    frame = user_frame(sys._getframe(1))[0]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "unknown"


_autocast_is_on = torch._C._is_any_autocast_enabled


def _check_autocast(device: str) -> None:
    if torch.is_autocast_enabled(device):
        raise Leftover("autocast is on: it computes in types whose bits depend on the machine")


def _made_on(kwargs: dict) -> torch.device | None:
    """The device on which the call creates a tensor, or None if that is the CPU."""
    device = kwargs.get("device")
    made = None if device is None else torch.device(device)
    return None if made is None or made.type in ("cpu", "meta") else made


def _with_tensors(func: Any, args: tuple) -> tuple:
    """The arguments with tensors in place of numbers that are given for tensors; (): there are
    none. Graphs, of torch.jit.trace say, pass numbers so, and not all operators take them."""
    types = [str(a.type) for a in func._schema.arguments]
    number = [t == "Tensor" and isinstance(a, (bool, int, float)) for t, a in zip(types, args)]
    real = next((t.dtype for t in tensors(args) if t.is_floating_point()), torch.float64)
    whole = tuple(
        torch.tensor(a, dtype=real if isinstance(a, float) else None, device="cpu") if own else a
        for own, a in zip(number, args)
    )
    return whole if any(number) else ()


def _after_fork() -> None:
    """A forked child has none of OpenMP's threads; without this libgomp would wait for them for
    ever."""
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
        self._thread: int  # the one that is in the block; it exists while there is one
        self._context: Context | None = None
        self._devices: Devices | None = None
        self._outer: reproducible | None = None

    def _claim(self) -> None:
        """Makes this thread the block's own until the block ends, or raises Error. Handlers in
        autograd's threads enter the block again."""
        owner = self.__dict__.setdefault("_thread", threading.get_ident())  # one step for threads
        if owner == threading.get_ident():
            return
        if not sys._getframe(2).f_code.co_filename.startswith(_OWN[1]):
            raise Error("another thread is in this block; expected a block of its own in each")

    def __enter__(self) -> reproducible:
        self._claim()
        if self._depth == 0:
            # The context comes first: only it can fail, and nothing has been entered by then.
            self._torch_threads = torch.get_num_threads()
            threads = self._threads or self._torch_threads
            try:
                self._context = Context(threads, parallel=torch_parallel()).__enter__()
            except BaseException:
                del self._thread
                raise
            self._devices = Devices(self._context)
            torch.set_num_threads(threads)
            self._modes = set_default(threads)
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()
            # Autograd's own thread for a device would add gradients in another order than this one.
            self._engine_threads = torch._C._is_multithreading_enabled()
            torch._C._set_multithreading_enabled(False)
            # From their second run on, graphs of torch.jit would have gradients by other formulas.
            self._optimizes = torch._C._get_graph_executor_optimize()
            torch._C._set_graph_executor_optimize(False)
            self._outer = enter(self)
        self._depth += 1
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._depth -= 1
        if self._depth == 0:
            leave(self._outer)
            torch._C._set_graph_executor_optimize(self._optimizes)
            torch._C._set_multithreading_enabled(self._engine_threads)
            self._stance.__exit__(*exception)
            set_back(self._modes)
            torch.set_num_threads(self._torch_threads)
            if self._context is not None:
                self._context.__exit__()
            del self._thread

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch's check of compiled code would add a microsecond to each operator, and nothing is
        compiled in a block."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types and any(t.__torch_dispatch__ is not LEAVES for t in types):
            if func.namespace == "aten" and any(issubclass(t, FakeTensor) for t in types):
                return self._left(func, _FAKE, args, kwargs or {})
            return NotImplemented  # a jagged tensor calls operators on its parts, which come here
        if changed():
            self._set_modes_again()
        try:
            device = device_of(args) or (_made_on(kwargs) if kwargs else None)
            if device is not None:
                return self._on_device(device, func, args, kwargs or {})
            if not kwargs:
                kwargs = {}
                call = direct.get(func)
                if call is not None:
                    return call(*args)
            if _autocast_is_on():
                _check_autocast("cpu")
            return (routes.get(func) or resolve(func))(self, func, args, kwargs)
        except Leftover as leftover:
            reason = str(leftover)
        except Exception as error:
            whole = _with_tensors(func, args)
            if whole:
                return self.__torch_dispatch__(func, types, whole, kwargs)
            reason = self._failed(func, error, args, kwargs)
            if not reason:
                raise
        return self._left(func, reason, args, kwargs)

    def on(self, device: torch.device) -> Context:
        """This thread's context on a device."""
        if current().job is not None or self._devices is None:
            raise Leftover(f"it is on {device}, and the step of a job is recorded on the CPU")
        return self._devices.context(device)

    def _on_device(self, device: torch.device, func: Any, args: tuple, kwargs: dict) -> Any:
        if _autocast_is_on():
            _check_autocast(device.type)
        return computed(self, func, args, kwargs, self.on(device))

    def _failed(self, func: Any, error: Exception, args: tuple, kwargs: dict) -> str:
        """Why torch should compute the operator, which the block could not; "": it should not.

        Layouts are only checked here, so that dense tensors pay nothing. For other errors torch
        tells whether the call is wrong or the block is, unless part of the output has been written
        already."""
        if isinstance(error, (LeftoverError, Misfit)):
            return ""  # a LeftoverError comes from an operator that this one decomposes into
        known = func._schema.name.removeprefix("aten::") in OF_SPARSE
        known = known and not func._schema.is_mutable
        for t in tensors([args, list(kwargs.values())]):
            if t.is_nested or (t.layout is not torch.strided and not known):
                return f"one of its inputs is {'nested' if t.is_nested else t.layout}"
        if self.policy == "error" or func._schema.name.startswith(_LISTS):
            return ""
        return f"the block cannot compute it: {error}"

    def _set_modes_again(self) -> None:
        set_default(torch.get_num_threads())
        warnings.warn(
            f"floating-point modes were changed in the block before {where()}, as by "
            "torch.set_flush_denormal, fesetround or a library built with -ffast-math: "
            "they are the default ones again",
            stacklevel=3,
        )

    def _left(self, func: Any, reason: str, args: tuple, kwargs: dict) -> Any:
        given = list(tensors([args, list(kwargs.values())]))
        if given and all(t.is_meta for t in given):
            return func(*args, **kwargs)  # shapes only, without any bits
        text = f"{func} at {where()}: {reason}"
        if self.policy == "error":
            raise LeftoverError(text) from None
        if self.policy == "warn":
            warnings.warn(f"not reproducible: {text}", stacklevel=2)
        result = func(*args, **kwargs)
        self.leftovers[(str(func), reason, where())] += 1
        return result
