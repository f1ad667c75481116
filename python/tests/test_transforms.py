"""torch.func, second derivatives, inference mode, recorded graphs."""

import pytest
import torch
import torch.nn.functional as F
from compare import close
from torch import func, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from repops.torch import LeftoverError, functional, hash, reproducible

X = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([1, 2, -100, 6, 0])


def third(x, loss):
    """Second and third derivatives."""
    (g,) = torch.autograd.grad(loss(x) * 1.5, x, create_graph=True)
    (h,) = torch.autograd.grad((g * (x + 1)).sum(), x, create_graph=True)
    return h, torch.autograd.grad(h.square().sum(), x)[0]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_higher_derivatives_of_cross_entropy(reduction):
    with reproducible():
        x = X.clone().requires_grad_()
        own = third(x, lambda x: F.cross_entropy(x, TARGET, reduction=reduction))
    x = X.double().requires_grad_()
    wanted = third(x, lambda x: F.nll_loss(F.log_softmax(x, 1), TARGET, reduction=reduction))
    for a, b in zip(own, wanted):
        close(a, b, 1e-5)


def test_second_derivatives_of_cross_entropy_need_no_block():
    def second(x):
        (g,) = torch.autograd.grad(functional.cross_entropy(x, TARGET), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), x)[0]

    with reproducible():
        inside = second(X.clone().requires_grad_())
    assert torch.equal(second(X.clone().requires_grad_()), inside)


@pytest.mark.filterwarnings("ignore")
def test_recorded_graphs_of_torch_jit_are_computed_by_the_block():
    def function(x):
        return (x * 2 + x.exp() * 0.3).softmax(1).sum() + torch.randn(3).sum()

    with reproducible():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(7, 4), nn.GELU(), nn.LayerNorm(4))
        for graph in (torch.jit.trace(model, X), torch.jit.script(model)):
            for _ in range(3):  # graphs are optimized after the first run
                x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
                own, wanted = graph(x), model(y)
                (own * own).sum().backward()
                (wanted * wanted).sum().backward()
                assert torch.equal(own, wanted) and torch.equal(x.grad, y.grad)
        graph = torch.jit.trace(function, X, check_trace=False)
        assert "aten::softmax" in str(graph.graph) and "aten::empty" not in str(graph.graph)
        torch.manual_seed(1)
        own = graph(X)
        torch.manual_seed(1)
        assert torch.equal(own, function(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("record", [torch.jit.script, lambda m: torch.jit.trace(m, X)])
def test_gradients_of_recorded_graphs_are_those_of_their_first_run(record):
    with reproducible():
        model = nn.Sequential(nn.Linear(7, 4), nn.Tanh(), nn.Linear(4, 3), nn.Sigmoid())
        graph, found = record(model), []
        for run in (model, graph, graph, graph):
            with reproducible():
                x = X.clone().requires_grad_()
                run(x).sum().backward()
                found.append(hash({"x": x.grad}))
    assert len(set(found)) == 1


def test_graphs_are_optimized_after_the_block_as_before():
    optimizes = torch._C._get_graph_executor_optimize
    for before in (True, False):
        torch._C._set_graph_executor_optimize(before)
        try:
            with pytest.raises(ZeroDivisionError), reproducible():
                with reproducible():
                    assert not optimizes()
                assert not optimizes()
                raise ZeroDivisionError
            assert optimizes() is before
        finally:
            torch._C._set_graph_executor_optimize(True)


def loss_of_one(x):
    return F.cross_entropy(x[None], torch.tensor([2]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: func.vmap(func.grad(loss_of_one))(x),
        lambda x: func.jvp(lambda v: F.cross_entropy(v, TARGET), (x,), (x + 1,))[1],
        lambda x: func.hessian(lambda v: v.tanh().square().sum())(x[0]),
        lambda x: func.jacfwd(lambda v: F.gelu(v @ v.T))(x[:2]),
    ],
)
def test_transforms(function):
    with reproducible():
        own = function(X)
    close(own, function(X.double()), 1e-5)


def test_dropout_can_be_mapped():
    with reproducible():
        y = func.vmap(lambda v: F.dropout(v, 0.5), randomness="different")(torch.ones(64, 3))
    assert set(y.unique().tolist()) == {0.0, 2.0}


def test_bernoulli_writes_nothing_that_it_was_given():
    x = X.clone()
    with reproducible():
        assert set(torch.bernoulli(x, 0.5).unique().tolist()) == {0.0, 1.0}
    assert torch.equal(x, X)


def test_operators_of_elements_broadcast():
    with reproducible():
        own = torch.ops.aten.tanh_backward(X, X[0])
    close(own, X.double() * (1 - X[0].double().square()), 1e-5)


def test_dropout_in_inference_mode():
    with reproducible(), torch.inference_mode():
        assert torch.equal(nn.Dropout().eval()(X), X)
        assert F.dropout(torch.ones(99), 0.5).unique().tolist() == [0.0, 2.0]


def test_layers_of_attention_in_evaluation_are_those_of_training():
    fast = torch.backends.mha.get_fastpath_enabled()
    with reproducible():
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        model = nn.TransformerEncoder(layer, 2).eval()
        x, mask = torch.randn(2, 5, 8), torch.arange(5) > torch.tensor([[2], [4]])
        own = model(x, src_key_padding_mask=mask)
        with torch.no_grad():
            assert torch.equal(model(x, src_key_padding_mask=mask), own)
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_nested_tensors_of_one_buffer_multiply_as_their_parts():
    with reproducible():
        parts, layer = [torch.randn(2, 3), torch.randn(4, 3)], nn.Linear(3, 2)
        nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        joined = layer(torch.cat(parts))
        assert torch.equal(torch.cat(layer(nested).unbind()), joined)


def test_operators_of_nested_tensors_are_those_of_their_parts():
    with reproducible():
        parts = [torch.randn(2, 3), torch.randn(4, 3)]
        nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        for one in (torch.tanh, nn.functional.gelu, lambda t: torch.softmax(t, -1)):
            assert torch.equal(one(nested).values(), one(torch.cat(parts)))


def test_recorded_graphs_are_refused():
    """A graph would hold the results' memory, not the operators that compute them."""
    from torch.fx.experimental.proxy_tensor import make_fx

    with reproducible(), pytest.raises(LeftoverError, match="graph is recorded"):
        make_fx(lambda x: torch.softmax(x, 1))(X)


def test_exported_programs_are_refused():
    with reproducible(), pytest.raises(LeftoverError, match="aten.*fake, as those of torch.export"):
        torch.export.export(nn.Linear(7, 4), (X,), strict=False)


def test_fake_tensors_are_refused():
    with reproducible(), FakeTensorMode(), pytest.raises(LeftoverError, match="add.*fake"):
        torch.ones(3) + 1
