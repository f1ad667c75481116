"""Tensors with a dimension of size 0: shapes and values are PyTorch's, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from repops.torch import functional as R
from repops.torch import reproducible

NONE = torch.empty(0, dtype=torch.int64)


def zeros(*shape):
    return torch.zeros(shape, requires_grad=True)


def trained(y, *inputs):
    y = y[0] if isinstance(y, tuple) else y
    y.sum().backward()
    return [y, *[x.grad for x in inputs]]


def layer(module, *shape):
    x = zeros(*shape)
    return trained(module(x), x, *module.parameters())


def chosen(select):
    """The result of a selection of no elements, and the gradient."""
    x = torch.arange(15.0).reshape(5, 3).requires_grad_()
    return trained(select(x), x)


def attended(*shapes):
    q, k, v = (zeros(*s) for s in shapes)
    return trained(F.scaled_dot_product_attention(q, k, v), q, k, v)


def loss(function, *shape, **options):
    x = zeros(*shape)
    target = torch.zeros(shape[0], *shape[2:], dtype=torch.int64)
    return trained(function(x, target if function is F.cross_entropy else x.detach(), **options), x)


def bag(ids, offsets=None, mode="sum"):
    table = zeros(5, 3)
    return trained(F.embedding_bag(ids, table, offsets, mode=mode), table)


MASK = torch.zeros(5, dtype=torch.bool)
SELECTIONS = {
    "ids": lambda x: x[NONE],
    "ids of two dimensions": lambda x: x[NONE, NONE],
    "ids of columns": lambda x: x[:, NONE],
    "a mask": lambda x: x[MASK],
    "a mask of elements": lambda x: x[MASK.unsqueeze(1).expand(5, 3)],
    "masked_select": lambda x: x.masked_select(MASK.unsqueeze(1)),
    "a slice": lambda x: x[:0],
    "gather": lambda x: x.gather(0, NONE.reshape(0, 3)),
    "gather of columns": lambda x: x.gather(1, NONE.reshape(5, 0)),
    "index_select": lambda x: x.index_select(0, NONE),
    "index_select of columns": lambda x: x.index_select(1, NONE),
    "take_along_dim": lambda x: x.take_along_dim(NONE.reshape(0, 1), 0),
    "embedding": lambda x: F.embedding(NONE, x),
    "embedding of no columns": lambda x: F.embedding(NONE.reshape(2, 0), x),
    "index_add": lambda x: x.index_add(0, NONE, torch.empty(0, 3)),
    "index_add of columns": lambda x: x.index_add(1, NONE, torch.empty(5, 0)),
    "index_copy": lambda x: x.index_copy(0, NONE, torch.empty(0, 3)),
    "index_fill": lambda x: x.index_fill(0, NONE, 1.0),
    "index_put": lambda x: x.index_put((NONE,), torch.empty(0, 3)),
    "index_put that adds": lambda x: x.index_put((NONE,), torch.empty(0, 3), True),
    "scatter": lambda x: x.scatter(0, NONE.reshape(0, 3), torch.empty(0, 3)),
    "scatter_add": lambda x: x.scatter_add(0, NONE.reshape(0, 3), torch.empty(0, 3)),
    "scatter_reduce": lambda x: x.scatter_reduce(0, NONE.reshape(0, 3), torch.empty(0, 3), "sum"),
}

LAYERS = {
    **{f"selection by {n}": lambda s=s: chosen(s) for n, s in SELECTIONS.items()},
    "linear": lambda: layer(nn.Linear(3, 4), 0, 3),
    "linear of no tokens": lambda: layer(nn.Linear(3, 4), 2, 0, 3),
    "layer norm": lambda: layer(nn.LayerNorm(4), 0, 4),
    "rms norm": lambda: layer(nn.RMSNorm(4), 0, 4),
    "group norm": lambda: layer(nn.GroupNorm(2, 4), 0, 4, 3),
    "batch norm": lambda: layer(nn.BatchNorm1d(4).eval(), 0, 4),
    "conv1d": lambda: layer(nn.Conv1d(2, 3, 3), 0, 2, 5),
    "conv2d": lambda: layer(nn.Conv2d(2, 3, 3), 0, 2, 5, 5),
    "conv2d of one tap": lambda: layer(nn.Conv2d(2, 3, 1), 0, 2, 5, 5),
    "conv_transpose2d": lambda: layer(nn.ConvTranspose2d(2, 3, 3), 0, 2, 5, 5),
    "conv3d": lambda: layer(nn.Conv3d(2, 3, 3), 0, 2, 5, 5, 5),
    "conv_transpose3d": lambda: layer(nn.ConvTranspose3d(2, 3, 3), 0, 2, 5, 5, 5),
    "LSTM": lambda: layer(nn.LSTM(3, 4), 5, 0, 3),
    "GRU": lambda: layer(nn.GRU(3, 4), 5, 0, 3),
    "encoder": lambda: layer(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 0, 3, 4),
    "max pool": lambda: layer(nn.MaxPool2d(2), 0, 2, 4, 4),
    "mean pool": lambda: layer(nn.AvgPool2d(2), 0, 2, 4, 4),
    "pools of volumes": lambda: (
        layer(nn.MaxPool3d(2), 0, 2, 4, 4, 4) + layer(nn.AvgPool3d(2), 0, 2, 4, 4, 4)
    ),
    "adaptive pools of volumes": lambda: (
        layer(nn.AdaptiveAvgPool3d(2), 0, 2, 4, 4, 4)
        + layer(nn.AdaptiveMaxPool3d(2), 0, 2, 4, 4, 4)
    ),
    "adaptive pools": lambda: (
        layer(nn.AdaptiveAvgPool2d(2), 0, 2, 4, 4) + layer(nn.AdaptiveMaxPool2d(2), 0, 2, 4, 4)
    ),
    "resize": lambda: layer(nn.Upsample(scale_factor=2, mode="bilinear"), 0, 2, 4, 4),
    "resize to the nearest": lambda: layer(nn.Upsample(scale_factor=2), 0, 2, 4, 4),
    "padding": lambda: (
        layer(nn.ReflectionPad2d(1), 0, 2, 4, 4) + layer(nn.ReplicationPad2d(1), 0, 2, 4, 4)
    ),
    "folds": lambda: layer(nn.Unfold(2), 0, 2, 4, 4) + layer(nn.Fold((4, 4), 2), 0, 8, 9),
    "cross-entropy": lambda: loss(F.cross_entropy, 0, 5),
    "cross-entropy, summed": lambda: loss(F.cross_entropy, 0, 5, reduction="sum"),
    "cross-entropy of images": lambda: loss(F.cross_entropy, 0, 5, 3, reduction="sum"),
    "squares": lambda: loss(F.mse_loss, 0, 5),
    "binary cross-entropy": lambda: loss(F.binary_cross_entropy_with_logits, 0, 5),
    "smooth_l1_loss": lambda: loss(F.smooth_l1_loss, 0, 4, reduction="sum"),
    "bags of nothing": lambda: bag(NONE, torch.zeros(1, dtype=torch.int64)),
    "no bags": lambda: bag(NONE.reshape(0, 3), mode="mean"),
    "no bags of the largest": lambda: bag(NONE.reshape(0, 3), mode="max"),
    "a largest of nothing": lambda: bag(torch.tensor([1]), torch.tensor([0, 0, 1]), "max"),
    "a bag of nothing": lambda: bag(torch.tensor([1]), torch.tensor([0, 0, 1])),
    "attention of no batch": lambda: attended(*[(0, 2, 3, 4)] * 3),
    "attention of no queries": lambda: attended((1, 2, 0, 4), (1, 2, 3, 4), (1, 2, 3, 4)),
    "attention of no keys": lambda: attended((1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4)),
    "products of no terms": lambda: trained(zeros(3, 0) @ zeros(0, 4)),
    "batches of products": lambda: trained(zeros(2, 3, 0) @ zeros(2, 0, 4)),
    "products with vectors": lambda: trained(zeros(3, 0) @ zeros(0)),
    "addmm": lambda: trained(torch.addmm(torch.ones(4), zeros(3, 0), zeros(0, 4))),
    "distances": lambda: trained(torch.cdist(zeros(0, 3), zeros(2, 3))),
    "einsum": lambda: trained(torch.einsum("ij,kj->ik", zeros(0, 3), zeros(4, 3))),
}

ROWS, COLUMNS = torch.zeros(0, 3), torch.zeros(3, 0)
VALUES = {
    name: getattr(torch, name)
    for name in "sum mean std var norm prod exp sin round sort cumsum logsumexp softmax log_softmax"
    " cumprod logcumsumexp".split()
}


def values(name):
    function, found = VALUES[name], []
    for x in (ROWS, COLUMNS, torch.zeros(0)):
        for dim in range(x.dim()):
            y = function(x) if name in ("exp", "sin", "round") else function(x, dim=dim)
            found.append(y if isinstance(y, torch.Tensor) else y[0])
    if name in ("sum", "mean", "std", "prod", "norm"):
        found.append(function(torch.zeros(0)))
    return found


def equal(own, expected):
    assert len(own) == len(expected)
    for a, b in zip(own, expected):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype
            assert torch.allclose(a, b, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_nothing(name):
    def computed():
        torch.manual_seed(0)
        return LAYERS[name]()

    expected = computed()
    with reproducible():
        own = computed()
    shapes = [None if t is None else t.shape for t in own]
    assert shapes == [None if t is None else t.shape for t in expected]
    if not name.startswith(("linear", "conv", "LSTM", "GRU", "encoder")):  # these draw weights
        equal(own, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VALUES)
def test_values_of_nothing(name):
    expected = values(name)
    with reproducible():
        own = values(name)
    equal(own, expected)


def test_logsumexp_of_nothing_is_minus_infinity():
    with reproducible():
        assert ROWS.logsumexp(0).tolist() == [-float("inf")] * 3
        assert ROWS.logsumexp((0, 1)) == -float("inf")
        assert ROWS.logsumexp(1, keepdim=True).shape == (0, 1)


def test_functions_without_a_block_take_nothing():
    x, w, ids = zeros(0, 3), zeros(4, 3), NONE
    found = [
        *trained(R.linear(x, w), x, w),
        *trained(R.linear(x[:, :0], w[:, :0])),
        *trained(R.layer_norm(x, zeros(3), zeros(3))),
        *trained(R.rms_norm(x, zeros(3))),
        *trained(R.embedding(ids, w), w),
        *trained(R.attention(*[zeros(0, 2, 3, 4)] * 3)),
        *trained(R.conv2d(zeros(0, 2, 5, 5), zeros(3, 2, 3, 3))),
        *trained(R.gelu(x), x),
        *trained(R.dropout(x, 0.5), x),
        R.cross_entropy(x, ids, reduction="sum"),
    ]
    assert all((t == 0).all() for t in found) and R.cross_entropy(x, ids).isnan()


class Experts(nn.Module):
    """A mixture of experts, of which the last gets no row."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8))
            for _ in range(4)
        )

    def forward(self, x):
        weight, choice = self.gate(x).softmax(-1).topk(1)
        choice = choice.squeeze(1).clamp(max=2)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mask = choice == number
            rows = mask.nonzero().squeeze(1)
            y = y.index_add(0, rows, expert(x[rows]) * weight[rows])
            y[mask] = y[mask] + expert(x[mask]) * x[mask].mean(1, keepdim=True)
        return y


def test_a_mixture_with_an_idle_expert_trains():
    with reproducible():
        torch.manual_seed(0)
        model = Experts()
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        x, losses = torch.randn(12, 8), []
        for _ in range(10):
            loss = (model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        assert all((p.grad == 0).all() for p in model.experts[3].parameters())
