/* The tests that a referee runs on itself before it judges anybody. */
#include <stdio.h>

#include "repops/ref/ref.h"
#include "repops/op_product.h"

static ro_status fail(char *why, size_t size, const char *what) {
    if (why && size)
        snprintf(why, size, "self-test of the reference: %s", what);
    return RO_ERR_DEVICE;
}

/* Volatile numbers are computed now, in this thread's floating-point modes. */
static const char *environment(void) {
    volatile float one = 1.0f, half_ulp = 0x1p-24f, tiny = 0x1p-126f, half = 0.5f;
    volatile float tie = one + half_ulp, above = one + 0x1.8p-23f, below = -one - half_ulp;
    if (tie != 1.0f || above != 1.0f + 0x1p-22f || below != -1.0f)
        return "rounding is not to nearest even";
    volatile float sub = tiny * half, twice = sub + sub;
    if (sub == 0.0f || twice != tiny)
        return "subnormals are flushed to zero";
    if (ro_to_bits(ro_fma(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f)) != UINT32_C(0x28800000))
        return "fma is not fused";
    return NULL;
}

static const char *functions(void) {
    static const struct {
        uint32_t exp, log, tanh;
        float x;
    } golden[] = {
        {UINT32_C(0x402df854), UINT32_C(0x00000000), UINT32_C(0x3f42f7d6), 1.0f},
        {UINT32_C(0x3fd3094c), UINT32_C(0xbf317218), UINT32_C(0x3eec9a9f), 0.5f},
        {UINT32_C(0x41f13738), UINT32_C(0x3f9ce0da), UINT32_C(0x3f7f6ffd), 0x1.b4p1f},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        volatile float x = golden[i].x;
        if (ro_to_bits(ro_exp(x)) != golden[i].exp || ro_to_bits(ro_log(x)) != golden[i].log ||
            ro_to_bits(ro_tanh(x)) != golden[i].tanh)
            return "an elementary function gives other bits";
    }
    return NULL;
}

/* 300 terms cross a chunk of SPEC 3.1: the order shows in the last bits. */
static const char *dot(void) {
    float a[300], b[300];
    for (int i = 0; i < 300; i++) {
        a[i] = 1.0f / (float)(i + 1);
        b[i] = (float)(i % 7) - 2.5f;
    }
    ro_shape shape[2] = {{RO_F32, 2, {1, 300}}, {RO_F32, 2, {300, 1}}};
    ro_call call = {
        RO_OP_MATMUL, 2, {0, 0, ro_attr_f32(1), RO_DOT_CHUNK, 0}, shape, {RO_F32, 2, {1, 1}}};
    const void *data[2] = {a, b};
    ro_ref_memory memory = {&call, data};
    ro_access in = {ro_ref_load_memory, &memory};
    return ro_ref_element(&call, 0, &in) == UINT32_C(0xbf3f0a45) ? NULL
                                                                 : "a dot product gives other bits";
}

ro_status ro_ref_self_test(char *why, size_t why_size) {
    const char *wrong = environment();
    if (!wrong)
        wrong = functions();
    if (!wrong)
        wrong = dot();
    return wrong ? fail(why, why_size, wrong) : RO_OK;
}
