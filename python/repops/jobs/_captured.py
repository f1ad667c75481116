"""One capture: recordings of a step, the problems found, and the check of the program."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import Error
from . import _hidden, _loops, _schedule
from ._assemble import lower
from ._bits import Contents, digest, same_bits
from ._capture import NOWHERE, Recorded, Steps, give_back_memory, told
from ._folder import write
from ._forms import form
from ._graph import Program, hash_of
from ._kept import GRADIENT, Kept, storage_of
from ._narrow import narrow
from ._reads import Ways
from ._record import Problem, Site, Unread
from ._refusal import CaptureError
from ._repeat import Unlike, fold

Tensor = torch.Tensor

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
UNLIKE = "the micro-batches of this step are not alike, so that the job runs in one process only"
SIZE = "the step changes its size; make it as large as it becomes before the capture"
FIXED = "the step writes to this constant; keep it as a buffer of a model"
SHARED = "after the step it is in the same memory as another tensor of the state; clone it"
STRANGER = (
    "it reads a tensor from outside of the step that is not declared; give data by job.windows, "
    "job.rows, job.table or job.batches, what never changes by job.constant, or keep it as a buffer"
)


class Captured:
    """One capture: its recordings, problems and program."""

    lazy = LAZY

    def __init__(self, job: Any, steps: Steps, kept: Kept) -> None:
        self.job, self.steps, self.kept = job, steps, kept
        self.problems: list[Problem] = []
        self.start = dict(kept.start)  # the first state, by name
        self.called: list[Any] = []  # the user's functions that a step calls

    # ---- capturing ----

    def run(self) -> None:
        fresh = self._fresh()
        state = self._state(fresh)
        probes = _schedule.probes(self.steps.columns, self.job.steps)
        first, lazy, others, more = self._recordings(state, fresh, probes)
        if more:  # a step wrote tensors that had been taken for constants
            state = [*state, *more]
            first, lazy, others, _ = self._recordings(state, fresh, probes)
        self._compare_recordings(first, others, state, self.job.steps)
        self._strangers(first, [r for _, r in others])
        self._made_late(lazy)
        self._lower(first)
        self.steps.contents = Contents()  # the program holds what it needs of them

    def _recordings(self, state: list[str], fresh: dict[str, bytes], probes: list[int]) -> Any:
        """Records step 0 and the probes. Returns the recording of step 0, names that it leaves
        different from the first step, (number, recording) of the others, and names of undeclared
        tensors that any of them wrote."""
        first = self._record(0, state)
        lazy, more = self._compare_fresh(fresh), self._written(first, state)
        others = []
        for number in probes:
            others.append((number, self._record(number, state)))
            more += [n for n in self._written(others[-1][1], state) if n not in more]
        return first, lazy, others, more

    def _compare_recordings(
        self, first: Recorded, others: list[tuple[int, Recorded]], state: list[str], count: int
    ) -> None:
        """Compares recordings, for a job of `count` steps. If Python reads data, more steps are
        recorded."""
        columns, sources = self.steps.columns, self.steps.setting.sources
        record, written = partial(self._record, state=state), partial(self._written, state=state)
        ways = Ways(first, others, columns, record, written)
        ways.compare(count, sources)
        self.problems += ways.problems

    def _fresh(self) -> dict[str, bytes]:
        """Runs the first step, in which optimizers create state. Returns digests of the state after
        it."""
        with _hidden.Watch() as watch:
            self.steps.run(0)
        self.kept.measure()
        self.called = watch.functions()
        give_back_memory()
        return {n: digest(t) for n, t in self.steps.setting.tensors().items()}

    def _state(self, fresh: dict[str, bytes]) -> list[str]:
        """Names of tensors that are trained or change; all others are constants."""
        trained = {
            storage_of(p)
            for o in self.steps.setting.optimizers
            for g in o.param_groups
            for p in g["params"]
            if p.requires_grad
        }
        resized = self.kept.resized()
        if resized:
            raise CaptureError([Problem(NOWHERE, name, SIZE) for name in resized])
        now, each = self.steps.setting.tensors(), self.steps.setting.each()
        for name in self.start.keys() - now.keys():
            gone = GRADS if name.endswith(f".{GRADIENT}") else GONE
            self._refuse(name, SHARED if name in each else gone)
        found = []
        for name, t in now.items():
            if self._changes(name, fresh) or storage_of(t) in trained:
                found.append(name)
                self.start.setdefault(name, torch.zeros((), dtype=t.dtype).expand(t.shape))
        if not found:
            raise Error("the step changes nothing: neither a parameter nor a buffer")
        return found

    def _changes(self, name: str, fresh: dict[str, bytes]) -> bool:
        """Did the first step create this tensor or change its content?"""
        before = self.start.get(name)
        return before is None or digest(before) != fresh[name]

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
        with _hidden.Watch() as watch, told_unread():
            recorded = self.steps.record(number, state)
        after = _hidden.values_of(self.steps.step, self.called, **objects)
        self._hidden(_hidden.changed(before, after))
        give_back_memory()
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

    def _compare_fresh(self, fresh: dict[str, bytes]) -> list[str]:
        """Names of tensors that differ between the first step, which created optimizer state, and a
        recording that found this state there, as zeros."""
        now = self.steps.setting.tensors()
        return [
            name
            for name in {**fresh, **now}
            if name not in now or name not in fresh or digest(now[name]) != fresh[name]
        ]

    def _made_late(self, names: list[str]) -> None:
        """Refuses tensors that are made at the first step, unless other problems explain the
        difference."""
        if names and not self.problems:
            made = [n for n in self.steps.setting.tensors() if n not in self.kept.start]
            for name in [n for n in names if n in made] or made or names:
                self._refuse(name, self.lazy)

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
        form(program.step)
        narrow(program.step)
        program.drop_idle(f".{GRADIENT}")
        program.step.prune()
        program.drop_unread()
        self._fold(program)
        self.program = program
        self.job.hash = write(self.job.folder, program)

    @staticmethod
    def _fold(program: Program) -> None:
        try:
            fold(program.step)
        except Unlike as why:
            warnings.warn(f"{UNLIKE} ({why})", stacklevel=5)  # the line that calls capture
        _loops.fold(program.step)

    # ---- checking ----

    def check(self, count: int, verde: str) -> list[float]:
        own = self.job.folder
        with tempfile.TemporaryDirectory(prefix=f"{own.name}.", dir=own.parent) as folder:
            short = shortened(self.program, count)
            write(Path(folder) / "job", short, own if _is(own, self.job.hash) else None)
            self._command([verde, "run", f"{folder}/job", "--out", f"{folder}/run"])
            return self.compare(Path(folder) / "run", count)

    def compare(self, run: Path, count: int) -> list[float]:
        """Runs steps in the block and compares all states with a run's folder; returns the
        losses."""
        now = Kept(self.steps.setting)
        try:
            self.kept.set_back()
            return self._compare(run, count)
        finally:
            now.set_back()

    @staticmethod
    def _command(arguments: list[str]) -> None:
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Error(
                f"cannot run {arguments[0]}: {error.strerror}; its folder must be in PATH, or the "
                "environment variable VERDE name it"
            ) from None
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise Error(lines[-1] if lines else f"{arguments[0]} ended with {done.returncode}")

    def _compare(self, folder: Path, count: int) -> list[float]:
        import verde

        run, losses = verde.Run(folder), []
        for number in range(count):
            losses += [float(loss) for loss in told(self.steps.run(number))[:1]]
            there = run.state(number + 1, check=False)
            here = self.steps.setting.each()
            for c in self.steps.mode.corrections.values():
                here[c.name] = c.at(number + 1)
            give_back_memory()
            for name, array in there.items():
                t = torch.from_numpy(np.array(array))
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
            there = json.loads(line)["loss"]  # JSON has NaN and infinities as texts
            if not np.array_equal(np.float32(there), np.float32(own), equal_nan=True):
                raise Error(
                    f"the loss of step {number} is {own} in the block, and {there} of verde"
                )


@contextlib.contextmanager
def told_unread() -> Iterator[None]:
    try:
        yield
    except Unread as unread:
        raise CaptureError(unread.problems) from None


def _is(folder: Path, digest: str) -> bool:
    """Does the folder hold the job with this hash? Another job may have been written there."""
    try:
        return hash_of((folder / "program").read_bytes()) == digest
    except OSError:
        return False


def shortened(program: Program, steps: int) -> Program:
    short = Program(program.seed, steps, 1)
    short.leaves, short.data = program.leaves, program.data
    short.init, short.step = program.init, program.step
    return short
