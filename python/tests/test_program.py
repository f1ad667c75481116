"""A model that is trained here, and as a job of Verde: the same bits."""

import hashlib
import json

import numpy as np
import pytest
import torch
from conftest import called

import repops
from repops import _commit
from repops.torch import commitments, optim, reproducible

transformers = pytest.importorskip("transformers")
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
    """A GPT-2 without dropout, whose GELU is one operator, and where its weights are."""
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
    """The steps of the job; commitments of the state before each and at the end, and losses."""
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
        # The layout of a program's state: weights, first moments, second moments, corrections.
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
