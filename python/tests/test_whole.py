"""Linear layers as one operator have the bits of the operators that torch decomposes them into."""

import threading

import pytest
import torch
from compare import close
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from repops import Error
from repops.torch import reproducible


def apart(x, w, b=None):
    y = x.reshape(-1, x.shape[-1]) @ w.t()
    return (y if b is None else y + b).reshape(*x.shape[:-1], len(w))


def inputs(shape, out, bias, turned=False):
    torch.manual_seed(3)
    x = torch.randn(shape)
    x = x.transpose(0, 1).contiguous().transpose(0, 1) if turned else x
    given = [x, torch.randn(out, shape[-1]), torch.randn(out) if bias else None]
    return [None if t is None else t.requires_grad_() for t in given]


def results(function, given, wanted):
    y = function(*given)
    return [y, *torch.autograd.grad(y.sin().sum(), wanted)]


def equal(a, b):
    return all(
        s.shape == t.shape
        and torch.equal(s.contiguous().view(torch.int32), t.contiguous().view(torch.int32))
        for s, t in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "shape,out", [((5, 7), 3), ((2, 3, 300), 17), ((2, 1, 4, 65), 1), ((1, 513), 9)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_bits_are_those_of_its_parts(shape, out, bias, turned):
    with reproducible():
        given = inputs(shape, out, bias, turned)
        wanted = [t for t in given if t is not None]
        whole = results(F.linear, given, wanted)
        assert "Linear" in type(whole[0].grad_fn).__name__
        assert equal(whole, results(apart, given, wanted))
        for t in wanted:  # as with frozen layers
            assert equal(results(F.linear, given, [t])[1:], results(apart, given, [t])[1:])
        with torch.no_grad():
            assert equal(whole[:1], [F.linear(*given)])
        with torch.inference_mode():
            assert equal(whole[:1], [F.linear(*given)])


@pytest.mark.parametrize("shape,out", [((7,), 3), ((0, 7), 3), ((2, 0), 3), ((4, 7), 0)])
def test_shapes_without_products(shape, out):
    with reproducible():
        given = inputs(shape, out, True)
        y = F.linear(*given)
        assert y.shape == (*shape[:-1], out)
        grads = torch.autograd.grad(y.sum(), given)
        assert [g.shape for g in grads] == [t.shape for t in given]


def test_second_derivatives():
    def second(function, given):
        x, w, b = given
        first = torch.autograd.grad(function(x, w, b).sin().sum(), given, create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in first), given)

    given = inputs((3, 5), 4, True)
    with reproducible():
        own = second(F.linear, given)
    exact = second(F.linear, [t.detach().double().requires_grad_() for t in given])
    for a, b in zip(own, exact):
        close(a, b, 1e-5, 1e-5)


def test_transforms():
    x, w, b = (t.detach() for t in inputs((3, 5), 4, True))
    tangents = [torch.randn(t.shape) for t in (x, w, b)]

    def transformed(x, w, b, *tangents):
        return [
            torch.func.vmap(lambda r: F.linear(r, w, b))(x),
            torch.func.jvp(F.linear, (x, w, b), tangents)[1],
            torch.func.grad(lambda v: F.linear(x, v, b).sin().sum())(w),
        ]

    with reproducible():
        own = transformed(x, w, b, *tangents)
    exact = transformed(*(t.double() for t in (x, w, b, *tangents)))
    for found, wanted in zip(own, exact):
        close(found, wanted, 1e-5, 1e-6)


def test_many_gradients_at_once():
    with reproducible():
        given = inputs((3, 5), 4, True)
        y = F.linear(*given)
        each = torch.eye(12).reshape(12, 3, 4)
        many = torch.autograd.grad(y, given, each, retain_graph=True, is_grads_batched=True)
        for i, dy in enumerate(each):
            one = torch.autograd.grad(y, given, dy, retain_graph=True)
            assert equal(one, [g[i] for g in many])


def test_checkpoints_and_hooks_of_saved_tensors():
    packed = []
    with reproducible():
        given = inputs((3, 5), 4, True)
        whole = results(F.linear, given, given)
        again = results(lambda *a: checkpoint(F.linear, *a, use_reentrant=False), given, given)
        assert equal(whole, again)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t) or t.clone(), torch.clone
        ):
            assert equal(whole, results(F.linear, given, given))
    assert len(packed) >= 2


def test_what_was_changed_in_place_is_found():
    with reproducible():
        x, w, b = inputs((3, 5), 4, True)
        y = F.linear(x * 1, w, b)
        with torch.no_grad():
            w.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@pytest.mark.parametrize("shapes", [((3, 5), (4, 6)), ((3, 5), (4, 5), (5,)), ((3,), (4, 3, 3))])
def test_shapes_that_do_not_fit(shapes):
    given = [torch.ones(s, requires_grad=True) for s in shapes]
    with reproducible(), pytest.raises((RuntimeError, Error)):
        F.linear(*given)


def test_other_threads_and_code_after_the_block_have_torchs_own():
    given, found = inputs((3, 5), 4, True), []

    def other():
        found.append(type(F.linear(*given).grad_fn).__name__)

    with reproducible():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        inside = type(F.linear(*given).grad_fn).__name__
    other()
    assert "Linear" in inside and found == ["AddmmBackward0"] * 2


def test_a_gradient_after_the_block_has_its_bits():
    with reproducible():
        given = inputs((6, 300), 4, True)
        whole = results(F.linear, given, given)
        y = F.linear(*given)
        dy = torch.autograd.grad(y.sin().sum(), y, retain_graph=True)[0]
    assert equal(whole[1:], torch.autograd.grad(y, given, dy))


def test_half_precision_is_refused_by_name():
    given = [t.detach().bfloat16() for t in inputs((3, 5), 4, True)]
    with reproducible(), pytest.raises(Exception, match="bfloat16"):
        F.linear(*given)
