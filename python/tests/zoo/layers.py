"""Models built from torch only."""

import torch
import torch.nn.functional as F
from torch import nn

from .base import ids, model, numbers, pixels


@model()
def lstm():
    own = nn.ModuleDict(
        {
            "a": nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True, dropout=0.1),
            "b": nn.Linear(32, 5),
        }
    )
    return own, lambda i: F.cross_entropy(
        own.b(own.a(numbers(3, 7, 8, seed=i))[0][:, -1]), ids(3, seed=i, low=0, high=5)
    )


@model()
def packed_lstm():
    own = nn.LSTM(8, 16, batch_first=True)

    def loss(i):
        x = nn.utils.rnn.pack_padded_sequence(
            numbers(3, 7, 8, seed=i), torch.tensor([7, 5, 2]), batch_first=True
        )
        return nn.utils.rnn.pad_packed_sequence(own(x)[0], batch_first=True)[0].square().mean()

    return own, loss


@model()
def gru():
    own = nn.GRU(8, 16, 2)
    return own, lambda i: own(numbers(7, 3, 8, seed=i))[0].square().mean()


@model()
def rnn():
    own = nn.RNN(8, 16)
    return own, lambda i: own(numbers(7, 3, 8, seed=i))[0].square().mean()


@model()
def rnn_relu():
    own = nn.RNN(8, 16, nonlinearity="relu")
    return own, lambda i: own(numbers(7, 3, 8, seed=i))[0].square().mean()


@model()
def lstm_cells():
    own = nn.ModuleList([nn.LSTMCell(8, 16), nn.GRUCell(16, 16), nn.RNNCell(16, 4)])

    def loss(i):
        state, h, r = None, None, None
        for x in numbers(4, 3, 8, seed=i):
            state = own[0](x, state)
            h = own[1](state[0], h)
            r = own[2](h, r)
        return r.square().mean()

    return own, loss


@model()
def transformer():
    own = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    return (
        own,
        lambda i: (
            own(numbers(2, 6, 32, seed=i), numbers(2, 5, 32, seed=i), tgt_mask=mask).square().mean()
        ),
    )


@model()
def encoder_evaluated():
    """torch has a fast path for this."""
    own = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    pad = torch.zeros(2, 6, dtype=torch.bool)
    pad[1, 4:] = True

    def loss(i):
        own.eval()
        with torch.no_grad():
            y = own(numbers(2, 6, 32, seed=i), src_key_padding_mask=pad)
        own.train()
        return (own(numbers(2, 6, 32, seed=i)) - y.nan_to_num()).square().mean()

    return own, loss


@model()
def unet():
    def two(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.Mish())

    own = nn.ModuleList(
        [
            two(3, 8),
            two(8, 16),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
            two(24, 8),
            nn.Conv2d(8, 1, 1),
        ]
    )

    def loss(i):
        a = own[0](pixels(i))
        b = own[1](F.max_pool2d(a, 2))
        y = own[4](own[3](torch.cat([a, own[2](b)], 1)))
        y = F.interpolate(y, size=(20, 27), mode="bicubic", antialias=False)
        return F.binary_cross_entropy_with_logits(
            y, ids(2, 1, 20, 27, seed=i, low=0, high=2).float(), pos_weight=torch.tensor(2.0)
        )

    return own, loss


@model()
def vae():
    own = nn.ModuleList([nn.Linear(16, 8), nn.Linear(4, 16)])

    def loss(i):
        x = numbers(5, 16, seed=i)
        mean, log = own[0](x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log).exp()
        return (
            F.binary_cross_entropy(own[1](z).sigmoid(), (x > 0).float())
            - 0.5 * (1 + log - mean**2 - log.exp()).mean()
        )

    return own, loss


@model()
def gan():
    own = nn.Sequential(
        nn.ConvTranspose2d(4, 8, 4, 2, 1),
        nn.InstanceNorm2d(8, affine=True),
        nn.LeakyReLU(0.2),
        nn.utils.spectral_norm(nn.Conv2d(8, 3, 3)),
        nn.Tanh(),
        nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 1, 3)),
    )
    return own, lambda i: F.softplus(own(numbers(2, 4, 6, 6, seed=i))).mean()


@model()
def ppo():
    own = nn.ModuleList(
        [
            nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)),
            nn.Linear(6, 2),
            nn.Linear(6, 1),
        ]
    )

    def loss(i):
        x = numbers(8, 6, seed=i)
        choice = torch.distributions.Categorical(logits=own[0](x), validate_args=False)
        action = choice.sample()
        move = torch.distributions.Normal(own[1](x), 0.5, validate_args=False)
        taken = move.rsample()
        ratio = (choice.log_prob(action) - choice.log_prob(action).detach()).exp()
        returns = torch.cumsum(numbers(8, seed=i), 0)
        value = F.smooth_l1_loss(own[2](x)[:, 0], returns)
        return (
            -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean()
            + value
            - 0.01 * choice.entropy().mean()
            + move.log_prob(taken).mean()
        )

    return own, loss


def _scaled(optimizer):
    """Steps with a GradScaler, one of which is skipped."""

    def build():
        own = nn.Linear(6, 3)
        inner = optimizer(own.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

        def loss(i):
            for j in range(3):
                value = own(numbers(5, 6, seed=i + j)).square().mean()
                scaler.scale(value * (float("inf") if j == 1 else 1.0)).backward()
                scaler.step(inner)
                scaler.update()
                inner.zero_grad()
            return own(numbers(5, 6, seed=i)).square().mean()

        return own, loss

    return build


model(name="scaler")(_scaled(lambda p: torch.optim.SGD(p, 0.1, foreach=True)))
model(name="scaler_fused")(_scaled(lambda p: torch.optim.AdamW(p, 0.1, fused=True)))


@model()
def checkpointed():
    from torch.utils.checkpoint import checkpoint

    own = nn.ModuleList(
        nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.1)) for _ in range(3)
    )

    def loss(i):
        x = numbers(4, 8, seed=i).requires_grad_()
        for part in own:
            x = checkpoint(part, x, use_reentrant=False)
        return x.square().mean()

    return own, loss


@model()
def compiled():
    own = nn.Sequential(nn.Linear(8, 8), nn.GELU())
    function = torch.compile(own)
    return own, lambda i: function(numbers(4, 8, seed=i)).square().mean()


@model()
def scheduled():
    """Schedulers that set Python floats as rates."""
    own = nn.Linear(8, 3)
    inner = torch.optim.SGD(own.parameters(), 0.1, momentum=0.9)
    last = torch.optim.lr_scheduler
    plans = [
        last.OneCycleLR(inner, 0.1, 20),
        last.CosineAnnealingWarmRestarts(inner, 5),
        last.StepLR(inner, 2),
        last.ReduceLROnPlateau(inner),
    ]

    def loss(i):
        for j, plan in enumerate(plans):
            value = own(numbers(4, 8, seed=i + j)).square().mean()
            inner.zero_grad()
            value.backward()
            inner.step()
            plan.step(*([value.item()] if j == 3 else []))
        return own(numbers(4, 8, seed=i)).square().mean()

    return own, loss


@model()
def metric_learning():
    """ArcFace's angular loss, also with averaged weights."""
    own = nn.Linear(8, 4)
    mean = torch.optim.swa_utils.AveragedModel(
        own, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )

    mean.update_parameters(own)  # the first update copies

    def loss(i):
        x, w = F.normalize(numbers(5, 8, seed=i)), F.normalize(own.weight)
        angle = torch.acos((x @ w.t()).clamp(-0.999, 0.999))
        mean.update_parameters(own)
        return F.cross_entropy((angle + 0.1).cos() * 8, ids(5, seed=i, low=0, high=4)) + F.mse_loss(
            own(x), mean(x).detach()
        )

    loss.others = {"mean": mean}
    return own, loss
