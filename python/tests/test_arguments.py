"""Functions and optimizers for direct use refuse wrong arguments before reading them.

Inputs end right before an unreadable page: reading past one ends the process with a signal.
"""

import ctypes
import mmap

import pytest
import torch
import torch.nn.functional as F

import repops
from repops.torch import functional as R

_libc = ctypes.CDLL(None, use_errno=True)
_pages = []


def guarded(t):
    """A copy that ends right before an unreadable page."""
    size = t.numel() * t.element_size()
    kept = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, kept + mmap.PAGESIZE)
    _pages.append(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert not _libc.mprotect(ctypes.c_void_p(address + kept), mmap.PAGESIZE, 0)
    if not size:
        return t
    y = torch.frombuffer(memory, dtype=t.dtype, count=t.numel(), offset=kept - size)
    return y.copy_(t.reshape(-1)).view(t.shape)


def numbers(*shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) % 7 / 8


IDS = torch.tensor([1, 0, 2])
HEADS = (1, 2, 3, 4)


def gradients(forward):
    """For a function: the shapes of its inputs, if dy has its result's shape."""

    def shapes(dy, *inputs):
        assert forward(*inputs).shape == dy.shape
        return inputs

    return shapes


def attended(q, k, v, mask=None):
    y = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    return [y, torch.empty(2, *y.shape[:3])]


def rows(x, w, b=None):
    statistics = torch.empty(*x.shape[:-1], 1)
    return [F.layer_norm(x, w.shape, w, b), *[statistics] * (1 if b is None else 2)]


def same(x):
    return [x]


def lost(x, target):
    return [F.cross_entropy(x, target)] * 2


def images(x, w, b=None):
    return F.conv2d(x, w, b, 1, 1, 1, 2)


# Each operator's arguments, and PyTorch's function, which gives the results' shapes from tensors
# without memory.
CALLS = {
    "linear": ((numbers(5, 6), numbers(4, 6), numbers(4)), lambda *a: [F.linear(*a)]),
    "linear_backward": (
        (numbers(5, 4), numbers(5, 6), numbers(4, 6)),
        lambda *a: [*gradients(F.linear)(*a), a[2][:, 0]],
    ),
    "layer_norm": ((numbers(5, 6), numbers(6), numbers(6), 1e-5), rows),
    "layer_norm_backward": (
        (numbers(5, 6), numbers(5, 6), numbers(6), numbers(5, 1), numbers(5, 1)),
        lambda dy, x, w, m, r: [x.view(dy.shape), w, w.view(rows(x, w)[0].shape[-1:])],
    ),
    "rms_norm": ((numbers(5, 6), numbers(6), 1e-5), rows),
    "rms_norm_backward": (
        (numbers(5, 6), numbers(5, 6), numbers(6), numbers(5, 1)),
        lambda dy, x, w, r: [x.view(dy.shape), w.view(rows(x, w)[0].shape[-1:])],
    ),
    "attention": ((*[numbers(*HEADS)] * 3, numbers(3, 3), False, 0.5), attended),
    "attention_backward": (
        (*[numbers(*HEADS)] * 5, numbers(2, 1, 2, 3), numbers(3, 3), False, 0.5),
        lambda dy, q, k, v, y, s, m: gradients(lambda *a: attended(*a)[0])(dy, q, k, v, m)[:3],
    ),
    "conv2d": (
        (numbers(1, 4, 5, 5), numbers(6, 2, 3, 3), numbers(6), 1, 1, 1, 2),
        lambda *a: [images(*a)],
    ),
    "conv2d_backward": (
        (numbers(1, 6, 5, 5), numbers(1, 4, 5, 5), numbers(6, 2, 3, 3), 1, 1, 1, 2),
        lambda *a: [*gradients(images)(*a), a[2][:, 0, 0, 0]],
    ),
    "cross_entropy": ((numbers(3, 7), IDS, -100, True), lost),
    "cross_entropy_backward": (
        (numbers(), numbers(3, 7), IDS, torch.tensor(3.0), -100),
        lambda dy, x, ids, kept: [x.view(*ids.shape, -1)],
    ),
    "embedding": ((IDS, numbers(5, 6)), lambda *a: [F.embedding(*a)]),
    "embedding_backward": (
        (numbers(3, 6), IDS, 5),
        lambda dy, ids: [dy.view(*ids.shape, -1)[..., :1, :].new_empty(5, dy.shape[-1])],
    ),
    "gelu_backward": ((numbers(5, 6), numbers(5, 6)), lambda x, dy: [x.view(dy.shape)]),
    "tanh_backward": ((numbers(5, 6), numbers(5, 6)), lambda y, dy: [y.view(dy.shape)]),
    "relu": ((numbers(5, 6),), same),
    "dropout": ((numbers(5, 6), 3, 0.25), same),
}


def operator(name):
    return getattr(torch.ops.repops, name).default


def wrong_shapes(t):
    """Yields shapes that differ in one size, or in the number of dimensions."""
    for d, n in enumerate(t.shape):
        for other in {n + 1, n - 1, 0, 9} - {n}:
            yield (*t.shape[:d], other, *t.shape[d + 1 :])
    yield (2, *t.shape)
    if t.dim():
        yield t.shape[1:]


def listed(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.parametrize("name", CALLS)
def test_a_shape_is_refused_or_means_what_it_means_to_torch(name):
    given, reference = CALLS[name]
    arguments = [guarded(a) if isinstance(a, torch.Tensor) else a for a in given]
    count, refused = sum(isinstance(a, torch.Tensor) for a in given), 0
    operator(name)(*arguments)
    for at in range(count):
        for shape in wrong_shapes(arguments[at]):
            altered = list(arguments)
            altered[at] = guarded(torch.ones(shape, dtype=arguments[at].dtype))
            try:
                results = listed(operator(name)(*altered))
            except (repops.Error, IndexError):  # ids that a smaller table lacks
                refused += 1
                continue
            expected = reference(*[a.to("meta") for a in altered[:count]])
            assert [r.shape for r in results] == [e.shape for e in expected], (at, shape)
    assert refused or count == 1


@pytest.mark.parametrize("name", CALLS)
def test_other_types_and_layouts_are_refused(name):
    arguments = CALLS[name][0]
    for at, a in enumerate(arguments):
        if not isinstance(a, torch.Tensor):
            continue
        for other in (a.double(), a.bool(), a.to(torch.complex64), a.to_sparse()):
            with pytest.raises((repops.Error, NotImplementedError), match="expected|sparse|Sparse"):
                operator(name)(*arguments[:at], other, *arguments[at + 1 :])


ERRORS = [
    (r"linear: weight is \[4, 2\]; expected \[out, 3\]", R.linear, [(2, 3), (4, 2)]),
    (r"attention: v is \[1, 1, 2, 4\]; expected \[1, 1, 9, E\]", R.attention, [3, 9, 2]),
    ("attention: q has 3 heads and k 2", R.attention, [(1, 3, 4, 4), (1, 2, 4, 4), (1, 2, 4, 4)]),
    (r"mask is \[5\]; expected what expands to \[1, 1, 4, 4\]", R.attention, [4, 4, 4, (5,)]),
    (r"windows of \[3, 3\] do not fit", R.conv2d, [(1, 1, 2, 2), (1, 1, 3, 3)]),
]


@pytest.mark.parametrize("text, function, shapes", ERRORS)
def test_errors_name_the_function_the_tensor_and_what_was_expected(text, function, shapes):
    given = [torch.ones((1, 1, s, 4) if isinstance(s, int) else s) for s in shapes]
    with pytest.raises(repops.Error, match=text):
        function(*given)


def test_targets_ids_and_strides_that_mean_nothing_are_refused():
    with pytest.raises(repops.Error, match=r"cross_entropy: target is \[1\]; expected \[3\]"):
        R.cross_entropy(torch.ones(3, 4), torch.zeros(1, dtype=torch.int64))
    with pytest.raises(repops.Error, match="stride 0"):
        R.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), None, 0)
    for wrong in (5, -1):
        with pytest.raises(IndexError, match=f"id {wrong} is no row of 5"):
            R.embedding(torch.tensor([wrong]), torch.ones(5, 2))
    with pytest.raises(repops.Error, match="dy is"):
        torch.ops.repops.conv2d_backward(
            torch.ones(1, 1, 9, 9), torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), 1, 0, 1, 1
        )


def test_functions_without_memory_check_too():
    with torch.device("meta"), pytest.raises(repops.Error, match="weight is"):
        R.linear(torch.ones(2, 3), torch.ones(4, 2))
