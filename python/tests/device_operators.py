"""Which of PyTorch's operators the models of `zoo` call on a device, and how each is computed.

usage: device_operators.py [--kept FOLDER] [--seconds N] [MODEL...] > device_operators.txt

--kept saves the operators of each model in the folder, so that a run that was stopped can go on.
The list ends with the models that ran and with those that could not, and why.

PyTorch's own kernels compute, on the device "simt", which has CUDA's list of operators: only the
operators called matter here, forward and backward. --fake: only forward, on "cuda" tensors that
have no memory (their backward pass would need a driver).
"""

import argparse
import collections
import contextlib
import logging
import os
import resource
import textwrap
import warnings
from pathlib import Path

import simt
import torch
import zoo
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils import rnn
from torch.utils._python_dispatch import TorchDispatchMode
from zoo.parts import ACTIVATIONS

from repops.torch import _bits, _conversions, _devices, _editions, reproducible

SECONDS = 40  # of processor time for each model, unless --seconds gives another number


class Survey(reproducible):
    """A block that lets PyTorch compute the device's operators, and collects them in `called`."""

    def __init__(self):
        super().__init__(leftovers="list")
        self.called = set()

    def _on_device(self, device, func, args, kwargs):
        self.called.add(func)
        if func.namespace == "repops":
            return super()._on_device(device, func, args, kwargs)
        try:
            return func(*args, **kwargs)
        except NotImplementedError:  # PyTorch's CPU kernels do not accept it
            return super()._on_device(device, func, args, kwargs)


class Names(TorchDispatchMode):
    """Collects the operators of tensors without memory."""

    def __init__(self):
        super().__init__()
        self.called = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if _devices.device_of(args) is not None:
            self.called.add(func)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def everything_on(device):
    """Makes tensors on the device by default, including those from numpy. Lengths of sequences stay
    in the CPU's memory: PyTorch takes them only there."""
    from_numpy, pack = torch.from_numpy, rnn.pack_padded_sequence
    torch.from_numpy = lambda x: from_numpy(x).to(device)
    rnn.pack_padded_sequence = lambda x, lengths, *more, **how: pack(x, lengths.cpu(), *more, **how)
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)
        torch.from_numpy, rnn.pack_padded_sequence = from_numpy, pack


def called_by(name):
    place = simt.open_device()
    with Survey() as block, everything_on(place):
        torch.manual_seed(1)
        own, loss = zoo.MODELS[name][1]()
        nn.ModuleList(ACTIVATIONS).to(place)  # made when the zoo was imported, and no part of `own`
        zoo.train(own, loss, steps=1)
    return block.called


def called_by_fake(name):
    with FakeTensorMode(allow_non_fake_inputs=True), everything_on("cuda"), Names() as names:
        own, loss = zoo.MODELS[name][1]()
        own.train()
        loss(0)
    return names.called


def how(func):
    """Returns how an operator is computed on a device."""
    route = _editions.resolve(func)
    if route in _editions.reasons:
        return f"refused: {_editions.reasons[route]}"
    known = {
        _editions.plain: "torch's",
        _editions.composite: "taken apart",
        _editions.converted: "converted",
        _editions.by_host: "the CPU's",
        _editions.ordered: "torch's of integers, else the CPU's",
    }
    if _conversions.converts(func):
        return "torch's, of one type"
    if func._schema.name.removeprefix("aten::") in _bits.RESOLVED:
        return "torch's"
    return known.get(route, "the library's")


def in_a_process(survey, name, seconds):
    """Returns the names of a model's operators or a line "# REASON". They are found in a child
    process, which may take so many seconds."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        with os.fdopen(write, "w") as out:
            try:
                out.write("".join(f"{func}\n" for func in survey(name)))
            except Exception as error:
                text = f"{type(error).__name__}: {error}".replace("\n", " ")
                out.write(f"# {text.split('. ')[0][:200]}\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        found = lines.read()
    _, status = os.waitpid(child, 0)
    return f"# it ended by signal {status & 127}\n" if status else found


def of_model(survey, name, given):
    """Returns a model's operators, from the folder --kept if they are there."""
    file = given.kept and Path(given.kept) / name
    if file and file.exists():
        return file.read_text().splitlines()
    found = in_a_process(survey, name, given.seconds)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(found)
    return found.splitlines()


def edition(name):
    func = torch.ops
    for part in name.split("."):
        func = getattr(func, part)
    return how(func)


def _wrapped(words):
    lines = textwrap.wrap(" ".join(words), 97, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for line in lines]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--kept")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("models", nargs="*")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    simt.open_device()  # before autograd counts the devices
    with contextlib.suppress(ImportError):
        import torchvision  # noqa: F401  its operators have names then
    survey, found = called_by_fake if given.fake else called_by, collections.Counter()
    asked, installed = [], zoo.installed()
    missing = [] if given.models else [n for n in zoo.MODELS if n not in installed]
    failed = [f"{n}: {zoo.MODELS[n][0]} is not installed" for n in missing]
    for name in given.models or installed:
        lines = of_model(survey, name, given)
        reasons = [line.removeprefix("# ") for line in lines if line.startswith("#")]
        failed += [f"{name}: {reason}" for reason in reasons]
        if not reasons:
            found.update(set(lines))
            asked.append(name)
    for name, count in sorted(found.items()):
        print(f"{name} | {count} | {edition(name)}")
    print("\n".join(["", f"# {len(asked)} models:", *_wrapped(sorted(asked))]))
    if failed:
        print("\n".join(["#", f"# {len(failed)} could not be asked:", *[f"# {f}" for f in failed]]))


if __name__ == "__main__":
    main()
