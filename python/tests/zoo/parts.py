"""Losses, activations and optimizers, each with a small network."""

import torch
import torch.nn.functional as F
from torch import nn

from .base import ids, model, numbers

LOSSES = {
    "l1": lambda x, y: F.l1_loss(x, y),
    "smooth_l1": lambda x, y: F.smooth_l1_loss(x, y, beta=0.5),
    "huber": lambda x, y: F.huber_loss(x, y, delta=0.7),
    "kl_div": lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
    "kl_div_log": lambda x, y: F.kl_div(
        x.log_softmax(1), y.log_softmax(1), log_target=True, reduction="batchmean"
    ),
    "bce_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "bce": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "ctc": lambda x, y: F.ctc_loss(
        x.reshape(6, 2, 4).log_softmax(2),
        ids(2, 3, low=1, high=4),
        torch.tensor([6, 5]),
        torch.tensor([3, 2]),
    ),
    "cosine": lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(len(x))),
    "triplet": lambda x, y: F.triplet_margin_loss(x, y, y.flip(0)),
    "margin": lambda x, y: F.margin_ranking_loss(x[:, 0], y[:, 0], y[:, 1].sign()),
    "multilabel": lambda x, y: F.multilabel_soft_margin_loss(x, (y > 0).float()),
    "soft_margin": lambda x, y: F.soft_margin_loss(x, y.sign()),
    "hinge": lambda x, y: F.hinge_embedding_loss(x, y.sign()),
    "poisson": lambda x, y: F.poisson_nll_loss(x, y.abs()),
    "gaussian": lambda x, y: F.gaussian_nll_loss(x, y, y.abs()),
    "smoothing": lambda x, y: F.cross_entropy(
        x, y.argmax(1), label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 3.0, 4.0])
    ),
    "soft_targets": lambda x, y: F.cross_entropy(x, y.softmax(1)),
    "cdist": lambda x, y: torch.cdist(x, y).mean(),
    "pairwise": lambda x, y: F.pairwise_distance(x, y).mean(),
}
ACTIVATIONS = [
    nn.Mish(),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.ELU(),
    nn.SELU(),
    nn.CELU(),
    nn.Softplus(),
    nn.Softsign(),
    nn.Hardtanh(),
    nn.ReLU6(),
    nn.LogSigmoid(),
    nn.Tanhshrink(),
    nn.Softshrink(),
    nn.Hardshrink(),
    nn.GLU(),
    nn.PReLU(),
    nn.Threshold(0.1, 0.0),
    nn.Softmin(1),
    nn.Dropout1d(0.2),
    nn.AlphaDropout(0.2),
    nn.LogSoftmax(1),
]


def _small(name, function):
    @model(name=name)
    def build():
        own = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
        return own, lambda i: function(own(numbers(12, 6, seed=i)), numbers(12, 4, seed=i + 9))


for _name, _loss in LOSSES.items():
    _small("loss_" + _name, _loss)
for _module in ACTIVATIONS:
    _small("activation_" + type(_module).__name__, lambda x, y, m=_module: m(x).square().mean())


@model()
def special_values():
    """The weights do not matter: the functions' values are part of the state."""
    own = nn.Linear(1, 1)
    own.register_buffer("seen", torch.zeros(0))
    limits = [
        0.0,
        -0.0,
        torch.inf,
        -torch.inf,
        torch.nan,
        1e-42,
        -1e-42,
        3e38,
        0.5,
        -0.5,
        1.0,
        -3.0,
    ]
    x = torch.cat([torch.tensor(limits * 3), numbers(1003)])

    def loss(i):
        y = x.flip(0) + 0.5
        results = [
            m(x)
            for m in ACTIVATIONS
            if not isinstance(m, (nn.GLU, nn.Softmin, nn.LogSoftmax, nn.Dropout1d))
        ]
        results += [
            x.atan(),
            x.asin(),
            x.acos(),
            x.asinh(),
            x.acosh(),
            x.atanh(),
            x.logit(1e-6),
            x.frac(),
        ]
        results += [
            torch.atan2(x, y),
            torch.logaddexp(x, y),
            torch.xlogy(x, y),
            x.nan_to_num().clamp(-9, 9) % 0.7,
            x.nan_to_num().clamp(-9, 9).fmod(0.7),
            x // 0.7,
        ]
        results += [
            x.cumsum(0),
            x[-1000:].cumprod(0),
            x[-9:].prod()[None],
            x.nansum()[None],
            torch.histc(x[-900:], 7),
        ]
        seen = torch.cat([r.detach() for r in results])
        own.seen = torch.where(seen != seen, torch.nan, seen)
        return own(x[-1:]).sum()

    return own, loss


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.01),
    "sgd_damped": lambda p: torch.optim.SGD(p, 0.1, 0.9, dampening=0.1, fused=True),
    "adam": lambda p: torch.optim.Adam(p, 0.01),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
    "adamw_amsgrad": lambda p: torch.optim.AdamW(p, 0.01, fused=True, amsgrad=True),
    "adamw_amsgrad_foreach": lambda p: torch.optim.AdamW(p, 0.01, foreach=True, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.9, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.01),
    "adagrad_fused": lambda p: torch.optim.Adagrad(p, 0.01, fused=True),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p),
    "nadam": lambda p: torch.optim.NAdam(p),
    "radam": lambda p: torch.optim.RAdam(p),
    "rprop": lambda p: torch.optim.Rprop(p),
    "asgd": lambda p: torch.optim.ASGD(p),
    "adafactor": lambda p: torch.optim.Adafactor(p),
}
