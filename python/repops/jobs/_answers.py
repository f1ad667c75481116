"""Answers: a model's outputs for many inputs, in batches, each of which is a program of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._library import Error
from ..torch._mode import LeftoverError
from . import _data, _run
from ._answered import Answered, load_answers
from ._capture import NOWHERE
from ._folder import replaceable
from ._kept import named_models
from ._pack import PACK_ITEMS_MAX
from ._record import Problem
from ._refusal import CaptureError
from ._weights import Weights


class Answers:
    """A function's results for many inputs, as a folder that `verde run`, `verde delegate` and
    others take. It is computed in batches, each of which is a program of its own.

    >>> answers = repops.jobs.Answers(model, model, images, folder="out/answers", batch=32)
    >>> answers.check()
    >>> logits = answers.run("out/said")["answer"]

    fn: takes a batch; returns a tensor, or a tuple, list or dict of tensors, whose first dimension
    is the batch. model: the models that fn reads: one, a list, or a dict by name; they are in eval
    mode, and no gradient is computed. inputs: an array of rows; a tuple of arrays, or a dict of
    arrays by name, which are fn's arguments. The last batch is padded with copies of its last row,
    whose answers are dropped. seed: of random draws. weights, names: safetensors files with weights
    of the models, which may then be of the meta device, as `Job.weights` takes them."""

    def __init__(
        self,
        fn: Callable[..., Any],
        model: Any,
        inputs: Any,
        *,
        folder: str | os.PathLike[str],
        batch: int = 8,
        seed: int = 0,
        weights: Any = None,
        names: Callable[[str], str] | None = None,
    ) -> None:
        self.folder, self.seed, self.batch = Path(folder), seed, batch
        self.hash = ""  # the collection's hash, once captured
        self.interval = 1
        replaceable(self.folder)
        self._weights = Weights("weights=")
        if weights is not None:
            self._weights.add(weights, names)
        called, arrays = _named_inputs(inputs)
        self.rows, self.steps = _counted(called, arrays, batch)
        numbers = np.minimum(np.arange(self.steps * batch), self.rows - 1)
        order = numbers.reshape(self.steps, batch)
        sources = _data.ordered(arrays, order, called, True, self.folder.parent)
        self._capture(fn, named_models(model), sources, isinstance(inputs, dict))

    def _capture(
        self,
        fn: Callable[..., Any],
        models: dict[str, Any],
        sources: list[_data.Source],
        by_name: bool,
    ) -> None:
        with self._weights.inside(models) as bound:
            self._captured = Answered(self, fn, models, sources, by_name, bound)
            try:
                self._captured.run()
            except LeftoverError as error:
                raise CaptureError([Problem(NOWHERE, "", str(error))]) from None
            finally:
                self._captured.kept.set_back()

    def __repr__(self) -> str:
        return f"<repops.jobs.Answers {self.folder}: {self.rows} rows in {self.steps} batches>"

    def check(self, batches: int = 1, verde: str | None = None) -> None:
        """Computes the first batches in the block and with the command `verde`, and compares all
        bits. Raises Error at the first answer that differs."""
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
        """Computes all answers with `verde run`, and returns them by name: row i is for input i.
        Batches that `out` has already are not computed again.

        on_batch: called with the number of batches done, and of all. backend, threads: as for
        `verde run`. Raises Error with the command's message. After Ctrl-C the same call
        continues."""

        def told(line: dict[str, Any]) -> None:
            if on_batch:
                on_batch(line["batches_done"], line["batches"])

        _run.run(self.folder, Path(out), told, verde, backend=backend, threads=threads)
        return load_answers(out)


# ---- inputs ----


def _named_inputs(inputs: Any) -> tuple[list[str], list[Any]]:
    if isinstance(inputs, dict):
        return [str(k) for k in inputs], list(inputs.values())
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    return [f"input{i}" for i in range(len(several))], list(several)


def _counted(names: list[str], arrays: list[Any], batch: int) -> tuple[int, int]:
    """The numbers of rows and of batches."""
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
