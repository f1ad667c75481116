"""Every module of torch.nn and every optimizer of torch.optim: trained in the block, or refused."""

import inspect
import re
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from repops.torch import LeftoverError, reproducible

ROWS, LINE, IMAGE, VOLUME = (6, 8), (2, 4, 9), (2, 4, 8, 8), (2, 4, 6, 6, 6)

# For each shape of the input: modules, and their arguments.
OF_ONE = {
    ROWS: {
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid "
        "LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmin Softplus "
        "Softshrink Softsign Tanh Tanhshrink Dropout Flatten": (),
        "AlphaDropout FeatureAlphaDropout": (0.3,),
        "Threshold": (0.1, 0.2),
        "BatchNorm1d LayerNorm RMSNorm": (8,),
        "GroupNorm": (2, 8),
        "Linear GRUCell LSTMCell RNNCell": (8, 5),
        "LazyLinear": (5,),
        "LazyBatchNorm1d": (),
        "Unflatten": (1, (2, 4)),
    },
    LINE: {
        "AdaptiveAvgPool1d AdaptiveMaxPool1d": (4,),
        "AvgPool1d MaxPool1d": (3,),
        "CircularPad1d ReflectionPad1d ReplicationPad1d ZeroPad1d": (2,),
        "ConstantPad1d": (2, 0.5),
        "Conv1d ConvTranspose1d": (4, 3, 3),
        "LazyConv1d LazyConvTranspose1d": (3, 3),
        "Dropout1d LazyInstanceNorm1d": (),
        "InstanceNorm1d": (4,),
        "LPPool1d": (2, 3),
        "GRU LSTM RNN": (9, 5),
        "TransformerEncoderLayer": (9, 3, 8),
    },
    IMAGE: {
        "AdaptiveAvgPool2d AdaptiveMaxPool2d": (3,),
        "AvgPool2d MaxPool2d ChannelShuffle PixelShuffle PixelUnshuffle": (2,),
        "CircularPad2d ReflectionPad2d ReplicationPad2d ZeroPad2d": (2,),
        "ConstantPad2d": (2, 0.5),
        "FractionalMaxPool2d": (2, 3),
        "Conv2d ConvTranspose2d": (4, 3, 3),
        "LazyConv2d LazyConvTranspose2d": (3, 3),
        "BatchNorm2d InstanceNorm2d SyncBatchNorm": (4,),
        "LazyBatchNorm2d LazyInstanceNorm2d Dropout2d Softmax2d": (),
        "CrossMapLRN2d LocalResponseNorm Unfold UpsamplingBilinear2d UpsamplingNearest2d": (2,),
        "LPPool2d": (2, 3),
        "Upsample": (None, 1.7, "bicubic"),
    },
    VOLUME: {
        "AdaptiveAvgPool3d AdaptiveMaxPool3d": (3,),
        "AvgPool3d MaxPool3d": (2,),
        "FractionalMaxPool3d": (2, 3),
        "CircularPad3d ReflectionPad3d ReplicationPad3d ZeroPad3d": (2,),
        "ConstantPad3d": (2, 0.5),
        "Conv3d ConvTranspose3d": (4, 3, 3),
        "LazyConv3d LazyConvTranspose3d": (3, 3),
        "BatchNorm3d InstanceNorm3d": (4,),
        "LazyBatchNorm3d LazyInstanceNorm3d Dropout3d": (),
        "LPPool3d": (2, 3),
    },
    (2, 16, 9): {"Fold": ((4, 4), 2)},
}


def x(*shape):
    return torch.randn(shape, requires_grad=True)


def classes(*shape, most=8):
    return torch.arange(torch.Size(shape).numel()).reshape(shape) % most


def signs():
    return 1.0 - 2.0 * classes(6, 8, most=2)


def unpooled(dims):
    shape = (1, 2, *[4] * dims)
    y, places = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)(x(*shape))
    return getattr(nn, f"MaxUnpool{dims}d")(2)(y, places)


def tasks(name):
    return getattr(nn, name)()(x(6, 8), x(6, 8))


OTHERS = {
    **{n: tasks for n in "HuberLoss L1Loss MSELoss PairwiseDistance CosineSimilarity".split()},
    **{n: tasks for n in "PoissonNLLLoss SmoothL1Loss".split()},
    "AdaptiveLogSoftmaxWithLoss": lambda n: (
        nn.AdaptiveLogSoftmaxWithLoss(8, 9, [3, 6])(x(6, 8), classes(6)).loss
    ),
    "BCELoss": lambda n: nn.BCELoss()(x(6, 8).sigmoid(), x(6, 8).sigmoid()),
    "BCEWithLogitsLoss": lambda n: nn.BCEWithLogitsLoss()(x(6, 8), x(6, 8).sigmoid()),
    "Bilinear": lambda n: nn.Bilinear(8, 5, 3)(x(6, 8), x(6, 5)),
    "CTCLoss": lambda n: nn.CTCLoss()(
        x(7, 2, 5).log_softmax(2), classes(2, 3, most=4) + 1, classes(2) + 6, classes(2) + 2
    ),
    "CosineEmbeddingLoss": lambda n: nn.CosineEmbeddingLoss()(x(6, 8), x(6, 8), signs()[0, :6]),
    "CrossEntropyLoss": lambda n: nn.CrossEntropyLoss()(x(6, 8), classes(6)),
    "LinearCrossEntropyLoss": lambda n: nn.LinearCrossEntropyLoss(8, 5)(
        x(6, 8), classes(6, most=5)
    ),
    "Embedding": lambda n: nn.Embedding(8, 5)(classes(2, 3)),
    "EmbeddingBag": lambda n: torch.cat(
        [nn.EmbeddingBag(8, 5, mode=m)(classes(2, 3)) for m in ("sum", "mean", "max")]
    ),
    "GaussianNLLLoss": lambda n: nn.GaussianNLLLoss()(x(6, 8), x(6, 8), x(6, 8).exp()),
    "HingeEmbeddingLoss": lambda n: nn.HingeEmbeddingLoss()(x(6, 8), signs()),
    "KLDivLoss": lambda n: nn.KLDivLoss(reduction="sum")(
        x(6, 8).log_softmax(1), x(6, 8).softmax(1)
    ),
    "MarginRankingLoss": lambda n: nn.MarginRankingLoss()(x(6, 8), x(6, 8), signs()),
    "MaxUnpool1d": lambda n: unpooled(1),
    "MaxUnpool2d": lambda n: unpooled(2),
    "MaxUnpool3d": lambda n: unpooled(3),
    "MultiLabelMarginLoss": lambda n: nn.MultiLabelMarginLoss()(x(6, 8), classes(6, 8)),
    "MultiLabelSoftMarginLoss": lambda n: nn.MultiLabelSoftMarginLoss()(
        x(6, 8), signs() * 0.5 + 0.5
    ),
    "MultiMarginLoss": lambda n: nn.MultiMarginLoss()(x(6, 8), classes(6)),
    "MultiheadAttention": lambda n: nn.MultiheadAttention(8, 2)(*[x(6, 8)] * 3)[0],
    "NLLLoss": lambda n: nn.NLLLoss()(x(6, 8).log_softmax(1), classes(6)),
    "NLLLoss2d": lambda n: nn.NLLLoss2d()(x(2, 8, 3, 3).log_softmax(1), classes(2, 3, 3)),
    "SoftMarginLoss": lambda n: nn.SoftMarginLoss()(x(6, 8), signs()),
    "Transformer": lambda n: nn.Transformer(8, 2, 1, 1, 16)(x(6, 2, 8), x(6, 2, 8)),
    "TransformerDecoderLayer": lambda n: nn.TransformerDecoderLayer(8, 2, 16)(
        x(6, 2, 8), x(6, 2, 8)
    ),
    "TransformerDecoder": lambda n: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1)(
        x(6, 2, 8), x(6, 2, 8)
    ),
    "TransformerEncoder": lambda n: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1)(
        x(6, 2, 8)
    ),
    "TripletMarginLoss": lambda n: nn.TripletMarginLoss()(x(6, 8), x(6, 8), x(6, 8)),
    "TripletMarginWithDistanceLoss": lambda n: nn.TripletMarginWithDistanceLoss()(
        x(6, 8), x(6, 8), x(6, 8)
    ),
}

# These compute nothing, or need several machines.
BARE = set(
    """
    Container DataParallel Module ModuleDict ModuleList ParameterDict ParameterList RNNBase
    RNNCellBase Sequential
    """.split()
)


def cases():
    found = dict(OTHERS)
    for shape, modules in OF_ONE.items():
        for names, arguments in modules.items():
            for name in names.split():
                found[name] = lambda n, s=shape, a=arguments: getattr(nn, n)(*a)(x(*s))
    return found


CASES = cases()


def stepped(name):
    """A forward and a backward pass; the block must not leave an operator to torch."""
    torch.manual_seed(0)
    with warnings.catch_warnings(), reproducible():
        warnings.simplefilter("ignore")
        y = CASES[name](name)
        y = y[0] if isinstance(y, tuple) else y
        y.square().sum().backward()


def test_all_modules_are_here():
    every = {
        name
        for name, value in vars(nn).items()
        if inspect.isclass(value) and issubclass(value, nn.Module)
    }
    assert every <= set(CASES) | BARE


@pytest.mark.parametrize("name", sorted(n for n in CASES if hasattr(nn, n)))
def test_modules(name):
    stepped(name)


OPTIONS = {"SGD": {"lr": 0.1}}
# Refused optimizers, with a part of the reason.
REFUSED_OPTIMIZERS = {"Muon": "bfloat16"}


def optimizers():
    return sorted(
        name
        for name, value in vars(torch.optim).items()
        if inspect.isclass(value) and issubclass(value, torch.optim.Optimizer)
        if name != "Optimizer"
    )


def optimized(name):
    torch.manual_seed(0)
    with reproducible():
        sparse = name == "SparseAdam"
        table = nn.Embedding(6, 8, sparse=sparse)
        optimizer = getattr(torch.optim, name)(table.parameters(), **OPTIONS.get(name, {}))

        def loss():
            optimizer.zero_grad()
            value = table(classes(6, most=6)).square().sum()
            value.backward()
            return value

        for _ in range(2):
            loss()
            optimizer.step(loss if name == "LBFGS" else None)
        assert loss() < 48 * 3


def test_the_document_names_what_is_refused():
    text = (Path(__file__).parents[2] / "docs/python.md").read_text()
    sentence = re.search(r"`torch.optim` work \(.*?\), except\s(.*?),", text)
    assert set(re.findall("`(.*?)`", sentence[1])) == set(REFUSED_OPTIMIZERS)


@pytest.mark.parametrize("name", optimizers())
def test_optimizers(name):
    if name not in REFUSED_OPTIMIZERS:
        optimized(name)
        return
    with pytest.raises(LeftoverError, match=REFUSED_OPTIMIZERS[name]):
        optimized(name)
