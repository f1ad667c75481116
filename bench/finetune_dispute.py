"""Measures a dispute over a fine-tuned GPT-2 of 124M parameters: the memory and time of a referee that has only the
model's manifest.

python3 bench/finetune_dispute.py VERDE DIR [FAULT [lora]]

Takes some 10 GB of disk in DIR. The referee's memory is the peak of its resident set (VmHWM), including everything
that it has mapped; its mappings are searched every few milliseconds for the weights' file.
"""

import json
import os
import shutil
import subprocess
import sys
import time

import finetune
import harness

NAME = "gpt2-124m"


def run(verde, where, job, name, *more):
    out = os.path.join(where, name)
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([verde, "run", job, "--out", out, *more], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return out


def serve(verde, run_dir):
    """Starts a provider. Returns its process and its URL."""
    process = subprocess.Popen([verde, "serve", run_dir, "--key", run_dir + ".key"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    return process, process.stdout.readline().strip()


def referee_folder(where, job):
    """Creates a folder with the job, the tokens and the manifest, but without the weights."""
    folder = os.path.join(where, "referee")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    shutil.copy(job, os.path.join(folder, "job.yaml"))
    for ending in (".bin", ".manifest"):
        shutil.copy(os.path.join(where, NAME + ending), folder)
    return folder


def maps_weights(pid):
    try:
        with open(f"/proc/{pid}/maps") as f:
            return ".safetensors" in f.read()
    except OSError:
        return False


def judge(verde, folder, urls):
    """Arbitrates. Returns the outcome, the peak of memory in bytes, whether weights were mapped, and
    the seconds."""
    command = [verde, "arbitrate", os.path.join(folder, "job.yaml"), "--key", os.path.join(folder, "key"),
               "--verdict", os.path.join(folder, "verdict.json"), "--no-challenge", "--json"]
    for url in urls:
        command += ["--provider", url]
    peak, mapped, start = [0], [False], time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def look():
        peak[0] = max(peak[0], *harness.kilobytes(process.pid, "VmHWM"))
        mapped[0] |= maps_weights(process.pid)

    harness.watch(process, look, 0.005)
    return json.loads(process.stdout.read()), 1024 * peak[0], mapped[0], time.monotonic() - start


def main():
    verde, where = sys.argv[1:3]
    fault = sys.argv[3] if len(sys.argv) > 3 else "element@1"
    lora = len(sys.argv) > 4
    os.makedirs(where, exist_ok=True)
    finetune.prepare(verde, where, NAME)
    job = finetune.write_job(where, NAME, lora)
    runs = [run(verde, where, job, "honest"), run(verde, where, job, "liar", "--fault", fault)]
    served = [serve(verde, r) for r in runs]
    try:
        outcome, peak, mapped, seconds = judge(verde, referee_folder(where, job), [url for _, url in served])
    finally:
        for process, _ in served:
            process.terminate()
            process.wait()
    for r in runs:
        shutil.rmtree(r)
    print(json.dumps(outcome, indent=1))
    print(f"referee: {peak / 1e6:.1f} MB at most, {'MAPPED' if mapped else 'never mapped'} weights, {seconds:.0f} s")
    if mapped or peak >= 64e6 or outcome.get("grade") != "wrong-output":
        sys.exit("not as it must be")


if __name__ == "__main__":
    main()
