"""Unmodified models: one hash in all settings, and losses close to torch's in float64."""

import contextlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import train

from repops.torch import reproducible

HERE = Path(__file__).parent
FLAGS = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
# Instruction sets of torch and of the library that this machine has.
SETS = ["default", *[s for s, flag in (("avx2", "avx2"), ("avx512", "avx512bw")) if flag in FLAGS]]
OWN = ["scalar", *SETS[1:]]
SETTINGS = list(itertools.product(SETS, (1, 2), OWN))
if os.environ.get("REPOPS_QUICK"):  # each value of each setting, but not all combinations
    SETTINGS = [
        (SETS[i % len(SETS)], 1 + i % 2, OWN[-1 - i % len(OWN)]) for i in range(max(2, len(SETS)))
    ]


def run(setting):
    capability, threads, own = setting
    environment = {
        **os.environ,
        "ATEN_CPU_CAPABILITY": capability,
        "TRAIN_THREADS": str(threads),
        "REPOPS_CPU": own,
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [sys.executable, HERE / "train.py", *train.MODELS],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check(result):
    """Compares with the hashes of other machines and versions of torch, in hashes.txt.

    A release of transformers may change a model: GOLDEN_UPDATE=1 writes the file again."""
    file = HERE / "hashes.txt"
    if os.environ.get("GOLDEN_UPDATE"):
        file.write_text(result)
    assert result == file.read_text()


def test_one_setting_has_the_known_hashes():
    check(run(SETTINGS[0]))


def test_one_hash_in_all_settings():
    if len(SETTINGS) < 2:
        pytest.skip("this machine runs one setting")
    results = {setting: run(setting) for setting in SETTINGS}
    assert len(next(iter(results.values())).splitlines()) == 2 * len(train.MODELS)
    assert len(set(results.values())) == 1, results
    check(next(iter(results.values())))
    print(f"{len(results)} settings, one result:\n{next(iter(results.values()))}")


WITHOUT_DROPOUT = {
    "gpt2": {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
    "llama": {},
    "resnet": {"size": 64},
    "bert": {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0},
}


def trained(name, start, block, dtype, fused):
    """Losses of a model that starts with these weights, computed in the block."""
    with block:
        model, loss = train.MODELS[name](**WITHOUT_DROPOUT[name])
        model.load_state_dict(start.state_dict())
        model.to(dtype)
        for a, b in zip(
            model.buffers(), start.buffers()
        ):  # including buffers outside of the state dict
            a.copy_(b)
        return np.array(train.train(model, loss, fused))


@pytest.mark.parametrize("name", train.MODELS)
@pytest.mark.parametrize("fused", [True, False])
def test_losses_of_torch_in_float64(name, fused):
    torch.manual_seed(1)
    start = train.MODELS[name](**WITHOUT_DROPOUT[name])[0]
    plain = contextlib.nullcontext
    exact = trained(name, start, plain(), torch.float64, False)
    torch_error = np.abs(trained(name, start, plain(), torch.float32, False) - exact)
    error = np.abs(trained(name, start, reproducible(), torch.float32, fused) - exact)
    assert error[0] < 1e-5
    # AdamW's first steps follow the gradients' signs, so rounding errors grow in a ResNet.
    assert error.max() < max(1e-3, 4 * torch_error.max())


def test_a_model_is_initialised_alike():
    def digest():
        with reproducible():
            torch.manual_seed(3)
            return train.digest(train.gpt2()[0])

    assert digest() == digest()
