"""Loop and Scan of constant length become repeats of the job, like loops of a captured step."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from conftest import called  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import repops.onnx  # noqa: E402
from repops.onnx._job import Answering  # noqa: E402

TURNS, WIDTH = 400, 6
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


def _filter():
    """h = h / 2 + x, which only elementwise operators and the next iteration read."""
    return [
        helper.make_node("Mul", ["h", "half"], ["v"]),
        helper.make_node("Add", ["v", "x"], ["next"]),
        helper.make_node("Tanh", ["next"], ["t"]),
        helper.make_node("Mul", ["t", "x"], ["line"]),
    ]


def scan(cell=_cell):
    inputs = [_value("h", F, [1, WIDTH]), _value("x", F, [1, WIDTH])]
    outputs = [_value("next", F, [1, WIDTH]), _value("line", F, [1, WIDTH])]
    body = helper.make_graph(cell(), "body", inputs, outputs)
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


def filtered(data, w):
    h, lines = data["start"].astype("f8"), []
    for x in data["xs"]:
        h = h / 2 + x
        lines.append(np.tanh(h) * x)
    return h, np.stack(lines)


def recurrent(data, w):
    h, lines = data["start"].astype("f8"), []
    for x in data["xs"]:
        h = np.tanh(h @ w + x) / 2 + h / 2
        lines.append(h)
    return h, np.stack(lines)


CASES = {
    "scan": (scan, recurrent),
    "loop": (loop, recurrent),
    "scan of elements": (lambda: scan(_filter), filtered),
}


@pytest.mark.parametrize("case", CASES)
def test_turns_are_a_repeat(case, command, tmp_path):
    node, wanted = CASES[case]
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


def test_times_of_a_recurrent_layer_are_a_repeat(command, tmp_path):
    """The first iteration also reads the initial state."""
    times, size = 100, 4
    rng = np.random.default_rng(0)
    w, r = (rng.standard_normal((1, 4 * size, size)).astype("f4") / 2 for _ in range(2))
    x = rng.standard_normal((times, 1, size)).astype("f4")
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=size)], "g",
        [_value("x", F, [times, 1, size])], [_value("y", F, [times, 1, 1, size])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(r, "r")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    answering = Answering(repops.onnx.load(tmp_path / "m.onnx"), {"x": x}, tmp_path / "job")
    h, c, lines = np.zeros((1, size)), np.zeros((1, size)), []
    for now in x:
        i, o, f, g = np.split(now @ w[0].T + h @ r[0].T, 4, 1)
        i, o, f = (1 / (1 + np.exp(-t)) for t in (i, o, f))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        lines.append(h)
    got = answering.first[0].numpy().reshape(times, 1, size)
    np.testing.assert_allclose(got, np.stack(lines), rtol=1e-4, atol=1e-6)
    answering.capture()
    answering.check(1, command)
    assert answering.job._captured.program.step.repeats
    called(command, "run", tmp_path / "job", "--out", tmp_path / "run")
    import verde

    (state,) = verde.Run(tmp_path / "run").state(1).values()
    np.testing.assert_array_equal(np.asarray(state).reshape(got.shape), got)
