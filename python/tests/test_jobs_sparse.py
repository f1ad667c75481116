"""Graph networks that multiply by a sparse adjacency, as jobs."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import repops.jobs

STEPS, NODES = 3, 12
RANDOM = np.random.default_rng(4)
EDGES = torch.from_numpy(RANDOM.integers(0, NODES, (2, 30)))
WEIGHTS = torch.from_numpy(RANDOM.random(30, "f4"))
X = torch.from_numpy(RANDOM.standard_normal((NODES, 5), "f4"))
Y = torch.arange(NODES) % 3


def adjacency(weights=WEIGHTS):
    return torch.sparse_coo_tensor(EDGES, weights, (NODES, NODES))


class Layer(nn.Module):
    def __init__(self, size, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, out) * 0.3)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(5, 8), Layer(8, 3)

    def forward(self, x, adj):
        x = torch.dropout(self.first(x, adj).relu(), 0.3, True)
        return self.second(x, adj).log_softmax(1)


def captured(folder, model, adjacent, declare):
    job = repops.jobs.Job(folder / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x, y = job.constant(X), job.constant(Y)
    with job:
        torch.manual_seed(1)
        own = model()
        optimizer = torch.optim.Adam(own.parameters(), lr=0.01, fused=True)
        declare(job, own)

    def step():
        loss = nn.functional.nll_loss(own(x, adjacent(own)), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    job.capture(step, own, optimizer)
    return job


class WithWeights(GCN):
    def __init__(self):
        super().__init__()
        self.edges = nn.Parameter(WEIGHTS.clone())


ADJ = adjacency()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # CSR is in beta state
    CSR = adjacency().coalesce().to_sparse_csr()
KINDS = {
    "a constant": (GCN, lambda m: ADJ, lambda job, m: job.constant(ADJ)),
    "a buffer by CSR": (GCN, lambda m: m.adj, lambda job, m: m.register_buffer("adj", CSR)),
    "weights that are trained": (
        WithWeights,
        lambda m: adjacency(m.edges.sigmoid()).coalesce(),
        lambda job, m: job.constant(EDGES),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_it_is_captured_with_its_bits(name, command, tmp_path):
    job = captured(tmp_path, *KINDS[name])
    assert len(job.check(STEPS, command)) == STEPS


def test_an_adjacency_that_is_not_declared_is_refused(tmp_path):
    with pytest.raises(repops.jobs.CaptureError, match="from outside of the step"):
        captured(tmp_path, GCN, lambda m: ADJ, lambda job, m: None)


def test_what_depends_on_the_data_and_is_sparse_is_refused(tmp_path):
    def found(m):
        return (m.first.weight @ m.first.weight.t()).to_sparse()[:, :1] @ torch.ones(1, 5)

    with pytest.raises(repops.Error, match="sparse"):
        captured(tmp_path, GCN, found, lambda job, m: None)


def test_a_sparse_parameter_is_refused_by_its_name(tmp_path):
    def declare(job, m):
        m.adj = nn.Parameter(adjacency())

    with pytest.raises(repops.Error, match="adj is sparse; expected a dense parameter"):
        captured(tmp_path, GCN, lambda m: m.adj, declare)
