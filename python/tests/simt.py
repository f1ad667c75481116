"""A device "simt" for PyTorch. The block computes its tensors by the simulator of CUDA's threads
(REPOPS_CUDA_LIBRARY). Its memory is the host's. Where PyTorch's own kernels are called, they run on
the same bytes as CPU tensors and are counted in `theirs`; operations that CUDA would wait for are
counted in `waits`. NaNs that CUDA's kernels would convert or compute become CUDA's.

`_efficientzerotensor` gives ordinary zeros here, as Python cannot make others. CUDA has some
without memory, as the CPU has, to which x + 0 is x, even of -0.
"""

from __future__ import annotations

import collections
import ctypes
import functools

import numpy as np
import torch
from torch.utils import backend_registration

from repops.torch import _devices
from repops.torch._integers import tensors

aten = torch.ops.aten
CPU = torch._C.DispatchKey.CPU
ALIGNMENT = 64
theirs: collections.Counter[str] = collections.Counter()
waits: collections.Counter[str] = collections.Counter()
_storage_at = torch._C._construct_storage_from_data_pointer
_cpu_empty = torch.empty
_held: dict[int, np.ndarray] = {}


_CHANNELS_LAST = (torch.channels_last, torch.channels_last_3d)


def _contiguous(size, memory_format=None):
    order = list(range(len(size)))
    if memory_format in _CHANNELS_LAST:
        order = [0, *order[2:], 1]
    strides, count = [0] * len(size), 1
    for d in reversed(order):
        strides[d] = count
        count *= max(1, size[d])
    return strides


def _placed(t, storage, offset, size, stride):
    return aten.set_.source_Storage_storage_offset._op_dk(
        CPU, t, storage, offset, list(size), list(stride)
    )


def _new(size, stride, dtype):
    """Allocates memory full of NaNs, so that reading it before writing shows."""
    width = _cpu_empty((), dtype=dtype).element_size()
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    memory = np.full(count * width + ALIGNMENT, 0xFF, "u1")
    at = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
    _held[at] = memory
    t = torch._C._acc.create_empty_tensor((0,), dtype)
    return _placed(t, _storage_at(at, torch.device("simt", 0), count * width), 0, size, stride)


def as_cpu(t):
    """Returns a CPU tensor in the same memory."""
    own = t.untyped_storage()
    empty = _cpu_empty(0, dtype=t.dtype, device="cpu")
    if not own.nbytes():
        return empty.new_empty_strided(list(t.shape), list(t.stride()))
    storage = _storage_at(own.data_ptr(), torch.device("cpu"), own.nbytes())
    y = _placed(empty, storage, t.storage_offset(), t.shape, t.stride())
    y = torch._neg_view(y) if t.is_neg() else y
    return y.conj() if t.is_conj() else y


# Integers of the sizes of types whose NaNs CUDA converts.
_BITS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
# CUDA's kernels compute these in registers, halves as float32.
_COMPUTED = set("add sub mul div abs neg sqrt floor ceil trunc round frac".split())


def _are_cudas(t):
    """Overwrites NaNs with those that CUDA converts and computes, 0x7fffffff and its like."""
    t = torch.view_as_real(t) if t.is_complex() else t
    if t.dtype in _BITS:
        kind = _BITS[t.dtype]
        t.view(kind).masked_fill_(t != t, torch.iinfo(kind).max)


def _converts(name, kind, given):
    """Would CUDA's kernel compute a result of this type, or convert one of the tensors to it?"""
    inexact = {t.dtype.to_real() for t in given if t.is_floating_point() or t.is_complex()}
    return name.removesuffix("_") in _COMPUTED or bool(inexact - {kind.to_real()})


def _to_device(t):
    y = _new(t.shape, t.stride() if t.numel() else _contiguous(t.shape), t.dtype)
    as_cpu(y).copy_(t)
    return y


def _mapped(x, f):
    if isinstance(x, torch.Tensor):
        return f(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_mapped(v, f) for v in x)
    return torch.device("cpu") if isinstance(x, torch.device) else x


# These read a value back from the device.
_WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "item")


def _histogram(x, *more):
    """Counts integers, which CUDA's kernel does and the CPU's does not."""
    return aten.histc.default(x.double(), *more).to(x.dtype)


def _root(x, out=None):
    """CUDA's root is rounded as IEEE 754 says; PyTorch's for CPUs is not."""
    with np.errstate(invalid="ignore"):
        y = torch.from_numpy(np.sqrt(x.numpy(), out=np.empty(x.shape)))
    return y if out is None else out.resize_(y.shape).copy_(y)


def _in_place_of(number, beside):
    """Returns a tensor for a number that PyTorch passes where its kernels take only tensors. It has
    the type that the number would take beside these tensors."""
    kinds = [t.dtype for t in beside if isinstance(t, torch.Tensor)]
    if isinstance(number, float):
        kinds = [k for k in kinds if k.is_floating_point] or [torch.get_default_dtype()]
        return torch.tensor(number, dtype=functools.reduce(torch.promote_types, kinds))
    kinds = [k for k in kinds if not k.is_floating_point and k is not torch.bool]
    if isinstance(number, bool) or not kinds:
        return torch.tensor(number)
    return torch.tensor(number, dtype=functools.reduce(torch.promote_types, kinds))


def fallback(op, *args, **kwargs):
    name, arguments = op._schema.name.removeprefix("aten::"), op._schema.arguments
    theirs[name] += 1
    if name in _WAITS:
        waits[name] += 1
    back = {}

    def down(t, own=None):
        if t.device.type != "simt":
            return t
        own = as_cpu(t) if own is None else own
        back[id(own)] = (own, t)
        return own

    def down_out(t):
        """Gives a result memory of its own, because a kernel may resize it for a while."""
        return down(t, _cpu_empty(0, dtype=t.dtype, device="cpu"))

    kinds = [str(a.type) for a in arguments]
    args = tuple(
        _in_place_of(a, args) if k == "Tensor" and isinstance(a, (bool, int, float)) else a
        for k, a in zip(kinds, args)
    )
    if name == "histc" and not args[0].is_floating_point():
        op = _histogram
    if name == "sqrt" and args[0].dtype is torch.float64:
        op = _root
    ways = {a.name: down_out if a.is_out else down for a in arguments}
    given = list(tensors([args, list(kwargs.values())]))
    out = op(*_mapped(args, down), **{k: _mapped(v, ways[k]) for k, v in kwargs.items()})
    for made in tensors([out]):
        if _converts(name, made.dtype, given):
            _are_cudas(made)
    for host, t in back.values():
        if host.shape != t.shape:  # it was resized
            _placed(t, _to_device(host).untyped_storage(), 0, host.shape, host.stride())
        elif host.untyped_storage().data_ptr() != t.untyped_storage().data_ptr():
            as_cpu(t).copy_(host)
    to = kwargs.get("device")
    if to is not None and torch.device(to).type == "cpu":
        return out
    return _mapped(out, lambda t: back[id(t)][1] if id(t) in back else _to_device(t))


def _convolution(*args):
    return fallback(aten.convolution.default, *args)


def _convolution_backward(dy, x, w, *more):
    return fallback(aten.convolution_backward.default, dy, x, w, [w.shape[0]], *more)


def _copy(source, to, non_blocking=False):
    theirs["copy_"] += 1
    if source.numel() and "cpu" in (source.device.type, to.device.type):
        waits["copy between memories"] += 1
    a, b = (as_cpu(t) if t.device.type == "simt" else t for t in (source, to))
    b.copy_(a)
    if a.dtype is not b.dtype or a.is_neg() or a.is_conj():
        _are_cudas(b)
    return to


def _of_cuda():
    """Gives the operators for which CUDA has a kernel, and which PyTorch would decompose for a
    device without one."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::") and has(name, "CUDA"):
            if has(name, "CompositeImplicitAutograd") or has(name, "CompositeExplicitAutograd"):
                packet, _, overload = name.removeprefix("aten::").partition(".")
                yield (
                    name.removeprefix("aten::"),
                    getattr(getattr(aten, packet), overload or "default"),
                )


_VIEWS = """set_.source_Storage set_.source_Storage_storage_offset as_strided view _reshape_alias
unfold"""
_libraries = []


class _Module(backend_registration._DummyBackendModule):
    """This is torch.simt. Activation checkpointing asks it for types, and fork_rng for the state of
    its generator: the device draws from the CPU's."""

    def get_amp_supported_dtype(self):
        return [torch.float16, torch.bfloat16]

    def get_rng_state(self, device=None):
        return torch.get_rng_state()

    def set_rng_state(self, state, device=None):
        torch.set_rng_state(state)


# ---- exceptions that leave PyTorch's own formulas in a backward pass ----

_pending = [ctypes.py_object() for _ in range(3)]  # type, value, traceback
_pointers = [ctypes.byref(p) for p in _pending]
_fetch = ctypes.pythonapi.PyErr_Fetch
_fetch.restype = None
_taken: list[BaseException] = []


class _Guard(torch._C._acc.DeviceGuard):
    """Takes such an exception away, for the engine to raise it: while it is pending, the engine
    sets the device's stream back, and a Python function that returns then ends the process. Devices
    of CUDA have a guard in C++."""

    def type_(self):
        _fetch(*_pointers)  # any other call before it would fail
        kind, value, _ = _pending
        if kind:
            own = isinstance(value.value, BaseException)
            _taken.append(value.value if own else kind.value(value.value))
        return torch._C._autograd.DeviceType.PrivateUse1


class _Engine(torch._C._ImperativeEngine):
    def run_backward(self, *args, **kwargs):
        _taken.clear()
        try:
            return super().run_backward(*args, **kwargs)
        except SystemError:  # it misses its exception
            if not _taken:
                raise
            raise _taken[0] from None


# The block takes frames of such files for PyTorch's own, not for the user's.
_Engine.run_backward.__code__ = _Engine.run_backward.__code__.replace(co_filename="<simt>")


def open_device():
    """Returns the device, which is opened once in a process."""
    if _libraries:
        return torch.device("simt", 0)
    backend_registration._setup_privateuseone_for_python_backend(
        "simt", _Module(), device_guard=_Guard()
    )
    torch.autograd.Variable._execution_engine = _Engine()
    rest, own = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    _libraries.extend((rest, own))
    rest.fallback(fallback, "PrivateUse1")
    rest.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name, op in _of_cuda():
        own.impl(name, lambda *a, op=op, **k: fallback(op, *a, **k), "PrivateUse1")
    for name in _VIEWS.split():
        packet, _, overload = name.partition(".")
        op = getattr(getattr(aten, packet), overload or "default")
        own.impl(name, lambda *a, op=op, **k: op._op_dk(CPU, *a, **k), "PrivateUse1")
    for name, strided in (("empty.memory_format", False), ("empty_strided", True)):

        def make(size, stride=None, *, dtype=None, strided=strided, memory_format=None, **_):
            stride = stride if strided else _contiguous(size, memory_format)
            return _new(size, stride, dtype or torch.get_default_dtype())

        own.impl(name, make, "PrivateUse1")
    own.impl("convolution_overrideable", _convolution, "PrivateUse1")
    own.impl("convolution_backward_overrideable", _convolution_backward, "PrivateUse1")
    own.impl("_copy_from", _copy, "PrivateUse1")
    own.impl("_copy_from_and_resize", _copy, "PrivateUse1")
    _devices.KINDS["simt"] = _devices.Kind(
        lambda index: _devices.DEFAULT_STREAM, lambda: 0, lambda: False
    )
    return torch.device("simt", 0)
