"""A program whose default device is not the CPU (torch.set_default_device, `with torch.device`)."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import repops.torch
from repops.torch import optim, reproducible


@pytest.fixture(params=["for the program", "for a part of it"])
def default(device, request):
    """The device, which is the default one during the test."""
    if request.param == "for a part of it":
        with device:
            yield device
    else:
        torch.set_default_device(device)
        yield device
        torch.set_default_device(None)


OPTIMIZERS = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, fused=True),
    "fused AdamW of the largest": lambda p: torch.optim.AdamW(p, fused=True, amsgrad=True),
    "fused SGD": lambda p: torch.optim.SGD(p, fused=True, momentum=0.9),
    "NAdam": lambda p: torch.optim.NAdam(p),
    "the library's AdamW": lambda p: optim.AdamW(p, max_norm=0.5),
    "the library's SGD": lambda p: optim.SGD(p, momentum=0.9),
}


def trained(place, make):
    torch.manual_seed(1)
    with torch.device("cpu"):
        layers = [nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Dropout(0.2), nn.Linear(8, 3)]
        own, x, y = nn.Sequential(*layers), torch.randn(4, 6), torch.tensor([0, 2, 1, 1])
    own, x, y = own.to(place), x.to(place), y.to(place)
    optimizer = make(own.parameters())
    schedule = optim.Schedule(optimizer, "cosine", 5, 2)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(own(x), y).backward()
        optimizer.step()
        schedule.step()
    return repops.torch.hash(own, optimizer), schedule.get_last_lr()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_default_device_changes_no_bits(default, name):
    with reproducible():
        found = [trained(place, OPTIMIZERS[name]) for place in ("cpu", default)]
        with torch.device("cpu"):
            expected = trained("cpu", OPTIMIZERS[name])
    assert found == [expected] * 2


def test_a_loader_works_with_a_default_device(default):
    with reproducible():
        data = TensorDataset(torch.arange(6.0))
        torch.manual_seed(1)
        assert [x.tolist() for (x,) in DataLoader(data, 4)] == [[0, 1, 2, 3], [4, 5]]
        order = torch.cat([x for (x,) in DataLoader(data, 4, shuffle=True, generator=_seeded())])
        with torch.device("cpu"):
            expected = [x for (x,) in DataLoader(data, 4, shuffle=True, generator=_seeded())]
    assert order.tolist() == torch.cat(expected).tolist()


def _seeded():
    return torch.Generator("cpu").manual_seed(3)


WHOLE = {
    "below a number": lambda x: x.random_(10),
    "from a number to another": lambda x: x.random_(-5, 1000),
    "of all numbers": lambda x: x.random_(),
    "of a column": lambda x: x[:, 1].random_(7),
    "of a generator": lambda x: x.random_(10, generator=_seeded()),
}


@pytest.mark.parametrize("kind", [torch.int64, torch.float32, torch.uint8, torch.float16])
@pytest.mark.parametrize("name", WHOLE)
def test_random_integers_are_those_of_the_cpu(device, name, kind):
    def drawn(place):
        torch.manual_seed(4)
        x = torch.zeros(3, 4, dtype=kind).to(place)
        if name == "from a number to another" and kind is torch.uint8:
            return x.random_(5, 200)
        WHOLE[name](x)
        return x

    with reproducible():
        assert torch.equal(drawn(device).cpu(), drawn("cpu"))


def test_random_integers_of_no_range_have_the_error_of_torch(device):
    for place in ("cpu", device):
        with reproducible(), pytest.raises(RuntimeError, match="from"):
            torch.zeros(3, dtype=torch.int64).to(place).random_(5, 2)


def test_a_generator_of_a_device_is_refused_for_random_integers():
    class Other:
        device = torch.device("cuda")

    with pytest.raises(repops.torch._call.Leftover, match="one of the CPU"):
        repops.torch._random.random_(torch.zeros(3), generator=Other())


def test_tensors_without_memory_stay_so(device):
    with reproducible(), torch.device("meta"):
        own = nn.Linear(3, 2, bias=False)
        assert own.weight.is_meta and torch.zeros(2).is_meta
