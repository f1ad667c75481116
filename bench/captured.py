"""Times captured steps (repops.jobs) beside PyTorch's own, and beside a job that is built in C.

    captured.py WORKER [MODEL...] [--rounds N] [--threads N] [--folder DIR]

Each way has a process, which is idle while another one has its turn; a round runs a step of each.
Prints a line in Markdown for each model: the median seconds, the peak memory, and the other ways'
seconds over those of the captured step. With one thread, the process's CPU time is measured. `make
bench-captured` runs it.
"""

import argparse
import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import harness

WARM_UP = 3
BUILT = """verde: 1
model: {{kind: gpt2, vocab: 50304, context: 1024, layers: 12, heads: 12, channels: 768, dropout: 0}}
data: {{kind: text, file: text, sha256: {digest}}}
seed: 1
batch: 4
sequence: 64
steps: 1000
checkpoint_interval: 1000
optimizer: {{kind: adamw, lr: 6e-4, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1,
            clip_norm: 0, decay_exempt: none}}
schedule: {{kind: constant, warmup: 0}}
"""


def trained(model):
    import torch

    return torch.optim.AdamW(
        model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True
    )


def step_of(work, model, optimizer, batch):
    def step():
        loss = work.loss(model, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def capture(name, folder, threads):
    """Writes the job. It runs in a process of its own, so that its memory is freed afterwards."""
    import repops.jobs
    import torch
    from captured_models import WORKS

    work = WORKS[name]
    torch.set_num_threads(threads)
    job = repops.jobs.Job(folder, seed=1, steps=1000, checkpoint_interval=1000)
    given = job.rows(*work.data(64), batch=work.batch)
    batch = given if isinstance(given, (list, tuple)) else [given]
    with job:
        torch.manual_seed(1)
        model = work.make()
        optimizer = trained(model)
        job.capture(step_of(work, model, optimizer, batch), model, optimizer)


def eager(name, threads):
    """Runs the peer: a step for each line of input."""
    import torch
    from captured_models import WORKS

    work = WORKS[name]
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = work.make()
    batch = [torch.from_numpy(a) for a in work.data(work.batch)]
    step = step_of(work, model, trained(model), batch)
    clock = harness.clock_of(threads)
    print("ready", flush=True)

    def reply(line):
        start = clock()
        step().item()
        return clock() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    harness.answer("", reply)


class Way(harness.Peer):
    peak = 0.0  # MB

    def step(self):
        seconds, self.peak = map(float, self.ask("step"))
        return seconds


def built(folder):
    text = os.urandom(1 << 20)
    (folder / "text").write_bytes(text)
    (folder / "built.yaml").write_text(BUILT.format(digest=hashlib.sha256(text).hexdigest()))
    return folder / "built.yaml"


def compare(worker, name, options):
    own, here = options.folder / name, [sys.executable, __file__]
    each = ["--threads", str(options.threads)]
    subprocess.run([*here, "--capture", name, "--folder", own, *each], check=True)
    ways = {
        "captured": Way([worker, own, str(options.threads)]),
        "PyTorch": Way([*here, "--eager", name, *each]),
    }
    if name == "gpt2":
        ways["built in C"] = Way([worker, built(options.folder), str(options.threads)])
    times = harness.in_turn(options.rounds, *(w.step for w in ways.values()), warm_up=WARM_UP)
    middle, *others = map(harness.median, times)
    first, *peers = ways.values()
    for way in ways.values():
        way.close()
    for other, theirs, way in zip(list(ways)[1:], others, peers):
        speed, memory = theirs / middle, first.peak / way.peak
        own_cells = f"{middle:.3f}", f"{first.peak / 1024:.2f}", other
        cells = f"{theirs:.3f}", f"{way.peak / 1024:.2f}", f"{speed:.2f}", f"{memory:.2f}"
        harness.row(name, *own_cells, *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker", nargs="?")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/bench/captured-jobs"))
    parser.add_argument("--capture", help=argparse.SUPPRESS)
    parser.add_argument("--eager", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.capture:
        return capture(options.capture, options.folder, options.threads)
    if options.eager:
        return eager(options.eager, options.threads)
    from captured_models import WORKS

    options.folder.mkdir(parents=True, exist_ok=True)
    harness.head("", "captured: s", "GB", "beside", "s", "GB", "speed", "memory")
    for name in options.models or WORKS:
        compare(options.worker, name, options)


main()
