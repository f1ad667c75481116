"""What a step's state may be: buffers, tied weights, averages, adapters, several optimizers."""

import copy
import functools
import random

import numpy as np
import pytest
import torch
from capturing import Toy, toy  # noqa: F401
from torch.utils.checkpoint import checkpoint

import repops.torch.optim

F = torch.nn.functional


def everything(toy):  # noqa: F811
    """Bytes of all that a capture must leave as it was."""
    model, optimizer = toy.model, toy.optimizer
    return {
        "model": {k: v.numpy().tobytes() for k, v in model.state_dict().items()},
        "grads": [None if p.grad is None else p.grad.numpy().tobytes() for p in model.parameters()],
        "objects": [id(t) for t in (*model.parameters(), *model.buffers())],
        "places": [t.data_ptr() for t in (*model.parameters(), *model.buffers())],
        "optimizer": repr(optimizer.state_dict()),
        "modes": [m.training for m in model.modules()],
        "generators": [
            torch.get_rng_state().numpy().tobytes(),
            hash(random.getstate()),
            repr(np.random.get_state()),
        ],
    }


def mixed():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 3)
    )


@pytest.mark.parametrize("warm", [False, True])
def test_a_capture_leaves_everything_as_it_was(tmp_path, warm):
    toy = Toy(tmp_path, model=mixed(), optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(toy.optimizer, 6)
    toy.model[2].eval()
    with toy.job:
        if warm:
            toy.step()
            scheduler.step()
    before = everything(toy), repr(scheduler.state_dict())
    toy.capture(scheduler=scheduler)
    assert (everything(toy), repr(scheduler.state_dict())) == before
    toy.model.count = 0

    def step():
        toy.model.count += 1
        toy.model[1].running_mean = toy.model[1].running_mean * 2
        toy.model[0].weight.data = toy.model[0].weight.data * 2
        return toy.step()

    assert "count: a step changes" in str(pytest.raises(repops.Error, toy.capture, step).value)
    assert (everything(toy), repr(scheduler.state_dict())) == before and toy.model.count == 0


def test_two_captures_in_one_process_are_the_same(tmp_path):
    hashes = []
    for name in "ab":
        toy = Toy(tmp_path / name, model=None, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
        hashes += [toy.capture(), toy.job.capture(toy.step, toy.model, toy.optimizer)]
        with toy.job:
            hashes.append(toy.job.capture(toy.step, toy.model, toy.optimizer))
    assert len(set(hashes)) == 1


def test_batch_norm(tmp_path):
    Toy(tmp_path, model=mixed()).capture()


def test_tied_weights(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(4, 4)
            self.last = torch.nn.Linear(4, 4)
            self.last.weight = self.first.weight

        def forward(self, x):
            return self.last(torch.relu(self.first(x)))

    toy = Toy(tmp_path, model=Tied())  # noqa: F811
    toy.capture()
    assert [leaf.name for leaf in toy.program.leaves] == ["first.weight", "first.bias", "last.bias"]


def test_averages_of_weights(toy):  # noqa: F811
    own, by_hand = copy.deepcopy(toy.model), copy.deepcopy(toy.model)

    def step():
        loss = toy.step()
        with torch.no_grad():
            for a, p in zip(own.parameters(), toy.model.parameters()):
                a.mul_(0.9).add_(p * 0.1)
            for a, p in zip(by_hand.parameters(), toy.model.parameters()):
                a.data = a.data * 0.9 + p.data * 0.1
        return loss

    toy.capture(step, model={"model": toy.model, "own": own, "by_hand": by_hand})
    names = [leaf.name for leaf in toy.program.leaves]
    assert "own.weight" in names and "by_hand.bias" in names and len(names) == 6


def test_averaged_models(toy):  # noqa: F811
    """torch's AveragedModel copies the first time that it is updated, so that comes before."""
    swa = torch.optim.swa_utils
    ema = swa.AveragedModel(toy.model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.9))

    def step():
        loss = toy.step()
        ema.update_parameters(toy.model)
        return loss

    models = {"model": toy.model, "ema": ema}
    with pytest.raises(repops.Error, match="compute different things from here on"):
        toy.capture(step, model=models)
    with toy.job:
        ema.update_parameters(toy.model)
    toy.capture(step, model=models)
    assert "ema.module.weight" in [leaf.name for leaf in toy.program.leaves]
    assert ema.n_averaged.item() == 1


def test_a_buffer_that_each_step_replaces(toy):  # noqa: F811
    toy.model.register_buffer("mean", torch.zeros(4))
    toy.model.register_buffer("before", torch.zeros(4, 4))

    def step():
        loss = toy.train(toy.model(toy.x - toy.model.mean + toy.model.before).square().mean())
        toy.model.mean = toy.model.mean * 0.9 + toy.x.mean(0) * 0.1
        toy.model.before = toy.x * 0.5
        return loss

    toy.capture(step)
    assert {"mean", "before"} <= {leaf.name for leaf in toy.program.leaves}


def test_two_buffers_in_one_memory_are_refused(toy):  # noqa: F811
    toy.model.register_buffer("a", torch.zeros(2, 4))
    toy.model.register_buffer("b", torch.zeros(2, 4))

    def step():
        toy.model.a, toy.model.b = (toy.x * 2).split(2)
        return toy.step()

    assert "b: after the step it is in the same memory as another" in toy.refused(step)


def test_a_buffer_that_the_first_step_writes_as_it_was(toy):  # noqa: F811
    toy.model.register_buffer("most", torch.full((), 1e-9))
    table = toy.job.table(np.arange(6, dtype="f4"))

    def step():
        toy.model.most.copy_(torch.maximum(toy.model.most, table))
        return toy.train(toy.loss() * toy.model.most)

    toy.capture(step)
    assert "most" in [leaf.name for leaf in toy.program.leaves]


def test_frozen_parameters_and_such_without_gradients(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    model.unused = torch.nn.Linear(2, 2)
    model[0].requires_grad_(False)
    toy = Toy(tmp_path, model=model, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811

    def step():
        return toy.train(model[1](model[0](toy.x)).square().mean())

    toy.capture(step)
    moments = [leaf.name for leaf in toy.program.leaves if "exp_avg" in leaf.name]
    assert moments == [f"1.{p}.{m}" for p in ("weight", "bias") for m in ("exp_avg", "exp_avg_sq")]


def test_gradients_that_stay_are_state(toy):  # noqa: F811
    def step():
        loss = toy.loss()
        loss.backward()
        toy.optimizer.step()
        return loss

    toy.capture(step)
    assert [leaf.name for leaf in toy.program.leaves][2:] == ["weight.grad", "bias.grad"]
    toy.optimizer.zero_grad()

    def other():
        toy.optimizer.zero_grad()
        return step()

    toy.capture(other)
    assert [leaf.name for leaf in toy.program.leaves] == ["weight", "bias"]

    def kept():
        loss = step()
        toy.optimizer.zero_grad(set_to_none=False)
        return loss

    toy.capture(kept)


def test_gradients_that_are_there_before(toy):  # noqa: F811
    toy.loss().backward()
    assert "weight.grad: it is there before the first step" in toy.refused()


def test_gradients_are_added_up_in_a_loop(toy):  # noqa: F811
    def step():
        losses = []
        for part in toy.x.split(2):
            loss = toy.model(part).square().mean() / 2
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(toy.model.parameters(), 0.5)
        toy.optimizer.step()
        toy.optimizer.zero_grad()
        return torch.stack(losses).sum()

    toy.capture(step)


def test_automatic_precision_that_is_off(toy):  # noqa: F811
    scaler = torch.amp.GradScaler("cpu", enabled=False)

    def step():
        with torch.autocast("cpu", enabled=False):
            loss = toy.loss()
        scaler.scale(loss).backward()
        scaler.unscale_(toy.optimizer)
        scaler.step(toy.optimizer)
        scaler.update()
        toy.optimizer.zero_grad()
        return loss

    toy.capture(step)


@pytest.mark.parametrize("how", [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}])
@pytest.mark.parametrize("fused", [False, True])
def test_momentum_starts_as_zeros(tmp_path, how, fused):
    Toy(tmp_path, fused=fused, **how).capture()


def test_dampened_momentum_does_not(tmp_path):
    toy = Toy(tmp_path, momentum=0.9, dampening=0.1, fused=True)  # noqa: F811
    text = "weight.momentum_buffer: the first step makes this state, and from zeros it would be"
    assert text in toy.refused()
    with toy.job:
        toy.step()
    toy.capture()


@pytest.mark.parametrize("kind", ["RMSprop", "Adadelta", "Adagrad"])
def test_other_optimizers(tmp_path, kind):
    Toy(tmp_path, optimizer=getattr(torch.optim, kind)).capture()


def test_state_that_starts_otherwise_needs_a_step_before(tmp_path):
    toy = Toy(tmp_path, optimizer=torch.optim.Rprop)  # noqa: F811
    assert "weight.step_size: the first step makes this state" in toy.refused()
    with toy.job:
        toy.step()
    toy.capture()


@pytest.mark.parametrize("kind", ["AdamW", "Adam", "NAdam", "Adamax"])
def test_optimizers_that_count_in_python(tmp_path, kind):
    toy = Toy(tmp_path, optimizer=getattr(torch.optim, kind))  # noqa: F811
    assert "a number of Python is" in toy.refused()


def test_a_gan(tmp_path):
    rng = np.random.default_rng(0)
    toy = Toy(tmp_path)  # noqa: F811
    noise = toy.job.table(rng.standard_normal((6, 4, 2), "f4"))
    one = toy.job.constant(torch.ones(4, 1))
    make, judge = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
    first = torch.optim.AdamW(make.parameters(), 1e-2, fused=True)
    second = torch.optim.AdamW(judge.parameters(), 2e-2, betas=(0.5, 0.9), fused=True)

    def step():
        fake = make(noise)
        loss = F.mse_loss(judge(toy.x), one) + judge(fake.detach()).square().mean()
        loss.backward()
        second.step()
        second.zero_grad()
        other = F.mse_loss(judge(fake), one)
        other.backward()
        first.step()
        first.zero_grad()
        second.zero_grad()
        return loss.detach() + other.detach()

    toy.capture(step, model={"make": make, "judge": judge}, optimizer=[first, second])
    names = [leaf.name for leaf in toy.program.leaves]
    assert sum(n.startswith("correction.") for n in names) == 3 and "judge.weight" in names


@pytest.mark.parametrize("own", [False, True])
def test_an_optimizer_that_takes_several_steps_in_one(tmp_path, own):
    kind = functools.partial(torch.optim.AdamW, fused=True) if not own else repops.torch.optim.AdamW
    toy = Toy(tmp_path, optimizer=kind)  # noqa: F811
    other = torch.nn.Linear(4, 1)
    second = kind(other.parameters(), 1e-2)

    def step():
        for part in toy.x.split(2):
            other(part).square().mean().backward()
            second.step()
            second.zero_grad()
        return toy.train(toy.loss())

    models, optimizers = {"a": toy.model, "b": other}, [toy.optimizer, second]
    toy.capture(step, model=models, optimizer=optimizers)
    names = {n.name for n in toy.program.leaves if "correction" in n.name}
    assert names == {f"correction.{b}{more}" for b in (0.9, 0.999) for more in ("", ".0.2")}
    with toy.job:  # it goes on from where the optimizers are
        step(), step()
    toy.capture(step, model=models, optimizer=optimizers)
    assert "correction.0.9.4.2" in {n.name for n in toy.program.leaves}


def test_two_optimizers_of_one_parameter(tmp_path):
    toy = Toy(tmp_path, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    second = torch.optim.AdamW(toy.model.parameters(), 1e-2, fused=True)

    def step():
        loss = toy.loss()
        loss.backward()
        toy.optimizer.step()
        second.step()
        second.step()
        second.zero_grad()
        return loss

    toy.capture(step, optimizer=[toy.optimizer, second])
    names = {leaf.name for leaf in toy.program.leaves}
    assert {
        "bias.exp_avg",
        "bias.optimizer1.exp_avg",
        "correction.0.9",
        "correction.0.9.0.2",
    } < names


def test_what_modules_and_hooks_do(tmp_path):
    """Parametrizations, hooks of gradients, optimizers in hooks, a set of parameters."""
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


# ---- the job's mode ----


class Net(torch.nn.Module):
    """Two layers with dropout, whose first half may be computed twice."""

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


def test_names_that_are_long_or_no_ascii(tmp_path):
    model = torch.nn.Module()
    for name in ("ä" * 20, "ö" * 20, "x" * 300, "y" + "x" * 299):
        model.add_module(name, torch.nn.Linear(4, 3))
    model.forward = lambda x: sum(m(x) for m in model.children())
    toy = Toy(tmp_path, model=model)  # noqa: F811
    toy.capture()
    names = [leaf.name for leaf in toy.program.leaves]
    assert len(set(names)) == 8 and max(map(len, names)) == 255


def test_a_check_finds_what_differs(toy, command):  # noqa: F811
    """In the loss and in a state; and it works where the folder holds another job by now."""
    factor = torch.ones(())
    toy.job.constant(factor)

    def step():
        return toy.train(toy.loss() * factor)

    toy.job.capture(step, toy.model, toy.optimizer)
    before = everything(toy)
    toy.check()
    (toy.job.folder / "program").write_bytes(b"")
    losses = toy.check()
    assert len(losses) == 3 and everything(toy) == before
    factor.fill_(1.5)
    with pytest.raises(repops.Error, match="weight differs after step 1 of the block and of verde"):
        toy.check()
    assert everything(toy) == before and sorted(toy.job.folder.parent.glob("job*")) == [
        toy.job.folder
    ]

    toy.optimizer.param_groups[0]["lr"] = 0.0
    factor.fill_(1.0)
    toy.job.capture(step, toy.model, toy.optimizer)
    factor.fill_(1.5)
    with pytest.raises(
        repops.Error, match="the loss of step 0 is .* in the block, and .* of verde"
    ):
        toy.check()


def test_a_folder_that_holds_something_else(toy):  # noqa: F811
    toy.job.folder.mkdir()
    (toy.job.folder / "mine").write_text("x")
    assert "job is there, and holds no job" in toy.refused()
    assert (toy.job.folder / "mine").read_text() == "x"


def test_nothing_to_check_and_no_command(toy):  # noqa: F811
    with pytest.raises(repops.Error, match="nothing to check; job.capture"):
        toy.job.check()
    toy.job.capture(toy.step, toy.model, toy.optimizer)
    with pytest.raises(repops.Error, match="cannot run /no/verde: No such file"):
        toy.job.check(verde="/no/verde")


@pytest.mark.parametrize("change", [lambda x: x.repeat(2), torch.Tensor.double])
def test_what_is_no_loss(toy, change):  # noqa: F811
    words = "the step returns no loss; expected a float32 tensor of one element"
    with pytest.raises(repops.Error, match=words):
        toy.job.capture(lambda: change(toy.step()), toy.model, toy.optimizer)


def test_a_step_without_a_loss_or_with_a_constant_one(toy):  # noqa: F811
    toy.capture(lambda: (toy.step(), None)[1])
    assert toy.program.step.loss is None
    toy.capture(lambda: (toy.step(), torch.tensor(3.0))[1])
