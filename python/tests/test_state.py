"""Commitments to tensors and states, against PROTOCOL.md section 2 implemented with hashlib."""

import hashlib
import struct

import numpy as np
import pytest
import torch
import train

import repops
from repops.torch import HashLog, commitments, reproducible
from repops.torch import hash as hash_of

CODES = {"float32": 1, "int32": 2, "uint8": 3, "uint16": 4, "bfloat16": 5, "float16": 6, "int8": 7}


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def tree(leaves):
    """The Merkle tree hash MTH of RFC 6962, over byte strings."""
    if len(leaves) == 1:
        return sha(b"\0", leaves[0])
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha(b"\1", tree(leaves[:half]), tree(leaves[half:]))


def expected(code, shape, data):
    root = tree([data[i : i + 1024] for i in range(0, len(data), 1024)])
    head = struct.pack(f"<II{len(shape)}Q", code, len(shape), *shape)
    return sha(b"verde/tensor/1\0", head, root).hex()


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "uint16", "float16", "int8"])
@pytest.mark.parametrize("shape", [(1,), (256,), (257,), (3, 5, 7), (300, 1100)])
def test_commitment_of_an_array(dtype, shape):
    a = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    assert repops.commitment(a) == expected(CODES[dtype], shape, a.tobytes())
    assert repops.commitment(a.astype(a.dtype.newbyteorder(">"))) == repops.commitment(a)
    if len(shape) > 1:
        turned = np.asfortranarray(a)
        assert repops.commitment(turned) == repops.commitment(a)
        assert repops.commitment(a.T) != repops.commitment(a)


def test_commitment_of_other_types_is_that_of_their_bytes():
    a = np.arange(600, dtype="i8").reshape(2, 300)
    assert repops.commitment(a) == repops.commitment(a.view("u1").reshape(-1))
    assert repops.commitment(np.float32(1.5)) == expected(1, (1,), struct.pack("<f", 1.5))


def test_a_bit_or_a_shape_changes_a_commitment():
    a = np.ones((4, 6), "f4")
    b = a.copy()
    b.view("u4")[2, 3] ^= 1
    assert len({repops.commitment(x) for x in (a, b, a.reshape(6, 4), a.view("i4"))}) == 4


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
def test_root_over_commitments(count):
    parts = [repops.commitment(np.full(3, i, "f4")) for i in range(count)]
    assert repops.root(parts) == tree([bytes.fromhex(p) for p in parts]).hex()


def test_what_has_no_commitment_is_an_error():
    with pytest.raises(repops.Error, match="no elements"):
        repops.commitment(np.zeros((3, 0), "f4"))
    with pytest.raises(repops.Error, match="9 dimensions"):
        repops.commitment(np.zeros((1,) * 9, "f4"))
    with pytest.raises(repops.Error, match="at least one"):
        repops.root([])
    for wrong in ("", "12", "G" * 64, "A" * 64):
        with pytest.raises(repops.Error, match="is no hash"):
            repops.root([wrong])


def test_tensors_have_the_commitments_of_their_bytes():
    values = {
        "f": torch.rand(3, 700).t(),
        "b": torch.rand(5, 7).to(torch.bfloat16),
        "h": torch.rand(9).half(),
        "i": torch.arange(5, dtype=torch.int32),
        "l": torch.tensor(7),
        "n": 7,
        "x": 0.5,
    }
    found = commitments(values)
    assert found["f"] == repops.commitment(values["f"].contiguous().numpy())
    bits = values["b"].view(torch.int16).numpy().tobytes()
    assert found["b"] == expected(5, (5, 7), bits)
    assert found["h"] == repops.commitment(values["h"].numpy())
    assert found["i"] == expected(2, (5,), values["i"].numpy().tobytes())
    assert found["l"] == found["n"] == expected(3, (8,), struct.pack("<q", 7))
    assert found["x"] == expected(3, (8,), struct.pack("<d", 0.5))
    assert hash_of(values) == tree([bytes.fromhex(c) for c in found.values()]).hex()


def trained(steps, file=None, every=1):
    with reproducible():
        torch.manual_seed(1)
        model, loss = train.MODELS["gpt2"]()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        with HashLog(model, optimizer, file, every) as log:
            for i in range(steps):
                loss(i).backward()
                optimizer.step()
                optimizer.zero_grad()
        return model, optimizer, log.hashes


def test_the_hash_of_a_training_is_of_weights_and_moments(tmp_path):
    model, optimizer, each = trained(3, tmp_path / "a")
    assert trained(3)[2] == each
    assert trained(3, tmp_path / "b", 2)[2] == each[1:2]
    assert len(set(each)) == 3 and each[-1] == hash_of(model, optimizer)
    assert (tmp_path / "a").read_text() == "".join(f"{i + 1} {h}\n" for i, h in enumerate(each))
    assert (tmp_path / "b").read_text() == f"2 {each[1]}\n"

    named = commitments(model, optimizer)
    count = len(list(model.parameters()))
    assert len(named) == 4 * count  # the weight, two moments, the step
    assert "lm_head.weight" not in named  # it is tied to the token embedding
    assert "transformer.h.0.ln_1.weight.exp_avg_sq" in named
    assert hash_of(model) == repops.root(list(commitments(model).values()))

    moment = optimizer.state[model.transformer.ln_f.bias]["exp_avg"]
    moment.view(torch.int32)[0] ^= 1
    other = commitments(model, optimizer)
    assert [n for n in named if named[n] != other[n]] == ["transformer.ln_f.bias.exp_avg"]
    assert hash_of(model, optimizer) != each[-1]


def test_buffers_are_part_of_the_state():
    model = torch.nn.BatchNorm1d(3)
    before = hash_of(model)
    assert list(commitments(model)) == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
    ]
    model.num_batches_tracked += 1
    assert hash_of(model) != before


def test_a_state_that_is_no_tensors_is_an_error():
    with pytest.raises(repops.Error, match="w is a str"):
        hash_of({"w": "text"})
    with pytest.raises(repops.Error, match="every is 0"):
        HashLog(torch.nn.Linear(1, 1), torch.optim.SGD([torch.zeros(1)]), every=0)


def test_bfloat16_of_torch_goes_in_and_out():
    x, w = torch.randn(3, 4), torch.randn(4, 5).bfloat16()
    half = repops.cast(x, dtype=5)
    assert half.dtype is torch.bfloat16 and torch.equal(half, x.bfloat16())
    assert torch.equal(repops.matmul(x, w), repops.matmul(x, w.float()))
    out = torch.empty(3, 4, dtype=torch.bfloat16)
    assert repops.cast(x, dtype=5, out=out) is out and torch.equal(out, half)
    assert repops.commitment(half) == repops.torch.commitments({"x": half})["x"]
