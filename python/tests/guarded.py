"""Random calls of the block's routes on guarded memory.

usage: python guarded.py [CALLS [SEED]]

Each input begins or ends at an unmapped page, and so do tensors that the package itself makes, so
that an access out of bounds ends the process. Operators and arguments are those of PyTorch's own
samples and of their gradients; sizes, indices and numbers are changed at random. Whether the block
returns a result or an error does not matter. Prints each call that ended its process, and fails.
"""

import collections
import ctypes
import mmap
import os
import random
import sys
import time

import opinfo
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from repops.torch import _checks, _routes, reproducible
from repops.torch._call import Leftover
from repops.torch._registry import HANDLERS

PAGE, ROOM, ARENAS, PER_CHILD = mmap.PAGESIZE, 1 << 20, 64, 2000
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """Memory between two unmapped pages, which is handed out in turn."""

    def __init__(self):
        self.maps, self.next, self.random = [], 0, random.Random(0)
        for _ in range(ARENAS):
            memory = mmap.mmap(-1, ROOM + 2 * PAGE)
            start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            for page in (start, start + PAGE + ROOM):
                assert libc.mprotect(page, PAGE, 0) == 0
            self.maps.append((memory, start + PAGE))

    def tensor(self, shape, dtype):
        """A tensor with undefined content in guarded memory."""
        count = torch.Size(shape).numel()
        size = count * dtype.itemsize
        if not count or size > ROOM:
            return EMPTY(shape, dtype=dtype)
        self.next = (self.next + 1) % ARENAS
        at = self.maps[self.next][1] + (ROOM - size if self.random.random() < 0.7 else 0)
        memory = (ctypes.c_char * size).from_address(at)
        return torch.frombuffer(memory, dtype=dtype, count=count).reshape(shape)

    def copy(self, t):
        return self.tensor(t.shape, t.dtype).copy_(t)


EMPTY, LIKE = torch.empty, torch.empty_like


def guard_results(memory):
    """Makes torch.empty return guarded memory, for tensors that the package makes."""

    def empty(*size, dtype=None, **more):
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        if more:
            return EMPTY(shape, dtype=dtype, **more)
        return memory.tensor(tuple(shape), dtype or torch.get_default_dtype())

    def empty_like(x, **more):
        if more or not x.is_contiguous():
            return LIKE(x, **more)
        return memory.tensor(x.shape, x.dtype)

    torch.empty, torch.empty_like = empty, empty_like


class Calls(TorchDispatchMode):
    """Collects calls of operators that have handlers."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        base = func._schema.name.removeprefix("aten::")
        name = f"{base}.{func._overloadname}"
        if (name in HANDLERS or base in HANDLERS) and len(self.found[func]) < 6:
            kept = pytree.tree_map(
                lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, args
            )
            self.found[func].append((kept, dict(kwargs or {})))
        return func(*args, **(kwargs or {}))


def collected():
    found = collections.defaultdict(list)
    for _, op in opinfo.operators():
        if not op.supports_dtype(torch.float32, "cpu"):
            continue
        with Calls(found):
            for i, s in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=True)):
                try:
                    y = op.op(s.input, *s.args, **s.kwargs)
                    flat = [t for t in pytree.tree_leaves(y) if isinstance(t, torch.Tensor)]
                    flat = [t for t in flat if t.requires_grad]
                    if flat:
                        torch.autograd.backward(flat, [torch.ones_like(t) for t in flat])
                except Exception:  # noqa: BLE001
                    pass
                if i == 5:
                    break
    return sorted(found.items(), key=lambda item: str(item[0]))


def _shape(shape, draw):
    shape = list(shape)
    for _ in range(draw.choice((1, 1, 2))):
        how = draw.randrange(4)
        if how == 0 and shape:
            del shape[draw.randrange(len(shape))]
        elif how == 1:
            shape.insert(draw.randint(0, len(shape)), draw.randint(0, 3))
        elif shape:
            shape[draw.randrange(len(shape))] = draw.choice((0, 1, 2, 3, 5, 8, 17, 33))
    return shape


def _filled(shape, dtype, draw):
    count = torch.Size(shape).numel()
    if dtype.is_floating_point:
        values = torch.randn(count) * draw.choice((0.1, 1.0, 100.0))
    else:
        most = draw.choice((2, 4, 40, 2**31 + 5)) if dtype is torch.int64 else 40
        values = torch.randint(draw.choice((0, 0, -3)), most, (count,))
    return values.to(dtype).reshape(shape)


def _other(value, draw):
    """The value, or a randomly changed one."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or draw.random() < 0.6:
            return value
        shape = _shape(value.shape, draw) if draw.random() < 0.7 else value.shape
        return _filled(shape, value.dtype, draw)
    if isinstance(value, bool):
        return value != (draw.random() < 0.2)
    if isinstance(value, int):
        return value if draw.random() < 0.75 else draw.choice((-9, -2, -1, 0, 1, 2, 3, 7, 33))
    if isinstance(value, float):
        return value if draw.random() < 0.8 else draw.choice((-1.0, 0.0, 0.5, 2.0, float("nan")))
    if isinstance(value, (list, tuple)):
        return type(value)(_other(v, draw) for v in value)
    return value


def _guarded(value, memory):
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        return memory.copy(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_guarded(v, memory) for v in value)
    return value


def _never(func, args, kwargs):
    """Replaces PyTorch's own kernels, some of which read out of bounds."""
    raise Leftover("PyTorch is not asked")


def child(calls, count, seed, last, memory, out):
    """Makes calls, and writes to `last` which one is next, for the parent to read if this process
    ends."""
    draw, counts = random.Random(seed), collections.Counter()
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    _checks._computed = _never
    guard_results(memory)
    with reproducible(threads=1):
        for _ in range(count):
            func, known = calls[draw.randrange(len(calls))]
            args, kwargs = draw.choice(known)
            args = tuple(_other(a, draw) for a in args)
            last.seek(0)
            text = f"{func} {opinfo.shown((args, kwargs, {}))}".encode()[:1000]
            last.write(text.ljust(1000))
            try:
                func(*_guarded(args, memory), **kwargs)
                counts["computed"] += 1
            except Exception as error:  # noqa: BLE001
                counts[type(error).__name__] += 1
    out.write(repr(dict(counts)))


def main(count, seed):
    calls = [(func, known) for func, known in collected() if func in _routes.routes or known]
    memory, last = Guarded(), mmap.mmap(-1, 1000)
    counts, ended, started = collections.Counter(), [], time.monotonic()
    for first in range(0, count, PER_CHILD):
        read, write = os.pipe()
        process = os.fork()
        if not process:
            with os.fdopen(write, "w") as out:
                child(calls, min(PER_CHILD, count - first), seed + first, last, memory, out)
                out.flush()
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as given:
            text = given.read()
        os.waitpid(process, 0)
        if text:
            counts.update(eval(text))
        else:
            ended.append(last[:].decode().strip())
            print("ended:", ended[-1], flush=True)
        done, seconds = first + PER_CHILD, time.monotonic() - started
        print(f"{done} of {count} calls, {seconds:.0f} s, {len(ended)} ended", flush=True)
    print(f"{count} calls of {len(calls)} operators in {time.monotonic() - started:.0f} s:", counts)
    return 1 if ended else 0


if __name__ == "__main__":
    numbers = [int(n) for n in sys.argv[1:]]
    sys.exit(main(*(numbers + [100_000, 1][len(numbers) :])))
