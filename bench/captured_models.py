"""The models of bench/captured.py: for each a model, the data of a step, and its loss."""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY = 50304


class Work(NamedTuple):
    make: object  # returns the model
    data: object  # returns arrays with as many rows as asked for
    batch: int
    loss: object  # computes the loss of a model on a batch of each array


def tokens(rows, length, vocabulary=VOCABULARY):
    return np.random.default_rng(1).integers(0, vocabulary, (rows, length)).astype("i8")


def numbers(*shape):
    return np.random.default_rng(2).standard_normal(shape, "f4")


# ---- GPT-2 like nanoGPT's, without dropout ----


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, length=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


def next_tokens(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


# ---- from packages ----


def vit():
    import timm

    return timm.create_model("vit_small_patch16_224", num_classes=10, img_size=64)


def resnet():
    import torchvision

    return torchvision.models.resnet50(num_classes=10)


def classes(model, images, labels):
    return F.cross_entropy(model(images), labels)


def images(size):
    return lambda rows: (numbers(rows, 3, size, size), tokens(rows, 1, 10)[:, 0])


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    size = {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "d_kv": 64}
    config = T5Config(**size, dropout_rate=0.0, use_cache=False, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config)


def answers(model, asked, said):
    return model(input_ids=asked, labels=said).loss


# ---- an LSTM, and a diffusion model's U-Net ----


class LSTM(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.table, self.cell = (
            nn.Embedding(10000, width),
            nn.LSTM(width, width, 2, batch_first=True),
        )
        self.head = nn.Linear(width, 10000)

    def forward(self, ids):
        return self.head(self.cell(self.table(ids))[0])


class Residual(nn.Module):
    def __init__(self, into, out, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, into), nn.Conv2d(into, out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, out), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.side = nn.Conv2d(into, out, 1) if into != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.side(x) + self.conv2(F.silu(self.norm2(y)))


class Attention(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(8, width)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        parts = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w)
        q, k, v = parts.transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(b, c, h, w)
        return x + self.out(y)


class UNet(nn.Module):
    """Predicts the noise in images of 32 x 32. The time is encoded by sines."""

    def __init__(self, width=64, time=256):
        super().__init__()
        wide = [width, 2 * width, 2 * width]
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first, self.down, self.less = (
            nn.Conv2d(3, width, 3, padding=1),
            nn.ModuleList(),
            nn.ModuleList(),
        )
        self.up, self.more = nn.ModuleList(), nn.ModuleList()
        self.middle = nn.ModuleList(
            [
                Residual(wide[-1], wide[-1], time),
                Attention(wide[-1]),
                Residual(wide[-1], wide[-1], time),
            ]
        )
        before = width
        for n in wide:
            self.down.append(Residual(before, n, time))
            self.less.append(nn.Conv2d(n, n, 3, 2, 1))
            self.up.insert(0, Residual(2 * n, before, time))
            self.more.insert(0, nn.Conv2d(n, n, 3, padding=1))
            before = n
        self.last = nn.Sequential(
            nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1)
        )

    def forward(self, x, time):
        time, kept = self.time(time), []
        x = self.first(x)
        for block, less in zip(self.down, self.less):
            x = block(x, time)
            kept.append(x)
            x = less(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, time)), time)
        for block, more in zip(self.up, self.more):
            x = more(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = block(torch.cat([x, kept.pop()], 1), time)
        return self.last(x)


def denoise(model, image, noise, time):
    return F.mse_loss(model(image + noise, time), noise)


WORKS = {
    "gpt2": Work(GPT, lambda rows: (tokens(rows, 65),), 4, next_tokens),
    "vit": Work(vit, images(64), 16, classes),
    "resnet50": Work(resnet, images(64), 16, classes),
    "t5": Work(t5, lambda rows: (tokens(rows, 64, 32000), tokens(rows, 64, 32000)), 4, answers),
    "lstm": Work(LSTM, lambda rows: (tokens(rows, 65, 10000),), 16, next_tokens),
    "unet": Work(
        UNet,
        lambda rows: (numbers(rows, 3, 32, 32), numbers(rows, 3, 32, 32), numbers(rows, 64)),
        8,
        denoise,
    ),
}
