"""Writes repops/_texts.py and repops/__init__.pyi from the table and the specification in C.

python3 generate.py           writes both
python3 generate.py --check   says what is out of date, and exits with 1
"""

from __future__ import annotations

import os
import re
import sys
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent


def operators() -> list[tuple[str, str, str]]:
    """Name, inputs and text of each operator, from operators.def."""
    source = (TOP / "repops/src/operators.def").read_text()
    found = re.findall(
        r'^RO_OPERATOR\(\d+, \w+, (\w+),[^"]*"([^"]*)",\s*"([^"]*)"', source, re.MULTILINE
    )
    return [(name, inputs, text) for name, inputs, text in found]


def names(inputs: str) -> str:
    """The names of the inputs, without types."""
    parts = [part.split()[0].rstrip(".") for part in inputs.split(",") if part.strip()]
    return " ".join(part + "_" if part in ("in", "is") else part for part in parts)


def specification() -> dict[str, str]:
    """The section of SPEC.md, and what it says, of each operator whose name starts a paragraph, an
    item of a list or a row of a table."""
    found: dict[str, str] = {}
    text = (TOP / "repops/SPEC.md").read_text().split("<!-- operators -->")[0]
    parts = re.split(r"^##+ ([\d.]+)", text, flags=re.MULTILINE)
    for section, part in zip(parts[1::2], parts[2::2]):
        start, end = r"(?:^- |(?<=\n\n))", r"(?=^- |^\s*$|^#)"
        items = re.findall(rf"{start}(`\w+\(.*?){end}", part, re.MULTILINE | re.DOTALL)
        rows = re.findall(r"^\| (`\w+\([^|]*`) \| (.*) \|$", part, re.MULTILINE)
        rows = [f"{head}: {cells.replace(' | ', '; ')}" for head, cells in rows]
        for item in items + rows:
            for name in re.findall(r"`(\w+)\(", item.split(": ", 1)[0]):
                found.setdefault(name, f"{section.rstrip('.')}: {' '.join(item.split())}")
    return found


def texts() -> str:
    spec = specification()
    lines = ['"""What operators are called and do: by generate.py from the C sources."""', ""]
    for table, values in (
        ("INPUTS", {n: names(i) for n, i, _ in operators() if i}),
        ("TEXTS", {n: t for n, _, t in operators() if t}),
        ("SPEC", {n: spec[n] for n, _, _ in operators() if n in spec}),
    ):
        lines += [f"{table}: dict[str, str] = {{"]
        lines += [f"    {name!r}: {value!r}," for name, value in values.items()] + ["}"]
    return "\n".join(lines) + "\n"


def stub() -> str:
    # The package itself would import numpy.
    package = types.ModuleType("repops")
    package.__path__ = [str(HERE / "repops")]
    sys.modules["repops"] = package
    from repops import _table

    source = (HERE / "repops/__init__.py").read_text()
    imports = re.findall(r"^from \.\w* import \w+ as \w+.*$", source, re.MULTILINE)
    lines = ['"""Types of the operators: by generate.py from the library\'s table."""', ""]
    lines += ["from typing import Any, Sequence", "", *imports, "", "Array = Any", ""]
    lines += ["def reproducible(leftovers: str = ..., threads: int = ...) -> Any: ..."]
    for name, operator in sorted(_table.TABLE.items()):
        how = str(_table.signature(operator)).replace("'", "")
        lines.append(f"def {name}{how}: ...")
    return "\n".join(lines) + "\n"


def main() -> int:
    stale = 0
    for file, make in (("repops/_texts.py", texts), ("repops/__init__.pyi", stub)):
        path, text = HERE / file, make()
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            print(f"python/{file} is out of date: run make python-stubs", file=sys.stderr)
            stale = 1
        else:
            new = path.with_suffix(".new")
            new.write_text(text)
            os.replace(new, path)
    return stale


if __name__ == "__main__":
    sys.exit(main())
