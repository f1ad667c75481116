"""Models of tests/vectors/pretrained are trained further by `verde run` and by PyTorch, and exported: transformers and
peft load what `verde export` wrote, and generate greedily the tokens of the model that PyTorch trained. Adapters of every
product of every family, alone and together, are loaded by peft without a warning, and compute what their tensors mean.

python3 tests/full/exported.py VERDE DIR
"""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import warnings

import peft
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
import transformers

transformers.utils.logging.disable_progress_bar()

VECTORS = "tests/vectors/pretrained"
STEPS, BATCH, LENGTH, VOCAB, DECAY, NEW = 10, 3, 12, 64, 0.1, 12
# Products by verde's names; BERT maps them to transformers' names.
TARGETS = {"gpt2-lora": ["attn.qkv"], "llama-lora": ["attn.q", "mlp.down", "head"]}
BERT = {"attn.q": "attention.self.query", "attn.k": "attention.self.key", "attn.v": "attention.self.value",
        "attn.proj": "attention.output.dense", "mlp.up": "intermediate.dense", "mlp.down": "output.dense"}
# All products of a family: transformers' modules in each block, then those outside of blocks.
PRODUCTS = {
    "gpt2": ("transformer.h.{}.", {"attn.qkv": "attn.c_attn", "attn.proj": "attn.c_proj", "mlp.up": "mlp.c_fc",
                                   "mlp.down": "mlp.c_proj"}, {}),
    "llama": ("model.layers.{}.", {**{f"attn.{x}": f"self_attn.{x}_proj" for x in "qkv"},
                                   "attn.proj": "self_attn.o_proj",
                                   **{f"mlp.{x}": f"mlp.{x}_proj" for x in ("gate", "up", "down")}},
              {"head": "lm_head"}),
    "bert": ("bert.encoder.layer.{}.", BERT, {"head": "cls.predictions.transform.dense"}),
    "bert-classes": ("bert.encoder.layer.{}.", BERT, {"pooler": "bert.pooler.dense", "classes": "classifier"})}
LAYERS = 2
AUTO = {"bert": transformers.AutoModelForMaskedLM, "bert-classes": transformers.AutoModelForSequenceClassification}
OWN = {"bert": ", mask_rate: 0.4, mask: 63"}
MODELS = ["gpt2", "llama", "llama-tied", "llama-bf16", "llama3", "mistral", "qwen2", "qwen2-window", "qwen3", *TARGETS]
JOB = """verde: 1
model: {{kind: pretrained, dir: {name}, sha256: {manifest}{own}}}
data: {{kind: tokens, file: {file}, sha256: {data}}}
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
# A step reads each window once, in any order.
tokens = [(7 * i * i + i // 3) % VOCAB for i in range(BATCH * LENGTH + 1)]
ids = [t or 1 for t in tokens[:LENGTH]]  # 0 is BERT's padding


def path(*parts):
    return os.path.join(where, *parts)


def sha256(name):
    with open(name, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def call(*arguments):
    done = subprocess.run([verde, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"verde {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def write_job(name, targets, file="tokens.bin"):
    lora = f"lora: {{rank: 2, alpha: 4, targets: [{', '.join(targets)}]}}" if targets else ""
    with open(path(name + ".yaml"), "w") as f:
        f.write(JOB.format(name=name, manifest=sha256(path(name + ".manifest")), data=sha256(path(file)), file=file,
                           own=OWN.get(name, ""), lora=lora, batch=BATCH, length=LENGTH, steps=STEPS, decay=DECAY))


def prepare(name):
    """Returns the folder and the job."""
    os.makedirs(path(name), exist_ok=True)
    for part in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(VECTORS, name, part), path(name, part))
    call("manifest", path(name), "--out", path(name + ".manifest"))
    write_job(name, TARGETS.get(name))


def export(name, kind, *options):
    call("export", path(name + ".run"), "--out", path(f"{name}.{kind}"), *options)
    return path(f"{name}.{kind}")


def adapters(name, folder):
    """A model of transformers with the adapters that peft reads from a folder."""
    model = AUTO.get(name, transformers.AutoModelForCausalLM).from_pretrained(path(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("error", UserWarning)  # such as missing adapters
        return peft.PeftModel.from_pretrained(model, folder, is_trainable=True)


def train(model):
    """Trains in PyTorch, as the job states."""
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
    # bf16 files are converted to f32 and trained as such.
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


def merged(name, folder, targets):
    """The files' model with W + (alpha / rank) B A in place of each W, by the table of names alone."""
    blocks, inner, outer = PRODUCTS[name]
    modules = [blocks.format(i) + inner[t] for t in targets if t in inner for i in range(LAYERS)] + [
        outer[t] for t in targets if t in outer]
    model = AUTO.get(name, transformers.AutoModelForCausalLM).from_pretrained(path(name))
    tensors = load_file(os.path.join(folder, "adapter_model.safetensors"))
    assert len(tensors) == 2 * len(modules), f"{name}, {targets}: {sorted(tensors)}"
    for module in modules:
        a, b = (tensors[f"base_model.model.{module}.lora_{x}.weight"] for x in "AB")
        assert b.abs().max() > 0, f"{name}: {module} was not trained"
        change = 4 / 2 * b @ a
        weight = model.get_submodule(module).weight
        weight.data += change.T if name == "gpt2" else change
    return model


def check_products(name):
    """Adapters of each product alone and of all together."""
    _, inner, outer = PRODUCTS[name]
    data = torch.tensor(ids)[None]
    for targets in [[t] for t in (*inner, *outer)] + [[*inner, *outer]]:
        shutil.rmtree(path(name + ".run"), ignore_errors=True)
        write_job(name, targets, "classes.bin" if name == "bert-classes" else "tokens.bin")
        call("run", path(name + ".yaml"), "--out", path(name + ".run"))
        folder = export(name, "adapters", "--force")
        with torch.no_grad():
            found = adapters(name, folder).eval()(input_ids=data).logits
            expected = merged(name, folder, targets).eval()(input_ids=data).logits
            base = AUTO.get(name, transformers.AutoModelForCausalLM).from_pretrained(path(name)).eval()(
                input_ids=data).logits
        scale = (expected - base).norm()
        assert scale > 1e-3, f"{name}, {targets}: the adapters change nothing"
        assert (found - expected).norm() < 1e-4 * scale, f"{name}, {targets}: peft computes another model"
    if name == "bert-classes":
        check_score(name, found)
    return len(inner) + len(outer)


def check_score(name, logits):
    """verde and peft's model score the tokens alike."""
    state = next(line.split()[2] for line in call("inspect", path(name + ".run")).splitlines()
                 if line.startswith(f"state {STEPS} "))
    with open(path("score.jsonl"), "w") as f:
        json.dump({"key": 1, "ids": ids}, f)
    with open(path(name + ".yaml")) as f:
        lora = next(line for line in f if line.startswith("lora:"))
    with open(path("score.yaml"), "w") as f:
        f.write(f"verde: 1\ntask: score\nmodel: {{kind: pretrained, dir: {name}, sha256: "
                f"{sha256(path(name + '.manifest'))}}}\n{lora}weights: {{run: {name}.run, root: {state}}}\n"
                f"prompts: {{file: score.jsonl, sha256: {sha256(path('score.jsonl'))}}}\n")
    call("run", path("score.yaml"), "--out", path("score"))
    with open(path("score", "results.jsonl")) as f:
        found = torch.tensor(json.load(f)["log_probabilities"])
    assert torch.allclose(found, logits[0].log_softmax(0), atol=1e-5), f"{name}: verde says {found}"


def check_heads_left_out():
    """A BertForPreTraining is trained further to name hidden tokens: the export says so, and is all that transformers needs."""
    config = transformers.AutoConfig.from_pretrained(path("bert"))
    transformers.BertForPreTraining(config).save_pretrained(path("pretraining"))
    call("manifest", path("pretraining"), "--out", path("pretraining.manifest"))
    OWN["pretraining"] = OWN["bert"]
    write_job("pretraining", None)
    call("run", path("pretraining.yaml"), "--out", path("pretraining.run"))
    folder = export("pretraining", "f32")
    named = transformers.AutoConfig.from_pretrained(folder).architectures[0]
    _, said = getattr(transformers, named).from_pretrained(folder, output_loading_info=True)
    assert not any(said.values()), f"{named}: {said}"


def main():
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    with open(path("tokens.bin"), "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
        f.write(struct.pack(f"<{len(tokens)}H", *tokens))
    records = [t for i in range(BATCH) for t in (i % 3, *tokens[i * LENGTH:(i + 1) * LENGTH])] + [0]
    with open(path("classes.bin"), "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, len(records), *[0] * 253))
        f.write(struct.pack(f"<{len(records)}H", *records))
    for name in MODELS:
        prepare(name)
        call("run", path(name + ".yaml"), "--out", path(name + ".run"))
        difference = (check_adapters if name in TARGETS else check_full)(name)
        print(f"{name}: within {difference:.1e} of PyTorch, the same {NEW} tokens")
    for name in PRODUCTS:
        if not os.path.exists(path(name)):
            prepare(name)
        count = check_products(name)
        print(f"{name}: peft computes with adapters of {count} products, each alone and all together, what they say")
    check_heads_left_out()
    print(f"{len(MODELS)} models: transformers {transformers.__version__} and peft {peft.__version__} load what is "
          "exported, and generate the same tokens")


main()
