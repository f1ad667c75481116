#include "tests/support/fusing.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute.h"
#include "verde/exec/memory.h"

vd_state test_random_state(const vd_program *p, float scale) {
    vd_state s = {.count = p->leaf_count, .tensor = calloc(p->leaf_count, sizeof(void *))};
    uint64_t random = 11;
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        const int64_t count = ro_shape_numel(&p->leaf[i].shape);
        float *x = aligned_alloc(64, (vd_shape_bytes(&p->leaf[i].shape) + 63) / 64 * 64);
        for (int64_t e = 0; e < count; e++)
            x[e] = ((float)(test_random(&random) >> 40) * 0x1p-23f - 1) * scale;
        s.tensor[i] = x;
    }
    return s;
}

void test_state_in_host(const vd_program *p, vd_state *state) {
    vd_state host = {.step = state->step, .count = state->count};
    vd_err err = {0};
    if (!state->memory)
        return;
    host.tensor = calloc(state->count, sizeof *host.tensor);
    for (uint32_t i = 0; i < state->count; i++) {
        const size_t size = vd_shape_bytes(&p->leaf[i].shape);
        host.tensor[i] = aligned_alloc(64, (size + 63) / 64 * 64);
        cr_assert(vd_memory_read(state->memory, host.tensor[i], state->tensor[i], size, &err) ==
                      VD_OK,
                  "%s", err.text);
    }
    vd_state_free(state);
    *state = host;
}

void test_expect_equal_states(const vd_program *p, vd_state *fused, vd_state *nodes, int number) {
    for (uint32_t k = 0; k < p->leaf_count; k++)
        cr_assert(memcmp(fused->tensor[k], nodes->tensor[k], vd_shape_bytes(&p->leaf[k].shape)) ==
                      0,
                  "case %d: %s", number, p->leaf[k].name);
    vd_state_free(fused);
    vd_state_free(nodes);
}

uint32_t test_groups_of(const vd_program *p) {
    vd_plan plan;
    vd_err err = {0};
    cr_assert(vd_plan_create(p, &p->step, VD_FUSE_LAYERS, &plan, &err) == VD_OK, "%s", err.text);
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan.group_count; i++)
        count += vd_plan_iterations(&plan, &p->step, i);
    vd_plan_free(&plan);
    return count;
}

vd_node *test_node_at(vd_program *p, int op, int k) {
    uint32_t i = 0;
    while (vd_node_stored(&p->step, i)->op != op || k-- > 0)
        i++;
    return &p->step.stored[vd_node_spot(&p->step, i).stored];
}

uint32_t test_node_value(const vd_program *p, const vd_node *n) {
    return vd_source_count(p, &p->step) + (uint32_t)(n - p->step.stored);
}

ro_ctx *test_two_threads(void) {
    ro_ctx *ro;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ro) == RO_OK);
    return ro;
}
