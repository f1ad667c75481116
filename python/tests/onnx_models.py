"""Models with random weights, and what PyTorch's exporter makes of them.

usage: onnx_models.py FOLDER [NAME...]: writes NAME.onnx, inputs NAME.npz, outputs NAME.want.npz"""

import contextlib
import io
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SIZE = 64  # pixels of an image


class Tagger(nn.Module):
    def __init__(self, words=50, wide=16, state=24, tags=7):
        super().__init__()
        self.words = nn.Embedding(words, wide)
        self.lstm = nn.LSTM(wide, state, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * state, tags)

    def forward(self, x):
        return self.tags(self.lstm(self.words(x))[0])


def _twice(a, b):
    parts = [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
    more = [nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*parts, *more)


class UNet(nn.Module):
    def __init__(self, a=16):
        super().__init__()
        b, c = 2 * a, 4 * a
        self.down1, self.down2, self.middle = _twice(3, a), _twice(a, b), _twice(b, c)
        self.turn2, self.up2 = nn.ConvTranspose2d(c, b, 2, 2), _twice(c, b)
        self.turn1, self.up1 = nn.ConvTranspose2d(b, a, 2, 2), _twice(b, a)
        self.out = nn.Conv2d(a, 5, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        y = self.up2(torch.cat([self.turn2(c), b], 1))
        return self.out(self.up1(torch.cat([self.turn1(y), a], 1)))


class Diffusion(nn.Module):
    """A diffusion model's U-Net: time embedding, group norms, attention, nearest resizing."""

    def __init__(self, wide=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, wide))
        self.first, self.conv = (nn.Conv2d(c, wide, 3, padding=1) for c in (3, wide))
        self.down, self.up = nn.Conv2d(wide, wide, 3, 2, 1), nn.Conv2d(wide, wide, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(8, wide), nn.GroupNorm(8, wide)
        self.norm3 = nn.GroupNorm(8, 2 * wide)
        self.mix = nn.MultiheadAttention(wide, 4, batch_first=True)
        self.out = nn.Conv2d(2 * wide, 3, 3, padding=1)

    def forward(self, x, t):
        angle = t[:, None] * torch.exp(torch.arange(8) * -0.5)
        time = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        h = self.first(x)
        h = h + self.conv(F.silu(self.norm1(h))) + time[:, :, None, None]
        k = self.down(h)
        q = self.norm2(k).flatten(2).transpose(1, 2)
        k = k + self.mix(q, q, q, need_weights=False)[0].transpose(1, 2).reshape(k.shape)
        k = self.up(F.interpolate(k, scale_factor=2.0, mode="nearest"))
        return self.out(F.silu(self.norm3(torch.cat([k, h], 1))))


class Heads(nn.Module):
    """SSD without the choice of boxes."""

    def __init__(self):
        import torchvision

        super().__init__()
        make = torchvision.models.detection.ssdlite320_mobilenet_v3_large
        whole = make(weights=None, weights_backbone=None)
        self.body, self.head = whole.backbone, whole.head

    def forward(self, x):
        y = self.head(list(self.body(x).values()))
        return y["bbox_regression"], y["cls_logits"]


class Text(nn.Module):
    """A model of transformers, which returns its logits or its last hidden states."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *given):
        out = self.model(**dict(zip(self.names, given)), return_dict=True)
        return out.logits if hasattr(out, "logits") else out.last_hidden_state


def _ids(*shape):
    return torch.randint(3, 100, shape)


def _vision(name, size=SIZE, **how):
    def make():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **how), (
            torch.randn(2, 3, size, size),
        )

    return make


def _vit():
    from torchvision.models import VisionTransformer

    model = VisionTransformer(32, 8, 4, 4, 64, 128, num_classes=10)
    nn.init.normal_(model.heads.head.weight)  # they start as zeros
    return model, (torch.randn(2, 3, 32, 32),)


def _text(kind, config, names, inputs, **settings):
    def make():
        import transformers

        own = getattr(transformers, config)(**settings)
        model = getattr(transformers, kind)(own)
        model.config.use_cache = False
        return Text(model, names), inputs()

    return make


_ONE, _TWO = ["input_ids"], ["input_ids", "decoder_input_ids"]
_SMALL = {"vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_SPEECH = {
    "vocab_size": 128, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128, "num_mel_bins": 16, "max_source_positions": 32,
    "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None,
}  # fmt: skip
MODELS = {
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50"),
    "mobilenet_v3": _vision("mobilenet_v3_small"),
    "efficientnet": _vision("efficientnet_b0"),
    "vit": _vit,
    "swin": _vision("swin_t"),
    "gpt2": _text(
        "GPT2LMHeadModel", "GPT2Config", _ONE, lambda: (_ids(2, 16),),
        vocab_size=128, n_embd=64, n_layer=3, n_head=4, n_positions=64,
    ),
    "llama": _text(
        "LlamaForCausalLM", "LlamaConfig", _ONE, lambda: (_ids(2, 16),),
        **_SMALL, intermediate_size=128, num_key_value_heads=2,
    ),
    "bert": _text(
        "BertModel", "BertConfig", _ONE, lambda: (_ids(2, 16),), **_SMALL, intermediate_size=128
    ),
    "t5": _text(
        "T5ForConditionalGeneration", "T5Config", _TWO, lambda: (_ids(2, 12), _ids(2, 8)),
        vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
    ),
    "whisper": _text(
        "WhisperForConditionalGeneration", "WhisperConfig",
        ["input_features", "decoder_input_ids"], lambda: (torch.randn(2, 16, 64), _ids(2, 8)),
        **_SPEECH,
    ),
    "lstm_tagger": lambda: (Tagger(), (torch.randint(0, 50, (4, 12)),)),
    "unet": lambda: (UNet(), (torch.randn(2, 3, 32, 32),)),
    "diffusion_unet": lambda: (Diffusion(), (torch.randn(2, 3, 16, 16), torch.rand(2) * 10)),
    "ssd_heads": lambda: (Heads(), (torch.randn(2, 3, 128, 128),)),
}  # fmt: skip


def make(name, models=MODELS):
    """A model, whose norms have seen enough data to be well conditioned, and inputs."""
    torch.manual_seed(0)
    model, inputs = models[name]()
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for m in norms:
        m.momentum = None  # gives the mean of all batches
    with torch.no_grad():
        if norms:
            model.train()(torch.randn(16, *inputs[0].shape[1:]))
    return model.eval(), inputs


def export(model, inputs, path, optimize=True):
    """Exports with PyTorch's exporter, silently. optimize merges equal initializers and rewrites
    transposed ones, so such a model does not train as its source does."""
    names = [f"in{i}" for i in range(len(inputs))]
    with warnings.catch_warnings(), torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        torch.onnx.export(
            model, inputs, str(path), input_names=names, external_data=False, dynamo=True,
            optimize=optimize,
        )  # fmt: skip
        logging.disable(logging.NOTSET)
    return names


def write(name, folder, models=MODELS):
    """Exports a model; returns its inputs by name and PyTorch's outputs."""
    model, inputs = make(name, models)
    names = export(model, inputs, Path(folder) / f"{name}.onnx")
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    data = {n: t.numpy() for n, t in zip(names, inputs)}
    return data, [t.numpy() for t in outputs]


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        data, outputs = write(name, sys.argv[1])
        np.savez(Path(sys.argv[1]) / f"{name}.npz", **data)
        np.savez(Path(sys.argv[1]) / f"{name}.want.npz", *outputs)
        print(name, flush=True)
