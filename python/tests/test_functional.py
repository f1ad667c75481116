"""Operators of torch.library: their gradients, and the checks of opcheck."""

import pytest
import torch
import torch.nn.functional as F

from repops.torch import functional as R
from repops.torch import reproducible

IDS = torch.tensor([[1, 4, 1], [0, 1, 2]])
TARGET = torch.tensor([1, 0, -100, 3, 3])
MASK = torch.randn(7, 7, generator=torch.Generator().manual_seed(2))

# Our function, torch's, the shapes of the inputs, and the bound of errors relative to the largest
# magnitude.
CASES = {
    "linear": (R.linear, F.linear, [(2, 5, 30), (20, 30), (20,)], 1e-6),
    "linear without bias": (R.linear, F.linear, [(9, 30), (20, 30)], 1e-6),
    "layer_norm": (
        R.layer_norm,
        lambda x, w, b: F.layer_norm(x, (30,), w, b),
        [(4, 5, 30), (30,), (30,)],
        2e-6,
    ),
    "rms_norm": (R.rms_norm, lambda x, w: F.rms_norm(x, (30,), w, 1e-6), [(4, 5, 30), (30,)], 2e-6),
    "attention": (R.attention, F.scaled_dot_product_attention, [(2, 4, 7, 8)] * 3, 2e-6),
    "attention, causal": (
        lambda q, k, v: R.attention(q, k, v, causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 4, 7, 8)] * 3,
        2e-6,
    ),
    "attention, masked": (
        lambda q, k, v: R.attention(q, k, v, MASK),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, MASK.to(q.dtype)),
        [(2, 4, 7, 8)] * 3,
        2e-6,
    ),
    "attention, grouped": (
        R.attention,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        [(2, 4, 7, 8), (2, 2, 7, 8), (2, 2, 7, 8)],
        2e-6,
    ),
    "conv2d": (
        lambda x, w, b: R.conv2d(x, w, b, 2, 1),
        lambda x, w, b: F.conv2d(x, w, b, 2, 1),
        [(2, 4, 9, 8), (6, 4, 3, 3), (6,)],
        1e-6,
    ),
    "conv2d, groups": (
        lambda x, w: R.conv2d(x, w, None, 1, 0, 2, 2),
        lambda x, w: F.conv2d(x, w, None, 1, 0, 2, 2),
        [(2, 4, 9, 8), (6, 2, 3, 3)],
        1e-6,
    ),
    "cross_entropy, sum": (
        lambda x: R.cross_entropy(x, TARGET, reduction="sum"),
        lambda x: F.cross_entropy(x, TARGET, reduction="sum"),
        [(5, 7)],
        1e-6,
    ),
    "cross_entropy": (
        lambda x: R.cross_entropy(x, TARGET),
        lambda x: F.cross_entropy(x, TARGET),
        [(5, 7)],
        2e-6,
    ),
    "embedding": (lambda t: R.embedding(IDS, t), lambda t: F.embedding(IDS, t), [(6, 5)], 1e-6),
    "relu": (R.relu, F.relu, [(40,)], 0),
    "gelu": (R.gelu, lambda x: F.gelu(x, approximate="tanh"), [(40,)], 1e-6),
    "gelu_erf": (R.gelu_erf, F.gelu, [(40,)], 1e-6),
    "silu": (R.silu, F.silu, [(40,)], 1e-6),
    "tanh": (R.tanh, torch.tanh, [(40,)], 1e-6),
    "sigmoid": (R.sigmoid, torch.sigmoid, [(40,)], 1e-6),
}


def inputs(name):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(s, generator=generator).requires_grad_() for s in CASES[name][2]]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_against_float64(name):
    function, reference, _, bound = CASES[name]
    own = inputs(name)
    exact = [t.detach().double().requires_grad_() for t in own]
    y, expected = function(*own), reference(*exact)
    weight = torch.randn(y.shape, generator=torch.Generator().manual_seed(3))
    y.backward(weight)
    expected.backward(weight.double())
    for a, b in [(y, expected), *[(t.grad, e.grad) for t, e in zip(own, exact)]]:
        assert a.shape == b.shape
        assert (a.double() - b).abs().max() <= bound * b.abs().max()


@pytest.mark.parametrize("name", [n for n in CASES if n != "relu"])
def test_gradcheck(name):
    # A step of 2e-2 keeps half of float32's digits in the difference.
    function = CASES[name][0]
    assert torch.autograd.gradcheck(
        function,
        inputs(name),
        eps=1e-2,
        atol=3e-2,
        rtol=3e-2,
        fast_mode=False,
        check_batched_grad=False,
    )


OPERATORS = [
    ("linear", lambda: inputs("linear")),
    ("conv2d", lambda: [*inputs("conv2d"), 2, 1, 1, 1]),
    ("layer_norm", lambda: [*inputs("layer_norm"), 1e-5]),
    ("rms_norm", lambda: [*inputs("rms_norm"), 1e-5]),
    ("attention", lambda: [*inputs("attention"), None, True, 0.3]),
    ("cross_entropy", lambda: [*inputs("cross_entropy"), TARGET, -100, True]),
    ("embedding", lambda: [IDS, *inputs("embedding")]),
    ("gelu", lambda: inputs("gelu")),
    ("tanh", lambda: inputs("tanh")),
    ("dropout", lambda: [*inputs("gelu"), 5, 0.25]),
]


@pytest.mark.parametrize("name, arguments", OPERATORS)
def test_torch_finds_no_fault_with_the_operator(name, arguments):
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(getattr(torch.ops.repops, name).default, arguments(), test_utils=tests)


def test_dropout_and_its_gradient_drop_the_same():
    x = torch.ones(400, requires_grad=True)
    torch.manual_seed(2)
    y = R.dropout(x, 0.25)
    y.sum().backward()
    assert torch.equal(y, x.grad) and set(y.tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    torch.manual_seed(2)
    assert torch.equal(R.dropout(x, 0.25), y)
    with pytest.raises(ValueError, match="rate is 1"):
        R.dropout(x, 1)


def test_the_mode_and_the_operators_have_the_same_bits():
    x, w, b = inputs("linear")
    with reproducible():
        assert torch.equal(F.linear(x, w, b), R.linear(x, w, b))
        q, k, v = inputs("attention")
        assert torch.equal(F.scaled_dot_product_attention(q, k, v), R.attention(q, k, v))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_mode_takes_cross_entropy_whole(reduction):
    def loss(function):
        x = inputs("cross_entropy")[0]
        y = function(x)
        y.backward()
        return y, x.grad

    with reproducible():
        y, dx = loss(lambda x: F.cross_entropy(x, TARGET, reduction=reduction))
        own, own_dx = loss(lambda x: R.cross_entropy(x, TARGET, reduction=reduction))
        apart, apart_dx = loss(
            lambda x: F.nll_loss(F.log_softmax(x, 1), TARGET, reduction=reduction)
        )
    assert torch.equal(y, own) and torch.equal(dx, own_dx)
    assert torch.allclose(dx, apart_dx, atol=1e-6) and torch.allclose(y, apart)
    assert not torch.equal(dx, apart_dx)  # torch's decomposition rounds otherwise


def test_a_target_that_is_no_class_is_an_error():
    x = inputs("cross_entropy")[0]
    for wrong in (7, -1):
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
            R.cross_entropy(x, torch.tensor([0, 1, wrong, 2, 3]))
    with pytest.raises(ValueError, match="reduction is 'none'"):
        R.cross_entropy(x, TARGET, reduction="none")
