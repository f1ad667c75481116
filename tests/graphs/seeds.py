"""Writes tests/graphs/corpus: programs with small graphs, from this project's models and captured from PyTorch.

Usage: python3 tests/graphs/seeds.py [BUILD_DIR], from the root of the project, with torch and the package in python/.
"""

import hashlib
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs
import repops.jobs._loops

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
CORPUS = Path("tests/graphs/corpus")
BATCH, WIDTH, CLASSES, TIME = 6, 10, 5, 7


def keep(name, program):
    shutil.copyfile(program, CORPUS / f"{name}.program")
    print(f"{name:24} {program.stat().st_size:6} bytes", flush=True)


# ---- jobs of the project's own models ----

GPT2 = "{kind: gpt2, vocab: 256, context: 9, layers: 1, heads: 2, channels: 12, dropout: 0.1}"
LLAMA = "{kind: llama, vocab: 256, layers: 1, heads: 4, kv_heads: 2, channels: 24, hidden: 20, rope_base: 10000}"
BERT = "{kind: bert, vocab: 257, context: 9, layers: 1, heads: 2, channels: 12, dropout: 0.1, mask_rate: 0.3, pad: 32}"
ADAMW = "{kind: adamw, lr: 3e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}"
SGD = "{kind: sgd, lr: 3e-3, momentum: 0.9, nesterov: true, weight_decay: 0.1, clip_norm: 1.0}"
JOBS = {
    "gpt2": (GPT2, ADAMW, "batch: 2\nmicro_batches: 1"),
    "gpt2-micro": (GPT2, ADAMW, "batch: 3\nmicro_batches: 3"),
    "gpt2-bf16": (GPT2, ADAMW, "batch: 1\nstorage: bf16"),
    "gpt2-fixed": (GPT2, SGD, "batch: 1\nproducts: fixed24"),
    "llama": (LLAMA, ADAMW, "batch: 1"),
    "llama-fixed": (LLAMA, SGD, "batch: 1\nproducts: fixed16"),
    "bert": (BERT, ADAMW, "batch: 2"),
    "mlp": ("{kind: mlp, vocab: 256, layers: 1, channels: 6, hidden: 8}", SGD.replace("true", "false"), "batch: 1"),
}


def sha_of(data):
    return hashlib.sha256(data).hexdigest()


def job_text(model, optimizer, more, kind="text", data=Path("models/data/project.txt")):
    return (f"verde: 1\nmodel: {model}\ndata: {{kind: {kind}, file: {data.resolve()}, sha256: {sha_of(data.read_bytes())}}}\nseed: 1\nsequence: 9\nsteps: 3\n"
            f"checkpoint_interval: 1\noptimizer: {optimizer}\nschedule: {{kind: cosine, warmup: 1, min_lr: 3e-4}}\n{more}\n")


def run(folder, name, text):
    job = folder / f"{name}.yaml"
    job.write_text(text)
    done = subprocess.run([f"{BUILD}/bin/verde", "run", str(job), "--out", str(folder / name)], capture_output=True, text=True)
    done.returncode and sys.exit(f"{name}: {done.stderr}")
    return folder / name


def keep_jobs(folder):
    for name, (model, optimizer, more) in JOBS.items():
        keep(name, run(folder, name, job_text(model, optimizer, more)) / "program")


def pretrained(name):
    """Names a model of the tests for a job. Only such models have windows, norms of heads and frozen weights."""
    model = Path(f"tests/vectors/pretrained/{name}").resolve()
    manifest = subprocess.run([f"{BUILD}/bin/verde", "manifest", str(model)], check=True, capture_output=True).stdout
    return f"{{kind: pretrained, dir: {model}, sha256: {sha_of(manifest)}}}"


def keep_trained_on(folder):
    tokens = folder / "tokens"
    tokens.write_bytes(struct.pack("<3i", 20240520, 1, 60) + bytes(1012) + struct.pack("<60H", *(7 * i % 60 for i in range(60))))
    lora = "lora: {rank: 2, alpha: 4, targets: [attn.q, mlp.up]}\nbatch: 1\n"
    for name, model, more in (("qwen2-window", "qwen2-window", "batch: 1"), ("lora", "llama", lora),
                              ("lora-fixed-bf16", "llama-bf16", lora + "products: fixed24\nstorage: bf16")):
        keep(name, run(folder, name, job_text(pretrained(model), ADAMW, more, "tokens", tokens)) / "program")


def keep_generations(folder):
    """Keeps programs of prompts, whose queries depend on the step: of GPT-2, Llama, and Qwen, which has norms of heads."""
    more = {"gpt2": "stop: [3, 9]\nsampling: {temperature: 1, top_k: 5, seed: 7}\n", "llama": "stop: [3]\nmin_tokens: 1\nsampling: {greedy: true}\n",
            "qwen3": "stop: []\nrepetition_penalty: 1.2\nsampling: {temperature: 1, top_p: 0.9, seed: 7}\n"}
    for name in more:
        prompts = '{"key":7,"ids":[1,2,3]}\n'
        (folder / "prompts.jsonl").write_text(prompts)
        text = (f"verde: 1\ntask: generate\nmax_tokens: 4\n{more[name]}log_probabilities: 2\n"
                f"model: {pretrained(name)}\n"
                f"prompts: {{file: prompts.jsonl, sha256: {sha_of(prompts.encode())}}}\n")
        keep(f"generate-{name}", run(folder, f"generate-{name}", text) / "prompts" / "7" / "program")


# ---- captured ----

class Attention(nn.Module):
    """Causal or padded attention; heads may share keys and values."""

    def __init__(self, heads=2, kv_heads=2, causal=True, mask=False, dropout=0.0):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.mask, self.dropout = heads, kv_heads, causal, mask, dropout
        size = WIDTH // heads
        self.q, self.k, self.v = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, kv_heads * size), nn.Linear(WIDTH, kv_heads * size)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        split = lambda t, heads: t.unflatten(2, (heads, -1)).transpose(1, 2)
        q, k, v = split(self.q(x), self.heads), split(self.k(x), self.kv_heads), split(self.v(x), self.kv_heads)
        if self.kv_heads < self.heads:
            k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        bias = (x[:, :, 0] > 1).float().mul(-1e4)[:, None, None, :] if self.mask else None
        y = F.scaled_dot_product_attention(q, k, v, bias, self.dropout, is_causal=self.causal and bias is None)
        return self.out(y.transpose(1, 2).flatten(2))


class Recurrent(nn.Module):
    def __init__(self, kind, times=3):
        super().__init__()
        self.cell, self.head, self.times = kind(WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, CLASSES), times

    def forward(self, x):
        return self.head(self.cell(x[:, :self.times])[0][:, -1])


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(CLASSES, WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, ids):
        return self.norm(self.table(ids)) @ self.table.weight.T


class Adapted(nn.Module):
    """A frozen linear layer with an adapter."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(WIDTH, CLASSES)
        self.frozen.requires_grad_(False)
        self.a, self.b = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, CLASSES, bias=False)

    def forward(self, x):
        return self.frozen(x) + 0.5 * self.b(self.a(x))


def adamw(parameters):
    return torch.optim.AdamW(parameters, 1e-2, fused=True)


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)


def sequence_loss(own, d):
    return F.cross_entropy(own(d["x"]).flatten(0, 1), d["ids"].flatten(), ignore_index=2)


def sums(own, d):
    x = own(d["rows"])
    return (x.softmax(1) * x.log_softmax(1)).sum() + x.abs().amax(1).mean() + x.std(1).sum() + x.logsumexp(1).sum()


def graph_loss(own, d):
    sent = own(d["rows"])[d["labels"]]
    got = torch.zeros(BATCH, CLASSES).index_add(0, d["labels"], sent)
    return got.square().mean() + torch.where(got > 0, got, -got).sum()


classes = lambda own, d: F.cross_entropy(own(d["rows"]), d["labels"])
CAPTURED = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(WIDTH, 12), nn.GELU(), nn.Linear(12, CLASSES)), classes, adamw),
    "relu-sgd": (lambda: nn.Sequential(nn.Linear(WIDTH, 9), nn.ReLU(), nn.LayerNorm(9), nn.Linear(9, CLASSES)), classes, sgd),
    "rms-silu": (lambda: nn.Sequential(nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 8), nn.SiLU(), nn.Dropout(0.2), nn.Linear(8, CLASSES)),
                 classes, adamw),
    "attention": (lambda: nn.Sequential(Attention(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)), sequence_loss, sgd),
    "attention-groups": (lambda: nn.Sequential(Attention(5, 1, dropout=0.1), nn.Linear(WIDTH, CLASSES)), sequence_loss, adamw),
    "attention-mask": (lambda: nn.Sequential(Attention(mask=True), nn.Linear(WIDTH, CLASSES)), sequence_loss, sgd),
    "encoder": (lambda: nn.Sequential(nn.TransformerEncoderLayer(WIDTH, 2, 9, 0.1, batch_first=True), nn.Linear(WIDTH, CLASSES)),
                sequence_loss, sgd),
    "tied": (Tied, lambda own, d: F.cross_entropy(own(d["ids"]).flatten(0, 1), d["ids"].flatten()), adamw),
    "gru": (lambda: Recurrent(nn.GRU), lambda own, d: F.cross_entropy(own(d["x"]), d["labels"]), sgd),
    "lstm-loops": (lambda: Recurrent(nn.LSTM, TIME), lambda own, d: F.cross_entropy(own(d["x"]), d["labels"]), adamw),
    "images": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                     nn.Linear(36, CLASSES)), lambda own, d: F.cross_entropy(own(d["image"]), d["labels"]), sgd),
    "groups-1d": (lambda: nn.Sequential(nn.Conv1d(TIME, 6, 3), nn.GroupNorm(2, 6), nn.Tanh(), nn.Flatten(), nn.Linear(48, CLASSES)),
                  lambda own, d: F.cross_entropy(own(d["x"]), d["labels"], label_smoothing=0.1), sgd),
    "adapted": (Adapted, classes, adamw),
    "sums": (lambda: nn.Linear(WIDTH, CLASSES), sums, sgd),
    "graph": (lambda: nn.Linear(WIDTH, CLASSES), graph_loss, sgd),
    "huber-rmsprop": (lambda: nn.Sequential(nn.Linear(WIDTH, CLASSES), nn.Sigmoid()),
                      lambda own, d: F.huber_loss(own(d["rows"]), d["rows"][:, :CLASSES]), lambda p: torch.optim.RMSprop(p, 1e-2)),
    "adagrad": (lambda: nn.Sequential(nn.Linear(WIDTH, CLASSES), nn.LeakyReLU(0.1)), classes, lambda p: torch.optim.Adagrad(p, 1e-2)),
}


def capture(folder, name, make, loss_of, optimizer_of):
    random = np.random.default_rng(1)
    numbers = lambda *shape: random.standard_normal((12, *shape), "f4")
    job = repops.jobs.Job(folder / name, seed=3, steps=3, checkpoint_interval=1)
    d = {"rows": job.rows(numbers(WIDTH), batch=BATCH), "x": job.rows(numbers(TIME, WIDTH), batch=BATCH),
         "image": job.rows(numbers(3, 7, 7), batch=BATCH), "labels": job.rows(random.integers(0, CLASSES, 12), batch=BATCH),
         "ids": job.rows(random.integers(0, CLASSES, (12, TIME)), batch=BATCH)}
    with job:
        torch.manual_seed(1)
        own = make()
        repops.jobs._loops.SAVED = 100 if name.endswith("-loops") else 10**9
        optimizer = optimizer_of([p for p in own.parameters() if p.requires_grad])

        def step():
            loss = loss_of(own, d)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            return loss

        job.capture(step, own, optimizer)
    return folder / name / "program"


def main():
    torch.set_num_threads(1)
    CORPUS.mkdir(parents=True, exist_ok=True)
    for old in CORPUS.glob("*.program"):
        if not old.name.startswith("found-"):  # those show faults that were fixed
            old.unlink()
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        keep_jobs(folder)
        keep_trained_on(folder)
        keep_generations(folder)
        for name, (make, loss_of, optimizer_of) in CAPTURED.items():
            try:
                keep(name, capture(folder, name, make, loss_of, optimizer_of))
            except repops.jobs.CaptureError as error:
                print(name, error)


main()
