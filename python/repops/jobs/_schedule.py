"""Numbers of optimizers that change from step to step, as schedulers set them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._library import Error


def numbers_of(optimizers: Sequence[Any]) -> dict[str, float]:
    """The numbers in the parameter groups, by name."""
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
    """The values of each number that changes, at all steps. Steps the schedulers."""
    rows: list[dict[str, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(steps if schedulers else 1):
            if step:
                for s in schedulers:
                    _step(s)
            rows.append(numbers_of(optimizers))
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    found = {name: values for name, values in columns.items() if (values != values[0]).any()}
    for name in found:
        if ".betas" in name:
            raise Error(
                f"a scheduler changes {name}, of which a program keeps powers; give "
                "cycle_momentum=False, or leave betas as they are"
            )
    return found


def _step(scheduler: Any) -> None:
    try:
        scheduler.step()
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise Error(
            f"{type(scheduler).__name__}.step() takes what a step gives (a loss), so that nobody "
            "can run it before; give the learning rates as job.table(values)"
        ) from None


def probes(columns: dict[str, Any], steps: int) -> list[int]:
    """Steps to record besides step 0: the next and the last one; those at which a changing number
    is greatest or least, as code may compare it with a limit; and enough steps to tell each number
    from its value at step 0 and from the other numbers."""
    found = [1, steps - 1] if steps > 2 else [steps - 1]
    matrix = np.array(list(columns.values()), "<f4")
    found += [int(at) for row in matrix for at in (np.argmax(row), np.argmin(row))]
    for i, row in enumerate(matrix):
        for other in (np.full_like(row, row[0]), *matrix[:i]):
            apart = row != other
            if apart.any() and not apart[[0, *found]].any():
                found.append(int(np.argmax(apart)))
    return [at for at in dict.fromkeys(found) if at or steps == 1]


def put(optimizers: Sequence[Any], columns: dict[str, Any], step: int) -> None:
    """Sets the numbers of a step in the optimizers."""
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
