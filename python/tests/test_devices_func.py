"""torch.func on a device, where torch would compute attention and dropout by other operators."""

import functools
import threading

import pytest
import torch
from torch import func, nn
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.utils import _pytree

from repops.torch import hash, reproducible


def attention(q, **how):
    return F.scaled_dot_product_attention(q, q + 1, q.sin(), **how)


def _of(x):
    return torch.ones((), device=x.device)


@functools.lru_cache
def _layer(device):
    with torch.random.fork_rng([]):
        torch.manual_seed(2)
        return nn.TransformerEncoderLayer(4, 2, 8, 0.5, batch_first=True).to(device)


FUNCTIONS = {
    "attention": attention,
    "causal attention": lambda x: attention(x, is_causal=True, scale=0.3),
    "attention with a mask": lambda x: attention(x, attn_mask=(x @ x.mT) > 0),
    "attention with dropout": lambda x: attention(x, dropout_p=0.5),
    "attention of a batch alone": lambda x: attention(x[0]),
    "attention of what is not mapped": lambda x: x * attention(_of(x).expand(1, 3, 2, 4)),
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout of all": lambda x: F.dropout(x, 1.0),
    "dropout of nothing": lambda x: F.dropout(x, 0.0),
    "dropout in place": lambda x: F.dropout(x * 1, 0.3, inplace=True),
    "dropout of what is not mapped": lambda x: x * F.dropout(_of(x).expand(4), 0.3),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "dropout of features": lambda x: F.dropout2d(x, 0.3),
    "a layer": lambda x: _layer(x.device)(x[0]),
    "norm": lambda x: F.rms_norm(x, (4,)),
}
TRANSFORMS = {
    "grad": lambda f, x: func.grad(lambda a: f(a).square().sum())(x[0]),
    "vmap": lambda f, x: func.vmap(f, randomness="different")(x),
    "vmap, the same": lambda f, x: func.vmap(f, randomness="same")(x),
    "vmap of grad": lambda f, x: func.vmap(
        func.grad(lambda a: f(a).square().sum()), randomness="different"
    )(x),
    "vmap of vmap": lambda f, x: func.vmap(
        lambda a: func.vmap(f, randomness="different")(a[:, None]), randomness="different"
    )(x),
    "grad of vmap": lambda f, x: func.grad(
        lambda a: func.vmap(f, randomness="different")(a).square().sum()
    )(x),
}


def outcome(place, transform, function):
    """The bits of a result and the next random number, or the error."""
    torch.manual_seed(1)
    x = torch.randn(3, 1, 3, 2, 4).to(place)
    _layer(x.device)  # vmap would not let it be moved
    try:
        y = TRANSFORMS[transform](FUNCTIONS[function], x)
    except RuntimeError as error:
        return str(error)
    return y.detach().cpu().numpy().tobytes(), torch.rand(()).item()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_transform_has_the_bits_of_the_cpu(device, transform, function):
    with reproducible():
        assert outcome(device, transform, function) == outcome("cpu", transform, function)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_transform_without_gradients_has_the_bits_of_the_cpu(device):
    with reproducible(), torch.inference_mode():
        for name in FUNCTIONS:
            assert outcome(device, "vmap", name) == outcome("cpu", "vmap", name), name


def _dual(f, x, tangent):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, tangent)))


# Of what has no tangent, torch takes zeros without memory (_efficientzerotensor).
WITH_ZEROS = {
    "jvp of a linear layer": lambda x: func.jvp(lambda a: F.linear(a, x + 1, x[0]), (x,), (x - 1,)),
    "jvp of a convolution": lambda x: func.jvp(
        lambda a: F.conv1d(a[None], x[None, :2].mT, x[0, :1]), (x,), (x - 1,)
    ),
    "jvp of a sum": lambda x: func.jvp(lambda a: a * 2 + x.sin() * a, (x,), (x - 1,)),
    "jvp of a sign": lambda x: func.jvp(lambda a: a.sgn() * a + a.sgn(), (x,), (x - 1,)),
    "jvp of a dot product": lambda x: func.jvp(lambda a: a @ x[0], (x[1],), (x[2],)),
    "jvp of a norm": lambda x: func.jvp(lambda a: F.layer_norm(a, (3,), x[0]), (x,), (x - 1,)),
    "jacobian of a linear layer": lambda x: func.jacfwd(lambda a: F.linear(a, x))(x[0]),
    "hessian of a linear layer": lambda x: func.hessian(lambda a: F.linear(a, x).sin().sum())(x[0]),
    "dual numbers": lambda x: _dual(lambda a: F.linear(a, x), x + 1, x.sin()),
    "gradient of a sign": lambda x: func.grad(lambda a: (a.sgn() * 2 + 1).sum())(x),
    "gradient of a sign and more": lambda x: func.grad(lambda a: (a.sgn() * a).sum())(x),
}


@pytest.mark.parametrize("what", WITH_ZEROS)
def test_zeros_without_memory_have_the_bits_of_the_cpu(device, what):
    found = []
    with reproducible():
        for place in (device, "cpu"):
            torch.manual_seed(1)
            found.append(
                hash(
                    dict(
                        enumerate(
                            _pytree.tree_leaves(WITH_ZEROS[what](torch.randn(3, 3).to(place)))
                        )
                    )
                )
            )
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore:a thread that starts")
def test_other_threads_have_the_bits_of_torch(device):
    """Also what the CPU calls, for which a block has kernels too."""
    names = ("attention", "attention with dropout", "dropout", "dropout of all")
    calls = [(p, t, n) for p in ("cpu", device) for t in TRANSFORMS for n in names]
    wanted, found = [outcome(*c) for c in calls], []
    with reproducible():
        thread = threading.Thread(target=lambda: found.extend(outcome(*c) for c in calls))
        thread.start()
        thread.join()
    assert found == wanted
