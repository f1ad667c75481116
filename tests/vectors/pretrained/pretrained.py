#!/usr/bin/env python3
"""Small models with random weights, as transformers and torchvision write them, and their state after ten steps of
AdamW in PyTorch. tests/unit/test_pretrained.c trains them in the same way and compares. Each model has a folder:

config.json, model.safetensors   the model before training
before.safetensors               only with adapters: their weights before training, from which the test starts
after.safetensors                weights (or the adapters' weights) and running statistics after ten steps, f32
losses.txt                       the loss of each step
scaled.safetensors               only for images: torchvision's value for every byte in each plane
evaluation.txt                   only for classifiers: loss and accuracy before training, with running statistics
logits.safetensors               logits of each token or record in the first step's forward pass: [rows, classes]
"""
import json
import os
import shutil
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
import transformers
from torchvision.models import ResNet50_Weights
from torchvision.models.resnet import Bottleneck
from torchvision.transforms import Normalize
from torchvision.transforms.functional import to_tensor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../torch"))
import common  # noqa: E402

STEPS, BATCH, LENGTH, VOCAB, SEED, MASK_RATE, MASK = 10, 3, 12, 64, 5, 0.3, 63
# eps is large: gradients that are zero except for rounding, such as those of a key's bias, must not cause steps of full
# length.
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.99), "eps": 1e-3}
DECAY = 0.1
IMAGE, IMAGES, CLASSES = 32, 8, 3
preset = ResNet50_Weights.DEFAULT.transforms()
scale = Normalize(preset.mean, preset.std)

LLAMA = {"vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.2}
BERT = {"vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 32, "initializer_range": 0.2, "pad_token_id": 0,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8}


def tokens(count, limit=VOCAB):
    return torch.tensor(common.tokens(count, limit))


def philox(*counter):
    """Philox4x32-10 of repops/SPEC.md section 10: returns four words."""
    c, k = list(counter), [SEED, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b % 2**32, a >> 32 ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


# ---- losses of one step: every step reads all of the data once, so its order does not matter


def next_tokens(model, _step):
    data = tokens(BATCH * LENGTH + 1)
    logits = model(input_ids=data[:-1].reshape(BATCH, LENGTH)).logits
    return F.cross_entropy(logits.reshape(-1, VOCAB), data[1:])


def hidden_tokens(model, step):
    """One window, in which the step hides some tokens. Token 0 is padding."""
    data = tokens(LENGTH + 1, MASK)[:LENGTH]
    words = [w for block in range(LENGTH // 4) for w in philox(block, 0, step, 1)]
    real = data != 0
    hidden = real & (torch.tensor(words) < MASK_RATE * 2**32)
    assert hidden.any()
    read = torch.where(hidden, torch.tensor(MASK), data)
    logits = model(input_ids=read[None], attention_mask=real[None].long()).logits
    return F.cross_entropy(logits[0][hidden], data[hidden])


def classes(model, _step):
    """Each record is a class and tokens, and ends with padding."""
    data = tokens(BATCH * (1 + LENGTH)).reshape(BATCH, -1)
    labels, read = data[:, 0] % CLASSES, data[:, 1:].clone()
    read[torch.arange(LENGTH)[None, :] >= LENGTH - 2 * torch.arange(BATCH)[:, None]] = 0
    return F.cross_entropy(model(input_ids=read, attention_mask=(read != 0).long()).logits, labels)


def images(model, _step):
    bytes_ = torch.tensor(common.tokens(IMAGES * (1 + 3 * IMAGE * IMAGE), 256)).reshape(IMAGES, -1)
    x = scale(bytes_[:, 1:].reshape(IMAGES, 3, IMAGE, IMAGE).float() / 255)
    return F.cross_entropy(model(x.to(next(model.parameters()).dtype)), bytes_[:, 0] % CLASSES)


def scaled():
    """Returns torchvision's value for every byte, in each plane: [3, 256]."""
    ramp = torch.arange(256, dtype=torch.uint8).reshape(256, 1, 1).expand(256, 1, 3)
    return scale(to_tensor(ramp.numpy()))[:, :, 0]


class SmallResNet(torch.nn.Module):
    """torchvision's ResNet with bottlenecks, its names and blocks, but fewer channels."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(4)
        self.layer1 = self.stage(4, 4, 2, 1)
        self.layer2 = self.stage(16, 8, 1, 2)
        self.fc = torch.nn.Linear(32, CLASSES)

    @staticmethod
    def stage(from_, width, blocks, stride):
        short = torch.nn.Sequential(torch.nn.Conv2d(from_, 4 * width, 1, stride, bias=False),
                                    torch.nn.BatchNorm2d(4 * width))
        first = Bottleneck(from_, width, stride, short)
        return torch.nn.Sequential(first, *(Bottleneck(4 * width, width) for _ in range(blocks - 1)))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


RESNET = {"model_type": "resnet", "embedding_size": 4, "hidden_sizes": [16, 32], "depths": [2, 1],
          "layer_type": "bottleneck", "hidden_act": "relu", "downsample_in_bottleneck": False, "num_channels": 3,
          "id2label": {str(i): str(i) for i in range(CLASSES)}}


def lm(config):
    return lambda: transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager"), next_tokens


CASES = {
    "gpt2": (*lm(transformers.GPT2Config(vocab_size=VOCAB, n_positions=16, n_embd=16, n_layer=2, n_head=2, n_inner=40,
                                         resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, initializer_range=0.2)), {}),
    "llama": (*lm(transformers.LlamaConfig(**LLAMA)), {}),
    "llama-tied": (*lm(transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True, rms_norm_eps=1e-5)), {}),
    "llama-bf16": (*lm(transformers.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True)),
                   {"dtype": torch.bfloat16}),
    "llama3": (*lm(transformers.LlamaConfig(**LLAMA, rope_parameters=LLAMA3)), {}),
    "llama-lora": (*lm(transformers.LlamaConfig(**LLAMA)), {"lora": ["q_proj", "v_proj", "down_proj"]}),
    "llama-lora-bf16": (*lm(transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True)),
                        {"lora": ["q_proj", "v_proj", "down_proj"], "dtype": torch.bfloat16,
                         "adamw": {"lr": 1e-2, "betas": (0.9, 0.99), "eps": 1e-2}}),
    "gpt2-lora": (*lm(transformers.GPT2Config(vocab_size=VOCAB, n_positions=16, n_embd=16, n_layer=2, n_head=2,
                                              resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, initializer_range=0.2)),
                  {"lora": ["c_attn"]}),
    "mistral": (*lm(transformers.MistralConfig(**LLAMA, sliding_window=5, head_dim=6)), {}),
    "qwen2": (*lm(transformers.Qwen2Config(**LLAMA, tie_word_embeddings=True)), {}),
    "qwen2-window": (*lm(transformers.Qwen2Config(**LLAMA, use_sliding_window=True, sliding_window=5,
                                                  max_window_layers=1)), {}),
    "qwen3": (*lm(transformers.Qwen3Config(**LLAMA, head_dim=8)), {}),
    "bert": (lambda: transformers.BertForMaskedLM(transformers.BertConfig(**BERT)), hidden_tokens, {}),
    "bert-classes": (lambda: transformers.BertForSequenceClassification(
        transformers.BertConfig(**BERT, num_labels=CLASSES)), classes, {}),
    # With the other models' settings, ReLUs and poolings near a tie would make f32 differ from double precision by a
    # percent.
    "resnet": (SmallResNet, images, {"config": RESNET, "adamw": {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1.0}}),
}


def randomise(model):
    """Randomises everything that starts with equal elements: norms, biases, running statistics."""
    with torch.no_grad():
        for name, t in [*model.named_parameters(), *model.named_buffers()]:
            if t.is_floating_point() and t.dim() == 1 and "inv_freq" not in name:
                t.copy_(torch.rand(t.shape) * 0.5 + (0.75 if "var" in name or t.mean() > 0.5 else -0.25))


def adapters(model, targets):
    import peft
    fan = "c_attn" in targets
    model = peft.get_peft_model(model, peft.LoraConfig(r=3, lora_alpha=6, target_modules=targets, fan_in_fan_out=fan))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "lora_B" in name:
                p.copy_(torch.randn(p.shape) * 0.1)
    return model


def weights_of(model, lora):
    if lora:
        return {k.replace(".default", ""): v for k, v in model.named_parameters() if "lora_" in k}
    return {k: v for k, v in model.state_dict().items() if v.is_floating_point() and k not in tied(model)}


def tied(model):
    return set(getattr(model, "_tied_weights_keys", None) or []) if getattr(
        getattr(model, "config", None), "tie_word_embeddings", False) else set()


def train(model, loss_of, adamw):
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, **adamw)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        yield loss.item()
        loss.backward()
        optimizer.step()


def evaluate(model, loss_of, path):
    said, labels = [], []
    kept = model.register_forward_hook(lambda _m, _in, out: said.append(getattr(out, "logits", out)))
    cross_entropy = F.cross_entropy
    F.cross_entropy = lambda x, y: labels.append(y) or cross_entropy(x, y)
    with torch.no_grad():
        loss = loss_of(model.eval(), 0).item()
    F.cross_entropy = cross_entropy
    kept.remove()
    accuracy = (said[0].argmax(1) == labels[0]).double().mean().item()
    with open(path, "w") as f:
        f.write(f"{loss:.9g} {accuracy:.9g}\n")


def save(tensors, path):
    save_file({k: v.detach().float().contiguous().clone() for k, v in tensors.items()}, path)


def make(name, build, loss_of, extra):
    torch.manual_seed(sum(map(ord, name)))
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    model = build()
    randomise(model)
    model.to(extra.get("dtype", torch.float32))
    if "config" in extra:
        os.mkdir(folder)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(extra["config"], f, indent=2)
        save_file(model.state_dict(), os.path.join(folder, "model.safetensors"))
    else:
        model.save_pretrained(folder)
        for other in os.listdir(folder):
            if other not in ("config.json", "model.safetensors"):
                os.remove(os.path.join(folder, other))
    if loss_of is images:
        save({"scaled": scaled()}, os.path.join(folder, "scaled.safetensors"))
    lora = extra.get("lora")
    if lora:
        model = adapters(model, lora)
        save(weights_of(model, lora), os.path.join(folder, "before.safetensors"))
    if loss_of in (classes, images):
        evaluate(model.double(), loss_of, os.path.join(folder, "evaluation.txt"))
    logits = []
    model.double().register_forward_hook(lambda _m, _in, out: logits.append(getattr(out, "logits", out).detach()))
    losses = list(train(model, loss_of, extra.get("adamw", ADAMW)))
    save({"logits": logits[0].reshape(-1, logits[0].shape[-1])}, os.path.join(folder, "logits.safetensors"))
    save(weights_of(model, lora), os.path.join(folder, "after.safetensors"))
    with open(os.path.join(folder, "losses.txt"), "w") as f:
        f.writelines(f"{loss:.9g}\n" for loss in losses)
    print(f"{name}: loss {losses[0]:.6f} -> {losses[-1]:.6f}")


for case, parts in CASES.items():
    if len(sys.argv) < 2 or case in sys.argv[1:]:
        make(case, *parts)
print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}")
