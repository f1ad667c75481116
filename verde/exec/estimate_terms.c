/* This file estimates how many terms a step or initialisation computes, from its program alone. */
#include "repops/ref.h"
#include "verde/exec/estimate.h"

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

enum { TERMS_OF_STEP = 512 }; /* most terms of a fold's step (SPEC.md) */

static uint64_t elements_of(const ro_shape *shape) {
    uint64_t count = 1;
    for (int i = 0; i < shape->ndim; i++)
        if (__builtin_mul_overflow(count, (uint64_t)shape->dim[i], &count))
            return UINT64_MAX;
    return count;
}

static uint64_t node_terms(const vd_program *program, const vd_graph *graph, uint32_t n) {
    const vd_node *node = vd_node_stored(graph, n);
    uint64_t terms = elements_of(&node->shape);
    ro_call call;
    ro_shape input[RO_MAX_INPUTS];
    vd_node_call(program, graph, n, &call, input);
    const int64_t steps = ro_ref_steps(&call);
    if (steps > 0 && __builtin_mul_overflow(terms, (uint64_t)steps * TERMS_OF_STEP, &terms))
        return UINT64_MAX;
    for (int32_t i = 0; i < node->input_count; i++)
        terms = add(terms, elements_of(&input[i]));
    return terms;
}

/* Adds up all nodes. Iterations of a repeat have equal shapes, so each counts like the first. */
uint64_t vd_estimate_terms(const vd_program *program, const vd_graph *graph) {
    uint64_t terms = 0;
    for (uint32_t i = 0; i < graph->stored_count; i++) {
        const vd_repeat *r = vd_repeat_of(graph, i);
        const uint64_t once = node_terms(program, graph, vd_node_number(graph, i, 0));
        terms = add(terms, multiply(once, r ? r->count : 1));
    }
    for (uint32_t i = 0; i < graph->repeat_count; i++) {
        const vd_repeat *r = &graph->repeat[i];
        for (uint32_t sum = 0; sum < r->sum_count; sum++) {
            const uint32_t node = vd_repeat_sum_value(graph, r, sum) - graph->sources;
            terms = add(terms, multiply(node_terms(program, graph, node), r->count - 1));
        }
    }
    return terms;
}
