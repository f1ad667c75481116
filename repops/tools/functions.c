#include "repops/tools/functions.h"
#include "repops/cpu/isa.h"

static void exp_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_exp(x[i]);
}

static void log_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_log(x[i]);
}

static void tanh_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_tanh(x[i]);
}

static void erf_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_erf(x[i]);
}

static void rsqrt_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_rsqrt(x[i]);
}

static void sigmoid_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = ro_sigmoid(x[i]);
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
