"""What the block does differently in the step of a job: draws depend only on seed, draw and step,
and Python reads no tensor's value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _context
from .._operators import bits
from ..torch import _optimizers
from ..torch._call import Leftover, run

Tensor = torch.Tensor
MANY = "whole random numbers of more than 2^20; draw before, and declare job.table(values)"
DRAWN_INTEGERS_MAX = 1 << 20
I32 = 2  # RO_I32's number
OTHER = "it draws from a generator that is given; leave generator out"
WORD = 1 << 32
STREAMS = 1 << 32  # the most draws of one step


class Correction:
    """1 - beta^t for parameters with `start` steps before the job and `rate` steps in each of its
    steps.

    value: [1], at the beginning of the job's step, then after each optimizer step of it."""

    def __init__(self, beta: float, start: int, rate: int) -> None:
        self.beta, self.start, self.rate = beta, start, rate
        self.value = torch.zeros(1)
        self.taken: list[Tensor] = []  # after each optimizer step of the job's step

    @property
    def name(self) -> str:
        usual = (self.start, self.rate) == (0, 1)
        return f"correction.{self.beta:.9g}" + ("" if usual else f".{self.start}.{self.rate}")

    def at(self, step: int) -> Tensor:
        """The value after `step` steps of the job."""
        count = self.start + self.rate * step
        return _optimizers.correction(self.beta, count) if count else torch.zeros(1)

    def begin(self, step: int) -> None:
        """Sets the value for a step. After step 0 an approximation will do: recordings do not
        compare it."""
        near = torch.tensor([1 - self.beta ** (self.start + self.rate * step)])
        self.value.copy_(near if step else self.at(0))
        self.taken.clear()

    def take(self, count: int) -> Tensor:
        """The value after `count` optimizer steps of the job's step."""
        while len(self.taken) < count:
            self.taken.append(run("bias_correction", (bits(self.beta),), (self.value,)))
            self.value.copy_(self.taken[-1])
        return self.taken[count - 1]


class Mode:
    """seed: of all draws. number: the step's number, i32 [1]. counts: for each tensor of optimizer
    state, by _cdata, the optimizer's steps before the job and in each step. trained: gives the
    trained parameters by name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.number = torch.zeros(1, dtype=torch.int32)
        self.recording = False
        self.measuring = False  # steps of optimizers in a step are not known yet
        self.counts: dict[int, tuple[int, int]] = {}
        self.trained: Callable[[], list[tuple[str, Tensor]]] = list
        self.corrections: dict[Any, Correction] = {}
        self._step = 0
        self._draws: dict[bytes, int] = {}

    def begin(self, step: int) -> None:
        """Begins this step. Seeds torch's generator, so that the sequence of its states is
        fixed."""
        self._step = step
        self.number.fill_(step)
        self._draws.clear()
        torch.manual_seed(self.seed & (WORD - 1))

    def _draw(self) -> int:
        """The number of this draw in the step, found by the generator's state. If the state is
        restored, as checkpoint and fork_rng do, the same draws are repeated."""
        with _disable_current_modes():
            state = torch.get_rng_state().numpy().tobytes()
            torch.empty((), dtype=torch.int64).random_()
        return self._draws.setdefault(state, len(self._draws))

    def _dropped(self, x: Tensor, threshold: int, scale: float) -> Tensor:
        """x times scale where the draw is threshold / 2^32 or more, else 0. Which elements are kept
        depends on x's size, and on nothing else of x."""
        attributes = (self.seed, self._stream, threshold, bits(scale))
        y = run("dropout", attributes, (x.contiguous().reshape(-1), self.number))
        return y.reshape(x.shape)

    def dropout(self, x: Tensor, p: float) -> tuple[Tensor, Tensor]:
        """x with a share p of zeros and the rest scaled; and the mask of kept elements."""
        self._stream = self._draw()
        threshold = min(WORD - 1, int(p * WORD + 0.5))
        y = self._dropped(x, threshold, 1 / (1 - p) if p < 1 else 0.0)
        return y, self._dropped(torch.ones(x.shape), threshold, 1.0) != 0

    def bernoulli(self, shape: Sequence[int], p: float, generator: Any = None) -> Tensor:
        """1 with probability p, else 0."""
        self._stream = self._next(generator)
        threshold = min(WORD - 1, int((1 - p) * WORD + 0.5))
        return self._dropped(torch.ones(tuple(shape)), threshold, 1.0)

    def _next(self, generator: Any) -> int:
        if generator is not None:
            self.refuse("random numbers", OTHER)
        return self._draw()

    def numbers(
        self, name: str, size: Sequence[int], first: float, second: float, generator: Any
    ) -> Tensor:
        """Uniform numbers in [first, second), or normal ones with this mean and deviation."""
        how = (self.seed, self._next(generator), bits(first), bits(second))
        count = math.prod(size)
        return run(f"{name}_at", how, (self.number,), (count,)).reshape(tuple(size))

    def permutation(self, n: int, generator: Any) -> Tensor:
        how = (self.seed, self._next(generator))
        return run("permutation", how, (self.number,), (n,), torch.int32)

    def integers(self, size: Sequence[int], low: int, high: int, generator: Any) -> Tensor:
        """Whole numbers in [low, high), from 24 random bits: probabilities differ by up to (high -
        low) / 2^24."""
        if high - low > DRAWN_INTEGERS_MAX:
            self.refuse("random numbers", MANY)
        u = self.numbers("uniform", size, 0.0, 1.0, generator)
        whole = run("cast", (I32,), (u * float(high - low),))
        return whole.clamp(0, high - low - 1).to(torch.int64) + low

    @staticmethod
    def refuse(what: str, why: str) -> None:
        """Reports a problem to the recorder, with the line of the user's code."""
        watcher = _context.current().watcher
        if watcher is not None:
            watcher.refuse(what, why)

    def mark(self, what: str, tensors: Sequence[Tensor], **numbers: Any) -> None:
        """Tells the recorder where a micro-batch begins, its gradients and its sums."""
        if self.recording:
            with _disable_current_modes():
                _context.current().watcher.mark(what, tensors, numbers)

    def correction(self, beta: float, count: int, of: Tensor) -> Tensor:
        """1 - beta^count for an optimizer that keeps the tensor `of` and has taken `count`
        steps."""
        if self.measuring:
            return torch.ones(1)
        start, rate = self.counts.get(of._cdata, (0, 0))
        taken, key = count - start - rate * self._step, (beta, start, rate)
        if not 1 <= taken <= rate:
            raise Leftover("an optimizer takes another number of steps than in the step before")
        if key not in self.corrections:
            c = self.corrections[key] = Correction(*key)
            with _disable_current_modes():
                c.begin(self._step)
            _context.current().watcher.declare(c.value)
        return self.corrections[key].take(taken)
