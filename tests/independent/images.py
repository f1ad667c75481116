"""Convolution, pooling, batch norm: SPEC.md section 12."""

from math import prod

from binary32 import INF, ZERO, canon, fma, of_int
from definitions import F, I32, Operator, calls, ceil_div, numel, place, places, stands_for
from elementwise import all_alike
from sums import Dot, FixedDot, larger

CONVOLUTION = "; stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups"
POOLING = "; kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w"


def windows(size, kernel, stride, pad, dilation):
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def convolved(n, x, w):
    """The output dimensions of an image and filters, or None if they do not fit."""
    if not len(x) == len(w) == 4 or not all(
            lo <= n[f"{name}_{side}"] <= 65536 for name, lo in (("stride", 1), ("pad", 0), ("dilation", 1))
            for side in "hw"):
        return None
    groups = n["groups"]
    if n.attributes.get("bits", 16) not in (8, 16, 24):
        return None
    if groups < 1 or x[3] % groups or w[3] % groups or w[2] != x[3] // groups:
        return None
    out = [windows(x[1 + i], w[i], n[f"stride_{side}"], n[f"pad_{side}"], n[f"dilation_{side}"])
           for i, side in enumerate("hw")]
    return (x[0], *out, w[3]) if min(out) >= 1 else None


def convolution(numbers, name, inputs, image, filters, result, terms):
    """A convolution and its fixed variant. The other arguments tell which input each operand is; -1: the output."""
    def shape(n):
        dims = [s[1] for s in n.shapes] + [n.dims]
        made = convolved(n, dims[image], dims[filters])
        if made is None or (result >= 0 and (made != dims[result] or n.shape[0] != F)):
            return None
        return (F, made) if result < 0 else True
    Operator(numbers[0], f"conv2d{name}({inputs}{CONVOLUTION})", shape, fold=Dot(terms))
    Operator(numbers[1], f"conv2d_fixed{name}({inputs}{CONVOLUTION}, bits)", shape, fold=FixedDot(terms))


def pixel(n, o, k, side, size):
    """The pixel at tap k of window o, or None outside the image."""
    i = o * n[f"stride_{side}"] - n[f"pad_{side}"] + k * n[f"dilation_{side}"]
    return i if 0 <= i < size else None


def window(n, i, k, side, count):
    """The window whose tap k is at pixel i, or None."""
    o, rest = divmod(i + n[f"pad_{side}"] - k * n[f"dilation_{side}"], n[f"stride_{side}"])
    return o if rest == 0 and 0 <= o < count else None


def conv2d_terms(n, e):
    x, w = n.dims_of(0), n.dims_of(1)
    image, oh, ow, f = places(e, n.dims)
    q = f // (w[3] // n["groups"])

    def at(i):
        kh, kw, ci = places(i, w[:3])
        ih, iw = pixel(n, oh, kh, "h", x[1]), pixel(n, ow, kw, "w", x[2])
        outside = ih is None or iw is None
        return None if outside else place((image, ih, iw, q * w[2] + ci), x), place((kh, kw, ci, f), w)
    return prod(w[:3]), 256, at


def conv2d_dx_terms(n, e):
    y, w = n.dims_of(0), n.dims_of(1)
    image, h, v, channel = places(e, n.dims)
    q, ci = divmod(channel, w[2])
    filters = w[3] // n["groups"]

    def at(i):
        kh, kw, g = places(i, (w[0], w[1], filters))
        oh, ow = window(n, h, kh, "h", y[1]), window(n, v, kw, "w", y[2])
        outside = oh is None or ow is None
        return None if outside else place((image, oh, ow, q * filters + g), y), place((kh, kw, ci, q * filters + g), w)
    return w[0] * w[1] * filters, 256, at


def conv2d_dw_terms(n, e):
    x, y, w = n.dims_of(0), n.dims_of(1), n.dims
    kh, kw, ci, f = places(e, w)
    q = f // (w[3] // n["groups"])

    def at(i):
        image, oh, ow = places(i, y[:3])
        ih, iw = pixel(n, oh, kh, "h", x[1]), pixel(n, ow, kw, "w", x[2])
        outside = ih is None or iw is None
        return None if outside else place((image, ih, iw, q * w[2] + ci), x), place((image, oh, ow, f), y)
    return prod(y[:3]), 256, at


convolution((128, 227), "", "x, w", 0, 1, -1, conv2d_terms)
convolution((129, 228), "_dx", "dy, w", -1, 1, 0, conv2d_dx_terms)
convolution((130, 229), "_dw", "x, dy", 0, -1, 1, conv2d_dw_terms)


def pooled(n, x):
    """The output dimensions of windows over an image, or None if they do not fit."""
    if len(x) != 4 or not all(n[f"kernel_{s}"] >= 1 and 1 <= n[f"stride_{s}"] <= 65536 and
                              0 <= n[f"pad_{s}"] <= n[f"kernel_{s}"] // 2 for s in "hw"):
        return None
    if n["kernel_h"] * n["kernel_w"] > 4096 or n.attributes.get("count_pad", 0) not in (0, 1):
        return None
    out = [windows(x[1 + i], n[f"kernel_{s}"], n[f"stride_{s}"], n[f"pad_{s}"], 1) for i, s in enumerate("hw")]
    return (x[0], *out, x[3]) if min(out) >= 1 else None


def few_windows(n):
    return prod((n[f"kernel_{s}"] - 1) // n[f"stride_{s}"] + 1 for s in "hw") <= 2048


def pooling_shape(n):
    dims = pooled(n, n.dims_of(0))
    return (n.shapes[0][0], dims) if dims else None


def pooling_grad_shape(n):
    return n.shape[0] == F and len(n.dims) == 4 and pooled(n, n.dims) == n.dims_of(0) and few_windows(n) or None


def dot_64(terms):
    """Sums in the order of dot_64; None is an absent term."""
    total = acc = ZERO
    for t, term in enumerate(terms):
        if t and t % 64 == 0:
            total, acc = total + acc, ZERO
        if term is not None:
            acc = acc + term
    return total + acc


def taps(n, dims, image, oh, ow, c):
    """The index in the image of each tap of a window, or None."""
    for kh in range(n["kernel_h"]):
        for kw in range(n["kernel_w"]):
            h, w = oh * n["stride_h"] - n["pad_h"] + kh, ow * n["stride_w"] - n["pad_w"] + kw
            inside = 0 <= h < dims[1] and 0 <= w < dims[2]
            yield place((image, h, w, c), dims) if inside else None


def windows_of(n, dims, e):
    """For each tap, the index of the window that has it at element e of the image, or None."""
    image, h, w, c = places(e, n.dims)
    for kh in range(n["kernel_h"]):
        for kw in range(n["kernel_w"]):
            oh, rest_h = divmod(h + n["pad_h"] - kh, n["stride_h"])
            ow, rest_w = divmod(w + n["pad_w"] - kw, n["stride_w"])
            inside = not rest_h and not rest_w and 0 <= oh < dims[1] and 0 <= ow < dims[2]
            yield (image, oh, ow, c) if inside else None


def taps_counted(n, dims, index):
    if n["count_pad"]:
        return of_int(n["kernel_h"] * n["kernel_w"])
    return of_int(sum(at is not None for at in taps(n, dims, *index)))


def avg_pool2d(n, e, x):
    dims, index = n.dims_of(0), places(e, n.dims)
    total = dot_64(None if at is None else x(0, at) for at in taps(n, dims, *index))
    return total / taps_counted(n, dims, index)


def avg_pool2d_grad(n, e, x):
    dims = n.dims_of(0)
    return dot_64(None if index is None else x(0, place(index, dims)) / taps_counted(n, n.dims, index)
                  for index in windows_of(n, dims, e))


Operator(139, f"avg_pool2d(x{POOLING}, count_pad)", pooling_shape, avg_pool2d)
Operator(140, f"avg_pool2d_grad(dy{POOLING}, count_pad)", pooling_grad_shape, avg_pool2d_grad)



def max_pool2d(n, e, x):
    m = -INF
    for at in taps(n, n.dims_of(0), *places(e, n.dims)):
        m = m if at is None else larger(m, x(0, at))
    return m


def max_pool2d_index(n, e, x):
    values = [None if at is None else x(0, at) for at in taps(n, n.dims_of(0), *places(e, n.dims))]
    best = None
    for t, value in enumerate(values):
        if value is None:
            continue
        if value.is_nan():
            return t
        if best is None or larger(values[best], value).word != values[best].word:
            best = t
    return best


def max_pool2d_grad(n, e, x):
    dims = n.dims_of(0)

    def terms():
        for t, index in enumerate(windows_of(n, dims, e)):
            at = None if index is None else place(index, dims)
            yield x(0, at) if at is not None and x(1, at) == t else None
    return dot_64(terms())


def index_shape(n):
    shape = pooling_shape(n)
    return shape and (I32, shape[1])


Operator(136, f"max_pool2d(x{POOLING})", pooling_shape, max_pool2d)
Operator(137, f"max_pool2d_index(x{POOLING})", index_shape, max_pool2d_index)
Operator(138, f"max_pool2d_grad(dy, index i32{POOLING})", lambda n: pooling_grad_shape(n) if n.dims_of(0) == n.dims_of(
    1) else None, max_pool2d_grad)

# Batch norm.


def merge_shape(n):
    cols, entries = n["cols"], numel(n.dims_of(0))
    if cols < 1 or entries % cols or not (1 <= n["rows"] <= 2**40 and 1 <= n["per"] <= 2**40) or n.shape[0] != F:
        return None
    groups = ceil_div(entries // cols, 64)
    whole = ceil_div(n["rows"], n["per"]) == entries // cols and all(s == n.shapes[0] for s in n.shapes)
    return whole and numel(n.dims) == groups * cols or None


def merged(n, e, x, squares):
    """Mean and sum of squared deviations of a group of entries; the latter only if `squares`."""
    cols, rows, per = n["cols"], n["rows"], n["per"]
    group, c = divmod(e, cols)
    entries = range(64 * group, min(64 * (group + 1), numel(n.dims_of(0)) // cols))
    mean = total = None
    for i in entries:
        count = min(per, rows - i * per)
        m, s = x(0, i * cols + c), x(1, i * cols + c) if squares else ZERO
        if mean is None:
            mean, total, a = m, s, count
            continue
        d, both = m - mean, of_int(a + count)
        total = total + fma(d * d, (of_int(a) * of_int(count)) / both, s)
        mean, a = fma(d, of_int(count) / both, mean), a + count
    return canon(mean), canon(total)


def of_channels(kinds, formula):
    @calls("rows", kinds)
    def shape(n):
        dims = n.dims_of(0)
        return n.shapes[0] if all(s[1] == dims if k == "x" else stands_for(s[1], dims[-1:])
                                  for k, s in zip(kinds, n.shapes)) else None

    def element(n, e, x):
        c = e % n.dims[-1]
        return formula(of_int(numel(n.dims) // n.dims[-1]), *[x(i, e if k == "x" else c) for i, k in enumerate(kinds)])
    return shape, element


def batchnorm(rows, x, mean, rstd, gamma, beta):
    return fma((x - mean) * rstd, gamma, beta)


def bn_dx(rows, dy, x, mean, rstd, gamma, dbeta, dgamma):
    return (gamma * rstd) * fma(-((x - mean) * rstd), dgamma / rows, dy - dbeta / rows)


def bn_running(n, e, x):
    r = x(0, e)
    return fma(n.number("momentum"), x(1, e) / n.number("divisor") - r, r)


Operator(146, "bn_merge_mean(m; cols, rows, per)", merge_shape, lambda n, e, x: merged(n, e, x, False)[0])
Operator(147, "bn_merge_sqdev(m, s; cols, rows, per)", merge_shape,
         lambda n, e, x: merged(n, e, x, True)[1])
Operator(148, "batchnorm(x, mean, rstd, gamma, beta)", *of_channels("xcccc", batchnorm))
Operator(150, "bn_dx(dy, x, mean, rstd, gamma, dbeta, dgamma)", *of_channels("xxccccc", bn_dx))
Operator(151, "bn_running(r, v; momentum f, divisor f)", all_alike, bn_running)
