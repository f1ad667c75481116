"""Lists whose tensors lie in both memories, and views that share memory, on a device."""

import pytest
import torch

from repops.torch import reproducible

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
