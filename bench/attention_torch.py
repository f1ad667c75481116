"""The peer of bench/attention.c: PyTorch's CPU scaled_dot_product_attention, FP32, head size 64.

Reads "DIRECTION BATCH HEADS KV_HEADS QUERIES KEYS CAUSAL PASSES" (direction 0 forward, 1 backward) and
answers with the seconds per pass. It answers "hello" with a line about itself. Argument: the number of
threads.
"""

import sys

import harness

torch = harness.torch_with(int(sys.argv[1]))
attention = torch.nn.functional.scaled_dot_product_attention


def operation(direction, batch, heads, kv_heads, queries, keys, causal):
    """Returns one pass. Keys and values of a group are repeated, as PyTorch requires."""
    times = heads // kv_heads
    q, dout = (torch.randn(batch, heads, queries, 64) for _ in range(2))
    k, v = (torch.randn(batch, kv_heads, keys, 64) for _ in range(2))

    def forward():
        if times == 1:
            return attention(q, k, v, is_causal=bool(causal))
        return attention(q, *(x.repeat_interleave(times, 1) for x in (k, v)), is_causal=bool(causal))

    if direction == 0:
        def run():
            with torch.no_grad():
                forward()
        return run
    for x in q, k, v:
        x.requires_grad_()
    out = forward()
    return lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)


prepared, run = None, None


def reply(line):
    global prepared, run
    *shape, passes = map(int, line.split())
    if prepared != shape:
        prepared, run = shape, operation(*shape)
        run()
    return harness.seconds_of(run, passes)


harness.answer(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads", reply)
