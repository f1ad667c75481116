"""What docs/any-model.md says of operators: what it gives to write instead is captured, and what
it says is refused is refused, by the words that stand there."""

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
    """A job, and a step of a small model with this loss."""
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
    "Bernoulli's numbers": lambda z, y: (z * torch.empty(4, 4).bernoulli_(0.5)).mean(),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_it_is_captured_with_its_bits(name, command, tmp_path):
    job, step, model, optimizer = step_of(tmp_path, CAPTURED[name])
    job.capture(step, model, optimizer)
    assert len(job.check(STEPS, command)) == STEPS


def _written(z, y):
    t = torch.zeros(4, 4)
    t[y] = z
    return t.mean()


REFUSED = {
    "Python reads a number that depends on the step's data": [
        lambda z, y: z.mean() * z.mean().item(),
        lambda z, y: z.mean() if z.mean() > 0 else -z.mean(),
        lambda z, y: (F.one_hot(y, 4) * z).mean(),
    ],
    "float64": [
        lambda z, y: F.binary_cross_entropy_with_logits(z[:, 0], (y > 1).float()),
        lambda z, y: F.softplus(z).mean(),
        lambda z, y: F.elu(z).mean(),
        lambda z, y: z.abs().pow(1.5).mean(),
        lambda z, y: z.cumsum(1).mean(),
    ],
    "bfloat16": [lambda z, y: z.to(torch.bfloat16).float().mean()],
    "random numbers of a step that are not": [
        lambda z, y: (z + torch.randn(4, 4)).mean(),
        lambda z, y: z[torch.randperm(4)][0].mean(),
    ],
    "sorting": [lambda z, y: z.topk(2).values.mean(), lambda z, y: z.sort().values.mean()],
    "the shape of what it reads differs": [lambda z, y: z[y > 1].mean()],
    "rounding to whole numbers": [lambda z, y: (z - z.round()).mean()],
    "arithmetic of integers that the library does not have": [
        lambda z, y: F.cross_entropy(z, (y * y).clamp(max=3))
    ],
    "writing at places that depend on the step's data": [_written],
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
        (lambda z, y: F.softplus(z).mean(), "softplus: .*; write -torch.log(torch.sigmoid(-x))"),
        (
            lambda z, y: z.mean() if z.mean().item() > 0 else -z.mean(),
            "item(): .*; compute both and choose",
        ),
        (lambda z, y: (z + torch.randn(4, 4)).mean(), "randn: .*; draw before"),
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
