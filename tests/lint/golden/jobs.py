"""Prints the keys of job files with the words that they take, and those that may be left out, from
the table in C."""

import re
from pathlib import Path

KEY = re.compile(r'(?:\.path = |\b(?:MAPPING|INTEGER|CHOICE)\(|\b(REALS?)\()"([a-z0-9_.]+)"')
WORDS = re.compile(r"static const vd_choice (\w+)\[\] = \{(.*?)\};", re.S)

text = Path("verde/job/fields.c").read_text()
words = {name: re.findall(r'\{"([^"]+)"', body) for name, body in WORDS.findall(text)}
keys = list(KEY.finditer(text))
for key, after in zip(keys, [k.start() for k in keys[1:]] + [len(text)]):
    name, row = key[2], text[key.end() : after].split("\n};")[0]
    print(name)
    for choice in sorted(words.keys() & set(re.findall(r"\w+", row))):
        for word in words[choice]:
            print(f"{name}: {word}")
    number = re.search(r"\.otherwise = (\d+)", row)
    if number or key[1] == "REALS" or re.search(r"\.(otherwise|optional|spare) = ", row):
        print(f"{name} may be left out{': ' + number[1] if number else ''}")
