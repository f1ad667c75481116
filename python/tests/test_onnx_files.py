"""Files from strangers: each fault is refused with one line that names it."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

import repops.onnx  # noqa: E402
import repops.torch  # noqa: E402
from repops import Error  # noqa: E402
from repops.onnx import __main__, _limits, _run, _types  # noqa: E402

F = TensorProto.FLOAT
I = TensorProto.INT64  # noqa: E741


def value(name, dims=(2, 3), kind=F):
    return helper.make_tensor_value_info(name, kind, dims)


def graph(nodes, inputs=None, outputs=None, constants=(), name="graph"):
    inputs = [value("x")] if inputs is None else inputs
    return helper.make_graph(nodes, name, inputs, outputs or [value("y")], list(constants))


def model(nodes, inputs=None, outputs=None, constants=(), opset=20, **more):
    own = [helper.make_opsetid("", opset), *more.pop("domains", [])]
    return helper.make_model(
        graph(nodes, inputs, outputs, constants), opset_imports=own, ir_version=10, **more
    )


def relu(a="x", b="y"):
    return helper.make_node("Relu", [a], [b])


def ints(name, *numbers):
    return helper.make_tensor(name, I, [len(numbers)], numbers)


def external(location, offset=None, length=None, dims=(2, 3)):
    t = TensorProto(name="w", data_type=F, dims=dims, data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": offset, "length": length}
    for key, text in entries.items():
        if text is not None:
            t.external_data.add(key=key, value=str(text))
    return model([helper.make_node("Add", ["x", "w"], ["y"])], constants=[t])


def refused(made, place, words, given=None):
    """The one-line message with which a model is refused when it is read or run."""
    path = place / "model.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    with pytest.raises(Error) as error:
        loaded = repops.onnx.load(path)
        assert given is not None, "the model was taken"
        import torch

        with repops.torch.reproducible(), torch.no_grad():
            loaded(*[torch.from_numpy(g) for g in given])
    text = str(error.value)
    assert words in text and "\n" not in text and len(text) < 600, text
    assert "model.onnx" in text or "external" in text, text


X = [np.ones((2, 3), "f4")]


def nested(depth):
    """If inside If inside If ..."""
    inner = graph([relu("x", "y0")], [], [value("y0")])
    for d in range(1, depth):
        other = graph([relu("x", f"z{d}")], [], [value(f"z{d}")])
        node = helper.make_node("If", ["c"], [f"y{d}"], then_branch=inner, else_branch=other)
        inner = graph([node], [], [value(f"y{d}")])
    other = graph([relu("x", "z")], [], [value("z")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)
    return model([node], [value("x"), value("c", (), TensorProto.BOOL)])


def bomb():
    """Functions that each call the previous one twice: 2^40 nodes if all were run."""
    functions = []
    for d in range(40):
        inner = ["Relu", "Relu"] if d == 0 else [f"f{d - 1}"] * 2
        domain = "" if d == 0 else "own"
        nodes = [
            helper.make_node(inner[0], ["a"], ["b"], domain=domain),
            helper.make_node(inner[1], ["b"], ["c"], domain=domain),
        ]
        sets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
        functions.append(helper.make_function("own", f"f{d}", ["a"], ["c"], nodes, sets))
    node = helper.make_node("f39", ["x"], ["y"], domain="own")
    return model([node], functions=functions, domains=[helper.make_opsetid("own", 1)])


def recursion():
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    node = helper.make_node("f", ["a"], ["b"], domain="own")
    f = helper.make_function("own", "f", ["a"], ["b"], [node], sets)
    call = helper.make_node("f", ["x"], ["y"], domain="own")
    return model([call], functions=[f], domains=[helper.make_opsetid("own", 1)])


def doubled():
    """x concatenated with itself forty times: 2^40 times as many elements."""
    names = ["x", *[f"t{i}" for i in range(39)], "y"]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in zip(names, names[1:])]
    return model(nodes, outputs=[value("y", (None, 3))])


def endless():
    body = graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Relu", ["a"], ["b"]),
        ],
        [value("i", (), I), value("go", (), TensorProto.BOOL), value("a")],
        [value("on", (), TensorProto.BOOL), value("b")],
    )
    return model([helper.make_node("Loop", ["", "", "x"], ["y"], body=body)])


def long_name():
    name = "n" * (_limits.NAME_BYTES_MAX + 1)
    return model([relu("x", name), relu(name, "y")])


def sized(dims, kind=F, content=b""):
    t = TensorProto(name="w", data_type=kind, dims=dims, raw_data=content)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], constants=[t])


def texts():
    t = helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])
    return model([helper.make_node("Add", ["x", "w"], ["y"])], constants=[t])


def of_shape(kind, *numbers):
    """A model with an operator whose output size is given by numbers."""
    if kind == "Range":
        t = [helper.make_tensor(f"w{i}", I, [], [n]) for i, n in enumerate(numbers)]
        return model(
            [helper.make_node("Range", ["w0", "w1", "w2"], ["y"])],
            [value("x")],
            [value("y", (None,), I)],
            t,
        )
    inputs = ["w"] if kind == "ConstantOfShape" else ["x", "w"]
    return model([helper.make_node(kind, inputs, ["y"])], constants=[ints("w", *numbers)])


BIG = 1 << 40
FILES = {
    "no protobuf": (b"\x0a\xff\xff\xff\xff\x0f", "protobuf cannot read it"),
    "an empty file": (b"", "model.onnx"),
    "a text": (b"PK\x03\x04 this is no model", "protobuf cannot read it"),
    "an operator that nobody knows": (
        model([helper.make_node("Wobble", ["x"], ["y"])]),
        "Wobble",
    ),
    "another domain": (
        model(
            [helper.make_node("Attention", ["x"], ["y"], domain="com.microsoft")],
            domains=[helper.make_opsetid("com.microsoft", 1)],
        ),
        "node 1 (com.microsoft.Attention): com.microsoft.Attention of opset 1 is refused",
    ),
    "an attribute that nobody knows": (
        model([helper.make_node("Relu", ["x"], ["y"], slope=2)]),
        "slope",
    ),
    "an old opset": (model([relu()], opset=9), "is of opset 9; expected 13 to 28"),
    "a cycle": (model([relu("z", "y"), relu("y", "z")]), "model.onnx"),
    "an input that nothing makes": (model([relu("q", "y")]), "model.onnx"),
    "two results of one name": (model([relu(), relu()]), "model.onnx"),
    "a name with many letters": (long_name(), "a name has 4097 letters; at most 4096"),
    "graphs in graphs": (nested(19), "graphs lie in more than 16 others"),
    "a tensor of 2^80 elements": (sized([BIG, BIG]), "Tensor dimension product overflow"),
    "a negative size": (sized([-1, 3]), "model.onnx"),
    "fewer bytes than the shape needs": (
        sized([2, 3], content=b"1234"),
        "raw_data size (4 bytes) is too small",
    ),
    "many dimensions": (sized([1] * 64, content=b"1234"), "64 dimensions"),
    "texts": (texts(), "initializer w is string; expected float32"),
    "complex numbers": (sized([1], TensorProto.COMPLEX64, b"12345678"), "is complex64"),
    "no file of data": (external("gone.bin"), "cannot read gone.bin"),
    "data outside": (external("../outside.bin"), "lies outside of the model's folder"),
    "data at a path from the root": (external("/etc/passwd"), "outside of the model's folder"),
    "data by a link that leads outside": (external("link.bin"), "outside of the model's folder"),
    "data of a folder": (external("folder"), "is no file"),
    "data of no place": (external(""), "outside of the model's folder"),
    "data at a negative place": (external("data.bin", -4), "expected an integer"),
    "data behind the end": (external("data.bin", 16), "bytes 16 to 40 of data.bin, which has 24"),
    "fewer data than the shape needs": (external("data.bin", 0, 8), "has 8 bytes; its shape"),
    "data of a large tensor": (external("data.bin", 0, dims=(BIG, 3)), "elements; expected"),
}


@pytest.mark.parametrize("name", FILES)
def test_refused_when_it_is_read(name, tmp_path):
    place = tmp_path / "place"
    (place / "folder").mkdir(parents=True)
    (place / "data.bin").write_bytes(bytes(24))
    (tmp_path / "outside.bin").write_bytes(bytes(24))
    os.symlink(tmp_path / "outside.bin", place / "link.bin")
    refused(FILES[name][0], place, FILES[name][1])


def test_data_in_the_folder_are_read(tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(4) + np.arange(6, dtype="<f4").tobytes())
    made = external("data.bin", 4)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    own = dict(repops.onnx.load(tmp_path / "m.onnx").named_buffers())
    assert own["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


RUN = {
    "functions that call each other twice": (bomb(), "functions and graphs lie in more than 16"),
    "a function that calls itself": (recursion(), "model.onnx"),
    "a tensor that doubles": (doubled(), "elements; expected at most"),
    "a loop without end": (endless(), "nodes are run"),
    "a shape of 2^80": (of_shape("ConstantOfShape", BIG, BIG), "elements; expected at most"),
    "tiles": (of_shape("Tile", BIG, 1), "elements; expected at most"),
    "an expansion": (of_shape("Expand", BIG, 2, 3), "elements; expected at most"),
    "a range": (of_shape("Range", 0, BIG, 1), "elements; expected at most"),
    "a range without steps": (of_shape("Range", 0, 1, 0), "a step of 0"),
    "a shape that does not fit": (of_shape("Reshape", 5, 5), "node 1 (Reshape)"),
    "pads": (of_shape("Pad", 0, BIG, 0, 0), "elements; expected at most"),
}


@pytest.mark.parametrize("name", RUN)
def test_refused_when_it_is_run(name, tmp_path, monkeypatch):
    """Lowers the limits, as the real ones take seconds to reach."""
    monkeypatch.setattr(_run, "NODES_MAX", 1 << 12)
    monkeypatch.setattr(_types, "ELEMENTS_MAX", 1 << 16)
    refused(RUN[name][0], tmp_path, RUN[name][1], X)


def test_names_are_shown_as_one_line(tmp_path):
    node = helper.make_node("Wobble", ["x"], ["y"], name="a\nb\x1b[31m" + "c" * 500)
    made = model([node], domains=[helper.make_opsetid("own", 1)])
    made.graph.node[0].domain = "own"
    refused(made, tmp_path, "(own.Wobble a?b?[31mccc")


def test_damaged_files_are_refused_or_read(tmp_path):
    """Models with randomly changed bytes give an Error of one line, or a model."""
    rng, whole = random.Random(1), bytearray(nested(3).SerializeToString())
    results = {"read": 0, "refused": 0}
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (tmp_path / "m.onnx").write_bytes(content)
        try:
            repops.onnx.load(tmp_path / "m.onnx")
            results["read"] += 1
        except Error as error:
            assert "\n" not in str(error)
            results["refused"] += 1
    assert min(results.values()) > 10, results


def test_the_command_says_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    path = tmp_path / "m.onnx"
    path.write_bytes(model([relu()], [value("x", ("n", 3))]).SerializeToString())
    np.savez(tmp_path / "d.npz", x=np.ones((2, 3), "f8"))
    np.savez(tmp_path / "other.npz", z=np.ones((2, 3), "f4"))
    wrong = {
        (tmp_path / "gone.onnx",): "is no file",
        (): "which model?",
        (path,): "bind its names: --shape x=",
        (path, "--shape", "x=2xq"): "expected numbers",
        (path, "--shape", "z=2x3"): "the model has no input z",
        (path, "--shape", "x=2x3", "--memory", "0"): "--memory is 0",
        (path, "--out", tmp_path / "j", "--data", tmp_path / "d.npz"): "float64; expected float32",
        (path, "--out", tmp_path / "j", "--data", tmp_path / "other.npz"): "have no x",
        (path, "--out", tmp_path / "j", "--data", path): "cannot read",
        (path, "--train"): "--train needs --loss, --data and --out",
    }
    for words, text in wrong.items():
        code = __main__._run([str(w) for w in words])
        lines = capsys.readouterr().err.splitlines()
        assert code == 1 and len(lines) == 1 and text in lines[0], (words, lines)
    assert not (tmp_path / "j").exists()


def test_the_command_takes_no_more_memory_than_it_is_told(tmp_path):
    """An outer product of 1 GiB."""
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    inputs = [value("x", (16384, 1)), value("w", (1, 16384))]
    path.write_bytes(model(nodes, inputs, [value("y", (None, None))]).SerializeToString())
    own = [sys.executable, "-m", "repops.onnx", path, "--out", tmp_path / "j", "--memory", "1"]
    done = subprocess.run(list(map(str, own)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert "node 1 (MatMul)" in done.stderr and not (tmp_path / "j").exists(), done
