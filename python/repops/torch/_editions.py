"""How each of torch's operators is computed on a device.

Torch's own CUDA kernels are used only to move bytes, compare, select, compute integers, round to
whole numbers, convert numbers, and for sums, differences, products, quotients and roots of float64
tensors, which IEEE 754 rounds. Other results differ from those of the CPU kernels (x / 3 is x times
a reciprocal), and so do NaNs, which are overwritten.
Handlers run inside the block, so that the operators that they call are also looked up here. An
operator in no table is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _context
from .._library import MAX_DIMS
from . import _here as here
from . import _operators, _routes, functional
from ._call import Leftover, elementwise, run
from ._checks import check_once, checked, refuse, taken
from ._conversions import WIDENED, converted, halves_looked_at, multiplied
from ._devices import device_of
from ._integers import EXACT, WHOLE, tensors, whole
from ._nans import one_nan
from ._overlaps import check_written
from ._registry import ARITHMETIC, HANDLERS, MOVEMENT, ON_DEVICES, REAL
from ._routes import (
    NOT_VIEWS,
    OWN,
    Route,
    composite,
    each,
    fill,
    foreign,
    is_signed,
    is_view,
    moving,
    plain,
    written,
)

Tensor = torch.Tensor
routes: dict[Any, Route] = {}
reasons: dict[Route, str] = {}  # why routes refuse their operators

# Operators of MOVEMENT in which torch's CUDA kernels have not been compared.
_SPARSE = "sparse tensors are the CPU's alone"
_NONE = "it has no edition for devices"
_UNSEEN = "nobody has compared its kernel for devices with the CPU's"
_REASONS = {
    _SPARSE: """
    _to_sparse _to_sparse_csr _to_sparse_csc is_coalesced _coalesced_ _nnz _dimI _dimV sparse_dim
    dense_dim _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors
    _sparse_coo_tensor_unsafe _sparse_compressed_tensor_unsafe sparse_compressed_tensor
    _validate_sparse_coo_tensor_args _validate_sparse_compressed_tensor_args
    _validate_sparse_csr_tensor_args
    """,
    _UNSEEN: "_nested_tensor_from_mask_left_aligned _cummax_helper _cummin_helper",
}
REFUSED = {name: why for why, names in _REASONS.items() for name in names.split()}
MOVED = MOVEMENT - set(REFUSED) - {"neg"}
# Handlers of these call torch's own kernel, which only compares and selects.
SELECTED = set("amax amin max min index_put scatter_reduce".split())
# These have no tensor as an input: the CPU makes their result, which is copied.
MADE = set("linspace logspace hann_window hamming_window blackman_window".split())
# The CPU computes these from copies, unless they are of integers: its kernels decide which of equal
# floats comes first, and in which order sums and products of one place are rounded.
ORDERED = set(
    """
    _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive scatter.reduce
    scatter.value_reduce
    """.split()
)


# One operand of these may be a number in the CPU's memory, which their handlers do not take.
BESIDE = set(
    "atan2 pow remainder fmod floor_divide div xlogy special_xlog1py special_zeta ldexp".split()
)
# torch's CPU kernels have no histogram of integers, so this holds on devices only.
EXACT_HERE = EXACT | {"histc"}


def _leftover(why: str) -> Route:
    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        raise Leftover(f"{why} (its tensors are on {_context.current().device})")

    reasons[route] = why
    return route


# ---- one operation that IEEE 754 rounds, computed by the library ----


def _of_float32(value: Any) -> float:
    """Converts a number with one rounding. A large integer may not be exact in float64."""
    if isinstance(value, Tensor):
        return float(value if value.is_floating_point() else value.to(torch.float32))
    if isinstance(value, int) and abs(value) > 2**53:
        return float(torch.tensor(value, device="cpu").to(torch.float32))
    return float(value)


def _number_of(value: Any, mixed: bool = False) -> Any:
    """Converts an operand to float32. As in torch, a tensor of one number may be in the CPU's
    memory. mixed: the result is known to be float32, so operands may be other floats."""
    if not isinstance(value, Tensor):
        if isinstance(value, complex):
            raise Leftover("one of its numbers is complex")
        return here.number(_of_float32(value), 0, torch.float32)
    if value.is_cpu and not value.dim():
        return here.number(_of_float32(value), 0, torch.float32)
    if value.dtype is torch.float32:
        return value
    if value.dtype not in (WHOLE | REAL if mixed else WHOLE):
        raise Leftover(f"its input is {value.dtype}; float32 is what a device computes in")
    return value.to(torch.float32)


def _repeats(a: Tensor, b: Tensor) -> bool:
    """Returns whether the library repeats b along a as torch does, without a copy."""
    last = b.shape == a.shape[a.dim() - b.dim() :] if b.dim() <= a.dim() else False
    fits = a.is_contiguous() and b.is_contiguous() and 0 < a.dim() <= MAX_DIMS
    return fits and (last or b.numel() == 1) and b.dim() <= a.dim() and bool(a.numel())


def _both(name: str, a: Any, b: Any) -> Tensor:
    a, b = _number_of(a, True), _number_of(b, True)
    if a.shape != b.shape and _repeats(a, b):
        return run(name, (), (a, b.reshape(1) if b.numel() == 1 else b))
    return elementwise(name, (), a, b)


def _wide(value: Any) -> Tensor:
    """Converts an operand to float64 in the device's memory: as a divisor, torch would replace a
    number in the host's memory by its reciprocal."""
    if not isinstance(value, Tensor) or (value.is_cpu and not value.dim()):
        if isinstance(value, complex):
            raise Leftover("one of its numbers is complex")
        return here.number(float(value), 0, torch.float64)
    return value.to(torch.float64)


def _double(name: str, a: Any, b: Any) -> Tensor:
    """Computes one operation in float64, for which the library has no operator."""
    y: Tensor = one_nan(getattr(torch.ops.aten, name).Tensor(_wide(a), _wide(b)))
    return y


def _two(name: str) -> Callable[..., Any]:
    def compute(a: Any, b: Any, *, alpha: float = 1) -> Tensor:
        kind = torch.result_type(a, b)
        if alpha != 1 and not isinstance(b, Tensor):
            b, alpha = multiplied(b, alpha, kind), 1
        if kind is torch.float64:
            return _double(name, a, b if alpha == 1 else _double("mul", b, alpha))
        if kind is not torch.float32 and not (name == "div" and kind in WHOLE):
            raise Leftover(f"its result is {kind}; float32 is what a device computes in")
        return _both(name, a, b if alpha == 1 else _both("mul", b, alpha))

    return compute


def _one(name: str, *attributes: int) -> Callable[..., Any]:
    return lambda x: elementwise(name, attributes, _number_of(x))


def _signed(compute: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Changes signs. Torch's kernels do this exactly, except for NaNs."""
    others = REAL - {torch.float32}
    return lambda x: one_nan(theirs(x)) if x.dtype in others else compute(x)


def _rounded(name: str, kind: int) -> Callable[..., Any]:
    """Rounds to whole numbers. Torch's kernels do this exactly, except for NaNs."""
    theirs = getattr(torch, name)
    return lambda x: (
        elementwise("round", (kind,), x) if x.dtype is torch.float32 else one_nan(theirs(x))
    )


def _one_over(x: Tensor) -> Tensor:
    if x.dtype is torch.float64:
        return _double("div", 1.0, x)
    one = here.number(1.0, 0, torch.float32).expand(x.shape)
    return _both("div", one, _number_of(x))


_times = _two("mul")


def _prelu(x: Tensor, weight: Tensor) -> Tensor:
    return torch.where(x > 0, x, _times(x, weight))


def _prelu_backward(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    dx = torch.where(x > 0, dy, _times(dy, weight))
    return one_nan(dx), torch.where(x > 0, 0.0, _times(x, dy))


_MINUS_ONE = _operators.bits(-1.0)
_ROUNDED = ("floor", "ceil", "round", "trunc")  # in the order of ro_round_kind
_COMPUTED: dict[str, Callable[..., Any]] = {
    **{name: _two(name) for name in ("add", "sub", "mul", "div")},
    "reciprocal": _one_over,
    "abs": _signed(_one("abs"), torch.abs),
    **{name: _rounded(name, kind) for kind, name in enumerate(_ROUNDED)},
    "neg": _signed(_one("scale", _MINUS_ONE), torch.neg),
    "_prelu_kernel": _prelu,
    "_prelu_kernel_backward": _prelu_backward,
}


# Others never see zeros without memory (_efficientzerotensor): torch computes those itself.
_OF_ZEROS = (torch.ops.aten.add.Scalar, torch.ops.aten.mul.Scalar)


def _arithmetic(base: str) -> Route:
    compute = _COMPUTED.get(base)

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        if func in _OF_ZEROS and args[0]._is_zerotensor():
            return func._op(*args, **kwargs)
        integers = whole(args) and all(isinstance(a, (Tensor, int)) for a in args)
        selects = base == "sgn" and not any(t.is_complex() for t in tensors(args))
        if selects or (integers and base not in ("div", "reciprocal")):
            return func._op(*args, **kwargs)
        if compute is None:
            raise Leftover(_NONE)
        return taken(compute, func, args, kwargs)

    return route


# ---- handlers ----


def _composed(func: Any, name: str, base: str) -> Route:
    """Runs a handler inside the block. If the handler calls its own operator, torch computes it
    where that is allowed."""
    check = checked(name, HANDLERS[name], is_signed(func))

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        inside = _context.current().inside
        if func in inside:
            if base not in SELECTED:
                raise Leftover("its handler asks torch's own kernel, which is the CPU's")
            return func(*args, **kwargs)
        inside.add(func)
        try:
            with mode:
                result = check(mode, func, args, kwargs)
            return one_nan(result)
        finally:
            inside.discard(func)

    return route


def _of_library(func: Any, name: str) -> Route:
    """A handler that calls only the library and operators that move its inputs."""
    return checked(name, HANDLERS[name], is_signed(func))


def _of_device(func: Any, name: str) -> Route:
    """Calls torch's own kernels in a way that gives the results of those for CPUs. If the CPU's
    handler gives the library's NaN, so does this."""
    check = checked(name, ON_DEVICES[name], is_signed(func))
    if name.split(".")[0] in WIDENED:
        return lambda *call: halves_looked_at(check(*call))
    if name not in HANDLERS and name.split(".")[0] not in HANDLERS:
        return check
    return lambda mode, func, args, kwargs: one_nan(check(mode, func, args, kwargs))


def _beside(args: tuple) -> tuple:
    """The operands, with a number in the CPU's memory written to the device's."""
    there = next((a for a in args if isinstance(a, Tensor) and not a.is_cpu), None)
    if there is None:
        return args
    return tuple(here.beside(there, a) if isinstance(a, Tensor) else a for a in args)


def _handler(func: Any, name: str, base: str) -> Route:
    library = HANDLERS[name].__module__ == _operators.__name__ or name in OWN
    compute = _of_library(func, name) if library else _composed(func, name, base)
    integers = bool(EXACT_HERE & {name, base})

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        to = kwargs.get("device")
        if to is not None and torch.device(to).type != _context.current().device.type:
            raise Leftover(f"it goes from a device to {to}")
        if integers and any(True for _ in tensors(args)) and whole([args, list(kwargs.values())]):
            result = func(*args, **kwargs)
            if whole([result]):
                return result
        return compute(mode, func, _beside(args) if base in BESIDE else args, kwargs)

    return route


# ---- results that depend on numbers only ----


def _copied(value: Any, device: torch.device) -> Any:
    """Returns tensors, also of lists, as copies in a device's memory."""
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(v, device) for v in value)
    return value.to(device) if isinstance(value, Tensor) else value


def by_host(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """The CPU computes the result from copies, and the device gets a copy. This waits for the
    device."""
    context, cpu = _context.current(), torch.device("cpu")
    named = {k: _copied(v, cpu) for k, v in kwargs.items()}
    if any(a.name == "device" for a in func._schema.arguments):
        named["device"] = cpu
    with context.host:
        made = _routes.resolve(func)(mode, func, _copied(args, cpu), named)
    return _copied(made, context.device)


def ordered(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Integers have one possible result, if it is sorted. The CPU computes all others, also bools,
    which torch does not multiply on devices."""
    names = [a.name for a in func._schema.arguments]
    given = {**dict(zip(names, args)), **kwargs}
    kinds = {v.dtype for v in given.values() if isinstance(v, Tensor)}
    if whole(given.values()) and torch.bool not in kinds and given.get("sorted", True):
        return func(*args, **kwargs)
    return by_host(mode, func, args, kwargs)


def _arange(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Whole numbers are left to torch's kernels, which compute them in integers."""
    kind = kwargs.get("dtype")
    if not all(isinstance(a, int) for a in args):
        return by_host(mode, func, args, kwargs)
    if kind is None or kind in WHOLE:
        return func(*args, **kwargs)
    if kind is not torch.float32:
        return by_host(mode, func, args, kwargs)
    return func(*args, **{**kwargs, "dtype": torch.int64}).to(kind)


# ---- derived from another operator ----


def _inplace(other: Any) -> Route:
    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        check_written(args[0], *args[1:], *kwargs.values())
        with mode:
            result = other(*args, **kwargs)
        try:
            return written(args[0], result)
        except Exception as reason:  # noqa: BLE001
            refuse(func, args, kwargs, reason)

    return route


def _into(other: Any, names: list[str]) -> Route:
    seen: set[Any] = set()

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        check_once(seen, func, args, kwargs)
        rest = {k: v for k, v in kwargs.items() if k not in names}
        with mode:
            results = other(*args, **rest)
        return fill(func, args, kwargs, names, results)

    return route


def _place(args: list) -> Any:
    """The context for an element of a list, which may be in the CPU's memory."""
    context = _context.current()
    return context.host if device_of(args) is None else context


def _derived(func: Any, base: str) -> Route | None:
    if base.startswith("_foreach_"):
        return each(func, _place)
    outs = [a.name for a in func._schema.arguments if a.is_out]
    if outs or (func._schema.is_mutable and base.endswith("_")):
        found = _routes.functional(func, "" if outs else "_", outs)
        if found is not None:
            return _into(found, outs) if outs else _inplace(found)
    return None


def _exact(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    given = [*args, *kwargs.values()]
    if not whole(given) or device_of(given) is None:
        raise Leftover(_NONE)
    result = func(*_beside(args), **kwargs)
    if not whole([result]):
        raise Leftover(_NONE)
    return result


# ---- looking up ----


def _own(kernel: Callable[..., Any]) -> Route:
    """Runs a kernel of this package."""

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        with mode:
            result = kernel(*args, **kwargs)
        return one_nan(result)

    return route


def _of_others(func: Any) -> Route:
    if func._schema.name in functional.KERNELS:
        return _own(functional.KERNELS[func._schema.name])
    if func.namespace in ("c10d", "_c10d_functional"):
        return _leftover("processes exchange tensors of the CPU alone; NCCL adds in its own order")
    if func._schema.name in HANDLERS:
        return _composed(func, func._schema.name, "")
    return plain if func.namespace in ("profiler", "prim") else foreign


def _listed(func: Any, base: str, outs: bool) -> Route | None:
    """Finds the route by a name in a table."""
    for key in (f"{base}.{func._overloadname}", base):
        if outs and key == base:
            continue
        if key in ON_DEVICES:
            return _of_device(func, key)
        if key in REFUSED:
            return _leftover(REFUSED[key])
        if key in ORDERED:
            return ordered
        if base in MADE:
            return by_host
        if base == "arange":
            return _arange
        if base == "_efficientzerotensor":  # nothing may look for NaNs in it: it has no memory
            return plain
        if key in HANDLERS:
            return _handler(func, key, base)
        if key in MOVED and f"{base}.default" not in ON_DEVICES:
            return moving(func)
        if key in ARITHMETIC or key == "neg":
            return _arithmetic(base)
    return None


def _find(func: Any) -> Route:
    if func.namespace != "aten":
        return (
            _handler(func, func._schema.name, "") if func._schema.name in OWN else _of_others(func)
        )
    base = func._schema.name.removeprefix("aten::")
    if base in ("_to_copy", "copy_", "copy"):
        return converted
    found = _listed(func, base, any(a.is_out for a in func._schema.arguments))
    if found:
        return found
    if torch.Tag.inplace_view in func.tags or (is_view(func) and base not in NOT_VIEWS):
        return plain
    found = _derived(func, base)
    if found:
        return found
    if func._can_decompose():
        return composite
    return _exact if base in EXACT else _leftover(_NONE)


def resolve(func: Any) -> Route:
    """Returns how an operator is computed, which is looked up once."""
    route = routes.get(func)
    if route is None:
        route = routes[func] = _find(func)
    return route


def computed(mode: Any, func: Any, args: tuple, kwargs: dict, context: Any) -> Any:
    """Computes one operator, in the order of the context's stream."""
    with context:
        return (routes.get(func) or resolve(func))(mode, func, args, kwargs)
