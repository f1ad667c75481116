"""LSTM, GRU and RNN layers on a device, which torch would compute there by other operators."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import rnn

from repops.torch import Trace, diff, reproducible

HOW = {
    "plain": {},
    "no bias": {"bias": False},
    "batches first": {"batch_first": True},
    "two directions, layers and dropout": {
        "num_layers": 2,
        "bidirectional": True,
        "dropout": 0.5,
    },
}
LAYERS = {
    **{f"{kind}, {how}": (kind, HOW[how]) for kind in ("LSTM", "GRU") for how in HOW},
    "RNN": ("RNN", HOW["two directions, layers and dropout"]),
    "RNN of relu": ("RNN", {"nonlinearity": "relu"}),
    "LSTM, projected": ("LSTM", {"proj_size": 2, "num_layers": 2}),
    "LSTM, projected, no bias": ("LSTM", {"proj_size": 2, "bias": False}),
}


def _bytes(ts):
    return [t.detach().cpu().numpy().tobytes() for t in ts]


def _input(x, packed, first):
    if not packed:
        return x
    lengths = torch.tensor([4, 3, 2, 2, 1] if first else [5, 3, 3, 1])
    return rnn.pack_padded_sequence(x, lengths, batch_first=first)


def passed(place, kind, packed, how):
    """The results and gradients of a layer."""
    torch.manual_seed(1)
    layer, x = getattr(nn, kind)(3, 4, **how).to(place), torch.randn(5, 4, 3)
    x = x.to(place).requires_grad_()
    y, h = layer(_input(x, packed, how.get("batch_first", False)))
    results = [y.data if packed else y, *(h if kind == "LSTM" else [h])]
    sum((t * t).sum() for t in results).backward()
    return _bytes([*results, x.grad, *[p.grad for p in layer.parameters()]])


@pytest.mark.parametrize("packed", [False, True], ids=["one length", "packed"])
@pytest.mark.parametrize("what", LAYERS)
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_a_layer_has_the_bits_of_the_cpu(device, what, packed):
    kind, how = LAYERS[what]
    with reproducible():
        assert passed(device, kind, packed, how) == passed("cpu", kind, packed, how)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_a_cell_has_the_bits_of_the_cpu(device, kind):
    found = []
    with reproducible():
        for place in (device, "cpu"):
            torch.manual_seed(1)
            cell, x = getattr(nn, kind)(3, 4).to(place), torch.randn(6, 2, 3).to(place)
            h = None
            for step in x:
                h = cell(step, h)
            y = h[0] if kind == "LSTMCell" else h
            y.square().sum().backward()
            found.append(_bytes([y, *[p.grad for p in cell.parameters()]]))
    assert found[0] == found[1]


def test_traces_of_layers_are_compared(device):
    def traced(place):
        with reproducible(), Trace() as found:
            for kind in ("LSTM", "GRU"):
                passed(place, kind, False, HOW["two directions, layers and dropout"])
        return found

    assert diff(traced(device), traced("cpu")) is None


INFERRED = {
    "LSTM": lambda x: nn.LSTM(3, 4).to(x.device)(x)[0],
    "GRU": lambda x: nn.GRU(3, 4).to(x.device)(x)[0],
    "LSTM and dropout": lambda x: nn.LSTM(3, 4, 2, dropout=0.5).to(x.device)(x)[0],
    "GRU and dropout": lambda x: nn.GRU(3, 4, 2, dropout=0.5).to(x.device)(x)[0],
    "a cell": lambda x: nn.LSTMCell(3, 4).to(x.device)(x[0])[0],
    "another cell": lambda x: nn.GRUCell(3, 4).to(x.device)(x[0]),
    "packed": lambda x: nn.GRU(3, 4).to(x.device)(_input(x, True, False))[0].data,
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "a layer": lambda x: nn.TransformerEncoderLayer(3, 3, 8).to(x.device)(x),
    "norm": lambda x: nn.RMSNorm(3).to(x.device)(x),
    "the nearest": lambda x: F.interpolate(x.reshape(1, 1, -1), 77),
    "the nearest of an image": lambda x: F.interpolate(x.reshape(1, 5, 4, 3), scale_factor=1.7),
    "the nearest of a volume": lambda x: F.interpolate(
        x.reshape(1, 1, 5, 4, 3), (7, 3, 5), mode="nearest-exact"
    ),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("what", INFERRED)
def test_without_gradients_the_bits_are_those_of_the_cpu(device, what, mode):
    found = []
    with reproducible(), mode():
        for place in (device, "cpu"):
            torch.manual_seed(1)
            x = torch.randn(5, 4, 3).to(place)
            found.append(_bytes([INFERRED[what](x)]))
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("kind", ["nearest", "nearest-exact"])
def test_a_device_does_not_choose_the_nearest_elements(device, simulated, kind, mode):
    with reproducible(), mode():
        for dims in (1, 2, 3):
            F.interpolate(torch.ones(1, 2, *[4] * dims).to(device), scale_factor=1.7, mode=kind)
    assert not any("upsample" in name for name in simulated.theirs)


def test_a_sequence_of_no_times_is_refused(device):
    x = torch.zeros(0, 2, 3).to(device)
    with reproducible(), pytest.raises(RuntimeError, match="larger than 0"):
        nn.GRU(3, 4).to(device)(x)


TAKEN_APART = {
    "bilinear": (4, lambda x: F.interpolate(x, (7, 5), mode="bilinear")),
    "trilinear": (5, lambda x: F.interpolate(x, (7, 5, 3), mode="trilinear")),
    "bicubic": (4, lambda x: F.interpolate(x, (7, 5), mode="bicubic")),
    "padded": (4, lambda x: F.pad(x, (3, 2, 3, 1), mode="replicate")),
    "pooled": (5, lambda x: F.max_pool3d(x, 2, 1)),
}


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("what", TAKEN_APART)
def test_deterministic_algorithms_have_the_bits_of_the_cpu(device, deterministic, what):
    dims, compute = TAKEN_APART[what]
    found = []
    for place in (device, "cpu"):
        with reproducible():
            torch.manual_seed(2)
            x = torch.randn(2, 3, 4, 6, 3)[(...,) + (0,) * (5 - dims)].to(place).requires_grad_()
            y = compute(x)
            y.square().sum().backward()
        found.append(_bytes([y, x.grad]))
    assert found[0] == found[1]


def test_layers_are_told_that_algorithms_need_not_be_deterministic(deterministic):
    """In a block, and no one else: for CUDA, torch.nn.functional takes more apart than for simt."""
    asked = "torch.are_deterministic_algorithms_enabled()"
    with reproducible():
        assert not eval(asked, F.__dict__) and eval(asked)
    assert eval(asked, F.__dict__) and eval(asked)
