"""Times inference of ONNX models by `verde run` beside onnxruntime: make bench-onnx PYTHON=...

usage: onnx_runtime.py [--threads N] [--rounds N] [--table FILE] [--small | --int8] [MODEL...]

Models are those of onnx_large.py, of realistic sizes; with --small those of python/tests/onnx_models.py; with --int8 two
that onnxruntime's own tools made 8-bit. PyTorch exports them. A round runs each side once, one after the other, for as many
steps as onnxruntime does in SECONDS, so that other work on the machine affects both; the fastest round of each counts.
`verde run` commits only to its last state; the time of a run of one step is subtracted, so that reading and hashing weights
is not counted."""

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python/tests"))

import harness

try:
    import numpy as np
    import onnx_large
    import onnx_models
    import onnxruntime
except ImportError as missing:
    sys.exit(
        f"bench: {missing}; it needs torch, onnx, onnxscript, onnxruntime and more"
    )

import repops.onnx
from repops.onnx._job import Answering

SECONDS, STEPS_MAX = 0.5, 1000
HEAD = """# Inference of ONNX models beside onnxruntime

`make bench-onnx` on {machine}, {threads} threads, onnxruntime {version}, {what}; the machine's
load was {load}. Milliseconds of a step, the fastest of {rounds} rounds.

| Model | verde run | onnxruntime | ratio | onnxruntime, CPU | verde, CPU |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


def jobs(name, data, folder, steps):
    """Writes two jobs, of one step and of `steps` more, with the same inputs in each step."""
    model = repops.onnx.load(folder / f"{name}.onnx")
    for count in (1, steps + 1):
        many = {
            k: np.broadcast_to(a, (count, *a.shape)).copy() for k, a in data.items()
        }
        Answering(model, many, folder / f"job{count}", interval=count).capture()


def verde(folder, steps, threads):
    """Returns seconds and CPU seconds of a run of one step and of one of more; the first is mostly
    loading weights."""
    found = []
    for count in (1, steps + 1):
        shutil.rmtree(folder / "run", ignore_errors=True)
        words = [
            os.environ["VERDE"],
            "run",
            folder / f"job{count}",
            "--out",
            folder / "run",
        ]
        before = os.times()
        said = subprocess.run(
            [*map(str, words), "--json", "--threads", str(threads)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        after = os.times()
        cpu = sum(after[2:4]) - sum(before[2:4])
        found.append((json.loads(said.splitlines()[-1])["seconds"], cpu))
    return found


def peer(path, data, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    session.run(None, data)

    def run(steps):
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            session.run(None, data)
        return [
            (time.perf_counter() - start) / steps,
            (time.process_time() - cpu) / steps,
        ]

    return run


def measured(name, o):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = o.write(name, folder)
        other = peer(folder / f"{name}.onnx", data, o.threads)
        steps = min(
            STEPS_MAX, max(5, round(SECONDS / min(other(5)[0] for _ in range(3))))
        )
        jobs(name, data, folder, steps)
        owns, others = harness.in_turn(
            o.rounds, lambda: verde(folder, steps, o.threads), lambda: other(steps), warm_up=0
        )
    one, many = ([min(own[i][k] for own in owns) for k in (0, 1)] for i in (0, 1))
    own = [(b - a) / steps for a, b in zip(one, many)]
    return own, [min(theirs[k] for theirs in others) for k in (0, 1)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("models", nargs="*")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--table")
    kinds = p.add_mutually_exclusive_group()
    kinds.add_argument("--small", action="store_true")
    kinds.add_argument("--int8", action="store_true")
    o = p.parse_args()
    o.write, names, what = onnx_large.write, onnx_large.LARGE, "float32"
    if o.small:
        o.write, names = (lambda *at: onnx_models.write(*at)[0]), onnx_models.MODELS
    if o.int8:
        o.write, names, what = onnx_large.write_int8, onnx_large.INT8, "8-bit integers"
    lines, ratios = [], []
    for name in o.models or names:
        (own, own_cpu), (theirs, theirs_cpu) = measured(name, o)
        ratios.append(theirs / own)
        cells = [own, theirs], [theirs_cpu, own_cpu]
        a, b = (" | ".join(f"{1e3 * x:.2f}" for x in c) for c in cells)
        lines.append(f"| {name} | {a} | {ratios[-1]:.2f} | {b} |")
        print(lines[-1], flush=True)
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}, least {min(ratios):.2f}")
    if o.table:
        head = HEAD.format(
            machine=platform.processor() or platform.machine(), threads=o.threads,
            version=onnxruntime.__version__, load=f"{os.getloadavg()[0]:.1f}",
            rounds=o.rounds, what=what,
        )  # fmt: skip
        Path(o.table).write_text(
            head + "\n".join(lines) + f"\n\nGeometric mean: {mean:.2f}.\n"
        )


if __name__ == "__main__":
    main()
