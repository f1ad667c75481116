"""Runs programs of public repositories in the block: are bits equal, and why do others not run?

    cd python/tests; python3 -m outside FOLDER [NAME...]

FOLDER has a checkout of each repository as owner+name; missing ones are cloned from GitHub, at
the commit that REPOSITORIES states. Each program, with random data and small sizes, makes two steps
of training: once without the block, then in it with scalar code and 1 thread, and with AVX2 and
2 threads. Each gives a row; docs/outside.md has these rows.

Needed beside PyTorch: einops, scipy, pandas, torchvision, timm, torch_geometric, accelerate,
ema-pytorch, pytorch-fid, opt-einsum, tensorly, tensorly-torch, reformer-pytorch. A program whose
packages are missing is listed so. No code of the repositories is here; a few of their
imports that training does not use are replaced by empty modules.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import torch
from torch import nn

from . import graphs, media, series  # noqa: F401
from .base import PROGRAMS, REPOSITORIES, ROOT, folder


def digest(model: nn.Module, losses: list[torch.Tensor]) -> str:
    state = [*model.state_dict().items(), *((str(i), x) for i, x in enumerate(losses))]
    total = hashlib.sha256()
    for name, x in state:
        if not isinstance(x, torch.Tensor):
            continue  # a setting, not a tensor
        total.update(name.encode())
        total.update(x.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()[:16]


def train(name: str) -> str:
    """Trains a program for two steps; returns hashes of its model and losses."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    made = PROGRAMS[name][2]()
    losses: list[torch.Tensor] = []
    if isinstance(made, nn.Module):  # the program has trained it itself
        model = made
    else:
        model, loss = made
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(2):
            optimizer.zero_grad()
            losses.append(loss())
            losses[-1].backward()
            optimizer.step()
    if not all(x.isfinite().all() for x in losses):
        raise ArithmeticError("a loss is not finite")
    return digest(model, losses) + "".join(f" {x.item():.5f}" for x in losses)


def one(name: str, setting: str) -> None:
    """Runs in a forked process, so that programs' imports do not interfere."""
    try:
        import repops.torch

        with contextlib.nullcontext() if setting == "plain" else repops.torch.reproducible():
            text = "ok " + train(name)
    except BaseException as error:  # noqa: BLE001
        if os.environ.get("OUTSIDE_TRACE"):
            traceback.print_exc()
        text = f"no {type(error).__name__}: {error}".splitlines()[0]
    print(f"{name}\t{text}", file=sys.__stdout__, flush=True)


SETTINGS = {
    "plain": {"OMP_NUM_THREADS": "1"},
    "scalar": {"REPOPS_CPU": "scalar", "ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1"},
    "avx2": {"REPOPS_CPU": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"},
}


def each(setting: str, names: list[str]) -> None:
    sys.stdout = sys.stderr
    for name in names:
        child = os.fork()
        if not child:
            one(name, setting)
            os._exit(0)
        os.waitpid(child, 0)


def found(setting: str, names: list[str]) -> dict[str, str]:
    """For each program "ok", its hash and losses, or "no" and the error."""
    command = [sys.executable, "-Wignore", "-moutside", str(ROOT[0]), "--setting", setting]
    done = subprocess.run(
        [*command, *names],
        env={**os.environ, **SETTINGS[setting], "PYTHONHASHSEED": "0"},
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("OUTSIDE_TRACE") else subprocess.DEVNULL,
        text=True,
    )
    return dict(line.split("\t") for line in done.stdout.splitlines())


def clone(source: str) -> None:
    where = folder(source)
    if not where.exists():
        git = ["git", "-C", str(where)]
        subprocess.run(["git", "clone", "-q", f"https://github.com/{source}", where], check=True)
        subprocess.run([*git, "checkout", "-q", REPOSITORIES[source]], check=True)


def verdict(plain: str, scalar: str, avx2: str) -> str:
    if not plain.startswith("ok"):
        return f"fails without the block: {plain[3:]}"
    for text in (scalar, avx2):
        if not text.startswith("ok"):
            place = re.sub(r"LeftoverError: (\S+)\.\w+ at \S+", r"`\1`", text[3:])
            return f"refused: {place}"
    return "equal" if scalar == avx2 else "**other bits**"


def table(names: list[str], results: list[dict[str, str]]) -> str:
    lines = ["| Program | Repository | What it needs | In the block |", "| --- | --- | --- | --- |"]
    for name in names:
        source, why, _ = PROGRAMS[name]
        said = verdict(*(r.get(name, "no it ended") for r in results))
        lines.append(f"| {name} | {source} | {why} | {said} |")
    return "\n".join(lines)


def main() -> None:
    ROOT.append(Path(sys.argv[1]).resolve())
    if sys.argv[2:3] == ["--setting"]:
        return each(sys.argv[3], sys.argv[4:])
    names = sys.argv[2:] or list(PROGRAMS)
    for source in {PROGRAMS[name][0] for name in names} & set(REPOSITORIES):
        clone(source)
    print(table(names, [found(setting, names) for setting in SETTINGS]))


if __name__ == "__main__":
    main()
