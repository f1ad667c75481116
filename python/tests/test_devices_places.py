"""On a device: indices of equal elements, repeated indices, indices in resized images."""

import pytest
import torch
from torch.nn import functional as F

from repops.torch import reproducible

NAN = float("nan")
# Rows with equal elements, zeros of both signs, and NaNs.
ROWS = [
    [3.0, 1.0, 3.0, -2.0, 1.0, 3.0, -2.0],
    [0.0, -0.0, 0.0, -0.0, -1.0, -0.0, -1.0],
    [-0.0, 0.0, 0.0, 1e-41, -1e-41, 0.0, 1e-41],
    [2.0, NAN, 5.0, NAN, -float("inf"), float("inf"), NAN],
    [7.0] * 7,
]
TYPES = [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8]
ORDERS = {
    "argmax": lambda x: [x.argmax(), x.argmax(1), x.argmax(0, True), x[0].argmax(keepdim=True)],
    "argmin": lambda x: [x.argmin(), x.argmin(-1), x.argmin(0, True)],
    "largest": lambda x: [*x.max(1), *x.max(0, True), *torch.max(x[0, 0], 0)],
    "smallest": lambda x: [*x.min(1), *x.min(-2, True)],
    "largest so far": lambda x: [*x.cummax(1), *x.cummax(0), *x[0, 0].cummax(0)],
    "smallest so far": lambda x: [*x.cummin(1), *x.cummin(0)],
    "sorted": lambda x: [*x.sort(), *x.sort(0, descending=True), *x.t().sort(stable=True)],
    "sorted numbers": lambda x: [*x[0, 0].sort()],
    "places sorted": lambda x: [x.argsort(), x.argsort(0, True), x[0].argsort(stable=True)],
    "largest ones": lambda x: [*x.topk(3), *x.topk(2, 0, largest=False), *x[:, ::2].topk(2)],
    "the k-th": lambda x: [*x.kthvalue(3), *x.median(1), x[0].median(), *x.mode()],
    "found": lambda x: [torch.isin(x, x[0, :2])],
}


def _bytes(results):
    return [(t.dtype, t.shape, t.cpu().contiguous().numpy().tobytes()) for t in results]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("what", ORDERS)
def test_orders_are_those_of_the_cpu(device, what, dtype):
    rows = torch.tensor(ROWS) if dtype.is_floating_point else torch.tensor(ROWS).nan_to_num(9, 9, 4)
    x = rows.to(dtype)
    if what == "the k-th" and dtype in (torch.float64, torch.float16):
        pytest.skip("the CPU refuses it")
    with reproducible():
        assert _bytes(ORDERS[what](x.to(device))) == _bytes(ORDERS[what](x))


def test_gradients_of_places_are_those_of_the_cpu(device):
    found = []
    with reproducible():
        for place in (device, "cpu"):
            x = torch.tensor(ROWS[:3]).to(place).requires_grad_()
            y = x.max(1)[0].sum() + x.topk(3)[0].square().sum() + (x.sort()[0] * x).sum()
            (y + x.cummax(1)[0].sum() + x.kthvalue(2)[0].sum()).backward()
            found.append(x.grad.cpu().numpy().tobytes())
    assert found[0] == found[1]


def _places(x, *rows):
    return torch.tensor(rows, dtype=torch.int64).to(x.device)


def _put(x, indices, values, **how):
    return x.clone().index_put_(indices, values, **how)


def _columns(x, index, values):
    y = x.clone()
    y[:, index] = values
    return y


# Writes to [4, 5] with values [3, 6]: many have the same index.
WRITTEN = {
    "scattered": lambda x, v: x.scatter(1, _places(x, [1, 1, 0], [4, 4, 4]), v),
    "scattered rows": lambda x, v: x.scatter_(0, _places(x, [3, 3, 3, 1], [3, 3, 1, 1]), v),
    "scattered numbers": lambda x, v: x.scatter(1, _places(x, [1, 1, 0]), 2.5),
    "scattered integers": lambda x, v: x.long().scatter(1, _places(x, [1, 1, 0]), v.long()),
    "scattered to one": lambda x, v: x[0, 0].scatter(0, _places(x, 0).reshape(()), v[0, 0]),
    "one of many": lambda x, v: F.one_hot(_places(x, 2, 0, 1), 4),
    "nothing scattered": lambda x, v: x.scatter(1, _places(x), v),
    "a row": lambda x, v: _put(x, [_places(x, 2, 0, 2)], v[:, :5]),
    "elements": lambda x, v: _put(x, [_places(x, 1, 1, 3), _places(x, 0, 0, 0)], v[:, 0]),
    "a column": lambda x, v: _put(x.t(), [_places(x, 1, -1, 4, 1)], v[0, :4]),
    "many columns": lambda x, v: _columns(x, _places(x, [0, 3], [3, 0]), v[:2, :2]),
    "columns of a view": lambda x, v: _columns(x, _places(x, [0, 3], [4, 0]).t(), v[:2, :2].t()),
    "values in columns": lambda x, v: _put(x[0], [_places(x, [0, 3], [3, 0])], v[:2, :2].t()),
    "columns of columns": lambda x, v: _columns(x, _places(x, [0, 3], [3, 0]), v[:2, :2].t()),
    "values of rows": lambda x, v: _put(x[0], [_places(x, [0, 3], [3, 0]).t()], v[0, :2]),
    "a mask": lambda x, v: _put(x, [x > 0], v[0, 0]),
    "a sum": lambda x, v: _put(x, [_places(x, 2, 0, 2)], v[:, :5], accumulate=True),
    "copied": lambda x, v: x.index_copy(0, _places(x, 2, 0, 2), v[:, :5]),
    "copied columns": lambda x, v: x.index_copy(-1, _places(x, 4, 4), v.t()[:4, :2]),
    "copied number": lambda x, v: x[0, 0].index_copy(0, _places(x, 0), v[0, 0]),
    "put": lambda x, v: x.put(_places(x, 7, 7, 0), v[:, 0]),
    "masked": lambda x, v: x.masked_scatter(x > 0, v),
    "largest": lambda x, v: x.scatter_reduce(1, _places(x, [1, 1, 0]), v, "amax"),
    "smallest": lambda x, v: x.scatter_reduce(
        1, _places(x, [1, 1, 0]), v, "amin", include_self=False
    ),
    "rows reduced": lambda x, v: x.index_reduce(0, _places(x, 2, 0, 2), v[:, :5], "amax"),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_of_several_values_for_a_place_the_cpus_stays(device, what):
    torch.manual_seed(5)
    x, values = torch.randn(4, 5), torch.randn(3, 6)
    with reproducible():
        a = WRITTEN[what](x.clone().to(device), values.to(device))
        b = WRITTEN[what](x.clone(), values)
    assert _bytes([a]) == _bytes([b])


SIZES = {
    "doubled": {"scale_factor": 2},
    "a little larger": {"scale_factor": 1.3},
    "scaled anew": {"scale_factor": 1.7, "recompute_scale_factor": True},
    "smaller": {"size": 3},
    "one": {"size": 1},
}


@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("what", SIZES)
def test_the_nearest_elements_are_those_of_the_cpu(device, what, mode, last):
    torch.manual_seed(6)
    images = [torch.randn(2, 3, 7), torch.randn(2, 3, 7, 10), torch.randn(2, 3, 7, 4, 5)]
    if last:
        order = {4: torch.channels_last, 5: torch.channels_last_3d}
        images = [x.contiguous(memory_format=order[x.dim()]) for x in images[1:]]
    with reproducible():
        for image in images:
            found = []
            for place in (device, "cpu"):
                x = image.to(place).requires_grad_()
                y = F.interpolate(x, mode=mode, **SIZES[what])
                (y * y).sum().backward()
                order = (
                    y.is_contiguous() if image.is_contiguous() else y.transpose(1, -1).stride(-1)
                )
                found.append([*_bytes([y.detach(), x.grad]), order])
            assert found[0] == found[1]


# Python gives a CUDA device's index_put_ the number of x[places] = 2 in the CPU's memory.
NUMBERED = {
    "places": lambda x: [_places(x, 1, 2, 1)],
    "elements": lambda x: [_places(x, 1, 2, 1), _places(x, 0, 3, 0)],
    "columns": lambda x: [None, _places(x, 4, 4)],
    "a mask": lambda x: [x > 3],
    "a mask and places": lambda x: [x[:, 0] > 7, _places(x, 3, 1)],
    "places in the CPU's memory": lambda x: [torch.tensor([1, 2, 1])],
}
NAN = torch.tensor(0x7FC12345, dtype=torch.int32).view(torch.float32)
SINGLE = [torch.tensor(n) for n in (2.5, 2**62 + 1, True)]
SINGLE += [NAN, torch.tensor(0.1, dtype=torch.float64), torch.tensor(2 - 1j)]


@pytest.mark.parametrize("number", SINGLE, ids=str)
@pytest.mark.parametrize("adds", [False, True], ids=["stays", "is added"])
@pytest.mark.parametrize("what", NUMBERED)
def test_a_number_in_the_cpus_memory_is_written(device, what, adds, number):
    if adds and number.dtype in (torch.float64, torch.complex64):
        pytest.skip("it is refused")
    found = []
    for place in (device, "cpu"):
        with reproducible():
            x = torch.arange(20).reshape(4, 5).to(place)
            indices, y = NUMBERED[what](x), x.to(number.dtype)
            torch.ops.aten.index_put_(y, indices, number, adds)
        found.append(y.cpu().numpy().tobytes())
    assert found[0] == found[1]


def test_a_number_is_written_without_waiting_and_only_to_its_type(device, simulated):
    x, places = torch.zeros(4).to(device), [torch.tensor([1, 2]).to(device)]
    with reproducible():
        simulated.waits.clear()
        x.index_put_(places, torch.tensor(2.5))
        assert not simulated.waits
        for value in (torch.tensor(2), torch.tensor([2, 3]).to(device)):
            with pytest.raises(RuntimeError, match="dtypes match"):
                x.index_put_(places, value)


def test_the_value_with_the_largest_number_stays():
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    with reproducible():
        y = torch.zeros(4).index_put_([torch.tensor([[0, 3], [3, 0]])], values)
    assert y.tolist() == [4.0, 0.0, 0.0, 2.0]


BEYOND = {
    "scattered": (lambda x, i, v: x.scatter(1, i, v), [[4]]),
    "scattered below": (lambda x, i, v: x.scatter(0, i, v), [[-1]]),
    "added": (lambda x, i, v: x.scatter_add(1, i, v), [[4]]),
    "added below": (lambda x, i, v: x.scatter_add(0, i, v), [[-1]]),
    "copied": (lambda x, i, v: x.index_copy(1, i[0], v.expand(2, 1)), [[4]]),
    "copied below": (lambda x, i, v: x.index_copy(1, i[0], v.expand(2, 1)), [[-1]]),
}


@pytest.mark.parametrize("what", BEYOND)
def test_a_place_beyond_the_dimension_is_refused(device, simulated, what):
    write, index = BEYOND[what]
    x, v = torch.zeros(2, 3).to(device), torch.ones(1, 1).to(device)
    with reproducible():
        write(x, torch.zeros(1, 1, dtype=torch.int64).to(device), v)  # others have this signature
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            write(x, torch.tensor(index).to(device), v)


@pytest.mark.parametrize("index", [-1, 4, 2**32 + 3, -(2**32), 2**63 - 1, -(2**63)])
def test_an_index_beyond_32_bits_names_no_place(device, simulated, index):
    """A loss is NaN then, no class is taken off its gradient, and nothing is added to a sum."""
    given = torch.tensor([1, index]).to(device)
    x = torch.ones(2, 4).to(device).requires_grad_()
    with reproducible():
        loss = F.cross_entropy(x, given, reduction="sum")
        loss.backward()
        sums = torch.zeros(4).to(device).index_add(0, given, torch.ones(2).to(device))
        table = torch.ops.aten.embedding_dense_backward(x.detach(), given, 4, -1, False)
    assert loss.isnan() and x.grad[1].tolist() == [0.25] * 4
    assert sums.tolist() == [0, 1, 0, 0]
    assert table.sum(1).tolist() == [0, 4, 0, 0]


# For these, float32 and float64 choose different elements.
IMAGES = {
    "a line": ((2, 3, 64), 82, torch.float32),
    "a line of float64": ((2, 3, 64), 82, torch.float64),
    "rows": ((1, 2, 64, 64), (82, 90), torch.float32),
    "rows of float64": ((1, 8, 64, 64), (82, 90), torch.float64),
    "channels last": ((1, 8, 64, 64), (82, 90), torch.float32),
    "channels last of float64": ((1, 8, 64, 64), (82, 90), torch.float64),
    "two channels last of float64": ((1, 2, 64, 64), (82, 90), torch.float64),
    "halves": ((1, 2, 64, 64), (82, 90), torch.float16),
    "bytes": ((1, 4, 64, 64), (82, 90), torch.uint8),
    "a volume": ((1, 2, 3, 64, 3), (4, 82, 3), torch.float32),
}


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("what", IMAGES)
def test_the_nearest_elements_are_those_of_the_cpus_kernel(device, what, mode):
    shape, size, dtype = IMAGES[what]
    torch.manual_seed(6)
    image, found = torch.randint(0, 256, shape).to(dtype), []
    if "last" in what:
        image = image.contiguous(memory_format=torch.channels_last)
    with reproducible():
        for place in (device, "cpu"):
            x = image.clone().to(place).requires_grad_(dtype is torch.float32)
            y = F.interpolate(x, size, mode=mode)
            found.append(_bytes([y.detach()]))
            if x.requires_grad:
                (y * y).sum().backward()
                found[-1] += _bytes([x.grad])
    assert found[0] == found[1]
    assert found[1][:1] == _bytes([F.interpolate(image, size, mode=mode)])


NUMBERS = {
    "whole": lambda place: torch.arange(2, 20, 3, device=place),
    "whole as floats": lambda place: torch.arange(0, 9, 2, dtype=torch.float32, device=place),
    "floats": lambda place: torch.arange(0.1, 2, 0.3, device=place),
    "float64": lambda place: torch.arange(5, dtype=torch.float64, device=place),
    "a line": lambda place: torch.linspace(-1, 1, 7, device=place),
    "powers": lambda place: torch.logspace(-1, 1, 7, device=place),
    "a window": lambda place: torch.hann_window(9, device=place),
    "another window": lambda place: torch.hamming_window(9, device=place),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_what_is_made_of_numbers_is_as_on_the_cpu(device, what):
    with reproducible():
        a, b = NUMBERS[what](device), NUMBERS[what]("cpu")
        torch.set_default_device(device)
        try:
            c = NUMBERS[what](None)
        finally:
            torch.set_default_device(None)
    assert a.device == c.device == device
    assert _bytes([a]) == _bytes([b]) == _bytes([c])


# Each begins with channels last, and torch's kernels keep or lose that order.
LAID = {
    "sliced": lambda x: x[..., 1:],
    "pooled": lambda x: F.adaptive_avg_pool2d(x, 1),
    "of one column": lambda x: x[..., :1],
    "transposed": lambda x: x.transpose(2, 3),
    "repeated": lambda x: x[:, :1].expand(-1, 6, -1, -1),
}


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("what", LAID)
def test_resized_images_lie_in_memory_as_torch_lays_them(device, what, mode):
    x = torch.arange(2.0 * 5 * 6 * 4).reshape(2, 5, 6, 4)
    x = x.contiguous(memory_format=torch.channels_last)
    with reproducible():
        y = LAID[what](x.to(device))
        y = F.interpolate(F.interpolate(y, (6, 2), mode=mode), (141, 3), mode=mode)
        x = LAID[what](x)
    want = F.interpolate(F.interpolate(x, (6, 2), mode=mode), (141, 3), mode=mode)
    assert y.stride() == want.stride() and torch.equal(y.cpu(), want)
