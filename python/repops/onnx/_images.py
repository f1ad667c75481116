"""Sampling of images."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._library import Error
from ._movement import ints
from ._run import Call
from ._table import operator
from ._types import sized

Tensor = torch.Tensor
_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@operator("GridSample")
def _grid_sample(n: Call, x: Tensor, grid: Tensor) -> Tensor:
    mode = n.get("mode", "linear")
    how = n.get("padding_mode", "zeros")
    corners = bool(n.get("align_corners", 0))
    return F.grid_sample(x, grid, _MODES.get(mode, mode), how, align_corners=corners)


@operator("AffineGrid", note="the size is read")
def _affine(n: Call, theta: Tensor, size: Tensor) -> Tensor:
    """Multiplies a grid of coordinates by theta."""
    dims, corners = ints(size), n.get("align_corners", 0)
    sized([*dims, len(dims)], "its output")
    axes = []
    for d in dims[2:]:
        line = torch.arange(d, dtype=torch.float64)
        own = (line * 2 / max(1, d - 1) - 1) if corners else (line * 2 + 1) / d - 1
        axes.append(own.to(torch.float32))
    planes = torch.meshgrid(*axes, indexing="ij")
    points = torch.stack([*planes[::-1], torch.ones(dims[2:])], -1).reshape(-1, len(dims) - 1)
    made = torch.matmul(points, theta.transpose(1, 2))
    return made.reshape(dims[0], *dims[2:], len(dims) - 2)


@operator("RoiAlign", note="mode avg and max; with sampling_ratio 0, boxes are read")
def _roi_align(n: Call, x: Tensor, boxes: Tensor, batch: Tensor) -> Tensor:
    high, wide = n.get("output_height", 1), n.get("output_width", 1)
    scale, ratio = n.get("spatial_scale", 1.0), n.get("sampling_ratio", 0)
    half = n.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    own = boxes * scale - (0.5 if half else 0.0)
    size = own[:, 2:] - own[:, :2]
    size = size if half else size.clamp(min=1.0)
    images = x.index_select(0, batch.to(torch.int64))
    parts = []
    for r in range(boxes.shape[0]):
        counts = [ratio, ratio]
        if ratio <= 0:
            counts = [max(1, -int(-(size[r, a]).item() // d)) for a, d in ((1, high), (0, wide))]
        sized([*x.shape[1:2], high, wide, *counts], "its samples")
        most = n.get("mode", "avg") == "max"
        seen = _samples(images[r], own[r], size[r], (high, wide), counts, most)
        parts.append(seen.amax((2, 4)) if most else seen.mean((2, 4)))
    return torch.stack(parts)


def _line(start: Tensor, size: Tensor, bins: int, each: int) -> Tensor:
    steps = (torch.arange(bins * each) + 0.5) / each
    return start + size / bins * steps


def _weights(line: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Indices of the two neighbours of each coordinate, and their weights, which are 0 far
    outside."""
    inside = (line >= -1.0) & (line <= size)
    line = line.clamp(0.0, size - 1.0)
    low = line.floor()
    high = (low + 1).clamp(max=size - 1.0)
    part = line - low
    zero = torch.zeros(())
    first, second = torch.where(inside, 1.0 - part, zero), torch.where(inside, part, zero)
    places = [t.to(torch.int64).clamp(0, size - 1) for t in (low, high)]
    return places[0], places[1], first, second


def _samples(
    image: Tensor, box: Tensor, size: Tensor, bins: tuple[int, int], counts: list[int], most: bool
) -> Tensor:
    """Bilinear samples of a box, [channels, rows of bins, of samples, columns of bins, of samples].
    The four weighted neighbours are added, or with `most` their maximum is taken."""
    join = torch.maximum if most else torch.add
    rows = _weights(_line(box[1], size[1], bins[0], counts[0]), image.shape[1])
    columns = _weights(_line(box[0], size[0], bins[1], counts[1]), image.shape[2])
    total = None
    for y in (0, 1):
        band = image.index_select(1, rows[y])
        for z in (0, 1):
            part = band.index_select(2, columns[z]) * (rows[2 + y][:, None] * columns[2 + z])
            total = part if total is None else join(total, part)
    if total is None:
        raise Error("no samples")
    return total.reshape(image.shape[0], bins[0], counts[0], bins[1], counts[1])
