"""A small model of JAX as jax2onnx exports it: model.onnx; x and what JAX gives: numbers.npz.

usage: make.py FOLDER    (needs jax and jax2onnx; made with jax 0.10.2 and jax2onnx 0.17.1)"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax2onnx import to_onnx

B, T, C, HEADS, CLASSES = 2, 8, 16, 2, 10


def weights():
    rng = np.random.default_rng(0)
    shapes = {
        "embed": (32, C), "qkv": (C, 3 * C), "out": (C, C), "up": (C, 2 * C), "gate": (C, 2 * C),
        "down": (2 * C, C), "head": (C, CLASSES), "conv": (3, C, C),
    }  # fmt: skip
    made = {k: rng.standard_normal(s).astype("f4") / np.sqrt(s[-2]) for k, s in shapes.items()}
    return {k: jnp.asarray(t, "float32") for k, t in made.items()}


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attention(x, w):
    size = C // HEADS
    parts = jnp.split(x @ w["qkv"], 3, -1)
    q, k, v = (t.reshape(B, T, HEADS, size).transpose(0, 2, 1, 3) for t in parts)
    scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(size)
    scores = jnp.where(np.tril(np.ones((T, T), bool)), scores, -1e30)
    y = jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores, -1), v)
    return y.transpose(0, 2, 1, 3).reshape(B, T, C) @ w["out"]


def model(x, w):
    h = x @ w["embed"]
    h = h + attention(norm(h), w)
    n = norm(h)
    h = h + (jax.nn.silu(n @ w["gate"]) * (n @ w["up"])) @ w["down"]
    h = jax.lax.conv_general_dilated(
        h, w["conv"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    )
    return jax.nn.gelu(h).mean(1) @ w["head"]


def make(folder):
    w = weights()
    x = np.random.default_rng(1).standard_normal((B, T, 32)).astype("f4")
    shape = jax.ShapeDtypeStruct(x.shape, jnp.float32)
    made = to_onnx(lambda t: model(t, w), [shape], model_name="jax")
    onnx.save(made, str(Path(folder) / "model.onnx"))
    np.savez(Path(folder) / "numbers.npz", x=x, y=np.asarray(model(x, w)))


if __name__ == "__main__":
    make(sys.argv[1])
