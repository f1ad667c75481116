/* The part of a context that kernels see, and the table of kernels that a context runs.
 *
 * A table starts as the scalar one, which has every operator; each instruction set then replaces
 * the entries that it has. Contract of a kernel: it writes every element of the output, with the
 * bits that SPEC.md defines, for every input that passed ro_infer; it calls nothing of libm; it
 * does not read the output before it wrote it. */
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

/* One of: a function of a range of items, which the context calls from several threads; or a
 * function that plans for itself. */
typedef struct {
    void (*range)(const ro_job *job, int64_t first, int64_t last); /* items [first, last) */
    int64_t (*items)(const ro_call *call); /* of `range`; NULL: the elements of the output */
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
    /* NULL on a device: repops/src has others there. */
    ro_status (*rms_norm_backward)(ro_ctx *ctx, const ro_rms_grad_job *job);
    ro_status (*rotary)(ro_ctx *ctx, const ro_rotary_job *job);
    /* Passes x[0..n) through the stages. out may be x, or what a stage reads. NULL on a device. */
    void (*stages)(const ro_stage *stage, int count, const float *x, int64_t n, float *out);
} ro_table;

void ro_table_scalar(ro_table *table);
#if defined(__x86_64__)
void ro_table_avx2(ro_table *table);
void ro_table_avx512(ro_table *table);
#elif defined(__aarch64__)
void ro_table_neon(ro_table *table);
#endif
void ro_table_device(ro_table *table); /* all of it */

/* Records the sentence and returns `status`. */
ro_status ro_fail(ro_ctx *ctx, ro_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Workspace that lives until the next call of this function; aligned to 64 bytes, contents
 * undefined. NULL if the allocator has none (after ro_fail). */
void *ro_workspace(ro_ctx *ctx, size_t size);

/* Memory of the context's allocator, aligned to 64 bytes; NULL without a sentence. */
void *ro_host_alloc(ro_ctx *ctx, size_t size);
void ro_host_free(ro_ctx *ctx, void *block);

ro_pool *ro_ctx_pool(ro_ctx *ctx);
ro_device *ro_ctx_on(const ro_ctx *ctx); /* NULL: the CPU */
/* The first CUDA device, for free kernels of a context on the CPU: opened when it is first asked
 * for. */
ro_status ro_ctx_free_device(ro_ctx *ctx, ro_device **out);
const ro_table *ro_ctx_table(const ro_ctx *ctx);

/* The emitters of free kernels (free.c), kept from call to call: NULL before the first;
 * ro_free_close drops them. */
struct ro_emitter **ro_ctx_emitters(ro_ctx *ctx);
void ro_free_close(ro_ctx *ctx);

/* Items of one piece of work that is worth a wake-up, if `items` of them are all of a call. */
int64_t ro_grain(ro_ctx *ctx, const ro_call *call, int64_t items);
/* As ro_grain, with `elements` of all tensors in a piece of work. */
int64_t ro_grain_of(ro_ctx *ctx, const ro_call *call, int64_t items, int64_t elements);

/* Runs `range` over [0, items) of a job, in pieces that are worth a wake-up. The cost of an item is
 * the share of the inputs and the output that it handles. */
void ro_for_items(const ro_job *job, int64_t items,
                  void (*range)(const ro_job *job, int64_t first, int64_t last));

#endif
