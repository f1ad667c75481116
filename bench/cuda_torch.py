"""The peer of bench/cuda.c: attention and a training step of GPT-2 124M in PyTorch, in FP32 without TF32 unless a line says otherwise.

Reads lines: "hello", "attention N", "attention_plain N", "eager N", "eager_tf32 N" (products in TF32), "eager_bf16 N" (under autocast to
bf16), "compiled N". Does the work N times, waits, and answers with the seconds of one.
"""

import gc
import os
import sys
import time

# Only answers go to standard output. Output of libraries is redirected to standard error.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    sys.exit("bench: this Python has no PyTorch; its rows are skipped")
if not torch.cuda.is_available():
    sys.exit("bench: this PyTorch sees no GPU; its rows are skipped")

VOCAB, LAYERS, HEADS, CHANNELS, BATCH, SEQUENCE = 50257, 12, 12, 768, 8, 1024
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_float32_matmul_precision("highest")
torch.manual_seed(1)
CUDA = torch.device("cuda")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(CHANNELS), nn.LayerNorm(CHANNELS)
        self.qkv, self.proj = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CHANNELS)
        self.up, self.down = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, CHANNELS), nn.Embedding(SEQUENCE, CHANNELS)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.ln_f = nn.LayerNorm(CHANNELS)

    def forward(self, text):
        x = self.wte(text[:, :-1]) + self.wpe(torch.arange(SEQUENCE, device=text.device))
        logits = self.ln_f(self.blocks(x)) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, VOCAB), text[:, 1:].reshape(-1))


class Steps:
    def __init__(self, compiled=False, tf32=False, bf16=False):
        self.tf32, self.bf16 = tf32, bf16
        with CUDA:
            self.model = GPT2()
        for parameter in self.model.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.run = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=6e-4, betas=(0.9, 0.95),
                                           weight_decay=0.1, fused=True)
        for _ in range(3):
            self()

    def __call__(self):
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        with torch.autocast("cuda", torch.bfloat16, enabled=self.bf16):
            loss = self.run(torch.randint(VOCAB, (BATCH, SEQUENCE + 1), device=CUDA))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        loss.item()
        torch.backends.cuda.matmul.allow_tf32 = False


class Attention:
    def __init__(self, plain):
        self.ways = [SDPBackend.MATH] if plain else [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        self.q, self.k, self.v, self.dout = (torch.randn(8, 12, 1024, 64, device=CUDA) for _ in range(4))
        for x in (self.q, self.k, self.v):
            x.requires_grad_()
        for _ in range(3):
            self()

    def __call__(self):
        with sdpa_kernel(self.ways):
            out = F.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=True)
        torch.autograd.grad(out, (self.q, self.k, self.v), self.dout)


makers = {"attention": lambda: Attention(False), "attention_plain": lambda: Attention(True),
          "eager": lambda: Steps(), "eager_tf32": lambda: Steps(tf32=True), "eager_bf16": lambda: Steps(bf16=True),
          "compiled": lambda: Steps(compiled=True)}
made = {}
for line in sys.stdin:
    words = line.split()
    if words == ["hello"]:
        print(torch.__version__, torch.cuda.get_device_name(), file=answers, flush=True)
        continue
    try:
        if words[0] not in made:
            made.clear()
            gc.collect()
            torch.cuda.empty_cache()
            made[words[0]] = makers[words[0]]()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(int(words[1])):
            made[words[0]]()
        torch.cuda.synchronize()
        print((time.perf_counter() - start) / int(words[1]), file=answers, flush=True)
    except Exception as error:  # only this row is lost
        print("failed:", type(error).__name__, file=answers, flush=True)
        print(error, file=sys.stderr)
