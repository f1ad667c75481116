"""Images sampled at computed coordinates, in captured steps: after each step the program's state is
the block's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs
import repops.torch

ops = pytest.importorskip("torchvision").ops

STEPS = 2
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.standard_normal((6, 1, 8, 8), "f4")
LABELS = RANDOM.integers(0, 3, 6)


class Transformer(nn.Module):
    """A spatial transformer: a small network computes how to transform an image, and another one
    classifies the result."""

    def __init__(self, **how):
        super().__init__()
        self.how = how
        self.look = nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(27, 6)
        )
        self.classify = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
        nn.init.normal_(self.look[-1].weight, std=0.1)
        self.look[-1].bias.data.copy_(torch.tensor([1.0, 0.1, 0.2, -0.1, 1.0, -0.3]))

    def forward(self, x):
        theta = self.look(x).view(-1, 2, 3)
        grid = F.affine_grid(theta, (len(x), 1, 7, 6), align_corners=False)
        return self.classify(F.grid_sample(x, grid, align_corners=False, **self.how))


def captured(place, model, loss, *arrays):
    """A job whose step trains the model with this loss on rows of arrays."""
    job = repops.jobs.Job(place / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    given = job.rows(*arrays, batch=2)
    given = given if isinstance(given, tuple) else (given,)
    with job:
        torch.manual_seed(1)
        model = model()
        loss(model, *given)  # gives lazy layers their sizes
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        value = loss(model, *given)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    job.capture(step, model, optimizer)
    return job


HOW = [
    {"padding_mode": "zeros"},
    {"padding_mode": "border"},
    {"mode": "bicubic", "padding_mode": "reflection"},
]


@pytest.mark.parametrize("how", HOW)
def test_a_spatial_transformer_is_captured(how, command, tmp_path):
    job = captured(
        tmp_path,
        lambda: Transformer(**how),
        lambda model, x, y: F.cross_entropy(model(x), y),
        IMAGES,
        LABELS,
    )
    assert len(job.check(STEPS, command)) == STEPS


class Seen(nn.Module):
    """Learned images and volumes, sampled at learned coordinates."""

    IMAGES = [("bilinear", "reflection", True), ("nearest", "border", False)]
    VOLUMES = [("bilinear", "border", True), ("nearest", "zeros", False)]

    def __init__(self):
        super().__init__()
        self.image = nn.Parameter(torch.randn(2, 2, 3, 4))
        self.volume = nn.Parameter(torch.randn(2, 2, 3, 2, 4))
        self.places = nn.Parameter(torch.randn(2, 3, 5, 2))
        self.points = nn.Parameter(torch.randn(2, 2, 3, 1, 3))

    def forward(self, x):
        moved = self.places + x[:, :, :3, :5].movedim(1, -1)
        y = [F.grid_sample(self.image, moved, *how) for how in self.IMAGES]
        z = [F.grid_sample(self.volume, self.points, *how) for how in self.VOLUMES]
        return torch.stack(y).square().mean() + torch.stack(z).square().mean()


def test_other_modes_and_volumes_are_captured(command, tmp_path):
    job = captured(tmp_path, Seen, lambda model, x: model(x), IMAGES)
    assert len(job.check(STEPS, command)) == STEPS


# Resizing 64 elements to 82 takes another element in float64 than in float32. Resizing 2 to 55
# takes another one in torch's decomposition than in its kernel.
ENLARGED = {
    "a line": ((1, 64), {"size": (82,)}, torch.contiguous_format),
    "two elements": ((3, 2), {"size": (55,)}, torch.contiguous_format),
    "rows": ((2, 64, 2), {"size": (82, 55)}, torch.contiguous_format),
    "channels last": ((4, 64, 2), {"size": (82, 55)}, torch.channels_last),
    "a volume": ((1, 2, 64, 2), {"size": (3, 82, 55)}, torch.contiguous_format),
    "by a scale": ((1, 5, 7), {"scale_factor": (2.6, 1.3)}, torch.contiguous_format),
}


class Enlarged(nn.Module):
    """Images are scaled, enlarged, and weighted."""

    def __init__(self, how, order):
        super().__init__()
        self.how, self.order = how, order
        self.scale, self.weight = nn.Parameter(torch.ones(1)), nn.Parameter(torch.randn(500))

    def forward(self, x):
        x = (x * self.scale).contiguous(memory_format=self.order)
        y = F.interpolate(x, **self.how).flatten(1)
        return (y * self.weight[torch.arange(y.shape[1]) % 500]).square().mean()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("what", ENLARGED)
def test_the_nearest_elements_are_those_of_the_block(what, mode, command, tmp_path):
    shape, how, order = ENLARGED[what]
    images = np.random.default_rng(1).standard_normal((6, *shape), "f4")
    model = lambda: Enlarged({**how, "mode": mode}, order)  # noqa: E731
    job = captured(tmp_path, model, lambda model, x: model(x), images)
    assert len(job.check(STEPS, command)) == STEPS


BOXES = RANDOM.uniform(0, 5, (2, 3, 4)).astype("f4")
BOXES[..., 2:] = BOXES[..., :2] + RANDOM.uniform(0.5, 4, (2, 3, 2))


class Detector(nn.Module):
    """Moves given boxes, scores what roi_align reads there, and counts the boxes that nms keeps.
    moved: if false, boxes stay."""

    def __init__(self, ratio=2, moved=True, kept=True):
        super().__init__()
        self.ratio, self.moved, self.kept = ratio, moved, kept
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU())
        self.move, self.score = nn.Linear(4, 4), nn.Linear(4 * 2 * 3, 1)
        nn.init.normal_(self.move.weight, std=0.1)

    def forward(self, x, boxes):
        flat = boxes.reshape(-1, 4)
        if self.moved:
            flat = flat + self.move(flat).tanh()
        image = torch.arange(len(x)).repeat_interleave(boxes.shape[1]).float()
        rois = torch.cat([image[:, None], flat], 1)
        seen = ops.roi_align(self.features(x), rois, (2, 3), 0.9, self.ratio, aligned=True)
        scores = self.score(seen.flatten(1))[:, 0]
        return self.weighed(flat, scores) + flat.square().mean()

    def weighed(self, flat, scores):
        if not self.kept:
            return scores.square().mean()
        if self.kept == "nms":
            return scores[ops.nms(flat, scores, 0.3)].mean()
        mask = repops.torch.functional.nms_mask(flat, scores, 0.3)
        return (scores * mask).sum() / mask.sum()


DETECTORS = {
    "boxes that are computed": {},
    "boxes of data": {"moved": False},
    "boxes of data whose samples are counted": {"moved": False, "ratio": -1, "kept": False},
}


def detector(place, **how):
    return captured(
        place, lambda: Detector(**how), lambda model, *given: model(*given), IMAGES[:2], BOXES
    )


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detectors_head_is_captured(name, command, tmp_path):
    job = detector(tmp_path, **DETECTORS[name])
    assert len(job.check(STEPS, command)) == STEPS


@pytest.mark.parametrize("how", [{"ratio": -1, "kept": False}, {"kept": "nms"}])
def test_what_looks_at_boxes_is_refused_with_what_to_write(how, tmp_path):
    with pytest.raises(repops.jobs.CaptureError) as error:
        detector(tmp_path, **how)
    assert "nms, and roi_align without sampling_ratio, look at boxes; take " in str(error.value)
    assert "repops.torch.functional.nms_mask, and a sampling_ratio" in str(error.value)
