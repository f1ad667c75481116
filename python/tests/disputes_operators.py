"""What a dispute over each of the operators costs that came for captured models: integers,
functions by way of binary64, places along an axis, orders, running totals and draws of a step.

Usage: disputes_operators.py FOLDER [--table FILE]; VERDE says which command. A cheat's run has one
wrong element of an operator's output; see disputes.py."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from conftest import called
from disputes import cheat, convict, measured, nodes_of, verifier

from repops.jobs import _folder
from repops.jobs._graph import F32, I32, Program, Value

LINES, LENGTH = 2, 3000  # each line spans several chunks, and many parts of a fold
FUNCTIONS = "sin cos tan asin acos atan sinh cosh asinh acosh atanh log1p expm1 log2 exp2".split()
OTHERS = "atan2 pow round integer isum argsort take_along put_along running normal_at uniform_at"
STEP = 1
HEAD = """# What a dispute over an operator costs its referee

{measured}
`python/tests/disputes_operators.py` (`make test-full`). A program has every operator that came for
captured models, on {lines} lines of {length} elements. For each of them one run has a wrong element
of its output. The liar was convicted at the very node, and `tests/independent` decided the same.

Memory is the referee's peak, traffic what it sent and received; the program, of {size:.1f} kB, is
not in it.

| operator | rounds | memory, MB | traffic, kB | CPU, s |
| --- | ---: | ---: | ---: | ---: |
"""


def functions(g, u):
    """Functions of u, which is in (0, 0.9]; acosh is of 1 / u."""
    one = g.emit("div", u, u)
    found = [g.emit(n, g.emit("div", one, u) if n == "acosh" else u) for n in FUNCTIONS]
    return [*found, g.emit("atan2", found[0], u), g.emit("pow", u, found[1])]


def ordered(g, x):
    """argsort, the elements in that order, their running sums, and these put back."""
    places = g.emit("argsort", x, axis=1, descending=1)
    taken = g.emit("take_along", x, places, axis=1)
    sums = g.emit("running", taken, axis=1, kind=0)
    return places, [taken, sums, g.emit("put_along", x, places, sums, axis=1, kind=1)]


def whole(g, x):
    """x in thousandths, and that modulo the lines' sums."""
    rounded = g.emit("round", g.emit("scale", x, factor=1000.0), kind=2)
    number = g.emit("cast", rounded, dtype_=I32)
    sums = g.emit("expand", g.emit("isum", number, axis=1), axis=1, count=LENGTH)
    return rounded, [sums, g.emit("integer", number, sums, kind=4)]


def program():
    """A program in which every result is state, so that none hides another."""
    p, size = Program(seed=1, steps=4, interval=2), (LINES, LENGTH)
    g, step = p.step, Value("step", 0, I32, (1,))
    how = {"seed": 5, "stream": 7, "shape": size}
    normal = g.emit("normal_at", step, mean=0.0, std=1.0, **how)
    drawn = [normal, g.emit("uniform_at", step, low=-1.0, high=1.0, **how)]
    u = g.emit("exp", g.emit("scale", g.emit("abs", normal), factor=-1.0))
    places, moved = ordered(g, normal)
    rounded, integers = whole(g, normal)
    floats = [*functions(g, g.emit("scale", u, factor=0.875)), *drawn, *moved, rounded]
    outputs = [g.emit("concat_axis", *floats, axis=0)]
    outputs.append(g.emit("concat_axis", places, *integers, axis=0))
    for name, v in zip(("floats", "integers"), outputs):
        p.leaf(name, v.dtype, v.dims)
        first = p.init.emit("fill", shape=v.dims, value=0.0)
        p.init.output.append(first if v.dtype == F32 else p.init.emit("cast", first, dtype_=I32))
        p.step.output.append(v)
    return p


def disputes(command, job, place):
    """The referee's cost, by the operator's name."""
    independent, graph, costs = verifier(), nodes_of(job, command), {}
    called(command, "run", job, "--out", place / "honest", "--threads", 1)
    for number, name in enumerate([*FUNCTIONS, *OTHERS.split()]):
        nodes = [n for n in graph if n.operator == name]
        wrong, own, cheats = place / "wrong", place / f"dispute{number}", number % 2
        node = cheat(command, job, wrong, "element", STEP, nodes)
        runs = [place / "honest", wrong][:: 1 if cheats else -1]
        costs[name] = convict(command, own, runs, cheats, node, STEP, "wrong-output", independent)
        shutil.rmtree(own)
    return costs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", type=Path, help="a page with the rows")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    made = program()
    _folder.write(options.folder / "job", made)
    costs = disputes(os.environ.get("VERDE", "verde"), options.folder / "job", options.folder)
    rows = [
        f"| {name} | {rounds} | {peak / 1e6:.1f} | {traffic / 1e3:.1f} | {seconds:.2f} |"
        for name, (rounds, peak, traffic, seconds) in costs.items()
    ]
    print("\n".join(rows))
    if options.table:
        size = len(made.encode()) / 1e3
        head = HEAD.format(measured=measured(), lines=LINES, length=LENGTH, size=size)
        options.table.write_text(head + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
