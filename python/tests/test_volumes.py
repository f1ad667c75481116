"""Convolutions and pooling of volumes: close to torch in float64, and the same bits everywhere."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import volumes
from compare import close, compare
from torch import nn

from repops.torch import LeftoverError, reproducible

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", volumes.CASES)
def test_what_torch_has_in_float64(name):
    function, inputs = volumes.made(name)
    compare(function, *inputs)


def printed(capability, own):
    settings = {"ATEN_CPU_CAPABILITY": capability, "REPOPS_CPU": own}
    return subprocess.run(
        [sys.executable, HERE / "volumes.py", "1", "2"],
        env={**os.environ, **settings},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_one_result_in_all_settings():
    runs = [r for s in (("default", "scalar"), ("avx2", "avx2")) for r in printed(*s).split(".\n")]
    runs = [run.splitlines() for run in runs if run]
    assert len(runs) == 4 and len(runs[0]) == len(volumes.CASES)
    assert all(run == runs[0] for run in runs)


# ---- the order of terms that docs/python.md states ----


def test_a_convolution_is_that_of_images_with_the_taps_of_the_depth_as_channels():
    torch.manual_seed(0)
    x, w, dy = torch.randn(2, 4, 5, 6, 7), torch.randn(6, 2, 3, 3, 3), torch.randn(2, 6, 3, 6, 7)
    how = {"padding": 1, "groups": 2}
    grouped = x.reshape(2, 2, 2, 5, 6, 7)
    padded = torch.zeros(2, 2, 2, 7, 6, 7)
    padded[:, :, :, 1:6] = grouped
    taps = torch.stack([padded[:, :, :, t : t + 5 : 2] for t in range(3)], 2)  # n g t c d h w
    images = taps.permute(0, 4, 1, 2, 3, 5, 6).reshape(6, 12, 6, 7)
    flat = w.transpose(1, 2).reshape(6, 6, 3, 3)
    with reproducible():
        own = [t.clone().requires_grad_() for t in (x, w)]
        y = F.conv3d(*own, stride=(2, 1, 1), **how)
        y.backward(dy)
        of_images = [t.clone().requires_grad_() for t in (images, flat)]
        z = F.conv2d(*of_images, **how)
        z.backward(dy.transpose(1, 2).reshape(6, 6, 6, 7))
        assert torch.equal(y, z.reshape(2, 3, 6, 6, 7).transpose(1, 2))
        dw = of_images[1].grad.reshape(6, 3, 2, 3, 3).transpose(1, 2)
        assert torch.equal(own[1].grad, dw)
        parts = of_images[0].grad.reshape(2, 3, 2, 3, 2, 6, 7)  # n d g t c h w
        dx = torch.zeros(2, 7, 2, 2, 6, 7)
        for t in range(3):
            dx[:, t : t + 5 : 2] += parts[:, :, :, t]
        dx = dx[:, 1:6].permute(0, 2, 3, 1, 4, 5).reshape(x.shape)
        assert torch.equal(own[0].grad, dx)


# ---- places of the largest ----


@pytest.mark.parametrize("name", [n for n in volumes.CASES if n.startswith("fractional")])
def test_windows_at_random_places_are_torchs(name):
    function, (x,) = volumes.made(name)
    with reproducible():
        y, places = function(x, return_indices=True)
    wanted, wanted_places = function(x, return_indices=True)
    assert torch.equal(y, wanted) and torch.equal(places, wanted_places)


def test_random_windows_are_drawn_by_the_block():
    x = torch.arange(2 * 3 * 64.0).reshape(2, 3, 8, 8)
    found = []
    for seed in (1, 1, 2):
        with reproducible():
            torch.manual_seed(seed)
            found.append(F.fractional_max_pool2d(x, 2, 5))
    assert torch.equal(*found[:2]) and not torch.equal(*found[1:])


@pytest.mark.parametrize("ceil", [False, True])
def test_places_of_the_largest_are_torchs(ceil):
    torch.manual_seed(0)
    x = torch.randint(0, 4, (2, 3, 7, 8, 9)).float()  # many elements are equal
    x[0, 0, 0] = -float("inf")
    for k, s, p in itertools.product((2, 3), (1, 2, 3), (0, 1)):
        expected = F.max_pool3d(x, k, s, p, 1, ceil, True)
        with reproducible():
            own = F.max_pool3d(x, k, s, p, 1, ceil, True)
        assert all(torch.equal(a, b) for a, b in zip(own, expected))
    expected = F.adaptive_max_pool3d(x, (2, 3, 9), True)
    with reproducible():
        own = F.adaptive_max_pool3d(x, (2, 3, 9), True)
    assert all(torch.equal(a, b) for a, b in zip(own, expected))


def test_a_nan_is_the_largest():
    x = torch.zeros(1, 1, 4, 4, 4)
    x[0, 0, 1, 2, 3] = float("nan")
    with reproducible():
        y, places = F.max_pool3d(x, 2, return_indices=True)
    assert y.isnan().sum() == 1 and places[y.isnan()].tolist() == [1 * 16 + 2 * 4 + 3]


@pytest.mark.parametrize("ceil", [False, True])
def test_places_in_dilated_windows_are_torchs(ceil):
    torch.manual_seed(0)
    x = torch.randint(0, 4, (2, 3, 7, 8, 9)).float()
    x[0, 0] = -float("inf")  # no less than the padding
    for k, s, p, d in itertools.product((2, 3), (1, 3), (0, 1), (2, 3)):
        for function, given in ((F.max_pool3d, x), (F.max_pool2d, x[:, 0])):
            expected = function(given, k, s, p, d, ceil, True)
            with reproducible():
                own = function(given, k, s, p, d, ceil, True)
            assert all(torch.equal(a, b) for a, b in zip(own, expected))


def test_windows_without_elements_are_refused():
    with reproducible(), pytest.raises(LeftoverError, match="no element"):
        F.max_pool3d(torch.ones(1, 1, 2, 4, 4), 2, padding=1, dilation=3)


# ---- second derivatives, and models from outside ----


def test_second_derivatives():
    def penalty(x, w):
        y = F.conv3d(x, w, stride=2, padding=1)
        (dx,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        return (dx * dx).sum()

    torch.manual_seed(0)
    compare(penalty, torch.randn(1, 2, 4, 4, 4), torch.randn(3, 2, 3, 3, 3), absolute=2e-3)


def video(kind):
    resnet = pytest.importorskip("torchvision").models.video.resnet
    flat = [resnet.Conv3DNoTemporal] * 3 if kind == "mc3" else [resnet.Conv3DSimple] * 3
    makers = [resnet.Conv3DSimple, *flat]
    return resnet.VideoResNet(resnet.BasicBlock, makers, [1] * 4, resnet.BasicStem, num_classes=5)


def googlenet_start():
    """The first layers of GoogLeNet with few channels."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
        nn.LocalResponseNorm(5), nn.Conv2d(8, 8, 1), nn.ReLU(), nn.Conv2d(8, 12, 3, padding=1),
        nn.ReLU(), nn.LocalResponseNorm(5), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5),
    )  # fmt: skip


def unet():
    """A small V-Net."""
    return nn.Sequential(
        nn.Conv3d(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool3d(2),
        nn.Conv3d(4, 8, 3, padding=1, groups=2), nn.ReLU(), nn.ConvTranspose3d(8, 4, 2, 2),
        nn.Conv3d(4, 2, 1), nn.AvgPool3d(2), nn.Flatten(), nn.LazyLinear(5),
    )  # fmt: skip


MODELS = {
    "r3d": (lambda: video("r3d"), (2, 3, 4, 16, 16)),
    "mc3": (lambda: video("mc3"), (2, 3, 4, 16, 16)),
    "googlenet": (googlenet_start, (2, 3, 32, 32)),
    "unet": (unet, (2, 3, 4, 8, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    """Loss and gradients of a training step, against float64."""
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model, x, y = make(), torch.randn(shape), torch.tensor([1, 3])
    model(x)
    start = {k: v.clone() for k, v in model.state_dict().items()}

    def gradients(dtype):
        model.load_state_dict(start)
        model.to(dtype).zero_grad()
        loss = F.cross_entropy(model(x.to(dtype)), y)
        loss.backward()
        return [loss.detach().double(), *[p.grad.double() for p in model.parameters()]]

    exact, plain = gradients(torch.float64), gradients(torch.float32)
    with reproducible():
        own = gradients(torch.float32)
    close(own[0], exact[0], 1e-5)
    for a, b, c in zip(own, plain, exact):  # batch norms of few elements magnify rounding
        most = c.abs().max()
        assert (a - c).abs().max() <= 4 * (b - c).abs().max() + 1e-5 * most
