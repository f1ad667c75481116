/* Judges the first element that differs, or the first part of a long fold, by the reference.
 * PROTOCOL.md section 5.5. */
#include <string.h>

#include "verde/protocol/dispute.h"

static const ro_shape *output_shape(const vd_referee *r) {
    return &vd_node_stored(r->graph, r->record)->shape;
}

bool vd_leaf_ask(vd_referee *r, uint32_t p, vd_question *question) {
    uint64_t at = r->descent.lo;
    (void)p;
    return vd_want(r, &at, 1) && vd_ask_wanted(r, &r->descent.tree, question);
}

size_t vd_piece_size(const ro_shape *shape, uint64_t leaf) {
    uint64_t size = (uint64_t)ro_shape_numel(shape) * ro_dtype_size(shape->dtype);
    uint64_t left = size - leaf * VD_LEAF_SIZE;
    return left < VD_LEAF_SIZE ? (size_t)left : VD_LEAF_SIZE;
}

static bool take_leaf(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    if (data->size != vd_piece_size(output_shape(r), index)) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "a leaf of a tensor has the wrong size");
        return false;
    }
    memcpy(r->party[p].leaf, data->data, data->size);
    r->party[p].leaf_size = data->size;
    return true;
}

uint32_t vd_element_bits(const uint8_t *bytes, size_t size) {
    uint32_t bits = 0;
    for (size_t i = size; i-- > 0;)
        bits = bits << 8 | bytes[i];
    return bits;
}

void vd_leaf_take(vd_referee *r) {
    size_t size = ro_dtype_size(output_shape(r)->dtype), at = 0;
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= vd_take_leaves(r, p, &r->descent.tree, &r->party[p].record->output, r->wanted, 1,
                             take_leaf);
    if (!ok)
        return;
    if (vd_is_crumb(r)) {
        vd_crumb_element(r);
        return;
    }
    while (at < r->party[0].leaf_size &&
           memcmp(r->party[0].leaf + at, r->party[1].leaf + at, size) == 0)
        at += size;
    if (at >= r->party[0].leaf_size) {
        vd_trouble(r, "two different leaves have equal bytes");
        return;
    }
    r->element = (int64_t)((r->descent.lo * VD_LEAF_SIZE + at) / size);
    r->place->element = r->element;
    for (uint32_t p = 0; p < r->parties; p++)
        r->place->value[p] = vd_element_bits(r->party[p].leaf + at, size);
    const bool is_long = vd_fold_open(&r->fold, r->program, r->graph, r->record, r->element);
    vd_story(r, "First element that differs: %lld of %lld. %s", (long long)r->element,
             (long long)ro_shape_numel(output_shape(r)),
             is_long ? "It is a long sum: looking for the first part of it that differs."
                     : "Fetching what it is computed from.");
    r->phase = is_long ? VD_PHASE_FOLD : VD_PHASE_INPUTS;
}

/* Writes the part's first eight 32-bit words in hexadecimal. */
static void part_text(const uint8_t *part, size_t size, char *text) {
    for (size_t i = 0; i < size && i < 32; i += 4)
        text += sprintf(text, i ? " %08x" : "0x%08x", vd_element_bits(part + i, 4));
}

void vd_judge_part(vd_referee *r) {
    char stated[80], computed[80];
    part_text(r->part, r->fold.size, computed);
    for (uint32_t p = 0; p < r->parties; p++) {
        part_text(r->party[p].part[1], r->fold.size, stated);
        if (memcmp(r->party[p].part[1], r->part, r->fold.size) != 0)
            vd_convict(r, p, VD_GRADE_WRONG_OUTPUT,
                       "part %lld of element %lld of %s is %s, the reference computes %s",
                       (long long)r->place->part, (long long)r->element, r->place->node_name,
                       stated, computed);
    }
}

void vd_judge_element(vd_referee *r) {
    const uint32_t expected = r->place->expected;
    char stated[VD_F32_TEXT], computed[VD_F32_TEXT];
    r->place->computed = true;
    vd_place_text(r->place, expected, computed);
    for (uint32_t p = 0; p < r->parties; p++) {
        vd_place_text(r->place, r->place->value[p], stated);
        if (r->place->value[p] != expected)
            vd_convict(r, p, VD_GRADE_WRONG_OUTPUT,
                       "element %lld of %s is %s, the reference computes %s", (long long)r->element,
                       r->place->node_name, stated, computed);
    }
    if (vd_all_stand(r) && !vd_is_crumb(r))
        vd_inconclusive(r, "The reference agrees with both, who disagree: nothing is accepted.");
}
