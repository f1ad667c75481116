"""Weights in files: of models that also have them in memory, and of models on the meta device."""

import json
import os

import large
import numpy as np
import pytest
import torch
from capturing import found
from conftest import called
from disputes import disputes
from torch import nn

import repops
import repops.jobs
import repops.torch
from repops import _arrays, _commit
from repops.jobs import _unvalued

KINDS = {torch.float32: "F32", torch.int64: "I64"}
TINY = large.SIZES["tiny"]


def adamw(ps):
    return torch.optim.AdamW(ps, lr=1e-2, fused=True)


def momentum(ps):
    return torch.optim.SGD(ps, lr=1e-2, momentum=0.9)


def numbers(file):
    """The tensors of a safetensors file, as float32."""
    from repops.jobs._stored import in_files

    stored = in_files([file])
    return {n: torch.cat(list(s.numbers())).reshape(s.shape) for n, s in stored.items()}


def in_memory(file):
    def make():
        model = large.Llama(TINY)
        own = numbers(file)
        own["lm_head.weight"] = own["model.embed_tokens.weight"]
        model.load_state_dict(own)
        return model

    return make


def nowhere():
    return large.on_meta(lambda: large.Llama(TINY))


@pytest.fixture
def file(tmp_path):
    return tiny_file(tmp_path, "BF16")


def tiny_file(folder, dtype):
    made = folder / "model.safetensors"
    large.write(made, large.shapes_of(TINY), dtype)
    return made


@pytest.mark.parametrize("optimizer", [adamw, momentum])
@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_no_weights_in_memory_give_the_same_program(command, tmp_path, dtype, optimizer):
    file, hashes, losses = tiny_file(tmp_path, dtype), {}, []
    for name, model in (("here", in_memory(file)), ("nowhere", nowhere)):
        made = large.captured(tmp_path / name, file, TINY, model, 2, 5, optimizer)
        job, hashes[name] = made
        losses.append(job.check(2, command))
    assert hashes["here"] == hashes["nowhere"] and losses[0] == losses[1]
    states = []
    for name in hashes:
        called(command, "run", tmp_path / name, "--out", tmp_path / f"{name}-run")
        run = json.loads((tmp_path / f"{name}-run" / "run.json").read_text())
        states.append([s["state"] for s in run["states"]])
    assert states[0] == states[1]


def test_a_job_has_the_file_itself(tmp_path, file):
    large.captured(tmp_path / "job", tmp_path, TINY, nowhere)
    own = tmp_path / "job" / "weights0.safetensors"
    assert own.samefile(file)
    placed = json.loads((tmp_path / "job" / "data.json").read_text())["data"]
    lying = [p for p in placed if p["file"] == own.name]
    assert len(lying) == len(large.shapes_of(TINY))
    large.captured(tmp_path / "job", tmp_path, TINY, nowhere)  # may replace a job


def test_where_no_link_can_be_made_the_file_is_copied(tmp_path, file, monkeypatch):
    def fails(*_):
        raise OSError

    _, linked = large.captured(tmp_path / "job", tmp_path, TINY, nowhere)
    monkeypatch.setattr(os, "link", fails)
    _, copied = large.captured(tmp_path / "other", tmp_path, TINY, nowhere)
    own = tmp_path / "other" / "weights0.safetensors"
    assert not own.samefile(file) and own.read_bytes() == file.read_bytes()
    assert linked == copied


def test_the_model_is_as_before(tmp_path, file):
    model = nowhere()
    before = [id(t) for t in model.parameters()]
    large.captured(tmp_path / "job", file, TINY, lambda: model)
    frozen = [p for n, p in model.named_parameters() if "lora" not in n]
    assert all(p.is_meta and not p.requires_grad for p in frozen)
    assert {id(p) for p in frozen} == set(before)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_products_and_look_ups_read_16_bits(tmp_path, file):
    """Only vectors are cast to 32 bits for the step."""
    job, _ = large.captured(tmp_path / "job", file, TINY, nowhere)
    step = job._captured.program.step
    casts = [n for n in step.nodes if n.operator.name == "cast" and n.inputs[0].kind == "data"]
    assert casts and all(len(n.dims) == 1 for n in casts)
    assert any(n.operator.name == "embedding" and n.dtype != 1 for n in step.nodes)


def test_commitments_come_piece_by_piece(monkeypatch):
    monkeypatch.setattr(_commit, "PIECE", 4096)
    for count in (1, 1023, 1024, 1025, 5000, 65536):
        a = np.random.default_rng(0).standard_normal(count, "f4")
        data = a.tobytes()
        pieces = [data[i : i + 4096] for i in range(0, len(data), 4096)]
        assert _commit.of_pieces(_arrays.shape_of(a), pieces).hex() == repops.commitment(a)


# ---- what steps do ----


class Mixed(nn.Module):
    """A model with dropout, changing buffers (one of integers), a tied weight, and a weight that is
    trained from a file."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(11, 4), nn.BatchNorm1d(4)
        self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("turns", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("scale", torch.ones(4))
        self.drop = nn.Dropout(0.25)

    def forward(self, ids):
        if self.training:
            with torch.no_grad():
                self.turns += 1
        x = self.drop(self.norm(self.table(ids).flatten(0, 1))) * self.scale
        return self.head(self.inner(x).relu())


def saved(folder):
    """Saves a model in two files with an index, without the tied weight."""
    torch.manual_seed(5)
    model = Mixed()
    model.norm.running_var.uniform_()
    state = {n: t for n, t in model.state_dict().items() if n != "head.weight"}
    names, index = sorted(state), {}
    for i, own in enumerate((names[:4], names[4:])):
        parts = [(n, KINDS[state[n].dtype], list(state[n].shape), state[n].nbytes) for n in own]
        data = b"".join(state[n].numpy().tobytes() for n in own)
        (folder / f"part{i}.safetensors").write_bytes(large.head(parts) + data)
        index.update(dict.fromkeys(own, f"part{i}.safetensors"))
    text = json.dumps({"weight_map": index})
    (folder / "model.safetensors.index.json").write_text(text)
    return {**state, "head.weight": state["table.weight"]}


class Training:
    def __init__(self, folder, files, state=None, frozen=("table",), optimizer=adamw):
        self.job = repops.jobs.Job(folder, seed=2, steps=4, checkpoint_interval=1)
        self.x, self.y = self.job.windows(np.arange(60) % 11, batch=4, length=3)
        if files is not None:
            self.job.weights(files)
        with self.job:
            self.model = Mixed() if state else large.on_meta(Mixed)
            if state:
                self.model.load_state_dict(state)
            for name in frozen:
                getattr(self.model, name).requires_grad_(False)
            self.optimizer = optimizer([p for p in self.model.parameters() if p.requires_grad])
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)

    def loss(self, part=slice(None)):
        y = self.model(self.x[part])
        return nn.functional.cross_entropy(y, self.y[part].flatten())

    def train(self, loss):
        loss.backward()
        return self.end(loss)

    def end(self, loss):
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def step(self):
        return self.train(self.loss())

    def capture(self, step=None, scheduler=None):
        return self.job.capture(step or self.step, self.model, self.optimizer, scheduler)

    def refused(self, step=None):
        with pytest.raises(repops.Error) as error:
            self.capture(step)
        assert not self.job.folder.exists()
        assert any(t.is_meta for t in self.model.state_dict().values())
        return str(error.value)


# Ways to capture a training run.
def by_rates(t):
    return t.capture(scheduler=t.scheduler)


def in_parts(t):
    def step():
        for part in t.job.micro_batches(2):
            loss = t.loss(part) / 2
            loss.backward()
        return t.end(loss.detach() * 2)

    return t.capture(step)


def clipped(t):
    def step():
        loss = t.loss()
        loss.backward()
        nn.utils.clip_grad_norm_(t.model.parameters(), 0.1)
        return t.end(loss)

    return t.capture(step)


def reading_data(t):
    """Python's reads of data are checked as usual."""

    def step():
        return t.train(t.loss() * (2.0 if bool((t.x >= 0).all()) else 3.0))

    return t.capture(step)


def checkpointed(t):
    def step():
        y = torch.utils.checkpoint.checkpoint(t.model, t.x, use_reentrant=False)
        return t.train(nn.functional.cross_entropy(y, t.y.flatten()))

    return t.capture(step)


def plain(t):
    return t.capture()


@pytest.mark.parametrize(
    "how, frozen",
    [
        (plain, ()),
        (plain, ("table", "inner")),
        (by_rates, ("table",)),
        (in_parts, ("table",)),
        (clipped, ("inner",)),
        (reading_data, ()),
        (checkpointed, ("table",)),
    ],
)
def test_shapes_alone_are_the_same_step(command, tmp_path, how, frozen):
    hashes = {}
    for name, own in (("here", saved(tmp_path)), ("nowhere", None)):
        t = Training(tmp_path / name, tmp_path, own, frozen)
        hashes[name] = how(t)
        t.job.check(2, command)
        assert own or any(p.is_meta for p in t.model.parameters())
    assert hashes["here"] == hashes["nowhere"]


@pytest.mark.parametrize("optimizer", [torch.optim.RMSprop, torch.optim.Adadelta, momentum])
def test_optimizers_whose_state_begins_as_zeros(tmp_path, optimizer):
    state = saved(tmp_path)
    hashes = [
        Training(tmp_path / f"job{i}", tmp_path, own, optimizer=optimizer).capture()
        for i, own in enumerate((state, None))
    ]
    assert hashes[0] == hashes[1]


def test_evaluations_are_the_same(tmp_path):
    state, hashes = saved(tmp_path), []
    for i, own in enumerate((state, None)):
        t = Training(tmp_path / f"job{i}", tmp_path, own)
        t.capture()

        def score(x, y, t=t):
            return nn.functional.cross_entropy(t.model(x), y.flatten())

        hashes.append(t.job.evaluate(score, np.arange(40) % 11, batch=2, length=3))
    assert hashes[0] == hashes[1]


def test_parts_of_a_step_are_alike(tmp_path, file, recwarn):
    """Micro-batches are equal, so that a team can share them."""
    job = repops.jobs.Job(tmp_path / "job", seed=1, steps=2)
    x, y = job.windows(np.arange(90) % TINY.vocabulary, batch=4, length=4)
    job.weights(file, names=large.in_files)
    with job:
        model = large.adapted(nowhere())
        optimizer = adamw([p for p in model.parameters() if p.requires_grad])

    def step():
        total = 0.0
        for part in job.micro_batches(4):
            loss = nn.functional.cross_entropy(model(x[part]).flatten(0, 1), y[part].flatten()) / 4
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        return total

    job.capture(step, model, optimizer)
    assert not [w for w in recwarn if "micro-batches" in str(w.message)]
    assert job._captured.program.step.repeats


def test_what_was_trained_comes_back(command, tmp_path, file):
    job, _ = large.captured(tmp_path / "job", file, TINY, nowhere)
    called(command, "run", tmp_path / "job", "--out", tmp_path / "run")
    result, model = repops.jobs.load(tmp_path / "run"), large.adapted(nowhere())
    result.into(model)
    name = "model.layers.1.self_attn.v_proj.lora_B.weight"
    assert torch.equal(model.get_parameter(name), result.torch()[name])
    layer = model.get_submodule("model.layers.1.self_attn.v_proj")
    layer.lora_B.to("meta")
    with pytest.raises(repops.Error, match=f"{name} is of the meta device in the model"):
        result.into(model)


def test_a_fault_is_convicted(command, tmp_path, file):
    """The faults are at operators that read 16-bit weights."""

    def reading(operator):
        return lambda graph: [
            n for n in graph if n.operator == operator and ".weight" in n.inputs.split("data:")[-1]
        ]

    large.captured(tmp_path / "job", file, TINY, nowhere)
    faults = (
        ("a product", "element", reading("matmul"), "wrong-output"),
        ("a weight", "input", reading("matmul"), "wrong-output"),
        ("a look-up", "element", reading("embedding"), "wrong-output"),
        ("a cast", "element", reading("cast"), "wrong-output"),
    )
    assert len(disputes(command, tmp_path / "job", tmp_path, faults)) == len(faults)


# ---- refusals ----


@pytest.fixture
def training(tmp_path):
    saved(tmp_path)
    return Training(tmp_path / "job", tmp_path)


def test_a_check_takes_no_more_memory_than_there_is(training, monkeypatch):
    training.capture()
    monkeypatch.setattr(_unvalued, "memory", lambda: 100)
    with pytest.raises(repops.Error, match=r"they take 0.0 GB, and this machine has 0.0 GB"):
        training.job.check(1)


def test_python_cannot_read_what_is_in_no_memory(training):
    t = training

    def by_item():
        loss = t.loss()
        return t.train(loss if loss.item() > 0 else loss * 2)

    def by_array():
        return t.train(t.loss() * float(t.model.table.weight.detach().numpy().sum()))

    def by_shape():
        y = t.model(t.x)
        return t.train(y[y > 0].sum())

    def by_places():
        return t.train(t.loss() + t.model.inner.weight.nonzero().sum())

    found(r"by_item|test_jobs_weights.py:\d+.*item\(\): Python reads", t.refused(by_item))
    found(r"test_jobs_weights.py:\d+: numpy: Python reads", t.refused(by_array))
    found(r"test_jobs_weights.py:\d+: .*(shape|reads)", t.refused(by_shape))
    found(r"test_jobs_weights.py:\d+: nonzero: its shape depends", t.refused(by_places))
    t.capture()


def test_every_tensor_of_the_meta_device_has_one_in_the_files(training):
    training.model.register_buffer("mask", torch.zeros(3, device="meta"), persistent=False)
    found(r"^mask: it is of the meta device, and no file of job.weights", training.refused())


def test_without_files_nothing_is_of_the_meta_device(tmp_path):
    t = Training(tmp_path / "job", None)
    found(r"^table.weight, norm.weight, .* and \d+ more: it is of the meta", t.refused())


@pytest.mark.parametrize(
    "change, words",
    [
        (
            lambda m: setattr(m, "inner", nn.Linear(5, 5, device="meta")),
            r"inner.weight is \[5, 5\]",
        ),
        (lambda m: m.half(), r"\w+\.\w+ is float16; a step computes in float32"),
        (
            lambda m: m.register_buffer("turns", torch.ones(2, device="meta")),
            r"turns is float32 .*I64",
        ),
        (lambda m: m.inner.weight.register_hook(print), r"inner.weight: .*has a hook"),
        (lambda m: setattr(m.inner.bias, "grad", torch.ones(4, device="meta")), "or a gradient"),
        (lambda m: setattr(m.inner.bias, "data", torch.ones(9, device="meta")[:4]), "clone"),
    ],
)
def test_what_does_not_fit_is_refused(training, change, words):
    change(training.model)
    found(words, training.refused())


def test_weights_in_memory_must_be_those_of_the_files(tmp_path):
    state = saved(tmp_path)
    state["inner.bias"] = state["inner.bias"] + 1
    t = Training(tmp_path / "job", tmp_path, state)
    with pytest.raises(repops.Error, match="inner.bias: the model has other numbers than the file"):
        t.capture()


def test_weights_of_files_are_no_constants_of_python(tmp_path):
    """This holds even if the weights are in memory, so that the program is the same."""
    t = Training(tmp_path / "job", tmp_path, saved(tmp_path))

    def step():
        return t.train(t.loss() * (2.0 if t.model.table.weight.sum() > 0 else 1.0))

    def directly():
        return t.train(t.loss() * len(t.model.table.weight.tolist()))

    with pytest.raises(repops.Error, match="Python reads a number that depends"):
        t.capture(step)
    with pytest.raises(repops.Error, match="as it is of a weight that job.weights names"):
        t.capture(directly)


def test_a_model_is_made_of_shapes_alone_in_the_block():
    with repops.torch.reproducible():
        before = torch.get_rng_state()
        with torch.device("meta"):
            model = nn.TransformerEncoderLayer(8, 2)
            nn.init.trunc_normal_(torch.empty(3))
            nn.init.orthogonal_(torch.empty(3, 3))
            assert torch.linalg.svd(torch.empty(3, 3))[0].shape == (3, 3)
        assert all(p.is_meta for p in model.parameters())
        assert torch.equal(before, torch.get_rng_state())
        with pytest.raises(repops.torch.LeftoverError, match="its input is on meta"):
            model.linear1(torch.ones(1, 8))


def test_shared_tensors_have_one_content(tmp_path, file):
    """Unless the file has it only once."""
    shapes = large.shapes_of(TINY)
    large.write(file, {**shapes, "lm_head.weight": shapes["model.embed_tokens.weight"]})
    words = "model.embed_tokens.weight is one tensor in the model, and .* and lm_head.weight, which"
    with pytest.raises(repops.Error, match=words):
        large.captured(tmp_path / "job", file, TINY, nowhere)


class Filled(torch.optim.SGD):
    """An optimizer that creates zeros, and changes them before their first use."""

    def __init__(self, ps):
        super().__init__(ps, lr=0.1)

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if "kept" not in state:
                state["kept"] = torch.zeros_like(p).fill_(0.5)
            state["kept"].add_(p.grad)
            p.sub_(state["kept"] * 0.1)


@pytest.mark.parametrize(
    "optimizer, words",
    [
        (torch.optim.Adagrad, "norm.weight.sum is of the meta device"),
        (torch.optim.Rprop, "step_size: the first"),
        (Filled, "kept: the first step makes this state, and not as zeros"),
        (lambda ps: torch.optim.SGD(ps, momentum=0.9, dampening=0.5), "momentum_buffer: the first"),
    ],
)
def test_state_that_does_not_begin_as_zeros(tmp_path, optimizer, words):
    saved(tmp_path)
    t = Training(tmp_path / "job", tmp_path, optimizer=optimizer)
    found(words, t.refused())


def test_files_that_are_wrong(tmp_path):
    job = repops.jobs.Job(tmp_path / "job")
    broken = tmp_path / "broken.safetensors"

    def refused(given, words):
        with pytest.raises(repops.Error, match=words):
            job.weights(given)

    def header(**entry):
        text = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **entry}})
        broken.write_bytes(len(text).to_bytes(8, "little") + text.encode() + bytes(4))

    refused(tmp_path, "has no file of safetensors")
    refused(tmp_path / "none", "cannot read .*none")
    refused([], "no file is given")
    broken.write_bytes(b"\xff" * 9)
    refused(broken, "is no file of safetensors")
    header(data_offsets=[0, 8])
    refused(broken, "a is not where the file says")
    header(shape=[2])
    refused(broken, "a is not where the file says")
    header(shape=["1"])
    refused(broken, "a has no place")
    header()
    refused([broken, broken], "a is in .* and in")


def test_names_that_no_tensor_has(tmp_path, file):
    t = Training(tmp_path / "job", None)
    t.job.weights(file)
    found("table.weight, .*: it is of the meta device, and no file", t.refused())
    t = Training(tmp_path / "job", None, state=Mixed().state_dict())
    t.job.weights(file)
    with pytest.raises(repops.Error, match="no tensor of theirs has the name"):
        t.capture()


def test_numbers_must_lie_at_multiples_of_their_size(tmp_path, file):
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little") + 1
    file.write_bytes(size.to_bytes(8, "little") + data[8 : 7 + size] + b" " + data[7 + size :])
    with pytest.raises(repops.Error, match="begins at .*, which is no multiple of 2"):
        large.captured(tmp_path / "job", file, TINY, nowhere)
