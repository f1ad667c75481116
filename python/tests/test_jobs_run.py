"""The command runs a job that Python has captured, and reports each step to Python."""

import math
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from capturing import Toy

import repops.jobs


def captured(folder, steps=6, interval=2, **how):
    toy = Toy(folder, steps=steps, **how)
    toy.job.interval = interval
    with toy.job:
        toy.job.capture(toy.step, toy.model, toy.optimizer)
    return toy


def test_each_step_and_each_state_is_told(command, tmp_path):
    toy, steps, states = captured(tmp_path), [], []
    result = toy.job.run(tmp_path / "run", steps.append, states.append)
    assert [s.step for s in steps] == [1, 2, 3, 4, 5, 6] and states == [2, 4, 6]
    assert [s.saved for s in steps] == [0, 2, 2, 4, 4, 6] and {s.steps for s in steps} == {6}
    assert [s.loss for s in steps] == pytest.approx(toy.job.check(6), abs=1e-9)
    assert result.step == 6 and set(result) == {"weight", "bias"}
    steps.clear()
    states.clear()
    again = toy.job.run(tmp_path / "run", steps.append, states.append, threads=1)
    assert not steps and not states and again["weight"].tobytes() == result["weight"].tobytes()


def test_a_state_can_be_loaded_when_it_is_told(command, tmp_path):
    toy, seen = captured(tmp_path), {}
    toy.job.run(
        tmp_path / "run",
        on_state=lambda n: seen.update({n: repops.jobs.load(tmp_path / "run", step=n)["bias"]}),
    )
    assert list(seen) == [2, 4, 6] and not (seen[2] == seen[6]).all()


def test_what_a_callback_raises_stops_the_run_which_goes_on(command, tmp_path):
    toy, after = captured(tmp_path, steps=3000, interval=5), []

    def stop(step):
        if step.saved >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        toy.job.run(tmp_path / "run", stop)
    result = toy.job.run(tmp_path / "run", after.append)
    assert 20 < after[0].step and after[-1].step == result.step == 3000
    whole = toy.job.run(tmp_path / "whole")
    assert all(whole[name].tobytes() == result[name].tobytes() for name in whole)


SCRIPT = """
import sys
import repops.jobs
job = repops.jobs.Job(sys.argv[1])
job.run(sys.argv[2], on_state=lambda n: print(n, flush=True))
"""


def test_ctrl_c_ends_python_and_the_command(command, tmp_path):
    captured(tmp_path, steps=20000, interval=5)
    script = [sys.executable, "-c", SCRIPT, str(tmp_path / "job"), str(tmp_path / "run")]
    with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "5\n"
        p.send_signal(signal.SIGINT)  # only to Python, as notebooks do
        _, errors = p.communicate(timeout=60)
    assert p.returncode and errors.rstrip().endswith("KeyboardInterrupt")
    time.sleep(0.1)
    size = os.path.getsize(tmp_path / "run" / "losses.jsonl")
    time.sleep(0.3)
    assert os.path.getsize(tmp_path / "run" / "losses.jsonl") == size  # the command has stopped


def test_a_loss_that_is_no_number_is_told_as_such(command, tmp_path):
    toy, losses = captured(tmp_path, lr=1e30), []
    toy.job.run(tmp_path / "run", lambda s: losses.append(s.loss))
    assert math.isnan(losses[-1]) or math.isinf(losses[-1])


def test_steps_that_return_no_loss_tell_none(command, tmp_path, capfd):
    toy, seen = Toy(tmp_path, steps=2), []

    def step():
        toy.step()

    with toy.job:
        toy.job.capture(step, toy.model, toy.optimizer)
    toy.job.run(tmp_path / "run", on_step=seen.append)
    assert [s.loss for s in seen] == [None, None]
    subprocess.run([command, "run", toy.job.folder, "--out", tmp_path / "again"], check=True)
    told = capfd.readouterr().out
    assert "steps        2, " in told and "loss" not in told


def test_errors_are_the_commands_own(command, tmp_path):
    toy = Toy(tmp_path)
    with pytest.raises(repops.Error, match="has no program; job.capture"):
        toy.job.run(tmp_path / "run")
    toy = captured(tmp_path)
    with pytest.raises(repops.Error, match="nonsense"):
        toy.job.run(tmp_path / "run", backend="nonsense")
    with pytest.raises(repops.Error, match="keep"):
        toy.job.run(tmp_path / "run", keep=1)
    with pytest.raises(repops.Error, match="cannot run .*no-such"):
        toy.job.run(tmp_path / "run", verde=str(tmp_path / "no-such"))
    assert not (tmp_path / "run").exists()
    toy.job.run(tmp_path / "run")
    with toy.job:
        torch.manual_seed(5)
        other = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.2)

        def step():
            loss = other(toy.x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        toy.job.capture(step, other, optimizer)
    with pytest.raises(repops.Error, match="another"):
        toy.job.run(tmp_path / "run")


def test_the_simulated_device_has_the_same_bits(command, tmp_path):
    if not os.environ.get("REPOPS_CUDA_LIBRARY"):
        pytest.skip("REPOPS_CUDA_LIBRARY names no library for cuda:0")
    toy = captured(tmp_path)
    host = toy.job.run(tmp_path / "host")
    device = toy.job.run(tmp_path / "device", backend="cuda:0")
    assert all(host[name].tobytes() == device[name].tobytes() for name in host)
