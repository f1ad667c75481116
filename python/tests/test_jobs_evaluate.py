"""Evaluations: a captured model's score on other data, as a run that can be disputed."""

import json
import os
import subprocess

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from capturing import Toy, toy  # noqa: F401
from disputes import disputes
from torch import nn

import repops
import repops.jobs
import verde
from repops.jobs import _loops

VERDE = os.environ.get("VERDE")
needs_verde = pytest.mark.skipif(not VERDE, reason="the command verde is not here")
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((50, 4), "f4"), RNG.integers(0, 3, 50)


def classifier(folder, model=None):
    """A classifier with dropout and running means, which behave otherwise in an evaluation."""
    layers = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)
    made = Toy(folder, model=model or nn.Sequential(*layers))
    y = made.job.rows(RNG.integers(0, 3, 12), batch=4)
    made.loss = lambda: F.cross_entropy(made.model(made.x), y)
    return made


def trained(folder, batch):
    """A classifier with a captured job, a run and an evaluation."""
    made = classifier(folder)
    with made.job:
        made.job.capture(made.step, made.model, made.optimizer)
        made.digest = made.job.evaluate(score_of(made), X, Y, batch=batch)
    assert command("run", made.job.folder, "--out", folder / "run").returncode == 0
    return made


def score_of(made):
    def score(x, y):
        logits = made.model(x)
        return F.cross_entropy(logits, y), (logits.argmax(1) == y).float().mean()

    return score


def command(*words):
    return subprocess.run([VERDE, *map(str, words)], capture_output=True, text=True, check=False)


def job_file(made, weights, folder="job/evaluate", **fields):
    text = "".join(f"{k}: {v}\n" for k, v in fields.items())
    path = made.job.folder.parent / "evaluate.yaml"
    digest = made.digest if folder == "job/evaluate" else made.job.hash
    path.write_text(
        f"verde: 1\n{text}model: {{kind: program, dir: {folder}, sha256: {digest}}}\n{weights}"
    )
    return path


def expect_score_of_block(tmp_path, batch, model=None):
    made = classifier(tmp_path, model)
    with made.job:
        made.job.capture(made.step, made.model, made.optimizer)
        made.digest = made.job.evaluate(score_of(made), X, torch.from_numpy(Y), batch=batch)
        assert made.model.training and next(made.model.parameters()).grad is None
    assert command("run", made.job.folder, "--out", tmp_path / "run").returncode == 0
    run = verde.Run(tmp_path / "run")
    state, root = run.state(6), made_root(tmp_path)
    path = job_file(made, f"weights: {{run: run, root: {root}}}\n", task="evaluate")
    told = command("run", path, "--out", tmp_path / "score", "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout.splitlines()[-1])
    with made.job:
        made.model.load_state_dict({**made.model.state_dict(), **weights(made, state)})
        made.model.eval()
        totals = torch.zeros(2)
        for i in range(50 // batch):
            rows = slice(i * batch, (i + 1) * batch)
            each = score_of(made)(torch.from_numpy(X[rows]), torch.from_numpy(Y[rows]))
            totals = totals + torch.stack(each).detach() / float(50 // batch)
    assert [np.float32(found["evaluation"]), np.float32(found["accuracy"])] == totals.tolist()
    assert command("check", tmp_path / "score", "--job", path).returncode == 0


@needs_verde
@pytest.mark.parametrize("batch", [1, 16, 50])
def test_the_score_is_the_blocks(tmp_path, batch):
    expect_score_of_block(tmp_path, batch)


class Loops(nn.Module):
    """Applies the same layers repeatedly."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = torch.zeros(x.shape)
        for _ in range(20):
            h = torch.tanh(self.a(h) + x) * 0.5 + h * 0.5
        return self.b(h)


@needs_verde
def test_the_score_of_a_model_with_loops_is_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_loops, "SAVED", 30)
    expect_score_of_block(tmp_path, 16, Loops())
    program = (tmp_path / "job" / "evaluate" / "program").read_bytes()
    assert b"m\x01." in program


def made_root(folder):
    text = command("inspect", folder / "run").stdout
    return [line.split()[-1] for line in text.splitlines() if line.startswith("state 6")][0]


def weights(made, state):
    own = made.model.state_dict()
    return {
        n: t.reshape(own[n].shape).to(own[n].dtype) for n, t in state.torch().items() if n in own
    }


def test_windows_of_tokens_are_read_once_each(tmp_path):
    tokens = RNG.integers(0, 9, 200).astype("u1")
    job = repops.jobs.Job(tmp_path / "job", steps=2)
    x, y = job.windows(tokens, batch=2, length=5)
    with job:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def loss_of(x, y):
            return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

        def step():
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        job.capture(step, model, optimizer)
        job.evaluate(loss_of, tokens[:101], batch=4, length=5)
    names = {n.operator.name for n in read(job).step.nodes}
    assert "read_batch" in names
    assert (
        json.loads((job.folder / "evaluate" / "data.json").read_text())["data"][0]["name"]
        == "tokens"
    )


def read(job):
    return job._captured.program


def refused(made, score, *data, **how):
    with made.job, pytest.raises(repops.Error) as error:
        made.job.evaluate(score, *data, **how)
    assert not (made.job.folder / "evaluate").exists()
    return str(error.value)


def test_what_is_no_evaluation_is_refused(tmp_path):
    made = classifier(tmp_path)  # noqa: F811
    assert "job.capture(step, model, optimizer) comes first" in refused(made, None, X, batch=5)
    with made.job:
        made.job.capture(made.step, made.model, made.optimizer)
    score = score_of(made)
    assert "arrays have [49, 50] rows" in refused(made, score, X, Y[1:], batch=5)
    assert "batch is 51; expected 1 to 50" in refused(made, score, X, Y, batch=51)

    def trains(x, y):
        made.model[0].bias.add_(1)
        return score(x, y)

    def no_number(x, y):
        return made.model(x)

    def reads(x, y):
        loss, right = score(x, y)
        return loss if loss > 1 else right

    def three(x, y):
        return (*score(x, y), x.sum())

    assert "0.bias: evaluating changes it" in refused(made, trains, X, Y, batch=5)
    assert "returns no loss; expected a float32" in refused(made, no_number, X, Y, batch=5)
    assert "test_jobs_evaluate.py:" in refused(made, reads, X, Y, batch=5)
    assert "returns a loss, or a loss and an accuracy" in refused(made, three, X, Y, batch=5)


@needs_verde
def test_whose_weights_must_be_told_and_fit(tmp_path):
    made = trained(tmp_path, 5)
    root = made_root(tmp_path)
    own = f"weights: {{run: run, root: {root}}}\n"

    def error(*words):
        told = command(*words, "--out", tmp_path / "none")
        assert told.returncode == 2 and told.stderr.count("\n") == 1, told.stderr
        return told.stderr

    folder = made.job.folder / "evaluate"
    assert "`task: evaluate` and `weights` says which" in error("run", folder)
    assert "`weights` is missing" in error("run", job_file(made, "", task="evaluate"))
    path = job_file(made, own)
    assert "`task: evaluate` and `weights` says which" in error("run", path)
    path = job_file(made, own, folder="job", task="evaluate")
    assert "the program in" in error("run", path)
    assert "train or evaluate" in error("run", job_file(made, own, task="generate"))
    (tmp_path / "other").mkdir()
    other = Toy(tmp_path / "other")
    with other.job:
        other.job.capture(other.step, other.model, other.optimizer)
    assert command("run", other.job.folder, "--out", tmp_path / "other" / "run").returncode == 0
    root = made_root(tmp_path / "other")
    path = job_file(made, f"weights: {{run: other/run, root: {root}}}\n", task="evaluate")
    assert "the state to evaluate has no tensor 0.weight" in error("run", path)


@needs_verde
def test_a_score_that_is_claimed_wrongly_is_convicted(tmp_path):
    made = trained(tmp_path, 10)
    path = job_file(made, f"weights: {{run: run, root: {made_root(tmp_path)}}}\n", task="evaluate")
    first, last = ("first", lambda graph: graph[:1]), ("last", lambda graph: graph[-1:])
    faults = [(name, "element", where, "wrong-output") for name, where in (first, last)]
    assert len(disputes(VERDE, path, tmp_path, faults)) == 2


@needs_verde
def test_a_run_has_no_weights_that_are_left_out(tmp_path):
    made = trained(tmp_path, 10)
    path = job_file(made, f"weights: {{run: run, root: {made_root(tmp_path)}}}\n", task="evaluate")
    assert command("run", path, "--out", tmp_path / "score").returncode == 0
    for name in ("program", "data.json"):
        content = (made.job.folder / "evaluate" / name).read_bytes()
        (tmp_path / "score" / name).write_bytes(content)
    for words in (["check"], ["serve", "--listen", "127.0.0.1:0"]):
        told = command(words[0], tmp_path / "score", *words[1:])
        assert told.returncode in (2, 6) and told.stderr, told
