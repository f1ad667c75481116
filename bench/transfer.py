"""Times the transfer of 1 GB on loopback by `verde`, with every byte checked, beside the same bytes by curl over TLS 1.3, piped through
sha256sum.

    transfer.py fetch|upload VERDE FOLDER [--rounds N]

fetch: makes a run of a model of 1 GB in FOLDER (4 GB of disk), serves it by `verde serve --fetch`, and downloads it by `verde fetch`. upload:
gives `verde delegate` a job with a text of 1 GB, for a daemon that accepts the text and then refuses the job, as it has too little memory for
it (3 GB of disk); the seconds are from the first byte to the last one that is checked.

Each is followed by curl from `openssl s_server`, N times, one after the other. Prints seconds, their ratio, and the peak resident memory of
client and server; for an upload also the time of the whole command, which first hashes the text.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import time

import harness

PORT = 24443
LAYERS, CHANNELS = 5, 2048  # of the model that is downloaded
TEXT_BYTES = 1 << 30
JOB = """verde: 1
model: {{kind: gpt2, vocab: 256, context: 8, layers: {layers}, heads: {heads}, channels: {channels}, dropout: 0}}
data: {{kind: text, file: {data}, sha256: {sha256}}}
seed: 3
batch: 1
sequence: 8
steps: 1
checkpoint_interval: 1
optimizer: {{kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 1.0}}
schedule: {{kind: constant, warmup: 0}}
"""


def sha_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_job(folder, data, layers, heads, channels):
    job = os.path.join(folder, "job.yaml")
    with open(job, "w") as out:
        out.write(JOB.format(data=data, sha256=sha_of(os.path.join(folder, data)), layers=layers, heads=heads, channels=channels))
    return job


def peak_kb(pid):
    return harness.kilobytes(pid, "VmHWM")[0]


def peak_until_end(process, look=lambda: None):
    """Waits for the process. Returns its peak memory in kB; calls `look` repeatedly while it
    runs."""
    peak = [0]

    def look_twice():
        look()
        peak[0] = max(peak[0], peak_kb(process.pid))

    harness.watch(process, look_twice, 0.005)
    return peak[0]


def start(*command, **options):
    """Starts a server. Returns its process and the URL that it prints."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)
    return process, process.stdout.readline().strip()


def serve_plainly(keys, folder):
    return subprocess.Popen(["openssl", "s_server", "-accept", str(PORT), "-cert", keys + "/tls.crt", "-key", keys + "/key.pem", "-tls1_3",
                             "-WWW", "-quiet"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def curl(name):
    begin = time.monotonic()
    got = subprocess.run("curl -sk --http1.0 --tlsv1.3 --retry 5 --retry-connrefused https://127.0.0.1:%d/%s | sha256sum" % (PORT, name),
                         shell=True, check=True, capture_output=True, text=True)
    return time.monotonic() - begin, got.stdout.split()[0]


def tell(ours, theirs, rest):
    print("%6.2f  %6.2f  %5.2f   %s" % (ours, theirs, theirs / ours, rest), flush=True)


# ---- download ----

def fetch_once(verde, job, url, root, out):
    shutil.rmtree(out, ignore_errors=True)
    begin = time.monotonic()
    client = subprocess.Popen([verde, "fetch", job, "--run-root", root, "--provider", url, "--out", out, "--json"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = peak_until_end(client)
    assert client.returncode == 0
    return time.monotonic() - begin, peak


def fetch(verde, folder, rounds):
    job = write_job(folder, os.path.abspath("models/data/project.txt"), LAYERS, 16, CHANNELS)
    run, exported, fetched = (os.path.join(folder, name) for name in ("run", "exported", "fetched"))
    subprocess.run([verde, "run", job, "--out", run], check=True, capture_output=True)
    subprocess.run([verde, "export", run, "--out", exported], check=True, capture_output=True)
    with open(os.path.join(run, "run.json")) as file:
        root = re.search(r'"root": "([0-9a-f]{64})"', file.read()).group(1)
    server, url = start(verde, "serve", run, "--fetch")
    plain = serve_plainly(os.path.join(run, "keys"), exported)
    try:
        size = os.path.getsize(os.path.join(exported, "model.safetensors"))
        print("%.2f GB; seconds of verde fetch, of curl | sha256sum, and the second by the first" % (size / 1e9))
        for _ in range(rounds):
            ours, peak = fetch_once(verde, job, url, root, fetched)
            theirs, found = curl("model.safetensors")
            assert sha_of(os.path.join(fetched, "model.safetensors")) == found
            tell(ours, theirs, "client %d MB, server %d MB at most" % (peak / 1000, peak_kb(server.pid) / 1000))
    finally:
        server.terminate()
        plain.terminate()


# ---- upload ----

def make_client(verde, keys):
    subprocess.run([verde, "keygen", keys, "--json"], check=True, stdout=subprocess.DEVNULL)
    with open(keys + "/key.pub") as file:
        return file.read().strip()


def start_daemon(verde, folder, client):
    shutil.rmtree(folder, ignore_errors=True)
    return start(verde, "provide", "--dir", folder, "--listen", "127.0.0.1:0", "--client", client, "--memory", "1")


def upload_once(verde, folder, urls, keys, data, blob):
    """Returns the seconds of the upload and of the whole command, and the client's peak memory in
    kB."""
    begin, seen = time.monotonic(), {}
    client = subprocess.Popen([verde, "delegate", os.path.join(folder, "job.yaml"), "--key", keys, "--out", os.path.join(folder, "result")]
                              + [word for url in urls for word in ("--provider", url)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def look():
        if any(blob in name for name in os.listdir(os.path.join(data, "uploads"))):
            seen.setdefault("first", time.monotonic())
        if os.path.exists(os.path.join(data, "blobs", blob)):
            seen.setdefault("last", time.monotonic())
    peak = peak_until_end(client, look)
    assert client.returncode == 5 and len(seen) == 2, (client.returncode, seen)
    return seen["last"] - seen["first"], time.monotonic() - begin, peak


def write_text(path):
    with open(path, "wb") as text:
        for _ in range(TEXT_BYTES >> 20):
            text.write(os.urandom(1 << 20))
    return sha_of(path)


def upload(verde, folder, rounds):
    blob = write_text(os.path.join(folder, "text"))
    write_job(folder, "text", 1, 1, 8)
    keys, data = os.path.join(folder, "client"), os.path.join(folder, "data")
    own = make_client(verde, keys)
    # A delegation needs two providers. Nobody listens at the second one's port, which is asked again until the first one has
    # refused.
    nobody = "https://127.0.0.1:1#" + make_client(verde, keys + "-other")
    plain = serve_plainly(keys, folder)
    try:
        print("%.2f GB; seconds of an upload, of curl | sha256sum, and the second by the first" % (TEXT_BYTES / 1e9))
        for _ in range(rounds):
            daemon, url = start_daemon(verde, data, own)
            ours, whole, peak = upload_once(verde, folder, [url, nobody], keys, data, blob)
            theirs, found = curl("text")
            assert found == blob
            tell(ours, theirs, "%.2f s with hashing; client %d MB, daemon %d MB at most"
                 % (whole, peak / 1000, peak_kb(daemon.pid) / 1000))
            daemon.terminate()
            daemon.wait()
    finally:
        plain.terminate()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("fetch", "upload"))
    parser.add_argument("verde", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    {"fetch": fetch, "upload": upload}[args.what](args.verde, args.folder, args.rounds)


main()
