"""Weights in files: which file's tensor belongs to which of a model, and memory that stands for
tensors on the meta device."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import Error
from ._bits import same_bits
from ._result import _names
from ._shapes import blank
from ._stored import FLOATS, INDEX, SINGLE, TYPES, Bound, Stored, in_files, in_folder

Tensor = torch.Tensor
Names = Callable[[str], str]
ABSENT = (
    "it is of the meta device, and no file of {} has a tensor of that name; make it on the CPU, or "
    "give names=, which tells its name there"
)
UNNAMED = "no tensor of theirs has the name of a parameter or a buffer"
OTHER = "the model has other numbers than the file"
PART = "it is a part of another tensor's memory; clone() it before the capture"
HOOKED = "it is of the meta device, and has a hook or a gradient already"
SHOWN = 4  # names that an error lists


class Weights:
    """The files that a job was given. called: how errors name the argument."""

    def __init__(self, called: str = "job.weights") -> None:
        self._called = called
        self._files: list[tuple[dict[str, Stored], Names]] = []

    def add(self, given: Any, names: Names | None) -> None:
        listed = list(given) if isinstance(given, (list, tuple)) else [given]
        self._files.append((_read(listed, self._called), names or str))

    @contextlib.contextmanager
    def inside(self, models: dict[str, torch.nn.Module], loaded: bool = False) -> Iterator[Bound]:
        """While inside, the models' meta tensors have memory. loaded: with the files' numbers in
        it."""
        each = [(names, t) for t, names in _names(models, [])]
        bound = self._bind(each)
        swapped: list[tuple[Tensor, Tensor]] = []
        try:
            for names, t in each:
                if t.is_meta:
                    twin = _twin(names[0], t, bound.stored[names[0]], loaded)
                    _swap(t, twin)
                    swapped.append((t, twin))
            real = {n: s for n, s in bound.stored.items() if _is_float(s)}
            yield Bound(real, bound.absent & real.keys())
        finally:
            for t, twin in swapped:
                _swap(t, twin)

    def _bind(self, each: list[tuple[list[str], Tensor]]) -> Bound:
        stored, absent, lacking = {}, set(), []
        for names, t in each:
            found = self._of(names)
            if found is not None:
                _check(names[0], t, found)
            if found is not None and (t.is_meta or t.is_floating_point()):
                stored[names[0]] = found
            if t.is_meta:
                absent.add(names[0])
                lacking += [names[0]] if found is None else []
        if lacking:
            more = f", and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            raise Error(f"{', '.join(lacking[:SHOWN])}{more}: {ABSENT.format(self._called)}")
        if self._files and not stored:
            some = each[0][0][0] if each else "none"
            raise Error(f"{self._called}: {UNNAMED}, such as {some}")
        return Bound(stored, frozenset(absent))

    def _of(self, names: list[str]) -> Stored | None:
        """The file's tensor for one of the model, which has several names if modules share it."""
        found = [files[own(n)] for n in names for files, own in self._files if own(n) in files]
        for other in found[1:]:
            if other[2:] != found[0][2:] or not _same(found[0], other):
                raise Error(
                    f"{names[0]} is one tensor in the model, and {found[0].name} and {other.name}, "
                    f"which differ, in {found[0].file}"
                )
        return found[0] if found else None


def _read(listed: list[Any], called: str) -> dict[str, Stored]:
    paths = [Path(os.fspath(x)) for x in listed]
    if not paths:
        raise Error(f"{called}: no file is given")
    if len(paths) > 1 or not paths[0].is_dir():
        return in_files(paths)
    folder = paths[0]
    if (folder / INDEX).exists() or (folder / SINGLE).exists():
        return in_folder(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise Error(f"{folder} has no file of safetensors")
    return in_files(files)


def _is_float(it: Stored) -> bool:
    return it.kind in FLOATS


def _same(a: Stored, b: Stored) -> bool:
    return a[0::4] == b[0::4] or all(x == y for x, y in zip(a.pieces(), b.pieces()))


# ---- what a tensor of the model and one of a file must have in common ----


def _check(name: str, t: Tensor, it: Stored) -> None:
    if tuple(t.shape) != it.shape:
        raise Error(f"{name} is {list(t.shape)} in the model, and {it.name} {it.told}")
    if t.is_floating_point() != _is_float(it):
        raise Error(
            f"{name} is {str(t.dtype).removeprefix('torch.')} in the model, and {it.name} "
            f"{it.told}; expected F32, BF16 or F16 of floats, and integers of integers"
        )
    if t.is_floating_point() and t.dtype is not torch.float32:
        kind = str(t.dtype).removeprefix("torch.")
        raise Error(f"{name} is {kind}; a step computes in float32, so make the model of it")
    size = np.dtype(TYPES[it.kind]).itemsize
    if it.offset % size:
        raise Error(f"{it.file}: {it.name} begins at {it.offset}, which is no multiple of {size}")
    if t.is_floating_point() and not t.is_meta:
        _compare(name, t, it)


def _compare(name: str, t: Tensor, it: Stored) -> None:
    """Raises Error unless the model's tensor in memory equals the file's."""
    flat, at = t.detach().reshape(-1), 0
    for piece in it.numbers():
        if not same_bits(flat[at : at + len(piece)], piece):
            raise Error(f"{name}: {OTHER}, {it.name} in {it.file}")
        at += len(piece)


# ---- tensors in the place of those of the meta device ----


def _twin(name: str, t: Tensor, it: Stored, loaded: bool) -> Tensor:
    """Memory for a meta tensor: integers, which Python may read, are loaded; floats may only be
    reserved."""
    if t.untyped_storage().nbytes() != t.numel() * t.element_size():
        raise Error(f"{name}: {PART}")
    if t.grad is not None or t._backward_hooks or t._post_accumulate_grad_hooks:
        raise Error(f"{name}: {HOOKED}")
    own = blank(t.shape, t.stride(), t.dtype)
    if loaded or not _is_float(it):
        _fill(own, it)
    if isinstance(t, torch.nn.Parameter):
        own = torch.nn.Parameter(own, t.requires_grad)
    own.__dict__.update(t.__dict__)
    return own


def _fill(t: Tensor, it: Stored) -> None:
    dense = t if t.is_contiguous() else torch.empty(t.shape, dtype=t.dtype)
    flat, at = dense.view(-1), 0
    for piece in it.numbers():
        flat[at : at + len(piece)] = piece
        at += len(piece)
    if dense is not t:
        t.copy_(dense)


def _swap(t: Tensor, twin: Tensor) -> None:
    """Swaps two tensors for all their holders. torch.utils.swap_tensors does this too, but refuses
    if an autograd graph is left, as after a failed step."""
    torch._C._swap_tensor_impl(t, twin)
