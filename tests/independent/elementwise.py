"""Elementwise formulas, softmax, norms, optimizers: SPEC.md sections 6, 7 and 9."""

import binary32 as b
from binary32 import NAN, ONE, ZERO, exp, f, fma, log, of_int, sigmoid, sqrt, tanh
from definitions import F, I32, Operator, calls, has_stream, numel, per_row, repeats, stands_for, stream_words

LARGEST = f("0x1.fffffep127")
C0, C1 = f("0x1.988454p-1"), f("0x1.6e4e26p-5")
HALF = f("0.5")


@calls("alike")
def like_first(n):
    return n.shapes[0]


@calls("alike")
def all_alike(n):
    return n.shapes[0] if all(s == n.shapes[0] for s in n.shapes) else None


@calls("pair")
def second_repeats(n):
    return n.shapes[0] if repeats(n.dims_of(1), n.dims_of(0)) else None


def binary(number, name, formula):
    Operator(number, f"{name}(a, b)", second_repeats,
             lambda n, e, x: formula(x(0, e), x(1, e % numel(n.dims_of(1)))))


def unary(number, signature, formula):
    Operator(number, signature, like_first, lambda n, e, x: formula(x(0, e)))


def gradient(number, name, formula):
    Operator(number, f"{name}(x, dy)", all_alike, lambda n, e, x: formula(x(0, e), x(1, e)))


def silu(x):
    return b.at_least(x, -LARGEST) * sigmoid(x)


def silu_grad(x, dy):
    s, c = sigmoid(x), b.at_least(b.at_most(x, LARGEST), -LARGEST)
    return dy * (s * fma(c, ONE - s, ONE))


def gelu_tanh(x):
    return tanh((C0 * x) * fma(C1, x * x, ONE))


def gelu(x):
    return (HALF * b.at_least(x, -LARGEST)) * (ONE + gelu_tanh(x))


def gelu_grad(x, dy):
    t, c = gelu_tanh(x), b.at_least(b.at_most(x, f("8")), f("-8"))
    s = fma(-t, t, ONE)
    v = C0 * fma(f("3") * C1, c * c, ONE)
    return dy * fma((HALF * c) * s, v, HALF * (ONE + t))


def relu(x):
    return NAN if x.is_nan() else b.positive_part(x)


def larger(p, q):
    """max, as defined in section 3.2."""
    if p.is_nan() or q.is_nan():
        return NAN
    if p.is_zero() and q.is_zero():
        return b.F32(p.word & q.word)
    return q if q > p else p


def order_of(value):
    """Integers that are ordered like the values; None for a NaN."""
    if isinstance(value, int):
        return value
    return None if value.is_nan() else value.order()


def compare(n, e, x):
    p, q = order_of(x(0, e)), order_of(x(1, e % numel(n.dims_of(1))))
    if p is None or q is None:
        return int(n["kind"] == 1)
    return int((p == q, p != q, p < q, p <= q, p > q, p >= q)[n["kind"]])


def compare_shape(n):
    fits = 0 <= n["kind"] <= 5 and n.shapes[0][0] == n.shapes[1][0] and repeats(n.dims_of(1), n.dims_of(0))
    return (I32, n.dims_of(0)) if fits else None


def where_shape(n):
    return n.shapes[1] if n.shapes[1] == n.shapes[2] and n.dims_of(0) == n.dims_of(1) else None


def where(n, e, x):
    choice, left, right = x(0, e), x(1, e), x(2, e)
    return left if choice else right


def leaky_relu(n, e, x):
    value = x(0, e)
    return value if value > ZERO else value * n.number("slope")


def leaky_relu_grad(n, e, x):
    value, dy = x(0, e), x(1, e)
    if value.is_nan():
        return NAN
    return dy * ONE if value > ZERO else dy * n.number("slope")


def soft_shrink(n, e, x):
    value, lambd = x(0, e), n.number("lambd")
    if lambd >= value:
        return value * ZERO if value >= -lambd else value + lambd
    return value - lambd


def soft_shrink_grad(n, e, x):
    value, dy, lambd = x(0, e), x(1, e), n.number("lambd")
    return ZERO if lambd >= value and value >= -lambd else dy * ONE


def relu_grad(n, e, x):
    value, dy = x(0, e), x(1, e)
    if value > ZERO:
        return dy
    return NAN if value.is_nan() else ZERO


binary(16, "add", lambda p, q: p + q)
binary(24, "mul", lambda p, q: p * q)
binary(25, "sub", lambda p, q: p - q)
binary(26, "div", lambda p, q: p / q)
Operator(17, "div_const(x; divisor f)", like_first, lambda n, e, x: x(0, e) / n.number("divisor"))
unary(18, "gelu(x)", gelu)
gradient(19, "gelu_grad", gelu_grad)
Operator(27, "scale(x; factor f)", like_first, lambda n, e, x: x(0, e) * n.number("factor"))
for code, function in ((28, exp), (29, log), (30, sqrt), (31, b.rsqrt), (100, tanh), (101, b.erf), (102, sigmoid)):
    unary(code, f"{function.__name__}(x)", function)
gradient(105, "tanh_grad", lambda y, dy: dy * fma(-y, y, ONE))
gradient(106, "erf_grad", lambda x, dy: dy * (f("0x1.20dd76p0") * exp(-(x * x))))
gradient(107, "sigmoid_grad", lambda y, dy: dy * (y * (ONE - y)))
unary(20, "relu(x)", relu)
Operator(21, "relu_grad(x, dy)", all_alike, relu_grad)
binary(207, "max", larger)
binary(208, "min", lambda p, q: b.canon(-larger(-p, -q)))
unary(209, "abs(x)", lambda x: b.canon(abs(x)))
Operator(210, "compare(a f32 i32, b f32 i32; kind)", compare_shape, compare)
Operator(211, "where(c i32, a any, b any)", where_shape, where)
Operator(212, "leaky_relu(x; slope f)", like_first, leaky_relu)
Operator(213, "leaky_relu_grad(x, dy; slope f)", all_alike, leaky_relu_grad)
Operator(230, "soft_shrink(x; lambd f)", like_first, soft_shrink)
Operator(231, "soft_shrink_grad(x, dy; lambd f)", all_alike, soft_shrink_grad)
unary(103, "silu(x)", silu)
unary(104, "gelu_erf(x)", b.gelu_erf)
gradient(108, "silu_grad", silu_grad)
gradient(109, "gelu_erf_grad", lambda x, dy: dy * b.gelu_erf_slope(x))


def dropout_shape(n):
    allowed = has_stream(n) and 0 <= n["threshold"] < 2**32 and numel(n.dims_of(1)) == 1
    return n.shapes[0] if allowed else None


def dropout(n, e, x):
    value, word = x(0, e), stream_words(n, e, x(1, 0))[e % 4]
    return value * n.number("scale") if word >= n["threshold"] else ZERO


Operator(22, "dropout(x, step i32; seed, stream, threshold, scale f)", dropout_shape, dropout)

# Norms: rows of C = the last dimension. An operand has an element for each row (r) or column (c), or is like x (x).


def rows_and_columns(kinds):
    """A shape rule: the output is like the first input; the others are of the given kinds."""
    @calls("rows", kinds)
    def shape(n):
        dims = n.dims_of(0)
        fits = {"x": lambda d: d == dims, "r": lambda d: per_row(d, dims, dims[-1]),
                "c": lambda d: stands_for(d, dims[-1:])}
        return n.shapes[0] if all(fits[k](s[1]) for k, s in zip(kinds, n.shapes)) else None
    return shape


def rowwise(number, signature, kinds, formula):
    """formula(n, the operands' elements for e, C)."""
    def element(n, e, x):
        c = n.dims[-1]
        index = {"x": e, "r": e // c, "c": e % c}
        return formula(n, [x(i, index[k]) for i, k in enumerate(kinds)], of_int(c))
    Operator(number, signature, rows_and_columns(kinds), element)


def ln_rstd(n, e, x):
    v = x(0, e) / of_int(n["n"]) + n.number("eps")
    return NAN if v.word == b.INF.word else ONE / sqrt(v)


def layernorm(n, v, c):
    x, mean, rstd, gamma, beta = v
    return fma((x - mean) * rstd, gamma, beta)


def ln_dx(n, v, c):
    dy, gamma, x, mean, rstd, sg, sgx = v
    return rstd * fma(-((x - mean) * rstd), sgx / c, dy * gamma - sg / c)


def rms_dx(n, v, c):
    dy, gamma, x, rstd, sgx = v
    return rstd * fma(-(x * rstd), sgx / c, dy * gamma)


Operator(56, "ln_rstd(ss; n, eps f)", lambda n: n.shapes[0] if 1 <= n["n"] <= 2**40 else None, ln_rstd)
rowwise(57, "layernorm(x, mean, rstd, gamma, beta)", "xrrcc", layernorm)
rowwise(58, "ln_dx(dy, gamma, x, mean, rstd, sg, sgx)", "xcxrrrr", ln_dx)
rowwise(122, "rmsnorm(x, rstd, gamma)", "xrc", lambda n, v, c: (v[0] * v[1]) * v[2])
rowwise(123, "rms_dx(dy, gamma, x, rstd, sgx)", "xcxrr", rms_dx)

# Softmax and cross-entropy.


def of_rows(shapes, first=1):
    return all(per_row(s[1], shapes[0][1], shapes[0][1][-1]) for s in shapes[first:])


def xent(n, e, x):
    v, m, l, label = n.dims_of(0)[-1], x(1, e), x(2, e), x(3, e)
    if is_ignored(n, label):
        return ZERO
    return log(l) - (x(0, e * v + label) - m) if 0 <= label < v else NAN


def xent_grad(n, e, x):
    v = n.dims[-1]
    row, i = divmod(e, v)
    score, m, l, label, dloss = x(0, e), x(1, row), x(2, row), x(3, row), x(4, row)
    if is_ignored(n, label):
        return ZERO
    return (exp(score - m) * (ONE / l) - (ONE if i == label else ZERO)) * dloss


def is_ignored(n, label):
    return label == n.attributes.get("ignore")


def ignore_fits(n):
    return -2**31 <= n["ignore"] < 2**31


def losses(n):
    return (F, n.dims_of(3)) if of_rows(n.shapes) else None


def loss_gradient(n):
    return n.shapes[0] if of_rows(n.shapes) else None


Operator(64, "xent(x, m, l, ids i32)", losses, xent)
Operator(65, "xent_grad(x, m, l, ids i32, dloss)", loss_gradient, xent_grad)
Operator(114, "xent_ignore(x, m, l, ids i32; ignore)", lambda n: losses(n) if ignore_fits(n) else None, xent)
Operator(115, "xent_ignore_grad(x, m, l, ids i32, dloss; ignore)",
         lambda n: loss_gradient(n) if ignore_fits(n) else None, xent_grad)

rowwise(110, "softmax(x, m, l)", "xrr", lambda n, v, c: exp(v[0] - v[1]) * (ONE / v[2]))
rowwise(111, "softmax_grad(y, dy, d)", "xxr", lambda n, v, c: v[0] * (v[1] - v[2]))
rowwise(112, "log_softmax(x, m, l)", "xrr", lambda n, v, c: (v[0] - v[1]) - log(v[2]))
rowwise(113, "log_softmax_grad(y, dy, s)", "xxr", lambda n, v, c: fma(-exp(v[0]), v[2], v[1]))
Operator(116, "kept(ids i32; ignore)", lambda n: (F, n.dims_of(0)) if ignore_fits(n) else None,
         lambda n, e, x: ZERO if is_ignored(n, x(0, e)) else ONE)

# Optimizers.


def singles(n, first):
    return all(numel(s[1]) == 1 for s in n.shapes[first:])


def update(number, signature, tensors, element):
    """The first `tensors` inputs have one shape, the others have one element."""
    @calls("update", tensors)
    def shape(n):
        return n.shapes[0] if singles(n, tensors) and all(s == n.shapes[0] for s in n.shapes[:tensors]) else None
    Operator(number, signature, shape, element)


def lr_schedule_shape(n):
    kind, warmup, total = n["kind"], n["warmup"], n["total"]
    allowed = kind in (0, 1, 2) and 0 <= warmup < 2**31 and (total == 0 if kind == 0 else warmup < total < 2**31)
    return (F, (1,)) if allowed and singles(n, 0) else None


def lr_schedule(n, e, x):
    s, kind, warmup, total = x(0, 0), n["kind"], n["warmup"], n["total"]
    base, least = n.number("base"), n.number("min")
    if s < 0:
        return ZERO
    if s < warmup:
        return base * (of_int(s + 1) / of_int(warmup))
    if kind == 0:
        return base
    if s >= total:
        return least
    if kind == 1:
        return fma(least - base, of_int(s - warmup) / of_int(total - warmup), base)
    turn = ((s - warmup) << 23) // (total - warmup)
    return fma(base - least, HALF * (ONE + b.cos_turn(turn)), least)


def bias_correction(n, e, x):
    beta = n.number("beta")
    return fma(beta, x(0, e), ONE - beta)


def clip_scale(n, e, x):
    norm, most = sqrt(x(0, 0)), n.number("max_norm")
    if norm > most:
        return NAN if norm.is_inf() else most / norm
    return ONE


def adamw_m(n, e, x):
    beta, g = n.number("beta"), x(1, e) * x(2, 0)
    return fma(beta, x(0, e), (ONE - beta) * g)


def adamw_v(n, e, x):
    beta, g = n.number("beta"), x(1, e) * x(2, 0)
    return fma(beta, x(0, e), (ONE - beta) * (g * g))


def adamw_w(n, e, x):
    w, m, v, c1, c2, lr = [x(i, e if i < 3 else 0) for i in range(6)]
    r = sqrt(v * (ONE / c2))
    u = NAN if r.is_inf() else (m * (ONE / c1)) / (r + n.number("eps"))
    return fma(-lr, fma(n.number("decay"), w, u), w)


Operator(88, "lr_schedule(step i32; kind, base f, min f, warmup, total)", lr_schedule_shape, lr_schedule)
update(89, "bias_correction(c; beta f)", 0, bias_correction)
update(90, "clip_scale(sumsq; max_norm f)", 0, clip_scale)
update(91, "adamw_m(m, g, clip; beta f)", 2, adamw_m)
update(92, "adamw_v(v, g, clip; beta f)", 2, adamw_v)
update(93, "adamw_w(w, m, v, c1, c2, lr; eps f, decay f)", 3, adamw_w)


def sgd_d(n, w, g, clip):
    return fma(n.number("decay"), w, g * clip)


def sgd_m(n, e, x):
    m, g, w, clip = x(0, e), x(1, e), x(2, e), x(3, 0)
    return fma(n.number("momentum"), m, sgd_d(n, w, g, clip))


def sgd_nesterov(n, e, x):
    w, m, g, clip, lr = x(0, e), x(1, e), x(2, e), x(3, 0), x(4, 0)
    return fma(-lr, fma(n.number("momentum"), m, sgd_d(n, w, g, clip)), w)


update(94, "sgd_m(m, g, w, clip; momentum f, decay f)", 3, sgd_m)
update(95, "sgd_w(w, m, lr)", 2, lambda n, e, x: fma(-x(2, 0), x(1, e), x(0, e)))
update(96, "sgd_nesterov(w, m, g, clip, lr; momentum f, decay f)", 3, sgd_nesterov)
