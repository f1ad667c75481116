"""The scripts of examples/any-model: each captures its model, and the command runs, exports and
disputes its job."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import called, settle
from disputes import EXAMPLES, FAULTS, disputes

import repops.jobs
import verde

WHOLE = {"nanogpt": 9, "gnn": 7}  # number of kinds of faults that each can have


def script(command, place, *words):
    """The output of a script, which finds the command in PATH as for users."""
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
    """The example's name, the folder of its job and honest run, and the script's output."""
    place = tmp_path_factory.mktemp(request.param)
    said = script(command, place, top / f"examples/any-model/{request.param}.py", place / "job")
    called(command, "run", place / "job", "--out", place / "run", "--threads", 1)
    return request.param, place, said


def test_the_guide_works_as_it_stands(command, top, tmp_path):
    """The guide's snippets: capture, run, load, evaluation and answers. The folder of `verde run`
    can be loaded, too."""
    parts = re.findall(r"```python\n(.*?)```", (top / "docs/any-model.md").read_text(), re.S)
    _, job, run, load, more, evaluate, answers, _ = parts
    held = "scheduler = None; test_x, test_y = x[:640], y[:640]"
    same = "import os; os.rename('run', 'result')"
    told = "print(said.shape)"
    lines = [job, run, same, load, held, more, evaluate, answers, told]
    (tmp_path / "guide.py").write_text("\n".join(lines))
    said = script(command, tmp_path, "guide.py")
    assert re.match(r"[0-9a-f]{64}\n\[", said) and "\n200 " in said
    assert said.endswith("(640, 1)\n")
    assert (tmp_path / "out/job/evaluate/program").exists()


def test_it_says_the_programs_hash_and_learns(example, command):
    name, place, said = example
    program = re.match(r"program ([0-9a-f]{64})\n", said)[1]
    assert f"# program {program}" in called(command, "graph", place / "job")
    losses = [line["loss"] for line in verde.Run(place / "run").losses()]
    checked = [float(x) for x in re.search(r"\[(.*)\]$", said)[1].split(", ")]
    assert [float(f"{x:.9g}") for x in checked] == losses[:3]
    if name != "gan":  # its two losses compete
        assert sum(losses[-10:]) < sum(losses[:10])


def test_what_is_exported_is_the_run(example, command):
    _, place, _ = example
    called(command, "export", place / "run", "--out", place / "model")
    run, model = repops.jobs.load(place / "run"), repops.jobs.load(place / "model")
    assert run.step == model.step and list(run) == list(model)
    assert all(run[name].tobytes() == model[name].tobytes() for name in run)


def test_a_fault_is_convicted(example, command, tmp_path):
    """Two examples together can have every kind of fault; these are tried with all."""
    name, place, _ = example
    few = [x for x in FAULTS if x[0] in ("an element, backward", "a datum")]
    costs = disputes(command, place / "job", tmp_path, FAULTS if name in WHOLE else few)
    assert len(costs) == (WHOLE[name] if name in WHOLE else len(few))


def test_answers_of_an_example(command, top, tmp_path):
    """The answers are those of the committed run; a wrong answer is convicted."""
    said = script(command, tmp_path, top / "examples/any-model/answers.py", tmp_path / "job")
    collection = re.match(r"collection ([0-9a-f]{64})\nbatches 4 of which", said)[1]
    told = called(command, "run", tmp_path / "job", "--out", tmp_path / "run", "--json")
    assert f'"collection":"{collection}"' in told
    answers = repops.jobs.load_answers(tmp_path / "run")
    assert {n: a.shape for n, a in answers.items()} == {
        "class": (50,),
        "likely": (50, 10),
        "embedding": (50, 64),
    }
    assert (answers["likely"].argmax(1) == answers["class"]).all()
    wrong = ["--fault", "3/element@0"]
    called(command, "run", tmp_path / "job", "--out", tmp_path / "wrong", *wrong)
    runs = [tmp_path / "run", tmp_path / "wrong"]
    called(command, "verify", settle(command, tmp_path / "job", tmp_path, runs))
