#!/usr/bin/env python3
"""Changes a verdict in many ways and compares what two verifiers decide of each.

Usage: forge.py VERDE VERDICT COUNT KEYS...   (KEYS: the directories of the referee's and the providers' keys)

Bytes are flipped; the payload is changed, and signed again by the referee; an answer is changed, and signed again by
its provider, where the outcome is the one that this verifier's referee reaches, so that the verdict must hold."""

import base64
import copy
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

import verify
from notes import TYPES, Later, NotJudged, Refused, canonical, tagged
from program import Program
from referee import Dispute

HEX = "0123456789abcdef"


def read_keys(directories):
    keys = {}
    for directory in directories:
        key = load_pem_private_key(Path(directory, "key.pem").read_bytes(), None)
        keys[key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()] = key
    return keys


def sealed(kind, payload, name, key):
    text = TYPES[kind].encode()
    sig = key.sign(b"DSSEv1 %d %s %d %s" % (len(text), text, len(payload), payload))
    return {"payload": base64.b64encode(payload).decode(), "payloadType": TYPES[kind],
            "signatures": [{"keyid": name, "sig": base64.b64encode(sig).decode()}]}


def sign_verdict(statement, name, key):
    payload = json.dumps(statement, separators=(",", ":")).encode()
    return json.dumps(sealed("verdict", payload, name, key)).encode()


def alike(mine, theirs, of_program):
    """Do two exit codes agree? In a program's bytes something unknown or something wrong may be found first:
    PROTOCOL.md 7."""
    return mine in (theirs, 1) or (of_program and {mine, theirs} == {6, 8})


def both_codes(verde, data):
    """The exit codes of both verifiers, and the reason."""
    try:
        verify.decide(data)
        mine, said = 0, "holds"
    except Refused as why:
        mine, said = 6, why
    except Later as why:
        mine, said = 8, why
    except NotJudged as why:
        mine, said = 1, why
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        run = subprocess.run([verde, "verify", file.name], capture_output=True, text=True, check=False)
    first = (run.stdout + run.stderr).strip().partition("\n")[0]
    return mine, run.returncode, f"{said}; verde: {first}"


def payload_of(note):
    return base64.b64decode(note["payload"])


def pick_place(chance, value):
    """A random place in a JSON value: the container, and the name or index in it."""
    container, at = None, None
    while isinstance(value, (dict, list)) and value and (container is None or chance.random() < 0.8):
        container, at = value, chance.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
        value = container[at]
    return container, at


def other_text(chance, text):
    """A string similar to this one."""
    data = None
    try:
        data = bytearray(base64.b64decode(text, validate=True))
    except ValueError:
        pass
    i = chance.randrange(len(text)) if text else 0
    ways = [text[:i] + chance.choice(HEX) + text[i + 1:], text[:-1], text + "0", text.upper(), ""]
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        ways += [base64.b64encode(d).decode() for d in (data, data[:-1], data + b"\0", data[:len(data) // 2])] * 2
    return chance.choice(ways)


def change(chance, value):
    """Changes a JSON value at a random place, and returns it."""
    container, at = pick_place(chance, value)
    if container is None:
        return chance.choice([None, [], "", 1])
    old = container[at]
    way = chance.randrange(8)
    if way < 4 and isinstance(old, str):
        container[at] = other_text(chance, old)
    elif way < 4 and type(old) is int:
        container[at] = old + chance.choice([-1, 1, 2**31])
    elif way < 6 and isinstance(container, list):
        container[at] = chance.choice(container)
    elif way == 6 and isinstance(container, list):
        container.insert(at, copy.deepcopy(old))
    elif way == 7:
        container[at] = chance.choice([None, 1, 1.0, True, "", [], {}, "00" * 32, [old]])
    else:
        del container[at]
    return value


def changed_answer(chance, answer, rival):
    """An answer similar to this one; None: no answer."""
    way = chance.randrange(16)
    if way == 0:
        return rival
    if way == 1:
        return None
    if way == 2:
        return {**answer, **chance.choice([{"concede": True}, {"concede": False}, {"concede": 1}, {"refusal": "no"},
                                           {"refusal": None}, {"refusal": "no", "concede": True}, {"more": [1]}])}
    return change(chance, copy.deepcopy(answer))


class Retold:
    """Evidence that repeats what providers once said, except for the changed answers; the items are recorded."""

    def __init__(self, predicate, assignment, providers, keys, chance, changes):
        self.assignment, self.providers, self.keys, self.chance = assignment, providers, keys, chance
        self.changes, self.asked, self.items, self.said = changes, [0, 0], [], {}
        for item in predicate["evidence"]:
            if "statement" in item:
                said = json.loads(payload_of(item["statement"]))
                self.said[item["provider"], item["question"]] = said["answer"]

    def ask(self, p, question, tree=None):
        wanted = tagged("verde/question/1", canonical(question)).hex()
        answer = self.said.get((p, wanted))
        if len(self.items) in self.changes and answer is not None:
            answer = changed_answer(self.chance, answer, self.said.get((1 - p, wanted)))
        self.asked[p] += 1
        item = {"provider": p, "question": wanted}
        if answer is None:
            item["absent"] = "no answer"
        else:
            key = self.providers[p]
            payload = canonical({"answer": answer, "assignment": self.assignment, "key": key, "question": wanted,
                                 "verde": 1})
            item["statement"] = sealed("answer", payload, key, self.keys[key])
        self.items.append(item)
        return answer


class Forger:
    def __init__(self, data, keys, seed):
        self.data, self.keys, self.chance = data, keys, random.Random(seed)
        self.note = json.loads(data)
        self.referee = self.note["signatures"][0]["keyid"]

    def statement(self):
        return json.loads(payload_of(self.note))

    def sign(self, statement):
        return sign_verdict(statement, self.referee, self.keys[self.referee])

    def flipped(self):
        data = bytearray(self.data)
        data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
        return bytes(data)

    def signed_again(self):
        statement = self.statement()
        part = self.chance.choice(["outcome", "evidence", "cost", "assignment", None])
        change(self.chance, statement["predicate"][part] if part else statement)
        return self.sign(statement)

    def program_changed(self):
        """A verdict on two providers who agree on another program."""
        statement = self.statement()
        predicate = statement["predicate"]
        program = bytearray(base64.b64decode(predicate["program"]))
        for _ in range(self.chance.choice([1, 1, 2])):
            byte = self.chance.choice([0, 1, 2, 255, self.chance.randrange(256)])
            program[self.chance.randrange(len(program))] = byte
        digest = tagged("verde/program/1", bytes(program)).hex()
        assignment = json.loads(payload_of(predicate["assignment"]))
        assignment["program"] = digest
        payload = canonical(assignment)
        predicate["assignment"] = sealed("assignment", payload, self.referee, self.keys[self.referee])
        predicate["program"] = base64.b64encode(program).decode()
        statement["subject"][0]["digest"]["sha256"] = digest
        self.agree(predicate, assignment, tagged("verde/assignment/1", payload).hex())
        return self.sign(statement)

    def agree(self, predicate, assignment, name):
        providers, salt, root = assignment["providers"], bytes(32), bytes(32)
        commits = [tagged("verde/commit/1", salt, bytes.fromhex(key), root).hex() for key in providers]
        answers = [{"ask": "commit"}, {"ask": "reveal", "commits": commits}]
        items = []
        for question in answers:
            wanted = tagged("verde/question/1", canonical({"assignment": name, "verde": 1, **question})).hex()
            for p, key in enumerate(providers):
                revealed = {"root": root.hex(), "salt": salt.hex()}
                answer = {"commit": commits[p]} if question["ask"] == "commit" else revealed
                payload = canonical({"answer": answer, "assignment": name, "key": key, "question": wanted, "verde": 1})
                items.append({"provider": p, "question": wanted,
                              "statement": sealed("answer", payload, key, self.keys[key])})
        predicate["evidence"] = items
        predicate["outcome"] = {"accepted": True, "result": "agreed", "rounds": 2, "run_root": "00" * 32, "providers": [
            {"key": key, "run_root": "00" * 32, "standing": "stands"} for key in providers]}

    def retold(self):
        statement = self.statement()
        predicate = statement["predicate"]
        payload = payload_of(predicate["assignment"])
        assignment = json.loads(payload)
        changes = {self.chance.randrange(len(predicate["evidence"])) for _ in range(self.chance.choice([1, 1, 2]))}
        evidence = Retold(predicate, tagged("verde/assignment/1", payload).hex(), assignment["providers"], self.keys,
                          self.chance, changes)
        dispute = Dispute(Program(base64.b64decode(predicate["program"])), assignment, evidence)
        predicate["outcome"] = dispute.decide()
        predicate["evidence"] = evidence.items
        return self.sign(statement)


    def cost(self, name, value):
        statement = self.statement()
        statement["predicate"]["cost"][name] = value
        return self.sign(statement)


def costs_judged(verde, forger):
    """Lists faults in how costs are judged: both verifiers must refuse those below 0 and accept all others."""
    wrong = []
    for name, value, want in (("bytes_in", -1, 6), ("seconds", -0.5, 6), ("bytes_in", 0, 0), ("seconds", 7.25, 0)):
        mine, theirs, said = both_codes(verde, forger.cost(name, value))
        if (mine, theirs) != (want, want):
            wrong.append(f"{name} of {value}: {mine} here, {theirs} by verde, expected {want}: {said}")
    return wrong


def main(verde, path, count, *directories):
    data = Path(path).read_bytes()
    different, held, seen = 0, 0, 0
    for wrong in costs_judged(verde, Forger(data, read_keys(directories), 0)):
        different += 1
        print(wrong)
    for i in range(int(count)):
        forger = Forger(data, read_keys(directories), i)
        way = [forger.flipped, forger.signed_again, forger.program_changed, forger.retold][i % 4]
        forged = way()
        mine, theirs, said = both_codes(verde, forged)
        seen, held = seen + 1, held + (mine == 0)
        if not alike(mine, theirs, way == forger.program_changed):
            different += 1
            Path(f"{path}.{i}.different").write_bytes(forged)
            print(f"{way.__name__} {i}: {mine} here, {theirs} by verde: {said}")
    print(f"{seen} changed verdicts, {held} of which hold: {different} decided differently")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
