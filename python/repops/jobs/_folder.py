"""The folder of a job, which every command of `verde` takes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from verde._files import writing

from .._library import Error
from ._capture import relative
from ._graph import Program, hash_of

EVALUATION = "evaluate"  # the folder of an evaluation, in the job's


def _put(path: Path, array: np.ndarray, held: Path | None) -> int:
    """The bytes of a data tensor as an .npy file, the one that is held if it may be; returns where
    they begin."""
    try:
        os.link(held or "", path)
    except OSError:
        with writing(path) as file:
            np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return path.stat().st_size - array.nbytes


def write(folder: Path, program: Program, held: Path | None = None) -> str:
    """The folder of a job, whole or not at all; returns the program's hash. held: another one with
    the same data."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not (folder / "program").exists() and any(folder.iterdir()):
        raise Error(f"{folder} is there, and holds no job")
    new = folder.with_name(folder.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    places = []
    for i, d in enumerate(d for d in program.data if d.given):
        name = f"data{i}.npy"
        offset = _put(new / name, d.array, held and held / name)
        places.append({"name": d.name, "file": name, "offset": offset})
    encoded = program.encode()
    for name, content in (
        ("program", encoded),
        ("data.json", json.dumps({"verde": 1, "data": places}, indent=1).encode()),
        ("places.json", json.dumps(_places(program), indent=0).encode()),
    ):
        with writing(new / name) as file:
            file.write(content)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(new, folder)
    return hash_of(encoded)


def _places(program: Program) -> dict[str, Any]:
    """Where nodes come from: for people, and no part of the program."""

    def told(node: Any) -> str:
        site = node.place
        if site is None:
            return ""
        return ("backward of " if site.backward else "") + relative(site.place)

    return {"verde_places": 1, "step": [told(n) for n in program.step.nodes]}
