"""Where Python, or torch's own code, takes numbers from memory unseen by any dispatcher."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..torch._integers import tensors
from ..torch._mode import user_frame

if TYPE_CHECKING:
    from ._record import Recorder

Tensor = torch.Tensor
READ = "Python reads a number that depends on the step's data"
WAYS_MAX = 8  # additional recordings for steps that read other values
WAYS = f"{READ}, and steps differ by it in more than {WAYS_MAX} ways"
SHARED = f"{READ}, in memory that it may change"
DISTRIBUTION = f"{READ}: torch.distributions looks at its arguments"
NORM = f"{READ}: clip_grad_norm_ looks whether the norm is finite"
SCALER = f"{READ}: a GradScaler looks at gradients"
BOXES = f"{READ}: nms, and roi_align without sampling_ratio, look at boxes"
# Files of torch, and of the block, that read values, and which have an option that avoids it.
_READERS = {
    "repops/torch/_detection.py": BOXES,
    "torch/distributions/": DISTRIBUTION,
    "torch/nn/utils/clip_grad.py": NORM,
    "torch/amp/grad_scaler.py": SCALER,
}


def reader() -> str:
    """The reason why code in one of these files reads, or ""."""
    frame: FrameType | None = sys._getframe(1)
    last = user_frame(frame)[0]
    while frame is not None and frame is not last:
        for file, why in _READERS.items():
            if file in frame.f_code.co_filename.replace(os.sep, "/"):
                return why
        frame = frame.f_back
    return ""


@contextlib.contextmanager
def reading(recorder: Recorder) -> Iterator[None]:
    """Notes reads that no dispatcher sees: Python takes all numbers of a tensor at once."""
    with contextlib.ExitStack() as stack:
        for name in _TAKES:
            stack.enter_context(_put(Tensor, name, _noted(recorder, name, getattr(Tensor, name))))
        for holder, name, at, kinds in _INSIDE:
            own = _looked(recorder, name, at, kinds, getattr(holder, name))
            stack.enter_context(_put(holder, name, own))
        yield


@contextlib.contextmanager
def _put(holder: Any, name: str, function: Any) -> Iterator[None]:
    before = vars(holder).get(name)
    setattr(holder, name, function)
    try:
        yield
    finally:
        if before is None:
            delattr(holder, name)
        else:
            setattr(holder, name, before)


# Functions that take numbers from memory unseen by any dispatcher, and the argument with them:
# sizes of packed sequences or of parts, and lists that become tensors.
_SIZES = (Tensor,)
_LISTS = (list, tuple)
_INSIDE: list[tuple[Any, str, int, Any]] = [
    *[(torch._VF, name, 1, _SIZES) for name in ("_pad_packed_sequence", "lstm", "gru")],
    *[(torch._VF, name, 1, _SIZES) for name in ("rnn_tanh", "rnn_relu")],
    *[(holder, "tensor_split", 1, _SIZES) for holder in (torch, Tensor)],
    *[(torch, name, 0, _LISTS) for name in ("tensor", "as_tensor", "asarray")],
    (Tensor, "new_tensor", 1, _LISTS),
]
_NAMED = ("indices_or_sections", "tensor_indices_or_sections", "indices", "data", "obj")


def _looked(recorder: Recorder, name: str, at: int, kinds: Any, function: Any) -> Any:
    """Wraps the function: it first reports what it takes."""

    def taken(args: Any, kwargs: dict[str, Any]) -> Iterator[Tensor]:
        given = [args[at]] if len(args) > at else [kwargs.get(n) for n in _NAMED]
        for t in tensors([v for v in given if isinstance(v, kinds)]):
            if kinds is _LISTS or not t.is_floating_point():  # otherwise it is a layer's state
                yield t

    def call(*args: Any, **kwargs: Any) -> Any:
        for t in taken(args, kwargs):
            with _disable_current_modes():
                p = recorder.place(t)
                if recorder.is_live([p]) and not recorder.paused:
                    recorder.site = recorder.sites.here(name)
                    recorder.read(name, [p], {}, t)
        return function(*args, **kwargs)

    return call


_TAKES = ("numpy", "tolist", "__array__", "__dlpack__", "__reduce_ex__")


def _noted(recorder: Recorder, name: str, function: Any) -> Any:
    def take(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            p = recorder.place(self)
            if not recorder.paused and recorder.is_live([p]):
                recorder.site = recorder.sites.here(name)
                if name == "tolist":
                    recorder.read(name, [p], {}, self)
                else:  # Python may write to the shared memory
                    of_data = recorder.is_of_data([p])
                    (recorder.refuse if of_data else recorder.refuse_read)(
                        name, SHARED if of_data else READ
                    )
            frame = sys._getframe(1)
            if user_frame(frame)[0] is frame:  # not called from torch or this package
                recorder.passed.add(self.untyped_storage()._cdata)
                recorder.outside([p])
        return function(self, *args, **kwargs)

    return take
