"""Jobs: a training step of PyTorch that runs anywhere without Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verde._files import writing

from .._library import Error
from ..torch._mode import LeftoverError, reproducible
from . import _data, _hidden, _schedule
from ._assemble import lower
from ._capture import NOWHERE, CaptureError, Comparison, Recorded, Steps, relative
from ._data import Source
from ._graph import Program, hash_of
from ._kept import GRADIENT, Kept, Setting, same_bits, storage_of
from ._record import Problem, Site

Tensor = torch.Tensor
STEPS_MAX = 2**31 - 1


class Job:
    """A training run of PyTorch as a folder that `verde run`, `verde delegate` and others take.

    >>> job = repops.jobs.Job("out/job", seed=7, steps=2000, checkpoint_interval=100)
    >>> x, y = job.windows(tokens, batch=32, length=256)
    >>> with job:
    ...     model = Model()
    ...     optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ...     def step():
    ...         loss = loss_of(model(x), y)
    ...         loss.backward()
    ...         optimizer.step()
    ...         optimizer.zero_grad()
    ...         return loss
    >>> job.capture(step, model, optimizer)
    >>> job.check(steps=3)

    seed: of the order of the data and of all draws. folder: is made by capture, which replaces a
    job that is there."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        seed: int = 0,
        steps: int = 1,
        checkpoint_interval: int | None = None,
    ) -> None:
        interval = min(steps, 100) if checkpoint_interval is None else checkpoint_interval
        if not 1 <= steps <= STEPS_MAX:
            raise Error(f"steps is {steps}; expected 1 to {STEPS_MAX}")
        if not 1 <= interval <= min(steps, 4096):
            raise Error(f"checkpoint_interval is {interval}; expected 1 to steps, at most 4096")
        if not 0 <= seed < 2**64:
            raise Error(f"seed is {seed}; expected 0 to 2^64 - 1")
        self.folder, self.seed, self.steps, self.interval = Path(folder), seed, steps, interval
        self.hash = ""
        self._sources: list[Source] = []
        self._constants: dict[str, Tensor] = {}
        self._block: Any = None
        self._captured: Any = None

    # ---- data ----

    def _stream(self) -> int:
        return _data.STREAM + len(self._sources)

    def _name(self, name: str, otherwise: str) -> str:
        name = name or otherwise
        taken = {s.name for s in self._sources}
        return name if name not in taken else f"{name}.{len(self._sources)}"

    def windows(
        self, tokens: Any, batch: int, length: int, name: str = ""
    ) -> tuple[Tensor, Tensor]:
        """Windows of a row of tokens, and the tokens that follow each of theirs: int64 [batch,
        length] both. An epoch has each window once, in an order that follows from the seed. tokens:
        an array, or a list of arrays, as of several files; no window lies in two of them."""
        own = self._name(name, "tokens")
        made = _data.windows(tokens, batch, length, self.seed, self._stream(), own)
        self._sources += made
        return made[0].tensor, made[1].tensor

    def rows(self, *arrays: Any, batch: int, order: Any = None, allow_large: bool = False) -> Any:
        """Rows of arrays [N, ...], the same of each: tensors [batch, ...], float32 or int64 as the
        arrays are numbers or integers. An epoch has each row once, in an order that follows from
        the seed; order: a table [steps, batch] of their numbers instead."""
        names = [self._name("", f"rows{len(self._sources) + i}") for i in range(len(arrays))]
        if order is None:
            made = _data.rows(arrays, batch, self.seed, self._stream(), names)
        else:
            numbers = np.asarray(order)
            if numbers.shape != (self.steps, batch):
                raise Error(f"order is {list(numbers.shape)}; expected [{self.steps}, {batch}]")
            made = _data.ordered(arrays, numbers, names, allow_large)
        self._sources += made
        return made[0].tensor if len(made) == 1 else tuple(s.tensor for s in made)

    def table(self, values: Any, name: str = "", allow_large: bool = False) -> Tensor:
        """values[step] as a tensor: of [steps, ...] what is of the step's number."""
        own = self._name(name, "table")
        self._sources.append(_data.table(values, self.steps, own, allow_large))
        return self._sources[-1].tensor

    def batches(
        self,
        loader: Iterable[Any],
        pad: Any = None,
        drop_last: bool = False,
        allow_large: bool = False,
    ) -> Any:
        """What a DataLoader gives, recorded for all steps; it begins again at its end. Tensors in
        the structure of one batch: a tuple, a list or a dict.

        pad: what stands behind tensors of other sizes, up to the largest; a number, or a structure
        of numbers like that of a batch. drop_last: a batch of fewer rows is left out."""
        from ._batches import record

        first = len(self._sources)
        sources, structure = record(
            loader,
            self.steps,
            lambda path: f"{path}{first}" if path == "batch" else f"batch{first}{path[5:]}",
            self.folder.parent,
            allow_large,
            pad,
            drop_last,
        )
        self._sources += sources
        return structure

    def constant(self, t: Tensor, name: str = "") -> Tensor:
        """A tensor that no step changes and that is no part of a model: it becomes part of the
        program."""
        self._constants[name or f"constant{len(self._constants)}"] = t
        return t

    # ---- the block ----

    def __enter__(self) -> Job:
        self._block = reproducible()
        self._block.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._block.__exit__(*exception)

    # ---- capture ----

    def capture(
        self, step: Callable[[], Any], model: Any, optimizer: Any = None, scheduler: Any = None
    ) -> str:
        """Writes the job, and returns its program's hash. Model, optimizer, scheduler and
        generators are as before. model, optimizer, scheduler: one, a list, or a dict of models by
        name.

        CaptureError says where the step does what no program can, and what to do instead."""
        optimizers, schedulers = _listed(optimizer), _listed(scheduler)
        setting = Setting(_named(model), optimizers, schedulers, self._sources, self._constants)
        kept = Kept(setting)
        try:
            columns = _schedule.series(optimizers, schedulers, self.steps)
            kept.set_back()
            steps = Steps(step, setting, kept, self.seed, columns)
            captured = _Captured(self, steps, kept)
            captured.run()
            self._captured = captured
        except LeftoverError as error:
            raise CaptureError([Problem(NOWHERE, "", str(error))]) from None
        finally:
            kept.set_back()
        return self.hash

    def check(self, steps: int = 3, verde: str = "verde") -> list[float]:
        """Runs steps in the block and by the command `verde`, and compares all states to the bit;
        returns the losses. Error: the first tensor that differs."""
        if self._captured is None:
            raise Error(
                "there is nothing to check; job.capture(step, model, optimizer) comes first"
            )
        return self._captured.check(min(steps, self.steps), verde)


def _listed(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def _named(model: Any) -> dict[str, torch.nn.Module]:
    if isinstance(model, dict):
        return {f"{name}.": m for name, m in model.items()}
    if isinstance(model, (list, tuple)):
        return {f"{i}.": m for i, m in enumerate(model)}
    return {"": model}


class _Captured:
    """One capture: what was recorded, and the program."""

    def __init__(self, job: Job, steps: Steps, kept: Kept) -> None:
        self.job, self.steps, self.kept = job, steps, kept
        self.problems: list[Problem] = []
        self.start = dict(kept.start)  # of the state, by names
        self.called: list[Any] = []  # functions of the user's

    # ---- capturing ----

    def run(self) -> None:
        fresh = self._fresh()
        state = self._state(fresh)
        probes = _schedule.probes(self.steps.columns, self.job.steps)
        first, lazy, others, more = self._recordings(state, fresh, probes)
        if more:  # the first step has written what it held already
            first, lazy, others, _ = self._recordings([*state, *more], fresh, probes)
        comparison = Comparison(first, others, self.steps.columns)
        comparison.run()
        self.problems += comparison.problems
        self._strangers(first, [r for _, r in others])
        self._made_late(lazy)
        self._lower(first)

    def _recordings(self, state: list[str], fresh: dict[str, Tensor], probes: list[int]) -> Any:
        """A recording of step 0, what it leaves otherwise than the first step did, other recordings
        by their steps, and what any of them has written that is not declared as state."""
        first = self._record(0, state)
        lazy, more = self._compare_fresh(fresh), self._written(first, state)
        others = []
        for number in probes:
            others.append((number, self._record(number, state)))
            more += [n for n in self._written(others[-1][1], state) if n not in more]
        return first, lazy, others, more

    def _fresh(self) -> dict[str, Tensor]:
        """The state after a first step, with what optimizers make in it."""
        with _hidden.Watch() as watch:
            self.steps.run(0)
        self.kept.measure()
        self.called = watch.functions()
        return {n: t.clone() for n, t in self.steps.setting.tensors().items()}

    def _state(self, fresh: dict[str, Tensor]) -> list[str]:
        """What is trained or changes: the others are constants."""
        trained = {
            storage_of(p)
            for o in self.steps.setting.optimizers
            for g in o.param_groups
            for p in g["params"]
            if p.requires_grad
        }
        now, each = self.steps.setting.tensors(), self.steps.setting.each()
        for name in self.start.keys() - now.keys():
            gone = GRADS if name.endswith(f".{GRADIENT}") else GONE
            self._refuse(name, SHARED if name in each else gone)
        found = []
        for name, t in now.items():
            before = self.start.get(name)
            changes = before is None or not same_bits(before, fresh[name])
            if changes or storage_of(t) in trained:
                found.append(name)
                self.start.setdefault(name, torch.zeros_like(t))
        if not found:
            raise Error("the step changes nothing: neither a parameter nor a buffer")
        return found

    def _written(self, recorded: Recorded, state: list[str]) -> list[str]:
        now = self.steps.setting.tensors()
        return [n for n, t in now.items() if n not in state and recorded.recorder.undeclared(t)]

    def _record(self, number: int, state: list[str]) -> Recorded:
        self.kept.set_back(lazily_made=True)
        setting = self.steps.setting
        objects = {
            "model": list(setting.models.values()),
            "optimizer": setting.optimizers,
            "scheduler": setting.schedulers,
        }
        self.steps.prepare(number)
        self.kept.count(number)
        before = _hidden.values_of(self.steps.step, self.called, **objects)
        with _hidden.Watch() as watch:
            recorded = self.steps.record(number, state)
        after = _hidden.values_of(self.steps.step, self.called, **objects)
        self._hidden(_hidden.changed(before, after))
        for what, where in watch.outside:
            self.problems.append(Problem(Site(where, "", False, what), what, CLOCK))
        return recorded

    def _hidden(self, paths: list[str]) -> None:
        moved = [p for p in paths if p.endswith(".last_epoch")]
        for path in moved:
            self._refuse(path.removesuffix(".last_epoch"), MOVES)
        for path in paths if not moved else ():
            self._refuse(path, HIDDEN)

    def _refuse(self, name: str, why: str) -> None:
        self.problems.append(Problem(Site("", "", False, name), name, why))

    def _compare_fresh(self, fresh: dict[str, Tensor]) -> list[str]:
        """What the first step has left otherwise than a step that finds all of the state there,
        as zeros where the first one makes it."""
        now = self.steps.setting.tensors()
        return [
            name
            for name in {**fresh, **now}
            if name not in now or name not in fresh or not same_bits(now[name], fresh[name])
        ]

    def _made_late(self, names: list[str]) -> None:
        """Where nothing else says why the first step is another one."""
        if names and not self.problems:
            made = [n for n in self.steps.setting.tensors() if n not in self.kept.start]
            for name in [n for n in names if n in made] or made or names:
                self._refuse(name, LAZY)

    def _strangers(self, recorded: Recorded, others: list[Recorded]) -> None:
        for name, t in self.steps.setting.fixed().items():
            if recorded.recorder.undeclared(t):
                self._refuse(name, FIXED)
        found = list(recorded.recorder.strangers.values())
        asked = [r.recorder.asked for r in (recorded, *others)]
        for key, (site, place, held) in asked[0].items():
            if any(key not in a or not same_bits(a[key][2], held) for a in asked):
                found.append((site, place))
        for site, place in found:
            shape = f"{list(place.size)} {str(place.dtype).removeprefix('torch.')}"
            self.problems.append(Problem(site, "", f"{STRANGER} ({shape})"))

    def _lower(self, recorded: Recorded) -> None:
        program = Program(self.job.seed, self.job.steps, self.job.interval)
        low = lower(recorded, self.start, self.steps, program)
        self.problems += low.problems
        if self.problems:
            raise CaptureError(self.problems)
        program.drop_idle(f".{GRADIENT}")
        program.step.prune()
        program.drop_unread()
        self.program = program
        self.job.hash = _write(self.job.folder, program)

    # ---- checking ----

    def check(self, count: int, verde: str) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            short = _shortened(self.program, count)
            _write(Path(folder) / "job", short)
            self._command([verde, "run", f"{folder}/job", "--out", f"{folder}/run"])
            now = Kept(self.steps.setting)
            try:
                self.kept.set_back()
                return self._compare(Path(folder) / "run", count)
            finally:
                now.set_back()

    @staticmethod
    def _command(arguments: list[str]) -> None:
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Error(f"cannot run {arguments[0]}: {error.strerror}") from None
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise Error(lines[-1] if lines else f"{arguments[0]} ended with {done.returncode}")

    def _compare(self, folder: Path, count: int) -> list[float]:
        import verde

        run, losses = verde.Run(folder), []
        for number in range(count):
            loss = self.steps.run(number)
            if isinstance(loss, Tensor):
                losses.append(float(loss.detach()))
            there = run.state(number + 1, check=False).torch()
            here = self.steps.setting.each()
            for c in self.steps.mode.corrections.values():
                here[c.name] = c.at(number + 1)
            for name, t in there.items():
                own = here[self.program.names[name]]
                own = own.to(torch.int32) if not own.is_floating_point() else own
                if not same_bits(own.reshape(t.shape), t):
                    raise Error(f"{name} differs after step {number + 1} of the block and of verde")
        self._compare_losses(folder, losses)
        return losses

    @staticmethod
    def _compare_losses(folder: Path, losses: list[float]) -> None:
        lines = (folder / "losses.jsonl").read_text().splitlines() if losses else []
        for number, (line, own) in enumerate(zip(lines, losses)):
            there = json.loads(line)["loss"]
            if np.float32(there or np.nan).tobytes() != np.float32(own).tobytes():
                raise Error(
                    f"the loss of step {number} is {own} in the block, and {there} of verde"
                )


HIDDEN = (
    "a step changes this value of Python, which no program sees; make it a tensor of the model's "
    "state (a buffer), or job.table(values)"
)
MOVES = "the step moves a scheduler; leave scheduler.step() out, and give it to job.capture"
CLOCK = "a step must not depend on it"
LAZY = (
    "the first step makes this state, and from zeros it would be another one; run one step before "
    "the capture"
)
GRADS = (
    "it is there before the first step, which takes it away; call optimizer.zero_grad() before the "
    "capture"
)
GONE = "the step takes it away"
FIXED = "the step writes to this constant; keep it as a buffer of a model"
SHARED = "after the step it is in the same memory as another tensor of the state; clone it"
STRANGER = (
    "it reads a tensor from outside of the step that is not declared; give data by job.windows, "
    "job.rows, job.table or job.batches, what never changes by job.constant, or keep it as a buffer"
)


def _shortened(program: Program, steps: int) -> Program:
    short = Program(program.seed, steps, 1)
    short.leaves, short.data = program.leaves, program.data
    short.init, short.step = program.init, program.step
    return short


def _write(folder: Path, program: Program) -> str:
    """The folder of a job, whole or not at all; returns the program's hash."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not (folder / "program").exists() and any(folder.iterdir()):
        raise Error(f"{folder} is there, and holds no job")
    new = folder.with_name(folder.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    places = []
    for i, d in enumerate(program.data):
        name = f"data{i}.npy"
        with writing(new / name) as file:
            np.lib.format.write_array(file, d.array, version=(1, 0), allow_pickle=False)
            offset = file.tell() - d.array.nbytes
        places.append({"name": d.name, "file": name, "offset": offset})
    encoded = program.encode()
    for name, content in (
        ("program", encoded),
        ("data.json", json.dumps({"verde": 1, "data": places}, indent=1).encode()),
        ("places.json", json.dumps(_places(program), indent=0).encode()),
    ):
        with writing(new / name) as file:
            file.write(content)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(new, folder)
    return hash_of(encoded)


def _places(program: Program) -> dict[str, Any]:
    """Where nodes come from: for people, and no part of the program."""

    def told(node: Any) -> str:
        site = node.place
        if site is None:
            return ""
        return ("backward of " if site.backward else "") + relative(site.place)

    return {"verde_places": 1, "step": [told(n) for n in program.step.nodes]}
