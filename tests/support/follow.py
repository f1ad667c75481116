"""Follows a page literally: inserts each block of code where the page says, or removes it.

Usage: python3 follow.py PAGE take|put [FILE...]; with files, those alone. Prints what it changed, and
how many lines.

Before a block the page says "In `FILE`, behind `TEXT`:", perhaps with ", after an empty line" or
"after two empty lines". TEXT must occur in exactly one line of the file."""

import re
import sys
from pathlib import Path

PLACE = re.compile(
    r"In `([^`]+)`, behind (?:``(.+?)``|`([^`]+)`)(?:, after (an empty line|two empty lines))?:"
)
EMPTY = {None: 0, "an empty line": 1, "two empty lines": 2}


def steps(page):
    """Yields file, text, number of empty lines and the block's lines, in the page's order."""
    lines = page.split("\n")
    i = 0
    while i < len(lines):
        if not lines[i].startswith("In `"):
            i += 1
            continue
        end = lines.index("", i)
        found = PLACE.fullmatch(" ".join(lines[i:end]))
        if not found:
            sys.exit(f"the page's line {i + 1} says no place: {lines[i]}")
        i = end + 1
        block = []
        while i < len(lines) and (lines[i].startswith("    ") or not lines[i]):
            block.append(lines[i][4:])
            i += 1
        while not block[-1]:
            block.pop()
        yield found[1], found[2] or found[3], EMPTY[found[4]], block


def place_of(lines, text, file):
    at = [i for i, line in enumerate(lines) if text in line]
    if len(at) != 1:
        sys.exit(f"{file}: {len(at)} lines have {text!r}, expected one")
    return at[0] + 1


def main():
    page, what, *only = sys.argv[1:]
    count, files = 0, []
    for file, text, empty, block in steps(Path(page).read_text()):
        if only and file not in only:
            continue
        lines = Path(file).read_text().split("\n")
        at, added = place_of(lines, text, file), [""] * empty + block
        if what == "put":
            lines[at:at] = added
        elif lines[at : at + len(added)] == added:
            del lines[at : at + len(added)]
        else:
            sys.exit(f"{file}: what stands behind {text!r} is not what the page says")
        Path(file).write_text("\n".join(lines))
        count += len(block)
        files += [file] if file not in files else []
    print(f"{len(files)} files, {count} lines")


main()
