"""Answers: what a model says of many inputs, a batch at a time, each a program of its own."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import MAX_DIMS, Error
from ..torch._mode import LeftoverError
from . import _data, _loops, _run
from ._assemble import declare
from ._capture import NOWHERE, Recorded, Steps
from ._captured import Captured
from ._evaluate import CHANGES, in_eval_mode
from ._folder import replaceable, write
from ._forms import form
from ._graph import I32, NAME_MAX, Data, Program, Value
from ._kept import Kept, Setting
from ._lower import Lower
from ._memory import Missing, code_of
from ._narrow import narrow
from ._pack import PACK_ITEMS_MAX, packed
from ._reads import idle
from ._record import Problem
from ._refusal import CaptureError

Tensor = torch.Tensor
PREFIX = "answer."  # of leaves that are answers (PROTOCOL.md 8.6)
ONLY = "answer"  # what is returned alone is called so
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")  # of answers, which are names of files
FOLDER = "answers"


class Answers:
    """What a function says of many inputs, as a folder that `verde run`, `verde delegate` and
    others take. It is computed in batches, each of which is a program of its own.

    >>> answers = repops.jobs.Answers(model, model, images, folder="out/answers", batch=32)
    >>> answers.check()
    >>> logits = answers.run("out/said")["answer"]

    fn: of a batch, gives a tensor, or a tuple, list or dict of tensors, whose first dimension is
    the batch. model: one, a list, or a dict of models by name, which fn reads; they are in eval
    mode, and no gradient is computed. inputs: an array of rows; a tuple of arrays, or a dict of
    arrays by name, which are the arguments of fn. The last batch is filled up with its last row,
    whose answers are cut off. seed: of draws."""

    def __init__(
        self,
        fn: Callable[..., Any],
        model: Any,
        inputs: Any,
        *,
        folder: str | os.PathLike[str],
        batch: int = 8,
        seed: int = 0,
    ) -> None:
        self.folder, self.seed, self.batch = Path(folder), seed, batch
        self.hash = ""  # of the collection
        self.interval = 1
        replaceable(self.folder)
        names, arrays = _named_inputs(inputs)
        self.rows, self.steps = _counted(names, arrays, batch)
        numbers = np.minimum(np.arange(self.steps * batch), self.rows - 1)
        order = numbers.reshape(self.steps, batch)
        sources = _data.ordered(arrays, order, names, True, self.folder.parent)
        self._captured = Answered(self, fn, model, sources, isinstance(inputs, dict))
        try:
            self._captured.run()
        except LeftoverError as error:
            raise CaptureError([Problem(NOWHERE, "", str(error))]) from None
        finally:
            self._captured.kept.set_back()

    def __repr__(self) -> str:
        return f"<repops.jobs.Answers {self.folder}: {self.rows} rows in {self.steps} batches>"

    def check(self, batches: int = 1, verde: str | None = None) -> None:
        """Computes the first batches in the block and by the command `verde`, and compares all
        bits. Error: the first answer that differs."""
        self._captured.compare_answers(min(batches, self.steps), verde)

    def run(
        self,
        out: str | os.PathLike[str],
        on_batch: Callable[[int, int], Any] | None = None,
        *,
        backend: str | None = None,
        threads: int | None = None,
        verde: str | None = None,
    ) -> dict[str, np.ndarray]:
        """Has the command `verde` compute all answers, as `verde run` does, and returns them by
        name: row i is of input i. What `out` has of them already is not computed again.

        on_batch: is called with the number of batches that are done, and of all. backend, threads:
        as options of `verde run`. Error: what the command says. Ctrl-C stops it; the same call goes
        on."""

        def told(line: dict[str, Any]) -> None:
            if on_batch:
                on_batch(line["batches_done"], line["batches"])

        _run.run(self.folder, Path(out), told, verde, backend=backend, threads=threads)
        return load_answers(out)


def load_answers(folder: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The answers in a folder that `verde run`, `verde delegate` or `verde fetch` has written, by
    name. They are read from the files when they are used. The command has compared each byte with
    what the run commits to, and `verde check FOLDER --job JOB` does so again."""
    place = Path(folder) / FOLDER
    files = sorted(place.glob("*.npy"))
    if not files:
        raise Error(f"{folder} has no answers; expected {place}/NAME.npy")
    try:
        return {f.stem: np.load(f, mmap_mode="r", allow_pickle=False) for f in files}
    except (OSError, ValueError) as error:
        raise Error(f"cannot read answers in {place}: {error}") from None


# ---- inputs and outputs ----


def _named_inputs(inputs: Any) -> tuple[list[str], list[Any]]:
    if isinstance(inputs, dict):
        return [str(k) for k in inputs], list(inputs.values())
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    return [f"input{i}" for i in range(len(several))], list(several)


def _counted(names: list[str], arrays: list[Any], batch: int) -> tuple[int, int]:
    """How many rows and batches there are."""
    if not arrays:
        raise Error("there are no inputs; expected one array at least")
    held = [sum(map(len, a)) if _data.is_several(a) else len(a) for a in arrays]
    for name, count in zip(names, held):
        if count != held[0]:
            raise Error(f"{name} has {count} rows, and {names[0]} has {held[0]}")
    if held[0] < 1:
        raise Error(f"{names[0]} has no rows; expected one at least")
    if not 1 <= batch < 2**31:
        raise Error(f"batch is {batch}; expected 1 to 2^31 - 1")
    count = -(-held[0] // batch)
    if count > PACK_ITEMS_MAX:
        least = -(-held[0] // PACK_ITEMS_MAX)
        raise Error(f"there are {count} batches, at most {PACK_ITEMS_MAX}; expected batch={least}")
    return held[0], count


def flat(returned: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors of a structure, by names; what is None is left out."""
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


# ---- the capture ----


class Answered(Captured):
    """One capture of a function of a batch."""

    def __init__(
        self,
        job: Answers,
        fn: Callable[..., Any],
        model: Any,
        sources: list[_data.Source],
        by_name: bool,
    ) -> None:
        from ._job import _named

        setting = Setting(_named(model), [], [], sources, {})
        kept = Kept(setting)
        self.said: list[str] = []  # names of answers

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
            self.steps.run(0)  # what is imported at the first call is no part of a step
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

    def _lower(self, recorded: Recorded) -> None:
        program = Program(self.job.seed, self.job.steps, 1)
        low = Lower(recorded.recorder, program)
        declare(low, self.steps)
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
        """The state is the answers, which are zeros before."""
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
        """Data that are weights have the names of the state dict: people read them."""
        tensors = self.steps.setting.tensors()
        floats = {n: t for n, t in tensors.items() if t.dtype is torch.float32}
        arrays = {n: t.contiguous().numpy() for n, t in floats.items()}
        for i, d in enumerate(program.data):
            if d.name == "constant":
                same = [n for n, a in arrays.items() if _same_bytes(a, d.array)]
                program.data[i] = d._replace(name=(same or [d.name])[0][-NAME_MAX:])

    def _own(self, count: int) -> list[list[np.ndarray]]:
        """Of each batch its number, and how many of its rows count."""
        left = self.job.rows - self.job.batch * np.arange(count)
        rows = np.minimum(left, self.job.batch).astype("<i4")
        return [[np.array([k], "<i4"), rows[k : k + 1].copy()] for k in range(count)]

    # ---- checking ----

    def compare_answers(self, count: int, verde: str | None) -> None:
        own = self.job.folder
        now = Kept(self.steps.setting)
        with tempfile.TemporaryDirectory(prefix=f"{own.name}.", dir=own.parent) as folder:
            pack, _ = packed(self.program, self._own(count))
            write(Path(folder) / "job", self.program, own if self._is_there() else None, pack)
            _run.run(Path(folder) / "job", Path(folder) / "run", lambda line: None, verde)
            try:
                self.kept.set_back()
                self._compare_answers(load_answers(Path(folder) / "run"), count)
            finally:
                now.set_back()

    def _is_there(self) -> bool:
        """Whether the job's folder holds it: another job may be there by now."""
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
    """The program of one batch, whose number is a data tensor of its own in place of the step's,
    as is the number of its rows that count: that is for whoever reads the answers, not the step."""
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
