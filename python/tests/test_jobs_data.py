"""A step's data are the same in the block and with the command, in every epoch."""

import collections
import json

import numpy as np
import pytest
import torch
from capturing import Toy, toy  # noqa: F401

import repops
import repops.jobs

RNG = np.random.default_rng(0)


def learn(tmp_path, make, steps=6):
    """Trains on the sum of the data that `make` declares, so that all of them affect the
    weights."""
    toy = Toy(tmp_path, steps=steps)  # noqa: F811
    given = make(toy.job)
    given = given if isinstance(given, (list, tuple)) else [given]

    def step():
        x = toy.x.clone()
        for t in given:
            x = x + (torch.where(t, 0.5, 0.25) if t.dtype is torch.bool else t.float()).sum() * 0.01
        return toy.train(toy.model(x).square().mean())

    toy.capture(step)
    toy.check(steps)
    return toy, given


# ---- rows and windows ----


@pytest.mark.parametrize("batch", [1, 3, 10, 23])
def test_rows_of_every_kind(tmp_path, batch):
    kinds = {
        "f4": RNG.standard_normal((10, 2, 3), "f4"),
        "i8": RNG.integers(-50, 50, 10),
        "u1": RNG.integers(0, 255, (10, 2), "u1"),
        "u2": RNG.integers(0, 65535, (10, 2), "u2"),
        "i1": RNG.integers(-128, 128, (10, 2), "i1"),
        "bool": RNG.random((10, 3)) < 0.5,
        "tensor": torch.arange(20).reshape(10, 2).t().contiguous().t(),
    }
    toy, given = learn(tmp_path, lambda job: job.rows(*kinds.values(), batch=batch))  # noqa: F811
    i64, u8 = torch.int64, torch.int64
    assert [t.dtype for t in given] == [torch.float32, i64, u8, i64, i64, torch.bool, i64]
    assert [t.shape[0] for t in given] == [batch] * 7
    low = [(d.low, d.high) for d in toy.program.data if d.low is not None]
    assert (int(kinds["i8"].min()), int(kinds["i8"].max())) in low
    held = {d.array.dtype for d in toy.program.data}
    assert held >= {np.dtype(t) for t in ("f4", "i4", "u1", "u2", "i1")}


def test_an_epoch_has_each_row_once(tmp_path):
    job = repops.jobs.Job(tmp_path / "job", seed=5, steps=10)
    x, y = job.rows(np.arange(10), np.arange(10) * 2, batch=2)
    read = []
    for step in range(10):
        for source in job._sources:
            source.load(step)
        assert torch.equal(x * 2, y)
        read += x.tolist()
    assert sorted(read[:10]) == sorted(read[10:]) == list(range(10)) and read[:10] != read[10:]


def test_two_declarations_have_orders_of_their_own(tmp_path):
    job = repops.jobs.Job(tmp_path / "job", seed=5)
    x, y = job.rows(np.arange(100), batch=100), job.rows(np.arange(100), batch=100)
    for source in job._sources:
        source.load(0)
    assert not torch.equal(x, y) and torch.equal(x.sort()[0], y.sort()[0])


def test_windows(tmp_path):
    tokens = RNG.integers(0, 60000, 40, "u2")
    toy, (x, y) = learn(tmp_path, lambda job: job.windows(tokens, batch=3, length=4))  # noqa: F811
    assert torch.equal(x[:, 1:], y[:, :-1]) and x.dtype is torch.int64
    assert [d.array.dtype for d in toy.program.data if d.name == "tokens"] == [np.dtype("u2")]


def test_windows_of_int8_become_int32(tmp_path):
    """read_batch does not take int8."""
    tokens = np.arange(-20, 20, dtype="i1")
    toy, (x, y) = learn(tmp_path, lambda job: job.windows(tokens, batch=3, length=4))  # noqa: F811
    assert torch.equal(x + 1, y) and int(x.min()) < 0
    assert [d.array.dtype for d in toy.program.data if d.name == "tokens"] == [np.dtype("i4")]


def test_windows_of_several_files_that_are_mapped(tmp_path):
    files = []
    for i, n in enumerate((9, 30, 14)):
        file = np.memmap(tmp_path / f"{i}.bin", "<u2", "w+", shape=(n,))
        file[:] = np.arange(n) + 1000 * i
        files.append(np.memmap(tmp_path / f"{i}.bin", "<u2", "r"))
    toy, (x, y) = learn(tmp_path, lambda job: job.windows(files, batch=2, length=4))  # noqa: F811
    read = set()
    for step in range(6):
        for source in toy.job._sources:
            source.load(step)
        assert torch.equal(x + 1, y)  # no window spans two files
        read |= set((x[:, 0] // 1000).tolist())
    held = [d.array for d in toy.program.data if d.name.startswith("tokens")]
    assert read == {0, 1, 2} and all(isinstance(a, np.memmap) for a in held)


def test_an_order_and_a_table(tmp_path):
    order = RNG.integers(0, 10, (6, 3))
    values = RNG.standard_normal((8, 2), "f4")

    def make(job):
        return [
            job.rows(np.arange(10), batch=3, order=order),
            job.table(values),
            job.table(np.arange(6) % 2 == 0),
            job.table(torch.arange(6, dtype=torch.int32)),
        ]

    toy, (x, v, odd, number) = learn(tmp_path, make)  # noqa: F811
    for source in toy.job._sources:
        source.load(4)
    assert x.tolist() == order[4].tolist() and torch.equal(v, torch.from_numpy(values[4]))
    assert odd.item() is True and number.item() == 4 and number.dtype is torch.int32


def test_rows_of_several_files_that_are_converted(tmp_path, monkeypatch):
    """The program is that of one array in memory; a large array is converted in a file."""
    parts = [RNG.integers(-9, 9, (n, 3)) for n in (4, 1, 7)]
    for i, part in enumerate(parts):
        np.save(tmp_path / f"{i}.npy", part)
    mapped = [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(3)]
    wide = np.asfortranarray(RNG.standard_normal((12, 5), "f4"))

    def digest(rows, *limits):
        for name, value in zip(("TABLE_BYTES_MAX", "PIECE_BYTES"), limits):
            monkeypatch.setattr(repops.jobs._data, name, value)
        toy = Toy(tmp_path / str(len(limits)), steps=2)  # noqa: F811
        i, w = toy.job.rows(rows, wide, batch=2)
        assert i.dtype is torch.int64 and i.shape == (2, 3)
        return toy.job.capture(
            lambda: toy.train(toy.loss() + i.float().sum() + w.sum()), toy.model, toy.optimizer
        )

    assert digest(np.concatenate(parts)) == digest(mapped, 16, 100)
    assert not [
        f
        for f in tmp_path.rglob("*")
        if f.suffix not in (".npy", ".json") and f.is_file() and f.name != "program"
    ]


REFUSED = {
    "batch is 0; expected 1": lambda j: j.rows(np.ones(4, "f4"), batch=0),
    "rows of no array": lambda j: j.rows(batch=1),
    "rows0 is float64; give it as float32": lambda j: j.rows(np.ones(4), batch=1),
    "rows0 is float16, which no program has": lambda j: j.rows(np.ones(4, "f2"), batch=1),
    "rows0 is bfloat16, which no": lambda j: j.rows(torch.ones(4).bfloat16(), batch=1),
    r"rows0, array 1 of them is int32 \[2\], and the first float32 \[2\]; expected": lambda j: (
        j.rows([np.ones(2, "f4"), np.ones(2, "i4")], batch=1)
    ),
    "rows0, array 1 of them is float64": lambda j: j.rows([np.ones(2, "f4"), np.ones(2)], batch=1),
    "rows1 has 5 rows, and rows0 has 4": lambda j: j.rows(
        np.ones(4, "f4"), np.ones(5, "f4"), batch=1
    ),
    "beyond 32 bits": lambda j: j.rows(np.array([1, 2**31]), batch=1),
    "no elements or no dimension": lambda j: j.rows(np.zeros((0, 3), "f4"), batch=1),
    "numbers from 0 to 4; there are rows 0 to 3": lambda j: j.rows(
        np.ones(4, "f4"), batch=1, order=np.array([[0], [4]])
    ),
    "order is \\[1, 1\\]; expected \\[2, 1\\]": lambda j: j.rows(
        np.ones(4, "f4"), batch=1, order=np.array([[0]])
    ),
    "order is float64": lambda j: j.rows(np.ones(4, "f4"), batch=1, order=np.zeros((2, 1))),
    "tokens must be integers in one": lambda j: j.windows(np.ones(9, "f4"), batch=1, length=2),
    "there are 3 tokens; a window of 3 takes 4": lambda j: j.windows([1, 2, 3], batch=1, length=3),
    "length is 0": lambda j: j.windows([1, 2, 3], batch=1, length=0),
    "table has 1 rows, and the job has 2 steps": lambda j: j.table(np.ones(1, "f4")),
    "table of 84 MB, more than 64 MiB; allow_large": lambda j: j.table(
        np.zeros((2, 10500000), "f4")
    ),
    "the loader gives 1 batches, and the job has 2 steps": lambda j: j.batches(
        iter([torch.ones(2)])
    ),
    "the loader gives 0 batches": lambda j: j.batches([]),
    "the loader gives str; expected tensors": lambda j: j.batches(["a"]),
    "batch 1 has 1 rows and its first one 2; drop_last=True": lambda j: j.batches(
        [torch.ones(2, 3), torch.ones(1, 3)]
    ),
    "batch of the loader's batch 1 is .2, 4. float32, and of its first one .2, 3. float32; pad=": (
        lambda j: j.batches([torch.ones(2, 3), torch.ones(2, 4)])
    ),
    r"batch\[1\] of the loader's batch 1 is 'b' and of its first one 'a'": lambda j: j.batches(
        [(torch.ones(2), "a"), (torch.ones(2), "b")]
    ),
    r"pad says nothing of batch\['y'\]": lambda j: j.batches(
        [{"x": torch.ones(2), "y": torch.ones(2)}], pad={"x": 0}
    ),
    "2 batches of the loader take 84 MB, more than 64 MiB": lambda j: j.batches(
        [torch.zeros(1, 1), torch.zeros(1, 10500000)], pad=0
    ),
    "2 batches of the loader take 84 MB, more than 64 MiB; allow_large": lambda j: j.batches(
        [torch.zeros(1, 10500000)]
    ),
    r"has \['batch\[0\]'\]; its first \['batch\[0\]', 'batch\[1\]'\]": lambda j: j.batches(
        [(torch.ones(2), torch.ones(2)), (torch.ones(2),)]
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_data_that_is_refused(tmp_path, words):
    job = repops.jobs.Job(tmp_path / "job", steps=2)
    with pytest.raises(repops.Error, match=words):
        REFUSED[words](job)


@pytest.mark.parametrize(
    "how, words",
    [
        ({"steps": 0}, "steps is 0"),
        ({"steps": 2**31}, "steps is"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is"),
        ({"steps": 5, "checkpoint_interval": 6}, "checkpoint_interval is 6"),
    ],
)
def test_jobs_that_are_refused(tmp_path, how, words):
    with pytest.raises(repops.Error, match=words):
        repops.jobs.Job(tmp_path / "job", **how)


# ---- loaders ----

Pair = collections.namedtuple("Pair", "x y")


def test_a_loader_in_its_structure(tmp_path):
    data = torch.utils.data.TensorDataset(torch.randn(7, 3), torch.arange(7))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True, drop_last=True)

    def make(job):
        torch.manual_seed(0)
        return job.batches(loader)

    toy, (x, y) = learn(tmp_path, make)  # noqa: F811
    torch.manual_seed(0)
    wanted = [b for _ in range(2) for b in loader]  # two epochs, each in its own order
    for step in range(6):
        for source in toy.job._sources:
            source.load(step)
        assert torch.equal(x, wanted[step][0]) and torch.equal(y, wanted[step][1])


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: (x, y),
        lambda x, y: [x, y],
        lambda x, y: {"x": x, "y": {"inside": y, "name": "same", "none": None}},
        Pair,
    ],
)
def test_structures_are_kept(tmp_path, make):
    job = repops.jobs.Job(tmp_path / "job", steps=3)
    x, y = torch.arange(6.0).reshape(3, 2), np.arange(3)
    batches = [make(x + i, y + i) for i in range(3)]
    got = job.batches(batches)
    assert type(got) is type(batches[0])
    for source in job._sources:
        source.load(2)
    first, second = got.values() if isinstance(got, dict) else got
    assert torch.equal(first, x + 2)
    if isinstance(second, dict):
        assert second["name"] == "same" and second["none"] is None
        second = second["inside"]
    assert second.tolist() == [2, 3, 4]


@pytest.mark.parametrize("limit", [64 << 20, 64])
def test_rows_of_other_lengths_are_padded(tmp_path, monkeypatch, limit):
    for module in (repops.jobs._data, repops.jobs._batches):
        monkeypatch.setattr(module, "TABLE_BYTES_MAX", limit)  # larger tables are in files
    job = repops.jobs.Job(tmp_path / "job", steps=2)
    batches = [
        {"ids": torch.ones(2, n, dtype=torch.int64), "labels": torch.zeros(2, n)} for n in (3, 5)
    ]
    got = job.batches(batches, pad={"ids": 9, "labels": -1}, allow_large=True)
    for source in job._sources:
        source.load(0)
    assert got["ids"].tolist() == [[1, 1, 1, 9, 9]] * 2
    assert got["labels"].tolist() == [[0, 0, 0, -1, -1]] * 2


def test_a_batch_of_fewer_rows_is_left_out(tmp_path):
    job = repops.jobs.Job(tmp_path / "job", steps=3)
    x = job.batches([torch.zeros(2), torch.ones(2), torch.ones(1)], drop_last=True)
    read = []
    for step in range(3):
        job._sources[0].load(step)
        read.append(x.tolist())
    assert read == [[0, 0], [1, 1], [0, 0]]


def test_what_is_large_is_told_first_and_mapped(tmp_path, capsys):
    job = repops.jobs.Job(tmp_path / "job", steps=2)
    job.batches([torch.zeros(1, 9000000)], allow_large=True)
    assert capsys.readouterr().err == "repops.jobs: 2 batches of the loader take 72 MB\n"
    assert not list(tmp_path.iterdir())


# ---- integers ----


def test_what_bounds_prove(tmp_path):
    rows = np.arange(10)

    def make(job):
        x = job.rows(rows, batch=4)
        return x

    toy, _ = learn(tmp_path, make)  # noqa: F811
    table = toy.job.constant(torch.arange(40.0))
    ids = toy.job.rows(np.array([0, 7, 9]), batch=3)

    def step():
        at = (ids * 3 - 2).clamp(min=0) + torch.where(ids > 5, 1, 0)
        return toy.train(toy.model(toy.x * table[at].mean() + table[ids - 10].mean()).sum())

    toy.capture(step)


INTEGERS = {
    "integers that may lie between 4000000000 and 4000000000": lambda ids: ids + ids,
    "indices that may lie between 0 and 2000000000, of 40 places": lambda ids: torch.arange(40.0)[
        ids
    ],
    "integers that may lie between 4000000000000000000": lambda ids: ids * ids,
    "integers that may lie between .* 2147483648": lambda ids: (ids.float() * 0.5).long() + 1,
    "products of integers": lambda ids: ids.prod(),
}


@pytest.mark.parametrize("words", INTEGERS)
def test_integers_that_are_refused(toy, words):  # noqa: F811
    ids = toy.job.rows(np.array([2 * 10**9] * 2), batch=2)
    if "indices" in words:
        with pytest.raises(IndexError):  # torch checks first
            torch.arange(40.0)[torch.tensor([2 * 10**9])]
        ids = toy.job.rows(np.array([0, 2 * 10**9]), batch=1, order=np.zeros((6, 1), "i8"))
    text = toy.refused(
        lambda: toy.train(toy.loss() * INTEGERS[words](ids).float().sum()),
    )
    import re

    assert re.search(words, text), text


def test_integers_of_the_state(toy):  # noqa: F811
    toy.model.register_buffer("count", torch.zeros((), dtype=torch.int64))
    toy.model.register_buffer("total", torch.zeros((), dtype=torch.int64))

    def counted():
        toy.model.count += 1
        return toy.train(toy.loss() * toy.model.count)

    toy.capture(counted)

    def doubled():
        toy.model.total += toy.model.total + 1
        return toy.step()

    assert "total: integers of the state may leave" in toy.refused(doubled)


def test_the_order_of_files_in_a_job(tmp_path):
    """data.json states offsets, which are behind the .npy headers."""
    toy, _ = learn(tmp_path, lambda job: job.rows(RNG.integers(0, 9, (5, 2), "u1"), batch=2))  # noqa: F811
    told = json.loads((toy.job.folder / "data.json").read_text())["data"]
    for entry, d in zip(told, toy.program.data, strict=True):
        content = (toy.job.folder / entry["file"]).read_bytes()[entry["offset"] :]
        assert content == d.array.tobytes() and entry["name"] == d.name
        assert np.array_equal(np.load(toy.job.folder / entry["file"]), d.array)
