/* Updates of parameters, SPEC.md section 9. */
#include "repops/free/updates.h"
#include "repops/free/writer.h"
#include "repops/op_optimizer.h"

/* `op` is a constant where this is inlined: compilers then know which operands are exact or
 * relative. */
RO_INLINE operands operands_of(const ro_free_job *job, int op) {
    operands o = {0};
    switch (op) {
    case RO_OP_ADAMW_M:
    case RO_OP_ADAMW_V:
        o.p = free_at(job, 2, 0), o.q = ap_exact(free_attr(job, RO_MOMENT_BETA));
        o.r = ap_sub(ap_exact(1), o.q);
        return o;
    case RO_OP_ADAMW_W:
        o.p = free_at(job, 3, 0), o.q = free_at(job, 4, 0), o.r = ap_negative(free_at(job, 5, 0));
        o.s = ap_exact(free_attr(job, RO_ADAMW_W_EPS));
        o.t = ap_exact(free_attr(job, RO_ADAMW_W_DECAY));
        return o;
    case RO_OP_SGD_W: o.s = ap_negative(free_at(job, 2, 0)); return o;
    case RO_OP_SGD_M:
    case RO_OP_SGD_NESTEROV:
        o.s = op == RO_OP_SGD_M ? o.s : ap_negative(free_at(job, 4, 0));
        o.p = free_at(job, 3, 0), o.q = ap_exact(free_attr(job, RO_SGD_MOMENTUM));
        o.r = ap_exact(free_attr(job, RO_SGD_DECAY));
        return o;
    default: return o;
    }
}

RO_INLINE void run_update(formula *f, const ro_free_job *job, int op, int64_t first, int64_t last,
                          ro_emitter *t, order how) {
    const operands o = operands_of(job, op);
    /* s is eps of adamw_w: each of its two bounds gets a loop of its own */
    if (op == RO_OP_ADAMW_W && o.s.v >= 0)
        run_formula(f, o, job, first, last, t, how);
    else
        run_formula(f, o, job, first, last, t, how);
}

#define KERNEL(name, op)                                                                           \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order how) {                                                        \
        run_update(name##_of, job, op, first, last, t, how);                                       \
    }                                                                                              \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_contraction(name##_body, job, first, last, t);                                          \
    }                                                                                              \
    RO_FREE_KERNEL(name, .range = name)

KERNEL(adamw_m, RO_OP_ADAMW_M)
KERNEL(adamw_v, RO_OP_ADAMW_V)
KERNEL(adamw_w, RO_OP_ADAMW_W)
KERNEL(sgd_m, RO_OP_SGD_M)
KERNEL(sgd_w, RO_OP_SGD_W)
KERNEL(sgd_nesterov, RO_OP_SGD_NESTEROV)
