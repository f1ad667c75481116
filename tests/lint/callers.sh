#!/bin/sh
# Checks that every function declared in a header of verde is called from another file than its own: one without callers must go,
# and one that only its own file calls must be static there. Tests and benchmarks count as callers.
command -v python3 > /dev/null || { echo "no python3: callers were not looked for"; exit 77; }
find bench examples models repops tests verde -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | python3 -c '
import collections
import re
import sys

NOTHING = re.compile(r"\"(?:\\.|[^\"\\])*\"|\x27(?:\\.|[^\x27\\])*\x27|/\*.*?\*/|//[^\n]*", re.S)

texts = {}
for path in sys.stdin.read().split():
    with open(path, encoding="utf-8") as file:
        texts[path] = NOTHING.sub(" ", file.read())
users = collections.defaultdict(set)
for path, text in texts.items():
    for name in re.findall(r"\bvd_\w+", text):
        users[name].add(path)

bad = declared = 0
for path, text in texts.items():
    if not (path.startswith("verde/") and path.endswith(".h")):
        continue
    # Skips pointers to functions, static functions and macros.
    for found in re.finditer(r"^(?!static|#)[\w \n]+[ *](vd_\w+)\([^;{]*\);", text, re.M):
        name = found.group(1)
        declared += 1
        if len(re.findall(r"\b" + name + r"\b", text)) > 1:
            continue  # a macro of the header, or a function in it, calls it
        body = re.compile(r"^\w[\w *]*\b" + name + r"\([^;{]*\)\s*\{", re.M)
        callers = [p for p in users[name] - {path} if not body.search(texts[p])]
        if not callers:
            print(f"{path}: no other file than the one that defines it calls {name}")
            bad = 1
print(f"{declared} functions that headers of verde declare have callers in other files" if not bad
      else "delete each, or make it static")
sys.exit(bad or declared < 500)
'
