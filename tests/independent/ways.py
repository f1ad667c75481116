"""Ways to alter a verdict. Each takes a random generator, a verdict and all verdicts, and returns a file's bytes."""

import base64
import copy
import json

from alterations import (
    another_note,
    changed_bytes,
    changed_list,
    changed_numbers,
    changed_tokens,
    odd_key,
    other_value,
    padded,
)
from forge import change, changed_answer
from notes import canonical
from verify import LEVELS
from verdicts import ANSWER, ASSIGNMENT, KEYS, REFEREE, STRANGER, VERDICT, as_file, payload_of, retold, sealed, signed


def file_bytes(chance, base, bases):
    return changed_bytes(chance, base.data)


def file_tokens(chance, base, bases):
    return changed_tokens(chance, base.data.decode()).encode("utf-8", "surrogatepass")


def envelope(chance, base, bases):
    return as_file(another_note(chance, json.loads(base.data), sorted(KEYS)))


def payload_tokens(chance, base, bases):
    text = changed_tokens(chance, base.payload.decode()).encode("utf-8", "surrogatepass")
    return as_file(sealed(VERDICT, text, REFEREE))


def signer(chance, base, bases):
    keyid = chance.choice([REFEREE, STRANGER, None])
    note = sealed(chance.choice([VERDICT, ANSWER, ASSIGNMENT, ""]), base.payload, chance.choice(sorted(KEYS)), keyid)
    return as_file(note)


def members(chance, base, bases):
    statement = base.statement()
    part = chance.choice(["outcome", "evidence", "cost", "assignment", "subject", None, None])
    change(chance, statement["subject"] if part == "subject" else statement["predicate"][part] if part else statement)
    return signed(statement)


def place(chance, base, bases):
    """For a proof of fraud: another place, or an invalid one."""
    statement = base.statement()
    if "place" not in statement["predicate"]:
        return outcome(chance, base, bases)
    said = statement["predicate"]["place"]
    if chance.random() < 0.5:
        name = chance.choice(["step", "node", "element", "elements", "part", "leaf", "leaves"])
        said[name] = chance.choice([said.get(name, 0), 0, 1, 2, -1, 255, 256, 257, 2**31, 2**62, 1.0, None, "1"])
    else:
        change(chance, said)
    return signed(statement)


def outcome(chance, base, bases):
    statement = base.statement()
    place = statement["predicate"]["outcome"]
    for _ in range(chance.choice([1, 1, 2])):
        change(chance, place)
    return signed(statement)


def numbers(chance, base, bases):
    return as_file(sealed(VERDICT, changed_numbers(chance, base.payload.decode()).encode(), REFEREE))


def reasons(chance, base, bases):
    """Changes sentences for people, which do not count."""
    statement = base.statement()
    said = statement["predicate"]["outcome"]
    places = [*said["providers"], said.get("challenge", {}), *said.get("challenge", {}).get("providers", ())]
    for place in places:
        if chance.random() < 0.5:
            place["reason"] = chance.choice(["because", "", None, 7, [], {"reason": 1}])
        elif chance.random() < 0.5:
            place.pop("reason", None)
    return signed(statement)


def items(chance, base, bases):
    """Drops, doubles, moves or truncates evidence, or takes it from another verdict."""
    statement = base.statement()
    predicate, other = statement["predicate"], chance.choice(bases).statement()["predicate"]["evidence"]
    predicate["evidence"] = changed_list(chance, predicate["evidence"], other)
    return signed(statement)


def notes_moved(chance, base, bases):
    """Replaces statements, questions and providers by others, of this verdict or of another one."""
    ways = [("statement",), ("question",), ("provider",), ("statement", "question"), ("absent",)]
    statement = base.statement()
    evidence = statement["predicate"]["evidence"]
    other = chance.choice([evidence, chance.choice(bases).statement()["predicate"]["evidence"]])
    for _ in range(chance.choice([1, 1, 2])):
        to, from_ = chance.choice(evidence), chance.choice(other)
        for name in chance.choice(ways):
            if name in from_:
                to[name] = from_[name]
                if name == "statement" and chance.random() < 0.8:
                    to.pop("absent", None)
    return signed(statement)


def note_signed(chance, base, bases):
    """Replaces an item's statement, or its absence, by a new one, signed with the right key or a wrong one."""
    statement = base.statement()
    item = chance.choice(statement["predicate"]["evidence"])
    named = base.keys[item["provider"]]
    who = chance.choice([named, named, STRANGER, chance.choice(sorted(KEYS))])
    said = {
        "answer": chance.choice([{"concede": True}, {"refusal": "no"}, {}, [], None, {"root": "00" * 32}]),
        "assignment": base.assignment_hash,
        "key": named,
        "question": item["question"],
        "verde": 1,
    }
    if "statement" in item and chance.random() < 0.5:
        said = json.loads(payload_of(item["statement"]))
    if chance.random() < 0.4:
        name = chance.choice(sorted(said))
        said[name] = other_value(chance, said[name])
    kind = chance.choice([ANSWER] * 4 + [ASSIGNMENT, VERDICT])
    note = sealed(kind, canonical(said), who, chance.choice([named, who]))
    if chance.random() < 0.3:
        note = another_note(chance, note, sorted(KEYS))
    item["statement"] = note
    item.pop("absent", None)
    return signed(statement)


def costs(chance, base, bases):
    statement = base.statement()
    cost = statement["predicate"]["cost"]
    of_levels = chance.random() < 0.4
    if of_levels:
        cost["level_seconds"] = {name: 0.5 for name in chance.sample(LEVELS, 3)}
    within = cost["level_seconds"] if of_levels and chance.random() < 0.8 else cost
    name = chance.choice(sorted(within))
    within[name] = chance.choice([0, -1, 0.0, -0.0, -0.5, 1e308, 2**53, 2**63 - 1, True, None, "1", [], {}, 1.5])
    if chance.random() < 0.2:
        within[chance.choice(["more", "seconds_"])] = 1
    return signed(statement)


# ---- decided again by the referee of verify.py: the verdict holds, unless something is refused ----


def places(chance, base):
    count = len(base.statement()["predicate"]["evidence"])
    return {chance.randrange(count) for _ in range(chance.choice([1, 1, 1, 2, 3]))}


def answers(chance, base, bases):
    """Changes answers slightly, signed by their providers."""

    def alter(told, p, wanted, note, most):
        if note is None:
            return told.state(
                p, wanted, chance.choice([{"concede": True}, {"refusal": "x"}, {}, {"root": "00" * 32}])
            )
        answer = json.loads(payload_of(note))["answer"]
        rival = chance.choice(list(base.said.values()))
        answer = changed_answer(chance, answer, json.loads(payload_of(rival))["answer"] if rival else None)
        return None if answer is None else told.state(p, wanted, answer)

    return retold(chance, base, alter, places(chance, base))


def answer_tokens(chance, base, bases):
    """Changes the text of a statement's payload, signed by its provider."""

    def alter(told, p, wanted, note, most):
        if note is None:
            return None
        text = changed_tokens(chance, payload_of(note).decode()).encode("utf-8", "surrogatepass")
        return sealed(ANSWER, text, told.keys[p])

    return retold(chance, base, alter, places(chance, base))


def answer_sizes(chance, base, bases):
    """Adds undefined members to answers, up to the limits of bytes, brackets and commas, and beyond."""

    def alter(told, p, wanted, note, most):
        if note is None:
            return None
        return sealed(ANSWER, padded(chance, payload_of(note), most), told.keys[p])

    return retold(chance, base, alter, places(chance, base))


def silences(chance, base, bases):
    return retold(chance, base, lambda *_: None, places(chance, base))


def statements(chance, base, bases):
    """Gives statements other members, other signers, other envelopes."""

    def alter(told, p, wanted, note, most):
        if note is None or chance.random() < 0.3:
            return told.state(p, wanted, {"concede": True}, chance.choice([None, STRANGER, *told.keys]))
        if chance.random() < 0.4:
            return another_note(chance, note, sorted(KEYS))
        answer = json.loads(payload_of(note))["answer"]
        other = chance.choice(
            [
                {"verde": chance.choice([2, 1.0, True, "1"])},
                {"assignment": "00" * 32},
                {"more": 1},
                {"key": chance.choice(sorted(KEYS))},
                {"question": "00" * 32},
                {"key": odd_key(chance)},
            ]
        )
        return told.state(p, wanted, answer, **other)

    return retold(chance, base, alter, places(chance, base))


def assignments(chance, base, bases):
    """Changes the assignment, signed by the referee, and all statements that name it."""
    said = copy.deepcopy(base.assignment)
    way = chance.randrange(9)
    if "checker" in said and 0 < way < 7:
        name = chance.choice(["checker", "provider", "beacon", "providers", "referee", "verde"])
        said[name] = chance.choice([STRANGER, odd_key(chance), {"source": "x" * chance.choice([1, 128, 129]),
                                    "round": chance.choice([0, -1, 1.0, 2**62])}, [], 1, 2, 3])
    elif way == 0:
        said["nonce"] = "%064x" % chance.randrange(2**256)
    elif way == 1:
        chance.shuffle(said["providers"])
    elif way == 2:
        said["challenge"] = chance.choice([True, True, True, False, 1, None])
    elif way == 3:
        said.pop("challenge", None)
    elif way == 4:
        said["providers"] = changed_list(chance, said["providers"], [odd_key(chance), *sorted(KEYS)])
    elif way == 5:
        said["trainer"] = said["providers"][0]
    elif way == 6:
        said["referee"] = chance.choice([STRANGER, odd_key(chance)])
    else:
        change(chance, said)
    return retold(chance, base, assignment=said)


def programs(chance, base, bases):
    """Changes the program's bytes or the collection's items, and all statements about them."""
    predicate = base.statement()["predicate"]
    if "collection" in predicate:
        said = predicate["collection"]
        change(chance, chance.choice([said, said["items"]]))
        return retold(chance, base, program=said)
    data = bytearray(base64.b64decode(predicate["program"]))
    for _ in range(chance.choice([1, 1, 2])):
        at = chance.randrange(len(data))
        data[at] = chance.choice([0, 1, 2, 255, data[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
    return retold(chance, base, program=base64.b64encode(data).decode())


WAYS = [
    (file_bytes, 4),
    (file_tokens, 3),
    (envelope, 5),
    (payload_tokens, 8),
    (signer, 2),
    (members, 6),
    (outcome, 6),
    (place, 4),
    (numbers, 4),
    (reasons, 2),
    (items, 6),
    (notes_moved, 5),
    (note_signed, 8),
    (costs, 2),
    (answers, 16),
    (answer_tokens, 8),
    (answer_sizes, 6),
    (silences, 3),
    (statements, 8),
    (assignments, 6),
    (programs, 4),
]


def one_byte(chance, base, bases):
    """Changes one byte of the file, or of the payload, which the referee then signs again."""
    data = bytearray(chance.choice([base.data, base.payload]))
    again = len(data) == len(base.payload)
    data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    return as_file(sealed(VERDICT, bytes(data), REFEREE)) if again else bytes(data)


# Ways that only need the bytes of a verdict.
UNTOLD = [way for way, _ in WAYS[:14]]
