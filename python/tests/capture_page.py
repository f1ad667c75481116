"""Writes zoo/capture.json from results of captures of the zoo, and docs/zoo.md from that.

Usage: capture_page.py FOLDER      collects results, and writes both files
       capture_page.py --check     whether docs/zoo.md is what zoo/capture.json says
       capture_page.py --against FOLDER      whether FOLDER/main is no worse than zoo/capture.json

FOLDER has main/, by capture_zoo.py, and perhaps machines/ and losses/, by capture_machines.py and
capture_losses.py, and versions/NAME/, by capture_zoo.py --only-capture in other environments. This
imports neither torch nor the zoo."""

import json
import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
RECORD, PAGE = HERE / "zoo/capture.json", HERE.parents[1] / "docs/zoo.md"
KEPT = ("name", "list", "result", "hash", "root", "settings", "nodes", "operators", "problems")
LISTS = {"survey": "The survey's 85", "rule": "40 by a rule", "others": "Others of the zoo"}
WIDTH = 98
WHY = (
    "A capture records what an operator is composed of, and a version of PyTorch may compose it "
    "otherwise. In T5, `ids[..., 0] = 1` fills a column with PyTorch 2.15, and copies one element "
    "to all of it with 2.9.1. First weights may differ too: the graph of `vit` is the same with "
    "both, and what `trunc_normal_` has made of its class token and positions is not."
)
GENERATED = "<!-- Written by python/tests/capture_page.py from python/tests/zoo/capture.json. -->"


def results(folder):
    return {f.stem: json.loads(f.read_text()) for f in sorted(Path(folder).glob("*.json"))}


def version(found):
    return f"Python {'.'.join(found['python'].split('.')[:2])}, PyTorch {found['torch']}"


def kept(found):
    told = {k: found[k] for k in KEPT if k in found}
    if found["result"] != "equal":
        told["reason"] = without_folders(found["reasons"][0])
    return told


def without_folders(reason):
    """Shortens file names to those in a package or in the repository."""
    reason = re.sub(r"\S*/site-packages/", "", reason)
    return re.sub(r"\S*/(python/tests/)", r"\1", reason)


def collected(folder):
    main = results(folder / "main")
    whole = {"version": "", "models": {name: kept(r) for name, r in main.items()}}
    whole["version"] = next(version(r) for r in main.values() if "torch" in r)
    for other in sorted((folder / "versions").glob("*")):
        for name, r in results(other).items():
            if name in main and "torch" in r:
                said = r.get("hash") or f"{r['result']}: {without_folders(r['reasons'][0])}"
                whole["models"][name].setdefault("versions", {})[version(r)] = said
    whole["machines"] = results(folder / "machines")
    whole["losses"] = results(folder / "losses")
    return whole


# ---- the page ----


def rows(titles, lines):
    yield "| " + " | ".join(titles) + " |"
    yield "| " + " | ".join("---" for _ in titles) + " |"
    for line in lines:
        yield "| " + " | ".join(line) + " |"
    yield ""


def bullet(text):
    return textwrap.wrap(
        f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def captured(models):
    return {n: m for n, m in models.items() if m["result"] == "equal"}


def versions_of(whole):
    return sorted({v for m in whole["models"].values() for v in m.get("versions", {})})


def hashes(model, versions):
    """For each other version: "equal" if the program is the same, "-" if not, "" if unknown."""
    said = model.get("versions", {})
    return ["" if v not in said else "equal" if said[v] == model["hash"] else "-" for v in versions]


def listed(whole, kind):
    models = {n: m for n, m in whole["models"].items() if m["list"] == kind}
    if not models:
        return
    good, versions = captured(models), versions_of(whole)
    yield f"## {LISTS[kind]}"
    yield ""
    yield f"{len(models)} models: {len(good)} are captured, {len(models) - len(good)} refused."
    yield ""
    titles = ["Model", "Program", "Nodes", *[f"({i})" for i, _ in enumerate(versions, 1)]]
    yield from rows(
        titles,
        (
            [short(n), m["hash"][:12], f"{m['nodes']:,}", *hashes(m, versions)]
            for n, m in good.items()
        ),
    )
    for n, m in models.items():
        if m["result"] != "equal":
            yield from bullet(f"{short(n)} is {m['result']}: {m['reason']}")
    yield ""


def short(name):
    return name.removeprefix("chosen_")


def differences(whole):
    """Lines about captures that differ in another version."""
    for n, m in captured(whole["models"]).items():
        called = f"{short(n)} of the rule" if n != short(n) else n
        for v, said in m.get("versions", {}).items():
            if said != m["hash"]:
                what = (
                    f"another program, {said[:12]}" if re.fullmatch("[0-9a-f]{64}", said) else said
                )
                yield f"{called}, {v}: {what}"


def beside(whole):
    if not whole["losses"]:
        return
    yield "## Beside plain PyTorch"
    yield ""
    yield from textwrap.wrap(
        "10 steps with the same first weights and data, as a job by `verde run` and by PyTorch "
        "outside of the block, which computes in other orders. Losses must be within 1e-3.",
        WIDTH,
    )
    yield ""
    yield from rows(
        ["Model", "First loss", "Last loss", "Largest difference"],
        (
            [short(n), f"{r['torch'][0]:.6f}", f"{r['torch'][-1]:.6f}", f"{r['apart']:.1e}"]
            for n, r in whole["losses"].items()
        ),
    )


def machines(whole):
    if not whole["machines"]:
        return
    yield "## On other machines"
    yield ""
    yield from textwrap.wrap(
        "The programs' states after each step, beside those of AVX2: by AVX-512; by NEON, under "
        "qemu; by the CUDA kernels, which the SIMT shim runs on a CPU.",
        WIDTH,
    )
    yield ""
    names = list(dict.fromkeys(k for r in whole["machines"].values() for k in r))
    yield from rows(
        ["Model", *names],
        (
            [short(n), *["equal" if r.get(k) else "DIFFERENT" for k in names]]
            for n, r in whole["machines"].items()
        ),
    )


def page(whole):
    models = whole["models"]
    asked = {n: m for n, m in models.items() if m["list"] != "others"}
    yield "# The zoo: which models are captured"
    yield ""
    yield GENERATED
    yield ""
    yield from textwrap.wrap(
        f"{len(captured(asked))} of {len(asked)} models that people train are captured as jobs "
        f"([any-model.md](any-model.md)), with {whole['version']}; the others are refused, with a "
        "sentence that names file, line and reason.",
        WIDTH,
    )
    yield ""
    for text in (
        "The survey's 85 are models of `torch`, `torchvision`, `timm`, `transformers`, "
        "`diffusers`, `peft` and `torch_geometric` that were picked before anything was captured "
        "(`python/tests/zoo/survey.txt`).",
        "40 are every k-th name of the registries of `torchvision`, `timm` and `transformers`, "
        "chosen by `python/tests/zoo/registries.py` before any of them was tried. All are small: "
        "fewer layers, narrower, small images, and random weights.",
        "Captured: 3 steps with clipping and fused AdamW. All states of the block and of `verde "
        "run` are equal after each, with AVX2 and 1 thread and with scalar code and 2 threads; "
        "runs with AVX2 and 2 threads and with scalar code and 1 have the same root.",
        "Program: where the program's hash begins. Nodes: of a step.",
        "`make test-full PYTHON=...` tries all again, and tells where one is worse than here.",
        *whole.get("notes", []),
    ):
        yield from bullet(text)
    for i, v in enumerate(versions_of(whole), 1):
        yield from bullet(f"({i}): whether {v} gives the same program. Empty: not tried.")
    yield ""
    for kind in LISTS:
        yield from listed(whole, kind)
    told = list(differences(whole))
    if told:
        yield "## Other versions"
        yield ""
        yield from textwrap.wrap(WHY, WIDTH)
        yield ""
        for text in told:
            yield from bullet(text)
        yield ""
    yield from machines(whole)
    yield from beside(whole)


def text_of(whole):
    return "\n".join(page(whole)).rstrip() + "\n"


def worse(whole, now):
    """Models that failed, or that are captured in the record but not now."""
    for name, r in now.items():
        known = whole["models"].get(name, {})
        if r["result"] == "failed" or known.get("result") == "equal" != r["result"]:
            yield f"{name}: {r['result']}, {r['reasons'][0]}"
        elif known.get("result") == "equal" and version(r) == whole["version"]:
            if r["hash"] != known["hash"]:
                yield f"{name}: another program, {r['hash']}"


def main():
    if sys.argv[1] == "--check":
        same = PAGE.read_text() == text_of(json.loads(RECORD.read_text()))
        print(f"docs/zoo.md {'is' if same else 'is not'} what capture.json says")
        return not same
    if sys.argv[1] == "--against":
        found = list(worse(json.loads(RECORD.read_text()), results(Path(sys.argv[2]) / "main")))
        print("\n".join(found or ["no model is worse than in capture.json"]))
        return len(found) > 0
    whole = collected(Path(sys.argv[1]))
    RECORD.write_text(json.dumps(whole, indent=1) + "\n")
    PAGE.write_text(text_of(whole))
    return False


if __name__ == "__main__":
    sys.exit(main())
