"""The package without torch: operators, arrays, errors, generated files."""

import ctypes
import math
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

import repops
from repops import _library, _table, _texts


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


def test_every_operator_of_the_library_is_a_function_with_a_text():
    assert len(repops.OPERATORS) > 80
    for name, function in repops.OPERATORS.items():
        assert getattr(repops, name) is function
        assert f"SPEC.md, section {_texts.SPEC[name]}" in function.__doc__


def test_generated_files_are_current(top):
    # The package in the sources has no library beside it, so it takes the installed one's.
    environment = {**os.environ, "REPOPS_LIBRARY": str(_library.path())}
    command = [sys.executable, top / "python/generate.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr


def test_stub_declares_every_operator(top):
    stub = (top / "python/repops/__init__.pyi").read_text()
    compile(stub, "stub", "exec")
    assert all(f"def {name}(" in stub for name in repops.OPERATORS)


def test_texts_know_every_operator():
    known = set(_texts.INPUTS) | {n for n, o in _table.TABLE.items() if o.most == 0}
    assert set(_table.TABLE) == known


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (17, 300, 65), (0, 3, 2), (2, 0, 3)])
def test_matmul(m, k, n):
    a, b = numbers(m, k), numbers(k, n)
    expected = a.astype("f8") @ b.astype("f8")
    assert repops.matmul(a, b) == pytest.approx(expected, abs=1e-4)
    assert (repops.matmul(a, b) == repops.matmul(np.ascontiguousarray(a.T), b, trans=1)).all()


def at_the_end_of_memory(shape):
    """Zeros that end right before an unmapped page."""
    size, page = 4 * math.prod(shape), mmap.PAGESIZE
    room = -(-size // page) * page
    memory = mmap.mmap(-1, room + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    assert protect(ctypes.c_void_p(start + room), ctypes.c_size_t(page), 0) == 0
    KEPT.append(memory)
    return np.frombuffer(memory, "f4", math.prod(shape), room - size).reshape(shape)


KEPT = []  # memory that numpy does not own


@pytest.mark.parametrize("n", [1, 2, 3, 5, 17])
@pytest.mark.parametrize("m", [1, 3, 9, 10, 16, 33])
def test_a_product_reads_and_writes_nothing_beyond_its_memory(m, n):
    a, b, out = (at_the_end_of_memory(shape) for shape in ((m, 5), (5, n), (m, n)))
    a[:], b[:] = numbers(m, 5), numbers(5, n)
    assert (repops.matmul(a, b, out=out) == repops.matmul(a.copy(), b.copy())).all()


def test_reductions_infer_their_shapes():
    x = numbers(3, 2500)
    assert repops.reduce_sum(x).shape == (3, 3)
    assert repops.sum_rows(numbers(130, 5)).shape == (3, 5)
    whole = repops.reduce_sum(repops.reduce_sum(x), block=3)
    assert whole[:, 0] == pytest.approx(x.astype("f8").sum(1), abs=1e-3)


def test_sources_need_a_shape_and_repeat():
    a = repops.uniform(seed=7, low=0, high=1, shape=[4, 5])
    assert a.shape == (4, 5) and (0 <= a).all() and (a < 1).all()
    assert (a == repops.uniform(seed=7, low=0, high=1, shape=[4, 5])).all()
    assert sorted(repops.permutation(np.zeros(1, "i4"), seed=1, shape=[9])) == list(range(9))
    with pytest.raises(TypeError, match="shape"):
        repops.uniform(seed=7, low=0, high=1)


def test_out_is_written_and_returned():
    x, out = numbers(4), np.empty(4, "f4")
    assert repops.exp(x, out=out) is out
    assert out == pytest.approx(np.exp(x), rel=1e-6)
    with pytest.raises(repops.Error, match=r"out is float32 \[5\]; expected dense float32 \[4\]"):
        repops.exp(x, out=np.empty(5, "f4"))
    fixed = np.empty(4, "f4")
    fixed.flags.writeable = False
    with pytest.raises(repops.Error, match="read-only"):
        repops.exp(x, out=fixed)


def test_errors_have_the_sentence_of_the_library():
    with pytest.raises(repops.Error, match="matmul: inner dimensions differ: 3 and 4"):
        repops.matmul(numbers(2, 3), numbers(4, 5))
    with pytest.raises(repops.Error, match="float64; the library has"):
        repops.exp(np.zeros(3))
    with pytest.raises(repops.Error, match="9 dimensions"):
        repops.exp(np.zeros((1,) * 9, "f4"))
    with pytest.raises(TypeError):
        repops.exp(numbers(3), speed=1)
    with pytest.raises(repops.Error):
        repops.Context(backend="abacus")
    assert repr(repops.Context.__new__(repops.Context)) == "<repops.Context: not created>"


INTEGERS = [(o.name, n) for o in _table.TABLE.values() for n, kind in o.attributes if kind == "i"]


@pytest.mark.parametrize("value", [1.5, 2.0, "1", None, 2**64, -(2**63) - 1, np.float32(1)])
def test_no_integer_attribute_of_any_operator_is_cut_off(value):
    from repops import _operators

    assert len(INTEGERS) > 80
    for operator, name in INTEGERS:
        with pytest.raises(repops.Error, match=f"{operator}: {name} is .*; expected"):
            _operators._attribute(_table.TABLE[operator], name, "i", {name: value}, [])


def test_integers_of_all_kinds_and_seeds_of_64_bits_are_taken():
    def drawn(seed, **more):
        return repops.uniform(seed=seed, low=0, high=1, shape=[4], **more).tobytes()

    assert drawn(7) == drawn(np.int32(7)) == drawn(np.array(7)) == drawn(7, stream=False)
    assert drawn(2**64 - 1) == drawn(-1) != drawn(0)
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(repops.Error, match=f"uniform: seed is {seed}; expected"):
            drawn(seed)
    with pytest.raises(repops.Error, match="stream"):
        drawn(1, stream=2**32)
    with pytest.raises(repops.Error, match="dimension"):
        repops.uniform(seed=1, low=0, high=1, shape=[2**64 + 3])


@pytest.mark.parametrize("value", [1e39, -3.5e38, "1", 1j, None, 10**400, [1.0]])
def test_numbers_beyond_float32_are_refused(value):
    with pytest.raises((repops.Error, TypeError), match="scale"):
        repops.scale(numbers(3), factor=value)
    if value is not None:
        with pytest.raises(repops.Error, match="eps is"):
            repops.fused.layer_norm(numbers(2, 3), numbers(3), numbers(3), eps=value)


def test_numbers_that_float32_has_are_taken():
    largest = float(np.finfo("f4").max)
    assert repops.fill(value=largest, shape=[1]) == np.float32(largest)
    assert repops.fill(value=np.float64(np.inf), shape=[1]) == np.inf
    assert repops.fill(value=2, shape=[1]) == repops.fill(value=np.float16(2), shape=[1]) == 2


def test_fused_functions_cut_off_no_number():
    q, x = numbers(1, 1, 2, 4), numbers(2, 4)
    dropout = repops.fused.Dropout
    for given in (
        {"dropout": dropout(seed=2**64, rate=0.1)},
        {"dropout": dropout(seed=0.5, rate=0.1)},
        {"dropout": dropout(seed=1, rate=0.1, stream=2**32)},
        {"dropout": dropout(seed=1, rate=0.1, step=2**31)},
        {"dropout": dropout(seed=1, rate=1.0)},
        {"dropout": dropout(seed=1, rate=-0.1)},
        {"scale": 1e39},
        {"causal": True, "window": 2**64 + 1},
    ):
        with pytest.raises(repops.Error, match="; expected"):
            repops.fused.attention(q, q, q, **given)
    with pytest.raises(repops.Error, match="fixed_bits"):
        repops.fused.linear(x, numbers(4, 3), fixed_bits=2**32 + 16)
    with pytest.raises(repops.Error, match="ignore"):
        repops.fused.cross_entropy(x, [0, 1], ignore=2**64)
    with pytest.raises(repops.Error, match="threads"):
        repops.Context(threads=2**32 + 1)


def test_lists_keep_their_numbers():
    assert repops.reshape([2**31 - 1, -(2**31)], shape=[2]).tolist() == [2**31 - 1, -(2**31)]
    assert repops.exp([-np.inf, np.nan]).tolist()[0] == 0
    for bad in ([2**31], [[0, -(2**31) - 1]], [0.0, 1e39]):
        with pytest.raises(repops.Error, match="a number of input 0 of "):
            repops.scale(bad, factor=1)
    assert repops.exp(np.zeros((0, 3), "f4")).shape == repops.exp(np.empty((0, 3), "f4")).shape


def test_arrays_with_a_mask_are_refused():
    masked = np.ma.masked_array(numbers(3), mask=[0, 1, 0])
    for call in (
        lambda: repops.exp(masked),
        lambda: repops.exp(numbers(3), out=masked),
        lambda: repops.fused.softmax(np.ma.masked_array(numbers(2, 3))),
        lambda: repops.commitment(masked),
        lambda: repops.exp(np.ma.masked_array(numbers(3))[0:1]),
    ):
        with pytest.raises(repops.Error, match="has a mask"):
            call()
    assert (repops.exp(masked.filled(0)) == repops.exp([0.0] * 3)).sum() == 1


def test_contexts_have_the_same_bits():
    a, b = numbers(70, 600), numbers(600, 50)
    with repops.Context(threads=1, backend="scalar") as context:
        assert repops.current() is context and context.backend == "scalar" and context.threads == 1
        one = repops.matmul(a, b)
    assert repops.current() is not context
    assert one.tobytes() == repops.matmul(a, b, context=repops.Context(threads=2)).tobytes()


class Foreign:
    """An array of another library, which only has DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_memory_of_others_is_read_where_it_is():
    x, out = numbers(6), np.zeros(6, "f4")
    repops.scale(Foreign(x), factor=2, out=Foreign(out))
    assert (out == 2 * x).all()
    from repops import _arrays

    assert _arrays.array(Foreign(x)).ctypes.data == x.ctypes.data


def test_bfloat16_goes_in_and_out():
    x, w = numbers(3, 4), numbers(4, 5)
    half, out = repops.cast(x, dtype=5), np.empty((3, 4), repops.bfloat16)
    assert half.dtype == repops.bfloat16 and repops.cast(x, dtype=5, out=out) is out
    bits = x.view("u4").astype("u8")
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to nearest, ties to even
    assert (half.view("u2") == bits).all() and (half == out).all()
    assert (repops.cast(half, dtype=1).view("u4") == bits << 16).all()
    b = repops.cast(w, dtype=5)
    assert repops.matmul(x, b).tobytes() == repops.matmul(x, repops.cast(b, dtype=1)).tobytes()
    drawn = repops.cast_stochastic(x, [3], seed=1)
    assert drawn.dtype == repops.bfloat16
    assert (np.abs(drawn.view("u2").astype("i4") - half.view("u2")) <= 1).all()
    assert repops.commitment(half) != repops.commitment(half.view("u2"))
    with pytest.raises(repops.Error, match=r"out is uint16 \[3, 4\]; expected dense bfloat16"):
        repops.cast(x, dtype=5, out=np.empty((3, 4), "u2"))


def test_scalars_and_lists():
    assert repops.add([1.0, 2.0], [3.0]).tolist() == [4.0, 5.0]


def test_fused_functions_have_the_bytes_of_their_operators():
    x, w, b = numbers(9, 300), numbers(300, 40), numbers(40)
    y = repops.relu(repops.add(repops.matmul(x, w), b))
    assert repops.fused.linear(x, w, b, activation="relu").tobytes() == y.tobytes()
    wt = np.ascontiguousarray(w.T)
    assert (
        repops.fused.linear(x, wt, b, transposed=True, activation="relu").tobytes() == y.tobytes()
    )
    m = repops.reduce_max(x)
    l = repops.reduce_expsum(x, m)
    assert repops.fused.softmax(x).tobytes() == repops.softmax(x, m, l).tobytes()
    ids = np.arange(9, dtype="i4")
    loss, dx = repops.fused.cross_entropy(x, ids, dloss=np.ones(9, "f4"))
    assert loss.tobytes() == repops.xent(x, m, l, ids).tobytes()
    assert dx.tobytes() == repops.xent_grad(x, m, l, ids, np.ones(9, "f4")).tobytes()


def test_fused_attention_and_norm_against_numpy():
    q, k, v = numbers(1, 2, 5, 4), numbers(1, 2, 5, 4) * 2, numbers(1, 2, 5, 4) * 3
    out, m, l = repops.fused.attention(q, k, v)
    s = (q.astype("f8") @ k.swapaxes(2, 3)) / 2
    p = np.exp(s - s.max(-1, keepdims=True))
    assert out == pytest.approx(p / p.sum(-1, keepdims=True) @ v, abs=1e-5)
    assert m == pytest.approx(s.max(-1), abs=1e-5)
    assert len(repops.fused.attention_backward(q, k, v, out, m, l, q)) == 3
    y, mean, rstd = repops.fused.layer_norm(q, np.ones(4, "f4"), np.zeros(4, "f4"))
    assert mean == pytest.approx(q.mean(-1), abs=1e-6)
    assert y == pytest.approx((q - q.mean(-1, keepdims=True)) * rstd[..., None], abs=1e-5)


def test_fused_functions_refuse_wrong_shapes():
    with pytest.raises(repops.Error, match=r"bias is \[3\]; expected \[4\]"):
        repops.fused.linear(numbers(2, 5), numbers(5, 4), numbers(3))
    with pytest.raises(repops.Error, match="w is"):
        repops.fused.linear(numbers(2, 5), numbers(6, 4))
    with pytest.raises(repops.Error, match="activation"):
        repops.fused.linear(numbers(2, 5), numbers(5, 4), activation="step")
    with pytest.raises(repops.Error, match="ids is int64"):
        repops.fused.cross_entropy(numbers(2, 5), np.zeros(2, "i8"))
    with pytest.raises(repops.Error, match="gamma"):
        repops.fused.layer_norm(numbers(2, 5), numbers(4), numbers(5))


def test_a_library_that_is_not_there_is_said(monkeypatch):
    code = "import os; os.environ['REPOPS_LIBRARY'] = '/nowhere/librepops.so.1'; import repops"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0
    assert "REPOPS_LIBRARY (/nowhere/librepops.so.1)" in run.stderr.splitlines()[-1]


def test_the_first_program_of_the_documentation_prints_what_it_says(top):
    pytest.importorskip("torch")
    text = (top / "docs/python.md").read_text().split("```python\n")[1].split("```")[0]
    expected = text.rsplit("# ", 1)[1].strip()
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert run.stdout.strip() == expected, run.stderr
