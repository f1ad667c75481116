"""Prints the commands of `verde` with their options, and its exit codes, from their tables in C.

An option that takes an argument is followed by `=`. Options of one form of a command alone stand
behind its letter in the table."""

import re
from pathlib import Path

CLI = Path("verde/cli")
ROW = re.compile(r'\{[\s\\]*"  (--[a-z-]+)(?:, (-[a-z]))?( [^ ])?')
COMMON = re.compile(r"#define (VD_[A-Z]+_ROWS)\(common\)((?:.*\\\n)+.*)")


def print_options(command, text):
    rows = list(ROW.finditer(text))
    for row, after in zip(rows, [r.start() for r in rows[1:]] + [len(text)]):
        name, short, argument = row.groups()
        forms = re.search(r'\.forms = "([a-z]+)"', text[row.end() : after])
        for form in forms[1] if forms else [""]:
            print(f"verde {command}{form and '/' + form} {name}{'=' if argument else ''}")
        if short:
            print(f"verde {command} {short}")


common = dict(COMMON.findall((CLI / "cli.h").read_text()))
main = (CLI / "main.c").read_text()
for command in re.findall(r"&vd_cmd_([a-z]+)", main):
    text = (CLI / f"cmd_{command}.c").read_text()
    print(f"verde {command}")
    print_options(command, text)
    for macro in re.findall(r"VD_[A-Z]+_ROWS", text):
        print_options(command, common[macro])
for option in set(re.findall(r'"(--?[a-z]+)"', main)):
    print(f"verde {option}")
codes = re.findall(r"\bVD_EXIT_([A-Z]+) = (\d+)", Path("verde/tell/tell.h").read_text())
for name, code in codes:
    print(f"exit code {code} {name.lower()}")
