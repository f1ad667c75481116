"""Verdicts with known keys, and variants of them with newly made evidence: for altered.py."""

import base64
import json
import struct
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import alone
import notes
import referee
import tournament
import verify
from collection import Collection
from notes import Later, NotJudged, Refused, canonical, tagged

ANSWER, ASSIGNMENT, VERDICT = "answer", "assignment", "verdict"


def key_of(seed):
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex(), key


REFEREE, _ = key_of(0xEE)
STRANGER, _ = key_of(0x77)
KEYS = dict(key_of(seed) for seed in (*range(1, 7), 0xEE, 0x77))


@lru_cache(1 << 14)
def signature(name, kind, payload):
    text = notes.TYPES.get(kind, kind).encode()
    return base64.b64encode(
        KEYS[name].sign(b"DSSEv1 %d %s %d %s" % (len(text), text, len(payload), payload))
    ).decode()


def sealed(kind, payload, signer, keyid=None):
    """A note with these payload bytes, signed by `signer` in the name of `keyid`."""
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": notes.TYPES.get(kind, kind),
        "signatures": [{"keyid": keyid or signer, "sig": signature(signer, kind, payload)}],
    }


def payload_of(note):
    return base64.b64decode(note["payload"])


class Told(verify.Evidence):
    """Evidence made while a referee asks: a provider's recorded answer to a question, or an altered one."""

    def __init__(self, base, assignment, providers, alter=None, where=()):
        super().__init__([], assignment, providers)
        self.base, self.alter, self.where = base, alter, where

    def ask(self, p, question, tree=None):
        wanted = tagged("verde/question/1", canonical(question)).hex()
        said = self.base.said.get((p, plain(question)))
        note = said and (said if self.assignment == self.base.assignment_hash else self.again(p, wanted, said))
        if len(self.items) in self.where:
            note = self.alter(self, p, wanted, note, verify.most_of(question, tree))
        item = {"provider": p, "question": wanted}
        if isinstance(note, dict):
            item["statement"] = note
        else:
            item["absent"] = "no answer"
        self.items.append(item)
        self.at = len(self.items) - 1
        try:
            return super().ask(p, question, tree)
        except Refused:  # counts as silence, so that the rest of the verdict is right
            self.size = None
            return None

    def again(self, p, wanted, said):
        answer = json.loads(payload_of(said))["answer"]
        return self.state(p, wanted, answer)

    def state(self, p, wanted, answer, signer=None, **other):
        said = {"answer": answer, "assignment": self.assignment, "key": self.keys[p], "question": wanted, "verde": 1}
        return sealed(ANSWER, canonical({**said, **other}), signer or self.keys[p], self.keys[p])


def plain(question):
    return canonical({name: value for name, value in question.items() if name not in ("assignment", "game")})


class Recorder(verify.Evidence):
    """Records each provider's answer to each question."""

    def __init__(self, items, assignment, keys):
        super().__init__(items, assignment, keys)
        self.said = {}

    def ask(self, p, question, tree=None):
        note = self.items[self.at].get("statement") if self.at < len(self.items) else None
        self.said[p, plain(question)] = note
        return super().ask(p, question, tree)


class Base:
    """A verdict that holds, and the data needed to alter it."""

    def __init__(self, path):
        self.name, self.data = path.stem, path.read_bytes()
        note = json.loads(self.data)
        self.payload = payload_of(note)
        predicate = json.loads(self.payload)["predicate"]
        self.assignment = json.loads(payload_of(predicate["assignment"]))
        self.assignment_hash = tagged("verde/assignment/1", payload_of(predicate["assignment"])).hex()
        self.judged = "trainer" not in self.assignment
        self.keys = keys_of(self.assignment)
        evidence = Recorder(predicate["evidence"], self.assignment_hash, self.keys)
        if self.judged:
            settle(predicate, self.assignment, evidence)
        self.said = evidence.said

    def statement(self):
        return json.loads(self.payload)


def program_of(predicate):
    return (
        Collection(predicate["collection"])
        if "collection" in predicate
        else verify.read_program(predicate["program"])
    )


def keys_of(assignment):
    """The assignment's providers as a list."""
    keys = assignment.get("providers", [assignment.get("provider")])
    return keys if isinstance(keys, list) else []


def settle(predicate, assignment, evidence):
    program = program_of(predicate)
    if "place" in predicate:
        return alone.Alone(program, assignment, evidence, alone.check_place(predicate["place"], program)).decide()
    many = len(assignment["providers"]) > 2
    return (tournament.Tournament if many else referee.Dispute)(program, assignment, evidence).decide()


def signed(statement, signer=REFEREE, kind=VERDICT):
    return as_file(sealed(kind, json.dumps(statement, separators=(",", ":")).encode(), signer))


def as_file(note):
    return json.dumps(note, separators=(",", ":")).encode()


def retold(chance, base, alter=None, where=(), assignment=None, program=None):
    """The verdict with newly made evidence, and the outcome that follows from it."""
    statement = base.statement()
    predicate = statement["predicate"]
    job = "collection" if "collection" in predicate else "program"
    if program is not None:
        predicate[job] = program
    if assignment is not None or program is not None:
        assignment = dict(assignment or base.assignment)
        if program is not None:
            assignment["program"] = digest = program_hash(predicate)
            statement["subject"][0]["digest"]["sha256"] = digest
        predicate["assignment"] = sealed(ASSIGNMENT, canonical(assignment), REFEREE)
    payload = payload_of(predicate["assignment"])
    told = Told(base, tagged("verde/assignment/1", payload).hex(), keys_of(json.loads(payload)), alter, where)
    try:
        predicate["outcome"] = settle(predicate, json.loads(payload), told)
    except (Refused, Later, NotJudged):
        told.items += predicate["evidence"][len(told.items) :]
    except (AttributeError, KeyError, TypeError, IndexError):
        if assignment is None:
            raise  # otherwise the assignment itself is invalid
    predicate["evidence"] = told.items
    return signed(statement)


def program_hash(predicate):
    if "collection" in predicate:
        said = predicate["collection"]
        count, programs = said.get("count"), notes.from_hex(said.get("programs"))
        valid = type(count) is int and 0 <= count < 2**64 and programs
        return tagged("verde/collection/1", struct.pack("<Q", count), programs).hex() if valid else "00" * 32
    return tagged("verde/program/1", notes.from_base64(predicate["program"]) or b"").hex()
