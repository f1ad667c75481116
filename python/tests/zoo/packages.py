"""Models of other packages."""

import torch
import torch.nn.functional as F

from .base import ids, model, pixels
from .text import TEXT


def _timm(name, size=32, **more):
    def build():
        import timm

        own = timm.create_model(name, num_classes=5, **more)
        return own, lambda i: F.cross_entropy(own(pixels(i, size)), ids(2, seed=i, low=0, high=5))

    model("timm", "timm_" + name)(build)


for _name, _size, _more in (
    ("vit_tiny_patch16_224", 32, {"img_size": 32, "depth": 2}),
    ("resnet18d", 32, {}),
    ("mobilenetv4_conv_small", 32, {}),
    ("convnextv2_atto", 32, {}),
    ("efficientformer_l1", 224, {}),
    ("mixer_s32_224", 224, {}),
    ("edgenext_xx_small", 64, {}),
    ("tf_efficientnet_lite0", 32, {}),
    ("nfnet_l0", 32, {}),
    ("eva02_tiny_patch14_224", 28, {"img_size": 28}),
    ("swinv2_cr_tiny_ns_224", 224, {}),
    ("poolformer_s12", 32, {}),
    ("ghostnet_050", 32, {}),
    ("hrnet_w18_small", 64, {}),
    ("coatnet_nano_rw_224", 224, {}),
):
    _timm(_name, _size, **_more)


@model("peft")
def lora():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    own = get_peft_model(
        LlamaForCausalLM(LlamaConfig(**TEXT)),
        LoraConfig(r=4, lora_dropout=0.1, target_modules=["q_proj", "v_proj"]),
    )
    return own, lambda i: own(input_ids=(x := ids(2, 12, seed=i)), labels=x).loss


@model("diffusers")
def unet2d():
    from diffusers import DDPMScheduler, UNet2DModel

    own = UNet2DModel(
        16,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=8,
    )
    noise = DDPMScheduler(20)

    def loss(i):
        x, e, t = pixels(i, 16), torch.randn(2, 3, 16, 16), ids(2, seed=i, high=19)
        return F.mse_loss(own(noise.add_noise(x, e, t), t).sample, e)

    loss.constants = [noise.alphas_cumprod]
    return own, loss


@model("diffusers")
def sampled_diffusion():
    from diffusers import DDIMScheduler

    own, loss = unet2d()
    noise = DDIMScheduler(20)

    def sampled(i):
        noise.set_timesteps(3)
        x = torch.randn(1, 3, 16, 16)
        with torch.no_grad():
            for t in noise.timesteps:
                x = noise.step(own(x, t).sample, t, x).prev_sample
        return loss(i) + own(x, 1).sample.square().mean()

    sampled.constants = [*loss.constants, noise.alphas_cumprod]
    return own, sampled


@model("diffusers")
def autoencoder_kl():
    from diffusers import AutoencoderKL

    own = AutoencoderKL(
        3, 3, ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2, (8, 16), norm_num_groups=4
    )
    return own, lambda i: F.l1_loss(own(pixels(i, 16), sample_posterior=True).sample, pixels(i, 16))


def _smp(name, encoder):
    def build():
        import segmentation_models_pytorch as smp

        own = getattr(smp, name)(encoder, encoder_weights=None, classes=3)
        return (
            own,
            lambda i: (
                smp.losses.DiceLoss("multiclass")(
                    own(pixels(i, 64)), ids(2, 64, 64, seed=i, low=0, high=3)
                )
                + smp.losses.FocalLoss("multiclass")(
                    own(pixels(i, 64)), ids(2, 64, 64, seed=i, low=0, high=3)
                )
            ),
        )

    model("segmentation_models_pytorch", "smp_" + name)(build)


for _name in ("Unet", "FPN", "DeepLabV3Plus", "PSPNet", "UnetPlusPlus"):
    _smp(_name, "resnet18")
