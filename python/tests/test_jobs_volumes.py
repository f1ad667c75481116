"""Captured convolutions and pooling of volumes: after each step the program's state is the
block's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from capturing import trained_by
from torch import nn

import repops.jobs

STEPS = 2
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.standard_normal((8, 4 * 5 * 6 * 5), "f4")


def volumes(*layers):
    """A step with these layers, on volumes of 4 channels."""
    return lambda: nn.Sequential(nn.Unflatten(1, (4, 5, 6, 5)), *layers, nn.Flatten())


class Unpooled(nn.Module):
    """Writes maxima of padded windows back to their places."""

    def forward(self, x):
        y, places = F.max_pool3d(x, 3, 2, 1, return_indices=True)
        return F.max_unpool3d(y * 2, places, 3, 2, 1, x.shape[2:])


MODELS = {
    "conv3d": volumes(nn.Conv3d(4, 3, 3, padding=1)),
    "strided": volumes(nn.Conv3d(4, 3, (3, 2, 3), (2, 2, 3), (1, 0, 1))),
    "grouped and dilated": volumes(
        nn.Conv3d(4, 6, 2, groups=2, dilation=(2, 1, 2)), nn.ReLU(), nn.Conv3d(6, 2, 1)
    ),
    "transposed": volumes(nn.ConvTranspose3d(4, 6, 3, (2, 1, 2), 1, (1, 0, 1), groups=2)),
    "channels last": volumes(
        nn.Conv3d(4, 3, 3).to(memory_format=torch.channels_last_3d), nn.BatchNorm3d(3)
    ),
    "max_pool3d": volumes(nn.Conv3d(4, 3, 1), nn.MaxPool3d(2)),
    "max_pool3d, padded": volumes(
        nn.Conv3d(4, 3, 1), nn.MaxPool3d((3, 2, 3), 2, 1, ceil_mode=True)
    ),
    "max_pool3d, dilated": volumes(nn.Conv3d(4, 3, 1), nn.MaxPool3d(2, 1, 1, 2)),
    "max_unpool3d": volumes(nn.Conv3d(4, 3, 1), Unpooled()),
    "avg_pool3d": volumes(nn.Conv3d(4, 3, 1), nn.AvgPool3d(2)),
    "avg_pool3d, padded": volumes(
        nn.Conv3d(4, 3, 1), nn.AvgPool3d(3, 2, 1, ceil_mode=True, count_include_pad=False)
    ),
    "adaptive pools": volumes(
        nn.Conv3d(4, 3, 1), nn.AdaptiveMaxPool3d((4, 3, 5)), nn.AdaptiveAvgPool3d((3, 3, 2))
    ),
    "fractional_max_pool3d": volumes(nn.Conv3d(4, 3, 1), nn.FractionalMaxPool3d(2, (2, 4, 3))),
    "fractional_max_pool2d": lambda: nn.Sequential(
        nn.Unflatten(1, (4, 10, 15)),
        nn.Conv2d(4, 6, 3),
        nn.FractionalMaxPool2d((3, 2), output_ratio=0.6),
        nn.Flatten(),
    ),
    "local_response_norm": lambda: nn.Sequential(
        nn.Unflatten(1, (4, 10, 15)),
        nn.Conv2d(4, 6, 3),
        nn.LocalResponseNorm(5),
        nn.LocalResponseNorm(3, beta=0.5),  # power 1/2 becomes a root
        nn.Flatten(),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name, command, tmp_path):
    job = repops.jobs.Job(tmp_path / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x = job.rows(ROWS, batch=2)
    with job:
        torch.manual_seed(1)
        model = MODELS[name]()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    trained_by(lambda: (model(x) - 1).square().mean(), job, model, optimizer)
