"""Measures steps of fine-tuning at common sizes: seconds and peak memory of each, for full fine-tuning and for
adapters.

python3 bench/finetune.py VERDE DIR [NAME[:lora]...]

Creates its input in DIR (bench/finetune_models.py), which takes some 12 GB while the 0.5B model is trained.
Memory: `own` is the process's anonymous memory (RssAnon), `mapped` the most pages of files that it had mapped,
which the system can take back. Seconds are those of the second of two steps, by wall-clock and by CPU time; CPU
time is the fairer number on a shared machine.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import finetune_models
import harness

SEQUENCE, BATCH = 128, 2
WORKS = ["gpt2-124m", "smollm-135m", "qwen2-0.5b", "qwen2-0.5b:lora", "llama3.2-1b:lora"]
JOB = """verde: 1
model: {{kind: pretrained, dir: {dir}, sha256: {manifest}}}
data: {{kind: tokens, file: {dir}.bin, sha256: {data}}}
{lora}
seed: 1
batch: {batch}
sequence: {sequence}
steps: 2
checkpoint_interval: 2
optimizer: {{kind: adamw, lr: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}}
schedule: {{kind: constant, warmup: 0}}
"""


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def prepare(verde, where, name):
    """Creates a model's folder, its tokens and its manifest, unless they exist. Returns the
    folder."""
    folder = os.path.join(where, name)
    if not os.path.exists(folder + ".manifest"):
        subprocess.run([sys.executable, finetune_models.__file__, name, folder], check=True)
        subprocess.run([verde, "manifest", folder, "--out", folder + ".manifest"], check=True, stderr=subprocess.DEVNULL)


def write_job(where, name, lora):
    folder = os.path.join(where, name)
    targets = "attn.qkv" if name.startswith("gpt2") else "attn.q, attn.v"
    path = os.path.join(where, name + (".lora" if lora else "") + ".yaml")
    with open(path, "w") as f:
        f.write(JOB.format(dir=name, manifest=sha256(folder + ".manifest"), data=sha256(folder + ".bin"),
                           lora=f"lora: {{rank: 8, alpha: 16, targets: [{targets}]}}" if lora else "",
                           batch=BATCH, sequence=SEQUENCE))
    return path


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0


def steps_done(run):
    try:
        with open(os.path.join(run, "losses.jsonl")) as f:
            return len(f.readlines())
    except OSError:
        return 0


def watched(arguments, run):
    """Runs the command. Returns its peaks of anonymous and of mapped memory in bytes, and its CPU time at the end of
    each step."""
    peak, cpu = [0, 0], []
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def look():
        peak[:] = map(max, peak, harness.kilobytes(process.pid, "RssAnon", "RssFile"))
        if steps_done(run) > len(cpu):
            cpu.append(cpu_seconds(process.pid))

    harness.watch(process, look, 0.02)
    if process.returncode:
        sys.exit(f"{' '.join(arguments)}: {process.stderr.read()}")
    return [1024 * k for k in peak], cpu


def measure(verde, where, work):
    name, _, lora = work.partition(":")
    prepare(verde, where, name)
    run = os.path.join(where, "run")
    shutil.rmtree(run, ignore_errors=True)
    (own, mapped), cpu = watched([verde, "run", write_job(where, name, lora), "--out", run], run)
    with open(os.path.join(run, "losses.jsonl")) as f:
        seconds = json.loads(f.readlines()[-1])["seconds"]
    state = max(e.stat().st_size for e in os.scandir(run) if e.name.startswith("state-"))
    shutil.rmtree(run)
    if len(cpu) < 2:
        cpu = [0, float("nan")]  # the last step ended with the process
    print(f"{work:18} {seconds:10.2f} {cpu[1] - cpu[0]:10.2f} {own / 1e9:10.2f} {mapped / 1e9:10.2f} {state / 1e6:14.2f}",
          flush=True)


def main():
    verde, where = sys.argv[1:3]
    os.makedirs(where, exist_ok=True)
    print(f"batch {BATCH}, sequence {SEQUENCE}")
    print(f"{'':18} {'s a step':>10} {'CPU s':>10} {'own GB':>10} {'mapped GB':>10} {'checkpoint MB':>14}")
    for work in sys.argv[3:] or WORKS:
        measure(verde, where, work)


if __name__ == "__main__":
    main()
