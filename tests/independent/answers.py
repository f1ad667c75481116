#!/usr/bin/env python3
"""Are these answers those of the run that a verdict accepts? From PROTOCOL.md sections 1, 2 and 8 and docs/formats.md
alone. Usage: answers.py JOB RESULT [VERDICT]

JOB: a folder with a pack of programs. RESULT: a folder with results.proof and answers/. Exit codes as verify.py's."""

import ast
import json
import sys
from struct import pack, unpack_from

from delivered import commitment, tensors, told
from notes import from_base64, need, need_known, tagged
from program import Program
from trees import root_of, root_of_path, state_commitment, tensor_bytes
from verify import decide

OTHERS = ("text", "count", "stopped", "log_probability", "best", "best_log_probability", "class_log_probability")
TYPES = {"<f4": 1, "<i4": 2, "|u1": 3, "<u2": 4, "<f2": 6, "|i1": 7}


class Bytes:
    """A cursor over bytes."""

    def __init__(self, data, what):
        self.data, self.at, self.what = data, 0, what

    def take(self, size):
        need(len(self.data) - self.at >= size, f"{self.what} ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def numbers(self, layout, size):
        return unpack_from("<" + layout, self.take(size))

    def end(self):
        need(self.at == len(self.data), f"{self.what} has bytes behind its end")


def unpacked(data):
    """For each item of a pack: its program, and the bytes of its own data tensors (section 8.7)."""
    data = Bytes(data, "the pack")
    need(data.take(11) == b"verde pack\0", "it is no pack")
    version, count, own = data.numbers("HIH", 8)
    need_known(version == 1, f"version {version} of a pack")
    need(1 <= count <= 65536 and 1 <= own <= 4, "the pack has too many items")
    codes = {}
    for number in range(count):
        _, base, size = data.numbers("QII", 16)
        changes = data.take(size)
        if base == number:
            code = codes[number] = changes
        else:
            need(base in codes, "an item is like none that stands before it")
            code, changes = bytearray(codes[base]), Bytes(changes, "an item's changes")
            while changes.at < size:
                at, length = changes.numbers("II", 8)
                need(at + length <= len(code), "a change is not in the program")
                code[at:at + length] = changes.take(length)
        program, held = Program(bytes(code)), Bytes(data.take(data.numbers("I", 4)[0]), "an item's data")
        tensors = [held.take(tensor_bytes(shape)) for _, shape, _ in program.data[:own]]
        held.end()
        for tensor, (name, shape, root) in zip(tensors, program.data):
            need(commitment(shape, tensor) == root, f"data {name} of item {number} is another")
        yield program, tensors
    data.end()


def said_of(program, run_root, proof):
    """The tensors' hashes in an item's record, by leaf name: section 8.6."""
    leaves = len(program.run_steps())
    hashes, path, lo, hi = [proof.take(32) for _ in program.leaves], [], 0, leaves
    while hi - lo > 1:  # the last leaf is always in the right half
        lo += 1 << (hi - lo - 1).bit_length() - 1
        path.append(proof.take(32))
    state = state_commitment(program.hash, program.steps, root_of(hashes))
    need(root_of_path(leaves - 1, leaves, state, path) == run_root, "a record leads to another run root")
    found = {}
    for (name, shape), root in zip(program.leaves, hashes):
        if name in OTHERS or name.startswith("answer."):
            found[name] = shape, proof.take(tensor_bytes(shape))
            need(commitment(*found[name]) == root, f"{name} is not what was committed to")
    return found


def npy(data):
    """Shape and bytes of a file in NumPy's format 1.0."""
    need(data[:8] == b"\x93NUMPY\1\0", "a file is none of NumPy's version 1.0")
    end = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:end].decode())
    need(not header["fortran_order"] and header["descr"] in TYPES, "a file has another order or type")
    return (TYPES[header["descr"]], header["shape"]), data[end:]


def read(*names):
    with open("/".join(names), "rb") as file:
        return file.read()


def accepted(verdict, job):
    """The job root that a verdict accepts; the verdict must be about this job."""
    text = read(verdict)
    outcome = decide(text)
    need(outcome["accepted"], "the verdict accepts nothing")
    payload = json.loads(from_base64(json.loads(text)["payload"]))
    need(payload["subject"][0]["digest"]["sha256"] == job.hex(), "the verdict is about another job")
    return bytes.fromhex(outcome["run_root"])


def check(job, result, verdict=None):
    items = list(unpacked(read(job, "pack")))
    collection = tagged("verde/collection/1", pack("<Q", len(items)), root_of([p.hash for p, _ in items]))
    proof = Bytes(read(result, "results.proof"), "results.proof")
    need(proof.take(14) == b"verde results\0", "it is no results.proof")
    version = proof.numbers("H", 2)[0]
    need_known(version == 1, f"version {version} of results.proof")
    roots = [proof.take(32) for _ in items]
    job_root = root_of(roots)
    need(verdict is None or accepted(verdict, collection) == job_root, "the verdict accepts another job root")
    rows, total = {}, 0
    for (program, own), root in zip(items, roots):
        counted = int.from_bytes(own[1], "little")
        total += counted
        for name, (shape, data) in said_of(program, root, proof).items():
            dtype, dims = shape
            _, held = rows.setdefault(name.removeprefix("answer."), ((dtype, dims[1:]), bytearray()))
            held += data[:len(data) // dims[0] * counted]
    proof.end()
    together = {name: (shape, data) for name, shape, data in tensors(read(result, "answers", "answers.safetensors"))}
    need(set(together) == set(rows), "answers.safetensors has other tensors")
    for name, ((dtype, dims), data) in rows.items():
        whole = (dtype, (total, *dims)), bytes(data)
        need(npy(read(result, "answers", name + ".npy")) == whole, f"{name}.npy is not what was said")
        need(together[name] == whole, f"{name} of answers.safetensors is not what was said")
    return f"{len(rows)} answers to {total} inputs, of job root {job_root.hex()}"


def main(arguments):
    if not 2 <= len(arguments) <= 3 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    return told(check, *arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
