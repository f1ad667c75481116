"""Random valid calls of each operator, for stage.py. Elementwise, row and column operators get theirs by their shape
rules."""

from math import prod
from struct import pack

from definitions import BF16, F, F16, I8, I32, SIZES, U8, U16, ceil_div

SPECIAL = [0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 1, 0x80000001, 0x7f7fffff, 0x3f800000]


def word(chance, wild):
    """A number's bits: mostly of common magnitude, otherwise any or special."""
    way = chance.random()
    if way < wild:
        return chance.choice(SPECIAL) if chance.random() < 0.5 else chance.getrandbits(32)
    return chance.getrandbits(1) << 31 | chance.randrange(110, 132) << 23 | chance.getrandbits(23)


class Maker:
    """Makes tensors of random content. wild: the share of numbers of uncommon magnitude."""

    def __init__(self, chance):
        self.chance = chance
        self.wild = chance.choice([0, 0, 0.02, 0.5])

    def dims(self, least=1, most=4, below=5):
        return tuple(self.chance.randrange(1, below) for _ in range(self.chance.randrange(least, most + 1)))

    def f(self, *dims):
        return (F, dims), b"".join(pack("<I", word(self.chance, self.wild)) for _ in range(prod(dims)))

    def ids(self, limit, *dims):
        """Ids, mostly in [0, limit)."""
        values = [self.chance.randrange(-1, limit + 1) if self.chance.random() < 0.1 else self.chance.randrange(limit)
                  for _ in range(prod(dims))]
        return (I32, dims), b"".join(pack("<i", v) for v in values)

    def integers(self, dtype, *dims):
        return (dtype, dims), self.chance.randbytes(SIZES[dtype] * prod(dims))

    def halves(self, dtype, *dims):
        """16-bit floats, mostly of common magnitude."""
        low, high, fraction = (110, 132, 7) if dtype == BF16 else (4, 25, 10)
        words = (self.chance.getrandbits(16) if self.chance.random() < self.wild else
                 self.chance.getrandbits(1) << 15 | self.chance.randrange(low, high) << fraction |
                 self.chance.getrandbits(fraction) for _ in range(prod(dims)))
        return (dtype, dims), b"".join(pack("<H", w) for w in words)

    def numbers(self, *dims):
        """Floats of any type."""
        dtype = self.chance.choice([F, BF16, F16])
        return self.f(*dims) if dtype == F else self.halves(dtype, *dims)

    def any(self, *dims):
        dtype = self.chance.choice([F, I32, U8, U16, BF16, F16, I8])
        return self.f(*dims) if dtype == F else self.integers(dtype, *dims)

    def number(self):
        return word(self.chance, self.wild)

    def integer(self, value):
        return (I32, (1,)), pack("<i", value)

    def one(self):
        return self.f(*(1,) * self.chance.randrange(1, 4))

    def repeated(self, dims):
        """An operand that broadcasts to dims."""
        tail = dims[self.chance.randrange(len(dims)):]
        return self.chance.choice([self.one, lambda: self.f(*dims), lambda: self.f(*tail),
                                   lambda: self.f(*(1,) * (len(dims) - len(tail)), *tail), lambda: self.f(prod(tail))])()

    def row(self, rows):
        """One element for each row."""
        return self.f(*self.chance.choice([rows, rows + (1,), (prod(rows),)]) or (1,))


STEP_INPUT = ((I32, (1,)), None)


def stream(m):
    return {"seed": m.chance.getrandbits(64) - 2**63, "stream": m.chance.getrandbits(32)}


def pair(m):
    dims = m.dims()
    return {}, [m.f(*dims), m.repeated(dims)], None


def drawn_at(*numbers):
    def make(m):
        return {**stream(m), **{name: m.number() for name in numbers}}, [m.integers(I32, 1)], (F, m.dims())
    return make


def line(m, **attributes):
    """A tensor of numbers or integers, some longer than a part along the axis; kind 2 needs numbers."""
    dims = list(m.dims())
    axis = m.chance.randrange(len(dims))
    if m.chance.random() < 0.3:
        dims[axis] = m.chance.choice([255, 256, 257, 600])
        dims = [length if d == axis else min(length, 2) for d, length in enumerate(dims)]
    number = attributes.get("kind") == 2 or m.chance.random() < 0.5
    x = m.f(*dims) if number else m.ids(5, *dims) if m.chance.random() < 0.5 else m.integers(I32, *dims)
    return {"axis": axis, **attributes}, [x], None


def lines(m, inputs):
    """For take_along, and for put_along with one more input."""
    attributes, [x], _ = line(m)
    dims = list(x[0][1])
    length = dims[attributes["axis"]]
    dims[attributes["axis"]] = m.chance.choice([1, 2, 5, 70])
    if inputs == 1:
        return attributes, [x, m.ids(length, *dims)], None
    rows = m.f(*dims) if x[0][0] == F else m.integers(I32, *dims)
    return {**attributes, "kind": m.chance.randrange(5)}, [x, m.ids(length, *dims), rows], None


def integer(m):
    _, inputs, _ = pair(m)
    draw = m.integers if m.chance.random() < 0.5 else m.ids
    first = I32 if draw == m.integers else 40
    return {"kind": m.chance.randrange(12)}, [draw(first, *shape[1]) for shape, _ in inputs], None


def compare(m):
    attributes, inputs, _ = pair(m)
    if m.chance.random() < 0.5:
        inputs = [m.ids(3, *shape[1]) for shape, _ in inputs]
    return {"kind": m.chance.randrange(6)}, inputs, None


def where(m):
    dims = m.dims()
    left = m.any(*dims)
    right = m.f(*dims) if left[0][0] == F else m.integers(left[0][0], *dims)
    return {}, [m.ids(2, *dims), left, right], None


def batch(m, rows, extra):
    first = m.chance.randrange(3)
    return {**stream(m), "batch": first + rows + m.chance.randrange(3), "first": first, **extra}


def read_batch(m):
    rows, length = m.chance.randrange(1, 4), m.chance.randrange(1, 6)
    dtype = m.chance.choice([U8, U16, I32])
    data = [m.integers(dtype, length * m.chance.randrange(1, 200) + 1 + m.chance.randrange(3))
            for _ in range(m.chance.choice([1, 1, 2, 5]))]
    return batch(m, rows, {"shift": m.chance.randrange(2)}), data + [STEP_INPUT], (I32, (rows, length))


def read_images(m):
    dims = m.dims(4, 4, 4)
    offset, rest = m.chance.randrange(3), m.chance.randrange(3)
    record = offset + prod(dims[1:]) + rest
    data = m.integers(U8, record * m.chance.randrange(1, 90) + m.chance.randrange(record))
    extra = {"record": record, "offset": offset, "scale": m.number(), "shift": m.number()}
    return batch(m, dims[0], extra), [data, STEP_INPUT], (F, dims)


def read_labels(m):
    rows, record = m.chance.randrange(1, 5), m.chance.randrange(1, 40)
    data = m.integers(U8, record * m.chance.randrange(1, 90))
    return batch(m, rows, {"record": record, "offset": m.chance.randrange(record)}), [data, STEP_INPUT], (I32, (rows,))


def embedding(m):
    v, c = m.chance.randrange(1, 500), m.chance.randrange(1, 9)
    return {}, [m.numbers(v, c), m.ids(v, *m.dims(1, 3))], None


def embedding_grad(m):
    rows, v, c = m.chance.choice([7, 300, 1100, 1700]), m.chance.choice([1, 2, 40]), m.chance.randrange(1, 4)
    return {}, [m.f(rows, c), m.ids(v, rows)], (F, (v, c))


def split_heads(m):
    b, t, d = m.dims(3, 3)
    parts, heads = m.chance.randrange(1, 4), m.chance.randrange(1, 4)
    return ({"parts": parts, "part": m.chance.randrange(parts), "heads": heads}, [m.f(b, t, parts * heads * d)], None)


def join_heads(m):
    dims = m.dims(4, 4)
    return {}, [m.f(*dims) for _ in range(m.chance.randrange(1, 4))], None


def cast(m):
    return {"dtype": m.chance.randrange(1, 8)}, [m.any(*m.dims())], None


def repeat_heads(m):
    return {"times": m.chance.randrange(1, 5)}, [m.f(*m.dims(4, 4))], None


def repeat_heads_grad(m):
    times, dims = m.chance.randrange(1, 5), m.dims(4, 4)
    return {"times": times}, [m.f(dims[0], dims[1] * times, *dims[2:])], None


def rope_turns(m):
    base = 0x3f800000 + m.chance.randrange(32 << 23) if m.chance.random() < 0.5 else 0x461c4000
    kind, low = m.chance.randrange(3), m.chance.randrange(119, 140) << 23 | m.chance.getrandbits(23)
    attributes = {"base": base, "kind": kind, "factor": 0, "low": 0, "high": 0, "original": 0}
    if kind:
        attributes["factor"] = 0x3f800000 + m.chance.randrange(32 << 23)
    if kind == 2:
        attributes |= {"low": low, "high": low + 1 + m.chance.randrange((141 << 23) - low - 1),
                       "original": m.chance.choice([1, 8192, 2**31 - 1])}
    return attributes, [], (I32, (m.chance.randrange(1, 70), 2))


def rope(m):
    dims = m.dims(2, 4, 6)
    places = dims[-2:-1] if len(dims) < 3 or m.chance.randrange(2) else (dims[0], dims[-2])
    return ({"pairs": m.chance.randrange(2), "inverse": m.chance.randrange(2)},
            [m.f(*dims[:-1], 2 * dims[-1]), m.integers(I32, *places), m.integers(I32, dims[-1], 2)], None)


def dropout(m):
    return ({**stream(m), "threshold": m.chance.getrandbits(32), "scale": m.number()}, [m.f(*m.dims()), STEP_INPUT],
            None)


def cast_stochastic(m):
    return stream(m), [m.f(*m.dims()), STEP_INPUT], None


def rows(kinds):
    """Operators on rows of the last dimension; an operand is like x (x), has an element for each row (r) or each column
    (c)."""
    def make(m):
        dims = m.dims(1, 3) + (m.chance.randrange(1, 9),)
        kind = {"x": lambda: m.f(*dims), "r": lambda: m.row(dims[:-1]), "c": lambda: m.f(dims[-1])}
        return {}, [kind[k]() for k in kinds], None
    return make


def labelled(kinds, ignore):
    def make(m):
        dims = m.dims(1, 3) + (m.chance.randrange(1, 9),)
        kind = {"x": lambda: m.f(*dims), "r": lambda: m.row(dims[:-1]), "i": lambda: m.ids(dims[-1], *dims[:-1])}
        return ({"ignore": m.chance.randrange(-1, dims[-1])} if ignore else {}), [kind[k]() for k in kinds], None
    return make


def numbers(*names):
    return lambda m: {name: m.number() for name in names}


def update(operator, tensors):
    """The first `tensors` inputs have one shape, the others one element; attributes are numbers."""
    names = [name for name, *kind in operator.attributes if kind]

    def make(m):
        dims = m.dims()
        inputs = [m.f(*dims) for _ in range(tensors)] + [m.one() for _ in operator.types[tensors:]]
        return numbers(*names)(m), inputs, None
    return make


def lr_schedule(m):
    kind, warmup = m.chance.randrange(3), m.chance.randrange(4)
    total = warmup + m.chance.randrange(1, 9) if kind else 0
    step = m.ids(12, 1) if m.chance.random() < 0.8 else m.integers(I32, 1)
    return {"kind": kind, "warmup": warmup, "total": total, "base": m.number(), "min": m.number()}, [step], None


def matmul(m, fixed=False):
    d, trans = m.chance.randrange(3), m.chance.randrange(4)
    shape = m.dims(d, d, 4) if d else ()
    rows_a = m.dims(1, 2 if d < 2 else 1)
    k, n = m.chance.choice([(k,) for k in (1, 3, 300, 700, 1100, 1500)] + [(8, 160)] * (d < 2)), m.chance.randrange(1, 5)
    chunk = m.chance.choice([256, 128])
    a = shape + (k + (prod(rows_a),) if trans & 1 else rows_a + (prod(k),))
    b = shape + ((n, prod(k)) if trans & 2 else k + (n,))
    attributes = {"batch_dims": d, "trans": trans, "alpha": m.number()}
    if fixed:
        return {**attributes, "bits": m.chance.choice([8, 16, 24])}, [m.f(*a), m.f(*b)], None
    attributes.update(chunk=chunk, mask=m.chance.randrange(3))
    attributes["window"] = m.chance.choice([0, 1, 3, 200, 2000]) if attributes["mask"] else 0
    return attributes, [m.f(*a), m.numbers(*b)], None


def reduction(kinds):
    def make(m):
        lead, cols = m.dims(1, 3), m.chance.choice([1, 7, 130, 700])
        block, dims = m.chance.choice([1, 100, 128, 1024]), lead + (cols,)
        kind = {"x": lambda: m.f(*dims), "r": lambda: m.row(lead), "c": lambda: m.f(cols),
                "+": lambda: m.repeated(dims)}
        out = lead + (ceil_div(cols, block),)
        return {"cols": cols, "block": block}, [kind[k]() for k in kinds], (F, out)
    return make


def columns(kinds):
    def make(m):
        count, cols = m.chance.choice([1, 5, 64, 65, 200]), m.chance.randrange(1, 6)
        groups = ceil_div(count, 64)
        kind = {"x": lambda: m.f(count, cols), "r": lambda: m.row((count,)), "c": lambda: m.f(cols),
                "g": lambda: m.f(groups, cols)}
        return {"cols": cols}, [kind[k]() for k in kinds], (F, (groups, cols))
    return make


def scores(*kinds):
    def make(m):
        causal = m.chance.randrange(2)
        lead, s = m.dims(1, 2, 3), m.chance.choice([1, 5, 130, 270])
        t = s if causal else m.chance.choice([1, 3])
        blocks = ceil_div(s, 128)
        kind = {"s": (t, s), "c": (t, blocks), "1": (t, 1)}
        window = m.chance.choice([0, 1, 2, 100, 129]) if causal else 0
        return {"causal": causal, "window": window}, [m.f(*lead, *kind[k]) for k in kinds], None
    return make


def attn_av(m):
    attributes, inputs, _ = scores("s")(m)
    dims = inputs[0][0][1]
    lead = dims[:-2][:1]
    return attributes, [m.f(*lead, *dims[-2:]), m.f(*lead, dims[-1], m.chance.randrange(1, 4))], None


def blocks_walked(out):
    def make(m):
        lead, t, blocks, d = m.dims(1, 2, 3), m.chance.randrange(1, 4), m.chance.choice([1, 2, 5]), 3
        mc = m.f(*lead, t, blocks)
        if out:
            return {}, [mc, m.f(*lead, t, blocks, d), m.f(*lead, t, 1)], None
        return {}, [mc, m.f(*lead, t, blocks)], None
    return make


def concat(m):
    return {}, [m.f(*m.dims()) for _ in range(m.chance.randrange(1, 5))], None


def convolution(which, fixed=False):
    def make(m):
        while True:
            groups = m.chance.choice([1, 1, 2])
            c, f = groups * m.chance.choice([1, 3, 40]), groups * m.chance.choice([1, 2, 30])
            a = {"groups": groups}
            size, kernel = [m.chance.randrange(1, 9) for _ in "hw"], [m.chance.randrange(1, 5) for _ in "hw"]
            for s in "hw":
                a.update({f"stride_{s}": m.chance.randrange(1, 3), f"pad_{s}": m.chance.randrange(3),
                          f"dilation_{s}": m.chance.randrange(1, 3)})
            out = [(size[i] + 2 * a[f"pad_{s}"] - a[f"dilation_{s}"] * (kernel[i] - 1) - 1) // a[f"stride_{s}"] + 1
                   for i, s in enumerate("hw")]
            if min(out) >= 1:
                break
        if fixed:
            a["bits"] = m.chance.choice([8, 16, 24])
        n = m.chance.choice([1, 2, 30])
        x, w, y = (n, *size, c), (*kernel, c // groups, f), (n, *out, f)
        inputs, shape = {"": ((x, w), None), "dx": ((y, w), x), "dw": ((x, y), w)}[which]
        return a, [m.f(*dims) for dims in inputs], shape and (F, shape)
    return make


def pooling(gradient, extra, indexed=False):
    def make(m):
        a, size = {}, [m.chance.randrange(1, 9) for _ in "hw"]
        for s in "hw":
            k = m.chance.choice([1, 2, 3, 9])
            a.update({f"kernel_{s}": k, f"stride_{s}": m.chance.randrange(1, 4), f"pad_{s}": m.chance.randrange(k // 2 + 1)})
        out = [(size[i] + 2 * a[f"pad_{s}"] - a[f"kernel_{s}"]) // a[f"stride_{s}"] + 1 for i, s in enumerate("hw")]
        if min(out) < 1:
            return make(m)
        if extra:
            a[extra] = m.chance.randrange(2)
        x, y = (2, *size, 3), (2, *out, 3)
        if not gradient:
            return a, [m.f(*x)], None
        index = [m.ids(a["kernel_h"] * a["kernel_w"], *y)] if indexed else []
        return a, [m.f(*y), *index], (F, x)
    return make


def merges(count):
    def make(m):
        entries, cols, per = m.chance.choice([1, 3, 64, 70]), m.chance.randrange(1, 4), m.chance.choice([1, 64, 4096])
        total = per * (entries - 1) + m.chance.randrange(1, per + 1)
        return ({"cols": cols, "rows": total, "per": per}, [m.f(entries, cols) for _ in range(count)],
                (F, (ceil_div(entries, 64), cols)))
    return make


def declared(dtype, *names, seeded=False):
    return lambda m: ({**(stream(m) if seeded else {}), **numbers(*names)(m)}, [], (dtype, m.dims(1, 4 if dtype == F else 1)))


CASES = {
    "fill": declared(F, "value"), "iota": declared(I32), "normal": declared(F, "mean", "std", seeded=True),
    "read_batch": read_batch, "read_images": read_images, "read_labels": read_labels, "embedding": embedding,
    "embedding_grad": embedding_grad, "split_heads": split_heads, "join_heads": join_heads, "concat": concat,
    "cast": cast, "repeat_heads": repeat_heads, "repeat_heads_grad": repeat_heads_grad, "rope_turns": rope_turns, "rope": rope,
    "dropout": dropout, "cast_stochastic": cast_stochastic, "lr_schedule": lr_schedule, "matmul": matmul, "matmul_fixed": lambda m: matmul(m, True),
    "ln_rstd": lambda m: ({"n": m.chance.choice([1, 5, 2**24 + 1]), "eps": m.number()}, [m.f(*m.dims())], None),
    "xent": labelled("xrri", False), "xent_grad": labelled("xrrir", False),
    "xent_ignore": labelled("xrri", True), "xent_ignore_grad": labelled("xrrir", True),
    "attn_max": scores("s"), "attn_exp": scores("s", "c"), "attn_prob": scores("s", "1", "1"),
    "attn_dscore": scores("s", "s", "1"), "attn_av": attn_av, "attn_l": blocks_walked(False),
    "attn_out": blocks_walked(True),
    "conv2d_fixed": convolution("", True), "conv2d_fixed_dx": convolution("dx", True),
    "conv2d_fixed_dw": convolution("dw", True),
    "conv2d": convolution(""), "conv2d_dx": convolution("dx"), "conv2d_dw": convolution("dw"),
    "avg_pool2d": pooling(False, "count_pad"), "avg_pool2d_grad": pooling(True, "count_pad"),
    "bn_merge_mean": merges(1), "bn_merge_sqdev": merges(2), "compare": compare, "where": where,
}


def axis_of(m, least=1, most=4, below=6):
    dims = m.dims(least, most, below)
    return dims, m.chance.randrange(len(dims))


def long_axis(*lengths):
    def make(m):
        dims, axis = axis_of(m)
        dims = dims[:axis] + (m.chance.choice(lengths),) + dims[axis + 1:]
        return {"axis": axis}, [m.f(*dims)], None
    return make


def transpose(m):
    dims = m.dims(1, 8)
    order = m.chance.sample(range(len(dims)), len(dims)) + [0] * (8 - len(dims))
    return {f"d{i}": d for i, d in enumerate(order)}, [m.any(*dims)], None


def slice_(m):
    dims, axis = axis_of(m)
    start, step = m.chance.randrange(dims[axis]), m.chance.randrange(1, 4)
    length = m.chance.randrange(1, (dims[axis] - 1 - start) // step + 2)
    return {"axis": axis, "start": start, "length": length, "step": step}, [m.any(*dims)], None


def pad(m):
    dims, axis = axis_of(m)
    x = m.any(*dims)
    value = m.number() if x[0][0] == F else m.chance.randrange(256)
    return ({"axis": axis, "before": m.chance.randrange(3), "after": m.chance.randrange(3),
             "step": m.chance.randrange(1, 3), "value": value}, [x], None)


def gather(m):
    dims, axis = axis_of(m, 1, 3)
    return {"axis": axis}, [m.any(*dims), m.ids(dims[axis], *m.dims(1, 2))], None


def gather_grad(m):
    dims, axis = axis_of(m, 1, 2)
    dims = dims[:axis] + (m.chance.choice([1, 2, 20]),) + dims[axis + 1:]
    count = m.chance.choice([5, 300, 1200, 1700])
    dy = m.f(*dims[:axis], count, *dims[axis + 1:])
    return {"axis": axis}, [dy, m.ids(dims[axis], count)], (F, dims)


def concat_axis(m):
    dims, axis = axis_of(m)
    x = m.any(*dims)
    others = [dims[:axis] + (m.chance.randrange(1, 5),) + dims[axis + 1:] for _ in range(m.chance.randrange(4))]
    return {"axis": axis}, [x] + [m.f(*d) if x[0][0] == F else m.integers(x[0][0], *d) for d in others], None


def expand(m):
    dims, axis = axis_of(m)
    return ({"axis": axis, "count": m.chance.randrange(1, 6)}, [m.f(*dims[:axis], 1, *dims[axis + 1:])], None)


def max_grad(m):
    dims, axis = axis_of(m)
    dims, count = dims[:axis] + (1,) + dims[axis + 1:], m.chance.randrange(1, 6)
    return {"axis": axis, "count": count}, [m.ids(count, *dims), m.f(*dims)], None


def reshape(m):
    dims = m.dims()
    x = m.any(*dims)
    return {}, [x], (x[0][0], m.chance.choice([dims[::-1], (prod(dims),), (1, prod(dims))]))


CASES.update({
    "transpose": transpose, "slice": slice_, "pad": pad, "gather": gather, "gather_grad": gather_grad,
    "concat_axis": concat_axis, "expand": expand, "max_grad": max_grad, "reshape": reshape,
    "argmax": long_axis(3, 700, 2600, 3000), "sum_axis": long_axis(1, 64, 130), "max_axis": long_axis(1, 64, 130),
    "uniform": declared(F, "low", "high", seeded=True),
    "permutation": lambda m: (stream(m), [m.integers(I32, 1)], (I32, (m.chance.choice([1, 4, 1000]),))),
    "kept": lambda m: ({"ignore": m.chance.randrange(-1, 3)}, [m.ids(3, *m.dims())], None),
    "max_pool2d": pooling(False, None), "max_pool2d_index": pooling(False, None),
    "max_pool2d_grad": pooling(True, None, indexed=True),
})


def put_rows(m):
    dims, axis = axis_of(m)
    x = m.any(*dims)
    rows = dims[:axis] + (m.chance.randrange(1, 6),) + dims[axis + 1:]
    put = m.f(*rows) if x[0][0] == F else m.integers(x[0][0], *rows)
    return {"axis": axis}, [x, put, m.integer(m.chance.randrange(-3, dims[axis] + 2))], None


def placed(kind):
    """Queries whose position is data: attn_max_at (s), attn_exp_at (s, mc), attn_av_at (e, v)."""
    def make(m):
        keys = m.chance.choice([1, 5, 129, 300])
        lead, queries = m.dims(0, 2, 3), m.chance.randrange(1, min(keys, 4) + 1)
        s = lead + (queries, keys)
        second = {"max": [], "exp": [lead + (queries, ceil_div(keys, 128))],
                  "av": [lead + (keys, m.chance.randrange(1, 4))]}[kind]
        first = m.integer(m.chance.choice([-2, 0, keys // 2, keys - queries, keys + 1, 2**31 - 1]))
        window = m.chance.choice([0, 0, 1, 3, 200])
        return {"window": window}, [m.f(*s), *(m.f(*d) for d in second), first], None
    return make


def weights(m, *dims):
    """Weights: few distinct values, any values, or like a softmax."""
    way, count = m.chance.randrange(3), prod(dims)
    if way == 0:
        return m.ids(4, *dims)
    if way == 1:
        return m.integers(I32, *dims)
    return (I32, dims), b"".join(pack("<i", m.chance.getrandbits(m.chance.randrange(32))) for _ in range(count))


def drawn(*more, **attributes):
    """One or several rows; `more` are pairs for each row."""
    def make(m):
        lead = m.chance.choice([(), (1,), (2,), (2, 1)])
        count = m.chance.choice([1, 3, 70, 600, 1100])
        said = {name: value(m, count) for name, value in attributes.items()}
        pairs = [m.integers(I32, *lead, 2) if kind == "words" else weights(m, *lead, 2) for kind in more]
        return said, [weights(m, *lead, count), *pairs], None
    return make


def random_words(m):
    return stream(m), [m.integers(I32, *m.dims(0, 3), 2), m.integers(I32, 1)], None


CASES.update({
    "iadd": lambda m: (lambda pair: ({}, [m.integers(I32, *s[1]) for s, _ in pair[1]], None))(pair(m)),
    "integer": integer, "round": lambda m: ({"kind": m.chance.randrange(4)}, [m.f(*m.dims())], None),
    "normal_at": drawn_at("mean", "std"), "uniform_at": drawn_at("low", "high"),
    "take_along": lambda m: lines(m, 1), "put_along": lambda m: lines(m, 2),
    "argsort": lambda m: line(m, descending=m.chance.randrange(2)),
    "running": lambda m: line(m, kind=m.chance.randrange(3)),
    "isum": lambda m: (lambda case: (case[0], [m.integers(I32, *case[1][0][0][1])], None))(line(m)),
    "put_rows": put_rows, "attn_max_at": placed("max"), "attn_exp_at": placed("exp"), "attn_av_at": placed("av"),
    "keep_top": drawn("cut"), "random_words": random_words, "draw": drawn("words"),
    "top_k": drawn(k=lambda m, count: m.chance.choice([1, 2, count // 2 + 1, count, count + 1])),
    "top_p": drawn(p=lambda m, count: m.chance.choice([1, 2**23, 2**24, m.chance.randrange(1, 2**24)])),
})


# For operators without an entry in CASES: generators by the shape rule, see definitions.calls.
GENERATORS = {
    "alike": lambda operator: update(operator, len(operator.types)), "pair": lambda operator: pair, "update": update,
    "rows": lambda operator, kinds: rows(kinds), "reduction": lambda operator, kinds: reduction(kinds),
    "columns": lambda operator, kinds: columns(kinds),
}


def generator(operator):
    """The generator of calls, or None."""
    name, *told = getattr(operator.shape, "calls", [None])
    return CASES.get(operator.name) or (name and GENERATORS[name](operator, *told))


def make(operator, chance):
    """Attributes by name, inputs as (shape, bytes), and the output's shape if declared."""
    return generator(operator)(Maker(chance))
