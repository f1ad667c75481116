/* Layer norm and RMS norm except their sums, SPEC.md sections 7.1 and 7.3. An item is a row. */
#include "repops/free/norms.h"
#include "repops/free/writer.h"
#include "repops/op_norm.h"

/* `op` is a constant where this is inlined: compilers then know which operands are exact or
 * relative. */
RO_INLINE operands operands_of(const ro_free_job *job, int op, int64_t row) {
    const int64_t cols = free_width(job);
    const float *x = free_in(job, 0) + row * cols;
    const approx n = ap_exact((real)cols);
    switch (op) {
    case RO_OP_LAYERNORM:
        return (operands){.a = x,
                          .b = free_in(job, 3),
                          .c = free_in(job, 4),
                          .p = free_at(job, 1, row),
                          .q = free_at(job, 2, row)};
    case RO_OP_LN_DX:
        return (operands){.a = x,
                          .b = free_in(job, 1),
                          .c = free_in(job, 2) + row * cols,
                          .p = free_at(job, 3, row),
                          .q = free_at(job, 4, row),
                          .r = ap_div_exact(free_at(job, 5, row), n.v),
                          .s = ap_div_exact(free_at(job, 6, row), n.v)};
    case RO_OP_RMSNORM: return (operands){.a = x, .b = free_in(job, 2), .q = free_at(job, 1, row)};
    case RO_OP_RMS_DX:
        return (operands){.a = x,
                          .b = free_in(job, 1),
                          .c = free_in(job, 2) + row * cols,
                          .q = free_at(job, 3, row),
                          .s = ap_div_exact(free_at(job, 4, row), n.v)};
    default: return (operands){0};
    }
}

RO_INLINE void run_rows(formula *f, const ro_free_job *job, int op, int64_t first, int64_t last,
                        ro_emitter *t, order o) {
    const int64_t cols = free_width(job);
    writer w;
    writer_open(&w, t, first * cols);
    for (int64_t row = first; row < last; row++)
        write_each(&w, f, operands_of(job, op, row), cols, o);
    writer_flush(&w);
}

#define KERNEL(name, op)                                                                           \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order o) {                                                          \
        run_rows(name##_of, job, op, first, last, t, o);                                           \
    }                                                                                              \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_contraction(name##_body, job, first, last, t);                                          \
    }                                                                                              \
    RO_FREE_KERNEL(name, .range = name, .items = free_rows)

KERNEL(layernorm, RO_OP_LAYERNORM)
KERNEL(ln_dx, RO_OP_LN_DX)
KERNEL(rmsnorm, RO_OP_RMSNORM)
KERNEL(rms_dx, RO_OP_RMS_DX)

static void ln_rstd(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    const operands o = {.p = ap_exact((real)job->call->attr[RO_LN_RSTD_N]),
                        .q = ap_exact(free_attr(job, RO_LN_RSTD_EPS))};
    run_formula(ln_rstd_of, o, job, first, last, t, (order){0, 0});
}
RO_FREE_KERNEL(ln_rstd, .range = ln_rstd)
