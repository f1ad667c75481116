"""Merkle trees and the commitments made of them: PROTOCOL.md section 2."""

from hashlib import sha256
from struct import pack

from notes import tagged

LEAF = 1024  # most bytes of a tensor in one leaf (2.3)
PART = 1024  # most bytes of a fold's state (section 9)
SIZES = {1: 4, 2: 4, 3: 1, 4: 2, 5: 2, 6: 2, 7: 1}
SIGNED = (2, 7)  # signed element types


def leaf_hash(data):
    return sha256(b"\0" + data).digest()


def inner_hash(left, right):
    return sha256(b"\1" + left + right).digest()


def middle(lo, hi):
    """Where RFC 6962 splits [lo, hi): after the largest power of two smaller than its size."""
    return lo + (1 << (hi - lo - 1).bit_length() - 1)


def root_of_path(index, leaves, data, path):
    """The root that an audit path leads to, or None if its length is wrong."""
    def climb(lo, hi, siblings):
        if hi - lo == 1:
            return None if siblings else leaf_hash(data)
        if not siblings:
            return None
        m = middle(lo, hi)
        left = index < m
        below = climb(lo, m, siblings[:-1]) if left else climb(m, hi, siblings[:-1])
        if below is None:
            return None
        return inner_hash(below, siblings[-1]) if left else inner_hash(siblings[-1], below)
    return climb(0, leaves, path)


def frontier(lo, hi, depth):
    if depth == 0 or hi - lo == 1:
        return [(lo, hi)]
    m = middle(lo, hi)
    return frontier(lo, m, depth - 1) + frontier(m, hi, depth - 1)


def join(lo, hi, depth, hashes):
    """The hash of [lo, hi) from those of its frontier, which are removed from the list."""
    if depth == 0 or hi - lo == 1:
        return hashes.pop(0)
    m = middle(lo, hi)
    left = join(lo, m, depth - 1, hashes)
    return inner_hash(left, join(m, hi, depth - 1, hashes))


def root_of(leaves):
    def of(lo, hi):
        if hi - lo == 1:
            return leaf_hash(leaves[lo])
        m = middle(lo, hi)
        return inner_hash(of(lo, m), of(m, hi))
    return of(0, len(leaves))


def tensor_commitment(shape, root):
    dtype, dims = shape
    return tagged("verde/tensor/1", pack("<II", dtype, len(dims)), *(pack("<Q", d) for d in dims), root)


def state_commitment(program_hash, step, root):
    return tagged("verde/state/1", program_hash, pack("<Q", step), root)


def elements(shape):
    n = 1
    for d in shape[1]:
        n *= d
    return n


def tensor_bytes(shape):
    return elements(shape) * SIZES[shape[0]]


def tensor_leaves(shape):
    return -(-tensor_bytes(shape) // LEAF)


def step_number(step):
    """The commitment of the step's number as an i32 of shape [1]."""
    return tensor_commitment((2, (1,)), leaf_hash(pack("<i", max(step, 0))))


def record(data):
    """(descriptor, inputs, output) of a record, or None if it is malformed."""
    count = int.from_bytes(data[32:36], "little")
    if len(data) < 36 or count > 1024 or len(data) != 68 + 32 * count:
        return None
    inputs = [data[36 + 32 * i:68 + 32 * i] for i in range(count)]
    return data[:32], inputs, data[-32:]
