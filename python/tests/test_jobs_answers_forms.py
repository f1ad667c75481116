"""Answers in forms that executors run as one function, and loops that are stored once."""

import re

import numpy as np
import pytest
import torch
from conftest import called, settle
from test_jobs_forms import Model
from torch import nn

import repops.jobs
import repops.torch
from repops.jobs import _loops

LENGTH, WIDTH = 300, 6


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.cell(x)[0])


def tagged(folder, **how):
    with repops.torch.reproducible():
        torch.manual_seed(1)
        model = Tagger()
    x = np.random.default_rng(1).standard_normal((3, LENGTH, WIDTH), "f4")
    return repops.jobs.Answers(model, model, x, folder=folder, batch=2, **how)


def repeats(answers):
    return [r.count for r in answers._captured.program.step.repeats]


@pytest.mark.parametrize("how", ["cut", "stacked", "each"])
def test_a_block_runs_as_functions(command, tmp_path, how):
    with repops.torch.reproducible():
        torch.manual_seed(1)
        model = Model(how)
    ids = np.random.default_rng(0).integers(0, 4, (5, 8))
    answers = repops.jobs.Answers(model, model, ids, folder=tmp_path / "job", batch=2)
    answers.check(3)
    text = called(command, "graph", "--fused", tmp_path / "job", "--prompt", 1)
    runs = set(re.findall(r"  @ (.*?)(?: \d+)?(?:  #.*)?$", text, re.M))
    assert runs >= {"attention", "linear layer", "layer norm"}
    assert not re.findall(r" (?:transpose|split_heads|reshape)\(.*\](?:  #.*)?$", text, re.M)


def test_loops_are_stored_once(command, tmp_path, monkeypatch):
    looped = tagged(tmp_path / "looped")
    monkeypatch.setattr(_loops, "SAVED", 10**9)
    each = tagged(tmp_path / "each")
    assert repeats(looped) == [LENGTH - 1] and repeats(each) == []
    sizes = [(tmp_path / name / "pack").stat().st_size for name in ("looped", "each")]
    assert sizes[0] < 10_000 and sizes[0] < sizes[1] / 20
    looped.check(2)
    got, want = looped.run(tmp_path / "run")["answer"], each.run(tmp_path / "other")["answer"]
    assert got.shape == (3, LENGTH, 3) and got.tobytes() == want.tobytes()


def test_a_fault_in_a_loop_is_convicted(command, tmp_path):
    tagged(tmp_path / "job").run(tmp_path / "run")
    text = called(command, "graph", tmp_path / "job", "--prompt", 1)
    number = re.search(rf"^%(\d+) +m{LENGTH // 2}\.\S*matmul", text, re.M)[1]
    wrong = ["--fault", f"1/element@0:{number}"]
    called(command, "run", tmp_path / "job", "--out", tmp_path / "liar", *wrong)
    verdict = settle(command, tmp_path / "job", tmp_path, [tmp_path / "liar", tmp_path / "run"])
    assert f"m{LENGTH // 2}." in called(command, "inspect", verdict)
    called(command, "verify", verdict)
    called(command, "check", tmp_path / "run", "--verdict", verdict)
    called(command, "check", tmp_path / "liar", "--verdict", verdict, code=6)
