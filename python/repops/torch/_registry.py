"""Tables: the operators that the library computes, and those that have the same bits anywhere
already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

HANDLERS: dict[str, Callable[..., Any]] = {}


def handles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the handler of these operators; a name without overload means all of
    them."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if HANDLERS.setdefault(name, function) is not function:
                raise ValueError(f"{name} has two handlers")
        return function

    return register


# Functions that compute these operators on a device, where torch's kernel may differ from the
# CPU's. They run outside the block: operators that they call are torch's own.
ON_DEVICES: dict[str, Callable[..., Any]] = {}


def on_devices(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as what computes these operators on a device."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            ON_DEVICES[name] = function
        return function

    return register


# Non-integer types that each handler takes. Handlers without an entry take float32 only; every
# other type is refused before the handler is called.
FLOAT32 = frozenset({torch.float32})
REAL = FLOAT32 | {torch.float64, torch.float16, torch.bfloat16}
COMPLEX = frozenset({torch.complex32, torch.complex64, torch.complex128})
_TAKEN = {
    # Comparisons, orders and copies do not round; random numbers are rounded to the type.
    REAL: """
    maximum minimum amax amin max.default min.default clamp clamp_min clamp_max hardtanh
    hardtanh_backward topk sort argsort max.dim min.dim argmax argmin cummax cummin
    max_unpool2d max_unpool3d random_ uniform_ uniform
    normal_functional normal.float_float bernoulli_.float bernoulli_.Tensor bernoulli.p
    bernoulli.default exponential_ randint randint_like randperm arange linspace fmax fmin aminmax
    """,
    FLOAT32 | {torch.float64, torch.float16}: "frexp",
    COMPLEX: "_conj_physical",
    REAL | {torch.complex64}: "normal_ rand randn rand_like randn_like",
    # Sequences of operations that IEEE 754 rounds.
    FLOAT32 | {torch.float64}: """
    nextafter pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar addcmul addcdiv lerp rsub.Tensor
    rsub.Scalar frac hardshrink hardshrink_backward threshold native_dropout_backward deg2rad
    rad2deg atan2 erfinv log10 sum.default sum.dim_IntList nansum mean.default mean.dim
    var.correction std.correction var_mean.correction std_mean.correction linalg_vector_norm
    _foreach_norm cumsum cumprod logcumsumexp _logcumsumexp prod.default prod.dim_int logspace
    bincount _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data
    """,
    frozenset({torch.complex64}): "_fft_c2c _fft_c2r",
    # These write or move values.
    REAL | COMPLEX: """
    index_put _index_put_impl _unsafe_index_put index_copy scatter as_strided_scatter heaviside
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d
    """,
}
TYPES = {name: types for types, names in _TAKEN.items() for name in names.split()}

# Functions that compute float64 where the library's operator computes float32 (_operators.py).
FLOAT64: dict[str, Callable[..., Any]] = {}


def of_float64(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function that computes float64 for an operator whose float32 version is the
    library's (a row of operators.def)."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FLOAT64[name], TYPES[name] = function, FLOAT32 | {torch.float64}
        return function

    return register


# Functions that compute complex64, by the operator's name without overload (_complex.py).
OF_COMPLEX: dict[str, Callable[..., Any]] = {}


def of_complex(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function that computes these operators when an operand is complex."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OF_COMPLEX[name] = function
        return function

    return register


# Functions that compute sparse float32 tensors, by the operator's name without overload
# (_sparse.py).
OF_SPARSE: dict[str, Callable[..., Any]] = {}


def of_sparse(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function that computes these operators when an input is sparse."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OF_SPARSE[name] = function
        return function

    return register


# Integer inputs of these are indices, beside inputs of other types.
INDEXED = set(
    """
    scatter_add scatter_reduce index_add index_copy embedding_dense_backward _embedding_bag
    _embedding_bag_forward_only _embedding_bag_backward _embedding_bag_per_sample_weights_backward
    nll_loss_forward nll_loss2d_forward nll_loss_backward nll_loss2d_backward multi_margin_loss
    multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward
    _ctc_loss _ctc_loss_backward max_unpool2d max_unpool3d max_pool2d_with_indices_backward
    max_pool3d_with_indices_backward
    adaptive_max_pool2d_backward adaptive_max_pool3d_backward _grouped_mm put bincount
    fractional_max_pool2d_backward fractional_max_pool3d_backward
    index_reduce _unsafe_masked_index_put_accumulate linalg_lu_solve lu_unpack
    """.split()
)

# Data movement, comparisons, selections, integer operations: these round nothing.
MOVEMENT = set(
    """
    clone contiguous channel_shuffle native_channel_shuffle
    cat stack index index_select gather embedding
    constant_pad_nd slice_backward select_backward slice_scatter select_scatter diagonal_scatter
    diagonal_backward unfold_copy roll flip repeat repeat_interleave tril triu where masked_fill
    masked_select masked_scatter scatter index_fill fill zero_ zero zeros ones full empty
    empty_strided empty_like zeros_like ones_like full_like new_empty new_zeros new_ones new_full
    new_empty_strided scalar_tensor eye lift lift_fresh lift_fresh_copy _local_scalar_dense item
    nonzero isnan isinf isfinite isposinf isneginf eq ne lt le gt ge logical_and logical_or
    logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not all any equal sign
    signbit neg copysign nextafter set_ resize_ _unsafe_view _reshape_alias
    max.dim min.dim argmax argmin searchsorted bucketize pixel_shuffle pixel_unshuffle
    _to_sparse _to_sparse_csr _to_sparse_csc is_coalesced _coalesced_ _nnz _dimI _dimV sparse_dim
    dense_dim _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors
    _sparse_coo_tensor_unsafe _sparse_compressed_tensor_unsafe sparse_compressed_tensor
    _validate_sparse_coo_tensor_args _validate_sparse_compressed_tensor_args
    _validate_sparse_csr_tensor_args
    _conj_physical block_diag rot90 _chunk_cat as_strided_scatter take count_nonzero nonzero_static
    _unsafe_masked_index cummax cummin _cummax_helper _cummin_helper
    threshold_backward _unsafe_index split_with_sizes_copy unbind_copy narrow_copy im2col
    unsafe_split unsafe_split_with_sizes
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d reflection_pad1d reflection_pad2d
    reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
    nan_to_num is_same_size _assert_async _assert_scalar _assert_tensor_metadata _fused_sdp_choice
    detach_ heaviside diag_embed movedim unique_consecutive _unique2 isin
    _pack_padded_sequence _nested_tensor_from_mask_left_aligned
    diagonal_copy select_copy slice_copy view_copy expand_copy permute_copy t_copy transpose_copy
    squeeze_copy unsqueeze_copy alias_copy detach_copy as_strided_copy _linalg_check_errors
    _has_same_storage_numel _efficientzerotensor _new_zeros_with_same_feature_meta
    meshgrid broadcast_tensors tril_indices triu_indices resolve_conj resolve_neg _is_zerotensor
    complex empty_permuted nextafter frexp unique_dim unique_dim_consecutive
    record_stream _pin_memory is_pinned
    """.split()
)

# Single operations that IEEE 754 rounds correctly, in vector code and in its scalar remainder
# alike.
ARITHMETIC = set(
    """
    add.Tensor add.Scalar sub.Tensor sub.Scalar mul.Tensor mul.Scalar
    div.Tensor div.Scalar reciprocal floor ceil trunc round.default abs sgn
    _prelu_kernel _prelu_kernel_backward
    """.split()
)
