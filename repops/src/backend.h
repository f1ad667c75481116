/* What kernels see of a context, and the table of kernels that a context runs.
 *
 * A table starts as the scalar one, which has every operator; each instruction set then replaces
 * the entries that it has. Contract of a kernel: it writes every element of the output, with the
 * bits that SPEC.md defines, for every input that passed ro_infer; it calls nothing of libm; it
 * does not read the output before it wrote it. */
#ifndef REPOPS_BACKEND_H
#define REPOPS_BACKEND_H

#include "repops/fused.h"
#include "repops/src/pool.h"

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

/* A batch of products for ro_sgemm (SPEC.md section 3.1), none of them empty. Element (i, j) of an
 * operand is at i * row + j * col; one of the two steps is 1, and for c that is the column's. */
typedef struct {
    int64_t m, n, k; /* k = 0: dot is +0 */
    const float *a, *b;
    float *c;
    int64_t a_row, a_col, b_row, b_col, c_row;
    int64_t batch, a_next, b_next, c_next; /* steps from one product to the next */
    float alpha, beta;
} ro_products;

/* The tensors of ro_attention_forward and ro_attention_backward; kv_rows is filled in. */
typedef struct {
    const ro_attention *a;
    const float *q, *k, *v;
    float *out, *m, *l; /* m and l may be NULL */
} ro_attention_job;

typedef struct {
    const ro_attention *a;
    const float *q, *k, *v, *out, *m, *l, *dout;
    float *dq, *dk, *dv;
} ro_attention_grad_job;

/* The arguments of ro_cross_entropy. */
typedef struct {
    int64_t rows, cols;
    const float *x;
    const int32_t *ids;
    const float *dloss;
    float *loss, *m, *l, *dx;
} ro_cross_entropy_job;

typedef struct {
    ro_kernel kernel[RO_OP_END];
    ro_status (*sgemm)(ro_ctx *ctx, const ro_products *products);
    ro_status (*attention_forward)(ro_ctx *ctx, const ro_attention_job *job);
    ro_status (*attention_backward)(ro_ctx *ctx, const ro_attention_grad_job *job);
    void (*cross_entropy)(ro_ctx *ctx, const ro_cross_entropy_job *job);
} ro_table;

void ro_table_scalar(ro_table *table);
#if defined(__x86_64__)
void ro_table_avx2(ro_table *table);
void ro_table_avx512(ro_table *table);
#elif defined(__aarch64__)
void ro_table_neon(ro_table *table);
#endif

/* Records the sentence and returns `status`. */
ro_status ro_fail(ro_ctx *ctx, ro_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Workspace that lives until the next call of this function; aligned to 64 bytes, contents
 * undefined. NULL if the allocator has none (after ro_fail). */
void *ro_workspace(ro_ctx *ctx, size_t size);

ro_pool *ro_ctx_pool(ro_ctx *ctx);
const ro_table *ro_ctx_table(const ro_ctx *ctx);

/* Runs `range` over [0, items) of a job, in pieces that are worth a wake-up. The cost of an item is
 * the share of the inputs and the output that it handles. */
void ro_for_items(const ro_job *job, int64_t items,
                  void (*range)(const ro_job *job, int64_t first, int64_t last));

#endif
