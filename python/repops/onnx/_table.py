"""The table of operators: the function that computes each, by domain and name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """random: results are never constant. theme: heading in docs/onnx.md."""

    function: Callable[..., Any]
    random: bool
    theme: str
    note: str


TABLE: dict[tuple[str, str], Entry] = {}
REFUSED: dict[tuple[str, str], str] = {}


def operator(
    *names: str, domain: str = "", random: bool = False, note: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for these operators. It takes the call and the inputs; None stands for
    an absent input."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        theme = function.__module__.rpartition("._")[2]
        for name in names:
            if TABLE.setdefault(
                (domain, name), Entry(function, random, theme, note)
            ).function is not (function):
                raise ValueError(f"{name} has two functions")
        return function

    return register


def refuse(why: str, *names: str, domain: str = "") -> None:
    for name in names:
        REFUSED[domain, name] = why


THEMES = {
    "arithmetic": "elements",
    "activations": "activations",
    "reductions": "sums, orders, running totals",
    "movement": "movement, shapes, types",
    "places": "places",
    "products": "products, convolutions",
    "pools": "pools",
    "norms": "norms",
    "attention": "attention",
    "recurrent": "recurrent layers",
    "quantized": "8-bit integers",
    "resize": "resizing",
    "images": "sampling of images",
    "signals": "transforms, windows",
    "losses": "losses",
    "random": "draws",
    "control": "control, sequences",
    "learners": "ai.onnx.ml",
    "training": "ai.onnx.preview.training",
}


def by_theme() -> dict[str, list[str]]:
    """Names of the supported operators, with their domains, by theme."""
    found: dict[str, list[str]] = {t: [] for t in THEMES.values()}
    for (domain, name), entry in sorted(TABLE.items()):
        found[THEMES[entry.theme]].append(f"{domain}.{name}" if domain else name)
    return found
