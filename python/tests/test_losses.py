"""Losses, activations, running sums and recurrent layers, against torch in float64."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from compare import close, compare

from repops.torch import reproducible


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


LOSSES = [
    lambda a, b: F.smooth_l1_loss(a, b, beta=0.5),
    lambda a, b: F.smooth_l1_loss(a, b, reduction="sum"),
    lambda a, b: F.smooth_l1_loss(a, b, reduction="none", beta=0.3),
    lambda a, b: F.huber_loss(a, b, delta=0.7),
    lambda a, b: F.huber_loss(a, b, reduction="none"),
    lambda a, b: F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean"),
    lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
    lambda a, b: F.binary_cross_entropy(
        a.sigmoid(), b.sigmoid(), weight=b.detach().abs(), reduction="sum"
    ),
    lambda a, b: F.binary_cross_entropy_with_logits(
        a, b.sigmoid(), pos_weight=torch.tensor(2.0, dtype=a.dtype)
    ),
    lambda a, b: F.soft_margin_loss(a, b.detach().sign()),
    lambda a, b: torch.cdist(a, b),
    lambda a, b: torch.cdist(a, b, p=1),
    torch.atan2,
    torch.logaddexp,
    lambda a, b: torch.xlogy(a, b.abs() + 0.1),
    lambda a, b: torch.remainder(a * 5, b),
    lambda a, b: torch.fmod(a * 5, b),
    lambda a, b: torch.div(a * 5, b, rounding_mode="floor"),
]


@pytest.mark.parametrize("function", LOSSES)
def test_losses_and_functions_of_two(function):
    compare(function, torch.randn(17, 5), torch.randn(17, 5), absolute=5e-5)


FUNCTIONS = [
    F.mish,
    F.glu,
    F.softshrink,
    F.hardshrink,
    F.celu,
    F.selu,
    F.tanhshrink,
    lambda x: F.threshold(x, 0.1, 0.2),
    torch.atan,
    torch.asinh,
    lambda x: x.sigmoid().asin(),
    lambda x: x.sigmoid().acos(),
    lambda x: x.sigmoid().atanh(),
    lambda x: x.sigmoid().logit(),
    lambda x: x.sigmoid().logit(0.2),
    lambda x: (x.abs() + 1.01).acosh(),
    lambda x: x.cumsum(1),
    lambda x: x.cumsum(0),
    lambda x: x.cumprod(1),
    lambda x: x.logcumsumexp(1),
    lambda x: (x * 40).logcumsumexp(0),
    lambda x: x.prod(),
    lambda x: x.prod(1),
    lambda x: x.prod(0, keepdim=True),
    lambda x: x.nansum(),
    lambda x: torch._weight_norm(x, x[:, :1] + 2, 0),
    lambda x: torch._weight_norm(x, x[:1] + 2, 1),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_one(function):
    compare(function, torch.randn(7, 12))


CLASSES = torch.arange(7) * 5 % 12
LABELLED = torch.arange(84).reshape(7, 12) * 5 % 13 - 1  # classes end at the first -1


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_with_a_margin(reduction):
    weight, more = torch.rand(12), {"reduction": reduction}
    for p, margin, weighted in ((1, 1.0, False), (2, 0.5, True)):

        def loss(x, p=p, margin=margin, weighted=weighted):
            own = weight.to(x.dtype) if weighted else None
            return F.multi_margin_loss(x, CLASSES, p=p, margin=margin, weight=own, **more)

        compare(loss, torch.randn(7, 12))
    compare(lambda x: F.multilabel_margin_loss(x, LABELLED, **more), torch.randn(7, 12))
    compare(lambda x: F.multi_margin_loss(x, CLASSES[3], **more), torch.randn(12))
    compare(lambda x: F.multilabel_margin_loss(x, LABELLED[3], **more), torch.randn(12))


def test_running_logarithms_at_their_limits():
    inf = float("inf")
    rows = [[-inf, -inf, 1.0, -inf], [inf, -inf, 0.0, inf], [0.0, float("nan"), 1.0, 2.0]]
    x = torch.tensor(rows)
    with reproducible():
        y = x.logcumsumexp(1)
    assert torch.allclose(y.double(), x.double().logcumsumexp(1), equal_nan=True)
    assert torch.logcumsumexp(torch.tensor(3.0), 0) == 3


def test_noise_of_rrelu_is_drawn_by_the_generator():
    x = torch.randn(9000, requires_grad=True)
    with reproducible():
        state = torch.get_rng_state()
        y = F.rrelu(x, 0.1, 0.3, training=True)
        torch.set_rng_state(state)
        assert torch.equal(F.rrelu(x.clone(), 0.1, 0.3, training=True, inplace=True), y)
        y.sum().backward()
        slopes = x.grad[x < 0]
        assert (x.grad[x > 0] == 1).all() and torch.equal(y, x * x.grad)
        assert 0.1 <= slopes.min() and slopes.max() < 0.3 and abs(slopes.mean() - 0.2) < 0.005
    compare(lambda t: F.rrelu(t, 0.1, 0.3), torch.randn(7, 12))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags_of_rows(mode, padding):
    ids, offsets = torch.tensor([1, 4, 4, 2, 0, 2, 3]), torch.tensor([0, 3, 3, 4])

    def function(table, factors):
        own = factors if mode == "sum" else None
        return F.embedding_bag(
            ids, table, offsets, mode=mode, per_sample_weights=own, padding_idx=padding
        )

    compare(function, torch.randn(5, 3), torch.rand(7))
    compare(
        lambda t: F.embedding_bag(
            ids, t, torch.tensor([0, 2, 7]), mode=mode, include_last_offset=True
        ),
        torch.randn(5, 3),
    )


def test_the_first_of_equal_rows_of_a_bag_stays():
    table = torch.tensor([[1.0, 2.0], [float("nan"), -1.0], [1.0, 3.0]])
    ids, found = torch.tensor([[0, 2, 1], [2, 0, 2], [1, 0, 2]]), []
    for block in (contextlib.nullcontext(), reproducible()):
        own = table.clone().requires_grad_()
        with block:
            y = F.embedding_bag(ids, own, mode="max")
            y.backward(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        found.append((y.detach(), own.grad))
    for a, b in zip(*found):
        assert torch.equal(a.nan_to_num(7), b.nan_to_num(7))


def test_sources_of_masks_have_gradients():
    mask = torch.tensor([[True, False, True, True], [False, True, False, True]])
    for shape in ((5,), (2, 4), (3, 3)):
        compare(lambda x, s: x.masked_scatter(mask, s), torch.randn(2, 4), torch.randn(shape))
    compare(lambda x, s: x.masked_scatter(mask[:, :1], s), torch.randn(2, 4), torch.randn(4))
    compare(lambda x, s: x.masked_scatter(mask & False, s), torch.randn(2, 4), torch.randn(0))


def test_bilinear_layers():
    shapes = (7, 4), (7, 5), (3, 4, 5), (3,)
    compare(F.bilinear, *[torch.randn(s) for s in shapes])


def test_angles_of_all_quadrants_and_limits():
    inf = float("inf")
    y, x = torch.meshgrid(*[torch.tensor([-inf, -2.0, -0.0, 0.0, 1.0, inf])] * 2, indexing="ij")
    with reproducible():
        angle = torch.atan2(y, x)
        assert (
            torch.tensor([2.0]).asin().isnan().all() and torch.tensor([0.5]).acosh().isnan().all()
        )
    close(angle, torch.atan2(y.double(), x.double()), 1e-7, 0)
    assert (angle.signbit() == torch.atan2(y, x).signbit()).all()


def test_counts_of_values():
    x = torch.randn(100)
    with reproducible():
        counts = torch.histc(x, 7, -1, 1)
    assert counts.tolist() == torch.histc(x.double(), 7, -1, 1).tolist()


LABELS = torch.tensor([[1, 1, 2, 2], [3, 3, 3, 1], [2, 2, 2, 2]])


@pytest.mark.parametrize("lengths", [[4, 3, 2], [4, 3, 4]])
def test_connectionist_temporal_classification(lengths):
    """In the second case the last row has no path: it repeats labels too often for its input's
    length."""

    def loss(x):
        inputs, targets = torch.tensor([9, 8, 5]), torch.tensor(lengths)
        return F.ctc_loss(
            x.log_softmax(2), LABELS, inputs, targets, reduction="none", zero_infinity=True
        )

    compare(loss, torch.randn(9, 3, 5))


@pytest.mark.parametrize("reduction", ["sum", "mean", "amax"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scattered_reductions(reduction, include_self):
    index = torch.randint(0, 4, (7, 12))
    compare(
        lambda x, y: x.scatter_reduce(0, index, y, reduction, include_self=include_self),
        torch.randn(4, 12),
        torch.randn(7, 12),
    )


def test_products_of_groups():
    ends = torch.tensor([2, 2, 5, 7], dtype=torch.int32)
    spans = [slice(0, 2), slice(2, 2), slice(2, 5), slice(5, 7)]

    def function(a, b):
        if a.dtype is torch.float64:
            return torch.cat([a[s] @ b[i] for i, s in enumerate(spans)])
        return torch._grouped_mm(a, b, offs=ends)

    compare(function, torch.randn(7, 8), torch.randn(4, 8, 16))


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers(kind):
    own = kind(4, 6, 2, bidirectional=True)
    exact = kind(4, 6, 2, bidirectional=True).double()
    exact.load_state_dict(own.state_dict())

    def function(x):
        y, states = (exact if x.dtype is torch.float64 else own)(x)
        states = states if isinstance(states, tuple) else (states,)
        return torch.cat([t.reshape(-1) for t in (y, *states)])

    compare(function, torch.randn(5, 3, 4))
    for a, b in zip(own.parameters(), exact.parameters()):
        close(a.grad, b.grad, 2e-5, 2e-5)
