"""Optimizers with the bits of the library's own steps (SPEC 9)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from .._library import Error
from .._operators import bits
from . import _optimizers
from ._call import Leftover, elementwise, need, run, sum_rows, sums_of_squares
from ._layout import in_order
from ._modes import default_modes
from ._whole import active

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _memory_of(tensors: Iterable[Tensor]) -> contextlib.AbstractContextManager[Any]:
    """The context for tensors that lie here. Tensors on a device need a block. Raises Leftover if
    they are in several memories."""
    places = [t.device for t in tensors]
    for i, place in enumerate(places):
        if place != places[0]:
            raise Leftover(
                f"parameter {i} of those with a gradient is on {place}, and parameter 0 on "
                f"{places[0]}; expected all in one memory"
            )
    if not places or places[0].type == "cpu":
        return contextlib.nullcontext()
    block = active()
    if block is None:
        raise Leftover(f"its input is on {places[0]}; expected the CPU's memory, or a block")
    return block.on(places[0])


def _on_its_own(function: _Function) -> _Function:
    """Turns Leftover into Error, as there is no block whose policy would decide."""

    @functools.wraps(function)
    def outer(*args: Any, **kwargs: Any) -> Any:
        try:
            with default_modes():
                return function(*args, **kwargs)
        except Leftover as reason:
            raise Error(str(reason)) from None

    return cast(_Function, outer)


@_on_its_own
def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float) -> Tensor:
    """Scales gradients so that their total norm is at most max_norm; returns the norm before.

    The squares of each gradient are summed, then these sums, in order R (SPEC 3.2, 9). An infinite
    norm makes all gradients NaN, as in a job of Verde: the norm of finite gradients is infinite if
    the sum of their squares is 2^128 or more. torch.nn.utils.clip_grad_norm_ makes them 0 then."""
    _check_norm(max_norm)
    each = [parameters] if isinstance(parameters, Tensor) else parameters
    grads = [p.grad for p in each if p.grad is not None]
    with _memory_of(grads):
        squares, clip = _clip(grads, max_norm)
        for g in grads:
            g.mul_(clip if g.dim() else clip.reshape(()))
        return elementwise("sqrt", (), squares)


@torch.no_grad()
def _clip(grads: list[Tensor], max_norm: float) -> tuple[Tensor, Tensor]:
    need(*grads)
    parts = sums_of_squares([in_order(g) for g in grads])
    squares = sum_rows(parts.reshape(1, -1))
    return squares.reshape(()), run("clip_scale", (bits(max_norm),), (squares,))


def _check_norm(max_norm: float | None) -> None:
    if max_norm is not None and not max_norm >= 0:
        raise ValueError(f"max_norm is {max_norm}; expected 0 or more")


EXEMPT = ("none", "vectors")


# torch.optim's name for an option in its error, and a test of the value.
_OPTIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "lr": ("learning rate", lambda v: v >= 0),
    "eps": ("epsilon value", lambda v: v >= 0),
    "betas": ("beta parameters", lambda v: len(v) == 2 and all(0 <= b < 1 for b in v)),
    "weight_decay": ("weight_decay value", lambda v: v >= 0),
    "momentum": ("momentum value", lambda v: v >= 0),
}


class _Optimizer(torch.optim.Optimizer):
    max_norm: float | None
    decay_exempt: str

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Raises ValueError if an option of the group, or its default, is out of range."""
        options = {**self.defaults, **param_group}
        for name, (called, taken) in _OPTIONS.items():
            if name in options and not taken(options[name]):
                raise ValueError(f"Invalid {called}: {options[name]}")
        if options.get("nesterov") and not options["momentum"] > 0:
            raise ValueError("Nesterov momentum requires a momentum")
        super().add_param_group(param_group)

    def _options(self, max_norm: float | None, decay_exempt: str) -> None:
        if decay_exempt not in EXEMPT:
            raise ValueError(f"decay_exempt is {decay_exempt!r}; expected one of {list(EXEMPT)}")
        _check_norm(max_norm)
        self.max_norm, self.decay_exempt = max_norm, decay_exempt

    def _decay(self, group: dict[str, Any], p: Tensor) -> float:
        return 0.0 if self.decay_exempt == "vectors" and p.dim() < 2 else group["weight_decay"]

    def _clip(self) -> Tensor | None:
        grads = [
            p.grad for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        return None if self.max_norm is None or not grads else _clip(grads, self.max_norm)[1]

    @_on_its_own
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step; closure, if given, computes the loss again."""
        with torch.enable_grad():
            loss = closure() if closure else None
        params = [[p for p in g["params"] if p.grad is not None] for g in self.param_groups]
        with _memory_of(p for each in params for p in each):
            clip = self._clip()
            for group, each in zip(self.param_groups, params):
                self._update(group, each, clip)
        return loss

    def _update(self, group: dict[str, Any], params: list[Tensor], clip: Tensor | None) -> None:
        raise NotImplementedError


def _check_names(state: dict[str, Any], *names: str) -> None:
    if any(name not in state for name in names):
        raise Error(f"a state has {sorted(state)}; expected {sorted(names)}")


class AdamW(_Optimizer):
    """AdamW. max_norm: gradients are scaled so that their total norm is at most that. decay_exempt:
    "vectors" (biases and weights of norms) or "none", as in a job of Verde."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        max_norm: float | None = None,
        decay_exempt: str = "none",
    ) -> None:
        self._options(max_norm, decay_exempt)
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    def _update(self, group: dict[str, Any], params: list[Tensor], clip: Tensor | None) -> None:
        states = [self.state[p] for p in params]
        for p, state in zip(params, states):
            if not state:
                state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
            _check_names(state, "step", "exp_avg", "exp_avg_sq")
            state["step"] = int(state["step"]) + 1
        grads = [p.grad for p in params if p.grad is not None]
        m, v = [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]
        steps = [s["step"] for s in states]
        decay = [self._decay(group, p) for p in params]
        beta1, beta2 = group["betas"]
        _optimizers.adamw(
            params, grads, m, v, steps, group["lr"], beta1, beta2, group["eps"], decay, clip
        )


class SGD(_Optimizer):
    """SGD with momentum; weight_decay is added to the gradient. Other arguments are as in AdamW."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        max_norm: float | None = None,
        decay_exempt: str = "none",
    ) -> None:
        self._options(max_norm, decay_exempt)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], params: list[Tensor], clip: Tensor | None) -> None:
        for p in params:
            if p.grad is None:
                continue
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(p)
            decay = self._decay(group, p)
            at = (group["lr"], group["momentum"], decay, group["nesterov"], clip)
            _optimizers.sgd(p, p.grad, state["momentum_buffer"], *at)


KINDS = ("constant", "linear", "cosine")


class Schedule(LRScheduler):
    """Learning rates as in a job of Verde: operator lr_schedule (SPEC 9).

    kind: "constant", "linear" or "cosine" after `warmup` steps, during which the rate rises to lr.
    The last two end at min_lr after `steps` steps in all. Call step() after the optimizer's."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        kind: str,
        steps: int = 0,
        warmup: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; expected one of {list(KINDS)}")
        self.kind, self.steps, self.warmup, self.min_lr = kind, steps, warmup, min_lr
        super().__init__(optimizer)

    def _rate(self, base: float) -> float:
        constant = self.kind == "constant"
        low, total = (0.0, 0) if constant else (self.min_lr, self.steps)
        attributes = (KINDS.index(self.kind), bits(base), bits(low), self.warmup, total)
        step = torch.tensor([self.last_epoch], dtype=torch.int32, device="cpu")
        return run("lr_schedule", attributes, (step,)).item()

    def get_lr(self) -> list[float | Tensor]:
        """The rate of each group for the next step."""
        return [self._rate(float(base)) for base in self.base_lrs]
