"""Random numbers by Philox. Each call draws its 64-bit key from torch's generator.

So the state of torch's generator, which programs save and restore, fixes the numbers that follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import _context
from .._operators import bits
from . import _here as here
from ._call import Leftover, elementwise, need, run
from ._overlaps import check_written
from ._registry import handles

Tensor = torch.Tensor
_WORD = 1 << 63


def _check(generator: torch.Generator | None) -> None:
    """Raises Leftover unless the generator is of the CPU, whatever device the numbers are for."""
    if generator is not None and generator.device.type != "cpu":
        raise Leftover(f"its generator is of {generator.device}; expected one of the CPU")


def key(generator: torch.Generator | None = None) -> int:
    """The next 64-bit key: two words of torch's generator, which are the same on every machine."""
    _check(generator)
    word = torch.empty((), dtype=torch.int64, device="cpu")
    return int(word.random_(-_WORD, None, generator=generator))


def _draw(name: str, size: Sequence[int], first: float, second: float, generator: Any) -> Tensor:
    job = _context.current().job
    if job is not None:
        return job.numbers(name, size, first, second, generator)
    count = math.prod(size)
    y = run(name, (key(generator), 0, bits(first), bits(second)), (), (count,))
    return y.reshape(tuple(size))


def uniform(
    size: Sequence[int], low: float = 0.0, high: float = 1.0, generator: Any = None
) -> Tensor:
    """Uniform numbers in [low, high), from 24 random bits each."""
    return _draw("uniform", size, low, high, generator)


def normal(
    size: Sequence[int], mean: float = 0.0, std: float = 1.0, generator: Any = None
) -> Tensor:
    """Numbers of the normal distribution."""
    return _draw("normal", size, mean, std, generator)


def _normal(x_type: Any, size: Any, mean: float, std: float, generator: Any) -> Tensor:
    """Normal numbers; complex ones have half of the variance in each part."""
    if x_type is not torch.complex64:
        return normal(size, mean, std, generator)
    return torch.view_as_complex(normal((*size, 2), mean, std / math.sqrt(2), generator))


def _uniform(x_type: Any, size: Any, generator: Any = None) -> Tensor:
    """Uniform numbers; of complex ones both parts are uniform."""
    if x_type is not torch.complex64:
        return uniform(size, generator=generator)
    return torch.view_as_complex(uniform((*size, 2), generator=generator))


def _filled(x: Tensor, y: Tensor) -> Tensor:
    check_written(x)
    return x.copy_(y.to(x.dtype))


def _held(x: Tensor) -> torch.Size:
    """The size of a tensor that is filled; Leftover if it has no memory."""
    if x.is_meta:
        raise Leftover("it is of the meta device")  # nothing would be drawn
    return x.shape


@handles("uniform_")
def uniform_(x: Tensor, low: float = 0, high: float = 1, *, generator: Any = None) -> Tensor:
    return _filled(x, uniform(_held(x), low, high, generator))


@handles("normal_")
def normal_(x: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    return _filled(x, _normal(x.dtype, _held(x), mean, std, generator))


@handles("uniform")
def uniform_like(x: Tensor, low: float = 0, high: float = 1, *, generator: Any = None) -> Tensor:
    return uniform(x.shape, low, high, generator)


@handles("normal_functional")
def normal_like(x: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    return normal(x.shape, mean, std, generator)


def _made(y: Tensor, dtype: torch.dtype | None) -> Tensor:
    return y.to(dtype or torch.get_default_dtype())


@handles("rand.default", "rand.generator")
def rand(size: Any, *, generator: Any = None, dtype: Any = None, **_: Any) -> Tensor:
    return _made(_uniform(dtype, size, generator), dtype)


@handles("randn.default", "randn.generator")
def randn(size: Any, *, generator: Any = None, dtype: Any = None, **_: Any) -> Tensor:
    return _made(_normal(dtype, size, 0.0, 1.0, generator), dtype)


@handles("rand_like")
def rand_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _made(_uniform(dtype or x.dtype, x.shape), dtype or x.dtype)


@handles("randn_like")
def randn_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _made(_normal(dtype or x.dtype, x.shape, 0.0, 1.0, None), dtype or x.dtype)


@handles("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal_of(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    shape = torch.broadcast_shapes(*[t.shape for t in (mean, std) if isinstance(t, Tensor)])
    return normal(shape, generator=generator) * std + mean


@handles("normal.float_float")
def normal_new(
    mean: float, std: float, size: Any, *, generator: Any = None, dtype: Any = None, **_: Any
) -> Tensor:
    return _made(normal(size, mean, std, generator), dtype)


@handles("bernoulli_.float")
def bernoulli_(x: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    job = _context.current().job
    if job is not None:
        return _filled(x, job.bernoulli(x.shape, p, generator))
    return _filled(x, uniform(x.shape, generator=generator) < p)


@handles("bernoulli_.Tensor")
def bernoulli_of_(x: Tensor, p: Tensor, *, generator: Any = None) -> Tensor:
    return _filled(x, uniform(x.shape, generator=generator) < p)


@handles("bernoulli.p")
def bernoulli_like(x: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    job = _context.current().job
    if job is not None:
        return job.bernoulli(x.shape, p, generator).to(x.dtype)
    return (uniform(x.shape, generator=generator) < p).to(x.dtype)


@handles("bernoulli.default")
def bernoulli(p: Tensor, *, generator: Any = None) -> Tensor:
    return (uniform(p.shape, generator=generator) < p).to(p.dtype)


@handles("native_dropout")
def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    job = _context.current().job
    if job is not None and (train or train is None) and p > 0:
        need(x)
        return job.dropout(x, p)
    keep = uniform(x.shape) >= p if train or train is None else here.ones(x.shape, dtype=torch.bool)
    return x * keep * (1 / (1 - p) if p < 1 else 0.0), keep


@handles("exponential_")
def exponential_(x: Tensor, rate: float = 1, *, generator: Any = None) -> Tensor:
    u = 1.0 - uniform(x.shape, generator=generator)
    return _filled(x, -elementwise("log", (), u) / rate)


def integers(size: Sequence[int], low: int, high: int, generator: Any = None) -> Tensor:
    """Whole numbers in [low, high): 62 random bits modulo high - low, with a bias below (high -
    low) / 2^62."""
    job = _context.current().job
    if job is not None:
        return job.integers(size, low, high, generator)
    parts = uniform([3, *size], 0.0, 1.0, generator) * 2.0**24  # exact
    a, b, c = parts.to(torch.int64)
    return low + ((a << 38) | (b << 14) | (c >> 10)) % (high - low)


@handles("randint.default", "randint.generator")
def randint(high: int, size: Any, *, generator: Any = None, dtype: Any = None, **_: Any) -> Tensor:
    return integers(size, 0, high, generator).to(dtype or torch.int64)


@handles("randint.low", "randint.low_generator")
def randint_low(
    low: int, high: int, size: Any, *, generator: Any = None, dtype: Any = None, **_: Any
) -> Tensor:
    return integers(size, low, high, generator).to(dtype or torch.int64)


@handles("randint_like.default")
def randint_like(x: Tensor, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return integers(x.shape, 0, high).to(dtype or x.dtype)


@handles("randint_like.low_dtype")
def randint_like_low(x: Tensor, low: int, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return integers(x.shape, low, high).to(dtype or x.dtype)


@handles("random_.from", "random_.to", "random_.default")
def random_(x: Tensor, low: int = 0, high: int | None = None, *, generator: Any = None) -> Tensor:
    """Left to torch: whole numbers from its generator, drawn one after the other, for a device
    too."""
    _check(generator)
    y = x if x.is_cpu or x.is_meta else torch.empty(x.shape, dtype=x.dtype, device="cpu")
    if high is not None:
        y.random_(low, high, generator=generator)
    elif low:
        y.random_(low, None, generator=generator)
    else:
        y.random_(generator=generator)
    return y if y is x else x.copy_(y)


@handles("randperm.default", "randperm.generator")
def randperm(n: int, *, generator: Any = None, dtype: Any = None, **_: Any) -> Tensor:
    job = _context.current().job
    if job is not None and n:
        return job.permutation(n, generator).to(dtype or torch.int64)
    number = key(generator)
    if not n:
        return here.empty(0, dtype=dtype or torch.int64)
    step = here.zeros(1, dtype=torch.int32)
    return run("permutation", (number, 0), (step,), (n,), torch.int32).to(dtype or torch.int64)


@handles("multinomial")
def multinomial(
    p: Tensor, count: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Draws by argmax(p / e) with exponentially distributed e: once for each number with
    replacement; otherwise the `count` largest are the numbers."""
    shape = [count, *p.shape] if replacement else list(p.shape)
    e = -elementwise("log", (), 1.0 - uniform(shape, generator=generator))
    ratio = torch.where(p > 0, p / e, -1.0)
    if replacement:
        return ratio.argmax(-1).movedim(0, -1).contiguous()
    return (
        torch.sort(ratio, dim=-1, descending=True, stable=True)[1].narrow(-1, 0, count).contiguous()
    )


@handles("rrelu_with_noise")
def rrelu(
    x: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """x, times a random slope where x is not positive (in evaluation the mean slope). In training
    `noise` receives the factors."""
    need(x)
    slopes = uniform(x.shape, lower, upper, generator) if training else (lower + upper) / 2
    factors = torch.where(x > 0, 1.0, slopes).float()
    if training:
        noise.copy_(factors)
    return x * factors


@handles("rrelu_with_noise_")
def rrelu_(x: Tensor, noise: Tensor, *more: Any, **named: Any) -> Tensor:
    return x.copy_(rrelu(x, noise, *more, **named))


@handles("rrelu_with_noise_functional")
def rrelu_functional(x: Tensor, noise: Tensor, *more: Any, **named: Any) -> tuple[Tensor, Tensor]:
    noise = noise.clone()
    return rrelu(x, noise, *more, **named), noise


@handles("rrelu_with_noise_backward")
def rrelu_backward(
    dy: Tensor,
    x: Tensor,
    noise: Tensor,
    lower: float,
    upper: float,
    training: bool,
    is_result: bool,
) -> Tensor:
    need(dy, x)
    return dy * (noise if training else torch.where(x > 0, 1.0, (lower + upper) / 2).float())
