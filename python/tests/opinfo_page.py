"""Writes docs/operators.md from opinfo.json, by opinfo_counts.py. It does not import torch.

Usage: opinfo_page.py             writes the page
       opinfo_page.py --check     whether the page is what opinfo.json says
"""

import collections
import json
import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
RECORD, PAGE = HERE / "opinfo.json", HERE.parents[1] / "docs/operators.md"
GENERATED = "<!-- Written by python/tests/opinfo_page.py from python/tests/opinfo.json. -->"
LIMIT = -16  # exponent of the bound for all results
KINDS = ("float32", "integers")

# Reasons why samples of these operators are beyond the bound. A name includes its variants.
_TIES = (
    "Places alone differ: equal elements keep their order here, and PyTorch takes them in another "
    "one."
)
_BYTES = "Bytes are resized as float32 and rounded; PyTorch has weights of fewer bits for them."
_POLE = (
    "At poles the result is infinite, or no number, here; PyTorch in float64 has a large number "
    "there, since its pi is rounded."
)
BEYOND = {
    "nn.functional.fractional_max_pool2d": (
        "Windows begin at whole parts of float32 numbers, as PyTorch's of float32 do; those of "
        "float64 are others now and then."
    ),
    "kthvalue": _TIES,
    "topk": _TIES,
    "sort": _TIES,
    "argsort": _TIES,
    "mode": _TIES,
    "nn.functional.interpolate": _BYTES,
    "nn.functional.upsample_bilinear": _BYTES,
    "_upsample_bilinear2d_aa": _BYTES,
    "polygamma": _POLE,
    "special.polygamma": _POLE,
    "logcumsumexp": "Its gradient is of differences of large logarithms, which cancel; "
    "PyTorch's in float32 is as far.",
    "nn.functional.ctc_loss": "Gradients are differences of logarithms of probabilities: their "
    "error is that of the logarithms, which are large. PyTorch's in float32 are as far.",
    "signal.windows.blackman": "Its ends are 0, and the sum of cosines leaves 2^-26, as in "
    "PyTorch in float32.",
    "masked.logsumexp": "Of nothing but masked integers the result is that of the fill value, "
    "which float64 has another one for; PyTorch's in float32 differs so too.",
    "cov": "Its gradient is a sum of differences from the mean, which cancel; PyTorch's in float32 "
    "is as far.",
    "grid_sampler_3d": "A place lies between two elements but for rounding, where the gradient "
    "jumps.",
}

# Groups of refusals: the first pattern that matches "operator: reason" counts.
GROUPS = {
    "Decompositions of matrices": (
        r"svd|eig|pinv|lstsq|geqrf|ormqr|householder|ldl_|matrix_exp|linalg_polar|sqrth"
    ),
    "Special functions": r"special_|igamma",
    "Types that PyTorch computes otherwise": r"its input is|are whole|as float64|hash_tensor",
    "Reductions at places, in orders that are not stated": r"'prod'|segment_reduce|_reduce_impl|"
    r"histogram",
    "Draws": r"cauchy_|geometric_|log_normal_|normal",
    "Sparse matrices": r"sparse",
    "Operators of another package": r"another package",
    "Others": r"",
}


def kind_counts(found, kind):
    return collections.Counter(found.get(kind, {}))


def counts(found):
    return kind_counts(found, "float32") + kind_counts(found, "integers")


def compared(c):
    """The number of samples that PyTorch computes with a defined result."""
    return c["within"] + c["beyond"] + c["refused"]


def taken(record):
    """Operators of which the block computes at least one sample."""
    every = record["operators"]
    return {n: f for n, f in every.items() if counts(f)["within"] + counts(f)["beyond"]}


def total(operators):
    return sum(map(counts, operators.values()), collections.Counter())


def reason_of(name):
    """Why the operator is beyond the bound; "": no reason is known."""
    parts = name.split(".")
    known = (BEYOND.get(".".join(parts[:n])) for n in range(len(parts), 0, -1))
    return next((r for r in known if r), "")


def group_of(refusal):
    return next(title for title, pattern in GROUPS.items() if re.search(pattern, refusal))


def refusals(operators):
    found = collections.Counter()
    for f in operators.values():
        found.update(f.get("refused", {}))
    return found


# ---- the page ----


def wrapped(text):
    yield from textwrap.wrap(text, 98, break_long_words=False, break_on_hyphens=False)
    yield ""


def bullet(text):
    return textwrap.wrap(
        f"- {text}", 98, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def table(titles, lines):
    yield "| " + " | ".join(titles) + " |"
    yield "| " + " | ".join("---" for _ in titles) + " |"
    for line in lines:
        yield "| " + " | ".join(str(v) for v in line) + " |"
    yield ""


def share(c):
    return f"{100 * c['within'] / compared(c):.1f} %"


def row(title, c):
    cells = [c[k] for k in ("within", "beyond", "refused")]
    return [title, f"{compared(c):,}", *[f"{n:,}" for n in cells], share(c)]


def introduction(record):
    own, every = taken(record), record["operators"]
    c, most = total(own), record["most"]
    yield "# PyTorch's own tests of its operators"
    yield ""
    yield GENERATED
    yield ""
    yield from wrapped(
        f"PyTorch tests each of its operators by samples (`op_db` of `torch.testing`). Of those of "
        f"the operators that the block takes ([python.md](python.md)), {share(c)} are within "
        f"2^{LIMIT} of PyTorch in float64, with Python {record['python']} and PyTorch "
        f"{record['torch']}. This page says what becomes of the others."
    )
    for text in (
        f"{len(every)} operators and variants have samples, of which the block takes {len(own)}: "
        "it computes one sample at least.",
        f"At most {most['float32']} samples of float32 are taken of an operator, and "
        f"{most['integers']} of each of uint8, int8, int16, int32 and int64, at equal distances.",
        "Samples are computed in the block and by PyTorch in float64 outside of it; those of "
        "float32 with gradients, where PyTorch has them. The reference is of PyTorch in the "
        "sample's own type where it has no float64.",
        f"Within: no element differs by more than 2^{LIMIT} of the result's largest one, or of "
        "2^-20 if that is smaller. Gradients may differ by as much of what the backward pass is "
        "given, which is between 0.5 and 1.5. Results that are integers are equal, and so are "
        "infinities and NaNs.",
        "Samples of other types, float64, half precisions and complex numbers, are refused for the "
        "most part ([python.md](python.md)) and not counted here.",
        "`python/tests/opinfo_counts.py --write` runs all, in some minutes of one core, and writes "
        "this page; with names of operators it shows their samples.",
    ):
        yield from bullet(text)
    yield ""


def totals(record):
    own, every = taken(record), record["operators"]
    yield from table(
        ["Samples", "All", "Within", "Beyond", "Refused", "Share within"],
        [
            row("of operators that the block takes", total(own)),
            *[
                row(
                    f"of these, {kind}",
                    sum((kind_counts(f, kind) for f in own.values()), collections.Counter()),
                )
                for kind in KINDS
            ],
            row("of all operators", total(every)),
        ],
    )
    c = total(every)
    yield from wrapped(
        f"{c['random']} more are of random numbers or of memory that nothing was written to, and "
        f"PyTorch refuses {c['error']} as the block does."
    )


def bounds(record):
    yield "## Bounds of float32"
    yield ""
    yield from wrapped(
        "The smallest power of two that is a bound for all samples of an operator that are within, "
        "and how many operators have it:"
    )
    found = collections.Counter(
        max(f["bound"], -24) for f in record["operators"].values() if "bound" in f
    )
    lines = sorted(found.items())
    yield from table(
        ["Bound", *[f"2^{e}" + " or less" * (e == -24) for e, _ in lines]],
        [["Operators", *[n for _, n in lines]]],
    )


def beyond(record):
    yield "## Beyond the bound"
    yield ""
    reasons = collections.defaultdict(list)
    for name, f in taken(record).items():
        if counts(f)["beyond"]:
            how = ", ".join(f"{n} of {what}" for what, n in f["beyond"].items())
            reasons[reason_of(name)].append(f"`{name}` ({how})")
    for reason, names in reasons.items():
        yield from bullet(f"{reason} {'; '.join(names)}.")
    yield ""


def operator(refusal):
    """PyTorch's name of the operator, and the reason of the refusal."""
    name, reason = refusal.split(": ", 1)
    base = ".".join(name.split(".")[1:]).removesuffix(".default")
    return base, "" if reason == "the library does not have it" else reason


def refused(record):
    yield "## Refused"
    yield ""
    yield from wrapped(
        "Samples of all operators, by the one that refuses them, with how many there are:"
    )
    groups = collections.defaultdict(collections.Counter)
    for refusal, n in refusals(record["operators"]).items():
        base, reason = operator(refusal)
        reason = reason.split(";")[0]
        groups[group_of(refusal)][f"`{base}`" + (f" where {reason}" if reason else "")] += n
    for title in GROUPS:
        if title in groups:
            named = ", ".join(f"{what} ({n})" for what, n in groups[title].most_common())
            yield from bullet(f"{title}: {named}.")


def text_of(record):
    parts = (introduction, totals, bounds, beyond, refused)
    return "\n".join(line for part in parts for line in part(record)).rstrip() + "\n"


def write():
    PAGE.write_text(text_of(json.loads(RECORD.read_text())))


def main():
    if sys.argv[1:] == ["--check"]:
        same = PAGE.read_text() == text_of(json.loads(RECORD.read_text()))
        print(f"docs/operators.md {'is' if same else 'is not'} what opinfo.json says")
        return not same
    write()
    return False


if __name__ == "__main__":
    sys.exit(main())
