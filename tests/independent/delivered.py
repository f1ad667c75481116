#!/usr/bin/env python3
"""Are these weights those of the run that a verdict accepts? From PROTOCOL.md section 7 and safetensors' description
alone. Usage: delivered.py MODEL VERDICT

MODEL: a folder with model.safetensors and proof.json. Names of other programs are not known here: a tensor may be any leaf of its
shape. Exit codes as verify.py's."""

import json
import sys

from notes import (Later, NotJudged, Refused, exactly, from_base64, from_hex, is_integer, need, need_version,
                   parse_known)
from program import Program
from trees import LEAF, root_of, root_of_path, state_commitment, tensor_commitment
from verify import decide

TYPES = {"F32": (1, 4), "I32": (2, 4), "U8": (3, 1), "U16": (4, 2), "I8": (7, 1)}


def tensors(data):
    """Name, shape as in PROTOCOL.md, and bytes of each tensor in a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    for name, info in header.items():
        if name == "__metadata__":
            continue
        need(info["dtype"] in TYPES, f"{name} is {info['dtype']}")
        begin, end = info["data_offsets"]
        dtype, width = TYPES[info["dtype"]]
        shape = dtype, tuple(info["shape"] or [1])
        bytes_ = data[8 + size + begin:8 + size + end]
        expected = width
        for dim in shape[1]:
            expected *= dim
        need(len(bytes_) == expected, f"{name} has {len(bytes_)} bytes")
        yield name, shape, bytes_


def commitment(shape, data):
    return tensor_commitment(shape, root_of([data[i:i + LEAF] for i in range(0, len(data), LEAF)]))


def read_proof(data):
    said = parse_known(data[:-1] if data[-1:] == b"\n" else data, (1 << 18) + 256, "the proof")
    need_version(said.get("verde_proof"), "a proof")
    exactly(said, ("verde_proof", "program", "step", "tensors", "path", "run_root"), "the proof", ("logs",))
    encoded = from_base64(said.get("program"))
    need(encoded is not None, "the program is not canonical base64")
    program = Program(encoded)
    leaves = [from_hex(h) for h in said["tensors"]]
    path = [from_hex(h) for h in said["path"]]
    need(None not in leaves and None not in path, "a hash is none")
    need(len(leaves) == len(program.leaves), "another number of commitments than leaves")
    step = said["step"]
    need(is_integer(step) and step in program.run_steps(), "the step is no checkpoint")
    return program, step, leaves, path


def check(folder, verdict):
    with open(verdict, "rb") as file:
        text = file.read()
    outcome = decide(text)
    need(outcome["accepted"], "the verdict accepts nothing")
    with open(folder + "/proof.json", "rb") as file:
        program, step, leaves, path = read_proof(file.read())
    payload = json.loads(from_base64(json.loads(text)["payload"]))
    need(payload["subject"][0]["digest"]["sha256"] == program.hash.hex(), "the verdict is about another program")
    state = state_commitment(program.hash, step, root_of(leaves))
    steps = program.run_steps()
    root = root_of_path(steps.index(step), len(steps), state, path)
    need(root is not None and root.hex() == outcome["run_root"], "the proof leads to another run root")
    with open(folder + "/model.safetensors", "rb") as file:
        found = list(tensors(file.read()))
    known = dict(zip((name for name, _ in program.leaves), leaves))
    shapes = [shape for _, shape in program.leaves]
    for name, shape, data in found:
        own = commitment(shape, data)
        possible = [known[name]] if name in known else [h for h, s in zip(leaves, shapes) if s == shape]
        need(own in possible, f"{name} is no leaf of the state")
    return f"{len(found)} tensors of the accepted run, after step {step}"


def told(check, *arguments):
    """Prints the result of a check, and returns the exit code."""
    try:
        said = check(*arguments)
    except (Refused, KeyError, TypeError, ValueError, OSError) as why:
        print(f"does not hold: {why}")
        return 6
    except Later as why:
        print(f"not decided: {why}")
        return 8
    except NotJudged as why:
        print(f"not judged: {why}")
        return 1
    print(f"holds: {said}")
    return 0


def main(arguments):
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    return told(check, *arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
