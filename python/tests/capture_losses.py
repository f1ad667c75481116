"""10 steps of some models of the zoo as jobs, beside plain PyTorch with the same weights and data.

Usage: capture_losses.py RESULTS [NAME...]    VERDE says which command

The models draw nothing. Losses of `verde run` and PyTorch are within 1e-3. Prints a line for
each model, and writes RESULTS/NAME.json; models with such a file are not run again."""

import json
import sys
import tempfile
from pathlib import Path

import torch
from capture_zoo import built, capture, ran, stepping

import repops.torch

STEPS, WITHIN = 10, 1e-3
NAMES = ["gru", "llama_hf", "qwen3", "clip", "vit", "gnn_index_add", "dqn", "chosen_convnext_large"]


def of_verde(name, place):
    job, tables, _ = capture(name, place / "job", STEPS)
    tables.close()
    operators = {n.operator.name for n in job._captured.program.step.nodes}
    assert "dropout" not in operators, f"{name} draws at random"
    ran(job.folder, place / "run")
    lines = (place / "run/losses.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def of_torch(name):
    """The losses of plain PyTorch, from the weights that the model has in the block."""
    with repops.torch.reproducible():
        weights = {k: v.clone() for k, v in built(name)[0].state_dict().items()}
    own, loss = built(name)
    own.load_state_dict(weights)
    at = [-1]
    _, step = stepping(own, lambda _: loss(at[0]), lambda: at.append(at.pop() + 1))
    return [float(step()) for _ in range(STEPS)]


def beside(name):
    with tempfile.TemporaryDirectory(prefix="zoo.") as place:
        ours = of_verde(name, Path(place))
    plain = of_torch(name)
    return {"verde": ours, "torch": plain, "apart": max(abs(a - b) for a, b in zip(ours, plain))}


def main():
    results, *names = sys.argv[1:]
    Path(results).mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in names or NAMES:
        file = Path(results) / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(beside(name)) + "\n")
        found = json.loads(file.read_text())
        ours, plain = found["verde"], found["torch"]
        near = len(ours) == len(plain) == STEPS and found["apart"] <= WITHIN
        wrong += not near
        word = "near" if near else "FAR"
        print(name, word, f"{found['apart']:.1e}, {plain[0]:.4f} to {plain[-1]:.4f}", flush=True)
    return wrong > 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
