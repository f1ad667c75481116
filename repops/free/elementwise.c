/* Arithmetic, SPEC.md section 6. */
#include "repops/free/activations.h"
#include "repops/free/arithmetic.h"
#include "repops/free/writer.h"
#include "repops/op_elementwise.h"

static const order any_order = {0, 0};

/* Runs a formula of two tensors whose result is exact. b repeats along a, or is one number. */
RO_INLINE void run_pair(formula *f, const ro_free_job *job, int64_t first, int64_t last,
                        ro_emitter *t) {
    const int64_t period = free_numel(job, 1);
    const float *b = free_in(job, 1);
    float repeated[RO_EMIT_MAX];
    writer w;
    writer_open_exact(&w, t, first);
    for (int64_t i = first; i < last;) {
        const int64_t from = i % period;
        operands o = {.a = free_in(job, 0) + i, .b = b + from};
        int64_t n = min_i64(period - from, last - i);
        if (period < RO_EMIT_MAX) {
            n = min_i64(RO_EMIT_MAX, last - i);
            for (int64_t j = 0, k = from; j < n; j++, k = k + 1 < period ? k + 1 : 0)
                repeated[j] = b[k];
            o.b = repeated;
        }
        write_each(&w, f, o, n, any_order);
        i += n;
    }
    writer_flush(&w);
}

static void add(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_pair(add_of, job, first, last, t);
}
RO_FREE_KERNEL(add, .range = add)

static void sub(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_pair(sub_of, job, first, last, t);
}
RO_FREE_KERNEL(sub, .range = sub)

static void mul(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_pair(mul_of, job, first, last, t);
}
RO_FREE_KERNEL(mul, .range = mul)

static void divide(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_pair(div_of, job, first, last, t);
}
RO_FREE_KERNEL(div, .range = divide)

RO_INLINE void run_single(formula *f, real number, const ro_free_job *job, int64_t first,
                          int64_t last, ro_emitter *t) {
    const operands o = {.p = ap_exact(number)};
    run_formula(f, o, job, first, last, t, any_order);
}

static void div_const(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_single(div_const_of, free_attr(job, RO_DIV_CONST_DIVISOR), job, first, last, t);
}
RO_FREE_KERNEL(div_const, .range = div_const)

static void scale(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_single(scale_of, free_attr(job, RO_SCALE_FACTOR), job, first, last, t);
}
RO_FREE_KERNEL(scale, .range = scale)

static void sqrt_all(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_single(sqrt_of, 0, job, first, last, t);
}
RO_FREE_KERNEL(sqrt, .range = sqrt_all)

static void rsqrt_all(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    run_single(rsqrt_of, 0, job, first, last, t);
}
RO_FREE_KERNEL(rsqrt, .range = rsqrt_all)
