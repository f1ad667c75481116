"""Operators on integers that torch computes with the same result everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .. import _context
from ._call import Leftover, run, unwatched

# torch computes these operators in integers, and neither the order of terms nor that of equal
# elements matters. All other integer operators are the library's or refused: some compute in
# floating point inside, some give indices of equal elements in any order.
EXACT = set(
    """
    sum nansum cumsum cumprod prod maximum minimum amax amin max.default min.default clamp clamp_min
    clamp_max hardtanh relu relu_ threshold mm.default bmm.default addmm.default baddbmm.default mv
    addmv addbmm addr dot vdot convolution _convolution pow div.Tensor_mode div.Scalar_mode
    floor_divide remainder fmod rsub addcmul arange scatter_add scatter_reduce index_add
    index_reduce max_pool2d_with_indices max_pool3d_with_indices

    __ilshift__ __irshift__ __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift gcd lcm
    fmax fmin aminmax _aminmax cummax cummin _cummax_helper _cummin_helper count_nonzero bincount
    trace linalg_cross median.default nanmedian.default hash_tensor allclose
    _is_all_true _is_any_true

    _stack _chunk_cat block_diag rot90 take nonzero_static resize resize_as set
    _unsafe_masked_index unfold_backward masked_scatter_backward _unique unique_dim
    unique_dim_consecutive is_set_to _has_same_storage_numel _lazy_clone
    alias_copy as_strided_copy as_strided_scatter detach_copy diagonal_copy expand_copy permute_copy
    select_copy slice_copy split_copy squeeze_copy t_copy transpose_copy unsqueeze_copy view_copy
    _reshape_copy _reshape_alias_copy _neg_view_copy _new_zeros_with_same_feature_meta
    _to_dense _coalesce sparse_mask
    _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _print
    """.split()
)
_WIDTHS = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64"
WHOLE = {getattr(torch, name) for name in _WIDTHS.split()}


def tensors(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among arguments and in lists of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


def whole(values: Any) -> bool:
    """Are all tensors integers?"""
    return all(t.dtype in WHOLE for t in tensors(values))


def exact(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    given = [args, list(kwargs.values())]
    if not any(True for _ in tensors(given)) or not whole(given):
        raise Leftover("the library does not have it")
    result = func(*args, **kwargs)
    if not whole([result]):
        raise Leftover("the library does not have it")
    return result


def within(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """x with numbers that the type cannot hold replaced: NaN by 0, others by the nearest integer
    that fits. Processors convert such numbers differently."""
    if _context.current().device is None:
        with unwatched():  # the value only decides which way is shorter
            if not bool(_beyond(x, dtype)[2].any()):
                return x
    below, above, outside = _beyond(x, dtype)
    limits, wide = torch.iinfo(dtype), x if x.dtype is torch.float64 else x.float()
    y = torch.where(outside, 0.0, wide).to(dtype)
    return torch.where(below, limits.min, torch.where(above, limits.max, y))


def _beyond(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Where x is below the type's range, where above it, and where it is outside or NaN."""
    limits, wide = torch.iinfo(dtype), x if x.dtype is torch.float64 else x.float()
    below = wide < limits.min if limits.min else wide <= -1
    above = wide >= float(limits.max + 1)
    return below, above, below | above | (wide != wide)


def _whole_of_step(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`within` for float32 in the step of a job, whose integers of all types have at most 32
    bits."""
    limits = torch.iinfo(dtype)
    y = run("cast", (2,), (x.reshape(-1),)).reshape(x.shape)
    if limits.bits >= 32 and limits.min:
        return y
    return y.clamp(limits.min, min(limits.max, 2**31 - 1))


def whole_of(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """x with numbers that the type cannot hold replaced by the nearest integers."""
    if dtype is torch.bool or not x.numel():
        return x
    of_step = x.dtype is torch.float32 and _context.current().job is not None
    return _whole_of_step(x, dtype) if of_step else within(x, dtype)
