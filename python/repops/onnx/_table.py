"""The table of operators: what computes each, by its domain and name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """random: it draws, so that its results are never constant. theme: where docs list it."""

    function: Callable[..., Any]
    random: bool
    theme: str
    note: str


TABLE: dict[tuple[str, str], Entry] = {}
REFUSED: dict[tuple[str, str], str] = {}


def operator(
    *names: str, domain: str = "", random: bool = False, note: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function computes these operators: it is given the call, and the inputs; None stands for
    one that is left out."""

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
