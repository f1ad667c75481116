"""The advice on operators in docs/any-model.md: each alternative is captured, and each refusal is
refused with the words given there."""

import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

STEPS = 3
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.standard_normal((20, 8), "f4")
LABELS = RANDOM.integers(0, 4, 20)


def step_of(place, loss):
    """A job, and a training step of a small model with this loss."""
    job = repops.jobs.Job(place / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x, y = job.rows(ROWS, LABELS, batch=4)
    with job:
        torch.manual_seed(1)
        model = nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    return job, step, model, optimizer


CAPTURED = {
    "classes of data as ones": lambda z, y: (F.one_hot(y, 4) * z).mean(),
    "smoothed labels": lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1),
    "a sum of integers": lambda z, y: (z[:, 0] * (y > 1)).sum() / (1 + (y > 1).sum()),
    "a sum of integers along one dimension": lambda z, y: (
        z * torch.stack([y, y + 1], 1).sum(1, keepdim=True)
    ).mean(),
    "largest of windows": lambda z, y: F.max_pool1d(z[:, None], 2).mean(),
    "largest of padded windows": lambda z, y: F.max_pool2d(z.view(1, 2, 2, 4), 3, 2, 1).mean(),
    "largest of windows much wider than the image": lambda z, y: F.max_pool2d(
        z.view(2, 2, 2, 2), (3, 5), 1, (1, 2)
    ).mean(),
    "largest of windows wider than the image": lambda z, y: (
        F.max_pool2d(z.view(1, 2, 4, 2), 3, 2, 1).mean()
        + F.max_pool2d(z.view(1, 4, 2, 2), 3, 2, ceil_mode=True).mean()
    ),
    "softplus": lambda z, y: -torch.log(torch.sigmoid(-z)).mean(),
    "a power": lambda z, y: torch.exp(1.5 * torch.log(z.abs() + 0.1)).mean(),
    "one of n": lambda z, y: ((y[:, None] == torch.arange(4)).float() * z).mean(),
    "running sums": lambda z, y: (z @ torch.ones(4, 4).triu()).square().mean(),
    "a choice": lambda z, y: torch.where((y > 1)[:, None], z, torch.zeros(())).mean(),
    "integers by a table": lambda z, y: F.cross_entropy(z, torch.tensor([0, 1, 0, 1])[y]),
    "numbers that are compared": lambda z, y: z[(z > 0.5).long()[:, 0]].mean(),
    "sums at places": lambda z, y: torch.zeros(4, 4).index_add(0, y, z).square().mean(),
    "cosines of constants": lambda z, y: (z * torch.cos(torch.arange(4.0))).mean(),
    "autocorrelation": lambda z, y: (
        torch.fft.irfft(torch.fft.rfft(z, 6) * torch.conj(torch.fft.rfft(z.flip(1), 6)), 6)
        .square()
        .mean()
    ),
    "mixing by a transform": lambda z, y: torch.fft.fftn(z[None], dim=(1, 2)).real.square().mean(),
    "transforms of many lengths": lambda z, y: (
        torch.fft.fft(z.reshape(-1).repeat(17), 262).abs().mean()
        + torch.fft.irfft(torch.fft.rfft(z.reshape(-1).repeat(8)), 128).square().mean()
    ),
    "short-time transforms": lambda z, y: (
        torch.stft(z.reshape(1, 16), 8, 4, window=torch.hann_window(8), return_complex=True)
        .abs()
        .mean()
    ),
    "the kernel of a state-space model": lambda z, y: (
        torch.einsum(
            "hn,hnl->hl",
            ((z + 1j).exp() - 1) / (z - 2j),
            torch.exp((z - 1j)[..., None] * torch.arange(5)),
        )
        .real.square()
        .mean()
    ),
    "means of complex numbers": lambda z, y: torch.fft.fft(z).mean(1).abs().sum(),
    "complex numbers that move": lambda z, y: (
        torch.cat([torch.fft.fft(z), z * 1j, torch.complex(z, -z), z.to(torch.complex64)])
        .roll(1, 0)[1:]
        .conj()
        .clone()
        .mul_(2)
        .where(z.repeat(4, 1)[1:] > 0, 2 - 1j)[y]
        .imag.square()
        .mean()
    ),
    "Bernoulli's numbers": lambda z, y: (z * torch.empty(4, 4).bernoulli_(0.5)).mean(),
    "functions": lambda z, y: sum(
        f(z).mean()
        for f in (torch.sin, torch.cos, torch.tan, torch.atan, torch.sinh, torch.cosh, torch.asinh)
    ),
    "functions of a part of the line": lambda z, y: (
        sum(
            f(z.sigmoid() * 0.9).mean() + f(z.sigmoid() * 0.9 - 1).mean()
            for f in (torch.asin, torch.acos, torch.atanh, torch.log1p, torch.expm1, torch.exp2)
        )
        + (z.abs() + 0.5).log2().mean()
        + (z.abs() + 1.5).acosh().mean()
    ),
    "powers": lambda z, y: (
        (z.abs() ** 1.7).mean()
        + (2.0**z).mean()
        + (z.abs() ** z).mean()
        + torch.atan2(z, z + 1).mean()
    ),
    "softplus and its like": lambda z, y: (
        F.softplus(z).mean() + F.logsigmoid(z).mean() + F.elu(z).mean() + F.mish(z).mean()
    ),
    "two classes": lambda z, y: (
        F.binary_cross_entropy_with_logits(z[:, 0], (y > 1).float())
        + F.binary_cross_entropy(z[:, 1].sigmoid(), (y > 1).float())
    ),
    "running totals": lambda z, y: (
        z.cumsum(1).square().mean()
        + z.cumprod(0).mean()
        + z.logcumsumexp(1).mean()
        + z.prod(1).mean()
    ),
    "special functions": lambda z, y: (
        (torch.lgamma(z) + torch.erfc(z) + torch.sinc(z)).mean()
        + (torch.special.log_ndtr(z) + torch.logaddexp2(z, z + 1) + torch.hypot(z, z + 1)).mean()
        + (torch.special.entr(z.sigmoid()) + torch.special.xlog1py(z, z.sigmoid())).mean()
    ),
    "places of a grid": lambda z, y: sum(
        F.grid_sample(
            z.view(1, 1, 4, 4), z.view(1, 4, 2, 2), mode, padding, align_corners=False
        ).mean()
        for mode, padding in (("bilinear", "zeros"), ("bicubic", "reflection"))
    ),
    "medians": lambda z, y: (
        z.median(1)[0].mean() + z.kthvalue(2, 1)[0].mean() + z.nanmedian(0)[0].mean()
    ),
    "distances": lambda z, y: (
        torch.linalg.vector_norm(z, 3, 1).mean() + torch.cdist(z, z + 1, 1.5).mean() + F.pdist(z)[0]
    ),
    "random numbers": lambda z, y: (
        (z + torch.randn_like(z) + torch.rand(4, 4) + torch.empty(4, 4).uniform_(-1, 1))
        .square()
        .mean()
    ),
    "whole random numbers": lambda z, y: (
        z[torch.arange(4), torch.randint(0, 4, (4,))].square().mean()
        + z[torch.randperm(4)][0].mean()
    ),
    "draws by weights": lambda z, y: z.gather(
        1, torch.multinomial(z.softmax(1).detach(), 2)
    ).mean(),
    "orders": lambda z, y: (
        (z.sort(1)[0] * torch.arange(4.0)).mean()
        + z.topk(2, 1)[0].sum()
        + z.sort(0, descending=True)[0][0].mean()
        + z[y.argsort()][0].mean()
    ),
    "arithmetic of integers": lambda z, y: (
        z.gather(1, ((y * 3 + y // 2) % 4)[:, None]).mean()
        + (z * ((y & 3) | (y >> 1) ^ (y << 2)).float()).mean()
        + (z * (-y).abs().clamp(max=2)).mean()
        + (z * (y * y).cumsum(0)).mean()
    ),
    "integers of 8 and 16 bits": lambda z, y: sum(
        (z * f((y * 70).to(t))[:, None].float()).mean()
        for t in (torch.uint8, torch.int8, torch.int16)
        for f in (
            lambda n: n + n,
            lambda n: n * n * n,
            lambda n: 3 - n,
            lambda n: -n,
            lambda n: ~n,
            lambda n: n << 3,
            lambda n: (n - 100).abs() >> 1,
            lambda n: n.cumsum(0, dtype=n.dtype) + n.sum(dtype=n.dtype),
            lambda n: n // 3 + n % 5,
        )
    ),
    "whole numbers": lambda z, y: (z * ((z * 3).floor() + z.round() + z.ceil() + z.trunc())).mean(),
    "integers of floats": lambda z, y: z.gather(1, (z * 3).long().clamp(0, 3)).mean(),
    "writing at places": lambda z, y: _written(z, y).square().mean(),
    "scattering": lambda z, y: (
        torch.zeros(4, 6).scatter(1, y[:, None].expand(4, 4), z).square().mean()
        + torch.zeros(4, 4).scatter(1, y[:, None], z[:2, :1].repeat(2, 1)).square().mean()
        + torch.ones(5, 6).scatter_reduce(1, y[:, None].expand(4, 4), z, "amax").square().mean()
        + torch.ones(4, 4).scatter_reduce(0, y.expand(4, 4), z, "amin", include_self=False).mean()
    ),
    "counts": lambda z, y: (
        (z * torch.histc(y.float(), bins=4, min=0, max=3)).mean()
        + (z * F.one_hot(y, 4) * F.one_hot(z.argmax(1), num_classes=4)).mean()
        + (z * torch.bucketize(z, torch.tensor([-0.5, 0.0, 0.5]))).mean()
    ),
}


def _written(z, y):
    t = z.clone()
    t[torch.arange(4), y] = 1.0
    t[:, y] = z[:, :1].expand(4, 4)
    t[y] = z.flip(0)
    t[t > 2] = 0.5
    return t


@pytest.mark.parametrize("name", CAPTURED)
def test_it_is_captured_with_its_bits(name, command, tmp_path):
    job, step, model, optimizer = step_of(tmp_path, CAPTURED[name])
    job.capture(step, model, optimizer)
    assert len(job.check(STEPS, command)) == STEPS


REFUSED = {
    "Python reads a number that depends on the step's data": [
        lambda z, y: z.mean() * z.mean().item(),
        lambda z, y: z.mean() if z.mean() > 0 else -z.mean(),
    ],
    "float64": [lambda z, y: (z * (z.detach() // 0.3)).mean()],
    "bfloat16": [lambda z, y: z.to(torch.bfloat16).float().mean()],
    "it draws from torch's generator": [lambda z, y: (z * torch.empty(4, 4).random_(5)).mean()],
    "whole random numbers of more than 2^20": [
        lambda z, y: (z * torch.randint(1 << 21, (4, 4))).mean()
    ],
    "the shape of what it reads differs": [lambda z, y: z[y > 1].mean()],
    "products of integers": [lambda z, y: (z * y.prod()).mean()],
    "integers that may lie between": [lambda z, y: (z * ((z * 9).long() + 1)).mean()],
    "writing at places that depend on the step's data": [
        lambda z, y: (z * torch.zeros(4, dtype=torch.int64).index_add(0, y, y)).mean()
    ],
    "a clock": [lambda z, y: z.mean() * time.time()],
    "of `numpy.random`": [lambda z, y: z.mean() * np.random.rand()],
    "what it reads is another constant": [
        lambda z, y: (z * torch.from_numpy(1.0 * y.numpy()[:, None])).float().mean()
    ],
}


@pytest.mark.parametrize("words", REFUSED)
def test_it_is_refused_by_the_words_of_the_guide(words, top, tmp_path):
    guide = (top / "docs/any-model.md").read_text().split("## What is refused")[1]
    assert words.replace("`", "") in guide.replace("`", "")
    for loss in REFUSED[words]:
        job, step, model, optimizer = step_of(tmp_path, loss)
        with pytest.raises(repops.Error) as error:
            job.capture(step, model, optimizer)
        assert words in str(error.value)
        assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    "loss, words",
    [
        (
            lambda z, y: z.mean() if z.mean().item() > 0 else -z.mean(),
            "item(): .*; compute both and choose",
        ),
        (lambda z, y: (z * torch.empty(4, 4).random_(5)).mean(), "random_: .*; draw before"),
    ],
)
def test_an_operator_is_told_once_with_what_to_write(loss, words, tmp_path):
    job, step, model, optimizer = step_of(tmp_path, loss)
    with pytest.raises(repops.Error) as error:
        job.capture(step, model, optimizer)
    start, end = words.split(".*")
    at = f"  {__file__}:{loss.__code__.co_firstlineno}: {start}"
    lines = [line for line in str(error.value).split("\n") if line.startswith(at)]
    assert len(lines) == 1 and end in lines[0]
