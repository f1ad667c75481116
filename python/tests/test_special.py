"""Special functions: error bounds, and values at limits and poles."""

import math

import pytest
import torch

from repops.torch import reproducible

POSITIVE = torch.cat([torch.logspace(-30, 30, 2001), torch.linspace(0.001, 12, 4001)])
NEGATIVE = -torch.linspace(0.0003, 12, 4001)
AROUND = torch.linspace(-9, 9, 4001)
ENDS = [0.0, -0.0, 1.0, 2.0, -1.0, -2.0, 1e-30, -1e-30, 1e38, math.inf, -math.inf, math.nan]

# Error bounds (as exponents of 2), relative to the value or to the given least number.
BOUNDS = {
    "lgamma": (torch.lgamma, POSITIVE, 1.0, -21),
    "lgamma of large ones": (torch.lgamma, torch.linspace(2.01, 60, 4001), 0.0, -21),
    "lgamma below 0": (torch.lgamma, NEGATIVE, 10.0, -21),
    "digamma": (torch.digamma, POSITIVE, 1.0, -20),
    "digamma below 0": (torch.digamma, NEGATIVE, 1.0, -19),
    "polygamma": (lambda x: torch.polygamma(2, x), POSITIVE.clamp(1e-9, 1e9), 0.0, -23),
    "erfc": (torch.erfc, AROUND, 0.0, -21),
    "erfcx": (torch.special.erfcx, AROUND, 0.0, -20),
    "log_ndtr": (torch.special.log_ndtr, torch.linspace(-30, 4, 4001), 0.0, -19),
    "ndtri": (torch.special.ndtri, torch.linspace(0.0001, 0.9999, 4001), 0.0, -23),
    "sinc": (torch.sinc, AROUND, 1.0, -22),
    "i0": (torch.special.i0, AROUND * 4, 0.0, -23),
    "i1e": (torch.special.i1e, AROUND * 4, 0.0, -23),
    "entr": (torch.special.entr, POSITIVE.clamp(max=1e30), 0.0, -22),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_are_within_what_is_stated(name):
    function, x, least, exponent = BOUNDS[name]
    with reproducible():
        own = function(x).double()
    wanted = function(x.double())
    shown = wanted.abs() < torch.finfo(torch.float32).max
    assert torch.equal(own.isfinite(), shown)
    far = (own - wanted)[shown].abs() / wanted[shown].abs().clamp(min=max(least, 2.0**-126))
    assert far.max() <= 2.0**exponent


@pytest.mark.parametrize(
    "function",
    [torch.lgamma, torch.digamma, torch.erfc, torch.special.erfcx, torch.special.log_ndtr]
    + [torch.sinc, torch.special.entr, torch.angle, torch.special.i0, torch.special.ndtri],
)
def test_ends_and_poles_are_those_of_pytorch(function):
    x = torch.tensor(ENDS)
    with reproducible():
        own = function(x)
        assert function(x[:0]).shape == (0,) and function(x[0]).shape == ()
    assert torch.allclose(own, function(x), rtol=1e-5, atol=1e-6, equal_nan=True)


def test_the_order_of_elements_is_the_first_of_equal_ones():
    x = torch.tensor([[2.0, 1.0, 2.0, 1.0, 1.0], [3.0, math.nan, 3.0, math.nan, 5.0]])
    with reproducible():
        assert [v.tolist() for v in x[:1].kthvalue(2)] == [[1.0], [3]]
        assert [v.tolist() for v in x[:1].median(1)] == [[1.0], [4]]
        assert x.median(1)[1].tolist() == [4, 1] and x.median().isnan()
        assert [v.tolist() for v in x.nanmedian(1)] == [[1.0, 3.0], [4, 2]]
        assert [v.tolist() for v in x.mode(1)] == [[1.0, 3.0], [4, 2]]


def test_equations_of_singular_matrices_have_the_error_of_pytorch():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    with reproducible():
        assert torch.linalg.det(a) == 0 and torch.linalg.inv_ex(a)[1] == 2
        for call in (lambda: torch.linalg.inv(a), lambda: torch.linalg.solve(a, a)):
            with pytest.raises(torch.linalg.LinAlgError, match="singular"):
                call()
