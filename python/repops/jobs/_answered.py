"""Captures a function of a batch as a program whose final state is the function's results."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._library import MAX_DIMS, Error
from . import _data, _hidden, _loops, _run
from ._assemble import declare, declare_weights
from ._capture import Recorded, Steps, give_back_memory
from ._captured import Captured, told_unread
from ._evaluate import CHANGES, in_eval_mode
from ._folder import write
from ._forms import form
from ._graph import I32, NAME_MAX, Data, Program, Value
from ._kept import Kept, Setting
from ._lower import Lower
from ._memory import Missing, code_of
from ._narrow import narrow
from ._pack import packed
from ._reads import idle
from ._refusal import CaptureError
from ._stored import Bound
from ._unvalued import check_memory

if TYPE_CHECKING:
    from ._answers import Answers

Tensor = torch.Tensor
PREFIX = "answer."  # of the state's leaves that are answers (PROTOCOL.md 8.6)
ONLY = "answer"  # the answer's name if the function returns a single tensor
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")  # names of answers are file names
FOLDER = "answers"


class Answered(Captured):
    """One capture of a function of a batch, for `Answers`."""

    def __init__(
        self,
        job: Answers,
        fn: Callable[..., Any],
        models: dict[str, torch.nn.Module],
        sources: list[_data.Source],
        by_name: bool,
        bound: Bound,
    ) -> None:
        setting = Setting(models, [], [], sources, {}, bound)
        kept = Kept(setting)
        self.said: list[str] = []  # names of answers, in the order of the results

        def step() -> Any:
            tensors = {s.name: s.tensor for s in sources}
            with torch.no_grad():
                returned = fn(**tensors) if by_name else fn(*tensors.values())
            named = dict(flat(returned))
            _judged(named, job.batch)
            self.said = list(named)
            return tuple(named.values())

        super().__init__(job, Steps(step, setting, kept, job.seed, {}), kept)

    def run(self) -> None:
        count = self.job.steps
        with in_eval_mode(self.steps.setting):
            self._first()  # imports at the first call are not part of a step
            self._fresh()
            first = self._record(0, [])
            said = self.said
            others = [
                (n, self._record(n, [])) for n in sorted({1, count - 1} & set(range(1, count)))
            ]
            if self.said != said:
                raise Error(f"fn returns {said} of one batch, and {self.said} of another")
            self._compare_recordings(first, others, [], count)
        self._strangers(first, [r for _, r in others])
        for name in self._written(first, []):
            self._refuse(name, CHANGES)
        self._lower(first)

    def _first(self) -> None:
        if not self.steps.setting.bound.absent:
            self.steps.run(0)
            return
        with told_unread():  # weights that are not in memory have shapes only
            self.steps.record(0, [])

    def _fresh(self) -> dict[str, bytes]:
        """Runs the first step and notes which functions it calls. There is no state to return."""
        with _hidden.Watch() as watch:
            self._first()
        self.kept.measure()
        self.called = watch.functions()
        give_back_memory()
        return {}

    def _lower(self, recorded: Recorded) -> None:
        program = Program(self.job.seed, self.job.steps, 1)
        low = Lower(recorded.recorder, program)
        declare(low, self.steps)
        declare_weights(low, recorded, self.steps)
        low.run(idle(recorded))
        self.problems += low.problems
        if self.problems:
            raise CaptureError(self.problems)
        self._say(low, recorded)
        form(program.step)
        narrow(program.step)
        program.step.prune()
        program.drop_unread()
        self._name_weights(program)
        self.program = of_an_item(program)
        _loops.fold(self.program.step)
        pack, self.job.hash = packed(self.program, self._own(self.job.steps))
        self.pack = hashlib.sha256(pack).digest()
        write(self.job.folder, self.program, pack=pack)

    def _say(self, low: Lower, recorded: Recorded) -> None:
        """Makes the answers the program's state, which starts as zeros."""
        graph, init = low.graph, low.program.init
        graph.scope, graph.place = "", None
        for name, place in zip(self.said, recorded.returned, strict=True):
            dims = tuple(place.size)
            try:
                dtype = code_of(place.dtype)
                v = low.reshape(low.typed(place, dtype), dims)
            except Missing as why:
                raise Error(f"{name}: {why}") from None
            leaf = low.program.leaf(PREFIX + name, dtype, dims)
            zeros = init.emit("fill", shape=dims, value=0.0, called=f"zeros.{name}")
            if dtype == I32:
                zeros = init.emit("cast", zeros, dtype_=I32, called=f"zeros.{name}")
            init.output.append(zeros)
            if v.kind != "node":
                v = graph.emit("reshape", v, shape=leaf.dims, dtype=dtype, called="kept")
            graph.output.append(v)

    def _name_weights(self, program: Program) -> None:
        """Gives data that are weights their names in the state dict, for people who read them."""
        tensors, lying = self.steps.setting.tensors(), self.steps.setting.bound.stored
        held = {n: t for n, t in tensors.items() if n not in lying}  # the others have their names
        floats = {n: t for n, t in held.items() if t.dtype is torch.float32}
        arrays = {n: t.contiguous().numpy() for n, t in floats.items()}
        for i, d in enumerate(program.data):
            if d.name == "constant":
                same = [n for n, a in arrays.items() if _same_bytes(a, d.array)]
                program.data[i] = d._replace(name=(same or [d.name])[0][-NAME_MAX:])

    def _own(self, count: int) -> list[list[np.ndarray]]:
        """The data that differ from batch to batch: its number, and how many of its rows count."""
        left = self.job.rows - self.job.batch * np.arange(count)
        rows = np.minimum(left, self.job.batch).astype("<i4")
        return [[np.array([k], "<i4"), rows[k : k + 1].copy()] for k in range(count)]

    # ---- checking ----

    def compare_answers(self, count: int, verde: str | None) -> None:
        """Compares answers. Weights that lie in files are loaded into memory first."""
        setting, kept = self.steps.setting, self.kept
        check_memory(setting)
        with self.job._weights.inside(setting.models, loaded=True):
            self.kept = Kept(setting) if setting.bound.absent else kept
            now = Kept(setting)
            try:
                self._compare_with(count, verde)
            finally:
                now.set_back()
                self.kept = kept

    def _compare_with(self, count: int, verde: str | None) -> None:
        own = self.job.folder
        with tempfile.TemporaryDirectory(prefix=f"{own.name}.", dir=own.parent) as folder:
            pack, _ = packed(self.program, self._own(count))
            write(Path(folder) / "job", self.program, own if self._is_there() else None, pack)
            _run.run(Path(folder) / "job", Path(folder) / "run", lambda line: None, verde)
            self.kept.set_back()
            self._compare_answers(load_answers(Path(folder) / "run"), count)

    def _is_there(self) -> bool:
        """Does the job's folder still hold this capture? Another job may have been written
        there."""
        try:
            return hashlib.sha256((self.job.folder / "pack").read_bytes()).digest() == self.pack
        except OSError:
            return False

    def _compare_answers(self, there: dict[str, np.ndarray], count: int) -> None:
        for k in range(count):
            with in_eval_mode(self.steps.setting):
                returned = self.steps.run(k)
            first = k * self.job.batch
            for name, t in zip(self.said, returned, strict=True):
                own = t.numpy() if t.is_floating_point() else t.numpy().astype("<i4")
                got = there[name][first : first + self.job.batch]
                if got.tobytes() != own[: len(got)].tobytes():
                    raise Error(f"{name} of batch {k} differs between the block and verde")


def of_an_item(program: Program) -> Program:
    """The program of one batch. A data tensor "item" has the batch's number and stands for the
    step's number; "rows" has how many of its rows count, which readers of the answers need."""
    one = Program(program.seed, 1, 1)
    own = [Data(n, np.zeros(1, "<i4"), I32) for n in ("item", "rows")]
    one.data, one.leaves, one.init, one.step = (
        [*own, *program.data],
        program.leaves,
        program.init,
        program.step,
    )

    def moved(v: Value) -> Value:
        if v.kind == "step":
            return v._replace(kind="data", number=0)
        return v._replace(number=v.number + len(own)) if v.kind == "data" else v

    for graph in (one.init, one.step):
        graph.program = one
        graph.nodes = [n._replace(inputs=tuple(map(moved, n.inputs))) for n in graph.nodes]
    return one


# ---- what a function returns ----


def flat(returned: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors in a structure with their names; None is skipped."""
    if isinstance(returned, Tensor):
        yield name or ONLY, returned
    elif isinstance(returned, Mapping):
        for key, x in returned.items():
            yield from flat(x, f"{name}.{key}" if name else str(key))
    elif isinstance(returned, (tuple, list)):
        fields = getattr(returned, "_fields", range(len(returned)))
        for key, x in zip(fields, returned):
            yield from flat(x, f"{name}.{key}" if name else str(key))
    elif returned is not None:
        raise Error(
            f"fn returns a {type(returned).__name__}{f' as {name}' if name else ''}; expected "
            "tensors, or tuples, lists or dicts of them"
        )


def _judged(named: dict[str, Tensor], batch: int) -> None:
    if not named:
        raise Error("fn returns no tensor; expected one at least")
    for name, t in named.items():
        if not NAME.fullmatch(name):
            raise Error(
                f"an answer is called {name!r}; expected 1 to 100 letters, digits, `_`, `-` and "
                "`.`, which is no first one: it is the name of a file"
            )
        if t.dim() < 1 or t.size(0) != batch:
            raise Error(f"{name} is {list(t.shape)}; expected [{batch}, ...], a row of each input")
        if t.dim() > MAX_DIMS or t.numel() == 0:
            raise Error(f"{name} is {list(t.shape)}; expected 1 to {MAX_DIMS} dimensions, none 0")


def _same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype or a.nbytes != b.nbytes:
        return False
    return bool((a.reshape(-1).view("u1") == b.reshape(-1).view("u1")).all())


# ---- reading answers ----


def load_answers(folder: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The answers in a folder that `verde run`, `verde delegate` or `verde fetch` has written, by
    name, as arrays mapped from their files. The command has compared each byte with the run's
    commitment, and `verde check FOLDER --job JOB` does so again."""
    place = Path(folder) / FOLDER
    files = sorted(place.glob("*.npy"))
    if not files:
        raise Error(f"{folder} has no answers; expected {place}/NAME.npy")
    try:
        return {f.stem: np.load(f, mmap_mode="r", allow_pickle=False) for f in files}
    except (OSError, ValueError) as error:
        raise Error(f"cannot read answers in {place}: {error}") from None
