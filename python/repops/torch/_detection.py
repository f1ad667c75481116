"""Operators of torchvision for detectors: nms, and pooling of regions of interest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from . import _here as here
from ._call import need, numbers, run
from ._grids import whole_within
from ._registry import handles

Tensor = torch.Tensor


def _limit(threshold: float) -> float:
    """The largest float32 that is not above the threshold. A float32 overlap is above one if it is
    above the other, so it needs no float64, in which torchvision compares."""
    near = float(np.float32(threshold))
    return float(np.nextafter(np.float32(near), np.float32(-np.inf))) if near > threshold else near


def kept_boxes(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """For each box whether nms keeps it, by operators that a job can record."""
    need(boxes, scores)
    if not len(boxes):
        return here.zeros(0, dtype=torch.bool)
    order = torch.sort(scores, descending=True, stable=True)[1]
    x0, y0, x1, y1 = boxes[order].unbind(1)
    area = (x1 - x0) * (y1 - y0)
    low, high = [t[:, None] for t in (x0, y0)], [t[:, None] for t in (x1, y1)]
    sides = [
        torch.maximum(torch.minimum(b, e) - torch.maximum(a, s), here.zeros(()))
        for s, e, a, b in zip((x0, y0), (x1, y1), low, high)
    ]
    both = sides[0] * sides[1]
    over = both / (area[:, None] + area - both) > _limit(threshold)
    over = over & here.ones(over.shape, dtype=torch.bool).triu(1)
    gone = here.zeros(len(boxes), dtype=torch.bool)
    for i in range(len(boxes) - 1):
        gone = gone | (over[i] & ~gone[i])
    return here.zeros(len(boxes), dtype=torch.bool).scatter(0, order, ~gone)


@handles("torchvision::nms")
def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Indices of the kept boxes by falling scores; equal scores keep their order. A box goes if a
    kept one overlaps it by more than the threshold. Each operation is rounded by itself."""
    need(boxes, scores)
    order = torch.sort(scores, descending=True, stable=True)[1]
    x0, y0, x1, y1 = np.array(boxes.detach()[order].tolist(), np.float32).reshape(-1, 4).T
    limit = np.float32(_limit(threshold))
    area = (x1 - x0) * (y1 - y0)
    kept, left = [], np.arange(len(area))
    zero = np.float32(0)
    while len(left):
        i, left = left[0], left[1:]
        kept.append(int(i))
        width = np.maximum(np.minimum(x1[i], x1[left]) - np.maximum(x0[i], x0[left]), zero)
        height = np.maximum(np.minimum(y1[i], y1[left]) - np.maximum(y0[i], y0[left]), zero)
        both = width * height
        with np.errstate(invalid="ignore", divide="ignore"):
            overlaps = both / (area[i] + area[left] - both) > limit
        left = left[~overlaps]
    return order[kept] if kept else order[:0]


class _Samples:
    """Sample points of boxes that have the same number of samples; each reads four pixels."""

    def __init__(self, rois: Tensor, size: Any, scale: float, grid: Any, aligned: bool) -> None:
        """size: number of images, their height and width, then rows and columns of bins."""
        offset = 0.5 if aligned else 0.0
        self.grid = grid
        self.image = whole_within(rois[:, 0], size[0])
        self.lines = []
        for start, end, n, out, count in zip((2, 1), (4, 3), size[1:3], size[3:], grid):
            first = rois[:, start] * scale - offset
            length = rois[:, end] * scale - offset - first
            if not aligned:
                length = torch.where(length < 1.0, 1.0, length)
            step = length / out
            bins = first[:, None] + here.arange(out).float() * step[:, None]
            self.lines.append(
                [_line(bins + (j + 0.5) * step[:, None] / count, n) for j in range(count)]
            )

    def taps(self, height: int, width: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields for each sample and pixel its rows of [N H W] and their weights, both [boxes,
        bins, bins]."""
        for rows in self.lines[0]:
            for cols in self.lines[1]:
                for y, wy in rows:
                    for x, wx in cols:
                        place = self.image[:, None, None] * height + y[:, :, None]
                        yield place * width + x[:, None, :], wy[:, :, None] * wx[:, None, :]


def _line(at: Tensor, n: int) -> list[tuple[Tensor, Tensor]]:
    """Both pixels of a sample along an axis with their weights, which are 0 outside the image."""
    inside = (at >= -1.0) & (at <= n)
    at = torch.where(at < 0.0, 0.0, at)
    low = whole_within(torch.where(inside, at, 0.0).floor(), n)
    part = torch.where(low == n - 1, 0.0, at - low)
    high = (low + 1).clamp(0, n - 1)
    return [(low, torch.where(inside, 1.0 - part, 0.0)), (high, torch.where(inside, part, 0.0))]


def _groups(rois: Tensor, size: Any, scale: float, ratio: int, aligned: bool) -> Any:
    """Groups boxes by their number of samples: (indices, samples); indices None: all boxes. Without
    a ratio the numbers of samples are read from the boxes."""
    if ratio > 0:
        return [(None, _Samples(rois, size, scale, (ratio, ratio), aligned))]
    counts = []
    for start, end, out in ((2, 4, size[3]), (1, 3, size[4])):
        length = rois[:, end] * scale - rois[:, start] * scale
        length = length if aligned else torch.where(length < 1.0, 1.0, length)
        counts.append((length / out).ceil())
    pairs = [(int(a), int(b)) for a, b in torch.stack(counts, 1).tolist()]
    groups = []
    for pair in sorted(set(pairs)):
        own = here.tensor([i for i, p in enumerate(pairs) if p == pair])
        groups.append((own, _Samples(rois[own], size, scale, pair, aligned)))
    return groups


def _means(rows: Tensor, samples: _Samples, size: Any, shape: Any) -> Tensor:
    sums = here.zeros(shape)
    for places, weights in samples.taps(*size[1:3]):
        sums = sums + rows[places] * weights.unsqueeze(-1)
    return sums / max(1, samples.grid[0] * samples.grid[1])


@handles("torchvision::roi_align")
def roi_align(
    x: Tensor, rois: Tensor, scale: float, out_h: int, out_w: int, ratio: int, aligned: bool
) -> Tensor:
    """The mean of each bin's samples, added row by row; a sample sums four weighted pixels. A box
    whose image does not exist is refused; in the step of a job it takes the nearest image."""
    need(x, rois)
    n, c, h, w = x.shape
    size = (n, h, w, out_h, out_w)
    rows = x.movedim(1, -1).reshape(-1, c)
    y = here.zeros(len(rois), out_h, out_w, c)
    for own, samples in _groups(rois, size, scale, ratio, aligned):
        if own is None:
            y = _means(rows, samples, size, y.shape)
        else:
            y[own] = _means(rows, samples, size, (len(own), *y.shape[1:]))
    return y.movedim(-1, 1).contiguous()


@handles("torchvision::_roi_align_backward")
def roi_align_backward(
    dy: Tensor,
    rois: Tensor,
    scale: float,
    out_h: int,
    out_w: int,
    n: int,
    c: int,
    h: int,
    w: int,
    ratio: int,
    aligned: bool,
) -> Tensor:
    """Adds the terms of each sample and pixel in turn, by the library's embedding_grad."""
    need(dy, rois)
    dx = here.zeros(n * h * w, c)
    for own, samples in _groups(rois, (n, h, w, out_h, out_w), scale, ratio, aligned):
        d = (dy if own is None else dy[own]).movedim(1, -1)
        d = d / max(1, samples.grid[0] * samples.grid[1])
        for places, weights in samples.taps(h, w):
            terms = (d * weights.unsqueeze(-1)).contiguous().reshape(-1, c)
            ids = numbers(places.reshape(-1), len(dx))
            if len(ids):
                dx = dx + run("embedding_grad", (), (terms, ids), tuple(dx.shape))
    return dx.reshape(n, h, w, c).movedim(-1, 1).contiguous()
