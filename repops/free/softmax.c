/* Softmax and cross-entropy, SPEC.md section 7.2. An item is a row. */
#include "repops/free/probabilities.h"
#include "repops/free/writer.h"
#include "repops/op_softmax.h"

/* `op` is a constant where this is inlined, so that the compiler knows the number of roundings. */
RO_INLINE operands operands_of(const ro_free_job *job, int op, int64_t row, order o) {
    const int64_t cols = free_width(job);
    operands x = {.a = free_in(job, 0) + row * cols};
    if (op == RO_OP_SOFTMAX_GRAD || op == RO_OP_LOG_SOFTMAX_GRAD) {
        x.b = free_in(job, 1) + row * cols;
        x.p = free_at(job, 2, row);
    } else {
        const approx l = free_at(job, 2, row);
        x.p = free_at(job, 1, row);
        x.q = op == RO_OP_LOG_SOFTMAX ? log_at(l, o) : inverse(l);
    }
    return x;
}

RO_INLINE void run_rows(formula *f, const ro_free_job *job, int op, int64_t first, int64_t last,
                        ro_emitter *t, order o) {
    const int64_t cols = free_width(job);
    writer w;
    writer_open(&w, t, first * cols);
    for (int64_t row = first; row < last; row++)
        write_each(&w, f, operands_of(job, op, row, o), cols, o);
    writer_flush(&w);
}

RO_INLINE void softmax_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                            order o) {
    run_rows(softmax_of, job, RO_OP_SOFTMAX, first, last, t, o);
}

RO_INLINE void softmax_grad_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                                 order o) {
    run_rows(softmax_grad_of, job, RO_OP_SOFTMAX_GRAD, first, last, t, o);
}

RO_INLINE void log_softmax_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                                order o) {
    run_rows(log_softmax_of, job, RO_OP_LOG_SOFTMAX, first, last, t, o);
}

RO_INLINE void log_softmax_grad_body(const ro_free_job *job, int64_t first, int64_t last,
                                     ro_emitter *t, order o) {
    run_rows(log_softmax_grad_of, job, RO_OP_LOG_SOFTMAX_GRAD, first, last, t, o);
}

/* ---- cross-entropy ---- */

static int64_t losses(const ro_call *call) {
    return ro_shape_numel(&call->input[3]);
}

/* Returns the ignored label, or INT64_MIN, which is no label, for operators that ignore none. */
static inline int64_t ignored(const ro_call *call) {
    return ro_op_describe(call->op)->attr_count ? call->attr[RO_LABELS_IGNORE] : INT64_MIN;
}

RO_INLINE void xent_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                         order o) {
    const int32_t *ids = job->in[3];
    const int64_t cols = free_width(job), ignore = ignored(job->call);
    writer w;
    writer_open(&w, t, first);
    for (int64_t r = first; r < last; r++) {
        if (ids[r] == ignore) {
            write_one(&w, ap_exact(0));
        } else if (ids[r] < 0 || ids[r] >= cols) {
            write_one(&w, ap_exact(REAL_NAN));
        } else {
            const approx x = free_at(job, 0, r * cols + ids[r]), m = free_at(job, 1, r);
            write_one(&w, xent_of(x, m, free_at(job, 2, r), o));
        }
    }
    writer_flush(&w);
}

RO_INLINE void xent_grad_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                              order o) {
    const int32_t *ids = job->in[3];
    const int64_t cols = free_width(job), ignore = ignored(job->call);
    writer w;
    writer_open(&w, t, first * cols);
    for (int64_t row = first; row < last; row++) {
        const int64_t id = ids[row] >= 0 && ids[row] < cols ? ids[row] : cols;
        operands x = operands_of(job, RO_OP_XENT_GRAD, row, o);
        x.r = free_at(job, 4, row);
        if (ids[row] == ignore) {
            write_zeros(&w, cols);
            continue;
        }
        write_each(&w, xent_grad_of, x, id, o);
        if (id == cols)
            continue;
        write_one(&w, xent_grad_hit(x, id, o));
        x.a += id + 1;
        write_each(&w, xent_grad_of, x, cols - id - 1, o);
    }
    writer_flush(&w);
}

#define KERNEL(name)                                                                               \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_order(name##_body, job, first, last, t);                                                \
    }

KERNEL(softmax)
RO_FREE_KERNEL(softmax, .range = softmax, .items = free_rows)
KERNEL(softmax_grad)
RO_FREE_KERNEL(softmax_grad, .range = softmax_grad, .items = free_rows)
KERNEL(log_softmax)
RO_FREE_KERNEL(log_softmax, .range = log_softmax, .items = free_rows)
KERNEL(log_softmax_grad)
RO_FREE_KERNEL(log_softmax_grad, .range = log_softmax_grad, .items = free_rows)
KERNEL(xent)
RO_FREE_KERNEL(xent, .range = xent, .items = losses)
RO_FREE_KERNEL(xent_ignore, .range = xent, .items = losses)
KERNEL(xent_grad)
RO_FREE_KERNEL(xent_grad, .range = xent_grad, .items = free_rows)
RO_FREE_KERNEL(xent_ignore_grad, .range = xent_grad, .items = free_rows)
