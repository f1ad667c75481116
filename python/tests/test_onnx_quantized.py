"""8-bit models compared with onnxruntime: sums are equal, requantized values within one unit."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import repops.onnx  # noqa: E402
from repops.onnx._job import Answering  # noqa: E402

RNG = np.random.default_rng(0)
KINDS = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}


def whole(kind, *shape):
    limits = np.iinfo(kind)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(kind)


def both(node, data, constants, out, command, place):
    """The results of onnxruntime and of the job."""
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in data.items()
    ]
    dims = [None] * next(iter(data.values())).ndim
    result = helper.make_tensor_value_info("y", out, dims)
    held = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph([node], "g", ports, [result], held)
    sets = [helper.make_opsetid("", 20)]
    path = place / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()
    )
    theirs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    answering = Answering(repops.onnx.load(path), data, place / "job")
    answering.capture()
    answering.check(1, command)
    return theirs.run(None, data)[0], answering.first[0].numpy()


def apart(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    return int(np.abs(a.astype(np.int64) - b).max())


@pytest.mark.parametrize("terms", [7, 258, 1000])
def test_sums_of_products_are_equal(terms, command, tmp_path):
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    data = {"a": whole(np.uint8, 5, terms)}
    constants = {"b": whole(np.int8, terms, 6), "za": np.uint8(3), "zb": np.int8(-2)}
    constants = {k: np.asarray(v) for k, v in constants.items()}
    theirs, ours = both(node, data, constants, TensorProto.INT32, command, tmp_path)
    assert apart(theirs, ours) == 0


@pytest.mark.parametrize("channels", [3, 64])
def test_sums_of_convolutions_are_equal(channels, command, tmp_path):
    node = helper.make_node("ConvInteger", ["x", "w", "zx"], ["y"], pads=[1, 1, 1, 1])
    data = {"x": whole(np.uint8, 2, channels, 9, 9)}
    constants = {"w": whole(np.uint8, 4, channels, 3, 3), "zx": np.asarray(np.uint8(120))}
    theirs, ours = both(node, data, constants, TensorProto.INT32, command, tmp_path)
    assert apart(theirs, ours) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_are_requantised_within_one_unit(kind, command, tmp_path):
    names = ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    numbers = {"sa": 0.011, "sb": 0.023, "sy": 0.9}
    constants = {k: np.asarray(v, "f4") for k, v in numbers.items()}
    middle = 128 if kind is np.uint8 else 3
    zeros = {"za": middle, "zb": middle + 2, "zy": middle + 5}
    constants |= {k: np.asarray(kind(v)) for k, v in zeros.items()}
    constants["b"] = whole(kind, 300, 40)
    theirs, ours = both(
        node, {"a": whole(kind, 30, 300)}, constants, KINDS[kind], command, tmp_path
    )
    assert apart(theirs, ours) <= 1 and len(np.unique(ours)) > 50


def test_images_are_requantised_within_one_unit(command, tmp_path):
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1], strides=[2, 2])
    constants = {"sx": np.asarray(0.02, "f4"), "sy": np.asarray(0.8, "f4")}
    constants |= {"zx": np.asarray(np.uint8(128)), "zy": np.asarray(np.uint8(120))}
    constants |= {"sw": RNG.uniform(0.001, 0.02, 8).astype("f4"), "zw": np.zeros(8, np.int8)}
    constants |= {"w": whole(np.int8, 8, 40, 3, 3), "b": RNG.integers(-900, 900, 8).astype("i4")}
    data = {"x": whole(np.uint8, 2, 40, 12, 12)}
    theirs, ours = both(node, data, constants, TensorProto.UINT8, command, tmp_path)
    assert apart(theirs, ours) <= 1 and len(np.unique(ours)) > 50
