"""Many operators in captured steps: states of `verde run` are those of the block.

Several operators share a step, since a capture takes a second."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from capturing import trained_by
from torch import nn

import repops.jobs

STEPS, SIDE = 3, 8
ROWS = np.random.default_rng(0).standard_normal((20, SIDE), "f4")
NUMBERS = np.random.default_rng(1).integers(-7, 9, (20, SIDE))


def other(n):
    """n without zeros, flipped."""
    return torch.where(n == 0, 3, n).flip(1)


# Functions of integers n and floats x, both [4, 8].
OPERATORS = {
    "quotients": [
        lambda n, x: n // other(n),
        lambda n, x: n % other(n),
        lambda n, x: torch.fmod(n, other(n)),
        lambda n, x: torch.div(n, other(n), rounding_mode="trunc"),
        lambda n, x: n // -3 + n % -3,
    ],
    "bits": [
        lambda n, x: n << n.abs(),
        lambda n, x: n >> (n.abs() % 5),
        lambda n, x: n & (n * 3),
        lambda n, x: n | (n * 5),
        lambda n, x: n ^ (n - 4),
        lambda n, x: ~n,
    ],
    "sums": [
        lambda n, x: n.cumsum(0) - n.cumsum(1),
        lambda n, x: n.sum(0) + n.sum() + n.sum((0, 1)),
        lambda n, x: (n > 7).any(1).long() + (n > -8).all().long(),
        lambda n, x: torch.add(n, n.flip(0), alpha=3) - torch.sub(n, n, alpha=2),
        lambda n, x: torch.rsub(n, 5) + n.sign() + torch.relu(n),
    ],
    "extremes": [
        lambda n, x: torch.maximum(n, -n) + torch.minimum(n, n * n),
        lambda n, x: n.clamp(-3, 4) + n.clamp(min=n.flip(0)),
        lambda n, x: n.max(1)[0] + n.max(1)[1] + n.argmax(1),
        lambda n, x: n.min(0)[0] + n.min(0)[1] + n.argmin(),
        lambda n, x: n.amax(1) + (n > 2.5).sum(1),
    ],
    "orders": [
        lambda n, x: n.sort(1, descending=True)[0] * torch.arange(SIDE),
        lambda n, x: x.sort(1)[1] * torch.arange(SIDE),
        lambda n, x: n.topk(3, 1)[1] + n.topk(3, 1)[0],
        lambda n, x: x.median(1)[0],
        lambda n, x: torch.searchsorted(torch.tensor([-3, 0, 2]), n, right=True),
        lambda n, x: torch.bucketize(x, torch.tensor([-0.5, 0.5])),
    ],
    "places": [
        lambda n, x: torch.where(x > 0, n, -n) + n.gather(1, n.abs() % SIDE),
        lambda n, x: n[torch.arange(4)[:, None], n % SIDE],
        lambda n, x: torch.isin(n, torch.tensor([1, 3])),
        lambda n, x: F.one_hot(n.abs(), 10),
        lambda n, x: x.masked_fill(n > 3, 2.0) + x.masked_scatter(n > 3, x.flip(0)),
    ],
    "writing": [
        lambda n, x: torch.zeros(4, 9, dtype=torch.long).scatter(1, n.abs(), n),
        lambda n, x: torch.ones(4, 9, dtype=torch.long).scatter_add(1, n.abs(), n),
        lambda n, x: torch.ones(4, 9).scatter_reduce(1, n.abs(), x, "amax"),
        lambda n, x: torch.ones(4, 9).scatter_reduce(1, n.abs(), x, "mean", include_self=False),
        lambda n, x: torch.zeros(9, 8).index_put((n[:, 0].abs(),), x, accumulate=True),
        lambda n, x: torch.zeros(9, 8).index_put((n[:, 0].abs(),), x),
        lambda n, x: torch.zeros(9, 8).index_copy(0, n[:, 0].abs(), x),
    ],
    "floats": [
        lambda n, x: x.floor() + x.ceil() * 2 + x.round() * 3 + x.trunc() * 5 + x.frac(),
        lambda n, x: (x * 1e10).long().clamp(-5, 5) + (x * 200).to(torch.uint8),
        lambda n, x: (x * 90).to(torch.int8),
        lambda n, x: x.cumsum(1) + x.cumprod(0) + x.logcumsumexp(1) + x.prod(1, keepdim=True),
        lambda n, x: x.norm(dim=1) + x.norm(1, dim=1) + torch.linalg.vector_norm(x, 3, dim=1),
        lambda n, x: torch.lgamma(x.abs() + 0.5) + torch.erfc(x) + torch.special.log_ndtr(x),
    ],
    "draws": [
        lambda n, x: torch.rand_like(x) + torch.randn(4, SIDE) + torch.randint(3, 9, (4, SIDE)),
        lambda n, x: torch.randperm(SIDE) + torch.bernoulli(x.sigmoid()),
        lambda n, x: torch.empty(4, SIDE).exponential_() + torch.normal(x, 0.5),
        lambda n, x: torch.multinomial(x.abs() + 0.1, 3),
        lambda n, x: torch.multinomial(x.abs() + 0.1, 3, replacement=True),
    ],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_states_are_the_blocks(name, command, tmp_path):
    job = repops.jobs.Job(tmp_path / "job", seed=7, steps=STEPS, checkpoint_interval=1)
    x, n = job.rows(ROWS, NUMBERS, batch=4)
    with job:
        torch.manual_seed(1)
        model = nn.Linear(SIDE, SIDE)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def loss():
        weight = model(x).reshape(-1)[:1]
        return sum((weight * f(n, x).float().reshape(-1)).mean() for f in OPERATORS[name])

    trained_by(loss, job, model, optimizer)
