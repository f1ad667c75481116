"""Fourier transforms and windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from .._library import Error
from ._run import Call, mark_known
from ._table import operator
from ._types import sized, type_of

Tensor = torch.Tensor


def _complex(x: Tensor) -> Tensor:
    """A complex tensor, from (real, imaginary) pairs or real numbers along the last axis."""
    if x.shape[-1] == 2:
        return torch.complex(x[..., 0].contiguous(), x[..., 1].contiguous())
    return torch.complex(x[..., 0].contiguous(), torch.zeros(x.shape[:-1]))


def _pairs(z: Tensor) -> Tensor:
    return torch.stack([z.real, z.imag], -1)


def _fitted(x: Tensor, axis: int, count: int) -> Tensor:
    more = count - x.shape[axis]
    if more <= 0:
        return x.narrow(axis, 0, count)
    return F.pad(x, [0, 0] * (x.dim() - 1 - axis) + [0, more])


@operator("DFT")
def _dft(n: Call, x: Tensor, length: Any = None, axis: Any = None) -> Tensor:
    along = n.get("axis", 1) if n.version < 20 else -2 if axis is None else int(axis)
    along %= x.dim()
    inverse, half = n.get("inverse", 0), n.get("onesided", 0)
    if inverse and half:
        # Half of a spectrum gives real numbers.
        count = 2 * (x.shape[along] - 1) if length is None else int(length)
        made: Tensor = torch.fft.irfft(_complex(x), count, along)
        return made[..., None]
    count = x.shape[along] if length is None else int(length)
    x = _fitted(x, along, count)
    if inverse:
        return _pairs(torch.fft.ifft(_complex(x), count, along))
    if x.shape[-1] == 1:
        transform = torch.fft.rfft if half else torch.fft.fft
        return _pairs(transform(x[..., 0], count, along))
    made = torch.fft.fft(_complex(x), count, along)
    return _pairs(made.narrow(along, 0, count // 2 + 1) if half else made)


@operator("STFT")
def _stft(n: Call, x: Tensor, step: Tensor, window: Any = None, length: Any = None) -> Tensor:
    by = int(step)
    size = int(length) if length is not None else window.shape[0] if window is not None else 0
    if size < 1 or by < 1:
        raise Error(f"a frame of {size} elements, and steps of {by}; expected 1 or more")
    if window is not None and window.shape[0] != size:
        raise Error(f"a window of {window.shape[0]} elements, and frames of {size}")
    count = 1 + (x.shape[1] - size) // by
    places = torch.arange(count)[:, None] * by + torch.arange(size)
    frames = x.index_select(1, places.reshape(-1)).reshape(x.shape[0], count, size, x.shape[2])
    frames = frames if window is None else frames * window[:, None]
    half = n.get("onesided", 1)
    if x.shape[2] == 1:
        transform = torch.fft.rfft if half else torch.fft.fft
        return _pairs(transform(frames[..., 0]))
    made = torch.fft.fft(_complex(frames), dim=2)
    return _pairs(made.narrow(2, 0, size // 2 + 1) if half else made)


_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@operator(*_WINDOWS)
def _window(n: Call, size: Tensor) -> Tensor:
    """Computed in float64 with the C library, and rounded once: a constant of the program."""
    count = int(size)
    sized([count], "its output")
    a, b, c = _WINDOWS[n.node.kind]
    over = count if n.get("periodic", 1) else count - 1
    angle = np.arange(count, dtype=np.float64) * (2 * math.pi / max(1, over))
    made = a - b * np.cos(angle) + c * np.cos(2 * angle)
    kind = type_of(n.get("output_datatype", 1), "its output")
    return mark_known(torch.from_numpy(made.astype(np.float32)).to(kind))


@operator("MelWeightMatrix")
def _mel(n: Call, bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Tensor:
    count, size, samples = int(bins), int(length), int(rate)
    sized([size // 2 + 1, count], "its output")
    edges = np.arange(count + 2) * (_mels(float(high)) - _mels(float(low))) / (count + 2)
    hertz = 700 * (np.power(10, (edges + _mels(float(low))) / 2595) - 1)
    places = (size + 1) * hertz // samples
    made = np.zeros((size // 2 + 1, count), np.float32)
    for i in range(count):
        first, middle, last = (int(p) for p in places[i : i + 3])
        if middle == first:
            made[middle, i] = 1
        for j in range(first, middle + 1) if middle > first else ():
            made[j, i] = (j - first) / (middle - first)
        for j in range(middle, last) if last > middle else ():
            made[j, i] = (last - j) / (last - middle)
    kind = type_of(n.get("output_datatype", 1), "its output")
    return mark_known(torch.from_numpy(made).to(kind))


def _mels(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)
