"""Strict JSON, keys and signed notes: PROTOCOL.md section 3."""

import base64
import binascii
import hashlib
import json
import re
import sys
from functools import cache
from itertools import accumulate

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    sys.exit("this verifier needs the Python package cryptography (Debian: apt-get install python3-cryptography)")

DEPTH = 2048
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)
UNFIT = re.compile("[\0\ud800-\udfff]")
sys.setrecursionlimit(10 * DEPTH)
TYPES = {name: f"application/vnd.verde.{name}+json" for name in ("assignment", "question", "answer")}
TYPES["verdict"] = "application/vnd.in-toto+json"
KNOWN = {*TYPES.values(), *(f"application/vnd.verde.{name}+json" for name in ("log", "request", "release"))}


class Refused(Exception):
    """The verdict does not hold; the message says why."""


class Later(Exception):
    """Something has a version, a part or a size that this verifier does not know; the message names it."""


class NotJudged(Exception):
    """This verifier cannot judge the verdict."""


def need(holds, why):
    if not holds:
        raise Refused(why)


def need_known(known, why):
    if not known:
        raise Later(why)


def need_version(value, what, last=1):
    """Requires an integer from 1 to `last`; a higher one is of a later version."""
    need(is_integer(value), f"the version of {what} is no integer")
    need_known(1 <= value <= last, f"version {value} of {what}; this verifier reads versions 1 to {last}")


def tagged(tag, *pieces):
    return hashlib.sha256(tag.encode() + b"\0" + b"".join(pieces)).digest()


def exactly(value, members, what, optional=()):
    need(isinstance(value, dict), f"{what} is no object")
    need(set(members) <= set(value) <= set(members) | set(optional), f"{what} has other members: {sorted(value)}")
    return value


def is_integer(value):
    return type(value) is int


def from_hex(value, size=32):
    """The bytes, or None if the value is not such a string."""
    if isinstance(value, str) and re.fullmatch("[0-9a-f]*", value) and len(value) == 2 * size:
        return bytes.fromhex(value)
    return None


def from_base64(value):
    """The bytes, or None if the value is not their canonical encoding."""
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None
    return data if base64.b64encode(data).decode() == value else None


def members_once(pairs):
    value = dict(pairs)
    need(len(value) == len(pairs), "a member is there twice")
    return value


def integer(digits):
    need(len(digits) < 21 and -2**63 <= int(digits) < 2**63, "an integer is beyond 64 bits")
    return int(digits)


def number(digits):
    value = float(digits)
    need(abs(value) != float("inf"), "a number is beyond binary64")
    return value


def no_constant(name):
    raise Refused(f"{name} is not JSON")


def check_strings(value):
    if isinstance(value, str):
        need(not UNFIT.search(value), "a string holds what is not allowed")
    elif isinstance(value, list):
        for item in value:
            check_strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            check_strings(name)
            check_strings(item)


def depth(text):
    """The largest number of brackets that are open at once."""
    steps = (1 if c in b"{[" else -1 for c in text if c in b"{}[]")
    return max(accumulate(steps), default=0)


def need_small(data, limit, what):
    """Requires at most `limit` opening brackets, and as many commas, outside of strings."""
    if data.count(b"{") + data.count(b"[") <= limit and data.count(b",") <= limit:
        return  # even if those in strings count
    bare = STRING.sub(b"", data)
    need(bare.count(b"{") + bare.count(b"[") <= limit, f"{what} has too many brackets")
    need(bare.count(b",") <= limit, f"{what} has too many commas")


def need_flat(data, what):
    """Requires at most DEPTH open brackets at once, outside of strings."""
    if data.count(b"{") + data.count(b"[") > DEPTH:
        need(depth(STRING.sub(b"", data)) <= DEPTH, f"{what} is nested too deep")


def parse_known(data, limit, what):
    """Like parse, for what a referee signs: in a later version it may be larger."""
    try:
        need_small(data, limit, what)
    except Refused as why:
        raise Later(str(why)) from None
    return parse(data, limit, what)


def parse(data, limit, what):
    """The object in these bytes, which has at most `limit` opening brackets, and as many commas."""
    need(data[:1] == b"{" and data[-1:] == b"}", f"{what} is not an object alone")
    need_small(data, limit, what)
    need_flat(data, what)
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=members_once, parse_int=integer,
                           parse_float=number, parse_constant=no_constant)
        if b"\\u" in data:  # only escapes can give forbidden characters
            check_strings(value)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{what} is not JSON: {error}") from None
    return value


def canonical(value):
    """The canonical bytes of a question: sorted members, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


P = 2**255 - 19
D = -121665 * pow(121666, -1, P)


def ordinate(encoded, what):
    """y of an encoded point, which must be canonical and not of small order. Section 3.1."""
    y = int.from_bytes(encoded, "little") & (1 << 255) - 1
    # Doubling a point of order 8 gives one of order 4, whose y is 0: so x^2 = -y^2. In the curve's equation, -x^2 + y^2
    # = 1 + d x^2 y^2, this gives d y^4 + 2 y^2 - 1 = 0.
    small = y in (0, 1, P - 1) or (D * pow(y, 4, P) + 2 * y * y - 1) % P == 0
    need(y < P and not small, f"{what} is of small order, or not reduced")
    return y


def is_later_key(key):
    """Is it TYPE:digits, where TYPE has a letter beyond f, or a hyphen? Section 3.5."""
    return isinstance(key, str) and bool(re.fullmatch(r"(?=[0-9a-f]*[g-z-])[a-z0-9-]+:[0-9a-f]+", key))


def public_key(key):
    """The key of 64 hexadecimal digits. Refuses points that are not on the curve, and keys that anybody could sign
    for."""
    raw = from_hex(key)
    need_known(not is_later_key(key), f"the key {key} is of a type that this verifier does not know")
    need(raw is not None, "a key is not 64 lower-case digits")
    return key_of_point(raw)


@cache
def key_of_point(raw):
    y = ordinate(raw, f"the key {raw.hex()}")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    need(pow(square, (P - 1) // 2, P) == 1, f"the key {raw.hex()} is no point of the curve")
    return Ed25519PublicKey.from_public_bytes(raw)


def need_signature(key, signature, message, what):
    """OpenSSL checks the equation, S and the comparison with R, but not that R is not of small order."""
    signer = public_key(key)
    need(len(signature) == 64, f"the signature of {what} has not 64 bytes")
    ordinate(signature[:32], f"R in the signature of {what}")
    try:
        signer.verify(signature, message)
    except InvalidSignature:
        raise Refused(f"the signature of {what} does not hold") from None


def open_note(note, kind, key=None):
    """The payload bytes of a note and its key. `key`, or whoever the note names, must have signed it."""
    exactly(note, ("payload", "payloadType", "signatures"), f"the note of the {kind}")
    need(isinstance(note["signatures"], list) and len(note["signatures"]) == 1, f"the {kind} has not one signature")
    signature = exactly(note["signatures"][0], ("keyid", "sig"), "a signature")
    stated = note["payloadType"]
    need(all(isinstance(s, str) for s in (note["payload"], stated, *signature.values())), f"the {kind} has no strings")
    public_key(signature["keyid"])
    need(key is None or signature["keyid"] == key, f"the {kind} is signed by another key")
    need(stated == TYPES[kind] or stated not in KNOWN, f"the note of the {kind} is of another type")
    payload, sig = from_base64(note["payload"]), from_base64(signature["sig"])
    need(payload is not None and sig is not None, f"the {kind} is not canonical base64")
    kind_name = stated.encode()
    need_signature(signature["keyid"], sig, b"DSSEv1 %d %s %d %s" % (len(kind_name), kind_name, len(payload), payload),
                   f"the {kind}")
    need_known(stated == TYPES[kind], f"the note of the {kind} is of the type {stated}")
    return payload, signature["keyid"]
