/* Reshapes and slices that share memory: states are as node by node, and some must not share. */
#include "repops/operators.h"
#include "tests/support/fusing.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { ROWS = 16, COLS = 16, LEAVES = 2 };

typedef struct {
    vd_program p;
    vd_builder b;
} made;

static const ro_shape flat = {RO_F32, 1, {ROWS * COLS}}, wide = {RO_F32, 2, {ROWS, COLS}};

static void open_program(made *m) {
    *m = (made){.p = {.steps = 3, .checkpoint_interval = 1}};
    m->b = vd_builder_of(&m->p, &m->p.step);
    vd_add_leaf(&m->b, "a", &flat);
    vd_add_leaf(&m->b, "b", &wide);
    m->p.step.output = calloc(LEAVES, sizeof *m->p.step.output);
    m->p.step.loss = UINT32_MAX;
}

static vd_value slice(made *m, vd_value x, int64_t axis, int64_t start, int64_t length) {
    return vd_slice(&m->b, "slice", x, (vd_stretch){(int)axis, start, length, 1});
}

static uint32_t shared(const vd_program *p) {
    vd_err err = {0};
    uint32_t count = 0;
    vd_node_run *run = calloc(p->step.node_count, sizeof *run);
    cr_assert(vd_exec_runs(p, &p->step, run, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < p->step.node_count; i++)
        count += run[i].how == VD_RUNS_SHARED;
    free(run);
    return count;
}

static vd_state steps(const vd_program *p, bool unfused, bool keeps) {
    ro_ctx *ro = test_two_threads();
    const vd_exec exec = {.program = p, .ro = ro, .unfused = unfused};
    vd_state state = test_random_state(p, 1), next;
    vd_err err = {0};
    for (int i = 0; i < 3; i++) {
        if (keeps) {
            cr_assert(vd_exec_next(&exec, &state, &next, NULL, &err) == VD_OK, "%s", err.text);
            vd_state_free(&state);
            state = next;
        } else {
            cr_assert(vd_exec_step(&exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
        }
    }
    ro_ctx_destroy(ro);
    return state;
}

/* wanted: the number of nodes that share memory. */
static void expect(made *m, uint32_t wanted) {
    cr_assert(m->b.status == VD_OK, "%s", m->b.err.text);
    vd_builder_free(&m->b);
    cr_expect(shared(&m->p) == wanted, "%u share", shared(&m->p));
    for (int keeps = 0; keeps < 2; keeps++) {
        vd_state fused = steps(&m->p, false, keeps), nodes = steps(&m->p, true, keeps);
        test_expect_equal_states(&m->p, &fused, &nodes, keeps);
    }
    vd_program_free(&m->p);
}

/* A value is not overwritten in place while a reshape of it will still be read. */
Test(alias, a_value_that_is_read_again_is_not_overwritten) {
    made m;
    open_program(&m);
    const vd_value sum = vd_scale(&m.b, "sum", 0, 0.5f);
    const vd_value table = vd_reshape(&m.b, "table", sum, wide);
    const vd_value half = vd_scale(&m.b, "half", sum, 0.25f); /* in place, in sum's memory */
    m.p.step.output[1] = vd_add(&m.b, "b", table, 1);
    m.p.step.output[0] = half;
    expect(&m, 1);
}

/* Both a reshape of a reshape of a leaf, and the leaf itself, become leaves of the next state. */
Test(alias, leaves_get_memory_of_their_own) {
    made m;
    open_program(&m);
    const vd_value table = vd_reshape(&m.b, "table", 0, wide);
    m.p.step.output[0] = vd_reshape(&m.b, "back", table, flat);
    m.p.step.output[1] = vd_add(&m.b, "b", 1, table);
    expect(&m, 2);
}

Test(alias, two_leaves_that_take_one_value_get_two_copies) {
    made m;
    open_program(&m);
    const vd_value sum = vd_scale(&m.b, "sum", 0, 0.5f);
    m.p.step.output[1] = vd_reshape(&m.b, "table", sum, wide);
    m.p.step.output[0] = sum;
    expect(&m, 1);
}

/* Rows are contiguous slices, columns are not. A slice is copied if it begins within a cache line,
 * or if its whole tensor would have to be kept for it. */
Test(alias, slices_share_where_nothing_stays_for_them) {
    const ro_shape row = {RO_F32, 1, {COLS}};
    made m;
    open_program(&m);
    const vd_value sum = vd_scale(&m.b, "sum", 1, 0.5f);
    const vd_value a = vd_reshape(&m.b, "a", sum, flat);
    vd_value x = vd_scale(&m.b, "x", 1, 2);
    x = vd_add(&m.b, "row", x, vd_reshape(&m.b, "r", slice(&m, sum, 0, 2, 1), row));
    x = vd_add(&m.b, "column", x, vd_reshape(&m.b, "c", slice(&m, sum, 1, 3, 1), row));
    x = vd_add(&m.b, "odd", x, slice(&m, a, 0, 5, COLS));
    m.p.step.output[0] = vd_scale(&m.b, "a", a, 3);
    const vd_value late = slice(&m, vd_scale(&m.b, "y", 1, 7), 0, 0, 1);
    m.p.step.output[1] = vd_add(&m.b, "late", x, vd_reshape(&m.b, "l", late, row));
    expect(&m, 5); /* the first row, and four reshapes */
}
