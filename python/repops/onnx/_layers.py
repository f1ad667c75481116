"""Recognises attention and rotary positions in the single operators that exporters write."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import Node
from ._match import Matcher


def _part(m: Matcher, name: str) -> tuple[str, int, int] | None:
    """For a slice of the last of four dimensions: (x, begin, end)."""
    node = m.made(name, "Slice")
    numbers = [m.ints(n) for n in node.inputs[1:]] if node else []
    if node is None or len(numbers) < 3 or any(len(n) != 1 for n in numbers):
        return None
    begin, end, axis, step = (*(n[0] for n in numbers), 1)[:4]
    return (node.inputs[0], begin, end) if axis in (3, -1) and step == 1 else None


def _half_turn(m: Matcher, name: str) -> tuple[str, int] | None:
    """For concat(-second half, first half) of x's last dimension: (x, half of its size)."""
    joined = m.made(name, "Concat")
    if joined is None or joined.attributes.get("axis") not in (-1, 3) or len(joined.inputs) != 2:
        return None
    less = m.made(joined.inputs[0], "Neg")
    second = _part(m, less.inputs[0]) if less else None
    first = _part(m, joined.inputs[1])
    if second is None or first is None or first[0] != second[0]:
        return None
    half = second[1]
    fits = first[1] == 0 < half == first[2] and second[2] >= 2 * half
    return (first[0], half) if fits else None


def _half_table(m: Matcher, name: str, half: int) -> str:
    """The name of a constant [1, positions, half], made from a constant [1, 1, positions, 2 half]
    with equal halves; "" if there is none."""
    t, own = m.values.get(name), f"{name}/half"
    if own in m.made_constants:
        return own
    if t is None or t.dim() != 4 or list(t.shape[:2]) != [1, 1] or t.shape[3] != 2 * half:
        return ""
    equal = own not in m.makers and torch.equal(t[..., :half], t[..., half:])
    return m.constant(own, t[0, :, :, :half]) if equal else ""


def rotary(m: Matcher, node: Node) -> Any:
    """x cos + (-x2, x1) sin, where x is (x1, x2)."""
    for left, right in m.either(node):
        product, turned = m.made(left, "Mul"), m.made(right, "Mul")
        for half, sin in m.either(turned) if product and turned else ():
            found = _half_turn(m, half)
            for x, cos in m.either(product) if found and product else ():
                if found and x == found[0]:
                    tables = [_half_table(m, name, found[1]) for name in (cos, sin)]
                    if all(tables):
                        return "RotaryEmbedding", [x, *tables], {}
    return None


def _turned(m: Matcher, name: str) -> str | None:
    """For a transpose of the last two of four dimensions: x."""
    node = m.made(name, "Transpose")
    if node is None:
        return _turned_flat(m, m.made(name, "Reshape"))
    return node.inputs[0] if node.attributes.get("perm") == [0, 1, 3, 2] else None


def _last_two(m: Matcher, name: str) -> list[int]:
    """The last two sizes of a value of three dimensions, if a reshape tells them; else []."""
    node = m.made(name, "Reshape", "Transpose")
    if node is None:
        return []
    if node.kind == "Reshape":
        shape = m.ints(node.inputs[1])
        return shape[1:] if len(shape) == 3 else []
    before = m.made(node.inputs[0], "Reshape")
    shape, perm = m.ints(before.inputs[1]) if before else [], node.attributes.get("perm", [])
    fits = len(shape) == len(perm) == 3 and all(d > 0 for d in shape)
    return [shape[a] for a in perm[1:]] if fits else []


def _turned_flat(m: Matcher, last: Node | None) -> str | None:
    """The same transpose as PyTorch's exporter writes it: heads [b, h, t, d] are reshaped to [b h,
    t, d], transposed, and reshaped to [b, h, d, t]."""
    middle = m.made(last.inputs[0], "Transpose") if last else None
    if last is None or middle is None or middle.attributes.get("perm") != [0, 2, 1]:
        return None
    flat, shape = middle.inputs[0], m.ints(last.inputs[1])
    if len(shape) != 4 or min(shape) < 1 or _last_two(m, flat) != shape[:1:-1]:
        return None
    b, h, d, t = shape
    return _heads(m, flat, [b, t, h, d]) or m.reshaped(last, flat, [b, h, t, d])


def _heads(m: Matcher, flat: str, sizes: list[int]) -> str | None:
    """The heads [b, h, t, d] before a reshape to [b h, t, d], if a layer made them from [b, t, h,
    d]."""
    first = m.made(flat, "Reshape")
    heads = m.made(first.inputs[0], "Transpose") if first else None
    whole = m.made(heads.inputs[0], "Reshape") if heads else None
    if not (first and heads and whole) or heads.attributes.get("perm") != [0, 2, 1, 3]:
        return None
    shape = m.ints(whole.inputs[1])
    fits = len(shape) == 4 and all(d in (n, -1) for d, n in zip(shape, sizes))
    return first.inputs[0] if fits else None


def _times(m: Matcher, name: str) -> tuple[str, float]:
    """For a product of x and a constant: (x, the constant)."""
    node = m.made(name, "Mul", "Div")
    for x, c in m.either(node) if node else ():
        number = m.number(c)
        if node and number and (node.kind == "Mul" or c == node.inputs[1]):
            return x, number if node.kind == "Mul" else 1 / number
    return name, 1.0


def attention(m: Matcher, node: Node) -> Any:
    """softmax(q k^T scale + mask) v in four dimensions."""
    softmax, guarded = m.made(node.inputs[0], "Softmax"), False
    guard = m.made(node.inputs[0], "Where")
    if guard:  # gives zeros for queries without visible keys
        own = m.made(guard.inputs[0], "IsNaN")
        guarded = bool(own and own.inputs[0] == guard.inputs[2])
        guarded = guarded and m.is_number(guard.inputs[1], 0.0)
        softmax = m.made(guard.inputs[2], "Softmax") if guarded else None
    if softmax is None or softmax.attributes.get("axis", -1) not in (-1, 3):
        return None
    scores, mask = softmax.inputs[0], ""
    total = m.made(scores, "Add")
    for inner, other in m.either(total) if total else ():
        if m.made(_times(m, inner)[0], "MatMul"):
            scores, mask = inner, other
            break
    scores, scale = _times(m, scores)
    product = m.made(scores, "MatMul")
    if product is None:
        return None
    (q, a), (k, b) = (_times(m, name) for name in product.inputs)
    keys = _turned(m, k)
    if keys is None:
        return None
    inputs = [q, keys, node.inputs[1]] + ([mask] if mask else [])
    how = {"scale": scale * a * b}
    return "Attention", inputs, how if guarded else {**how, "parts": 1}
