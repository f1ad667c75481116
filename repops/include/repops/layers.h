/* Pieces of layers in one call each: sums of any length, gradients of linear layers and embeddings,
 * RMS norm, rotary positions. They give the bytes of the operators that SPEC.md names, and spare
 * the author of a trainer the levels of a sum and the temporary tensors. Embeddings, RMS norm and
 * rotary positions are fused, like the functions of fused.h: they pass over memory once. The others
 * run their operators one after another.
 *
 * All tensors are dense and row-major, f32 where no type is given, in memory where the context
 * computes, and borrowed for the call. A pointer may be NULL only if its comment says so or if its
 * tensor is empty; outputs overlap nothing unless a comment says so; otherwise RO_ERR_ARG. Errors
 * leave a sentence in ro_ctx_error, and the outputs undefined. Temporary memory comes from the
 * context, and is given back before a call returns. */
#ifndef REPOPS_LAYERS_H
#define REPOPS_LAYERS_H

#include "repops/fused.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a gradient goes. */
typedef struct {
    float *data; /* NULL: not wanted */
    /* Nonzero: the gradient is added to `data`, as operator `add` does, so that gradients of
     * several uses or batches are summed in the order of the calls. 0: it replaces what is
     * there. */
    int64_t add;
} ro_gradient;

/* ---- sums, SPEC 3.2 and 3.3: all levels ---- */

/* y[r] = x[r, 0] + x[r, 1] + ...: reduced by R in blocks of 1024, level by level until one value is
 * left: the bytes of reduce_sum. x: [rows, cols]; y: [rows]. With rows = 1 it sums everything. */
RO_API RO_MUST_USE ro_status ro_sum(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                    float *y);

/* y[c] = x[0, c] + x[1, c] + ...: reduced by K in groups of 64 rows, level by level until one row
 * is left: the bytes of sum_rows. x: [rows, cols]; y: [cols]. This is the gradient of a bias. */
RO_API RO_MUST_USE ro_status ro_sum_rows(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                         ro_gradient y);

/* ---- linear layers, SPEC 3.1 ---- */

/* Computes the gradients of x, w and bias of ro_linear from dy, the gradient of y. With an
 * activation, z is what ro_linear stored, and dz has the bytes of relu_grad, gelu_grad,
 * gelu_erf_grad or silu_grad of z and dy; without one z must be NULL, and dz is dy. dx = dz w^T and
 * dw = x^T dz, or dw = dz^T x if w is transposed: the bytes of matmul in chunks of 256, or of
 * matmul_fixed. db is ro_sum_rows of dz.
 *
 * x, dx: [rows, in]; w, dw: as the layer has it; z, dy: [rows, out]; db: [out]. x may be NULL if dw
 * is not wanted, and w if dx is not. Temporary memory: dz, if there is an activation; with fixed
 * products also dx, and then dw, if they are added. */
RO_API RO_MUST_USE ro_status ro_linear_backward(ro_ctx *ctx, const ro_linear_layer *layer,
                                                const float *x, const float *w, const float *z,
                                                const float *dy, ro_gradient dx, ro_gradient dw,
                                                ro_gradient db);

/* ---- embeddings, SPEC 3.3 and 5 ---- */

/* Computes the gradient of an embedding table from dy, the gradient of the looked-up rows: the
 * bytes of embedding_grad. dy: [positions, cols]; ids: [positions], at most 2^31 of them; table:
 * [rows, cols]. Temporary memory: on CPUs one number per row and per position; on a device none,
 * unless rows * positions exceeds 128 cols * (rows + positions): then five numbers per position,
 * and a table if the gradient is added. */
RO_API RO_MUST_USE ro_status ro_embedding_backward(ro_ctx *ctx, int64_t rows, int64_t cols,
                                                   int64_t positions, const float *dy,
                                                   const int32_t *ids, ro_gradient table);

/* ---- RMS norm, SPEC 7.3 ---- */

/* The bytes of reduce_dot(x, x) with its levels, ln_rstd and rmsnorm. x, y: [rows, cols], cols at
 * most RO_ROW_COLS_MAX; gamma: [cols]; rstd: [rows], read by the backward pass, NaN without
 * columns. y may be x. x is read from memory once, and there is no temporary memory. */
RO_API RO_MUST_USE ro_status ro_rms_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps,
                                         const float *x, const float *gamma, float *y, float *rstd);

/* Computes the gradients of x and gamma from dy, the gradient of y; rstd as forward left it. dx has
 * the bytes of reduce_rms_gx with its levels and rms_dx, dgamma those of rms_dgamma with its
 * levels. dx may be dy or x where it is not added.
 *
 * On CPUs x and dy are read from memory once. Temporary memory there is one row for every 64 rows,
 * or none for up to 64 rows or without dgamma, but at least one row if dgamma is added. On a device
 * they are read once if both gradients are wanted and not added, and rows are neither too few nor
 * too wide; temporary memory is then two rows for every 64, and else one number per row, the levels
 * of both sums, and a second copy of gradients that are added. */
RO_API RO_MUST_USE ro_status ro_rms_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols,
                                                  const float *x, const float *gamma,
                                                  const float *rstd, const float *dy,
                                                  ro_gradient dx, ro_gradient dgamma);

/* ---- rotary position embedding, SPEC 13 ---- */

enum { RO_ROTARY_HEAD_MAX = 1 << 20 };

typedef struct {
    uint32_t size; /* sizeof(ro_rotary_layer) */
    uint32_t reserved;
    int64_t batch, tokens, heads; /* heads at least 1 */
    int64_t head_size;            /* even, at most RO_ROTARY_HEAD_MAX */
    int neighbours;               /* not 0: pairs are (2i, 2i + 1); else (i, i + head_size / 2) */
    int each;                     /* nonzero: each sequence has its own positions */
} ro_rotary_layer;

/* Rotates queries or keys by their positions, and stores them head by head: the bytes of
 * split_heads and rope.
 *
 * x: [batch, tokens, heads * head_size], as a linear layer gives it; y: [batch, heads, tokens,
 * head_size], as ro_attention takes it; position, i32: [tokens], or [batch, tokens] with `each`;
 * turns, i32: [head_size / 2, 2], as operator rope_turns makes them.
 *
 * Temporary memory: on CPUs the angles, head_size numbers for each position; on a device none. */
RO_API RO_MUST_USE ro_status ro_rotary(ro_ctx *ctx, const ro_rotary_layer *layer, const float *x,
                                       const int32_t *position, const int32_t *turns, float *y);

/* Computes the gradient of x, in x's layout, from the gradient of y: the bytes of rope with inverse
 * 1, and join_heads. Temporary memory as for ro_rotary; on CPUs, where the gradient is added, also
 * one head's row per thread. */
RO_API RO_MUST_USE ro_status ro_rotary_backward(ro_ctx *ctx, const ro_rotary_layer *layer,
                                                const float *dy, const int32_t *position,
                                                const int32_t *turns, ro_gradient dx);

#ifdef __cplusplus
}
#endif
#endif
