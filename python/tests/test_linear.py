"""Decompositions of matrices, against torch's in float64."""

import pytest
import torch
from compare import close

from repops.torch import reproducible

SHAPES = [(5, 5), (7, 4), (4, 7), (2, 3, 6, 4), (1, 1), (0, 3), (3, 0)]


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def positive(*shape):
    a = drawn(*shape)
    return a @ a.mT + torch.eye(shape[-1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(shape, mode):
    a = drawn(*shape)
    with reproducible():
        found = torch.linalg.qr(a, mode)
    for own, wanted in zip(found, torch.linalg.qr(a.double(), mode)):
        close(own, wanted, 1e-6)


def test_qr_of_zeros_is_orthogonal():
    with reproducible():
        q, r = torch.linalg.qr(torch.zeros(3, 3))
    assert torch.equal(q, torch.eye(3)) and not r.any()


def test_orthogonal_weights():
    with reproducible():
        torch.manual_seed(0)
        w = torch.nn.init.orthogonal_(torch.empty(6, 4))
    close(w.mT @ w, torch.eye(4).double(), 1e-6)


@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (1, 1), (0, 0)])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(shape, upper):
    a = positive(*shape)
    with reproducible():
        own = torch.linalg.cholesky(a, upper=upper)
    close(own, torch.linalg.cholesky(a.double(), upper=upper), 1e-6)


def test_cholesky_names_the_first_pivot_that_is_not_positive():
    a = torch.diag(torch.tensor([1.0, -1.0, 1.0]))
    with reproducible():
        assert torch.linalg.cholesky_ex(a).info == 2
        with pytest.raises(torch.linalg.LinAlgError, match="order 2"):
            torch.linalg.cholesky(a)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(upper, left, unit):
    a, b = drawn(2, 4, 4) + 3 * torch.eye(4), drawn(3, 2, 4, 4)
    a = a.triu() if upper else a.tril()
    options = {"upper": upper, "left": left, "unitriangular": unit}
    with reproducible():
        own = torch.linalg.solve_triangular(a, b, **options)
    close(own, torch.linalg.solve_triangular(a.double(), b.double(), **options), 1e-5)


def likelihood(cov):
    mean = torch.zeros(5, dtype=cov.dtype)
    normal = torch.distributions.MultivariateNormal(mean, cov)
    return normal.log_prob(torch.linspace(-1, 1, 5, dtype=cov.dtype))


def squares_of_q(a):
    q, r = torch.linalg.qr(a)
    return q.square()[0].sum() + r.sum()


@pytest.mark.parametrize("function", [likelihood, squares_of_q])
def test_gradients(function):
    own, wanted = (positive(5, 5).to(t).requires_grad_() for t in (torch.float32, torch.float64))
    with reproducible():
        function(own).backward()
    function(wanted).backward()
    close(own.grad, wanted.grad, 1e-5)
