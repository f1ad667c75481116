"""Modules, hooks and adapters in a captured step, and the modes that a step runs in."""

import numpy as np
import pytest
import torch
from capturing import Toy, toy  # noqa: F401
from torch.utils.checkpoint import checkpoint

F = torch.nn.functional


def test_what_modules_and_hooks_do(tmp_path):
    """Parametrizations, gradient hooks, optimizers in hooks, and a set of parameters."""
    norms = torch.nn.utils.parametrizations
    model = torch.nn.Sequential(
        norms.weight_norm(torch.nn.Linear(4, 5)), norms.spectral_norm(torch.nn.Linear(5, 3))
    )
    toy = Toy(tmp_path, model=model)  # noqa: F811
    last = model[1].bias
    last.register_hook(lambda g: g * 2)
    own = torch.optim.SGD([last], 0.1, momentum=0.9)

    def hook(p):
        own.step()
        own.zero_grad()

    last.register_post_accumulate_grad_hook(hook)
    chosen = set(model[0].parameters())

    def step():
        loss = toy.loss()
        loss.backward()
        with torch.no_grad():
            for p in chosen:
                p.sub_(p.grad * 0.1)
        model.zero_grad()
        return loss

    toy.capture(step, optimizer=own)


def test_adapters_of_peft(tmp_path):
    peft = pytest.importorskip("peft")
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    config = peft.LoraConfig(r=2, lora_alpha=4, lora_dropout=0.1, target_modules=["0", "2"])
    toy = Toy(  # noqa: F811
        tmp_path, model=peft.get_peft_model(model, config), optimizer=torch.optim.AdamW, fused=True
    )
    toy.capture()
    assert all("lora_" in n.name for n in toy.program.leaves if "correction" not in n.name)


def test_a_compiled_module_is_run_as_it_is(toy):  # noqa: F811
    toy.model = torch.compile(toy.model)
    toy.capture()


class Net(torch.nn.Module):
    """Two layers with dropout; checkpointing may compute the first half twice."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(5)
        self.how = how
        self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)

    def part(self, x):
        return F.dropout(torch.relu(F.dropout(self.first(x), 0.2)), 0.4)

    def forward(self, x):
        if self.how is not None:
            y = checkpoint(self.part, x, use_reentrant=self.how)
        else:
            y = self.part(x)
        return F.dropout(self.last(y), 0.1)


def run_of(tmp_path, how):
    toy = Toy(tmp_path / str(how), model=Net(how))  # noqa: F811

    def step():
        x = toy.x.requires_grad_() if how else toy.x
        return toy.train(toy.model(x).square().mean())

    toy.capture(step)
    steps = toy.job._captured.steps
    losses = [steps.run(i).item() for i in range(3)]
    return losses, [p.detach().numpy().tobytes() for p in toy.model.parameters()]


def test_a_checkpointed_model_has_the_bits_of_the_plain_one(tmp_path):
    plain = run_of(tmp_path, None)
    assert run_of(tmp_path, False) == plain
    assert run_of(tmp_path, True) == plain
    assert len(set(plain[0])) == 3


def test_draws_in_a_fork_come_again(toy):  # noqa: F811
    def step():
        with torch.random.fork_rng():
            a = F.dropout(toy.x, 0.5)
        b, c = F.dropout(toy.x, 0.5), F.dropout(toy.x, 0.5)
        toy.draws = [t.detach().clone() for t in (a, b, c)]
        return toy.train(toy.model(a + b + c).square().mean())

    toy.job.capture(step, toy.model, toy.optimizer)
    toy.job._captured.steps.run(2)
    a, b, c = toy.draws
    assert torch.equal(a, b) and not torch.equal(b, c)


def test_outside_of_a_job_the_block_draws_as_ever(toy):  # noqa: F811
    def drawn():
        torch.manual_seed(3)
        with toy.job:
            return F.dropout(torch.ones(100), 0.5).sum().item(), torch.rand(2).tolist()

    before = drawn()
    toy.job.capture(toy.step, toy.model, toy.optimizer)
    assert drawn() == before


def test_losses_read_no_value(tmp_path):
    toy = Toy(tmp_path, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    y = toy.job.rows(np.array([0, 1, 2, -100] * 3), batch=4)

    def step():
        return toy.train(F.cross_entropy(toy.model(toy.x), y))

    toy.capture(step)
    with toy.job, pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(torch.zeros(1, 3), torch.tensor([5]))
