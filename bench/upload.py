"""An upload of 1 GB on loopback by `verde delegate`, beside the same bytes by curl over TLS 1.3, piped through sha256sum.

    upload.py VERDE FOLDER [--rounds N]

Hands a job with a text of 1 GB to a daemon that takes the text and then refuses the job, as it has too little memory for it, and takes the
text by curl from `openssl s_server`, N times, one after the other (3 GB of disk). Prints seconds from the first byte to the last one that is
checked, their ratio, the whole time of the command, which hashes the text before, and the largest resident sizes of client and daemon.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import time

SIZE = 1 << 30
JOB = """verde: 1
model: {{kind: gpt2, vocab: 256, context: 8, layers: 1, heads: 1, channels: 8, dropout: 0}}
data: {{kind: text, file: text, sha256: {sha256}}}
seed: 3
batch: 1
sequence: 8
steps: 1
checkpoint_interval: 1
optimizer: {{kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 1.0}}
schedule: {{kind: constant, warmup: 0}}
"""


def make_job(folder):
    digest = hashlib.sha256()
    with open(os.path.join(folder, "text"), "wb") as text:
        for _ in range(SIZE >> 20):
            block = os.urandom(1 << 20)
            digest.update(block)
            text.write(block)
    with open(os.path.join(folder, "job.yaml"), "w") as out:
        out.write(JOB.format(sha256=digest.hexdigest()))
    return digest.hexdigest()


def peak_kb(pid):
    with open("/proc/%d/status" % pid) as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1))


def start_daemon(verde, folder, client):
    shutil.rmtree(folder, ignore_errors=True)
    daemon = subprocess.Popen([verde, "provide", "--dir", folder, "--listen", "127.0.0.1:0", "--client", client, "--memory", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return daemon, daemon.stdout.readline().strip()


def upload(verde, folder, urls, key, data, blob):
    """Seconds of the upload and of the whole command, and the client's peak in kB: all is looked at while it runs."""
    begin, first, last, peak = time.monotonic(), None, None, 0
    client = subprocess.Popen([verde, "delegate", os.path.join(folder, "job.yaml"), "--key", key, "--out", os.path.join(folder, "result")]
                              + [word for url in urls for word in ("--provider", url)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while client.poll() is None:
        now = time.monotonic()
        partial = os.path.join(data, "uploads")
        if first is None and any(blob in name for name in os.listdir(partial)):
            first = now
        if last is None and os.path.exists(os.path.join(data, "blobs", blob)):
            last = now
        try:
            peak = max(peak, peak_kb(client.pid))
        except (AttributeError, FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
        time.sleep(0.005)
    assert client.returncode == 5 and first and last, (client.returncode, first, last)
    return last - first, time.monotonic() - begin, peak


def curl(port):
    start = time.monotonic()
    got = subprocess.run("curl -sk --http1.0 --tlsv1.3 https://127.0.0.1:%d/text | sha256sum" % port, shell=True, check=True,
                         capture_output=True, text=True)
    return time.monotonic() - start, got.stdout.split()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verde")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    verde, port, keys = os.path.abspath(args.verde), 24444, os.path.abspath(os.path.join(args.folder, "client"))
    blob = make_job(args.folder)
    subprocess.run([verde, "keygen", keys, "--json"], check=True, stdout=subprocess.DEVNULL)
    with open(keys + "/key.pub") as file:
        own = file.read().strip()
    # Two providers are the fewest; the other one knows another client alone, and refuses at once.
    subprocess.run([verde, "keygen", keys + "-other", "--json"], check=True, stdout=subprocess.DEVNULL)
    with open(keys + "-other/key.pub") as file:
        other, other_url = start_daemon(verde, os.path.join(args.folder, "other"), file.read().strip())
    plain = subprocess.Popen(["openssl", "s_server", "-accept", str(port), "-cert", keys + "/tls.crt", "-key", keys + "/key.pem", "-tls1_3",
                              "-WWW", "-quiet"], cwd=args.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        print("%.2f GB; seconds of an upload, of curl | sha256sum, and the second by the first" % (SIZE / 1e9))
        for _ in range(args.rounds):
            data = os.path.join(args.folder, "data")
            daemon, url = start_daemon(verde, data, own)
            ours, whole, peak = upload(verde, args.folder, [url, other_url], keys, data, blob)
            theirs, found = curl(port)
            assert found == blob
            print("%6.2f  %6.2f  %5.2f   %.2f s with hashing; client %d MB, daemon %d MB at most"
                  % (ours, theirs, theirs / ours, whole, peak / 1000, peak_kb(daemon.pid) / 1000), flush=True)
            daemon.terminate()
            daemon.wait()
    finally:
        other.terminate()
        plain.terminate()


main()
