"""Programs of public repositories: where their sources are, and how to import them."""

from __future__ import annotations

import importlib
import runpy
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch
from torch import nn
from torch.nn import functional as F

REPOSITORIES = {
    "thuml/Time-Series-Library": "4e938a1767106324dd753b2a44832bf870a0252e",
    "state-spaces/s4": "e757cef57d89e448c413de7325ed5601aceaac13",
    "rtqichen/torchdiffeq": "657943acefa826ef04c025ebeb1ff5e9d60dc268",
    "lucidrains/denoising-diffusion-pytorch": "faed4db28e724735323fa91c70aa9b28a6e1cbac",
    "lucidrains/vit-pytorch": "69d24fe9e3024c0d4b02761123b8583a24ebed1e",
    "pytorch/examples": "77f55b912142e11fcfdf5b530231fb9c52f181e8",
    "tkipf/pygcn": "1600b5b748b3976413d1e307540ccc62605b4d6d",
    "neuraloperator/neuraloperator": "93d3f0633e048c915004cd782cb339acf06e1157",
    "Blealtan/efficient-kan": "7b6ce1c87f18c8bc90c208f6b494042344216b11",
    "wolny/pytorch-3dunet": "a33e2c7038a0b51296ca4f99b0f0ed4b61740705",
    "raoyongming/GFNet": "2de48b626ea805de82a7f389fed930af1ae0340d",
    "Diego999/pyGAT": "3664f2dc90cbf971564c0bf186dc794f12446d0c",
    "zfjsail/gae-pytorch": "c0b95cac8eb2928d0b5d6d65fee938fe97f60262",
    "gusye1234/LightGCN-PyTorch": "947ca2b3b1d2d3545b114145710cb06c4e57b3d2",
}
PACKAGES = "a package"  # in place of a repository, for a program of an installed package

PROGRAMS: dict[str, tuple[str, str, Callable[..., Any]]] = {}
Made = Any  # (model, loss of a step)


def program(
    source: str, why: str, *names: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a program with its repository and the operators that it exercises. With names it
    registers one program for each, and the function gets the name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names or (function.__name__,):
            PROGRAMS[name] = (source, why, (lambda n=name: function(n)) if names else function)
        return function

    return register


ROOT: list[Path] = []  # the folder of all repositories


def folder(source: str) -> Path:
    return ROOT[0] / source.replace("/", "+")


def importing(source: str, name: str, under: str = "") -> Any:
    """Imports a module of a repository."""
    sys.path.insert(0, str(folder(source) / under))
    return importlib.import_module(name)


def empty(*names: str) -> None:
    """Replaces modules that training does not use."""
    for name in names:
        sys.modules[name] = MagicMock(name=name, __spec__=ModuleSpec(name, None))


def hollow(name: str, path: Path) -> None:
    """Adds a package without running its __init__."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module


def script(source: str, path: str, *options: str) -> dict[str, Any]:
    """Runs a file of the repository as a program; returns its global names."""
    file = folder(source) / path
    sys.argv = [str(file), *options]
    sys.path[:0] = [str(file.parent), str(folder(source))]
    return runpy.run_path(str(file), run_name="__main__")


def images(model: nn.Module, *shape: int) -> Made:
    x, labels = torch.randn(*(shape or (2, 3, 32, 32))), torch.randint(10, (2,))
    return model, lambda: F.cross_entropy(model(x), labels)
