"""Answers: what a model says of many inputs, a batch at a time, each a program of its own."""

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
    """What a function says of many inputs, as a folder that `verde run`, `verde delegate` and
    others take. It is computed in batches, each of which is a program of its own.

    >>> answers = repops.jobs.Answers(model, model, images, folder="out/answers", batch=32)
    >>> answers.check()
    >>> logits = answers.run("out/said")["answer"]

    fn: of a batch, gives a tensor, or a tuple, list or dict of tensors, whose first dimension is
    the batch. model: one, a list, or a dict of models by name, which fn reads; they are in eval
    mode, and no gradient is computed. inputs: an array of rows; a tuple of arrays, or a dict of
    arrays by name, which are the arguments of fn. The last batch is filled up with its last row,
    whose answers are cut off. seed: of draws. weights, names: files of safetensors with weights of
    the models, which may then be of the meta device, as `Job.weights` takes them."""

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
        self.hash = ""  # of the collection
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


# ---- inputs ----


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
