"""A vision transformer learns to read digits of 8 x 8 pixels, as a job that runs without Python.

Usage: vit_digits.py FOLDER

The digits are scikit-learn's. Without scikit-learn, noisy ones are drawn here. See
docs/any-model.md for what to do with FOLDER.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

BATCH, WIDTH, HEADS, LAYERS, STEPS = 8, 32, 4, 2, 100

SEGMENTS = ("abcefg", "cf", "acdeg", "acdfg", "bcdf", "abdfg", "abdefg", "acf", "abcdefg", "abcdfg")
LINES = {  # the strokes of a seven-segment display
    "a": np.s_[0, 2:6], "b": np.s_[0:4, 2], "c": np.s_[0:4, 5], "d": np.s_[3, 2:6],
    "e": np.s_[3:7, 2], "f": np.s_[3:7, 5], "g": np.s_[6, 2:6],
}  # fmt: skip


def digits():
    """Returns images [N, 1, 8, 8] between 0 and 1, and the digits that they show."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        random = np.random.default_rng(1)
        labels = random.integers(0, 10, 500)
        images = 8 * random.random((500, 8, 8))
        for image, label in zip(images, labels):
            for segment in SEGMENTS[label]:
                image[LINES[segment]] = 16
    else:
        images, labels = load_digits(return_X_y=True)
    return images.reshape(-1, 1, 8, 8).astype(np.float32) / 16, labels.astype(np.int64)


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 2, stride=2)  # 16 patches of 2 x 2 pixels
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.randn(1, 17, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, dropout=0.1, activation="gelu", batch_first=True,
            norm_first=True,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


if len(sys.argv) < 2:
    sys.exit(__doc__)
job = repops.jobs.Job(sys.argv[1], seed=7, steps=STEPS, checkpoint_interval=25)
images, labels = job.rows(*digits(), batch=BATCH)
with job:
    torch.manual_seed(1)
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=2e-3, total_steps=STEPS, cycle_momentum=False
    )

    def step():
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss


print("program", job.capture(step, model, optimizer, scheduler))
print("losses of 3 steps, the same in PyTorch and in verde:", job.check(steps=3))
