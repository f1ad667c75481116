"""Small jobs of answers that tests capture. `python small_answers.py FOLDER` writes two of them
there, for tests/captured."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import repops.jobs
import repops.torch

ROWS, BATCH = 21, 4


def images():
    return np.random.default_rng(0).integers(0, 256, (ROWS, 3, 8, 8), "u1")


def classifier():
    """An image classifier; its answers are a class for each image, and probabilities."""
    with repops.torch.reproducible():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * 36, 5),
            nn.Dropout(0.5),
        )

    def says(x):
        likely = model(x.float() / 255).softmax(1)
        return {"class": likely.argmax(1), "likely": likely}

    return model, says


def classes(folder, **how):
    model, says = classifier()
    return repops.jobs.Answers(says, model, images(), folder=folder, **{"batch": BATCH, **how})


def enlarged(folder, side=2100):
    """A single image, which is so large that its item record comes in several pieces."""
    with repops.torch.reproducible():
        torch.manual_seed(0)
        model = nn.Conv2d(1, 1, 3, padding=1)

    def says(x):
        return nn.functional.interpolate(model(x), size=(side, side))

    x = np.random.default_rng(0).standard_normal((1, 1, 8, 8), "f4")
    return repops.jobs.Answers(says, model, x, folder=folder, batch=1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(classes(Path(sys.argv[1]) / "answers").hash)
    print(enlarged(Path(sys.argv[1]) / "enlarged").hash)
