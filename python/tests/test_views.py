"""Views with gaps, permuted dimensions, or repeated elements."""

import pytest
import torch
import torch.nn.functional as F

import repops
from repops.torch import LeftoverError, _call, functional, reproducible


def gaps(t):
    """The same numbers, in every second element of memory."""
    return torch.stack([t, t + 1], -1)[..., 0]


def reversed_order(t):
    return t.permute(*reversed(range(t.dim()))).contiguous().permute(*reversed(range(t.dim())))


def shifted(t):
    """The same numbers, in rows that are one element wider in memory."""
    return F.pad(t, (0, 1))[..., :-1]


def numbers(*shape):
    return torch.arange(torch.Size(shape).numel()).reshape(shape) * 7 % 11 / 8.0


def test_an_operator_is_given_dense_copies():
    a, b = numbers(6, 5), numbers(5, 3)
    expected = _call.run("matmul", (0, 0, _call.ONE, 256, 0), (a, b))
    for view in (gaps, reversed_order, shifted):
        views = (view(a), view(b))
        assert not views[0].is_contiguous()
        assert torch.equal(_call.run("matmul", (0, 0, _call.ONE, 256, 0), views), expected)


def test_an_output_that_has_gaps_is_refused():
    with pytest.raises(repops.Error, match="side by side"):
        _call.run("exp", (), (numbers(6),), out=gaps(numbers(6)))


def test_a_fused_function_is_given_dense_tensors_of_float32():
    x = numbers(4, 6)
    with pytest.raises(repops.Error, match="not dense"):
        _call.fused(_call.lib.ro_softmax, 4, 6, gaps(x), x, x, x)
    with pytest.raises(_call.Leftover, match="bfloat16"):
        _call.fused(_call.lib.ro_softmax, 4, 6, x.bfloat16(), x, x, x)


LAYERS = {
    "linear": (lambda x, w, b: F.linear(x, w, b), (3, 6), (4, 6), (4,)),
    "linear of ours": (functional.linear, (3, 6), (4, 6), (4,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (3, 6), (6,), (6,)),
    "layer_norm of ours": (functional.layer_norm, (3, 6), (6,), (6,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (6,), w), (3, 6), (6,)),
    "rms_norm of ours": (functional.rms_norm, (3, 6), (6,)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (5, 6), (6,), (6,)),
    "batch_norm of means": (
        lambda x, m, v: F.batch_norm(x, m.detach(), v.detach()),
        (5, 6),
        (6,),
        (6,),
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 6, 4), (6,), (6,)),
    "conv2d": (F.conv2d, (1, 2, 5, 5), (3, 2, 3, 3), (3,)),
    "conv2d of ours": (functional.conv2d, (1, 2, 5, 5), (3, 2, 3, 3), (3,)),
    "conv2d of one tap": (F.conv2d, (1, 2, 5, 5), (3, 2, 1, 1)),
    "conv_transpose2d": (F.conv_transpose2d, (1, 2, 5, 5), (2, 3, 3, 3), (3,)),
    "conv1d": (F.conv1d, (1, 2, 5), (3, 2, 3), (3,)),
    "attention of ours": (functional.attention, *[(1, 2, 5, 4)] * 3),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (1, 2, 6, 6)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (1, 2, 6, 6)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 4), (1, 2, 6, 6)),
    "interpolate": (lambda x: F.interpolate(x, (3, 9), mode="bilinear"), (1, 2, 6, 6)),
    "softmax": (lambda x: F.softmax(x, 1), (3, 6, 2)),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([1, 2, 0])), (3, 6)),
    "cross_entropy of ours": (
        lambda x: functional.cross_entropy(x, torch.tensor([1, 2, 0])),
        (3, 6),
    ),
    "gelu": (F.gelu, (3, 6)),
    "mse_loss": (F.mse_loss, (3, 6), (3, 6)),
    "embedding": (lambda t: F.embedding(torch.tensor([[1, 1], [0, 2]]).t(), t), (3, 6)),
    "sum": (lambda x: x.sum((0, 2)), (3, 6, 2)),
    "norm": (lambda x: x.norm(), (3, 6, 2)),
    "weight_norm": (lambda v, g: torch._weight_norm(v, g, 0), (3, 6), (3, 1)),
    "index_add": (lambda x, y: x.index_add(0, torch.tensor([1, 1]), y), (3, 6), (2, 6)),
    "matmul": (torch.matmul, (2, 3, 6), (6, 4)),
    "logsumexp": (lambda x: x.logsumexp(1), (3, 6)),
}


def results(function, inputs, view, dy_view):
    own = [view(t).detach().requires_grad_() for t in inputs]
    with reproducible():
        y = function(*own)
        y.backward(dy_view(numbers(*y.shape) + 0.1) if y.dim() else None)
    return [y.detach(), *[t.grad for t in own if t.grad is not None]]


@pytest.mark.parametrize("name", LAYERS)
def test_views_have_the_bits_of_dense_tensors(name):
    function, *shapes = LAYERS[name]
    inputs = [numbers(*s) + 0.3 for s in shapes]
    expected = results(function, inputs, torch.Tensor.contiguous, torch.Tensor.contiguous)
    for view in (gaps, reversed_order, shifted):
        ours = results(function, inputs, view, view)
        assert all(torch.equal(a, b) for a, b in zip(ours, expected)), view.__name__


def test_numbers_of_a_half_precision_are_not_read_as_float32():
    x, w = torch.randn(3, 6), torch.ones(6, dtype=torch.bfloat16)
    with reproducible(), pytest.raises(LeftoverError, match="bfloat16"):
        F.layer_norm(x, (6,), w)
