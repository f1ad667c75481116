"""Products of matrices, and convolutions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .._library import Error
from ._movement import ints
from ._run import Call
from ._table import operator
from ._types import broadcast, sized
from ._windows import frame, pads_of

Tensor = torch.Tensor
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _dimensions(count: int) -> int:
    if not 1 <= count <= 3:
        raise Error(f"it is of {count} dimensions; expected 1, 2 or 3")
    return count


@operator("MatMul")
def matmul(n: Call, a: Tensor, b: Tensor) -> Tensor:
    if a.dim() > 1 and b.dim() > 1:
        batch = broadcast(a.shape[:-2], b.shape[:-2])
        sized([*batch, a.shape[-2], b.shape[-1]], "its output")
    return torch.matmul(a, b)


@operator("Gemm")
def _gemm(n: Call, a: Tensor, b: Tensor, c: Any = None) -> Tensor:
    a = a.t() if n.get("transA", 0) else a
    alpha, beta = n.get("alpha", 1.0), n.get("beta", 1.0)
    if alpha == 1.0 and n.get("transB", 0) and (c is None or beta == 1.0 and c.dim() == 1):
        return F.linear(a, b, c)
    y = a @ (b.t() if n.get("transB", 0) else b)
    y = y if alpha == 1.0 else y * alpha
    return y if c is None else y + (c if beta == 1.0 else c * beta)


def pad(x: Tensor, before: list[int], after: list[int], value: float = 0.0) -> Tensor:
    flat = [p for a in reversed(range(len(before))) for p in (before[a], after[a])]
    return F.pad(x, flat, value=value) if any(flat) else x


def neighbours(x: Tensor) -> Tensor:
    """Makes an image channels-last, which is the library's layout, so that it copies less."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def convolve(n: Call, x: Tensor, w: Tensor, bias: Any, kernel: list[int]) -> Tensor:
    count = _dimensions(x.dim() - 2)
    f = frame(n, x.shape[2:], kernel)
    sized([x.shape[0], w.shape[0], *f.sizes], "its output")
    same = f.whole
    x = x if same else pad(x, f.before, f.after)
    own = f.before if same else [0] * count
    groups = n.get("group", 1)
    return _CONV[count](neighbours(x), neighbours(w), bias, f.strides, own, f.dilations, groups)


@operator("Conv")
def _conv(n: Call, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    kernel = n.get("kernel_shape", list(w.shape[2:]))
    if kernel != list(w.shape[2:]):
        raise Error(f"kernel_shape is {kernel}; its weights have {list(w.shape[2:])}")
    return convolve(n, x, w, bias, kernel)


def _turned_pads(n: Call, sizes: list[int], image: list[int]) -> tuple[list[int], list[int]]:
    """How much of the full output is cut off before and after, to get the required size."""
    count, how = len(image), n.get("auto_pad", "NOTSET")
    wanted = n.get("output_shape")
    if wanted is None and how in ("NOTSET", "VALID"):
        return pads_of(n, image, [1] * count, [1] * count)
    strides = n.get("strides", [1] * count)
    if wanted is None:
        wanted = [d * s for d, s in zip(image, strides)]
    total = [s - w for s, w in zip(sizes, wanted[-count:])]
    small = [t // 2 for t in total]
    large = [t - t // 2 for t in total]
    return (small, large) if how == "SAME_UPPER" else (large, small)


@operator("ConvTranspose")
def _conv_transpose(n: Call, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    count = _dimensions(x.dim() - 2)
    strides, dilations = n.get("strides", [1] * count), n.get("dilations", [1] * count)
    more = n.get("output_padding", [0] * count)
    image = list(x.shape[2:])
    sizes = [
        (d - 1) * s + (k - 1) * t + 1 + p
        for d, s, k, t, p in zip(image, strides, w.shape[2:], dilations, more)
    ]
    groups = n.get("group", 1)
    sized([x.shape[0], w.shape[1] * groups, *sizes], "its output")
    before, after = _turned_pads(n, sizes, image)
    y = _TRANSPOSED[count](neighbours(x), w, bias, strides, 0, 0, groups, dilations)
    rest = [s - a - d for s, a, d in zip(sizes, after, y.shape[2:])]
    if any(r > 0 for r in rest):  # output_padding beyond the last window has only the bias
        y = _with_edges(y, [max(0, r) for r in rest], bias)
    for a in range(count):
        y = y.narrow(2 + a, before[a], sizes[a] - before[a] - after[a])
    return y


def _with_edges(y: Tensor, more: list[int], bias: Any) -> Tensor:
    if bias is None:
        return pad(y, [0] * len(more), more)
    own: Tensor = bias.reshape([-1] + [1] * len(more))
    return pad(y - own, [0] * len(more), more) + own


@operator("CausalConvWithState")
def _causal(n: Call, x: Tensor, w: Tensor, bias: Any = None, past: Any = None) -> Any:
    k = w.shape[2]
    past = torch.zeros((*x.shape[:2], k - 1)) if past is None else past
    whole = torch.cat([past, x], 2)
    y = F.conv1d(whole, w, bias, groups=x.shape[1])
    y = F.silu(y) if n.get("activation", "none") in ("silu", "swish") else y
    return y, whole.narrow(2, whole.shape[2] - (k - 1), k - 1)


@operator("Col2Im")
def _col2im(n: Call, x: Tensor, image: Tensor, block: Tensor) -> Tensor:
    """Sums the windows' values for each element, in the order of the windows."""
    sizes, kernel = ints(image), ints(block)
    count = len(sizes)
    strides, dilations = n.get("strides", [1] * count), n.get("dilations", [1] * count)
    pads = n.get("pads", [0] * (2 * count))
    whole = [d + pads[a] + pads[count + a] for a, d in enumerate(sizes)]
    sized([*x.shape, *whole], "its output")
    flat = torch.zeros([1] * (2 * count), dtype=torch.int64)
    for a in range(count):
        span = (kernel[a] - 1) * dilations[a] + 1
        steps = torch.arange((whole[a] - span) // strides[a] + 1) * strides[a]
        own = torch.arange(kernel[a])[:, None] * dilations[a] + steps
        dims = [1] * (2 * count)
        dims[a], dims[count + a] = own.shape
        flat = flat + own.reshape(dims) * math.prod(whole[a + 1 :])
    channels = x.shape[1] // math.prod(kernel)
    lines = x.reshape(x.shape[0] * channels, -1)
    y = torch.zeros(lines.shape[0], math.prod(whole)).index_add(1, flat.reshape(-1), lines)
    y = y.reshape(x.shape[0], channels, *whole)
    for a in range(count):
        y = y.narrow(2 + a, pads[a], sizes[a])
    return y


@operator("DeformConv")
def _deform(
    n: Call, x: Tensor, w: Tensor, offset: Tensor, bias: Any = None, mask: Any = None
) -> Tensor:
    """Samples each tap bilinearly, then multiplies with the weights."""
    if x.dim() != 4:
        raise Error(f"it is of {x.dim() - 2} dimensions; expected 2")
    f = frame(n, x.shape[2:], list(w.shape[2:]))
    parts, groups = n.get("offset_group", 1), n.get("group", 1)
    taps, (high, wide) = math.prod(f.kernel), f.sizes
    shift = offset.reshape(x.shape[0], parts, taps, 2, high, wide)
    columns = []
    for t in range(taps):
        row, column = divmod(t, f.kernel[1])
        base = [
            torch.arange(size) * f.strides[a] - f.before[a] + place * f.dilations[a]
            for a, (size, place) in enumerate(zip(f.sizes, (row, column)))
        ]
        y = shift[:, :, t, 0] + base[0][:, None]
        z = shift[:, :, t, 1] + base[1]
        seen = _sampled(x, y, z, parts)
        if mask is not None:
            own = mask.reshape(x.shape[0], parts, taps, high, wide)[:, :, t]
            seen = seen.reshape(x.shape[0], parts, -1, high, wide) * own[:, :, None]
        columns.append(seen.reshape(x.shape[0], x.shape[1], high, wide))
    seen = torch.stack(columns, 2).reshape(x.shape[0], groups, -1, high * wide)
    y = torch.matmul(w.reshape(groups, w.shape[0] // groups, -1), seen)
    y = y.reshape(x.shape[0], w.shape[0], high, wide)
    return y if bias is None else y + bias.reshape(-1, 1, 1)


def _sampled(x: Tensor, y: Tensor, z: Tensor, parts: int) -> Tensor:
    """x sampled at rows y and columns z, separately for each offset group of channels."""
    count, channels, high, wide = x.shape
    own = x.reshape(count * parts, channels // parts, high, wide)
    rows = y.reshape(count * parts, *y.shape[2:]) * (2.0 / max(1, high - 1)) - 1.0
    columns = z.reshape(count * parts, *z.shape[2:]) * (2.0 / max(1, wide - 1)) - 1.0
    grid = torch.stack([columns, rows], -1)
    return F.grid_sample(own, grid, "bilinear", "zeros", align_corners=True)
