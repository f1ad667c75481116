"""Time series, transforms and complex numbers."""

from __future__ import annotations

import sys
import types

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .base import Made, empty, folder, hollow, images, importing, program

TSL = "thuml/Time-Series-Library"
SIZES = {
    "task_name": "long_term_forecast",
    "seq_len": 36,
    "label_len": 12,
    "pred_len": 24,
    "enc_in": 7,
    "dec_in": 7,
    "c_out": 7,
    "d_model": 16,
    "d_ff": 16,
    "n_heads": 2,
    "e_layers": 2,
    "d_layers": 2,
    "factor": 3,
    "top_k": 3,
    "num_kernels": 3,
    "moving_avg": 13,
    "embed": "timeF",
    "freq": "h",
    "dropout": 0.1,
    "activation": "gelu",
    "ratio": 0.5,
    "channel_independence": "0",
    "conv_channel": 8,
    "skip_channel": 8,
    "gcn_depth": 2,
    "propalpha": 0.3,
    "node_dim": 4,
    "subgraph_size": 3,
    "individual": False,
    "down_sampling_layers": 1,
    "down_sampling_window": 2,
    "down_sampling_method": "avg",
    "decomp_method": "dft_decomp",
    "use_norm": 1,
    "use_future_temporal_feature": 0,
}


def series(model: nn.Module) -> Made:
    n = SIZES["seq_len"], SIZES["label_len"] + SIZES["pred_len"]
    x, y = torch.randn(4, n[0], 7), torch.randn(4, n[1], 7)
    marks = torch.rand(4, n[0], 4) - 0.5, torch.rand(4, n[1], 4) - 0.5
    given = torch.cat([y[:, : SIZES["label_len"]], torch.zeros(4, SIZES["pred_len"], 7)], 1)

    def loss() -> torch.Tensor:
        found = model(x, marks[0], given, marks[1])[:, -SIZES["pred_len"] :]
        return F.mse_loss(found, y[:, -SIZES["pred_len"] :])

    return model, loss


@program(TSL, "FFT", "TimesNet", "Autoformer", "FiLM", "ETSformer", "FreTS", "MSGNet", "TimeMixer")
def of_series(name: str) -> Made:
    empty("matplotlib", "matplotlib.pyplot")
    return series(importing(TSL, f"models.{name}").Model(types.SimpleNamespace(**SIZES)))


@program(TSL, "FFT")
def FEDformer() -> Made:
    empty("matplotlib", "matplotlib.pyplot")
    model = importing(TSL, "models.FEDformer").Model
    sizes = {**SIZES, "d_model": 32, "n_heads": 8}
    return series(model(types.SimpleNamespace(**sizes), version="Fourier", modes=8))


@program(TSL, "FFT, lstsq, matrix_power")
def Koopa() -> Made:
    empty("data_provider", "data_provider.data_factory")
    module = importing(TSL, "models.Koopa")
    module.Model._get_mask_spectrum = lambda self, configs: torch.arange(3)  # reads the data set
    return series(module.Model(types.SimpleNamespace(**SIZES), dynamic_dim=8, hidden_dim=8))


# ---- transforms and complex numbers ----


@program("state-spaces/s4", "complex exp, quotients and products")
def S4D() -> Made:
    source = "state-spaces/s4"
    for name in ("src", "src.models", "src.models.nn"):
        hollow(name, folder(source) / name.replace(".", "/"))
    sys.modules["src.models.nn"].DropoutNd = importing(source, "src.models.nn.dropout").DropoutNd
    layer = importing(source, "models.s4.s4d").S4D
    model = nn.ModuleList([nn.Linear(3, 8), layer(8, 8, 0.1, lr=0.001), nn.Linear(8, 10)])
    x, labels = torch.randn(4, 64, 3), torch.randint(10, (4,))

    def loss() -> torch.Tensor:
        y, _ = model[1](model[0](x).transpose(1, 2))
        return F.cross_entropy(model[2](y.mean(-1)), labels)

    return model, loss


@program("state-spaces/s4", "complex128, eigh, complex exp", "S4, DPLR", "S4, diagonal")
def S4(name: str) -> Made:
    empty("pytorch_lightning", "pytorch_lightning.utilities")
    sys.modules["pytorch_lightning.utilities"].rank_zero_only = lambda f: f
    block = importing("state-spaces/s4", "models.s4.s4").S4Block
    kind = {"mode": "dplr"} if name.endswith("DPLR") else {"mode": "diag", "init": "diag-lin"}
    model = block(8, d_state=8, l_max=64, transposed=False, **kind)
    x = torch.randn(2, 64, 8)
    return model, lambda: model(x)[0].square().mean()


@program("neuraloperator/neuraloperator", "FFT, complex products")
def FNO() -> Made:
    source = "neuraloperator/neuraloperator"
    for name in ("neuralop", "neuralop.models", "neuralop.layers"):
        hollow(name, folder(source) / name.replace(".", "/"))
    model = importing(source, "neuralop.models.fno").FNO(
        n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2
    )
    x, y = torch.randn(2, 1, 16, 16), torch.randn(2, 1, 16, 16)
    return model, lambda: F.mse_loss(model(x), y)


@program("raoyongming/GFNet", "FFT")
def GFNet() -> Made:
    numpy_pad = types.ModuleType("numpy.lib.arraypad")
    numpy_pad.pad = np.pad  # type: ignore[attr-defined]
    sys.modules["numpy.lib.arraypad"] = numpy_pad
    model = importing("raoyongming/GFNet", "gfnet").GFNet(32, 8, 3, 10, 16, 2)
    return images(model)
