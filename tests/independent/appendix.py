#!/usr/bin/env python3
"""Are the examples of PROTOCOL.md, and its appendix A, what they should be? Usage: appendix.py VERDICT DOCUMENT FILE...

VERDICT: of the dispute that the examples are of, which `EXAMPLE=VERDICT build/tests/test_document` plays. FILE: tests that
compute other hashes of the document, and hold them. Exit code 0: they are. 1: one line for each that is not."""

import base64
import json
import re
import sys
from struct import pack

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from notes import TYPES, canonical, from_base64, tagged
from program import Program
from trees import inner_hash, leaf_hash, record, root_of, state_commitment
from verify import decide

QUESTION = {"ask": "commit", "verde": 1}
STEP, NODE = 4, 76


def seeded(byte):
    return Ed25519PrivateKey.from_private_bytes(bytes([byte]) * 32)


def name_of(key):
    return key.public_key().public_bytes_raw().hex()


def payload_of(note):
    return json.loads(from_base64(note["payload"]))


def strings_of(value):
    """All strings in a value, and in hexadecimal the bytes of records among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)


class Example:
    """The content of a verdict that holds."""

    def __init__(self, data):
        self.outcome = decide(data)
        said = payload_of(json.loads(data))["predicate"]
        self.assignment = from_base64(said["assignment"]["payload"])
        self.program = Program(from_base64(said["program"]))
        self.asked = [item["question"] for item in said["evidence"]]
        self.said = [(item["provider"], payload_of(item["statement"])["answer"]) for item in said["evidence"]]
        self.question = canonical(QUESTION | {"assignment": tagged("verde/assignment/1", self.assignment).hex()})

    def answers(self, member):
        """Provider 0's answers that have this member, in order."""
        return [answer for provider, answer in self.said if provider == 0 and member in answer]


def table(e):
    """The rows of the appendix's first table."""
    revealed = e.answers("salt")[0]
    return {"program hash": e.program.hash.hex(), "structure": e.program.structure.hex(),
            "provider 0": name_of(seeded(1)), "provider 1": name_of(seeded(2)), "referee": name_of(seeded(0xee)),
            "assignment hash": tagged("verde/assignment/1", e.assignment).hex(),
            "commit question": tagged("verde/question/1", e.question).hex(), "salt of provider 0": revealed["salt"],
            "run root of provider 0": revealed["root"],
            "commitment of provider 0": tagged("verde/commit/1", *map(bytes.fromhex, (
                revealed["salt"], name_of(seeded(1)), revealed["root"]))).hex()}


def signature(e):
    kind = TYPES["question"].encode()
    signed = seeded(0xee).sign(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(e.question), e.question))
    return base64.b64encode(signed).decode()


def folds():
    """For a product of 1,280 ones: the example's leaf, its path, and the root over the parts."""
    sums = [pack("<f", 256 * (i + 1)) for i in range(5)]
    path = root_of(sums[:4])
    return base64.b64encode(sums[4]).decode(), path.hex(), inner_hash(path, leaf_hash(sums[4])).hex()


def hashes(e):
    """The appendix's values for trees, the node and logs."""
    opened = e.answers("hashes")[0]["hashes"]
    trace = e.answers("before")[0]
    node = next(record(from_base64(leaf["data"])) for answer in e.answers("leaves") for leaf in answer["leaves"]
                if answer["root"] == trace["root"])
    encoded = e.program.step.nodes[NODE].encoded
    state = next(answer["root"] for answer in e.answers("leaves") if state_commitment(
        e.program.hash, STEP, bytes.fromhex(answer["root"])).hex() == trace["before"])
    return opened + [state, trace["before"], encoded.hex(), tagged("verde/node/1", encoded).hex(), node[2].hex(),
                     e.answers("leaves")[4]["root"], tagged("verde/logged/1", b"\1" * 32, b"\2" * 32).hex()]


def wrong_places(e, text, tested):
    rows = dict(re.findall(r"^\| ([^|]+) \| `([0-9a-f]{64})` \|$", text[:text.index("\nFour providers")], re.M))
    for name, value in table(e).items():
        if rows.get(name) != value:
            yield f"{name}: the document has {rows.get(name)}, expected {value}"
    part, path, fold_root = folds()
    digits = re.sub(r"[^0-9a-z`…|.:(]", "", text)
    for value in [*hashes(e), fold_root]:
        if value not in digits:
            yield f"not in the document: {value}"
    for value in (e.question.decode(), signature(e), f"{len(e.said)} items of evidence", f'"rounds":{e.outcome["rounds"]}'):
        if value not in text:
            yield f"not in the document: {value}"
    known = {path, fold_root, part, *e.asked, *strings_of([answer for _, answer in e.said]), *strings_of(e.outcome),
             *table(e).values(), *hashes(e), *re.findall("[0-9a-f]{64}", tested)}
    for value in re.findall(r"\b[0-9a-f]{64}\b", text):
        if value not in known:
            yield f"of no dispute that is tested: {value}"
    for value in re.findall(r"\b([0-9a-f]{8})…", text):
        if not any(one.startswith(value) for one in known):
            yield f"begins no hash: {value}…"
    examples = re.findall(r'"(?:data|value|expected)":"([^"<…]+)"', text)
    if len(examples) < 8:
        yield "the document has no examples"
    for value in examples:
        if value not in known:
            yield f"is not what the dispute says: {value}"


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], "rb") as file:
        example = Example(file.read())
    text, tested = open(arguments[1]).read(), "".join(open(name).read() for name in arguments[2:])
    wrong = list(wrong_places(example, text, tested))
    print("\n".join(wrong) or "PROTOCOL.md has the values of its dispute")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1:]))
