#!/usr/bin/env python3
"""Loss and gradients of a small GPT-2 from PyTorch in double precision."""
import math

import torch
import torch.nn.functional as F

import common

VOCAB, CONTEXT, LAYERS, HEADS, CHANNELS, BATCH = 64, 16, 2, 2, 32, 4


def layout():
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


def batch():
    """Returns all windows of the data, once each."""
    tokens = common.tokens(BATCH * CONTEXT + 1, VOCAB)
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


common.write("gpt2", layout(), loss_of)
