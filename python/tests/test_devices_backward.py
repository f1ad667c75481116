"""The order in which gradients are added on a device, and passes through both memories."""

import threading

import pytest
import torch
from torch.nn import functional as F

import repops
from repops.torch import reproducible


def _second(place):
    """A second derivative whose gradients have several terms each."""
    x = (torch.rand(10, 5) + 0.5).to(place).requires_grad_()
    e = torch.rand(()).to(place).requires_grad_()
    first = torch.autograd.grad((x**e).sum(), [x, e], create_graph=True)
    weights = [torch.linspace(-1, 1, 50).reshape(10, 5).to(place), torch.tensor(0.7).to(place)]
    return torch.autograd.grad(sum((g * w).sum() for g, w in zip(first, weights)), [x, e])


def _penalty(place):
    """The penalty of a critic's gradient, which uses its input three times."""
    x, w = (torch.randn(n, 5).to(place).requires_grad_() for n in (8, 5))
    h = (x @ w).tanh() * x + x.sigmoid() @ w
    (g,) = torch.autograd.grad(h.sum(), x, create_graph=True)
    ((g.norm(2, 1) - 1) ** 2).mean().backward()
    return w.grad, x.grad


def _both_memories(place):
    x = torch.randn(50).requires_grad_()
    sums = [
        (x * (0.1 + i)).tanh().sum().to(place) + (x.to(place) * (0.3 + i)).sum() for i in range(4)
    ]
    sum(sums).backward()
    return [x.grad]


@pytest.mark.parametrize("derive", [_second, _penalty, _both_memories])
def test_gradients_are_added_in_the_order_of_the_cpu(device, derive):
    found = set()
    for place in ("cpu", *[device] * 5):
        with reproducible():
            torch.manual_seed(0)
            found.add(tuple(g.cpu().numpy().tobytes() for g in derive(place)))
    assert len(found) == 1


@pytest.mark.filterwarnings("ignore:a thread that starts in the block")
def test_a_pass_runs_in_the_thread_that_asks_for_it(device):
    """In a block, in one within it, after an exception in that, and in no other thread's pass."""
    inside = torch._C._is_multithreading_enabled
    x = torch.ones(2).to(device).requires_grad_()
    threads = []

    def ask():
        y = x * 2
        y.register_hook(lambda g: threads.append(threading.get_ident()))
        y.sum().backward()

    assert inside()
    with reproducible():
        ask()
        with pytest.raises(KeyError), reproducible():
            raise KeyError
        ask()
        seen = []
        other = threading.Thread(target=lambda: seen.append(inside()))
        other.start()
        other.join()
    assert threads == [threading.get_ident()] * 2
    assert seen == [True] and inside()


OF_BLOCKS = {
    "linear_backward": lambda x: F.linear(x, x).sum(),
    "cross_entropy_backward": lambda x: F.cross_entropy(x, x[0].long()),
}


@pytest.mark.parametrize("name", OF_BLOCKS)
def test_a_pass_outside_of_the_graphs_block_is_told_that_it_needs_one(device, simulated, name):
    with reproducible():
        x = torch.ones(2, 2).to(device).requires_grad_()
        y = OF_BLOCKS[name](x)
    with pytest.raises(repops.Error, match=f"{name}: .* is on simt:0; expected .* or a block"):
        y.backward()
