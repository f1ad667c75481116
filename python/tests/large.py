"""Models shaped like Llama, with adapters, and files of made-up weights for them.

python large.py FOLDER SIZE [answers]    captures a step of it there, or what it says of a window
of tokens, and prints what it took
"""

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear, scaled_dot_product_attention, silu

import repops.jobs


class Sizes(NamedTuple):
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    tied: bool


SIZES = {
    "tiny": Sizes(2, 16, 4, 2, 24, 50, True),
    "1b": Sizes(16, 2048, 32, 8, 8192, 128256, True),  # Llama 3.2
    "8b": Sizes(32, 4096, 32, 8, 14336, 128256, False),  # Llama 3.1
}
FACTORS = ("q_proj", "v_proj")  # layers that get adapters
RANK = 8


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.size = s.hidden // s.heads
        self.q_proj = nn.Linear(s.hidden, s.hidden, bias=False)
        self.k_proj = nn.Linear(s.hidden, s.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(s.hidden, s.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(s.hidden, s.hidden, bias=False)

    def forward(self, x, turn):
        heads = [p(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for p in self.factors()]
        q, k, v = turned(heads[0], turn), turned(heads[1], turn), heads[2]
        y = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(-2))

    def factors(self):
        return self.q_proj, self.k_proj, self.v_proj


def turned(x, turn):
    """Applies rotary positions."""
    a, b = x.chunk(2, -1)
    cos, sin = turn
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Feed(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden, s.inner, bias=False)
        self.up_proj = nn.Linear(s.hidden, s.inner, bias=False)
        self.down_proj = nn.Linear(s.inner, s.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn, self.mlp = Attention(s), Feed(s)
        self.input_layernorm, self.post_attention_layernorm = Norm(s.hidden), Norm(s.hidden)

    def forward(self, x, turn):
        x = x + self.self_attn(self.input_layernorm(x), turn)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Weights have the names and shapes of transformers' Llama."""

    def __init__(self, s):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(s.vocabulary, s.hidden)
        self.model.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.model.norm = Norm(s.hidden)
        self.lm_head = nn.Linear(s.hidden, s.vocabulary, bias=False)
        if s.tied:
            self.lm_head.weight = self.model.embed_tokens.weight
        self.half = s.hidden // s.heads // 2

    def forward(self, ids):
        rates = 5e5 ** (-torch.arange(self.half).float() / self.half)
        angles = torch.arange(ids.shape[1]).float()[:, None] * rates
        turn = angles.cos(), angles.sin()
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, turn)
        return self.lm_head(self.model.norm(x))


class Adapter(nn.Module):
    """A linear layer with a trained adapter, with PEFT's names."""

    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.Linear(base.in_features, RANK, bias=False)
        self.lora_B = nn.Linear(RANK, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return self.base_layer(x) + 2.0 * linear(self.lora_A(x), self.lora_B.weight)


def adapted(model):
    """The model with adapters, of which only these are trained."""
    for p in model.parameters():
        p.requires_grad_(False)
    for layer in model.model.layers:
        for name in FACTORS:
            setattr(layer.self_attn, name, Adapter(getattr(layer.self_attn, name)))
    return model


def in_files(name):
    return name.replace(".base_layer", "")


def on_meta(make):
    with torch.device("meta"):
        return make()


def shapes_of(s):
    return {n: tuple(t.shape) for n, t in on_meta(lambda: Llama(s)).named_parameters()}


def head(tensors):
    """The header of a safetensors file. tensors: (name, type, shape, bytes) of each."""
    header, at = {}, 0
    for name, kind, shape, size in tensors:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write(file, shapes, dtype="BF16", random=True):
    """Writes random weights of these shapes as a safetensors file; without `random` zeros in a
    sparse file."""
    size = {"BF16": 2, "F16": 2, "F32": 4}[dtype]
    each = [(name, dtype, shape, math.prod(shape) * size) for name, shape in shapes.items()]
    rng = np.random.default_rng(0)
    with open(file, "wb") as out:
        out.write(head(each))
        end = out.tell() + sum(e[3] for e in each)
        for shape in shapes.values() if random else ():
            out.write(_bytes(rng.standard_normal(shape, "f4") * 0.1, dtype))
        out.truncate(end)


def _bytes(a, dtype):
    if dtype == "BF16":
        return (a.view("<u4") >> 16).astype("<u2").tobytes()
    return a.astype({"F16": "<f2", "F32": "<f4"}[dtype]).tobytes()


def captured(folder, files, s, model, batch=1, length=128, optimizer=None):
    """A job that trains the adapters of model() on two windows of tokens, and its hash."""
    job = repops.jobs.Job(folder, seed=1, steps=2, checkpoint_interval=1)
    tokens = np.random.default_rng(1).integers(0, s.vocabulary, 3 * length + 1)
    x, y = job.windows(tokens, batch=batch, length=length)
    job.weights(files, names=in_files)
    with job:
        base = model()
        torch.manual_seed(1)
        adapted(base)
        trained = [p for p in base.parameters() if p.requires_grad]
        make = optimizer or (lambda ps: torch.optim.AdamW(ps, lr=1e-3, fused=True))
        own = make(trained)

        def step():
            loss = cross_entropy(base(x).flatten(0, 1), y.flatten())
            loss.backward()
            own.step()
            own.zero_grad()
            return loss

    return job, job.capture(step, base, own)


def answering(folder, files, s, model, length=128):
    """A job that answers with the logits of the last token."""
    tokens = np.random.default_rng(1).integers(0, s.vocabulary, (1, length))
    own = {"folder": folder, "batch": 1, "weights": files}
    return repops.jobs.Answers(lambda ids: model(ids)[:, -1], model, tokens, **own).hash


def main(folder, size, what="training"):
    folder, s, start = Path(folder), SIZES[size], time.time()
    folder.mkdir()
    write(folder / "model.safetensors", shapes_of(s), random=False)
    if what == "answers":
        digest = answering(folder / "job", folder, s, on_meta(lambda: Llama(s)))
    else:
        _, digest = captured(folder / "job", folder, s, lambda: on_meta(lambda: Llama(s)))
    program = "pack" if what == "answers" else "program"
    told = {
        "hash": digest,
        "parameters": sum(map(math.prod, shapes_of(s).values())),
        "program_bytes": (folder / "job" / program).stat().st_size,
        "most_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "seconds": round(time.time() - start, 1),
        "cpu_seconds": round(time.process_time(), 1),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
