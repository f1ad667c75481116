"""What is in a release's files, as SPDX 2.3: each file, and each library that is linked into it or
that it loads, with its licence.

python3 sbom.py VERSION FOLDER   writes FOLDER/repops-VERSION.spdx.json

What a program loads is read from the program (readelf); a library that has no line in DYNAMIC is an
error, so that nothing comes in unnamed. SOURCE_DATE_EPOCH is the document's time.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

OWN = "Apache-2.0"
# Libraries of the system, by their sonames: the project that each is of, and its licence.
DYNAMIC = {
    r"libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux.*": (
        "glibc",
        "LGPL-2.1-or-later",
    ),
    r"libgcc_s\.so\.1": ("libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    r"libstdc\+\+\.so\.6": ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    r"libssl\.so\.3|libcrypto\.so\.3": ("OpenSSL", "Apache-2.0"),
    r"libcurl\.so\.4": ("curl", "curl"),
    r"libevent.*\.so\.7": ("libevent", "BSD-3-Clause"),
    r"libjansson\.so\.4": ("jansson", "MIT"),
    r"libsqlite3\.so\.0": ("SQLite", "blessing"),
    r"libyaml-0\.so\.2": ("libyaml", "MIT"),
    r"libz\.so\.1": ("zlib", "Zlib"),
    r"librepops\.so\.1": ("repops", OWN),
}
# Libraries that are linked into a file of this name. The file itself does not tell.
STATIC = {
    r".*x86_64\.whl": [("OpenSSL", "Apache-2.0")],
    r"librepops-cuda1_.*\.deb": [("NVIDIA CUDA Runtime", "LicenseRef-NVIDIA-CUDA-EULA")],
    r"verify\.html": [
        ("jansson", "MIT"),
        ("libsodium", "ISC"),
        ("zlib", "Zlib"),
        ("wasi-libc", "Apache-2.0 WITH LLVM-exception AND Apache-2.0 AND MIT"),
    ],
}
# Data of others that a file of this name holds.
HELD = {r"repops-.*\.tar\.gz": [("CCTV's test vectors of Ed25519", "BSD-3-Clause")]}
NVIDIA = {
    "licenseId": "LicenseRef-NVIDIA-CUDA-EULA",
    "name": "NVIDIA CUDA Toolkit End User License Agreement",
    "extractedText": "https://docs.nvidia.com/cuda/eula/; attachment A: libcudart_static.a",
    "seeAlsos": ["https://docs.nvidia.com/cuda/eula/"],
}


def unpack(file: Path, folder: Path) -> None:
    if file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", file, folder], check=True)
    elif file.suffix == ".whl":
        zipfile.ZipFile(file).extractall(folder)


def needed(file: Path) -> set[str]:
    """The sonames that the programs in the file load."""
    names: set[str] = set()
    with tempfile.TemporaryDirectory() as place:
        unpack(file, Path(place))
        for path in Path(place).rglob("*"):
            if path.is_symlink() or not path.is_file() or path.open("rb").read(4) != b"\x7fELF":
                continue
            run = ["readelf", "--dynamic", "--wide", str(path)]
            text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
            names.update(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    return names


def loaded(file: Path) -> set[tuple[str, str]]:
    found = set()
    for name in needed(file):
        known = [what for pattern, what in DYNAMIC.items() if re.fullmatch(pattern, name)]
        if not known:
            raise SystemExit(f"{file.name}: loads {name}, whose licence sbom.py does not know")
        found.add(known[0])
    return found


def listed(table: dict[str, list[tuple[str, str]]], file: Path) -> list[tuple[str, str]]:
    return [
        what for pattern, many in table.items() if re.fullmatch(pattern, file.name) for what in many
    ]


def identifier(name: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name: str, licence: str, **more: object) -> dict[str, object]:
    return {
        "SPDXID": identifier(name),
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def relation(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(version: str, files: list[Path]) -> dict[str, object]:
    packages: dict[str, dict[str, object]] = {}
    relations = []
    for file in files:
        static, held = listed(STATIC, file), listed(HELD, file)
        licence = " AND ".join(
            sorted({OWN, *[f"({t})" if " " in t else t for _, t in static + held]})
        )
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        sums = [{"algorithm": "SHA256", "checksumValue": digest}]
        packages[file.name] = package(
            file.name, licence, versionInfo=version, packageFileName=file.name, checksums=sums
        )
        relations.append(relation("SPDXRef-DOCUMENT", "DESCRIBES", identifier(file.name)))
        for kind, libraries in (
            ("CONTAINS", held),
            ("STATIC_LINK", static),
            ("DYNAMIC_LINK", sorted(loaded(file))),
        ):
            for name, of in libraries:
                packages.setdefault(name, package(name, of))
                relations.append(relation(identifier(file.name), kind, identifier(name)))
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.UTC)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"repops-{version}",
        "documentNamespace": f"https://verde.invalid/spdx/repops-{version}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: debian/release/sbom.py"],
        },
        "hasExtractedLicensingInfos": [NVIDIA],
        "packages": [packages[name] for name in sorted(packages)],
        "relationships": relations,
    }


def main() -> None:
    version, folder = sys.argv[1], Path(sys.argv[2])
    out = folder / f"repops-{version}.spdx.json"
    skip = {out.name, "SHA256SUMS", "release.json"}
    files = sorted(p for p in folder.iterdir() if p.name not in skip)
    if not files:
        raise SystemExit(f"{folder} has no files")
    out.write_text(json.dumps(document(version, files), indent=1) + "\n")
    print(f"  SBOM    {out}")


if __name__ == "__main__":
    main()
