#!/bin/sh
# A local variable that owns something is initialised in its declaration: a structure with a function that frees it, or a pointer that
# its function frees. Otherwise a path that ends early would free a random address, and compilers do not warn if another file sets the
# variable.
command -v python3 > /dev/null || { echo "no python3: local variables that own something were not looked at"; exit 77; }
python3 - << 'PYTHON'
import glob
import re
import sys

FREE = re.compile(r"^(?:static )?void (?:\w+_)?(?:free|close|destroy|clear|abort)(?:_\w+)?\((?:ro_ctx \*\w+, )?(\w+) \*\w+\)", re.M)
STRUCT = re.compile(r"\b(?:struct|union)(?: (\w+))? \{")
# Searched again at each line, as a match may turn out to be the end of a parameter list.
DECLARATION = re.compile(r"^[ \t]+(?=(?:(?:const|struct|unsigned) )*(\w+) ([*\w][^;]*);)", re.M)
STATEMENTS = {"return", "goto", "else", "case", "typedef", "extern", "static"}


def text_of(path):
    with open(path) as file:
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), file.read(), flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def closing(text, at):
    """Behind the brace that closes the one before `at`."""
    depth = 1
    while depth > 0 and at < len(text):
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
    return at


def declarators(text):
    """`*a, b = {1, 2}` gives `*a` and `b = {1, 2}`; nothing where `text` is no list of them."""
    depth, out = 0, [""]
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            return []
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [d.strip() for d in out] if depth == 0 else []


def structs(text):
    """(names, members, begin, end) of each structure."""
    out = []
    for found in STRUCT.finditer(text):
        end = closing(text, found.end())
        name = re.match(r"\s*(\w+)", text[end:])
        out.append(({n for n in (found.group(1), name and name.group(1)) if n}, text[found.end() : end - 1], found.start(), end))
    return out


def names_of(some):
    return set().union(*(names for names, *_ in some))


def with_members(owners, some):
    """And the structures that have one of these as a member."""
    while owners:
        member = re.compile(r"^\s*(?:struct )?(?:%s) (?!\*)" % "|".join(owners), re.M)
        more = {n for names, members, *_ in some for n in names if member.search(members)}
        if more <= owners:
            break
        owners = owners | more
    return owners


texts = {path: text_of(path) for top in ("verde", "models", "repops", "examples") for path in sorted(glob.glob(top + "/**/*.[ch]", recursive=True))}
# A structure in a header has one meaning everywhere; one in a .c file belongs to that file.
shared = [s for path, text in texts.items() if path.endswith(".h") for s in structs(text)]
freed = {t for path, text in texts.items() if path.endswith(".h") for t in FREE.findall(text)}
common = with_members(freed & names_of(shared), shared)


def unset(text):
    """(line, declaration) of each variable that owns something and is left without a value."""
    own = structs(text)
    owners = with_members(common - names_of(own) | set(FREE.findall(text)) & names_of(own), own)
    for found in DECLARATION.finditer(text):
        kind, rest = found.groups()
        function = text[found.end(2) : text.find("\n}\n", found.end(2))]
        if kind in STATEMENTS or any(begin <= found.end(2) <= end for *_, begin, end in own):
            continue
        for d in declarators(rest):
            name = re.match(r"(\**)(\w+)((?:\[[^\]]*\])*)$", d)
            frees = name and re.search(r"\b\w*(?:free|close|destroy)\((?:[^()]*, )?(?:\(void \*\))?%s\)" % name.group(2), function)
            if name and (frees if name.group(1) else kind in owners):
                yield text.count("\n", 0, found.start(1)) + 1, f"{kind} {d}"


# Tests the lint itself: it must report three of these five variables.
planted = """
typedef struct {
    vd_state inside;
} own;
static int f(const char *dir, vd_state *out) {
    vd_state good = {0}, bad;
    char text[8], *name = NULL, *worse;
    own worst;
    free(name);
    free(worse);
}
"""
if [d for _, d in unset(planted)] != ["vd_state bad", "char *worse", "own worst"]:
    sys.exit(f"this check is broken: it finds {list(unset(planted))} in what was planted")
bad = [(path, *where) for path, text in texts.items() for where in unset(text)]
for path, line, declaration in bad:
    print(f"{path}:{line}: `{declaration}` owns something: give it a value here, {{0}} or NULL")
if not bad:
    print(f"no local variable of the {len(common)} types that own something is left without a value")
sys.exit(len(bad) > 0)
PYTHON
