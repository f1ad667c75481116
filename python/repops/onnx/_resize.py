"""Resizes images one axis at a time, with weights computed in float64 and rounded once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from .._library import Error
from ._movement import ints
from ._run import Call
from ._table import operator
from ._types import sized

Tensor = torch.Tensor


class Axis(NamedTuple):
    """An axis: size before and after, the scale, and the region of interest."""

    size: int
    new: int
    scale: float
    start: float
    end: float


def _coordinate(how: str, a: Axis, i: int) -> float:
    """The input coordinate of output element i."""
    wide = a.scale * a.size
    if how == "align_corners":
        return 0.0 if wide == 1 else i * (a.size - 1) / (wide - 1)
    if how == "asymmetric":
        return i / a.scale
    if how == "tf_crop_and_resize":
        own = (a.end - a.start) * (a.size - 1)
        moved = own / 2 if wide == 1 else i * own / (wide - 1)
        return moved + a.start * (a.size - 1)
    if how == "pytorch_half_pixel" and wide == 1:
        return -0.5
    if how in ("half_pixel", "pytorch_half_pixel"):
        return (i + 0.5) / a.scale - 0.5
    if how == "half_pixel_symmetric":
        return a.size / 2 * (1 - a.new / wide) + (i + 0.5) / a.scale - 0.5
    raise Error(f"coordinate_transformation_mode {how} is unknown")


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _taps(n: Call, a: Axis, x: float) -> dict[int, float]:
    """Weights by input index; indices outside the image are replaced by the nearest inside."""
    mode, reach = n.get("mode", "nearest"), 1.0
    smooth = min(a.scale, 1.0) if n.get("antialias", 0) else 1.0
    reach = (2.0 if mode == "cubic" else 1.0) / smooth
    own: dict[int, float] = {}
    for i in range(math.floor(x - reach) + 1, math.ceil(x + reach)):
        far = (i - x) * smooth
        bend = n.get("cubic_coeff_a", -0.75)
        own[i] = _cubic(far, bend) if mode == "cubic" else max(0.0, 1 - abs(far))
    outside = n.get("exclude_outside", 0)
    if outside:
        own = {i: w for i, w in own.items() if 0 <= i < a.size}
    if outside or smooth < 1:
        total = math.fsum(own.values())
        own = {i: w / total for i, w in own.items()}
    taps: dict[int, float] = {}
    for i, w in own.items():
        place = min(max(i, 0), a.size - 1)
        taps[place] = taps.get(place, 0.0) + w
    return taps


def _nearest(n: Call, a: Axis, x: float) -> int:
    how = n.get("nearest_mode", "round_prefer_floor")
    rounds = {
        "round_prefer_floor": lambda: math.ceil(x - 0.5),
        "round_prefer_ceil": lambda: math.floor(x + 0.5),
        "floor": lambda: math.floor(x),
        "ceil": lambda: math.ceil(x),
    }
    if how not in rounds:
        raise Error(f"nearest_mode {how} is unknown")
    return int(min(max(rounds[how](), 0), a.size - 1))


def _along(n: Call, x: Tensor, d: int, a: Axis) -> Tensor:
    how = n.get("coordinate_transformation_mode", "half_pixel")
    places = [_coordinate(how, a, i) for i in range(a.new)]
    crops = how == "tf_crop_and_resize"
    beyond = [crops and not 0 <= p <= a.size - 1 for p in places]
    if n.get("mode", "nearest") == "nearest":
        chosen = [_nearest(n, a, p) for p in places]
        y = x if chosen == list(range(a.size)) else x.index_select(d, torch.tensor(chosen))
    else:
        sized([a.new, a.size], "its table of weights")
        weights = torch.zeros(a.new, a.size, dtype=torch.float64)
        for i, p in enumerate(places):
            for tap, w in _taps(n, a, p).items():
                weights[i, tap] = w
        y = torch.matmul(x.movedim(d, -1), weights.to(torch.float32).t()).movedim(-1, d)
    if any(beyond):
        out = torch.tensor(beyond).reshape([-1] + [1] * (x.dim() - 1 - d))
        value = torch.full((), n.get("extrapolation_value", 0.0), dtype=y.dtype)
        y = torch.where(out, value, y)
    return y


def _sizes(n: Call, x: Tensor, own: list[int], wanted: list[int]) -> tuple[list[int], list[float]]:
    """New sizes and scales."""
    factors = [w / x.shape[d] for d, w in zip(own, wanted)]
    policy = n.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return wanted, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [int(factor * x.shape[d] + 0.5) for d in own], [factor] * len(own)


def _numbers(t: Any) -> list[float]:
    return [] if t is None else [float(v) for v in t.reshape(-1).tolist()]


@operator("Resize", note="sizes, scales and roi are read")
def _resize(n: Call, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> Tensor:
    axes = n.get("axes")
    own = list(range(x.dim())) if axes is None else [a % x.dim() for a in axes]
    factors = _numbers(scales)
    if factors:
        new = [math.floor(x.shape[d] * f) for d, f in zip(own, factors)]
    elif sizes is not None:
        new, factors = _sizes(n, x, own, ints(sizes))
    else:
        raise Error("it has neither scales nor sizes")
    if len(new) != len(own) or any(f <= 0 for f in factors):
        raise Error(f"{len(factors)} scales for {len(own)} axes; expected one for each, above 0")
    sized([*new], "its output")
    part = _numbers(roi) or [0.0] * len(own) + [1.0] * len(own)
    kind, mode = x.dtype, n.get("mode", "nearest")
    x = x if mode == "nearest" else x.to(torch.float32)
    for i, d in enumerate(own):
        crops = n.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
        if new[i] != x.shape[d] or factors[i] != 1 or crops:
            a = Axis(x.shape[d], new[i], factors[i], part[i], part[len(own) + i])
            x = _along(n, x, d, a)
    if kind is torch.float32 or mode == "nearest":
        return x
    limits = torch.iinfo(kind)
    return x.round().clamp(limits.min, limits.max).to(kind)
