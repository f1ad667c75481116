"""Where in the user's code an operator is called."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import torch

from ._mode import user_frame


class Site(NamedTuple):
    """Where an operator is called; for an operator of a backward pass, where its forward was
    called."""

    place: str  # file and line
    module: str  # the module's name in the model; "" outside of modules
    backward: bool
    name: str  # "aten.mm.default"


class Sites:
    """Follows the modules of models, and remembers where autograd nodes were made.

    Used with `with`: `here` gives the sites of operators called inside."""

    def __init__(self, *models: torch.nn.Module) -> None:
        self._models = models
        self._hooks: list[Any] = []
        self._modules: list[str] = []
        self._made: dict[int, tuple[str, str]] = {}  # keyed by the autograd node's sequence number

    def __enter__(self) -> Sites:
        for model in self._models:
            for name, module in model.named_modules():
                enter, leave = self._follow(name)
                self._hooks.append(module.register_forward_pre_hook(enter))
                self._hooks.append(module.register_forward_hook(leave, always_call=True))
        return self

    def __exit__(self, *exception: Any) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        self._modules.clear()

    def _follow(self, name: str) -> tuple[Any, Any]:
        def enter(*_: Any) -> None:
            self._modules.append(name)

        def leave(*_: Any) -> None:
            if self._modules:
                self._modules.pop()

        return enter, leave

    def here(self, name: str) -> Site:
        """The site of the operator that is being called."""
        frame, engine = user_frame(sys._getframe(1))
        text = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "unknown"
        if engine:
            node = torch._C._current_autograd_node()
            found = self._made.get(node._sequence_nr()) if node is not None else None
            return Site(*(found or (text, "")), True, name)
        here = text, self._modules[-1] if self._modules else ""
        # This number is of the node made last. If this operator made none, the entry stays the
        # other's.
        self._made.setdefault(torch._C._autograd._get_sequence_nr() - 1, here)
        return Site(*here, False, name)
