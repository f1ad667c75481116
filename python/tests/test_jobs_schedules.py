"""Numbers that schedulers set become tables with Python's value at each step."""

import numpy as np
import pytest
import torch
from capturing import Toy, toy  # noqa: F401
from torch.optim import lr_scheduler as lrs

import repops

STEPS = 12
SCHEDULERS = {
    "lambda": lambda o: lrs.LambdaLR(o, lambda i: 1 / (1 + i)),
    "step": lambda o: lrs.StepLR(o, 4, 0.5),
    "restarts": lambda o: lrs.CosineAnnealingWarmRestarts(o, 3),
    "cycle": lambda o: lrs.OneCycleLR(o, 0.2, total_steps=STEPS, cycle_momentum=False),
    "sequential": lambda o: lrs.SequentialLR(
        o, [lrs.LinearLR(o, 0.1, total_iters=4), lrs.CosineAnnealingLR(o, 8)], milestones=[4]
    ),
    "chained": lambda o: lrs.ChainedScheduler(
        [lrs.ConstantLR(o, 0.5, 3), lrs.ExponentialLR(o, 0.9)]
    ),
}


def rates(optimizer, scheduler, count=STEPS):
    """Python's learning rate at each step, for each group."""
    found = []
    for _ in range(count):
        found.append([g["lr"] for g in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return np.array(found, "f4").T


def tables(toy):  # noqa: F811
    return {d.name: d.array.reshape(-1) for d in toy.program.data if d.name.startswith("optimizer")}


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("adam", [False, True])
def test_a_table_has_the_numbers_of_python(tmp_path, kind, adam):
    optimizer = torch.optim.AdamW if adam else torch.optim.SGD
    toy = Toy(tmp_path, STEPS, optimizer=optimizer, fused=True)  # noqa: F811
    scheduler = SCHEDULERS[kind](toy.optimizer)
    before = repr(scheduler.state_dict()), repr(toy.optimizer.state_dict())
    toy.job.capture(toy.step, toy.model, toy.optimizer, scheduler)
    toy.check(STEPS)
    assert (repr(scheduler.state_dict()), repr(toy.optimizer.state_dict())) == before
    assert tables(toy).keys() == {"optimizer0.group0.lr"}
    own = tables(toy)["optimizer0.group0.lr"]
    assert own.tobytes() == rates(toy.optimizer, scheduler)[0].tobytes()


def test_groups_and_optimizers_with_rates_of_their_own(tmp_path):
    toy = Toy(tmp_path, STEPS)  # noqa: F811
    other = torch.nn.Linear(4, 1)
    groups = [{"params": [toy.model.weight], "lr": 0.1}, {"params": [toy.model.bias], "lr": 0.02}]
    optimizers = [
        torch.optim.SGD(groups, momentum=0.9, fused=True),
        torch.optim.AdamW(other.parameters(), 0.1, fused=True),
    ]
    schedulers = [lrs.StepLR(optimizers[0], 3), lrs.ExponentialLR(optimizers[1], 0.5)]

    def step():
        loss = toy.loss() + other(toy.x).square().mean()
        loss.backward()
        for o in optimizers:
            o.step()
            o.zero_grad()
        return loss

    models = {"a": toy.model, "b": other}
    toy.job.capture(step, models, optimizers, schedulers)
    toy.check(STEPS)
    found = tables(toy)
    assert len(found) == 3
    wanted = [*rates(optimizers[0], schedulers[0]), *rates(optimizers[1], schedulers[1])]
    assert [a.tobytes() for a in found.values()] == [w.tobytes() for w in wanted]


def test_a_rate_that_equals_another_number_by_chance(tmp_path):
    """eps, the decay, the first learning rate and a constant's elements are one number; only the
    one that follows the schedule becomes a table."""
    toy = Toy(tmp_path, STEPS, optimizer=torch.optim.AdamW, fused=True, eps=0.1, weight_decay=0.1)  # noqa: F811
    scheduler = lrs.StepLR(toy.optimizer, 5)

    def step():
        return toy.train(toy.loss() * 0.1 + torch.full((), 0.1))

    toy.job.capture(step, toy.model, toy.optimizer, scheduler)
    toy.check(STEPS)
    node = next(n for n in toy.program.step.nodes if n.operator.name == "adamw_w")
    assert node.attributes == (np.float32(0.1).view("u4"),) * 2


def test_two_numbers_that_change_alike_at_first(tmp_path):
    """From step 8 on the second group has another rate."""
    toy = Toy(tmp_path, STEPS)  # noqa: F811
    groups = [{"params": [toy.model.weight]}, {"params": [toy.model.bias]}]
    optimizer = torch.optim.SGD(groups, 0.1)
    scheduler = lrs.LambdaLR(optimizer, [lambda i: 1 / (1 + i), lambda i: 1 / (1 + min(i, 8))])
    toy.optimizer = optimizer
    toy.job.capture(toy.step, toy.model, optimizer, scheduler)
    toy.check(STEPS)
    assert len(tables(toy)) == 2


def test_plain_sgd_and_a_rate_that_is_a_tensor(tmp_path):
    toy = Toy(tmp_path, STEPS, lr=torch.tensor(0.1), fused=True)  # noqa: F811
    toy.job.capture(toy.step, toy.model, toy.optimizer, lrs.StepLR(toy.optimizer, 4))
    toy.check(STEPS)
    assert list(tables(toy)) == ["optimizer0.group0.lr"]
    toy = Toy(tmp_path, STEPS)  # noqa: F811
    toy.job.capture(toy.step, toy.model, toy.optimizer, lrs.StepLR(toy.optimizer, 4))
    toy.check(STEPS)


def test_schedules_that_are_refused(tmp_path):
    toy = Toy(tmp_path, STEPS, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    words = "ReduceLROnPlateau.step.. takes what a step gives .* job.table"
    with pytest.raises(repops.Error, match=words):
        toy.job.capture(toy.step, toy.model, toy.optimizer, lrs.ReduceLROnPlateau(toy.optimizer))
    cycle = lrs.OneCycleLR(toy.optimizer, 0.2, total_steps=STEPS)
    with pytest.raises(repops.Error, match="a scheduler changes .*betas.*cycle_momentum=False"):
        toy.job.capture(toy.step, toy.model, toy.optimizer, cycle)


def test_a_scheduler_that_the_step_moves_itself(tmp_path):
    toy = Toy(tmp_path, STEPS, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    scheduler = lrs.StepLR(toy.optimizer, 4)

    def step():
        loss = toy.step()
        scheduler.step()
        return loss

    before = repr(scheduler.state_dict()), repr(toy.optimizer.state_dict())
    words = "the step moves a scheduler; leave scheduler.step() out, and give it to job.capture"
    assert words in toy.refused(step, scheduler)
    assert (repr(scheduler.state_dict()), repr(toy.optimizer.state_dict())) == before
    assert words in toy.refused(step)


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.19])
def test_a_branch_on_the_rate(tmp_path, limit):
    """The branch is taken in the middle of the schedule only."""
    toy = Toy(tmp_path, STEPS)  # noqa: F811
    scheduler = SCHEDULERS["cycle"](toy.optimizer)

    def step():
        rate = toy.optimizer.param_groups[0]["lr"]
        return toy.train(toy.loss() * 2 if rate > limit else toy.loss())

    assert "compute different things from here on" in toy.refused(step, scheduler)


def test_a_table_is_a_rate_too(tmp_path):
    toy = Toy(tmp_path, STEPS)  # noqa: F811
    rate = toy.job.table(np.linspace(0.1, 0.01, STEPS, dtype="f4"))

    def step():
        loss = toy.loss()
        loss.backward()
        with torch.no_grad():
            for p in toy.model.parameters():
                p.sub_(p.grad * rate)
                p.grad = None
        return loss

    toy.capture(step)
