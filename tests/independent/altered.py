#!/usr/bin/env python3
"""Alters verdicts in ways that know their structure, and compares what two verifiers decide of each.

Usage: altered.py JUDGE DIR COUNT [SEED [FIRST]]   (DIR: verdicts of test_verdict_kinds, whose keys are known)
       altered.py JUDGE DIR COUNT SEED FIRST one_byte   (proofs of fraud alone, each with one byte changed)

JUDGE is build/tests/judge, `verde verify` for many verdicts in one process; the other verifier is verify.py. Variant i
of a seed is the same again on every machine. Where they differ, the variant is written to DIR/different."""

import random
import struct
import subprocess
import sys
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path

import notes
import verify
from forge import alike
from notes import Later, NotJudged, Refused
from verdicts import Base
from ways import UNTOLD, WAYS, one_byte


class Judge:
    """`verde verify` for many verdicts in one process."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, data):
        self.process.stdin.write(struct.pack("<I", len(data)) + data)
        self.process.stdin.flush()

    def decision(self):
        line = self.process.stdout.readline().decode("utf-8", "replace")
        if not line:
            raise SystemExit(f"the judge ended: {self.process.wait()}")
        code, _, why = line.rstrip("\n").partition(" ")
        return int(code), why


def decide(data):
    try:
        verify.decide(data)
    except Refused as why:
        return 6, str(why)
    except Later as why:
        return 8, str(why)
    except NotJudged as why:
        return 1, str(why)
    except Exception as error:  # noqa: BLE001 a crash is a fault, too
        return 70, repr(error)
    return 0, "holds"


def remember():
    """Caches what most variants share: programs, signatures that hold, texts."""
    plain_read, plain_need, plain_parse = verify.read_program, notes.need_signature, notes.parse
    read = lru_cache(64)(plain_read)
    verify.read_program = lambda text: (read if isinstance(text, str) else plain_read)(text)
    good = lru_cache(1 << 14)(plain_need)  # failures are not cached
    notes.need_signature = good
    parse = lru_cache(1 << 12)(plain_parse)
    verify.parse = lambda data, limit, what: (parse if what == "a statement" else plain_parse)(data, limit, what)


def variant(bases, seed, i, only):
    chance = random.Random(f"{seed} {i}")
    if only:
        base = bases[i % len(bases)]
        return base, only.__name__, only(chance, base, bases)
    base = chance.choice(bases)
    if not base.judged and chance.random() < 0.8:
        base = bases[0]
    ways = [(way, weight) for way, weight in WAYS if base.judged or way in UNTOLD]
    way = chance.choices([way for way, _ in ways], [weight for _, weight in ways])[0]
    return base, way.__name__, way(chance, base, bases)


def main(judge, directory, count, seed="1", first="0", way=None):
    remember()
    only = one_byte if way == one_byte.__name__ else None
    bases = [Base(path) for path in sorted(Path(directory).glob("fraud-*.json" if only else "*.json"))]
    if not bases:
        raise SystemExit(f"{directory}: no verdicts")
    judges, began, told = Judge(judge), time.monotonic(), time.monotonic()
    tried, held, unjudged, different = Counter(), Counter(), 0, 0
    for i in range(int(first), int(first) + int(count)):
        base, way, data = variant(bases, seed, i, only)
        judges.send(data)
        mine, said = decide(data)
        theirs, why = judges.decision()
        tried[way] += 1
        held[way] += mine == 0
        unjudged += mine == 1
        if theirs == 1 or mine == 70 or not alike(mine, theirs, way in ("programs", "one_byte")):
            different += 1
            place = Path(directory, "different")
            place.mkdir(exist_ok=True)
            (place / f"{seed}-{i}-{way}").write_bytes(data)
            print(f"{base.name}, {way} {i}: {mine} by verify.py, {theirs} by verde: {said}; {why}", flush=True)
        if sys.stderr.isatty() and time.monotonic() - told > 2:
            told = time.monotonic()
            done = i + 1 - int(first)
            rate = done / (told - began)
            print(
                f"\r{done} of {count}, {rate:.0f} a second, {(int(count) - done) / rate:.0f} s left ",
                end="",
                file=sys.stderr,
            )
    for way, _ in [(only, 1)] if only else WAYS:
        print(f"{way.__name__:16} {tried[way.__name__]:7} {held[way.__name__]:7} hold")
    print(
        f"{count} altered verdicts of {len(bases)} kinds, {sum(held.values())} of which hold, "
        f"{unjudged} over rounding: "
        f"{different} decided differently"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
