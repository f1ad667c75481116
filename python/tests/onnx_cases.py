"""Runs ONNX's own cases of single operators, in the block and as jobs.

usage: onnx_cases.py [--jobs] [--hashes FILE [--write]] [--part I/N] [--only WORDS]

Without --jobs: each case in the block, against the results that ONNX states. --jobs: also captured
as a job of one step, and run by `verde` (the environment variable VERDE says which) with the bits
of the block. --hashes: the commitments of what cases give, in a file with a line for each, must be
the same; --write writes them. A line says each case that does not pass, and why.

Tolerances are the case's own, at least 1e-6 of absolute error, 1e-3 for float16 and 8e-3 for
bfloat16, which are computed as float32."""

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx.backend.test.case.node import collect_testcases

import repops
import repops.onnx
import repops.torch
from repops.onnx._job import Answering

OPSETS = range(13, 29)
TAKEN = {1, 2, 3, 6, 7, 9, 10, 16}  # float32, uint8, int8, int32, int64, bool, float16, bfloat16
# Random results, which no other implementation can have.
DRAWS = {
    "test_bernoulli_seed",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
}


def _types(model):
    """The element types of all inputs, outputs and casts, also inside sequences and optional
    values."""
    found = set()
    ports = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    for port in ports:
        kind = port.type
        while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
            kind = getattr(kind, kind.WhichOneof("value")).elem_type
        found.add(kind.tensor_type.elem_type)
    for node in model.graph.node:
        found |= {a.i for a in node.attribute if a.name in ("to", "dtype", "output_dtype")}
    return found


def cases():
    """Cases of one node, of opsets 13 to 28, and of supported types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for case in found:
        own = [o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")]
        opsets = not own or own[0] in OPSETS
        if len(case.model.graph.node) == 1 and opsets and _types(case.model) <= TAKEN:
            yield case


def array(x):
    """A value as the model is given it: 16-bit floats are widened."""
    if x is None or isinstance(x, (list, tuple)):
        return x if x is None else [array(v) for v in x]
    a = onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x)
    return a.astype("f4") if a.dtype.name in ("float16", "bfloat16") else a


def tensor(x):
    if x is None or isinstance(x, list):
        return x if x is None else [tensor(v) for v in x]
    return torch.from_numpy(np.array(x))


def compare(want, got, case):
    """Raises an error unless shapes, types and values are those of the case."""
    if isinstance(want, (list, tuple)):
        assert len(want) == len(got), f"{len(got)} results; expected {len(want)}"
        for a, b in zip(want, got):
            compare(a, b, case)
        return
    if want is None:
        assert got is None, "a result where none is expected"
        return
    raw = onnx.numpy_helper.to_array(want) if isinstance(want, onnx.TensorProto) else want
    least = {"float16": 1e-3, "bfloat16": 8e-3}.get(np.asarray(raw).dtype.name, 0)
    want, got = array(want), got.detach().numpy()
    assert want.shape == got.shape, f"{list(got.shape)}; expected {list(want.shape)}"
    assert want.dtype == got.dtype, f"{got.dtype}; expected {want.dtype}"
    limits = {"rtol": max(case.rtol, least), "atol": max(case.atol, least, 1e-6)}
    np.testing.assert_allclose(got, want, **limits)


def _flat(values):
    for v in values:
        if isinstance(v, list):
            yield from _flat(v)
        elif v is not None and v.numel():
            yield v


def digest(outputs):
    """A commitment to all outputs of a case."""
    held = [t.detach() for t in _flat(outputs)]
    held = [t.to(torch.int32) if not t.is_floating_point() else t for t in held]
    own = [t.reshape(t.shape or (1,)).contiguous().numpy() for t in held]
    return repops.root([repops.commitment(a) for a in own]) if own else "empty"


def run(case, folder, as_job=False):
    """Runs a case in the block and returns its outputs. Raises an error if they are not as
    expected."""
    path = Path(folder) / f"{case.name}.onnx"
    path.write_bytes(case.model.SerializeToString())
    model = repops.onnx.load(path)
    torch.manual_seed(0)  # for random operators
    given = None
    for inputs, outputs in case.data_sets:
        arrays = [array(x) for x in inputs]
        if not as_job:
            with repops.torch.reproducible(), torch.no_grad():
                given = model(*[tensor(a) for a in arrays])
            compare(list(outputs), list(given), case)
            continue
        names = [p.name for p in model.inputs]
        made = Answering(model, dict(zip(names, arrays)), Path(folder) / "job")
        compare(list(outputs), list(made.first), case)
        made.capture()
        made.check(1, os.environ["VERDE"])
        given = made.first
    return given


def _told(error):
    return " ".join(str(error).split())[:160]


def main(words):
    p = argparse.ArgumentParser()
    p.add_argument("--jobs", action="store_true")
    p.add_argument("--hashes")
    p.add_argument("--write", action="store_true")
    p.add_argument("--part", default="0/1")
    p.add_argument("--only", default="")
    o = p.parse_args(words)
    part, parts = map(int, o.part.split("/"))
    kept = {}
    if o.hashes and not o.write:
        kept = dict(line.split() for line in Path(o.hashes).read_text().splitlines() if line)
    passed, failed, hashes = 0, [], {}
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(cases()):
            chosen = i % parts == part and o.only in case.name
            if not chosen or kept and case.name not in kept:
                continue
            try:
                hashes[case.name] = digest(run(case, folder, o.jobs))
                wrong = case.name in kept and kept[case.name] != hashes[case.name]
                assert not wrong, f"other bits: {hashes[case.name]}"
                passed += 1
            except Exception as error:  # noqa: BLE001
                failed.append(case.name)
                print(f"{case.name}: {_told(error)}", flush=True)
    gone = sorted(kept.keys() - hashes.keys() - set(failed))
    for name in gone:
        print(f"{name}: onnx {onnx.__version__} does not have it")
    if o.write:
        chosen = sorted(set(hashes) - DRAWS)
        step = max(1, len(chosen) // 200)
        lines = [f"{name} {hashes[name]}" for name in chosen[::step][:200]]
        Path(o.hashes).write_text("\n".join(lines) + "\n")
    print(f"{passed} of {passed + len(failed)} cases pass")
    return 1 if kept and (failed or gone) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
