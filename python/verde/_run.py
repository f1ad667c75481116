"""Runs: their programs, checkpoints and losses (PROTOCOL.md sections 1 and 2)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from repops import Error, _commit, bfloat16, commitment, root
from repops._library import MAX_DIMS

from ._files import members, parse, read, version

PROGRAM_MAX = 64 << 20
LOG_MAX = 1 << 30
MAGIC = "verde program"
# The members of run.json, and of each of its states.
LOG = (
    *("verde_run", "program", "losses", "loss_first", "loss_last", "fault", "states", "root"),
    *("keep", "kept_every", "rounding", "party", "machines", "guard"),
)
STATE = ("step", "state", "logs", "machine", "microseconds")
# Type names by their codes, and their little-endian formats.
TYPES = {1: "f32", 2: "i32", 3: "u8", 4: "u16", 5: "bf16", 6: "f16", 7: "i8"}
_NUMPY: dict[int, Any] = {
    1: "<f4",
    2: "<i4",
    3: "u1",
    4: "<u2",
    5: bfloat16.newbyteorder("<"),
    6: "<f2",
    7: "i1",
}


class Leaf(NamedTuple):
    """A tensor of the state, or of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Program(NamedTuple):
    """The head of a program: seed, steps, data, and the tensors of its state."""

    hash: str
    seed: int
    steps: int
    interval: int
    data: list[tuple[str, str]]  # name and commitment of each data tensor; names may repeat
    leaves: list[Leaf]


class _Cursor:
    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._at, self._what = data, 0, what

    def take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) < size:
            raise Error(f"{self._what} is no program: it ends in its head")
        self._at += size
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def string(self) -> str:
        return self.take(self.number(2)).decode("latin-1")

    def leaf(self) -> Leaf:
        name, dtype, dims = self.string(), self.number(1), self.number(1)
        if dtype not in TYPES or not 1 <= dims <= MAX_DIMS:
            raise Error(f"{self._what} is no program: {name!r} has no known type or shape")
        return Leaf(name, TYPES[dtype], tuple(self.number(8) for _ in range(dims)))


def program_of(data: bytes, what: str) -> Program:
    """Parses the head of a program; `what` names the source in errors."""
    cursor = _Cursor(data, what)
    if cursor.string() != MAGIC:
        raise Error(f"{what} is no program")
    version(cursor.number(2), "a program", what)
    version(cursor.number(2), "the specification", what)
    seed, steps, interval = cursor.number(8), cursor.number(8), cursor.number(8)
    inputs = [(cursor.leaf().name, cursor.take(32).hex()) for _ in range(cursor.number(4))]
    leaves = [cursor.leaf() for _ in range(cursor.number(4))]
    digest = hashlib.sha256(b"verde/program/1\0" + data).hexdigest()
    return Program(digest, seed, steps, interval, inputs, leaves)


class State(Mapping[str, np.ndarray]):
    """Tensors by name, as the run wrote them. The arrays are mapped from the file on use.

    step: the number of steps done. commitment: what the run commits to. bf16 is `repops.bfloat16`:
    `repops.cast(x, dtype=1)` gives its numbers, `x.view("u2")` its bits."""

    def __init__(self, path: Path, program: Program, step: int, own: str) -> None:
        self.path, self.program, self.step, self.commitment = path, program, step, own
        self._arrays: dict[str, np.ndarray] = {}
        codes = {name: code for code, name in TYPES.items()}
        at = 0
        try:
            bytes_ = np.memmap(path, "u1", "r")
        except (OSError, ValueError) as error:
            raise Error(f"cannot read {path}: {error}") from None
        for leaf in program.leaves:
            dtype = np.dtype(_NUMPY[codes[leaf.dtype]])
            size = dtype.itemsize * int(np.prod(leaf.shape, dtype=object))
            if at + size > bytes_.size:
                raise Error(f"{path} is shorter than the program's state")
            self._arrays[leaf.name] = bytes_[at : at + size].view(dtype).reshape(leaf.shape)
            at += size
        if at != bytes_.size:
            raise Error(f"{path} has {bytes_.size} bytes; the program's state has {at}")

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name].view(np.ndarray)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def commitments(self) -> dict[str, str]:
        """The commitment of each tensor, by name; comparable with repops.torch.commitments."""
        return {name: commitment(self[name]) for name in self}

    def check(self) -> None:
        """Raises Error unless the bytes have the run's commitment."""
        tensors = root(self.commitments().values())
        if _commit.state(self.program.hash, self.step, tensors) != self.commitment:
            raise Error(f"{self.path} is not the state that the run commits to at step {self.step}")

    def torch(self) -> dict[str, Any]:
        """Copies of the tensors as PyTorch's."""
        import torch

        half = {leaf.name for leaf in self.program.leaves if leaf.dtype == "bf16"}
        bits = {
            name: np.array(self[name].view("<i2") if name in half else self[name]) for name in self
        }
        tensors = {name: torch.from_numpy(array) for name, array in bits.items()}
        return {n: t.view(torch.bfloat16) if n in half else t for n, t in tensors.items()}

    def __repr__(self) -> str:
        return f"<verde.State of {self.path.parent} at step {self.step}: {len(self)} tensors>"


class Run:
    """A folder that `verde run` wrote.

    program: the program's head. states: commitments by step. root: the run root; None while
    running."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        file = self.folder / "program"
        self.program = program_of(read(file, PROGRAM_MAX), str(file))
        file = self.folder / "run.json"
        log = parse(read(file, LOG_MAX), str(file))
        version(log.get("verde_run"), "the log of a run", str(file))
        members(log, LOG, str(file))
        try:
            for i, state in enumerate(log["states"]):
                members(state, STATE, str(file), f"states[{i}]")
            self.states = {int(s["step"]): str(s["state"]) for s in log["states"]}
            program, self.root = log["program"], log.get("root")
        except (KeyError, TypeError, ValueError):
            raise Error(f"{file} is no run.json") from None
        if program != self.program.hash:
            raise Error(f"{file} is of another program than {self.folder / 'program'}")
        self._read_later()

    def _read_later(self) -> None:
        """Reads the checkpoints of a running job, which run.json lacks: one in a line; a torn line
        is left out."""
        file = self.folder / "checkpoints"
        if not file.exists():
            return
        for line in read(file, LOG_MAX).splitlines():
            said, _, named = line.rpartition(b" ")
            sealed = b"verde/checkpoint/1\0" + bytes.fromhex(self.program.hash) + said
            if hashlib.sha256(sealed).hexdigest().encode() != named:
                return
            index, step, state = said.split(b" ")[:3]
            if int(index) == len(self.states):
                self.states[int(step)], self.root = state.decode(), None

    def state(self, step: int | None = None, check: bool = True) -> State:
        """The state at a checkpoint; None: the last one. check: compare it with its commitment."""
        kept = [s for s in self.states if self._path(s).exists()]
        if not kept:
            raise Error(f"{self.folder} has no state yet")
        step = kept[-1] if step is None else step
        if step not in kept:
            raise Error(f"{self.folder} has no state of step {step}; it has {_listed(kept)}")
        found = State(self._path(step), self.program, step, self.states[step])
        if check:
            found.check()
        return found

    def _path(self, step: int) -> Path:
        return self.folder / f"state-{self.states[step]}"

    def losses(self) -> list[dict[str, Any]]:
        """The lines of losses.jsonl: step, loss, lr and so on for each step."""
        file = self.folder / "losses.jsonl"
        lines = [parse(line, str(file)) for line in read(file, LOG_MAX).splitlines()]
        return [{k: float(v) if isinstance(v, str) else v for k, v in x.items()} for x in lines]

    def __repr__(self) -> str:
        done = f"root {self.root}" if self.root else "not finished"
        return f"<verde.Run {self.folder}: {len(self.states)} checkpoints, {done}>"


def _listed(steps: list[int]) -> str:
    shown = ", ".join(map(str, steps[:8]))
    return shown + (f" and {len(steps) - 8} more" if len(steps) > 8 else "")


def load(run: str | os.PathLike[str], step: int | None = None, check: bool = True) -> State:
    """The state of a run at a checkpoint, by default the last one.

    check: hash all its bytes and compare them with the run's commitment. `verde check` tells
    whether a verdict accepts that commitment."""
    return Run(run).state(step, check)
