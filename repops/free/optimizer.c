/* Updates of parameters, SPEC.md section 9. */
#include "repops/free/writer.h"

/* p: clip; q: beta; r: 1 - beta. */
RO_INLINE approx adamw_m_of(operands o, int64_t i, order how) {
    return ap_mul_add(o.q, at(o.a, i), ap_mul(o.r, ap_mul(at(o.b, i), o.p)), how);
}

RO_INLINE approx adamw_v_of(operands o, int64_t i, order how) {
    const approx g = ap_mul(at(o.b, i), o.p);
    return ap_mul_add(o.q, at(o.a, i), ap_mul(o.r, ap_mul(g, g)), how);
}

/* p: c1; q: c2; r: -lr; s: eps; t: decay. The root halves the error of v / c2. */
RO_INLINE approx adamw_w_of(operands o, int64_t i, order how) {
    const approx w = at(o.a, i), m = ap_relative((real)o.b[i] / o.p.v, 1);
    const approx root = ap_relative(ap_sqrt_of((real)o.c[i] / o.q.v), 2);
    const approx u = ap_div(m, ap_add(root, o.s));
    return ap_mul_add(o.r, ap_mul_add(o.t, w, u, how), w, how);
}

/* p: clip; q: momentum; r: decay. */
RO_INLINE approx decayed(approx g, approx w, operands o, order how) {
    return ap_mul_add(o.r, w, ap_mul(g, o.p), how);
}

RO_INLINE approx sgd_m_of(operands o, int64_t i, order how) {
    return ap_mul_add(o.q, at(o.a, i), decayed(at(o.b, i), at(o.c, i), o, how), how);
}

/* s: -lr. */
RO_INLINE approx sgd_w_of(operands o, int64_t i, order how) {
    return ap_mul_add(o.s, at(o.b, i), at(o.a, i), how);
}

RO_INLINE approx sgd_nesterov_of(operands o, int64_t i, order how) {
    const approx w = at(o.a, i), d = decayed(at(o.c, i), w, o, how);
    return ap_mul_add(o.s, ap_mul_add(o.q, at(o.b, i), d, how), w, how);
}

RO_INLINE operands operands_of(const ro_free_job *job) {
    const approx a0 = ap_exact(free_attr(job, 0)), a1 = ap_exact(free_attr(job, 1));
    switch (job->call->op) {
    case RO_OP_ADAMW_M:
    case RO_OP_ADAMW_V:
        return (operands){.p = free_at(job, 2, 0), .q = a0, .r = ap_sub(ap_exact(1), a0)};
    case RO_OP_ADAMW_W:
        return (operands){.p = free_at(job, 3, 0),
                          .q = free_at(job, 4, 0),
                          .r = ap_negative(free_at(job, 5, 0)),
                          .s = a0,
                          .t = a1};
    case RO_OP_SGD_W: return (operands){.s = ap_negative(free_at(job, 2, 0))};
    default: break;
    }
    operands o = {.p = free_at(job, 3, 0), .q = a0, .r = a1};
    if (job->call->op == RO_OP_SGD_NESTEROV)
        o.s = ap_negative(free_at(job, 4, 0));
    return o;
}

#define KERNEL(name)                                                                               \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order o) {                                                          \
        run_formula(name##_of, operands_of(job), job, first, last, t, o);                          \
    }                                                                                              \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_contraction(name##_body, job, first, last, t);                                          \
    }

KERNEL(adamw_m)
KERNEL(adamw_v)
KERNEL(adamw_w)
KERNEL(sgd_m)
KERNEL(sgd_w)
KERNEL(sgd_nesterov)

const ro_free_kernel *RO_FREE_NAME(ro_free_optimizer)(int op) {
    static const ro_free_kernel kernel[RO_OP_END] = {
        [RO_OP_ADAMW_M] = {.range = adamw_m}, [RO_OP_ADAMW_V] = {.range = adamw_v},
        [RO_OP_ADAMW_W] = {.range = adamw_w}, [RO_OP_SGD_M] = {.range = sgd_m},
        [RO_OP_SGD_W] = {.range = sgd_w},     [RO_OP_SGD_NESTEROV] = {.range = sgd_nesterov},
    };
    return free_kernel_in(kernel, op);
}
