#include "repops/tools/functions.h"
#include "repops/cpu/elements/functions.h"

#define FUNCTION(name, kind)                                                                       \
    RO_INLINE wide name##_of(wide x, constants s) {                                                \
        (void)s;                                                                                   \
        return kind##_##name(x);                                                                   \
    }                                                                                              \
    static void name##_all(float *x, int64_t count) {                                              \
        map(name##_of, (constants){0}, x, count, x);                                               \
    }
FUNCTION(exp, fast)
FUNCTION(log, fast)
FUNCTION(tanh, wide)
FUNCTION(erf, wide)
FUNCTION(sigmoid, wide)
#undef FUNCTION

static void rsqrt_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_rsqrt(x[i]);
}

static void sin_turn_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_sin_turn(ro_to_bits(x[i]));
}

static void cos_turn_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_cos_turn(ro_to_bits(x[i]));
}

const elementary RO_NAME(ro_elementary)[] = {
    {"exp", exp_all},           {"log", log_all},           {"tanh", tanh_all},
    {"erf", erf_all},           {"rsqrt", rsqrt_all},       {"sigmoid", sigmoid_all},
    {"sin_turn", sin_turn_all}, {"cos_turn", cos_turn_all}, {NULL, NULL},
};
