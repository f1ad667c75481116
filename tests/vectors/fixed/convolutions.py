#!/usr/bin/env python3
"""Writes convolutions.txt: fixed convolutions and some elements of them, computed by SPEC.md section 3.5 in rational arithmetic.

    numbers NAME LOW-HIGH ...
        As in products.txt (make.py).
    convolution NAME direction bits N H W C F groups KH KW stride_h stride_w pad_h pad_w dilation_h dilation_w A B seed
            [SIDE:FROM-END:WORD ...] = WORD ...
        Direction 0 is conv2d_fixed, 1 conv2d_fixed_dx, 2 conv2d_fixed_dw. Both inputs are drawn like a and b of a product. Then
        elements FROM to END - 1 of input SIDE are replaced by WORD. After "=" come elements 0, s, 2s, ... of the output, where s is
        the least odd number that gives at most 16 of them."""

from math import prod
from pathlib import Path

from make import INFINITY, MOST, NAN, NUMBERS, draw, fixed, hashed

ONES = (1, 1, 0, 0, 1, 1)


def places(e, dims):
    out = []
    for d in reversed(dims):
        e, i = divmod(e, d)
        out.insert(0, i)
    return out


def index(at, dims):
    i = 0
    for a, d in zip(at, dims):
        i = i * d + a
    return i


class Convolution:
    def __init__(self, direction, image, filters, kernel, groups, attributes):
        self.direction, self.groups = direction, groups
        self.stride, self.pad, self.dilation = attributes[:2], attributes[2:4], attributes[4:]
        self.x, self.w = image, (*kernel, image[3] // groups, filters)
        sizes = [(image[1 + i] + 2 * self.pad[i] - self.dilation[i] * (kernel[i] - 1) - 1) // self.stride[i] + 1 for i in (0, 1)]
        assert min(sizes) >= 1
        self.y = (image[0], *sizes, filters)
        self.inputs = ((self.x, self.w), (self.y, self.w), (self.x, self.y))[direction]
        self.output = (self.y, self.x, self.w)[direction]

    def meeting(self, kernel, window):
        """Returns the pixel of x that a window covers with a tap, or None outside the image."""
        at = [window[i] * self.stride[i] - self.pad[i] + kernel[i] * self.dilation[i] for i in (0, 1)]
        return at if all(0 <= at[i] < self.x[1 + i] for i in (0, 1)) else None

    def window(self, kernel, pixel):
        """Returns the window that covers a pixel of x with a tap, or None if there is none."""
        out = []
        for i in (0, 1):
            o, rest = divmod(pixel[i] + self.pad[i] - kernel[i] * self.dilation[i], self.stride[i])
            if rest or not 0 <= o < self.y[1 + i]:
                return None
            out.append(o)
        return out

    def terms(self, e):
        """For each k, gives the indices of both factors. The first is None where the pixel is outside the image."""
        kh, kw, depth, filters = self.w
        width = filters // self.groups
        at = places(e, self.output)
        if self.direction == 0:
            n, oh, ow, f = at
            for k in range(kh * kw * depth):
                i, j, c = places(k, (kh, kw, depth))
                pixel = self.meeting((i, j), (oh, ow))
                yield pixel and index((n, *pixel, f // width * depth + c), self.x), index((i, j, c, f), self.w)
        elif self.direction == 1:
            n, h, v, c = at
            for k in range(kh * kw * width):
                i, j, g = places(k, (kh, kw, width))
                f, window = c // depth * width + g, self.window((i, j), (h, v))
                yield window and index((n, *window, f), self.y), index((i, j, c % depth, f), self.w)
        else:
            i, j, c, f = at
            for k in range(prod(self.y[:3])):
                n, oh, ow = places(k, self.y[:3])
                pixel = self.meeting((i, j), (oh, ow))
                yield pixel and index((n, *pixel, f // width * depth + c), self.x), k * filters + f


def convolution(name, direction, bits, image, filters, kernel, groups, attributes, a, b, plants=()):
    v = Convolution(direction, image, filters, kernel, groups, attributes)
    seed = sum((i + 1) * ord(c) for i, c in enumerate(name)) * 1000 + bits * 10 + direction
    data = [[draw(NUMBERS[kind], hashed(seed, side, i)) for i in range(prod(v.inputs[side]))] for side, kind in ((0, a), (1, b))]
    for side, from_, end, word in plants:
        assert end <= len(data[side])
        data[side][from_:end] = [word] * (end - from_)

    def element(e):
        terms = list(v.terms(e))
        return fixed([0 if i is None else data[0][i] for i, _ in terms], [data[1][j] for _, j in terms], bits)

    count = prod(v.output)
    stride = -(-count // MOST) | 1
    said = ["convolution", name, direction, bits, *image, filters, groups, *kernel, *attributes, a, b, seed,
            *(f"{side}:{from_}-{end}:{w:08x}" for side, from_, end, w in plants), "=",
            *(f"{element(e):08x}" for e in range(0, count, stride))]
    return " ".join(map(str, said))


def shapes(bits, direction):
    """Varies kernels, borders, strides and groups; chunks end within taps and between them."""
    for name, image, filters, kernel, groups, attributes, a, b in (
            ("one_by_one", (2, 3, 5, 40), 37, (1, 1), 1, ONES, "even", "even"),
            ("one_by_one_stride", (1, 5, 4, 300), 9, (1, 1), 1, (2, 3, 0, 0, 1, 1), "even", "large"),
            ("three", (2, 6, 5, 70), 33, (3, 3), 1, (1, 1, 1, 1, 1, 1), "even", "even"),
            ("three_stride", (2, 7, 6, 65), 34, (3, 3), 1, (2, 2, 1, 1, 1, 1), "any", "small"),
            ("stem", (1, 17, 19, 3), 17, (7, 7), 1, (2, 2, 3, 3, 1, 1), "even", "even"),
            ("whole_taps", (1, 4, 4, 256), 256, (3, 2), 1, (1, 1, 1, 0, 1, 1), "even", "ends"),
            ("groups", (2, 5, 6, 12), 8, (2, 3), 4, (1, 2, 2, 1, 2, 3), "edges", "even"),
            ("depthwise", (1, 7, 6, 19), 19, (3, 3), 19, (1, 1, 1, 1, 1, 1), "even", "even"),
            ("wide_stride", (1, 9, 8, 5), 6, (2, 2), 1, (4, 3, 1, 1, 1, 1), "ties24", "ties16"),
            ("padding", (1, 1, 2, 3), 4, (1, 1), 1, (1, 1, 2, 2, 1, 1), "even", "even"),
            ("rows", (1, 3, 40, 9), 13, (3, 5), 1, (1, 1, 1, 2, 1, 1), "subnormal", "large"),
            ("images", (9, 6, 6, 5), 7, (3, 3), 1, (1, 1, 1, 1, 1, 1), "even", "large"),
            ("few", (2, 9, 13, 3), 21, (3, 3), 1, (1, 1, 1, 1, 1, 1), "edges", "even"),
            ("few_stride", (3, 11, 7, 5), 6, (3, 3), 1, (2, 2, 1, 1, 1, 1), "any", "even"),
            ("few_filters", (1, 6, 21, 33), 3, (5, 3), 1, (1, 1, 2, 1, 1, 1), "subnormal", "any"),
            ("long_row", (1, 2, 70, 2), 15, (2, 3), 1, (1, 1, 0, 1, 1, 1), "even", "ties24"),
            ("stride_dilation", (1, 13, 12, 8), 3, (3, 4), 1, (2, 3, 2, 1, 2, 2), "even", "small"),
            ("far_taps", (2, 9, 10, 4), 7, (2, 2), 1, (1, 2, 3, 4, 5, 7), "ends", "even"),
            ("groups_stride", (2, 7, 9, 24), 12, (3, 3), 6, (2, 1, 1, 1, 1, 2), "even", "edges"),
            ("many_groups", (1, 5, 8, 40), 40, (3, 3), 40, (2, 2, 1, 1, 1, 1), "any", "even"),
            ("deep_groups", (1, 4, 6, 120), 6, (3, 3), 3, (1, 1, 1, 1, 1, 1), "even", "even")):
        yield convolution(name, direction, bits, image, filters, kernel, groups, attributes, a, b)


def not_finite(bits, direction):
    """In either input, one number is not finite, or far larger than the others. Some windows do not read it."""
    image, kernel, padded = (1, 4, 5, 40), (3, 3), (1, 1, 1, 1, 1, 1)
    for word, name in ((INFINITY, "infinite"), (NAN, "nan"), (0x7f000000, "far")):
        for side, at in ((0, 3), (1, 1), (1, 700)):
            yield convolution(f"{name}_{side}_{at}", direction, bits, image, 41, kernel, 1, padded, "even", "even",
                              [(side, at, at + 1, word)])
    yield convolution("strided", direction, bits, image, 41, kernel, 1, (2, 2, 1, 1, 1, 1), "even", "even", [(1, 5, 6, INFINITY)])
    for side, at, word in ((0, 40, INFINITY), (0, 41, NAN), (1, 9, INFINITY), (1, 80, NAN)):
        yield convolution(f"few_{side}_{at}", direction, bits, (2, 5, 9, 3), 19, kernel, 1, (2, 1, 1, 1, 1, 1), "even", "even",
                          [(side, at, at + 1, word)])
        yield convolution(f"group_{side}_{at}", direction, bits, (1, 5, 9, 12), 12, kernel, 4, (1, 2, 1, 1, 1, 1), "even", "any",
                          [(side, at, at + 1, word)])
    yield convolution("zeros", direction, bits, image, 6, kernel, 1, padded, "zero", "any")


def uneven(direction):
    """With 8 bits, some windows, filters and gradients need two digits and others one; there are zeros outside the
    image."""
    for name, image, filters, kernel, groups, attributes, a, b in (
            ("uneven", (2, 6, 5, 40), 33, (3, 3), 1, (1, 1, 1, 1, 1, 1), "halves", "halves"),
            ("uneven_stride", (2, 7, 6, 35), 34, (3, 3), 1, (2, 2, 1, 1, 1, 1), "uneven", "even"),
            ("uneven_weights", (1, 5, 8, 30), 30, (3, 3), 1, (1, 1, 2, 2, 1, 1), "even", "uneven"),
            ("uneven_both", (1, 6, 6, 9), 35, (3, 3), 1, (1, 1, 1, 1, 1, 1), "uneven", "uneven"),
            ("uneven_groups", (1, 5, 8, 12), 12, (3, 3), 4, (1, 1, 1, 1, 1, 1), "sparse", "halves")):
        yield convolution(name, direction, 8, image, filters, kernel, groups, attributes, a, b)


def main():
    lines = [" ".join(["numbers", name, *(f"{low:08x}-{high:08x}" for low, high in ranges)]) for name, ranges in NUMBERS.items()]
    for bits in (16, 24, 8):
        for direction in (0, 1, 2):
            lines += [*shapes(bits, direction), *not_finite(bits, direction)]
    for direction in (0, 1, 2):
        lines += uneven(direction)
    Path(__file__).with_name("convolutions.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
