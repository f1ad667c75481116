"""Windows of convolutions and pools: paddings, sizes, and all windows of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .._library import Error
from ._run import Call
from ._types import sized

Tensor = torch.Tensor


class Frame(NamedTuple):
    """The windows along each axis of an image: size, stride, dilation, padding before and after,
    and number."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    sizes: list[int]

    @property
    def whole(self) -> bool:
        """Whether the padding is equal on both sides, so that no window reaches beyond the end."""
        return self.before == self.after


def _listed(n: Call, name: str, count: int) -> list[int]:
    found = n.get(name, [1] * count)
    if len(found) != count or any(not isinstance(v, int) or v < 1 for v in found):
        raise Error(f"{name} is {found}; expected {count} integers from 1 on")
    return list(found)


def _spans(kernel: Sequence[int], dilations: Sequence[int]) -> list[int]:
    return [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]


def pads_of(
    n: Call, image: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Padding before and after, from auto_pad or pads."""
    count, how = len(image), n.get("auto_pad", "NOTSET")
    if how in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max(0, (-(-d // s) - 1) * s + span - d) for d, s, span in zip(image, strides, spans)
        ]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        return (small, large) if how == "SAME_UPPER" else (large, small)
    pads = n.get("pads", [0] * (2 * count)) if how == "NOTSET" else [0] * (2 * count)
    if len(pads) != 2 * count:
        raise Error(f"pads is {pads}; expected {2 * count} integers")
    return pads[:count], pads[count:]


def frame(n: Call, image: Sequence[int], kernel: Sequence[int], ceil: bool = False) -> Frame:
    count = len(image)
    if len(kernel) != count or any(k < 1 for k in kernel):
        raise Error(f"its window is {list(kernel)}; expected {count} sizes from 1 on")
    strides, dilations = _listed(n, "strides", count), _listed(n, "dilations", count)
    spans = _spans(kernel, dilations)
    before, after = pads_of(n, image, spans, strides)
    sizes = []
    for d, span, s, b, a in zip(image, spans, strides, before, after):
        room = d + b + a - span
        if room < 0:
            raise Error(f"a window of {span} in {d + b + a} elements")
        size = (-(-room // s) if ceil else room // s) + 1
        if ceil and (size - 1) * s >= d + b:
            size -= 1  # a window must not begin in the padding after the image
        sizes.append(size)
    return Frame(list(kernel), strides, dilations, before, after, sizes)


def places(f: Frame, axis: int) -> Tensor:
    """[windows, taps] of an axis: the index in the padded image that each tap reads."""
    first = torch.arange(f.sizes[axis])[:, None] * f.strides[axis]
    return first + torch.arange(f.kernel[axis]) * f.dilations[axis]


def windows(x: Tensor, f: Frame, fill: float) -> Tensor:
    """All windows: [n, c, windows along each axis, taps along all axes]."""
    count = len(f.kernel)
    sized([*x.shape[:2], *f.sizes, *f.kernel], "all of its windows")
    for a in range(count):
        own = places(f, a)
        more = max(0, int(own.max()) + 1 - x.shape[2 + a] - f.before[a])
        flat: list[Any] = [0, 0] * (count - 1 - a) + [f.before[a], more]
        x = torch.nn.functional.pad(x, flat, value=fill) if f.before[a] or more else x
        # The indices leave out what no window reads at the end.
    for a in reversed(range(count)):
        own = places(f, a)
        x = x.index_select(2 + a, own.reshape(-1))
        x = x.reshape(*x.shape[: 2 + a], *own.shape, *x.shape[3 + a :])
    order = [2 + 2 * a for a in range(count)] + [3 + 2 * a for a in range(count)]
    return x.permute(0, 1, *order).flatten(2 + count)
