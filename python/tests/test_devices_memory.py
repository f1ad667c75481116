"""Lists whose tensors lie in both memories, and views that share memory, on a device."""

import pytest
import torch

from repops.torch import LeftoverError, _overlaps, reproducible

LISTS = {
    "quotients": lambda xs: torch._foreach_div(xs, 3.0),
    "quotients in place": lambda xs: torch._foreach_div_(xs, 3.0),
    "exponentials": lambda xs: torch._foreach_exp(xs),
    "sums": lambda xs: torch._foreach_add(xs, xs, alpha=0.3),
    "roots": lambda xs: torch._foreach_sqrt_(xs),
    "between": lambda xs: torch._foreach_lerp(xs, [x + 1 for x in xs], 0.3),
    "quotients of products": lambda xs: torch._foreach_addcdiv_(xs, xs, xs, 0.3),
}


@pytest.mark.parametrize("first", [0, 1], ids=["the CPU's first", "the device's first"])
@pytest.mark.parametrize("what", LISTS)
def test_lists_may_lie_in_both_memories(device, simulated, what, first):
    found = []
    for places in (("cpu", "cpu"), (device, "cpu") if first else ("cpu", device)):
        with reproducible():
            xs = [torch.tensor([0.1, 0.7, 3.0]).to(place) for place in places]
            simulated.theirs.clear()
            ys = LISTS[what](xs) or xs
            assert [y.device for y in ys] == [x.device for x in xs]
            assert not {"div", "div_", "exp", "add", "sqrt", "lerp"} & set(simulated.theirs)
        found.append([y.cpu().numpy().tobytes() for y in ys])
    assert found[0] == found[1]


def _strided(x):
    return torch.as_strided(x, (3, 3), (1, 1))


OVERLAPPING = {
    "rows below": lambda x: x[1:].add_(x[:-1]),
    "columns beside": lambda x: x[:, 1:].mul_(x[:, :-1]),
    "a row": lambda x: x.sub_(x[0]),
    "a transposed one": lambda x: x[:, :6].div_(x[:, :6].t()),
    "a function": lambda x: x[:, 1:].atan2_(x[:, :-1]),
    "products": lambda x: x[:, 1:].addcmul_(x[:, 1:], x[:, :-1]),
    "copied": lambda x: x[:, 1:].copy_(x[:, :-1]),
    "lists": lambda x: torch._foreach_add_([x[:, 1:]], [x[:, :-1]]),
    "strides": lambda x: _strided(x).add_(1),
    "strides of a function": lambda x: _strided(x).exp_(),
    "strides of copies": lambda x: _strided(x).copy_(x[:3, :3].clone()),
    "strides of numbers": lambda x: _strided(x).normal_(),
    "strides of a result": lambda x: torch.mul(x[:3, :3].clone(), 2, out=_strided(x)),
    "windows": lambda x: x.unfold(1, 3, 2).mul_(2),
}
DISTINCT = {
    "columns between": lambda x: x[:, ::2].mul_(x[:, 1::2]),
    "a column": lambda x: x[:, 1].add_(x[:, 2]),
    "itself": lambda x: x[1:].add_(x[1:]),
    "turned": lambda x: x.t().mul_(x.t()),
    "halves": lambda x: x[:, :5].copy_(x[:, 5:]),
    "between": lambda x: torch.as_strided(x, (2, 2), (2, 3)).add_(1),
    "far between": lambda x: torch.as_strided(x, (3, 3), (2, 3)).add_(1),
    "another result": lambda x: torch.mul(x[:, 1:], 2, out=x[:, :-1]),
    "lists": lambda x: torch._foreach_add_([x[:, 1]], [x[:, 2]]),
}


def _given(place):
    return torch.arange(1.0, 61.0).reshape(6, 10).to(place)


@pytest.mark.parametrize("there", [False, True], ids=["the CPU", "a device"])
@pytest.mark.parametrize("what", OVERLAPPING)
def test_writes_whose_order_would_matter_are_refused(request, what, there):
    x = _given(request.getfixturevalue("device") if there else "cpu")
    with reproducible(), pytest.raises(LeftoverError, match="it writes to"):
        OVERLAPPING[what](x)
    assert torch.equal(x.cpu(), _given("cpu"))


@pytest.mark.parametrize("what", DISTINCT)
def test_views_of_distinct_places_are_written(device, what):
    found = []
    for place in (device, "cpu"):
        with reproducible():
            DISTINCT[what](x := _given(place))
        found.append(x.cpu().numpy().tobytes())
    assert found[0] == found[1]


def test_steps_of_two_types_are_refused_as_on_the_cpu(device):
    x = _given(device)
    with reproducible(), pytest.raises(RuntimeError, match="different dtypes"):
        torch.heaviside(x, x.double())


def test_views_of_which_it_takes_long_to_tell_are_refused(monkeypatch):
    monkeypatch.setattr(_overlaps, "_CANDIDATES", 1)
    x = torch.zeros(10000)
    one, other = (x.as_strided((5, 7, 9), (301, 203, 3), at) for at in (0, 1))
    with reproducible(), pytest.raises(LeftoverError, match="reads as another view"):
        one.add_(other)
