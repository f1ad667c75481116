"""Times answers of captured models (repops.jobs.Answers) by `verde run`, beside PyTorch eager.

    answers.py VERDE [MODEL...] [--rounds N] [--threads N] [--folder DIR]

Both sides compute the same batches, in turn, one round after the other. Prints a line in Markdown
for each model: the median seconds per batch of both, and PyTorch's over those of `verde run`. A run
also hashes and writes all its results. Start-up is not counted: a job of one batch is run beside one
of many, and the difference is used. With one thread, CPU time is measured. `make bench-answers` runs
it.
"""

import argparse
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import harness
import numpy as np
import repops.jobs
import torch

BATCHES = 9


class Work(NamedTuple):
    make: object  # returns the model
    inputs: object  # returns the input arrays, with as many rows as asked for
    batch: int


def vit():
    import timm

    return timm.create_model("vit_small_patch16_224", num_classes=1000)


def bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig())  # base


def resnet():
    import torchvision

    return torchvision.models.resnet50()


def images(rows):
    return np.random.default_rng(1).standard_normal((rows, 3, 224, 224), "f4")


def tokens(rows):
    rng = np.random.default_rng(1)
    ids, lengths = rng.integers(1, 30000, (rows, 128)), rng.integers(60, 129, rows)
    mask = (np.arange(128)[None] < lengths[:, None]).astype("i8")
    return {"input_ids": ids * mask, "attention_mask": mask}


WORKS = {
    "vit": Work(vit, images, 4),
    "bert": Work(bert, tokens, 4),
    "resnet50": Work(resnet, images, 4),
}


def clock(threads, of_children=False):
    if threads > 1:
        return time.perf_counter()
    used = resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(verde, folder, threads):
    """Returns the seconds that the whole job takes."""
    out = folder.with_name(f"{folder.name}-run")
    shutil.rmtree(out, ignore_errors=True)
    start = clock(threads, True)
    words = [verde, "run", folder, "--out", out, "--threads", str(threads)]
    subprocess.run(words, check=True, capture_output=True)
    return clock(threads, True) - start


def eager(model, inputs, batch, threads):
    """Returns the seconds per batch."""
    start = clock(threads)
    with torch.no_grad():
        for first in range(0, BATCHES * batch, batch):
            if isinstance(inputs, dict):
                named = {n: torch.from_numpy(a[first : first + batch]) for n, a in inputs.items()}
                model(**named)
            else:
                model(torch.from_numpy(inputs[first : first + batch]))
    return (clock(threads) - start) / BATCHES


def compare(name, options):
    work, verde, threads = WORKS[name], options.verde, options.threads
    torch.manual_seed(1)
    model = work.make().eval()
    for count in (1, BATCHES):
        inputs, folder = work.inputs(count * work.batch), options.folder / f"{name}-{count}"
        repops.jobs.Answers(model, model, inputs, folder=folder, batch=work.batch)

    def own():
        once = run(verde, options.folder / f"{name}-1", threads)
        all_of = run(verde, options.folder / f"{name}-{BATCHES}", threads)
        return (all_of - once) / (BATCHES - 1)

    def other():
        return eager(model, inputs, work.batch, threads)

    ours, theirs = map(harness.median, harness.in_turn(options.rounds, own, other))
    cells = f"{ours:.3f}", f"{theirs:.3f}", f"{theirs / ours:.2f}"
    harness.row(f"{name}, B={work.batch}", *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verde")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/bench/answers"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    harness.head("a batch of", "verde run: s", "PyTorch: s", "speed")
    for name in options.models or WORKS:
        compare(name, options)


main()
