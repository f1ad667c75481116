"""Data that Python reads: a step that does the same whatever it reads is captured, any other one is
refused."""

import pickle

import numpy as np
import pytest
import torch
from capturing import Toy
from torch.nn.utils import rnn

from repops.jobs import _reads

STEPS = 6  # steps 0, 1 and 5 are recorded in any case
COUNTS = np.array([[3, 1, 2]] * STEPS)
SIZES = np.array([[5, 4, 3]] * 4 + [[5, 5, 2], [5, 4, 3]])  # of packed sequences
FLOATS = np.full((STEPS, 5), 0.5, "f4")
ONES = np.ones((STEPS, 3), bool)
MASK = np.broadcast_to(np.arange(12).reshape(4, 3) % 4 > 0, (STEPS, 4, 3)).copy()
LATE = ONES.copy()
LATE[4, 1] = False


def reading(tmp_path, table, look, **how):
    """A step that computes look(row of the table, model's output)."""
    toy = Toy(tmp_path, **how)
    given = toy.job.table(np.asarray(table))
    return toy, lambda: toy.train(look(given, toy.model(toy.x)).square().mean())


def names(toy):
    return [n.operator.name for n in toy.program.step.nodes]


def packed(n, y):
    x = rnn.pack_padded_sequence(y.reshape(4, 3, 1), n.sort(descending=True)[0])
    return rnn.pad_packed_sequence(x)[0] * (1 + x.batch_sizes[0])


def padded(n, y):
    x = rnn.pad_packed_sequence(rnn.PackedSequence(y.reshape(12, 1), n))[0]
    return x * torch.arange(x.numel()).reshape(x.shape)


def recurrent(n, y):
    x, flat = y.reshape(12, 1), y.reshape(-1)
    weights = [flat[:6].reshape(6, 1), flat.reshape(6, 2), flat[6:], flat[3:9]]
    start = torch.zeros(1, 5, 2)
    return torch._VF.gru(x, n, start, weights, True, 1, 0.0, True, False)[1]


# The data are the same at all steps. Operators that only lead to Python's reads, such as sorting,
# need no rule.
CONSTANT = {
    "all": (ONES, lambda m, y: y if m.all() else torch.where(m, y, 0.0)),
    "item": (COUNTS, lambda n, y: y * n.max().item()),
    "tolist": (COUNTS, lambda n, y: torch.cat([y[:k] for k in (n + 1).tolist()])),
    "sort": (COUNTS, lambda n, y: y[: n.sort(descending=True)[0][1].item()]),
    "sum": (FLOATS, lambda f, y: y * (f * 2).sum().item()),
    "in place": (FLOATS, lambda f, y: y * f.clone().add_(1).mul_(f)[1:].max().item()),
    "of a part": (FLOATS, lambda f, y: y * torch.zeros(7).index_put_((f.long(),), f)[0].item()),
    "a sum of parts": (
        FLOATS,
        lambda f, y: y * torch.zeros(7).index_put_((f.long(),), f, accumulate=True)[0].item(),
    ),
    "scattered": (FLOATS, lambda f, y: y * torch.zeros(7).scatter_(0, f.long(), f)[0].item()),
    "looked up": (FLOATS, lambda f, y: y * torch.arange(7.0)[f.long()].sum().item()),
    "equal": (COUNTS, lambda n, y: y if torch.equal(n, torch.tensor([3, 1, 2])) else -y),
    "nonzero": (ONES, lambda m, y: y.index_select(1, m.nonzero()[:, 0])),
    "mask": (MASK, lambda m, y: y[m]),
    "mask of rows": (MASK, lambda m, y: y.t()[m[0], 1:3]),
    "constant mask": (MASK, lambda m, y: y[torch.arange(12).reshape(4, 3) % 5 > 1]),
    "masked_select": (MASK, lambda m, y: y.masked_select(m[0])),
    "masked_scatter": (MASK, lambda m, y: torch.ones(4, 3).masked_scatter(m, y)),
    "unique": (COUNTS, lambda n, y: y[: len(n.unique())]),
    "lengths": (COUNTS, packed),
    "list": (COUNTS, lambda n, y: y * torch.as_tensor([n[0], n[2]]).sum()),
    "split": (COUNTS, lambda n, y: y.tensor_split(n[1:])[1]),
    "sizes": (SIZES[:1].repeat(STEPS, 0), padded),
    "sizes of a layer": (SIZES[:1].repeat(STEPS, 0), recurrent),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_what_is_the_same_at_all_steps_is_a_constant(tmp_path, name):
    toy, step = reading(tmp_path, *CONSTANT[name])
    toy.capture(step)
    toy.check(STEPS)


@pytest.mark.parametrize("table", [LATE, ~LATE, np.arange(3 * STEPS).reshape(STEPS, 3) % 4 > 0])
def test_a_step_that_does_the_same_whatever_it_reads(tmp_path, table):
    toy, step = reading(tmp_path / "a", table, lambda m, y: (m.all() and print("all"), y)[1])
    toy.capture(step)
    toy.check(STEPS)
    plain, step = reading(tmp_path / "b", table, lambda m, y: y)
    plain.capture(step)
    assert names(toy) == names(plain)


def at(f, y):
    """y[:, k], where k is a float that becomes an integer, so that its bounds are unknown."""
    return y.index_select(1, f[:1].long())


def written(f, y):
    z = y.detach().clone()
    z[0, 1] = f[0]
    z[:, 0].add_(z.double()[:, 1])


# What neither the loss nor the state depends on needs no rule.
UNUSED = {
    "without bounds": at,
    "without a rule": lambda f, y: torch.searchsorted(y[0].detach(), 0.5),
    "of another type": lambda f, y: y.double().sum() + f.double(),
    "in place": written,
    "draws": lambda f, y: torch.rand(3) + torch.nn.functional.dropout(y)[0],
}


@pytest.mark.parametrize("name", UNUSED)
def test_what_nothing_uses_is_left_out(tmp_path, name):
    def dropped(look):
        return lambda f, y: (look(f, y), torch.nn.functional.dropout(y))[1]

    toy, step = reading(tmp_path / "a", FLOATS, dropped(UNUSED[name]))
    toy.capture(step)
    toy.check(STEPS)  # later draws are those of the block
    plain, step = reading(tmp_path / "b", FLOATS, dropped(lambda f, y: None))
    plain.capture(step)
    assert names(toy) == names(plain)
    x = np.ones((STEPS, 4), "f4")
    with_it = toy.job.evaluate(
        lambda f, x: (UNUSED[name](f[0], toy.model(x)), toy.model(x).mean())[1], FLOATS, x, batch=1
    )
    assert with_it == toy.job.evaluate(lambda f, x: toy.model(x).mean(), FLOATS, x, batch=1)


# The loss depends on each, or what is drawn has no place in any program.
USED = {
    "indices of which no bounds are known": at,
    "no rule for a number": lambda f, y: y * torch.searchsorted(y[0].detach(), 0.5),
    "float64": lambda f, y: y.double().square().float(),
    "it draws from a generator that is given": lambda f, y: (
        torch.rand(3, generator=torch.Generator()),
        y,
    )[1],
}


@pytest.mark.parametrize("words", USED)
def test_what_is_used_is_refused(tmp_path, words):
    toy, step = reading(tmp_path, FLOATS, USED[words])
    assert words in toy.refused(step)


# Each behaves otherwise at step 4 only, or at more steps.
VARIES = {
    "all": (LATE, lambda m, y: y if m.all() else -y, "it is True at step 0, False at step 4"),
    "item": (LATE, lambda m, y: y * m.sum().item(), "it is 3 at step 0, 2 at step 4"),
    "mask": (LATE, lambda m, y: y[:3][m], "at step 4"),
    "tolist": (LATE, lambda m, y: y * m.tolist()[1], "it is [True, True, True] at step 0"),
    "nonzero": (LATE, lambda m, y: y.index_select(1, m.nonzero()[:, 0]), "at step 0, [[0], [2]]"),
    "list": (LATE, lambda m, y: y * torch.tensor([m[1], 2]).sum(), "it is True at step 0"),
    "split": (SIZES, lambda n, y: y.flatten().tensor_split(n[2:])[0], "at step 4"),
    "nan": (
        np.where(LATE, np.float32(1), np.nan),
        lambda f, y: y * f[1].item(),
        "it is 1.0 at step 0, nan at step 4",
    ),
    "zero": (
        np.where(LATE, np.float32(0), np.float32(-0.0)),
        lambda f, y: y + f[1].item(),
        "it is 0.0 at step 0, -0.0 at step 4",
    ),
    "lengths": (np.where(LATE, 2, 1), packed, "at step 4"),
    "sizes": (SIZES, padded, "it is [5, 4, 3] at step 0, [5, 5, 2] at step 4"),
    "sizes of a layer": (SIZES, recurrent, "it is [5, 4, 3] at step 0, [5, 5, 2] at step 4"),
}


@pytest.mark.parametrize("name", VARIES)
def test_a_step_that_does_otherwise_at_one_step(tmp_path, name):
    table, look, words = VARIES[name]
    toy, step = reading(tmp_path, table, look)
    told = toy.refused(step)
    assert "Python reads a number that depends on the step's data" in told and words in told


def sampled(m, y):
    choice = torch.distributions.Categorical(logits=y, validate_args=True)
    return choice.log_prob(m.long()[:1].expand(4))


def clipped(m, y):
    w = torch.ones(3, requires_grad=True)
    (y.detach() * w).sum().backward()
    torch.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    return y


def scaled(m, y):
    w = torch.ones(3, requires_grad=True)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale((y.detach() * w).sum()).backward()
    scaler.step(torch.optim.SGD([w], 0.1))
    return y


# Reads inside torch, which differ only in the advice given.
HINTS = {
    "validate_args=False": sampled,
    "leave error_if_nonfinite out": clipped,
    "leave it out: a step computes in float32": scaled,
    "tolist() may be read": lambda m, y: y if m.numpy().all() else -y,
}


@pytest.mark.parametrize("words", HINTS)
def test_what_to_write_for_what_torch_reads(tmp_path, words):
    toy, step = reading(tmp_path, ONES, HINTS[words])
    assert words in toy.refused(step)


def drawn(m, y):
    return y if torch.nn.functional.dropout(m.float()).sum().item() > 9 else -y


def with_numpy(m, y):
    return y if m.numpy().all() else -y


STATE = {
    "model": lambda m, y: y if y.sum().item() > 0 else -y,
    "both": lambda m, y: y if torch.where(m, y[:, :3], 0.0).max().item() > 9 else y,
    "draw": drawn,
    "numpy": with_numpy,
    "list": lambda m, y: y * torch.tensor([y.detach().max(), 2]).sum(),
    "pickle": lambda m, y: y * pickle.loads(pickle.dumps(m)).sum(),
}


@pytest.mark.parametrize("name", STATE)
def test_what_does_not_follow_from_data_alone_is_refused(tmp_path, name):
    toy, step = reading(tmp_path, ONES, STATE[name])
    assert "Python reads a number that depends on the step's data" in toy.refused(step)


def test_data_that_become_state_within_a_step(tmp_path):
    """The same memory first depends on data alone, and later on more."""

    def look(f, y):
        held = f.clone()
        first = held.max().item()
        held.copy_(y.detach()[0, 0].expand(5))
        return y * first * held.max().item()

    toy, step = reading(tmp_path, FLOATS, look)
    assert toy.refused(step).count("Python reads a number") == 1


def test_more_ways_than_are_recorded(tmp_path):
    table = np.arange(12).reshape(12, 1)
    toy, step = reading(tmp_path, table, lambda n, y: (n.item(), y)[1], steps=12)
    assert "steps differ by it in more than 8 ways" in toy.refused(step)


def test_a_step_whose_data_torch_refuses(tmp_path):
    table = COUNTS.copy()
    table[3, 0] = 7
    toy, step = reading(tmp_path, table, lambda n, y: y * torch.arange(5)[n].max().item())
    assert "cannot be computed again for step 3: index 7 is out of bounds" in toy.refused(step)


def test_a_job_of_too_many_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(_reads, "STEPS_MAX", 5)
    toy, step = reading(tmp_path, *CONSTANT["all"])
    assert "a job of more than 5 steps is not looked at" in toy.refused(step)


def test_it_is_told_how_far_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_reads, "QUIET", 0.0)
    toy, step = reading(tmp_path, *CONSTANT["all"])
    toy.capture(step)
    assert "reading data: step 3 of 6" in capsys.readouterr().err


def test_a_number_that_a_scheduler_sets_is_no_number_of_data(tmp_path):
    toy = Toy(tmp_path)
    given = toy.job.table(FLOATS)
    scheduler = torch.optim.lr_scheduler.StepLR(toy.optimizer, 2, 0.5)

    def step():
        rate = toy.optimizer.param_groups[0]["lr"]
        return toy.train(toy.loss() * (1 if (given * rate).max().item() > -1 else 2))

    assert "a number that a scheduler sets" in toy.refused(step, scheduler)


def test_what_is_written_at_one_step_alone_is_seen(tmp_path):
    toy = Toy(tmp_path)
    toy.model.register_buffer("flag", torch.zeros(1))
    given = toy.job.table(LATE)

    def step():
        if not given.all():
            toy.model.flag.fill_(1)
        return toy.step()

    assert "flag" in toy.refused(step)


def test_an_evaluation_reads_its_own_data(tmp_path):
    toy, step = reading(tmp_path, *CONSTANT["all"])
    toy.capture(step)

    def score(m, x):
        y = toy.model(x)
        return (y if m.all() else -y + 1).square().mean()

    x = np.ones((STEPS, 4), "f4")
    toy.job.evaluate(score, ONES, x, batch=1)
    with pytest.raises(Exception, match="it is True at step 0, False at step 4"):
        toy.job.evaluate(score, LATE, x, batch=1)


def test_parts_of_a_batch_are_read_each(tmp_path):
    toy = Toy(tmp_path)
    given = toy.job.rows(np.ones((12, 2), bool), batch=4)

    def step():
        for part in toy.job.micro_batches(2):
            y = toy.model(toy.x[part])
            (y if given[part].all() else -y).square().mean().backward()
        toy.optimizer.step()
        toy.optimizer.zero_grad()
        return (y * 1).mean()

    toy.capture(step)
    toy.check(STEPS)
    assert any(n.part for n in toy.program.step.nodes)
