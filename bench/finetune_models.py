"""Writes folders of models of the sizes that people fine-tune, with made-up weights: config.json,
model.safetensors, and tokens to train on. Needs no package. The weights are normal numbers from a pool
that is used again and again: time and memory do not depend on the numbers.

python3 bench/finetune_models.py NAME DIR    NAME: gpt2-124m, smollm-135m, qwen2-0.5b, llama3.2-1b
"""

import array
import json
import math
import os
import random
import struct
import sys

POOL = 1 << 20
TOKENS = 4096


def llama(kind, channels, hidden, layers, heads, kv_heads, vocab, **more):
    return {"model_type": kind, "hidden_size": channels, "intermediate_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "vocab_size": vocab, "hidden_act": "silu",
            "tie_word_embeddings": True, "torch_dtype": "bfloat16", **more}


MODELS = {
    "gpt2-124m": {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12,
                  "n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "embd_pdrop": 0.1,
                  "attn_pdrop": 0.1, "resid_pdrop": 0.1},
    "smollm-135m": llama("llama", 576, 1536, 30, 9, 3, 49152, rms_norm_eps=1e-5, rope_theta=10000.0,
                         max_position_embeddings=2048),
    "qwen2-0.5b": llama("qwen2", 896, 4864, 24, 14, 2, 151936, rms_norm_eps=1e-6, rope_theta=1000000.0,
                        max_position_embeddings=131072, use_sliding_window=False, sliding_window=131072,
                        max_window_layers=24),
    "llama3.2-1b": llama("llama", 2048, 8192, 16, 32, 8, 128256, rms_norm_eps=1e-5, rope_theta=500000.0,
                         max_position_embeddings=131072, head_dim=64,
                         rope_scaling={"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                       "original_max_position_embeddings": 8192, "rope_type": "llama3"}),
}


def gpt2_tensors(c):
    n = c["n_embd"]
    yield "wte.weight", [c["vocab_size"], n]
    yield "wpe.weight", [c["n_positions"], n]
    for i in range(c["n_layer"]):
        for name, shape in (("attn.c_attn", [n, 3 * n]), ("attn.c_proj", [n, n]), ("mlp.c_fc", [n, 4 * n]),
                            ("mlp.c_proj", [4 * n, n])):
            yield f"h.{i}.{name}.weight", shape
            yield f"h.{i}.{name}.bias", shape[1:]
        for name in ("ln_1", "ln_2"):
            yield f"h.{i}.{name}.weight", [n]
            yield f"h.{i}.{name}.bias", [n]
    yield "ln_f.weight", [n]
    yield "ln_f.bias", [n]


def llama_tensors(c):
    n, hidden = c["hidden_size"], c["intermediate_size"]
    kv = n // c["num_attention_heads"] * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", [c["vocab_size"], n]
    for i in range(c["num_hidden_layers"]):
        for name, out in (("q", n), ("k", kv), ("v", kv), ("o", n)):
            yield f"model.layers.{i}.self_attn.{name}_proj.weight", [out, n]
            if c["model_type"] == "qwen2" and name != "o":
                yield f"model.layers.{i}.self_attn.{name}_proj.bias", [out]
        yield f"model.layers.{i}.mlp.gate_proj.weight", [hidden, n]
        yield f"model.layers.{i}.mlp.up_proj.weight", [hidden, n]
        yield f"model.layers.{i}.mlp.down_proj.weight", [n, hidden]
        yield f"model.layers.{i}.input_layernorm.weight", [n]
        yield f"model.layers.{i}.post_attention_layernorm.weight", [n]
    yield "model.norm.weight", [n]


def narrow(floats):
    """Returns the upper halves of the f32 numbers: bf16, rounded toward zero."""
    halves = array.array("H", array.array("f", floats).tobytes())
    return halves[1::2].tobytes()


def contents(name, shape, narrowed, pool, at):
    """Yields the tensor's bytes in pieces: ones for a norm, else numbers of the pool."""
    size = math.prod(shape)
    width = 2 if narrowed else 4
    if len(shape) == 1 and name.endswith("weight"):
        ones = array.array("f", [1.0] * size)
        yield narrow(ones) if narrowed else ones.tobytes()
        return
    left, at = size * width, at * width % len(pool)
    while left:
        piece = pool[at:at + left]
        yield piece
        left, at = left - len(piece), 0


def write_model(path, config):
    narrowed = config.get("torch_dtype") == "bfloat16"
    width = 2 if narrowed else 4
    tensors = list((gpt2_tensors if config["model_type"] == "gpt2" else llama_tensors)(config))
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        begin, end = end, end + math.prod(shape) * width
        header[name] = {"dtype": "BF16" if narrowed else "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    numbers = random.Random(1)
    pool = array.array("f", [numbers.gauss(0, 0.02) for _ in range(POOL)])
    pool = narrow(pool) if narrowed else pool.tobytes()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            f.writelines(contents(name, shape, narrowed, pool, numbers.randrange(POOL)))


def write_tokens(path, vocab):
    """Writes tokens in llm.c's format: uint16 where the vocabulary allows it."""
    numbers = random.Random(2)
    tokens = [numbers.randrange(vocab) for _ in range(TOKENS)]
    magic, version, kind = (20240520, 1, "H") if vocab <= 65536 else (20240801, 7, "I")
    with open(path, "wb") as f:
        f.write(struct.pack("<256i", magic, version, TOKENS, *[0] * 253) + array.array(kind, tokens).tobytes())


def main():
    name, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump(MODELS[name], f, indent=2)
    write_model(os.path.join(out, "model.safetensors"), MODELS[name])
    write_tokens(out + ".bin", MODELS[name]["vocab_size"])


if __name__ == "__main__":
    main()
