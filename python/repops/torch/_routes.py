"""How each of torch's operators is computed in the block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from . import _operators
from ._bits import as_strided_scatter, conjugated
from ._call import Leftover, Wrong
from ._checks import check_once, checked, refuse, taken
from ._conversions import converted, converts, copied, moved, multiplied
from ._integers import EXACT, WHOLE, exact, tensors, whole
from ._nans import one_nan
from ._overlaps import check_written
from ._registry import (
    ARITHMETIC,
    COMPLEX,
    FLOAT32,
    HANDLERS,
    MOVEMENT,
    OF_COMPLEX,
    OF_SPARSE,
    REAL,
)

# A route computes one call. Its arguments: the block, the operator, positional and keyword
# arguments.
Route = Callable[[Any, Any, tuple, dict], Any]
routes: dict[Any, Route] = {}
# Operators that torch computes and that, without keywords, need no more checks: most of a model's.
direct: dict[Any, Callable[..., Any]] = {}


def plain(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    return func._op(*args, **kwargs)


_REAL = REAL | WHOLE
_STRIDED = torch.strided


def _is_complex(args: tuple) -> bool:
    """Is one of two operands complex or sparse, so that a formula is needed? Raises Leftover for
    operands of unknown types."""
    found = False
    for a in args[:2]:
        if isinstance(a, torch.Tensor):
            if a.dtype not in _REAL:
                if a.dtype not in COMPLEX:
                    raise Leftover(f"its input is {a.dtype}")
                found = True
            if a.layout is not _STRIDED:
                found = True
        elif isinstance(a, complex):
            found = True
    return found


def _of_complex(func: Any, args: tuple, kwargs: dict) -> Any:
    """One operation on complex64 or with a sparse tensor, by the formula in _complex.py or
    _sparse.py. func is not in-place."""
    name = func._schema.name.removeprefix("aten::")
    kinds = (torch.Tensor, bool, int, float, complex)
    given: list[Any] = [a for a in args[:2] if isinstance(a, kinds)]
    kind = torch.result_type(*given) if len(given) > 1 else given[0].dtype
    layouts = [a.layout for a in given if isinstance(a, torch.Tensor) and a.layout is not _STRIDED]
    formula = (OF_SPARSE if layouts else OF_COMPLEX).get(name)
    if layouts and formula is None:
        raise Leftover(f"one of its inputs is {layouts[0]}")
    if formula is None or not (layouts or kind is torch.complex64):
        raise Leftover(f"its input is {kind}; of complex numbers there are few operators")
    return one_nan(taken(formula, func, args, kwargs))


def _arithmetic(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    if _is_complex(args):
        return _of_complex(func, args, kwargs)
    if kwargs and kwargs.get("alpha", 1) != 1:  # torch contracts a + b alpha in its vector code
        kind = torch.result_type(*args[:2])
        if kind not in WHOLE:
            return one_nan(func(args[0], multiplied(args[1], kwargs["alpha"], kind)))
    return one_nan(func._op(*args, **kwargs))


def _real(func: Any) -> Callable[..., Any]:
    """_arithmetic without keywords, which takes less time."""
    op = func._op

    def call(*args: Any) -> Any:
        return _of_complex(func, args, {}) if _is_complex(args) else one_nan(op(*args))

    return call


def is_signed(func: Any) -> bool:
    """Are the operator's signatures checked? Not those with lists, which have a model's parameters
    and would be long: their handlers check them. Nor those of c10d: processes exchange any
    tensors."""
    kinds = ("List[Tensor]", "List[Optional[Tensor]]")
    lists = any(str(a.type) in kinds for a in func._schema.arguments)
    return not lists and func.namespace != "c10d"


# Results of these handlers are the library's own, with its NaNs already; so are those of
# _operators.py.
OWN = set(
    """
    mm bmm mv dot vdot repops::linear_rows repops::linear_grads gelu gelu_backward
    native_layer_norm native_layer_norm_backward _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward
    """.split()
)


# These move numbers, but add or multiply those of one place, or make NaNs that differ from machine
# to machine.
COMBINED = set(
    """
    nextafter scatter.reduce scatter.value_reduce scatter.reduce_out scatter.value_reduce_out
    """.split()
)

_COMBINED = FLOAT32 | {torch.float64}


def _combined(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    kind = args[0].dtype
    if kind.is_complex or (kind.is_floating_point and kind not in _COMBINED):
        raise Leftover(f"its input is {kind}")
    return one_nan(func(*args, **kwargs))


def _looked_at(check: Route) -> Route:
    return lambda mode, func, args, kwargs: one_nan(check(mode, func, args, kwargs))


def _handler(func: Any, name: str, integers: bool) -> Route:
    check = checked(name, HANDLERS[name], is_signed(func))
    if HANDLERS[name].__module__ != _operators.__name__ and name not in OWN:
        check = _looked_at(check)

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        first = args[0] if args else None
        if isinstance(first, torch.Tensor) and first.dtype is torch.float32:
            return check(mode, func, args, kwargs)  # as below, in less time
        if whole(args) and whole(kwargs.values()):
            result = func(*args, **kwargs)
            if whole([result]):
                return result
        return check(mode, func, args, kwargs)

    own = route if integers else check
    base = name.split(".")[0]

    def either(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        if any(isinstance(a, complex) or getattr(a, "is_complex", bool)() for a in args[:2]):
            return _of_complex(func, args, kwargs)
        return own(mode, func, args, kwargs)

    return either if base in OF_COMPLEX else own


def written(out: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if not torch.can_cast(result.dtype, out.dtype):
        raise Wrong(f"its result is {result.dtype}, which {out.dtype} cannot hold")
    if result.shape != out.shape:
        raise Wrong(f"its result is {list(result.shape)}, and it is written to {list(out.shape)}")
    return copied(out, result)


def _inplace(other: Any) -> Route:
    inner = resolve(other)

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        check_written(args[0], *args[1:], *kwargs.values())
        if inner is _arithmetic and kwargs.get("alpha", 1) == 1 and not _is_complex(args):
            return _arithmetic(mode, func, args, kwargs)
        result = inner(mode, other, args, kwargs)
        try:
            return written(args[0], result)
        except Exception as reason:  # noqa: BLE001
            refuse(func, args, kwargs, reason)

    return route


def fill(func: Any, args: tuple, kwargs: dict, names: list[str], results: Any) -> Any:
    """Writes results to the tensors that are given by out=, whose arguments have these names.
    Returns what torch returns: these tensors."""
    outs = [kwargs[n] for n in names]
    try:
        for out, result in zip(outs, results if isinstance(results, (list, tuple)) else [results]):
            check_written(out)
            written(out.resize_(result.shape), result)
    except Exception as reason:  # noqa: BLE001
        refuse(func, args, kwargs, reason)
    return outs[0] if len(outs) == 1 else tuple(outs)


def _into(other: Any, names: list[str], makes: bool = False) -> Route:
    """The route of an overload with out=. makes: `other` takes the type of what it makes, where
    this one has the type of `out`."""
    inner = resolve(other)
    seen: set[Any] = set()
    integers = makes and other._schema.name.removeprefix("aten::") in EXACT

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        kind = kwargs[names[0]].dtype
        if integers and kind in WHOLE:
            return exact(mode, func, args, kwargs)
        check_once(seen, func, args, kwargs)
        rest = {k: v for k, v in kwargs.items() if k not in names}
        if makes:
            rest["dtype"] = kind
        return fill(func, args, kwargs, names, inner(mode, other, args, rest))

    return route


# Arguments of lists' operators that are named in the operator of one tensor, and their places.
_KEYWORDS = {"addcmul": (3, "value"), "addcdiv": (3, "value"), "norm": (2, "dtype")}
_FOREACH = {"norm": "linalg_vector_norm", "copy": "copy"}
_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # where a number is the other operand


_SINGLE = ("add", "sub", "mul", "div")  # one operation for each element, in lists too


def _all_floats(values: Any) -> bool:
    return all(t.is_floating_point() for t in tensors(values))


def _of_one(base: str, overload: str, inplace: bool) -> tuple[Any, bool]:
    """The operator of one tensor that a list's operator stands for, or None, and whether its result
    is to be copied, since it has no variant in place."""
    name = _FOREACH.get(base, base)
    name = _BOUNDS.get(base, name) if overload.startswith("Scalar") else name
    own = getattr(torch.ops.aten, name + "_" * inplace, None)
    return (own, False) if own or not inplace else (getattr(torch.ops.aten, name, None), True)


def each(func: Any, place: Callable[[list], Any] | None = None) -> Route:
    """The route of an operator of lists: the operator on each element of the lists in turn, or
    torch's own kernel for whole lists if it rounds once for each element. place: the context in
    which an element is computed; torch computes no whole lists then."""
    name = func._schema.name.removeprefix("aten::_foreach_")
    base, inplace = name.rstrip("_"), name.endswith("_")
    packet, copies = _of_one(base, func._overloadname, inplace)
    many = [str(a.type).startswith("List[") for a in func._schema.arguments if not a.kwarg_only]
    at, keyword = _KEYWORDS.get(base, (len(many), ""))
    packed_numbers = keyword == "value" and func._overloadname.startswith("Tensor")

    def one(mode: Any, args: list, kwargs: dict) -> Any:
        if len(args) > at:
            kwargs = {**kwargs, keyword: args.pop()}
        with place(args) if place else nullcontext(), mode:
            result = packet(*args, **kwargs)
            return args[0].copy_(result) if copies else result

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        if packet is None:
            raise Leftover("it stands for no single operator")
        single = base in _SINGLE and len(args) == 2 and not kwargs and not place
        if single and _all_floats(args):
            if inplace:
                for own, *others in zip(*[a for a in args if isinstance(a, (list, tuple))]):
                    check_written(own, *others)
            results = func(*args)
            one_nan(args[0] if inplace else results)
            return results
        lists = [[*a] if m else a for a, m in zip(args, many)]
        if packed_numbers:
            lists[at] = args[at].tolist() if args[at].dim() == 1 else []
        lengths = [len(a) for a in lists if isinstance(a, list)]
        if len(set(lengths)) > 1:
            refuse(func, args, kwargs, ValueError(f"its lists have {lengths} elements"))
        pick = lambda values, i: values[i] if isinstance(values, (list, tuple)) else values  # noqa: E731
        keys = lambda i: {k: pick(v, i) for k, v in kwargs.items()}  # noqa: E731
        results = [one(mode, [pick(a, i) for a in lists], keys(i)) for i in range(lengths[0])]
        return results if func._schema.returns else None

    return route


def composite(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    with mode:
        return func.decompose(*args, **kwargs)


def foreign(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Operators of other packages are allowed only if no tensor, given or returned, has memory."""
    if any(not t.is_meta for t in tensors([args, list(kwargs.values())])):
        raise Leftover("it is another package's, and its bits are not known")
    result = func(*args, **kwargs)
    if any(not t.is_meta for t in tensors([result])):
        raise Leftover("it is another package's, and its bits are not known")
    return result


def _refused(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    raise Leftover("the library does not have it")


# What operators that make tensors take, and overloads of them with out= do not.
_MAKES = ("dtype", "layout", "device", "pin_memory")


def functional(func: Any, drop: str, outs: list[str], but: tuple[str, ...] = ()) -> Any:
    """The out-of-place overload that computes the same, apart from the arguments of `but`."""
    packet = getattr(
        torch.ops.aten, func._schema.name.removeprefix("aten::").removesuffix(drop), None
    )
    wanted = [(a.name, str(a.type)) for a in func._schema.arguments if a.name not in outs]
    for overload in packet.overloads() if packet else []:
        other = getattr(packet, overload)
        given = [(a.name, str(a.type)) for a in other._schema.arguments if a.name not in but]
        if given == wanted and other is not func and not other._schema.is_mutable:
            return other
    return None


def is_view(func: Any) -> bool:
    """Does it only return views of its inputs?"""
    returns = func._schema.returns
    return bool(returns) and all(
        r.alias_info is not None and not r.alias_info.is_write for r in returns
    )


NOT_VIEWS = ("to", "to_dense", "_fw_primal")


def _derived(func: Any, base: str) -> Route | None:
    if base.startswith("_foreach_"):
        return each(func)
    outs = [a.name for a in func._schema.arguments if a.is_out]
    drop = "" if outs else "_"
    if outs or (func._schema.is_mutable and base.endswith("_")):
        found = functional(func, drop, outs)
        if found is not None:
            return _into(found, outs) if outs else _inplace(found)
        found = functional(func, drop, outs, _MAKES) if outs else None
        if found is not None:
            return _into(found, outs, True)
    return None


def moving(func: Any) -> Route:
    """The route of an operator that moves numbers."""
    call = moved(func)
    return plain if call is func._op else lambda mode, func, args, kwargs: call(*args, **kwargs)


def _by_layout(base: str, dense: Route) -> Route:
    formula = OF_SPARSE[base]

    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        given = [a for a in args[:3] if isinstance(a, torch.Tensor)]
        if all(a.layout is _STRIDED for a in given) or whole(given):
            return dense(mode, func, args, kwargs)
        return taken(formula, func, args, kwargs)

    return route


def _find(func: Any) -> Route:
    base = func._schema.name.removeprefix("aten::")
    found = _find_dense(func)
    outs = any(a.is_out for a in func._schema.arguments)
    if base not in OF_SPARSE or outs or found is _arithmetic:
        return found
    route = _by_layout(base, found)
    if func in direct:
        direct[func] = _dense_first(func, route)
    return route


def _dense_first(func: Any, route: Route) -> Callable[..., Any]:
    op = func._op
    return lambda x, *more: (
        op(x, *more) if x.layout is _STRIDED else route(None, func, (x, *more), {})
    )


def _find_dense(func: Any) -> Route:
    if func.namespace != "aten":
        if func._schema.name in HANDLERS:
            return _handler(func, func._schema.name, False)
        return plain if func.namespace in ("profiler", "prim", "repops") else foreign
    base = func._schema.name.removeprefix("aten::")
    name = f"{base}.{func._overloadname}"
    if base in ("_to_copy", "copy_", "copy"):
        return converted
    outs = any(a.is_out for a in func._schema.arguments)
    for key in (name, base):
        if key in HANDLERS and not (outs and key == base):
            return _handler(func, key, bool(EXACT & {name, base}))
        if key in ("neg", "frexp"):  # moves bits, except those of NaNs
            direct[func] = lambda *args: one_nan(func._op(*args))
            return _looked_at(plain)
        if key in COMBINED:
            return _combined
        if key == "_conj_physical" and not outs:
            return lambda mode, func, args, kwargs: conjugated(*args)
        if key == "as_strided_scatter" and not outs:
            return lambda mode, func, args, kwargs: as_strided_scatter(*args, **kwargs)
        if key in MOVEMENT and not (outs and converts(func)):
            if not func._schema.is_mutable:
                direct[func] = moved(func)
            return moving(func)
        if key in ARITHMETIC:
            direct[func] = _real(func)
            return _arithmetic
    if torch.Tag.inplace_view in func.tags or (is_view(func) and base not in NOT_VIEWS):
        direct[func] = func._op
        return plain
    if torch.Tag.nondeterministic_seeded in func.tags:
        return _derived(func, base) or (composite if func._can_decompose() else _refused)
    derived = _derived(func, base)
    if derived:
        return derived
    if func._can_decompose():
        return composite
    return exact if EXACT & {name, base} else _refused


def resolve(func: Any) -> Route:
    """The operator's route, which is looked up once."""
    route = routes.get(func)
    if route is None:
        route = routes[func] = _find(func)
    return route
