"""Images and volumes seen at places that a grid names (grid_sample), and grids of affine maps.

On an axis of n elements the number g of a grid names the place (g + 1) (n / 2) - 0.5, or with
align_corners (g + 1) ((n - 1) / 2). Padding moves a place that lies outside: to the nearest end
(border), or by reflections (_folded), and then to the nearest end. Of bicubic sampling it moves the
taps, not the place. Taps of an axis, where l is the place's floor, t = place - l, and p1 (_near)
and p2 (_far) are cubic curves:

    nearest   the place rounded, halves to even
    bilinear  l: 1 - t    l + 1: t
    bicubic   l - 1: p2(t + 1)    l: p1(t)    l + 1: p1(1 - t)    l + 2: p2(2 - t)

A tap outside of the image reads 0. An output is the sum over taps, the last axis (x) fastest, of
an element times the product of the axes' weights (z, y, x, in this order). The gradient of the
input is a sum for each tap by the library's embedding_grad (SPEC 3.3), in the order of the grid;
these are added in the order of the taps. That of the grid is, for each axis, the sum over taps of
the channels' sum (SPEC 3.2) of dy times the element, times the other axes' weights and the
weight's derivative; then times what padding does to the place (1, -1, or 0 where it lies at an end
or beyond), and times n / 2 or (n - 1) / 2.

A NaN, and an infinite number where nothing clips it, is the place 0 for border and reflection, and
outside of the image for zeros; where a weight depends on t, the result is NaN.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from . import _here as here
from ._call import expect, matmul, need, numbers, run, total
from ._elements import linspace
from ._integers import whole_of
from ._registry import handles

Tensor = torch.Tensor
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
_A = -0.75


def whole_within(x: Tensor, n: int) -> Tensor:
    """float32 numbers that are whole and lie in [0, n - 1], as integers. clamp tells a job's step
    the bounds; numbers outside become the nearest one."""
    return whole_of(x, torch.int64).to(torch.int64).clamp(0, n - 1)


# ---- weights of an axis, and their derivatives by t ----


def _near(d: Tensor) -> tuple[Tensor, Tensor]:
    """p1: the cubic curve at distances up to 1, and its derivative."""
    weight = ((_A + 2.0) * d - (_A + 3.0)) * d * d + 1.0
    return weight, ((3.0 * (_A + 2.0)) * d - 2.0 * (_A + 3.0)) * d


def _far(d: Tensor) -> tuple[Tensor, Tensor]:
    """p2: the cubic curve at distances from 1 to 2, and its derivative."""
    weight = ((_A * d - 5.0 * _A) * d + 8.0 * _A) * d - 4.0 * _A
    return weight, ((3.0 * _A) * d - 10.0 * _A) * d + 8.0 * _A


def _line(t: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    ones = torch.ones_like(t)
    yield 0, 1.0 - t, -ones
    yield 1, t, ones


def _curve(t: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    for step, curve, d, sign in (
        (-1, _far, t + 1.0, 1.0),
        (0, _near, t, 1.0),
        (1, _near, 1.0 - t, -1.0),
        (2, _far, 2.0 - t, -1.0),
    ):
        weight, slope = curve(d)
        yield step, weight, slope * sign


# ---- places of an axis ----


def _clipped(at: Tensor, n: int) -> Tensor:
    at = torch.where(at > 0.0, at, 0.0)
    return torch.where(at < n - 1.0, at, n - 1.0)


def _folded(at: Tensor, n: int, align: bool) -> tuple[Tensor, Tensor]:
    """Reflects places at both ends until they lie between them; also returns the derivative, 1 or
    -1. The ends are the outermost elements' centres with `align`, else their outer edges."""
    least, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if not span:
        return torch.zeros_like(at), torch.zeros_like(at)
    off = at - least
    far = off.abs()
    rest = far - (far / (2.0 * span)).floor() * (2.0 * span)
    back = rest > span
    place = torch.where(back, 2.0 * span - rest, rest) + least
    return place, torch.where(back == (off < 0.0), 1.0, -1.0).float()


class Tap(NamedTuple):
    """place: index along the axis. there: is it inside the image? weight, slope: None means 1."""

    place: Tensor
    there: Tensor
    weight: Tensor | None
    slope: Tensor | None


class Axis:
    """Where a grid points on an axis of n elements, and the taps there."""

    def __init__(self, g: Tensor, n: int, mode: int, padding: int, align: bool) -> None:
        self.n, self.padding, self.align = n, padding, align
        self.scale = (n - 1) / 2 if align else n / 2
        self.moves: Tensor | None = None  # d(place) / d(the grid's number)
        at = (g + 1.0) * self.scale
        at = at if align else at - 0.5
        if mode == BICUBIC or padding == ZEROS:
            self._choose(at, mode)
            return
        sign = torch.ones_like(at)
        if padding == REFLECTION:
            at, sign = _folded(at, n, align)
        self.moves = torch.where((at > 0.0) & (at < n - 1.0), sign, 0.0)
        self._choose(_clipped(at, n), mode)

    def _choose(self, at: Tensor, mode: int) -> None:
        if mode == NEAREST:
            self.taps = [self._tap(at.round(), None, None)]
            return
        low = at.floor()
        taps = (_curve if mode == BICUBIC else _line)(at - low)
        self.taps = [
            self._tap(self._moved(low + step, mode), weight, slope) for step, weight, slope in taps
        ]

    def _moved(self, at: Tensor, mode: int) -> Tensor:
        if mode != BICUBIC or self.padding == ZEROS:
            return at
        at = _folded(at, self.n, self.align)[0] if self.padding == REFLECTION else at
        return _clipped(at, self.n)

    def _tap(self, at: Tensor, weight: Tensor | None, slope: Tensor | None) -> Tap:
        there = (at >= 0.0) & (at <= self.n - 1.0)
        return Tap(whole_within(torch.where(there, at, 0.0), self.n), there, weight, slope)

    def by_grid(self, slope: Tensor) -> Tensor:
        """Turns a derivative with respect to the place into one with respect to the grid's
        number."""
        return (slope if self.moves is None else slope * self.moves) * self.scale


# ---- all axes ----


def _times(factors: Iterator[Tensor | None]) -> Tensor | None:
    product = None
    for f in factors:
        product = f if product is None else product if f is None else product * f
    return product


class Sampling:
    """Where a grid points. rows: number of elements of [N, ..., C] without channels; index `rows`
    stands for everything outside."""

    def __init__(self, x: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> None:
        self.sizes = x.shape[2:]
        dims = len(self.sizes)
        self.rows, self.channels = len(x) * math.prod(self.sizes), x.shape[1]
        images = here.arange(len(x)).reshape(-1, *[1] * dims)
        self.axes = [
            Axis(grid[..., dims - 1 - d], n, mode, padding, align) for d, n in enumerate(self.sizes)
        ]
        self._images = images

    def table(self, x: Tensor) -> Tensor:
        rows = x.movedim(1, -1).reshape(self.rows, self.channels)
        return torch.cat([rows, here.zeros(1, self.channels)])

    def taps(self) -> Iterator[tuple[Tensor, tuple[Tap, ...]]]:
        for taps in itertools.product(*[axis.taps for axis in self.axes]):
            place, there = self._images, None
            for tap, n in zip(taps, self.sizes):
                place = place * n + tap.place
                there = tap.there if there is None else there & tap.there
            assert there is not None
            yield torch.where(there, place, self.rows), taps


def _weighed(x: Tensor, weight: Tensor | None) -> Tensor:
    return x if weight is None else x * weight.unsqueeze(-1)


def _check(x: Tensor, grid: Tensor, mode: int, padding: int, dims: int) -> None:
    need(x, grid)
    expect(mode in (BILINEAR, NEAREST, BICUBIC), "it has no such mode")
    expect(padding in (ZEROS, BORDER, REFLECTION), "it has no such padding")
    expect(x.dim() == grid.dim() == dims + 2 and grid.shape[-1] == dims, "a size is another")
    expect(len(x) == len(grid) and min(x.shape[2:]) > 0, "a size is another")


def _register(dims: int) -> None:
    @handles(f"grid_sampler_{dims}d")
    def forward(x: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
        _check(x, grid, mode, padding, dims)
        seen = Sampling(x, grid, mode, padding, align)
        table, y = seen.table(x), None
        for places, taps in seen.taps():
            part = _weighed(table[places], _times(t.weight for t in taps))
            y = part if y is None else y + part
        assert y is not None
        return y.movedim(-1, 1).contiguous()

    @handles(f"grid_sampler_{dims}d_backward")
    def backward(
        dy: Tensor, x: Tensor, grid: Tensor, mode: int, padding: int, align: bool, wanted: Any
    ) -> tuple[Tensor | None, Tensor | None]:
        _check(x, grid, mode, padding, dims)
        need(dy)
        expect(dy.shape == (*x.shape[:2], *grid.shape[1:-1]), "its gradient has another size")
        seen = Sampling(x, grid, mode, padding, align)
        d = dy.movedim(1, -1).contiguous()
        dx = _of_input(seen, d).reshape(len(x), *x.shape[2:], -1) if wanted[0] else None
        dx = None if dx is None else dx.movedim(-1, 1).contiguous()
        return dx, _of_grid(seen, d, x, grid, mode) if wanted[1] else None


_register(2)
_register(3)


def _of_input(seen: Sampling, d: Tensor) -> Tensor:
    """The gradient of the input, [rows, channels]."""
    shape = (seen.rows, seen.channels)
    dx = here.zeros(shape)
    for places, taps in seen.taps() if d.numel() else ():
        terms = _weighed(d, _times(t.weight for t in taps)).reshape(-1, seen.channels)
        ids = numbers(places.reshape(-1), seen.rows + 1)  # drops taps outside
        dx = dx + run("embedding_grad", (), (terms, ids), shape)
    return dx


def _of_grid(seen: Sampling, d: Tensor, x: Tensor, grid: Tensor, mode: int) -> Tensor:
    if mode == NEAREST or not d.numel():
        return here.zeros(grid.shape)
    table = seen.table(x)
    sums: list[Tensor | None] = [None] * len(seen.axes)
    for places, taps in seen.taps():
        dot = total(d * table[places], [-1])
        for e, before in enumerate(sums):
            slope = _times(t.slope if i == e else t.weight for i, t in enumerate(taps))
            part = dot if slope is None else dot * slope
            sums[e] = part if before is None else before + part
    parts = [axis.by_grid(s) for axis, s in zip(seen.axes, sums) if s is not None]
    return torch.stack(parts[::-1], -1)


# ---- grids ----


def _ends(n: int, align: bool) -> Tensor:
    """The grid's coordinates along an axis, as affine_grid's gradient, by torch's operators, has
    them."""
    line = linspace(-1, 1, n, dtype=torch.float32) if n > 1 else here.zeros(n)
    return line if align else line * (n - 1) / n


@handles("affine_grid_generator")
def affine_grid_generator(theta: Tensor, size: Any, align: bool) -> Tensor:
    """Multiplies rows (x, y, 1) or (x, y, z, 1) by theta, with the library's matmul."""
    need(theta)
    dims = len(size) - 2
    expect(dims in (2, 3) and theta.shape == (size[0], dims, dims + 1), "a size is another")
    lines = torch.meshgrid(*[_ends(n, align) for n in size[2:]], indexing="ij")
    base = torch.stack([*lines[::-1], here.ones(lines[0].shape)], -1).reshape(1, -1, dims + 1)
    base = base.expand(size[0], -1, -1).contiguous()
    return matmul(base, theta.transpose(1, 2), 1).reshape(size[0], *size[2:], dims)
