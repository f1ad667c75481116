/* What a run will take, estimated from its program. */
#include <criterion/criterion.h>

#include "verde/exec/estimate.h"

#define F32(n)                                                                                     \
    {                                                                                              \
        .dtype = RO_F32, .ndim = 1, .dim = { n }                                                   \
    }

/* The state has 100 elements. A step computes `elements` values from it, 50 values from these, and
 * the next state from those (read twice). The fourth node computes 10 values that nobody reads. */
typedef struct {
    vd_leaf leaf;
    vd_node init_node, node[4];
    uint32_t edge[5], init_output, output;
    vd_program program;
} small;

static vd_program *small_program(small *s, int64_t elements) {
    *s = (small){.leaf = {"w", F32(100)},
                 .init_node = {.shape = F32(100)},
                 .node = {{.input_count = 1, .first_input = 0, .shape = F32(elements)},
                          {.input_count = 1, .first_input = 1, .shape = F32(50)},
                          {.input_count = 2, .first_input = 2, .shape = F32(100)},
                          {.input_count = 1, .first_input = 4, .shape = F32(10)}},
                 .edge = {0, 2, 3, 3, 1},
                 .init_output = 1,
                 .output = 4};
    s->program = (vd_program){.leaf = &s->leaf, .leaf_count = 1, .steps = 12};
    s->program.checkpoint_interval = 5;
    s->program.init = (vd_graph){
        .stored = &s->init_node, .node_count = 1, .stored_count = 1, .output = &s->init_output};
    s->program.step = (vd_graph){.stored = s->node,
                                 .node_count = 4,
                                 .stored_count = 4,
                                 .stored_edge = s->edge,
                                 .edge_count = 5,
                                 .output = &s->output};
    return &s->program;
}

/* Bytes of a step's records: four nodes with five inputs in all, and their offsets; two copies of
 * the commitments of the nodes and the two sources; a tree over four leaves. */
enum { RECORDS = 4 * (32 + 4 + 32 + 8) + 5 * 32 + 2 * 32 * (4 + 2) + 64 * 4 };

static uint64_t memory_of(const vd_program *program) {
    uint64_t bytes = 0;
    cr_assert(vd_estimate_memory(program, &bytes, NULL) == VD_OK);
    return bytes == UINT64_MAX ? bytes : bytes - RECORDS;
}

Test(estimate, values_stand_from_their_node_to_their_last_use) {
    small s;
    cr_expect(memory_of(small_program(&s, 200)) == 400 + 800); /* state + first output */
    cr_expect(memory_of(small_program(&s, 60)) == 400 + 240);
    cr_expect(memory_of(small_program(&s, 10)) == 200 + 400); /* when the third node runs */
}

Test(estimate, the_state_stands_as_long_as_it_is_read) {
    small s;
    vd_program *program = small_program(&s, 10);
    s.edge[4] = 0; /* the last node reads the state */
    cr_expect(memory_of(program) == 400 + 200 + 400);
}

Test(estimate, sums_do_not_overflow) {
    small s;
    vd_program *program = small_program(&s, INT64_MAX);
    cr_expect(memory_of(program) == UINT64_MAX);
    s.leaf.shape = (ro_shape){.dtype = RO_F32, .ndim = 2, .dim = {INT64_C(1) << 40, 1 << 20}};
    cr_expect(memory_of(program) == UINT64_MAX);
    cr_expect(vd_estimate_disk(program, 0) == UINT64_MAX);
}

Test(estimate, checkpoints_on_disk) {
    small s;
    const vd_program *program = small_program(&s, 10);
    /* S_0, S_5, S_10, S_12, and one more that is being written */
    cr_expect(vd_estimate_disk(program, 0) == 5 * 400);
    cr_expect(vd_estimate_disk(program, 9) == 5 * 400);
    cr_expect(vd_estimate_disk(program, 2) == 3 * 400);
}
