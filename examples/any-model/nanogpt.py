"""A small GPT that learns to write a text, as a job that runs without Python.

Usage: nanogpt.py FOLDER [TEXT]    TEXT: a file to learn from; default: this script itself

It has dropout, weight decay for matrices only, clipping and a cosine schedule. See
docs/any-model.md for what to do with FOLDER.
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

STEPS, WARMUP = 200, 20
BATCH, LENGTH, WIDTH, HEADS, LAYERS = 4, 32, 32, 2, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(self.proj(y.transpose(1, 2).reshape(b, t, c)), 0.1, self.training)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)
        self.head.weight = self.tokens.weight  # tied
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def rate(step):
    """Returns the share of the highest learning rate: it rises for some steps, then falls like a
    cosine."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.55 + 0.45 * math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))


if len(sys.argv) < 2:
    sys.exit(__doc__)
text = Path(sys.argv[2] if len(sys.argv) > 2 else __file__).read_bytes()
job = repops.jobs.Job(sys.argv[1], seed=7, steps=STEPS, checkpoint_interval=50)
x, y = job.windows(np.frombuffer(text, np.uint8), batch=BATCH, length=LENGTH)
with job:
    torch.manual_seed(1)
    model = GPT()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

    def step():
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss


print("program", job.capture(step, model, optimizer, scheduler))
print("losses of 3 steps, the same in PyTorch and in verde:", job.check(steps=3))
