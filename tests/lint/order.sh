#!/bin/sh
# No call has two arguments that emit nodes. C does not fix the order in which arguments are evaluated, so compilers would number
# nodes differently, and programs would have different hashes.
command -v python3 > /dev/null || { echo "no python3: the order of nodes was not looked at"; exit 77; }
python3 - models/*.c verde/graph/*.c verde/graph/functions.h << 'PYTHON'
import re
import sys

# These return existing values, and emit no node.
PLACED = {"vd_data_value", "vd_step_value", "vd_leaf_value"}


def text_of(path):
    with open(path) as file:
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), file.read(), flags=re.S)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


def arguments(text, at):
    """Of the call whose parenthesis is before `at`."""
    depth, start, out = 1, at, []
    while depth > 0 and at < len(text):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0 or depth == 1 and text[at] == ",":
            out.append(text[start:at])
            start = at + 1
        at += 1
    return out


texts = {path: text_of(path) for path in sys.argv[1:]}
emits = {"VD_EMIT", "VD_APPLY"}
for text in texts.values():
    emits |= set(re.findall(r"\bvd_value (\w+)\(", text))
emits -= PLACED
bad = calls = 0
for path, text in texts.items():
    for call in re.finditer(r"\b(\w+)\(", text):
        found = [a for a in arguments(text, call.end()) if set(re.findall(r"\b(\w+)\(", a)) & emits]
        calls += len(found) > 0
        if len(found) > 1:
            line = text.count("\n", 0, call.start()) + 1
            print(f"{path}:{line}: {call.group(1)}: two arguments emit nodes, in an order that the compiler chooses:", *(" ".join(a.split()) for a in found))
            bad = 1
print(f"{calls} calls have an argument that emits nodes, and none has two" if not bad else "give each a name first")
sys.exit(bad or calls < 100)
PYTHON
