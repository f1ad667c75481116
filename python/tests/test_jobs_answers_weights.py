"""Answers of models whose weights are in files, and perhaps not in memory."""

import re

import large
import numpy as np
import pytest
import torch
from conftest import called, delegated, settle
from test_jobs_weights import TINY, in_memory, nowhere, tiny_file

import repops.jobs
import repops.torch
from repops.jobs import _unvalued

LENGTH, ROWS = 6, 5


def tokens():
    return np.random.default_rng(1).integers(0, TINY.vocabulary, (ROWS, LENGTH))


def answers(folder, file, model, fn=None, **how):
    """A job that answers with the logits of each row's last token."""
    with repops.torch.reproducible():
        own = model()

    def says(ids):
        return own(ids)[:, -1]

    given = {"weights": file, "batch": 2, **how}
    return repops.jobs.Answers(fn(own) if fn else says, own, tokens(), folder=folder, **given)


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_no_weights_in_memory_give_the_same_program(command, tmp_path, dtype):
    file, made = tiny_file(tmp_path, dtype), {}
    for name, model in (("here", in_memory(file)), ("nowhere", nowhere)):
        made[name] = answers(tmp_path / name, file, model)
        made[name].check(3, command)
    assert made["here"].hash == made["nowhere"].hash
    said = [a.run(tmp_path / f"{name}-run")["answer"].tobytes() for name, a in made.items()]
    assert said[0] == said[1]
    assert (tmp_path / "nowhere" / "weights0.safetensors").samefile(file)


def test_weights_are_read_as_they_lie(command, tmp_path):
    """Without files weights are data of 32 bits, and the answers are the same."""
    file = tiny_file(tmp_path, "BF16")
    narrow, wide = (
        answers(tmp_path / "a", file, nowhere),
        answers(tmp_path / "b", None, in_memory(file)),
    )
    step = narrow._captured.program.step
    casts = [n for n in step.nodes if n.operator.name == "cast" and n.inputs[0].kind == "data"]
    assert casts and all(len(n.dims) == 1 for n in casts if n.inputs[0].dims != (ROWS, LENGTH))
    got, want = (a.run(tmp_path / f"{i}-run")["answer"] for i, a in enumerate((narrow, wide)))
    assert got.tobytes() == want.tobytes() and narrow.hash != wide.hash


def test_the_model_is_as_before(tmp_path):
    file, model = tiny_file(tmp_path, "BF16"), nowhere()
    model.train()
    before = [id(t) for t in model.parameters()]
    answers(tmp_path / "job", file, lambda: model).check(1)
    assert model.training and [id(t) for t in model.parameters()] == before
    assert all(t.is_meta for t in model.parameters())


def test_names_tell_where_weights_are(tmp_path):
    file = tiny_file(tmp_path, "BF16")
    adapted = lambda: large.adapted(nowhere())  # noqa: E731
    answers(tmp_path / "job", file, adapted, names=large.in_files)
    with pytest.raises(repops.Error, match="and no file of weights= has a tensor of that name"):
        answers(tmp_path / "no", file, adapted)


def test_what_is_handed_over_comes_back(command, tmp_path):
    own = answers(tmp_path / "job", tiny_file(tmp_path, "BF16"), nowhere)
    got = repops.jobs.load_answers(delegated(command, tmp_path / "job", tmp_path))["answer"]
    assert got.tobytes() == own.run(tmp_path / "run")["answer"].tobytes()


def test_a_fault_is_convicted(command, tmp_path):
    answers(tmp_path / "job", tiny_file(tmp_path, "BF16"), nowhere).run(tmp_path / "run")
    text = called(command, "graph", tmp_path / "job", "--prompt", 2)
    number = re.findall(r"^%(\d+) .* matmul\(%\d+, data:model", text, re.M)[1]
    wrong = ["--fault", f"2/element@0:{number}"]
    called(command, "run", tmp_path / "job", "--out", tmp_path / "liar", *wrong)
    verdict = settle(command, tmp_path / "job", tmp_path, [tmp_path / "liar", tmp_path / "run"])
    called(command, "check", tmp_path / "run", "--verdict", verdict)
    called(command, "check", tmp_path / "liar", "--verdict", verdict, code=6)


# ---- what is refused ----


def refused(tmp_path, words, *given, **how):
    with pytest.raises(repops.Error, match=words):
        answers(tmp_path / "no", *given, **how)
    assert not (tmp_path / "no").exists()


def test_what_does_not_fit_is_refused(tmp_path):
    file = tiny_file(tmp_path, "BF16")
    refused(tmp_path, "of the meta device, and no file of weights= has", None, nowhere)
    refused(tmp_path, "weights=: no file is given", [], nowhere)
    refused(tmp_path, "cannot read .*none", tmp_path / "none", nowhere)
    other = lambda: large.Llama(TINY)  # noqa: E731
    refused(tmp_path, "the model has other numbers than the file", file, other)


def test_python_cannot_read_what_is_in_no_memory(tmp_path):
    def fn(model):
        return lambda ids: model(ids)[:, -1] * float(model.model.norm.weight.sum().item() > 0)

    refused(tmp_path, r"item\(\): Python reads", tiny_file(tmp_path, "BF16"), nowhere, fn)


def test_a_check_takes_no_more_memory_than_there_is(tmp_path, monkeypatch):
    own = answers(tmp_path / "job", tiny_file(tmp_path, "BF16"), nowhere)
    monkeypatch.setattr(_unvalued, "memory", lambda: 100)
    with pytest.raises(repops.Error, match="a check computes in PyTorch, .* and this machine has"):
        own.check()


def test_a_model_changes_nothing_of_it(tmp_path):
    """A write to a buffer is also refused if weights are not in memory."""

    def fn(model):
        def says(ids):
            model.model.norm.weight.data.add_(1.0)
            return model(ids)[:, -1]

        return says

    with torch.no_grad():
        refused(tmp_path, "evaluating changes it", tiny_file(tmp_path, "BF16"), nowhere, fn)
