"""Loop and Scan of constant length are repeats of the job, as loops of a captured step are."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import repops.onnx  # noqa: E402
from repops.onnx._job import Answering  # noqa: E402

TURNS, WIDTH = 300, 6
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def _value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def _cell(more=()):
    """h = tanh(h w + x) / 2 + h / 2."""
    return [
        helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Add", ["p", "x"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Mul", ["t", "half"], ["u"]),
        helper.make_node("Mul", ["h", "half"], ["v"]),
        helper.make_node("Add", ["u", "v"], ["next"]),
        helper.make_node("Identity", ["next"], ["line"]),
        *more,
    ]


def scan():
    inputs = [_value("h", F, [1, WIDTH]), _value("x", F, [1, WIDTH])]
    outputs = [_value("next", F, [1, WIDTH]), _value("line", F, [1, WIDTH])]
    body = helper.make_graph(_cell(), "body", inputs, outputs)
    return helper.make_node(
        "Scan", ["start", "xs"], ["last", "lines"], body=body, num_scan_inputs=1
    )


def loop():
    more = [helper.make_node("Identity", ["going"], ["on"])]
    inputs = [_value("i", I, []), _value("going", B, []), _value("h", F, [1, WIDTH])]
    outputs = [_value("on", B, []), _value("next", F, [1, WIDTH]), _value("line", F, [1, WIDTH])]
    nodes = [helper.make_node("Gather", ["xs", "i"], ["x"]), *_cell(more)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    return helper.make_node("Loop", ["turns", "", "start"], ["last", "lines"], body=body)


def written(node, place):
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.standard_normal((WIDTH, WIDTH)).astype("f4") / np.float32(WIDTH),
        "half": np.float32(0.5),
        "turns": np.int64(TURNS),
    }
    graph = helper.make_graph(
        [node], "g",
        [_value("start", F, [1, WIDTH]), _value("xs", F, [TURNS, 1, WIDTH])],
        [_value("last", F, [1, WIDTH]), _value("lines", F, [TURNS, 1, WIDTH])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (place / "m.onnx").write_bytes(model.SerializeToString())
    data = {
        "start": rng.standard_normal((1, WIDTH)).astype("f4"),
        "xs": rng.standard_normal((TURNS, 1, WIDTH)).astype("f4"),
    }
    return data, constants["w"]


def wanted(data, w):
    h, lines = data["start"].astype("f8"), []
    for x in data["xs"]:
        h = np.tanh(h @ w + x) / 2 + h / 2
        lines.append(h)
    return h, np.stack(lines)


@pytest.mark.parametrize("node", [scan, loop])
def test_turns_are_a_repeat(node, command, tmp_path):
    data, w = written(node(), tmp_path)
    answering = Answering(repops.onnx.load(tmp_path / "m.onnx"), data, tmp_path / "job")
    for got, want in zip(answering.first, wanted(data, w)):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-6)
    answering.capture()
    answering.check(1, command)
    step = answering.job._captured.program.step
    assert max(r.count for r in step.repeats) > TURNS - 20
    stored = len(step.nodes) - sum((r.count - 1) * r.size for r in step.repeats)
    assert stored < len(step.nodes) / 10
