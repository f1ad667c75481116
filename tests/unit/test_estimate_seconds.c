/* How long programs take: the limits for strangers' programs, and what the times of operators grow
 * with. bench/estimates.py compares the estimates with measured times. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/small_models.h"
#include "verde/exec/estimate.h"
#include "verde/graph/build.h"
#include "verde/protocol/pace.h"
#include "repops/op_reduce.h"
#include "repops/op_product.h"
#include "repops/op_movement.h"

static vd_program stored(const char *name) {
    char path[128];
    vd_buf bytes = {0};
    vd_program p = {0};
    vd_err err = {0};
    snprintf(path, sizeof path, "tests/vectors/hostile/%s", name);
    cr_assert(vd_read_file(path, 4096, &bytes, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_decode(bytes.data, bytes.size, &p, &err) == VD_OK, "%s", err.text);
    vd_buf_free(&bytes);
    return p;
}

/* Seconds of a step on one core. */
static double step_of(const char *name) {
    vd_program p = stored(name);
    const double seconds = vd_estimate_seconds(&p, 1).step;
    vd_program_free(&p);
    return seconds;
}

/* Measured on an idle core with AVX-512: 22.8 and 66.1 seconds. */
Test(estimate_seconds, programs_of_a_few_bytes_take_long) {
    cr_expect(step_of("permutation") > 22.8 / 3 && step_of("permutation") < 22.8 * 3);
    cr_expect(step_of("product") > 66.1 / 3 && step_of("product") < 66.1 * 3);
    cr_expect(step_of("convolution") > 3600, "%g", step_of("convolution"));
}

Test(estimate_seconds, all_steps_count) {
    vd_program p = stored("steps");
    const double step = vd_estimate_seconds(&p, 1).step;
    cr_expect(step > 1e-4 && step < 1e-2);
    cr_expect(vd_estimate_seconds(&p, 1).run >= step * INT32_MAX);
    p.steps = 1000;
    p.checkpoint_interval = 1000;
    const double rare = vd_estimate_seconds(&p, 1).run;
    p.checkpoint_interval = 1; /* every step's state is hashed */
    cr_expect(vd_estimate_seconds(&p, 1).run > rare + 999 * 256 * 256 * 4 * 1e-10);
    vd_program_free(&p);
}

/* More cores shorten everything but the fixed time of each node. */
Test(estimate_seconds, cores_share) {
    vd_program p = stored("product");
    const double one = vd_estimate_seconds(&p, 1).step;
    cr_expect(fabs(vd_estimate_seconds(&p, 4).step - one / 4) < 1e-3);
    vd_program_free(&p);
}

Test(estimate_seconds, repeats_count_as_often_as_they_run) {
    vd_err err = {0};
    for (int k = 0; k < KINDS; k++) {
        vd_program p = program_of(kinds[k], 5);
        const double repeated = vd_estimate_seconds(&p, 1).step;
        cr_assert(p.step.repeat_count > 0);
        cr_assert(vd_graph_unroll(&p.step, &err) == VD_OK, "%s", err.text);
        const double each = vd_estimate_seconds(&p, 1).step;
        cr_expect(fabs(repeated - each) < 1e-9 * each, "%g, not %g", repeated, each);
        vd_program_free(&p);
    }
}

/* ---- single operators ---- */

static double seconds_of(vd_op op, int32_t count, const ro_shape *input) {
    vd_program p = {.steps = 1, .checkpoint_interval = 1};
    vd_builder b = vd_builder_of(&p, &p.step);
    vd_value value[4];
    for (int32_t i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        value[i] = vd_add_leaf(&b, name, &input[i]);
    }
    vd_emit(&b, "node", op, count, value);
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    const double seconds = vd_estimate_seconds(&p, 1).step;
    cr_expect(isfinite(seconds) && seconds > 0);
    vd_builder_free(&b);
    vd_program_free(&p);
    return seconds;
}

/* A permutation of one element more than a power of four walks four times as far. */
Test(estimate_seconds, a_permutation_walks) {
    const ro_shape step = VD_SHAPE(RO_I32, 1), whole = VD_SHAPE(RO_I32, 1 << 20),
                   more = VD_SHAPE(RO_I32, (1 << 20) + 1);
    const double shortest = seconds_of((vd_op){RO_OP_PERMUTATION, {1, 2}, &whole}, 1, &step);
    const double longest = seconds_of((vd_op){RO_OP_PERMUTATION, {1, 2}, &more}, 1, &step);
    cr_expect(fabs(longest / shortest - 4) < 0.01, "%g", longest / shortest);
}

/* Each window of one token needs its own walk. */
Test(estimate_seconds, a_reader_walks_for_each_record) {
    const ro_shape data[2] = {VD_SHAPE(RO_U8, 1 << 22), VD_SHAPE(RO_I32, 1)};
    const ro_shape wide = VD_SHAPE(RO_I32, 64, 1024), tall = VD_SHAPE(RO_I32, 64 * 1024, 1);
    const double few = seconds_of((vd_op){RO_OP_READ_BATCH, {0, 0, 64}, &wide}, 2, data);
    const double many = seconds_of((vd_op){RO_OP_READ_BATCH, {0, 0, 64 * 1024}, &tall}, 2, data);
    cr_expect(many > 20 * few, "%g, %g", many, few);
}

/* The time depends on the terms of each element, whatever the layout of the operands. */
Test(estimate_seconds, a_product_takes_its_terms) {
    const ro_shape a[2] = {VD_SHAPE(RO_F32, 2, 3, 1000, 4000), VD_SHAPE(RO_F32, 2, 3, 4000, 1000)};
    const ro_shape at[2] = {VD_SHAPE(RO_F32, 2, 3, 4000, 1000), a[1]};
    const int64_t one = ro_attr_f32(1);
    const double plain = seconds_of((vd_op){RO_OP_MATMUL, {2, 0, one, 256}, NULL}, 2, a);
    const double turned = seconds_of((vd_op){RO_OP_MATMUL, {2, 1, one, 256}, NULL}, 2, at);
    cr_expect(fabs(plain - turned) < 1e-9 && plain > 6 * 4e9 * 1e-11, "%g %g", plain, turned);
    const double fixed = seconds_of((vd_op){RO_OP_MATMUL_FIXED, {2, 0, one, 24}, NULL}, 2, a);
    cr_expect(fixed > 1.5 * plain);
}

/* The estimate is finite even for the largest shapes. */
Test(estimate_seconds, the_largest_shapes_have_a_number) {
    const int64_t most = RO_MAX_NUMEL;
    const ro_shape dy[2] = {VD_SHAPE(RO_F32, INT32_MAX, 1), VD_SHAPE(RO_I32, INT32_MAX)};
    const ro_shape table = VD_SHAPE(RO_F32, most, 1);
    const ro_shape wide[2] = {VD_SHAPE(RO_F32, 1, most), VD_SHAPE(RO_F32, most, 1)};
    const int64_t one = ro_attr_f32(1);
    cr_expect(seconds_of((vd_op){RO_OP_EMBEDDING_GRAD, {0}, &table}, 2, dy) > 400);
    cr_expect(seconds_of((vd_op){RO_OP_MATMUL, {0, 0, one, 256}, NULL}, 2, wide) > 10);
    cr_expect(seconds_of((vd_op){RO_OP_SUM_AXIS, {1}, NULL}, 1, wide) > 1000);
}

/* ---- what a referee waits for ---- */

Test(estimate_seconds, a_referee_waits_for_work_that_it_can_count) {
    vd_program p = stored("permutation");
    const vd_pace_caps caps = vd_pace_caps_of(&p, 0);
    vd_pace_limits limits = vd_pace_limits_of(&p);
    cr_expect(caps.step == VD_STEP_US_LEAST);
    cr_expect(limits.step == 3 + 120.0 / 4, "an interval of one step: %g", limits.step);
    cr_expect(limits.init == 3 + 120.0 / 2);
    p.checkpoint_interval = p.steps = 59;
    cr_expect(vd_pace_limits_of(&p).step == 3 + 1);
    vd_program_free(&p);
    p = stored("convolution");
    limits = vd_pace_limits_of(&p);
    cr_expect(limits.step == VD_REACH_S, "%g", limits.step);
    vd_program_free(&p);
}
