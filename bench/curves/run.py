"""Trains the same job with different ways to compute products and store numbers, and compares the losses.

    python3 bench/curves/run.py VERDE DIR [JOB[:SETTING]...] [--out RESULTS] [--threads N] [--torch PYTHON]

A JOB is a file of this folder without .yaml. Runs take place in DIR; RESULTS/JOB.json gets their losses and run roots, which are the same
on every machine. Existing runs are not repeated, and interrupted ones continue; after a change of a job, remove its results. `pytorch`
and `pytorch_bf16` are skipped without a Python that has PyTorch and transformers. Writes RESULTS/JOB.svg and RESULTS/table.md from all
results.
"""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import plot
import table

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = {"pytorch": "float32", "pytorch_bf16": "bfloat16"}
# `nudged` is fp32 with a learning rate one unit larger in its last place: the smallest possible change of a run.
WAYS = ["fp32", "fixed24", "fixed16", "fixed8", "bf16", "nudged"]
SEEDS = ["seed2", "seed3", "seed4", "seed5"]
# Different products forward, for gradients of inputs, and for gradients of weights.
MIXED = ["fixed8_fixed16_fixed16", "fixed8_fp32_fp32"]
# `seed3` is fp32 with that seed, `bf16-seed3` is bf16 with it.
SETTINGS = {
    "gpt2-1m": [*WAYS, *MIXED, *SEEDS, *(f"{way}-{seed}" for seed in SEEDS[1:] for way in [*WAYS[1:], *MIXED])],
    "gpt2-10m": [*WAYS, *MIXED, "seed2", *TORCH],
    "gpt2-124m": [*WAYS, *MIXED, "seed2", *TORCH],
    "resnet50": [*WAYS, *MIXED, "seed2", "seed3", "seed4"],
}
SOURCES = "af8930f016f41428d4e0651cebb38f06df4a3bc8", ["repops", "verde", "docs"], (".c", ".h", ".md")


def next_f32(x):
    (word,) = struct.unpack("<I", struct.pack("<f", x))
    return "%.9g" % struct.unpack("<f", struct.pack("<I", word + 1))


def job_with(text, setting):
    """Returns the job file `text` with one thing changed, or also its seed."""
    way, seed = re.fullmatch(r"(.*?)-?(?:seed(\d+))?", setting).groups()
    if seed:
        text = re.sub(r"(?m)^seed: .*", f"seed: {seed}", text)
    if way == "nudged":
        return re.sub(r"\blr: ([0-9.e-]+)", lambda m: "lr: " + next_f32(float(m[1])), text, count=1)
    if way == "bf16":
        return text + "storage: bf16\n"
    if way in MIXED:
        way = "{{forward: {}, gradient_x: {}, gradient_w: {}}}".format(*way.split("_"))
    return text if way in ("", "fp32") else text + f"products: {way}\n"


def write_sources(path):
    """Writes the text of gpt2-10m: files of one commit of this project, in git's order."""
    commit, places, ends = SOURCES
    if subprocess.run(["git", "-C", HERE, "cat-file", "-e", commit], stderr=subprocess.DEVNULL).returncode:
        sys.exit(f"gpt2-10m: its text is this project's files at commit {commit}, and this folder has no such history of git")
    names = subprocess.run(["git", "-C", HERE, "ls-tree", "-r", "--name-only", "--full-tree", commit, *places],
                           stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    asked = "".join(f"{commit}:{name}\n" for name in names if name.endswith(ends))
    told = subprocess.run(["git", "-C", HERE, "cat-file", "--batch"], input=asked.encode(), stdout=subprocess.PIPE, check=True).stdout
    at = 0
    with open(path, "wb") as f:
        while at < len(told):
            head = told.index(b"\n", at)  # the line of an object's hash, type and size
            size = int(told[at:head].split()[2])
            f.write(told[head + 1:head + 1 + size])
            at = head + size + 2


def read_losses(run):
    with open(os.path.join(run, "losses.jsonl")) as f:
        return [json.loads(line)["loss"] for line in f]


def write_job(where, name, setting):
    """Writes the job's file into `where` and returns its path."""
    job = os.path.join(where, f"{name}.{setting}.yaml")
    with open(os.path.join(HERE, name + ".yaml")) as f:
        text = f.read()
    if "file: sources.txt" in text:
        write_sources(os.path.join(where, "sources.txt"))
    data = os.path.abspath(os.path.join(HERE, "../../models/data"))
    with open(job, "w") as f:
        f.write(job_with(text.replace("../../models/data", data), setting))
    return job


def train(options, where, name, setting):
    """Trains by `verde run`, which continues an interrupted run."""
    run, job = os.path.join(where, f"{name}.{setting}"), write_job(where, name, setting)
    done = subprocess.run([options.verde, "run", job, "--out", run, "--threads", str(options.threads), "--keep", "3", "--json"],
                          stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{name}, {setting}: verde run has failed")
    result = {"root": json.loads(done.stdout.splitlines()[-1])["run_root"], "losses": read_losses(run)}
    shutil.rmtree(run)
    return result


def train_torch(options, where, name, setting):
    """Trains in PyTorch, from the weights of the job's initialisation."""
    job = write_job(where, name, "fp32")
    run, model, short = (os.path.join(where, f"{name}.{what}") for what in ("first", "model", "first.yaml"))
    with open(job) as f, open(short, "w") as g:
        g.write(re.sub(r"(?m)\b(steps|checkpoint_interval): \d+$", r"\1: 1", re.sub(r"\bwarmup: \d+", "warmup: 0", f.read())))
    subprocess.run([options.verde, "run", short, "--out", run], check=True)
    subprocess.run([options.verde, "export", run, "--step", "0", "--out", model, "--force"], check=True)
    shutil.rmtree(run)
    told = subprocess.run([options.torch, os.path.join(HERE, "peer.py"), job, model, TORCH[setting], "--threads", str(options.threads)],
                          stdout=subprocess.PIPE, check=True).stdout
    return {"losses": json.loads(told)}


def read_results(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return json.load(f)


def in_order(name, results):
    return {setting: results[setting] for setting in SETTINGS[name] if setting in results}


def write_results(path, results):
    runs = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in results.items())
    with open(path + ".new", "w") as f:
        f.write("{\n" + runs + "\n}\n")
    os.replace(path + ".new", path)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("verde")
    parser.add_argument("dir")
    parser.add_argument("works", nargs="*", metavar="JOB[:SETTING]")
    parser.add_argument("--out")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--torch", metavar="PYTHON")
    options = parser.parse_intermixed_args()
    options.out = options.out or options.dir
    return options


def main():
    options = parse()
    for place in (options.dir, options.out):
        os.makedirs(place, exist_ok=True)
    for work in options.works or SETTINGS:
        name, _, one = work.partition(":")
        path = os.path.join(options.out, name + ".json")
        for setting in [one] if one else SETTINGS[name]:
            if setting not in read_results(path) and (options.torch or setting not in TORCH):
                result = (train_torch if setting in TORCH else train)(options, options.dir, name, setting)
                write_results(path, {**read_results(path), setting: result})
    all_results = {name: in_order(name, read_results(os.path.join(options.out, name + ".json"))) for name in SETTINGS}
    for name, results in all_results.items():
        if "fp32" in results:
            plot.write(os.path.join(options.out, name + ".svg"), name, results)
    table.write(os.path.join(options.out, "table.md"), all_results)


if __name__ == "__main__":
    main()
