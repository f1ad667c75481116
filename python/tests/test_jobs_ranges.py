"""Integers outside the ranges that a program states are refused before the run. Indices outside
their tables mean the same to everyone, so that no honest provider is convicted."""

import subprocess

import numpy as np
import pytest
from conftest import called
from disputes import cheat, convict, nodes_of, verifier

from repops.jobs import _folder
from repops.jobs._graph import F32, Program

LARGEST, LEAST = 2**31 - 1, -(2**31)


def program(ids, told):
    """A program that reads tables of 5 rows at these ids, with `told` as their stated range, if
    any."""
    p = Program(seed=1, steps=4, interval=2)
    x, e = p.leaf("x", F32, (3, 4)), p.leaf("e", F32, (5, 4))
    table = p.input("table", np.arange(20, dtype="f4").reshape(5, 4) / 7)
    whole = p.input("whole", np.arange(5, dtype="i4") + 1)
    i = p.input("ids", np.array(ids, "<i4"))
    p.data[-1] = p.data[-1]._replace(low=told and told[0], high=told and told[1])
    p.init.output = [p.init.emit("fill", shape=s, value=0.5) for s in ((3, 4), (5, 4))]
    rows = p.step.emit("gather", table, i, axis=0)
    more = p.step.emit("embedding", e, i)
    numbers = p.step.emit("cast", p.step.emit("gather", whole, i, axis=0), dtype_=F32)
    number = p.step.emit("gather", numbers, p.constant("last", np.array([2], "<i4")), axis=0)
    sums = p.step.emit("gather_grad", p.step.emit("add", rows, more), i, axis=0, shape=(5, 4))
    p.step.output = [p.step.emit("add", x, rows), p.step.emit("add", sums, number)]
    return p


def run(command, job, out, backend):
    called(command, "run", job, "--out", out, "--backend", backend, "--threads", 1)
    return called(command, "inspect", out).split("run root")[1].split()[0]


@pytest.mark.parametrize("ids, told", [([0, 7, 2], (0, 4)), ([0, LEAST, 2], (0, LARGEST))])
def test_what_a_program_denies_is_refused_before_the_run(ids, told, command, tmp_path):
    _folder.write(tmp_path / "job", program(ids, told))
    words = [command, "run", str(tmp_path / "job"), "--out", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    expected = f"ids: element 1 is {ids[1]}, expected {told[0]} to {told[1]} as the program says\n"
    assert done.stderr.endswith(expected) and done.stderr.count("\n") == 1


@pytest.mark.parametrize("ids", [[0, LARGEST, LEAST], [5, -1, 4]])
def test_an_index_that_leaves_a_table_convicts_nobody_honest(ids, command, tmp_path):
    job = tmp_path / "job"
    _folder.write(job, program(ids, None))
    roots = {run(command, job, tmp_path / b, b) for b in ("scalar", "cpu")}
    assert len(roots) == 1
    readers = [n for n in nodes_of(job, command) if "data:ids" in n.inputs]
    assert len(readers) == 4
    for node in (readers[0], readers[-1]):
        wrong, place = tmp_path / "wrong", tmp_path / node.number
        cheat(command, job, wrong, "input", 2, [node])
        runs = [tmp_path / "scalar", wrong]
        convict(command, place, runs, 1, node, 2, "wrong-output", verifier())
