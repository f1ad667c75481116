"""Trains a job of this folder, a GPT-2, in PyTorch, with the job's data and from the weights that `verde run` begins
with.

    python3 bench/curves/peer.py JOB MODEL float32|bfloat16 [--threads N]

JOB is the job's file, MODEL what `verde export --step 0` wrote for it. With bfloat16 the forward pass runs under
autocast; weights, gradients and AdamW stay float32, as is usual. Prints the losses as a JSON list.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import torch
import yaml
from transformers import GPT2LMHeadModel

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests/independent"))
from definitions import permute  # noqa: E402

DATA_STREAM = 0  # the Philox stream of read_batch in such a job's program


def windows(job, text):
    """Yields for each step its tokens and the tokens that follow them (read_batch of SPEC.md)."""
    long, batch = job["sequence"], job["batch"]
    count = (len(text) - 1) // long
    for step in range(job["steps"]):
        rows = []
        for g in range(step * batch, (step + 1) * batch):
            at = long * permute(job["seed"], DATA_STREAM, g // count, count, g % count)
            rows.append(torch.frombuffer(text, dtype=torch.uint8, count=long + 1, offset=at).long())
        rows = torch.stack(rows)
        yield rows[:, :-1], rows[:, 1:]


def rate(job, step):
    """Returns the learning rate: lr_schedule of SPEC.md, with a cosine."""
    peak, plan = job["optimizer"]["lr"], job["schedule"]
    warmup, least = plan["warmup"], plan["min_lr"]
    if step < warmup:
        return peak * (step + 1) / warmup
    part = (step - warmup) / (job["steps"] - warmup)
    return least + (peak - least) * (1 + math.cos(math.pi * part)) / 2


def optimizer(job, model):
    o = job["optimizer"]
    matrices, vectors = ([p for p in model.parameters() if (p.dim() > 1) == wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": o["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])


def losses(job, text, model, kind):
    adamw = optimizer(job, model)
    for step, (tokens, targets) in enumerate(windows(job, text)):
        for group in adamw.param_groups:
            group["lr"] = rate(job, step)
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bfloat16"):
            logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job["optimizer"]["clip_norm"])
        adamw.step()
        adamw.zero_grad()
        yield float(loss.detach())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", type=Path)
    parser.add_argument("model")
    parser.add_argument("kind", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    job = yaml.safe_load(options.job.read_text())
    job["optimizer"] = {k: float(v) for k, v in job["optimizer"].items() if k != "kind"}
    job["schedule"] = {k: float(v) for k, v in job["schedule"].items() if k != "kind"}
    text = bytearray((options.job.parent / job["data"]["file"]).read_bytes())
    model = GPT2LMHeadModel.from_pretrained(options.model, attn_implementation="sdpa").train()
    print(json.dumps(list(losses(job, text, model, options.kind))))


if __name__ == "__main__":
    main()
