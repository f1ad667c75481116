"""The peer of bench/elementwise.c: PyTorch's operators, FP32.

Reads "NAME ROWS COLS PASSES" and answers with the seconds per pass, or 0 if there is no such operator.
Tensors are kept while name and shape stay the same. It answers "hello" with a line about itself. Argument:
the number of threads. Results go to existing memory where PyTorch can do that.
"""

import sys

import harness

torch = harness.torch_with(int(sys.argv[1]))
from torch.nn import functional as F  # noqa: E402 (the threads are to be set first)

aten = torch.ops.aten


def sinks(x, dim):
    return torch.empty(x.shape[0] if dim else x.shape[1])


def adamw(w, m, v, g):
    step = torch.tensor(10.0)
    return lambda: torch._fused_adamw_([w], [g], [m], [v], [], [step], lr=1e-3, beta1=0.9, beta2=0.95,
                                       weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)


def sgd(w, m, g):
    return lambda: torch._fused_sgd_([w], [g], [m], lr=1e-3, momentum=0.9, weight_decay=0.1,
                                     dampening=0.0, nesterov=False, maximize=False,
                                     is_first_step=False)


def heads_of(x):
    rows, cols = x.shape
    return x.view(rows // 64, 64, cols // 64, 64)


def entropy_back(x, ids):
    x = x.detach().requires_grad_()

    def run():
        x.grad = None
        F.cross_entropy(x, ids).backward()
    return run


def rope(x):
    """Returns Llama's rotation: x cos + rotated x sin."""
    q = heads_of(x).transpose(1, 2).contiguous()
    c = torch.rand(64, 64)

    def run():
        a, b = q.chunk(2, -1)
        return q * c + torch.cat((-b, a), -1) * c
    return run


def rms_norm_back(x, gamma, dy):
    x, gamma = x.detach().requires_grad_(), gamma.detach().requires_grad_()
    with torch.enable_grad():
        y = F.rms_norm(x, [x.shape[1]], gamma, 1e-5)

    def run():
        with torch.enable_grad():
            torch.autograd.grad(y, (x, gamma), dy, retain_graph=True)
    return run


def rotary(x):
    """Returns the rotation of Llama's queries as in transformers: a view of a linear layer's output
    by heads, then rope."""
    c, s = torch.rand(64, 64), torch.rand(64, 64)

    def run():
        q = heads_of(x).transpose(1, 2)
        a, b = q[..., :32], q[..., 32:]
        return q * c + torch.cat((-b, a), -1) * s
    return run


def operation(name, rows, cols):
    """Returns a function that runs one pass; None if PyTorch has no such operator."""
    x, y, z, out = (torch.rand(rows, cols) * 4 + 1e-6 for _ in range(4))
    row, wide = torch.rand(rows, 1), torch.rand(cols)
    stats = torch.rand(rows, 1), torch.rand(rows, 1)
    ids = torch.randint(cols, (rows,))
    every = [True, True, True]
    unary = {"exp": torch.exp, "log": torch.log, "tanh": torch.tanh, "erf": torch.erf,
             "sigmoid": torch.sigmoid, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt}
    if name in unary:
        return lambda: unary[name](x, out=out)
    table = {
        "gelu": lambda: lambda: aten.gelu.out(x, approximate="tanh", out=out),
        "gelu_erf": lambda: lambda: aten.gelu.out(x, out=out),
        "silu": lambda: lambda: aten.silu.out(x, out=out),
        "relu": lambda: lambda: aten.relu.out(x, out=out),
        "gelu_grad": lambda: lambda: aten.gelu_backward.grad_input(
            y, x, approximate="tanh", grad_input=out),
        "gelu_erf_grad": lambda: lambda: aten.gelu_backward.grad_input(y, x, grad_input=out),
        "silu_grad": lambda: lambda: aten.silu_backward.grad_input(y, x, grad_input=out),
        "relu_grad": lambda: lambda: aten.threshold_backward.grad_input(y, x, 0, grad_input=out),
        "tanh_grad": lambda: lambda: aten.tanh_backward.grad_input(y, x, grad_input=out),
        "sigmoid_grad": lambda: lambda: aten.sigmoid_backward.grad_input(y, x, grad_input=out),
        "add": lambda: lambda: torch.add(x, y, out=out),
        "add bias": lambda: lambda: torch.add(x, wide, out=out),
        "sub": lambda: lambda: torch.sub(x, y, out=out),
        "mul": lambda: lambda: torch.mul(x, y, out=out),
        "div": lambda: lambda: torch.div(x, y, out=out),
        "scale": lambda: lambda: torch.mul(x, 0.5, out=out),
        "div_const": lambda: lambda: torch.div(x, 3.0, out=out),
        "reduce_sum": lambda: lambda: torch.sum(x, 1, out=stats[0][:, 0]),
        "reduce_max": lambda: lambda: torch.amax(x, 1, out=stats[0][:, 0]),
        "sum_rows": lambda: lambda: torch.sum(x, 0, out=wide),
        "sum_axis 0": lambda: lambda: torch.sum(x, 0, out=wide),
        "max_axis 0": lambda: lambda: torch.amax(x, 0, out=wide),
        "argmax": lambda: lambda: torch.argmax(x, 1),
        "argmax 0": lambda: lambda: torch.argmax(x, 0),
        "layer norm": lambda: lambda: torch.native_layer_norm(x, [cols], wide, wide, 1e-5),
        "layer norm back": lambda: lambda: aten.native_layer_norm_backward(
            y, x, [cols], *stats, wide, wide, every),
        "rms norm": lambda: lambda: F.rms_norm(x, [cols], wide, 1e-5),
        "rms norm back": lambda: rms_norm_back(x, wide, y),
        "softmax": lambda: lambda: torch.softmax(x, 1, out=out),
        "softmax back": lambda: lambda: aten._softmax_backward_data(y, x, 1, torch.float32),
        "log softmax": lambda: lambda: torch.log_softmax(x, 1, out=out),
        "log softmax back": lambda: lambda: aten._log_softmax_backward_data(y, x, 1, torch.float32),
        "cross entropy": lambda: lambda: F.cross_entropy(x, ids),
        "cross entropy back": lambda: entropy_back(x, ids),
        "adamw": lambda: adamw(x, y, z, out),
        "sgd": lambda: sgd(x, y, out),
        "dropout": lambda: lambda: F.dropout(x, 0.1),
        "embedding": lambda: lambda: F.embedding(ids % rows, x),
        "embedding_grad": lambda: lambda: aten.embedding_dense_backward(y, ids % rows, rows, -1, False),
        "gather": lambda: lambda: torch.index_select(x, 0, ids % rows, out=out),
        "transpose": lambda: lambda o=torch.empty(cols, rows): o.copy_(x.t()),
        "transpose heads": lambda: lambda h=heads_of(x), o=torch.empty(
            rows // 64, cols // 64, 64, 64): o.copy_(h.transpose(1, 2)),
        "join_heads": lambda: lambda h=x.view(rows // 64, cols // 64, 64, 64), o=torch.empty(
            rows // 64, 64, cols // 64, 64): o.copy_(h.transpose(1, 2)),
        "concat_axis": lambda: lambda o=torch.empty(rows, 2 * cols): torch.cat((x, y), 1, out=o),
        "slice": lambda: lambda o=torch.empty(rows, cols // 2): o.copy_(x[:, :cols // 2]),
        "pad": lambda: lambda: F.pad(x, (1, 1)),
        "cast u8": lambda: lambda u=torch.zeros(rows, cols, dtype=torch.uint8): out.copy_(u),
        "cast i32": lambda: lambda i=torch.zeros(rows, cols, dtype=torch.int32): i.copy_(x),
        "reshape": lambda: lambda: out.copy_(x),
        "fill": lambda: lambda: out.fill_(1.5),
        "expand": lambda: lambda: out.copy_(row.expand(rows, cols)),
        "expand 0": lambda: lambda: out.copy_(wide.expand(rows, cols)),
        "normal": lambda: lambda: out.normal_(),
        "uniform": lambda: lambda: out.uniform_(),
        "rope": lambda: rope(x),
        "rotary": lambda: rotary(x),
    }
    return table[name]() if name in table else None


prepared, run = None, None


def reply(line):
    global prepared, run
    name, rows, cols, passes = line.rsplit(" ", 3)
    if prepared != (name, rows, cols):
        prepared, run = (name, rows, cols), None
        run = operation(name, int(rows), int(cols))
        if run:
            harness.seconds_of(run, 2)
    with torch.set_grad_enabled("back" in name and name.startswith("cross")):
        return harness.seconds_of(run, int(passes)) if run else 0


harness.answer(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads", reply)
