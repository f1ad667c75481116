"""Processes that train one model with torch.distributed."""

import sys

import pytest
import torch
from conftest import called

from repops.torch import LeftoverError, reproducible

PROGRAM = """
import multiprocessing, sys, torch, torch.distributed as dist, repops.torch
SIZE, folder = 3, sys.argv[1]

def gradients(model, rank):
    x = torch.randn(4, 9, generator=torch.Generator().manual_seed(rank))
    model.zero_grad()
    model(x).square().mean().backward()
    return [p.grad.clone() for p in model.parameters()]

def train(rank):
    dist.init_process_group("gloo", init_method=f"file://{folder}/m", rank=rank, world_size=SIZE)
    with repops.torch.reproducible(threads=1):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(9, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
        parts = [gradients(model, i) for i in range(SIZE)]
        shared = gradients(torch.nn.parallel.DistributedDataParallel(model), rank)
        for own, (a, b, c) in zip(shared, zip(*parts)):
            assert torch.equal(own, (a * (1 / SIZE) + b * (1 / SIZE)) + c * (1 / SIZE))
        lowest = torch.tensor([float(rank)])
        dist.all_reduce(lowest, dist.ReduceOp.MIN)
        assert lowest.item() == 0
        try:
            dist.reduce(lowest, 0)
        except repops.torch.LeftoverError as error:
            assert "c10d.reduce_" in str(error)
            sys.stdout.write("trained\\n")

with repops.torch.reproducible(threads=1):
    pass  # what a block imports is then there in all processes
ways = multiprocessing.get_context("fork")
processes = [ways.Process(target=train, args=(rank,)) for rank in range(SIZE)]
[p.start() for p in processes]
[p.join() for p in processes]
sys.exit(any(p.exitcode for p in processes))
"""


TOLD = hasattr(torch.distributed.ReduceOp, "unbox")


@pytest.mark.skipif(not TOLD, reason="this PyTorch does not tell which reduction is asked for")
def test_gradients_of_processes_are_added_in_the_order_of_their_ranks(tmp_path):
    assert called(sys.executable, "-c", PROGRAM, tmp_path).count("trained") == 3


@pytest.mark.skipif(TOLD, reason="this PyTorch tells which reduction is asked for")
def test_unknown_reductions_are_refused(tmp_path):
    place = f"file://{tmp_path}/m"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    try:
        with reproducible(), pytest.raises(LeftoverError, match="which reduction it is"):
            torch.distributed.all_reduce(torch.ones(2))
    finally:
        torch.distributed.destroy_process_group()
