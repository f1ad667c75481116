"""What the block does otherwise in the step of a job: draws depend on seed, draw and step alone,
and Python reads no tensor's value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _context
from .._operators import bits
from ..torch._call import Leftover, run

Tensor = torch.Tensor
WORD = 1 << 32
STREAMS = 1 << 32  # draws that a step may have


class Mode:
    """seed: of all draws. number: the step's, i32 [1]. corrections: 1 - beta^t of each beta."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.number = torch.zeros(1, dtype=torch.int32)
        self.corrections: dict[float, Tensor] = {}
        self._corrected: set[float] = set()
        self._draws: dict[bytes, int] = {}

    def begin(self, step: int) -> None:
        """The next step is this one. torch's generator is set, so that draws follow from it."""
        self.number.fill_(step)
        self._corrected.clear()
        self._draws.clear()
        torch.manual_seed(self.seed & (WORD - 1))

    def _draw(self) -> int:
        """Which draw of the step this is. Where torch's generator is set back, as checkpoint and
        fork_rng do, the same draws come again."""
        with _disable_current_modes():
            state = torch.get_rng_state().numpy().tobytes()
            torch.empty((), dtype=torch.int64).random_()
        return self._draws.setdefault(state, len(self._draws))

    def _dropped(self, x: Tensor, threshold: int, scale: float) -> Tensor:
        """x times scale where a draw is not below threshold / 2^32, else 0; it is the same for all
        x of a draw's size."""
        attributes = (self.seed, self._stream, threshold, bits(scale))
        y = run("dropout", attributes, (x.contiguous().reshape(-1), self.number))
        return y.reshape(x.shape)

    def dropout(self, x: Tensor, p: float) -> tuple[Tensor, Tensor]:
        """x with a share p of zeros, the rest scaled; and what was kept."""
        self._stream = self._draw()
        threshold = min(WORD - 1, int(p * WORD + 0.5))
        y = self._dropped(x, threshold, 1 / (1 - p) if p < 1 else 0.0)
        return y, self._dropped(torch.ones(x.shape), threshold, 1.0) != 0

    def bernoulli(self, shape: Sequence[int], p: float, generator: Any = None) -> Tensor:
        """1 with probability p, else 0."""
        if generator is not None:
            raise Leftover("it draws from a generator that is given; leave generator out")
        self._stream = self._draw()
        threshold = min(WORD - 1, int((1 - p) * WORD + 0.5))
        return self._dropped(torch.ones(tuple(shape)), threshold, 1.0)

    def key(self) -> int:
        """Other random numbers have no operator that knows the step."""
        why = "random numbers of a step that are not dropout's or Bernoulli's"
        watcher = _context.current().watcher
        if watcher is None:
            raise Leftover(why)
        watcher.refuse("random numbers", why)
        return 0

    def correction(self, beta: float) -> Tensor:
        """1 - beta^t, which each step takes on once."""
        c = self.corrections.setdefault(beta, torch.zeros(1))
        if beta not in self._corrected:
            self._corrected.add(beta)
            c.copy_(run("bias_correction", (bits(beta),), (c,)))
        return c


def current() -> Any:
    """The mode of this thread's step, or None."""
    return _context.current().job
