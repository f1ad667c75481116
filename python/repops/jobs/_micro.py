"""Micro-batches: a step in parts, whose gradients are summed by the tree of PROTOCOL.md 1.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from .. import _context
from .._library import Error
from ._data import Source

Tensor = torch.Tensor
OUTSIDE = "micro-batches are for a step that job.capture or job.check runs"
EARLY = "the loop over job.micro_batches ends before its last part"
SOME = "has a gradient in some micro-batches, and none in others; its part would be no sum of all"


def rows_of(sources: Sequence[Source], batch: int | None) -> int:
    """The number of rows that are divided."""
    if batch is not None:
        return batch
    found = {s.batch for s in sources if s.batch}
    if len(found) != 1:
        told = " and ".join(map(str, sorted(found))) or "none"
        raise Error(f"batches have {told} rows; say which one is divided: batch=")
    return found.pop()


class Sums:
    """Totals over ranges of micro-batches, the largest range first. The ranges are the powers of
    two of which the number of parts so far is the sum."""

    def __init__(self, count: int) -> None:
        self.count, self.done = count, 0
        self.totals: list[list[Tensor]] = []

    def add(self, gradients: list[Tensor], names: Sequence[str]) -> None:
        """Adds the gradients of the next micro-batch m. Each level of the tree is added for all
        parameters before the next level."""
        mode, m = _context.current().job, self.done
        last = m == self.count - 1
        additions = len(self.totals) if last else (~m & (m + 1)).bit_length() - 1
        for j in range(additions):
            before = self.totals.pop()
            gradients = [a + b for a, b in zip(before, gradients)]
            mode.mark("sum", gradients, number=j, names=tuple(names))
        self.totals.append(gradients)
        self.done += 1


def parts(sources: Sequence[Source], count: int, batch: int | None) -> Iterator[slice]:
    mode = _context.current().job
    if mode is None:
        raise Error(OUTSIDE)
    rows = rows_of(sources, batch)
    if count < 1 or rows % count:
        raise Error(f"{count} micro-batches of {rows} rows; expected a number that divides them")
    if count == 1:
        yield slice(0, rows)
        return
    yield from _parts(mode, count, rows // count)


def _parts(mode, count: int, rows: int) -> Iterator[slice]:  # type: ignore[no-untyped-def]
    named = mode.trained()
    before = [p.grad for _, p in named]
    sums, there, whole = Sums(count), None, False
    try:
        for m in range(count):
            for _, p in named:
                p.grad = None
            mode.mark("begin", [], number=m, count=count)
            yield slice(m * rows, (m + 1) * rows)
            own = [p.grad is not None for _, p in named]
            there = own if there is None else there
            for (name, _), a, b in zip(named, there, own):
                if a != b:
                    raise Error(f"{name} {SOME}")
            with torch.no_grad():
                gradients = [_dense(p.grad) for _, p in named if p.grad is not None]
                mode.mark("gradients", gradients)
                names = [name for name, p in named if p.grad is not None]
                sums.add(gradients, names)
        whole = True
        mode.mark("end", [])
    finally:
        if not whole:
            mode.refuse("micro_batches", EARLY)
        total = iter(sums.totals[-1] if whole else ())
        for (_, p), old, is_there in zip(named, before, there or ()):
            p.grad = _added(old, next(total, None) if is_there else None)


def _dense(t: Tensor) -> Tensor:
    """The tensor itself if it is contiguous and owns all its memory, else a copy that is."""
    own = t.is_contiguous() and t.untyped_storage().nbytes() == t.numel() * t.element_size()
    return t if own else t.clone(memory_format=torch.contiguous_format)


def _added(old: Tensor | None, total: Tensor | None) -> Tensor | None:
    """Adds to an existing gradient in place, as autograd does."""
    if old is None or total is None:
        return total if old is None else old
    with torch.no_grad():
        return old.add_(total)
