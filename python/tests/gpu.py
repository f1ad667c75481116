"""Models trained in the block on a GPU and on the CPU: are the hashes after ten steps equal? If
not, the first operator that differs is named. Step times stand beside those of plain PyTorch in
FP32, and how often PyTorch waited for the device in a step.

usage: gpu.py [--device cuda:0] [--seconds 240] [--steps 10] [--out FILE.json] [--small] [MODEL...]

REPOPS_CUDA_LIBRARY, or the place beside librepops, has the library for CUDA (`make cuda`). Models
that do not fit into the time are named; one that fails is told of, and the others go on. The file
is written after each. `--small --device simt` runs small ones in the simulator.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import time
import warnings

import torch
from torch.nn import functional as F

import repops.torch
from repops.torch import Trace, diff, reproducible


def _language(model, vocabulary, small):
    rows, tokens = (1, 8) if small else (2, 64)
    ids = (torch.arange(rows * tokens) * 7 % min(vocabulary, 2000)).reshape(rows, tokens)
    return model, [ids], lambda ids: model(ids, labels=ids).loss


def gpt2(small):
    from transformers import GPT2Config, GPT2LMHeadModel

    size = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 60} if small else {}
    config = GPT2Config(**size)
    return _language(GPT2LMHeadModel(config), config.vocab_size, small)


SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "vocab_size": 60}
SMOLLM = {"num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536}


def llama(small):
    from transformers import LlamaConfig, LlamaForCausalLM

    heads = {"num_attention_heads": 4 if small else 9, "num_key_value_heads": 2 if small else 3}
    config = LlamaConfig(**(SMALL if small else {**SMOLLM, "vocab_size": 49152}), **heads)
    return _language(LlamaForCausalLM(config), config.vocab_size, small)


def bert(small):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(**SMALL, num_attention_heads=4) if small else BertConfig()
    return _language(BertForMaskedLM(config), config.vocab_size, small)


def resnet(small):
    import torchvision
    from torchvision.models.resnet import Bottleneck, ResNet

    tiny = {"num_classes": 5, "width_per_group": 4}
    model = ResNet(Bottleneck, [1, 1, 1, 1], **tiny) if small else torchvision.models.resnet50()
    batch, size = (2, 32) if small else (4, 128)
    given = [torch.randn(batch, 3, size, size), torch.arange(batch)]
    return model, given, lambda x, y: F.cross_entropy(model(x), y)


MODELS = {f.__name__: f for f in (gpt2, llama, bert, resnet)}


class Training:
    """A model, its data and its optimizer on one device. All random numbers come from one seed."""

    def __init__(self, name, place, small):
        torch.manual_seed(1)
        self.model, given, self._loss_of = MODELS[name](small)
        self.model.to(place).train()
        getattr(self.model, "tie_weights", int)()
        self._given = [t.to(place) for t in given]
        self._optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)

    def step(self):
        loss = self._loss_of(*self._given)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()


def wait(place):
    if torch.device(place).type == "cuda":
        torch.cuda.synchronize()


def timed(training, place, steps):
    """The milliseconds of each step."""
    times = []
    for _ in range(steps):
        wait(place)
        start = time.perf_counter()
        training.step()
        wait(place)
        times.append(1e3 * (time.perf_counter() - start))
    return times


def waits(training, place):
    """How often PyTorch itself waits for the device in a step."""
    if torch.device(place).type != "cuda":
        return None
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            training.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(w.message) for w in seen)


def in_block(name, place, given):
    """The hash after the steps, the median time of a step, and the waits in one more step."""
    with reproducible():
        training = Training(name, place, given.small)
        times = timed(training, place, given.steps)
        found = repops.torch.hash(training.model)
        return found, statistics.median(times), waits(training, place)


def plain(name, place, given):
    training = Training(name, place, given.small)
    return statistics.median(timed(training, place, given.steps))


def traced(training, state):
    """The operators of a step that begins with this generator state, and the state after it."""
    torch.set_rng_state(state)
    with Trace(training.model) as found:
        training.step()
    return found, torch.get_rng_state()


def first_difference(name, place, given, end):
    """Trains on the device and the CPU again, and compares each step operator by operator."""
    with reproducible():
        trainings = [Training(name, p, given.small) for p in (place, "cpu")]
        states = [torch.get_rng_state()] * 2
        for step in range(given.steps):
            if time.monotonic() > end:
                return f"none before step {step}, and the time is over"
            found = [traced(t, s) for t, s in zip(trainings, states)]
            states = [state for _, state in found]
            difference = diff(found[0][0], found[1][0])
            if difference:
                return f"step {step}, {difference}"
    return "no operator of a step differs"


def compared(name, place, given, end):
    theirs, own = in_block(name, place, given), in_block(name, "cpu", given)
    result = {
        "model": name,
        "equal": theirs[0] == own[0],
        "hash": theirs[0],
        "step_ms": round(theirs[1], 3),
        "plain_step_ms": round(plain(name, place, given), 3),
        "cpu_step_ms": round(own[1], 3),
        "waits": theirs[2],
    }
    if not result["equal"]:
        result["first_difference"] = first_difference(name, place, given, end)
    return result


def tried(name, place, given, end):
    try:
        return compared(name, place, given, end)
    except Exception as error:  # device time is short: go on with the other models
        text = f"{type(error).__name__}: {error}".splitlines()[0][:500]
        return {"model": name, "equal": False, "error": text}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    given = parser.parse_args()
    if given.steps < 1:
        parser.error(f"--steps is {given.steps}; expected 1 or more")
    for name in given.models:
        if name not in MODELS:
            parser.error(f"there is no model {name}; expected one of {list(MODELS)}")
    return given


def opened(name):
    """The device and its name."""
    if name == "simt":
        import simt

        return simt.open_device(), "simulated"
    if not torch.cuda.is_available():
        sys.exit(f"gpu.py: PyTorch has no CUDA device here; expected {name}")
    return name, torch.cuda.get_device_name(name)


def save(file, record):
    with open(f"{file}.new", "w") as out:
        out.write(json.dumps(record, indent=1) + "\n")
    os.replace(f"{file}.new", file)


def main():
    given = options()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    end = time.monotonic() + given.seconds
    place, device = opened(given.device)
    record = {"device": device, "torch": torch.__version__, "cuda": torch.version.cuda}
    record.update(steps=given.steps, small=given.small, left_out=[], results=[])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name in given.models or MODELS:
        if time.monotonic() > end:
            print(f"{name}: left out, {given.seconds:g} s are over")
            record["left_out"].append(name)
        else:
            record["results"].append(tried(name, place, given, end))
            print(json.dumps(record["results"][-1]), flush=True)
        if given.out:
            save(given.out, record)
    results = record["results"]
    return 0 if results and all(r["equal"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
