/* Programs with many leaves, and nodes with many inputs. */
#include "repops/op_movement.h"
#include "tests/support/dispute.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void finish_job(test_job *job, vd_builder *init, vd_builder *step) {
    vd_err err = {0};
    cr_assert(init->status == VD_OK && step->status == VD_OK, "%s%s", init->err.text,
              step->err.text);
    cr_assert(vd_program_validate(&job->program, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_hash(&job->program, &job->hash, &err) == VD_OK, "%s", err.text);
    vd_builder_free(init);
    vd_builder_free(step);
}

static void set_outputs(vd_program *p) {
    p->init.output = calloc(p->leaf_count, sizeof *p->init.output);
    p->step.output = calloc(p->leaf_count, sizeof *p->step.output);
    cr_assert(p->init.output && p->step.output);
}

void test_job_open_leaves(test_job *job, uint32_t leaves) {
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    vd_program *p = &job->program;
    *p = (vd_program){.seed = 7, .steps = 1, .checkpoint_interval = 1};
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    for (uint32_t i = 0; i < leaves; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%u", i);
        vd_add_leaf(&init, name, &one);
    }
    set_outputs(p);
    for (uint32_t i = 0; i < leaves; i++) {
        const vd_op fill = {RO_OP_FILL, {ro_attr_f32((float)i)}, &one};
        p->init.output[i] = vd_emit(&init, p->leaf[i].name, fill, 0, NULL);
        p->step.output[i] = vd_scale(&step, p->leaf[i].name, i, 0.5f);
    }
    finish_job(job, &init, &step);
}

void test_job_open_inputs(test_job *job, uint32_t inputs) {
    const ro_shape one = VD_SHAPE(RO_F32, 1), all = VD_SHAPE(RO_F32, inputs);
    vd_program *p = &job->program;
    vd_value made[RO_MAX_INPUTS];
    *p = (vd_program){.seed = 7, .steps = 2, .checkpoint_interval = 1};
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    vd_add_leaf(&init, "all", &all);
    set_outputs(p);
    const vd_op zeros = {RO_OP_FILL, {0}, &all};
    p->init.output[0] = vd_emit(&init, "all", zeros, 0, NULL);
    for (uint32_t i = 0; i + 1 < inputs; i++) {
        const vd_op fill = {RO_OP_FILL, {ro_attr_f32((float)i)}, &one};
        made[i] = vd_emit(&step, "one", fill, 0, NULL);
    }
    made[inputs - 1] = made[0];
    p->step.output[0] = vd_emit(&step, "all", (vd_op){RO_OP_CONCAT, {0}, NULL}, inputs, made);
    finish_job(job, &init, &step);
}
