"""Runs commands of a `verde` on kept evidence.

    python3 tests/kept/ask.py say VERDE EVIDENCE            # prints the lines of said.jsonl
    python3 tests/kept/ask.py compare VERDE EVIDENCE SAID [WORDS]   # ends with 1 at the first difference

WORDS: only the commands that have them.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Members that later versions may word differently, costs, and what says who asks. `fits` is a sentence in a report alone.
FREE = {"reason", "seconds", "cpu_seconds", "level_seconds", "bytes_in", "bytes_out", "peak_bytes", "path", "url",
        "executed_on", "same_machine"}


def kept(value):
    """A JSON value without members that may change."""
    if isinstance(value, dict):
        return {k: kept(v) for k, v in value.items() if k not in FREE and not (k == "fits" and isinstance(v, str))}
    return [kept(v) for v in value] if isinstance(value, list) else value


def names(folder):
    return sorted(os.listdir(folder))


def data_of(evidence, run):
    """The option that says where the data of a run are, if it names files: `rnn-wrong` has those of `rnn`."""
    job = f"jobs/{run.split('-')[0]}"
    return ["--data", job] if os.path.exists(f"{evidence}/{job}") else ["--data", "yaml/data"] if run == "log" else []


def questions(evidence):
    """All commands in order, so that each file and each folder of the evidence is read."""
    for name in names(f"{evidence}/verdicts"):
        yield ["verify", f"verdicts/{name}", "--json"]
    for name in names(f"{evidence}/releases"):
        yield ["verify", f"releases/{name}/release.json", "--json"]
    for name in names(f"{evidence}/runs"):
        yield ["check", f"runs/{name}", *data_of(evidence, name), "--json"]
    for name in names(f"{evidence}/models"):
        yield ["check", f"models/{name}", "--json"]
    for name in names(f"{evidence}/results"):
        yield ["check", f"results/{name}", "--job", f"jobs/{name}", "--json"]
    for name in names(f"{evidence}/runs"):
        if os.path.exists(f"{evidence}/jobs/{name.split('-')[0]}/program"):
            yield ["graph", f"runs/{name}", "--json"]
            yield ["audit", f"runs/{name}", *data_of(evidence, name), "--all", "--seed", "1", "--backend", "scalar", "--json"]
    for name in names(f"{evidence}/yaml"):
        if name.endswith(".yaml"):
            with open(f"{evidence}/yaml/{name}") as f:
                prompt = ["--prompt", "7"] if re.search("^prompts:", f.read(), re.M) else []
            yield ["graph", f"yaml/{name}", *prompt, "--json"]
    for name in names(f"{evidence}/weights"):
        yield ["manifest", f"weights/{name}"]
        yield ["manifest", f"weights/{name}", "--against", f"manifests/{name}.manifest", "--json"]
    for name in names(f"{evidence}/reports"):
        yield ["inspect", f"reports/{name}", "--html", "PAGE"]
    for name in names(f"{evidence}/providers"):
        yield ["jobs", "--data", f"providers/{name}", "--json"]


def run(verde, evidence, command):
    return subprocess.run([verde, *command], cwd=evidence, capture_output=True, timeout=600)


def texts(value):
    """All texts in a JSON value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return {value} if isinstance(value, str) else set().union(*map(texts, parts))


def ask_for_page(verde, evidence, command):
    """A page for people: which of the report's long texts are on it."""
    with tempfile.TemporaryDirectory() as work:
        page = f"{work}/page.html"
        done = run(verde, evidence, [page if word == "PAGE" else word for word in command])
        html = open(page).read() if os.path.exists(page) else ""
    with open(f"{evidence}/{command[1]}") as f:
        report = kept(json.load(f))
    return done, {text: True for text in sorted(texts(report)) if len(text) > 8 and text in html} or None


def ask_daemon(verde, evidence, command):
    """A daemon that goes on in a copy of its folder is asked for its jobs, by its own key."""
    with tempfile.TemporaryDirectory() as work:
        folder = f"{work}/daemon"
        shutil.copytree(f"{evidence}/{command[2]}", folder)
        with open(f"{folder}/keys/key.pub") as f:
            client = f.read().strip()  # some key, as one must be named
        daemon = subprocess.Popen([verde, "provide", "--dir", folder, "--listen", "127.0.0.1:0", "--threads", "1", "--client", client],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            daemon.stdout.readline()  # its URL: it listens
            return run(verde, evidence, [folder if word == command[2] else word for word in command])
        finally:
            daemon.terminate()
            daemon.communicate()


def ask(verde, evidence, command):
    """A line of said.jsonl: the answer of `verde` to a command."""
    if "PAGE" in command:
        done, says = ask_for_page(verde, evidence, command)
    else:
        done = (ask_daemon if command[0] == "jobs" else run)(verde, evidence, command)
        if "--json" in command:
            says = kept(json.loads(done.stdout)) if done.stdout.strip() else None
        else:
            says = {"sha256": hashlib.sha256(done.stdout).hexdigest()}
    return {"command": command, "exit": done.returncode, "says": says}


def differs(old, new, at=""):
    """Where `new` lacks or contradicts `old`; None: nowhere. New members are no difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        return next((d for k, v in old.items() if (d := differs(v, new.get(k), f"{at}.{k}"))), None)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return next((d for i, v in enumerate(old) if (d := differs(v, new[i], f"{at}[{i}]"))), None)
    return None if old == new else f"{at or '.'} was {json.dumps(old)}, is {json.dumps(new)}"


def compare(verde, evidence, said, words=""):
    with open(said) as f:
        lines = [json.loads(line) for line in f]
    asked = [line["command"] for line in lines]
    if asked != list(questions(evidence)):
        sys.exit(f"{said}: not a line for each piece of evidence")
    lines = [line for line in lines if words in " ".join(line["command"])]
    for line in lines:
        now = ask(verde, evidence, line["command"])
        if d := differs(line, now):
            sys.exit(f"verde {' '.join(line['command'])}: {d}")
    print(f"{len(lines)} pieces of evidence are judged as they were")


if __name__ == "__main__":
    verde, evidence = os.path.abspath(sys.argv[2]), sys.argv[3]
    if sys.argv[1] == "compare":
        compare(verde, evidence, *sys.argv[4:])
    else:
        for question in questions(evidence):
            print(json.dumps(ask(verde, evidence, question), separators=(",", ":")))
