"""A GAN: one network makes points of a ring, another one tells them from true points, and each has
its own optimizer. It becomes a job that runs without Python.

Usage: gan.py FOLDER

See docs/any-model.md for what to do with FOLDER.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

BATCH, NOISE, WIDTH, STEPS = 32, 4, 32, 200


def ring(count):
    random = np.random.default_rng(1)
    angle = random.uniform(0, 2 * np.pi, count)
    points = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.05 * random.normal(size=(count, 2))
    return points.astype(np.float32)


def network(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2),
        nn.Linear(WIDTH, outputs),
    )  # fmt: skip


if len(sys.argv) < 2:
    sys.exit(__doc__)
job = repops.jobs.Job(sys.argv[1], seed=7, steps=STEPS, checkpoint_interval=50)
true = job.rows(ring(1000), batch=BATCH)
# A step draws no normal numbers itself: it reads its row of a table that is made beforehand.
noise = job.table(np.random.default_rng(2).normal(size=(STEPS, BATCH, NOISE)).astype(np.float32))
with job:
    torch.manual_seed(1)
    maker, judge = network(NOISE, 2), network(2, 2)
    of_maker = torch.optim.Adam(maker.parameters(), lr=2e-3, betas=(0.5, 0.99), fused=True)
    of_judge = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.99), fused=True)

    def error(points, kind):
        """The judge's loss: it should say 0 for made points and 1 for true ones."""
        return F.cross_entropy(judge(points), torch.full((BATCH,), kind))

    def step():
        made = maker(noise)
        loss = error(true, 1) + error(made.detach(), 0)
        loss.backward()
        of_judge.step()
        of_judge.zero_grad()
        error(made, 1).backward()
        of_maker.step()
        of_maker.zero_grad()
        of_judge.zero_grad()  # the maker's loss has given the judge gradients too
        return loss


print("program", job.capture(step, {"maker": maker, "judge": judge}, [of_maker, of_judge]))
print("losses of 3 steps, the same in PyTorch and in verde:", job.check(steps=3))
