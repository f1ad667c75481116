"""Chooses models for the zoo by a rule, without looking at them: every k-th name of the
registries of torchvision, timm and transformers, in this order, with k such that there are 40.

usage: python3 registries.py > registries.txt, with the versions that registries.txt names
"""

import timm
import torchvision
import transformers
from transformers.models.auto import modeling_auto

COUNT = 40


def registries():
    """(package, name) of all models, alphabetical within a package."""
    found = [("torchvision", name) for name in sorted(torchvision.models.list_models())]
    found += [("timm", name) for name in sorted(timm.list_models())]
    return found + [("transformers", name) for name in sorted(modeling_auto.MODEL_MAPPING_NAMES)]


def main():
    names = registries()
    k = len(names) // COUNT
    for package in (torchvision, timm, transformers):
        print(f"# {package.__name__} {package.__version__.split('+')[0]}")
    print(f"# k = {k}, of {len(names)} names")
    for package, name in names[k - 1 :: k][:COUNT]:
        print(package, name)


if __name__ == "__main__":
    main()
