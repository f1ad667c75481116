"""Lowers a recorded step to a program: each event by its rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from .._library import MAX_DIMS, Error
from .._table import TABLE
from ._graph import F32, I32, INT32, Part, Program, Value
from ._memory import MANY, Memory, Missing, code_of, product
from ._pairs import MOVES, arguments, is_complex, part
from ._record import Event, Place, Problem, Recorder, places
from ._whole import wrapped

# Rules by an operator's name: in the library, of a fused function, or torch's without "aten.". A
# rule gets the lowering, the first result's place, and the event's arguments; it returns a value
# for each result.
Rule = Callable[..., Any]
LIBRARY: dict[str, Rule] = {}
FUSED: dict[str, Rule] = {}
TORCH: dict[str, Rule] = {}


R = TypeVar("R", bound=Rule)


def rule(table: dict[str, Rule], *names: str) -> Callable[[R], R]:
    def register(function: R) -> R:
        for name in names:
            table[name] = function
        return function

    return register


class Series(Place):
    """A Python number that differs from step to step: a table in place of a constant."""

    __slots__ = ("name", "values")

    def __init__(self, name: str, values: np.ndarray, size: Sequence[int] = ()) -> None:
        super().__init__(-1, 0, size, (1,) * len(tuple(size)), torch.float32)
        self.name, self.values = name, values.astype("<f4")


class Lower(Memory):
    """Builds the graph of a step. Events without a rule go to `problems`, with their places."""

    def __init__(self, recorder: Recorder, program: Program) -> None:
        super().__init__(recorder, program)
        self.problems: list[Problem] = list(recorder.problems)
        self._loops = 0
        self.step = Value("step", 0, I32, (1,)).within(0, max(0, program.steps - 1))

    def read(self, p: Place) -> Value:
        return self.at_step(p) if isinstance(p, Series) else super().read(p)

    def at_step(self, series: Series) -> Value:
        """The current step's number of a series."""
        data = self.input(series.name, series.values.reshape(-1, 1))
        return self.reshape(self.graph.emit("gather", data, self.step, axis=0), (1,))

    # ---- operands of elementwise operators ----

    def typed(self, p: Place, code: int) -> Value:
        return self.cast(self.read(p), code)

    def full(self, x: Any, size: Sequence[int], code: int) -> Value:
        """An operand broadcast to all of the result's dimensions."""
        if not isinstance(x, Place):
            return self.fill(x, size, code)
        return self.broadcast(self.typed(x, code), x.size, size)

    def broadcast(self, v: Value, given: Sequence[int], size: Sequence[int]) -> Value:
        if product(given) == product(size):
            return self.reshape(v, size)
        given = (1,) * (len(size) - len(given)) + tuple(given)
        groups: list[tuple[int, bool]] = []  # sizes of runs of dimensions, and whether x has them
        for d, n in zip(given, size):
            if n == 1:
                continue
            if groups and groups[-1][1] == (d == n):
                groups[-1] = (groups[-1][0] * n, d == n)
            else:
                groups.append((n, d == n))
        if len(groups) > MAX_DIMS:
            raise Missing(MANY)
        v = self.reshape(v, [n if there else 1 for n, there in groups])
        return self.reshape(self.expand(v, [n for n, _ in groups]), size)

    def operand(self, x: Any, size: Sequence[int], code: int) -> Value:
        """The second operand, which is not expanded where the library repeats it by itself."""
        if not isinstance(x, Place):
            return self.fill(x, (1,), code)
        v = self.typed(x, code)
        if v.numel == 1:
            return self.reshape(v, (1,))
        own = list(x.size)
        while len(own) > 1 and own[0] == 1:
            own.pop(0)
        if len(size) > MAX_DIMS:
            return self.broadcast(v, x.size, size)
        return self.broadcast(v, own, size[len(size) - len(own) :])

    def elements(self, name: str, a: Any, b: Any, size: Sequence[int], code: int = F32) -> Value:
        """Emits an operator of two operands; the larger one comes first if the operator is
        commutative."""
        small = not isinstance(a, Place) or product(a.size) < product(size)
        if small and name in COMMUTES and isinstance(b, Place) and product(b.size) == product(size):
            a, b = b, a
        return self.graph.emit(name, self.full(a, size, code), self.operand(b, size, code))

    def compare(self, kind: int, a: Any, b: Any, size: Sequence[int]) -> Value:
        real = any(
            x.dtype.is_floating_point if isinstance(x, Place) else isinstance(x, float)
            for x in (a, b)
        )
        code = F32 if real else I32
        x, y = self.full(a, size, code), self.operand(b, size, code)
        known = None if real else outcome(kind, x, y)
        if known is not None:
            return self.fill(known, size, I32)
        return self.graph.emit("compare", x, y, kind=kind).within(0, 1)

    def where(self, c: Value, a: Value, b: Value) -> Value:
        if c.low == c.high and a.dims == b.dims:
            return b if c.low == 0 else a
        x = self.graph.emit("where", c, a, b)
        return x if x.dtype == F32 else x.within(min(a.low, b.low), max(a.high, b.high))

    def integer(self, v: Value, low: int, high: int) -> Value:
        """Bounds an integer result; refuses bounds beyond 32 bits."""
        if low < INT32[0] or high > INT32[1]:
            raise Missing(
                f"integers that may lie between {low} and {high}, which is beyond 32 bits"
            )
        return v.within(low, high)

    def iadd(self, a: Value, b: Value) -> Value:
        x = self.integer(self.graph.emit("iadd", a, b), a.low + b.low, a.high + b.high)
        for leaf, other in ((a, b), (b, a)):
            if leaf.origin is not None:
                i, low, high = leaf.origin
                return x._replace(origin=(i, low + other.low, high + other.high))
        return x

    # ---- reductions: SPEC 3.2 and 3.3, all levels ----

    def rows(
        self, name: str, cols: int, *inputs: Value, shape: tuple[int, ...] | None = None
    ) -> Value:
        """Reduces rows to one number each, by the blocks of SPEC. shape: the result's, if it is
        another."""
        rows, left, block = inputs[0].numel // cols, cols, min(cols, 1024)
        then = "reduce_max" if name == "reduce_max" else "reduce_sum"
        x: Value | None = None
        while x is None or left > 1:
            blocks = -(-left // block)
            own: tuple[int, ...] = (rows, blocks) if rows > 1 else (blocks,)
            own = shape if shape is not None and blocks == 1 else own
            given = inputs if x is None else (x,)
            x = self.graph.emit(name, *given, cols=left, block=block, shape=own)
            name, left, block = then, blocks, min(blocks, 1024)
        return x

    def columns(self, name: str, cols: int, *inputs: Value) -> Value:
        rows = inputs[0].numel // cols
        x: Value | None = None
        while x is None or rows > 1:
            rows = -(-rows // 64)
            shape = (rows, cols) if rows > 1 else (cols,)
            x = self.graph.emit(name, *(inputs if x is None else (x,)), cols=cols, shape=shape)
            name = "sum_rows"
        return x

    # ---- events ----

    def run(self, idle: Collection[int]) -> None:
        """Lowers all events except those with these numbers. Failures are in `problems`
        afterwards."""
        for number, event in enumerate(self.recorder.events):
            if number in idle:
                continue
            site = event.site
            self.graph.scope = ".".join(
                part for part in (site.module, "backward" if site.backward else "") if part
            )
            self.graph.place = site
            try:
                self._event(event)
            except (Missing, Error) as why:
                self.problems.append(Problem(site, event.name, str(why)))
                self._stand_in(event)

    def _event(self, event: Event) -> None:
        if event.kind == "micro":
            return self._micro(event)
        targets = event.writes or event.outs
        if all(p.numel == 0 for p in targets):
            return
        values = self._apply(event, targets)
        for p, v in zip(targets, (values,) if isinstance(values, Value) else values):
            if v is not None:
                self.write(p, wrapped(self, v, p.dtype), event.before)

    def _micro(self, event: Event) -> None:
        """Tells nodes their micro-batch, and marks sums of gradients."""
        at = event.kwargs
        if event.name == "begin":
            self._loops += at["number"] == 0
            self.graph.part = Part(self._loops, at["count"], at["number"])
        elif event.name == "end":
            self.graph.part = None
        elif event.name == "gradients":
            for p in event.args:
                self.held[p.storage] = self.reshape(self.read(p), p.size)
        else:
            for p, name in zip(event.args, at["names"]):
                self.graph.mark_sum(self.read(p), at["number"], name)

    def _apply(self, event: Event, targets: list[Place]) -> Any:
        if event.kind == "fused":
            return FUSED[event.name](self, *event.args, **event.kwargs)
        if event.kind == "run":
            return LIBRARY.get(event.name, _library)(
                self, event.name, targets[0], event.args, event.kwargs["words"]
            )
        found = find(event.name)
        if found is None:
            raise Missing("no rule for it")
        every = (*places(event.args), *places(event.kwargs), *targets)
        if any(map(is_complex, every)):
            return self._of_pairs(found, event, targets[0])
        for p in every:
            code_of(p.dtype)
        return found(self, targets[0], *event.args, **event.kwargs)

    def _of_pairs(self, found: Rule, event: Event, target: Place) -> Value:
        """Applies a rule that moves numbers to the real and to the imaginary parts, and joins them
        to pairs."""
        base = event.name.removeprefix("aten.").split(".")[0]
        if base not in MOVES or base == "complex" and len(event.args) != 2:
            raise Missing("complex numbers")
        if not is_complex(target):
            if base not in ("_to_copy", "copy", "copy_"):
                raise Missing("complex numbers")
            real: Value = found(self, target, *arguments(base, event.args, 0))
            return real  # a conversion to real drops the imaginary parts
        parts = []
        for i in (0, 1):
            to = part(target, i, True)
            v = found(self, to, *arguments(base, event.args, i), **event.kwargs)
            flips = (base == "_conj_physical") != target.negated
            v = self.graph.emit("scale", v, factor=-1.0) if i and flips else v
            parts.append(self.reshape(v, (to.numel, 1)))
        return self.concat(1, parts)

    def _stand_in(self, event: Event) -> None:
        """Puts zeros in place of the results, so that later events can be checked. The program is
        never written."""
        for p in (*event.outs, *event.writes):
            if p.numel:
                count = self.recorder.elements(p.storage)
                real = p.dtype.is_floating_point or p.dtype.is_complex
                code = F32 if real else I32
                self.held[p.storage] = self.fill(0, (count,), code)


def outcome(kind: int, a: Value, b: Value) -> int | None:
    """The result of a comparison of integers if their bounds decide it, else None; kinds are
    RO_EQUAL and so on."""
    if kind > 3:  # GREATER and AT_LEAST
        return outcome(kind - 2, b, a)
    if kind < 2:
        apart = a.high < b.low or b.high < a.low
        same = a.low == a.high == b.low == b.high
        return (kind == 0) == same if apart or same else None
    always = a.high < b.low if kind == 2 else a.high <= b.low
    never = a.low >= b.high if kind == 2 else a.low > b.high
    return int(always) if always or never else None


COMMUTES = ("add", "mul", "iadd", "max", "min")


def find(name: str) -> Rule | None:
    """Finds a rule by overload or name; an in-place operator may use the out-of-place rule."""
    whole = name.removeprefix("aten.")
    base = whole.split(".")[0]
    for key in (whole, base, base.removesuffix("_")):
        if key in TORCH:
            return TORCH[key]
    return None


def _library(
    self: Lower, name: str, out: Place, inputs: list[Place], words: Sequence[int]
) -> Value:
    """Emits a call of the library's as it was recorded."""
    operator = TABLE[name]
    values = [self.read(p) for p in inputs]
    signed = [
        w & 0xFFFFFFFF if kind == "f" else _signed(w)
        for w, (_, kind) in zip(words, operator.attributes)
    ]
    signed += [0] * (len(operator.attributes) - len(signed))
    shape = out.size if operator.declared else None
    v = self.graph.emit_words(operator, values, signed, shape, code_of(out.dtype))
    return v if v.dtype == F32 else v.within(*_bounds(name, values, signed, v))


_MOVES = ("reshape", "slice", "transpose", "gather", "expand", "concat_axis", "where", "pad")


def _bounds(name: str, values: list[Value], words: list[int], v: Value) -> tuple[int, int]:
    """The bounds of the integers that an operator returns."""
    if name == "compare":
        return 0, 1
    if name == "argmax":
        return 0, values[0].dims[words[0]] - 1
    if name == "max_pool2d_index":
        return 0, words[0] * words[1] - 1
    if name in ("permutation", "iota"):
        return 0, v.numel - 1
    if name == "argsort":
        return 0, values[0].dims[words[0]] - 1
    if name in _MOVES:
        moved = values[1:] if name == "where" else values[:1] if name == "gather" else values
        zero = [0] if name == "pad" else []
        return min([u.low for u in moved] + zero), max([u.high for u in moved] + zero)
    return INT32


def _signed(word: int) -> int:
    word &= (1 << 64) - 1
    return word - (1 << 64) if word >= 1 << 63 else word


def _whole_before(self: Lower, v: Value) -> Value | None:
    """The integers of which v is an exact float copy, or None."""
    while v.kind == "node":
        node = self.graph.nodes[v.number]
        before = node.inputs[0] if node.inputs else v
        if node.operator.name == "cast" and before.dtype == I32:
            exact = max(abs(before.low), abs(before.high)) <= 1 << 24
            return before if exact else None
        if node.operator.name != "reshape":
            return None
        v = before
    return None


@rule(LIBRARY, "cast")
def _cast(self: Lower, name: str, out: Place, inputs: list[Place], words: Sequence[int]) -> Value:
    """A cast of floats that were converted from integers gives those integers, whose bounds are
    known."""
    whole = _whole_before(self, self.read(inputs[0])) if words[0] == I32 else None
    if whole is not None:
        return self.reshape(whole, out.size)
    return _library(self, name, out, inputs, words)


@rule(LIBRARY, "uniform", "normal")
def _random(*_: Any) -> Value:
    raise Missing("random numbers of a step by an operator that has no step")
