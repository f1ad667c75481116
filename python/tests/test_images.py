"""Resizing, padding, pooling, grids and boxes, against torch in float64."""

import itertools
import math
import random
import sys

import pytest
import torch
import torch.nn.functional as F
from compare import compare, same_in_settings

import repops.torch
from repops.torch import _nearest, reproducible
from repops.torch.functional import nms_mask


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


# When 64 elements are resized to 82, output 41 takes element 31 in float32, and 32 in float64.
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [(64,), (64, 64), (3, 64, 3)])
def test_the_gradient_goes_to_the_element_that_was_taken(size, mode):
    x = torch.arange(float(math.prod(size))).reshape(1, 1, *size).requires_grad_()
    with reproducible():
        y = F.interpolate(x, [82 if n == 64 else n for n in size], mode=mode)
        y.sum().backward()
    assert torch.equal(x.grad.reshape(-1), torch.bincount(y.detach().reshape(-1).long()).float())


def _sizes(dims, draw):
    """Draws sizes of an image and of its result, and scales."""
    size = [draw.randint(1, 90 if dims < 3 else 20) for _ in range(dims)]
    if draw.random() < 0.6:
        return size, [draw.randint(1, 150 if dims < 3 else 40) for _ in size], [None] * dims
    scales = [draw.uniform(0.3, 2.7) for _ in size]
    return size, [max(1, int(n * s)) for n, s in zip(size, scales)], scales


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.uint8])
@pytest.mark.parametrize("name", _nearest.KERNELS)
def test_places_of_nearest_elements_are_those_of_the_kernel(name, dtype):
    kernel, dims, draw = _nearest.KERNELS[name], int(name[-2]), random.Random(name)
    for _ in range(25):
        size, out, scales = _sizes(dims, draw)
        channels, last = draw.choice([1, 2, 3, 4, 5, 8]), dims > 1 and draw.random() < 0.5
        image = torch.randint(0, 256, (2, channels, *size)).to(dtype)
        if last:
            image = image.contiguous(memory_format=_nearest._LAST[dims])
        own = image.reshape(2, channels, -1)[:, :, _nearest.places(kernel, image, out, scales)]
        wanted = kernel(image, out, *scales)
        assert torch.equal(own.reshape(wanted.shape), wanted), (size, out, scales, channels, last)


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
    (lambda x: F.max_pool2d(x, (2, 3), (2, 1), 1, (3, 2)), (2, 3, 8, 10)),
    (lambda x: F.max_pool1d(x, 3, 2, 1, 2, True), (2, 3, 10)),
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
    (lambda x: F.conv_transpose2d(x, x[:, :2, :2, :3], None, 1, 1, 2, 1, 3), (3, 3, 4, 5)),
    (lambda x: F.conv_transpose1d(x, x[:, :2, :2], None, 2, 1, 3, 1, 4), (3, 3, 5)),
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


PADDINGS = ["zeros", "border", "reflection"]
MODES = ["bilinear", "nearest", "bicubic"]
SAMPLED = [*itertools.product([2, 3], MODES, PADDINGS, [True, False])]


@pytest.mark.parametrize("dims, mode, padding, align", SAMPLED)
def test_images_are_seen_at_places_of_a_grid(dims, mode, padding, align):
    """Quarters name elements, edges and points between and outside, each of them exactly."""
    size = (4, 5, 6)[3 - dims :]
    if dims == 3 and mode == "bicubic":
        pytest.importorskip("torch", "2.15", reason="older ones have no cubics of volumes")
    exact = torch.randint(-12, 13, (2, *(7, 6, 3)[:dims], dims)) / 4
    anywhere = 1.5 * torch.randn(2, *(3, 6, 5)[:dims], dims)
    for grid in [exact] if mode == "nearest" else [exact, anywhere]:
        x = torch.randn(2, 3, *size)
        bound = 1e-4 if mode == "bicubic" else 2e-5  # sums of 16 or 64 products
        compare(lambda x, g: F.grid_sample(x, g, mode, padding, align), x, grid, absolute=bound)


def test_no_channels_are_seen_and_images_of_one_element():
    compare(lambda x, g: F.grid_sample(x, g, "bilinear", "reflection", True), *_one(1))
    with reproducible():
        x, grid = (t.requires_grad_() for t in _one(0))
        y = F.grid_sample(x, grid, align_corners=True)
        y.sum().backward()
    assert y.shape == (2, 0, 4, 5) and not grid.grad.any()


def _one(channels):
    return torch.randn(2, channels, 1, 3), torch.randn(2, 4, 5, 2)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize(
    "mode, padding, first, infinite",
    [
        ("bilinear", "zeros", NAN, (NAN, NAN)),
        ("nearest", "zeros", 0.0, (0.0, 0.0)),
        ("bilinear", "border", 1.0, (1.0, 4.0)),
        ("nearest", "border", 1.0, (1.0, 4.0)),
        ("bilinear", "reflection", 1.0, (1.0, 1.0)),
        ("nearest", "reflection", 1.0, (1.0, 1.0)),
    ],
)
def test_what_is_no_place_reads_what_is_documented(dims, mode, padding, first, infinite):
    """PyTorch reads out of bounds for some of these."""
    x = torch.arange(1.0, 5.0).expand(1, 1, *[1] * (dims - 1), 4).clone().requires_grad_()
    grid = torch.zeros(1, *[1] * (dims - 1), 5, dims)
    grid[..., 0] = torch.tensor([NAN, -INF, INF, -1e30, 1e30])
    grid.requires_grad_()
    with reproducible():
        y = F.grid_sample(x, grid, mode, padding, align_corners=True)
        y.nansum().backward()
    expected = torch.tensor([first, *infinite])
    assert torch.equal(y.flatten()[:3].nan_to_num(-9.0), expected.nan_to_num(-9.0))
    far = {"zeros": [0.0, 0.0], "border": [1.0, 4.0]}.get(padding)
    assert y.isfinite().flatten()[3:].all() and far in (None, y.flatten()[3:].tolist())


def test_a_cubic_of_no_place_is_no_number():
    x, grid = (
        torch.ones(1, 1, 4, 4),
        torch.tensor([NAN, INF]).reshape(1, 1, 2, 1).expand(-1, -1, -1, 2),
    )
    with reproducible():
        for padding in PADDINGS:
            assert F.grid_sample(x, grid, "bicubic", padding, False).isnan().all()


@pytest.mark.parametrize("size", [(2, 3, 3, 4), (2, 3, 5, 1), (2, 1, 2, 3, 4)])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.filterwarnings("ignore:Since version")
def test_grids_of_affine_maps(size, align):
    dims = len(size) - 2
    compare(lambda t: F.affine_grid(t, size, align_corners=align), torch.randn(2, dims, dims + 1))


def test_wrong_grids_have_torchs_errors():
    def error(call):
        with pytest.raises(Exception) as raised:
            call()
        return type(raised.value), str(raised.value)

    x, grid, theta = torch.randn(2, 3, 4, 5), torch.randn(2, 6, 7, 2), torch.randn(2, 2, 3)
    for call in (
        lambda: F.grid_sample(x, grid[:1], align_corners=True),
        lambda: F.grid_sample(x, grid[..., :1], align_corners=True),
        lambda: F.grid_sample(x[..., :0], grid, align_corners=True),
        lambda: F.grid_sample(x[0], grid[0], align_corners=True),
        lambda: torch.ops.aten.affine_grid_generator(theta[:, :, :2], (2, 3, 4, 5), True),
        lambda: torch.ops.aten.grid_sampler_2d(x, grid[..., :1], 0, 0, True),
    ):
        plain = error(call)
        with reproducible():
            assert error(call) == plain


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


def _boxes(n, sizes=torch.rand):
    """Boxes with sizes between 0 and 1, and their scores."""
    boxes = sizes(n, 4)
    boxes[:, 2:] += boxes[:, :2]
    return boxes, torch.rand(n)


def _whole_sizes(*size):
    return (4 * torch.rand(size)).round()


def _some_nan(boxes, scores):
    boxes[::7, 0], boxes[3], boxes[5], boxes[9, 3] = NAN, 0.0, 0.0, INF
    return boxes, scores


KEPT = {
    "any": lambda: _boxes(200),
    "equal overlaps": lambda: _boxes(100, _whole_sizes),
    "equal scores": lambda: (_boxes(100)[0], (4 * torch.rand(100)).round()),
    "no numbers": lambda: _some_nan(*_boxes(100)),
    "scores that are no numbers": lambda: (_boxes(30)[0], torch.rand(30).sqrt().sub(0.5).sqrt()),
    "one": lambda: _boxes(1),
    "none": lambda: _boxes(0),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("threshold", [0.4, 1 / 3, 0.5])
def test_boxes_that_overlap_are_left_out(name, threshold):
    """Whole sizes give overlaps such as 2 / 5, 1 / 3 and 1 / 2, rounded to float32."""
    ops = pytest.importorskip("torchvision").ops
    boxes, scores = KEPT[name]()
    with reproducible():
        kept = ops.nms(boxes, scores, threshold)
    mask = torch.zeros(len(boxes), dtype=torch.bool)
    mask[kept] = True
    assert torch.equal(nms_mask(boxes, scores, threshold), mask)
    if name != "no numbers":
        assert kept.tolist() == ops.nms(boxes, scores, threshold).tolist()


@pytest.mark.parametrize(
    "boxes, scores, words",
    [
        (
            torch.rand(5, 3),
            torch.rand(5),
            r"boxes are \[5, 3\] and scores \[5\]; expected \[n, 4\]",
        ),
        (torch.rand(5, 4), torch.rand(4), "expected"),
        (
            torch.rand(5, 4).double(),
            torch.rand(5),
            "boxes is torch.float64; expected torch.float32",
        ),
        (torch.rand(5, 4), [0.5] * 5, "scores is list; expected a tensor"),
    ],
)
def test_wrong_boxes_are_refused(boxes, scores, words):
    with pytest.raises(repops.Error, match=words):
        nms_mask(boxes, scores, 0.5)


def hashed():
    """Hashes of images sampled by grids and boxes, so large that threads are used, and of
    gradients."""
    torch.manual_seed(0)
    state = {}
    with reproducible():
        for mode, padding in (("bilinear", "zeros"), ("bicubic", "reflection")):
            x = torch.randn(2, 16, 32, 33, requires_grad=True)
            theta = torch.randn(2, 2, 3, requires_grad=True)
            grid = F.affine_grid(theta, (2, 16, 40, 41), align_corners=False)
            y = F.grid_sample(x, grid, mode, padding, align_corners=False)
            y.square().mean().backward()
            state |= {f"{mode}.y": y.detach(), f"{mode}.x": x.grad, f"{mode}.theta": theta.grad}
        x = torch.randn(1, 4, 6, 7, 8, requires_grad=True)
        y = F.grid_sample(x, torch.randn(1, 9, 10, 11, 3), padding_mode="border")
        y.square().mean().backward()
        state |= {"volume.y": y.detach(), "volume.x": x.grad}
    return repops.torch.hash(state)


@pytest.mark.filterwarnings("ignore:Default grid_sample")
def test_bits_depend_on_no_instruction_set_nor_on_threads():
    same_in_settings(sys.modules[__name__])
