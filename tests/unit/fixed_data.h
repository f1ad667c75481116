/* Builds calls of golden products (fixed_products.h), with data in memory of exactly their size. */
#ifndef TESTS_FIXED_DATA_H
#define TESTS_FIXED_DATA_H

#include "repops/repops.h"
#include "repops/tools/op_data.h"
#include "repops/op_product.h"
#include "tests/unit/fixed_products.h"

#include <stdlib.h>

typedef struct {
    ro_shape in[2];
    ro_call call;
    uint32_t *data[2], *out;
    int64_t numel;
} fixed_run;

/* Draws the elements of an operand. */
static inline void fill(const fixed_case *x, int side, uint32_t *data, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const uint64_t h = case_word(x->seed, side, i);
        const numbers *of = x->of[side];
        const int range = (int)(h % (uint64_t)of->count);
        const uint32_t low = of->range[range].low, high = of->range[range].high;
        data[i] = low + (uint32_t)((h >> 20) % ((uint64_t)high - low + 1));
    }
}

static inline void replace(const fixed_case *x, uint32_t *const data[2]) {
    for (const plant *p = x->plant; p < x->plant + x->plants; p++) {
        const int64_t lines = p->side == 0 ? x->m : x->n;
        const int across = p->side == 0 ? x->trans & 1 : !(x->trans & 2);
        for (int64_t k = p->from; k < p->to; k++)
            data[p->side][across ? k * lines + p->line : p->line * x->k + k] = p->word;
    }
}

static inline int64_t kept_step(const fixed_run *r) {
    return (r->numel + KEPT_MOST - 1) / KEPT_MOST | 1;
}

/* Infers the output; input shapes, operator and attributes must be set. */
static inline void build_call(const fixed_case *x, fixed_run *r) {
    char why[200];
    r->call.input_count = 2, r->call.input = r->in;
    FIXED_ASSERT(ro_infer(&r->call, why, sizeof why) == RO_OK, "%s: %s", x->name, why);
    for (int i = 0; i < 2; i++) {
        const int64_t count = ro_shape_numel(&r->in[i]);
        r->data[i] = malloc((size_t)count * sizeof(float));
        fill(x, i, r->data[i], count);
    }
    r->numel = ro_shape_numel(&r->call.output);
    r->out = malloc((size_t)r->numel * sizeof(float));
    FIXED_ASSERT(x->kept_count == (r->numel + kept_step(r) - 1) / kept_step(r),
                 "%s: %d elements are kept", x->name, x->kept_count);
}

static inline void build(const fixed_case *x, fixed_run *r) {
    const int64_t lines[2] = {x->m, x->n};
    for (int i = 0; i < 2; i++) {
        const int across = i == 0 ? x->trans & 1 : !(x->trans & 2);
        r->in[i] =
            (ro_shape){RO_F32, 3, {x->batch, across ? x->k : lines[i], across ? lines[i] : x->k}};
    }
    r->call = (ro_call){.op = RO_OP_MATMUL_FIXED, .attr = {1, x->trans, x->alpha, x->bits}};
    build_call(x, r);
    replace(x, r->data);
}

static inline void release(fixed_run *r) {
    free(r->data[0]);
    free(r->data[1]);
    free(r->out);
}

#endif
