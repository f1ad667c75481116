"""On a device: functions of numbers' bits, distinct numbers, and what is written to places in an
order, as on the CPU."""

import pytest
import torch

from repops.torch import LeftoverError, reproducible

NAN = float("nan")
TYPES = [torch.float32, torch.float64, torch.float16]
# Zeros, subnormals and the limits of all types.
NUMBERS = [0.0, -0.0, 1.0, -0.75, 5e-324, -1e-310, 1e-45, -3e-41, 1.1754942e-38, 1.17549435e-38]
NUMBERS += [
    6e-8,
    -6.1e-5,
    65504.0,
    3.4028235e38,
    1e300,
    *[float(x) for x in ("inf", "-inf", "nan")],
]


def _complex(x):
    return torch.complex(x, x.flip(0))


def _last(x):
    return x[:16].reshape(1, 4, 2, 2).contiguous(memory_format=torch.channels_last)


def _places(x):
    return torch.tensor([[0, 1, 1, 2], [1, 0, 0, 2], [1, 1, 0, 2]]).to(x.device)


def _rows(x):
    return x[:16].nan_to_num(3).reshape(8, 2).repeat(2, 2)


def _whole(x):
    return (x.clamp(-9, 9).nan_to_num(3).float() * 4).long()


ALL = {"return_inverse": True, "return_counts": True}
RESULTS = {
    "neighbours": lambda x: torch.nextafter(x[:, None], x),
    "neighbours in place": lambda x: x.clone().nextafter_(x.flip(0)),
    "neighbours of other types": lambda x: torch.nextafter(x, x.flip(0).double()),
    "neighbours of NaNs": lambda x: torch.nextafter(x.new_full((20,), NAN).copysign(x[3]), x[:1]),
    "neighbours in an order": lambda x: torch.nextafter(_last(x), _last(x).abs()),
    "fractions": lambda x: torch.frexp(x),
    "steps": lambda x: torch.heaviside(x, x.flip(0)),
    "steps of integers": lambda x: torch.heaviside(_whole(x), _whole(x)[:1]),
    "conjugates": lambda x: torch.view_as_real(_complex(x).conj_physical()),
    "conjugates of conjugates": lambda x: torch.view_as_real(_complex(x).conj().conj_physical()),
    "conjugates in an order": lambda x: torch.view_as_real(_complex(_last(x)).conj_physical()),
    "distinct": lambda x: x.repeat(3).unique(**ALL),
    "distinct, unordered": lambda x: x.repeat(3).unique(sorted=False, return_inverse=True),
    "distinct rows": lambda x: _rows(x).unique(dim=0, **ALL),
    "runs": lambda x: x.repeat_interleave(2).unique_consecutive(**ALL),
    "runs of rows": lambda x: _rows(x).repeat_interleave(2, 0).unique_consecutive(dim=0, **ALL),
    "distinct integers": lambda x: _whole(x).unique(**ALL),
    "unordered integers": lambda x: _whole(x).unique(sorted=False, return_inverse=True),
    "distinct rows of integers": lambda x: _whole(_rows(x)).unique(dim=0, **ALL),
    "distinct columns of integers": lambda x: _whole(_rows(x)).unique(dim=1, **ALL),
    "runs of integers": lambda x: _whole(x).repeat_interleave(2).unique_consecutive(**ALL),
    "added": lambda x: x[:12].reshape(3, 4).scatter(0, _places(x), _rows(x)[:3], reduce="add"),
    "multiplied": lambda x: (
        x[:12].reshape(4, 3).scatter_(1, _places(x)[:, :3], 1.3, reduce="multiply")
    ),
    "infinities that cancel": lambda x: x[-3:].scatter(
        0, _places(x)[0, :2], x[-2:-1].repeat(2), reduce="add"
    ),
    "multiplied bools": lambda x: (x[:12] > 0).scatter(0, _places(x)[0], False, reduce="multiply"),
    "added integers": lambda x: (
        _whole(x)[:12].reshape(3, 4).scatter(0, _places(x), 3, reduce="add")
    ),
    "views": lambda x: torch.as_strided_scatter(x, x[:6].reshape(2, 3), (2, 3), (5, 1), 2),
    "views of columns": lambda x: torch.as_strided_scatter(
        x[:12].reshape(3, 4).t(), x[:6].reshape(3, 2), (3, 2), (1, 5)
    ),
}


OF_FLOATS = ("neighbours", "infinities", "added", "multiplied")


def _bytes(results):
    results = [results] if isinstance(results, torch.Tensor) else results
    return [(t.dtype, t.shape, t.stride(), t.cpu().contiguous().numpy().tobytes()) for t in results]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("what", RESULTS)
@pytest.mark.filterwarnings("ignore:The reduce argument", "ignore:ComplexHalf")
def test_results_have_the_bits_of_the_cpu(device, what, dtype):
    if dtype is torch.float16 and what.startswith(OF_FLOATS):
        pytest.skip("refused for float16 everywhere")
    x = torch.tensor(NUMBERS, dtype=torch.float64).to(dtype)
    with reproducible():
        assert _bytes(RESULTS[what](x.to(device))) == _bytes(RESULTS[what](x.clone()))


@pytest.mark.parametrize("what", ["neighbours", "fractions", "steps", "conjugates", "views"])
def test_they_wait_for_nothing(device, simulated, what):
    x = torch.tensor(NUMBERS).to(device)
    with reproducible():
        simulated.waits.clear()
        RESULTS[what](x)
    assert not simulated.waits


def test_gradients_of_views_have_the_bits_of_the_cpu(device):
    found = []
    with reproducible():
        for place in (device, "cpu"):
            x, own = (torch.linspace(-2, 3, n).to(place).requires_grad_() for n in (20, 6))
            y = torch.as_strided_scatter(x, own.reshape(2, 3), (2, 3), (7, 2), 1)
            (y * y).sum().backward()
            found.append(_bytes([y.detach(), x.grad, own.grad]))
    assert found[0] == found[1]


REFUSED = {
    "places that overlap": (
        lambda x: torch.as_strided_scatter(x, x[:6].reshape(2, 3), (2, 3), (1, 1)),
        "its places overlap",
    ),
    "another type": (
        lambda x: torch.as_strided_scatter(x, x[:6].reshape(2, 3).double(), (2, 3), (3, 1)),
        "its source is torch.float64",
    ),
    "neighbours of bfloat16": (lambda x: torch.nextafter(x.bfloat16(), x.bfloat16()), "bfloat16"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_edition_is_refused_by_its_name(device, what):
    compute, reason = REFUSED[what]
    with reproducible(), pytest.raises(LeftoverError, match=reason):
        compute(torch.ones(9).to(device))
