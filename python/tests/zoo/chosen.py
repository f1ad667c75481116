"""Smaller versions of the models in registries.txt, which registries.py chose."""

import dataclasses

import torch.nn.functional as F

from .base import ids, model, numbers, pixels
from .text import TEXT


def _labels(i):
    return ids(2, seed=i, low=0, high=5)


def _image(package, name, create, size=32, **more):
    """A classifier of images of this size; a model without classes learns one number."""

    def build():
        own = create(name, **more)

        def loss(i):
            y = own(pixels(i, size))
            y = sum(y) if isinstance(y, (tuple, list)) else y
            return F.cross_entropy(y, _labels(i)) if y.dim() == 2 else y.square().mean()

        return own, loss

    model(package, f"chosen_{name}")(build)


def _timm(name, **more):
    import timm

    return timm.create_model(name, num_classes=5, **more)


def _swin(name):
    """Swin v2. torchvision's function fixes the sizes; the class takes smaller ones."""
    from torchvision.models import SwinTransformer
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

    return SwinTransformer(
        [4, 4],
        32,
        [1, 1, 2, 1],
        [1, 2, 4, 8],
        [8, 8],
        stochastic_depth_prob=0.5,
        num_classes=5,
        block=SwinTransformerBlockV2,
        downsample_layer=PatchMergingV2,
    )


# timm's functions fix the sizes of these; its classes take smaller ones.


def _regnetz(name):
    from timm.models import byobnet

    own = byobnet.model_cfgs[name]
    blocks = [dataclasses.replace(b, d=2, c=b.c // 4) for b in own.blocks]
    small = dataclasses.replace(own, blocks=tuple(blocks), stem_chs=16, num_features=128)
    return byobnet.ByobNet(small, num_classes=5)


def _cs3sedarknet(name):
    from timm.models import cspnet

    own = cspnet.model_cfgs[name]
    attention = {"attn_layer": "se", "attn_kwargs": {"rd_ratio": 0.25}}
    small = cspnet._cs3_cfg(width_multiplier=0.25, depth_multiplier=0.34, **attention)
    assert dataclasses.replace(small, stem=own.stem, stages=own.stages) == own
    return cspnet.CspNet(small, num_classes=5)


def _nf_ecaresnet(name):
    from timm.models import nfnet

    own = nfnet.model_cfgs[name]
    small = dataclasses.replace(own, depths=(1, 1, 2, 1), channels=(32, 64, 128, 256))
    return nfnet.NormFreeNet(small, num_classes=5)


def _selecsls(name):
    """A quarter of the width, and without the last block of each kind."""
    from timm.models.selecsls import SelecSls, SelecSlsBlock

    features = [(32, 0, 16, 16, True, 2), (16, 16, 16, 32, False, 1), (32, 0, 32, 32, True, 2)]
    features += [(32, 32, 32, 72, False, 1), (72, 0, 72, 72, True, 2), (72, 72, 72, 104, False, 1)]
    head = [(104, 192, 3, 2), (192, 256, 3, 1), (256, 320, 3, 2), (320, 256, 1, 1)]
    small = {"block": SelecSlsBlock, "features": features, "head": head, "num_features": 256}
    return SelecSls({**small, "feature_info": []}, num_classes=5)


def _vovnet(name):
    from timm.models import vovnet

    small = {
        **vovnet.model_cfgs[name],
        "stem_chs": [16, 16, 32],
        "stage_conv_chs": [32, 40, 48, 56],
        "stage_out_chs": [64, 128, 192, 256],
    }
    return vovnet.VovNet(small, num_classes=5)


def _ghostnet(name):
    from timm.models import ghostnet

    return ghostnet._create_ghostnet(name, width=0.3, version="v3", num_classes=5)


def _quantized(name):
    """torchvision's quantizable ResNet for training, with one block in each stage."""
    from torchvision.models.quantization import resnet

    return resnet.QuantizableResNet(resnet.QuantizableBasicBlock, [1, 1, 1, 1], num_classes=5)


_image("torchvision", "quantized_resnet18", _quantized)
_image("torchvision", "swin_v2_b", _swin)
for _name, _create, _size in (
    ("regnetz_e8", _regnetz, 32),
    ("cs3sedarknet_l", _cs3sedarknet, 32),
    ("nf_ecaresnet50", _nf_ecaresnet, 32),
    ("selecsls60b", _selecsls, 64),
    ("vovnet39a", _vovnet, 32),
    ("ghostnetv3_130", _ghostnet, 64),
):
    _image("timm", _name, _create, _size)
_NARROW = {"embed_dim": 64, "depth": 2, "num_heads": 4}
for _name, _size, _more in (
    ("cait_s36_384", 32, {"img_size": 32, "embed_dim": 64, "depth": 2}),
    ("convnext_large", 32, {"depths": (1, 1, 2, 1), "dims": (16, 32, 64, 128)}),
    (
        "dla102",
        32,
        {"levels": (1, 1, 1, 2, 2, 1), "channels": (8, 16, 32, 64, 64, 128)},
    ),
    ("efficientformer_l3", 224, {"depths": (1, 1, 2, 3), "embed_dims": (16, 32, 64, 128)}),
    ("efficientvim_m3", 64, {"embed_dim": (32, 48, 64), "depths": (1, 1, 1)}),
    ("fastvit_mci3", 64, {"layers": (1, 1, 2, 1, 1), "embed_dims": (16, 32, 64, 64, 128)}),
    (
        "iformer_l_distilled",
        64,
        {"depths": (1, 1, 8, 3), "dims": (16, 32, 64, 96), "attn_groups": (0, 0, 2, 1)},
    ),
    (
        "levit_conv_512_s8",
        224,
        {"embed_dim": (32, 48, 64), "num_heads": (2, 3, 4), "depth": (1, 1, 1), "key_dim": 16},
    ),
    (
        "maxxvitv2_rmlp_base_rw_384",
        64,
        {
            "img_size": 64,
            "embed_dim": (32, 64, 128, 256),
            "depths": (1, 1, 1, 1),
            "stem_width": (16, 32),
        },
    ),
    ("mobilenetv5_300m", 64, {"channel_multiplier": 0.125, "num_features": 128}),
    ("qwen3_vit_416m_enc", 64, _NARROW),
    ("resnet101c", 32, {"layers": (1, 1, 2, 1), "channels": (16, 32, 64, 128)}),
    ("resnetv2_101", 32, {"layers": (1, 1, 2, 1), "channels": (64, 128, 256, 512)}),
    (
        "swin_base_patch4_window12_384",
        96,
        {"img_size": 96, "embed_dim": 16, "depths": (1, 1, 2, 1), "num_heads": (1, 2, 4, 8)},
    ),
    ("test_vit3", 32, {"img_size": 32}),
    ("tnt_s_legacy_patch16_224", 32, {"img_size": 32, "depth": 2}),
    ("vit_base_patch16_siglip_384", 32, {"img_size": 32, **_NARROW}),
    ("vit_huge_patch14_clip_378", 28, {"img_size": 28, **_NARROW}),
    ("vit_mediumd_patch16_reg4_gap_256", 32, {"img_size": 32, **_NARROW}),
    ("vit_so150m_patch16_reg4_gap_256", 32, {"img_size": 32, **_NARROW}),
):
    _image("timm", _name, _timm, _size, **_more)


# ---- transformers: a training objective for each name ----


def _hugging(name, kind, loss, config=None, **more):
    def build():
        import transformers

        made = transformers.AutoConfig.for_model(name, **(TEXT if config is None else config))
        for key, value in more.items():
            setattr(made, key, value)
        own = getattr(transformers, kind)(made)
        return own, lambda i: loss(own, i)

    model("transformers", f"chosen_{name}")(build)


def _words(own, i):
    return own(input_ids=(x := ids(2, 12, seed=i)), labels=x).loss


def _hidden(own, i):
    return own(input_ids=ids(2, 12, seed=i)).last_hidden_state.square().mean()


def _span(own, i):
    """Predicts the start and end of an answer."""
    first, last = ids(2, seed=i, low=0, high=6), ids(2, seed=i, low=6, high=12)
    return own(ids(2, 12, seed=i), start_positions=first, end_positions=last).loss


def _series(own, i):
    """Past and future values, and which were observed."""
    seen = ids(2, 21, seed=i, low=0, high=4) > 0
    return own(
        past_values=numbers(2, 21, seed=i),
        past_time_features=numbers(2, 21, 2, seed=i),
        past_observed_mask=seen.float(),
        future_values=numbers(2, 6, seed=i + 9),
        future_time_features=numbers(2, 6, 2, seed=i + 9),
    ).loss


def _picture(own, i):
    """Text with four placeholders for an image."""
    import torch

    words = torch.cat([ids(1, 4, seed=i), torch.full((1, 4), 95), ids(1, 4, seed=i + 9)], 1)
    kinds = torch.tensor([[0] * 4 + [1] * 4 + [0] * 4], dtype=torch.int32)
    return own(
        input_ids=words,
        mm_token_type_ids=kinds,
        pixel_values=numbers(1, 3, 16, 16 * 64, seed=i),
        target_sizes=torch.tensor([[8, 8]], dtype=torch.int32),
        labels=words,
    ).loss


def _speech(own, i):
    """Its own loss needs torchaudio; here each frame has a label."""
    y = own(numbers(2, 64, 16, seed=i), decoder_input_ids=ids(2, 1, seed=i, high=29)).logits
    return F.cross_entropy(y.flatten(0, 1), ids(y.shape[0] * y.shape[1], seed=i, high=29))


_MIXED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_LINEAR = {
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
_hugging(
    "autoformer",
    "AutoformerForPrediction",
    _series,
    {
        "prediction_length": 6,
        "context_length": 14,
        "num_time_features": 2,
        "d_model": 16,
        "label_length": 4,
        "moving_average": 5,
    },
)
_ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
_hugging("cosmos3_edge_text", "Cosmos3EdgeTextModel", _hidden, {**TEXT, "rope_parameters": _ROPE})
_hugging("electra", "ElectraForQuestionAnswering", _span, {**TEXT, "embedding_size": 16})
_hugging("glm4", "Glm4ForCausalLM", _words)
_hugging("helium", "HeliumForCausalLM", _words)
_hugging(
    "laguna",
    "LagunaForCausalLM",
    _words,
    {**TEXT, **_MIXED, "shared_expert_intermediate_size": 16},
)
_hugging(
    "minicpmv4_7",
    "MiniCPMV4_7ForConditionalGeneration",
    _picture,
    {
        "text_config": {
            **TEXT,
            **_LINEAR,
            "model_type": "qwen3_5_text",
            "layer_types": ["linear_attention", "full_attention"],
        },
        "vision_config": {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 128,
        },
        "insert_layer_id": 0,
        "image_size": 128,
        "image_token_id": 95,
    },
)
_hugging(
    "nemotron3_5_asr",
    "Nemotron3_5AsrForRNNT",
    _speech,
    {
        "vocab_size": 30,
        "blank_token_id": 29,
        "decoder_hidden_size": 16,
        "num_decoder_layers": 1,
        "num_prompts": 4,
        "default_prompt_id": 1,
        "prompt_intermediate_size": 32,
        "encoder_config": {
            "model_type": "nemotron_asr_streaming_encoder",
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "subsampling_conv_channels": 8,
            "num_mel_bins": 16,
        },
    },
)
_hugging(
    "phimoe",
    "PhimoeForCausalLM",
    _words,
    {**TEXT, "num_local_experts": 4, "num_experts_per_tok": 2},
)
_hugging(
    "qwen4_exp_text",
    "Qwen4ExpForCausalLM",
    _words,
    {
        **TEXT,
        **_MIXED,
        **_LINEAR,
        "shared_expert_intermediate_size": 16,
        "num_key_value_heads": 1,
        "layer_types": ["linear_attention", "indexed_attention"],
        "hc_count": 2,
        "hc_lowrank": 8,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 8,
        "indexer_compress_ratio": 4,
    },
)
_hugging("splinter", "SplinterForQuestionAnswering", _span, {**TEXT, "question_token_id": 99})
_hugging(
    "vit",
    "ViTForImageClassification",
    lambda own, i: own(pixels(i), labels=_labels(i)).loss,
    {
        "image_size": 32,
        "patch_size": 16,
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "num_labels": 5,
    },
)
