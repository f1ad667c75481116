"""Errors about a step that cannot become a program."""

from __future__ import annotations

from collections.abc import Sequence

from .._library import Error
from ._record import RANDOM, Problem
from ._taken import BOXES, DISTRIBUTION, NORM, SCALER, SHARED, WAYS

SHOWN = 12  # problems that an error lists
VAGUE = ("no rule for it",)  # reasons that follow from other problems
SPOKEN = {"_local_scalar_dense": "item()"}  # operators that users know by other names

# Advice on what to write instead, by the operator's name; docs/any-model.md has the same.
INSTEAD = {
    "item()": "compute both and choose by torch.where; print losses outside of the step",
}
# The same by the reason, for any operator.
INSTEAD_OF = {
    RANDOM: "draw before, and declare job.table(values)",
    SHARED: "of data alone, tolist() may be read",
    DISTRIBUTION: "give it validate_args=False",
    BOXES: "take repops.torch.functional.nms_mask, and a sampling_ratio",
    NORM: "leave error_if_nonfinite out",
    WAYS: "for F.one_hot(y, n) write y[:, None] == torch.arange(n)",
    SCALER: "leave it out: a step computes in float32",
}


class CaptureError(Error):
    """The step cannot become a program. The text says where and why, and what to write instead;
    `problems` has all. A vague reason is only shown for an operator without a better one."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        better = {_where(p) for p in problems if p.why not in VAGUE}
        told = [p for p in problems if p.why not in VAGUE or _where(p) not in better]
        lines = list(dict.fromkeys(_told(p) for p in told))
        more = f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        super().__init__("the step is no program:\n  " + "\n  ".join(lines[:SHOWN]) + more)


def _where(p: Problem) -> tuple[str, bool, str]:
    return p.site.place, p.site.backward, _called(p)


def _called(p: Problem) -> str:
    """The operator's name without its overload, as users know it."""
    name = p.site.name or p.name
    if name.startswith("aten."):
        name = name.split(".")[1]
    return SPOKEN.get(name, name)


def _told(p: Problem) -> str:
    of = "backward of " if p.site.backward else ""
    called, module = _called(p), f", in {p.site.module}" if p.site.module else ""
    at = f"{of}{p.site.place}{module}: " if p.site.place else ""
    instead = INSTEAD_OF.get(p.why) or INSTEAD.get(called)
    return f"{at}{called + ': ' if called else ''}{p.why}{'; ' + instead if instead else ''}"
