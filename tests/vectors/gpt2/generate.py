#!/usr/bin/env python3
"""Loss and gradients of a small GPT-2 from PyTorch in double precision: writes layout.txt and gradients.f32.

The weights and tokens come from the integer formula of `fraction`, which tests/unit/test_gpt2_reference.c repeats.
"""
import math
import os
import struct

import torch
import torch.nn.functional as F

VOCAB, CONTEXT, LAYERS, HEADS, CHANNELS, BATCH = 64, 16, 2, 2, 32, 4


def mix(n):
    """The 32-bit finaliser of MurmurHash3."""
    n = (n ^ n >> 16) * 0x85EBCA6B % 2**32
    n = (n ^ n >> 13) * 0xC2B2AE35 % 2**32
    return n ^ n >> 16


def fraction(tensor, element):
    """A multiple of 2^-15 in [-1, 1): exact in every floating-point type."""
    return ((mix(tensor * 1000003 + element) >> 16) - 2**15) / 2**15


def layout():
    """Names, shapes, offset and scale of the values, in the order of the state's leaves."""
    yield "wte", (VOCAB, CHANNELS), 0, 2**-1
    yield "wpe", (CONTEXT, CHANNELS), 0, 2**-1
    for i in range(LAYERS):
        for norm, linears in (("ln_1", (("attn.qkv", 1, 3), ("attn.proj", 1, 1))),
                              ("ln_2", (("mlp.up", 1, 4), ("mlp.down", 4, 1)))):
            yield f"h.{i}.{norm}.gamma", (CHANNELS,), 1, 2**-3
            yield f"h.{i}.{norm}.beta", (CHANNELS,), 0, 2**-3
            for name, rows, cols in linears:
                yield f"h.{i}.{name}.weight", (rows * CHANNELS, cols * CHANNELS), 0, 2**-2
                yield f"h.{i}.{name}.bias", (cols * CHANNELS,), 0, 2**-3
    yield "ln_f.gamma", (CHANNELS,), 1, 2**-3
    yield "ln_f.beta", (CHANNELS,), 0, 2**-3


def parameters():
    out = {}
    for tensor, (name, shape, offset, scale) in enumerate(layout()):
        values = [offset + scale * fraction(tensor, e) for e in range(math.prod(shape))]
        out[name] = torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()
    return out


def batch():
    """All windows of the data, once each; tensor number 1000 of the formula."""
    tokens = [mix(1000 * 1000003 + i) % VOCAB for i in range(BATCH * CONTEXT + 1)]
    rows = lambda shift: torch.tensor(tokens[shift:][:BATCH * CONTEXT]).reshape(BATCH, CONTEXT)
    return rows(0), rows(1)


def norm(w, name, x):
    return F.layer_norm(x, (CHANNELS,), w[name + ".gamma"], w[name + ".beta"], eps=1e-5)


def linear(w, name, x):
    return x @ w[name + ".weight"] + w[name + ".bias"]


def attention(w, name, x):
    heads = lambda y: y.reshape(BATCH, CONTEXT, HEADS, -1).transpose(1, 2)
    q, k, v = (heads(part) for part in linear(w, name + ".qkv", x).chunk(3, dim=-1))
    scores = q @ k.transpose(2, 3) / math.sqrt(CHANNELS // HEADS)
    later = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)
    y = scores.masked_fill(later, -math.inf).softmax(-1) @ v
    return linear(w, name + ".proj", y.transpose(1, 2).reshape(x.shape))


def loss_of(w):
    tokens, targets = batch()
    x = w["wte"][tokens] + w["wpe"]
    for i in range(LAYERS):
        x = x + attention(w, f"h.{i}.attn", norm(w, f"h.{i}.ln_1", x))
        y = F.gelu(linear(w, f"h.{i}.mlp.up", norm(w, f"h.{i}.ln_2", x)), approximate="tanh")
        x = x + linear(w, f"h.{i}.mlp.down", y)
    logits = norm(w, "ln_f", x) @ w["wte"].T
    return F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    w = parameters()
    loss = loss_of(w)
    loss.backward()
    with open(os.path.join(folder, "layout.txt"), "w") as text, \
         open(os.path.join(folder, "gradients.f32"), "wb") as binary:
        binary.write(struct.pack("<f", loss.item()))
        for name, shape, offset, scale in layout():
            print(name, math.prod(shape), offset, scale, file=text)
            values = w[name].grad.flatten().tolist()
            binary.write(struct.pack(f"<{len(values)}f", *values))
    print(f"loss {loss.item():.9f}, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
