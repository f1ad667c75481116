"""Models exported by PyTorch and scikit-learn: their outputs, training, and disputes."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import called
from disputes import cheat, convict, middle, nodes_of, verifier

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
import onnx_models  # noqa: E402

import repops.onnx  # noqa: E402
from repops.onnx._job import Answering  # noqa: E402
from repops.onnx._train import Training, chosen  # noqa: E402

CLOSE = 1e-4  # largest difference of outputs from the source's, relative to the largest output
STEPS, TRAINED = 10, 1e-3
# The quick ones; REPOPS_ONNX=all tests all.
QUICK = ("gpt2", "llama", "bert", "t5", "lstm_tagger", "unet", "diffusion_unet", "vit")
NAMES = onnx_models.MODELS if os.environ.get("REPOPS_ONNX") == "all" else QUICK


def needs(name):
    if name not in ("lstm_tagger", "unet", "diffusion_unet"):
        text = name in ("gpt2", "llama", "bert", "t5", "whisper")
        pytest.importorskip("transformers" if text else "torchvision")


def far(got, want):
    """The largest difference, relative to the largest number."""
    return float(np.abs(got - want).max()) / max(1e-6, float(np.abs(want).max()))


def a_wrong_element_is_convicted(command, job, place, step):
    """A wrong element in the middle of the graph convicts at that node."""
    called(command, "run", job, "--out", place / "honest", "--threads", 1)
    nodes = middle([n for n in nodes_of(job, command) if n.type == "f32" and n.inputs])
    node = cheat(command, job, place / "wrong", "element", step, nodes)
    runs = [place / "honest", place / "wrong"]
    convict(command, place, runs, 1, node, step, "wrong-output", verifier())


@pytest.mark.parametrize("name", NAMES)
def test_a_model_gives_what_its_source_gives(name, command, tmp_path):
    needs(name)
    data, wanted = onnx_models.write(name, tmp_path)
    model = repops.onnx.load(tmp_path / f"{name}.onnx")
    answering = Answering(model, data, tmp_path / "job")
    for got, want in zip(answering.first, wanted):
        assert far(got.numpy(), want) <= CLOSE
    answering.capture()
    answering.check(1, command)
    a_wrong_element_is_convicted(command, tmp_path / "job", tmp_path, 0)


# ---- training ----


def rows(name, count=16):
    """`count` rows of inputs and labels."""
    rng = np.random.default_rng(1)
    if name in ("gpt2", "llama"):
        ids = rng.integers(3, 100, (count, 16))
        return {"in0": ids, "labels": np.roll(ids, -1, 1)}
    if name == "lstm_tagger":
        return {"in0": rng.integers(0, 50, (count, 12)), "labels": rng.integers(0, 7, (count, 12))}
    if name == "vit":
        x = rng.standard_normal((count, 3, 32, 32)).astype("f4")
        return {"in0": x, "labels": rng.integers(0, 10, count)}
    x = rng.standard_normal((count, 3, 32, 32)).astype("f4")
    return {"in0": x, "labels": rng.integers(0, 5, (count, 32, 32))}


def losses_of_the_source(model, data, order, kind):
    """The losses of plain PyTorch, with an equal optimizer."""
    model.eval()  # without dropout, and with constant norms
    make = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind]
    optimizer = make(model.parameters(), lr=LR)
    losses = []
    for numbers in order:
        x, y = (torch.from_numpy(data[k][numbers]) for k in ("in0", "labels"))
        z = model(x)
        flat = z.shape[:-1] == y.shape
        loss = F.cross_entropy(
            z.reshape(-1, z.shape[-1]) if flat else z, y.reshape(-1) if flat else y
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# The batch of the export, and the optimizer. AdamW's first steps follow gradients' signs; in a deep
# network early gradients are so small that rounding flips some.
LEARNING = {
    "gpt2": (2, "adamw"),
    "llama": (2, "adamw"),
    "lstm_tagger": (4, "adamw"),
    "vit": (2, "adamw"),
    "unet": (2, "adamw"),
    "resnet18": (2, "sgd"),
}
LR = 1e-4


@pytest.mark.parametrize("name", [n for n in LEARNING if n in NAMES or n == "resnet18"])
def test_ten_steps_are_those_of_the_source(name, command, tmp_path):
    """Batch norms keep their statistics on both sides."""
    needs(name)
    source, inputs = onnx_models.make(name)
    onnx_models.export(source, inputs, tmp_path / "m.onnx", optimize=False)
    batch, optimizer = LEARNING[name]
    data = rows(name)
    if name == "resnet18":
        rng = np.random.default_rng(1)
        x = rng.standard_normal((16, 3, 64, 64)).astype("f4")
        data = {"in0": x, "labels": rng.integers(0, 1000, 16)}
    order = np.random.default_rng(2).integers(0, 16, (STEPS, batch))
    whole = repops.onnx.load(tmp_path / "m.onnx").whole
    names = chosen(whole.graph, [])
    model = repops.onnx.load(tmp_path / "m.onnx", lambda n, t: n in names)
    output = model.outputs[0].name
    training = Training(
        model, data, tmp_path / "job", f"cross_entropy:{output},labels", f"{optimizer}:lr={LR}",
        batch=batch, steps=STEPS, order=order,
    )  # fmt: skip
    training.capture()
    got = training.check(STEPS, command)
    want = losses_of_the_source(source, data, order, optimizer)
    assert len(got) == STEPS
    assert max(abs(a - b) / abs(b) for a, b in zip(got, want)) <= TRAINED, (got, want)
    assert got[-1] != got[0]


# ---- scikit-learn ----

LEARNERS = {
    "linear regression": ("linear_model", "LinearRegression", {}),
    "ridge": ("linear_model", "Ridge", {}),
    "lasso": ("linear_model", "Lasso", {"alpha": 0.01}),
    "elastic net": ("linear_model", "ElasticNet", {"alpha": 0.01}),
    "logistic regression": ("linear_model", "LogisticRegression", {}),
    "perceptron": ("linear_model", "Perceptron", {}),
    "a network of numbers": ("neural_network", "MLPRegressor", {"max_iter": 20}),
    "a network of classes": ("neural_network", "MLPClassifier", {"max_iter": 20}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_gives_what_scikit_learn_gives(name, command, tmp_path):
    sklearn = pytest.importorskip("sklearn")
    skl2onnx = pytest.importorskip("skl2onnx")
    import importlib

    module, kind, how = LEARNERS[name]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 5)).astype("f4")
    is_of_classes = sklearn.base.is_classifier
    learner = getattr(importlib.import_module(f"sklearn.{module}"), kind)(**how)
    y = x @ rng.standard_normal(5)
    learner.fit(x, (y > 0).astype(int) + (y > 1) if is_of_classes(learner) else y)
    scores = hasattr(learner, "predict_proba")
    options = {"zipmap": False} if is_of_classes(learner) else {}
    try:
        made = skl2onnx.to_onnx(learner, x[:1], options={id(learner): options}, target_opset=18)
    except Exception:  # noqa: BLE001
        made = skl2onnx.to_onnx(learner, x[:1], target_opset=18)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    model = repops.onnx.load(tmp_path / "m.onnx")
    answering = Answering(model, {model.inputs[0].name: x}, tmp_path / "job")
    got = [t.numpy() for t in answering.first]
    assert np.allclose(got[0].reshape(-1), learner.predict(x), rtol=CLOSE, atol=CLOSE)
    if scores:
        assert np.allclose(got[1], learner.predict_proba(x), rtol=CLOSE, atol=CLOSE)
    answering.capture()
    answering.check(1, command)


# ---- the command ----


def test_the_command_makes_a_job_that_runs(command, tmp_path):
    data, wanted = onnx_models.write("lstm_tagger", tmp_path)
    np.savez(tmp_path / "d.npz", in0=np.stack([data["in0"], data["in0"][::-1]]))
    words = [tmp_path / "lstm_tagger.onnx", "--data", tmp_path / "d.npz", "--out", tmp_path / "job"]
    said = called(sys.executable, "-m", "repops.onnx", *words, "--check", 2)
    assert "checked     2 steps by verde: the same bits" in said
    assert "input       in0: int64 [4, 12]" in said and "folded" in said
    called(command, "run", tmp_path / "job", "--out", tmp_path / "run")
    import verde

    for step, own in ((1, wanted[0]), (2, wanted[0][::-1])):
        (got,) = verde.Run(tmp_path / "run").state(step).values()
        assert far(np.asarray(got), own) <= CLOSE
    again = called(sys.executable, "-m", "repops.onnx", *words)
    digest = [line for line in said.splitlines() if line.startswith("hash")]
    assert digest and digest[0] in again


def test_the_command_trains(command, tmp_path):
    onnx_models.write("lstm_tagger", tmp_path)
    np.savez(tmp_path / "d.npz", **rows("lstm_tagger"))
    output = repops.onnx.load(tmp_path / "lstm_tagger.onnx").outputs[0].name
    loss = f"cross_entropy:{output},labels"
    said = called(
        sys.executable, "-m", "repops.onnx", tmp_path / "lstm_tagger.onnx", "--train",
        "--loss", loss,
        "--optimizer", "adamw:lr=0.01", "--batch", 4, "--steps", 20, "--data", tmp_path / "d.npz",
        "--out", tmp_path / "job", "--check", 3,
    )  # fmt: skip
    assert "tensors of" in said and "checked     3 steps" in said
    called(command, "run", tmp_path / "job", "--out", tmp_path / "run")
    import verde

    losses = [line["loss"] for line in verde.Run(tmp_path / "run").losses()]
    assert len(losses) == 20 and np.mean(losses[-5:]) < np.mean(losses[:5])


def test_the_list_names_each_operator(command):
    said = subprocess.run(
        [sys.executable, "-m", "repops.onnx", "--list"], capture_output=True, text=True, check=True
    ).stdout
    lines = said.splitlines()
    assert len(lines) > 190 and "NonMaxSuppression: refused" in said and "Conv: products" in said
