"""Hashes of every operator of a step, and the first operator in which two such traces differ."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .._library import Error
from ._integers import tensors
from ._routes import is_view
from ._sites import Sites
from ._state import commitment_of

VERSION = 1
# The memory that these return has undefined content.
_UNDEFINED = set("empty empty_like empty_strided new_empty new_empty_strided resize_ set_".split())


class Operation(NamedTuple):
    """One operator of a trace. Each tensor is a text: type, shape and commitment."""

    name: str  # "aten.mm.default"
    place: str  # file and line of the call; of the forward call for a backward operator
    module: str  # the module's name in the model, if Trace was given one
    backward: bool
    inputs: list[str]
    outputs: list[str]

    def __str__(self) -> str:
        module = f" in {self.module}" if self.module else ""
        return f"{self.name}, {'backward of ' if self.backward else 'at '}{self.place}{module}"


def _text(t: torch.Tensor) -> str:
    digits = commitment_of("a tensor", t) if t.numel() else "-"
    return f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)} {digits}"


def _written(func: Any, args: tuple, kwargs: dict) -> list[Any]:
    found = []
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[i] if i < len(args) else kwargs.get(argument.name))
    return found


def _moves(base: str, made: list[torch.Tensor], given: list[torch.Tensor]) -> bool:
    """Is it a copy between devices? A trace on the CPU has no such operator."""
    if base not in ("_to_copy", "copy_") or not made or not given:
        return False
    return made[0].device != given[-1].device and made[0].dtype is given[-1].dtype


class Trace(TorchDispatchMode):
    """Records the hashes of what every operator reads and writes.

    >>> with Trace(model) as trace:
    ...     step()
    >>> trace.save("here.trace")

    Use it inside `reproducible`, or outside to see where PyTorch differs between machines. model
    gives the modules' names. Every tensor is hashed, so that a step takes several times as long.
    """

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self._sites = Sites(*([] if model is None else [model]))

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __enter__(self) -> Trace:
        self._sites.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._sites.__exit__(*exception)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        site = self._sites.here(str(func))
        base = func._schema.name.split("::")[-1]
        if is_view(func) or base in _UNDEFINED or func.namespace in ("prim", "profiler"):
            return func(*args, **kwargs)
        written = _written(func, args, kwargs)
        kept = {id(t) for t in tensors(written)}
        given = [_text(t) for t in tensors([args, list(kwargs.values())]) if id(t) not in kept]
        result = func(*args, **kwargs)
        made = {id(t): t for t in tensors([result, written])}
        if _moves(base, list(made.values()), list(tensors(args))):
            return result
        if given or made:
            out = [_text(t) for t in made.values()]
            at = (site.name, site.place, site.module, site.backward)
            self.operations.append(Operation(*at, given, out))
        return result

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the trace as JSON lines: first the version, then one line for each operator."""
        new = f"{os.fspath(file)}.new"
        with open(new, "w") as out:
            out.write(json.dumps({"trace": VERSION, "torch": torch.__version__}) + "\n")
            for operation in self.operations:
                out.write(json.dumps(operation._asdict()) + "\n")
        os.replace(new, file)

    @staticmethod
    def load(file: str | os.PathLike[str]) -> Trace:
        """Reads a trace that `save` wrote."""
        trace = Trace()
        with open(file) as lines:
            try:
                head = json.loads(next(lines, ""))
                version = head.get("trace") if isinstance(head, dict) else None
                if type(version) is not int:
                    raise ValueError("its first line has no version")
                if version == VERSION:
                    _known(head, ("trace", "torch"))
                    trace.operations = [_operation(json.loads(line)) for line in lines]
            except (ValueError, TypeError) as error:
                raise Error(f"{file} is no trace: {error}") from None
        if version != VERSION:
            raise Error(
                f"{file}: version {version} of a trace; this repops reads version {VERSION}"
            )
        return trace


def _known(members: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in members:
        if name not in names:
            raise ValueError(f"unknown member `{name}`")


def _operation(members: Any) -> Operation:
    if not isinstance(members, dict):
        raise ValueError("a line is no object")
    _known(members, Operation._fields)
    return Operation(**members)


class Difference(NamedTuple):
    """The first operator in which two traces differ; None for a trace that has ended."""

    number: int  # from 0 on
    a: Operation | None
    b: Operation | None

    @property
    def what(self) -> str:
        """What differs: "operators", "inputs" or "results"."""
        if self.a is None or self.b is None or self.a.name != self.b.name:
            return "operators"
        return "inputs" if self.a.inputs != self.b.inputs else "results"

    def __str__(self) -> str:
        head = f"operator {self.number}: "
        if self.a is None or self.b is None:
            which = "first" if self.a is None else "second"
            return f"{head}the {which} trace ends before {self.a or self.b}"
        if self.what == "operators":
            return f"{head}{self.a}; in the second trace {self.b}"
        if self.what == "inputs":
            return (
                f"{head}{self.a}: {_first(self.a.inputs, self.b.inputs, 'input')}; no operator "
                "before gave it, so that it is a weight or data"
            )
        of = "of equal inputs"
        if not self.a.inputs:
            of = "of no inputs: another seed, or more drawn before"
        return f"{head}{self.a}: {_first(self.a.outputs, self.b.outputs, 'output')}, {of}"


def _first(a: list[str], b: list[str], what: str) -> str:
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            x, y = (t.rsplit(" ", 1)[0] for t in (x, y))
            return f"{what} {i} differs, {x}" + (f" and {y}" if x != y else "")
    return f"{len(a)} and {len(b)} {what}s"


def diff(a: Any, b: Any) -> Difference | None:
    """The first operator in which two traces differ, or None. Each argument is a Trace or its file.

    Places and modules are not compared, so that sources may be in other folders."""
    one, other = (t if isinstance(t, Trace) else Trace.load(t) for t in (a, b))
    for i, (x, y) in enumerate(zip(one, other)):
        if (x.name, x.inputs, x.outputs) != (y.name, y.inputs, y.outputs):
            return Difference(i, x, y)
    if len(one) == len(other):
        return None
    i = min(len(one), len(other))
    return Difference(i, *[t.operations[i] if i < len(t) else None for t in (one, other)])
