#!/usr/bin/env python3
"""Writes draws.txt: cuts and draws of rows of weights, computed by sorting, as SPEC.md section 10.3 defines them. The
reference's folds and the kernels' searches find them without sorting.

Each line has: seed, kind and length of the row; k; p; both random words; the cuts of top_k and top_p, and how many
elements each keeps; the index drawn from the whole row, and the one drawn from what both cuts keep."""

from pathlib import Path

MASK = 2**64 - 1


def word(seed, i):
    """case_word of repops/tools/op_data.h, for input 0."""
    z = (seed + i) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def weight(kind, h):
    """Kind 0: any number; 1: few values; 2: every magnitude; 3: the largest only; 4: mostly 0; 5: signed."""
    return (h >> 33, h % 4, h >> 33 + h % 31, 2**31 - 1, int(h % 997 == 0), (h >> 32) - 2**31)[kind]


def cut(row, kept):
    """Returns the cut (t, c) that keeps these indices, which are the first ones in sorted order."""
    last = kept[-1]
    return max(row[last], 0), last + 1


def draw(row, words):
    r, total = words * sum(row) >> 64, 0
    for i, q in enumerate(row):
        total += q
        if total > r:
            return i
    return 0


def top_k(row, order, k):
    return ((0, len(row)), len(row)) if k >= len(row) else (cut(row, order[:k]), k)


def top_p(row, order, p):
    total, before, kept = sum(row), 0, 0
    if total == 0:
        return (0, len(row)), len(row)
    while kept < len(order) and before * 2**24 < p * total:
        before += row[order[kept]]
        kept += 1
    return cut(row, order[:kept]), kept


def line(seed, kind, length, k, p, words):
    row = [max(weight(kind, word(seed, i)), 0) for i in range(length)]
    order = sorted(range(length), key=lambda i: (-row[i], i))
    cut_k, count_k = top_k(row, order, k)
    cut_p, count_p = top_p(row, order, p)
    both = set(order[:min(count_k, count_p)])
    rest = [q if i in both else 0 for i, q in enumerate(row)]
    said = [seed, kind, length, k, p, words & 2**32 - 1, words >> 32, *cut_k, count_k, *cut_p, count_p,
            draw(row, words), draw(rest, words)]
    return " ".join(map(str, said))


def main():
    lines = []
    for length in (1, 2, 7, 255, 256, 257, 511, 512, 513, 1025, 50257, 151936):
        for kind in range(6):
            seed = 1000 * kind + length
            h = word(seed, -1 & MASK)
            k = (1, 50, length, length + 1, 1 + h % length, 2)[(kind + length) % 6]
            p = (1, 2**23, 2**24, 2**24 - 1, 1 + (h >> 20) % 2**24, 15938355)[(h >> 7) % 6]
            lines.append(line(seed, kind, length, k, p, (0, MASK, h, h, h, 2**63)[(h >> 12) % 6]))
    Path(__file__).with_name("draws.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
