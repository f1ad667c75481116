"""Models of tests/vectors/pretrained go on training by `verde run` and by PyTorch, and are exported: transformers and
peft load what `verde export` wrote, and generate greedily the tokens of PyTorch's own model after its training.

python3 tests/full/exported.py VERDE DIR
"""

import hashlib
import os
import shutil
import struct
import subprocess
import sys

import peft
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
import transformers

transformers.utils.logging.disable_progress_bar()

VECTORS = "tests/vectors/pretrained"
STEPS, BATCH, LENGTH, VOCAB, DECAY, NEW = 10, 3, 12, 64, 0.1, 12
# Products by verde's names, and by PyTorch's.
TARGETS = {"gpt2-lora": ({"attn.qkv": "c_attn"}), "llama-lora": {"attn.q": "q_proj", "mlp.down": "down_proj"}}
MODELS = ["gpt2", "llama", "llama-tied", "llama-bf16", "llama3", "mistral", "qwen2", "qwen2-window", "qwen3", *TARGETS]
JOB = """verde: 1
model: {{kind: pretrained, dir: {name}, sha256: {manifest}}}
data: {{kind: tokens, file: tokens.bin, sha256: {data}}}
{lora}
seed: 1
batch: {batch}
sequence: {length}
steps: {steps}
checkpoint_interval: {steps}
optimizer: {{kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-3, weight_decay: {decay}, clip_norm: 0}}
schedule: {{kind: constant, warmup: 0}}
"""

verde, where = sys.argv[1:]
# A step reads all windows once, in whatever order.
tokens = [(7 * i * i + i // 3) % VOCAB for i in range(BATCH * LENGTH + 1)]


def path(*parts):
    return os.path.join(where, *parts)


def sha256(name):
    with open(name, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def call(*arguments):
    done = subprocess.run([verde, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"verde {' '.join(arguments)}: {done.stderr}")


def prepare(name):
    """The folder and the job."""
    os.makedirs(path(name))
    for part in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(VECTORS, name, part), path(name, part))
    call("manifest", path(name), "--out", path(name + ".manifest"))
    targets = TARGETS.get(name)
    lora = f"lora: {{rank: 2, alpha: 4, targets: [{', '.join(targets)}]}}" if targets else ""
    with open(path(name + ".yaml"), "w") as f:
        f.write(JOB.format(name=name, manifest=sha256(path(name + ".manifest")), data=sha256(path("tokens.bin")),
                           lora=lora, batch=BATCH, length=LENGTH, steps=STEPS, decay=DECAY))


def export(name, kind, *options):
    call("export", path(name + ".run"), "--out", path(f"{name}.{kind}"), *options)
    return path(f"{name}.{kind}")


def adapters(name, folder):
    """A model of transformers with the adapters that peft reads from the folder."""
    model = transformers.AutoModelForCausalLM.from_pretrained(path(name))
    return peft.PeftModel.from_pretrained(model, folder, is_trainable=True)


def train(model):
    """In PyTorch, as the job says."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.99), eps=1e-3)
    data = torch.tensor(tokens)
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(input_ids=data[:-1].reshape(BATCH, LENGTH)).logits
        F.cross_entropy(logits.reshape(-1, VOCAB), data[1:]).backward()
        optimizer.step()
    return model


def generate(model):
    prompt = torch.tensor(tokens[:4])[None]
    with torch.no_grad():
        return model.eval().generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW,
                                     do_sample=False, eos_token_id=None, pad_token_id=0)[0].tolist()


def largest_difference(mine, theirs):
    theirs = dict(theirs.named_parameters())
    return max(((p - theirs[n]).norm() / p.norm()).item() for n, p in mine.named_parameters() if p.requires_grad)


def check_full(name):
    # Files of bf16 are made f32 and trained so.
    model = train(transformers.AutoModelForCausalLM.from_pretrained(path(name), dtype=torch.float32))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(export(name, "f32"))
    difference = largest_difference(model, loaded)
    assert difference < 1e-4, f"{name}: weights differ by {difference}"
    assert loaded.dtype == torch.float32, f"{name}: loaded as {loaded.dtype}"
    assert generate(loaded) == generate(model), f"{name}: other tokens"
    narrow = export(name, "bf16", "--dtype", "bf16")
    wide, rounded = load_file(path(name + ".f32", "model.safetensors")), load_file(narrow + "/model.safetensors")
    assert all(torch.equal(rounded[n], wide[n].to(torch.bfloat16)) for n in wide), f"{name}: other bf16"
    loaded = transformers.AutoModelForCausalLM.from_pretrained(narrow)
    assert loaded.dtype == torch.bfloat16, f"{name}: loaded as {loaded.dtype}"
    assert generate(loaded) == generate(model.to(torch.bfloat16)), f"{name}: other tokens in bf16"
    return difference


def check_adapters(name):
    model = train(adapters(name, export(name, "first", "--step", "0")))
    loaded = adapters(name, export(name, "last"))
    difference = largest_difference(model, loaded)
    assert difference < 1e-4, f"{name}: adapters differ by {difference}"
    assert generate(loaded) == generate(model), f"{name}: other tokens"
    return difference


def main():
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    with open(path("tokens.bin"), "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
        f.write(struct.pack(f"<{len(tokens)}H", *tokens))
    for name in MODELS:
        prepare(name)
        call("run", path(name + ".yaml"), "--out", path(name + ".run"))
        difference = (check_adapters if name in TARGETS else check_full)(name)
        print(f"{name}: within {difference:.1e} of PyTorch, the same {NEW} tokens")
    print(f"{len(MODELS)} models: transformers {transformers.__version__} and peft {peft.__version__} load what is "
          "exported, and generate the same tokens")


main()
