/* Functions that compute in binary64, SPEC.md section 2.9: plain loops that compilers vectorise. */
#include "repops/cpu/isa.h"
#include "repops/op_number.h"
#include "repops/src/wide_functions.h"

#define FUNCTION(name)                                                                             \
    static void name##_all(const ro_job *job, int64_t first, int64_t last) {                       \
        const float *x = job->in[0];                                                               \
        float *out = job->out;                                                                     \
        RO_SAME_INDEX                                                                              \
        for (int64_t i = first; i < last; i++)                                                     \
            out[i] = ro_##name(x[i]);                                                              \
    }                                                                                              \
    RO_KERNEL(name, .range = name##_all)
RO_WIDE_FUNCTIONS(FUNCTION)

/* Large arguments are rare, and are computed after all others, so that the loop over the others can
 * be vectorised. The output may be the input, so a block's results wait in a buffer until all are
 * computed. */
enum { BLOCK = 256 };

#define TURNED(name)                                                                               \
    static void name##_large(const float *x, int64_t count, float *out) {                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            if (ro_is_large_turn(x[i]))                                                            \
                out[i] = ro_##name##_large(x[i]);                                                  \
    }                                                                                              \
    static void name##_block(const float *x, int64_t count, float *out) {                          \
        int large = 0;                                                                             \
        float y[BLOCK];                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            large |= ro_is_large_turn(x[i]);                                                       \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = ro_##name##_small(x[i]);                                                        \
        if (large)                                                                                 \
            name##_large(x, count, y);                                                             \
        memcpy(out, y, (size_t)count * sizeof *y);                                                 \
    }                                                                                              \
    static void name##_all(const ro_job *job, int64_t first, int64_t last) {                       \
        const float *x = job->in[0];                                                               \
        float *out = job->out;                                                                     \
        for (int64_t i = first; i < last; i += BLOCK)                                              \
            name##_block(x + i, min_i64(BLOCK, last - i), out + i);                                \
    }                                                                                              \
    RO_KERNEL(name, .range = name##_all)
RO_TURNED_FUNCTIONS(TURNED)

/* If `each`, b has an element for every one of a; otherwise b[0] serves all. */
#define FUNCTION_OF_TWO(name)                                                                      \
    static void name##_run(const float *a, const float *b, int each, int64_t count, float *out) {  \
        const float one = b[0];                                                                    \
        RO_SAME_INDEX                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = ro_##name(a[i], each ? b[i] : one);                                           \
    }                                                                                              \
    static void name##_all(const ro_job *job, int64_t first, int64_t last) {                       \
        const float *a = job->in[0], *b = job->in[1];                                              \
        float *out = job->out;                                                                     \
        const int64_t period = in_numel(job, 1);                                                   \
        for (int64_t i = first, count; i < last; i += count) {                                     \
            const int64_t at = i % period;                                                         \
            const int each = period > 1;                                                           \
            count = each ? min_i64(period - at, last - i) : last - i;                              \
            name##_run(a + i, b + at, each, count, out + i);                                       \
        }                                                                                          \
    }                                                                                              \
    RO_KERNEL(name, .range = name##_all)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(pow)
