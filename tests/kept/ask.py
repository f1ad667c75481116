"""Runs commands of a `verde` on kept evidence.

    python3 tests/kept/ask.py say VERDE EVIDENCE            # prints the lines of said.jsonl
    python3 tests/kept/ask.py compare VERDE EVIDENCE SAID   # ends with 1 at the first difference
"""

import hashlib
import json
import os
import subprocess
import sys

# Members that later versions may word differently, and costs of a dispute.
FREE = {"reason", "seconds", "cpu_seconds", "level_seconds", "bytes_in", "bytes_out", "peak_bytes", "path"}


def kept(value):
    """A JSON value without members that may change."""
    if isinstance(value, dict):
        return {k: kept(v) for k, v in value.items() if k not in FREE}
    return [kept(v) for v in value] if isinstance(value, list) else value


def questions(evidence):
    """All commands in order: each file of `verdicts` and `frauds`, each folder of `runs`, `models`, `results` and
    `weights`."""
    for name in sorted(os.listdir(f"{evidence}/verdicts")):
        yield ["verify", f"verdicts/{name}", "--json"]
    for name in sorted(os.listdir(f"{evidence}/runs")):
        data = ["--data", f"jobs/{name}"] if os.path.exists(f"{evidence}/jobs/{name}") else []
        yield ["check", f"runs/{name}", *data, "--json"]
    for name in sorted(os.listdir(f"{evidence}/models")):
        yield ["check", f"models/{name}", "--json"]
    for name in sorted(os.listdir(f"{evidence}/results")):
        yield ["check", f"results/{name}", "--job", f"jobs/{name}", "--json"]
    for name in sorted(os.listdir(f"{evidence}/runs")):
        if os.path.exists(f"{evidence}/runs/{name}/program"):
            yield ["graph", f"runs/{name}", "--json"]
    for name in sorted(os.listdir(f"{evidence}/weights")):
        yield ["manifest", f"weights/{name}"]


def ask(verde, evidence, command):
    """A line of said.jsonl: the answer of `verde` to a command."""
    done = subprocess.run([verde, *command], cwd=evidence, capture_output=True, timeout=600)
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


def compare(verde, evidence, said):
    with open(said) as f:
        lines = [json.loads(line) for line in f]
    asked = [line["command"] for line in lines]
    if asked != list(questions(evidence)):
        sys.exit(f"{said}: not a line for each piece of evidence")
    for line in lines:
        now = ask(verde, evidence, line["command"])
        if d := differs(line, now):
            sys.exit(f"verde {' '.join(line['command'])}: {d}")
    print(f"{len(lines)} pieces of evidence are judged as they were")


if __name__ == "__main__":
    verde, evidence = os.path.abspath(sys.argv[2]), sys.argv[3]
    if sys.argv[1] == "compare":
        compare(verde, evidence, sys.argv[4])
    else:
        for question in questions(evidence):
            print(json.dumps(ask(verde, evidence, question), separators=(",", ":")))
