"""Folders of models as transformers and safetensors write them, and the manifests that verde must write for them.

python3 weights.py           writes the folders beside this file
python3 weights.py check DIR  loads what `verde export` wrote with safetensors, and with transformers if there is a
                             config.json; prints each tensor's SHA-256
python3 weights.py mutate VERDE COUNT  changes bytes of headers: safetensors must accept whatever `verde manifest` accepts
"""
import base64
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import _TYPES, load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
COMMITTED = {"F32": (1, 4), "I32": (2, 4), "U8": (3, 1), "U16": (4, 2), "BF16": (5, 2), "F16": (6, 2), "I8": (7, 1)}


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def root(leaves):
    """Returns the RFC 6962 root over hashes of leaves."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha(b"\1", root(leaves[:half]), root(leaves[half:]))


def commitment(dtype, shape, data):
    """The commitment of PROTOCOL.md 2.3. A type that verde does not have counts as bytes."""
    number = COMMITTED.get(dtype, (3, 1))[0]
    dims = (shape or [1]) if dtype in COMMITTED else [len(data)]
    tree = root([sha(b"\0", data[i:i + 1024]) for i in range(0, len(data), 1024)])
    head = b"".join([number.to_bytes(4, "little"), len(dims).to_bytes(4, "little")] +
                    [d.to_bytes(8, "little") for d in dims])
    return sha(b"verde/tensor/1\0", head, tree).hex()


def tensors_of(path):
    """Reads name, dtype, shape and bytes of each tensor of a file, without a library."""
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            yield name, info["dtype"], info["shape"], data[begin:end]


def manifest(folder):
    lines = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            for name, dtype, shape, data in tensors_of(os.path.join(folder, file)):
                dims = ",".join(str(d) for d in shape)
                lines.append(f"{name} {dtype} [{dims}] {commitment(dtype, shape, data)}\n")
    config = os.path.join(folder, "config.json")
    text = base64.b64encode(open(config, "rb").read()).decode() if os.path.exists(config) else "-"
    return f"verde manifest 1\nconfig {text}\ntensors {len(lines)}\n" + "".join(sorted(lines))


def write_models():
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    gpt2.save_pretrained(os.path.join(HERE, "gpt2"))
    llama = LlamaForCausalLM(LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32)).to(torch.bfloat16)
    llama.save_pretrained(os.path.join(HERE, "llama"), max_shard_size="6KB")


def write_types():
    """Writes a tensor of every type that torch and safetensors share, scalars, and batch norm's counter."""
    os.makedirs(os.path.join(HERE, "types"), exist_ok=True)
    made = {}
    for i, (name, dtype) in enumerate(_TYPES.items()):
        if name not in ("F8_E8M0", "F4"):
            raw = torch.arange(6 * dtype.itemsize, dtype=torch.int64).mul(37 + i).remainder(2 if name == "BOOL" else 256)
            made["t." + name] = raw.to(torch.uint8).view(dtype).reshape(1, 2, 3)
    made["bn.num_batches_tracked"] = torch.tensor(7)
    made["scale"] = torch.tensor(0.5)
    save_file(made, os.path.join(HERE, "types", "model.safetensors"), {"format": "pt"})


def check(folder):
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            path = os.path.join(folder, file)
            with safe_open(path, "pt") as f:
                assert f.metadata()["format"] == "pt"
            for name, t in sorted(load_file(path).items()):
                print(name, t.dtype, list(t.shape), hashlib.sha256(t.contiguous().view(-1).view(torch.uint8).numpy().tobytes()).hexdigest())


    if os.path.exists(os.path.join(folder, "config.json")):
        from transformers import AutoModelForCausalLM
        model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
        assert not any(info.values()), info
        print(type(model).__name__, model.dtype)


def mutate(verde, count):
    random.seed(1)
    data = open(os.path.join(HERE, "types", "model.safetensors"), "rb").read()
    size = int.from_bytes(data[:8], "little")
    taken = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        for i in range(count):
            changed = bytearray(data)
            for _ in range(random.randint(1, 2)):
                at = random.randrange(8, 8 + size)
                changed[at] = ord(random.choice('[]{},:"0123456789 FIUB')) if i % 2 else changed[at] ^ 1 << random.randrange(8)
            with open(path, "wb") as f:
                f.write(changed)
            ours = subprocess.run([verde, "manifest", path], capture_output=True).returncode
            assert ours in (0, 2), (i, ours)
            try:
                theirs = len(load_file(path))
            except Exception:
                theirs = 0
            assert ours == 2 or theirs, i
            taken += ours == 0
    print(f"{taken} of {count} taken, all by safetensors too")


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        check(sys.argv[2])
    elif sys.argv[1:2] == ["mutate"]:
        mutate(sys.argv[2], int(sys.argv[3]))
    else:
        write_models()
        write_types()
        for model in ("gpt2", "llama", "types"):
            with open(os.path.join(HERE, model + ".manifest"), "w") as f:
                f.write(manifest(os.path.join(HERE, model)))
