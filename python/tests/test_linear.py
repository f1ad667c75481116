"""Matrix decompositions, against torch's in float64."""

import pytest
import torch
from compare import close

from repops.torch import LeftoverError, reproducible

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
    a, b = drawn(150, 150) / 60 + 3 * torch.eye(150), drawn(150, 150)
    a = a.triu() if upper else a.tril()
    with reproducible():
        own = torch.linalg.solve_triangular(a, b, **options)
        assert torch.linalg.solve_triangular(a, b[:, :0] if left else b[:0], **options).numel() == 0
    close(own, torch.linalg.solve_triangular(a.double(), b.double(), **options), 1e-4)


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


@pytest.mark.parametrize(
    "shape, right",
    [
        ((5, 5), (5, 2)),
        ((9, 4), (9, 3)),
        ((4, 9), (4, 3)),
        ((2, 3, 6, 4), (2, 3, 6, 1)),
        ((3, 6, 4), (3, 6)),
        ((1, 1), (1,)),
    ],
)
def test_least_squares(shape, right):
    a, b = drawn(*shape), drawn(*right)
    with reproducible():
        found = torch.linalg.lstsq(a, b)
    wanted = torch.linalg.lstsq(a, b)
    close(found.solution, torch.linalg.lstsq(a.double(), b.double()).solution, 1e-6)
    for name in ("residuals", "rank", "singular_values"):
        own, other = getattr(found, name), getattr(wanted, name)
        assert torch.equal(own, other) and own.dtype is other.dtype, name


def test_least_squares_without_full_rank_are_refused():
    a = drawn(4, 3)
    a[:, 2] = a[:, 0] + a[:, 1]
    for call in (
        lambda: torch.linalg.lstsq(a, a),
        lambda: torch.linalg.lstsq(a.T, a.T),
        lambda: torch.linalg.lstsq(torch.zeros(3, 2), a[:3]),
        lambda: torch.linalg.lstsq(a[:, :2], a, driver="gelsd"),
    ):
        with reproducible(), pytest.raises(LeftoverError, match="rank|driver"):
            call()
    with pytest.raises(RuntimeError) as plain:
        torch.linalg.lstsq(a, a[:2])
    with reproducible(), pytest.raises(RuntimeError) as ours:
        torch.linalg.lstsq(a, a[:2])
    assert str(ours.value) == str(plain.value)
