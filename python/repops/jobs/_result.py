"""Results of a job (a run's state, or a model that `verde delegate`, `fetch` or `export` wrote),
and how to load them into a model and its optimizer."""

from __future__ import annotations

import base64
import binascii
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import verde
from verde._files import members, parse, read, version
from verde._run import program_of

from .. import commitment
from .._library import Error
from ._stored import TYPES, Stored, in_folder, whole

Tensor = torch.Tensor
PROOF_BYTES_MAX = 112 << 20
PROOF = ("verde_proof", "program", "step", "tensors", "path", "run_root", "logs")
STATES = ("F32", "I32", "BF16")  # types of a state's tensors in safetensors
ROUNDED = (
    "{folder}: its tensors were rounded to BF16, so that nobody can compare them with proof.json, "
    "and training that goes on from them is another one; export F32 for that"
)
CORRECTION = "correction."  # prefix of a state's bias corrections for Adam
GRADIENT = "grad"


class Result(Mapping[str, np.ndarray]):
    """Tensors by name: those of the state dict, and optimizer state as PARAMETER.exp_avg and so on.

    step: the number of steps done."""

    def __init__(self, folder: Path, step: int, arrays: Mapping[str, np.ndarray]) -> None:
        self.folder, self.step, self._arrays = folder, step, arrays

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"<repops.jobs.Result {self.folder}: {len(self)} tensors after step {self.step}>"

    def torch(self) -> dict[str, Tensor]:
        """Copies of all tensors, as PyTorch's."""
        return {name: _tensor(a) for name, a in self.items()}

    def into(self, model: Any, optimizer: Any = None, scheduler: Any = None) -> None:
        """Loads the result into the model, optimizer and scheduler that capture got, or equal new
        ones. Step counters and schedulers are advanced to the result's step. A result does not have
        what no step changes, such as frozen weights; these stay as they are.

        Raises Error, and changes nothing, if the result has a tensor that the model or optimizer
        lacks."""
        from ._job import _listed
        from ._kept import named_models

        names = _names(named_models(model), _listed(optimizer))
        where = {name: t for t, own in names for name in own}
        puts, left = [], dict(self._arrays)
        for name, t in where.items():
            if name in left:
                puts.append((t, _fitting(name, left.pop(name), t)))
        states: list[tuple[Any, Tensor, str, Tensor]] = []
        for o in _listed(optimizer):
            for p, key, a in _moments(o, names, left):
                states.append((o, p, key, a))
        left = {n: a for n, a in left.items() if optimizer is not None or not _is_kept(n, where)}
        unknown = [n for n in left if not n.startswith(CORRECTION)]
        if unknown:
            raise Error(f"{self.folder} has {unknown[0]}, of which this model has nothing")
        rate = self._rate()
        with torch.no_grad():
            for t, a in puts:
                t.copy_(a)
        self._optimizers(states, rate)
        self._schedulers(_listed(scheduler))

    def _optimizers(self, states: list[tuple[Any, Tensor, str, Tensor]], rate: int) -> None:
        counts: dict[int, tuple[dict[str, Any], Tensor]] = {}
        for o, p, key, a in states:
            if key == GRADIENT:
                p.grad = a.to(p.device)
                continue
            own = o.state[p]
            own[key] = a.to(p.device)
            if key != "momentum_buffer":  # SGD keeps nothing else, and counts no steps
                count = float(own.get("step", 0)) + self.step * rate
                counts.setdefault(id(own), (own, torch.tensor(count, device=_counter(o, p))))
        for own, t in counts.values():
            own["step"] = t

    def _rate(self) -> int:
        """The optimizer's steps in one step of the job: 1, or RATE in the correction's name, as in
        `correction.0.9.START.RATE`."""
        rates = set()
        for name in self._arrays:
            if name.startswith(CORRECTION):
                parts = name.removeprefix(CORRECTION).rsplit(".", 2)
                rates.add(int(parts[2]) if len(parts) == 3 else 1)
        if len(rates) > 1:
            raise Error(f"{self.folder}: its optimizers take {sorted(rates)} steps in one")
        return rates.pop() if rates else 1

    def _schedulers(self, schedulers: list[Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch expects an optimizer step first
            for s in schedulers:
                for _ in range(self.step):
                    s.step()


def _counter(optimizer: Any, p: Tensor) -> Any:
    """The device of the optimizer's step counter."""
    group = next(g for g in optimizer.param_groups if any(p is q for q in g["params"]))
    return p.device if group.get("fused") or group.get("capturable") else "cpu"


def _tensor(a: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(a))


def _names(models: dict[str, Any], optimizers: list[Any]) -> list[tuple[Tensor, list[str]]]:
    """Each tensor with all of its names."""
    found: dict[int, tuple[Tensor, list[str]]] = {}
    for prefix, model in models.items():
        for kind in (model.named_parameters, model.named_buffers):
            for name, t in kind(remove_duplicate=False):
                found.setdefault(id(t), (t, []))[1].append(prefix + name)
    for o, optimizer in enumerate(optimizers):
        for g, group in enumerate(optimizer.param_groups):
            for i, p in enumerate(group["params"]):
                if id(p) not in found:
                    found[id(p)] = (p, [f"optimizer{o}.{g}.{i}"])
    return list(found.values())


def _fitting(name: str, a: np.ndarray, t: Tensor) -> Tensor:
    """An array in the model's shape and type: programs have no dimension 0, and 32-bit integers."""
    if t.is_meta:
        raise Error(f"{name} is of the meta device in the model; give it memory first (to_empty)")
    if a.size != t.numel() or (a.dtype.kind == "f") != (t.dtype is torch.float32):
        raise Error(
            f"{name} is {a.dtype} {list(a.shape)} in the result, and "
            f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)} in the model"
        )
    return _tensor(a).reshape(t.shape)


def _moments(
    optimizer: Any, names: list[tuple[Tensor, list[str]]], left: dict[str, np.ndarray]
) -> Iterator[tuple[Tensor, str, Tensor]]:
    """Yields the result's state for this optimizer's parameters, and removes it from `left`."""
    known, keys = {id(t): own for t, own in names}, _keys(left)
    for group in optimizer.param_groups:
        for p in group["params"]:
            for name, key in [(n, k) for n in known[id(p)] for k in keys.pop(n, ())]:
                a = _tensor(left.pop(f"{name}.{key}"))
                yield p, key, a.reshape(p.shape) if a.numel() == p.numel() else a


def _keys(names: Iterable[str]) -> dict[str, list[str]]:
    """The last parts of names, by what stands before them."""
    found: dict[str, list[str]] = {}
    for owner, _, key in (name.rpartition(".") for name in names):
        found.setdefault(owner, []).append(key)
    return found


def _is_kept(name: str, where: Mapping[str, Tensor]) -> bool:
    """Is it optimizer state of one of these parameters?"""
    return name.rpartition(".")[0] in where


# ---- folders ----


def load(folder: str | os.PathLike[str], step: int | None = None, check: bool = True) -> Result:
    """Loads a job's result. folder: written by `verde delegate`, `verde fetch` or `verde export`,
    or a run. step: a run's checkpoint; None: the last one.

    check: hash all bytes and compare them with the commitment in the run or in proof.json. Whether
    a verdict accepts that is checked by `verde check FOLDER --verdict FILE`."""
    folder = Path(folder)
    if (folder / "prompts").is_dir():
        raise Error(f"{folder} has runs of many programs; repops.jobs.load_answers reads answers")
    if (folder / "run.json").exists():
        state = verde.load(folder, step, check)
        return Result(folder, state.step, state)
    if step is not None:
        raise Error(f"{folder} is no run, so that it has no state of another step")
    return _exported(folder, check)


def _exported(folder: Path, check: bool) -> Result:
    file = folder / "proof.json"
    if not file.exists():
        raise Error(f"{folder} has no proof.json: it is neither a run nor what verde has written")
    proof = parse(read(file, PROOF_BYTES_MAX), str(file))
    version(proof.get("verde_proof"), "a proof", str(file))
    members(proof, PROOF, str(file))
    try:
        program = program_of(base64.b64decode(proof["program"], validate=True), str(file))
        tensors, step = list(proof["tensors"]), whole(proof["step"])
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise Error(f"{file} is no proof.json") from None
    if not 0 <= step <= program.steps:
        raise Error(f"{file} is of step {step}; its program has {program.steps} steps")
    arrays = _arrays(folder)
    rounded = {name for name, a in arrays.items() if a.dtype == np.uint16}
    if rounded:
        warnings.warn(ROUNDED.format(folder=folder), stacklevel=3)  # the line that calls load
    if len(tensors) != len(program.leaves):
        raise Error(f"{file} has {len(tensors)} hashes of {len(program.leaves)} tensors")
    found = {}
    for leaf, wanted in zip(program.leaves, tensors):
        if leaf.name not in arrays:
            raise Error(f"{folder} lacks {leaf.name}: it is of no job that was captured")
        own = _widened(arrays[leaf.name]) if leaf.name in rounded else arrays[leaf.name]
        found[leaf.name] = own.reshape(leaf.shape)
        if check and leaf.name not in rounded and commitment(found[leaf.name]) != wanted:
            raise Error(f"{folder}: {leaf.name} is not what proof.json commits to")
    return Result(folder, step, found)


def _widened(bf16: np.ndarray) -> np.ndarray:
    """BF16 is the upper half of float32: gives the same numbers."""
    return (bf16.astype("<u4") << 16).view("<f4")


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    """Tensors of safetensors files, mapped from them."""
    maps: dict[Path, np.ndarray] = {}
    return {name: _array(it, maps) for name, it in in_folder(folder).items()}


def _array(it: Stored, maps: dict[Path, np.ndarray]) -> np.ndarray:
    """maps: files that are mapped already, by path."""
    if it.kind not in STATES:
        raise Error(f"{it.file}: {it.name} is neither F32, BF16 nor I32, which a job's state is")
    if it.file not in maps:
        maps[it.file] = np.memmap(it.file, "u1", "r")
    data = maps[it.file][it.offset : it.offset + it.nbytes]
    return data.view(TYPES[it.kind]).reshape(it.shape).view(np.ndarray)
