"""RNN, GRU and LSTM, unrolled over time steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .._library import Error
from ._run import Call
from ._table import operator

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]


def _function(name: str, alpha: float | None, beta: float | None) -> Function:
    a = {
        "LeakyRelu": 0.01,
        "ThresholdedRelu": 1.0,
        "HardSigmoid": 0.2,
        "Elu": 1.0,
        "ScaledTanh": 1.0,
    }
    b = {"HardSigmoid": 0.5, "ScaledTanh": 1.0}
    p = a.get(name, 1.0) if alpha is None else alpha
    q = b.get(name, 0.0) if beta is None else beta
    table: dict[str, Function] = {
        "relu": torch.relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softsign": lambda x: x / (1.0 + x.abs()),
        "softplus": F.softplus,
        "affine": lambda x: x * p + q,
        "leakyrelu": lambda x: F.leaky_relu(x, p),
        "thresholdedrelu": lambda x: torch.where(x > p, x, torch.zeros(())),
        "scaledtanh": lambda x: torch.tanh(x * q) * p,
        "hardsigmoid": lambda x: (x * p + q).clamp(0.0, 1.0),
        "elu": lambda x: F.elu(x, p),
    }
    if name.lower() not in table:
        raise Error(f"activation {name} is unknown")
    return table[name.lower()]


class Layer:
    """What the three layers share. gates: the number of gate matrices in W and R of a direction."""

    def __init__(self, n: Call, x: Tensor, w: Tensor, r: Tensor, gates: int, names: list[str]):
        self.n, self.hidden = n, r.shape[-1]
        self.x = x.transpose(0, 1) if n.get("layout", 0) else x
        self.w, self.r, self.gates = w, r, gates
        self.way = n.get("direction", "forward")
        self.directions = 2 if self.way == "bidirectional" else 1
        given = n.get("activations", names * self.directions)
        alphas, betas = list(n.get("activation_alpha", [])), list(n.get("activation_beta", []))
        self.functions = []
        for name in given:
            takes = name.lower() not in ("relu", "tanh", "sigmoid", "softsign", "softplus")
            a = alphas.pop(0) if takes and alphas else None
            b = betas.pop(0) if takes and betas else None
            self.functions.append(_function(name, a, b))
        self.clip = n.get("clip", 0.0)

    def held(self, x: Tensor) -> Tensor:
        return x.clamp(-self.clip, self.clip) if self.clip else x

    def biases(self, b: Any, d: int) -> tuple[Any, Any]:
        if b is None:
            return None, None
        half = self.gates * self.hidden
        return b[d, :half], b[d, half:]

    def start(self, given: Any, d: int) -> Tensor:
        if given is None:
            return torch.zeros(self.x.shape[1], self.hidden)
        own: Tensor = given[:, d] if self.n.get("layout", 0) else given[d]
        return own

    def pass_over(
        self, d: int, lengths: Any, state: tuple[Tensor, ...], step: Callable[..., Any], own: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """own: the inputs' part of the gates at each time step. After a sequence's end its state
        stays as it is, and its output is 0."""
        times = list(range(self.x.shape[0]))
        backward = self.way == "reverse" or d == 1
        outputs: list[Any] = [None] * len(times)
        for t in reversed(times) if backward else times:
            new = step(own[t], *state)
            out = new[0]
            if lengths is not None:
                going = (lengths > t)[:, None]
                new = tuple(torch.where(going, a, b) for a, b in zip(new, state))
                out = torch.where(going, out, torch.zeros(()))
            state = new
            outputs[t] = out
        return torch.stack(outputs), state

    def results(self, passes: list[tuple[Tensor, tuple[Tensor, ...]]]) -> tuple[Tensor, ...]:
        y = torch.stack([p[0] for p in passes], 1)
        last = [torch.stack([p[1][i] for p in passes]) for i in range(len(passes[0][1]))]
        if self.n.get("layout", 0):
            return y.permute(2, 0, 1, 3), *(t.transpose(0, 1) for t in last)
        return y, *last

    def inputs(self, d: int, bias: Any) -> Tensor:
        flat = F.linear(self.x.reshape(-1, self.x.shape[2]), self.w[d], bias)
        return flat.reshape(*self.x.shape[:2], -1)


@operator("RNN")
def _rnn(
    n: Call, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None
) -> Any:
    layer = Layer(n, x, w, r, 1, ["Tanh"])
    passes = []
    for d in range(layer.directions):
        wb, rb = layer.biases(b, d)
        f = layer.functions[d]

        def step(own: Tensor, h: Tensor, d: int = d, rb: Any = rb, f: Function = f) -> Any:
            return (f(layer.held(own + F.linear(h, r[d], rb))),)

        start = (layer.start(h, d),)
        passes.append(layer.pass_over(d, lengths, start, step, layer.inputs(d, wb)))
    return layer.results(passes)


@operator("GRU")
def _gru(
    n: Call, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None
) -> Any:
    layer = Layer(n, x, w, r, 3, ["Sigmoid", "Tanh"])
    size, before = layer.hidden, n.get("linear_before_reset", 0)
    passes = []
    for d in range(layer.directions):
        wb, rb = layer.biases(b, d)
        f, g = layer.functions[2 * d : 2 * d + 2]

        def step(own: Tensor, h: Tensor, d: int = d, rb: Any = rb, f: Any = f, g: Any = g) -> Any:
            two = None if rb is None else rb[: 2 * size]
            last = None if rb is None else rb[2 * size :]
            gates = f(layer.held(own[:, : 2 * size] + F.linear(h, r[d, : 2 * size], two)))
            z, reset = gates[:, :size], gates[:, size:]
            if before:
                more = reset * F.linear(h, r[d, 2 * size :], last)
            else:
                more = F.linear(reset * h, r[d, 2 * size :], last)
            new = g(layer.held(own[:, 2 * size :] + more))
            return ((1.0 - z) * new + z * h,)

        start = (layer.start(h, d),)
        passes.append(layer.pass_over(d, lengths, start, step, layer.inputs(d, wb)))
    return layer.results(passes)


@operator("LSTM")
def _lstm(
    n: Call,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    p: Any = None,
) -> Any:
    layer = Layer(n, x, w, r, 4, ["Sigmoid", "Tanh", "Tanh"])
    size, coupled = layer.hidden, n.get("input_forget", 0)
    passes = []
    for d in range(layer.directions):
        wb, rb = layer.biases(b, d)
        f, g, k = layer.functions[3 * d : 3 * d + 3]
        holes = None if p is None else torch.split(p[d], size)  # peephole weights of i, o, f

        def step(
            own: Tensor, h: Tensor, c: Tensor, d: int = d, rb: Any = rb, holes: Any = holes,
            f: Any = f, g: Any = g, k: Any = k,
        ) -> Any:  # fmt: skip
            i, o, forget, new = torch.split(own + F.linear(h, r[d], rb), size, 1)
            if holes is not None:
                i, forget = i + holes[0] * c, forget + holes[2] * c
            i = f(layer.held(i))
            forget = 1.0 - i if coupled else f(layer.held(forget))
            cell = forget * c + i * g(layer.held(new))
            o = o if holes is None else o + holes[1] * cell
            return f(layer.held(o)) * k(cell), cell

        start = (layer.start(h, d), layer.start(c, d))
        passes.append(layer.pass_over(d, lengths, start, step, layer.inputs(d, wb)))
    return layer.results(passes)
