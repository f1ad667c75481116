"""The peer of bench/step.c: GPT-2 or ResNet-50 in PyTorch, a training step per line on standard input.

It answers "hello" with a line about itself, and "step" with seconds, loss and peak memory in MB. One
thread is measured by the process's CPU time.
"""

import os
import sys

import harness

layers, heads, channels, batch, sequence, threads, resnet, autocast = (int(x) for x in sys.argv[1:9])
torch = harness.torch_with(threads)
from torch import nn  # noqa: E402 (the threads must be set first)
from torch.nn import functional as F  # noqa: E402

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

    def forward(self, text):
        x = self.wte(text[:, :-1]) + self.wpe(torch.arange(sequence))
        logits = self.ln_f(self.blocks(x)) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, VOCAB), text[:, 1:].reshape(-1))


class Bottleneck(nn.Module):
    def __init__(self, wide, narrow, stride):
        super().__init__()
        out = 4 * narrow
        self.body = nn.Sequential(
            nn.Conv2d(wide, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(),
            nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(),
            nn.Conv2d(narrow, out, 1, bias=False), nn.BatchNorm2d(out))
        self.side = nn.Sequential() if wide == out and stride == 1 else nn.Sequential(
            nn.Conv2d(wide, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        parts, wide = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for i in range(blocks):
                parts.append(Bottleneck(wide, 64 << stage, 2 if stage and not i else 1))
                wide = 256 << stage
        self.parts, self.head = nn.Sequential(*parts), nn.Linear(wide, 10)

    def forward(self, sample):
        images, labels = sample
        return F.cross_entropy(self.head(self.parts(images).mean((2, 3))), labels)


def sample():
    if resnet:  # channels last, PyTorch's fastest layout
        images = torch.randn(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
        return images, torch.randint(10, (batch,))
    return torch.randint(VOCAB, (batch, sequence + 1))


clock = harness.clock_of(threads)
torch.manual_seed(1)
model = ResNet50().to(memory_format=torch.channels_last) if resnet else GPT2()
for parameter in model.parameters():
    if parameter.dim() > 1 and not resnet:
        nn.init.normal_(parameter, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1,
                              fused=True)  # the fastest of its three variants


def step(line):
    data = sample()
    start = clock()
    with torch.autocast("cpu", torch.bfloat16, enabled=bool(autocast)):
        loss = model(data)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    value = loss.item()
    return clock() - start, value, harness.kilobytes(os.getpid(), "VmHWM")[0] / 1024


harness.answer(f"{torch.__version__}, {torch.get_num_threads()} threads, eager{', autocast to bf16' if autocast else ''}", step)
