#!/usr/bin/env python3
"""Decides a verdict again, from PROTOCOL.md and SPEC.md alone. Usage: verify.py FILE...

Exit codes, of several files the first that is not 0: 0 the verdict holds; 6 it does not; 8 it is of a version, has a
part or is of a size that is not known, so that nothing is decided; 1 this verifier cannot judge it; 2 usage."""

import json
import re
import sys

from alone import Alone, check_place
from collection import Collection
from notes import (Later, NotJudged, Refused, canonical, exactly, from_base64, from_hex, is_integer, need, need_known,
                   need_version, open_note, parse, parse_known, public_key, tagged)
from program import Program
from referee import Dispute
from tournament import Tournament

NOTE_LIMIT, ASSIGNMENT_LIMIT, VERDICT_LIMIT = 3, 128, 1 << 20
VERDICT_BYTES, GAME_BYTES, GAMES = 128 << 20, 296 << 20, 126
PREDICATE = "https://verde.invalid/verdict/v%d"
FRAUD = "https://verde.invalid/fraud/v1"
STATEMENT = "https://in-toto.io/Statement/v1"
COSTS = ("bytes_in", "bytes_out", "seconds", "cpu_seconds", "peak_bytes")
LEVELS = ("claim", "item", "step", "node", "element", "part", "log", "challenge")


class Evidence:
    """The items of a verdict. They must be those that the referee would have asked for, in this order."""

    def __init__(self, items, assignment, keys):
        self.items, self.assignment, self.keys = items, assignment, keys
        self.at, self.asked = 0, [0] * len(keys)
        self.size = None  # payload bytes of the last statement; None: there was none

    def ask(self, p, question, tree=None):
        """Provider p's answer, or None. tree: the tree that the question is about, if any."""
        need(self.at < len(self.items), f"the evidence ends before the {question['ask']} question to provider {p}")
        item, where = self.items[self.at], f"item {self.at} of the evidence"
        self.at += 1
        self.asked[p] += 1
        kind = "statement" if isinstance(item, dict) and "statement" in item else "absent"
        exactly(item, ("provider", "question", kind), where)
        wanted = tagged("verde/question/1", canonical(question)).hex()
        need(is_integer(item["provider"]) and item["provider"] == p, f"{where} is not of provider {p}")
        need(item["question"] == wanted, f"{where} answers another question than {question['ask']}")
        self.size = None
        if kind == "absent":
            need(isinstance(item["absent"], str), f"{where}: `absent` is no string")
            return None
        try:
            return self.statement(p, item["statement"], wanted, most_of(question, tree))
        except Later as why:  # a provider's statement has the assignment's version
            raise Refused(str(why)) from None

    def statement(self, p, note, wanted, most):
        payload, _ = open_note(note, "answer", self.keys[p])
        elements, size = most
        need(len(payload) <= size, "a statement is larger than its question allows")
        said = parse(payload, elements, "a statement")
        exactly(said, ("verde", "assignment", "key", "question", "answer"), "a statement")
        need_version(said["verde"], "a statement")
        for name, value in (("assignment", self.assignment), ("question", wanted), ("key", self.keys[p])):
            need(said[name] == value, f"a statement has another {name}")
        self.size = len(payload)
        return said["answer"]


def most_of(question, tree):
    """The limits of a statement on a question: brackets or commas, and payload bytes. Section 9."""
    hashes, sizes = 0, []
    if question["ask"] == "open":
        hashes = 1 << question["depth"]
    elif question["ask"] == "prove":
        sizes = [tree.size(leaf) for leaf in question["leaves"]]
    elif question["ask"] == "subrun":
        sizes = [32, 32]
    path = (tree.count - 1).bit_length() if sizes else 0
    size = 4096 + 80 * hashes + sum(64 + 80 * path + 4 * -(-leaf // 3) for leaf in sizes)
    return 64 + hashes + len(sizes) * (path + 4), size


def check_audit(said, checker):
    """An assignment to one provider: section 13.1. Returns it like the others, with a list of providers."""
    exactly(said, ("beacon", "checker", "nonce", "program", "provider", "verde"), "the assignment")
    need(from_hex(said["nonce"]) and from_hex(said["program"]), "the assignment's nonce or program is no hash")
    public_key(said["checker"])
    public_key(said["provider"])
    beacon = exactly(said["beacon"], ("source", "round"), "the beacon")
    source = beacon["source"]
    need(isinstance(source, str) and re.fullmatch("[ -~]{1,128}", source), "the beacon's source is no name")
    need(is_integer(beacon["round"]) and beacon["round"] >= 0, "the beacon's round is no number")
    need(said["checker"] == checker, "the assignment names another checker")
    return {**said, "providers": [said["provider"]]}


def check_assignment(note, referee):
    need(isinstance(note, dict), "the assignment is no note")
    size = len(json.dumps(note, separators=(",", ":"), ensure_ascii=False).encode())
    need_known(size <= 64 << 10, "the note of the assignment is too large")
    payload, _ = open_note(note, "assignment", referee)
    said = parse_known(payload, ASSIGNMENT_LIMIT, "the assignment")
    need_version(said.get("verde"), "an assignment", 2)
    if said["verde"] == 2:
        return check_audit(said, referee), tagged("verde/assignment/1", payload).hex()
    exactly(said, ("nonce", "program", "providers", "referee", "verde"), "the assignment", ("challenge", "trainer"))
    need(from_hex(said["nonce"]) and from_hex(said["program"]), "the assignment's nonce or program is no hash")
    need(said.get("challenge", True) is True, "the assignment's `challenge` is not true")
    public_key(said["referee"])
    keys = said["providers"]
    need(isinstance(keys, list) and len(keys) >= 2, "the assignment names not 2 providers")
    need_known(len(keys) <= 64, "the assignment names more than 64 providers")
    for i, key in enumerate(keys):
        public_key(key)
        need(key not in keys[:i], "the assignment names a provider twice")
    if "trainer" in said:
        public_key(said["trainer"])
    need(said["referee"] == referee, "the assignment names another referee")
    if "trainer" in said:
        raise NotJudged("disputes over rounding (section 12) are not judged here")
    return said, tagged("verde/assignment/1", payload).hex()


def difference(reached, stated, where="outcome"):
    """A sentence about the first difference of two outcomes, or None. A `reason` does not count."""
    if isinstance(reached, dict) and isinstance(stated, dict):
        names = sorted((set(reached) | set(stated)) - ({"reason"} if where != "outcome" else set()))
        found = (f"{where}.{n} is {'missing' if n not in stated else 'too much'}" if (n in reached) != (n in stated)
                 else difference(reached[n], stated[n], f"{where}.{n}") for n in names)
    elif isinstance(reached, list) and isinstance(stated, list) and len(reached) == len(stated):
        found = (difference(r, s, f"{where}[{i}]") for i, (r, s) in enumerate(zip(reached, stated)))
    else:
        alike = type(reached) is type(stated) and reached == stated
        return None if alike else f"{where} is {stated}, and must be {reached}"
    return next((text for text in found if text), None)


def games_of(outcome):
    """The number of games; each hearing between two providers counts as one."""
    second = outcome.get("challenge", {}).get("end") in ("failed", "upheld", "inconclusive")
    return len(outcome["games"]) if "games" in outcome else 1 + second


def check_cost(cost):
    exactly(cost, COSTS, "the cost", ["level_seconds"])
    levels = exactly(cost.get("level_seconds", {}), (), "the cost of levels", LEVELS)
    need(all(type(n) in (int, float) and n >= 0 for n in [*(cost[name] for name in COSTS), *levels.values()]),
         "a cost is no number of 0 or more")


def read_program(text):
    encoded = from_base64(text)
    need(encoded is not None, "the program is not canonical base64")
    return Program(encoded)


def decide(data):
    """The outcome that the evidence in a verdict's file leads to."""
    need_known(len(data) <= VERDICT_BYTES + GAMES * GAME_BYTES, "the verdict is too large")
    note = parse(data[:-1] if data[-1:] == b"\n" else data, NOTE_LIMIT, "the note of the verdict")
    payload, referee = open_note(note, "verdict")
    said = parse_known(payload, VERDICT_LIMIT, "the verdict")
    for name, known in (("_type", (STATEMENT,)), ("predicateType", (PREDICATE % 1, PREDICATE % 2, FRAUD))):
        need(isinstance(said.get(name), str), f"`{name}` of the verdict is no string")
        need_known(said[name] in known, f"`{name}` of the verdict is {said[name]}")
    exactly(said, ("_type", "subject", "predicateType", "predicate"), "the verdict")
    fraud = said["predicateType"] == FRAUD
    many_programs = not fraud and isinstance(said["predicate"], dict) and "collection" in said["predicate"]
    job = "collection" if many_programs else "program"
    members = ("assignment", job, "outcome", "evidence", "cost", *(["place"] if fraud else []))
    predicate = exactly(said["predicate"], members, "the predicate")
    check_cost(predicate["cost"])
    assignment, assignment_hash = check_assignment(predicate["assignment"], referee)
    many = len(assignment["providers"]) > 2
    need(fraud == (assignment["verde"] == 2), "the assignment is of another kind than the predicate")
    need(fraud or said["predicateType"] == PREDICATE % (2 if many else 1), "the predicate is of another type")
    program = Collection(predicate[job]) if many_programs else read_program(predicate[job])
    place = check_place(predicate["place"], program) if fraud else None
    digest = program.hash.hex()
    need(not (many_programs and "challenge" in assignment), "a job of many programs has no challenge")
    need(assignment["program"] == digest, "the assignment is about another program")
    need(said["subject"] == [{"name": "program", "digest": {"sha256": digest}}], "the subject is another one")
    need(isinstance(predicate["evidence"], list), "the evidence is no list")
    evidence = Evidence(predicate["evidence"], assignment_hash, assignment["providers"])
    reached = (Alone(program, assignment, evidence, place) if fraud
               else (Tournament if many else Dispute)(program, assignment, evidence)).decide()
    need(evidence.at == len(evidence.items), "there is more evidence than the referee asked for")
    need(not many_programs or program.used == set(program.known), "nothing is about an item of the verdict")
    wrong = difference(reached, predicate["outcome"])
    need(wrong is None, wrong)
    need_known(len(data) <= VERDICT_BYTES + games_of(reached) * GAME_BYTES, "the verdict is too large")
    return reached


def judge(path):
    """Prints whether a verdict holds; returns the exit code."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        print(f"verify.py: {error}", file=sys.stderr)
        return 2
    try:
        outcome = decide(data)
    except Refused as why:
        print(f"does not hold: {why}")
        return 6
    except Later as why:
        print(f"not decided: {why}")
        return 8
    except NotJudged as why:
        print(f"not judged: {why}")
        return 1
    grades = [p.get("grade", p["standing"]) for p in outcome["providers"]]
    print(f"holds: {outcome['result']}, {' and '.join([', '.join(grades[:-1])] * (len(grades) > 1) + grades[-1:])}")
    return 0


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    for path in arguments:
        if len(arguments) > 1:
            print(path, end=": ")
        if code := judge(path):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
