"""A model of JAX: a stored file by its exporter, and a new one if JAX is installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
import repops.onnx  # noqa: E402
from repops.onnx._job import Answering  # noqa: E402

KEPT, CLOSE = Path(__file__).parent / "onnx_jax", 1e-4


def what_the_source_gives(folder, job, command):
    numbers = np.load(folder / "numbers.npz")
    model = repops.onnx.load(folder / "model.onnx")
    answering = Answering(model, {model.inputs[0].name: numbers["x"]}, job)
    far = np.abs(answering.first[0].numpy() - numbers["y"]).max()
    assert far <= CLOSE * np.abs(numbers["y"]).max()
    answering.capture()
    answering.check(1, command)


def test_the_kept_model_gives_what_jax_gave_and_errors_are_convicted(command, tmp_path):
    from test_onnx_models import a_wrong_element_is_convicted

    what_the_source_gives(KEPT, tmp_path / "job", command)
    a_wrong_element_is_convicted(command, tmp_path / "job", tmp_path, 0)


def test_a_new_model_gives_what_jax_gives(command, tmp_path):
    pytest.importorskip("jax2onnx")
    found = importlib.util.spec_from_file_location("make", KEPT / "make.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.make(tmp_path)
    what_the_source_gives(tmp_path, tmp_path / "job", command)
