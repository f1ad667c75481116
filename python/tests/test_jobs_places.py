"""Indices, masks and values that choose elements, in captured steps: after each step the program's
state is the block's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

STEPS = 2
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.standard_normal((8, 6), "f4")
IDS = RANDOM.integers(0, 9, (8, 5))


def step_of(place, loss):
    """A job, and a step that trains a table of 9 rows of 4, and a layer after it."""
    job = repops.jobs.Job(place / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x, ids = job.rows(ROWS, IDS, batch=3)
    with job:
        torch.manual_seed(1)
        model = nn.ModuleDict({"table": nn.Embedding(9, 4), "layer": nn.Linear(6, 4)})
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)

    def step():
        value = loss(model["table"].weight, model["layer"](x), ids)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    return job, step, model, optimizer


def bags(**how):
    """Arguments of the loss: t is the table, z the layer's output [3, 4], i the ids [3, 5]."""
    return lambda t, z, i: (F.embedding_bag(i, t, mode="max", **how) * z).mean()


OFFSETS = torch.tensor([0, 2, 2, 9])
CAPTURED = {
    "the largest of bags": bags(),
    "the largest of bags with padding": bags(padding_idx=3),
    "the largest of bags of several sizes": lambda t, z, i: (
        F.embedding_bag(i.reshape(-1), t, OFFSETS, mode="max")[:3] * z
    ).mean(),
    "sums and means of bags": lambda t, z, i: (
        (F.embedding_bag(i, t, mode="sum", per_sample_weights=i * 0.1) * z).mean()
        + (F.embedding_bag(i, t, padding_idx=3) * z).mean()
    ),
    "masked_scatter": lambda t, z, i: (t.masked_scatter(t > z.mean(), z.repeat(3, 1)) * t).mean(),
    "masked_scatter of rows": lambda t, z, i: (
        t[i].masked_scatter((i > 4).unsqueeze(-1), z.repeat(5, 1)).square().mean()
    ),
    "masked_scatter of integers": lambda t, z, i: (
        t[i.masked_scatter(i < 4, i.flip(1))] * z[:, :1, None]
    ).mean(),
    "isin": lambda t, z, i: (
        (t[i].sum(2) * torch.isin(i, torch.tensor([1, 5, 6]))).mean() + z.mean()
    ),
    "isin of what is learned": lambda t, z, i: (
        z * torch.isin(z, z[0], invert=True) + t.mean()
    ).mean(),
    "index_fill": lambda t, z, i: (t.index_fill(0, i[0], 2.0).square().mean() * z).mean(),
    "index_fill from the end": lambda t, z, i: (
        t.index_fill(1, torch.tensor([0, -1]), t.mean().detach()) * z.mean()
    ).mean(),
    "diagonals": lambda t, z, i: (torch.diagonal_copy(t, 1) * z.diagonal()).mean(),
    "the smallest": lambda t, z, i: (
        (t.min(1)[0].mean() * z.min(0)[0]).mean() + t[z.min(1)[1]].mean()
    ),
    "signs": lambda t, z, i: (t.sign().mean() * z * z.sgn()).mean(),
    "signs of integers": lambda t, z, i: (t[(i + -4).sign() + 1].mean() * z).mean(),
    "running sums of integers": lambda t, z, i: t[(i > 4).cumsum(1)].mean() * z.mean(),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_it_is_captured_with_its_bits(name, command, tmp_path):
    job, step, model, optimizer = step_of(tmp_path, CAPTURED[name])
    job.capture(step, model, optimizer)
    assert len(job.check(STEPS, command)) == STEPS
