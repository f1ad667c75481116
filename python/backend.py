"""Builds the wheel with Python's own library alone: a PEP 517 backend, and a command.

python3 backend.py LIBRARY FOLDER     writes the wheel into the folder, and its name to stdout

The wheel holds the package and librepops.so.1, so it is of one architecture, and of the oldest
glibc that the library needs: what its symbols' versions say.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
SONAME = "librepops.so.1"
DATE = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal contents give equal wheels


def version() -> str:
    """RO_VERSION of repops.h."""
    header = (TOP / "repops/include/repops/repops.h").read_text()
    return re.search(r'#define RO_VERSION\s+"(.*)"', header)[1]


def _objdump(library: Path) -> tuple[str, str]:
    tool = os.environ.get("OBJDUMP") or shutil.which("objdump")
    if not tool:
        raise SystemExit(
            "the wheel needs objdump, of binutils, to tell which glibc the library needs"
        )
    run = [tool, "-T", "-f", str(library)]
    text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    machine = (
        "aarch64" if "aarch64" in text else "x86_64" if "x86-64" in text else platform.machine()
    )
    return text, machine


def tag(library: Path) -> str:
    """The wheel's tag: any Python 3, no interface of it, this glibc or newer, this machine."""
    text, machine = _objdump(library)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", text)}
    if not versions:
        raise SystemExit(f"{library} names no version of glibc")
    major, minor = max(max(versions), (2, 17))
    return f"py3-none-manylinux_{major}_{minor}_{machine}"


def _metadata() -> str:
    fields = (HERE / "METADATA.in").read_text().replace("@VERSION@", version())
    return fields + "\n" + (HERE / "README.md").read_text()


def _stripped(library: Path, folder: Path) -> Path:
    """The library without debugging information, which is nine tenths of it."""
    copy = folder / SONAME
    shutil.copyfile(library, copy)
    tool = os.environ.get("STRIP") or shutil.which("strip")
    if tool:
        subprocess.run([tool, "--strip-unneeded", str(copy)], check=True)
    return copy


def _files(library: Path) -> list[tuple[str, bytes]]:
    package = sorted(
        p for p in (HERE / "repops").rglob("*") if p.suffix in (".py", ".pyi", ".typed")
    )
    info = f"repops-{version()}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: repops\nRoot-Is-Purelib: false\nTag: {tag(library)}\n"
    return [
        *[(str(p.relative_to(HERE)), p.read_bytes()) for p in package],
        (f"repops/lib/{SONAME}", library.read_bytes()),
        (f"{info}/licenses/LICENSE", (TOP / "LICENSE").read_bytes()),
        (f"{info}/METADATA", _metadata().encode()),
        (f"{info}/WHEEL", wheel.encode()),
    ]


def _record(files: list[tuple[str, bytes]], info: str) -> bytes:
    lines = []
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()


def write(library: Path, folder: Path) -> str:
    """Writes the wheel; returns its name."""
    info = f"repops-{version()}.dist-info"
    with tempfile.TemporaryDirectory() as place:
        files = _files(_stripped(library, Path(place)))
    name = f"repops-{version()}-{tag(library)}.whl"
    new = folder / (name + ".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [*files, (f"{info}/RECORD", _record(files, info))]:
            entry = zipfile.ZipInfo(path, DATE)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    os.replace(new, folder / name)
    return name


# ---- PEP 517 ----


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """pip wheel python/: of the library that REPOPS_LIBRARY names, else of build/lib."""
    library = Path(os.environ.get("REPOPS_LIBRARY") or TOP / "build/lib" / SONAME)
    if not library.exists():
        raise SystemExit(f"{library} does not exist: run make lib first, or set REPOPS_LIBRARY")
    return write(library, Path(wheel_directory))


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """There is none: the C sources are the repository's."""
    raise SystemExit("repops has no source distribution: build the wheel from the repository")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: backend.py LIBRARY FOLDER")
    print(write(Path(sys.argv[1]), Path(sys.argv[2])))
