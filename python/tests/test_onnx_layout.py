"""Images stay in channels-last layout, as convolutions leave them, until an operator needs
another."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import repops.onnx  # noqa: E402
from repops.onnx._job import Answering  # noqa: E402

F = TensorProto.FLOAT
RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype("f4")


W, V = numbers(8, 3, 3, 3), numbers(4, 8, 1, 1)
S = numbers(8, 8, 1, 1)


def gated():
    """Squeeze and excitation."""
    return [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("GlobalAveragePool", ["a"], ["m"]),
        helper.make_node("Conv", ["m", "s"], ["t"]),
        helper.make_node("Sigmoid", ["t"], ["g"]),
        helper.make_node("Mul", ["g", "a"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["y"]),
    ]


def joined():
    return [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Conv", ["c", "u"], ["y"]),
    ]


def shifted():
    """Values for each channel, which have fewer dimensions than the image."""
    return [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "z"], ["b"]),
        helper.make_node("Div", ["b", "two"], ["c"]),
        helper.make_node("Conv", ["c", "v"], ["y"]),
    ]


def conv(x, w):
    n, _, h, wide = x.shape
    k = w.shape[2]
    rows = range(h - k + 1), range(wide - k + 1)
    made = [
        [np.einsum("ncij,ocij->no", x[:, :, i : i + k, j : j + k], w) for j in rows[1]]
        for i in rows[0]
    ]
    return np.moveaxis(np.array(made), (0, 1), (2, 3))


Z, U = numbers(8, 1, 1), numbers(4, 16, 1, 1)


def wanted(nodes, x):
    a = conv(x, W)
    if nodes is gated:
        return conv(a / (1 + np.exp(-conv(a.mean((2, 3), keepdims=True), S))), V)
    if nodes is joined:
        return conv(np.concatenate([a, np.maximum(a, 0)], 1), U)
    return conv((a + Z) / 2, V)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("nodes", [gated, joined, shifted])
def test_images_are_not_turned_between_convolutions(nodes, batch, command, tmp_path):
    constants = {"w": W, "v": V, "s": S, "u": U, "z": Z, "two": np.float32(2)}
    graph = helper.make_graph(
        nodes(), "g",
        [helper.make_tensor_value_info("x", F, [batch, 3, 9, 7])],
        [helper.make_tensor_value_info("y", F, [batch, 4, 7, 5])],
        [numpy_helper.from_array(np.asarray(t), k) for k, t in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x = numbers(batch, 3, 9, 7)
    answering = Answering(repops.onnx.load(tmp_path / "m.onnx"), {"x": x}, tmp_path / "job")
    np.testing.assert_allclose(answering.first[0].numpy(), wanted(nodes, x), rtol=1e-4, atol=1e-5)
    answering.capture()
    answering.check(1, command)
    names = [n.operator.name for n in answering.job._captured.program.step.nodes]
    turned = names.count("transpose")
    assert turned <= 2 + (batch > 1 and nodes is gated), names  # only the input and the output
