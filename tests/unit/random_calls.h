/* Random calls similar to valid ones. */
#ifndef TESTS_RANDOM_CALLS_H
#define TESTS_RANDOM_CALLS_H

#include "valid_calls.h"

#include <string.h>

enum { MANY_INPUTS = 1024 };

/* A call with its own copy of the input shapes. */
typedef struct {
    ro_call call;
    ro_shape input[MANY_INPUTS];
} any_call;

static inline void copy_call(any_call *out, const valid_call *from) {
    memset(out, 0, offsetof(any_call, input) + 16 * sizeof *out->input);
    memcpy(out->input, from->input, sizeof from->input);
    out->call = (ro_call){from->op, from->input_count, {0}, out->input, from->output};
    memcpy(out->call.attr, from->attr, sizeof from->attr);
}

/* SplitMix64 (Steele et al., 2014). */
static inline uint64_t random_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns numbers at which conditions in SPEC.md change, or any bits. */
static inline int64_t random_number(uint64_t *state) {
    /* clang-format off */
    static const int64_t edge[] = {
        0, 1, 2, 3, 4, 5, 6, 8, 64, 65, 127, 128, 129, 256, 257, 1024, 1025, 2047, 2048,
        INT32_MAX, INT32_MIN, UINT32_MAX, -1, -2, 1025, 4097, 1 << 20, (int64_t)1 << 31,
        (int64_t)1 << 32, (int64_t)1 << 40, ((int64_t)1 << 40) + 1, INT64_MAX, INT64_MIN, FLOAT_1,
        RO_QNAN_BITS};
    /* clang-format on */
    const uint64_t h = random_word(state);
    if (h % 16 == 0)
        return (int64_t)random_word(state);
    return h % 2 ? (int64_t)(h >> 8) % 7 : edge[(h >> 8) % (sizeof edge / sizeof edge[0])];
}

static inline void mutate_shape(ro_shape *shape, uint64_t *state) {
    const uint64_t h = random_word(state);
    const int i = (int)((h >> 32) % RO_MAX_DIMS);
    switch (h % 8) {
    case 0: shape->dtype = (int32_t)random_number(state); break;
    case 1: shape->dtype = 1 + i % 4; break;
    case 2: shape->ndim = (int32_t)random_number(state); break;
    case 3:
        if (shape->ndim >= 0 && shape->ndim < RO_MAX_DIMS)
            shape->dim[shape->ndim++] = random_number(state);
        break;
    default: shape->dim[i] = random_number(state); break;
    }
}

/* Changes an attribute, a shape, the operator or the number of inputs. */
static inline void mutate_call(any_call *c, uint64_t *state) {
    const uint64_t h = random_word(state), i = h >> 32;
    switch (h % 16) {
    case 0: c->call.op = (int32_t)random_number(state); break;
    case 1: c->call.op = 1 + (int32_t)(i % RO_OP_END); break;
    case 2: c->call.input_count = (int32_t)random_number(state); break;
    case 3: c->input[i % 7] = c->input[(i >> 8) % 7]; break;
    case 4:
    case 5: mutate_shape(&c->call.output, state); break;
    case 6: c->call.output = (ro_shape){0}; break;
    case 7:
    case 8:
    case 9:
    case 10: c->call.attr[i % RO_MAX_ATTRS] = random_number(state); break;
    default: mutate_shape(&c->input[i % 7], state); break;
    }
}

/* Makes the valid call of `op` with up to four changes. */
static inline void random_call(any_call *c, int op, uint64_t *state) {
    const valid_call from = valid_call_of(op);
    copy_call(c, &from);
    for (uint64_t n = random_word(state) % 5; n > 0; n--)
        mutate_call(c, state);
}

#endif
