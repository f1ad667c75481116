"""Prints the binary interface of librepops.so.1 on machines of 64 bits, from its headers.

A function is a line, with its types; so is a member of a structure, with its place, and an
enumerator. A structure that never grows (repops.h) has a line for its size. Limits that may rise
have `>=`.

Usage: layout.py FOLDER; the program that knows the numbers is compiled there."""

import os
import re
import subprocess
import sys
from pathlib import Path

CC = os.environ.get("CC", "cc").split() + ["-std=c11", "-Irepops/include"]
GROWS = {"ro_op_info"}  # and all that begin with `size`
LIMITS = re.compile("RO_(MAX_INPUTS|(CRUMB|STEP)_LOADS|[A-Z_]+_(LANES|BITS|HEADS?|COLS)_MAX)")
FREE = {"RO_OP_END"}


def one_line(text):
    return re.sub(r"\s*([()\[\]])\s*", r"\1", " ".join(text.split()))


def parts(text):
    """What commas outside of parentheses separate."""
    found, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [p.strip() for p in found]


def types(parameters):
    return f"({', '.join(map(unnamed, parts(parameters)))})"


def unnamed(parameter):
    """A parameter's type."""
    pointer = re.fullmatch(r"(.*?)\(\s*\*\s*\w*\s*\)\s*\((.*)\)", parameter, re.S)
    if pointer:
        return f"{one_line(pointer[1])} (*){types(pointer[2])}"
    if parameter in ("void", "..."):
        return parameter
    return one_line(re.sub(r"\b\w+\s*((?:\[[^]]*\])*)$", r"\1", parameter))


def members(body):
    """Pairs of a structure's members and their types."""
    for declaration in body.split(";")[:-1]:
        pointer = re.search(r"\(\s*\*\s*(\w+)\)", declaration)
        if pointer:
            yield pointer[1], unnamed(declaration.strip())
            continue
        first, *more = parts(declaration)
        kind = re.match(r"(.*?)[\s*]*\b\w+\s*(\[[^]]*\])*$", first, re.S)[1]
        for it in [first] + [f"{kind} {m}" for m in more]:
            yield re.search(r"(\w+)\s*(\[[^]]*\])*$", it)[1], unnamed(it)


def structures(text):
    for body, name in re.findall(r"typedef struct \{([^{}]*)\} (ro_\w+);", text):
        listed = list(members(body))
        for member, kind in listed:
            where = f"sizeof(({name} *)0)->{member}, offsetof({name}, {member})"
            yield f'"{name}.{member}: {kind}, %zu bytes at %zu\\n", {where}'
        if listed[0][0] != "size" and name not in GROWS:
            yield f'"{name}: %zu bytes, {len(listed)} members\\n", sizeof({name})'


def enumerators(text):
    for body in re.findall(r"enum \{([^{}]*)\}", text):
        for name in re.findall(r"(?:^|,)\s*(RO_\w+)", body):
            sign = ">=" if LIMITS.fullmatch(name) else "="
            if name not in FREE:
                yield f'"{name} {sign} %lld\\n", (long long){name}'


def functions(text):
    pointers = re.findall(r"typedef ([^;{}]*?)\(\*(ro_\w+)\)\(([^;{}]*)\);", text)
    calls = re.findall(r"(?:^|[;}])([\w\s*]*?)\b(ro_\w+)\(([^;{}]*)\)(?=;)", text)
    for result, name, given in pointers + calls:
        yield f'"{name}: {one_line(result)} {types(given)}\\n"'


def main(folder):
    names = sorted(h.name for h in Path("repops/include/repops").glob("*.h"))
    headers = "".join(f"#include <repops/{name}>\n" for name in names)
    done = subprocess.run(
        [*CC, "-E", "-P", "-"], input=headers.encode(), stdout=subprocess.PIPE, check=True
    )
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)+", "", done.stdout.decode())
    lines = [*structures(text), *enumerators(text), *functions(text)]
    calls = "".join(f"    printf({line});\n" for line in lines)
    source, program = Path(folder, "layout.c"), Path(folder, "layout")
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n{headers}int main(void) {{\n{calls}}}\n"
    )
    subprocess.run([*CC, str(source), "-o", str(program)], check=True)
    subprocess.run([str(program)], check=True)


main(sys.argv[1])
