"""The peer of bench/conv.c: PyTorch's operators on images (oneDNN for convolutions), FP32, channels last.

Reads a line that names an operator with its sizes (direction 0: forward; 1: another output; 2 or, for
convolutions, 1 and 2: a gradient), runs it twice, and answers; it answers each "again" with the seconds of
one run, and "hello" with a line about itself. Argument: the number of threads.
"""

import sys
import time

import harness

threads = int(sys.argv[1])
torch = harness.torch_with(threads)
SAMPLE_S = 0.03
SETTLE_S = 0.06  # woken threads are slow for so long
now = harness.clock_of(threads)
aten, last = torch.ops.aten, torch.channels_last


def images(*shape):
    return torch.randn(*shape).contiguous(memory_format=last)


def conv(direction, batch, size, channels, filters, kernel, stride, groups):
    x = images(batch, channels, size, size)
    w = images(filters, channels // groups, kernel, kernel)
    settings = [stride, stride], [kernel // 2] * 2, [1, 1]
    forward = lambda: torch.conv2d(x, w, None, *settings, groups)
    if direction == 0:
        return forward
    dy = torch.randn_like(forward())
    wanted = [direction == 1, direction == 2, False]
    return lambda: aten.convolution_backward(dy, x, w, None, *settings, False, [0, 0], groups, wanted)


def max_pool(direction):
    x, settings = images(64, 256, 16, 16), ([3, 3], [2, 2], [1, 1], [1, 1])
    forward = lambda: aten.max_pool2d_with_indices(x, *settings)
    y, index = forward()
    return forward if direction < 2 else lambda: aten.max_pool2d_with_indices_backward(
        y, x, *settings, False, index)


def avg_pool(direction):
    x, settings = images(64, 256, 16, 16), ([3, 3], [2, 2], [1, 1], False, False, None)
    forward = lambda: aten.avg_pool2d(x, *settings)
    y = forward()
    return forward if direction < 2 else lambda: aten.avg_pool2d_backward(y, x, *settings)


def batch_norm(direction):
    x, dy, c = images(64, 256, 16, 16), images(64, 256, 16, 16), torch.ones(256)
    forward = lambda: aten.native_batch_norm(x, c, c, None, None, True, 0.1, 1e-5)
    _, mean, rstd = forward()
    return forward if direction < 2 else lambda: aten.native_batch_norm_backward(
        dy, x, c, None, None, mean, rstd, True, 1e-5, [True, True, True])


def settle(run):
    if threads > 1:
        time.sleep(0.04)
    until = now() + SETTLE_S
    while now() < until:
        run()


operators = {f.__name__: f for f in (conv, max_pool, avg_pool, batch_norm)}
run, calls = None, 0


@torch.no_grad()
def reply(line):
    global run, calls
    if line != "again":
        name, *numbers = line.split()
        run = operators[name](*map(int, numbers))
        run()
        calls = int(SAMPLE_S / harness.seconds_of(run, 1, now)) + 1
    settle(run)
    return harness.seconds_of(run, calls, now)


harness.answer(f"PyTorch {torch.__version__}, {threads} threads", reply)
