"""Products of sparse and dense matrices in the block, against PyTorch in float64."""

import contextlib
import sys
import warnings

import numpy as np
import pytest
import torch
from compare import close, same_in_settings

import repops.torch
from repops.torch import LeftoverError, reproducible

RANDOM = np.random.default_rng(3)
ROWS, COLUMNS, WIDTH = 9, 7, 5
AT = torch.from_numpy(RANDOM.integers(0, [[ROWS], [COLUMNS]], (2, 40)))
ENDS = torch.tensor([0, 3, 5, 9, 10, 17, 17, 24, 28, 33])  # row ends of CSR; one row is empty
ALONG = torch.cat([torch.arange(n) for n in ENDS.diff()])


def drawn(*shape):
    return torch.from_numpy(RANDOM.standard_normal(shape).astype("f4"))


VALUES, B, C = drawn(40), drawn(COLUMNS, WIDTH), drawn(ROWS, WIDTH)
DENSE = torch.where(drawn(ROWS, COLUMNS) > 0.3, drawn(ROWS, COLUMNS), 0.0)


def coo(v):
    return torch.sparse_coo_tensor(AT, v, (ROWS, COLUMNS))


def csr(v):
    return torch.sparse_csr_tensor(ENDS, ALONG, v[: len(ALONG)], (ROWS, COLUMNS))


PRODUCTS = {
    "spmm": lambda v, b, c, d: torch.spmm(coo(v), b),
    "sparse.mm": lambda v, b, c, d: torch.sparse.mm(coo(v), b),
    "coalesced": lambda v, b, c, d: coo(v).coalesce() @ b,
    "addmm": lambda v, b, c, d: torch.addmm(c, coo(v), b, beta=0.5, alpha=2),
    "sparse.addmm": lambda v, b, c, d: torch.sparse.addmm(c, coo(v), b, beta=0.5, alpha=2),
    "vector": lambda v, b, c, d: (coo(v) @ b[:, 0])[:, None],
    "transposed": lambda v, b, c, d: coo(v).t() @ c,
    "dense columns": lambda v, b, c, d: torch.spmm(coo(v), b.t().contiguous().t()),
    "CSR": lambda v, b, c, d: csr(v) @ b,
    "sparse.mm of CSR": lambda v, b, c, d: torch.sparse.mm(csr(v.detach()), b),
    "CSC": lambda v, b, c, d: coo(v.detach()).to_sparse_csc() @ b,
    "CSR of elements that repeat": lambda v, b, c, d: coo(v.detach()).to_sparse_csr() @ b,
    "on the right": lambda v, b, c, d: d.t() @ coo(v.detach()) + d.t() @ csr(v.detach()),
    "plus a dense one": lambda v, b, c, d: d + coo(v.detach()) + csr(v.detach()),
    "integers and a dense one": lambda v, b, c, d: d + coo((4 * v.detach()).long()),
    "to_sparse": lambda v, b, c, d: d.to_sparse() @ b,
    "to_sparse_csr": lambda v, b, c, d: d.to_sparse_csr() @ b,
    "to_dense": lambda v, b, c, d: coo(v).to_dense() @ b,
    "CSR to_dense": lambda v, b, c, d: csr(v).to_dense() @ b,
    "values": lambda v, b, c, d: coo(v).coalesce().values()[:, None] * b[:1],
    "of a mask": lambda v, b, c, d: (d > 0).to_sparse().to_dense() * d @ b,
}


def results(name, kind):
    given = [kind(t).requires_grad_() for t in (VALUES, B, C, DENSE)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CSR is in beta state
        y = PRODUCTS[name](*given)
        slope = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).reshape(y.shape)
        (y * slope.to(y.dtype)).sum().backward()
    return [y.detach(), *[t.grad for t in given]]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients(name):
    exact = results(name, torch.Tensor.double)
    with reproducible():
        ours = results(name, torch.clone)
    for a, b in zip(ours, exact, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            close(a, b, 1e-6, 3e-6)


def test_terms_of_a_row_are_summed_as_they_are_stored():
    with reproducible():
        y = coo(VALUES) @ B
        for order in (torch.arange(40), torch.arange(39, -1, -1)):
            own = torch.sparse_coo_tensor(AT[:, order], VALUES[order], (ROWS, COLUMNS)) @ B
            expected = np.zeros((ROWS, WIDTH), "f4")
            for k in order.tolist():  # rows have at most 64 terms, which are added one by one
                row, column = AT[:, k].tolist()
                expected[row] += (VALUES[k] * B[column]).numpy()
            assert (own.numpy() == expected).all()
        assert not torch.equal(own, y)  # shows that the order matters here


def test_elements_that_are_alone_are_moved():
    with reproducible():
        sparse = DENSE.to_sparse()
        assert sparse.is_coalesced() and sparse.coalesce() is sparse
        assert torch.equal(sparse.to_dense(), DENSE)
        assert torch.equal(sparse.values(), DENSE[DENSE != 0])
        assert torch.equal(sparse.to_sparse_csr().to_dense(), DENSE)
        assert torch.equal(coo(VALUES)[3].to_dense(), coo(VALUES).to_dense()[3])
        empty = torch.sparse_coo_tensor(torch.zeros(2, 0).long(), torch.zeros(0), (3, COLUMNS))
        assert torch.equal(empty @ B, torch.zeros(3, WIDTH))
        assert torch.equal(empty.to_dense(), torch.zeros(3, COLUMNS))


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.add(DENSE, DENSE.to_sparse(), alpha=2),
        lambda: DENSE * DENSE.to_sparse(),
        lambda: DENSE.to_sparse() @ DENSE.t().to_sparse(),
        lambda: DENSE.to_sparse().double() @ B.double(),
        lambda: DENSE.to_sparse() * 2.0,
        lambda: DENSE.to_sparse() + DENSE.to_sparse(),
        lambda: torch.sparse.softmax(DENSE.to_sparse(), 1),
        lambda: DENSE[:8, :6].to_sparse_bsr((2, 2)) @ B[:6],
    ],
)
def test_other_operators_of_sparse_tensors_are_refused(call):
    with reproducible(), pytest.raises(LeftoverError, match="sparse|float64"):
        call()


def test_products_of_other_sizes_have_the_error_of_pytorch():
    for call in (lambda: coo(VALUES) @ C, lambda: torch.sparse.mm(coo(VALUES), C)):
        with pytest.raises(Exception) as plain:
            call()
        with reproducible(), pytest.raises(plain.type) as ours:
            call()
        assert str(ours.value) == str(plain.value)


def hashed():
    """Hashes of a product large enough for threads, and of its gradients."""
    with reproducible():
        torch.manual_seed(0)
        at = torch.randint(0, 500, (2, 8000))
        values, b = torch.randn(8000, requires_grad=True), torch.randn(500, 33, requires_grad=True)
        y = torch.sparse_coo_tensor(at, values, (500, 500)) @ b
        y.square().mean().backward()
        return repops.torch.hash({"y": y.detach(), "v": values.grad, "b": b.grad})


def test_bits_depend_on_no_instruction_set_nor_on_threads():
    same_in_settings(sys.modules[__name__])


@pytest.mark.parametrize("how", [{}, {"mode": "sum"}, {"padding_idx": 2}])
def test_the_sparse_gradient_of_a_bag_is_the_dense_one(how):
    ids = torch.tensor([[1, 2, 1], [0, 5, 2]])
    found = []
    for sparse in (False, True):
        with reproducible():
            torch.manual_seed(0)
            bag = torch.nn.EmbeddingBag(6, 8, sparse=sparse, **how)
            bag(ids).square().sum().backward()
            found.append(bag.weight.grad.to_dense())
    assert torch.equal(*found)


def test_sparse_adam_is_torchs_within_rounding():
    ids, found = torch.tensor([[1, 2, 1], [0, 5, 2]]), []
    for where in (reproducible(), contextlib.nullcontext()):
        torch.manual_seed(0)
        with reproducible():
            table = torch.nn.Embedding(6, 8, sparse=True)
        with where:
            optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                table(ids).square().sum().backward()
                optimizer.step()
        found.append(table.weight.detach())
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
    assert not torch.equal(found[0][3], found[0][0])
