"""Shapes and types of the arguments of functions that are called outside the block, in one
table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .. import _context
from .._library import Error
from ._modes import changed, default_modes

Tensor = torch.Tensor
IDS = (torch.int64, torch.int32)

# Tensors of each function, in order. A name stands for one size in all of them, * for any number of
# leading sizes, a number for itself. "?": may be None. ":ids": has integers.
SIGNATURES = {
    "linear": "x [* in] weight [out in] bias? [out]",
    "linear_backward": "dy [* out] x [* in] weight [out in]",
    "layer_norm": "x [* C] weight [C] bias [C]",
    "layer_norm_backward": "dy [* C] x [* C] weight [C] mean [* 1] rstd [* 1]",
    "rms_norm": "x [* C] weight [C]",
    "rms_norm_backward": "dy [* C] x [* C] weight [C] rstd [* 1]",
    "attention": "q [B H T D] k [B G S D] v [B G S E]",
    "attention_backward": (
        "dout [B H T E] q [B H T D] k [B G S D] v [B G S E] out [B H T E] stats [2 B H T]"
    ),
    "conv2d": "x [N C H W] weight [F c KH KW] bias? [F]",
    "conv2d_backward": "dy [N F OH OW] x [N C H W] weight [F c KH KW]",
    "cross_entropy": "x [rows classes] target:ids [rows]",
    "cross_entropy_backward": "dy [] x [rows classes] target:ids [rows] kept []",
    "embedding": "ids:ids [*] table [V C]",
    "embedding_backward": "dy [* C] ids:ids [*]",
    "dropout": "x [*]",
    "activation": "x [*]",
    "activation_backward": "saved [*] dy [*]",
}


class Argument(NamedTuple):
    name: str
    sizes: tuple[str, ...]
    ids: bool
    optional: bool


@functools.cache
def _arguments(function: str) -> tuple[Argument, ...]:
    found = []
    for text in SIGNATURES[function].split("]")[:-1]:
        name, sizes = text.split("[")
        name = name.strip()
        plain = name.removesuffix("?").removesuffix(":ids")
        found.append(Argument(plain, tuple(sizes.split()), ":ids" in name, "?" in name))
    return tuple(found)


def _known(size: str, sizes: dict[str, Any]) -> Any:
    return int(size) if size.isdigit() else sizes.get(size)


def _fits(argument: Argument, shape: Sequence[int], sizes: dict[str, Any]) -> bool:
    """Does the shape fit? Enters sizes that it is the first to name into `sizes`."""
    names = argument.sizes
    if names[:1] == ("*",):
        names, before = names[1:], len(shape) - len(names) + 1
        if before < 0 or sizes.setdefault("*", tuple(shape[:before])) != tuple(shape[:before]):
            return False
        shape = shape[before:]
    if len(names) != len(shape):
        return False
    for name, size in zip(names, shape):
        known = _known(name, sizes)
        if known is None:
            sizes[name] = size
        elif known != size:
            return False
    return True


def _expected(argument: Argument, sizes: dict[str, Any]) -> str:
    words: list[str] = []
    for name in argument.sizes:
        known = _known(name, sizes)
        if name == "*":
            words += ["..."] if known is None else [str(n) for n in known]
        else:
            words.append(name if known is None else str(known))
    return f"[{', '.join(words)}]"


def expect_kind(where: str, t: Any, types: Sequence[torch.dtype], devices: Sequence[str]) -> None:
    """Raises Error unless t is a dense tensor of one of these types on one of these devices."""
    if not isinstance(t, Tensor):
        raise Error(f"{where} is {type(t).__name__}; expected a tensor")
    if t.layout is not torch.strided:
        raise Error(f"{where} is {t.layout}; expected a dense tensor")
    if t.dtype not in types:
        raise Error(f"{where} is {t.dtype}; expected {' or '.join(str(d) for d in types)}")
    if t.device.type not in devices and t.device != _context.current().device:
        raise Error(f"{where} is on {t.device}; expected the CPU's memory, or a block")


def check(function: str, given: Sequence[Any], devices: Sequence[str] = ("cpu",)) -> dict[str, Any]:
    """Raises Error unless these are tensors that the function takes. Returns sizes by their
    names."""
    sizes: dict[str, Any] = {}
    own = _arguments(function)
    for argument, t in zip(own, [*given, *[None] * (len(own) - len(given))]):
        if t is None and argument.optional:
            continue
        where = f"{function}: {argument.name}"
        expect_kind(where, t, IDS if argument.ids else (torch.float32,), devices)
        before = dict(sizes)
        if not _fits(argument, t.shape, sizes):
            raise Error(f"{where} is {list(t.shape)}; expected {_expected(argument, before)}")
    return sizes


def checked(
    function: str, fake: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function: its leading arguments, which are its tensors, are checked, and it
    computes with the default floating-point modes. fake: the tensors may have no memory."""
    devices, count = ("cpu", "meta") if fake else ("cpu",), len(_arguments(function))

    def around(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def outer(*args: Any) -> Any:
            check(function, args[:count], devices)
            if fake or not changed():
                return inner(*args)
            with default_modes():
                return inner(*args)

        return outer

    return around
