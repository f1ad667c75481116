"""Graph neural networks with sparse matrices."""

from __future__ import annotations

import contextlib
import os
import tempfile
import types
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .base import PACKAGES, Made, empty, folder, hollow, importing, program, script


def cora(path: Path, nodes: int = 1500) -> None:
    """Writes random files in the format of the Cora data set."""
    rng = np.random.default_rng(0)
    path.mkdir(parents=True)
    words = rng.integers(0, 2, (nodes, 12))
    lines = [f"{i}\t" + "\t".join(map(str, w)) + f"\tclass{i % 7}" for i, w in enumerate(words)]
    (path / "cora.content").write_text("\n".join(lines) + "\n")
    edges = {(int(a), int(b)) for a, b in rng.integers(0, nodes, (3000, 2)) if a != b}
    (path / "cora.cites").write_text("".join(f"{a}\t{b}\n" for a, b in sorted(edges)))


@program("tkipf/pygcn", "sparse mm, sum of float64")
def pygcn() -> Made:
    with tempfile.TemporaryDirectory() as where, contextlib.chdir(where):
        cora(Path("data/cora"))
        os.makedirs("run")
        os.chdir("run")
        return script("tkipf/pygcn", "pygcn/train.py", "--epochs", "2")["model"]


@program("Diego999/pyGAT", "sparse mm, sum of float64")
def pyGAT() -> Made:
    with tempfile.TemporaryDirectory() as where, contextlib.chdir(where):
        cora(Path("data/cora"))
        options = ["--epochs", "2", "--sparse", "--hidden", "2", "--nb_heads", "2"]
        return script("Diego999/pyGAT", "train.py", *options)["model"]


@program("pytorch/examples", "sparse mm")
def gcn() -> Made:
    module = importing("pytorch/examples", "main", "gcn")
    with tempfile.TemporaryDirectory() as where:
        cora(Path(where) / "cora", 200)
        features, labels, adjacency = module.load_cora(where + "/cora")
    model = module.GCN(features.shape[1], 8, 7, True, 0.5)
    return model, lambda: F.nll_loss(model(features, adjacency)[:100], labels[:100])


def adjacency(nodes: int = 60) -> torch.Tensor:
    places = torch.from_numpy(np.random.default_rng(1).integers(0, nodes, (2, 4 * nodes)))
    return torch.sparse_coo_tensor(places, torch.full([4 * nodes], 0.25), (nodes, nodes)).coalesce()


@program("zfjsail/gae-pytorch", "sparse mm")
def gae() -> Made:
    source = "zfjsail/gae-pytorch"
    hollow("gae", folder(source) / "gae")
    model = importing(source, "gae.model").GCNModelVAE(12, 8, 4, 0.1)
    cost = importing(source, "gae.optimizer").loss_function
    x, a = torch.randn(60, 12), adjacency()
    labels = (a.to_dense() > 0).float()

    def loss() -> torch.Tensor:
        found, mu, logvar = model(x, a)
        return cost(found, labels, mu, logvar, 60, 0.6, torch.tensor(5.0))

    return model, loss


@program("gusye1234/LightGCN-PyTorch", "sparse mm")
def LightGCN() -> Made:
    empty("world", "dataloader")
    config = {"latent_dim_rec": 8, "lightGCN_n_layers": 3, "keep_prob": 0.6, "A_split": False}
    config |= {"pretrain": 0, "dropout": 1}
    data = types.SimpleNamespace(n_users=20, m_items=40, getSparseGraph=adjacency)
    model = importing("gusye1234/LightGCN-PyTorch", "model", "code").LightGCN(config, data)
    users, items, others = (torch.randint(n, (16,)) for n in (20, 40, 40))

    def loss() -> torch.Tensor:
        own, size = model.bpr_loss(users, items, others)
        return own + 1e-4 * size

    return model, loss


@program(PACKAGES, "sparse mm", "torch_geometric: GCN")
def geometric(name: str) -> Made:
    from torch_geometric.nn import GCNConv

    layers = nn.ModuleList([GCNConv(12, 8), GCNConv(8, 7)])
    x, labels, edges = torch.randn(60, 12), torch.randint(7, (60,)), adjacency().to_sparse_csr()
    return layers, lambda: F.cross_entropy(layers[1](layers[0](x, edges).relu(), edges), labels)
