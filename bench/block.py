"""Steps of unmodified models inside the block beside plain PyTorch, interleaved, in one process.

usage: block.py [MODEL...]; prints median milliseconds, their ratio, and the ratio of the least ones

With THREADS=1 it measures CPU time instead of wall-clock time, since a busy machine disturbs it
less.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
import tempfile
import warnings

import harness
import torch

import repops.torch

ROUNDS = int(os.environ.get("ROUNDS", "7"))
THREADS = int(os.environ.get("THREADS", "2"))
clock = harness.clock_of(THREADS)


SMALL = {"n_layer": 4, "n_embd": 256, "n_head": 8, "vocab_size": 2000, "n_positions": 128}
SMALL_BERT = {
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "vocab_size": 2000,
    "max_position_embeddings": 128,
}
SMALL_LLAMA = {
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 2000,
}
SMOLLM_135M = {  # the sizes in config.json of HuggingFaceTB/SmolLM-135M
    "num_hidden_layers": 30,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}


def gpt2(batch, tokens=128, **size):
    """A GPT-2; of 124 million weights if no size is given."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model, ids = GPT2LMHeadModel(GPT2Config(**size)), torch.arange(batch * tokens) % 2000
    ids = ids.reshape(batch, tokens)
    return model, lambda: model(ids, labels=ids).loss


def llama(batch, **size):
    """A Llama whose query heads share key heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model, ids = LlamaForCausalLM(LlamaConfig(**size)), torch.arange(batch * 128) % 2000
    ids = ids.reshape(batch, 128)
    return model, lambda: model(ids, labels=ids).loss


def bert(batch, **size):
    """A BERT; the base model of 110 million weights if no size is given."""
    from transformers import BertConfig, BertForMaskedLM

    model, ids = BertForMaskedLM(BertConfig(**size)), torch.arange(batch * 128) % 2000
    ids = ids.reshape(batch, 128)
    return model, lambda: model(ids, labels=ids).loss


def resnet(batch, last=False, kind="resnet18", size=64):
    import torchvision

    model = getattr(torchvision.models, kind)(num_classes=10)
    x = torch.randn(batch, 3, size, size)
    order = torch.channels_last if last else torch.contiguous_format
    model, x = model.to(memory_format=order), x.to(memory_format=order)
    return model, lambda: torch.nn.functional.cross_entropy(model(x), torch.arange(batch) % 10)


MODELS = {
    "gpt2": lambda batch: gpt2(batch, **SMALL),
    "gpt2 124M": lambda batch: gpt2(batch, 64),
    "llama": lambda batch: llama(batch, **SMALL_LLAMA),
    "llama 135M": lambda batch: llama(batch, **SMOLLM_135M),
    "bert": lambda batch: bert(batch, **SMALL_BERT),
    "bert 110M": bert,
    "resnet": resnet,
    "resnet channels_last": lambda batch: resnet(batch, True),
    "resnet50": lambda batch: resnet(batch, False, "resnet50", 128),
    "resnet50 channels_last": lambda batch: resnet(batch, True, "resnet50", 128),
}


def step(model, loss, optimizer):
    start = clock()
    loss().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return (clock() - start) * 1e3


def compare(name, batch):
    model, loss = MODELS[name](batch)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    mode = repops.torch.reproducible()

    def own():
        with mode:
            return step(model, loss, optimizer)

    times = harness.in_turn(ROUNDS, lambda: step(model, loss, optimizer), own)
    theirs, ours = map(harness.median, times)
    least = min(times[0]) / min(times[1])
    print(
        f"{name:22} {batch:5} {theirs:10.1f} {ours:10.1f} {theirs / ours:8.2f} {least:8.2f}", flush=True
    )


def overhead():
    """Prints how many microseconds more an operator on one element takes inside the block."""
    x, count = torch.ones(1), 2000
    for name, call in (("exp, routed", x.exp), ("x + x, torch's own", lambda: x + x)):
        times = []
        for block in (contextlib.nullcontext(), repops.torch.reproducible()):
            with block:
                times.append(harness.seconds_of(call, count, clock) * 1e6)
        print(f"{name}: {times[0]:.1f} us plain, {times[1]:.1f} us inside")


def _said(call):
    """Returns the lines that the process's libraries print during a call."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            call()
            ctypes.CDLL(None).fflush(None)  # C's buffer may still hold them
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace").splitlines()


def peers():
    """Returns which libraries compute torch's products and convolutions here, by their verbose
    output."""
    x, images = torch.ones(64, 64), torch.ones(4, 64, 16, 16)
    mkl, onednn = torch.backends.mkl, torch.backends.mkldnn
    with torch.no_grad(), mkl.verbose(mkl.VERBOSE_ON), onednn.verbose(onednn.VERBOSE_ON):
        products = _said(lambda: torch.nn.functional.linear(x, x, x[0]))
        convolutions = _said(lambda: torch.nn.functional.conv2d(images, torch.ones(64, 64, 3, 3)))
    head = [line for line in products if line.startswith("MKL_VERBOSE oneMKL")]
    kind = head[0].split("architecture", 1)[-1].split(" processors")[0] if head else ""
    product = [line.split()[1] for line in products if "GEMM(" in line]
    product += [line for line in products if ",exec,cpu," in line]
    convolution = [line.split(",") for line in convolutions if ",convolution," in line]
    print(f"torch's products: MKL {product[0].split('(')[0]} for{kind}" if product else "no MKL")
    print("torch's convolutions:", f"oneDNN {convolution[0][6]}" if convolution else "not oneDNN")


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(THREADS)
    mkl = "widest kernels" if "mkl_kernels" in os.environ.get("LD_PRELOAD", "") else "as installed"
    waits = os.environ.get("OMP_WAIT_POLICY", "default")
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{load}, torch {torch.__version__}, {THREADS} threads, {ROUNDS} rounds")
    print(f"MKL: {mkl}; OpenMP's waiting: {waits}")
    peers()
    print(f"{'model':22} {'batch':>5} {'torch ms':>10} {'repops ms':>10} {'ratio':>8} {'least':>8}")
    for name in sys.argv[1:] or MODELS:
        for batch in (4, 8):
            compare(name, batch)
    overhead()


if __name__ == "__main__":
    main()
