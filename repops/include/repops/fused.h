/* Functions that run several operators in one call without storing their intermediate tensors:
 * faster than ro_run for each operator, with the same bytes. SPEC.md defines the meaning by the
 * operators alone.
 *
 * All tensors are dense and row-major, and f32 except ids, which are i32. They are borrowed for the
 * call and lie where the context computes: in host memory, or in ro_alloc's memory of a device
 * (repops/device.h). A pointer may be NULL only if its comment says so or if its tensor is empty;
 * outputs overlap nothing unless a comment says so; otherwise RO_ERR_ARG. No function here prints
 * or exits. Errors are RO_ERR_ARG, RO_ERR_UNSUPPORTED, RO_ERR_MEMORY or, on a device,
 * RO_ERR_DEVICE, with a sentence in ro_ctx_error. The caller's rounding mode and FTZ/DAZ neither
 * matter nor change. */
#ifndef REPOPS_FUSED_H
#define REPOPS_FUSED_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- linear layers, SPEC 3.1 ---- */

typedef enum {
    RO_ACTIVATION_NONE,
    RO_ACTIVATION_RELU,
    RO_ACTIVATION_GELU, /* the tanh form */
    RO_ACTIVATION_GELU_ERF,
    RO_ACTIVATION_SILU
} ro_activation;

typedef struct {
    uint32_t size; /* sizeof(ro_linear_layer) */
    ro_activation activation;
    int64_t rows, in, out; /* rows of x; columns of x; columns of y */
    int transposed;        /* not 0: w is [out, in] */
    int fixed_bits; /* 0: products as in matmul; RO_FIXED_8, RO_FIXED_16 or RO_FIXED_24: as in
                     * matmul_fixed (SPEC 3.5), for gradients too */
} ro_linear_layer;

/* y = activation(z), z = x w + bias: the bytes of matmul in chunks of 256 or of matmul_fixed, add,
 * and relu, gelu, gelu_erf or silu.
 *
 * x: [rows, in]; w: [in, out]; bias: [out] or NULL for none; z, y: [rows, out]. z is stored for the
 * backward pass; NULL if it is not wanted. Without an activation z must be NULL, since y is z. y
 * and z overlap nothing. rows, in and out may be 0. */
RO_API RO_MUST_USE ro_status ro_linear(ro_ctx *ctx, const ro_linear_layer *layer, const float *x,
                                       const float *w, const float *bias, float *z, float *y);

/* ---- attention, SPEC 8 ---- */

/* Largest head size and largest number of heads of the fused functions. */
enum { RO_ATTENTION_HEAD_MAX = RO_DOT_CHUNK, RO_ATTENTION_HEADS_MAX = 1 << 20 };

/* The attributes of operator `dropout` and the value of its second input. It never changes. */
typedef struct {
    uint64_t seed;
    uint32_t stream, threshold;
    float scale;
    int32_t step;
} ro_attention_dropout;

typedef struct {
    uint32_t size; /* sizeof(ro_attention) */
    uint32_t reserved;
    int64_t batch, heads;  /* B, H; heads 1 to RO_ATTENTION_HEADS_MAX */
    int64_t kv_heads;      /* G divides H; query head h uses key and value head h / (H / G) */
    int64_t queries, keys; /* T, S; S at most 2,047 * 128 */
    int64_t head_size;     /* D, at most RO_ATTENTION_HEAD_MAX */
    /* Rows per head in the memory of k and v, at least S; 0 means S. Rows from S on are not read,
     * so that a cache may have room for later tokens. Forward only. */
    int64_t kv_rows;
    /* Nonzero: each query sees only the last `window` keys up to and including its own position.
     * Needs causal. Blocks of keys outside every window are not read. */
    int64_t window;
    /* Nonzero: the queries are the last T of S positions, and query i sees keys j <= i + S - T. */
    int causal;
    /* The factor of the scores. 1 / sqrtf(d) computed by the caller may differ between compilers
     * and libraries, and then every bit of the result does: use a constant, or operator rsqrt. */
    float scale;
    const ro_attention_dropout *dropout; /* NULL: none; with causal it needs T = S */
    /* [B, S], whatever kv_rows is: key_bias[b, j] is added to every score of key j, -inf for
     * padding and +0 else. NULL: none. In the context's memory, like q; it has no gradient.
     *
     * k and v of padding are still read. They may hold any numbers, such as zeros, as long as
     * scores and products with v and dout are finite; a NaN or an infinity would reach every query,
     * since -inf + NaN and 0 * inf are NaN. So fill memory that has no keys yet, or exclude it by
     * `keys`, `kv_rows` and `causal`, beyond which nothing is read. */
    const float *key_bias;
    /* Nonzero: rows of tokens are this many elements apart and hold all heads side by side: [B, T,
     * H, D], or [B, kv_rows, G, D] for k and v, as columns of a matrix that may be wider. This is
     * the layout that split_heads reads and join_heads writes. At least H * D, or G * D for k and
     * v. */
    int64_t q_row, k_row, v_row, out_row;
} ro_attention;

/* out[b, h] = softmax(q[b, h] k[b, g]^T * scale + key_bias[b]) v[b, g].
 *
 * q, out: [B, H, T, D]; k, v: [B, G, kv_rows, D], unless q_row, k_row, v_row or out_row changes the
 * layout. m, l: [B, H, T], the largest score of each query and the sum of exp(score - m), which the
 * backward pass reads; NULL if not wanted. Outputs may overlap nothing.
 *
 * Decoding: one new query (T = 1) against a cache of S keys gives the bytes of row S - 1 of the
 * whole causal prefill, and T new causal queries give those of its last T rows.
 *
 * B, T and S may be 0. Where a query sees no key, or every key it sees has the score -inf, out is
 * +0, m is -inf and l is +0.
 *
 * Temporary memory does not grow with S or T. Method: Milakov & Gimelshein, 2018; Dao et al., 2022;
 * the order of SPEC 8. */
RO_API RO_MUST_USE ro_status ro_attention_forward(ro_ctx *ctx, const ro_attention *a,
                                                  const float *q, const float *k, const float *v,
                                                  float *out, float *m, float *l);

/* Computes the gradients of q, k and v from `dout`, the gradient of out; out, m and l as forward
 * left them. dk and dv of a key head are summed over the query heads that share it, ascending
 * (repeat_heads_grad). kv_rows must be 0 or S, and T = S with causal. A gradient has its tensor's
 * layout: dq follows q_row, dout follows out_row. All elements are written, but not the gaps
 * between rows; outputs may overlap nothing.
 *
 * Temporary memory: one number per query. */
RO_API RO_MUST_USE ro_status ro_attention_backward(ro_ctx *ctx, const ro_attention *a,
                                                   const float *q, const float *k, const float *v,
                                                   const float *out, const float *m, const float *l,
                                                   const float *dout, float *dq, float *dk,
                                                   float *dv);

/* ---- softmax cross-entropy, SPEC 7.2 ---- */

enum { RO_CROSS_ENTROPY_COLS_MAX = 1 << 20 };
#define RO_IGNORE_NONE INT64_MIN /* no label */

/* Computes loss[r] = log(sum of exp(x[r, :])) - x[r, ids[r]], and its gradient with respect to x,
 * times dloss[r].
 *
 * x, dx: [rows, cols]; ids, dloss, loss, m, l: [rows]. m is a row's maximum, l its sum of exp(x -
 * m), reduced by R in blocks of 1024, level by level until one value is left (SPEC 3.2): the bytes
 * of reduce_max, reduce_expsum and reduce_sum, xent and xent_grad. m, l and dx may be NULL; dx may
 * be x itself, which is then overwritten; dloss is read only if dx is wanted. An id outside [0,
 * cols) gives the loss NaN and subtracts no 1 from the gradient, except that loss and gradient are
 * +0 where the id is `ignore` (xent_ignore, xent_ignore_grad). rows and cols may be 0. Reads x from
 * memory once; without m and l it skips the ignored rows. */
RO_API RO_MUST_USE ro_status ro_cross_entropy(ro_ctx *ctx, int64_t rows, int64_t cols,
                                              const float *x, const int32_t *ids, int64_t ignore,
                                              const float *dloss, float *loss, float *m, float *l,
                                              float *dx);

/* ---- rows: layer norm, SPEC 7.1; softmax, SPEC 7.2 ---- */

enum { RO_ROW_COLS_MAX = 1 << 20 };

/* x, y: [rows, cols]; gamma, beta: [cols]; mean, rstd, m, l: [rows]. Sums are reduced by R in
 * blocks of 1024, level by level until one value is left. All outputs are written, and overlap
 * nothing. rows and cols may be 0: without columns mean and rstd are NaN, m is -inf and l is +0.
 * Each function reads x from memory once. */

/* The bytes of reduce_sum, div_const by cols, reduce_sqdev, ln_rstd and layernorm. */
RO_API RO_MUST_USE ro_status ro_layer_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps,
                                           const float *x, const float *gamma, const float *beta,
                                           float *y, float *mean, float *rstd);

/* The bytes of reduce_max, reduce_expsum and softmax, or log_softmax: m is a row's maximum, l its
 * sum. Both are always written: they may not be NULL. */
RO_API RO_MUST_USE ro_status ro_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                        float *y, float *m, float *l);
RO_API RO_MUST_USE ro_status ro_log_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                            float *y, float *m, float *l);

/* Computes the gradients of x, gamma and beta from dy, the gradient of y; mean and rstd as forward
 * left them. dx may be dy or x. Reads x and dy from memory once; rows and cols may be 0.
 *
 * dx has the bytes of reduce_dot(dy, gamma), reduce_ln_gx and ln_dx; dgamma those of ln_dgamma and
 * dbeta those of sum_rows(dy), followed by sum_rows over their results until one group of rows is
 * left.
 *
 * Temporary memory: two rows for every 64 rows. */
RO_API RO_MUST_USE ro_status ro_layer_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols,
                                                    const float *x, const float *gamma,
                                                    const float *mean, const float *rstd,
                                                    const float *dy, float *dx, float *dgamma,
                                                    float *dbeta);

/* The bytes of reduce_dot(dy, y) and softmax_grad, and of reduce_sum(dy) and log_softmax_grad. y is
 * the forward result. dx may be dy or y. rows and cols may be 0. */
RO_API RO_MUST_USE ro_status ro_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols,
                                                 const float *y, const float *dy, float *dx);
RO_API RO_MUST_USE ro_status ro_log_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols,
                                                     const float *y, const float *dy, float *dx);

/* ---- AdamW, SPEC 9 ---- */

typedef struct {
    uint32_t size; /* sizeof(ro_adamw_step) */
    uint32_t reserved;
    int64_t count;                      /* elements of a parameter */
    float beta1, beta2, eps, decay;     /* the attributes of adamw_m, adamw_v and adamw_w */
    const float *clip, *c1, *c2, *rate; /* the operators' inputs of one element */
} ro_adamw_step;

/* Runs one step of one parameter: the bytes of adamw_m, adamw_v, and adamw_w of their results. All
 * tensors have `count` elements. Each output may be its own input (w, m or v), and otherwise
 * overlaps nothing. Reads and writes every element once. */
RO_API RO_MUST_USE ro_status ro_adamw(ro_ctx *ctx, const ro_adamw_step *step, const float *w,
                                      const float *m, const float *v, const float *gradient,
                                      float *w_out, float *m_out, float *v_out);

/* The arguments of ro_adamw. Parameters with equal numbers of elements may share a step. */
typedef struct {
    uint32_t size; /* sizeof(ro_adamw_parameter) */
    uint32_t reserved;
    const ro_adamw_step *step;
    const float *w, *m, *v, *gradient;
    float *w_out, *m_out, *v_out;
} ro_adamw_parameter;

/* Runs the steps of `count` parameters. No parameter may overlap another one's outputs. On a device
 * one launch handles up to 256 of them. */
RO_API RO_MUST_USE ro_status ro_adamw_all(ro_ctx *ctx, int64_t count,
                                          const ro_adamw_parameter *parameter);

/* How AdamW's results are rounded to bf16: the attributes of operator cast_stochastic. */
typedef struct {
    uint32_t size;      /* sizeof(ro_adamw_rounding) */
    uint32_t stream[3]; /* of w, m and v */
    uint64_t seed;
    const int32_t *step; /* one element */
} ro_adamw_rounding;

/* A parameter that is stored as bf16. Each output may be its own input. */
typedef struct {
    uint32_t size; /* sizeof(ro_adamw_bf16_parameter) */
    uint32_t reserved;
    const ro_adamw_step *step;
    const ro_adamw_rounding *rounding;
    const uint16_t *w, *m, *v;
    const float *gradient;
    uint16_t *w_out, *m_out, *v_out;
} ro_adamw_bf16_parameter;

/* Runs the step of one bf16 parameter: the bytes of cast to f32, of ro_adamw, and of
 * cast_stochastic of each result. Every element is read and written once, and there is no temporary
 * memory. */
RO_API RO_MUST_USE ro_status ro_adamw_bf16(ro_ctx *ctx, const ro_adamw_bf16_parameter *parameter);

/* ---- SGD, SPEC 9 ---- */

typedef struct {
    uint32_t size;            /* sizeof(ro_sgd_step) */
    int nesterov;             /* not 0: sgd_nesterov in place of sgd_w */
    int64_t count;            /* elements of a parameter */
    float momentum, decay;    /* the attributes of sgd_m and sgd_nesterov */
    const float *clip, *rate; /* the operators' inputs of one element */
} ro_sgd_step;

/* Runs one step of one parameter: the bytes of sgd_m, and of sgd_w or sgd_nesterov of its result.
 * Shapes and overlap as for ro_adamw. */
RO_API RO_MUST_USE ro_status ro_sgd(ro_ctx *ctx, const ro_sgd_step *step, const float *w,
                                    const float *m, const float *gradient, float *w_out,
                                    float *m_out);

#ifdef __cplusplus
}
#endif
#endif
