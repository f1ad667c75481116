"""torch's elementwise operators and reductions, in the library's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ._graph import F32, I32, Value
from ._lower import TORCH, Lower, rule
from ._memory import EXACT, Missing, product
from ._record import Place
from ._whole import integer


def is_real(p: Place) -> bool:
    return p.dtype is torch.float32


def is_bool(p: Place) -> bool:
    return p.dtype is torch.bool


def known(x: Any) -> int | None:
    """The value of a whole number that is known at capture, or None."""
    if isinstance(x, bool) or isinstance(x, int):
        return int(x)
    if isinstance(x, Place) and x.const is not None and x.numel == 1:
        return int(x.const.reshape(-1)[0])
    return None


# ---- arithmetic ----


@rule(TORCH, "add")
def _add(self: Lower, out: Place, a: Any, b: Any, alpha: float = 1) -> Value:
    if is_real(out):
        return self.elements("add", a, _times(self, b, alpha), out.size)
    if is_bool(out):
        return _either(self, truth(self, a, out.size), truth(self, b, out.size))
    return self.iadd(self.full(a, out.size, I32), _times_whole(self, b, alpha, out.size))


def _times_whole(self: Lower, b: Any, alpha: float, size: Sequence[int]) -> Value:
    v = self.full(b, size, I32)
    return v if alpha == 1 else multiple(self, v, int(alpha))


def _times(self: Lower, b: Any, alpha: float) -> Any:
    if alpha != 1:  # the block rounds b alpha separately
        raise Missing("a factor alpha of add or sub")
    return b


@rule(TORCH, "sub")
def _sub(self: Lower, out: Place, a: Any, b: Any, alpha: float = 1) -> Value:
    if is_real(out):
        return self.elements("sub", a, _times(self, b, alpha), out.size)
    if alpha != 1:
        return self.iadd(self.full(a, out.size, I32), _times_whole(self, b, -alpha, out.size))
    return _difference(self, self.full(a, out.size, I32), b, out.size)


@rule(TORCH, "rsub")
def _rsub(self: Lower, out: Place, b: Any, a: Any, alpha: float = 1) -> Value:
    return _sub(self, out, a, b, alpha)


def _difference(self: Lower, a: Value, b: Any, size: Sequence[int]) -> Value:
    """a - b for integers."""
    number = known(b)
    if number is not None:
        return self.iadd(a, self.fill(-number, (1,), I32))
    if isinstance(b, Place) and b.const is not None:
        return self.iadd(a, self.broadcast(self.constant(-b.const.long()), b.size, size))
    return self.iadd(a, multiple(self, self.full(b, size, I32), -1))


@rule(TORCH, "mul")
def _mul(self: Lower, out: Place, a: Any, b: Any) -> Value:
    if is_real(out):
        return self.elements("mul", a, b, out.size)
    if is_bool(out):
        return _both(self, truth(self, a, out.size), truth(self, b, out.size))
    if not isinstance(a, Place) or product(a.size) < product(out.size):
        a, b = b, a
    return integer(self, "multiply", self.full(a, out.size, I32), self.operand(b, out.size, I32))


def multiple(self: Lower, v: Value, k: int) -> Value:
    """k v for integers."""
    return integer(self, "multiply", v, self.fill(k, (1,), I32))


@rule(TORCH, "div")
def _div(self: Lower, out: Place, a: Any, b: Any, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return _quotient(self, a, b, out.size)
    name = "floor_quotient" if rounding_mode == "floor" else "quotient"
    return _whole_elements(self, name, out, a, b)


def _quotient(self: Lower, a: Any, b: Any, size: Sequence[int]) -> Value:
    """a / b, folded to a constant if both operands are known, finite and not 0."""
    x, y = _number(self, a), _number(self, b)
    if x is not None and y is not None and np.isfinite(x) and np.isfinite(y) and x and y:
        return self.fill(float(x / y), size)
    return self.elements("div", a, b, size)


def _number(self: Lower, x: Any) -> np.float32 | None:
    """The number that fills an operand, if the graph says one."""
    if not isinstance(x, Place):
        return np.float32(x)
    word = self.graph.filled(self.typed(x, F32))
    return None if word is None else np.uint32(word).view(np.float32)


def _whole_elements(self: Lower, name: str, out: Place, a: Any, b: Any) -> Value:
    return integer(self, name, self.full(a, out.size, I32), self.operand(b, out.size, I32))


def _of_integers(name: str) -> Callable[..., Value]:
    return lambda self, out, a, b: _whole_elements(self, name, out, a, b)


_WHOLE = {
    "floor_divide": "floor_quotient",
    "remainder": "floor_remainder",
    "fmod": "remainder",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
    "__lshift__": "shift_left",
    "__rshift__": "shift_right",
}
for _name, _whole in _WHOLE.items():
    rule(TORCH, _name)(_of_integers(_whole))


@rule(TORCH, "reciprocal")
def _reciprocal(self: Lower, out: Place, a: Place) -> Value:
    return self.elements("div", 1.0, a, out.size)


@rule(TORCH, "neg")
def _neg(self: Lower, out: Place, a: Place) -> Value:
    if not is_real(out):
        return _difference(self, self.fill(0, out.size, I32), a, out.size)
    return self.graph.emit("scale", self.full(a, out.size, F32), factor=-1.0)


@rule(TORCH, "abs")
def _abs(self: Lower, out: Place, a: Place) -> Value:
    if not is_real(out):
        v = self.full(a, out.size, I32)
        return v if v.low >= 0 else integer(self, "larger", v, multiple(self, v, -1))
    return self.graph.emit("abs", self.full(a, out.size, F32))


@rule(TORCH, "sqrt")
def _sqrt(self: Lower, out: Place, a: Place) -> Value:
    return self.graph.emit("sqrt", self.full(a, out.size, F32))


@rule(TORCH, "sign", "sgn")
def _sign(self: Lower, out: Place, a: Place) -> Value:
    x, zero = self.full(a, out.size, F32), self.fill(0.0, (1,))
    above = self.graph.emit("compare", x, zero, kind=GREATER).within(0, 1)
    below = self.graph.emit("compare", x, zero, kind=LESS).within(0, 1)
    v = self.graph.emit("sub", self.cast(above, F32), self.cast(below, F32))
    return v if is_real(out) else self.cast(v, I32).within(-1, 1)


@rule(TORCH, "relu")
def _relu(self: Lower, out: Place, a: Place) -> Value:
    if not is_real(out):
        return integer(self, "larger", self.full(a, out.size, I32), self.fill(0, (1,), I32))
    return self.graph.emit("relu", self.full(a, out.size, F32))


@rule(TORCH, "_prelu_kernel")
def _prelu(self: Lower, out: Place, x: Place, w: Place) -> Value:
    v = self.full(x, out.size, F32)
    above = self.graph.emit("compare", v, self.fill(0.0, (1,)), kind=GREATER).within(0, 1)
    return self.where(above, v, self.elements("mul", x, w, out.size))


@rule(TORCH, "_prelu_kernel_backward")
def _prelu_backward(self: Lower, out: Place, dy: Place, x: Place, w: Place) -> Any:
    """As in torch, the gradients are (dy, 0) where x > 0, else (w dy, x dy)."""
    v, d = self.full(x, out.size, F32), self.full(dy, out.size, F32)
    above = self.graph.emit("compare", v, self.fill(0.0, (1,)), kind=GREATER).within(0, 1)
    zero = self.fill(0.0, out.size)
    below = self.graph.emit("mul", self.full(w, out.size, F32), d)
    return (
        self.where(above, d, below),
        self.where(above, zero, self.graph.emit("mul", v, d)),
    )


@rule(TORCH, "threshold_backward")
def _threshold_backward(self: Lower, out: Place, dy: Place, x: Place, threshold: float) -> Value:
    low = self.compare(AT_MOST, x, float(threshold), out.size)
    return self.where(low, self.fill(0.0, out.size), self.full(dy, out.size, F32))


# ---- comparisons and choices; kinds are RO_EQUAL and so on ----

EQUAL, DIFFERENT, LESS, AT_MOST, GREATER, AT_LEAST = range(6)
_KINDS = {
    "eq": EQUAL,
    "ne": DIFFERENT,
    "lt": LESS,
    "le": AT_MOST,
    "gt": GREATER,
    "ge": AT_LEAST,
}


def _comparison(kind: int) -> Callable[..., Value]:
    return lambda self, out, a, b: self.compare(kind, a, b, out.size)


for _name, _kind in _KINDS.items():
    rule(TORCH, _name)(_comparison(_kind))


def truth(self: Lower, x: Any, size: Sequence[int]) -> Value:
    """1 where x is not 0, else 0."""
    if not isinstance(x, Place):
        return self.fill(int(bool(x)), size, I32)
    v = self.full(x, size, F32 if is_real(x) else I32)
    if v.dtype == I32 and v.low >= 0 and v.high <= 1:
        return v
    zero = self.fill(0, (1,), v.dtype)
    return self.graph.emit("compare", v, zero, kind=DIFFERENT).within(0, 1)


def _not(self: Lower, v: Value) -> Value:
    return self.graph.emit("compare", v, self.fill(0, (1,), I32), kind=EQUAL).within(0, 1)


def _both(self: Lower, a: Value, b: Value) -> Value:
    return self.where(a, b, a)


def _either(self: Lower, a: Value, b: Value) -> Value:
    return self.where(a, a, b)


@rule(TORCH, "logical_not")
def _logical_not(self: Lower, out: Place, a: Place) -> Value:
    return _not(self, truth(self, a, out.size))


@rule(TORCH, "logical_and")
def _logical_and(self: Lower, out: Place, a: Any, b: Any) -> Value:
    return _both(self, truth(self, a, out.size), truth(self, b, out.size))


@rule(TORCH, "logical_or")
def _logical_or(self: Lower, out: Place, a: Any, b: Any) -> Value:
    return _either(self, truth(self, a, out.size), truth(self, b, out.size))


@rule(TORCH, "logical_xor")
def _logical_xor(self: Lower, out: Place, a: Any, b: Any) -> Value:
    x, y = truth(self, a, out.size), truth(self, b, out.size)
    return self.graph.emit("compare", x, y, kind=DIFFERENT).within(0, 1)


def _bits_of(self: Lower, name: str, out: Place, a: Any, b: Any = -1) -> Value:
    kind = "xor" if name == "not" else name
    return integer(self, kind, self.full(a, out.size, I32), self.operand(b, out.size, I32))


def _bits(name: str) -> None:
    logical = TORCH[f"logical_{name}"]

    def lower(self: Lower, out: Place, *operands: Any) -> Value:
        if not is_bool(out):
            return _bits_of(self, name, out, *operands)
        value: Value = logical(self, out, *operands)
        return value

    rule(TORCH, f"bitwise_{name}")(lower)


for _name in ("not", "and", "or", "xor"):
    _bits(_name)


@rule(TORCH, "isnan")
def _isnan(self: Lower, out: Place, a: Place) -> Value:
    v = self.full(a, out.size, F32)
    return self.graph.emit("compare", v, v, kind=DIFFERENT).within(0, 1)


def _against_infinity(kind: int) -> Callable[..., Value]:
    def lower(self: Lower, out: Place, a: Place) -> Value:
        size = self.graph.emit("abs", self.full(a, out.size, F32))
        return self.graph.emit("compare", size, self.fill(math.inf, (1,)), kind=kind).within(0, 1)

    return lower


rule(TORCH, "isinf")(_against_infinity(EQUAL))
rule(TORCH, "isfinite")(_against_infinity(LESS))


def code(out: Place) -> int:
    return F32 if is_real(out) else I32


@rule(TORCH, "where")
def _where(self: Lower, out: Place, c: Place, a: Any, b: Any) -> Value:
    size = out.size
    return self.where(
        truth(self, c, size), self.full(a, size, code(out)), self.full(b, size, code(out))
    )


@rule(TORCH, "masked_fill")
def _masked_fill(self: Lower, out: Place, x: Place, mask: Place, value: Any) -> Value:
    return _where(self, out, mask, value, x)


@rule(TORCH, "maximum")
def _maximum(self: Lower, out: Place, a: Any, b: Any) -> Value:
    return _extreme(self, out, a, b, "max")


@rule(TORCH, "minimum")
def _minimum(self: Lower, out: Place, a: Any, b: Any) -> Value:
    return _extreme(self, out, a, b, "min")


def _extreme(self: Lower, out: Place, a: Any, b: Any, name: str) -> Value:
    """The maximum or minimum. torch returns the first NaN; the block has made every NaN the
    library's."""
    if is_real(out):
        return self.elements(name, a, b, out.size)
    whole = "larger" if name == "max" else "smaller"
    return integer(self, whole, self.full(a, out.size, I32), self.operand(b, out.size, I32))


@rule(TORCH, "clamp")
def _clamp(self: Lower, out: Place, x: Place, low: Any = None, high: Any = None) -> Value:
    if is_real(out):
        raise Missing("no rule for it")
    v = self.full(x, out.size, I32)
    for limit, name in ((low, "larger"), (high, "smaller")):
        if limit is not None:
            v = integer(self, name, v, self.operand(limit, out.size, I32))
    return v


@rule(TORCH, "clamp_min")
def _clamp_min(self: Lower, out: Place, x: Place, low: Any) -> Value:
    return _clamp(self, out, x, low)


@rule(TORCH, "clamp_max")
def _clamp_max(self: Lower, out: Place, x: Place, high: Any) -> Value:
    return _clamp(self, out, x, None, high)


@rule(TORCH, "nan_to_num")
def _nan_to_num(
    self: Lower,
    out: Place,
    x: Place,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    most = torch.finfo(torch.float32).max
    v = self.full(x, out.size, F32)
    unordered = self.graph.emit("compare", v, v, kind=DIFFERENT).within(0, 1)
    v = self.where(unordered, self.fill(nan or 0.0, out.size), v)
    for value, to in (
        (math.inf, most if posinf is None else posinf),
        (-math.inf, -most if neginf is None else neginf),
    ):
        there = self.graph.emit("compare", v, self.fill(value, (1,)), kind=EQUAL).within(0, 1)
        v = self.where(there, self.fill(to, out.size), v)
    return v


# ---- types, copies, constants ----


@rule(TORCH, "_to_copy", "copy", "copy_")
def _copy(self: Lower, out: Place, *operands: Any, **_: Any) -> Value:
    x = operands[-1] if len(operands) > 1 and isinstance(operands[1], Place) else operands[0]
    v = self.full(x, out.size, F32 if is_real(x) else I32)
    return converted(self, v, x, out)


def converted(self: Lower, v: Value, x: Place, out: Place) -> Value:
    if is_real(x) and is_bool(out):
        return self.graph.emit("compare", v, self.fill(0.0, (1,)), kind=DIFFERENT).within(0, 1)
    if is_bool(out):
        return truth(self, x, out.size)
    if is_real(x) and not is_real(out):
        raise Missing("numbers that become integers, of which no bounds are known")
    if not is_real(x) and is_real(out):
        return self.cast(v, F32)
    return v


@rule(TORCH, "clone", "contiguous", "detach", "lift_fresh", "lift_fresh_copy", "alias", "view")
@rule(TORCH, "complex", "_conj_physical")
def _same(self: Lower, out: Place, x: Place, *_: Any, **__: Any) -> Value:
    return self.full(x, out.size, code(out))


@rule(TORCH, "zero", "zeros_like", "new_zeros")
def _zero(self: Lower, out: Place, *_: Any, **__: Any) -> Value:
    return self.fill(0, out.size, code(out))


@rule(TORCH, "ones_like", "new_ones")
def _one(self: Lower, out: Place, *_: Any, **__: Any) -> Value:
    return self.fill(1, out.size, code(out))


@rule(TORCH, "fill")
def _fill(self: Lower, out: Place, x: Place, value: Any) -> Value:
    return self.full(value, out.size, code(out))


@rule(TORCH, "full_like")
def _full_like(self: Lower, out: Place, x: Place, value: float, **_: Any) -> Value:
    return self.fill(value, out.size, code(out))


@rule(TORCH, "new_full")
def _new_full(self: Lower, out: Place, x: Place, size: Any, value: float, **_: Any) -> Value:
    return self.fill(value, out.size, code(out))


# ---- lists ----


def _each(name: str) -> None:
    single = TORCH[name]

    def lower(self: Lower, out: Place, xs: list[Place], *others: Any, **how: Any) -> list[Value]:
        values = []
        for i, x in enumerate(xs):
            own = [o[i] if isinstance(o, list) else o for o in others]
            values.append(single(self, x, x, *own, **how))
        return values

    rule(TORCH, f"_foreach_{name}")(lower)


for _name in ("add", "sub", "mul", "div", "neg", "sqrt", "reciprocal", "copy", "zero"):
    _each(_name)


# ---- extremes along dimensions ----


def along(dims: Any, size: Sequence[int]) -> list[int]:
    """The dimensions that are reduced, from the last to the first."""
    if not size:
        return []
    chosen = range(len(size)) if dims is None or dims == [] else dims
    chosen = [chosen] if isinstance(chosen, int) else chosen
    return sorted({d % len(size) for d in chosen}, reverse=True)


def as_lines(self: Lower, v: Value, size: Sequence[int], d: int) -> Value:
    """v as [product of sizes before d, size of d, product of sizes after d]."""
    return self.reshape(v, (product(size[:d]), size[d], product(size[d + 1 :])))


def largest(self: Lower, v: Value, size: Sequence[int], dims: Any) -> Value:
    left = list(size)
    for d in along(dims, size):
        v = as_lines(self, v, left, d)
        while v.dims[1] > 1:
            v = self.graph.emit("max_axis", v, axis=1)
        left[d] = 1
    return v


def _negated(self: Lower, v: Value) -> Value:
    return self.graph.emit("scale", v, factor=-1.0)


def _extreme_of(self: Lower, out: Place, x: Place, dim: Any, least: bool) -> Value:
    """The maximum or minimum; for integers computed in float32."""
    v, given = _as_floats(self, x), self.full(x, x.size, code(x))
    v = largest(self, _negated(self, v) if least else v, x.size, dim)
    v = self.reshape(_negated(self, v) if least else v, out.size)
    return v if is_real(x) else self.cast(v, I32).within(given.low, given.high)


def _as_floats(self: Lower, x: Place) -> Value:
    v = self.full(x, x.size, code(x))
    if v.dtype != F32 and max(abs(v.low), abs(v.high)) > EXACT:
        raise Missing(f"an order of integers that may lie beyond {EXACT}")
    return self.cast(v, F32)


@rule(TORCH, "amax")
def _amax(self: Lower, out: Place, x: Place, dim: Any = None, keepdim: bool = False) -> Value:
    return _extreme_of(self, out, x, dim, False)


@rule(TORCH, "amin")
def _amin(self: Lower, out: Place, x: Place, dim: Any = None, keepdim: bool = False) -> Value:
    return _extreme_of(self, out, x, dim, True)


@rule(TORCH, "max.default", "max.dim")
def _max(self: Lower, out: Place, x: Place, dim: Any = None, keepdim: bool = False) -> Any:
    top = _amax(self, out, x, dim)
    return top if dim is None else (top, _where_largest(self, out, x, dim, False))


@rule(TORCH, "min.default", "min.dim")
def _min(self: Lower, out: Place, x: Place, dim: Any = None, keepdim: bool = False) -> Any:
    least = _amin(self, out, x, dim)
    return least if dim is None else (least, _where_largest(self, out, x, dim, True))


def _where_largest(self: Lower, out: Place, x: Place, dim: int, least: bool) -> Value:
    v = _as_floats(self, x)
    d = dim % max(1, len(x.size))
    v = as_lines(self, _negated(self, v) if least else v, x.size or (1,), d)
    at = self.graph.emit("argmax", v, axis=1).within(0, v.dims[1] - 1)
    return self.reshape(at, out.size)


@rule(TORCH, "argmax")
def _argmax(
    self: Lower, out: Place, x: Place, dim: int | None = None, keepdim: bool = False
) -> Any:
    return _place_of(self, out, x, dim, False)


@rule(TORCH, "argmin")
def _argmin(
    self: Lower, out: Place, x: Place, dim: int | None = None, keepdim: bool = False
) -> Any:
    return _place_of(self, out, x, dim, True)


def _place_of(self: Lower, out: Place, x: Place, dim: int | None, least: bool) -> Value:
    if dim is not None:
        return _where_largest(self, out, x, dim, least)
    v = self.reshape(_as_floats(self, x), (1, x.numel, 1))
    v = _negated(self, v) if least else v
    return self.reshape(self.graph.emit("argmax", v, axis=1).within(0, x.numel - 1), out.size)


def _some(every: bool) -> Callable[..., Value]:
    def lower(self: Lower, out: Place, x: Place, dim: Any = None, keepdim: bool = False) -> Value:
        v = self.cast(truth(self, x, x.size), F32)
        v = largest(self, _negated(self, v) if every else v, x.size, dim)
        v = self.cast(_negated(self, v) if every else v, I32).within(0, 1)
        return self.reshape(v, out.size)

    return lower


rule(TORCH, "any")(_some(False))
rule(TORCH, "all")(_some(True))


@rule(TORCH, "sum")
def _sum(self: Lower, out: Place, x: Place, dims: Any = None, *_: Any, **__: Any) -> Value:
    v, left = self.full(x, x.size, I32), list(x.size)
    count = product([x.size[d] for d in along(dims, x.size)])
    low, high = count * min(0, v.low), count * max(0, v.high)
    for d in along(dims, x.size):
        v = as_lines(self, v, left, d)
        v = self.integer(self.graph.emit("isum", v, axis=1), low, high)
        left[d] = 1
    return self.reshape(v, out.size)


@rule(TORCH, "prod", "cumprod")
def _products(self: Lower, out: Place, *_: Any, **__: Any) -> Value:
    raise Missing("products of integers, of which no bounds are known")


# ---- whole numbers; kinds are RO_DOWN and so on ----


def _rounded(kind: int) -> Callable[..., Value]:
    def lower(self: Lower, out: Place, x: Place) -> Value:
        if not is_real(out):
            return self.full(x, out.size, I32)
        return self.graph.emit("round", self.full(x, out.size, F32), kind=kind)

    return lower


for _kind, _name in enumerate(("floor", "ceil", "round.default", "trunc")):
    rule(TORCH, _name)(_rounded(_kind))
