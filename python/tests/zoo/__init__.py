"""Small versions of models that people train, unmodified: a hash and losses of each.

usage: python3 -m zoo [MODEL...] ; without names, of all whose packages are installed
TRAIN_THREADS is the number of threads; ZOO_LEFTOVERS=list lists leftovers instead of failing.
"""

from . import chosen, images, layers, media, more, packages, text  # noqa: F401
from .base import MODELS, digest, installed, train
from .parts import OPTIMIZERS

__all__ = ["MODELS", "OPTIMIZERS", "digest", "installed", "train"]
