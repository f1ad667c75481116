"""Writes programs of one operator each, for bench/estimates.py: folders that `verde run` takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from repops._table import DEFAULTS, TABLE
from repops.jobs._graph import BF16, F32, I32, Program, Value, _word

from repops import _arrays

ROWS, COLS = 4096, 1024  # of most tensors, which then have 16 MiB of f32


class Case(NamedTuple):
    name: str
    operator: str
    inputs: tuple[Any, ...]  # the dimensions of an f32 tensor, or a kind with dimensions
    attributes: dict[str, Any] = {}
    shape: tuple[int, ...] | None = None
    dtype: int = F32


def ids(*dims: int) -> tuple[str, tuple[int, ...]]:
    """An i32 tensor with every number below its number of elements once."""
    return "ids", dims


def u8(*dims: int) -> tuple[str, tuple[int, ...]]:
    return "u8", dims


def bf16(*dims: int) -> tuple[str, tuple[int, ...]]:
    return "bf16", dims


STEP = ("step", (1,))
X, ROW, COL, ONE = (ROWS, COLS), (ROWS, 1), (COLS,), (1,)
IMAGE, PART = (32, 32, 32, 64), (32, 16, 16, 64)
HEADS, SCORES = (4, 16, 512, 64), (4, 16, 512, 512)
WINDOW = {"kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 2, "pad_h": 1, "pad_w": 1}
DIMS4 = {"d0": 0, "d1": 2, "d2": 1, "d3": 3}


def elementwise() -> list[Case]:
    one = ["gelu", "relu", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "silu", "gelu_erf"]
    two = ["gelu_grad", "relu_grad", "tanh_grad", "erf_grad", "sigmoid_grad", "silu_grad", "gelu_erf_grad"]
    pairs = ["add", "sub", "mul", "div", "max", "min"]
    return (
        [Case(n, n, (X,)) for n in one]
        + [Case(n, n, (X, X)) for n in two + pairs]
        + [
            Case("add bias", "add", (X, COL)),
            Case("scale", "scale", (X,), {"factor": 0.5}),
            Case("div_const", "div_const", (X,), {"divisor": 3.0}),
            Case("leaky_relu", "leaky_relu", (X,), {"slope": 0.1}),
            Case("leaky_relu_grad", "leaky_relu_grad", (X, X), {"slope": 0.1}),
            Case("compare", "compare", (X, X), {"kind": 2}),
            Case("where", "where", (ids(*X), X, X)),
            Case("iadd", "iadd", (ids(*X), ids(*X))),
            Case("dropout", "dropout", (X, STEP), {"threshold": 1 << 30, "scale": 1.5}),
            Case("cast", "cast", (X,), {"dtype": BF16}),
            Case("cast to i32", "cast", (X,), {"dtype": I32}),
            Case("cast from bf16", "cast", (bf16(*X),), {"dtype": F32}),
            Case("cast_stochastic", "cast_stochastic", (X, STEP)),
            Case("lr_schedule", "lr_schedule", (STEP,), {"base": 1.0}),
            Case("adamw_m", "adamw_m", (X, X, ONE), {"beta": 0.9}),
            Case("adamw_v", "adamw_v", (X, X, ONE), {"beta": 0.9}),
            Case("adamw_w", "adamw_w", (X, X, X, ONE, ONE, ONE), {"eps": 1e-8}),
            Case("sgd_m", "sgd_m", (X, X, X, ONE)),
            Case("sgd_w", "sgd_w", (X, X, ONE)),
            Case("sgd_nesterov", "sgd_nesterov", (X, X, X, ONE, ONE)),
            Case("weight", "weight", (X, ROW)),
            Case("keep_top", "keep_top", (ids(*X), ids(ROWS, 2))),
        ]
    )


def movement() -> list[Case]:
    return [
        Case("fill", "fill", (), {}, X),
        Case("normal", "normal", (), {"std": 1.0}, X),
        Case("uniform", "uniform", (), {"high": 1.0}, X),
        Case("iota", "iota", (), {}, (1 << 22,), I32),
        Case("permutation", "permutation", (STEP,), {}, (1 << 20,), I32),
        Case("permutation walks", "permutation", (STEP,), {}, ((1 << 18) + 1,), I32),
        Case("read_batch", "read_batch", (u8(1 << 22), STEP), {"batch": 4096}, X, I32),
        Case("read_batch of one", "read_batch", (u8(1 << 17), STEP), {"batch": 1 << 17}, (1 << 17, 1), I32),
        Case("read_images", "read_images", (u8(5000 * 3073), STEP), {"batch": 512, "record": 3073, "scale": 1.0}, (512, 32, 32, 3)),
        Case("read_labels", "read_labels", (u8(1 << 17), STEP), {"batch": 1 << 16, "record": 1}, (1 << 16,), I32),
        Case("rope_turns", "rope_turns", (), {"base": 1e4}, (1 << 14, 2), I32),
        Case("embedding", "embedding", (X, ids(ROWS))),
        Case("embedding_grad", "embedding_grad", (X, ids(ROWS)), {}, X),
        Case("embedding_grad tall", "embedding_grad", ((64, 64), ids(64)), {}, (1 << 16, 64)),
        Case("embedding_grad narrow", "embedding_grad", ((1 << 20, 1), ids(1 << 20)), {}, (1 << 20, 1)),
        Case("gather", "gather", (X, ids(ROWS))),
        Case("gather across", "gather", (X, ids(COLS)), {"axis": 1}),
        Case("gather_grad", "gather_grad", (X, ids(ROWS)), {}, X),
        Case("gather_grad across", "gather_grad", (X, ids(COLS)), {"axis": 1}, X),
        Case("split_heads", "split_heads", ((8, 512, 1024),), {"heads": 16}),
        Case("join_heads", "join_heads", ((8, 16, 512, 64),)),
        Case("concat", "concat", (X, X)),
        Case("transpose", "transpose", (X,), {"d0": 1, "d1": 0}),
        Case("transpose heads", "transpose", ((8, 512, 16, 64),), DIMS4),
        Case("slice", "slice", (X,), {"axis": 1, "length": 512}),
        Case("slice apart", "slice", (X,), {"axis": 1, "length": 512, "step": 2}),
        Case("pad", "pad", (X,), {"axis": 1, "before": 1, "after": 1}),
        Case("concat_axis", "concat_axis", (X, X), {"axis": 1}),
        Case("reshape", "reshape", (X,), {}, (ROWS * COLS,)),
        Case("put_rows", "put_rows", (X, (16, COLS), STEP)),
        Case("expand", "expand", (ROW,), {"axis": 1, "count": COLS}),
        Case("max_grad", "max_grad", (ids(1, COLS), (1, COLS)), {"count": ROWS}),
        Case("repeat_heads", "repeat_heads", (HEADS,), {"times": 4}),
        Case("repeat_heads_grad", "repeat_heads_grad", (HEADS,), {"times": 4}),
        Case("rope", "rope", (HEADS, ids(512), ids(32, 2))),
        Case("random_words", "random_words", (ids(1 << 18, 2), STEP)),
    ]


def rows() -> list[Case]:
    down, groups = {"cols": COLS}, (ROWS // 64, COLS)
    shape = {"shape": ROW, "attributes": {"cols": COLS}}
    return [
        Case("reduce_sum", "reduce_sum", (X,), **shape),
        Case("reduce_max", "reduce_max", (X,), **shape),
        Case("reduce_dot", "reduce_dot", (X, X), **shape),
        Case("reduce_sqdev", "reduce_sqdev", (X, ROW), **shape),
        Case("reduce_expsum", "reduce_expsum", (X, ROW), **shape),
        Case("reduce_ln_gx", "reduce_ln_gx", (X, COL, X, ROW, ROW), **shape),
        Case("reduce_rms_gx", "reduce_rms_gx", (X, COL, X, ROW), **shape),
        Case("sum_rows", "sum_rows", (X,), down, groups),
        Case("ln_dgamma", "ln_dgamma", (X, X, ROW, ROW), down, groups),
        Case("rms_dgamma", "rms_dgamma", (X, X, ROW), down, groups),
        Case("sum_axis", "sum_axis", (X,)),
        Case("sum_axis across", "sum_axis", (X,), {"axis": 1}),
        Case("max_axis", "max_axis", (X,)),
        Case("argmax", "argmax", (X,), {"axis": 1}),
        Case("argmax down", "argmax", (X,)),
        Case("layernorm", "layernorm", (X, ROW, ROW, COL, COL)),
        Case("ln_dx", "ln_dx", (X, COL, X, ROW, ROW, ROW, ROW)),
        Case("ln_rstd", "ln_rstd", (X,), {"n": 8, "eps": 1e-5}),
        Case("rmsnorm", "rmsnorm", (X, ROW, COL)),
        Case("rms_dx", "rms_dx", (X, COL, X, ROW, ROW)),
        Case("softmax", "softmax", (X, ROW, ROW)),
        Case("softmax_grad", "softmax_grad", (X, X, ROW)),
        Case("log_softmax", "log_softmax", (X, ROW, ROW)),
        Case("log_softmax_grad", "log_softmax_grad", (X, X, ROW)),
        Case("xent", "xent", ((1 << 16, 8), (1 << 16, 1), (1 << 16, 1), ids(1 << 16))),
        Case("xent_grad", "xent_grad", (X, ROW, ROW, ids(ROWS), (ROWS,))),
        Case("kept", "kept", (ids(1 << 22),), {"ignore": 3}),
        Case("top_k", "top_k", (ids(64, 1 << 16),), {"k": 50}),
        Case("top_p", "top_p", (ids(64, 1 << 16),), {"p": 1 << 23}),
        Case("draw", "draw", (ids(64, 1 << 16), ids(64, 2))),
    ]


def wide() -> list[Case]:
    """Functions that use binary64, integers, random numbers by step, and operators along lines."""
    functions = """sin cos tan asin acos atan sinh cosh asinh acosh atanh log1p expm1 log2 exp2""".split()
    lines, few = (1 << 14, 256), (256, 1 << 14)
    return (
        [Case(n, n, (X,)) for n in functions]
        + [Case(n, n, (X, X)) for n in ("atan2", "pow")]
        + [
            Case("round", "round", (X,), {"kind": 2}),
            Case("integer product", "integer", (ids(*X), ids(*X)), {"kind": 0}),
            Case("integer quotient", "integer", (ids(*X), ids(*X)), {"kind": 3}),
            Case("normal_at", "normal_at", (STEP,), {"std": 1.0}, X),
            Case("uniform_at", "uniform_at", (STEP,), {"high": 1.0}, X),
            Case("take_along", "take_along", (X, ids(*X)), {"axis": 1}),
            Case("take_along across", "take_along", (X, ids(*X)), {"axis": 0}),
        ]
        + [
            Case(f"{n} {where}", n, (shape, *((ids(*shape), shape) if n == "put_along" else ())), {"axis": axis, "kind": 0})
            for n in ("put_along", "argsort", "running")
            for where, shape, axis in (
                ("short", lines, 1),
                ("long", few, 1),
                ("down", few, 0),
            )
        ]
        + [Case("running logarithms", "running", ((1 << 12, 256),), {"axis": 1, "kind": 2})]
        + [Case("isum", "isum", (ids(*X),), {"axis": 1}), Case("isum down", "isum", (ids(*X),))]
    )


def images() -> list[Case]:
    flat, channels = (1 << 15, 64), (64,)
    groups, cols = {"cols": 64}, (512, 64)
    return [
        Case("max_pool2d", "max_pool2d", (IMAGE,), WINDOW),
        Case("max_pool2d_index", "max_pool2d_index", (IMAGE,), WINDOW),
        Case("max_pool2d_grad", "max_pool2d_grad", (PART, ids(*PART)), WINDOW, IMAGE),
        Case("avg_pool2d", "avg_pool2d", (IMAGE,), WINDOW),
        Case("avg_pool2d_grad", "avg_pool2d_grad", (PART,), WINDOW, IMAGE),
        Case("avg_pool2d of all", "avg_pool2d", (IMAGE,), {**WINDOW, "kernel_h": 32, "kernel_w": 32, "pad_h": 0, "pad_w": 0, "count_pad": 0}),
        Case("bn_mean", "bn_mean", (flat,), groups, cols),
        Case("bn_sqdev", "bn_sqdev", (flat, cols), groups, cols),
        Case("bn_dgamma", "bn_dgamma", (flat, flat, channels, channels), groups, cols),
        Case("batchnorm", "batchnorm", (IMAGE, channels, channels, channels, channels)),
        Case("bn_dx", "bn_dx", (IMAGE, IMAGE) + (channels,) * 5),
        Case("bn_running", "bn_running", (X, X), {"momentum": 0.1}),
    ]


def products() -> list[Case]:
    both, tall = {"pad_h": 1, "pad_w": 1}, (3, 3, 64, 64)
    cases = [
        Case("matmul", "matmul", ((1024, 1024), (1024, 1024))),
        Case("matmul, rows of b", "matmul", ((1024, 1024), (1024, 1024)), {"trans": 2}),
        Case("matmul, columns of a", "matmul", ((1024, 1024), (1024, 1024)), {"trans": 1}),
        Case("matmul, one row", "matmul", ((1, 4096), (4096, 4096))),
        Case("matmul, short sums", "matmul", ((4096, 16), (16, 4096))),
        Case("matmul, heads", "matmul", (HEADS, HEADS), {"batch_dims": 2, "trans": 2}),
        Case("matmul, masked", "matmul", (HEADS, HEADS), {"batch_dims": 2, "trans": 2, "mask": 1}),
        Case("matmul, values", "matmul", (SCORES, HEADS), {"batch_dims": 2}),
        Case("matmul, bf16", "matmul", ((1024, 1024), bf16(1024, 1024))),
        Case("attn_max", "attn_max", (SCORES,)),
        Case("attn_exp", "attn_exp", (SCORES, (4, 16, 512, 4))),
        Case("attn_av", "attn_av", (SCORES, HEADS)),
        Case("attn_l", "attn_l", ((4, 16, 512, 4), (4, 16, 512, 4))),
        Case("attn_out", "attn_out", ((4, 16, 512, 4), (4, 16, 512, 4, 64), (4, 16, 512, 1))),
        Case("attn_prob", "attn_prob", (SCORES, (4, 16, 512, 1), (4, 16, 512, 1))),
        Case("attn_dscore", "attn_dscore", (SCORES, SCORES, (4, 16, 512, 1))),
    ]
    for bits in (24, 16):
        size = {"bits": bits}
        cases.append(Case(f"matmul_fixed {bits}", "matmul_fixed", ((1024, 1024), (1024, 1024)), size))
    for kind, more in (("conv2d", {}), ("conv2d_fixed", {"bits": 24}), ("conv2d_fixed", {"bits": 16})):
        name = f"{kind} {more['bits']}" if more else kind
        cases += [
            Case(name, kind, (IMAGE, tall), {**both, **more}),
            Case(f"{name} dx", f"{kind}_dx", (IMAGE, tall), {**both, **more}, IMAGE),
            Case(f"{name} dw", f"{kind}_dw", (IMAGE, IMAGE), {**both, **more}, tall),
            Case(f"{name} of groups", kind, (IMAGE, (3, 3, 1, 64)), {**both, **more, "groups": 64}),
            Case(f"{name} of 8 groups", kind, (IMAGE, (3, 3, 8, 64)), {**both, **more, "groups": 8}),
            Case(f"{name} of 16 groups", kind, (IMAGE, (3, 3, 4, 64)), {**both, **more, "groups": 16}),
            Case(f"{name} dw of groups", f"{kind}_dw", (IMAGE, IMAGE), {**both, **more, "groups": 64}, (3, 3, 1, 64)),
            Case(f"{name} 1x1", kind, (IMAGE, (1, 1, 64, 64)), more),
            Case(f"{name} dx by 2", f"{kind}_dx", (PART, tall), {**both, **more, "stride_h": 2, "stride_w": 2}, IMAGE),
        ]
    return cases


def _content(kind: str, dims: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(1)
    if kind == "ids":
        return rng.permutation(math.prod(dims)).astype("i4").reshape(dims)
    numbers = rng.random(dims, "f4") + np.float32(0.5)
    if kind == "u8":
        return rng.integers(0, 255, dims, "u1")
    if kind == "bf16":
        return (numbers.view("u4") >> 16).astype("u2").view(_arrays._NUMPY["bf16"])
    return numbers


def write(case: Case, folder: Path) -> None:
    """Writes a program whose step runs the operator on data, beside a state of one number."""
    program, values = Program(steps=3), []
    program.leaf("x", F32, (1,))
    folder.mkdir(parents=True)
    places = []
    for number, given in enumerate(case.inputs):
        kind, dims = given if isinstance(given[0], str) else ("f32", given)
        if kind == "step":
            values.append(Value("step", 0, I32, (1,)))
            continue
        content = _content(kind, dims)
        content.tofile(folder / f"x{number}")
        values.append(program.input(f"x{number}", content))
        places.append({"file": f"x{number}", "offset": 0})
    for graph in (program.init, program.step):
        graph.output.append(graph.emit("fill", shape=(1,), value=1.0))
    words = []
    for name, kind in TABLE[case.operator].attributes:
        least = 1 if name in ("parts", "stride_h", "stride_w", "dilation_h", "dilation_w") else 0
        given = case.attributes.get(name, DEFAULTS.get(name, least))
        words.append(_word(given, kind))
    program.step.emit_words(TABLE[case.operator], values, words, case.shape, case.dtype)
    (folder / "program").write_bytes(program.encode())
    (folder / "data.json").write_text(json.dumps({"verde": 1, "data": places}))


CASES = elementwise() + wide() + movement() + rows() + images() + products()
