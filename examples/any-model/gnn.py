"""A graph network learns which of two groups each node of a graph belongs to, as a job that runs
without Python.

Usage: gnn.py FOLDER

The edges never change, so they are buffers and become part of the program. Messages to the nodes
are added up by index_add, since a program has no other way to write at places that depend on data.
See docs/any-model.md for what to do with FOLDER.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

NODES, FEATURES, WIDTH, STEPS = 40, 8, 16, 100


def graph():
    """Returns edges [2, E], most of them inside a group, the nodes' features, and their groups."""
    random = np.random.default_rng(1)
    group = random.integers(0, 2, NODES)
    alike = group[:, None] == group[None]
    edges = np.argwhere(random.random((NODES, NODES)) < np.where(alike, 0.2, 0.03)).T
    features = random.normal(size=(NODES, FEATURES)) + 0.3 * group[:, None]
    return edges, features.astype(np.float32), group


class Layer(nn.Module):
    """Combines each node's own values with the mean of its neighbours' values."""

    def __init__(self, inputs, outputs, edges):
        super().__init__()
        self.own, self.others = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)
        self.register_buffer("edges", edges)
        count = torch.bincount(edges[1], minlength=NODES).clamp(min=1)
        self.register_buffer("share", 1 / count.float().unsqueeze(1))

    def forward(self, x):
        sent = x[self.edges[0]]
        got = torch.zeros(NODES, x.shape[1]).index_add(0, self.edges[1], sent)
        return self.own(x) + self.others(got * self.share)


class Network(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.first, self.second = Layer(FEATURES, WIDTH, edges), Layer(WIDTH, 2, edges)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


if len(sys.argv) < 2:
    sys.exit(__doc__)
edges, features, group = graph()
job = repops.jobs.Job(sys.argv[1], seed=7, steps=STEPS, checkpoint_interval=25)
# Each step learns from the groups of some nodes; the others' groups are hidden.
known = job.rows(np.arange(NODES), batch=10)
x, y = job.constant(torch.from_numpy(features)), job.constant(torch.from_numpy(group))
with job:
    torch.manual_seed(1)
    model = Network(torch.from_numpy(edges))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)

    def step():
        loss = F.cross_entropy(model(x)[known], y[known])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss


print("program", job.capture(step, model, optimizer))
print("losses of 3 steps, the same in PyTorch and in verde:", job.check(steps=3))
