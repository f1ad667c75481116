"""Volumes, constants of float64, least squares and nested tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from .base import PACKAGES, Made, empty, folder, hollow, images, importing, program, script

VIT = "lucidrains/vit-pytorch"


def of_vit(name: str) -> Any:
    hollow("vit_pytorch", folder(VIT) / "vit_pytorch")
    return importing(VIT, "vit_pytorch." + name)


@program(VIT, "FFT")
def simple_vit_with_fft() -> Made:
    sizes = dict(image_size=32, patch_size=8, freq_patch_size=8, num_classes=10, dim=16)
    model = of_vit("simple_vit_with_fft").SimpleViT(
        **sizes, depth=1, heads=2, mlp_dim=16, dim_head=8
    )
    return images(model)


# ---- volumes ----


@program(VIT, "Conv3d, MaxPool3d")
def cct_3d() -> Made:
    model = of_vit("cct_3d").CCT(
        img_size=32, num_frames=8, embedding_dim=16, n_conv_layers=2, frame_kernel_size=3,
        kernel_size=3, stride=2, padding=1, pooling_kernel_size=3, pooling_stride=2,
        pooling_padding=1, num_layers=1, num_heads=2, mlp_ratio=1.0, num_classes=10,
        positional_embedding="learnable",
    )  # fmt: skip
    return images(model, 2, 3, 8, 32, 32)


@program("wolny/pytorch-3dunet", "Conv3d, ConvTranspose3d", "UNet3D", "ResidualUNet3D")
def unet3d(name: str) -> Made:
    source = "wolny/pytorch-3dunet"
    hollow("pytorch3dunet", folder(source) / "pytorch3dunet")
    empty("skimage", "skimage.color")
    model = getattr(importing(source, "pytorch3dunet.unet3d.model"), name)
    model = model(1, 2, f_maps=4, num_groups=2, num_levels=3, is_segmentation=True)
    x, y = torch.randn(1, 1, 8, 16, 16), torch.randint(2, (1, 8, 16, 16))
    return model, lambda: F.cross_entropy(model(x), y)


@program(PACKAGES, "Conv3d", "torchvision: r3d_18", "torchvision: mc3_18")
def videos(name: str) -> Made:
    from torchvision.models import video

    if name.endswith("r3d_18"):
        return images(video.r3d_18(num_classes=10), 2, 3, 4, 32, 32)
    return images(video.mc3_18(num_classes=10), 2, 3, 4, 32, 32)


DDPM = "lucidrains/denoising-diffusion-pytorch"


def of_diffusion(name: str) -> Any:
    hollow("denoising_diffusion_pytorch", folder(DDPM) / "denoising_diffusion_pytorch")
    return importing(DDPM, "denoising_diffusion_pytorch." + name)


# ---- float64 ----


@program(DDPM, "functions of float64", "DDPM, linear", "DDPM, cosine", "DDPM, sigmoid")
def ddpm(name: str) -> Made:
    module = of_diffusion("denoising_diffusion_pytorch")
    net = module.Unet(dim=8, dim_mults=(1, 2), flash_attn=False)
    own = module.GaussianDiffusion(
        net, image_size=16, timesteps=50, beta_schedule=name.split()[-1], sampling_timesteps=5
    )
    x = torch.rand(2, 3, 16, 16)
    return own, lambda: own(x)


@program(DDPM, "functions of float64", "DDPM, learned variance")
def learned_variance(name: str) -> Made:
    net = of_diffusion("denoising_diffusion_pytorch").Unet(dim=8, dim_mults=(1, 2), out_dim=6)
    module = of_diffusion("learned_gaussian_diffusion").LearnedGaussianDiffusion
    own = module(net, image_size=16, timesteps=50)
    x = torch.rand(2, 3, 16, 16)
    return own, lambda: own(x)


@program(
    "rtqichen/torchdiffeq", "float64", "torchdiffeq: ode_demo", "torchdiffeq: ode_demo, adjoint"
)
def ode_demo(name: str) -> Made:
    options = ["--niters", "2", "--data_size", "40", "--test_freq", "1"]
    options += ["--adjoint"] * name.endswith("adjoint")
    return script("rtqichen/torchdiffeq", "examples/ode_demo.py", *options)["func"]


@program("rtqichen/torchdiffeq", "float64", "torchdiffeq: cnf")
def cnf(name: str) -> Made:
    empty("matplotlib", "matplotlib.pyplot", "sklearn", "sklearn.datasets")
    circles = lambda n_samples, **_: (np.random.rand(n_samples, 2), None)  # noqa: E731
    sys.modules["sklearn.datasets"].make_circles = circles
    options = ["--niters", "2", "--num_samples", "16", "--width", "4", "--hidden_dim", "8"]
    return script("rtqichen/torchdiffeq", "examples/cnf.py", *options)["func"]


# ---- least squares, nested tensors ----


@program("Blealtan/efficient-kan", "lstsq")
def efficient_kan() -> Made:
    model = importing("Blealtan/efficient-kan", "efficient_kan.kan", "src").KAN([12, 8, 10])
    x, labels = torch.rand(16, 12) * 2 - 1, torch.randint(10, (16,))
    return model, lambda: F.cross_entropy(model(x, update_grid=True), labels)


@program(VIT, "nested tensors")
def na_vit_nested_tensor() -> Made:
    model = of_vit("na_vit_nested_tensor").NaViT(
        image_size=32, patch_size=8, num_classes=10, dim=16, depth=1, heads=2, mlp_dim=16,
        dim_head=8, token_dropout_prob=0.1,
    )  # fmt: skip
    x = [torch.randn(3, 32, 32), torch.randn(3, 16, 32)]
    return model, lambda: F.cross_entropy(model(x), torch.tensor([1, 2]))


@program(VIT, "nested tensors")
def na_vit_nested_tensor_3d() -> Made:
    model = of_vit("na_vit_nested_tensor_3d").NaViT(
        image_size=32, max_frames=4, patch_size=8, frame_patch_size=2, num_classes=10, dim=16,
        depth=1, heads=2, mlp_dim=16, dim_head=8, token_dropout_prob=0.1,
    )  # fmt: skip
    x = [torch.randn(3, 4, 32, 32), torch.randn(3, 2, 16, 32)]
    return model, lambda: F.cross_entropy(model(x), torch.tensor([1, 2]))
