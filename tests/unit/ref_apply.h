/* Applies an operator with the reference to numbers written in a test. */
#ifndef TESTS_REF_APPLY_H
#define TESTS_REF_APPLY_H

#include "op_cases.h"
#include "repops/ref.h"
#include "repops/src/math.h"

#include <criterion/criterion.h>

enum { OUT_MAX = 70000 };

typedef struct {
    ro_call call;
    ro_shape in[CASE_INPUTS];
    const void *data[CASE_INPUTS];
    union {
        float f[OUT_MAX];
        uint32_t bits[OUT_MAX];
        int32_t i[OUT_MAX];
    } out;
} application;

static inline void apply(application *a, int op) {
    memset(a, 0, sizeof *a);
    a->call.op = op;
    a->call.input = a->in;
}

static inline void give(application *a, ro_shape shape, const void *data) {
    a->in[a->call.input_count] = shape;
    a->data[a->call.input_count++] = data;
}

/* Evaluates every element with the reference. */
static inline void evaluate(application *a) {
    char why[200] = "";
    cr_assert(ro_infer(&a->call, why, sizeof why) == RO_OK, "%s", why);
    ro_ref_memory memory = {&a->call, a->data};
    const ro_access in = {ro_ref_load_memory, &memory};
    const int64_t numel = ro_shape_numel(&a->call.output);
    cr_assert(numel <= OUT_MAX);
    for (int64_t e = 0; e < numel; e++)
        a->out.bits[e] = ro_ref_element(&a->call, e, &in);
}

static inline void expect_out(application *a, const uint32_t *want, size_t count, int line) {
    evaluate(a);
    cr_assert(ro_shape_numel(&a->call.output) == (int64_t)count, "line %d: %zu numbers", line,
              count);
    for (size_t e = 0; e < count; e++)
        cr_expect(a->out.bits[e] == want[e], "line %d, element %zu: %08x (%g), expected %08x (%g)",
                  line, e, a->out.bits[e], (double)a->out.f[e], want[e],
                  (double)ro_from_bits(want[e]));
}

/* Compare bit by bit: EXPECT(&a, 1.5f, -0.0f), EXPECT_BITS(&a, 0x7fc00000). */
#define EXPECT(a, ...)                                                                             \
    expect_out(a, (const uint32_t *)(const void *)(const float[]){__VA_ARGS__},                    \
               sizeof((const float[]){__VA_ARGS__}) / sizeof(float), __LINE__)
#define EXPECT_BITS(a, ...)                                                                        \
    expect_out(a, (const uint32_t[]){__VA_ARGS__},                                                 \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), __LINE__)

#define ATTRS(a, ...)                                                                              \
    memcpy((a)->call.attr, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}))
#define F(x) ro_attr_f32(x)

#endif
