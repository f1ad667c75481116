/* repops: floating-point operators with one exact meaning.
 *
 * Every operator is a function from input bits to output bits, defined in repops/SPEC.md (version
 * RO_SPEC_VERSION). The result never depends on the device, the number of threads, tile sizes or
 * the instruction set.
 *
 * Tensors are dense and row-major, and little-endian in files. They lie in host memory, or in that
 * of the context's device (device.h). Nothing here prints, exits or aborts; errors are a status
 * plus a sentence in the context.
 *
 * A pointer may be NULL only if its comment says so or if its tensor is empty, and outputs overlap
 * no other argument of a call unless a comment says so: a function that returns a status answers
 * RO_ERR_ARG.
 *
 * A program that was compiled with these headers works with every later library of the same soname:
 *
 * - A structure whose first member is `size` may get more members at its end. The caller sets
 *   `size` to the sizeof that its compiler knows. The library takes members that the caller lacks
 *   as 0, and 0 means what the library did before the member existed. Members that the library
 *   does not know must be 0, and so must `reserved`. RO_ERR_ARG: a size below that of the first
 *   version, or above 4,096, or an unknown member that is not 0. All elements of an array have the
 *   same size.
 * - Other structures never change. ro_shape, ro_tensor and ro_call are in every call, and in
 *   arrays; ro_gradient, ro_bounded and ro_places are passed by value; ro_close_call is in arrays
 *   of millions; ro_access, ro_acc, ro_ref_memory and ro_team_modes belong to one function each,
 *   and a variant that needs more members gets a new name. An operator never gets another
 *   attribute; a new operator is added instead: so the structures of typed.h and
 *   ro_attention_dropout never change either.
 * - ro_op_info, which only the library fills, may get members at its end.
 * - Enumerators keep their numbers, and new ones follow the last one. This includes ro_status: a
 *   program treats a status that it does not know as a failure.
 * - RO_MAX_DIMS and RO_MAX_ATTRS are part of these structures: other values need another soname. */
#ifndef REPOPS_H
#define REPOPS_H

#include <stddef.h>
#include <stdint.h>

/* A file that defines RO_SECTIONS includes the headers op_*.h that it needs, and is not compiled
 * again when another section gets an operator. */
#ifndef RO_SECTIONS
#include "repops/operators.h"
#endif

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
    RO_ERR_DEVICE,      /* thread or device failure; a device has no memory left */
    RO_ERR_UNSUPPORTED, /* a valid call that this backend does not offer */
} ro_status;

/* RO_BF16 and RO_F16 hold 16 bits of an element in a uint16_t. */
typedef enum {
    RO_F32 = 1,
    RO_I32 = 2,
    RO_U8 = 3,
    RO_U16 = 4,
    RO_BF16 = 5,
    RO_F16 = 6,
    RO_I8 = 7
} ro_dtype;

enum {
    RO_MAX_DIMS = 8,
    RO_MAX_ATTRS = 16,
    RO_MAX_INPUTS = 1024,   /* concat of one value per parameter is the widest */
    RO_LANES = 128,         /* SPEC 3.2: lanes of a row reduction */
    RO_REDUCE_BLOCK = 1024, /* SPEC 3.2: largest block of a row reduction */
    RO_COLUMN_GROUP = 64,   /* SPEC 3.3: rows of one group of a column reduction */
    RO_DOT_CHUNK = 256,     /* SPEC 3.1: chunk of a dot product */
    RO_ATTN_BLOCK = 128,    /* SPEC 3.1, 8: key block of attention */
    RO_FIXED_8 = 8,         /* SPEC 3.5: fixed products of integers of 8 bits */
    RO_FIXED_16 = 16,       /* of 16 bits */
    RO_FIXED_24 = 24,       /* of 24 bits */
    RO_CRUMB_LOADS = 4096,  /* most elements that one ro_ref_finish reads */
    RO_STEP_LOADS = 512,    /* most elements that one ro_ref_step reads */
};

/* operators.h lists all operator numbers; op_*.h have them by section of SPEC.md. Operators from
 * RO_OP_EXPERIMENTAL on and element types from RO_DTYPE_EXPERIMENTAL on are experimental (SPEC 1,
 * 15): only the headers of a build with RO_EXPERIMENTAL may have any, and programs that others
 * judge may not use them. */
enum {
    RO_OP_NONE = 0,
    RO_OP_EXPERIMENTAL = 61440,
    RO_DTYPE_EXPERIMENTAL = 128,
#ifdef RO_EXPERIMENTAL
    RO_OP_END = RO_OP_EXPERIMENTAL + 256, /* numbers in between are free */
#else
    RO_OP_END = 512,
#endif
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

typedef enum { RO_MASK_NONE = 0, RO_MASK_UPTO_ROW = 1, RO_MASK_FROM_ROW = 2 } ro_mask;
/* Relations that operator compare tests. */
typedef enum {
    RO_EQUAL = 0,
    RO_NOT_EQUAL = 1,
    RO_LESS = 2,
    RO_AT_MOST = 3,
    RO_GREATER = 4,
    RO_AT_LEAST = 5
} ro_relation;
/* The functions of two integers that operator `integer` computes. */
typedef enum {
    RO_PRODUCT = 0,
    RO_QUOTIENT = 1, /* toward zero */
    RO_REMAINDER = 2,
    RO_FLOOR_QUOTIENT = 3, /* toward minus infinity */
    RO_FLOOR_REMAINDER = 4,
    RO_SHIFT_LEFT = 5,
    RO_SHIFT_RIGHT = 6,
    RO_AND = 7,
    RO_OR = 8,
    RO_XOR = 9,
    RO_SMALLER = 10,
    RO_LARGER = 11
} ro_integer_kind;
/* How operator put_along combines an element with each value that is put there. */
typedef enum {
    RO_PUT_LAST = 0,
    RO_PUT_SUM = 1,
    RO_PUT_PRODUCT = 2,
    RO_PUT_MAX = 3,
    RO_PUT_MIN = 4
} ro_put_kind;
/* The totals of operator running. RO_RUNNING_LOG_SUM is the logarithm of the sum of exp. */
typedef enum { RO_RUNNING_SUM = 0, RO_RUNNING_PRODUCT = 1, RO_RUNNING_LOG_SUM = 2 } ro_running_kind;
/* The direction in which operator round rounds. */
typedef enum { RO_DOWN = 0, RO_UP = 1, RO_NEAREST = 2, RO_TOWARD_ZERO = 3 } ro_round_kind;
typedef enum { RO_LR_CONSTANT = 0, RO_LR_LINEAR = 1, RO_LR_COSINE = 2 } ro_lr_kind;
/* How rope_turns scales frequencies: not at all, all by one factor, or as Llama 3 does. */
typedef enum { RO_ROPE_PLAIN = 0, RO_ROPE_LINEAR = 1, RO_ROPE_LLAMA3 = 2 } ro_rope_kind;

typedef struct {
    const char *name;
    char kind; /* 'i': int64; 'f': binary32 bits, zero-extended */
} ro_attr_info;

/* Which tensor the operator of a gradient reads besides dy. STORED is the argument too, but it may
 * be rounded to 16 bits before it is stored for the backward pass, to save memory. */
typedef enum { RO_READS_ARGUMENT = 0, RO_READS_STORED = 1, RO_READS_RESULT = 2 } ro_gradient_reads;

typedef struct {
    const char *name; /* "matmul" */
    int min_inputs, max_inputs;
    int attr_count;
    ro_attr_info attr[RO_MAX_ATTRS];
    int declared_shape; /* 1: the caller must give the output shape (SPEC 4) */
    /* The operator that computes the gradient of the input from dy and the tensor that
     * gradient_reads names. Its attributes have the values of the attributes of the same names
     * here. RO_OP_NONE: no single operator computes it. */
    int gradient;
    int gradient_reads;      /* ro_gradient_reads */
    const char *no_gradient; /* why no gradient passes through it; NULL: one does */
} ro_op_info;

/* One application of an operator, without data. */
typedef struct {
    int32_t op; /* an operator number from operators.h, such as RO_OP_ADD */
    int32_t input_count;
    /* Attributes, indexed by the names of operators.h, such as RO_MATMUL_ALPHA; unused ones are 0.
     * Those of kind 'f' hold the bits of a float, as ro_attr_f32 gives them. An integer 1 there
     * would be read as 2^-149, which is valid, so that the mistake is not noticed. */
    int64_t attr[RO_MAX_ATTRS];
    const ro_shape *input; /* borrowed, input_count of them */
    ro_shape output;
} ro_call;

/* RO_VERSION of the library that is linked. */
RO_API const char *ro_version(void);

/* Returns NULL if there is no such operator. */
RO_API const ro_op_info *ro_op_describe(int op);

/* Returns a mask: bit i is set if ro_run may be given the same address for the output and for input
 * i, where both have the same number of elements: the input is then overwritten. */
RO_API uint32_t ro_op_in_place(int op);

/* Returns RO_OP_NONE if no operator has this name, or if `name` is NULL. */
RO_API int ro_op_by_name(const char *name);

RO_API int64_t ro_attr_f32(float value);
RO_API float ro_attr_to_f32(int64_t attr);

RO_API size_t ro_dtype_size(int dtype); /* 0 if unknown */
RO_API const char *ro_dtype_name(int dtype);
RO_API int64_t ro_shape_numel(const ro_shape *shape);
/* Returns nonzero if the type is known, there are 1..RO_MAX_DIMS dimensions of at least 0, the
 * product of the positive ones is at most 2^40, and the unused ones are 0. */
RO_API int ro_shape_valid(const ro_shape *shape);
RO_API int ro_shape_equal(const ro_shape *a, const ro_shape *b);

/* Checks a call against SPEC.md: number of inputs, types, shapes, attributes. Any bits in `call`
 * are allowed. If output.ndim is 0 and the operator does not need a declared shape, fills in the
 * output shape; otherwise the given shape must be the right one: set ndim to 0 before a call is
 * used again with other inputs. On error writes a sentence to `why`, which may be NULL. */
RO_API RO_MUST_USE ro_status ro_infer(ro_call *call, char *why, size_t why_size);

/* ---- execution ---- */

typedef struct ro_ctx ro_ctx;

typedef struct {
    uint32_t size; /* sizeof(ro_options) */
    int threads;   /* 0: one per available core */
    /* NULL: the value of REPOPS_CPU, else the best. "cpu" (the best), "scalar", on x86-64 "avx2"
     * and "avx512", on aarch64 "neon"; "cuda:N" (device.h; RO_ERR_DEVICE if it cannot be opened) */
    const char *backend;
    void *(*alloc)(void *user, size_t size, size_t alignment); /* NULL: aligned_alloc */
    void (*free)(void *user, void *block);
    void *user;
    /* NULL: the context has threads of its own. Otherwise it uses the caller's: `parallel` calls
     * body(data) on at most `threads` threads, the calling one included, and returns when all have
     * returned. GOMP_parallel of libgomp and libomp has this signature (flags is 0). */
    void (*parallel)(void (*body)(void *data), void *data, unsigned threads, unsigned flags);
    /* For "cuda:N", otherwise NULL: the cudaStream_t in which the context's calls run, after the
     * work that is already in it. It belongs to that device, outlives the context, and
     * ro_ctx_destroy does not wait for it. NULL: the context creates its own stream. CUDA's default
     * stream 0 must be given as cudaStreamLegacy. */
    void *stream;
    /* With `stream`: allocator of the device memory for ro_alloc and intermediate results; NULL:
     * the context has a pool. Blocks are aligned to 64 bytes and may be used in stream order: work
     * that is already in the stream may use a block after device_free, until the next device_alloc.
     * device_alloc returns NULL on failure (RO_ERR_DEVICE). Both are called with `user`, by the
     * thread that is inside a call of this context. */
    void *(*device_alloc)(void *user, size_t size, void *stream);
    void (*device_free)(void *user, void *block, void *stream);
} ro_options;

/* Worker threads start at the first large call, block while idle, and are created anew after fork.
 * A child of fork does not use the threads of `parallel`, but computes with one thread. Only one
 * thread at a time may use a context. */
/* Creates a context. `options` may be NULL, which means that all members are 0. */
RO_API RO_MUST_USE ro_status ro_ctx_create(const ro_options *options, ro_ctx **out);
RO_API void ro_ctx_destroy(ro_ctx *ctx); /* accepts NULL */
/* Returns the sentence of the context's last failure; for NULL, of this thread's last failed call
 * that had no context. */
RO_API const char *ro_ctx_error(const ro_ctx *ctx);
RO_API const char *ro_ctx_backend(const ro_ctx *ctx);
RO_API int ro_ctx_threads(const ro_ctx *ctx);

/* Runs one operator: SPEC.md defines every bit of `output`. `call` must have passed ro_infer, which
 * sets the output's shape (RO_ERR_ARG if it is missing), and input[i] has the shape call->input[i].
 * The output may be the same memory as an input that ro_op_in_place names; any other overlap is
 * RO_ERR_ARG. The caller's rounding mode and FTZ/DAZ do not affect the result, and are restored. */
RO_API RO_MUST_USE ro_status ro_run(ro_ctx *ctx, const ro_call *call, const void *const *input,
                                    void *output);

/* ---- the context's threads, for work that is not repops' ---- */

/* Handles items [first, last). `worker` is 0 to ro_ctx_threads - 1, different for each thread; 0 is
 * the calling thread. */
typedef void (*ro_task)(void *user, int64_t first, int64_t last, int worker);

/* Handles items [0, count) in pieces that start at multiples of `grain` (at least 1), or in one
 * piece, in any order, and returns when all are done. `us` is a rough estimate of the total time in
 * microseconds with one thread: sleeping threads are woken only if the work takes longer than
 * waking them. The task may not use ctx; it runs with the default rounding mode, without
 * FTZ/DAZ. */
RO_API void ro_parallel_for(ro_ctx *ctx, int64_t count, int64_t grain, double us, ro_task task,
                            void *user);

/* ---- products of strided matrices ---- */

/* Computes c = alpha * op(a) op(b) + beta * c, as in BLAS but row-major: SPEC.md section 3.1
 * defines every bit. op(a) is m x k: a holds it with rows lda apart, or its transpose (k x m) if
 * trans_a is nonzero; likewise b, k x n. For column-major matrices exchange a and b, and m and n.
 *
 * m, n and k may be 0. With alpha = 0 or k = 0, a and b are not read; with beta = 0, c is not read.
 * A leading dimension is at least the width of its matrix's rows, and at least 1. Elements of c's
 * rows beyond n are neither read nor written, so that a, b and c may be parts of one wider matrix,
 * as long as they share no element. Returns RO_ERR_ARG, RO_ERR_MEMORY or, on a device,
 * RO_ERR_DEVICE, with a sentence. */
RO_API RO_MUST_USE ro_status ro_sgemm(ro_ctx *ctx, int trans_a, int trans_b, int64_t m, int64_t n,
                                      int64_t k, float alpha, const float *a, int64_t lda,
                                      const float *b, int64_t ldb, float beta, float *c,
                                      int64_t ldc);

/* Computes `batch` such products; product i uses a + i * stride_a, b + i * stride_b and c + i *
 * stride_c. An input's stride may be 0 (shared by all); no two products may share an element of
 * c. */
RO_API RO_MUST_USE ro_status ro_sgemm_batch(ro_ctx *ctx, int trans_a, int trans_b, int64_t m,
                                            int64_t n, int64_t k, float alpha, const float *a,
                                            int64_t lda, const float *b, int64_t ldb, float beta,
                                            float *c, int64_t ldc, int64_t stride_a,
                                            int64_t stride_b, int64_t stride_c, int64_t batch);

#ifdef __cplusplus
}
#endif
#endif
