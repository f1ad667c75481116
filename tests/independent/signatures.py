#!/usr/bin/env python3
"""Compares which signatures hold by PROTOCOL.md 3.1 and by libsodium. Usage: signatures.py
tests/vectors/commit_ed25519.txt"""

import sys

from notes import Refused, need_signature

try:
    from nacl.bindings import crypto_sign_open
except ImportError:
    crypto_sign_open = None


def counts(key, signature, message):
    try:
        need_signature(key, signature, message, "a vector")
    except Refused:
        return False
    return True


def counts_for_libsodium(key, signature, message):
    try:
        crypto_sign_open(signature + message, bytes.fromhex(key))
    except Exception:  # noqa: BLE001 it raises several types
        return False
    return True


def main(path):
    judges = [counts] + ([counts_for_libsodium] if crypto_sign_open else [])
    seen, wrong = 0, 0
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            expected, flags, key, signature, message = line.rstrip("\n").split(" ", 4)
            seen += 1
            for judge in judges:
                if judge(key, bytes.fromhex(signature), message.encode()) != (expected == "counts"):
                    wrong += 1
                    print(f"{judge.__name__}: not {expected}: {flags} {key} {signature}")
    print(f"{seen} signatures at the edges of the curve, judged here{' and by libsodium' if crypto_sign_open else ''}")
    return 1 if wrong or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
