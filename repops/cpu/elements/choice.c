/* Comparisons, selection by a condition, and sums of integers: SPEC.md section 6. */
#include "repops/cpu/isa.h"
#include "repops/op_elementwise.h"

/* If `each`, b has an element for every one of a; otherwise b[0] serves all. `kind` is a constant
 * in every call, so that it is inlined. */
#define COMPARE_RUN(name, type)                                                                    \
    RO_INLINE void name(int kind, const type *a, const type *b, int each, int64_t count,           \
                        int32_t *out) {                                                            \
        const type one = b[0];                                                                     \
        RO_SAME_INDEX                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = each ? RO_HOLDS(kind, a[i], b[i]) : RO_HOLDS(kind, a[i], one);                \
    }
COMPARE_RUN(compare_f32_run, float)
COMPARE_RUN(compare_i32_run, int32_t)

#define COMPARE(name, type)                                                                        \
    static void name(const ro_job *job, int kind, int64_t first, int64_t last) {                   \
        const type *a = job->in[0], *b = job->in[1];                                               \
        int32_t *out = job->out;                                                                   \
        const int64_t period = in_numel(job, 1);                                                   \
        for (int64_t i = first, count; i < last; i += count) {                                     \
            const int64_t at = i % period;                                                         \
            const int each = period > 1;                                                           \
            count = each ? min_i64(period - at, last - i) : last - i;                              \
            switch (kind) {                                                                        \
            case RO_EQUAL: name##_run(RO_EQUAL, a + i, b + at, each, count, out + i); break;       \
            case RO_NOT_EQUAL: name##_run(RO_NOT_EQUAL, a + i, b + at, each, count, out + i);      \
                break;                                                                             \
            case RO_LESS: name##_run(RO_LESS, a + i, b + at, each, count, out + i); break;         \
            case RO_AT_MOST: name##_run(RO_AT_MOST, a + i, b + at, each, count, out + i); break;   \
            case RO_GREATER: name##_run(RO_GREATER, a + i, b + at, each, count, out + i); break;   \
            default: name##_run(RO_AT_LEAST, a + i, b + at, each, count, out + i); break;          \
            }                                                                                      \
        }                                                                                          \
    }
COMPARE(compare_f32, float)
COMPARE(compare_i32, int32_t)

static void compare(const ro_job *job, int64_t first, int64_t last) {
    const int kind = (int)job->call->attr[RO_COMPARE_KIND];
    if (job->call->input[0].dtype == RO_F32)
        compare_f32(job, kind, first, last);
    else
        compare_i32(job, kind, first, last);
}
RO_KERNEL(compare, .range = compare)

#define WHERE(type)                                                                                \
    {                                                                                              \
        const type *a = job->in[1], *b = job->in[2];                                               \
        type *out = job->out;                                                                      \
        RO_SAME_INDEX                                                                              \
        for (int64_t i = first; i < last; i++)                                                     \
            out[i] = c[i] ? a[i] : b[i];                                                           \
    }

static void where(const ro_job *job, int64_t first, int64_t last) {
    const int32_t *c = job->in[0];
    switch (ro_dtype_size(job->call->output.dtype)) {
    case 4: WHERE(uint32_t) break;
    case 2: WHERE(uint16_t) break;
    default: WHERE(uint8_t) break;
    }
}
RO_KERNEL(where, .range = where)

/* Unsigned numbers wrap. If `each`, b has an element for every one of a; otherwise b[0] serves
 * all. */
RO_INLINE void iadd_run(const uint32_t *a, const uint32_t *b, int each, int64_t count,
                        uint32_t *out) {
    const uint32_t one = b[0];
    RO_SAME_INDEX
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + (each ? b[i] : one);
}

static void iadd(const ro_job *job, int64_t first, int64_t last) {
    const uint32_t *a = job->in[0], *b = job->in[1];
    uint32_t *out = job->out;
    const int64_t period = in_numel(job, 1);
    if (period == 1) {
        iadd_run(a + first, b, 0, last - first, out + first);
        return;
    }
    for (int64_t i = first, count; i < last; i += count) {
        const int64_t at = i % period;
        count = min_i64(period - at, last - i);
        iadd_run(a + i, b + at, 1, count, out + i);
    }
}
RO_KERNEL(iadd, .range = iadd)
