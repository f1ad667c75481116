"""Operators of ai.onnx.ml used by scikit-learn's linear models and neural networks."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .._library import Error
from ._run import Call
from ._table import operator, refuse

Tensor = torch.Tensor
ML = "ai.onnx.ml"


def _transformed(n: Call, x: Tensor) -> Tensor:
    how = n.get("post_transform", "NONE")
    if how == "LOGISTIC":
        return torch.sigmoid(x)
    if how == "SOFTMAX":
        return torch.softmax(x, -1)
    if how != "NONE":
        raise Error(f"post_transform {how} is refused; expected NONE, LOGISTIC or SOFTMAX")
    return x


def _linear(n: Call, x: Tensor, count: int) -> Tensor:
    weights = torch.tensor(n.need("coefficients", list), dtype=torch.float32)
    bias = n.get("intercepts", [])
    own = torch.tensor(bias, dtype=torch.float32) if bias else None
    return F.linear(x.to(torch.float32), weights.reshape(count, -1), own)


@operator("LinearRegressor", domain=ML)
def _regressor(n: Call, x: Tensor) -> Tensor:
    return _transformed(n, _linear(n, x, n.get("targets", 1)))


@operator("LinearClassifier", domain=ML, note="classes are integers")
def _classifier(n: Call, x: Tensor) -> Any:
    classes = n.get("classlabels_ints", [])
    if not classes:
        raise Error("its classes are texts; expected integers (classlabels_ints)")
    rows = len(n.need("coefficients", list)) // x.shape[-1]
    scores = _linear(n, x, rows)
    if rows == 1 and len(classes) == 2:
        scores = torch.cat([-scores, scores], -1)
    scores = _transformed(n, scores)
    table = torch.tensor(classes)
    if scores.shape[1] == 1:
        edge = 0.0 if n.get("post_transform", "NONE") == "NONE" else 0.5
        return torch.where(scores[:, 0] >= edge, table[0], torch.zeros_like(table[0])), scores
    return table.index_select(0, scores.argmax(1)), scores


@operator("Normalizer", domain=ML)
def _normalizer(n: Call, x: Tensor) -> Tensor:
    how, x = n.get("norm", "MAX"), x.to(torch.float32)
    if how == "MAX":
        size = x.abs().amax(1, keepdim=True)
    elif how == "L1":
        size = x.abs().sum(1, keepdim=True)
    else:
        size = (x * x).sum(1, keepdim=True).sqrt()
    return x / size.clamp(min=1e-30)


@operator("Scaler", domain=ML)
def _scaler(n: Call, x: Tensor) -> Tensor:
    offset = torch.tensor(n.get("offset", [0.0]), dtype=torch.float32)
    return (x.to(torch.float32) - offset) * torch.tensor(n.get("scale", [1.0]), dtype=torch.float32)


@operator("Imputer", domain=ML)
def _imputer(n: Call, x: Tensor) -> Tensor:
    wrong = n.get("replaced_value_float", math.nan)
    value = torch.tensor(n.get("imputed_value_floats", [0.0]), dtype=torch.float32)
    return torch.where(torch.isnan(x) if math.isnan(wrong) else x == wrong, value, x)


@operator("Binarizer", domain=ML)
def _binarizer(n: Call, x: Tensor) -> Tensor:
    return (x > n.get("threshold", 0.0)).to(x.dtype)


@operator("FeatureVectorizer", domain=ML)
def _vectorizer(n: Call, *inputs: Tensor) -> Tensor:
    return torch.cat([t.to(torch.float32).reshape(t.shape[0], -1) for t in inputs], 1)


refuse(
    "it makes maps, or reads texts; give scikit-learn's converter zipmap=False",
    "ZipMap",
    "DictVectorizer",
    "CastMap",
    "LabelEncoder",
    "CategoryMapper",
    "OneHotEncoder",
    domain=ML,
)
refuse(
    "trees and support vectors are no part of a program yet",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "SVMClassifier",
    "SVMRegressor",
    domain=ML,
)
