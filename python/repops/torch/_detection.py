"""torchvision's own operators that detectors need: which boxes to keep, and pixels in boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ._call import need, numbers, run
from ._registry import handles

Tensor = torch.Tensor


@handles("torchvision::nms")
def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Boxes by falling scores, without those that a kept one overlaps by more than the threshold.
    Each operation is rounded by itself; equal scores keep the order of their places."""
    need(boxes, scores)
    order = torch.sort(scores, descending=True, stable=True)[1]
    x0, y0, x1, y1 = boxes.detach()[order].numpy().T
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
            overlaps = both / (area[i] + area[left] - both) > threshold
        left = left[~overlaps]
    return order[kept] if kept else order[:0]


class _Samples:
    """Where boxes of one number of samples look: each sample is of four pixels."""

    def __init__(self, rois: Tensor, size: Any, scale: float, grid: Any, aligned: bool) -> None:
        offset = 0.5 if aligned else 0.0
        self.grid = grid
        self.image = rois[:, 0].long()
        self.lines = []
        for start, end, n, out, count in zip((2, 1), (4, 3), size[:2], size[2:], grid):
            first = rois[:, start] * scale - offset
            length = rois[:, end] * scale - offset - first
            if not aligned:
                length = torch.where(length < 1.0, 1.0, length)
            step = length / out
            bins = first[:, None] + torch.arange(out).float() * step[:, None]
            self.lines.append(
                [_line(bins + (j + 0.5) * step[:, None] / count, n) for j in range(count)]
            )

    def taps(self, height: int, width: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows of [N H W] and weights, both [boxes, bins, bins], of each sample and pixel."""
        for rows in self.lines[0]:
            for cols in self.lines[1]:
                for y, wy in rows:
                    for x, wx in cols:
                        place = self.image[:, None, None] * height + y[:, :, None]
                        yield place * width + x[:, None, :], wy[:, :, None] * wx[:, None, :]


def _line(at: Tensor, n: int) -> list[tuple[Tensor, Tensor]]:
    """Both places of a sample along an axis, and their weights: 0 outside of the image."""
    inside = (at >= -1.0) & (at <= n)
    at = torch.where(at < 0.0, 0.0, at)
    low = torch.where(inside, at, 0.0).long()
    low = torch.where(low >= n - 1, n - 1, low)
    part = torch.where(low == n - 1, 0.0, at - low)
    high = torch.where(low == n - 1, low, low + 1)
    return [(low, torch.where(inside, 1.0 - part, 0.0)), (high, torch.where(inside, part, 0.0))]


def _groups(rois: Tensor, size: Any, scale: float, ratio: int, aligned: bool) -> Any:
    """The boxes of each number of samples."""
    if ratio > 0:
        return [(torch.arange(len(rois)), _Samples(rois, size, scale, (ratio, ratio), aligned))]
    counts = []
    for start, end, out in ((2, 4, size[2]), (1, 3, size[3])):
        length = rois[:, end] * scale - rois[:, start] * scale
        length = length if aligned else torch.where(length < 1.0, 1.0, length)
        counts.append((length / out).ceil().long())
    pairs = torch.stack(counts, 1).tolist()
    groups = []
    for pair in sorted({tuple(p) for p in pairs}):
        own = torch.tensor([i for i, p in enumerate(pairs) if tuple(p) == pair])
        groups.append((own, _Samples(rois[own], size, scale, pair, aligned)))
    return groups


@handles("torchvision::roi_align")
def roi_align(
    x: Tensor, rois: Tensor, scale: float, out_h: int, out_w: int, ratio: int, aligned: bool
) -> Tensor:
    """Means of samples, added row by row; a sample is the sum of four pixels times weights."""
    need(x, rois)
    n, c, h, w = x.shape
    rows = x.movedim(1, -1).reshape(-1, c)
    y = torch.zeros(len(rois), out_h, out_w, c)
    for own, samples in _groups(rois, (h, w, out_h, out_w), scale, ratio, aligned):
        sums = torch.zeros(len(own), out_h, out_w, c)
        for places, weights in samples.taps(h, w):
            sums = sums + rows[places] * weights.unsqueeze(-1)
        y[own] = sums / max(1, samples.grid[0] * samples.grid[1])
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
    """Each pixel and sample after the other, by the library's embedding_grad."""
    need(dy, rois)
    dx = torch.zeros(n * h * w, c)
    for own, samples in _groups(rois, (h, w, out_h, out_w), scale, ratio, aligned):
        d = dy[own].movedim(1, -1) / max(1, samples.grid[0] * samples.grid[1])
        for places, weights in samples.taps(h, w):
            terms = (d * weights.unsqueeze(-1)).contiguous().reshape(-1, c)
            ids = numbers(places.reshape(-1), len(dx))
            if len(ids):
                dx = dx + run("embedding_grad", (), (terms, ids), tuple(dx.shape))
    return dx.reshape(n, h, w, c).movedim(-1, 1).contiguous()
