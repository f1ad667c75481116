"""Which of torch's operators are the library's, and which have the same bits anywhere already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HANDLERS: dict[str, Callable[..., Any]] = {}


def handles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function computes these operators; a name without overload stands for all of them."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


# Data movement, comparisons, selections, integers: no number is rounded.
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
    signbit neg copysign floor ceil trunc set_ resize_ _unsafe_view _reshape_alias
    max.dim min.dim argmax argmin searchsorted bucketize pixel_shuffle pixel_unshuffle
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
    complex
    """.split()
)

# One operation that IEEE 754 rounds correctly, in vectors and in what is left of them alike.
ARITHMETIC = set(
    """
    add.Tensor add.Scalar sub.Tensor sub.Scalar mul.Tensor mul.Scalar
    div.Tensor div.Scalar reciprocal round.default abs sgn _prelu_kernel _prelu_kernel_backward
    """.split()
)
