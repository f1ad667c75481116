"""Optimizers with the bits of the library's own steps (SPEC 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .._operators import bits
from . import _optimizers
from ._call import elementwise, need, run, sum_rows, sum_squares


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> Tensor:
    """Scales gradients so that their norm over all is max_norm at most; returns that norm.

    The sum of squares of each parameter, then the sum of these, by R (SPEC 3.2, 9)."""
    grads = [p.grad for p in parameters if p.grad is not None]
    squares, clip = _clip(grads, max_norm)
    for g in grads:
        g.mul_(clip)
    return elementwise("sqrt", (), squares)


@torch.no_grad()
def _clip(grads: list[Tensor], max_norm: float) -> tuple[Tensor, Tensor]:
    need(*grads)
    parts = torch.stack([sum_squares(g) for g in grads]) if grads else torch.zeros(1)
    squares = sum_rows(parts.reshape(1, -1))
    return squares.reshape(()), run("clip_scale", (bits(max_norm),), (squares,))


class _Optimizer(torch.optim.Optimizer):
    max_norm: float | None

    def _clip(self) -> Tensor | None:
        grads = [
            p.grad for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        return None if self.max_norm is None or not grads else _clip(grads, self.max_norm)[1]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step; closure, if any, computes the loss again."""
        with torch.enable_grad():
            loss = closure() if closure else None
        clip = self._clip()
        for group in self.param_groups:
            self._update(group, [p for p in group["params"] if p.grad is not None], clip)
        return loss

    def _update(self, group: dict[str, Any], params: list[Tensor], clip: Tensor | None) -> None:
        raise NotImplementedError


class AdamW(_Optimizer):
    """AdamW. max_norm: gradients are scaled so that their norm over all is that at most."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        max_norm: float | None = None,
    ) -> None:
        self.max_norm = max_norm
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    def _update(self, group: dict[str, Any], params: list[Tensor], clip: Tensor | None) -> None:
        states = [self.state[p] for p in params]
        for p, state in zip(params, states):
            if not state:
                state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
            state["step"] += 1
        grads, m, v = (
            [p.grad for p in params],
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
        )
        steps = [s["step"] for s in states]
        rest = (group["lr"], *group["betas"], group["eps"], group["weight_decay"], clip)
        _optimizers.adamw(params, grads, m, v, steps, *rest)


class SGD(_Optimizer):
    """SGD with momentum; weight_decay is added to the gradient. max_norm as in AdamW."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        max_norm: float | None = None,
    ) -> None:
        self.max_norm = max_norm
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Tensor], clip: Tensor | None) -> None:
        for p in params:
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(p)
            at = (group["lr"], group["momentum"], group["weight_decay"], group["nesterov"], clip)
            _optimizers.sgd(p, p.grad, state["momentum_buffer"], *at)
