"""Recognised layers have the results of the nodes that they replace; nodes that form another layer
stay as they are."""

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")
import repops.onnx  # noqa: E402
import repops.torch  # noqa: E402

VECTORS = """float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] b = {8, 7, 6, 5, 4, 3, 2, 1},
    float[1] half = {0.5}, float[1] one = {1}, float[1] two = {2}, float[1] three = {3},
    float[1] eps = {0.001}, float[1] root = {1.4142135}, float[1] bend = {0.044715},
    float[1] slope = {0.7978846}, float[1] scale = {0.3}, int64[1] last = {-1},
    int64[1] zero = {0}, int64[1] four = {4}, int64[1] end = {9223372036854775807},
    int64[1] axis = {3}, int64[3] flat = {16, 8, 8}, int64[4] heads = {2, 8, 8, 8}"""
MEAN = "ReduceMean <keepdims: int = 1> "
FORMS = {
    "gelu": """u = Div (x, root)
        e = Erf (u)
        f = Add (e, one)
        g = Mul (x, f)
        y = Mul (g, half)""",
    "gelu by tanh": """h = Mul (half, x)
        p = Pow (x, three)
        q = Mul (bend, p)
        r = Add (x, q)
        s = Mul (r, slope)
        t = Tanh (s)
        v = Add (one, t)
        y = Mul (h, v)""",
    "layer norm": f"""m = {MEAN}(x, last)
        d = Sub (x, m)
        p = Pow (d, two)
        v = {MEAN}(p, last)
        a = Add (v, eps)
        s = Sqrt (a)
        n = Div (d, s)
        k = Mul (n, w)
        y = Add (k, b)""",
    "rms norm": f"""p = Pow (x, two)
        v = {MEAN}(p, last)
        a = Add (v, eps)
        s = Sqrt (a)
        r = Reciprocal (s)
        n = Mul (x, r)
        y = Mul (w, n)""",
    "rms norm by a quotient": f"""p = Mul (x, x)
        v = {MEAN}(p, last)
        a = Add (eps, v)
        s = Sqrt (a)
        n = Div (x, s)
        y = Mul (n, w)""",
    "attention": """k = Transpose <perm: ints = [0, 1, 3, 2]> (x)
        s = MatMul (x, k)
        t = Mul (s, scale)
        p = Softmax <axis: int = -1> (t)
        y = MatMul (p, x)""",
    "attention of flat heads": """f = Reshape (x, flat)
        g = Transpose <perm: ints = [0, 2, 1]> (f)
        k = Reshape (g, heads)
        s = MatMul (x, k)
        t = Mul (s, scale)
        p = Softmax <axis: int = -1> (t)
        y = MatMul (p, x)""",
    "silu": """s = Sigmoid (x)
        y = Mul (s, x)""",
    "rotary positions": """l = Slice (x, zero, four, axis)
        r = Slice (x, four, end, axis)
        n = Neg (r)
        j = Concat <axis: int = -1> (n, l)
        p = Mul (x, cosines)
        q = Mul (j, sines)
        y = Add (p, q)""",
}
# Each differs from a layer in one point.
OTHERS = {
    "another half": FORMS["gelu"].replace("half", "two"),
    "another root": FORMS["gelu"].replace("root", "two"),
    "another function": FORMS["gelu"].replace("Erf", "Tanh"),
    "another factor": FORMS["gelu"].replace("Mul (x, f)", "Mul (u, f)"),
    "another bend": FORMS["gelu by tanh"].replace("bend", "scale"),
    "another power": FORMS["layer norm"].replace("two", "three"),
    "another difference": FORMS["layer norm"].replace("Sub (x, m)", "Sub (m, x)"),
    "a mean of another tensor": FORMS["rms norm"].replace("Pow (x, two)", "Pow (w, two)"),
    "a quotient turned": FORMS["rms norm by a quotient"].replace("Div (x, s)", "Div (s, x)"),
    "keys that are not turned": FORMS["attention"].replace("0, 1, 3, 2", "0, 2, 1, 3"),
    "another axis": FORMS["attention"].replace("axis: int = -1", "axis: int = 2"),
    "another gate": FORMS["silu"].replace("Sigmoid (x)", "Sigmoid (w)"),
    "flat heads of others": FORMS["attention of flat heads"].replace("0, 2, 1", "1, 2, 0"),
    "a turn the other way": FORMS["rotary positions"].replace("(n, l)", "(l, n)"),
    "a turn of another part": FORMS["rotary positions"].replace(
        "(x, zero, four,", "(x, four, end,"
    ),
    "angles that differ": FORMS["rotary positions"].replace("j, sines", "j, uneven"),
}


def _angles():
    """Tables of angles for 8 positions and 4 pairs: both halves equal, and unequal ones."""
    half = np.arange(32, dtype="f4").reshape(1, 1, 8, 4) / 7
    both = np.concatenate([half, half], 3)
    uneven = np.sin(np.concatenate([half, half + 1], 3))
    return {"cosines": np.cos(both), "sines": np.sin(both), "uneven": uneven}


def loaded(nodes, place, recognise=True):
    text = f"""<ir_version: 9, opset_import: ["" : 20]>
    g (float[2, 8, 8, 8] x) => (float[2, 8, 8, 8] y) <{VECTORS}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    for name, table in _angles().items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(table, name))
    (place / "m.onnx").write_bytes(model.SerializeToString())
    return repops.onnx.load(place / "m.onnx", recognise=recognise)


def given(model):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 8, 8, 8)).astype("f4"))
    with repops.torch.reproducible(), torch.no_grad():
        return model(x)[0].numpy()


@pytest.mark.parametrize("name", FORMS)
def test_a_layer_gives_what_its_parts_give(name, tmp_path):
    layer, parts = loaded(FORMS[name], tmp_path), loaded(FORMS[name], tmp_path, False)
    assert sum(layer.recognised.values()) == 1 and not parts.recognised
    left = [n for n in layer.graph.nodes if n.kind != "Reshape"]
    assert len(left) == 1 < len(parts.graph.nodes)
    np.testing.assert_allclose(given(layer), given(parts), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_other_parts_stay(name, tmp_path):
    model = loaded(OTHERS[name], tmp_path)
    assert not model.recognised
    np.testing.assert_array_equal(given(model), given(loaded(OTHERS[name], tmp_path, False)))


def test_parts_that_somebody_else_reads_are_kept(tmp_path):
    nodes = FORMS["gelu"].replace("y = Mul (g, half)", "z = Mul (g, half) y = Add (z, e)")
    model = loaded(nodes, tmp_path)
    assert model.recognised == {"gelu": 1}
    np.testing.assert_allclose(given(model), given(loaded(nodes, tmp_path, False)), atol=2e-6)
