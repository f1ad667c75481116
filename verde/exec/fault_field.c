/* Corruptions as observed in the field, drawn from a seed: step, node, elements and kind. Of 100
 * draws about 35 flip one bit and one makes a NaN or an infinity; others alter several bits or
 * elements, or keep an old value. */
#include <string.h>

#include "verde/exec/fault_field.h"
#include "verde/exec/memory.h"

enum { LANES = 16, BURST_MAX = 64, BITS_MAX = 8, ELEMENT_BYTES = 8 };

/* Shares of the kinds in percent, cumulated. */
static const struct {
    vd_field field;
    uint32_t upto;
    const char *name;
} shares[VD_FIELDS] = {
    {VD_FIELD_BIT, 35, "one bit of an element"},
    {VD_FIELD_BITS, 67, "several bits of an element"},
    {VD_FIELD_BURST, 83, "neighbours in a row"},
    {VD_FIELD_LANE, 92, "a stuck bit of every 16th element"},
    {VD_FIELD_STALE, 99, "an element of another step"},
    {VD_FIELD_NOT_FINITE, 100, "an element that is not finite"},
};

/* SplitMix64 (Steele et al., 2014). */
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t count) {
    return (uint32_t)(next(state) % count);
}

const char *vd_field_name(vd_field field) {
    return shares[field].name;
}

bool vd_field_repeats(vd_field field) {
    return field == VD_FIELD_LANE;
}

/* ---- drawing ---- */

static bool is_real(int32_t dtype) {
    return dtype == RO_F32 || dtype == RO_BF16 || dtype == RO_F16;
}

/* Returns which input of the node that makes a leaf is the leaf's old value; -1: none. */
static int32_t old_input(const vd_program *program, uint32_t leaf, uint32_t *node) {
    const vd_graph *g = &program->step;
    *node = g->output[leaf] - vd_source_count(program, g);
    const int32_t inputs = vd_node_stored(g, *node)->input_count;
    for (int32_t i = 0; i < inputs; i++)
        if (vd_node_input(g, *node, i) == leaf)
            return i;
    return -1;
}

/* Draws a node that updates a leaf; false: there is none. */
static bool draw_update(const vd_program *program, uint64_t *seed, vd_fault *out) {
    const uint32_t from = below(seed, program->leaf_count);
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        const uint32_t leaf = (from + i) % program->leaf_count;
        const int32_t input = old_input(program, leaf, &out->node);
        if (input >= 0) {
            out->bit = (uint32_t)input;
            return true;
        }
    }
    return false;
}

/* Draws a node whose elements can be infinite; false: there is none. */
static bool draw_real(const vd_graph *g, uint64_t *seed, vd_fault *out) {
    const uint32_t from = below(seed, g->node_count);
    for (uint32_t i = 0; i < g->node_count; i++) {
        out->node = (from + i) % g->node_count;
        if (is_real(vd_node_stored(g, out->node)->shape.dtype))
            return true;
    }
    return false;
}

static uint32_t draw_mask(uint64_t *seed) {
    uint32_t mask = 0;
    for (uint32_t i = 2 + below(seed, BITS_MAX - 1); i > 0; i--)
        mask |= UINT32_C(1) << below(seed, 32);
    return mask;
}

void vd_field_draw(uint64_t seed, const vd_program *program, vd_fault *out) {
    uint64_t state = seed;
    *out = (vd_fault){.kind = VD_FAULT_FIELD, .seed = seed};
    out->step = (int64_t)(next(&state) % ((uint64_t)program->steps + 1)) - 1;
    const vd_graph *g = out->step < 0 ? &program->init : &program->step;
    const uint32_t share = 1 + below(&state, 100);
    while (share > shares[out->field].upto)
        out->field++;
    out->node = below(&state, g->node_count);
    out->element = (uint32_t)next(&state);
    out->bit = below(&state, 32);
    out->mask = draw_mask(&state);
    const bool found = out->field == VD_FIELD_STALE
                           ? out->step >= 0 && draw_update(program, &state, out)
                       : out->field == VD_FIELD_NOT_FINITE ? draw_real(g, &state, out)
                                                           : true;
    if (!found) {
        out->field = VD_FIELD_BITS;
        out->node = below(&state, g->node_count);
    }
}

/* ---- altering ---- */

/* Clears and flips bits of an element, which may have fewer than 32 bits. */
static void alter_element(void *output, size_t size, uint64_t index, uint32_t clear,
                          uint32_t flip) {
    uint8_t *at = (uint8_t *)output + index * size, bytes[ELEMENT_BYTES] = {0};
    uint32_t bits = 0;
    memcpy(bytes, at, size);
    vd_from_little(bytes, size, size);
    for (size_t i = 0; i < size && i < 4; i++)
        bits |= (uint32_t)bytes[i] << 8 * i;
    bits = (bits & ~clear) ^ flip;
    for (size_t i = 0; i < size && i < 4; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    vd_from_little(bytes, size, size);
    memcpy(at, bytes, size);
}

/* Folds a mask of 32 bits into an element's width, with at least one bit set. */
static uint32_t fold_mask(uint32_t mask, size_t size) {
    const uint32_t within = size >= 4 ? UINT32_MAX : (UINT32_C(1) << 8 * size) - 1;
    while (size < 4 && mask > within)
        mask = (mask & within) ^ mask >> 8 * size;
    return mask ? mask : 1;
}

static void alter_burst(const vd_fault *fault, const ro_shape *shape, uint64_t first,
                        void *output) {
    const size_t size = ro_dtype_size(shape->dtype);
    const uint64_t row = (uint64_t)shape->dim[shape->ndim - 1];
    uint64_t state = fault->seed ^ fault->mask, count = 2 + next(&state) % (BURST_MAX - 1);
    for (uint64_t i = first; count > 0; i++, count--) {
        alter_element(output, size, i, 0, fold_mask((uint32_t)next(&state) | 1, size));
        if ((i + 1) % row == 0)
            return;
    }
}

/* Forces bit `bit` of every element in a lane to 1, or to 0. */
static void alter_lane(const vd_fault *fault, uint64_t count, size_t size, void *output) {
    const uint32_t bit = fold_mask(UINT32_C(1) << fault->bit, size);
    const bool set = fault->mask & 1;
    for (uint64_t i = fault->element % LANES; i < count; i += LANES)
        alter_element(output, size, i, bit, set ? bit : 0);
}

static void alter_to_infinity(const vd_fault *fault, const ro_shape *shape, uint64_t element,
                              void *output) {
    const uint32_t infinity = shape->dtype == RO_F32    ? UINT32_C(0x7f800000)
                              : shape->dtype == RO_BF16 ? 0x7f80
                                                        : 0x7c00;
    alter_element(output, ro_dtype_size(shape->dtype), element, UINT32_MAX,
                  infinity | (fault->mask & 1 ? 1 : 0));
}

void vd_field_alter(const vd_fault *fault, const ro_shape *shape, void *output) {
    const uint64_t count = (uint64_t)ro_shape_numel(shape), element = fault->element % count;
    const size_t size = ro_dtype_size(shape->dtype);
    switch (fault->field) {
    case VD_FIELD_BIT:
        alter_element(output, size, element, 0, fold_mask(UINT32_C(1) << fault->bit, size));
        break;
    case VD_FIELD_BITS:
        alter_element(output, size, element, 0, fold_mask(fault->mask, size));
        break;
    case VD_FIELD_BURST: alter_burst(fault, shape, element, output); break;
    case VD_FIELD_LANE: alter_lane(fault, count, size, output); break;
    case VD_FIELD_NOT_FINITE: alter_to_infinity(fault, shape, element, output); break;
    default: break;
    }
}

/* ---- old values ---- */

static size_t stale_at(const vd_fault *fault, const ro_shape *shape) {
    return (size_t)(fault->element % (uint64_t)ro_shape_numel(shape)) * ro_dtype_size(shape->dtype);
}

bool vd_field_is_stale(const vd_fault *fault, int64_t step, uint32_t node) {
    return fault->kind == VD_FAULT_FIELD && fault->field == VD_FIELD_STALE && fault->step == step &&
           fault->node == node;
}

vd_status vd_field_keep(const vd_fault *fault, const ro_shape *shape, ro_ctx *ro,
                        const void *const *input, uint8_t old[VD_FIELD_BYTES], vd_err *err) {
    const char *from = (const char *)input[fault->bit] + stale_at(fault, shape);
    return vd_memory_read(ro, old, from, ro_dtype_size(shape->dtype), err);
}

vd_status vd_field_put_back(const vd_fault *fault, const ro_shape *shape, ro_ctx *ro, void *output,
                            const uint8_t old[VD_FIELD_BYTES], vd_err *err) {
    return vd_memory_write(ro, (char *)output + stale_at(fault, shape), old,
                           ro_dtype_size(shape->dtype), err);
}
