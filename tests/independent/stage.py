#!/usr/bin/env python3
"""Stages disputes about one operator each, and compares who is convicted, and of what element, with `verde verify`.

Usage: stage.py VERDE COUNT [OPERATOR...]

The program has one step of one node, whose inputs are data of random bits. One provider has the element that this
verifier computes, the other one another; of a long fold both state parts. The outcome is the one that this verifier's
referee reaches, so it must hold: which leaves of the inputs are asked for is a part of that. Then the call is changed
a little, and both verifiers must take or refuse the program alike."""

import base64
import random
import re
import sys
import tempfile
from pathlib import Path
from struct import pack
from types import SimpleNamespace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import cases
from binary32 import F32
from definitions import OPERATORS, Node
from forge import alike, both_codes, sealed, sign_verdict
from notes import canonical, tagged
from program import Program
from referee import Dispute, element_of, word_of
from trees import (LEAF, SIZES, elements, frontier, root_of, state_commitment, step_number, tensor_bytes,
                   tensor_commitment)

NAMES = {operator.name: operator for operator in OPERATORS.values()}
STEP = 0


def subtree(leaves, lo, hi):
    return root_of(leaves[lo:hi])


def path_to(leaves, index):
    lo, hi, path = 0, len(leaves), []
    while hi - lo > 1:
        (_, m), _ = frontier(lo, hi, 1)
        path.append(subtree(leaves, m, hi) if index < m else subtree(leaves, lo, m))
        lo, hi = (lo, m) if index < m else (m, hi)
    return path[::-1]


def pieces(data):
    return [data[i:i + LEAF] for i in range(0, len(data), LEAF)]


def encoded_shape(shape):
    return pack("<BB", shape[0], len(shape[1])) + b"".join(pack("<Q", d) for d in shape[1])


def encoded_string(text):
    return pack("<H", len(text)) + text.encode()


def encoded_node(name, number, attributes, inputs, shape):
    return (encoded_string(name) + pack("<HH", number, len(inputs)) + b"".join(pack("<q", a) for a in attributes) +
            b"".join(pack("<I", i) for i in inputs) + encoded_shape(shape))


def program_bytes(operator, attributes, shapes, commitments, shape, unread=()):
    """A program of one step with one node. An input without a commitment is the step's number. `unread`: shapes of
    further data tensors."""
    data = [i for i, known in enumerate(commitments) if known]
    value, count = {i: 1 + k for k, i in enumerate(data)}, len(data) + len(unread)
    inputs = [value.get(i, 1 + count) for i in range(len(shapes))]
    words = [attributes[a[0]] for a in operator.attributes]
    text = encoded_string("verde program") + pack("<HHQQQ", 1, 1, 0, 1, 1)
    text += pack("<I", count) + b"".join(
        encoded_string(f"d{i}") + encoded_shape(shapes[i]) + commitments[i] for i in data) + b"".join(
        encoded_string("unread") + encoded_shape(s) + bytes(32) for s in unread)
    text += pack("<I", 1) + encoded_string("out") + encoded_shape(shape)
    init = [encoded_node("zero", 1, [0], [], (1, shape[1]))]
    if shape[0] != 1:
        init.append(encoded_node("cast", 15, [shape[0]], [count + 1], shape))
    text += pack("<II", len(init), len(init) - 1) + b"".join(init) + pack("<II", count + len(init), 0xffffffff)
    text += pack("<II", 1, len(inputs)) + encoded_node("x", operator.number, words, inputs, shape)
    return text + pack("<II", 2 + count, 0xffffffff)


class Case:
    """A call of an operator: attributes by name, inputs as (shape, bytes), the output's shape."""

    def __init__(self, operator, attributes, inputs, shape=None):
        self.operator, self.attributes, self.inputs = operator, attributes, inputs
        self.node = Node("x", operator, attributes, range(len(inputs)), [s for s, _ in inputs], shape or (1, (1,)), b"")
        if shape is None:
            dtype, dims = operator.shape(self.node)
            self.node.shape, self.node.dims = (dtype, tuple(dims)), tuple(dims)
        self.shape = self.node.shape

    def program(self):
        return program_bytes(self.operator, self.attributes, [s for s, _ in self.inputs],
                             [content is not None and commitment(s, content) for s, content in self.inputs], self.shape)

    def read(self, i, e):
        shape, content = self.inputs[i]
        content = pack("<i", STEP) if content is None else content
        size = SIZES[shape[0]]
        return element_of(shape[0], content[e * size:(e + 1) * size])

    def states(self, e):
        """The fold's state after each part of element e."""
        fold, states = self.operator.fold, []
        for j in range(fold.parts(self.node)):
            states.append(fold.step(self.node, e, j, states[-1] if states else [0] * fold.words, self.read))
        return states

    def element(self, e):
        fold = self.operator.fold
        value = fold.end(self.node, e, self.states(e)[-1]) if fold else self.operator.element(self.node, e, self.read)
        return word_of(self.node, value)


def commitment(shape, data):
    return step_number(STEP) if data is None else tensor_commitment(shape, root_of(pieces(data)))


class Provider:
    """Answers like a case's provider, but with its own value for element e, and its own parts."""

    def __init__(self, case, program, e, value, states):
        size = SIZES[case.shape[0]]
        output = bytearray(tensor_bytes(case.shape))
        output[e * size:(e + 1) * size] = value.to_bytes(size, "little")
        made = commitment(case.shape, bytes(output))
        record = (tagged("verde/node/1", program.step.nodes[0].encoded) + pack("<I", len(case.inputs)) +
                  b"".join(commitment(*i) for i in case.inputs) + made)
        self.start, self.end = bytes(32), state_commitment(program.hash, 1, root_of([made]))
        self.trees = {"run": [self.start, self.end], "trace": [record],
                      "fold": [b"".join(pack("<I", w) for w in s) for s in states or []]}
        data = [content for _, content in case.inputs if content is not None]
        self.values = {1 + i: pieces(content) for i, content in enumerate(data)}
        self.values[1 + len(data)] = [pack("<i", STEP)]
        self.values[2 + len(data)] = pieces(bytes(output))
        self.root, self.salt = root_of(self.trees["run"]), bytes(32)

    def answer(self, question):
        ask, tree = question["ask"], question.get("tree")
        if ask == "reveal":
            return {"root": self.root.hex(), "salt": self.salt.hex()}
        if ask not in ("trace", "open", "prove"):
            return None
        leaves = self.values[tree["value"]] if tree["of"] == "tensor" else self.trees[tree["of"]]
        said = {"root": root_of(leaves).hex()}
        if ask == "trace":
            said.update(before=self.start.hex(), after=self.end.hex())
        elif ask == "open":
            said["hashes"] = [subtree(leaves, a, b).hex()
                              for a, b in frontier(question["lo"], question["hi"], question["depth"])]
        else:
            said["leaves"] = [{"data": base64.b64encode(leaves[i]).decode(),
                               "path": [h.hex() for h in path_to(leaves, i)]} for i in question["leaves"]]
        return said


class Stage:
    """Evidence that is created while the referee asks."""

    def __init__(self, assignment, keys, providers):
        self.assignment, self.keys, self.providers = assignment, keys, providers
        self.asked, self.items, self.names = [0, 0], [], list(keys)

    def ask(self, p, question, tree=None):
        self.asked[p] += 1
        wanted = tagged("verde/question/1", canonical(question)).hex()
        item = {"provider": p, "question": wanted}
        name, provider = self.names[p], self.providers[p]
        if question["ask"] == "commit":
            answer = {"commit": tagged("verde/commit/1", provider.salt, bytes.fromhex(name), provider.root).hex()}
        else:
            answer = provider.answer(question)
        if answer is None:
            item["absent"] = "no answer"
        else:
            payload = canonical({"answer": answer, "assignment": self.assignment, "key": name, "question": wanted,
                                 "verde": 1})
            item["statement"] = sealed("answer", payload, name, self.keys[name])
        self.items.append(item)
        return answer


def fixed_keys(count):
    keys = [Ed25519PrivateKey.from_private_bytes(bytes([i + 1]) * 32) for i in range(count)]
    return {k.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex(): k for k in keys}


def staged(case, chance):
    """A verdict about an element of a case."""
    data = case.program()
    program = Program(data)
    e = chance.randrange(elements(case.shape))
    value, bits = case.element(e), 8 * SIZES[case.shape[0]]
    states = case.states(e) if case.operator.fold else None
    liar_states, lie = states, value ^ 1 << chance.randrange(bits)
    if states and len(states) > 1 and chance.random() < 0.8:
        fold, j = case.operator.fold, chance.randrange(len(states))
        liar_states = [list(s) for s in states]
        liar_states[j][chance.randrange(fold.words)] = chance.choice([0x80000000, 0x7fc01234, 0x3f800000, 64, 0])
        if chance.random() < 0.7:
            for k in range(j + 1, len(states)):
                liar_states[k] = fold.step(case.node, e, k, liar_states[k - 1], case.read)
        followed = word_of(case.node, fold.end(case.node, e, liar_states[-1]))
        lie = followed if followed != value else lie
    both = [Provider(case, program, e, value, states), Provider(case, program, e, lie, liar_states)]
    if chance.random() < 0.2 and liar_states:
        both[0].trees["fold"] = both[1].trees["fold"]
    return verdict(data, program.hash, both, lambda names, stage: Dispute(program, {"providers": names}, stage).decide())


def verdict(data, digest, providers, decide):
    """A verdict about these program bytes, with the outcome decide(keys, stage)."""
    keys = fixed_keys(3)
    first, second, referee = keys
    assignment = canonical({"nonce": "00" * 32, "program": digest.hex(), "providers": [first, second],
                            "referee": referee, "verde": 1})
    stage = Stage(tagged("verde/assignment/1", assignment).hex(), keys, providers)
    outcome = decide([first, second], stage)
    predicate = {"assignment": sealed("assignment", assignment, referee, keys[referee]), "evidence": stage.items,
                 "outcome": outcome, "program": base64.b64encode(data).decode(),
                 "cost": dict.fromkeys(("bytes_in", "bytes_out", "seconds", "cpu_seconds", "peak_bytes"), 0)}
    statement = {"_type": "https://in-toto.io/Statement/v1", "predicate": predicate,
                 "predicateType": "https://verde.invalid/verdict/v1",
                 "subject": [{"name": "program", "digest": {"sha256": digest.hex()}}]}
    return sign_verdict(statement, referee, keys[referee])


def agreed(data):
    """A verdict about two providers who agree on these program bytes, which may be invalid."""
    claim = SimpleNamespace(root=bytes(32), salt=bytes(32),
                            answer=lambda question: {"root": "00" * 32, "salt": "00" * 32})
    program = SimpleNamespace(hash=tagged("verde/program/1", data))
    return verdict(data, program.hash, [claim] * 2,
                   lambda names, stage: Dispute(program, {"providers": names}, stage).decide())


NUMBERS = [-2**63, -1, 0, 1, 2, 3, 4, 128, 256, 1024, 1025, 4096, 65536, 65537, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
           2**40, 2**40 + 1, 2**62, 2**63 - 1]


def disturbed(case, chance):
    """Program bytes with a call similar to the case's; they may be invalid."""
    operator, attributes = case.operator, dict(case.attributes)
    shapes, shape = [s for s, _ in case.inputs], case.shape
    known = [content is not None and bytes(32) for _, content in case.inputs]
    way = chance.randrange(8)
    if way < 3 and attributes:
        name = chance.choice(sorted(attributes))
        attributes[name] = chance.choice([*NUMBERS, attributes[name] - 1, attributes[name] + 1, 2 * attributes[name]])
        attributes[name] = max(-2**63, min(2**63 - 1, attributes[name]))
    elif way < 6 and any(known):
        i = chance.choice([i for i, k in enumerate(known) if k])
        shapes[i] = other_shape(chance, shapes[i])
    elif way == 6 and any(known):
        i = chance.choice([i for i, k in enumerate(known) if k])
        if chance.random() < 0.5 and len(known) < 16:
            shapes, known = shapes + [shapes[i]], known + [known[i]]
        else:
            shapes, known = shapes[:i] + shapes[i + 1:], known[:i] + known[i + 1:]
    else:
        shape = other_shape(chance, shape)
    if chance.random() < 0.8:
        try:
            follows = operator.shape(Node("x", operator, attributes, range(len(shapes)), shapes, shape, b""))
            shape = shape if follows in (True, None) else (follows[0], tuple(follows[1]))
        except (IndexError, ValueError, ZeroDivisionError, OverflowError, MemoryError):
            pass
    if max(shape[1]) >= 2**63 or len(shape[1]) > 8 or min(shape[1]) < 0:
        shape = case.shape
    return program_bytes(operator, attributes, shapes, known, shape)


RANGES = [(0, 254), (1, 255), (0, 255), (0, 65534), (0, 65535), (-1, 5), (5, 4), (-2**31, 2**31 - 1),
          (-2**31, 2**31 - 2), (-2**31 - 1, 0), (0, 2**31), (7, 7), (-2**63, 2**63 - 1), (0, 99)]


def ranged(chance):
    """Program bytes with ranges of data after the graphs; they may be malformed."""
    shapes = [(chance.choice([2, 3, 4] * 6 + [1, 5]), (4,)) for _ in range(3)]
    numbers = sorted(chance.sample(range(3), chance.randrange(1, 4)))
    if chance.random() < 0.1:
        numbers.append(chance.choice([0, 2, 3, 2**32 - 1]))
    part = pack("<BI", 1, len(numbers))
    for i in numbers:
        fitting = [r for r in RANGES if {2: r[0] >= -2**31 and r[1] < 2**31 - 1, 3: 0 <= r[0] <= r[1] < 255,
                                         4: 0 <= r[0] <= r[1] < 65535}.get(shapes[min(i, 2)][0])]
        part += pack("<Iqq", i, *chance.choice(fitting if fitting and chance.random() < 0.8 else RANGES))
    way = chance.randrange(12)
    if way == 0:
        part = part[:-1]
    elif way == 1:
        part += bytes([chance.choice([0, 1, 2, 15, 33, 255])])
    elif way == 2:
        part = bytes([chance.choice([0, 2, 15, 33, 255])]) + part[1:]
    elif way == 3:
        part = pack("<BI", 1, 0)
    return program_bytes(NAMES["fill"], {"value": 0}, [], [], (1, (2,)), shapes) + part


def other_shape(chance, shape):
    dtype, dims = shape[0], list(shape[1])
    i = chance.randrange(len(dims))
    way = chance.randrange(8)
    if way < 3:
        dims[i] = max(0, chance.choice([dims[i] - 1, dims[i] + 1, 1, 2 * dims[i], 64, 0, 2**31 + 1, 2**40]))
    elif way == 3:
        dims.insert(i, 1)
    elif way == 4:
        del dims[i]
    elif way == 5:
        dims = [elements(shape)]
    elif way == 6:
        dims[i:i + 2] = [elements((1, dims[i:i + 2]))]
    else:
        dtype = chance.randrange(1, 7)
    return dtype, tuple(dims) or (1,)


def report(verde, data, label, told):
    """Do both verifiers decide alike, and does the verdict hold if it was `told` to be staged? If not, keeps the
    verdict and prints both decisions."""
    mine, theirs, said = both_codes(verde, data)
    if mine == theirs == 0 if told else alike(mine, theirs, True):
        return True
    path = Path(tempfile.gettempdir(), f"staged-{label.replace(' ', '-')}.json")
    path.write_bytes(data)
    print(f"{label}: {mine} here, {theirs} by verde: {said}; {told or ''} {path}")
    return False


def forgotten():
    """Operators in SPEC.md's table without a definition or a case here."""
    table = Path("repops/SPEC.md").read_text().split("<!-- operators -->")[1]
    return [name for name in re.findall(r"^\| \d+ \| `(\w+)` \|", table, re.M)
            if name not in NAMES or not cases.generator(NAMES[name])]


def main(verde, count, *names):
    if forgotten():
        print(f"tests/independent lacks a definition or a case of {', '.join(forgotten())}")
        return 1
    different = seen = 0
    for name in names or sorted(NAMES):
        for i in range(int(count)):
            chance = random.Random(f"{name} {i}")
            case = Case(NAMES[name], *cases.make(NAMES[name], chance))
            told = f"{case.attributes}, {[s for s, _ in case.inputs]} -> {case.shape}"
            alike = [report(verde, staged(case, chance), f"{name} {i}", told),
                     report(verde, agreed(disturbed(case, chance)), f"{name} {i} disturbed", None)]
            seen, different = seen + len(alike), different + alike.count(False)
    for i in range(60 * int(count)):
        data = ranged(random.Random(f"ranges {i}"))
        seen, different = seen + 1, different + (not report(verde, agreed(data), f"ranges {i}", None))
    print(f"{seen} staged verdicts about {len(names or NAMES)} operators: {different} decided differently")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
