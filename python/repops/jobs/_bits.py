"""Tensors as bits: compared, and held where many have the same."""

from __future__ import annotations

import hashlib

import torch

Tensor = torch.Tensor
SMALL = 1024  # elements; below, it is not worth looking for equal ones
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bytes(t: Tensor) -> Tensor:
    return t.detach().contiguous().view(-1).view(torch.uint8)


def same_bits(a: Tensor, b: Tensor) -> bool:
    if a is b:
        return True
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(torch.equal(_bytes(a), _bytes(b)))


def digest(t: Tensor) -> bytes:
    """What stands for a tensor's type, shape and bits, in less memory."""
    held = hashlib.sha256(f"{t.dtype} {list(t.shape)} ".encode())
    if t.numel():
        held.update(_bytes(t).numpy().data)
    return held.digest()


class Contents:
    """What constants hold, each once: a step often has the same many times, such as a mask."""

    def __init__(self) -> None:
        self._held: dict[object, Tensor] = {}

    def of(self, t: Tensor) -> Tensor:
        """The same content; of one number everywhere, it takes no more memory than that. t: dense,
        and nobody changes it."""
        if t.numel() < SMALL:
            return t
        words = t.view(-1).view(_WORDS.get(t.element_size(), torch.uint8))
        if bool((words == words[0]).all()):
            once = (t.dtype, t.shape, int(words[0]))
            return self._held.setdefault(once, t.view(-1)[:1].clone().expand(t.shape))
        return self._held.setdefault(digest(t), t)
