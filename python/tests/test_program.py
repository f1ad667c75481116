"""A model trained in Python and as a job of Verde has the same bits."""

import hashlib
import json

import numpy as np
import pytest
import torch
from conftest import called

import repops
import repops.jobs
from repops import _commit
from repops.torch import commitments, optim, reproducible

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")
STEPS, BATCH, LENGTH, SEED = 8, 4, 16, 7
JOB = """verde: 1
model: {{kind: pretrained, dir: start, sha256: {manifest}}}
data: {{kind: text, file: text.txt, sha256: {data}}}
seed: 7
batch: 4
sequence: 16
steps: 8
checkpoint_interval: 2
micro_batches: {micro}
optimizer: {{kind: adamw, lr: 3e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1,
            clip_norm: 0.5, decay_exempt: {exempt}}}
schedule: {{kind: cosine, warmup: 2, min_lr: 3e-4}}
"""


def start(folder):
    """A GPT-2 without dropout, whose GELU is one operator, and the path of its weights."""
    with reproducible():
        torch.manual_seed(1)
        rates = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        size = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 256, "n_positions": 16}
        config = transformers.GPT2Config(
            **size, **rates, activation_function="gelu_pytorch_tanh", eos_token_id=0
        )
        model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(folder)
    return model


def train(model, data, micro, exempt):
    """Trains the job's steps; returns commitments of the state before each step and at the end, and
    losses."""
    base = repops.commitment
    parameters = list(model.parameters())
    optimizer = optim.AdamW(
        parameters,
        lr=3e-3,
        betas=(0.9, 0.95),
        eps=1e-8,
        weight_decay=0.1,
        max_norm=0.5,
        decay_exempt=exempt,
    )
    schedule = optim.Schedule(optimizer, "cosine", STEPS, 2, 3e-4)
    states, losses = [], []

    def state():
        # The order of a program's state: weights, first moments, second moments, corrections.
        kept = [optimizer.state[p] for p in parameters]
        zero = [torch.zeros_like(p) for p in parameters]
        moments = [[s.get(key, z) for s, z in zip(kept, zero)] for key in ("exp_avg", "exp_avg_sq")]
        c1, c2 = np.zeros(1, "f4"), np.zeros(1, "f4")
        for _ in range(len(losses)):
            c1, c2 = repops.bias_correction(c1, beta=0.9), repops.bias_correction(c2, beta=0.95)
        return [base(t) for t in [*parameters, *moments[0], *moments[1], c1, c2]]

    for step in range(STEPS):
        states.append(state())
        whole = []
        for part in range(micro):
            rows = BATCH // micro
            at = {"seed": SEED, "batch": BATCH, "first": part * rows, "shape": [rows, LENGTH]}
            number = np.array([step], "i4")
            x, y = (
                torch.from_numpy(repops.read_batch(data, number, shift=shift, **at)).long()
                for shift in (0, 1)
            )
            logits = model(x).logits
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 256), y.reshape(-1))
            (loss / micro).backward()
            whole.append(loss.item() / micro)
        losses.append(sum(whole))
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return [*states, state()], losses


@pytest.mark.parametrize("micro, exempt", [(1, "vectors"), (2, "none")])
def test_a_gpt2_has_the_bits_of_the_same_job(tmp_path, command, micro, exempt):
    model = start(tmp_path / "start")
    text = bytes(np.random.default_rng(0).integers(0, 256, 1000, dtype="u1"))
    (tmp_path / "text.txt").write_bytes(text)
    manifest = hashlib.sha256(called(command, "manifest", tmp_path / "start").encode()).hexdigest()
    job = JOB.format(
        manifest=manifest, data=hashlib.sha256(text).hexdigest(), micro=micro, exempt=exempt
    )
    (tmp_path / "job.yaml").write_text(job)
    run = tmp_path / "run"
    called(command, "run", tmp_path / "job.yaml", "--out", run)

    with reproducible():
        states, losses = train(model, np.frombuffer(text, "u1"), micro, exempt)
    program = hashlib.sha256(b"verde/program/1\0" + (run / "program").read_bytes()).hexdigest()
    own = {_commit.state(program, i, repops.root(s)) for i, s in list(enumerate(states))[::2]}
    theirs = {file.name.removeprefix("state-") for file in run.glob("state-*")}
    assert own == theirs and len(theirs) == 5

    told = [json.loads(line)["loss"] for line in (run / "losses.jsonl").read_text().splitlines()]
    assert np.array(told, "f4").tobytes() == np.array(losses, "f4").tobytes()

    called(command, "export", run, "--out", tmp_path / "tuned")
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "tuned")
    assert commitments(again) == commitments(model)


SAME = """verde: 1
model: {{kind: pretrained, dir: start, sha256: {manifest}}}
data: {{kind: text, file: text.txt, sha256: {data}}}
seed: 7
batch: 4
sequence: 16
steps: 8
checkpoint_interval: 8
optimizer: {{kind: adamw, lr: 3e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1,
            clip_norm: 0}}
schedule: {{kind: constant, warmup: 0}}
"""


def captured_from(model, data, folder):
    """Captures the same training as a step whose batches are those of a job with that seed."""
    at = {"seed": SEED, "batch": BATCH, "shape": [BATCH, LENGTH]}
    numbers = [np.array([step], "i4") for step in range(STEPS)]
    batches = [
        np.stack([repops.read_batch(data, n, shift=shift, **at) for n in numbers])
        for shift in (0, 1)
    ]
    job = repops.jobs.Job(folder, seed=SEED, steps=STEPS, checkpoint_interval=STEPS)
    x, y = (job.table(b.astype("i8")) for b in batches)
    with job:
        groups = [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-8, fused=True)

        def step():
            logits = model(x, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        job.capture(step, model, optimizer)


def test_a_captured_gpt2_has_the_bits_of_one_that_is_built(tmp_path, command):
    model = start(tmp_path / "start")
    text = bytes(np.random.default_rng(0).integers(0, 256, 1000, dtype="u1"))
    (tmp_path / "text.txt").write_bytes(text)
    manifest = hashlib.sha256(called(command, "manifest", tmp_path / "start").encode()).hexdigest()
    job = SAME.format(manifest=manifest, data=hashlib.sha256(text).hexdigest())
    (tmp_path / "built.yaml").write_text(job)
    captured_from(model, np.frombuffer(text, "u1"), tmp_path / "captured")
    lines, weights = [], []
    for name in ("built.yaml", "captured"):
        run = tmp_path / f"{name}-run"
        called(command, "run", tmp_path / name, "--out", run)
        lines.append([json.loads(x)["loss"] for x in (run / "losses.jsonl").open()])
        called(command, "export", run, "--out", tmp_path / f"{name}-out")
        weights.append(safetensors.load_file(tmp_path / f"{name}-out" / "model.safetensors"))
    built, captured = weights
    assert len(lines[0]) == STEPS and lines[0] == lines[1]
    trained = {name.removeprefix("transformer."): t for name, t in captured.items()}
    names = {name.removeprefix("transformer.") for name in built} - {"lm_head.weight"}
    assert len(names) == 2 + 12 * 2 + 2
    for name in names:
        own = built.get(f"transformer.{name}", built.get(name))
        assert own.numpy().tobytes() == trained[name].numpy().tobytes(), name
