"""A job's result is loaded into a model, its optimizers and their schedulers."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from conftest import called
from torch import nn

import repops.jobs
import repops.torch
import verde

STEPS = 4
DATA = np.random.default_rng(1).standard_normal((STEPS, 6, 4), "f4")


class Model(nn.Module):
    """A model with a tied weight, changing buffers, an integer without dimensions, and a frozen
    part."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.inner, self.norm, self.tied = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)
        self.tied.weight = self.inner.weight
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.tied(self.norm(self.inner(x)).relu() * self.frozen) * self.scale


class Training:
    def __init__(self, seed=1):
        self.model, self.head = Model(seed), nn.Linear(4, 2)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        adam = torch.optim.AdamW(trained, lr=1e-2, fused=True)
        sgd = torch.optim.SGD(self.head.parameters(), lr=1e-2, momentum=0.9)
        self.optimizers = [adam, sgd]
        self.scheduler = torch.optim.lr_scheduler.StepLR(adam, step_size=1, gamma=0.5)

    @property
    def models(self):
        return {"model": self.model, "head": self.head}

    def step(self, x):
        loss = self.head(self.model(x)).square().mean()
        loss.backward()
        for o in self.optimizers:
            o.step()
            o.zero_grad()
        return loss

    def tensors(self):
        found = {f"{k}.{n}": t for k, m in self.models.items() for n, t in m.state_dict().items()}
        return {n: t.clone() for n, t in found.items()}


@pytest.fixture(scope="module")
def made(command, tmp_path_factory):
    """A folder with a run that kept all states, and an export of the last state."""
    place = tmp_path_factory.mktemp("made")
    job = repops.jobs.Job(place / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x = job.table(DATA)
    with job:
        it = Training()
    job.capture(lambda: it.step(x), it.models, it.optimizers, it.scheduler)
    called(command, "run", place / "job", "--out", place / "run")
    called(command, "export", place / "run", "--out", place / "model")
    return place


def test_training_goes_on_from_what_was_loaded(made):
    with repops.torch.reproducible():
        it = Training(seed=2)
        before = it.tensors()
        result = repops.jobs.load(made / "run", step=3)
        result.into(it.models, it.optimizers, it.scheduler)
        assert result.step == 3 and int(it.model.norm.num_batches_tracked) == 3
        it.step(torch.from_numpy(DATA[3]))
    wanted, now = repops.jobs.load(made / "run").torch(), it.tensors()
    compared = [n for n in now if n in wanted]
    assert len(compared) == len(now) - 2  # without the tied and the frozen one
    for name in compared:
        assert torch.equal(now[name].reshape(-1), wanted[name].reshape(-1).to(now[name].dtype))
        assert not torch.equal(now[name], before[name])
    moments = it.optimizers[0].state[it.model.inner.weight]
    assert torch.equal(moments["exp_avg"], wanted["model.inner.weight.exp_avg"])
    assert moments["step"] == 4


def test_an_optimizer_that_takes_two_steps_in_one_counts_them(command, tmp_path):
    def training():
        torch.manual_seed(3)
        model = nn.Linear(4, 1)
        return model, torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)

    def step_of(model, optimizer, x):
        for _ in range(2):
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return loss

    job = repops.jobs.Job(tmp_path / "job", seed=1, steps=STEPS, checkpoint_interval=1)
    x = job.table(DATA)
    with job:
        model, optimizer = training()
    job.capture(lambda: step_of(model, optimizer, x), model, optimizer)
    called(command, "run", tmp_path / "job", "--out", tmp_path / "run")
    with repops.torch.reproducible():
        model, optimizer = training()
        repops.jobs.load(tmp_path / "run", step=3).into(model, optimizer)
        assert float(optimizer.state[model.weight]["step"]) == 6
        step_of(model, optimizer, torch.from_numpy(DATA[3]))
    last = repops.jobs.load(tmp_path / "run", step=4).torch()
    assert torch.equal(model.weight.detach(), last["weight"])


def test_an_exported_model_is_loaded_as_its_run_is(made):
    run, exported = repops.jobs.load(made / "run"), repops.jobs.load(made / "model")
    assert exported.step == STEPS and list(run) == list(exported)
    it, other = Training(seed=2), Training(seed=3)
    it.optimizers[0].state[it.model.scale]["step"] = torch.tensor(2.0)  # from before the capture
    exported.into(it.models, it.optimizers, it.scheduler)
    assert it.optimizers[0].state[it.model.scale]["step"] == 2 + STEPS
    run.into(other.models)
    a, b = it.tensors(), other.tensors()
    assert all(torch.equal(a[n], b[n]) for n in run if n in a)
    assert not other.optimizers[0].state
    momentum = it.optimizers[1].state[it.head.bias]
    assert list(momentum) == ["momentum_buffer"]
    assert torch.equal(momentum["momentum_buffer"], exported.torch()["head.bias.momentum_buffer"])
    assert it.scheduler.get_last_lr() == [1e-2 * 0.5**STEPS]


def test_what_was_rounded_is_loaded_with_a_warning(made, command, tmp_path):
    called(command, "export", made / "run", "--dtype", "bf16", "--out", tmp_path / "narrow")
    with pytest.warns(UserWarning, match="rounded to BF16"):
        rounded = repops.jobs.load(tmp_path / "narrow").torch()
    whole = repops.jobs.load(made / "run").torch()
    for name, t in whole.items():
        wanted = t.bfloat16().float() if t.is_floating_point() else t
        assert rounded[name].dtype == t.dtype and torch.equal(rounded[name], wanted)


def went_on(made, command, name, weights):
    """Runs the job from `weights`."""
    told = json.loads(called(command, "graph", made / "job", "--json"))
    text = f"verde: 1\nmodel: {{kind: program, dir: job, sha256: {told['program']}}}\n"
    (made / f"{name}.yaml").write_text(text + f"weights: {{{weights}}}\n")
    called(command, "run", made / f"{name}.yaml", "--out", made / name)
    return verde.Run(made / name)


def test_the_command_goes_on_with_the_moments_and_the_step(made, command):
    before = verde.Run(made / "run")
    root = before.state(3).commitment
    run = went_on(made, command, "more", f"run: run, root: {root}")
    assert run.program.steps == STEPS - 3
    wanted, got = before.state(STEPS), run.state(STEPS - 3)
    assert all(got[n].tobytes() == wanted[n].tobytes() for n in wanted)


def test_the_command_begins_with_weights_alone(made, command):
    manifest = called(command, "manifest", made / "model")
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    run = went_on(made, command, "anew", f"dir: model, sha256: {digest}, state: weights")
    wanted, got = verde.Run(made / "run").state(STEPS), run.state(0)
    kept = [n for n in wanted if "exp_avg" in n or "momentum_buffer" in n or "correction." in n]
    assert len(kept) > 10
    for name in wanted:
        assert (got[name].tobytes() == wanted[name].tobytes()) == (name not in kept)
    assert not any(got[name].any() for name in kept)


def test_another_model_is_refused_and_stays_as_it_is(made):
    it, result = Training(), repops.jobs.load(made / "model")
    before = it.tensors()
    with pytest.raises(repops.Error, match=r"has head\.\w+, of which this model has nothing"):
        result.into({"model": it.model}, it.optimizers)
    it.head = nn.Linear(4, 3)
    with pytest.raises(repops.Error, match=r"head.weight is float32 \[2, 4\] in the result, and "):
        result.into(it.models)
    assert all(torch.equal(t, it.tensors()[n]) for n, t in before.items() if "head" not in n)


def test_what_was_changed_is_refused(made, tmp_path):
    bad = tmp_path / "bad"

    def changed(name, change):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(made / "model", bad)
        data = bytearray((bad / name).read_bytes())
        (bad / name).write_bytes(change(data))

    def flipped(data):
        data[-1] ^= 1
        return data

    changed("model.safetensors", flipped)
    with pytest.raises(repops.Error, match="is not what proof.json commits to"):
        repops.jobs.load(bad)
    assert repops.jobs.load(bad, check=False).step == STEPS
    changed("model.safetensors", lambda data: data[:-4])
    with pytest.raises(repops.Error, match="is not where the file says"):
        repops.jobs.load(bad)
    changed("model.safetensors", lambda data: b"\xff" * 8 + data[8:])
    with pytest.raises(repops.Error, match="is no file of safetensors"):
        repops.jobs.load(bad)
    changed("proof.json", lambda data: data.replace(b'"verde_proof": 1', b'"verde_proof": 2'))
    with pytest.raises(repops.Error, match="version 2 of a proof"):
        repops.jobs.load(bad)
    (bad / "proof.json").unlink()
    with pytest.raises(repops.Error, match="has no proof.json"):
        repops.jobs.load(bad)
    with pytest.raises(repops.Error, match="is no run, so that it has no state of another step"):
        repops.jobs.load(made / "model", step=1)


@pytest.mark.parametrize("step", ["-1", "5", "1e999", "true", "1.5", '"4"'])
def test_a_step_that_the_program_has_not_is_refused(made, tmp_path, step):
    bad = tmp_path / "bad"
    shutil.copytree(made / "model", bad)
    proof = json.loads((bad / "proof.json").read_text())
    text = json.dumps({**proof, "step": "HERE"}).replace('"HERE"', step)
    (bad / "proof.json").write_text(text)
    with pytest.raises(repops.Error, match="is of step|is no proof.json|is no JSON"):
        repops.jobs.load(bad)


@pytest.mark.parametrize("entry", ['"data_offsets": [0, 1e999]', '"shape": [1.5]', '"shape": "4"'])
def test_places_in_files_that_are_no_numbers_are_refused(made, tmp_path, entry):
    bad = tmp_path / "bad"
    shutil.copytree(made / "model", bad)
    file = bad / "model.safetensors"
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    name = next(n for n in header if n[:2] != "__")
    key = entry.split('"')[1]
    header[name][key] = "HERE"
    text = json.dumps(header).replace(f'"{key}": "HERE"', entry).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    with pytest.raises(repops.Error, match="has no place|is not where|is no JSON"):
        repops.jobs.load(bad)


@pytest.mark.parametrize("files", ['{"a": 1}', '{"a": [""]}', "7", '{"a": ""}'])
def test_an_index_that_names_no_files_is_refused(made, tmp_path, files):
    bad = tmp_path / "bad"
    shutil.copytree(made / "model", bad)
    (bad / "model.safetensors.index.json").write_text(f'{{"weight_map": {files}}}')
    with pytest.raises(repops.Error, match="is no name of a file"):
        repops.jobs.load(bad)
