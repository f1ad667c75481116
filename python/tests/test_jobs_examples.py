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


def script(command, place, *words):
    """What a script prints, which finds the command as people do."""
    path = f"{Path(command).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request, command, top, tmp_path_factory):
    """A name, the job that the script has made, what it printed, and an honest run."""
    place = tmp_path_factory.mktemp(request.param)
    said = script(command, place, top / f"examples/any-model/{request.param}.py", place / "job")
    called(command, "run", place / "job", "--out", place / "run", "--threads", 1)
    return request.param, place, said


def test_the_guide_works_as_it_stands(command, top, tmp_path):
    """Its five lines, and the result back in the model. What verde run writes is one, too."""
    parts = re.findall(r"```python\n(.*?)```", (top / "docs/any-model.md").read_text(), re.S)
    _, job, load, more = parts
    run = f"import subprocess; subprocess.run([{command!r}, 'run', 'out/job', '--out', 'result'])"
    (tmp_path / "guide.py").write_text("\n".join([job, run, load, "scheduler = None", more]))
    assert re.match(r"[0-9a-f]{64}\n\[", script(command, tmp_path, "guide.py"))


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
