"""PyTorch's CPU scaled_dot_product_attention on the shapes of bench/attention.c, FP32.
Usage: attention_torch.py [threads [heads]]. Says so and exits with 77 where there is no PyTorch."""
import sys
import time

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attention
except ImportError as error:
    print(f"no PyTorch with scaled_dot_product_attention here: {error}")
    sys.exit(77)


def best(run):
    run()
    start, least = time.perf_counter(), float("inf")
    while time.perf_counter() - start < 0.5:
        begin = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - begin)
    return least


torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
heads = int(sys.argv[2]) if len(sys.argv) > 2 else 12
print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
for causal in True, False:
    for t in 64, 128, 256, 512, 1024, 2048:
        b = 4 if t <= 256 else 1
        q, k, v, dout = (torch.randn(b, heads, t, 64) for _ in range(4))
        with torch.no_grad():
            there = best(lambda: attention(q, k, v, is_causal=causal))
        for x in q, k, v:
            x.requires_grad_()
        out = attention(q, k, v, is_causal=causal)
        back = best(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True))
        work = 2e-9 * b * heads * t * (t + 1 if causal else 2 * t) / 2 * 64
        print(f"{'causal' if causal else 'full':7} B={b:<3} H={heads:<3} T={t:<5} "
              f"forward {1e3 * there:9.3f} ms {2 * work / there:6.1f} GFLOP/s  "
              f"backward {1e3 * back:9.3f} ms {5 * work / back:6.1f} GFLOP/s")
