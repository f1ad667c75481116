"""Operators that are a single one of the library: rows RO_TORCH of operators.def."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _texts
from .._numbers import single, whole
from .._operators import bits
from .._table import TABLE
from ._call import elementwise, elementwise_
from ._nans import one_nan
from ._registry import FLOAT64, handles

Tensor = torch.Tensor


def _number(value: Any, kind: str, what: str) -> int:
    """An attribute encoded as the library's calls have it."""
    return bits(single(value, what)) if kind == "f" else whole(value, what)


def _handler(name: str, operator: str, names: list[str], defaults: tuple) -> Callable[..., Tensor]:
    inputs = [names.index(n) for n in _texts.INPUTS[operator].split()]
    attributes = [
        (names.index(n), kind, f"{operator}: {n}") for n, kind in TABLE[operator].attributes
    ]
    missing = (*[None] * (len(names) - len(defaults)), *defaults)
    in_place = name.split(".")[0].endswith("_")
    compute: Callable[..., Tensor] = elementwise_ if in_place else elementwise

    def numbers(args: tuple) -> tuple[int, ...]:
        return tuple([_number(args[i], *how) for i, *how in attributes])

    def of_other_types(args: tuple, tensors: list[Tensor]) -> Tensor:
        if len(tensors) == 1 and not in_place and not tensors[0].is_floating_point():
            tensors = [tensors[0].float()]  # PyTorch does so too, or it has refused the call
        elif name in FLOAT64:
            return one_nan(FLOAT64[name](*args))  # torch has computed some
        return compute(operator, numbers(args), *tensors)

    def handler(*args: Any) -> Tensor:
        if len(args) < len(missing):
            args += missing[len(args) :]
        tensors = [args[i] for i in inputs]
        for t in tensors:
            if t.dtype is not torch.float32:
                return of_other_types(args, tensors)
        return compute(operator, numbers(args) if attributes else (), *tensors)

    return handler


def _register() -> None:
    for name, (operator, names, defaults) in _texts.TORCH.items():
        handles(name)(_handler(name, operator, names.split(), defaults))


_register()
