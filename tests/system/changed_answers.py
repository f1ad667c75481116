"""Changes one thing in each answer: `verde audit --results` must name it, and the right value.

Usage: changed_answers.py VERDE WORK JOB...; WORK/JOB.yaml was run into WORK/JOB.
"""
import copy
import json
import os
import struct
import subprocess
import sys


def audit(verde, job, folder, lines):
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/results.jsonl", "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    run = subprocess.run([verde, "audit", job, "--results", folder, "--json"], capture_output=True, text=True)
    assert run.returncode in (0, 9), run.stderr
    report = json.loads(run.stdout)
    assert report["equal"] == (run.returncode == 0) == (not report["differences"]), report
    return report["differences"]


def next_real(x):
    """The next binary32 number, as a line has it."""
    bits, = struct.unpack("<I", struct.pack("<f", x))
    return float("%.9g" % struct.unpack("<f", struct.pack("<I", bits ^ 1))[0])


def changes(line):
    """Everything in a line that can be changed: its place, a function that changes it, and the right value, if it is a token."""
    def token(i):
        def change(x):
            x["ids"][i] = (x["ids"][i] + 1) % 64
        return change

    def real(i):
        def change(x):
            x["log_probabilities"][i] = next_real(x["log_probabilities"][i])
        return change

    def best(i, k, what):
        def change(x):
            pair = x["best"][i][k]
            pair[what] = next_real(pair[1]) if what else (pair[0] + 1) % 64
        return change

    def shorter(x):
        for name in ("ids", "log_probabilities", "best"):
            if name in x:
                x[name].pop()
        x["stopped"] = "length"

    def longer(x):
        for name in ("ids", "log_probabilities", "best"):
            if name in x:
                x[name].append(x[name][-1])

    def stop(x):
        x["stopped"] = "length" if x["stopped"] == "stop" else "stop"

    n = len(line["ids"])
    yield "stopped", stop, None
    yield f"ids[{n - 1}]", shorter, line["ids"][-1]
    yield f"ids[{n}]", longer, None
    for i in range(n):
        yield f"ids[{i}]", token(i), line["ids"][i]
        if "log_probabilities" in line:
            yield f"log_probabilities[{i}]", real(i), None
        for k, pair in enumerate(line.get("best", ())):
            if i < 3 and k < 2:
                yield f"best[{i}][{k}][0]", best(i, k, 0), line["best"][i][k][0]
                yield f"best[{i}][{k}][1]", best(i, k, 1), None
    if "log_probabilities" in line:
        yield "not_finite", lambda x: x.update(not_finite=1), None


def check_lines(verde, job, folder, lines):
    """Changes one thing in every line at a time: each is named."""
    todo = [list(changes(line)) for line in lines]
    for at in range(max(map(len, todo))):
        changed = copy.deepcopy(lines)
        for line, own in zip(changed, todo):
            own[at % len(own)][1](line)
        found = audit(verde, job, folder, changed)
        assert len(found) == len(lines), (at, found)
        for i, (difference, own) in enumerate(zip(found, todo)):
            place, _, right = own[at % len(own)]
            assert difference["prompt"] == i + 1 and difference["key"] == lines[i]["key"], difference
            assert difference["place"] == place, (place, difference)
            assert difference["result"] != difference["right"], difference
            assert right is None or difference["right"] == str(right), (right, difference)
            if place.startswith("log") or (place.startswith("best") and place.endswith("[1]")):
                assert difference["right"].endswith(")") and "(0x" in difference["result"], difference
    return max(map(len, todo))


def check_order(verde, job, folder, lines):
    swapped = [lines[0], lines[2], lines[1], lines[3]]
    found, = audit(verde, job, folder, swapped)
    assert found["place"] == "line 2" and found["prompt"] == 2 and found["right"] == f"key {lines[1]['key']}", found
    assert found["result"] == f"key {lines[2]['key']}", found
    found, = audit(verde, job, folder, lines[:3])
    assert found["place"] == "line 4" and found["result"] == "nothing", found
    found, = audit(verde, job, folder, lines[:1] + lines[2:])
    assert found["place"] == "line 2" and found["prompt"] == 2, found
    found, = audit(verde, job, folder, lines + [dict(lines[0], key=3)])
    assert found["place"] == "line 5" and found["prompt"] is None and found["right"] == "nothing", found
    # Two prompts with swapped answers: both are wrong, and the order is right.
    swapped = [lines[0], dict(lines[3], key=lines[1]["key"]), lines[2], dict(lines[1], key=lines[3]["key"])]
    assert [d["prompt"] for d in audit(verde, job, folder, swapped)] == [2, 4]
    # Invalid tokens, and no tokens.
    for ids in ([], [-1], [64], [2**40]):
        line = dict(lines[0], ids=ids)
        for name in ("log_probabilities", "best"):
            if name in line:
                line[name] = line[name][: len(ids)]
        found, = audit(verde, job, folder, [line] + lines[1:])
        assert found["place"] == "ids[0]" and found["right"] == str(lines[0]["ids"][0]), found


def main():
    verde, work, *jobs = sys.argv[1:]
    for name in jobs:
        job, folder = f"{work}/{name}.yaml", f"{work}/{name}.changed"
        lines = [json.loads(line) for line in open(f"{work}/{name}/results.jsonl")]
        assert not audit(verde, job, folder, lines)
        count = check_lines(verde, job, folder, lines)
        check_order(verde, job, folder, lines)
        print(f"{name}: {count} changes of each of {len(lines)} answers are named")


main()
