/* A finished run, whose tensors have one or several blocks, and what can be downloaded of it. */
#ifndef DELIVERY_RUN_H
#define DELIVERY_RUN_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "verde/delivery/offer.h"
#include "verde/exec/run.h"
#include "verde/graph/build.h"

/* Sizes: 2.3 blocks, exactly one block, a few bytes. */
enum { LARGE, EXACT, SMALL, RUN_LEAVES };

typedef struct {
    vd_program program;
    vd_exec exec;
    vd_run_log log;
    char dir[64];
    vd_offer *offer;
} delivery_run;

static inline void build_run(vd_program *p, vd_builder *init, vd_builder *step) {
    static const int64_t elements[RUN_LEAVES] = {600001, VD_BLOCK_BYTES / 4, 7};
    static const char *const name[RUN_LEAVES] = {"large", "exact", "small"};
    p->init.output = calloc(RUN_LEAVES, sizeof *p->init.output);
    p->step.output = calloc(RUN_LEAVES, sizeof *p->step.output);
    for (int i = 0; i < RUN_LEAVES; i++) {
        const ro_shape shape = VD_SHAPE(RO_F32, elements[i]);
        vd_add_leaf(init, name[i], &shape);
    }
    for (int i = 0; i < RUN_LEAVES; i++) {
        const ro_shape *shape = &p->leaf[i].shape;
        const vd_op normal = {RO_OP_NORMAL, {5, i, 0, ro_attr_f32(1)}, shape};
        p->init.output[i] = vd_emit(init, name[i], normal, 0, NULL);
        p->step.output[i] = vd_scale(step, name[i], (vd_value)i, 0.5f);
    }
}

static inline void open_delivery_run(delivery_run *r) {
    vd_run_result result;
    vd_err err = {0};
    *r = (delivery_run){.dir = "/tmp/verde-delivery-XXXXXX"};
    vd_program *p = &r->program;
    *p = (vd_program){.seed = 5, .steps = 3, .checkpoint_interval = 2};
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    build_run(p, &init, &step);
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
    vd_builder_free(&init);
    vd_builder_free(&step);
    r->exec.program = p;
    cr_assert(mkdtemp(r->dir) &&
              ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &r->exec.ro) ==
                  RO_OK);
    const vd_run_options options = {.exec = &r->exec, .dir = r->dir};
    cr_assert(vd_run(&options, &result, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_store_load_log(r->dir, &r->log, &err) == VD_OK, "%s", err.text);
    const vd_check check = {.dir = r->dir, .exec = &r->exec, .log = &r->log};
    cr_assert(vd_offer_create(&check, &r->offer, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_hash_equal(vd_offer_run_root(r->offer), &result.run_root));
}

static inline void close_delivery_run(delivery_run *r) {
    char command[100];
    vd_offer_destroy(r->offer);
    snprintf(command, sizeof command, "rm -r %s", r->dir);
    cr_assert(system(command) == 0);
    ro_ctx_destroy(r->exec.ro);
    vd_run_log_free(&r->log);
    vd_program_free(&r->program);
}

static inline vd_response offered_at(const delivery_run *r, const char *rest) {
    vd_response response = {.status = 200};
    vd_offer_answer(r->offer, rest, &response);
    return response;
}

#endif
