"""Captured steps in forms that `verde` runs as one function, with the block's bits."""

import collections
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from capturing import trained_by
from conftest import called
from torch import nn

import repops.jobs

WIDTH, HEADS, LENGTH, CLASSES = 16, 2, 6, 9
IGNORED = -100


def split(x, heads=HEADS):
    """Splits [batch, tokens, width] into heads."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


class Attention(nn.Module):
    """Queries, keys and values from one layer, split or stacked, or from three layers."""

    def __init__(self, how):
        super().__init__()
        self.how, self.out = how, nn.Linear(WIDTH, WIDTH)
        wide = [3 * WIDTH] if how in ("cut", "stacked") else [WIDTH] * 3
        self.parts = nn.ModuleList(nn.Linear(WIDTH, n) for n in wide)

    def heads(self, x):
        if self.how == "cut":
            return [split(p) for p in self.parts[0](x).split(WIDTH, dim=2)]
        if self.how == "stacked":
            rows = self.parts[0](x).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
            return rows.permute(2, 0, 3, 1, 4).unbind(0)
        return [split(part(x)) for part in self.parts]

    def forward(self, x):
        y = F.scaled_dot_product_attention(*self.heads(x), is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, how="cut"):
        super().__init__()
        self.table, self.attention = nn.Embedding(CLASSES, WIDTH), Attention(how)
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 20), nn.GELU(), nn.Linear(20, WIDTH))

    def forward(self, ids):
        x = self.attention(self.table(ids))
        return (x + self.mlp(self.norm(x))) @ self.table.weight.T


def captured(folder, model=Model, batch=2, labels=None, clip=None):
    """A job that trains the model to predict `labels`, or the tokens themselves; all steps are
    compared with the command."""
    ids = np.random.default_rng(0).integers(0, CLASSES, (8, LENGTH))
    job = repops.jobs.Job(folder / "job", seed=3, steps=3, checkpoint_interval=1)
    x, y = job.rows(ids, ids if labels is None else labels, batch=batch)
    with job:
        torch.manual_seed(1)
        own = model()
        optimizer = torch.optim.AdamW(own.parameters(), 1e-2, fused=True)

        def value():
            return F.cross_entropy(own(x).flatten(0, 1), y.flatten())

        if clip is None:
            trained_by(value, job, own, optimizer)
        else:
            step_by(value, job, own, optimizer, clip)
    return job.folder


def step_by(value, job, own, optimizer, clip):
    def step():
        loss = value()
        loss.backward()
        nn.utils.clip_grad_norm_(own.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    job.capture(step, own, optimizer)
    assert len(job.check(job.steps)) == job.steps


def lines(command, folder):
    """For each node its operator and how it is run."""
    text = called(command, "graph", "--fused", folder)
    found = re.findall(r"^%\d+ +\S+ +(\w+)\(.*?\](?:  @ ([^#\n]*?))?(?:  #.*)?$", text, re.M)
    return [(operator, re.sub(r" \d+$", "", how)) for operator, how in found]


def functions(command, folder):
    return {how for _, how in lines(command, folder)}


BLOCK = {"attention", "attention, gradient", "linear layer", "layer norm", "layer norm, gradient"}
LOSS = {"cross-entropy", "AdamW", "gradient added to a table's"}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("how", ["cut", "stacked", "each"])
def test_a_block_runs_as_functions(command, tmp_path, how, batch):
    folder = captured(tmp_path, lambda: Model(how), batch)
    nodes = lines(command, folder)
    assert {run for _, run in nodes} >= BLOCK | LOSS
    # Heads are read and written in place.
    assert not [o for o, run in nodes if o in ("transpose", "split_heads") and not run]
    assert not [o for o, run in nodes if o == "join_heads" and not run.startswith("attention")]
    assert not [o for o, run in nodes if o == "reshape" and run == ""]


def test_rows_that_do_not_count_run_as_one_function(command, tmp_path):
    labels = np.random.default_rng(1).integers(0, CLASSES, (8, LENGTH))
    labels[:, ::2] = IGNORED
    nodes = lines(command, captured(tmp_path, labels=labels))
    assert ("xent_ignore_grad", "cross-entropy") in nodes


def test_gradients_are_clipped_as_they_are_read(command, tmp_path):
    nodes = lines(command, captured(tmp_path, clip=0.1))
    own = collections.Counter(o for o, run in nodes if run == "")
    parameters = len(list(Model().parameters()))
    assert own["mul"] == 1 and own["slice"] == 0 and own["concat_axis"] == 1
    assert [run for _, run in nodes].count("AdamW") == 3 * parameters


def test_a_transpose_there_and_back_is_none(command, tmp_path):
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(WIDTH, WIDTH), nn.Embedding(CLASSES, WIDTH)

        def forward(self, ids):
            x = self.two(ids).transpose(0, 1).contiguous()  # tokens first
            x = x.transpose(0, 1).contiguous()
            return self.one(x) @ self.two.weight.T

    nodes = lines(command, captured(tmp_path, Turned))
    assert not [o for o, _ in nodes if o in ("transpose", "split_heads", "join_heads")]


def test_a_list_of_slices_is_what_it_was_cut_from(tmp_path, command):
    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.one = nn.Embedding(CLASSES, WIDTH), nn.Linear(WIDTH, CLASSES)

        def forward(self, ids):
            return self.one(torch.stack([row for row in self.table(ids)]))

    nodes = lines(command, captured(tmp_path, Cut))
    assert not [o for o, _ in nodes if o in ("slice", "concat_axis")]


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(CLASSES, WIDTH)
        self.one, self.two = (nn.Conv1d(WIDTH, WIDTH, 3, padding=1, bias=False) for _ in range(2))
        self.norm = nn.BatchNorm1d(WIDTH)

    def forward(self, ids):
        x = self.table(ids).transpose(1, 2)  # channels first
        x = self.two(torch.tanh(self.norm(self.one(x))))
        return x.transpose(1, 2) @ self.table.weight.T


def test_channels_stay_last_between_convolutions(command, tmp_path):
    """Only weights and their gradients are transposed."""
    folder = captured(tmp_path, Convolutions)
    text = called(command, "graph", folder)
    found = re.findall(r"^%\d+ +\S+ +transpose\(.* -> f32\[([0-9,]+)\]", text, re.M)
    assert found and all(size.count(",") >= 2 for size in found)
    assert not [size for size in found if size.startswith("2,")], found


class Grouped(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(CLASSES, WIDTH), nn.GroupNorm(4, WIDTH)

    def forward(self, ids):
        x = self.norm(self.table(ids).transpose(1, 2).contiguous())
        return F.silu(x).transpose(1, 2) @ self.table.weight.T


def test_numbers_of_channels_are_not_copied_for_each_row(command, tmp_path):
    """Per-channel numbers are repeated along the batch by the operator that reads them; numbers for
    each row, as the backward pass's means, must be expanded."""
    text = called(command, "graph", captured(tmp_path, Grouped))
    found = re.findall(r"^%\d+ +norm\.\S* +expand\(.* -> f32\[([0-9,]+)\]", text, re.M)
    assert set(found) == {f"{WIDTH},{LENGTH}", f"{2 * 4},{WIDTH // 4 * LENGTH}"}
