"""Shared by the models of this folder: weights and tokens from an integer formula, which tests/unit/test_torch.c
repeats, and writing of files."""
import math
import os
import struct

import torch


def mix(n):
    """The 32-bit finaliser of MurmurHash3."""
    n = (n ^ n >> 16) * 0x85EBCA6B % 2**32
    n = (n ^ n >> 13) * 0xC2B2AE35 % 2**32
    return n ^ n >> 16


def fraction(tensor, element):
    """Returns a multiple of 2^-15 in [-1, 1), which is exact in every floating-point type."""
    return ((mix(tensor * 1000003 + element) >> 16) - 2**15) / 2**15


def tokens(count, vocab):
    """Returns tokens from tensor number 1000 of the formula."""
    return [mix(1000 * 1000003 + i) % vocab for i in range(count)]


def parameters(layout):
    """`layout` lists name, shape, offset and scale of each parameter, in the order of the state's leaves."""
    out = {}
    for tensor, (name, shape, offset, scale) in enumerate(layout):
        values = [offset + scale * fraction(tensor, e) for e in range(math.prod(shape))]
        out[name] = torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()
    return out


def write(model, layout, loss_of):
    """Writes the layout to MODEL.txt, and the loss and all gradients to MODEL.f32."""
    layout = list(layout)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), model)
    w = parameters(layout)
    loss = loss_of(w)
    loss.backward()
    with open(path + ".txt", "w") as text, open(path + ".f32", "wb") as binary:
        binary.write(struct.pack("<f", loss.item()))
        for name, shape, offset, scale in layout:
            print(name, math.prod(shape), offset, scale, file=text)
            values = w[name].grad.flatten().tolist()
            binary.write(struct.pack(f"<{len(values)}f", *values))
    print(f"loss {loss.item():.9f}, PyTorch {torch.__version__}")
