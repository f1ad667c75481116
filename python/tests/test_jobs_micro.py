"""Micro-batches: gradients are summed in one order, however many processes share the parts."""

import os
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from capturing import Toy, toy  # noqa: F401
from torch import nn

import repops
import repops.jobs

ROWS, BATCH = 50, 24


class Parts:
    """A classifier with dropout and running means, trained in micro-batches."""

    def __init__(self, folder, count, model=None, **declared):
        self.job = repops.jobs.Job(folder / "job", seed=7, steps=6, checkpoint_interval=2)
        rng, self.count = np.random.default_rng(0), count
        x, y = rng.standard_normal((ROWS, 8), "f4"), rng.integers(0, 3, ROWS)
        self.x, self.y = self.job.rows(x, y, batch=BATCH, **declared)
        torch.manual_seed(1)
        self.model = model or nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 3)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2, fused=True)

    def loss(self, part):
        loss = F.cross_entropy(self.model(self.x[part]), self.y[part]) / self.count
        loss.backward()
        return loss.detach()

    def update(self, total):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total

    def step(self):
        total = torch.zeros(())
        for part in self.job.micro_batches(self.count):
            total = total + self.loss(part)
        return self.update(total)

    def capture(self, step=None):
        digest = self.job.capture(step or self.step, self.model, self.optimizer)
        if os.environ.get("VERDE"):
            self.job.check(3, os.environ["VERDE"])
        return digest

    @property
    def repeats(self):
        return [(r.count, len(r.sums)) for r in self.job._captured.program.step.repeats]


@pytest.fixture
def parts(tmp_path):
    def make(count, **declared):
        made = Parts(tmp_path, count, **declared)
        block.enter_context(made.job)
        return made

    import contextlib

    with contextlib.ExitStack() as block, warnings.catch_warnings():
        warnings.simplefilter("error")
        yield make


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8, 12, 24])
def test_sums_are_those_of_the_executor(parts, count):
    own = parts(count, model=nn.Linear(8, 3) if count == 24 else None)
    own.capture()
    sums = len(list(own.model.parameters()))
    assert own.repeats == [(count, sums)]


def test_one_part_is_the_whole_batch(parts):
    own = parts(1)

    def whole():
        return own.update(own.loss(slice(0, BATCH)))

    def one():
        (loss,) = [own.loss(part) for part in own.job.micro_batches(1)]
        return own.update(loss)

    assert own.capture(one) == own.capture(whole)
    assert own.repeats == []


def test_the_sum_is_a_tree_and_not_a_chain(parts):
    own = parts(6, model=nn.Linear(8, 3, bias=False))
    found, weight = [], own.model.weight

    def step():
        total, each = torch.zeros(()), []
        for part in own.job.micro_batches(6):
            total = total + own.loss(part)
            each.append(weight.grad.detach().clone())
        found.append((each, weight.grad.detach().clone()))
        return own.update(total)

    own.job.capture(own.step, own.model, own.optimizer)
    own.job._captured.steps.step = step
    own.job._captured.steps.run(0)
    (a, b, c, d, e, f), total = found[-1]
    assert torch.equal(total, ((a + b) + (c + d)) + (e + f))
    assert not torch.equal(total, ((((a + b) + c) + d) + e) + f)


@pytest.mark.parametrize("how", ["none", "list", "after"])
def test_losses_are_added_up_as_the_user_likes(parts, how):
    own = parts(4)

    def step():
        total, each = None, []
        for part in own.job.micro_batches(4):
            loss = own.loss(part)
            each.append(loss)
            total = loss if total is None else total + loss
        return own.update(total if how == "none" else torch.stack(each).sum())

    own.capture(step)
    assert own.repeats == [(4, 6)]


def test_gradients_that_are_there_stay_in_the_sum(parts):
    own = parts(3)
    own.loss(slice(0, 3))
    own.optimizer.zero_grad(set_to_none=False)

    def step():
        total = torch.zeros(())
        for part in own.job.micro_batches(3):
            total = total + own.loss(part)
        own.optimizer.step()
        own.optimizer.zero_grad(set_to_none=False)
        return total

    own.capture(step)
    assert own.repeats == [(3, 6)]


def test_parts_of_windows_by_two_loops_over_tied_weights(tmp_path):
    tokens = np.random.default_rng(0).integers(0, 50, 400).astype("u1")
    job = repops.jobs.Job(tmp_path / "job", seed=1, steps=4, checkpoint_interval=1)
    x, y = job.windows(tokens, batch=8, length=6)
    with job:
        torch.manual_seed(2)
        table, unused = nn.Embedding(50, 8), nn.Linear(3, 3)
        head = nn.Linear(8, 50, bias=False)
        head.weight = table.weight
        models = {"table": table, "head": head, "unused": unused}
        optimizer = torch.optim.SGD([*table.parameters(), *unused.parameters()], 0.1, momentum=0.9)

        def step():
            for part in job.micro_batches(2):  # only divides x, which is the words before
                loss = F.cross_entropy(head(table(x[part])).flatten(0, 1), x[part].flatten())
                loss.backward()
            total = torch.zeros(())
            for part in job.micro_batches(2):
                loss = F.cross_entropy(head(table(x[part])).flatten(0, 1), y[part].flatten())
                loss.backward()
                total = total + loss.detach()
            optimizer.step()
            optimizer.zero_grad()
            return total

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            job.capture(step, models, optimizer)
        if os.environ.get("VERDE"):
            job.check(3, os.environ["VERDE"])
        assert [r.count for r in job._captured.program.step.repeats] == [2, 2]


def test_what_is_not_alike_runs_in_one_process(tmp_path):
    made = Parts(tmp_path, 4, order=np.arange(6 * BATCH).reshape(6, BATCH) % ROWS)
    with made.job, pytest.warns(UserWarning, match="not alike.*test_jobs_micro.py:"):
        made.capture()
    assert made.repeats == []


def test_chosen_rows_of_a_table_are_divided_where_their_number_is_told(tmp_path):
    toy = Toy(tmp_path)  # noqa: F811
    noise = toy.job.table(np.random.default_rng(1).standard_normal((6, 4, 4), "f4"))

    def step():
        with_noise = toy.job.micro_batches(2, batch=4)
        total = torch.zeros(())
        for part in with_noise:
            loss = toy.model(toy.x[part] + noise[part]).square().mean()
            loss.backward()
            total = total + loss.detach()
        toy.optimizer.step()
        toy.optimizer.zero_grad()
        return total

    with toy.job, pytest.warns(UserWarning, match="not alike"):
        toy.capture(step)


def refused(own, step):
    with pytest.raises((repops.Error, repops.jobs.CaptureError)) as error:
        own.job.capture(step, own.model, own.optimizer)
    assert not own.job.folder.exists()
    return str(error.value)


def test_loops_that_are_no_sum_are_refused(parts):
    own = parts(4)

    def stops():
        for part in own.job.micro_batches(4):
            loss = own.loss(part)
            break
        return own.update(loss)

    def sometimes():
        last = own.model[4]
        for part in own.job.micro_batches(4):
            last.requires_grad_(part.start == 0)
            loss = own.loss(part)
        last.requires_grad_(True)
        return own.update(loss)

    def uneven():
        for part in own.job.micro_batches(5):
            loss = own.loss(part)
        return own.update(loss)

    assert "the loop over job.micro_batches ends before its last part" in refused(own, stops)
    assert "4.weight has a gradient in some micro-batches" in refused(own, sometimes)
    assert "5 micro-batches of 24 rows; expected a number that divides" in refused(own, uneven)
    with pytest.raises(repops.Error, match="a step that job.capture or job.check runs"):
        next(own.job.micro_batches(4))


def test_batches_of_two_sizes_need_a_number(parts):
    own = parts(4)
    own.job.rows(np.zeros((9, 2), "f4"), batch=3)
    assert "batches have 3 and 24 rows; say which one is divided: batch=" in refused(own, own.step)


def team():
    verde = os.environ.get("VERDE")
    if not verde or not shutil.which("mpirun"):
        return None
    library = Path(verde).resolve().parent.parent / "lib" / "libverde_mpi.so.1"
    return verde if library.exists() else None


@pytest.mark.skipif(
    team() is None, reason="mpirun, or the library that `make mpi` makes, is not here"
)
@pytest.mark.parametrize("processes", [2, 3])
def test_a_team_arrives_at_the_same_root(parts, tmp_path, processes):
    own = parts(4)
    own.capture()
    roots = []
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(processes)]
    for before in ([], mpirun):
        out = tmp_path / f"run{len(before)}"
        command = [*before, team(), "run", own.job.folder, "--out", out]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        roots.append([line for line in told.splitlines() if line.startswith("run root")])
    assert len(roots[0]) == 1 and roots[0] == roots[1]
