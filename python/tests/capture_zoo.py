"""Captures the models of the zoo, and runs each program in several settings.

Usage: capture_zoo.py RESULTS [NAME...] [--only-capture] [--limit SECONDS]

Each model has a process of its own and a file RESULTS/NAME.json; models with a file are not tried
again, so that a stopped run continues. Without names: survey.txt, registries.txt, and then
all others whose packages are installed. Prints for each model: its name; equal, and the program's
hash; refused, and the first reason; or failed, and the error.

equal: after each of 3 steps all states of the block and of `verde run` are the same, with AVX2 and
1 thread and with scalar code and 2 threads, and runs in all of SETTINGS have one root. VERDE says
which command.

Data that a model makes for each step become tables. Tensors in a loss's attribute `constants` are
declared by job.constant, and models in its attribute `others` given to capture beside the first, as
a user would do."""

import argparse
import collections
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import torch
import zoo
from torch.utils._python_dispatch import _disable_current_modes

import repops.jobs

STEPS = 3
# Numbers of threads, and the library's instruction sets.
SETTINGS = [(1, "avx2"), (2, "avx2"), (1, "scalar"), (2, "scalar")]
# (module, name, function): the zoo's functions that make data, in each module that imports them.
MAKERS = [
    (module, name, getattr(module, name))
    for module in (*vars(zoo).values(), zoo.base)
    if getattr(module, "__package__", "") == "zoo"
    for name in ("ids", "numbers", "pixels")
    if hasattr(module, name)
]
HERE = Path(__file__).parent
LIMIT = 1200


def lists():
    """Models whose packages are installed: name to the list that has it."""
    there = zoo.installed()
    found = {n: "survey" for n in (HERE / "zoo/survey.txt").read_text().split()}
    for line in (HERE / "zoo/registries.txt").read_text().splitlines():
        if line[0] != "#":
            found["chosen_" + line.split()[1]] = "rule"
    found = {n: kind for n, kind in found.items() if n in there}
    return {**found, **{n: "others" for n in there if n not in found}}


class Tables:
    """Replaces the zoo's functions that make data: first they record the data of each step, then
    return them from tables."""

    def __init__(self):
        self.seen, self.made, self.at, self.playing, self.inside = [], [], 0, False, False
        for module, name, maker in MAKERS:
            setattr(module, name, self._wrapped(maker))

    def close(self):
        for module, name, maker in MAKERS:
            setattr(module, name, maker)

    def _wrapped(self, maker):
        def make(*shape, **how):
            if self.inside:
                return maker(*shape, **how)
            if self.playing:
                self.at += 1
                return self.made[self.at - 1]
            self.inside = True
            with _disable_current_modes():
                value = maker(*shape, **how)
            self.inside = False
            if self.seen:
                self.seen[-1].append(value)
            return value

        return make

    def watch(self, loss, steps):
        """Runs the loss at each step, only to record its data."""
        for i in range(steps):
            self.seen.append([])
            loss(i)
        seen, self.seen = self.seen, []
        return [[v.detach().clone() for v in values] for values in zip(*seen)]

    def declare(self, job, columns):
        self.made = [job.table(torch.stack(values)) for values in columns]

    def begin(self):
        self.at, self.playing = 0, True
        for t in self.made:
            t.grad = None


def built(name):
    """A model in training mode and its loss; the same each time it is built."""

    torch.manual_seed(1)
    own, loss = zoo.MODELS[name][1]()
    own.train()
    return own, loss


def stepping(own, loss, begin):
    """An optimizer and a training step like the zoo's."""
    params = [p for p in own.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, 1e-3, fused=True)

    def step():
        begin()
        value = loss(0)
        value.backward()
        torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    return optimizer, step


# ---- one model, in a process of its own ----


def in_setting(threads, backend):
    os.environ["REPOPS_CPU"] = backend
    torch.set_num_threads(threads)


def capture(name, folder, steps=STEPS):
    """Captures a job; returns it, and facts about its program."""
    in_setting(*SETTINGS[0])
    tables = Tables()
    job = repops.jobs.Job(folder, seed=7, steps=steps, checkpoint_interval=1)
    tables.declare(job, tables.watch(built(name)[1], steps))
    with job:
        own, loss = built(name)
        for t in getattr(loss, "constants", ()):
            job.constant(t)
        optimizer, step = stepping(own, loss, tables.begin)
        others = getattr(loss, "others", {})
        digest = job.capture(step, {"model": own, **others} if others else own, optimizer)
    nodes = collections.Counter(n.operator.name for n in job._captured.program.step.nodes)
    told = {"hash": digest, "nodes": sum(nodes.values()), "operators": len(nodes)}
    return job, tables, told


def said(*words, **environment):
    """The standard output of a program."""
    words = [str(w) for w in words]
    whole = {**os.environ, **environment}
    done = subprocess.run(words, env=whole, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def ran(job, out, *options, **environment):
    """Runs a job with the command; returns the run root, which commits to the states after all
    steps."""
    verde = os.environ.get("VERDE", "verde")
    lines = said(verde, "run", job, "--out", out, "--json", *options, **environment).splitlines()
    return json.loads(lines[-1])["run_root"]


def compared(job, place):
    """Runs a job in all settings, which must give one root; returns the settings and the root. In
    the first and the last setting the block must compute the same states."""
    roots, losses = {}, []
    for number, (threads, backend) in enumerate(SETTINGS):
        label, out = f"{backend} {threads}", Path(place) / "run"
        roots[label] = ran(job.folder, out, "--threads", threads, "--backend", backend)
        if number in (0, len(SETTINGS) - 1):
            in_setting(threads, backend)
            with job:
                losses.append(job._captured.compare(out, STEPS))
        shutil.rmtree(out)
    if len(set(roots.values())) != 1 or losses[0] != losses[1]:
        raise RuntimeError(f"the runs have other roots or losses: {roots}, {losses}")
    return {"settings": list(roots), "root": next(iter(roots.values())), "losses": losses[0]}


def one(name, options):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="zoo.") as place:
        try:
            job, _, told = capture(name, f"{place}/job")
            found = {"result": "captured", **told}
            if not options.only_capture:
                found.update(result="equal", **compared(job, place))
        except repops.jobs.CaptureError as error:
            reasons = list(dict.fromkeys(line.strip() for line in str(error).splitlines()[1:]))
            found = {"result": "refused", "problems": len(error.problems), "reasons": reasons}
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = str(error).splitlines()[0][:300] if str(error) else ""
            where = f"{os.path.basename(last.filename)}:{last.lineno}"
            found = {"result": "failed", "reasons": [f"{where}: {type(error).__name__}: {text}"]}
            traceback.print_exc()
    found["torch"], found["python"] = torch.__version__.split("+")[0], sys.version.split()[0]
    print(json.dumps(found))


# ---- all models ----


def tried(name, options):
    """The result of a model, tried in a forked process, in which everything is imported already."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as trace:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(trace.fileno(), 2)
            code = 1
            try:
                one(name, options)
                sys.stdout.flush()
                code = 0
            finally:
                os._exit(code)
        code = ended(child, began + options.limit)
        said.seek(0)
        trace.seek(0)
        lines, trace = said.read().splitlines(), trace.read()
    if code is None:
        return {"result": "failed", "reasons": [f"not done after {options.limit} s"]}
    try:
        found = json.loads(lines[-1])
    except (IndexError, ValueError):
        found = {"result": "failed", "reasons": [f"it ended with {code}: {trace[-300:]}"]}
    if found["result"] == "failed":
        found["trace"] = trace[-3000:]
    return {**found, "seconds": round(time.monotonic() - began, 1)}


def ended(child, last):
    """A process's exit code; None: it was killed because its time was over."""
    while time.monotonic() < last:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only-capture", action="store_true")
    parser.add_argument("--limit", type=int, default=LIMIT)
    options = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", OMP_WAIT_POLICY="passive")
    place, failed = Path(options.results), 0
    place.mkdir(parents=True, exist_ok=True)
    known = lists()
    for name in options.names or known:
        file = place / f"{name}.json"
        if not file.exists():
            found = {"name": name, "list": known[name], **tried(name, options)}
            file.write_text(json.dumps(found, indent=1) + "\n")
        found = json.loads(file.read_text())
        failed += found["result"] == "failed"
        print(name, found["result"], found.get("hash") or found["reasons"][0], flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
