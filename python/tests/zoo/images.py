"""Models of torchvision."""

import torch
import torch.nn.functional as F

from .base import ids, model, pixels


def _classifies(name, make, size=32):
    def build():
        own = make()
        return own, lambda i: F.cross_entropy(own(pixels(i, size)), ids(2, seed=i, low=0, high=5))

    model("torchvision", name)(build)


def _vision(name, size=32, **more):
    def make():
        import torchvision

        return getattr(torchvision.models, name)(num_classes=5, **more)

    _classifies(name, make, size)


for _name, _size in (
    ("mobilenet_v2", 32),
    ("mobilenet_v3_small", 32),
    ("efficientnet_b0", 32),
    ("regnet_y_400mf", 32),
    ("shufflenet_v2_x0_5", 32),
    ("squeezenet1_1", 64),
    ("mnasnet0_5", 32),
    ("maxvit_t", 224),
):
    _vision(_name, _size)


def narrow_convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    widths = [24, 48, 96, 192, None]
    blocks = [
        CNBlockConfig(a, b, n) for a, b, n in zip(widths, widths[1:], (1, 1, 3, 1), strict=False)
    ]
    return ConvNeXt(blocks, stochastic_depth_prob=0.1, num_classes=5)


def narrow_swin(second=False):
    from torchvision.models import swin_transformer as it

    window, more = [7, 7], {}
    if second:
        window = [8, 8]
        more = {"block": it.SwinTransformerBlockV2, "downsample_layer": it.PatchMergingV2}
    return it.SwinTransformer(
        [4, 4],
        24,
        [2, 2, 2, 2],
        [1, 2, 4, 8],
        window,
        stochastic_depth_prob=0.2,
        num_classes=5,
        **more,
    )


# torchvision's functions fix the sizes of these; its classes take smaller ones.
_classifies("convnext_tiny", narrow_convnext)
_classifies("swin_t", narrow_swin)
_classifies("swin_v2_t", lambda: narrow_swin(second=True))


@model("torchvision")
def vit_of_torchvision():
    from torchvision.models import VisionTransformer

    own = VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=5)
    return own, lambda i: F.cross_entropy(own(pixels(i)), ids(2, seed=i, low=0, high=5))


@model("torchvision")
def inception():
    import torchvision

    own = torchvision.models.googlenet(num_classes=5, aux_logits=False, init_weights=False)
    return own, lambda i: F.cross_entropy(own(pixels(i, 64)), ids(2, seed=i, low=0, high=5))


def _segments(name):
    def build():
        import torchvision

        own = getattr(torchvision.models.segmentation, name)(
            weights=None, weights_backbone=None, num_classes=4
        )
        return own, lambda i: F.cross_entropy(
            own(pixels(i, 64))["out"], ids(2, 64, 64, seed=i, low=0, high=4)
        )

    model("torchvision", name)(build)


for _name in ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50"):
    _segments(_name)


def _detects(name, **more):
    def build():
        import torchvision

        own = getattr(torchvision.models.detection, name)(
            weights=None, weights_backbone=None, num_classes=4, **more
        )

        def loss(i):
            boxes = torch.tensor([[4.0, 5.0, 40.0, 50.0], [20.0, 10.0, 60.0, 30.0]])
            target = [{"boxes": boxes, "labels": ids(2, seed=i, low=1, high=4)}] * 2
            if "mask" in name:
                masks = torch.zeros(2, 64, 64, dtype=torch.uint8)
                masks[:, 10:30, 20:40] = 1
                target = [{**t, "masks": masks} for t in target]
            return sum(own(list(pixels(i, 64)), target).values())

        return own, loss

    model("torchvision", name)(build)


_detects("fasterrcnn_mobilenet_v3_large_320_fpn", min_size=64, max_size=64)
_detects("maskrcnn_resnet50_fpn", min_size=64, max_size=64)
_detects("retinanet_resnet50_fpn", min_size=64, max_size=64)
_detects("fcos_resnet50_fpn", min_size=64, max_size=64)
_detects("ssdlite320_mobilenet_v3_large")
