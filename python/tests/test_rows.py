"""PyTorch's operators that the library computes by rows RO_TORCH of operators.def."""

import importlib.util
import math

import pytest
import torch
import torch.nn.functional as F
from compare import close

from repops import _table, _texts
from repops.torch import LeftoverError, _call, _operators, _registry, reproducible

aten = torch.ops.aten
ROWS = sorted(_texts.TORCH)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# ---- parsing rows ----


@pytest.fixture(scope="module")
def generate(top):
    path = top / "python/generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SILU = """
RO_OPERATOR(103, SILU, silu, 1, 1, FOLLOWS, FREE, 0x1, ro_all_f32, "x",
            "x sigmoid(x)",
            "x[e]")
RO_OPERATOR(108, SILU_GRAD, silu_grad, 2, 2, FOLLOWS, FREE, 0x3, ro_check_same_pair, "x, dy",
            "",
            "x[e]; dy[e]")
RO_OPERATOR(212, LEAKY_RELU, leaky_relu, 1, 1, FOLLOWS, FIXED, 0x1, ro_all_f32, "x",
            "x, or below 0 x times slope",
            "x[e]")
RO_ATTRIBUTE(LEAKY_RELU, 0, SLOPE, slope, 'f')
RO_OPERATOR(16, ADD, add, 2, 2, FOLLOWS, FREE, 0x3, ro_check_repeat, "a, b",
            "a + b; b repeats",
            "a[e]; b[e % numel(b)]")
"""


def test_rows_are_read_by_their_names(generate):
    rows = 'RO_TORCH(LEAKY_RELU, "leaky_relu.default(_, slope, x=2, _=0.5)")\n'
    found = {"leaky_relu.default": ("leaky_relu", "_ slope x _", (2, 0.5))}
    assert generate.routes(SILU + rows) == found


WRONG = {
    'RO_TORCH(SILU_GRAD, "silu_backward(dy, y)")': "its arguments are dy, y; expected x, dy",
    'RO_TORCH(SILU_GRAD, "silu_backward(dy)")': "expected x, dy",
    'RO_TORCH(SILU_GRAD, "silu_backward(dy, x, x)")': "expected x, dy",
    'RO_TORCH(LEAKY_RELU, "leaky_relu(x)")': "expected x, slope",
    'RO_TORCH(LEAKY_RELU, "leaky_relu(slope=0.1, x)")': "x has no default",
    'RO_TORCH(LEAKY_RELU, "leaky_relu(x, slope=y)")': "malformed",
    'RO_TORCH(SELU, "selu(x)")': "there is no operator SELU",
    'RO_TORCH(SILU, "silu")': r"expected RO_TORCH\(NAME, ",
    'RO_TORCH(SILU, "silu(x)") /* fast */': r"expected RO_TORCH\(NAME, ",
    'RO_TORCH(SILU, "silu(x)")\nRO_TORCH(LEAKY_RELU, "silu(x, slope)")': "silu is silu already",
    'RO_TORCH(SILU_GRAD, "silu_(x, dy)")': "does not compute in the place of its only input",
    'RO_TORCH(ADD, "add(a, b)")': "element e of add reads more than element e",
}


@pytest.mark.parametrize("row", WRONG)
def test_a_row_that_fits_no_operator_is_refused(generate, row):
    with pytest.raises(SystemExit, match=WRONG[row]) as error:
        generate.routes(SILU + row)
    assert str(error.value).startswith("repops/src/operators.def: RO_TORCH(")


def named(row):
    base, _, overload = row.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def faults(row, how):
    """The differences between a row and PyTorch's own schema."""
    operator, names, defaults = how[0], how[1].split(), how[2]
    func = named(row)
    given, inputs = func._schema.arguments, _texts.INPUTS[operator].split()
    attributes = dict(_table.TABLE[operator].attributes)
    kinds = {**dict.fromkeys(inputs, ["Tensor"])}
    kinds.update({n: ["number", "float"] if k == "f" else ["int"] for n, k in attributes.items()})
    if sorted(n for n in names if n != "_") != sorted(kinds):
        yield f"{row}: {names} are not {sorted(kinds)}"
    if len(names) != len(given) or any(a.kwarg_only for a in given):
        yield f"{row}: PyTorch has {func._schema}"
    for name, argument in zip(names, given):
        if str(argument.type) not in kinds.get(name, [str(argument.type)]):
            yield f"{row}: {name} is {argument.type} {argument.name}"
    own = [math.inf] * (len(names) - len(defaults)) + list(defaults)
    theirs = [a.default_value if a.has_default_value() else math.inf for a in given]
    if own != theirs:
        yield f"{row}: the defaults are {theirs}"
    if func._schema.is_mutable != row.split(".")[0].endswith("_"):
        yield f"{row}: in place or not"


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_the_arguments_and_defaults_of_pytorch(row):
    assert not list(faults(row, _texts.TORCH[row]))


def test_a_row_that_differs_from_pytorch_is_found():
    for row, how in {
        "silu_backward": ("silu_grad", "dy", ()),  # one of our names is missing
        "tanh_backward": ("silu_grad", "dy y", ()),  # not our operator
        "leaky_relu": ("leaky_relu", "x slope", (0.02,)),  # another default
        "leaky_relu_": ("leaky_relu", "x slope", ()),  # no default
        "leaky_relu_backward": ("leaky_relu_grad", "dy x slope", ()),  # one less
        "threshold_backward": ("leaky_relu_grad", "dy slope x", ()),  # a tensor for a number
        "gelu": ("silu", "x _", ()),  # PyTorch's argument is keyword-only
    }.items():
        assert list(faults(row, how)), row


def test_rows_are_handlers_and_no_second_one_is_written_by_hand():
    assert len(ROWS) >= 15
    for row in ROWS:
        assert _registry.HANDLERS[row].__module__ == _operators.__name__
        with pytest.raises(ValueError, match=f"{row} has two handlers"):
            _registry.handles(row)(lambda x: x)
    assert {"relu", "sqrt", "leaky_relu", "leaky_relu_backward"} <= set(_registry.FLOAT64)
    assert set(_registry.FLOAT64) <= set(ROWS)


# ---- results of routes ----


POSITIVE = ("log", "sqrt", "rsqrt")


def arguments(row, dtype):
    """Numbers around 0, or above 0 if the function needs that; attributes are 0.3."""
    operator, names, _ = _texts.TORCH[row]
    drawn, shift = torch.Generator().manual_seed(1), 0.0 if row in POSITIVE else 0.5
    numbers = {
        name: (torch.rand(7, 33, generator=drawn) * 0.8 + 0.1 - shift).to(dtype)
        for name in _texts.INPUTS[operator].split()
    }
    return [numbers.get(name, False if name == "_" else 0.3) for name in names.split()]


@pytest.fixture
def calls(monkeypatch):
    """Collects the elementwise operators that the library is called for."""
    found, inner = [], _call._run_flat

    def counted(name, *rest):
        found.append(name)
        inner(name, *rest)

    monkeypatch.setattr(_call, "_run_flat", counted)
    return found


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_one_call_of_its_operator_with_pytorchs_result(row, calls):
    func = named(row)
    exact, given = func(*arguments(row, torch.float64)), arguments(row, torch.float32)
    with reproducible():
        y = func(*given)
    assert calls == [_texts.TORCH[row][0]]
    close(y, exact, 2e-6)


SPECIAL = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e-45, -1e-45, 3e38, -3e38]
)


def bits(t):
    return t.contiguous().view(torch.int32).tolist()


@pytest.mark.parametrize("slope", [0.01, 0.0, -0.0, -0.5, 1.0, 2, 1e-46, math.inf, math.nan])
def test_leaky_relu_has_the_bits_of_its_formula(slope, calls, monkeypatch):
    x = torch.cat([SPECIAL, torch.randn(100)])
    nan = torch.tensor(math.nan)
    expected = torch.where(x > 0, x, x * slope)
    expected = torch.where(expected == expected, expected, nan)  # makes NaNs canonical
    plain = F.leaky_relu(x, slope)
    dy = torch.cat([torch.randn(100), SPECIAL])
    slopes = torch.where(x > 0, dy, dy * slope)
    slopes = torch.where((slopes == slopes) & (x == x), slopes, nan)
    own, copy = x.clone().requires_grad_(), x.clone()
    monkeypatch.delattr(torch, "where")
    with reproducible():
        y = F.leaky_relu(own, slope)
        y.backward(dy)
        assert F.leaky_relu_(copy, slope) is copy
    assert calls == ["leaky_relu", "leaky_relu_grad", "leaky_relu"]
    assert bits(y.detach()) == bits(copy) == bits(expected)
    assert bits(own.grad) == bits(slopes)
    finite = expected == expected
    assert bits(plain[finite]) == bits(expected[finite])


def test_a_slope_that_float32_does_not_have_is_refused_as_by_pytorch():
    x = torch.randn(3)
    with pytest.raises(RuntimeError) as plain:
        F.leaky_relu(x, 1e39)
    with reproducible(), pytest.raises(RuntimeError) as ours:
        F.leaky_relu(x, 1e39)
    assert str(ours.value) == str(plain.value)


@pytest.mark.parametrize("row", ROWS)
def test_float64_is_computed_where_a_function_does_and_refused_elsewhere(row, calls):
    func = named(row)
    given = arguments(row, torch.float64)
    if row not in _registry.FLOAT64:
        with reproducible(), pytest.raises(LeftoverError, match="torch.float64; float32 is what"):
            func(*given)
        return
    with reproducible():
        y = func(*given)
    assert y.dtype is torch.float64 and not calls
    close(y, func(*given), 1e-15, 0)


BASE = torch.randn(4, 6, 5, 3)
LAYOUTS = {
    "channels_last": BASE.to(memory_format=torch.channels_last),
    "transposed": BASE.transpose(0, 3),
    "every second": BASE[:, ::2],
    "expanded": BASE[:1].expand(4, 6, 5, 3),
    "empty": torch.empty(0, 3),
    "one number": torch.tensor(-2.0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_results_in_place_and_out_have_the_same_bits(layout):
    x = LAYOUTS[layout]
    expected = torch.where(x > 0, x, x * 0.01)
    dense, out = x.clone(), torch.empty(0)
    with reproducible():
        y = F.leaky_relu(x)
        F.leaky_relu_(dense)
        aten.leaky_relu.out(x, out=out)
        assert torch.relu_(x.clone()).equal(torch.relu(x))
        slope = aten.leaky_relu_backward(torch.tensor(2.0).expand_as(x), x, 0.25, False)
    for t in (y, dense, out):
        assert t.equal(expected)
    assert slope.equal(torch.where(x > 0, 2.0, 0.5).expand_as(x))


def test_inputs_of_a_gradient_are_broadcast_and_integers_are_converted():
    y, dy = torch.rand(3, 1), torch.randn(1, 4)
    with reproducible():
        both = aten.tanh_backward(dy, y)
        assert both.equal(aten.tanh_backward(dy.expand(3, 4), y.expand(3, 4)))
        assert torch.exp(torch.arange(5)).equal(torch.exp(torch.arange(5.0)))
        with pytest.raises(LeftoverError, match="torch.int64"):
            aten.tanh_backward(dy, torch.arange(4))
