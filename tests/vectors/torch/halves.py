"""Writes what PyTorch rounds f32 numbers to in bf16 and f16: tests/vectors/torch/halves.txt."""

import random

import torch


def numbers():
    """Gives bits of f32 numbers: special ones, those around each boundary of a format, and random ones."""
    chance = random.Random(16)
    yield from [0, 1, 0x7fffff, 0x7f800000, 0x7f7fffff, 0x477fefff, 0x477ff000, 0x477fe000, 0x7f7f7fff, 0x7f7f8000]
    for exponent in (*range(0, 3), *range(100, 114), 126, 127, 140, 141, 142, 143, 253, 254):
        for place in (12, 13, 15, 16, 23 - max(0, min(exponent - 103, 23))):
            middle = exponent << 23 | chance.getrandbits(23) >> place << place
            yield from (middle - 1 if middle else 0, middle, middle + 1)
    for _ in range(300):
        yield chance.getrandbits(31)
    for _ in range(300):
        yield chance.randrange(100, 145) << 23 | chance.getrandbits(23)


def main():
    bits = [b | s for b in numbers() for s in (0, 0x80000000)]
    bits = [b for b in bits if b & 0x7fffffff <= 0x7f800000]
    x = torch.tensor([b - (b >> 31 << 32) for b in bits], dtype=torch.int32).view(torch.float32)
    columns = [x.to(t).view(torch.int16).tolist() for t in (torch.bfloat16, torch.float16)]
    with open("tests/vectors/torch/halves.txt", "w") as out:
        for b, *halves in zip(bits, *columns):
            print(f"{b:08x}", *(f"{h & 0xffff:04x}" for h in halves), file=out)


main()
