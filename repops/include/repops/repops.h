/* repops: floating-point operators with one exact meaning.
 *
 * Every operator is a function from input bits to output bits, defined in repops/SPEC.md
 * (version RO_SPEC_VERSION). The result never depends on the device, the number of threads,
 * tile sizes or the instruction set.
 *
 * Tensors are dense, row-major and little-endian on disk. They lie in host memory, or in that of
 * the context's device (device.h). Nothing here prints, exits or aborts; errors are a status plus a
 * sentence in the context.
 *
 * No pointer may be NULL unless its comment says so, but for tensors without elements, and outputs
 * overlap nothing else that a call is given unless its comment says so: a function that returns a
 * status answers RO_ERR_ARG.
 */
#ifndef REPOPS_H
#define REPOPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RO_VERSION      "0.9.0"
#define RO_SPEC_VERSION 1

#if defined(__GNUC__)
#define RO_API      __attribute__((visibility("default")))
#define RO_MUST_USE __attribute__((warn_unused_result))
#else
#define RO_API
#define RO_MUST_USE
#endif

typedef enum {
    RO_OK = 0,
    RO_ERR_ARG,         /* an argument, attribute or shape that SPEC.md does not allow */
    RO_ERR_MEMORY,      /* the context's allocator returned NULL */
    RO_ERR_DEVICE,      /* thread or device failure; a device has no memory left */
    RO_ERR_UNSUPPORTED, /* a valid call that this backend does not offer */
} ro_status;

typedef enum { RO_F32 = 1, RO_I32 = 2, RO_U8 = 3, RO_U16 = 4 } ro_dtype;

enum {
    RO_MAX_DIMS = 5,
    RO_MAX_ATTRS = 8,
    RO_MAX_INPUTS = 1024,   /* concat of one value per parameter is the widest */
    RO_LANES = 128,         /* SPEC 3.2: lanes of a row reduction */
    RO_REDUCE_BLOCK = 1024, /* SPEC 3.2: largest block of a row reduction */
    RO_COLUMN_GROUP = 64,   /* SPEC 3.3: rows of one group of a column reduction */
    RO_DOT_CHUNK = 256,     /* SPEC 3.1: chunk of a dot product */
    RO_ATTN_BLOCK = 128,    /* SPEC 3.1, 8: key block of attention */
    RO_CRUMB_LOADS = 4096,  /* most elements that one ro_ref_finish reads */
    RO_STEP_LOADS = 512,    /* most elements that one ro_ref_step reads */
};

#define RO_MAX_NUMEL (INT64_C(1) << 40)
#define RO_QNAN_BITS UINT32_C(0x7fc00000)

/* The type of a tensor: element type and dimensions, which may be 0. */
typedef struct {
    int32_t dtype;            /* ro_dtype */
    int32_t ndim;             /* 1..RO_MAX_DIMS; 0 means "not yet inferred" in ro_infer */
    int64_t dim[RO_MAX_DIMS]; /* unused ones are 0 */
} ro_shape;

typedef struct {
    ro_shape shape;
    void *data; /* borrowed */
} ro_tensor;

/* Operators: their inputs, as SPEC.md names them (which also has attributes, formulas and special
 * values), and what they compute. The numbers are part of the canonical encoding of graphs: never
 * reuse one. */
typedef enum {
    RO_OP_NONE = 0,
    /* sources and data movement, SPEC 5 */
    RO_OP_FILL = 1,           /* one value */
    RO_OP_NORMAL = 2,         /* normally distributed numbers */
    RO_OP_READ_BATCH = 3,     /* (data, step): windows of tokens */
    RO_OP_EMBEDDING = 4,      /* (table, ids): rows of the table */
    RO_OP_EMBEDDING_GRAD = 5, /* (dy, ids): of the table */
    RO_OP_SPLIT_HEADS = 6,    /* (x): one of its parts, by heads */
    RO_OP_JOIN_HEADS = 7,     /* (x...): the inverse */
    RO_OP_CONCAT = 8,         /* (x...): all elements in one row */
    RO_OP_IOTA = 9,           /* 0, 1, 2, ... */
    RO_OP_TRANSPOSE = 10,     /* (x): dimensions in another order */
    RO_OP_SLICE = 11,         /* (x): every step-th along an axis */
    RO_OP_PAD = 12,           /* (x): a value before, after and in between */
    RO_OP_GATHER = 13,        /* (x, ids): places along an axis */
    RO_OP_CONCAT_AXIS = 14,   /* (x...): along an axis */
    RO_OP_CAST = 15,          /* (x): to another type */
    /* elementwise, SPEC 6 */
    RO_OP_ADD = 16,       /* (a, b): a + b; b repeats */
    RO_OP_DIV_CONST = 17, /* (x): x / divisor */
    RO_OP_GELU = 18,      /* (x): by tanh */
    RO_OP_GELU_GRAD = 19, /* (x, dy) */
    RO_OP_RELU = 20,      /* (x): max(x, 0) */
    RO_OP_RELU_GRAD = 21, /* (x, dy) */
    RO_OP_DROPOUT = 22,   /* (x, step): 0, or x times scale; its own gradient */
    RO_OP_MUL = 24,       /* (a, b): a * b; b repeats */
    RO_OP_SUB = 25,       /* (a, b): a - b; b repeats */
    RO_OP_DIV = 26,       /* (a, b): a / b; b repeats */
    RO_OP_SCALE = 27,     /* (x): x * factor */
    RO_OP_EXP = 28,       /* (x) */
    RO_OP_LOG = 29,       /* (x): the natural one */
    RO_OP_SQRT = 30,      /* (x) */
    RO_OP_RSQRT = 31,     /* (x): 1 / sqrt(x) */
    /* dot products, SPEC 3.1 */
    RO_OP_MATMUL = 32, /* (a, b): alpha * a b; batches, transposes, masks */
    /* row reductions, SPEC 3.2 */
    RO_OP_REDUCE_SUM = 40,    /* (x): sums of blocks of a row */
    RO_OP_REDUCE_MAX = 41,    /* (x): maxima of blocks of a row */
    RO_OP_REDUCE_DOT = 42,    /* (a, b): sums of a * b; b repeats */
    RO_OP_REDUCE_SQDEV = 43,  /* (x, mean): sums of (x - mean)^2 */
    RO_OP_REDUCE_EXPSUM = 44, /* (x, m): sums of exp(x - m) */
    RO_OP_REDUCE_LN_GX = 45,  /* (dy, gamma, x, mean, rstd): sums for ln_dx */
    /* column reductions, SPEC 3.3 */
    RO_OP_SUM_ROWS = 48,  /* (x): sums of 64 rows */
    RO_OP_LN_DGAMMA = 49, /* (dy, x, mean, rstd): of gamma */
    /* layer norm, SPEC 7.1 */
    RO_OP_LN_RSTD = 56,   /* (ss): 1 / sqrt(ss / n + eps) */
    RO_OP_LAYERNORM = 57, /* (x, mean, rstd, gamma, beta) */
    RO_OP_LN_DX = 58,     /* (dy, gamma, x, mean, rstd, sg, sgx) */
    /* softmax cross-entropy, SPEC 7.2 */
    RO_OP_XENT = 64,      /* (x, m, l, ids): losses of rows */
    RO_OP_XENT_GRAD = 65, /* (x, m, l, ids, dloss): of x */
    /* attention, SPEC 8 */
    RO_OP_ATTN_MAX = 72,          /* (s): the largest score of each key block */
    RO_OP_ATTN_EXP = 73,          /* (s, mc): exp(s - mc) */
    RO_OP_ATTN_AV = 74,           /* (e, v): weighted sums of values, by key block */
    RO_OP_ATTN_L = 75,            /* (mc, lc): sums over all blocks */
    RO_OP_ATTN_OUT = 76,          /* (mc, ac, l): the layer's output */
    RO_OP_ATTN_PROB = 77,         /* (s, m, l): softmax of scores */
    RO_OP_ATTN_DSCORE = 78,       /* (p, dp, delta): of scores */
    RO_OP_REPEAT_HEADS = 79,      /* (x): each head several times */
    RO_OP_REPEAT_HEADS_GRAD = 80, /* (dy) */
    /* optimizer, SPEC 9 */
    RO_OP_LR_SCHEDULE = 88,     /* (step): learning rate, after a warmup */
    RO_OP_BIAS_CORRECTION = 89, /* (c): 1 - beta^t, a step at a time */
    RO_OP_CLIP_SCALE = 90,      /* (sumsq): the factor that limits a global norm */
    RO_OP_ADAMW_M = 91,         /* (m, g, clip): first moment */
    RO_OP_ADAMW_V = 92,         /* (v, g, clip): second moment */
    RO_OP_ADAMW_W = 93,         /* (w, m, v, c1, c2, lr): weights */
    RO_OP_SGD_M = 94,           /* (m, g, w, clip): momentum */
    RO_OP_SGD_W = 95,           /* (w, m, lr): weights */
    RO_OP_SGD_NESTEROV = 96,    /* (w, m, g, clip, lr): weights */
    /* more elementwise, SPEC 6 */
    RO_OP_TANH = 100,          /* (x) */
    RO_OP_ERF = 101,           /* (x) */
    RO_OP_SIGMOID = 102,       /* (x) */
    RO_OP_SILU = 103,          /* (x): x * sigmoid(x) */
    RO_OP_GELU_ERF = 104,      /* (x): by erf */
    RO_OP_TANH_GRAD = 105,     /* (y, dy); y = tanh(x) */
    RO_OP_ERF_GRAD = 106,      /* (x, dy) */
    RO_OP_SIGMOID_GRAD = 107,  /* (y, dy); y = sigmoid(x) */
    RO_OP_SILU_GRAD = 108,     /* (x, dy) */
    RO_OP_GELU_ERF_GRAD = 109, /* (x, dy) */
    /* softmax and the loss with ignored labels, SPEC 7.2 */
    RO_OP_SOFTMAX = 110,          /* (x, m, l) */
    RO_OP_SOFTMAX_GRAD = 111,     /* (y, dy, d); y = softmax(x) */
    RO_OP_LOG_SOFTMAX = 112,      /* (x, m, l) */
    RO_OP_LOG_SOFTMAX_GRAD = 113, /* (y, dy, s); y = log_softmax(x) */
    RO_OP_XENT_IGNORE = 114,      /* (x, m, l, ids): xent, but 0 where the id is `ignore` */
    RO_OP_XENT_IGNORE_GRAD = 115, /* (x, m, l, ids, dloss) */
    RO_OP_KEPT = 116,             /* (ids): 0 where the id is `ignore`, else 1 */
    /* along any axis, SPEC 3.3 and 3.4 */
    RO_OP_SUM_AXIS = 117, /* (x): sums of 64 along an axis */
    RO_OP_MAX_AXIS = 118, /* (x): maxima of 64 along an axis */
    RO_OP_ARGMAX = 119,   /* (x): where the first maximum is */
    RO_OP_MAX_GRAD = 120, /* (at, dy): of max_axis; at is from argmax */
    RO_OP_EXPAND = 121,   /* (x): repeated along an axis of length 1 */
    /* RMS norm, SPEC 7.3 */
    RO_OP_RMSNORM = 122,       /* (x, rstd, gamma) */
    RO_OP_RMS_DX = 123,        /* (dy, gamma, x, rstd, sgx) */
    RO_OP_REDUCE_RMS_GX = 124, /* (dy, gamma, x, rstd): sums for rms_dx */
    RO_OP_RMS_DGAMMA = 125,    /* (dy, x, rstd): of gamma */
    /* convolution, SPEC 12.1 */
    RO_OP_CONV2D = 128,    /* (x, w) */
    RO_OP_CONV2D_DX = 129, /* (dy, w): of x */
    RO_OP_CONV2D_DW = 130, /* (x, dy): of w */
    /* pooling, SPEC 12.2 */
    RO_OP_MAX_POOL2D = 136,       /* (x) */
    RO_OP_MAX_POOL2D_INDEX = 137, /* (x): which element of a window it is */
    RO_OP_MAX_POOL2D_GRAD = 138,  /* (dy, index) */
    RO_OP_AVG_POOL2D = 139,       /* (x) */
    RO_OP_AVG_POOL2D_GRAD = 140,  /* (dy) */
    /* batch norm, SPEC 12.3 */
    RO_OP_BN_MEAN = 144,        /* (x): means of groups of rows */
    RO_OP_BN_SQDEV = 145,       /* (x, mean): their squared deviations */
    RO_OP_BN_MERGE_MEAN = 146,  /* (m): means of 64 groups */
    RO_OP_BN_MERGE_SQDEV = 147, /* (m, s): their squared deviations */
    RO_OP_BATCHNORM = 148,      /* (x, mean, rstd, gamma, beta) */
    RO_OP_BN_DGAMMA = 149,      /* (dy, x, mean, rstd): of gamma */
    RO_OP_BN_DX = 150,          /* (dy, x, mean, rstd, gamma, dbeta, dgamma) */
    RO_OP_BN_RUNNING = 151,     /* (r, v): a running mean or variance */
    /* batches of images, SPEC 12.4 */
    RO_OP_READ_IMAGES = 152, /* (data, step): pixels as numbers */
    RO_OP_READ_LABELS = 153, /* (data, step) */
    /* more data movement, SPEC 5 */
    RO_OP_RESHAPE = 200,     /* (x): the same elements */
    RO_OP_GATHER_GRAD = 201, /* (dy, ids) */
    RO_OP_UNIFORM = 202,     /* uniformly distributed numbers */
    RO_OP_PERMUTATION = 203, /* (step): 0 .. W - 1 shuffled */
    /* rotary position embedding, SPEC 13 */
    RO_OP_ROPE = 204, /* (x): turned by its position */
    RO_OP_END = 256   /* numbers in between are free */
} ro_op;

typedef enum { RO_MASK_NONE = 0, RO_MASK_UPTO_ROW = 1, RO_MASK_FROM_ROW = 2 } ro_mask;
typedef enum { RO_LR_CONSTANT = 0, RO_LR_LINEAR = 1, RO_LR_COSINE = 2 } ro_lr_kind;

typedef struct {
    const char *name;
    char kind; /* 'i': int64; 'f': binary32 bits, zero-extended */
} ro_attr_info;

typedef struct {
    const char *name; /* "matmul" */
    int min_inputs, max_inputs;
    int attr_count;
    ro_attr_info attr[RO_MAX_ATTRS];
    int declared_shape; /* 1: the caller must give the output shape (SPEC 4) */
} ro_op_info;

/* One application of an operator, without data. */
typedef struct {
    int32_t op; /* ro_op */
    int32_t input_count;
    /* Unused ones are 0. Those of kind 'f' take the bits of a float, as ro_attr_f32 gives them: the
     * integer 1 would be 2^-149, which is valid too, so that nothing tells of the mistake. */
    int64_t attr[RO_MAX_ATTRS];
    const ro_shape *input; /* borrowed, input_count of them */
    ro_shape output;
} ro_call;

/* RO_VERSION of the library that is linked. */
RO_API const char *ro_version(void);

/* NULL if there is no such operator. */
RO_API const ro_op_info *ro_op_describe(int op);

/* Bit i is set if ro_run may be given the same address for the output and for input i, where both
 * have the same number of elements: the input is then overwritten. */
RO_API uint32_t ro_op_in_place(int op);

/* RO_OP_NONE if there is none of that name; NULL is no name. */
RO_API int ro_op_by_name(const char *name);

RO_API int64_t ro_attr_f32(float value);
RO_API float ro_attr_to_f32(int64_t attr);

RO_API size_t ro_dtype_size(int dtype); /* 0 if unknown */
RO_API const char *ro_dtype_name(int dtype);
RO_API int64_t ro_shape_numel(const ro_shape *shape);
/* Known type, 1..RO_MAX_DIMS dimensions of at least 0, those above 0 with a product of at most
 * 2^40; the unused dimensions are 0. */
RO_API int ro_shape_valid(const ro_shape *shape);
RO_API int ro_shape_equal(const ro_shape *a, const ro_shape *b);

/* Checks a call against SPEC.md: number of inputs, types, shapes, attributes. Any bits in `call`
 * are allowed. If output.ndim is 0 and the operator does not need a declared shape, fills it in;
 * otherwise the given shape must be the right one: set ndim to 0 before a call is used again with
 * other inputs. On error writes a sentence to `why`, which may be NULL. */
RO_API RO_MUST_USE ro_status ro_infer(ro_call *call, char *why, size_t why_size);

/* ---- execution ---- */

typedef struct ro_ctx ro_ctx;

typedef struct {
    int threads; /* 0: one per available core */
    /* NULL: what REPOPS_CPU says, else the best; "cpu" (the best), "scalar", on x86-64 "avx2" and
     * "avx512", on aarch64 "neon"; "cuda:N" (device.h; RO_ERR_DEVICE if it cannot be had) */
    const char *backend;
    void *(*alloc)(void *user, size_t size, size_t alignment); /* NULL: aligned_alloc */
    void (*free)(void *user, void *block);
    void *user;
} ro_options;

/* Worker threads start at the first large call, block while idle, and are rebuilt after fork.
 * A context is used by one thread at a time. */
RO_API RO_MUST_USE ro_status ro_ctx_create(const ro_options *options, ro_ctx **out);
RO_API void ro_ctx_destroy(ro_ctx *ctx); /* accepts NULL */
/* Sentence of the last failure; NULL: of this thread's last call that failed without a context. */
RO_API const char *ro_ctx_error(const ro_ctx *ctx);
RO_API const char *ro_ctx_backend(const ro_ctx *ctx);
RO_API int ro_ctx_threads(const ro_ctx *ctx);

/* Runs one operator: SPEC.md defines every bit of `output`. `call` must have passed ro_infer, which
 * gives it the output's shape (without one: RO_ERR_ARG), and input[i] has the shape call->input[i].
 * The output may be the same memory as an input that ro_op_in_place names; where it overlaps one
 * otherwise, that is RO_ERR_ARG. Protects itself from the caller's rounding mode and FTZ/DAZ, and
 * restores them. */
RO_API RO_MUST_USE ro_status ro_run(ro_ctx *ctx, const ro_call *call, const void *const *input,
                                    void *output);

/* ---- the context's threads, for work that is not repops' ---- */

/* Does items [first, last). `worker`: 0 to ro_ctx_threads - 1, of another thread each; 0 is the
 * caller's own. */
typedef void (*ro_task)(void *user, int64_t first, int64_t last, int worker);

/* Does [0, count) in pieces that start at multiples of `grain` (at least 1), or in one, in any
 * order, and returns when all are done. `us`: microseconds that all of it takes with one thread,
 * roughly: threads that sleep are not woken for less than that takes. The task may not use ctx; it
 * runs with the default rounding mode, without FTZ/DAZ. */
RO_API void ro_parallel_for(ro_ctx *ctx, int64_t count, int64_t grain, double us, ro_task task,
                            void *user);

/* ---- products of strided matrices ---- */

/* c = alpha * op(a) op(b) + beta * c, as BLAS has it, row-major: SPEC.md section 3.1 defines every
 * bit. op(a) is m x k: a holds it with rows lda apart, or its transpose (k x m) if trans_a is not
 * 0; likewise b, k x n. For column-major matrices exchange a and b, and m and n.
 *
 * m, n and k may be 0. alpha = 0 (or k = 0): a and b are not read; beta = 0: c is not read. Leading
 * dimensions are at least the width of what they step over, and at least 1. Elements of c's rows
 * beyond n are neither read nor written, so that a, b and c may be parts of one wider matrix; they
 * share no element. Returns RO_ERR_ARG, RO_ERR_MEMORY or, on a device, RO_ERR_DEVICE, with a
 * sentence. */
RO_API RO_MUST_USE ro_status ro_sgemm(ro_ctx *ctx, int trans_a, int trans_b, int64_t m, int64_t n,
                                      int64_t k, float alpha, const float *a, int64_t lda,
                                      const float *b, int64_t ldb, float beta, float *c,
                                      int64_t ldc);

/* `batch` such products; product i uses a + i * stride_a, b + i * stride_b and c + i * stride_c. An
 * input's stride may be 0 (shared by all); no two products may share an element of c. */
RO_API RO_MUST_USE ro_status ro_sgemm_batch(ro_ctx *ctx, int trans_a, int trans_b, int64_t m,
                                            int64_t n, int64_t k, float alpha, const float *a,
                                            int64_t lda, const float *b, int64_t ldb, float beta,
                                            float *c, int64_t ldc, int64_t stride_a,
                                            int64_t stride_b, int64_t stride_c, int64_t batch);

#ifdef __cplusplus
}
#endif
#endif
