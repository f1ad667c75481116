#!/usr/bin/env python3
"""Programs of a few hundred bytes that run for long, to test estimates and what daemons refuse.

    python3 tests/vectors/hostile/hostile.py [FOLDER]   # writes them into FOLDER as PROTOCOL.md section 1.2 says
"""
import os
import struct
import sys

F32, I32 = 1, 2
# Numbers of operators, SPEC.md section 15.
FILL, IOTA, SCALE, MATMUL, CONV2D, PERMUTATION = 1, 9, 27, 32, 128, 203
ONE = 0x3F800000  # 1.0, as an attribute of kind f
NO_LOSS = 0xFFFFFFFF


def string(text):
    return struct.pack("<H", len(text)) + text.encode()


def shape(dtype, dims):
    return struct.pack(f"<BB{len(dims)}Q", dtype, len(dims), *dims)


def graph(nodes, output):
    """A node is a tuple: operator, attributes, inputs, dtype, dimensions."""
    out = struct.pack("<II", len(nodes), sum(len(node[2]) for node in nodes))
    for operator, attributes, inputs, dtype, dims in nodes:
        out += string("n") + struct.pack("<HH", operator, len(inputs))
        out += struct.pack(f"<{len(attributes)}q{len(inputs)}I", *attributes, *inputs) + shape(dtype, dims)
    return out + struct.pack(f"<{len(output)}II", *output, NO_LOSS)


def program(leaves, init, step, steps=1, interval=1):
    out = string("verde program") + struct.pack("<HHQQQI", 1, 1, 0, steps, interval, 0)
    out += struct.pack("<I", len(leaves))
    for number, (dtype, dims) in enumerate(leaves):
        out += string(f"x{number}") + shape(dtype, dims)
    return out + graph(*init) + graph(*step)


def permutation(count, steps=1):
    dims = (count,)
    counted, permuted = (IOTA, (), (), I32, dims), (PERMUTATION, (0, 0), (1,), I32, dims)
    return program([(I32, dims)], ([counted], [1]), ([permuted], [2]), steps, steps)


def product(size, steps=1):
    """Multiplies the state with itself."""
    dims = (size, size)
    filled = ([(FILL, (ONE,), (), F32, dims)], [1])
    return program([(F32, dims)], filled, ([(MATMUL, (0, 0, ONE, 256, 0, 0), (0, 0), F32, dims)], [2]), steps, steps)


def convolution(size, channels):
    """Convolves an image with a kernel that is one larger than it in each direction."""
    image, kernel = (1, size, size, channels), (size + 1, size + 1, channels, channels)
    filled = ([(FILL, (ONE,), (), F32, dims) for dims in (image, kernel)], [1, 2])
    attributes = (1, 1, size // 2, size // 2, 1, 1, 1)
    step = [(CONV2D, attributes, (0, 1), F32, image), (SCALE, (ONE,), (1,), F32, kernel)]
    return program([(F32, image), (F32, kernel)], filled, (step, [3, 4]))


PROGRAMS = {
    "permutation": permutation(1 << 28),
    "product": product(16384),
    "convolution": convolution(1024, 16),
    "steps": product(256, 2**31 - 1),
}

if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, content in PROGRAMS.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
