"""Views and in-place writes of any strides, in any order: a program has torch's elements."""

import ctypes
import itertools

import numpy as np
import pytest
import torch
from capturing import Toy, toy  # noqa: F401

from repops import _arrays, _context, _operators
from repops._library import PTR, lib
from repops.jobs._graph import shape_of


def run(node, inputs):
    """The output of one node, by the library."""
    shapes = [_arrays.shape_of(x) for x in inputs]
    output = shape_of(node.dtype, node.dims) if node.operator.declared else None
    call = _operators.call(node.operator, node.attributes, shapes, output)
    out = np.zeros(node.dims, _arrays.DTYPE[node.dtype])
    pointers = (PTR * max(1, len(inputs)))(*[x.ctypes.data for x in inputs])
    context = _context.current()
    context.check(lib.ro_run(context.handle, ctypes.byref(call), pointers, out.ctypes.data))
    return out


def evaluate(program, steps):
    """The state after `steps` steps, by name."""
    data = [np.ascontiguousarray(d.array) for d in program.data]

    def executed(graph, leaves, step):
        values = []
        sources = {"leaf": leaves, "data": data, "step": [np.array([step], "<i4")], "node": values}
        for node in graph.nodes:
            values.append(run(node, [sources[v.kind][v.number] for v in node.inputs]))
        return [sources[v.kind][v.number] for v in graph.output]

    leaves = executed(program.init, [], 0)
    for step in range(steps):
        leaves = executed(program.step, leaves, step)
    return dict(zip([leaf.name for leaf in program.leaves], leaves, strict=True))


def views(rng, n, overlap):
    """A random view of n numbers: sizes, strides, offset. overlap: elements may repeat."""
    while True:
        size = tuple(int(d) for d in rng.integers(1, 5, rng.integers(0, 5)))
        kind = rng.integers(4)
        if kind == 0:  # a box of a row-major array, with permuted dimensions
            whole = [d + int(rng.integers(0, 3)) for d in size]
            step = [int(rng.integers(1, 3)) for _ in size]
            stride, at = [], 1
            for d, s in zip(reversed(whole), reversed(step)):
                stride.insert(0, at * s)
                at *= d * s
            order = rng.permutation(len(size))
            size, stride = tuple(size[i] for i in order), tuple(stride[i] for i in order)
        elif kind == 1 and overlap:
            stride = tuple(int(s) for s in rng.integers(0, 4, len(size)))
        else:  # any strides
            stride = tuple(int(s) for s in rng.choice([1, 2, 3, 4, 5, 8, 12, 20, 30], len(size)))
        most = sum((d - 1) * s for d, s in zip(size, stride))
        if most >= n:
            continue
        offset = int(rng.integers(0, n - most))
        if overlap or distinct(size, stride):
            return size, stride, offset


def distinct(size, stride):
    places = [sum(i * s for i, s in zip(at, stride)) for at in itertools.product(*map(range, size))]
    return len(set(places)) == len(places)


def scramble(rng, held, tables):
    """Reads and writes random views of some storages."""
    for _ in range(60):
        to = held[rng.integers(len(held))]
        where = to.as_strided(*views(rng, to.numel(), False))
        kind = rng.integers(4)
        if kind == 0:  # from any view of any storage
            source = held[rng.integers(len(held))]
            size, stride, offset = views(rng, source.numel(), True)
            value = source.as_strided(size, stride, offset).clone()
            if value.numel() != where.numel():
                value = value.reshape(-1)[torch.arange(where.numel()) % value.numel()]
            where.copy_(value.reshape(where.shape))
        elif kind == 1:
            table = tables[rng.integers(len(tables))]
            where.copy_(table[: where.numel()].reshape(where.shape).to(where.dtype))
        elif kind == 2:
            where.fill_(int(rng.integers(-3, 3)))
        elif where.dtype is torch.float32:
            where.mul_(-1).add_(held[0][:1].clone().as_strided(where.shape, [0] * where.dim()))
        else:
            where.masked_fill_(tables[0][0] > 0.5, 2)


@pytest.mark.parametrize("seed", range(4))
def test_random_views_and_writes(toy, seed):  # noqa: F811
    rng = np.random.default_rng(seed)
    sizes = [64, 30, 17, 48]
    tables = [toy.job.table(rng.random((6, 200), "f4"))]
    for i, n in enumerate(sizes):
        kind = torch.int64 if i == 3 and seed % 2 else torch.float32
        toy.model.register_buffer(f"b{i}", torch.arange(n).to(kind))

    def step():
        own = np.random.default_rng(seed)
        toy.model.b0.copy_(tables[0][:64])
        held = [t.clone() for t in toy.model.buffers()]
        made = torch.empty(40)
        made[:20] = 1.5
        made[20:] = held[0][:20]
        held.append(made)
        scramble(own, [t for t in held if t.dtype is torch.float32], tables)
        if seed % 2:
            scramble(own, [held[3]], [(tables[0] * 2).gt(1)])
        for to, new in zip(toy.model.buffers(), held):
            to.copy_(new)
        return toy.step()

    toy.job.capture(step, toy.model, toy.optimizer)
    theirs = evaluate(toy.program, 3)
    for number in range(3):
        toy.job._captured.steps.run(number)
    own = toy.model.state_dict()
    assert theirs.keys() == own.keys()
    for name, t in theirs.items():
        mine = own[name].numpy()
        mine = mine.astype("i4") if mine.dtype == np.int64 else mine
        assert mine.tobytes() == t.tobytes(), name


OTHER_TYPES = {
    "integers of the same bits": lambda x: x.clone().view(torch.int32).float(),
    "bytes": lambda x: x.clone().view(torch.uint8).float().reshape(-1)[:16].reshape(4, 4),
}


@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_views_as_another_type_are_refused(toy, kind):  # noqa: F811
    text = toy.refused(lambda: toy.train(toy.model(OTHER_TYPES[kind](toy.x)).square().mean()))
    assert "a view of memory as another type" in text


def test_views_that_users_write(toy):  # noqa: F811
    """Views as models use them, each written once."""
    toy.model.register_buffer("kept", torch.zeros(2, 3, 4))

    def step():
        x = toy.x.clone()
        kept = toy.model.kept
        kept[0, 1] = x[2]
        kept[:, 2, ::2] += x[:2, 1::2]
        kept.transpose(1, 2)[1, 3].copy_(x.diagonal()[:3])
        kept.view(-1)[5:9] = x.flatten()[::4]
        kept.unfold(2, 2, 2)[..., 0].mul_(0.5)
        a, b = kept.unbind(0)
        a.add_(b.flip(0))
        b[b > 0.5] = 0.25
        x[:, 0] = kept.permute(2, 1, 0).reshape(-1)[:4]
        x.T[1].zero_()
        x = torch.cat([x.narrow(1, 2, 2), x.expand(2, 4, 4)[1, :, :2]], 1)
        return toy.train(toy.model(x.unsqueeze(0).squeeze()).square().mean())

    toy.capture(step)


@pytest.mark.parametrize("groups", [1, 3])
def test_weights_whose_channels_are_neighbours(tmp_path, groups):
    """Gradients of a convolution's weights have the weights' strides."""
    conv = torch.nn.Conv2d(3, 6, 3, groups=groups, padding=1)
    t = Toy(tmp_path, model=conv)

    def step():
        x = t.x.repeat(1, 12).reshape(4, 3, 4, 4)
        w = conv.weight.contiguous(memory_format=torch.channels_last)
        y = torch.nn.functional.conv2d(x, w, conv.bias, padding=1, groups=groups)
        return t.train(y.square().mean())

    t.capture(step)
