"""The peer of bench/step.c: GPT-2 in PyTorch, one training step per line on standard input.

Prints a line about itself, then for each step: seconds, loss, peak memory in MB.
"""

import os
import sys
import time

threads = sys.argv[6]
os.environ.update(OMP_NUM_THREADS=threads, OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0",
                  KMP_BLOCKTIME="0")

try:
    import torch
except ImportError:
    sys.exit("bench: this Python has no PyTorch")
from torch import nn
from torch.nn import functional as F

layers, heads, channels, batch, sequence = (int(x) for x in sys.argv[1:6])
torch.set_num_threads(int(threads))
VOCAB = 50257


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, channels), nn.Embedding(1024, channels)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.ln_f = nn.LayerNorm(channels)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(sequence))
        logits = self.ln_f(self.blocks(x)) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def peak_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


torch.manual_seed(1)
model = GPT2()
for parameter in model.parameters():
    if parameter.dim() > 1:
        nn.init.normal_(parameter, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
print(f"{torch.__version__}, {torch.get_num_threads()} threads, eager", flush=True)
for _ in sys.stdin:
    text = torch.randint(VOCAB, (batch, sequence + 1))
    start = time.perf_counter()
    loss = model(text[:, :-1], text[:, 1:])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    value = loss.item()
    print(time.perf_counter() - start, value, peak_mb(), flush=True)
