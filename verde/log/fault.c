/* Faults of rounding logs, for tests and demonstrations: what a dishonest trainer would write. */
#include <string.h>

#include "verde/log/rounded.h"

enum { FAR = 1000 }; /* places away from what is possible */

typedef struct {
    const vd_free_node *node;
    ro_close_call *calls;
    int64_t *count;
    uint8_t *symbol;
} fault_target;

static uint32_t last_bits(int64_t place, uint32_t bits) {
    return (uint32_t)place & (uint32_t)((UINT64_C(1) << bits) - 1);
}

static void set(const fault_target *t, const vd_possible *p, int64_t element, int64_t place) {
    t->node->output[element] = vd_word_float(vd_possible_word(p, place));
}

static void drop_call(const fault_target *t, int64_t index) {
    memmove(&t->calls[index], &t->calls[index + 1],
            (size_t)(--*t->count - index) * sizeof *t->calls);
}

/* Alters a close call; `place` is a wrong place of its element by the log of `t`. */
static void alter_call(vd_fault_kind kind, const fault_target *t, const vd_possible *p,
                       int64_t index, int64_t place) {
    ro_close_call *call = &t->calls[index];
    if (kind != VD_FAULT_FORGE_RECORD)
        set(t, p, call->element, place);
    if (kind == VD_FAULT_FORGE_BOTH)
        call->bits = 32;
    if (kind == VD_FAULT_DROP_RECORD)
        drop_call(t, index);
    else
        call->place = last_bits(place, call->bits);
}

static float magnitude(float x) {
    return x < 0 ? -x : x;
}

/* Returns the least magnitude that a fault alters. Roundings that are close calls are often sums of
 * cancelling terms, so small that the next node would round the fault away. */
static float least_to_alter(const vd_free_node *node) {
    float most = 0;
    for (int64_t i = 0; i < ro_shape_numel(node->shape); i++)
        most = magnitude(node->output[i]) > most ? magnitude(node->output[i]) : most;
    return 0x1p-12f * most;
}

static bool in_calls(vd_fault_kind kind, const fault_target *t) {
    const float least = least_to_alter(t->node);
    for (int64_t i = 0; i < *t->count; i++) {
        const int64_t element = t->calls[i].element;
        const vd_possible p = vd_free_possible(t->node, element);
        if (!vd_possible_several(&p) || !(magnitude(t->node->output[element]) > least))
            continue;
        const bool is_low = vd_float_word(t->node->output[element]) == vd_possible_word(&p, p.low);
        alter_call(kind, t, &p, i,
                   kind == VD_FAULT_FORGE_BOTH ? p.high + FAR
                   : is_low                    ? p.low + 1
                                               : p.low);
        return true;
    }
    return false;
}

/* Forges a symbol, which can only lead to a neighbour. */
static bool forge_symbol(const fault_target *t, int64_t element) {
    const vd_possible p = vd_free_possible(t->node, element);
    const bool above = p.y.value - 2 * p.y.bound > (double)t->node->output[element];
    if (p.low != p.high || !above)
        return false;
    set(t, &p, element, p.high + 1);
    t->symbol[element] = 2;
    return true;
}

static bool alter_symbol(vd_fault_kind kind, const fault_target *t, int64_t element) {
    const vd_possible p = vd_free_possible(t->node, element);
    if (!vd_possible_several(&p))
        return false;
    const bool is_low = vd_float_word(t->node->output[element]) == vd_possible_word(&p, p.low);
    if (kind != VD_FAULT_FORGE_RECORD)
        set(t, &p, element, is_low ? p.low + 1 : p.low);
    t->symbol[element] = kind == VD_FAULT_DROP_RECORD ? 1 : (uint8_t)(2 - t->symbol[element]);
    return true;
}

static bool in_symbols(vd_fault_kind kind, const fault_target *t) {
    const int64_t count = ro_shape_numel(t->node->shape);
    for (int64_t i = 0; i < count; i++)
        if (kind == VD_FAULT_FORGE_BOTH ? forge_symbol(t, i)
                                        : t->symbol[i] != 1 && alter_symbol(kind, t, i))
            return true;
    return false;
}

void vd_fault_log(const vd_fault *fault, const vd_free_node *node, ro_close_call *calls,
                  int64_t *count, uint8_t *symbol, bool *done) {
    const fault_target t = {node, calls, count, symbol};
    const bool here = vd_fault_is_emitted(fault) && fault->kind != VD_FAULT_TWO_LOGS &&
                      fault->step == node->step &&
                      (fault->node == UINT32_MAX || fault->node == node->node);
    if (here && !*done)
        *done = symbol ? in_symbols(fault->kind, &t) : in_calls(fault->kind, &t);
}
