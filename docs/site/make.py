"""Makes the project's site: the documents as they are, and references that are made from the sources.

    python3 docs/site/make.py VERDE OUT      # `make site`

Needs Debian's mkdocs. Every link leads to a page or a file of the site; a folder of sources is named, and not linked.
"""

import ast
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "python"))
import generate  # noqa: E402

COMPARISON = "bench/results/determinism/gpt2-full-deep/page.html"
KEPT, VERDICT = "tests/kept/0.9/evidence.tar.xz", "./verdicts/element.json"
PACKAGES = ("repops", "repops.fused", "repops.torch", "repops.jobs", "repops.onnx", "verde")

# The menu: a title, and pages of the project by their paths; what is not named here is under "More".
MENU = {
    "Begin": ["README.md", "docs/tutorials/*.md"],
    "Use": [
        "docs/delegation.md", "docs/any-model.md", "docs/onnx.md", "docs/python.md", "docs/linking.md", "docs/weights.md",
        "docs/jobs.md", "docs/providing.md", "docs/gpu.md", "docs/teams.md",
    ],
    "Check": [
        "docs/audit-provider.md", "docs/auditing.md", "docs/audit-answers.md", "docs/diff.md", "docs/guard.md", "docs/pages.md",
        "docs/example-verdict.md",
    ],
    "Compare": ["docs/comparison.md", "docs/performance.md", "docs/products.md", "docs/rounding-logs.md", "docs/zoo.md", "docs/outside.md"],
    "Reference": [
        "docs/reference/operators.md", "docs/reference/python.md", "docs/reference/commands.md", "docs/operators.md",
        "repops/SPEC.md", "verde/PROTOCOL.md", "verde/THREATS.md", "docs/formats.md", "docs/compatibility.md",
    ],
    "More": ["docs/*.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"],
}  # fmt: skip


def title(text: str) -> str:
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1].replace("`", "")


def operators() -> str:
    """Every operator: its call, its inputs, what it computes, and where SPEC.md says how."""
    spec, source = generate.specification(), (TOP / generate.OPERATORS).read_text()
    lines = ["# Operators", "", "From the table that the library is compiled from. [SPEC.md](../../repops/SPEC.md) says what each computes, to the bit.", ""]
    for operator in sorted(generate.operators(source).values()):
        call = ", ".join(generate.names(operator.inputs).split() + [f"{a}=…" for a in operator.attributes])
        lines += [f"## {operator.name}", "", f"    {operator.name}({call})", "", f"{operator.text[:1].upper()}{operator.text[1:]}.", ""]
        lines += [f"Inputs: {operator.inputs}.", ""] if operator.inputs else []
        lines += [f"SPEC.md, section {spec[operator.name]}", ""] if operator.name in spec else []
        lines += ["Element `e` of the result reads:", "", f"    {operator.reads}", ""] if operator.reads else []
    return "\n".join(lines)


def signature(node: ast.FunctionDef) -> str:
    arguments = ast.unparse(node.args)
    return f"{node.name}({re.sub(r'^(self|cls)(, )?', '', arguments)})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def exported(package: str) -> list:
    """Nodes of public functions and classes of a package with a docstring, in files that its __init__ imports from too."""
    folder = TOP / "python" / package.replace(".", "/")
    files = sorted(folder.glob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    trees = {file.stem: ast.parse(file.read_text()) for file in files}
    own = trees.get("__init__", trees.get(folder.name))
    names = {a.asname or a.name for n in own.body if isinstance(n, ast.ImportFrom) and n.level for a in n.names}
    names |= {n.name for n in own.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    nodes = {n.name: n for t in trees.values() for n in t.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return [(ast.get_docstring(own), None)] + [
        (ast.get_docstring(nodes[name]), nodes[name])
        for name in sorted(names)
        if name in nodes and not name.startswith("_") and ast.get_docstring(nodes[name])
    ]


def python() -> str:
    """Docstrings of what Python's packages export."""
    lines = ["# Python", "", "Docstrings of what the packages export. [python.md](../python.md) tells how to use them.", ""]
    for package in PACKAGES:
        lines += [f"## {package}", ""]
        for text, node in exported(package):
            if node is None:
                lines += ["```text", text or "", "```", ""]
                continue
            lines += [f"### {package}.{node.name}", ""]
            if isinstance(node, ast.FunctionDef):
                lines += ["```python", signature(node), "```", ""]
            lines += ["```text", text, "```", ""]
            for method in node.body if isinstance(node, ast.ClassDef) else []:
                told = isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and ast.get_docstring(method)
                lines += ["```python", signature(method), "```", "", "```text", told, "```", ""] if told else []
    return "\n".join(lines)


def commands(verde: str) -> str:
    """What each command says of itself."""
    lines = ["# Commands of verde", ""]
    whole = subprocess.run([verde, "--help"], capture_output=True, text=True, check=True).stdout
    for name in ["", *re.findall(r"^  ([a-z]+)  +[a-z]", whole, re.MULTILINE)]:
        text = subprocess.run([verde, *name.split(), "--help"], capture_output=True, text=True, check=True).stdout
        lines += [f"## verde {name}".rstrip(), "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def verdict(verde: str, stage: Path) -> str:
    """The page of a kept verdict, and words around it."""
    with tarfile.open(TOP / KEPT) as kept:
        (stage / "docs/example-verdict.json").write_bytes(kept.extractfile(VERDICT).read())
    page, file = stage / "docs/example-verdict-page.html", stage / "docs/example-verdict.json"
    subprocess.run([verde, "inspect", file, "--html", page], check=True, capture_output=True)
    return (
        "# An example of a verdict\n\n[The page](example-verdict-page.html) of [a verdict](example-verdict.json), as "
        "`verde inspect verdict.json --html page.html` makes it; `verde verify` decides it again. "
        "[pages.md](pages.md) says what is on it.\n"
    )


def relinked(path: str, text: str, pages: list, stage: Path) -> str:
    """Text whose links lead to pages, or to copies of files; other links become their words. A document that is linked becomes
    a page."""

    def link(match: re.Match) -> str:
        words, (file, _, _) = match[1], match[2].partition("#")
        if not file or "://" in file:
            return match[0]
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if found == "README.md":  # mkdocs calls a site's first page otherwise
            return f"[{words}]({posixpath.relpath('index.md', posixpath.dirname(path) or '.')})"
        if found.endswith(".md") and (TOP / found).is_file():
            pages.append(found)
        elif (TOP / found).is_file():
            (stage / found).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / found, stage / found)
        elif not (stage / found).is_file() and found not in pages:
            return f"{words} (`{found}`)"
        return match[0]

    return re.sub(r"\[([^\[\]]*)\]\(([^)\s]*)\)", link, text)


def anchored(text: str) -> str:
    """Lists that follow a line of text begin a paragraph, as on the host where these documents are read."""
    return re.sub(r"(?m)^(?!\s*(?:[-*+]|\d+\.) )(\S.*)\n(?=(?:[-*+]|\d+\.) )", r"\1\n\n", text)


def matches(pattern: str) -> list:
    """The project's documents by a pattern, or the one page of that name."""
    return sorted(str(f.relative_to(TOP)) for f in TOP.glob(pattern)) if "*" in pattern else [pattern]


def main(verde: str, out: str) -> None:
    stage = Path(out).with_suffix(".pages").absolute()
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "docs/reference").mkdir(parents=True)
    made = {
        "docs/reference/operators.md": operators(),
        "docs/reference/python.md": python(),
        "docs/reference/commands.md": commands(verde),
        "docs/example-verdict.md": verdict(verde, stage),
        "docs/comparison.md": "# Log-based and order-fixed determinism\n\n"
        f"[The page](../{COMPARISON}) of the largest comparison: what each way costs, and what it keeps. "
        "`build/bench/determinism` makes it; [rounding-logs.md](rounding-logs.md) has the tables.\n",
    }
    menu: dict = {}
    pages = list(made)
    for head, patterns in MENU.items():
        found = [p for pattern in patterns for p in matches(pattern) if not any(p in paths for paths in menu.values())]
        menu[head] = sorted(dict.fromkeys(found), key=lambda p: not p.endswith("README.md"))
        pages += menu[head]
    titles: dict = {}
    for path in pages:  # it grows
        if path not in titles:
            text = made.get(path) or (TOP / path).read_text()
            titles[path] = title(text)
            (stage / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / path).write_text(anchored(relinked(path, text, pages, stage)))
    shutil.move(stage / "README.md", stage / "index.md")
    shutil.copyfile(HERE / "site.css", stage / "site.css")
    nav = [{head: [{titles[p]: "index.md" if p == "README.md" else p} for p in paths]} for head, paths in menu.items()]
    more = {"docs_dir": str(stage), "site_dir": str(Path(out).absolute()), "nav": nav}
    settings = stage.with_suffix(".yml")
    settings.write_text((HERE / "mkdocs.yml").read_text() + "".join(f"{k}: {json.dumps(v)}\n" for k, v in more.items()))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "0")}
    subprocess.run(["mkdocs", "build", "--strict", "--clean", "--quiet", "-f", settings], check=True, env=environment)
    shutil.copyfile(f"{out}/img/favicon.ico", f"{out}/favicon.ico")  # for pages that name none
    print(f"{len(titles)} pages in {out}")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
