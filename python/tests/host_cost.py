"""The host time that the block adds to an operator: microseconds, the median over the operators of
a step of a small GPT-2, which computes little.

usage: host_cost.py [ROUNDS]

It is each operator's median time in the block, minus that of the same operator in PyTorch (0 if
it calls none of that name), plus what a mode that does nothing adds to an operator.
"""

import collections
import logging
import statistics
import sys
import time
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from repops.torch import reproducible

now = time.thread_time_ns


class Timed(reproducible):
    """A block that measures each operator that the step calls."""

    def __init__(self):
        super().__init__(threads=1)
        self.times = collections.defaultdict(list)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        start = now()
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self.times[func].append(now() - start)
        return result


class Plain(TorchDispatchMode):
    """PyTorch, measured in the same way."""

    def __init__(self):
        super().__init__()
        self.times = collections.defaultdict(list)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        start = now()
        result = func(*args, **(kwargs or {}))
        self.times[func].append(now() - start)
        return result


class Nothing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    size = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 60, "n_positions": 16}
    model, ids = GPT2LMHeadModel(GPT2Config(**size)), torch.arange(8).reshape(1, 8)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimizer.step()

    return step


def spent(step):
    start = now()
    step()
    return now() - start


def medians(times):
    return {func: statistics.median(t) for func, t in times.items()}


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rounds, step = int(sys.argv[1]) if len(sys.argv) > 1 else 30, gpt2()
    torch.set_num_threads(1)
    own, plain, without, within = Timed(), Plain(), [], []
    for _ in range(rounds):
        for mode in (own, plain):
            with mode:
                step()
        without.append(spent(step))
        with Nothing():
            within.append(spent(step))
    ours, theirs = medians(own.times), medians(plain.times)
    count = sum(map(len, plain.times.values())) / rounds
    empty = (statistics.median(within) - statistics.median(without)) / count
    added = [ours[f] - theirs.get(f, 0) for f, t in own.times.items() for _ in t]
    each, most = statistics.median(added), statistics.quantiles(added, n=10)[8]
    print(
        f"{count:.0f} operators; added to one: median {(each + empty) / 1e3:.1f} us, of which an "
        f"empty mode {empty / 1e3:.1f}; to one of ten more than {(most + empty) / 1e3:.1f}"
    )


main()
