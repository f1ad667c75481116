"""Checks of a captured job with the command; the job's folder, names and losses."""

import pytest
import torch
from capturing import Toy, everything, toy  # noqa: F401

import repops.torch.optim


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
    """Differences in the loss and in a state are found, even if the folder holds another job by
    now."""
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


def test_nothing_to_check_and_no_command(toy, monkeypatch):  # noqa: F811
    with pytest.raises(repops.Error, match="nothing to check; job.capture"):
        toy.job.check()
    toy.job.capture(toy.step, toy.model, toy.optimizer)
    with pytest.raises(repops.Error, match="cannot run /no/verde: No such file"):
        toy.job.check(verde="/no/verde")
    monkeypatch.setenv("VERDE", "/not/there")
    with pytest.raises(repops.Error, match="cannot run /not/there: No such file"):
        toy.job.check()


@pytest.mark.parametrize("change", [lambda x: x.repeat(2), torch.Tensor.double])
def test_what_is_no_loss(toy, change):  # noqa: F811
    words = "the step returns no loss; expected a float32 tensor of one element"
    with pytest.raises(repops.Error, match=words):
        toy.job.capture(lambda: change(toy.step()), toy.model, toy.optimizer)


def test_a_step_without_a_loss_or_with_a_constant_one(toy):  # noqa: F811
    toy.capture(lambda: (toy.step(), None)[1])
    assert toy.program.step.loss is None
    toy.capture(lambda: (toy.step(), torch.tensor(3.0))[1])
