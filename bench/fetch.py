"""A download of 1 GB on loopback, checked by `verde fetch`, beside the same bytes by curl over TLS 1.3, piped through sha256sum.

    fetch.py VERDE FOLDER [--rounds N]

Makes a run of a model of 1 GB in FOLDER (4 GB of disk), serves it by `verde serve --fetch` and its file by `openssl s_server`, and takes both
N times, one after the other. Prints seconds, their ratio, and the largest resident sizes of client and server.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import time

JOB = """verde: 1
model: {{kind: gpt2, vocab: 256, context: 8, layers: 5, heads: 16, channels: 2048, dropout: 0}}
data: {{kind: text, file: {data}, sha256: {sha256}}}
seed: 3
batch: 1
sequence: 8
steps: 1
checkpoint_interval: 1
optimizer: {{kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 1.0}}
schedule: {{kind: constant, warmup: 0}}
"""


def make_run(verde, folder):
    data = os.path.abspath("models/data/project.txt")
    job, run = os.path.join(folder, "job.yaml"), os.path.join(folder, "run")
    with open(data, "rb") as text, open(job, "w") as out:
        out.write(JOB.format(data=data, sha256=hashlib.sha256(text.read()).hexdigest()))
    subprocess.run([verde, "run", job, "--out", run], check=True, capture_output=True)
    subprocess.run([verde, "export", run, "--out", os.path.join(folder, "exported")], check=True, capture_output=True)
    with open(os.path.join(run, "run.json")) as file:
        return run, re.search(r'"root": "([0-9a-f]{64})"', file.read()).group(1)


def peak_kb(pid):
    with open("/proc/%d/status" % pid) as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1))


def fetch(verde, job, url, root, out):
    """Seconds, and the client's peak in kB: it is looked at while it runs."""
    shutil.rmtree(out, ignore_errors=True)
    start, peak = time.monotonic(), 0
    client = subprocess.Popen([verde, "fetch", job, "--run-root", root, "--provider", url, "--out", out, "--json"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while client.poll() is None:
        try:
            peak = max(peak, peak_kb(client.pid))
        except (AttributeError, FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
        time.sleep(0.01)
    assert client.returncode == 0
    return time.monotonic() - start, peak


def curl(port, name):
    start = time.monotonic()
    got = subprocess.run("curl -sk --http1.0 --tlsv1.3 https://127.0.0.1:%d/%s | sha256sum" % (port, name), shell=True, check=True,
                         capture_output=True, text=True)
    return time.monotonic() - start, got.stdout.split()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verde")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    verde, port = os.path.abspath(args.verde), 24443
    run, root = make_run(verde, args.folder)
    exported = os.path.join(args.folder, "exported")
    server = subprocess.Popen([verde, "serve", run, "--fetch"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = server.stdout.readline().strip()
    keys = os.path.abspath(os.path.join(run, "keys"))
    plain = subprocess.Popen(["openssl", "s_server", "-accept", str(port), "-cert", keys + "/tls.crt", "-key", keys + "/key.pem", "-tls1_3",
                              "-WWW", "-quiet"], cwd=exported, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        size = os.path.getsize(os.path.join(exported, "model.safetensors"))
        print("%.2f GB; seconds of verde fetch, of curl | sha256sum, and the second by the first" % (size / 1e9))
        for _ in range(args.rounds):
            ours, peak = fetch(verde, os.path.join(args.folder, "job.yaml"), url, root, os.path.join(args.folder, "fetched"))
            theirs, found = curl(port, "model.safetensors")
            with open(os.path.join(args.folder, "fetched", "model.safetensors"), "rb") as file:
                assert hashlib.file_digest(file, "sha256").hexdigest() == found
            print("%6.2f  %6.2f  %5.2f   client %d MB, server %d MB at most" % (ours, theirs, theirs / ours, peak / 1000,
                                                                                 peak_kb(server.pid) / 1000))
    finally:
        server.terminate()
        plain.terminate()


main()
