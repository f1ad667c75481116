/* repops: floating-point operators with one exact meaning.
 *
 * Every operator is a function from input bits to output bits, defined in repops/SPEC.md
 * (version RO_SPEC_VERSION). The result never depends on the device, the number of threads,
 * tile sizes or the instruction set.
 *
 * Tensors are dense, row-major and little-endian on disk. They lie in host memory, or in that of the
 * context's device (device.h).
 * Nothing here prints, exits or aborts; errors are a status plus a sentence in the context.
 */
#ifndef REPOPS_H
#define REPOPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RO_VERSION      "1.0.0"
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
    RO_ERR_DEVICE,      /* thread or device failure */
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

/* Operators. The numbers are part of the canonical encoding of graphs: never reuse one. */
typedef enum {
    RO_OP_NONE = 0,
    /* sources and data movement, SPEC 5 */
    RO_OP_FILL = 1,
    RO_OP_NORMAL = 2,
    RO_OP_READ_BATCH = 3,
    RO_OP_EMBEDDING = 4,
    RO_OP_EMBEDDING_GRAD = 5,
    RO_OP_SPLIT_HEADS = 6,
    RO_OP_JOIN_HEADS = 7,
    RO_OP_CONCAT = 8,
    RO_OP_IOTA = 9,
    RO_OP_TRANSPOSE = 10,
    RO_OP_SLICE = 11,
    RO_OP_PAD = 12,
    RO_OP_GATHER = 13,
    RO_OP_CONCAT_AXIS = 14,
    RO_OP_CAST = 15,
    /* elementwise, SPEC 6 */
    RO_OP_ADD = 16,
    RO_OP_DIV_CONST = 17,
    RO_OP_GELU = 18,
    RO_OP_GELU_GRAD = 19,
    RO_OP_RELU = 20,
    RO_OP_RELU_GRAD = 21,
    RO_OP_DROPOUT = 22,
    RO_OP_MUL = 24,
    RO_OP_SUB = 25,
    RO_OP_DIV = 26,
    RO_OP_SCALE = 27,
    RO_OP_EXP = 28,
    RO_OP_LOG = 29,
    RO_OP_SQRT = 30,
    RO_OP_RSQRT = 31,
    /* dot products, SPEC 3.1 */
    RO_OP_MATMUL = 32,
    /* row reductions, SPEC 3.2 */
    RO_OP_REDUCE_SUM = 40,
    RO_OP_REDUCE_MAX = 41,
    RO_OP_REDUCE_DOT = 42,
    RO_OP_REDUCE_SQDEV = 43,
    RO_OP_REDUCE_EXPSUM = 44,
    RO_OP_REDUCE_LN_GX = 45,
    /* column reductions, SPEC 3.3 */
    RO_OP_SUM_ROWS = 48,
    RO_OP_LN_DGAMMA = 49,
    /* layer norm, SPEC 7.1 */
    RO_OP_LN_RSTD = 56,
    RO_OP_LAYERNORM = 57,
    RO_OP_LN_DX = 58,
    /* softmax cross-entropy, SPEC 7.2 */
    RO_OP_XENT = 64,
    RO_OP_XENT_GRAD = 65,
    /* attention, SPEC 8 */
    RO_OP_ATTN_MAX = 72,
    RO_OP_ATTN_EXP = 73,
    RO_OP_ATTN_AV = 74,
    RO_OP_ATTN_L = 75,
    RO_OP_ATTN_OUT = 76,
    RO_OP_ATTN_PROB = 77,
    RO_OP_ATTN_DSCORE = 78,
    RO_OP_REPEAT_HEADS = 79,
    RO_OP_REPEAT_HEADS_GRAD = 80,
    /* optimizer, SPEC 9 */
    RO_OP_LR_SCHEDULE = 88,
    RO_OP_BIAS_CORRECTION = 89,
    RO_OP_CLIP_SCALE = 90,
    RO_OP_ADAMW_M = 91,
    RO_OP_ADAMW_V = 92,
    RO_OP_ADAMW_W = 93,
    RO_OP_SGD_M = 94,
    RO_OP_SGD_W = 95,
    RO_OP_SGD_NESTEROV = 96,
    /* more elementwise, SPEC 6 */
    RO_OP_TANH = 100,
    RO_OP_ERF = 101,
    RO_OP_SIGMOID = 102,
    RO_OP_SILU = 103,
    RO_OP_GELU_ERF = 104,
    RO_OP_TANH_GRAD = 105,
    RO_OP_ERF_GRAD = 106,
    RO_OP_SIGMOID_GRAD = 107,
    RO_OP_SILU_GRAD = 108,
    RO_OP_GELU_ERF_GRAD = 109,
    /* softmax and the loss with ignored labels, SPEC 7.2 */
    RO_OP_SOFTMAX = 110,
    RO_OP_SOFTMAX_GRAD = 111,
    RO_OP_LOG_SOFTMAX = 112,
    RO_OP_LOG_SOFTMAX_GRAD = 113,
    RO_OP_XENT_IGNORE = 114,
    RO_OP_XENT_IGNORE_GRAD = 115,
    RO_OP_KEPT = 116,
    /* along any axis, SPEC 3.3 and 3.4 */
    RO_OP_SUM_AXIS = 117,
    RO_OP_MAX_AXIS = 118,
    RO_OP_ARGMAX = 119,
    RO_OP_MAX_GRAD = 120,
    RO_OP_EXPAND = 121,
    /* RMS norm, SPEC 7.3 */
    RO_OP_RMSNORM = 122,
    RO_OP_RMS_DX = 123,
    RO_OP_REDUCE_RMS_GX = 124,
    RO_OP_RMS_DGAMMA = 125,
    /* convolution, SPEC 12.1 */
    RO_OP_CONV2D = 128,
    RO_OP_CONV2D_DX = 129,
    RO_OP_CONV2D_DW = 130,
    /* pooling, SPEC 12.2 */
    RO_OP_MAX_POOL2D = 136,
    RO_OP_MAX_POOL2D_INDEX = 137,
    RO_OP_MAX_POOL2D_GRAD = 138,
    RO_OP_AVG_POOL2D = 139,
    RO_OP_AVG_POOL2D_GRAD = 140,
    /* batch norm, SPEC 12.3 */
    RO_OP_BN_MEAN = 144,
    RO_OP_BN_SQDEV = 145,
    RO_OP_BN_MERGE_MEAN = 146,
    RO_OP_BN_MERGE_SQDEV = 147,
    RO_OP_BATCHNORM = 148,
    RO_OP_BN_DGAMMA = 149,
    RO_OP_BN_DX = 150,
    RO_OP_BN_RUNNING = 151,
    /* batches of images, SPEC 12.4 */
    RO_OP_READ_IMAGES = 152,
    RO_OP_READ_LABELS = 153,
    /* more data movement, SPEC 5 */
    RO_OP_RESHAPE = 200,
    RO_OP_GATHER_GRAD = 201,
    RO_OP_UNIFORM = 202,
    RO_OP_PERMUTATION = 203,
    /* rotary position embedding, SPEC 13 */
    RO_OP_ROPE = 204,
    RO_OP_END = 256 /* numbers in between are free */
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
    int64_t attr[RO_MAX_ATTRS]; /* unused ones are 0 */
    const ro_shape *input;      /* borrowed, input_count of them */
    ro_shape output;
} ro_call;

/* RO_VERSION of the library that is linked. */
RO_API const char *ro_version(void);

/* NULL if there is no such operator. */
RO_API const ro_op_info *ro_op_describe(int op);

/* Bit i is set if ro_run may be given the same address for the output and for input i, where both
 * have the same number of elements: the input is then overwritten. */
RO_API uint32_t ro_op_in_place(int op);

/* RO_OP_NONE if there is none of that name. */
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
 * otherwise the given shape must be the right one. On error writes a sentence to `why`. */
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
/* Sentence of the last failure; NULL: of this thread's last ro_ctx_create that failed. */
RO_API const char *ro_ctx_error(const ro_ctx *ctx);
RO_API const char *ro_ctx_backend(const ro_ctx *ctx);
RO_API int ro_ctx_threads(const ro_ctx *ctx);

/* Runs one operator: SPEC.md defines every bit of `output`. `call` must have passed ro_infer;
 * input[i].shape equals call->input[i]. The output may be the same memory as an input that
 * ro_op_in_place names; otherwise it may not overlap one. Protects itself from the caller's
 * rounding mode and FTZ/DAZ, and restores them. */
RO_API RO_MUST_USE ro_status ro_run(ro_ctx *ctx, const ro_call *call, const void *const *input,
                                    void *output);

/* ---- products of strided matrices ---- */

/* c = alpha * op(a) op(b) + beta * c, as BLAS has it, row-major: SPEC.md section 3.1 defines every
 * bit. op(a) is m x k: a holds it with rows lda apart, or its transpose (k x m) if trans_a is not
 * 0; likewise b, k x n. For column-major matrices exchange a and b, and m and n.
 *
 * m, n and k may be 0. alpha = 0 (or k = 0): a and b are not read; beta = 0: c is not read. Leading
 * dimensions are at least the width of what they step over, and at least 1. c may overlap neither
 * input; elements of its rows beyond n are neither read nor written. Returns RO_ERR_ARG with a
 * sentence, or RO_ERR_MEMORY. */
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
