#include "tests/graphs/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/graphs/dice.h"

/* The kinds of numbers in a tensor: of common magnitude; of any exponent; common with special ones;
 * few distinct ones; all equal; arbitrary bits. */
typedef enum { COMMON, WIDE, SPECIAL, FEW, ONE, BITS, STYLES } style;

static void *block_of(size_t size) {
    void *block = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (!block) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return block;
}

/* ---- numbers, as the bits of f32 ---- */

static uint32_t common(dice *d) {
    const float x = ((float)(dice_word(d) >> 40) * 0x1p-23f - 1) * 2;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint32_t special(dice *d) {
    static const uint32_t bits[] = {
        0x00000000, 0x80000000,                         /* zeros */
        0x7f800000, 0xff800000,                         /* infinities */
        0x7fc00000, 0xffc00000, 0x7f800001, 0x7fc12345, /* NaNs: usual, signalling, payload */
        0x00000001, 0x80000001, 0x007fffff,             /* subnormal */
        0x7f7fffff, 0xff7fffff, 0x00800000,             /* largest and smallest normal numbers */
        0x3f800000, 0xbf800000, 0x42b17218, 0xc2b00000, 0x4b800000, 0x4f000000,
    };
    return bits[dice_below(d, sizeof bits / sizeof bits[0])];
}

static uint32_t wide(dice *d) {
    const uint32_t word = (uint32_t)dice_word(d);
    return (word & 0x807fffff) | (64 + dice_below(d, 128)) << 23;
}

static uint32_t number_of(style s, dice *d) {
    switch (s) {
    case WIDE: return wide(d);
    case SPECIAL: return dice_one_in(d, 12) ? special(d) : common(d);
    case FEW: return dice_one_in(d, 3) ? 0 : dice_one_in(d, 2) ? 0x3f800000 : 0xbf000000;
    case BITS: return (uint32_t)dice_word(d);
    default: return common(d);
    }
}

/* A 16-bit number: the upper half of an f32, or an f16 of medium exponent. */
static uint32_t half_of(int dtype, style s, dice *d) {
    const uint32_t bits = number_of(s, d);
    if (dtype == RO_BF16 || s == BITS)
        return bits >> 16;
    return (bits >> 16 & 0x83ff) | (8 + dice_below(d, 12)) << 10;
}

/* ---- integers ---- */

static int64_t integer_of(const vd_range *range, style s, dice *d) {
    if (range && range->stated) {
        const uint64_t span = (uint64_t)(range->greatest - range->least) + 1;
        return range->least + (int64_t)(dice_word(d) % span);
    }
    switch (s) {
    case BITS: return (int32_t)dice_word(d);
    case WIDE: return (int32_t)(dice_word(d) >> (32 + dice_below(d, 32)));
    case SPECIAL: return dice_one_in(d, 10) ? INT32_MIN + (int)dice_below(d, 2) : dice_below(d, 9);
    case FEW: return dice_below(d, 2);
    default: return dice_below(d, 7);
    }
}

/* ---- tensors ---- */

static void put(void *to, int dtype, int64_t i, uint32_t word) {
    switch (ro_dtype_size(dtype)) {
    case 1: ((uint8_t *)to)[i] = (uint8_t)word; break;
    case 2: ((uint16_t *)to)[i] = (uint16_t)word; break;
    default: ((uint32_t *)to)[i] = word;
    }
}

static uint32_t element_of(int dtype, const vd_range *range, style s, dice *d) {
    switch (dtype) {
    case RO_F32: return number_of(s, d);
    case RO_BF16:
    case RO_F16: return half_of(dtype, s, d);
    default: return (uint32_t)integer_of(range, s, d);
    }
}

/* Half of all tensors are COMMON; otherwise nearly all results would be NaN. */
static style style_of(bool calm, dice *d) {
    return calm || dice_one_in(d, 2) ? COMMON : (style)dice_below(d, STYLES);
}

static void *tensor_of(const ro_shape *shape, const vd_range *range, bool calm, dice *d) {
    const int64_t count = ro_shape_numel(shape);
    const style s = style_of(calm, d);
    void *x = block_of((size_t)count * ro_dtype_size(shape->dtype));
    const uint32_t one = element_of(shape->dtype, range, SPECIAL, d);
    for (int64_t i = 0; i < count; i++)
        put(x, shape->dtype, i, s == ONE ? one : element_of(shape->dtype, range, s, d));
    return x;
}

static int64_t step_of(const vd_program *p, dice *d) {
    switch (dice_below(d, 4)) {
    case 0: return 0;
    case 1: return p->steps - 1;
    case 2: return (int64_t)(dice_word(d) % (uint64_t)p->steps);
    default: return p->steps > 3 ? 3 : p->steps - 1;
    }
}

void values_make(const vd_program *p, uint64_t seed, values *out) {
    dice d = {seed};
    const bool calm = dice_one_in(&d, 3);
    *out = (values){.data = calloc(p->data_count + 1, sizeof *out->data),
                    .state = {.step = step_of(p, &d),
                              .count = p->leaf_count,
                              .tensor = calloc(p->leaf_count, sizeof *out->state.tensor)}};
    for (uint32_t i = 0; out->data && i < p->data_count; i++)
        out->data[i] = tensor_of(&p->data[i].tensor.shape, &p->data[i].range, calm, &d);
    for (uint32_t i = 0; out->state.tensor && i < p->leaf_count; i++)
        out->state.tensor[i] = tensor_of(&p->leaf[i].shape, NULL, calm, &d);
}

void values_free(const vd_program *p, values *v) {
    for (uint32_t i = 0; i < p->data_count; i++)
        free(v->data[i]);
    free(v->data);
    vd_state_free(&v->state);
}

vd_state values_copy(const vd_program *p, const vd_state *state) {
    vd_state copy = {.step = state->step,
                     .count = state->count,
                     .tensor = calloc(state->count, sizeof *copy.tensor)};
    for (uint32_t i = 0; copy.tensor && i < state->count; i++) {
        const size_t size = vd_shape_bytes(&p->leaf[i].shape);
        copy.tensor[i] = memcpy(block_of(size), state->tensor[i], size);
    }
    return copy;
}
