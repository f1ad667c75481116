"""Runs a job with the command `verde`, which reports each step as it is computed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from .._library import Error

STOP_SECONDS = 30  # time to end after a signal, before it is killed
WARNING = "warning: "


class Step(NamedTuple):
    """A finished step. loss: None if the step returns none. saved: the last step whose state is on
    disk. seconds: since the run was started or continued."""

    step: int
    steps: int
    loss: float | None
    saved: int
    seconds: float


def command_of(verde: str | None) -> str:
    """The command: `verde` if given, else the environment variable VERDE, else "verde"."""
    return verde or os.environ.get("VERDE") or "verde"


def run(
    job: Path,
    out: Path,
    on_line: Callable[[dict[str, Any]], None],
    verde: str | None,
    **options: Any,
) -> dict[str, Any]:
    """Runs a job and returns the last line of `--json`; on_line gets the lines before.

    Raises Error with the command's message. If on_line raises, or after Ctrl-C, the command is
    stopped first; the same call continues from the last state on disk."""
    arguments = [command_of(verde), "run", str(job), "--out", str(out), "--json"]
    for name, value in options.items():
        if value is not None:
            arguments += [f"--{name}", str(value)]
    last: dict[str, Any] = {}
    with tempfile.TemporaryFile() as errors, _started(arguments, errors) as process:
        for line in process.stdout or ():
            if last:
                on_line(last)
            last = json.loads(line)
        code = process.wait()
        said = _said(errors)
    if code or not last:
        raise Error(said[-1] if said else f"{arguments[0]} ended with {code}")
    for line in said:
        if line.startswith(WARNING):
            warnings.warn(line.removeprefix(WARNING), stacklevel=3)
    return last


@contextlib.contextmanager
def _started(arguments: list[str], errors: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """Runs the command. If the block is left early, the command is stopped as by Ctrl-C, which
    keeps the states on disk."""
    try:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True)
    except OSError as error:
        raise Error(
            f"cannot run {arguments[0]}: {error.strerror}; its folder must be in PATH, or the "
            "environment variable VERDE name it"
        ) from None
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def _said(errors: IO[bytes]) -> list[str]:
    """The lines on standard error, without the command's name."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return [line.removeprefix("verde: ") for line in lines]


class Told:
    """Calls back for each line of a training run."""

    def __init__(
        self,
        on_step: Callable[[Step], Any] | None,
        on_state: Callable[[int], Any] | None,
    ) -> None:
        self.on_step, self.on_state, self.saved = on_step, on_state, -1

    def __call__(self, line: dict[str, Any]) -> None:
        loss = None if line["loss"] is None else float(line["loss"])
        step = Step(line["step"], line["steps"], loss, line["saved"], line["seconds"])
        if self.on_step:
            self.on_step(step)
        before = line["resumed_at"] if self.saved < 0 else self.saved
        self.saved = max(before, step.saved)
        if self.on_state and self.saved > before:
            self.on_state(self.saved)
