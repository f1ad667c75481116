"""Calls of the library's operators on torch's tensors: the lowest layer of this package."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx.experimental import proxy_tensor
from torch.utils._python_dispatch import _disable_current_modes

from .. import _context
from .._library import MAX_DIMS, PTR, Call, Error, Gradient, Shape, lib
from .._operators import bits, call
from .._table import TABLE
from . import _here as here

DTYPES = {torch.float32: 1, torch.int32: 2, torch.uint8: 3}
TORCH = {code: dtype for dtype, code in DTYPES.items()}
MAX_CALLS = 8192  # cached calls; at the limit the cache is emptied
BLOCK = 1024  # elements in a block of a row reduction (SPEC 3.2)

# For each key: the call, its output's shape and type, the array type for the inputs' addresses, and
# a reference to the call.
_calls: dict[Any, tuple[Call, tuple[int, ...], torch.dtype, Any, Any]] = {}
ONE = bits(1.0)


class Leftover(Exception):
    """The library does not have this operator, or not for these arguments. The text says why."""


class Misfit(Error):
    """Sizes with which PyTorch's kernel would read or write out of bounds: it must not be
    called."""


class Wrong(Exception):
    """PyTorch refuses these arguments: call it, so that its own error is raised."""


def expect(right: bool, text: str) -> None:
    """Raises Wrong unless `right`."""
    if not right:
        raise Wrong(text)


def numbers(ids: torch.Tensor, rows: int) -> torch.Tensor:
    """Row indices as int32, which the library reads. Indices out of range stay out of range; on the
    CPU they have been refused."""
    if rows >= 2**31:
        raise Leftover(f"its table has {rows} rows, and the library numbers 2^31 at most")
    if not ids.is_cpu and ids.dtype is torch.int64:
        ids = ids.clamp(-1, rows)
    return ids.to(torch.int32)


def _now(inputs: Any = ()) -> _context.Context:
    """This thread's context, once it is known that all inputs are in its memory."""
    if proxy_tensor._CURRENT_MAKE_FX_TRACER is not None:
        raise Leftover("a graph is recorded (torch.export, make_fx), which cannot hold the library")
    context = _context.current()
    device = context.device
    for t in inputs:
        if isinstance(t, torch.Tensor) and (not t.is_cpu if device is None else t.device != device):
            raise Leftover(f"its input is on {t.device}; expected {device or 'the CPU'}")
    return context


def need(*tensors: torch.Tensor) -> None:
    """Raises Leftover unless all tensors are float32 in the context's memory."""
    device = _context.current().device
    for t in tensors:
        if t.dtype is not torch.float32:
            half = ", of autocast perhaps" if t.dtype in (torch.bfloat16, torch.float16) else ""
            raise Leftover(f"its input is {t.dtype}{half}; float32 is what the library computes in")
        if not t.is_cpu if device is None else t.device != device:
            where = "the CPU's memory" if device is None else device
            raise Leftover(f"its input is on {t.device}; expected {where}")


def _shape(size: Sequence[int], dtype: torch.dtype) -> Shape:
    if dtype not in DTYPES:
        raise Leftover(f"its input is {dtype}, which the library does not have")
    size = tuple(size) or (1,)
    if len(size) > MAX_DIMS:
        raise Leftover(f"its input has {len(size)} dimensions, and the library allows {MAX_DIMS}")
    it = Shape(DTYPES[dtype], len(size))
    it.dim[: len(size)] = size
    return it


def _keep(key: Any, it: Call, inputs: int) -> Any:
    if len(_calls) >= MAX_CALLS:
        _calls.clear()
    size, dtype = tuple(it.output.dim[: it.output.ndim]), TORCH[it.output.dtype]
    kept = _calls[key] = (it, size, dtype, PTR * max(1, inputs), ctypes.byref(it))
    return kept


def _checked(
    key: Any,
    name: str,
    attributes: Sequence[int],
    inputs: Sequence[torch.Tensor],
    shape: Sequence[int] | None,
    dtype: torch.dtype,
) -> Any:
    output = None if shape is None else _shape(shape, dtype)
    it = call(TABLE[name], attributes, [_shape(t.shape, t.dtype) for t in inputs], output)
    return _keep(key, it, len(inputs))


def run(
    name: str,
    attributes: Sequence[int],
    inputs: Sequence[torch.Tensor],
    shape: Sequence[int] | None = None,
    dtype: torch.dtype = torch.float32,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Runs an operator. `shape` and `dtype` declare the output where the operator does not fix it.
    Inputs that are not contiguous are copied."""
    inputs = [t if t.is_contiguous() else t.contiguous() for t in inputs]
    key = (name, tuple(attributes), shape and tuple(shape), *[(t.shape, t.dtype) for t in inputs])
    _, size, dtype, pointers, address = _calls.get(key) or _checked(
        key, name, attributes, inputs, shape, dtype
    )
    if out is None:
        out = here.empty(size, dtype=dtype)
    elif not packed(out):
        raise Error(f"{name}: the output's elements do not lie side by side")
    context = _now(inputs)
    if context.watcher is not None and not context.watcher.run(name, attributes, inputs, out):
        return out
    at = pointers(*[t.data_ptr() for t in inputs])
    context.check(lib.ro_run(context.handle, address, at, out.data_ptr()))
    return out


def fused(function: Any, *arguments: Any, strided: bool = False) -> None:
    """Calls a function of fused.h. Tensors are passed as addresses, None as NULL. strided: inputs
    need not be contiguous: the function is told their strides, or works with any."""
    context, given = _now(arguments), []
    if context.watcher is not None and not context.watcher.fused(function.__name__, arguments):
        return
    for a in arguments:
        if isinstance(a, torch.Tensor):
            _readable(function, a, strided)
            a = a.data_ptr()
        given.append(a)
    context.check(function(context.handle, *given))


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Hides operators and reads of values from the watcher: they are parts of a call that `whole`
    reports."""
    context = _context.current()
    watcher = context.watcher
    if watcher is None:
        yield
        return
    context.watcher, watcher.paused = None, True
    try:
        with _disable_current_modes():
            yield
    finally:
        context.watcher, watcher.paused = watcher, False


def whole(name: str, compute: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Returns compute(*inputs), which a watcher sees as one call, as its parts depend on values."""
    with unwatched():
        out = compute(*inputs)
    watcher = _context.current().watcher
    if watcher is not None:
        watcher.whole(name, inputs, out)
    return out


def _readable(function: Any, a: torch.Tensor, strided: bool) -> None:
    if a.dtype not in (torch.float32, torch.int32):
        raise Leftover(f"one of its inputs is {a.dtype}; float32 is what the library computes in")
    if not strided and not a.is_contiguous():
        raise Error(f"{function.__name__}: a tensor of {list(a.shape)} is not dense")


def _run_flat(
    name: str, attributes: Sequence[int], inputs: Sequence[torch.Tensor], out: torch.Tensor
) -> None:
    """Runs an elementwise operator on memory, whatever the shape. All tensors are float32 and
    packed."""
    n = out.numel()
    key = (name, attributes, n, len(inputs))
    kept = _calls.get(key)
    if kept is None:
        flat = [_shape((n,), torch.float32)] * len(inputs)
        kept = _keep(key, call(TABLE[name], attributes, flat, None), len(inputs))
    context = _now(inputs)
    if context.watcher is not None and not context.watcher.run_flat(name, attributes, inputs, out):
        return
    at = kept[3](*[t.data_ptr() for t in inputs])
    context.check(lib.ro_run(context.handle, kept[4], at, out.data_ptr()))


def elementwise(name: str, attributes: Sequence[int], *inputs: torch.Tensor) -> torch.Tensor:
    """Runs an elementwise operator. The output has the first input's strides if all inputs have its
    shape and strides."""
    need(*inputs)
    first = inputs[0]
    out = torch.empty_like(first)
    stride, shape = out.stride(), first.shape
    for t in inputs:
        if t.stride() != stride or t.shape != shape:
            inputs = tuple(t.contiguous() for t in torch.broadcast_tensors(*inputs))
            out = here.empty(inputs[0].shape)
            break
    if out.numel():
        _run_flat(name, attributes, inputs, out)
    return out


def elementwise_(name: str, attributes: Sequence[int], x: torch.Tensor) -> torch.Tensor:
    """Runs an elementwise operator of one input in place; `ro_op_in_place` must allow it."""
    need(x)
    if not packed(x):
        return x.copy_(elementwise(name, attributes, x))
    if x.numel():
        _run_flat(name, attributes, (x,), x)
    return x


def packed(t: torch.Tensor) -> bool:
    """Do the elements fill one block of memory, each once, in any order of the dimensions?"""
    if t.is_contiguous():
        return True
    at = 1
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n != 1):
        if stride != at:
            return False
        at *= size
    return True


def matmul(a: torch.Tensor, b: torch.Tensor, batch_dims: int = 0) -> torch.Tensor:
    """The product of matrices, or of batches of them. Transposed operands are not copied."""
    need(a, b)
    (a, trans_a), (b, trans_b) = _as_stored(a), _as_stored(b)
    return run("matmul", (batch_dims, trans_a + 2 * trans_b, ONE, 256, 0), (a, b))


def _as_stored(t: torch.Tensor) -> tuple[torch.Tensor, int]:
    if t.is_contiguous():
        return t, 0
    other = t.transpose(-1, -2)
    return (other, 1) if other.is_contiguous() else (t.contiguous(), 0)


def sum_rows(x: torch.Tensor) -> torch.Tensor:
    """Sums of the rows of a matrix in order R (SPEC 3.2): [rows, cols] to [rows]."""
    rows, cols = x.shape
    y = here.empty(rows)
    fused(lib.ro_sum, rows, cols, x.contiguous(), y)
    return y


def sum_columns(x: torch.Tensor) -> torch.Tensor:
    """Sums of the columns of a matrix in order K (SPEC 3.3): [rows, cols] to [cols]."""
    rows, cols = x.shape
    y = here.empty(cols)
    fused(lib.ro_sum_rows, rows, cols, x.contiguous(), Gradient(y.data_ptr(), 0))
    return y


def sums_of_squares(xs: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of the squares of each tensor, [len(xs)], in order R: reduce_dot, then reduce_sum."""
    sums = here.empty(len(xs))
    for i, x in enumerate(xs):
        need(x)
        n = x.numel()
        block = max(1, min(n, BLOCK))
        blocks = -(-n // block)
        flat = x.contiguous().view(-1)
        parts = run("reduce_dot", (n, block), (flat, flat), (blocks,)) if n else flat
        fused(lib.ro_sum, 1, blocks, parts, sums.data_ptr() + 4 * i)
    return sums


def fold(
    y: torch.Tensor, dim: int, both: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Reduces dim, of size 1 or more, to 1 by halves: `both` joins the first half to the second;
    with an odd size the first half's last element is kept as it is. Repeated until one is left."""
    while y.shape[dim] > 1:
        half, rest = (y.shape[dim] + 1) // 2, y.shape[dim] // 2
        joined = both(y.narrow(dim, 0, rest), y.narrow(dim, half, rest))
        y = torch.cat([joined, y.narrow(dim, rest, half - rest)], dim)
    return y


def _total64(x: torch.Tensor, reduced: list[int], keepdim: bool) -> torch.Tensor:
    """Sums of float64 by halves along each dimension, the last one first."""
    for d in reversed(reduced):
        if x.shape[d]:
            x = fold(x, d, torch.add)
        else:
            x = here.zeros([1 if e == d else n for e, n in enumerate(x.shape)], dtype=x.dtype)
    return x if keepdim else x.reshape([n for d, n in enumerate(x.shape) if d not in reduced])


def total(
    x: torch.Tensor, dims: Sequence[int] | None = None, keepdim: bool = False
) -> torch.Tensor:
    """Sums along dimensions; along all if dims is None or empty.

    Sums of the last dimensions have order R (SPEC 3.2) over the indices in row-major order; of any
    others order K (SPEC 3.3) over the reduced indices in row-major order.
    """
    nd, shape = x.dim(), x.shape
    reduced = sorted({d % nd for d in dims}) if dims and nd else list(range(nd))
    if x.dtype is torch.float64:
        return _total64(x, reduced, keepdim)
    need(x)
    kept = [d for d in range(nd) if d not in reduced]
    terms, sums = math.prod([shape[d] for d in reduced]), math.prod([shape[d] for d in kept])
    y = here.empty(
        [1 if d in reduced else n for d, n in enumerate(shape)]
        if keepdim
        else [shape[d] for d in kept]
    )
    if reduced == list(range(len(kept), nd)):
        fused(lib.ro_sum, sums, terms, x.contiguous(), y)
        return y
    if kept != list(range(len(reduced), nd)):
        x = x.permute(*reduced, *kept)
    fused(lib.ro_sum_rows, terms, sums, x.contiguous(), Gradient(y.data_ptr(), 0))
    return y
