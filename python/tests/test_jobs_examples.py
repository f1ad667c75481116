"""The scripts of examples/any-model: each captures its model, and its job is run, exported and
disputed by the command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import called, settle

import repops.jobs
import verde

EXAMPLES = ("nanogpt", "vit_digits", "lstm_tagger", "gan", "gnn")


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request, command, top, tmp_path_factory):
    """A name, the job that the script has made, what it printed, and an honest run."""
    place = tmp_path_factory.mktemp(request.param)
    path = f"{Path(command).parent}{os.pathsep}{os.environ['PATH']}"
    script = [sys.executable, top / f"examples/any-model/{request.param}.py", place / "job"]
    env = {**os.environ, "PATH": path}
    done = subprocess.run(script, capture_output=True, text=True, cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    called(command, "run", place / "job", "--out", place / "run", "--threads", 1)
    return request.param, place, done.stdout


def test_it_says_the_programs_hash_and_learns(example, command):
    name, place, said = example
    program = re.match(r"program ([0-9a-f]{64})\n", said)[1]
    assert f"# program {program}" in called(command, "graph", place / "job")
    losses = [line["loss"] for line in verde.Run(place / "run").losses()]
    checked = [float(x) for x in re.search(r"\[(.*)\]$", said)[1].split(", ")]
    assert [float(f"{x:.9g}") for x in checked] == losses[:3]
    if name != "gan":  # whose two losses work against each other
        assert sum(losses[-10:]) < sum(losses[:10])


def test_what_is_exported_is_the_run(example, command):
    _, place, _ = example
    called(command, "export", place / "run", "--out", place / "model")
    run, model = repops.jobs.load(place / "run"), repops.jobs.load(place / "model")
    assert run.step == model.step and list(run) == list(model)
    assert all(run[name].tobytes() == model[name].tobytes() for name in run)


def faults(graph):
    """A fault of the data, of a product, which is a gradient, and of a parameter; each with the
    node that it changes."""
    lines = [line.split() for line in graph.splitlines() if line[:1] != "#"]
    nodes = [(x[0][1:], x[2].split("(")[0]) for x in lines if x[0][0] == "%"]
    data = next(node for node, operator in nodes if operator == "read_batch")
    product = [node for node, operator in nodes if operator == "matmul"][-1]
    parameter = next(x[2][1:] for x in lines if x[0].startswith("state:"))
    return [
        ("poison@1", data),
        (f"element@1:{product}", product),
        (f"element@1:{parameter}", parameter),
    ]


def test_a_fault_is_convicted(example, command, tmp_path):
    _, place, _ = example
    for fault, node in faults(called(command, "graph", place / "job")):
        wrong, own = tmp_path / f"wrong{node}", tmp_path / f"dispute{node}"
        own.mkdir()
        called(command, "run", place / "job", "--out", wrong, "--fault", fault, "--threads", 1)
        verdict = settle(command, place / "job", own, [place / "run", wrong])
        said = called(command, "verify", verdict, "--job", place / "job")
        assert re.search(rf"^where +step 1, node {node} ", said, re.M), said
        assert re.search(r"^provider 2 +CONVICTED .*\n +wrong-output", said, re.M), said
