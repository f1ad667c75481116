"""A model's answers to many inputs, as a job of many programs."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from conftest import called, delegated, settle
from small_answers import BATCH, ROWS, classes, classifier, images
from torch import nn

import repops.jobs
import repops.torch


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def block(fn, model, arrays, batch):
    """The answers computed in the block, batch by batch; the last batch is padded."""
    parts = {}
    with repops.torch.reproducible(), torch.no_grad():
        model.eval()
        for first in range(0, len(arrays[0]), batch):
            rows = np.minimum(np.arange(first, first + batch), len(arrays[0]) - 1)
            said = fn(*[torch.from_numpy(a[rows]) for a in arrays])
            for name, t in said.items():
                parts.setdefault(name, []).append(t)
    return {n: torch.cat(p)[: len(arrays[0])].numpy() for n, p in parts.items()}


def same(got, want):
    assert set(got) == set(want)
    for name, own in want.items():
        own = own.astype("<i4") if own.dtype.kind in "biu" else own
        assert got[name].shape == own.shape and got[name].dtype == own.dtype, name
        assert got[name].tobytes() == own.tobytes(), name


def test_each_row_has_the_blocks_bits(command, tmp_path):
    done, answers = [], classes(tmp_path / "job")
    assert answers.steps == 6 and answers.rows == ROWS
    got = answers.run(tmp_path / "run", lambda k, of: done.append((k, of)))
    assert done == [(k, 6) for k in range(1, 7)]
    model, says = classifier()
    same(got, block(says, model, [images()], BATCH))
    answers.check(6)
    same(answers.run(tmp_path / "run"), got)  # finds the answers that are there already
    told = json.loads(called(command, "inspect", tmp_path / "run", "--json"))
    assert told["collection"] == answers.hash and len(told["prompts"]) == 6


def test_safetensors_hold_the_same(command, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    got = classes(tmp_path / "job").run(tmp_path / "run")
    same(safetensors.load_file(tmp_path / "run" / "answers" / "answers.safetensors"), got)


def test_batches_change_no_bit_of_a_row(command, tmp_path):
    """This holds for models whose operators treat rows separately."""
    whole = classes(tmp_path / "a", batch=ROWS).run(tmp_path / "whole")
    each = classes(tmp_path / "b", batch=1).run(tmp_path / "each")
    same(each, {name: np.asarray(x) for name, x in whole.items()})


def test_models_are_as_before(tmp_path):
    model, says = classifier()
    model.train()
    before = {n: t.clone() for n, t in model.state_dict().items()}
    repops.jobs.Answers(says, model, images(), folder=tmp_path / "job", batch=4)
    assert model.training and all(m.training for m in model)
    assert all(torch.equal(t, model.state_dict()[n]) for n, t in before.items())


def answered(command, tmp_path, fn, model, inputs, batch):
    """The command's answers, which must be equal to the block's."""
    answers = repops.jobs.Answers(fn, model, inputs, folder=tmp_path / "job", batch=batch)
    answers.check(answers.steps)
    return answers.run(tmp_path / "run")


def test_classes_of_torchvision(command, tmp_path):
    torchvision = pytest.importorskip("torchvision")
    with repops.torch.reproducible():
        torch.manual_seed(1)
        model = torchvision.models.resnet18(num_classes=7)
    x = np.random.default_rng(1).standard_normal((5, 3, 32, 32), "f4")
    got = answered(command, tmp_path, model, model, x, 2)
    same(got, block(lambda x: {"answer": model(x)}, model, [x], 2))


def test_embeddings_of_timm(command, tmp_path):
    timm = pytest.importorskip("timm")
    with repops.torch.reproducible():
        torch.manual_seed(1)
        size = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2}
        model = timm.models.VisionTransformer(num_classes=0, **size)
    x = np.random.default_rng(1).standard_normal((5, 3, 32, 32), "f4")
    got = answered(command, tmp_path, model, model, x, 3)
    assert got["answer"].shape == (5, 24) and np.isfinite(got["answer"]).all()


def test_hidden_states_of_transformers(command, tmp_path):
    transformers = pytest.importorskip("transformers")
    size = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    with repops.torch.reproducible():
        torch.manual_seed(1)
        model = transformers.BertModel(transformers.BertConfig(intermediate_size=32, **size))
    rng = np.random.default_rng(1)
    ids, lengths = rng.integers(1, 50, (7, 9)), rng.integers(3, 10, 7)
    mask = np.arange(9)[None] < lengths[:, None]
    inputs = {"input_ids": ids * mask, "attention_mask": mask.astype("i8")}
    got = answered(command, tmp_path, model, model, inputs, 3)
    assert got["last_hidden_state"].shape == (7, 9, 16) and got["pooler_output"].shape == (7, 16)


def test_boxes_of_transformers(command, tmp_path):
    transformers = pytest.importorskip("transformers")
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    more = {"image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 5, "num_labels": 3}
    with repops.torch.reproducible():
        torch.manual_seed(1)
        config = transformers.YolosConfig(intermediate_size=32, **size, **more)
        model = transformers.YolosForObjectDetection(config)
    x = np.random.default_rng(1).standard_normal((3, 3, 32, 32), "f4")

    def boxes(x):
        said = model(pixel_values=x)
        best, label = said.logits.softmax(-1)[..., :-1].max(-1)
        return {"box": said.pred_boxes, "score": best, "label": label}

    got = answered(command, tmp_path, boxes, model, x, 2)
    assert got["box"].shape == (3, 5, 4) and (got["box"] > 0).all() and (got["box"] < 1).all()
    assert got["label"].dtype == np.int32 and got["label"].max() < 3


def test_images_from_noise(command, tmp_path):
    """Draws depend on the seed and the batch."""
    with repops.torch.reproducible():
        torch.manual_seed(1)
        model = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, 2, 1), nn.SiLU(), nn.Conv2d(8, 3, 3))

    def draw(label):
        noise = torch.randn(label.size(0), 4, 4, 4)
        return model(noise + label[:, None, None, None]).tanh()

    labels = np.zeros(5, "f4")
    answers = repops.jobs.Answers(draw, model, labels, folder=tmp_path / "a", batch=2, seed=3)
    answers.check(3)
    got = answers.run(tmp_path / "run")["answer"]
    assert got.shape == (5, 3, 6, 6) and len({row.tobytes() for row in got}) == 5
    other = repops.jobs.Answers(draw, model, labels, folder=tmp_path / "b", batch=2, seed=4)
    assert other.hash != answers.hash
    assert other.run(tmp_path / "other")["answer"].tobytes() != got.tobytes()


def test_lengths_that_python_reads(command, tmp_path):
    with repops.torch.reproducible():
        torch.manual_seed(1)
        model = nn.Linear(6, 2)

    def says(x, mask):
        return model(x * mask) if mask.all() else model(x) * 2

    x = np.random.default_rng(1).standard_normal((6, 6), "f4")
    got = answered(command, tmp_path, says, model, (x, np.ones((6, 6), bool)), 2)
    assert got["answer"].shape == (6, 2)
    mask = np.ones((6, 6), bool)
    mask[3, 1] = False
    with pytest.raises(repops.jobs.CaptureError, match="Python reads a number"):
        repops.jobs.Answers(says, model, (x, mask), folder=tmp_path / "no", batch=2)


def test_several_arrays_are_rows_of_one(command, tmp_path):
    model, x = nn.Linear(3, 2), np.random.default_rng(1).standard_normal((7, 3), "f4")
    one = answered(command, tmp_path / "a", model, model, x, 2)
    parts = answered(command, tmp_path / "b", model, model, [x[:3], x[3:]], 2)
    same(parts, one)


def test_a_wrong_answer_is_convicted(command, tmp_path):
    answers = classes(tmp_path / "job")
    answers.run(tmp_path / "run")
    wrong = ["--fault", "2/element@0"]
    called(command, "run", tmp_path / "job", "--out", tmp_path / "liar", *wrong)
    verdict = settle(command, tmp_path / "job", tmp_path, [tmp_path / "liar", tmp_path / "run"])
    called(command, "verify", verdict)
    said = called(command, "check", tmp_path / "run", "--verdict", verdict)
    assert "answers      every byte of 3 files" in said
    called(command, "check", tmp_path / "liar", "--verdict", verdict, code=6)


def test_the_simulated_device_has_the_same_bits(command, tmp_path):
    if not os.environ.get("REPOPS_CUDA_LIBRARY"):
        pytest.skip("REPOPS_CUDA_LIBRARY names no library for cuda:0")
    answers = classes(tmp_path / "job")
    host = answers.run(tmp_path / "host")
    same(answers.run(tmp_path / "device", backend="cuda:0"), dict(host))


def test_ctrl_c_stops_it_and_the_same_call_goes_on(command, tmp_path):
    answers = classes(tmp_path / "job", batch=1)

    def stop(done, of):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answers.run(tmp_path / "run", stop)
    assert not (tmp_path / "run" / "results.jsonl").exists()
    with pytest.raises(repops.Error, match="has runs of many programs; repops.jobs.load_answers"):
        repops.jobs.load(tmp_path / "run")
    with pytest.raises(repops.Error, match="has no answers"):
        repops.jobs.load_answers(tmp_path / "run")
    got = answers.run(tmp_path / "run")
    same(got, dict(answers.run(tmp_path / "whole")))


# ---- what is refused ----


def refused(tmp_path, words, fn=None, inputs=None, **how):
    model, says = classifier()
    inputs = images() if inputs is None else inputs
    with pytest.raises((repops.Error, repops.jobs.CaptureError), match=words):
        repops.jobs.Answers(fn or says, model, inputs, folder=tmp_path / "job", **how)
    assert not (tmp_path / "job").exists()


SHAPES = {
    r"answer is \[2\]; expected \[4, \.\.\.\], a row of each input": lambda x: torch.zeros(2),
    r"answer is \[\]; expected \[4, \.\.\.\]": lambda x: torch.tensor(1.0),
    r"answer is \[4, 0\]; expected 1 to 8 dimensions": lambda x: torch.zeros(4, 0),
    r"answer is \[4, 1, 1, 1, 1, 1, 1, 1, 1\]; ": lambda x: torch.zeros([4] + [1] * 8),
    "fn returns no tensor": lambda x: (),
    "fn returns a float; expected tensors": lambda x: 1.0,
    "fn returns a str as name; expected": lambda x: {"name": "cat"},
    "an answer is called 'a/b'; expected": lambda x: {"a/b": x},
    "an answer is called '.a'; expected": lambda x: {".a": x},
    "an answer is called 'b.é'; expected": lambda x: {"b": {"é": x}},
    "it computes in float64": lambda x: x.double(),
}


@pytest.mark.parametrize("words", SHAPES)
def test_what_is_no_answer_is_refused(tmp_path, words):
    refused(tmp_path, words, SHAPES[words], batch=4)


def test_inputs_that_do_not_fit_are_refused(tmp_path):
    x = images()
    refused(tmp_path, "input1 has 20 rows, and input0 has 21", inputs=(x, x[:20]))
    refused(tmp_path, "input0 has no rows", inputs=x[:0])
    refused(tmp_path, "there are no inputs", inputs=())
    refused(tmp_path, "batch is 0; expected 1 to", batch=0)
    many = np.zeros((70000, 1), "u1")
    refused(
        tmp_path, "there are 70000 batches, at most 65536; expected batch=2", None, many, batch=1
    )
    refused(tmp_path, "float64; give it as float32", inputs=np.zeros((4, 3, 8, 8)))


def test_a_model_that_answering_changes_is_refused(tmp_path):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen += 1
            return x * self.seen

    with pytest.raises(repops.jobs.CaptureError, match="seen"):
        model = Counts()
        repops.jobs.Answers(model, model, np.ones((4, 2), "f4"), folder=tmp_path / "job", batch=2)


def test_another_folder_stays(command, tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "mine.txt").write_text("mine")
    with pytest.raises(repops.Error, match=r"holds no job: it has mine.txt"):
        classes(tmp_path / "job")
    shutil.rmtree(tmp_path / "job")
    first = classes(tmp_path / "job")
    first.run(tmp_path / "run")
    second = classes(tmp_path / "job", batch=5)  # replaces the first
    with pytest.raises(repops.Error, match="holds another job with prompts"):
        second.run(tmp_path / "run")
    first.check()  # compares with the data that it holds itself
    shutil.rmtree(tmp_path / "job")
    second.check()


def test_inputs_in_a_file_and_bytes_stay_as_they_are(command, tmp_path):
    np.save(tmp_path / "x.npy", images())
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    model, says = classifier()
    answers = repops.jobs.Answers(says, model, x, folder=tmp_path / "job", batch=BATCH)
    assert answers.hash == classes(tmp_path / "same").hash
    assert (tmp_path / "job" / "data0.npy").stat().st_size == (tmp_path / "x.npy").stat().st_size


def test_what_is_handed_over_comes_back(command, tmp_path):
    """Two daemons compute a job, and each byte is checked."""
    answers = classes(tmp_path / "job")
    result = delegated(command, tmp_path / "job", tmp_path)
    same(repops.jobs.load_answers(result), dict(answers.run(tmp_path / "run")))
    called(command, "check", result, "--job", tmp_path / "job")
