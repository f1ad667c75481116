"""Operators whose output sizes depend on masks or lengths, in operators of fixed sizes. The masks
or lengths must be constants in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
MASKS = (torch.bool, torch.uint8)
Fixed = Callable[[Tensor], Tensor]  # makes a constant with a tensor's content


def _indices(indices: Any, fixed: Fixed) -> list[Tensor | None]:
    """Replaces masks by their indices, as torch does: one tensor for each dimension of a mask."""
    found: list[Tensor | None] = []
    for i in indices:
        masks = i is not None and i.dtype in MASKS
        found += fixed(i).nonzero().unbind(1) if masks else [i]
    return found


def _index(fixed: Fixed, x: Tensor, indices: Any) -> Tensor:
    y: Tensor = torch.ops.aten.index.Tensor(x, _indices(indices, fixed))
    return y


def _masked_select(fixed: Fixed, x: Tensor, mask: Tensor) -> Tensor:
    x, own = torch.broadcast_tensors(x, fixed(mask))  # type: ignore[no-untyped-call]
    return _index(fixed, x, own.nonzero().unbind(1))


def _packed(fixed: Fixed, x: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The rows of each time step without padding, and their numbers."""
    sizes = fixed(lengths).tolist()
    x = x.transpose(0, 1) if batch_first else x
    rows = [sum(n > time for n in sizes) for time in range(sizes[0])]
    return torch.cat([x[time, :n] for time, n in enumerate(rows)]), torch.tensor(rows)


def _mask(_: Any, mask: Tensor, *__: Any) -> list[Tensor]:
    return [mask]


def _of_index(_: Any, indices: Any) -> list[Tensor]:
    return [i for i in indices if i is not None and i.dtype in MASKS]


# For each operator: a function that gives its masks or lengths, and one that computes it.
MASKED: dict[str, tuple[Callable[..., list[Tensor]], Callable[..., Any]]] = {
    "index": (_of_index, _index),
    "masked_select": (_mask, _masked_select),
    "_pack_padded_sequence": (_mask, _packed),
}
