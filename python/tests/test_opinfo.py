"""PyTorch's own samples of its operators, of every type of elements, and calls that it refuses.

In the block each is computed correctly or refused: by name, or with PyTorch's error. Some
samples are tried: all operators for float32, some for each other type. REPOPS_OPINFO=all tries all
(half an hour of one core).
"""

import collections
import os

import pytest
import torch
import torch.nn.functional as F

from repops.torch import LeftoverError, reproducible

pytest.importorskip("expecttest", reason="PyTorch's samples need the package expecttest")
opinfo = pytest.importorskip("opinfo")

ALL = os.environ.get("REPOPS_OPINFO") == "all"
MOST = 16 if ALL else 1  # samples for each operator and type
CHANGED = 4 if ALL else 1  # samples that are changed in every way
EVERY = 1 if ALL else 12  # one operator of so many is tried with changed samples

# Operators whose results on changed values differ from PyTorch's: NaN has no integer; of
# several NaNs in a window, and of equal elements, the first is chosen here; a Cholesky factor is
# undefined after a pivot that is not positive; at poles PyTorch has large numbers; a NaN as a place
# in a volume gives what it gives in an image, and PyTorch has a number for it.
UNLIKE = {
    *"topk linalg.cholesky_ex grid_sampler_3d".split(),
    *(f"polygamma.polygamma_n_{n}" for n in range(5)),
    *"byte char short int long".split(),
    *"nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d".split(),
    *"nn.functional.max_pool1d nn.functional.max_pool2d max_pool2d_with_indices_backward".split(),
    *"nn.functional.adaptive_max_pool3d nn.functional.max_pool3d".split(),
}


# Differences in valid calls: equal elements keep their order here; bytes are resized as float32 and
# rounded; at poles PyTorch has large numbers.
OTHERWISE = {
    *"kthvalue mode special.polygamma.special_polygamma_n_0".split(),
    *(f"polygamma.polygamma_n_{n}" for n in range(5)),
    *"sort argsort topk msort".split(),
    *"nn.functional.interpolate.bilinear nn.functional.interpolate.bicubic".split(),
    *"nn.functional.upsample_bilinear _upsample_bilinear2d_aa".split(),
}
MORE = {"nn.functional.max_pool1d"}  # integers, which PyTorch only takes with indices


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for the next small operator would take most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def judged(name, op, sample, otherwise):
    """opinfo.outcome, or "otherwise" where a valid call has another result that is known of."""
    how, text = opinfo.outcome(op.op, sample)
    known = (how == "more" and name in MORE) or (text == "values" and name in otherwise)
    return ("otherwise" if known else how), text


def report(counts, wrong):
    print(dict(counts))
    assert counts["equal"] + counts["refused"] + counts["as PyTorch"] > 0
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", opinfo.TYPES)
def test_samples_of_a_type_are_computed_rightly_or_refused(kind):
    if not hasattr(torch, kind):
        pytest.skip(f"this PyTorch has no {kind}")
    counts, wrong = collections.Counter(), []
    turn, part = opinfo.TYPES.index(kind), 1 if ALL or kind == "float32" else 10
    for i, (name, op) in enumerate(opinfo.operators()):
        if (i + turn) % part:
            continue
        try:
            given = list(opinfo.samples(op, getattr(torch, kind), MOST))
        except Exception:  # noqa: BLE001
            counts["no samples"] += 1  # its generator lacks this type
            continue
        for sample in given:
            how, text = judged(name, op, sample, OTHERWISE)
            counts[how] += 1
            if how in ("wrong", "more"):
                wrong.append(f"{name}: {text}; {opinfo.shown(sample)}")
    report(counts, wrong)


def test_what_pytorch_refuses_of_its_own_wrong_samples_is_refused():
    counts, wrong = collections.Counter(), []
    for name, op in opinfo.operators():
        if op.error_inputs_func is None:
            continue
        for given in op.error_inputs("cpu"):
            s = given.sample_input
            sample = opinfo.Sample(s.input, s.args, dict(s.kwargs))
            how, text = opinfo.outcome(op.op, sample)
            counts[how] += 1
            if how in ("wrong", "more"):
                wrong.append(f"{name}: {text}; {opinfo.shown(sample)}")
    report(counts, wrong)


def tried(name, op):
    """The outcomes of the operator's changed samples, and the wrong ones."""
    counts, wrong = collections.Counter(), []
    for sample in opinfo.samples(op, torch.float32, CHANGED):
        for other in opinfo.changed(sample):
            how, text = judged(name, op, other, UNLIKE)
            counts[how] += 1
            if how in ("wrong", "more"):
                wrong.append(f"{name}: {text}; {opinfo.shown(other)}")
    return counts, wrong


def test_changed_samples_are_computed_rightly_or_refused():
    counts, wrong = collections.Counter(), []
    for i, (name, op) in enumerate(opinfo.operators()):
        if i % EVERY or not op.supports_dtype(torch.float32, "cpu"):
            continue
        found = opinfo.apart(lambda: tried(name, op))  # noqa: B023
        counts.update(found[0] if found else ["PyTorch ended"])
        wrong += found[1] if found else []
    report(counts, wrong)


# ---- calls that were once accepted ----

NAN, INF = float("nan"), float("inf")
X = torch.arange(6.0).reshape(2, 3)


def places(*numbers):
    return torch.tensor(numbers)


WRONG = {
    "layer norm of another width": lambda: F.layer_norm(torch.ones(2, 48), (50,)),
    "layer norm with a short weight": lambda: F.layer_norm(X, (3,), torch.ones(2)),
    "group norm with a short weight": lambda: F.group_norm(torch.ones(2, 4), 2, torch.ones(2)),
    "batch norm with a short weight": lambda: F.batch_norm(
        X, torch.zeros(3), torch.ones(3), torch.ones(2)
    ),
    "rms norm of another width": lambda: F.rms_norm(X, (4,)),
    "sum along no dimension": lambda: torch.ones(3).sum(1),
    "mean along no dimension": lambda: X.mean(2),
    "softmax along no dimension": lambda: X.softmax(2),
    "topk of more than there are": lambda: X.topk(4),
    "scatter_add beyond a row": lambda: torch.zeros(2, 3).scatter_add_(
        1, places(5).reshape(1, 1), torch.ones(1, 1)
    ),
    "scatter_reduce beyond a row": lambda: X.scatter_reduce(1, places(-1, 3)[None], X, "sum"),
    "index_add beyond the end": lambda: torch.zeros(3).index_add_(0, places(7), torch.ones(1)),
    "index_add beyond 32 bits": lambda: torch.zeros(3).index_add_(
        0, places(2**32 + 1), torch.ones(1)
    ),
    "index_put beyond 32 bits": lambda: torch.zeros(3).index_put_(
        (places(2**32 + 1),), torch.ones(1), accumulate=True
    ),
    "index_add of another source": lambda: X.index_add(0, places(0, 1), torch.ones(2, 4)),
    "embedding beyond the table": lambda: F.embedding(places(2), X),
    "bag of a row before the table": lambda: F.embedding_bag(places(-1, 0)[None], X),
    "bag that begins after the first": lambda: F.embedding_bag(places(0, 1), X, places(1)),
    "a class that is none": lambda: F.nll_loss(X, places(0, 3)),
    "cross-entropy of a class that is none": lambda: F.cross_entropy(X, places(0, 3)),
    "cross-entropy of fewer targets": lambda: F.cross_entropy(X, places(0)),
    "margin of a class that is none": lambda: F.multi_margin_loss(X, places(0, 3)),
    "max_unpool beyond the image": lambda: F.max_unpool2d(
        torch.ones(1, 1, 1, 1), places(9).reshape(1, 1, 1, 1), 2
    ),
    "a convolution's short bias": lambda: F.conv1d(X[None], torch.ones(2, 2, 2), torch.ones(1)),
    "a convolution's other channels": lambda: F.conv1d(X[None], torch.ones(2, 3, 2)),
    "output_padding of a stride": lambda: F.conv_transpose2d(
        torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), stride=2, output_padding=2
    ),
    "a product of other sizes": lambda: X @ X,
    "a linear layer of other sizes": lambda: F.linear(X, torch.ones(4, 2)),
    "addcmul_ of a larger result": lambda: torch.ones(3).addcmul_(X, X),
    "exp_ of integers": lambda: places(1).exp_(),
    "mm into another type": lambda: torch.mm(X, X.T, out=torch.ones(2, 2, dtype=torch.float64)),
    "mean of integers": lambda: places(1, 2).mean(),
    "multinomial of a NaN": lambda: torch.tensor([NAN, 1.0]).multinomial(1),
    "multinomial of infinity": lambda: torch.tensor([INF, 1.0]).multinomial(1),
    "multinomial of a negative": lambda: torch.tensor([-1.0, 1.0]).multinomial(1),
    "multinomial of nothing": lambda: torch.zeros(2).multinomial(1),
    "multinomial of more than there are": lambda: torch.ones(2).multinomial(3),
    "bernoulli of 2": lambda: torch.tensor([2.0]).bernoulli(),
    "bernoulli_ of 2": lambda: torch.zeros(2).bernoulli_(2.0),
    "dropout of 2": lambda: F.dropout(X, 2.0),
    "normal of a negative deviation": lambda: torch.normal(0.0, -1.0, (3,)),
    "normal_ of a negative deviation": lambda: torch.zeros(3).normal_(0.0, -1.0),
    "normal of negative deviations": lambda: torch.normal(X, -X),
    "uniform_ of no range": lambda: torch.zeros(3).uniform_(1.0, 0.0),
    "uniform_ of integers": lambda: places(1).uniform_(),
    "exponential_ of a negative rate": lambda: torch.zeros(3).exponential_(-1.0),
    "randint of no range": lambda: torch.randint(2, 2, (3,)),
    "randperm of a negative": lambda: torch.randperm(-1),
    "linspace of a negative number": lambda: torch.linspace(0, 1, -1),
    "arange against its step": lambda: torch.arange(0.0, 1.0, -0.5),
    "binary cross-entropy of 2": lambda: F.binary_cross_entropy(X, torch.zeros(2, 3)),
    "smooth_l1 of a negative beta": lambda: F.smooth_l1_loss(X, X, beta=-1.0),
    "huber of delta 0": lambda: F.huber_loss(X, X, delta=0.0),
    "softshrink below 0": lambda: F.softshrink(X, -1.0),
    "celu of 0": lambda: F.celu(X, 0.0),
    "gelu of an unknown kind": lambda: F.gelu(X, approximate="erf"),
    "glu of an odd size": lambda: F.glu(X),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_has_the_error_of_pytorch(name):
    with pytest.raises(Exception) as plain:
        WRONG[name]()
    for _ in range(2):  # a refused signature must not be cached
        with reproducible(), pytest.raises(plain.type) as ours:
            WRONG[name]()
        assert str(ours.value) == str(plain.value)


def test_a_wrong_index_is_found_where_the_sizes_are_known():
    with reproducible():
        for index in (places(1), places(2)):
            assert float(torch.zeros(3).index_add_(0, index, torch.ones(1)).sum()) == 1
        with pytest.raises(IndexError):
            torch.zeros(3).index_add_(0, places(3), torch.ones(1))


def test_attention_of_fewer_values_than_keys_is_refused_where_pytorch_reads_beyond():
    q, k, v = torch.ones(1, 1, 2, 8), torch.ones(1, 1, 9, 8), torch.ones(1, 1, 2, 8)
    with reproducible(), pytest.raises(LeftoverError, match="do not fit"):
        F.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_ids_behind_the_last_bag_are_refused(mode):
    given = places(0, 1, 1), X, places(0, 2)
    with reproducible(), pytest.raises(LeftoverError, match="behind the last bag"):
        F.embedding_bag(*given, mode=mode, include_last_offset=True)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_that_are_not_told_are_refused(name):
    """float32 has no such angles; float64 has those from 2^30 on."""
    function, wide = getattr(torch, name), torch.float64
    large = torch.tensor([2.0**30, -3e38])
    exact = function(large.double()).float()
    with reproducible():
        for kind in (torch.float32, wide):
            assert function(torch.tensor([INF, NAN], dtype=kind)).isnan().all()
        ours = function(large)
        with pytest.raises(LeftoverError, match="angles"):
            function(torch.tensor([1.0, 2.0**30], dtype=wide))
    assert opinfo.differs(ours, exact) is None


C = torch.tensor([1 + 2j, 3 - 1j])
WIDE = C.to(torch.cdouble)
OF_COMPLEX = "log sin cos tan sinh cosh tanh sigmoid sqrt rsqrt square log2 log1p expm1 asin"


@pytest.mark.parametrize("name", OF_COMPLEX.split())
def test_functions_of_complex_numbers_are_refused_by_name(name):
    with reproducible(), pytest.raises(LeftoverError, match="complex64"):
        getattr(torch, name)(C)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.randn(2, dtype=torch.cdouble),
        lambda: torch.rand(2, dtype=torch.cdouble),
        lambda: torch.zeros(2, dtype=torch.cdouble).normal_(),
        lambda: torch.randn_like(WIDE),
        lambda: torch.linspace(0, 1j, 3),
        lambda: torch.pow(C, 2.0),
        lambda: torch.pow(2.0, C),
        lambda: WIDE.mean(),
        lambda: WIDE / WIDE,
        lambda: WIDE.exp(),
        lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        lambda: QUANTIZED.relu(),
        lambda: QUANTIZED + QUANTIZED,
        lambda: X.to_sparse() * 2.0,
        lambda: X.to(torch.float8_e4m3fn).exp(),
        lambda: F.mish(torch.tensor(1.0, dtype=torch.bfloat16)),
        lambda: F.softplus(torch.tensor(1.0, dtype=torch.bfloat16)),
    ],
)
def test_other_types_are_refused_by_name(call):
    with reproducible(), pytest.raises(LeftoverError):
        call()


QUANTIZED = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
SAME = {
    "topk of a number": lambda: torch.tensor(3.0).topk(1),
    "prod of a number": lambda: torch.tensor(3.0).prod(0, keepdim=True),
    "logit with crossed bounds": lambda: torch.tensor([0.3, 0.5, 0.9]).logit(0.6),
    "clamp by a NaN": lambda: X.clamp(min=NAN),
    "clamp of float64": lambda: X.double().clamp(0.1, 0.7),
    "relu6 of bfloat16": lambda: F.relu6(torch.tensor(0.5, dtype=torch.bfloat16)),
    "max_unpool of float64": lambda: F.max_unpool2d(
        torch.ones(1, 1, 1, 1, dtype=torch.float64), places(2).reshape(1, 1, 1, 1), 2
    ),
    "max_unpool of bfloat16": lambda: F.max_unpool2d(
        torch.ones(1, 1, 1, 1, dtype=torch.bfloat16), places(2).reshape(1, 1, 1, 1), 2
    ),
    "a mean of complex numbers": lambda: C.mean(),
    "a quotient of complex numbers": lambda: C / C.flip(0),
    "powers of complex numbers": lambda: C.exp(),
    "movement of complex numbers": lambda: torch.cat([C, C]).flip(0)[:3],
}


@pytest.mark.parametrize("name", SAME)
def test_what_was_wrong_once_is_as_in_pytorch(name):
    expected = SAME[name]()
    with reproducible():
        ours = SAME[name]()
    assert opinfo.differs(ours, expected) is None
