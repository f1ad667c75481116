"""Grouped products whose group sizes differ from step to step: a program has the block's bits."""

import numpy as np
import pytest
import torch
from torch import nn

import repops.jobs
import repops.torch

STEPS, ROWS, GROUPS, WIDTH, OUT = 3, 600, 4, 8, 16
# One group is empty, one is longer than a chunk of a product, and some rows are in no group.
ENDS = np.array([[300, 300, 307, 597], [0, 256, 257, 600], [1, 2, 600, 600]], "<i4")
SPOILED = (1, 256)  # a step, and a row that is the only one of group 2 there


def numbers(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, "f4")


class Groups(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.columns = columns
        self.w = nn.Parameter(torch.from_numpy(numbers(GROUPS, WIDTH, OUT)))
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x, ends):
        x = x * self.scale
        if self.columns:
            w = self.w.transpose(1, 2).contiguous()
            return torch._grouped_mm(w, x.t().contiguous(), offs=ends).t()
        return torch._grouped_mm(x, self.w, offs=ends)


@pytest.mark.parametrize("columns", [False, True])
def test_groups_of_any_size(tmp_path, command, columns):
    x = numbers(STEPS, ROWS, WIDTH)
    x[..., 0] = -1e-30  # gives products of -0
    x[..., 1][x[..., 1] < 0] = -0.0
    x[SPOILED] = np.nan
    job = repops.jobs.Job(tmp_path / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x, ends = job.table(x), job.table(torch.from_numpy(ENDS))
    factors = job.constant(torch.from_numpy(numbers(OUT)))
    factors[0] = 1e-30
    with job:
        model = Groups(columns)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        loss = (model(x, ends) * factors).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    job.capture(step, model, optimizer)
    losses = job.check(STEPS, command)
    assert np.isfinite(losses[0]) and np.isnan(losses[1])
    assert not {"index_select", "nonzero"} & {
        n.operator.name for n in job._captured.program.step.nodes
    }


def test_a_foreign_row_that_is_no_number_does_not_count():
    """This is tested in the block. A program has the same bits."""
    x = torch.from_numpy(numbers(ROWS, WIDTH))
    w = torch.from_numpy(numbers(GROUPS, WIDTH, OUT)).requires_grad_()
    x[256] = np.nan
    with repops.torch.reproducible():
        torch._grouped_mm(x, w, offs=torch.from_numpy(ENDS[1])).sum().backward()
    assert torch.isnan(w.grad).flatten(1).all(1).tolist() == [False, False, True, False]
    assert torch.isfinite(w.grad[[0, 1, 3]]).all() and (w.grad[0] == 0).all()
