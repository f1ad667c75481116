"""Complex numbers in memory: pairs of float32. Operators that move them move both parts alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._record import Place

COMPLEX = torch.complex64
# Operators that move numbers; their rules are applied to both parts.
MOVES = set(
    """
    clone contiguous _to_copy copy copy_ cat stack flip roll repeat constant_pad_nd
    slice_backward select_backward diagonal_backward tril triu zero zero_ zeros_like new_zeros
    neg where masked_fill masked_fill_ fill fill_ full_like new_full
    index_select index _unsafe_index gather embedding _conj_physical complex
    """.split()
)
# Which of their arguments are values: a real value has the imaginary part 0.
_VALUES: dict[str, tuple[int, ...]] = {"where": (1, 2)}
_VALUES |= {name: (0, 1) for name in ("copy", "copy_")}
_VALUES |= {name: (1,) for name in ("fill", "fill_", "full_like")}
_VALUES |= {name: (0, 2) for name in ("masked_fill", "masked_fill_", "constant_pad_nd", "new_full")}


def is_complex(p: Place) -> bool:
    return p.dtype is COMPLEX


def pairs(p: Place) -> Place:
    """A place of complex numbers as one of float32, [..., 2]."""
    size, stride = (*p.size, 2), (*[2 * s for s in p.stride], 1)
    return Place(p.storage, 2 * p.offset, size, stride, torch.float32)


def _part(p: Place, i: int) -> Place:
    """The place of the real parts (i = 0) or imaginary parts (i = 1)."""
    q = Place(p.storage, 2 * p.offset + i, p.size, [2 * s for s in p.stride], torch.float32)
    q.negated = p.negated and i == 1
    if p.const is not None:
        q.const = torch.view_as_real(p.const)[..., i].contiguous()
    return q


def _nothing(p: Place) -> Place:
    q = Place(p.storage, p.offset, p.size, p.stride, torch.float32)
    q.const = torch.zeros(()).expand(p.size)
    return q


def part(value: Any, i: int, number: bool) -> Any:
    """The argument for the real parts (i = 0) or imaginary parts (i = 1). number: it is a value,
    not a dimension or index."""
    if isinstance(value, Place):
        if is_complex(value):
            return _part(value, i)
        real = number or value.dtype.is_floating_point
        return _nothing(value) if i and real else value
    if isinstance(value, complex):
        return value.imag if i else value.real
    if isinstance(value, (list, tuple)):
        return [part(v, i, number and isinstance(v, Place)) for v in value]
    plain = isinstance(value, (int, float)) and number
    return type(value)(0) if i and plain else value


def arguments(name: str, args: Sequence[Any], i: int) -> list[Any]:
    """The arguments of an operator that moves complex numbers, for part i."""
    if name == "complex":
        return [args[i]]
    values = _VALUES.get(name, (0,))
    return [part(a, i, at in values) for at, a in enumerate(args)]
