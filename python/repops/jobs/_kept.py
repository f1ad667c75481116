"""The tensors and objects that a step works on, and their restoration after a capture."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from .._library import Error
from ._bits import same_bits
from ._data import Source
from ._hidden import COUNTERS, PLAIN
from ._record import parts
from ._stored import NOTHING, Bound

Tensor = torch.Tensor
GRADIENT = "grad"  # last part of the name of a gradient that survives a step


META = "is of the meta device, which only weights of models may be that job.weights names"
AVERAGES = "n_averaged"  # a buffer of torch's AveragedModel, which Python compares with 0


def _counts_averages(module: Any, key: str) -> bool:
    return key == AVERAGES and isinstance(module, torch.optim.swa_utils.AveragedModel)


class Slot:
    """Where a tensor is stored: a dictionary and key, or a parameter's `grad`."""

    def __init__(self, name: str, holder: Any, key: Any) -> None:
        self.name, self.holder, self.key = name, holder, key

    def get(self) -> Any:
        return self.holder.grad if self.key == GRADIENT else self.holder[self.key]

    def put(self, t: Any) -> None:
        if self.key == GRADIENT:
            self.holder.grad = t
        else:
            self.holder[self.key] = t

    def drop(self) -> None:
        if self.key == GRADIENT:
            self.holder.grad = None
        else:
            del self.holder[self.key]


def _is_sparse(t: Tensor, name: str, kind: str) -> bool:
    """Is it a sparse buffer, which no step may change? Raises Error for a sparse parameter."""
    if t.layout is torch.strided:
        return False
    if kind == "_parameters":
        raise Error(f"{name} is sparse; expected a dense parameter")
    return True


def named_models(model: Any) -> dict[str, torch.nn.Module]:
    if isinstance(model, dict):
        return {f"{name}.": m for name, m in model.items()}
    if isinstance(model, (list, tuple)):
        return {f"{i}.": m for i, m in enumerate(model)}
    return {"": model}


def storage_of(t: Tensor) -> int:
    return int(t.untyped_storage()._cdata)


class Setting:
    """What a capture is given: models, optimizers and everything that a step may read."""

    def __init__(
        self,
        models: dict[str, torch.nn.Module],
        optimizers: Sequence[Any],
        schedulers: Sequence[Any],
        sources: Sequence[Source],
        constants: dict[str, Tensor],
        bound: Bound = NOTHING,
    ) -> None:
        """bound: the models' tensors that are stored in files."""
        self.bound = bound
        self.models, self.optimizers, self.schedulers = models, optimizers, schedulers
        self.sources, self.constants = sources, constants
        for slot in self.slots():
            if torch.nn.parameter.is_lazy(slot.get()):
                raise Error(f"{slot.name} has no size yet; run the model once before the capture")
            if slot.get().is_meta:
                raise Error(f"{slot.name} {META}")

    def slots(self) -> Iterator[Slot]:
        """The slots of parameters, buffers, optimizer state and gradients that exist now."""
        names: dict[int, str] = {}
        taken: set[str] = set()  # names of optimizer state
        for kind in ("_parameters", "_buffers"):
            for prefix, model in self.models.items():
                for where, module in model.named_modules():
                    own = f"{prefix}{where}." if where else prefix
                    for key, t in getattr(module, kind).items():
                        if t is not None and _is_sparse(t, own + key, kind):
                            continue
                        if t is not None and not _counts_averages(module, key):
                            names.setdefault(id(t), own + key)
                            yield Slot(own + key, getattr(module, kind), key)
        for o, optimizer in enumerate(self.optimizers):
            yield from self._of_optimizer(o, optimizer, names, taken)
        for p, name in self._trained(names):
            if p.grad is not None:
                yield Slot(f"{name}.{GRADIENT}", p, GRADIENT)

    def _of_optimizer(
        self, o: int, optimizer: Any, names: dict[int, str], taken: set[str]
    ) -> Iterator[Slot]:
        """The state of one optimizer. Another one may train the same parameter."""
        for g, group in enumerate(optimizer.param_groups):
            for i, p in enumerate(group["params"]):
                if id(p) not in names:
                    names[id(p)] = f"optimizer{o}.{g}.{i}"
                    yield Slot(names[id(p)], group["params"], i)
                state = optimizer.state.get(p, {})
                for key in sorted(k for k, v in state.items() if isinstance(v, Tensor)):
                    if key not in COUNTERS:
                        name = f"{names[id(p)]}.{key}"
                        name = f"{names[id(p)]}.optimizer{o}.{key}" if name in taken else name
                        taken.add(name)
                        yield Slot(name, state, key)

    def _trained(self, names: dict[int, str]) -> Iterator[tuple[Tensor, str]]:
        """All parameters, each once, with their names."""
        found = [p for m in self.models.values() for p in m.parameters()]
        found += [p for o in self.optimizers for g in o.param_groups for p in g["params"]]
        for p in {id(p): p for p in found}.values():
            yield p, names[id(p)]

    def trained(self) -> list[tuple[str, Tensor]]:
        """Parameters that require gradients, each once, with their names."""
        names: dict[int, str] = {}
        for slot in self.slots():
            names.setdefault(id(slot.get()), slot.name)
        return [(name, p) for p, name in self._trained(names) if p.requires_grad]

    def each(self) -> dict[str, Tensor]:
        """All tensors by name; two of them may share memory."""
        return {s.name: s.get().detach() for s in self.slots() if s.get().numel()}

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, one for each memory."""
        found: dict[int, tuple[str, Tensor]] = {}
        for name, t in self.each().items():
            found.setdefault(storage_of(t), (name, t))
        return dict(found.values())

    def fixed(self) -> dict[str, Tensor]:
        """Tensors that no step may change: constants, sparse buffers, numbers of optimizers. A
        sparse tensor is represented by its parts."""
        given = dict(self.constants)
        for prefix, model in self.models.items():
            for name, t in model.named_buffers():
                if t.layout is not torch.strided:
                    given[prefix + name] = t
        found: dict[str, Tensor] = {}
        for name, t in given.items():
            own = parts(t)
            for i, part in enumerate(own):
                found[name if len(own) == 1 else f"{name}.{i}"] = part
        for o, optimizer in enumerate(self.optimizers):
            for g, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if isinstance(value, Tensor):
                        found[f"optimizer{o}.group{g}.{key}"] = value
        return found

    def counters(self) -> list[tuple[dict[str, Any], str]]:
        """Where optimizers count their steps, and averaged models count averages: (dictionary,
        key)."""
        states = [s for o in self.optimizers for s in o.state.values()]
        found = [(s, k) for s in states for k in COUNTERS if k in s]
        modules = [m for k in self.models.values() for m in k.modules()]
        return found + [(m._buffers, AVERAGES) for m in modules if _counts_averages(m, AVERAGES)]


class Kept:
    """A copy of everything that is restored later: tensors, Python values, generators."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        absent = setting.bound.absent
        self.start = {n: t.clone() for n, t in setting.tensors().items() if n not in absent}
        self._slots = [(s, s.get(), s.get().detach()) for s in setting.slots()]
        self._places = {(id(s.holder), s.key) for s, _, _ in self._slots}
        self._states = [
            {
                p: {k: v for k, v in s.items() if not isinstance(v, Tensor)}
                for p, s in o.state.items()
            }
            for o in setting.optimizers
        ]
        self._counts = {(id(s), k): copy.deepcopy(s[k]) for s, k in setting.counters()}
        self._rates: dict[Any, int] = {}
        self._groups = [copy.deepcopy(_numbers(o)) for o in setting.optimizers]
        modules = [m for k in setting.models.values() for m in k.modules()]
        objects = (*modules, *setting.optimizers, *_nested(setting.schedulers))
        self._plain = [(x, _plain(x)) for x in objects]
        self._grad = torch.is_grad_enabled()
        self._generators = (torch.get_rng_state(), random.getstate(), np.random.get_state())

    def resized(self) -> list[str]:
        """Names of tensors whose shape differs from that at the start."""
        before = {(id(s.holder), s.key): content.shape for s, _, content in self._slots}
        slots = list(self.setting.slots())
        return [
            s.name
            for s in slots
            if before.get((id(s.holder), s.key), s.get().shape) != s.get().shape
        ]

    def set_back(self, lazily_made: bool = False) -> None:
        """Restores everything. lazily_made: state created since then is kept, as zeros."""
        with torch.no_grad():
            self._set_tensors(lazily_made)
        for o, groups, states in zip(self.setting.optimizers, self._groups, self._states):
            for group, own in zip(o.param_groups, groups):
                _set_numbers(group, own)
            if not lazily_made:
                self._set_states(o, states)
        for x, plain in self._plain if not lazily_made else ():
            _set_plain(x, plain)
        torch.set_grad_enabled(self._grad)
        torch.set_rng_state(self._generators[0])
        random.setstate(self._generators[1])
        np.random.set_state(self._generators[2])

    def _set_tensors(self, lazily_made: bool) -> None:
        for slot in list(self.setting.slots()):
            if (id(slot.holder), slot.key) in self._places:
                continue
            if lazily_made:
                if not self.setting.bound.absent:  # absent state was never written
                    slot.get().detach().zero_()
            else:
                slot.drop()
        for slot, t, content in self._slots:
            slot.put(t)
            if storage_of(t) != storage_of(content):
                t.data = content
            start = self.start.get(slot.name)
            if start is not None and not same_bits(content, start):
                content.copy_(start)

    def _set_states(self, optimizer: Any, states: dict[Any, dict[str, Any]]) -> None:
        for p in list(optimizer.state):
            if p not in states:
                del optimizer.state[p]
                continue
            state = optimizer.state[p]
            for key in [k for k, v in state.items() if not isinstance(v, Tensor)]:
                if key not in states[p]:
                    del state[key]
            state.update(copy.deepcopy(states[p]))
        for state, key in self.setting.counters():
            if (id(state), key) not in self._counts:
                del state[key]
        self.count(0)

    def measure(self) -> None:
        """Measures how much each counter grew in the first step."""
        for state, key in self.setting.counters():
            start = self._counts.get((id(state), key), 0)
            self._rates[id(state), key] = int(state[key]) - int(start)

    def count(self, step: int) -> dict[int, tuple[int, int]]:
        """Sets the counters as they are after `step` steps of the job. Returns for the optimizer
        state of each parameter (by _cdata) the counter's start and its growth in a step."""
        for state, key in self.setting.counters():
            start = self._counts.get((id(state), key), 0)
            count = int(start) + step * self._rates.get((id(state), key), 0)
            if isinstance(state[key], Tensor):
                state[key].fill_(float(count))
            else:
                state[key] = count
        return {
            v._cdata: (int(self._counts.get((id(s), k), 0)), self._rates.get((id(s), k), 0))
            for o in self.setting.optimizers
            for s in o.state.values()
            for k in COUNTERS
            for v in s.values()
            if k in s and isinstance(v, Tensor)
        }


def _numbers(optimizer: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]


def _set_numbers(group: dict[str, Any], own: dict[str, Any]) -> None:
    for key in [k for k in group if k != "params" and k not in own]:
        del group[key]
    for key, value in own.items():
        if isinstance(value, Tensor) and isinstance(group.get(key), Tensor):
            group[key].copy_(value)
        else:
            group[key] = copy.deepcopy(value)


def _nested(schedulers: Sequence[Any]) -> list[Any]:
    """Schedulers, and the schedulers inside them."""
    found = []
    for s in schedulers:
        found.append(s)
        found += _nested(getattr(s, "_schedulers", ()))
    return found


def _plain(x: Any) -> dict[str, Any]:
    """Attributes without tensors: numbers, texts, and lists and dictionaries of these."""
    return {
        k: copy.copy(v)
        for k, v in vars(x).items()
        if k not in _OTHERS and "hooks" not in k and _is_plain(v)
    }


_OTHERS = {"_parameters", "_buffers", "_modules", "state", "param_groups"}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, set)):
        return all(_is_plain(v) for v in value)
    if isinstance(value, dict):
        return all(_is_plain(v) for v in value.values())
    return isinstance(value, PLAIN)


def _set_plain(x: Any, plain: dict[str, Any]) -> None:
    now = vars(x)
    for key, value in plain.items():
        if isinstance(value, (list, dict, set)) and type(now.get(key)) is type(value):
            continue_as(now[key], value)
        else:
            now[key] = value


def continue_as(held: Any, value: Any) -> None:
    """Replaces the content of a list, dictionary or set, which stays the same object. A subclass
    may refuse changes; then no step has changed it."""
    if type(held) not in (list, dict, set) and held == value:
        return
    held.clear()
    (held.extend if isinstance(held, list) else held.update)(value)
