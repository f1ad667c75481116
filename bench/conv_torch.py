"""The peer of bench/conv.c: PyTorch's conv2d (oneDNN), FP32, channels last.

Reads "DIRECTION BATCH SIZE CHANNELS FILTERS KERNEL STRIDE" (direction 0 forward, 1 input gradient,
2 weight gradient) and answers with the seconds of the fastest run within a third of a second. "hello"
is answered with a line about itself. Argument: the number of threads.
"""

import os
import sys
import time

os.environ.update(OMP_NUM_THREADS=sys.argv[1], OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0",
                  KMP_BLOCKTIME="0")

try:
    import torch
except ImportError:
    sys.exit("bench: this Python has no PyTorch")

torch.set_num_threads(int(sys.argv[1]))


def operation(direction, batch, size, channels, filters, kernel, stride):
    last = torch.channels_last
    x = torch.randn(batch, channels, size, size).contiguous(memory_format=last)
    w = torch.randn(filters, channels, kernel, kernel).contiguous(memory_format=last)
    settings = [stride, stride], [kernel // 2] * 2, [1, 1]
    forward = lambda: torch.conv2d(x, w, None, *settings)
    if direction == 0:
        return forward
    dy = torch.randn_like(forward())
    wanted = [direction == 1, direction == 2, False]
    return lambda: torch.ops.aten.convolution_backward(dy, x, w, None, *settings, False, [0, 0], 1,
                                                       wanted)


def fastest(run):
    best, start = float("inf"), time.perf_counter()
    run()
    while time.perf_counter() - start < 0.3:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


for line in sys.stdin:
    if line == "hello\n":
        print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
        continue
    with torch.no_grad():
        print(fastest(operation(*map(int, line.split()))), flush=True)
