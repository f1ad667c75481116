"""The command line: its options, and what it prints."""

from __future__ import annotations

import argparse
import resource
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._library import Error
from ._graph import Port, shown
from ._job import Answering
from ._model import Model, load, told_dims, told_port
from ._read import read
from ._recognise import FORMS
from ._table import REFUSED, TABLE
from ._train import LOSSES, OPTIMIZERS, Training, chosen
from ._types import HALVES, NAMES, sized

MEMORY_GIB = 16  # limit of the process's memory, unless --memory sets another


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python3 -m repops.onnx", description="Makes a job of a model of ONNX."
    )
    p.add_argument("model", nargs="?", help="a .onnx file")
    p.add_argument("--list", action="store_true", help="the operators that are taken and refused")
    p.add_argument("--out", metavar="FOLDER", help="where the job is written")
    p.add_argument("--data", metavar="FILE", help="arrays by the names of inputs, .npz")
    p.add_argument("--shape", action="append", default=[], metavar="INPUT=8x3x32x32")
    p.add_argument("--dim", action="append", default=[], metavar="NAME=8", help="of all inputs")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--check", type=int, default=0, metavar="STEPS", help="compare with verde")
    p.add_argument("--as-is", action="store_true", help="recognise nothing")
    p.add_argument("--memory", type=int, default=MEMORY_GIB, metavar="GIB")
    t = p.add_argument_group("training")
    t.add_argument("--train", action="store_true")
    t.add_argument("--loss", metavar="KIND:OUTPUT,TARGET", help=f"{', '.join(LOSSES)}, output")
    t.add_argument("--optimizer", default="adamw", help=f"{', '.join(OPTIMIZERS)}; adamw:lr=0.01")
    t.add_argument("--steps", type=int, default=100)
    t.add_argument("--batch", type=int, default=8)
    t.add_argument("--freeze", action="append", default=[], metavar="PATTERN")
    return p


def _limited(gib: int) -> None:
    """Limits the process's memory, since a stranger's file must not take the whole machine's."""
    if gib < 1:
        raise Error(f"--memory is {gib}; expected 1 or more")
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    want = gib << 30
    soft = want if most == resource.RLIM_INFINITY else min(want, most)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, most))


# ---- data ----


def _pairs(words: list[str], option: str) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        if not equals or not name:
            raise Error(f"{option} {shown(word)}: expected NAME=VALUE")
        found[name] = value
    return found


def _numbers(text: str, what: str) -> list[int]:
    parts = text.split("x") if text else []
    if not all(p.isascii() and p.isdigit() and len(p) <= 10 for p in parts):
        raise Error(f"{what} is {shown(text)}; expected numbers, as 8x3x32x32")
    return [int(p) for p in parts]


def _shape(port: Port, shapes: dict[str, str], dims: dict[str, str]) -> tuple[int, ...]:
    what = f"input {shown(port.name)}"
    if port.name in shapes:
        return sized(_numbers(shapes[port.name], f"--shape of {what}"), what)
    if port.dims is None:
        raise Error(f"{what} has no shape; give --shape {shown(port.name)}=...")
    own = []
    for d in port.dims:
        if isinstance(d, str) and d in dims:
            own += _numbers(dims[d], f"--dim {shown(d)}")
        elif isinstance(d, int):
            own.append(d)
        else:
            told = told_dims(port.dims)
            raise Error(f"{what} is {told}; bind its names: --shape {shown(port.name)}=...")
    return sized(own, what)


def _drawn(model: Model, shapes: dict[str, str], dims: dict[str, str], seed: int) -> dict[str, Any]:
    """Random inputs in place of data: normal numbers; integers are 0 or 1."""
    rng, made = np.random.default_rng(seed), {}
    names = {p.name for p in model.inputs}
    for name in shapes:
        if name not in names:
            raise Error(f"--shape: the model has no input {shown(name)}")
    for port in model.inputs:
        shape = _shape(port, shapes, dims)
        kind = "float32" if port.type in HALVES else NAMES.get(port.type, "")
        if kind in ("float32", "float64"):
            made[port.name] = rng.standard_normal(shape).astype(kind)
        elif kind in ("bool", "int8", "uint8", "int16", "int32", "int64"):
            made[port.name] = rng.integers(0, 2, shape).astype(kind)
        else:
            raise Error(f"input {shown(port.name)} is {kind or 'of an unknown type'}")
    return made


def _loaded(path: str) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise Error(f"{shown(path)} is no .npz file")
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise Error(f"cannot read {shown(path)}: {error.strerror or 'no .npz file'}") from None
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise Error(f"cannot read {shown(path)}: {shown(str(error))}") from None


# ---- what is printed ----


def _told(model: Model) -> None:
    whole = model.whole
    print(f"model       {whole.path}, opset {whole.opsets.get('', '?')}, {whole.producer or '?'}")
    for port in model.inputs:
        print(f"input       {told_port(port)}")
    for port in model.outputs:
        print(f"output      {told_port(port)}")
    count = sum(p.numel() for p in model.parameters())
    held = sum(b.numel() for b in model.buffers())
    print(f"parameters  {len(list(model.parameters()))} tensors of {count} numbers are trained")
    print(f"constants   {len(list(model.buffers()))} tensors of {held} numbers")
    print(f"nodes       {len(model.graph.nodes)}, {model.folded} of them folded")
    for form in FORMS:
        if model.recognised.get(form):
            print(f"recognised  {form}: {model.recognised[form]}")


def listed() -> list[str]:
    lines = []
    for (domain, name), entry in sorted(TABLE.items()):
        note = f"; {entry.note}" if entry.note else ""
        lines.append(f"{domain + '.' if domain else ''}{name}: {entry.theme}{note}")
    for (domain, name), why in sorted(REFUSED.items()):
        lines.append(f"{domain + '.' if domain else ''}{name}: refused: {why}")
    return lines


# ---- what is done ----


def _answering(o: argparse.Namespace) -> Any:
    model = load(o.model, recognise=not o.as_is)
    _told(model)
    if o.data:
        data = _loaded(o.data)
    else:
        data = _drawn(model, _pairs(o.shape, "--shape"), _pairs(o.dim, "--dim"), o.seed)
        print(f"data        drawn at random, seed {o.seed}; --data gives others")
    return Answering(model, data, o.out or "", o.seed) if o.out else None


def _training(o: argparse.Namespace) -> Any:
    if not o.loss or not o.data or not o.out:
        raise Error("--train needs --loss, --data and --out")
    whole = read(o.model)
    names = chosen(whole.graph, o.freeze)
    model = load(o.model, lambda name, t: name in names, recognise=not o.as_is)
    _told(model)
    data = _loaded(o.data)
    return Training(model, data, o.out, o.loss, o.optimizer, o.batch, o.steps, o.seed)


def main(words: list[str]) -> int:
    o = _parser().parse_args(words)
    if o.list:
        print("\n".join(listed()))
        return 0
    if not o.model:
        raise Error("which model? give a .onnx file, or --list")
    _limited(o.memory)
    made = _training(o) if o.train else _answering(o)
    if made is None:
        print("no job is written: give --out FOLDER")
        return 0
    digest = made.capture()
    print(f"job         {Path(o.out)}, {made.job.steps} step{'s' * (made.job.steps != 1)}")
    print(f"hash        {digest}")
    if o.check:
        losses = made.check(o.check)
        told = f", losses {' '.join(f'{x:.6g}' for x in losses)}" if losses else ""
        print(f"checked     {min(o.check, made.job.steps)} steps by verde: the same bits{told}")
    sys.stdout.flush()
    return 0
