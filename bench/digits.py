"""Compares criteria for which lines of a chunk get a second digit of 8 bits in a product of `fixed8` (repops/SPEC.md 3.5).

    python3 bench/digits.py [--only NAME] [--threads N]

Needs torch, transformers and torchvision. Small models are trained for some steps in FP32. Then the factors of each linear layer and
convolution are multiplied in its three directions, with each criterion, for at most ROWS x COLS elements, and compared with binary64. A
row of the table is a model, a direction and a criterion. Errors are root mean squares over that of the exact result, in units of 2^-24:
the median and the worst of the layers. `two` is the share of lines with two digits, over both factors; `cost` is the mean number of byte
products per product of numbers, which is 4 with two digits everywhere.
"""

import argparse
import math
import os

import harness
import numpy as np
import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK, ROWS, COLS = 256, 96, 64

# ---- the operator, with a criterion in place of its own ----


def integers(x):
    """Returns the 16-bit integers of lines [line, chunk, k], and their exponents."""
    most = np.abs(x).max(axis=-1).view(np.int32)
    exponent = np.maximum((most + 0x1FFFF) >> 23, 1) - 126
    return np.rint(np.ldexp(x.astype(np.float64), 15 - exponent[..., None])).astype(np.int64), exponent


def energy(power):
    """Two digits if the sum of squares of the second digits is more than 2^-power of that of the
    first digits."""
    return lambda x, high, low: ((low * low).sum(-1) << power) > ((high * high).sum(-1) << 16)


def crest(least):
    """Two digits if the mean square of the first digits, over the nonzero numbers, is below
    `least`."""
    return lambda x, high, low: (high * high).sum(-1) < least * (x != 0).sum(-1)


def small(power, part):
    """Two digits if more than 1/part of the nonzero numbers are below 2^power times half a unit of the first
    digit."""

    def test(x, high, low):
        most = np.abs(x).max(axis=-1).view(np.int32)
        exponent = np.maximum((most + 0x1FFFF) >> 23, 1) - 126
        limit = np.exp2(exponent - 8.0 + power).astype(np.float32)[..., None]
        return part * ((np.abs(x) < limit) & (x != 0)).sum(-1) > (x != 0).sum(-1)

    return test


def levels(eighths):
    """Two digits if the bits of nonzero magnitudes are on average more than eighths/8 of a binade below the largest."""

    def test(x, high, low):
        words = np.abs(x).view(np.int32).astype(np.int64)
        count = (x != 0).sum(-1)
        return 8 * (words.max(-1) * count - words.sum(-1)) > count * (eighths << 23)

    return test


def never(x, high, low):
    return np.zeros(high.shape[:-1], bool)


def always(x, high, low):
    return np.ones(high.shape[:-1], bool)


TESTS = {"one digit": never, "two digits": always}
TESTS |= {f"energy 2^-{p}": energy(p) for p in (12, 11)}
TESTS |= {f"crest {t}": crest(t) for t in (100, 200)}
TESTS |= {f"small 2^{j}, 1/{p}": small(j, p) for j, p in ((0, 4), (2, 2), (2, 4), (3, 2))}
TESTS |= {f"levels {e}/8": levels(e) for e in (32,)}


class Operand:
    """Lines [line, K]: their exact values, and their integers."""

    def __init__(self, x):
        self.lines = x.astype(np.float64)
        self.x = np.pad(x, ((0, 0), (0, -x.shape[1] % CHUNK))).reshape(x.shape[0], -1, CHUNK)
        self.whole, self.exponent = integers(self.x)
        self.high = (self.whole + 128) >> 8
        self.low = self.whole - (self.high << 8)

    def taken(self, test):
        """Returns the values that are multiplied, [chunk, line, k], and the share of lines with two
        digits."""
        two = test(self.x, self.high, self.low)
        value = np.where(two[..., None], self.whole, self.high << 8) * np.exp2(self.exponent - 15.0)[..., None]
        return value.transpose(1, 0, 2), two.mean()


def error(a, b, want, test):
    """Returns the error of the product. A chunk's sum is exact in binary64."""
    (x, of_a), (y, of_b) = a.taken(test), b.taken(test)
    total = np.zeros(want.shape, np.float32)
    for c in range(x.shape[0]):
        total += (x[c] @ y[c].T).astype(np.float32)
    size = math.sqrt((want**2).mean())
    return (math.sqrt(((total - want) ** 2).mean()) / size * 2**24 if size else 0.0), of_a, of_b


# ---- models, and the factors of their products ----


def text():
    with open(os.path.join(HERE, "../models/data/project.txt"), "rb") as f:
        return torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).long()


def windows(data, step, batch, length):
    at = torch.randint(len(data) - length - 1, (batch,), generator=torch.Generator().manual_seed(step))
    return torch.stack([data[i : i + length] for i in at])


def gpt2(layers, heads, channels, batch, steps):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=256, n_positions=128, n_embd=channels, n_layer=layers, n_head=heads)
    return decoder(GPT2LMHeadModel(config), batch, steps)


def llama(layers, heads, channels, hidden, batch, steps):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=256, hidden_size=channels, intermediate_size=hidden, num_hidden_layers=layers,
                         num_attention_heads=heads, num_key_value_heads=heads // 2, max_position_embeddings=128)
    return decoder(LlamaForCausalLM(config), batch, steps)


def decoder(model, batch, steps):
    data = text()

    def loss(step):
        ids = windows(data, step, batch, 128)
        return model(input_ids=ids, labels=ids).loss

    return model, loss, steps, 1.5e-3


def resnet(steps):
    from torchvision.models import resnet18

    model = resnet18(num_classes=10)
    model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    with open(os.path.join(HERE, "../models/data/stripes.bin"), "rb") as f:
        data = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).reshape(-1, 3073)

    def loss(step):
        some = data[torch.randint(len(data), (16,), generator=torch.Generator().manual_seed(step))]
        images = some[:, 1:].reshape(-1, 3, 32, 32).float() / 128 - 1
        return nn.functional.cross_entropy(model(images), some[:, 0].long())

    return model, loss, steps, 1e-3


MODELS = {
    "GPT-2 1M": lambda: gpt2(5, 4, 128, 12, 60),
    "Llama 1M": lambda: llama(4, 4, 128, 344, 12, 120),
    "ResNet-18": lambda: resnet(25),
    "GPT-2 10M": lambda: gpt2(6, 6, 384, 4, 40),
    "GPT-2 1M, later": lambda: gpt2(5, 4, 128, 12, 300),
}


def train(model, loss, steps, rate):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        out = loss(step)
        out.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return out.item()


def rows_of(x):
    return x.detach().reshape(-1, x.shape[-1])


def linear_products(x, w, dy):
    """Yields the factors of a linear layer's products; w is [in, out]."""
    x, dy = rows_of(x), rows_of(dy)
    yield "forward", x, w.T
    yield "gradient_x", dy, w
    yield "gradient_w", x.T, dy.T


def conv_products(layer, x, dy):
    """Yields the factors of a convolution's products, terms in the project's order: taps, then
    channels."""
    if layer.groups != 1 or layer.padding == "same":
        return
    w, filters = layer.weight.detach(), layer.out_channels
    columns = nn.functional.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    taps = columns.reshape(x.shape[0], x.shape[1], -1, columns.shape[-1]).permute(0, 3, 2, 1)
    taps = taps.reshape(-1, taps.shape[2] * taps.shape[3])
    y = dy.permute(0, 2, 3, 1).reshape(-1, filters)
    yield "forward", taps, w.permute(0, 2, 3, 1).reshape(filters, -1)
    yield "gradient_w", taps.T, y.T
    if layer.stride == (1, 1):
        back = nn.functional.unfold(dy, layer.kernel_size, layer.dilation, layer.padding)
        back = back.reshape(dy.shape[0], filters, -1, back.shape[-1]).permute(0, 3, 2, 1)
        back = back.reshape(-1, back.shape[2] * back.shape[3])
        yield "gradient_x", back, w.flip(2, 3).permute(1, 2, 3, 0).reshape(x.shape[1], -1)


def factors(model, loss, steps):
    """Yields (direction, a [M, K], b [N, K]) for each product of one more step."""
    kept = {}

    def keep(layer, given, out):
        kept[layer] = [given[0].detach()]
        out.register_hook(lambda dy: kept[layer].append(dy.detach()))

    kinds = (nn.Linear, nn.Conv2d, *(m for m in [type(x) for x in model.modules()] if m.__name__ == "Conv1D"))
    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, kinds)]
    loss(steps).backward()
    for hook in hooks:
        hook.remove()
    for layer, (x, dy) in kept.items():
        if isinstance(layer, nn.Conv2d):
            yield from conv_products(layer, x, dy)
        else:
            w = layer.weight.detach()
            yield from linear_products(x, w.T if isinstance(layer, nn.Linear) else w, dy)


def some(x, most):
    keep = torch.linspace(0, x.shape[0] - 1, min(most, x.shape[0])).long()
    return x[keep].contiguous().numpy()


def measure(name):
    torch.manual_seed(1)
    model, loss, steps, rate = MODELS[name]()
    last = train(model, loss, steps, rate)
    rows = {}
    for direction, a, b in factors(model, loss, steps):
        a, b = Operand(some(a, ROWS)), Operand(some(b, COLS))
        want = a.lines @ b.lines.T
        for test, of in TESTS.items():
            rows.setdefault((direction, test), []).append(error(a, b, want, of))
    print(f"\n{name}: {steps} steps, last loss {last:.3f}\n")
    harness.head("Direction", "Test", "Errors", "two", "cost", left=2)
    for direction in ("forward", "gradient_x", "gradient_w"):
        for test in TESTS:
            errors, of_a, of_b = np.array(rows[direction, test]).T
            cost = ((1 + of_a) * (1 + of_b)).mean()
            harness.row(direction, test, f"{np.median(errors):,.0f}; {errors.max():,.0f}", f"{of_a.mean():.3f}, {of_b.mean():.3f}", f"{cost:.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in MODELS:
        if options.only in name:
            measure(name)


if __name__ == "__main__":
    main()
