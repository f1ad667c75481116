"""Disputes about captured models: each fault of FAULTS in each model of MODELS. The referee
has only the program.

Usage: disputes.py FOLDER [MODEL...] [--table FILE]; VERDE says which command. It needs torch,
transformers and peft, and pytest for what the tests share.

Of two runs one is honest, and two processes serve them. The other is convicted at the very node,
`verde verify` and tests/independent decide the same, and the referee takes no more than PEAK bytes
of memory and sends and receives no more than TRAFFIC: these are what its verdict says."""

import argparse
import base64
import collections
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from conftest import TOP, called, settle

PEAK, TRAFFIC = 64e6, 1e6
TRIED = 20  # nodes to try, as a fault may change nothing
STEPS, INTERVAL = 4, 2  # for models of the zoo; examples have their own
EXAMPLES = ("nanogpt", "vit_digits", "lstm_tagger", "gan", "gnn")
ZOO = ("qwen2", "clip", "whisper", "bart", "gru", "lora", "squeezenet1_1")
MODELS = EXAMPLES + ZOO

Node = collections.namedtuple("Node", "number name operator inputs first type")
LINE = re.compile(r"%(\d+) +(\S+) +(\w+)\(([^;]*); ?(\w*).*\) -> (\w+)\[")
NUMBERS = ("value", "factor", "eps", "beta", "divisor", "slope")  # attributes that are numbers


def nodes_of(job, command):
    text = called(command, "graph", job)
    return [Node(*x.groups()) for x in map(LINE.match, text.splitlines()) if x]


# ---- faults, and the nodes to try them at; the first one that changes the run is taken ----


def middle(nodes):
    return sorted(nodes, key=lambda n: abs(nodes.index(n) - len(nodes) // 2))


def part(which):
    """Nodes of the forward pass, the backward pass or the optimizer."""

    def nodes(graph):
        backward = [i for i, n in enumerate(graph) if "backward." in n.name]
        low, high = backward[0], backward[-1] + 1
        parts = {"forward": graph[:low], "backward": graph[low:high], "optimizer": graph[high:]}
        return middle([n for n in parts[which] if n.type == "f32" and n.inputs])

    return nodes


def attribute(graph):
    return middle([n for n in graph if n.first in NUMBERS])


def constant(graph):
    """Nodes whose last input is a constant of the program. (A table of rates is read by step
    number.)"""
    last = r"data:constant[\w.]*$|data:\S+, step$"
    return middle([n for n in graph if re.search(last, n.inputs) and n not in data(graph)])


def draws(graph):
    return [n for n in graph if n.operator == "dropout"]


def data(graph):
    return [n for n in graph if n.name.startswith("data.") and n.inputs.startswith("data:")]


# Name, the fault of `verde run`, where, and the grade with which the cheat is convicted.
FAULTS = (
    ("an element, forward", "element", part("forward"), "wrong-output"),
    ("an element, backward", "element", part("backward"), "wrong-output"),
    ("an element, optimizer", "element", part("optimizer"), "wrong-output"),
    ("an attribute", "attr", attribute, "wrong-graph"),
    ("a constant", "input", constant, "wrong-output"),
    ("a draw of another step", "input", draws, "wrong-output"),
    ("a draw by another seed", "attr", draws, "wrong-graph"),
    ("a row of another step", "input", data, "wrong-output"),
    ("a datum", "element", data, "wrong-output"),
)


# ---- one dispute ----


def cheat(command, job, out, kind, step, nodes):
    """A run with this fault, at the first node where it changes the run's commitment."""
    for n in nodes[:TRIED]:
        shutil.rmtree(out, ignore_errors=True)
        fault = f"{kind}@{step}:{n.number}"
        words = [command, "run", job, "--out", out, "--fault", fault, "--threads", "1"]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if "The fault changed nothing" not in done.stderr:
            return n
    raise AssertionError(f"{kind} changes nothing at any of {len(nodes[:TRIED])} nodes")


def verifier():
    """The command line of tests/independent/verify.py, or None."""
    needs = "import sys, cryptography; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        if subprocess.run([python, "-c", needs], stderr=subprocess.DEVNULL).returncode == 0:
            return [python, TOP / "tests/independent/verify.py"]
    print("not verified independently: no Python 3.11 with cryptography")
    return None


def convict(command, place, runs, cheats, node, step, grade, independent):
    """Settles a dispute, which must convict the cheat at this node; returns the cost that the
    verdict states, and the rounds."""
    bare = place / "bare"
    bare.mkdir(parents=True)
    shutil.copy(runs[1 - cheats] / "program", bare)
    file = settle(command, bare, place, runs)
    said = called(command, "verify", file, "--job", bare)
    assert re.search(rf"^where +step {step}, node {node.number} ", said, re.M), said
    verdict = json.loads(base64.b64decode(json.loads(file.read_text())["payload"]))["predicate"]
    outcome, cost = verdict["outcome"], verdict["cost"]
    grades = [p.get("grade", p["standing"]) for p in outcome["providers"]]
    assert grades == [grade if i == cheats else "stands" for i in (0, 1)], outcome
    assert (outcome["step"], outcome["node"]) == (step, int(node.number)), outcome
    if independent:
        wanted = f"holds: convicted, {grades[0]} and {grades[1]}\n"
        assert called(*independent, file) == wanted
    traffic = cost["bytes_in"] + cost["bytes_out"]
    assert cost["peak_bytes"] <= PEAK, f"the referee took {cost['peak_bytes']} bytes"
    assert traffic <= TRAFFIC, f"the referee moved {traffic} bytes"
    return outcome["rounds"], cost["peak_bytes"], traffic, cost["cpu_seconds"]


def disputes(command, job, place, faults=FAULTS):
    """The referee's cost for each fault that the model can have, by the fault's name."""
    independent, graph, costs = verifier(), nodes_of(job, command), {}
    said = called(command, "run", job, "--out", place / "honest", "--threads", 1, "--json")
    step = json.loads(said.splitlines()[-1])["steps"] // 2 - 1  # the step before also has data
    for number, (name, kind, where, grade) in enumerate(faults):
        wrong = place / "wrong"
        if not where(graph):  # this model has no such nodes
            continue
        node = cheat(command, job, wrong, kind, step, where(graph))
        runs, own = [place / "honest", wrong], place / f"dispute{number}"
        cheats = number % 2
        costs[name] = convict(
            command, own, runs[:: 1 if cheats else -1], cheats, node, step, grade, independent
        )
    return costs


# ---- models ----


def capture(name, folder):
    """Captures a model of the zoo, with its data as tables."""
    import capture_zoo

    import repops.jobs

    job = repops.jobs.Job(folder, seed=7, steps=STEPS, checkpoint_interval=INTERVAL)
    tables = capture_zoo.Tables()
    with job:
        tables.declare(job, tables.watch(capture_zoo.built(name)[1], STEPS))
        own, loss = capture_zoo.built(name)
        optimizer, step = capture_zoo.stepping(own, loss, tables.begin)
        job.capture(step, own, optimizer)


def make(name, folder):
    """Makes a model's job in a separate process."""
    own = (__file__, "--capture", folder, name)
    example = (TOP / f"examples/any-model/{name}.py", folder)
    called(sys.executable, *(example if name in EXAMPLES else own))


def row(name, program, costs):
    rounds, peak, traffic, seconds = (max(x) for x in zip(*costs.values()))
    return (
        f"| {name} | {len(program) / 1e3:.0f} | {len(costs)} | {rounds} | {peak / 1e6:.1f} "
        f"| {traffic / 1e3:.0f} | {seconds:.2f} |"
    )


HEAD = """# What a dispute of a captured model costs its referee

{measured}
`python/tests/disputes.py` (`make test-full`). In each model there was a dispute for each kind of
fault that it can have: a wrong element in the forward pass, the backward pass and the optimizer, an
attribute, a constant, a draw of another step, a draw by another seed, a row of another step, and a
datum. Not every model draws, or has a node that reads a constant last. Every liar was convicted at
the very node, and `tests/independent` decided the same.

A row has the most of the model's disputes. Memory is the referee's peak, traffic what it sent and
received. It had the program before, as whoever orders a job has. The test fails above {peak:.0f} MB
of memory, and above {traffic:.0f} MB of traffic.

| model | program, kB | disputes | rounds | memory, MB | traffic, kB | CPU, s |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def measured():
    """The line that says where and when the page's figures were measured."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"Measured on {time.strftime('%Y-%m-%d')}, at the commit that last changed this page, on "
        f"{found[1] if found else platform.machine()}, by"
    )


def head():
    return HEAD.format(measured=measured(), peak=PEAK / 1e6, traffic=TRAFFIC / 1e6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--table", type=Path, help="a page with the rows")
    parser.add_argument("--capture", action="store_true", help="a model of the zoo, and no more")
    options = parser.parse_args()
    if options.capture:
        return capture(options.models[0], options.folder)
    command, rows = os.environ.get("VERDE", "verde"), []
    for name in options.models or MODELS:
        place = options.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        make(name, place / "job")
        costs = disputes(command, place / "job", place)
        rows.append(row(name, (place / "job/program").read_bytes(), costs))
        print(rows[-1], flush=True)
        for fault, cost in costs.items():
            print(f"  {fault}: {cost}", flush=True)
        shutil.rmtree(place)
    if options.table:
        options.table.write_text(head() + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
