"""Bits of tensors: comparison, digests, and one copy for equal contents."""

from __future__ import annotations

import hashlib

import torch

Tensor = torch.Tensor
SMALL = 1024  # elements; smaller tensors are not searched for equal ones
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
    """A hash of a tensor's type, shape and bits."""
    held = hashlib.sha256(f"{t.dtype} {list(t.shape)} ".encode())
    if t.numel():
        held.update(_bytes(t).numpy().data)
    return held.digest()


class Contents:
    """Holds each distinct constant once: a step often has the same one, such as a mask, many
    times."""

    def __init__(self) -> None:
        self._held: dict[object, Tensor] = {}

    def of(self, t: Tensor) -> Tensor:
        """A tensor with t's content. If all elements are equal it takes the memory of one. t must
        be contiguous and never change."""
        if t.numel() < SMALL:
            return t
        words = t.view(-1).view(_WORDS.get(t.element_size(), torch.uint8))
        if bool((words == words[0]).all()):
            once = (t.dtype, t.shape, int(words[0]))
            return self._held.setdefault(once, t.view(-1)[:1].clone().expand(t.shape))
        return self._held.setdefault(digest(t), t)
