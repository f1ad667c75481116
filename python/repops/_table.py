"""The library's table of operators: names, attributes, and the signatures of their functions.

It needs no numpy, so that generate.py can write the stubs with Python alone.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from . import _texts
from ._library import MAX_OPERATORS, lib

# Attributes with defaults; every operator that has one gives it the same meaning.
DEFAULTS: dict[str, float] = {
    "batch_dims": 0,
    "trans": 0,
    "alpha": 1.0,
    "chunk": 256,
    "mask": 0,
    "block": 1024,
    "stride_h": 1,
    "stride_w": 1,
    "pad_h": 0,
    "pad_w": 0,
    "dilation_h": 1,
    "dilation_w": 1,
    "groups": 1,
    "step": 1,
    "before": 0,
    "after": 0,
    "stream": 0,
    "first": 0,
    "causal": 0,
    "window": 0,
    "d2": 0,
    "d3": 0,
    "d4": 0,
    "d5": 0,
    "d6": 0,
    "d7": 0,
    "pairs": 0,
    "inverse": 0,
    "count_pad": 1,
}


class Operator(NamedTuple):
    """The library's description of an operator."""

    number: int
    name: str
    least: int
    most: int
    attributes: tuple[tuple[str, str], ...]  # name and kind ('i' or 'f') of each
    declared: bool

    @property
    def names(self) -> list[str]:
        """The names of its attributes."""
        return [name for name, _ in self.attributes]


def _describe(number: int) -> Operator | None:
    info = lib.ro_op_describe(number)
    if not info:
        return None
    it = info.contents
    attributes = tuple(
        (it.attr[i].name.decode(), it.attr[i].kind.decode()) for i in range(it.attr_count)
    )
    return Operator(
        number, it.name.decode(), it.min_inputs, it.max_inputs, attributes, bool(it.declared_shape)
    )


TABLE = {o.name: o for o in (_describe(n) for n in range(MAX_OPERATORS)) if o}


def signature(operator: Operator) -> inspect.Signature:
    """The Python signature of an operator's function."""
    kinds, parameter = inspect.Parameter, []
    names = _texts.INPUTS.get(operator.name, "").split()
    if operator.most > 8 or operator.least != operator.most:
        parameter.append(kinds("inputs", kinds.VAR_POSITIONAL, annotation="Array"))
    else:
        names = names if len(names) == operator.least else [f"x{i}" for i in range(operator.least)]
        parameter += [kinds(n, kinds.POSITIONAL_OR_KEYWORD, annotation="Array") for n in names]
    for name, kind in operator.attributes:
        default: Any = 0 if name == "cols" else DEFAULTS.get(name, kinds.empty)
        default = None if name == "cols" else default
        type_ = "float" if kind == "f" else "int | None" if name == "cols" else "int"
        name += "_" if name in names else ""
        parameter.append(kinds(name, kinds.KEYWORD_ONLY, default=default, annotation=type_))
    if operator.declared:
        empty = None if "cols" in operator.names else kinds.empty
        parameter.append(
            kinds(
                "shape",
                kinds.KEYWORD_ONLY,
                default=empty,
                annotation="Sequence[int]" + (" | None" if empty is None else ""),
            )
        )
    parameter.append(kinds("out", kinds.KEYWORD_ONLY, default=None, annotation="Array | None"))
    parameter.append(
        kinds("context", kinds.KEYWORD_ONLY, default=None, annotation="Context | None")
    )
    return inspect.Signature(parameter, return_annotation="Array")


def document(operator: Operator) -> str:
    """The docstring of an operator's function."""
    text = _texts.TEXTS.get(operator.name, "")
    lines = [f"{text[:1].upper()}{text[1:]}." if text else f"The operator {operator.name}."]
    if operator.name in _texts.SPEC:
        lines += ["", "SPEC.md, section " + _texts.SPEC[operator.name]]
    return "\n".join(lines)
