"""PyTorch's own samples of its operators, and the outcome of each in the block."""

import collections
import json
import mmap
import os
import warnings

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from repops.torch import LeftoverError, reproducible

TYPES = (
    "float32 float64 float16 bfloat16 float8_e4m3fn float8_e5m2 complex32 complex64 complex128 "
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64"
).split()
# The allowed difference from PyTorch's result, relative to its largest element.
NEAR = {
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
    torch.float32: 3e-4,
    torch.float64: 1e-6,
    torch.complex32: 4e-3,
    torch.complex64: 3e-4,
    torch.complex128: 1e-6,
}
# The second result of these is not PyTorch's: only the block's backward pass reads it.
OWN = {"torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"}

Sample = collections.namedtuple("Sample", "input args kwargs")


def operators():
    """Yields the name and the operator of each entry."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if op.name not in OWN:
            yield name, op


def _of_type(value, old, new):
    if isinstance(value, torch.Tensor) and value.dtype is old:
        return value.to(new)
    return new if value is old else value


def samples(op, dtype, most):
    """Samples of a type. If PyTorch has none of it, samples of another type are converted."""
    known = dtype if op.supports_dtype(dtype, "cpu") else torch.float32
    if not op.supports_dtype(known, "cpu"):
        known = sorted(op.supported_dtypes("cpu"), key=str)[0]
    for i, s in enumerate(op.sample_inputs("cpu", known, requires_grad=False)):
        if i == most:
            return
        given = Sample(s.input, s.args, dict(s.kwargs))
        yield pytree.tree_map(lambda v: _of_type(v, known, dtype), given)


def _own(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def called(function, sample):
    """The result, or the error; tensors are copies."""
    torch.manual_seed(0)
    s = pytree.tree_map(_own, sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(s.input, *s.args, **s.kwargs)
        except Exception as error:  # noqa: BLE001
            return error


class _Undefined(TorchDispatchMode):
    """Notes whether an operator's result is random or undefined memory."""

    found = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        words = ("empty", "resize", "normal", "bernoulli")
        seeded = torch.Tag.nondeterministic_seeded in func.tags
        self.found = self.found or seeded or any(w in str(func) for w in words)
        return func(*args, **(kwargs or {}))


def undefined(function, sample):
    with _Undefined() as mode:
        called(function, sample)
    return mode.found


def _close(x, y):
    wide = torch.complex128 if y.dtype.is_complex else torch.float64
    x, y, near = x.to(wide), y.to(wide), NEAR[y.dtype]
    sizes = y[torch.isfinite(y)].abs()
    most = min(float(sizes.max()), 1e30) if sizes.numel() else 1.0
    return torch.allclose(x, y, rtol=near, atol=near * max(1e-3, most), equal_nan=True)


def _unequal(x, y):
    """How a result differs from PyTorch's; None: it is equal within bounds."""
    if not isinstance(y, torch.Tensor):
        if isinstance(y, float) and isinstance(x, float):
            y = torch.tensor(y, dtype=torch.float32)
            return None if _close(torch.tensor(x, dtype=torch.float32), y) else f"value {x}"
        return None if x == y else f"value {x}"
    kinds = [(t.dtype, list(t.shape), t.layout) for t in (x, y)]
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} in place of {kinds[1]}"
    if y.layout is not torch.strided or not y.numel():
        return None
    if y.dtype in NEAR:
        return None if _close(x, y) else "values"
    if not y.dtype.is_floating_point:
        return None if torch.equal(x, y) else "values"
    return None if torch.equal(x.float().nan_to_num(), y.float().nan_to_num()) else "values"


def differs(result, expected):
    results, wanted = pytree.tree_leaves(result), pytree.tree_leaves(expected)
    if len(results) != len(wanted):
        return f"{len(results)} results in place of {len(wanted)}"
    return next((d for d in map(_unequal, results, wanted) if d), None)


def _words(error):
    return f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"


STAGE = mmap.mmap(-1, 1)  # shared with child processes: 1 while the block computes


def outcome(function, sample):
    """("equal", ""), ("random", ""), ("refused", "") by a LeftoverError, ("as PyTorch", "") refused
    with the same error, ("more", text) if the block computes what PyTorch refuses, or ("wrong",
    text)."""
    STAGE[0] = 0
    plain = called(function, sample)
    STAGE[0] = 1
    with reproducible(threads=1):
        ours = called(function, sample)
    if isinstance(ours, LeftoverError):
        return "refused", ""
    if isinstance(plain, Exception):
        if not isinstance(ours, Exception):
            return "more", _words(plain)
        same = type(ours) is type(plain) and _words(ours)[:60] == _words(plain)[:60]
        return (
            ("as PyTorch", "") if same else ("wrong", f"{_words(ours)}; PyTorch: {_words(plain)}")
        )
    if isinstance(ours, Exception):
        return "wrong", _words(ours)
    how = differs(ours, plain)
    if how is None:
        return "equal", ""
    if how.startswith("value") and undefined(function, sample):
        return "random", ""
    return "wrong", how


# ---- changed calls, most of them invalid ----


def _other_tensors(t):
    if t.dim() and t.shape[-1]:
        yield torch.cat([t, t[..., :1]], -1)
        yield t[..., 1:]
    if t.dim() and t.shape[0]:
        yield t[1:]
    yield t.unsqueeze(0)
    if t.dtype in (torch.int32, torch.int64):
        yield from (t + 1000, t - 1000)
    if t.dtype is torch.int64:
        yield t + 2**32
    if t.dtype is torch.float32:
        yield from (t * float("nan"), t * 0.0 + 2.0, t * 0.0 - 1.0)
        yield t.long()


def _others(value):
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and value.numel() < 4096:
            yield from _other_tensors(value)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        yield from (value + 7, -value - 9)
    elif isinstance(value, float):
        yield from (-1.0 - value, float("nan"))


def changed(sample):
    """Yields the sample with one of its values changed, in every way."""
    leaves, tree = pytree.tree_flatten(tuple(sample))
    for i, leaf in enumerate(leaves):
        for other in _others(leaf):
            given = [*leaves[:i], other, *leaves[i + 1 :]]
            yield Sample(*pytree.tree_unflatten(given, tree))


def apart(work):
    """The result of work(), computed in a child process, as invalid calls may crash PyTorch. None:
    it crashed; an error if the child ended while the block computed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            torch.set_num_threads(1)
            with os.fdopen(write, "w") as out:
                json.dump(work(), out)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as given:
        text = given.read()
    status = os.waitpid(child, 0)[1]
    assert text or not STAGE[0], f"the block ended its process: {status}"
    return json.loads(text) if text else None


def shown(sample):
    def text(v):
        return f"{str(v.dtype)[6:]}{list(v.shape)}" if isinstance(v, torch.Tensor) else v

    return str(tuple(pytree.tree_map(text, sample)))[:160]
