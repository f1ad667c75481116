"""Builds the wheel with Python's own library alone: a PEP 517 backend, and a command.

python3 backend.py LIBRARIES FOLDER   writes the wheel into the folder, and its name to stdout

The source distribution is the tarball of `make dist`; pip compiles it, which needs make and a C
compiler.

The wheel holds the package and the libraries, so it is for one architecture, and for the oldest
glibc that has the libraries' versioned symbols.
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
PACKAGES = ("repops", "verde")
LIBRARIES = ("librepops.so.1", "libverde_commit.so")
# Libraries of the system that they may need; any other would have to be in the wheel.
SYSTEM = re.compile(r"(lib(c|m|dl|pthread)|ld-linux.*|librepops)\.so\.\d+")
DATE = (1980, 1, 1, 0, 0, 0)  # every file's date, so that equal contents give equal wheels


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
    run = [tool, "-T", "-p", "-f", str(library)]
    text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    machine = (
        "aarch64" if "aarch64" in text else "x86_64" if "x86-64" in text else platform.machine()
    )
    return text, machine


def _needs(library: Path) -> tuple[set[tuple[int, ...]], str]:
    """The versions of glibc that a library needs, and its machine."""
    text, machine = _objdump(library)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", text)}
    if not versions:
        raise SystemExit(f"{library} names no version of glibc")
    for name in re.findall(r"^ *NEEDED +(\S+)", text, re.MULTILINE):
        if not SYSTEM.fullmatch(name):
            raise SystemExit(f"{library} needs {name}, which a wheel cannot count on")
    return versions, machine


def tag(libraries: list[Path]) -> str:
    """The wheel's tag: any Python 3, no ABI, this glibc or newer, this machine."""
    needs = [_needs(library) for library in libraries]
    machines = {machine for _, machine in needs}
    if len(machines) > 1:
        raise SystemExit(f"libraries of several machines: {', '.join(sorted(machines))}")
    major, minor = max((2, 17), *[max(versions) for versions, _ in needs])
    return f"py3-none-manylinux_{major}_{minor}_{machines.pop()}"


def _metadata() -> str:
    fields = (HERE / "METADATA.in").read_text().replace("@VERSION@", version())
    return fields + "\n" + (HERE / "README.md").read_text()


def _stripped(library: Path, folder: Path) -> Path:
    """A copy of the library without debugging information, which is nine tenths of it, and without
    the linker's build ID, which depends on folders: equal sources give equal wheels."""
    copy = folder / library.name
    shutil.copyfile(library, copy)
    tool = os.environ.get("STRIP") or shutil.which("strip")
    if tool:
        strip = [tool, "--strip-unneeded", "--remove-section=.note.gnu.build-id", str(copy)]
        subprocess.run(strip, check=True)
    return copy


def _files(libraries: list[Path]) -> list[tuple[str, bytes]]:
    package = sorted(
        p
        for folder in PACKAGES
        for p in (HERE / folder).rglob("*")
        if p.suffix in (".py", ".pyi", ".typed")
    )
    info = f"repops-{version()}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: repops\nRoot-Is-Purelib: false\nTag: "
    wheel += tag(libraries) + "\n"
    return [
        *[(str(p.relative_to(HERE)), p.read_bytes()) for p in package],
        *[(f"repops/lib/{library.name}", library.read_bytes()) for library in libraries],
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


def write(libraries: Path, folder: Path) -> str:
    """Writes the wheel with the libraries in that folder; returns its name."""
    info = f"repops-{version()}.dist-info"
    found = [libraries / name for name in LIBRARIES]
    for library in found:
        if not library.exists():
            raise SystemExit(f"{library} does not exist: run make wheel first")
    with tempfile.TemporaryDirectory() as place:
        files = _files([_stripped(library, Path(place)) for library in found])
    name = f"repops-{version()}-{tag(found)}.whl"
    new = folder / (name + ".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [*files, (f"{info}/RECORD", _record(files, info))]:
            entry = zipfile.ZipInfo(path, DATE)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    os.replace(new, folder / name)
    return name


# ---- PEP 517 ----


def _make(*arguments: str) -> None:
    """Runs make. Its output goes to stderr, because front ends read stdout."""
    run = ["make", "-C", str(TOP), f"-j{len(os.sched_getaffinity(0))}", *arguments]
    if not shutil.which("make"):
        raise SystemExit("building repops needs make and a C compiler, and there is no make")
    if subprocess.run(run, stdout=sys.stderr).returncode:
        raise SystemExit(f"building repops failed: {' '.join(run)}")


def _built() -> Path:
    """The libraries' folder. They are compiled if missing: with OpenSSL's archive if its headers
    are installed, else with this project's own SHA-256."""
    folder = TOP / "build/lib"
    if not all((folder / name).exists() for name in LIBRARIES):
        asked = ["pkg-config", "--exists", "libcrypto"]
        openssl = shutil.which("pkg-config") and subprocess.run(asked).returncode == 0
        sha = [] if openssl else ["PORTABLE_SHA=own", "PKG_CFLAGS="]
        _make(*[f"build/lib/{name}" for name in LIBRARIES], "BUILD=build", *sha)
    return folder


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """PEP 517: writes the wheel. The libraries are in the folder of REPOPS_LIBRARY, else
    build/lib."""
    given = os.environ.get("REPOPS_LIBRARY")
    return write(Path(given).parent if given else _built(), Path(wheel_directory))


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """PEP 517: writes the tarball of `make dist`."""
    name = f"repops-{version()}.tar.gz"
    _make("dist", f"DIST={Path(sdist_directory).resolve()}")
    return name


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: backend.py LIBRARIES FOLDER")
    print(write(Path(sys.argv[1]), Path(sys.argv[2])))
