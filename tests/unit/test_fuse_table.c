/* A second gradient of a table is added to the first one in one call, which gives the state of the
 * separate nodes. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "tests/support/fusing.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { ROWS = 40, COLS = 300, POSITIONS = 200 };

/* How a program differs from the pattern that is fused. */
typedef enum { PLAIN, FIRST_STAYS, SECOND_STAYS, TURNED, WIDER, CASES } table_case;

static int32_t ids[POSITIONS];

static void build(table_case c, vd_program *p) {
    vd_builder b = vd_builder_of(p, &p->step);
    const ro_shape table = VD_SHAPE(RO_F32, ROWS, COLS), two = VD_SHAPE(RO_F32, 2, ROWS, COLS);
    const ro_shape rows = VD_SHAPE(RO_F32, POSITIONS, COLS);
    cr_assert(vd_program_take_data(p, 1, NULL) == VD_OK);
    p->data[0].tensor.shape = VD_SHAPE(RO_I32, POSITIONS);
    const vd_value first = vd_add_leaf(&b, "first", c == WIDER ? &two : &table);
    const vd_value other = vd_add_leaf(&b, "other", c == WIDER ? &two : &table);
    const vd_value dy = vd_add_leaf(&b, "dy", &rows);
    const vd_op op = {.op = RO_OP_EMBEDDING_GRAD, .shape = &table}, add = {.op = RO_OP_ADD};
    const vd_value second = VD_EMIT(&b, "second", op, dy, vd_data_value(&b, 0));
    const vd_value sum = c == TURNED ? VD_EMIT(&b, "sum", add, second, first)
                                     : VD_EMIT(&b, "sum", add, first, second);
    p->step.output = calloc(p->leaf_count, sizeof *p->step.output);
    p->step.output[0] = sum;
    p->step.output[1] = c == FIRST_STAYS ? first : c == SECOND_STAYS ? second : other;
    p->step.output[2] = dy;
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    vd_builder_free(&b);
}

static void step(const vd_program *p, ro_ctx *ro, bool unfused, vd_state *state) {
    vd_exec exec = {.program = p, .ro = ro, .data = (const void *[]){ids}, .unfused = unfused};
    vd_err err = {0};
    *state = test_random_state(p, 1);
    cr_assert(vd_exec_step(&exec, NULL, state, NULL, &err) == VD_OK, "%s", err.text);
}

Test(fuse_table, a_second_gradient_gives_the_state_of_its_nodes) {
    ro_ctx *ro = test_two_threads();
    for (int i = 0; i < POSITIONS; i++)
        ids[i] = i * i % (ROWS + 3) - 1;
    for (int c = 0; c < CASES; c++) {
        const uint32_t groups = c == PLAIN || c == FIRST_STAYS;
        vd_program p = {0};
        vd_state fused, nodes;
        build((table_case)c, &p);
        cr_expect(test_groups_of(&p) == groups, "case %d: %u groups", c, test_groups_of(&p));
        step(&p, ro, false, &fused);
        step(&p, ro, true, &nodes);
        test_expect_equal_states(&p, &fused, &nodes, c);
        vd_program_free(&p);
    }
    ro_ctx_destroy(ro);
}
