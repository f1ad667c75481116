"""Checks of values that PyTorch refuses: indices, probabilities, parameters of functions.

They run before the library reads the values, and on indices while these have 64 bits. After a
failure PyTorch is called for its own error, so the texts here are never shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _context
from ._call import Leftover, expect, unwatched

Tensor = torch.Tensor
VALUES: dict[str, Callable[..., None]] = {}  # by the operator's name, as in HANDLERS


def _checks(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def register(function: Callable[..., None]) -> Callable[..., None]:
        for name in names:
            VALUES[name] = function
        return function

    return register


def _is_read() -> bool:
    """Are values of tensors checked? Not in the step of a job, whose program has bounds of indices
    and defines what happens outside them; nor on a device, where Python would wait for the value.
    There the library's operators define the same."""
    context = _context.current()
    return context.job is None and context.device is None


def _between(x: Tensor, low: float, high: float, what: str) -> None:
    """Refuses x if an element is NaN or outside [low, high]."""
    if x.numel() and _is_read():
        least, most = torch.aminmax(x)
        expect(low <= least.item() and most.item() <= high, f"{what} is not in [{low}, {high}]")


def _all(right: Tensor, text: str) -> None:
    if _is_read():
        expect(bool(right.all()), text)


def _indices(index: Tensor, size: int) -> None:
    _between(index, 0, size - 1, "an index")


def _labels(target: Tensor, classes: int, ignore: int | None = None) -> None:
    if ignore is not None and _is_read():
        target = target[target != ignore]
    _between(target, 0, classes - 1, "a label")


# ---- sizes that meta kernels do not check ----


@_checks("convolution", "_convolution")
def _convolution(x: Tensor, w: Tensor, bias: Any, *more: Any) -> None:
    if bias is not None:
        out = w.shape[1] * more[5] if more[3] else w.shape[0]
        expect(bias.shape == (out,), "the bias has another size")


@_checks("native_group_norm")
def _group_norm(x: Tensor, w: Any, b: Any, n: int, c: int, size: int, *_: Any) -> None:
    expect(x.shape[:2] == (n, c) and x.numel() == n * c * size, "the input has another size")


@_checks("soft_margin_loss")
def _soft_margin(x: Tensor, target: Tensor, *_: Any, **__: Any) -> None:
    expect(torch.broadcast_shapes(x.shape, target.shape) == x.shape, "the target has another size")


# ---- indices ----


@_checks("scatter_add", "scatter_reduce.two")
def _scatter(x: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    _indices(index, x.shape[dim] if x.dim() else 1)


@_checks("index_add")
def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, **_: Any) -> None:
    expect(source.dim() == x.dim(), "the source has other dimensions")
    _indices(index, x.shape[dim] if x.dim() else 1)


@_checks("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(table: Tensor, ids: Tensor, offsets: Tensor, *more: Any) -> None:
    factors = more[3] if len(more) > 3 else None
    expect(factors is None or factors.dtype is table.dtype, "factors are of another type")
    _indices(ids, table.shape[0])
    if offsets.numel():
        expect(int(offsets[0]) == 0, "the first bag does not begin at 0")
        _between(offsets, 0, len(ids), "an offset")
        expect(bool((offsets[1:] >= offsets[:-1]).all()), "offsets fall")
        # PyTorch reads such ids in its gradients, and in some of its results.
        behind = len(more) > 4 and more[4] and int(offsets[-1]) < len(ids)
        _sure(not behind, "ids lie behind the last bag")


@_checks("max_unpool2d", "max_unpool3d")
def _unpool(x: Tensor, places: Tensor, size: Any, *_: Any) -> None:
    count = 1
    for n in size:
        count *= n
    _indices(places, count)


@_checks("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(x: Tensor, target: Tensor, weight: Any, reduction: int, ignore: int) -> None:
    _labels(target, x.shape[1] if x.dim() > 1 else x.numel(), ignore)


@_checks("multi_margin_loss")
def _multi_margin(x: Tensor, target: Tensor, *_: Any, **__: Any) -> None:
    _labels(target, x.shape[-1] if x.dim() else 1)


@_checks("multilabel_margin_loss_forward")
def _multilabel_margin(x: Tensor, target: Tensor, *_: Any) -> None:
    _between(target, -1, (x.shape[-1] if x.dim() else 1) - 1, "a label")


# PyTorch's kernel would read out of bounds with these arguments, so it is not called.


def _sure(right: bool, text: str) -> None:
    if not right:
        raise Leftover(text)


@_checks("_ctc_loss")
def _ctc(x: Tensor, targets: Tensor, inputs: Any, lengths: Any, blank: int = 0, *_: Any) -> None:
    inputs, lengths = (torch.as_tensor(n) for n in (inputs, lengths))
    most = targets.shape[1] if targets.dim() == 2 else targets.numel()
    _between(inputs, 0, x.shape[0], "a length of the input")
    _between(lengths, 0, most, "a length of a target")
    expect(targets.dim() == 2 or int(lengths.sum()) <= most, "targets are longer than they are")
    expect(0 <= blank < x.shape[2], "the blank is no class")
    if targets.numel():
        least, largest = torch.aminmax(targets)
        _sure(least.item() >= 0 and largest.item() < x.shape[2], "a target is no class")


@_checks("torchvision::roi_align")
def _roi_align(x: Tensor, rois: Tensor, *_: Any) -> None:
    if rois.numel() and _is_read():
        least, most = torch.aminmax(rois[:, 0])
        _sure(least.item() >= 0 and most.item() < x.shape[0], "a box is of no image")


@_checks("_grouped_mm")
def _groups(a: Tensor, b: Tensor, offs: Any = None, *_: Any, **__: Any) -> None:
    if offs is not None:
        size = b.shape[-1] if a.dim() == 3 else a.shape[-1 if b.dim() == 2 else -2]
        with unwatched():
            ends = offs.tolist()
        _sure(all(0 <= i <= j <= size for i, j in zip([0, *ends], ends)), "ends of groups fall")


# ---- parameters of losses and functions ----


@_checks("smooth_l1_loss", "smooth_l1_loss_backward")
def _smooth_l1(*args: Any, beta: float = 1.0) -> None:
    expect((args[-1] if len(args) > 3 else beta) >= 0, "beta is negative")


@_checks("huber_loss")
def _huber(x: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> None:
    expect(delta > 0, "delta is not positive")


@_checks("binary_cross_entropy")
def _bce(x: Tensor, target: Tensor, *_: Any, **__: Any) -> None:
    _between(x, 0, 1, "an element")
    _between(target, 0, 1, "an element of the target")


@_checks("softshrink")
def _softshrink(x: Tensor, lambd: float = 0.5) -> None:
    expect(lambd >= 0, "lambd is negative")


@_checks("gelu", "gelu_backward")
def _gelu(*_: Any, approximate: str = "none") -> None:
    expect(approximate in ("none", "tanh"), f"approximate is {approximate!r}")


@_checks("arange.start", "arange.start_step", "arange.default")
def _arange(*args: Any, **_: Any) -> None:
    start, end = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) > 2 else 1
    expect(step > 0 and end >= start or step < 0 and end <= start, "it has no numbers")


@_checks("linspace")
def _linspace(start: Any, end: Any, steps: int, **_: Any) -> None:
    expect(steps >= 0, "steps is negative")


@_checks("histc")
def _histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> None:
    expect(bins > 0 and min <= max, "it has no bins")


# ---- random numbers ----


@_checks("uniform_", "uniform")
def _uniform(x: Tensor, low: float = 0, high: float = 1, **_: Any) -> None:
    expect(low <= high, "the range is empty")


@_checks("normal_", "normal_functional")
def _normal(x: Any, mean: float = 0, std: float = 1, *_: Any, **__: Any) -> None:
    expect(std >= 0, "std is negative")


@_checks("normal.float_float", "normal.Tensor_float")
def _normal_of_number(mean: Any, std: float = 1, *_: Any, **__: Any) -> None:
    expect(std >= 0, "std is negative")


def _normal_of_tensor(mean: Any, std: Tensor, **_: Any) -> None:
    _all(std >= 0, "an element of std is negative")


def _probability(p: Any) -> None:
    if isinstance(p, Tensor):
        _between(p, 0, 1, "a probability")
    else:
        expect(0 <= p <= 1, "the probability is not in [0, 1]")


@_checks("bernoulli_.float", "bernoulli_.Tensor", "bernoulli.p")
def _bernoulli(x: Tensor, p: Any = 0.5, **_: Any) -> None:
    _probability(p)


@_checks("bernoulli.default")
def _bernoulli_of(p: Tensor, **_: Any) -> None:
    _probability(p)


@_checks("native_dropout")
def _dropout(x: Tensor, p: float, train: bool | None) -> None:
    _probability(p)


@_checks("exponential_")
def _exponential(x: Tensor, rate: float = 1, **_: Any) -> None:
    expect(rate > 0, "the rate is not positive")


@_checks("randint.default", "randint.generator")
def _randint(high: int, *_: Any, **__: Any) -> None:
    expect(high > 0, "the range is empty")


@_checks("randint.low", "randint.low_generator")
def _randint_low(low: int, high: int, *_: Any, **__: Any) -> None:
    expect(low < high, "the range is empty")


@_checks("randint_like.default")
def _randint_like(x: Tensor, high: int, **_: Any) -> None:
    expect(high > 0, "the range is empty")


@_checks("randint_like.low_dtype")
def _randint_like_low(x: Tensor, low: int, high: int, **_: Any) -> None:
    expect(low < high, "the range is empty")


@_checks("multinomial")
def _multinomial(p: Tensor, count: int, replacement: bool = False, **_: Any) -> None:
    expect(replacement or count <= p.shape[-1], "it draws more numbers than there are")
    _between(p, 0, float.fromhex("0x1.fffffep+127"), "a weight")
    _all((p > 0).any(-1), "all weights are 0")


@_checks("rrelu_with_noise", "rrelu_with_noise_functional")
def _rrelu(x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, *_: Any) -> None:
    expect(lower <= upper, "the range of slopes is empty")


VALUES["normal.Tensor_Tensor"] = VALUES["normal.float_Tensor"] = _normal_of_tensor
