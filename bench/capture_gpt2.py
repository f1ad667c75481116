"""Measures what it costs to capture a training step of GPT-2 small: 124 million parameters.

Usage: capture_gpt2.py FOLDER [--batch N] [--length N] [--layers N] [--check]

Captures a PyTorch GPT-2 like nanoGPT's (12 layers, 12 heads, 768 channels, 50304 tokens, dropout
everywhere, AdamW with weight decay for matrices, clipping, warm-up and cosine) as the job
FOLDER/job: see docs/any-model.md. The text is random tokens. Prints the seconds that capture and
check take, of CPU and of wall-clock time, and the process's peak memory. --check runs one step in
PyTorch and by `verde`, and compares them to the bit.
"""

import argparse
import json
import math
import resource
import time

import numpy as np
import repops.jobs
import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, HEADS, STEPS, WARMUP, DROPOUT = 50304, 768, 12, 1000, 100, 0.1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.c_out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (p.view(b, t, HEADS, c // HEADS).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(
            q, k, v, dropout_p=DROPOUT if self.training else 0.0, is_causal=True
        )
        x = x + self.dropout(self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c)))
        return x + self.dropout(self.c_out(F.gelu(self.c_fc(self.ln_2(x)))))


class GPT(nn.Module):
    def __init__(self, layers, length):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(length, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight  # tied
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = F.dropout(self.wte(ids) + self.wpe(torch.arange(ids.shape[1])), DROPOUT, self.training)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def rate(step):
    if step < WARMUP:
        return (step + 1) / (WARMUP + 1)
    return 0.55 + 0.45 * math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))


class Clock:
    """Measures seconds since its creation: wall-clock time, and CPU time of all cores, including
    commands that have ended."""

    def __init__(self):
        self.wall, self.cpu = time.monotonic(), self._cpu()

    @staticmethod
    def _cpu():
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))

    def told(self):
        return {
            "seconds": round(time.monotonic() - self.wall, 1),
            "cpu_seconds": round(self._cpu() - self.cpu, 1),
            "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--check", action="store_true")
    a = parser.parse_args()
    tokens = np.random.default_rng(1).integers(0, 50257, 1 << 20).astype(np.uint16)
    job = repops.jobs.Job(f"{a.folder}/job", seed=7, steps=STEPS, checkpoint_interval=100)
    x, y = job.windows(tokens, batch=a.batch, length=a.length)
    with job:
        torch.manual_seed(1)
        model = GPT(a.layers, a.length)
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}]
        optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

        def step():
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss

    told = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch": a.batch,
        "length": a.length,
        "threads": torch.get_num_threads(),
    }
    clock = Clock()
    told["program"] = job.capture(step, model, optimizer, scheduler)
    told["capture"] = clock.told()
    if a.check:
        clock = Clock()
        told["losses"] = job.check(steps=1)
        told["check"] = clock.told()
    print(json.dumps(told))


main()
