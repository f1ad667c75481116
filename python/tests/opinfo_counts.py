"""PyTorch's samples of its operators, in the block and by PyTorch in float64 outside of it.

Usage: opinfo_counts.py NAME ...      prints how these operators went, and what was not within
       opinfo_counts.py --write [NAME ...]
                                      runs all, or these, and writes what they are now to
                                      opinfo.json, and docs/operators.md

All take minutes of one core. For float32 gradients are compared, too. Integers must be equal."""

import collections
import itertools
import json
import math
import platform
import sys
import warnings

import opinfo
import torch
from opinfo_page import LIMIT, RECORD, write
from torch.utils import _pytree as pytree

from repops.torch import LeftoverError, reproducible

KINDS = (torch.float32, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# The most samples of an operator: for float32, and for each integer type. They are spread evenly
# over all that PyTorch makes.
MOST = {"float32": 60, "integers": 12}
# A result may differ by 2^LIMIT times its largest element, or times LEAST if all are smaller. For
# gradients the largest element given to the backward pass counts, too.
LEAST = 2.0**-20
GIVEN = 1.5
UNDEFINED = set("empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split())
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
LARGEST = torch.finfo(torch.float32).max


def evenly(values, most):
    values = list(values)
    if len(values) <= most:
        return values
    return [values[i * len(values) // most] for i in range(most)]


def kind_name(kind):
    return "float32" if kind is torch.float32 else "integers"


def samples(op, kind):
    if not op.supports_dtype(kind, "cpu"):
        return []
    torch.manual_seed(0)
    grad = kind is torch.float32 and op.supports_autograd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evenly(op.sample_inputs("cpu", kind, requires_grad=grad), MOST[kind_name(kind)])


# ---- one call ----


def _own(value, wide):
    """A copy of the value for one call, in float64 if wide."""
    if isinstance(value, torch.Tensor):
        kind = WIDE.get(value.dtype, value.dtype) if wide else value.dtype
        own = value.detach().clone().to(kind)
        return own.requires_grad_(value.requires_grad)
    return WIDE.get(value, value) if wide and isinstance(value, torch.dtype) else value


def _differentiable(sample, result):
    """The results that have gradients."""
    chosen = sample.output_process_fn_grad(result)
    leaves = [t for t in pytree.tree_leaves(chosen) if isinstance(t, torch.Tensor)]
    return [t for t in leaves if t.requires_grad]


def _given(outputs):
    """Gradients of the outputs to start the backward pass with: numbers in [0.5, 1.5) that depend
    on the index."""

    def numbers(t):
        n = torch.arange(t.numel(), dtype=torch.float64) * 0.6180339887498949
        return ((n - n.floor()) + 0.5).float().reshape(t.shape).to(t.dtype)

    return [numbers(t) for t in outputs]


def call(op, sample, wide):
    """The results, and the gradients or None."""
    own = lambda v: pytree.tree_map(lambda t: _own(t, wide), v)  # noqa: E731
    x, args, kwargs = own(sample.input), own(sample.args), own(sample.kwargs)
    torch.manual_seed(0)
    result = op.op(x, *args, **kwargs)
    outputs = _differentiable(sample, result)
    inputs = [t for t in pytree.tree_leaves((x, args, kwargs)) if isinstance(t, torch.Tensor)]
    inputs = [t for t in inputs if t.requires_grad and t.is_leaf]
    grads = None
    if outputs and inputs:
        grads = torch.autograd.grad(outputs, inputs, _given(outputs), allow_unused=True)
    return pytree.tree_leaves(result), grads


def tried(op, sample, wide):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(op, sample, wide)
        except Exception as error:  # noqa: BLE001
            return error


# ---- comparing ----


def _far(x, y, least):
    """The largest difference of x and y, relative to the largest element of y and to `least`."""
    kind = torch.complex128 if y.is_complex() else torch.float64
    x, y = x.detach().to_dense().to(kind), y.detach().to_dense().to(kind)
    if y.is_complex():
        return _far(
            torch.view_as_real(x.resolve_conj()), torch.view_as_real(y.resolve_conj()), least
        )
    y = torch.where(y.abs() > LARGEST, torch.copysign(torch.full_like(y, math.inf), y), y)
    finite = y.isfinite()
    same = torch.where(finite, x.isfinite(), (x == y) | (x.isnan() & y.isnan()))
    if not bool(same.all()):
        return math.inf
    if not bool(finite.any()):
        return 0.0
    most = max(float(y[finite].abs().max()), least, LEAST)
    return float((x - y)[finite].abs().max()) / most


def distance(x, y, least=0.0):
    """The difference of two results; inf if types differ, or values that must be equal."""
    if not isinstance(y, torch.Tensor):
        if isinstance(y, float) and isinstance(x, float):
            return _far(
                torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64), least
            )
        return 0.0 if x == y else math.inf
    if not isinstance(x, torch.Tensor) or x.shape != y.shape:
        return math.inf
    if not x.numel():
        return 0.0
    if x.is_floating_point() or x.is_complex():
        return _far(x, y, least)
    return 0.0 if torch.equal(x.to_dense(), y.to_dense().to(x.dtype)) else math.inf


def _gradient(ours, wanted):
    if ours is None or wanted is None:
        return 0.0 if ours is wanted else math.inf
    return distance(ours, wanted, GIVEN)


def _apart(x, y):
    """Do they differ, and are not indices of elements?"""
    places = [isinstance(t, torch.Tensor) and t.dtype is torch.int64 for t in (x, y)]
    return not (all(places) and x.shape == y.shape) and distance(x, y) > 2.0**LIMIT


def furthest(ours, wanted):
    """The largest difference of all results and gradients, and where it is."""
    (xs, dxs), (ys, dys) = ours, wanted
    if len(xs) != len(ys) or (dxs is None) != (dys is None):
        return math.inf, "results"
    far = max(itertools.chain([0.0], map(distance, xs, ys)))
    if math.isinf(far) and not any(map(_apart, xs, ys)):
        return far, "places"
    back = max(map(_gradient, dxs, dys), default=0.0) if dys is not None else 0.0
    return (far, "results") if far >= back else (back, "gradients")


def reference(op, sample, kind):
    """PyTorch's result, in float64; for integers float64 is the default for their results."""
    torch.set_default_dtype(torch.float32 if kind is torch.float32 else torch.float64)
    try:
        return tried(op, sample, True)
    finally:
        torch.set_default_dtype(torch.float32)


def outcome(op, sample, kind):
    """("within", difference), ("refused", operator and reason), ("beyond", where), ("random", ""),
    or ("error", "") if PyTorch refuses it, too."""
    if op.name in UNDEFINED:
        return "random", ""
    with reproducible(threads=1):
        ours = tried(op, sample, False)
    if isinstance(ours, LeftoverError):
        name, reason = str(ours).split(": ", 1)
        return "refused", f"{name.split(' at ')[0]}: {reason}"
    wanted = reference(op, sample, kind)
    if isinstance(wanted, Exception):
        wanted = tried(op, sample, False)  # without float64 version, as bit operations
    if isinstance(wanted, Exception):
        return ("error", "") if isinstance(ours, Exception) else ("beyond", "PyTorch refuses it")
    if isinstance(ours, Exception):
        return "beyond", f"{type(ours).__name__}: {str(ours)[:200]}"
    far, what = furthest(ours, wanted)
    if far <= 2.0**LIMIT:
        return "within", far
    if opinfo.undefined(op.op, opinfo.Sample(sample.input, sample.args, sample.kwargs)):
        return "random", ""
    if math.isinf(far):
        return "beyond", what
    return "beyond", f"{what} by 2^{math.ceil(math.log2(far))}"


# ---- all samples of an operator ----


def measured(op, tell=None):
    """Counts of each outcome, for float32 and integers; the least power of two that bounds what is
    within; how often each result was beyond, or was refused."""
    counts = {"float32": collections.Counter(), "integers": collections.Counter()}
    notes, far = collections.defaultdict(collections.Counter), 0.0
    for kind in KINDS:
        for sample in samples(op, kind):
            how, text = outcome(op, sample, kind)
            counts[kind_name(kind)][how] += 1
            if how == "within":
                far = max(far, text) if kind is torch.float32 else far
            elif text:
                notes[how][f"{kind_name(kind)}: {text}" if how == "beyond" else text] += 1
            if tell and how != "within":
                shown = opinfo.Sample(sample.input, sample.args, sample.kwargs)
                tell(f"    {how} {text}: {opinfo.shown(shown)}")
    found = {kind: dict(sorted(c.items())) for kind, c in counts.items() if c}
    if far:
        found["bound"] = math.ceil(math.log2(far))
    return {**found, **{how: dict(sorted(c.items())) for how, c in sorted(notes.items())}}


def versions():
    return {"python": ".".join(platform.python_version_tuple()[:2]), "torch": torch.__version__}


def main():
    torch.set_num_threads(1)
    names = [a for a in sys.argv[1:] if a != "--write"]
    chosen = {n: op for n, op in opinfo.operators() if not names or n in names}
    found = {}
    for i, (name, op) in enumerate(chosen.items(), 1):
        found[name] = measured(op, print if names else None)
        print(f"{i} of {len(chosen)}: {name} {json.dumps(found[name])[:200]}", flush=True)
    if "--write" in sys.argv:
        known = json.loads(RECORD.read_text())["operators"] if names else {}
        whole = {**versions(), "most": MOST, "operators": {**known, **found}}
        RECORD.write_text(json.dumps(whole, indent=1) + "\n")
        write()


if __name__ == "__main__":
    main()
