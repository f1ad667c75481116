"""Operators on volumes: prints a hash of each result and of its gradients.

usage: volumes.py THREADS...
"""

import hashlib
import sys

import torch
import torch.nn.functional as F

from repops.torch import reproducible


def conv(*shape, transposed=False, bias=True, order=torch.contiguous_format, **how):
    """A convolution and its inputs; shape is x's shape followed by the weights'."""
    x, w, groups = shape[:5], shape[5:], how.get("groups", 1)
    channels = w[1] * groups if transposed else w[0]
    function = F.conv_transpose3d if transposed else F.conv3d
    inputs = [torch.randn(x).to(memory_format=order), torch.randn(w)]
    inputs += [torch.randn(channels)] if bias else []
    return lambda *inputs: function(*inputs, **how), inputs


def fractional(function, *shape, samples, **how):
    samples = torch.rand(samples)

    def pooled(x, **more):
        return function(x, _random_samples=samples.to(x.dtype), **how, **more)

    return pooled, [torch.randn(shape)]


def pool(function, *shape, **how):
    return lambda x: function(x, **how), [torch.randn(shape)]


LAST = torch.channels_last_3d
MIXED = {"stride": (2, 1, 3), "padding": (1, 2, 0), "dilation": (1, 2, 1)}
CASES = {
    "conv": lambda: conv(2, 3, 5, 6, 7, 4, 3, 3, 3, 3),
    "conv, channels last": lambda: conv(2, 3, 5, 6, 7, 4, 3, 3, 3, 3, padding=1, order=LAST),
    "conv of one tap": lambda: conv(2, 5, 3, 6, 5, 7, 5, 1, 1, 1),
    "conv of one tap, strided": lambda: conv(2, 5, 3, 6, 5, 7, 5, 1, 1, 1, bias=False, stride=2),
    "conv of images": lambda: conv(
        2, 3, 4, 9, 8, 5, 3, 1, 3, 3, padding=(0, 1, 1), stride=(1, 2, 2)
    ),
    "conv along the depth": lambda: conv(
        1, 6, 9, 5, 6, 5, 6, 3, 1, 1, padding=(1, 0, 0), stride=(2, 1, 1)
    ),
    "conv in groups": lambda: conv(2, 6, 5, 6, 7, 9, 2, 3, 2, 3, groups=3, padding=1),
    "conv of each channel": lambda: conv(
        2, 6, 5, 6, 7, 6, 1, 3, 3, 3, groups=6, padding=1, stride=2
    ),
    "conv of all": lambda: conv(1, 4, 8, 9, 10, 6, 2, 3, 2, 4, groups=2, **MIXED),
    "conv of many channels": lambda: conv(1, 40, 3, 4, 5, 24, 40, 3, 3, 3, padding=1),
    "transposed": lambda: conv(2, 4, 3, 4, 5, 4, 3, 3, 3, 3, transposed=True),
    "transposed, strided": lambda: conv(
        2, 4, 3, 4, 5, 4, 3, 2, 2, 2, transposed=True, bias=False, stride=2
    ),
    "transposed, more of it": lambda: conv(
        2, 4, 3, 4, 5, 4, 3, 3, 3, 3, transposed=True, stride=2, padding=1, output_padding=1
    ),
    "transposed, of all": lambda: conv(
        1, 6, 3, 4, 5, 6, 2, 3, 2, 4, transposed=True, groups=3, output_padding=(1, 0, 2), **MIXED
    ),
    "transposed, more than a stride of it": lambda: conv(
        *(1, 2, 3, 4, 5, 2, 3, 2, 3, 2),
        transposed=True,
        dilation=(3, 2, 4),
        padding=(1, 2, 0),
        output_padding=(2, 1, 3),
    ),
    "largest": lambda: pool(F.max_pool3d, 2, 3, 6, 8, 10, kernel_size=2),
    "largest of padded windows": lambda: pool(
        F.max_pool3d, 2, 3, 7, 8, 9, kernel_size=(3, 2, 4), stride=(2, 1, 3), padding=(1, 1, 2)
    ),
    "largest, rounded up": lambda: pool(
        F.max_pool3d, 2, 3, 8, 7, 10, kernel_size=3, stride=2, padding=1, ceil_mode=True
    ),
    "largest of dilated windows": lambda: pool(
        F.max_pool3d, 2, 3, 7, 8, 9, kernel_size=3, stride=(1, 2, 1), padding=1, dilation=(2, 1, 3)
    ),
    "largest of one volume": lambda: pool(F.max_pool3d, 3, 4, 6, 8, kernel_size=2),
    "means": lambda: pool(F.avg_pool3d, 2, 3, 6, 8, 10, kernel_size=2),
    "means of padded windows": lambda: pool(
        F.avg_pool3d, 2, 3, 7, 8, 9, kernel_size=(3, 2, 4), stride=(2, 1, 3), padding=(1, 1, 2)
    ),
    "means without padding": lambda: pool(
        F.avg_pool3d,
        2,
        3,
        8,
        7,
        10,
        kernel_size=3,
        stride=2,
        padding=1,
        ceil_mode=True,
        count_include_pad=False,
    ),
    "sums by a number": lambda: pool(
        F.avg_pool3d, 2, 3, 8, 7, 10, kernel_size=3, stride=2, padding=1, divisor_override=5
    ),
    "means of one volume": lambda: pool(F.avg_pool3d, 3, 4, 6, 8, kernel_size=(1, 2, 3)),
    "adaptive means": lambda: pool(F.adaptive_avg_pool3d, 2, 3, 5, 6, 7, output_size=(2, 7, 3)),
    "adaptive means of one volume": lambda: pool(
        F.adaptive_avg_pool3d, 3, 5, 6, 7, output_size=(5, 1, 2)
    ),
    "adaptive largest": lambda: pool(F.adaptive_max_pool3d, 2, 3, 5, 6, 7, output_size=(2, 7, 3)),
    "adaptive largest, evenly": lambda: pool(
        F.adaptive_max_pool3d, 2, 3, 4, 6, 9, output_size=(2, 6, 3)
    ),
    "adaptive largest of one volume": lambda: pool(
        F.adaptive_max_pool3d, 3, 5, 6, 7, output_size=2
    ),
    "unpooled": lambda: (
        lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2),
        [torch.randn(2, 3, 4, 6, 8)],
    ),
    "fractional": lambda: fractional(
        F.fractional_max_pool3d,
        2,
        3,
        7,
        8,
        9,
        kernel_size=(2, 3, 2),
        output_size=(3, 4, 5),
        samples=(2, 3, 3),
    ),
    "fractional of one volume": lambda: fractional(
        F.fractional_max_pool3d,
        3,
        7,
        8,
        9,
        kernel_size=2,
        output_ratio=0.5,
        samples=(1, 3, 3),
    ),
    "fractional of images": lambda: fractional(
        F.fractional_max_pool2d,
        2,
        3,
        11,
        8,
        kernel_size=(2, 3),
        output_size=(7, 1),
        samples=(2, 3, 2),
    ),
    "norms of neighbours": lambda: pool(F.local_response_norm, 2, 7, 5, 6, size=5),
    "norms of neighbours in a line": lambda: pool(F.local_response_norm, 2, 7, 5, size=2, k=2.0),
}


def made(name):
    torch.manual_seed(0)
    return CASES[name]()


def bits(name):
    """Hashes of the result and the gradients, computed in the block."""
    function, inputs = made(name)
    own = [t.clone().requires_grad_() for t in inputs]
    y = function(*own)
    (y * torch.arange(y.numel()).reshape(y.shape).sub(7.5)).sum().backward()
    return b"".join(t.detach().contiguous().numpy().tobytes() for t in (y, *[t.grad for t in own]))


def main(thread_counts):
    for threads in thread_counts:
        with reproducible(threads=threads):
            for name in CASES:
                print(name, hashlib.sha256(bits(name)).hexdigest())
        print(".")


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]])
