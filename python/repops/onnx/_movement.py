"""Operators that move elements, make tensors from shapes, or convert types."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .._library import Error
from ._layout import joined
from ._reductions import axes_of
from ._run import Call, mark_known
from ._table import operator
from ._types import broadcast, sized, type_of

Tensor = torch.Tensor


def ints(t: Tensor) -> list[int]:
    return [int(v) for v in t.reshape(-1).tolist()]


# ---- shapes ----


@operator("Shape")
def _shape(n: Call, x: Tensor) -> Tensor:
    end = n.attributes.get("end")
    return mark_known(torch.tensor(list(x.shape)[n.get("start", 0) : end], dtype=torch.int64))


@operator("Size")
def _size(n: Call, x: Tensor) -> Tensor:
    return mark_known(torch.tensor(x.numel()))


@operator("Reshape")
def _reshape(n: Call, x: Tensor, shape: Tensor) -> Tensor:
    dims = ints(shape)
    if not n.get("allowzero", 0):
        dims = [x.shape[i] if d == 0 else d for i, d in enumerate(dims)]
    return x.reshape(dims)


@operator("Flatten")
def _flatten(n: Call, x: Tensor) -> Tensor:
    axis = n.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Squeeze")
def _squeeze(n: Call, x: Tensor, axes: Any = None) -> Tensor:
    if axes is None:
        return x.reshape([d for d in x.shape if d != 1])
    own = axes_of(n, axes, x.dim()) or []
    for a in own:
        if x.shape[a] != 1:
            raise Error(f"dimension {a} is {x.shape[a]}; expected 1")
    return x.reshape([d for i, d in enumerate(x.shape) if i not in own])


@operator("Unsqueeze")
def _unsqueeze(n: Call, x: Tensor, axes: Tensor) -> Tensor:
    given = ints(axes)
    rank = x.dim() + len(given)
    for a in sorted(a % rank for a in given):
        x = x.unsqueeze(a)
    return x


@operator("Transpose")
def _transpose(n: Call, x: Tensor) -> Tensor:
    return x.permute(n.get("perm", list(range(x.dim()))[::-1]))


@operator("Expand")
def _expand(n: Call, x: Tensor, shape: Tensor) -> Tensor:
    dims = sized(ints(shape), "its shape")
    return x.expand(broadcast(x.shape, dims))


@operator("Tile")
def _tile(n: Call, x: Tensor, repeats: Tensor) -> Tensor:
    times = ints(repeats)
    sized([d * r for d, r in zip(x.shape, times)], "its output")
    return x.repeat(times)


@operator("Concat")
def _concat(n: Call, *inputs: Tensor) -> Tensor:
    sized([sum(t.numel() for t in inputs)], "its output")
    return joined(inputs, n.need("axis"))


@operator("Split")
def _split(n: Call, x: Tensor, split: Any = None) -> Any:
    axis = n.get("axis", 0)
    if split is not None:
        return torch.split(x, ints(split), axis)
    count, size = n.get("num_outputs", len(n.outputs)), x.shape[axis]
    each = -(-size // count)
    sizes = [each] * (count - 1) + [size - each * (count - 1)]
    if sizes[-1] < 0:
        raise Error(f"{size} elements are not {count} parts of {each}")
    return torch.split(x, sizes, axis)


def _sliced(x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    if step == 0:
        raise Error("a step of 0")
    chosen = range(*slice(start, end, step).indices(x.shape[axis]))
    if step < 0 and end <= -(2**31):
        chosen = range(*slice(start, None, step).indices(x.shape[axis]))
    if not chosen:
        return x.narrow(axis, 0, 0)
    ascending = chosen if step > 0 else chosen[::-1]
    at: list[Any] = [slice(None)] * x.dim()
    at[axis] = slice(ascending[0], ascending[-1] + 1, ascending.step)
    part = x[tuple(at)]
    return part if step > 0 else part.flip(axis)


@operator("Slice")
def _slice(
    n: Call, x: Tensor, starts: Tensor, ends: Tensor, axes: Any = None, steps: Any = None
) -> Tensor:
    first, last = ints(starts), ints(ends)
    own = list(range(len(first))) if axes is None else ints(axes)
    by = [1] * len(first) if steps is None else ints(steps)
    for a, start, end, step in zip(own, first, last, by):
        x = _sliced(x, a % x.dim(), start, end, step)
    return x


def _pad_places(size: int, before: int, after: int, mode: str) -> list[int]:
    """The index of the element that each one is a copy of, on an axis padded by its own
    elements."""
    numbers = range(-before, size + after)
    if mode == "edge":
        return [min(max(i, 0), size - 1) for i in numbers]
    if mode == "wrap":
        return [i % size for i in numbers]
    period = max(1, 2 * (size - 1))
    return [min(i % period, period - i % period) if size > 1 else 0 for i in numbers]


@operator("Pad")
def _pad(n: Call, x: Tensor, pads: Tensor, value: Any = None, axes: Any = None) -> Tensor:
    own = list(range(x.dim())) if axes is None else [a % x.dim() for a in ints(axes)]
    given, mode = ints(pads), n.get("mode", "constant")
    if len(given) != 2 * len(own):
        raise Error(f"it has {len(given)} pads; expected {2 * len(own)}")
    before = dict(zip(own, given[: len(own)]))
    after = dict(zip(own, given[len(own) :]))
    sized([d + before.get(i, 0) + after.get(i, 0) for i, d in enumerate(x.shape)], "its output")
    if mode == "constant":
        number = 0 if value is None else value.item()
        flat = [p for a in reversed(range(x.dim())) for p in (before.get(a, 0), after.get(a, 0))]
        if x.dtype is torch.bool:
            return F.pad(x.to(torch.uint8), flat, value=int(number)).to(torch.bool)
        return F.pad(x, flat, value=number)
    for a in own:
        places = _pad_places(x.shape[a], before[a], after[a], mode)
        if places != list(range(x.shape[a])):
            x = x.index_select(a, torch.tensor(places))
    return x


@operator("CenterCropPad")
def _center(n: Call, x: Tensor, shape: Tensor) -> Tensor:
    axes = n.get("axes", list(range(x.dim())))
    for a, want in zip(axes, ints(shape)):
        a, more = a % x.dim(), want - x.shape[a]
        if more < 0:
            x = x.narrow(a, -more // 2, want)
        elif more > 0:
            flat = [0] * (2 * (x.dim() - 1 - a)) + [more // 2, more - more // 2]
            x = F.pad(x, flat)
    return x


@operator("DepthToSpace")
def _depth_to_space(n: Call, x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    s = n.need("blocksize")
    if n.get("mode", "DCR") == "DCR":
        parts = x.reshape(b, s, s, c // (s * s), h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(b, c // (s * s), s, s, h, w).permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(b, c // (s * s), h * s, w * s)


@operator("SpaceToDepth")
def _space_to_depth(n: Call, x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    s = n.need("blocksize")
    parts = x.reshape(b, c, h // s, s, w // s, s)
    order = (0, 3, 5, 1, 2, 4) if n.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.permute(order).reshape(b, c * s * s, h // s, w // s)


@operator("ReverseSequence", note="lengths are read")
def _reverse(n: Call, x: Tensor, lengths: Tensor) -> Tensor:
    along, batch = n.get("time_axis", 0), n.get("batch_axis", 1)
    parts = []
    for i, length in enumerate(ints(lengths)):
        part = x.narrow(batch, i, 1)
        head = part.narrow(along, 0, length).flip(along)
        parts.append(torch.cat([head, part.narrow(along, length, x.shape[along] - length)], along))
    return torch.cat(parts, batch)


# ---- new tensors ----


@operator("Constant")
def _constant(n: Call) -> Tensor:
    for name, kind in (("value_float", torch.float32), ("value_int", torch.int64)):
        for own in (name, f"{name}s"):
            if own in n.attributes:
                return torch.tensor(n.attributes[own], dtype=kind)
    value = n.attributes.get("value")
    if not isinstance(value, Tensor):
        raise Error(f"a constant of {', '.join(n.attributes) or 'nothing'} is refused")
    return value


@operator("ConstantOfShape")
def _filled(n: Call, shape: Tensor) -> Tensor:
    value = n.attributes.get("value")
    dims = sized(ints(shape), "its shape")
    if value is None:
        return torch.zeros(dims)
    return torch.full(dims, value.item(), dtype=value.dtype)


@operator("EyeLike")
def _eye(n: Call, x: Tensor) -> Tensor:
    dtype = n.attributes.get("dtype")
    kind = x.dtype if dtype is None else type_of(dtype, "its dtype")
    rows, columns = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])
    return mark_known((columns - rows == n.get("k", 0)).to(kind))


@operator("Range")
def _range(n: Call, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    first, last, by = start.item(), limit.item(), delta.item()
    if by == 0:
        raise Error("a step of 0")
    count = max(0, math.ceil((last - first) / by))
    sized([count], "its output")
    return torch.arange(count).to(start.dtype) * by + first


@operator("OneHot")
def _one_hot(n: Call, places: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    axis, count = n.get("axis", -1), int(depth.reshape(()))
    sized([places.numel(), count], "its output")
    axis = axis % (places.dim() + 1)
    line = torch.arange(count).reshape([-1] + [1] * (places.dim() - axis))
    whole = places.to(torch.int64).unsqueeze(axis)
    hit = (whole == line) | (whole == line - count)
    return torch.where(hit, values[1], values[0])


@operator("Trilu")
def _trilu(n: Call, x: Tensor, k: Any = None) -> Tensor:
    by = 0 if k is None else int(k)
    return torch.triu(x, by) if n.get("upper", 1) else torch.tril(x, by)


# ---- types ----

_EXACT = {10: 13, 16: 16}  # bits of float32 that the type lacks: 24 - 11, 24 - 8


def rounded(x: Tensor, number: int) -> Tensor:
    """x rounded to a 16-bit type, to nearest, by Veltkamp's splitting; it stays float32."""
    if number not in _EXACT or x.dtype is not torch.float32:
        return x
    factor = float(2 ** _EXACT[number] + 1)
    big = x * factor
    high = big - (big - x)
    if number == 10:
        high = torch.where(x.abs() >= 65520.0, x * math.inf, high)
        small = (x * 2.0**24).round() * 2.0**-24  # float16 subnormals
        high = torch.where(x.abs() < 2.0**-14, small, high)
    return torch.where(x.abs() < 2.0**100, high, x)


def cast(x: Tensor, number: int) -> Tensor:
    kind = type_of(number, "what it casts to")
    if x.dtype.is_floating_point and kind is torch.bool:
        return x != 0
    made = x.to(kind)
    return rounded(made, number)


@operator("Cast", note="halves are rounded, and computed as float32")
def _cast(n: Call, x: Tensor) -> Tensor:
    return cast(x, n.need("to"))


@operator("CastLike")
def _cast_like(n: Call, x: Tensor, like: Tensor) -> Tensor:
    return x != 0 if like.dtype is torch.bool else x.to(like.dtype)


@operator("BitCast", note="types of as many bits; floats of constants alone")
def _bit_cast(n: Call, x: Tensor) -> Tensor:
    number = n.need("to")
    kind = type_of(number, "what it casts to")
    if number in _EXACT or kind.itemsize != x.dtype.itemsize:
        raise Error("it changes the size of elements, or is of halves, which are widened")
    if kind is x.dtype:
        return x
    if kind.is_floating_point == x.dtype.is_floating_point and torch.bool not in (kind, x.dtype):
        return x.to(kind)  # between integers of equal size it wraps around
    return x.view(kind)
