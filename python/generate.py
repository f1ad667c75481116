"""Writes repops/_texts.py and repops/__init__.pyi from the table and the specification in C.

python3 generate.py           writes both
python3 generate.py --check   says what is out of date, and exits with 1
"""

from __future__ import annotations

import ast
import os
import re
import sys
import types
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TOP = HERE.parent


OPERATORS = "repops/src/operators.def"


class Operator(NamedTuple):
    """A row of operators.def, with the names of its attributes."""

    name: str
    onto: int
    inputs: str
    text: str
    reads: str
    attributes: list[str]


def operators(source: str) -> dict[str, Operator]:
    """Each operator by its name in capitals, from the text of operators.def."""
    attributes: dict[str, list[str]] = {}
    row = r"^RO_(?:ATTRIBUTE|DEFAULTED)\((\w+), \d+, \w+, (\w+),"
    for key, attribute in re.findall(row, source, re.MULTILINE):
        attributes.setdefault(key, []).append(attribute)
    row = r'^RO_OPERATOR\(\d+, (\w+), (\w+),[^"]*\s(\w+),\s*\w+,' + 3 * r'\s*"([^"]*)",?'
    found = re.findall(row, source, re.MULTILINE)
    return {
        key: Operator(name, int(onto, 0), inputs, text, reads, attributes.get(key, []))
        for key, name, onto, inputs, text, reads in found
    }


def names(inputs: str) -> str:
    """The names of the inputs, without types."""
    parts = [part.split()[0].rstrip(".") for part in inputs.split(",") if part.strip()]
    return " ".join(part + "_" if part in ("in", "is") else part for part in parts)


def specification() -> dict[str, str]:
    """For each operator its section of SPEC.md and description: it begins a paragraph, an item of a
    list or a row of a table."""
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


Route = tuple[str, str, tuple[float, ...]]  # operator, argument names, last defaults


def arguments(text: str) -> tuple[list[str], list[float]]:
    """Argument names of a signature, and the defaults of the last ones."""
    found, defaults = [], []
    for part in text.split(", "):
        name, is_given, default = part.partition("=")
        if is_given:
            defaults.append(ast.literal_eval(default))
        elif defaults:
            raise ValueError(f"{name} has no default, and stands behind one that has")
        found.append(name)
    return found, defaults


def route(operator: Operator, aten: str, given: str) -> Route:
    """The route from an operator of ATen to this one; `given` is ATen's signature."""
    inputs = names(operator.inputs).split()
    found, defaults = arguments(given)
    wanted = inputs + operator.attributes
    if operator.reads != "; ".join(f"{name}[e]" for name in inputs):
        raise ValueError(f"element e of {operator.name} reads more than element e")
    if sorted(name for name in found if name != "_") != sorted(wanted):
        raise ValueError(f"its arguments are {', '.join(found)}; expected {', '.join(wanted)}")
    if aten.split(".")[0].endswith("_") and (len(inputs) > 1 or not operator.onto & 1):
        raise ValueError(f"{operator.name} does not compute in the place of its only input")
    return operator.name, " ".join(found), tuple(defaults)


def routes(source: str) -> dict[str, Route]:
    """Routes from the rows RO_TORCH of operators.def, by ATen's names."""
    known, found = operators(source), dict[str, Route]()
    for row in re.findall(r"^ *(RO_TORCH\(.*)$", source, re.MULTILINE):
        parts = re.fullmatch(r'RO_TORCH\((\w+), "(\w+(?:\.\w+)?)\((.+)\)"\)', row)
        try:
            if not parts:
                raise ValueError('expected RO_TORCH(NAME, "operator(argument, ...)")')
            key, aten, given = parts.groups()
            if key not in known:
                raise ValueError(f"there is no operator {key}")
            if aten in found:
                raise ValueError(f"{aten} is {found[aten][0]} already")
            found[aten] = route(known[key], aten, given)
        except (ValueError, SyntaxError) as error:
            sys.exit(f"{OPERATORS}: {row}: {error}")
    return found


def texts() -> str:
    spec, source = specification(), (TOP / OPERATORS).read_text()
    all_, entry = operators(source).values(), "dict[str, str]"
    lines = ['"""What operators are called and do: by generate.py from the C sources."""', ""]
    for table, kind, values in (
        ("INPUTS", entry, {o.name: names(o.inputs) for o in all_ if o.inputs}),
        ("TEXTS", entry, {o.name: o.text for o in all_ if o.text}),
        ("SPEC", entry, {o.name: spec[o.name] for o in all_ if o.name in spec}),
        ("TORCH", f"dict[str, {Route}]", routes(source)),
    ):
        lines += [f"{table}: {kind} = {{"]
        lines += [f"    {name!r}: {value!r}," for name, value in values.items()] + ["}"]
    return "\n".join(lines) + "\n"


def stub() -> str:
    # An empty package, as the real one would import numpy.
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
