"""Numbers of optimizers that change from step to step, as schedulers set them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._library import Error


def numbers_of(optimizers: Sequence[Any]) -> dict[str, float]:
    """Numbers of the groups of parameters, by their places."""
    found = {}
    for o, optimizer in enumerate(optimizers):
        for g, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                if key == "params" or isinstance(value, (bool, str)) or value is None:
                    continue
                for i, item in enumerate(value if isinstance(value, (tuple, list)) else [value]):
                    if np.ndim(item) == 0 and not isinstance(item, (bool, str, type(None))):
                        found[f"optimizer{o}.group{g}.{key}{f'.{i}' if i else ''}"] = float(item)
    return found


def series(optimizers: Sequence[Any], schedulers: Sequence[Any], steps: int) -> dict[str, Any]:
    """What each number is at each step, if it changes. Everything stays as it was."""
    states = [copy.deepcopy(s.state_dict()) for s in (*optimizers, *schedulers)]
    rows: list[dict[str, float]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step in range(steps):
                rows.append(numbers_of(optimizers))
                if step + 1 < steps:
                    for s in schedulers:
                        _step(s)
    finally:
        for s, state in zip((*optimizers, *schedulers), states):
            s.load_state_dict(state)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
    return {name: values for name, values in columns.items() if (values != values[0]).any()}


def _step(scheduler: Any) -> None:
    try:
        scheduler.step()
    except TypeError:
        raise Error(
            f"{type(scheduler).__name__}.step() takes what a step gives (a loss), so that nobody "
            "can run it before; give the learning rates as job.table(values)"
        ) from None


def probes(columns: dict[str, Any], steps: int) -> list[int]:
    """Steps at which all numbers that change differ from step 0, and from each other."""
    if not columns:
        return [min(1, steps - 1)]
    matrix = np.array(list(columns.values()), "<f4")
    found: list[int] = []
    for row in matrix:
        if not any(row[p] != row[0] for p in found):
            found.append(int(np.argmax(row != row[0])))
    for i in range(len(matrix)):
        for j in range(i):
            apart = matrix[i] != matrix[j]
            if apart.any() and not any(apart[p] for p in [0, *found]):
                found.append(int(np.argmax(apart)))
    return found or [min(1, steps - 1)]


def put(optimizers: Sequence[Any], columns: dict[str, Any], step: int) -> None:
    """The numbers of a step, where optimizers read them."""
    for o, optimizer in enumerate(optimizers):
        for g, group in enumerate(optimizer.param_groups):
            for key, value in list(group.items()):
                name = f"optimizer{o}.group{g}.{key}"
                if isinstance(value, (tuple, list)) and key != "params":
                    names = [f"{name}.{i}" if i else name for i in range(len(value))]
                    group[key] = type(value)(
                        float(columns[n][step]) if n in columns else v for n, v in zip(names, value)
                    )
                elif name in columns and np.ndim(value) == 0 and hasattr(value, "fill_"):
                    value.fill_(float(columns[name][step]))
                elif name in columns:
                    group[key] = float(columns[name][step])
