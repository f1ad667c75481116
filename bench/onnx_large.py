"""Models of realistic sizes, with random weights, for onnx_runtime.py."""

import onnx_models
import torch
from onnx_models import Diffusion, Heads, Tagger, Text, UNet

_PIXELS = 224


def _vision(name):
    def make():
        import torchvision

        model = getattr(torchvision.models, name)(weights=None)
        if hasattr(model, "heads"):
            torch.nn.init.normal_(model.heads.head.weight)  # zeros otherwise
        return model, (torch.randn(1, 3, _PIXELS, _PIXELS),)

    return make


def _text(kind, config, inputs, names=("input_ids",), **settings):
    def make():
        import transformers

        own = getattr(transformers, config)(**settings)
        model = getattr(transformers, kind)(own)
        model.config.use_cache = False
        return Text(model, list(names)), inputs()

    return make


def _ids(*shape):
    return torch.randint(3, 1000, shape)


_BOTH = ("input_ids", "decoder_input_ids")
_SPEECH = ("input_features", "decoder_input_ids")
LARGE = {
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50"),
    "mobilenet_v3": _vision("mobilenet_v3_large"),
    "efficientnet": _vision("efficientnet_b0"),
    "vit": _vision("vit_b_16"),
    "swin": _vision("swin_t"),
    "gpt2": _text("GPT2LMHeadModel", "GPT2Config", lambda: (_ids(1, 128),)),
    "llama": _text(  # SmolLM 135M
        "LlamaForCausalLM", "LlamaConfig", lambda: (_ids(1, 128),), vocab_size=49152,
        hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, tie_word_embeddings=True,
    ),
    "bert": _text("BertModel", "BertConfig", lambda: (_ids(1, 128),)),
    "t5": _text(
        "T5ForConditionalGeneration", "T5Config", lambda: (_ids(1, 128), _ids(1, 32)), _BOTH
    ),
    "whisper": _text(  # tiny
        "WhisperForConditionalGeneration", "WhisperConfig",
        lambda: (torch.randn(1, 80, 3000), _ids(1, 32)), _SPEECH, d_model=384, encoder_layers=4,
        decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
        encoder_ffn_dim=1536, decoder_ffn_dim=1536,
    ),
    "lstm_tagger": lambda: (Tagger(20000, 100, 256, 17), (torch.randint(0, 20000, (1, 64)),)),
    "unet": lambda: (UNet(32), (torch.randn(1, 3, 256, 256),)),
    "diffusion_unet": lambda: (Diffusion(128), (torch.randn(1, 3, 64, 64), torch.rand(1) * 10)),
    "ssd_heads": lambda: (Heads(), (torch.randn(1, 3, 320, 320),)),
}  # fmt: skip


def write(name, folder):
    """Writes the model into the folder. Returns its inputs."""
    return onnx_models.write(name, folder, LARGE)[0]


# ---- 8-bit integers, made by onnxruntime's own tools ----


def _static(source, made, data):
    """Converts convolutions to 8 bits, with scales from one batch."""
    from onnxruntime import quantization as q

    class Batch(q.CalibrationDataReader):
        def __init__(self):
            self.left = [data]

        def get_next(self):
            return self.left.pop() if self.left else None

    q.quantize_static(
        source, made, Batch(), quant_format=q.QuantFormat.QOperator, op_types_to_quantize=["Conv"],
        activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8,
    )  # fmt: skip


def _dynamic(source, made, data):
    """Converts products' weights to 8 bits, with scales computed for each input."""
    from onnxruntime import quantization as q

    how = {"op_types_to_quantize": ["MatMul"], "weight_type": q.QuantType.QInt8}
    q.quantize_dynamic(source, made, **how)


INT8 = {"resnet18": _static, "bert": _dynamic}


def write_int8(name, folder):
    data = write(name, folder)
    path = folder / f"{name}.onnx"
    INT8[name](path, folder / "int8.onnx", data)
    (folder / "int8.onnx").replace(path)
    return data
