"""Small changes of notes, texts and lists, for altered.py."""

import base64
import copy
import json
import re

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}\[\],:]|.', re.S)
L = 2**252 + 27742317777372353535851937790883648493
P = 2**255 - 19
ODD_NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1e0",
    "0.0",
    "-0.0",
    "01",
    "1.",
    ".5",
    "1e999",
    "-1e999",
    "1e-999",
    "1e308",
    "NaN",
    "Infinity",
    "2147483648",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "1" * 30,
    "+1",
    "0x1",
    "1E5",
    "true",
]
ODD_TOKENS = [
    " ",
    "\n",
    "\t",
    "\r",
    "\f",
    "\0",
    "\ufeff",
    ",",
    ",,",
    ":",
    "{",
    "}",
    "[",
    "]",
    "[[]]",
    "{}",
    '""',
    "//",
    "/**/",
    "'",
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0041"',
    '"\\x"',
    '"\x01"',
    '"\x7f"',
    '"\u00e9"',
    '"\\/"',
    "nul",
    "tru",
    "\ud800",
    *ODD_NUMBERS,
]
ODD_VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    2**31,
    2**63 - 1,
    "",
    "00" * 32,
    "0" * 63,
    [],
    {},
    [[]],
    {"more": 1},
    "e30=",
]
SMALL = [0, 1, P - 1, P, P + 1, 2**255 - 1]


def odd_key(chance):
    """A key of small order, above p, not on the curve, or with another encoding."""
    y = chance.choice([0, 1, 2, 7, P - 1, P, P + 1, 2**255 - 1])
    sign = chance.choice([0, 1 << 255])
    key = (y | sign).to_bytes(32, "little").hex()
    return chance.choice([key, key, key, key.upper(), key[:-1], key + "0", "", None])


def other_value(chance, value):
    if isinstance(value, str) and chance.random() < 0.5:
        return chance.choice([value.upper(), value[:-1], value + "0", value[::-1], " " + value, value + "="])
    if type(value) is int and chance.random() < 0.5:
        return value + chance.choice([-1, 1, 256, 2**32, 2**53])
    return copy.deepcopy(chance.choice(ODD_VALUES))


def changed_bytes(chance, data):
    """A file with bytes flipped, cut off, inserted or appended."""
    way, at = chance.randrange(6), chance.randrange(len(data))
    if way < 3:
        data = bytearray(data)
        data[at] ^= 1 << chance.randrange(8)
        return bytes(data)
    some = chance.choice([b"\n", b"\n\n", b"\r\n", b" ", b"}", b"{", b"\0", b"\xff", b"\xef\xbb\xbf", b"", b"x"])
    return {3: data[:at], 4: data[:at] + some + data[at:], 5: chance.choice([data + some, some + data])}[way]


def another_token(chance, token):
    if token[:1] == '"' and len(token) > 2 and chance.random() < 0.5:
        return '"\\u%04x' % ord(token[1]) + token[2:] if token[1] != "\\" else token  # same string
    if token[:1] == '"' and chance.random() < 0.3:
        at = chance.randrange(1, len(token))
        return token[:at] + chance.choice(["\\", "\\n", "\x1f", "\u00e9", "0", '\\"', "\\u0000"]) + token[at:]
    return chance.choice(ODD_TOKENS)


def changed_tokens(chance, text):
    """A JSON text with tokens dropped, doubled, exchanged or replaced; or with a duplicate member."""
    tokens = TOKEN.findall(text)
    for _ in range(chance.choice([1, 1, 1, 2])):
        at = chance.randrange(len(tokens))
        way = chance.randrange(8)
        if way == 0:
            del tokens[at]
        elif way == 1:
            tokens.insert(at, tokens[at])
        elif way == 2:
            other = chance.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif way < 5:
            tokens[at] = another_token(chance, tokens[at])
        elif way == 5:
            tokens.insert(at, chance.choice([" ", "\n", "\t", "\r\n", "   "]))
        else:
            double_member(chance, tokens)
        if not tokens:
            tokens = ["{", "}"]
    return "".join(tokens)


def double_member(chance, tokens):
    """Repeats a member before its object's end, perhaps with another name."""
    names = [i for i in range(len(tokens) - 2) if tokens[i][:1] == '"' and tokens[i + 1] == ":"]
    if not names:
        return
    at = chance.choice(names)
    value = tokens[at + 2] if tokens[at + 2] not in "{[" else "1"
    name = chance.choice([tokens[at], tokens[at], '"more"', '""'])
    tokens[at:at] = [name, ":", chance.choice([value, "null", chance.choice(ODD_NUMBERS)]), ","]


def changed_numbers(chance, text):
    tokens = TOKEN.findall(text)
    numbers = [i for i, token in enumerate(tokens) if token[:1] in "-0123456789"]
    for at in chance.sample(numbers, min(len(numbers), chance.choice([1, 1, 2]))):
        tokens[at] = chance.choice(ODD_NUMBERS)
    return "".join(tokens)


def changed_list(chance, values, others):
    values = list(values)
    for _ in range(chance.choice([1, 1, 2])):
        at = chance.randrange(len(values)) if values else 0
        way = chance.randrange(8)
        if way == 0 and values:
            del values[at]
        elif way == 1 and values:
            values.insert(at, copy.deepcopy(values[at]))
        elif way == 2 and values:
            other = chance.randrange(len(values))
            values[at], values[other] = values[other], values[at]
        elif way == 3 and values:
            values.insert(chance.randrange(len(values)), values.pop(at))
        elif way == 4:
            values = values[:at]
        elif way == 5 and others and values:
            values[at] = chance.choice(others)
        elif way == 6 and others:
            values.insert(at, chance.choice(others))
        elif values:
            values[at] = copy.deepcopy(chance.choice(ODD_VALUES))
    return values


def another_signature(chance, sig, keys):
    """A signature similar to this one: S + L, R of small order, flipped bits, another length."""
    way = chance.randrange(6)
    if way == 0:
        return sig[:32] + ((int.from_bytes(sig[32:], "little") + L) % 2**256).to_bytes(32, "little")
    if way == 1:
        return (chance.choice(SMALL) | chance.choice([0, 1 << 255])).to_bytes(32, "little") + sig[32:]
    if way == 2:
        data = bytearray(sig)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)
    return chance.choice([sig[:-1], sig + b"\0", b"", bytes(64), sig[32:] + sig[:32]])


def another_note(chance, note, keys):
    """An envelope with another member, type, key, signature or encoding."""
    note = copy.deepcopy(note)
    signature = note["signatures"][0]
    way = chance.randrange(12)
    if way == 0:
        signature["sig"] = base64.b64encode(
            another_signature(chance, base64.b64decode(signature["sig"]), keys)
        ).decode()
    elif way == 1:
        signature["keyid"] = chance.choice([*keys, odd_key(chance), signature["keyid"].upper()])
    elif way == 2:
        note["payloadType"] = chance.choice(
            [
                note["payloadType"] + " ",
                "",
                None,
                "application/vnd.verde.answer+json",
                "application/vnd.verde.question+json",
                "application/vnd.in-toto+json",
            ]
        )
    elif way == 3:
        note[chance.choice(["more", "Payload"])] = chance.choice([None, 1, "x"])
    elif way == 4:
        signature[chance.choice(["more", "cert"])] = chance.choice([None, 1, "x"])
    elif way == 5:
        del note[chance.choice(sorted(note))]
    elif way == 6:
        del signature[chance.choice(sorted(signature))]
    elif way == 7:
        note["signatures"] = chance.choice([[], [signature, signature], signature, [[signature]], None])
    elif way == 8:
        holder, name = chance.choice([(note, "payload"), (signature, "sig")])
        text = holder[name]
        holder[name] = chance.choice(
            [
                text + "=",
                text.rstrip("="),
                text + "\n",
                " " + text,
                text.replace("+", "-"),
                text[:-4],
                text + "AAAA",
                text.replace("/", "_"),
                text[:-3] + "B==",
            ]
        )
    elif way == 9:
        note = chance.choice([None, [note], "x", 1, {}])
    elif way == 10:
        return dict(sorted(note.items(), reverse=True))  # means the same
    else:
        name = chance.choice(sorted(note))
        note[name] = other_value(chance, note[name])
    return note


def padded(chance, payload, most):
    """The payload with a member in its answer that makes it as large as allowed, or slightly more or less."""
    elements, size = most
    said = json.loads(payload)
    if not isinstance(said["answer"], dict):
        return payload
    way = chance.randrange(4)
    if way == 0:
        commas = re.sub(rb'"[^"]*"', b"", payload).count(b",")
        left = elements - commas - 1 + chance.choice([-1, 0, 0, 1, 2])
        said["answer"]["more"] = [0] * max(1, left)
    elif way == 1:
        brackets = len(re.findall(rb"[\[{]", re.sub(rb'"[^"]*"', b"", payload)))
        value = 0
        for _ in range(max(1, min(2100, elements - brackets + chance.choice([-1, 0, 0, 1])))):
            value = [value]
        said["answer"]["more"] = value
    else:
        said["answer"]["more"] = ""
        bare = len(json.dumps(said, separators=(",", ":"), sort_keys=True).encode())
        said["answer"]["more"] = "x" * max(0, size - bare + chance.choice([-1, 0, 0, 1, 100]))
    if chance.random() < 0.2:
        return json.dumps(said, sort_keys=True).encode()  # with white space
    return json.dumps(said, separators=(",", ":"), sort_keys=True).encode()
