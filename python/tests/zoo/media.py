"""Vision and audio models of transformers."""

import torch

from .base import ids, model, numbers, pixels
from .text import TEXT

VISION = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


@model("transformers", "vit")
def vit_of_transformers():
    from transformers import ViTConfig, ViTForImageClassification

    own = ViTForImageClassification(ViTConfig(**VISION, num_labels=5))
    return own, lambda i: own(pixels(i), labels=ids(2, seed=i, low=0, high=5)).loss


@model("transformers")
def dinov2():
    from transformers import Dinov2Config, Dinov2ForImageClassification

    own = Dinov2ForImageClassification(Dinov2Config(**VISION, num_labels=5))
    return own, lambda i: own(pixels(i, 48), labels=ids(2, seed=i, low=0, high=5)).loss


@model("transformers")
def clip():
    from transformers import CLIPConfig, CLIPModel

    own = CLIPModel(CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=16))
    return (
        own,
        lambda i: own(input_ids=ids(2, 12, seed=i), pixel_values=pixels(i), return_loss=True).loss,
    )


@model("transformers")
def siglip():
    from transformers import SiglipConfig, SiglipModel

    own = SiglipModel(SiglipConfig(text_config=TEXT, vision_config=VISION))
    return (
        own,
        lambda i: own(input_ids=ids(2, 12, seed=i), pixel_values=pixels(i), return_loss=True).loss,
    )


@model("transformers")
def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    own = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=100,
            num_mel_bins=8,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_source_positions=20,
            max_target_positions=20,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            suppress_tokens=[],
            begin_suppress_tokens=[],
        )
    )
    return own, lambda i: own(numbers(2, 8, 40, seed=i), labels=ids(2, 9, seed=i)).loss


@model("transformers")
def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    own = Wav2Vec2ForCTC(
        Wav2Vec2Config(
            vocab_size=30,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=4,
            intermediate_size=64,
            conv_dim=[16, 16],
            conv_stride=[5, 2],
            conv_kernel=[10, 3],
            num_conv_pos_embeddings=8,
            num_conv_pos_embedding_groups=4,
            mask_time_prob=0.0,
            ctc_loss_reduction="mean",
        )
    )
    return own, lambda i: own(numbers(2, 400, seed=i), labels=ids(2, 5, seed=i, high=29)).loss


@model("transformers")
def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    own = SegformerForSemanticSegmentation(
        SegformerConfig(
            depths=[1, 1, 1, 1],
            hidden_sizes=[8, 8, 16, 16],
            decoder_hidden_size=16,
            num_labels=4,
            num_attention_heads=[1, 1, 2, 2],
        )
    )
    return own, lambda i: own(pixels(i, 64), labels=ids(2, 64, 64, seed=i, low=0, high=4)).loss


@model("transformers")
def detr():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    own = DetrForObjectDetection(
        DetrConfig(
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config=ResNetConfig(
                embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], out_features=["stage2"]
            ),
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            num_queries=5,
            num_labels=3,
        )
    )
    boxes = torch.tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.4, 0.2, 0.2]])
    return (
        own,
        lambda i: (
            own(
                pixels(i, 64),
                labels=[
                    {"class_labels": ids(2, seed=i + j, low=0, high=3), "boxes": boxes}
                    for j in (0, 1)
                ],
            ).loss
        ),
    )
