#!/usr/bin/env python3
"""Loss and gradients of a small BERT with hidden and padding tokens, from PyTorch in double precision. The batch has
two windows, each a micro-batch, with different numbers of hidden tokens."""
import math

import torch
import torch.nn.functional as F

import common

VOCAB, CONTEXT, LAYERS, HEADS, CHANNELS = 64, 48, 2, 2, 32
SEED, MASK_RATE, PAD, WINDOWS = 5, 0.25, 5, 2
ORDER_STREAM, MASK_STREAM = 0, 1  # repops/SPEC.md section 10.1; micro-batch i masks with stream MASK_STREAM + i


def layout():
    def norm(name):
        yield name + ".gamma", (CHANNELS,), 1, 2**-3
        yield name + ".beta", (CHANNELS,), 0, 2**-3

    def linear(name, rows=1, cols=1):
        yield name + ".weight", (cols * CHANNELS, rows * CHANNELS), 0, 2**-2
        yield name + ".bias", (cols * CHANNELS,), 0, 2**-3

    yield "tokens", (VOCAB, CHANNELS), 0, 2**-1
    yield "positions", (CONTEXT, CHANNELS), 0, 2**-1
    yield "segments", (2, CHANNELS), 0, 2**-1
    yield from norm("ln_e")
    for i in range(LAYERS):
        for part in "qkv":
            yield from linear(f"h.{i}.attn.{part}")
        yield from linear(f"h.{i}.attn.proj")
        yield from norm(f"h.{i}.ln_1")
        yield from linear(f"h.{i}.mlp.up", 1, 4)
        yield from linear(f"h.{i}.mlp.down", 4, 1)
        yield from norm(f"h.{i}.ln_2")
    yield from linear("head")
    yield from norm("ln_h")
    yield "head.tokens.bias", (VOCAB,), 0, 2**-3


def philox(*counter):
    """Philox4x32-10 (Salmon et al., SC 2011) of repops/SPEC.md section 10: returns four words."""
    c, k = list(counter), [SEED, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b % 2**32, a >> 32 ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def window_of(i):
    """permute(SEED, ORDER_STREAM, epoch 0, WINDOWS, i) of repops/SPEC.md section 10.2; its domain is 2 bits."""
    assert 1 < WINDOWS <= 4
    while True:
        high, low = i >> 1, i & 1
        for turn in range(4):
            high, low = low, high ^ philox(low, 0, turn, ORDER_STREAM)[0] % 2
        i = 2 * high + low
        if i < WINDOWS:
            return i


def micro_batch(number):
    """Returns one window: the tokens that the model reads, their labels (-1: none), and which tokens are not
    padding."""
    start = CONTEXT * window_of(number)
    tokens = common.tokens(WINDOWS * CONTEXT + 1, VOCAB - 1)[start : start + CONTEXT]
    words = [w for block in range(CONTEXT // 4) for w in philox(block, 0, 0, MASK_STREAM + number)]
    real = [t != PAD for t in tokens]
    hidden = [r and w < MASK_RATE * 2**32 for r, w in zip(real, words)]
    read = [VOCAB - 1 if h else t for h, t in zip(hidden, tokens)]
    labels = [t if h else -1 for h, t in zip(hidden, tokens)]
    assert sum(hidden) > 3 and not all(real)
    return torch.tensor(read), torch.tensor(labels), torch.tensor(real)


def norm(w, name, x):
    return F.layer_norm(x, (CHANNELS,), w[name + ".gamma"], w[name + ".beta"], eps=1e-12)


def linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def attention(w, name, x, real):
    q, k, v = (linear(w, f"{name}.{part}", x).reshape(CONTEXT, HEADS, -1).transpose(0, 1) for part in "qkv")
    scores = q @ k.transpose(1, 2) / math.sqrt(CHANNELS // HEADS)
    y = scores.masked_fill(~real, -math.inf).softmax(-1) @ v
    return linear(w, name + ".proj", y.transpose(0, 1).reshape(x.shape))


def logits_of(w, tokens, real):
    segments = (torch.arange(CONTEXT) >= (CONTEXT + 1) // 2).long()
    x = norm(w, "ln_e", w["tokens"][tokens] + w["positions"] + w["segments"][segments])
    for i in range(LAYERS):
        x = norm(w, f"h.{i}.ln_1", x + attention(w, f"h.{i}.attn", x, real))
        y = F.gelu(linear(w, f"h.{i}.mlp.up", x))
        x = norm(w, f"h.{i}.ln_2", x + linear(w, f"h.{i}.mlp.down", y))
    return norm(w, "ln_h", F.gelu(linear(w, "head", x))) @ w["tokens"].T + w["head.tokens.bias"]


def loss_of(w):
    """Returns the mean over all hidden tokens of the batch, whichever micro-batch they are in."""
    parts = [micro_batch(i) for i in range(WINDOWS)]
    counts = [int((labels >= 0).sum()) for _, labels, _ in parts]
    assert len(set(counts)) > 1, "a mean of the micro-batches' means would pass"
    print("hidden tokens:", counts)
    logits = torch.cat([logits_of(w, tokens, real) for tokens, _, real in parts])
    labels = torch.cat([labels for _, labels, _ in parts])
    return F.cross_entropy(logits, labels, ignore_index=-1, reduction="mean")


common.write("bert", layout(), loss_of)
