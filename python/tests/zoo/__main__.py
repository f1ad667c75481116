"""Prints a line for each model: its name, a hash of its weights, and losses."""

import logging
import os
import sys
import warnings

import torch

import repops.torch

from . import MODELS, OPTIMIZERS, digest, installed, train


def trained(name):
    torch.manual_seed(1)
    if name.startswith("optimizer_"):
        own, loss = MODELS["loss_l1"][1]()
        return own, train(own, loss, OPTIMIZERS[name.removeprefix("optimizer_")], 3)
    own, loss = MODELS[name][1]()
    return own, train(own, loss)


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(int(os.environ.get("TRAIN_THREADS", "1")))
    policy = os.environ.get("ZOO_LEFTOVERS", "error")
    for name in sys.argv[1:] or installed() + ["optimizer_" + n for n in OPTIMIZERS]:
        try:
            with repops.torch.reproducible(leftovers=policy) as block:
                own, losses = trained(name)
            print(name, digest(own), *[f"{v:.9g}" for v in losses], flush=True)
        except Exception as error:
            if policy == "error":
                raise
            print(name, "FAILED", f"{type(error).__name__}: {error}"[:300].replace("\n", " "))
        for (operator, reason, place), count in sorted(block.leftovers.items()):
            print(f"    {operator} {count} times at {place}: {reason}")


main()
