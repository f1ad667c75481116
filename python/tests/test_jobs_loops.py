"""Loops of a step as repeats: which are found, and that programs mean what was recorded."""

import contextlib
import os
import re
import subprocess

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs
from repops.jobs import _loops

EACH = 10**9  # nodes to save, more than any loop does
BATCH, CLASSES, WIDTH = 3, 4, 6


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM, **how):
        super().__init__()
        self.cell = kind(WIDTH, WIDTH, batch_first=True, **how)
        self.head = nn.Linear(WIDTH * (2 if how.get("bidirectional") else 1), CLASSES)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Cells(nn.Module):
    """A Python loop over time. odd: an iteration that does something else."""

    def __init__(self, kind=nn.LSTMCell, odd=-1):
        super().__init__()
        self.cell, self.head, self.odd = kind(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES), odd

    def forward(self, x):
        state = None
        for t, now in enumerate(x.unbind(1)):
            state = self.cell(now.sin() if t == self.odd else now, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Filled(nn.Module):
    """Writes each time step into a tensor that exists before the loop."""

    def __init__(self):
        super().__init__()
        self.a, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        y, h = torch.zeros(x.shape), torch.zeros(len(x), WIDTH)
        for t in range(x.shape[1]):
            h = torch.tanh(self.a(h) + x[:, t])
            y[:, t] = h.sin() * h.cos() + h.exp()
        return self.head(y.mean(1))


class Growing(nn.Module):
    """Each time step reads all earlier ones, so that no two have the same shapes."""

    def __init__(self):
        super().__init__()
        self.a, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        past = x[:, :1]
        for t in range(1, x.shape[1]):
            past = torch.cat([past, self.a(past.mean(1, keepdim=True)) + x[:, t : t + 1]], 1)
        return self.head(past[:, -1])


class Layers(nn.Module):
    def __init__(self, count):
        super().__init__()
        make = lambda: nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.1, batch_first=True)  # noqa: E731
        self.layers = nn.ModuleList(make() for _ in range(count))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


@pytest.fixture
def capture(tmp_path, monkeypatch):
    """Captures a classifier of sequences; loops become repeats if they save `saved` nodes."""

    def one(make, times=9, saved=30, parts=1, check=True):
        monkeypatch.setattr(_loops, "SAVED", saved)
        job = repops.jobs.Job(tmp_path / f"job{saved}", seed=7, steps=2, checkpoint_interval=1)
        rng = np.random.default_rng(0)
        numbers = rng.standard_normal((8, times, WIDTH), "f4")
        x, y = job.rows(numbers, rng.integers(0, CLASSES, 8), batch=BATCH * parts)
        block.enter_context(job)
        torch.manual_seed(1)
        model = make()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2, fused=True)

        def step():
            total = torch.zeros(())
            for part in job.micro_batches(parts) if parts > 1 else [slice(0, BATCH)]:
                loss = F.cross_entropy(model(x[part]), y[part]) / parts
                loss.backward()
                total = total + loss.detach()
            optimizer.step()
            optimizer.zero_grad()
            return total

        job.capture(step, model, optimizer)
        if check and os.environ.get("VERDE"):
            job.check(2, os.environ["VERDE"])
        return job

    with contextlib.ExitStack() as block:
        yield one


def repeats(job):
    return [(r.count, len(r.sums)) for r in job._captured.program.step.repeats]


def nodes(job):
    """The nodes that `verde graph` prints, without names; it reads the program's bytes."""
    told = subprocess.run(
        [os.environ["VERDE"], "graph", job.folder], capture_output=True, text=True, check=True
    )
    lines = [line for line in told.stdout.splitlines() if line[0] != "#"]
    return [re.sub(r"^(%\d+) .* (\w+\([^()]*\) -> )", r"\1 \2", line) for line in lines]


MODELS = {
    "lstm": (Recurrent, 2),
    "lstm-2": (lambda: Recurrent(num_layers=2), 4),
    "lstm-both": (lambda: Recurrent(bidirectional=True), 4),
    "gru": (lambda: Recurrent(nn.GRU), 2),
    "rnn": (lambda: Recurrent(nn.RNN), 1),
    "lstm-cells": (Cells, 2),
    "gru-cells": (lambda: Cells(nn.GRUCell), 2),
    "filled": (Filled, 1),
    "layers": (lambda: Layers(6), 3),
    "growing": (Growing, 0),
    "plain": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(54, CLASSES)), 0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_program_means_the_nodes_that_were_recorded(capture, name):
    make, expected = MODELS[name]
    each, looped = capture(make, saved=EACH, check=False), capture(make)
    assert repeats(each) == [] and len(repeats(looped)) >= expected
    sizes = [(job.folder / "program").stat().st_size for job in (each, looped)]
    assert sizes[1] < sizes[0] if expected else sizes[1] <= sizes[0]
    if os.environ.get("VERDE"):
        assert nodes(looped) == nodes(each)


@pytest.mark.parametrize("odd", [0, 4, 8])
def test_an_iteration_that_is_another_one_ends_a_loop(capture, odd):
    each, looped = (capture(lambda: Cells(odd=odd), saved=n) for n in (EACH, 30))
    counts = [count for count, _ in repeats(looped)]
    assert counts and sum(counts) < 2 * 9
    if os.environ.get("VERDE"):
        assert nodes(looped) == nodes(each)


def test_a_program_without_loops_is_as_it_was(capture):
    each, some = (capture(MODELS["plain"][0], saved=n) for n in (EACH, 1))
    assert each.hash == some.hash


def test_loops_that_save_little_stay(capture):
    assert repeats(capture(Recurrent, saved=1000)) == []


def test_micro_batches_are_the_repeats_of_a_step_that_has_them(capture):
    job = capture(Recurrent, parts=2, saved=10)
    assert [count for count, _ in repeats(job)] == [2]


def named(job):
    """The program's bytes, which contain the names."""
    return (job.folder / "program").read_bytes()


def test_names_tell_the_iteration(capture):
    job = capture(lambda: Layers(5))
    assert b"layers.\x01." in named(job) and b"layers.4-\x01." in named(job)
    assert b"m\x01.cell.backward" in named(capture(Recurrent))
    parts = capture(MODELS["plain"][0], parts=2)
    assert b"m\x01.1.matmul" in named(parts) and b"sum.m\x01-\x02.1.weight" in named(parts)


def test_twelve_layers_are_stored_once(capture):
    job = capture(lambda: Layers(12), times=5)
    program = job._captured.program.step
    counts = [r.count for r in program.repeats]
    assert len(counts) == 3 and min(counts) >= 10
    listed = len(program.nodes) - sum((r.count - 1) * r.size for r in program.repeats)
    assert listed < len(program.nodes) / 4


def test_an_lstm_of_512_steps_is_small(capture, tmp_path):
    job = capture(Recurrent, times=512, saved=1000, check=False)
    assert (job.folder / "program").stat().st_size < 200_000
    assert [count for count, _ in repeats(job)] == [511, 509]
    command = os.environ.get("VERDE")
    if not command:
        return
    in_little = 'ulimit -d 32768; exec "$0" run "$1" --out "$2" --threads 1'  # KiB
    words = ["sh", "-c", in_little, command, str(job.folder), str(tmp_path / "run")]
    subprocess.run(words, check=True, capture_output=True)
    job._captured.compare(tmp_path / "run", 2)


# ---- the parts ----


def test_pieces_that_a_loop_writes_are_joined_once(capture):
    job = capture(Filled, saved=EACH)
    forward = [n for n in job._captured.program.step.nodes if "backward" not in n.name]
    assert [n.operator.name for n in forward].count("concat_axis") == 1, "times, side by side"


class Torn(nn.Module):
    """Writes parts of a tensor in any order and form, and reads parts of it in between."""

    def __init__(self, seed):
        super().__init__()
        self.head, self.seed = nn.Linear(WIDTH, CLASSES), seed

    def forward(self, x):
        rng = np.random.default_rng(self.seed)
        with torch.no_grad():
            y, read = x * 1.5, torch.zeros(x.shape)
            for i in range(12):
                self.part(y, rng).add_(i + 1)
                self.part(y, rng).mul_(0.5)
                part = self.part(y, rng)
                read.view(-1)[: part.numel()].add_(part.reshape(-1))
        return self.head((y + read).mean(1))

    @staticmethod
    def part(y, rng):
        """A random view: time steps, columns, both, flat elements, or every second time step."""
        (a, b), (c, d) = (sorted(rng.choice(n + 1, 2, replace=False)) for n in y.shape[1:])
        forms = (
            lambda: y[:, a:b],
            lambda: y[:, :, c:d],
            lambda: y[1:2, a:b, c:d],
            lambda: y.view(-1)[7 * a : 7 * b],
            lambda: y[:, ::2],
        )
        return forms[rng.integers(len(forms))]()


@pytest.mark.parametrize("seed", range(8))
def test_any_parts_of_a_tensor_are_written_and_read(capture, seed):
    job = capture(lambda: Torn(seed), saved=EACH)
    assert len(job._captured.program.step.nodes) > 60


def test_what_repeats_mean_is_compared(capture):
    job = capture(Recurrent)
    graph = job._captured.program.step
    _loops._compare(graph)
    shifted = [
        (r, k, i)
        for r in graph.repeats
        for k, read in enumerate(r.inputs)
        for i, (kind, _) in enumerate(read)
        if kind == _loops.SHIFTED
    ]
    assert shifted
    for r, k, i in shifted:
        kind, (v, slope) = r.inputs[k][i]
        r.inputs[k][i] = kind, (v, slope + 1)
        with pytest.raises(repops.Error, match="another node in a repeat"):
            _loops._compare(graph)
        r.inputs[k][i] = kind, (v, slope)
    r = graph.repeats[0]
    k = next(k for k, slope in enumerate(r.slopes) if slope)
    r.slopes[k] = None
    with pytest.raises(repops.Error, match="another node in a repeat"):
        _loops._compare(graph)
