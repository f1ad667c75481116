"""Trains unmodified models for some steps in the block, and prints a hash for each.

usage: train.py MODEL... ; models: gpt2 llama bert resnet resnet50
TRAIN_STEPS and TRAIN_THREADS are their numbers, TRAIN_LAYERS that of a transformer's layers.
TRAIN_ADAMW="fused plain" chooses kinds of torch.optim.AdamW.
"""

import hashlib
import logging
import os
import sys
import warnings

import numpy as np
import torch

import repops.torch

STEPS = int(os.environ.get("TRAIN_STEPS", "5"))
LAYERS = int(os.environ.get("TRAIN_LAYERS", "2"))


def batch(low, high, *shape, seed=1):
    """Random integers by numpy: torch draws other ones in `reproducible()` than outside."""
    return torch.from_numpy(np.random.default_rng(seed).integers(low, high, shape))


def gpt2(**more):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(
        GPT2Config(n_layer=LAYERS, n_embd=48, n_head=4, vocab_size=300, n_positions=64, **more)
    )
    return model, lambda i: model(ids := batch(0, 300, 2, 17, seed=i), labels=ids).loss


def llama(**more):
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=300,
            hidden_size=48,
            intermediate_size=100,
            num_hidden_layers=LAYERS,
            num_attention_heads=4,
            num_key_value_heads=2,
            **more,
        )
    )
    return model, lambda i: model(ids := batch(0, 300, 2, 17, seed=i), labels=ids).loss


def bert(**more):
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(
        BertConfig(
            vocab_size=300,
            hidden_size=48,
            num_hidden_layers=LAYERS,
            num_attention_heads=4,
            intermediate_size=100,
            **more,
        )
    )
    mask = torch.ones(2, 17, dtype=torch.int64)
    mask[1, 12:] = 0
    return (
        model,
        lambda i: model(ids := batch(0, 300, 2, 17, seed=i), attention_mask=mask, labels=ids).loss,
    )


def resnet(size=32, kind="resnet18"):
    import torchvision

    model = getattr(torchvision.models, kind)(num_classes=10)

    def loss(i):
        pixels = batch(-99, 99, 4, 3, size, size, seed=i).to(next(model.parameters()).dtype)
        return torch.nn.functional.cross_entropy(model(pixels / 50), batch(0, 10, 4, seed=i))

    return model, loss


MODELS = {"gpt2": gpt2, "llama": llama, "bert": bert, "resnet": resnet}
LARGE = {"resnet50": lambda: resnet(kind="resnet50")}  # only for the matrix of settings


def train(model, loss, fused, steps=STEPS):
    """Trains in place; returns the losses."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, 1.0, 3)
    losses = []
    for i in range(steps):
        value = loss(i)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(value.item())
    return losses


def digest(model):
    state = model.state_dict().values()
    return hashlib.sha256(
        b"".join(t.detach().contiguous().numpy().tobytes() for t in state)
    ).hexdigest()[:16]


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(int(os.environ.get("TRAIN_THREADS", "1")))
    for name in sys.argv[1:]:
        for kind in os.environ.get("TRAIN_ADAMW", "fused plain").split():
            with repops.torch.reproducible():
                torch.manual_seed(1)
                model, loss = {**MODELS, **LARGE}[name]()
                losses = train(model, loss, kind == "fused")
            print(
                name,
                kind,
                digest(model),
                *[f"{v:.9g}" for v in losses],
                flush=True,
            )


if __name__ == "__main__":
    main()
