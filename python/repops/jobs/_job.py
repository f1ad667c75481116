"""Jobs: a PyTorch training step captured so that it runs anywhere without Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import Error
from ..torch._mode import LeftoverError, reproducible
from . import _data, _run, _schedule
from ._capture import NOWHERE, Steps
from ._captured import Captured
from ._data import Source
from ._folder import replaceable
from ._kept import Kept, Setting, named_models
from ._record import Problem
from ._refusal import CaptureError
from ._result import Result, load
from ._run import Step
from ._unvalued import Unvalued
from ._weights import Weights

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

    seed: for the order of the data and all draws. folder: capture creates it, and replaces a
    job that is there already."""

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
        self._weights = Weights()
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
        """Windows of tokens, and the token after each of theirs: two int64 tensors [batch, length].
        Each epoch has every window once, in an order that depends on the seed. tokens: an array, or
        a list of arrays, say of several files; no window spans two of them."""
        own = self._name(name, "tokens")
        made = _data.windows(
            tokens, batch, length, self.seed, self._stream(), own, self.folder.parent
        )
        self._sources += made
        return made[0].tensor, made[1].tensor

    def rows(self, *arrays: Any, batch: int, order: Any = None, allow_large: bool = False) -> Any:
        """The same rows of each array [N, ...], as tensors [batch, ...]: float32, or int64 for
        integers. Each epoch has every row once, in an order that depends on the seed. order: a
        table [steps, batch] of row numbers instead. A list of arrays, say of several files, may
        stand for one array with the rows of all."""
        names = [self._name("", f"rows{len(self._sources) + i}") for i in range(len(arrays))]
        if order is None:
            made = _data.rows(arrays, batch, self.seed, self._stream(), names, self.folder.parent)
        else:
            numbers = np.asarray(order)
            if numbers.shape != (self.steps, batch):
                raise Error(f"order is {list(numbers.shape)}; expected [{self.steps}, {batch}]")
            made = _data.ordered(arrays, numbers, names, allow_large, self.folder.parent)
        self._sources += made
        return made[0].tensor if len(made) == 1 else tuple(s.tensor for s in made)

    def table(self, values: Any, name: str = "", allow_large: bool = False) -> Tensor:
        """values[step] as a tensor, for values [steps, ...]."""
        own = self._name(name, "table")
        made = _data.table(values, self.steps, own, allow_large, self.folder.parent)
        self._sources.append(made)
        return self._sources[-1].tensor

    def batches(
        self,
        loader: Iterable[Any],
        pad: Any = None,
        drop_last: bool = False,
        allow_large: bool = False,
    ) -> Any:
        """A DataLoader's batches, recorded for all steps; the loader is restarted at its end.
        Returns tensors in the structure of one batch: a tuple, a list or a dict.

        pad: the value that fills tensors of different sizes up to the largest: a number, or numbers
        in the structure of a batch. drop_last: leave out batches with fewer rows."""
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

    def micro_batches(self, count: int, batch: int | None = None) -> Iterator[slice]:
        """Call it in a step: yields `count` equal parts of the batch, each as a slice of rows.

        >>> for part in job.micro_batches(4):
        ...     loss = loss_of(model(x[part]), y[part]) / 4
        ...     loss.backward()

        After the loop a parameter's gradient is the sum over all parts, in the order of a
        tree that does not depend on how many processes share the parts (PROTOCOL.md 1.5). batch:
        the number of rows, needed if the data do not tell it."""
        from ._micro import parts

        return parts(self._sources, count, batch)

    def constant(self, t: Tensor, name: str = "") -> Tensor:
        """Declares a tensor that no step changes and that is not in a model; the program holds
        it."""
        self._constants[name or f"constant{len(self._constants)}"] = t
        return t

    def weights(self, files: Any, names: Callable[[str], str] | None = None) -> None:
        """Takes weights of the models from safetensors files, or from a folder of them. They become
        data of the program in their stored type, F32, BF16 or F16. The models may have them in
        memory or on the meta device; in the latter case nothing is computed at the capture. names:
        maps a name in the state dict to the name in the files; None: they are the same."""
        self._weights.add(files, names)

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
        generators are left as they were. model, optimizer, scheduler: one, a list, or a dict of
        models by name.

        Raises CaptureError, which says where the step does what no program can, and what to do
        instead."""
        replaceable(self.folder)
        models, optimizers, schedulers = named_models(model), _listed(optimizer), _listed(scheduler)
        with self._weights.inside(models) as bound:
            given = (models, optimizers, schedulers, self._sources, self._constants, bound)
            self._capture(step, Setting(*given))
        return self.hash

    def _capture(self, step: Callable[[], Any], setting: Setting) -> None:
        kept = Kept(setting)
        try:
            columns = _schedule.series(setting.optimizers, setting.schedulers, self.steps)
            kept.set_back()
            steps = Steps(step, setting, kept, self.seed, columns)
            captured = (Unvalued if setting.bound.absent else Captured)(self, steps, kept)
            captured.run()
            self._captured = captured
        except LeftoverError as error:
            raise CaptureError([Problem(NOWHERE, "", str(error))]) from None
        finally:
            kept.set_back()

    def evaluate(
        self, score: Callable[..., Any], *data: Any, batch: int, length: int | None = None
    ) -> str:
        """Writes an evaluation on other data into the job's folder: a program that a job file with
        `task: evaluate` runs on a run's weights. Returns its hash. Call it after capture.

        >>> def score(x, y):
        ...     logits = model(x)
        ...     return loss_of(logits, y), (logits.argmax(1) == y).float().mean()
        >>> job.evaluate(score, test_x, test_y, batch=64)

        score: returns a batch's loss, or its loss and accuracy; models are in eval mode. data:
        arrays with equal numbers of rows; with length, tokens, of which score gets windows and the
        tokens after theirs. Rows that do not fill a batch are left out."""
        from ._evaluate import Evaluated, rows, windows

        if self._captured is None:
            raise Error("there is no model yet; job.capture(step, model, optimizer) comes first")
        if length is None:
            sources, steps = rows(data, batch)
        else:
            sources, steps = windows(data[0], batch, length, self.seed)
        with self._weights.inside(self._captured.steps.setting.models) as bound:
            evaluated = Evaluated(self, self._captured, score, sources, steps, bound)
            try:
                evaluated.run()
            except LeftoverError as error:
                raise CaptureError([Problem(NOWHERE, "", str(error))]) from None
            finally:
                evaluated.kept.set_back()
        return evaluated.hash

    def run(
        self,
        out: str | os.PathLike[str],
        on_step: Callable[[Step], Any] | None = None,
        on_state: Callable[[int], Any] | None = None,
        *,
        backend: str | None = None,
        threads: int | None = None,
        keep: int | None = None,
        verde: str | None = None,
    ) -> Result:
        """Runs the job in the folder with the command `verde`, as `verde run` does, and returns the
        state after the last step. A stopped run in `out` continues; one that is finished is loaded.

        >>> result = job.run("run", on_step=lambda s: print(s.step, s.loss), backend="cuda:0")

        on_step: is called with a Step (step, steps, loss, saved, seconds) after each. on_state: is
        called with the number of each step whose state was written: `load(out, step=number)` reads
        it. backend, threads, keep: as options of `verde run`. verde: the command; None: what the
        environment variable VERDE has, or `verde`.

        Raises Error with the command's message. Ctrl-C, or a callback's exception, stops the run;
        the same call continues from the last state."""
        if not (self.folder / "program").exists():
            raise Error(
                f"{self.folder} has no program; job.capture(step, model, optimizer) comes first"
            )
        options = {"backend": backend, "threads": threads, "keep": keep}
        _run.run(self.folder, Path(out), _run.Told(on_step, on_state), verde, **options)
        return load(out)

    def check(self, steps: int = 3, verde: str | None = None) -> list[float]:
        """Runs steps in the block and with the command `verde`, and compares all bits of all
        states; returns the losses. Raises Error for the first tensor that differs.

        verde: the command; None: what the environment variable VERDE has, or `verde`."""
        if self._captured is None:
            raise Error(
                "there is nothing to check; job.capture(step, model, optimizer) comes first"
            )
        command = _run.command_of(verde)
        losses: list[float] = self._captured.check(min(steps, self.steps), command)
        return losses


def _listed(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]
