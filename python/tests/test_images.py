"""Resizing, padding, pooling and boxes, against torch in float64."""

import pytest
import torch
import torch.nn.functional as F
from compare import compare

from repops.torch import reproducible


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


RESIZES = [
    {"mode": "bilinear", "size": (7, 19)},
    {"mode": "bilinear", "size": (17, 5), "align_corners": True},
    {"mode": "bilinear", "scale_factor": 2.3},
    {"mode": "bilinear", "size": (4, 5), "antialias": True},
    {"mode": "bicubic", "size": (17, 5)},
    {"mode": "bicubic", "size": (17, 15), "align_corners": True},
    {"mode": "bicubic", "size": (4, 15), "antialias": True},
    {"mode": "nearest", "size": (7, 19)},
    {"mode": "nearest-exact", "size": (7, 5)},
    {"mode": "area", "size": (4, 5)},
]


@pytest.mark.parametrize("options", RESIZES)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_images_are_resized(options, order):
    compare(lambda x: F.interpolate(x, **options), torch.randn(2, 3, 9, 11).to(memory_format=order))


OTHERS = [
    (lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"), (2, 3, 9)),
    (lambda x: F.interpolate(x, size=(5, 7, 4), mode="trilinear"), (2, 3, 4, 5, 6)),
    (lambda x: F.interpolate(x, size=(5, 7, 4)), (2, 3, 4, 5, 6)),
    (lambda x: F.pad(x, (2, 3, 1, 4), mode="reflect"), (2, 3, 5, 6)),
    (lambda x: F.pad(x, (2, 3, 1, 4), mode="replicate"), (2, 3, 5, 6)),
    (lambda x: F.pad(x, (2, 3), mode="reflect"), (2, 3, 5)),
    (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (2, 3, 8, 10)),
    (lambda x: F.max_pool2d(x, 2, 2, 1, ceil_mode=True), (2, 3, 7, 10)),
    (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 7)),
    (lambda x: F.max_pool2d(x, 2), (3, 8, 10)),
    (lambda x: F.max_pool1d(x, 3, 2), (2, 3, 10)),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 10)),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), (2, 3, 8, 10)),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), (2, 3, 8, 10)),
    (lambda x: F.avg_pool2d(x, 3, 2), (3, 9, 10)),
    (lambda x: F.avg_pool1d(x, 3, 2), (2, 3, 10)),
    (lambda x: F.adaptive_avg_pool2d(x, (3, 7)), (2, 3, 8, 10)),
    (lambda x: F.adaptive_avg_pool2d(x, (3, 7)), (3, 8, 10)),
    (lambda x: F.adaptive_avg_pool2d(x, 7), (2, 3, 1, 1)),
    (lambda x: F.adaptive_avg_pool1d(x, 3), (2, 3, 10)),
    (lambda x: F.adaptive_max_pool2d(x, (3, 7)), (2, 3, 8, 10)),
    (lambda x: F.adaptive_max_pool2d(x, (3, 7)), (3, 8, 10)),
    (lambda x: F.adaptive_max_pool1d(x, 4), (2, 3, 10)),
    (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (2, 3, 8, 10)),
    (lambda x: F.unfold(x, (3, 2), 2, 1, (2, 1)), (2, 3, 9, 11)),
    (lambda x: F.fold(x, (9, 11), (3, 2), 2, 1, (2, 1)), (2, 18, 44)),
    (lambda x: F.channel_shuffle(x, 3), (2, 6, 4, 5)),
]


@pytest.mark.parametrize("function, shape", OTHERS)
def test_other_sizes_padding_and_pooling(function, shape):
    compare(function, torch.randn(shape))


def test_bytes_are_resized_as_numbers_and_rounded():
    x = torch.randint(0, 256, (1, 3, 20, 20), dtype=torch.uint8)
    with reproducible():
        y = F.interpolate(x, size=(13, 31), mode="bilinear", antialias=True)
    exact = F.interpolate(x.double(), size=(13, 31), mode="bilinear", antialias=True)
    assert y.dtype is torch.uint8
    assert (y.double() - exact).abs().max() <= 0.5 + 1e-4


BOXES = torch.tensor(
    [[0, 1.3, 2.2, 9.1, 7.5], [1, -2, 0, 5, 5], [0, 3, 3, 3.2, 3.1], [1, 8, 8, 14, 14]]
)


@pytest.mark.parametrize("ratio", [2, -1])
@pytest.mark.parametrize("aligned", [True, False])
def test_pixels_in_boxes(ratio, aligned):
    ops = pytest.importorskip("torchvision").ops
    compare(
        lambda x: ops.roi_align(x, BOXES.to(x.dtype), (3, 4), 0.8, ratio, aligned),
        torch.randn(2, 3, 11, 10),
    )


def test_boxes_that_overlap_are_left_out():
    ops = pytest.importorskip("torchvision").ops
    boxes, scores = torch.rand(200, 4), torch.rand(200)
    boxes[:, 2:] += boxes[:, :2]
    with reproducible():
        kept = ops.nms(boxes, scores, 0.4)
        assert ops.nms(boxes[:0], scores[:0], 0.4).numel() == 0
    assert kept.tolist() == ops.nms(boxes, scores, 0.4).tolist()
