/* Arithmetic of two operands, of which the second repeats, and of one and a number. SPEC.md section
 * 6. */
#include "repops/cpu/isa.h"

/* A shorter second operand is copied until it is this long, so that loops are worth their start. */
enum { TILE = 512 };

RO_INLINE float calculate(int op, float a, float b) {
    switch (op) {
    case RO_OP_ADD: return a + b;
    case RO_OP_SUB: return a - b;
    case RO_OP_MUL: return a * b;
    case RO_OP_DIV: return a / b;
    case RO_OP_MAX: return ro_max(a, b);
    case RO_OP_MIN: return ro_min(a, b);
    default: return ro_from_bits(RO_QNAN_BITS);
    }
}

RO_INLINE void with_row(int op, const float *a, const float *b, float *out, int64_t count) {
    RO_SAME_INDEX
    for (int64_t i = 0; i < count; i++)
        out[i] = ro_canon(calculate(op, a[i], b[i]));
}

RO_INLINE void with_number(int op, const float *a, float b, float *out, int64_t count) {
    RO_SAME_INDEX
    for (int64_t i = 0; i < count; i++)
        out[i] = ro_canon(calculate(op, a[i], b));
}

/* As many whole periods as fit. Returns their length. */
static int64_t repeat(const float *b, int64_t period, float *tile) {
    const int64_t length = TILE / period * period;
    for (int64_t i = 0; i < length; i += period)
        memcpy(tile + i, b, (size_t)period * sizeof *b);
    return length;
}

/* `op` is a constant wherever this is called. */
RO_INLINE void combine(int op, const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0], *b = job->in[1];
    float *out = job->out, tile[TILE];
    int64_t period = in_numel(job, 1);
    if (period == 1) {
        with_number(op, a + first, b[0], out + first, last - first);
        return;
    }
    if (period < TILE / 2 && last - first > TILE) {
        period = repeat(b, period, tile);
        b = tile;
    }
    for (int64_t i = first; i < last;) {
        const int64_t at = i % period, count = min_i64(period - at, last - i);
        with_row(op, a + i, b + at, out + i, count);
        i += count;
    }
}

static void add(const ro_job *job, int64_t first, int64_t last) {
    combine(RO_OP_ADD, job, first, last);
}

static void sub(const ro_job *job, int64_t first, int64_t last) {
    combine(RO_OP_SUB, job, first, last);
}

static void mul(const ro_job *job, int64_t first, int64_t last) {
    combine(RO_OP_MUL, job, first, last);
}

static void div_by(const ro_job *job, int64_t first, int64_t last) {
    combine(RO_OP_DIV, job, first, last);
}

static void larger(const ro_job *job, int64_t first, int64_t last) {
    combine(RO_OP_MAX, job, first, last);
}

static void smaller(const ro_job *job, int64_t first, int64_t last) {
    combine(RO_OP_MIN, job, first, last);
}

static void scale(const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0];
    with_number(RO_OP_MUL, a + first, attr_f32(job, RO_SCALE_FACTOR), (float *)job->out + first,
                last - first);
}

static void div_const(const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0];
    with_number(RO_OP_DIV, a + first, attr_f32(job, RO_DIV_CONST_DIVISOR),
                (float *)job->out + first, last - first);
}

void RO_NAME(ro_add_arithmetic)(ro_table *table) {
    table->kernel[RO_OP_ADD] = (ro_kernel){.range = add};
    table->kernel[RO_OP_SUB] = (ro_kernel){.range = sub};
    table->kernel[RO_OP_MUL] = (ro_kernel){.range = mul};
    table->kernel[RO_OP_DIV] = (ro_kernel){.range = div_by};
    table->kernel[RO_OP_MAX] = (ro_kernel){.range = larger};
    table->kernel[RO_OP_MIN] = (ro_kernel){.range = smaller};
    table->kernel[RO_OP_SCALE] = (ro_kernel){.range = scale};
    table->kernel[RO_OP_DIV_CONST] = (ro_kernel){.range = div_const};
}
