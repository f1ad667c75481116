"""A job's folder, which every command of `verde` takes."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from verde._files import writing

from .._library import Error
from ._capture import relative
from ._graph import Program, hash_of

EVALUATION = "evaluate"  # an evaluation's folder, inside the job's
# Names of the files in a job's folder.
OWN = re.compile(r"program|pack|data\.json|places\.json|data[0-9]+\.npy|weights[0-9]+\.safetensors")
OWN_AT = 17  # offset in a pack: how many data tensors each of its programs has of its own
PLACES_BYTES_MAX = 16 << 20  # what `verde graph` reads at most


def _put(path: Path, array: np.ndarray, held: Path | None) -> int:
    """Writes a data tensor as an .npy file, or links the file `held`. Returns where its bytes
    begin."""
    try:
        os.link(held or "", path)
    except OSError:
        with writing(path) as file:
            np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return path.stat().st_size - array.nbytes


def _linked(new: Path, file: Path, files: dict[Path, str]) -> str:
    """The name that a user's file gets in the job: a link to it if possible, else a copy."""
    if file not in files:
        files[file] = f"weights{len(files)}.safetensors"
        to, whole = new / files[file], os.path.realpath(file)
        try:
            os.link(whole, to)
        except OSError:
            shutil.copyfile(whole, to)
    return files[file]


def replaceable(folder: Path) -> None:
    """Raises Error unless a job may be written there: nothing is there, or only a job."""
    there = folder
    while not os.path.lexists(there):
        there = there.parent
    if there.is_symlink() and there == folder or not there.is_dir():
        raise Error(f"{there} is there, and is no folder")
    for file in sorted(folder.iterdir() if there == folder else ()):
        is_folder = file.is_dir() and not file.is_symlink()
        if is_folder and file.name == EVALUATION:
            replaceable(file)
        elif is_folder or not OWN.fullmatch(file.name):
            raise Error(f"{folder} is there, and holds no job: it has {file.name}")


def write(
    folder: Path, program: Program, held: Path | None = None, pack: bytes | None = None
) -> str:
    """Writes a job's folder, whole or not at all; returns the program's hash. held: a folder with
    the same data, whose files are linked. pack: programs to write in place of this one; they share
    its data except the first ones."""
    folder = Path(folder)
    replaceable(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as place:
            new = Path(place) / "new"
            digest = _write(new, program, held, pack)
            if folder.exists():
                os.rename(folder, Path(place) / "old")
            os.rename(new, folder)
    except OSError as error:
        raise Error(f"cannot write {folder}: {error.strerror}") from None
    return digest


def _write(new: Path, program: Program, held: Path | None, pack: bytes | None) -> str:
    new.mkdir()
    places = []
    own = 0 if pack is None else int.from_bytes(pack[OWN_AT : OWN_AT + 2], "little")
    files: dict[Path, str] = {}  # names in the job of the users' files with weights
    for i, d in enumerate(d for d in program.data[own:] if d.given):
        if d.stored is not None:
            name, offset = _linked(new, d.stored.file, files), d.stored.offset
        else:
            name = f"data{i}.npy"
            offset = _put(new / name, d.array, held and held / name)
        places.append({"name": d.name, "file": name, "offset": offset})
    encoded = program.encode()
    for name, content in (
        ("program", encoded) if pack is None else ("pack", pack),
        ("data.json", json.dumps({"verde": 1, "data": places}, indent=1).encode()),
        ("places.json", json.dumps(_places(program), indent=0).encode()),
    ):
        if name == "places.json" and len(content) > PLACES_BYTES_MAX:
            continue  # `verde graph` would not read it
        with writing(new / name) as file:
            file.write(content)
    return hash_of(encoded)


def _places(program: Program) -> dict[str, Any]:
    """Where the nodes come from in the user's code: for people, not part of the program."""

    def told(node: Any) -> str:
        site = node.place
        if site is None:
            return ""
        return ("backward of " if site.backward else "") + relative(site.place)

    return {"verde_places": 1, "step": [told(n) for n in program.step.nodes]}
