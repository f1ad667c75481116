/* The part of a context that kernels see, and the table of kernels that a context runs.
 *
 * A table starts as the scalar one, which has every operator; each instruction set then replaces
 * the entries that it implements. Contract of a kernel: it writes every element of the output, with
 * the bits that SPEC.md defines, for every input that passed ro_infer; it calls nothing of libm; it
 * does not read an output element before it has written it. */
#ifndef REPOPS_BACKEND_H
#define REPOPS_BACKEND_H

#include "repops/src/device.h"
#include "repops/src/pool.h"
#include "repops/src/stages.h"

typedef struct {
    ro_ctx *ctx;
    const ro_call *call;
    const void *const *in;
    void *out;
} ro_job;

/* A kernel is either a function of a range of items, which the context calls from several threads,
 * or a function `run` that distributes its work itself. */
typedef struct {
    void (*range)(const ro_job *job, int64_t first, int64_t last); /* items [first, last) */
    int64_t (*items)(const ro_call *call); /* items of `range`; NULL: one per output element */
    ro_status (*run)(const ro_job *job);
} ro_kernel;

typedef struct {
    ro_kernel kernel[RO_OP_END];
    ro_status (*sgemm)(ro_ctx *ctx, const ro_products *products);
    ro_status (*linear)(ro_ctx *ctx, const ro_linear_job *job);
    ro_status (*attention_forward)(ro_ctx *ctx, const ro_attention_job *job);
    ro_status (*attention_backward)(ro_ctx *ctx, const ro_attention_grad_job *job);
    ro_status (*cross_entropy)(ro_ctx *ctx, const ro_cross_entropy_job *job);
    ro_status (*adamw)(ro_ctx *ctx, int64_t count, const ro_adamw_job *job);
    ro_status (*layer_norm)(ro_ctx *ctx, const ro_row_job *job);
    ro_status (*layer_norm_backward)(ro_ctx *ctx, const ro_row_grad_job *job);
    ro_status (*softmax)(ro_ctx *ctx, const ro_row_job *job);
    ro_status (*softmax_backward)(ro_ctx *ctx, const ro_row_grad_job *job);
    ro_status (*log_softmax)(ro_ctx *ctx, const ro_row_job *job);
    ro_status (*log_softmax_backward)(ro_ctx *ctx, const ro_row_grad_job *job);
    ro_status (*sgd)(ro_ctx *ctx, const ro_sgd_job *job);
    ro_status (*adamw_bf16)(ro_ctx *ctx, const ro_adamw_bf16_job *job);
    ro_status (*embedding_backward)(ro_ctx *ctx, const ro_embedding_job *job);
    ro_status (*rms_norm)(ro_ctx *ctx, const ro_row_job *job);
    /* NULL on a device: repops/src runs operators there instead. */
    ro_status (*rms_norm_backward)(ro_ctx *ctx, const ro_rms_grad_job *job);
    ro_status (*rotary)(ro_ctx *ctx, const ro_rotary_job *job);
    /* Passes x[0..n) through the stages. `out` may be x or a stage's operand. NULL on a device. */
    void (*stages)(const ro_stage *stage, int count, const float *x, int64_t n, float *out);
} ro_table;

void ro_table_scalar(ro_table *table);
#if defined(__x86_64__)
void ro_table_avx2(ro_table *table);
void ro_table_avx512(ro_table *table);
#elif defined(__aarch64__)
void ro_table_neon(ro_table *table);
#endif
void ro_table_device(ro_table *table); /* fills in the whole table */

/* Records the sentence and returns `status`. */
ro_status ro_fail(ro_ctx *ctx, ro_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns a workspace that is valid until the next call of this function; aligned to 64 bytes,
 * contents undefined. NULL if the allocator has no memory (after ro_fail). */
void *ro_workspace(ro_ctx *ctx, size_t size);

/* Returns memory of the context's allocator, aligned to 64 bytes, or NULL without a sentence. */
void *ro_host_alloc(ro_ctx *ctx, size_t size);
void ro_host_free(ro_ctx *ctx, void *block);

ro_pool *ro_ctx_pool(ro_ctx *ctx);
ro_device *ro_ctx_on(const ro_ctx *ctx); /* NULL: the CPU */
/* Gives the first CUDA device, for free kernels of a CPU context; the first call opens it. */
ro_status ro_ctx_free_device(ro_ctx *ctx, ro_device **out);
const ro_table *ro_ctx_table(const ro_ctx *ctx);

/* The emitters of free kernels (free.c) are kept from call to call: NULL before the first;
 * ro_free_close frees them. */
struct ro_emitter **ro_ctx_emitters(ro_ctx *ctx);
void ro_free_close(ro_ctx *ctx);

/* Returns how many of the call's `items` make a piece of work that is worth waking a thread. */
int64_t ro_grain(ro_ctx *ctx, const ro_call *call, int64_t items);
/* Like ro_grain, where a piece of work should have `elements` elements of all tensors together. */
int64_t ro_grain_of(ro_ctx *ctx, const ro_call *call, int64_t items, int64_t elements);

/* Runs `range` over [0, items) of a job, in pieces that are worth waking a thread. The cost of an
 * item is taken to be its share of all elements of inputs and output. */
void ro_for_items(const ro_job *job, int64_t items,
                  void (*range)(const ro_job *job, int64_t first, int64_t last));

#endif
