/* Layer norm and RMS norm but for their sums, SPEC.md sections 7.1 and 7.3. An item is a row. */
#include "repops/free/writer.h"

RO_INLINE approx normal_of(approx x, approx mean, approx rstd) {
    return ap_mul(ap_sub(x, mean), rstd);
}

RO_INLINE approx ln_rstd_of(operands o, int64_t i, order how) {
    const approx mean = ap_div_exact(at(o.a, i), o.p.v), square = ap_add(mean, o.q);
    (void)how;
    /* the root halves a small relative error; a large one has a root of its own */
    const real root = ap_sqrt_of(square.v);
    const approx r = {root, square.e / ap_size(root) + RO_UNIT * ap_size(root)};
    return ap_div(ap_exact(1), r);
}

RO_INLINE approx layernorm_of(operands o, int64_t i, order how) {
    const approx xh = normal_of(at(o.a, i), o.p, o.q);
    return ap_mul_add(xh, at(o.b, i), at(o.c, i), how);
}

/* p, q: mean and rstd; r, s: sg / n and sgx / n. */
RO_INLINE approx ln_dx_of(operands o, int64_t i, order how) {
    const approx g = ap_mul(at(o.a, i), at(o.b, i)), xh = normal_of(at(o.c, i), o.p, o.q);
    return ap_mul(o.q, ap_mul_add(ap_negative(xh), o.s, ap_sub(g, o.r), how));
}

RO_INLINE approx rmsnorm_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_mul(ap_mul(at(o.a, i), o.q), at(o.b, i));
}

RO_INLINE approx rms_dx_of(operands o, int64_t i, order how) {
    const approx g = ap_mul(at(o.a, i), at(o.b, i)), xh = ap_mul(at(o.c, i), o.q);
    return ap_mul(o.q, ap_mul_add(ap_negative(xh), o.s, g, how));
}

RO_INLINE operands operands_of(const ro_free_job *job, int64_t row) {
    const int64_t cols = free_width(job);
    const float *x = free_in(job, 0) + row * cols;
    const approx n = ap_exact((real)cols);
    switch (job->call->op) {
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
    default: /* rms_dx */
        return (operands){.a = x,
                          .b = free_in(job, 1),
                          .c = free_in(job, 2) + row * cols,
                          .q = free_at(job, 3, row),
                          .s = ap_div_exact(free_at(job, 4, row), n.v)};
    }
}

RO_INLINE void run_rows(formula *f, const ro_free_job *job, int64_t first, int64_t last,
                        ro_emitter *t, order o) {
    const int64_t cols = free_width(job);
    writer w;
    writer_open(&w, t, first * cols);
    for (int64_t row = first; row < last; row++)
        write_each(&w, f, operands_of(job, row), cols, o);
    writer_flush(&w);
}

#define KERNEL(name)                                                                               \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order o) {                                                          \
        run_rows(name##_of, job, first, last, t, o);                                               \
    }                                                                                              \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_contraction(name##_body, job, first, last, t);                                          \
    }

KERNEL(layernorm)
KERNEL(ln_dx)
KERNEL(rmsnorm)
KERNEL(rms_dx)

static void ln_rstd(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    const operands o = {.p = ap_exact((real)job->call->attr[0]), .q = ap_exact(free_attr(job, 1))};
    run_formula(ln_rstd_of, o, job, first, last, t, (order){0, 0});
}

const ro_free_kernel *RO_FREE_NAME(ro_free_norm)(int op) {
    static const ro_free_kernel kernel[RO_OP_END] = {
        [RO_OP_LN_RSTD] = {.range = ln_rstd},
        [RO_OP_LAYERNORM] = {.range = layernorm, .items = free_rows},
        [RO_OP_LN_DX] = {.range = ln_dx, .items = free_rows},
        [RO_OP_RMSNORM] = {.range = rmsnorm, .items = free_rows},
        [RO_OP_RMS_DX] = {.range = rms_dx, .items = free_rows},
    };
    return free_kernel_in(kernel, op);
}
