"""Turns what a model says about pictures into a job that runs without Python: a class, the
probability of each class, and an embedding.

Usage: answers.py FOLDER

The model has random weights; load your own in their place. See docs/any-model.md for what to do
with FOLDER.
"""

import sys

import numpy as np
import torch
from torch import nn

import repops.jobs
import repops.torch


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(64, 10)

    def forward(self, pictures):
        embedding = self.body(pictures)
        likely = self.head(embedding).softmax(1)
        return {"class": likely.argmax(1), "likely": likely, "embedding": embedding}


if len(sys.argv) < 2:
    sys.exit(__doc__)
pictures = np.random.default_rng(1).random((50, 1, 8, 8), "f4")
with repops.torch.reproducible():
    torch.manual_seed(1)
    model = Model()
answers = repops.jobs.Answers(model, model, pictures, folder=sys.argv[1], batch=16)
answers.check(batches=2)
print("collection", answers.hash)
print("batches", answers.steps, "of which 2 are the same in PyTorch and in verde")
