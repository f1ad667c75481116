/* A program of long folds: the leaves of its states are sums of many terms, or the index of the
 * largest of many elements. */
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"
#include "tests/support/dispute.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { WEIGHTS, CANCELS, TABLE, FILTER, PLACE, LEAVES, IMAGES = 6, SIDE = 15, VOCAB = 5 };

static void declare(vd_builder *b, int64_t columns) {
    const ro_shape shape[LEAVES] = {VD_SHAPE(RO_F32, columns, 3), VD_SHAPE(RO_F32, columns, 3),
                                    VD_SHAPE(RO_F32, VOCAB, 3), VD_SHAPE(RO_F32, 1, 1, 2, 2),
                                    VD_SHAPE(RO_F32, 1)};
    static const char *const name[LEAVES] = {"weights", "cancels", "table", "filter", "place"};
    for (int i = 0; i < LEAVES; i++)
        vd_add_leaf(b, name[i], &shape[i]);
}

static void build_init(vd_builder *b) {
    for (int i = 0; i < LEAVES; i++) {
        const vd_leaf *leaf = &b->program->leaf[i];
        b->graph->output[i] =
            vd_emit(b, leaf->name, (vd_op){RO_OP_FILL, {0}, &leaf->shape}, 0, NULL);
    }
}

static vd_value random_of(vd_builder *b, const char *name, int64_t stream, ro_shape shape) {
    return vd_emit(b, name, (vd_op){RO_OP_NORMAL, {7, stream, 0, ro_attr_f32(1)}, &shape}, 0, NULL);
}

/* A sum whose terms cancel except for rounding, so that free kernels may give many results. */
static vd_value cancelling(vd_builder *b, vd_op product, vd_value x, vd_value y) {
    const vd_value minus = vd_scale(b, "minus", x, -1);
    const vd_value twice[] = {vd_concat(b, "both", 0, 2, (vd_value[]){x, minus}),
                              vd_concat(b, "twice", 0, 2, (vd_value[]){y, y})};
    return vd_emit(b, "cancelling", product, 2, twice);
}

static void build_step(vd_builder *b, int64_t rows) {
    const vd_leaf *leaf = b->program->leaf;
    const vd_op product = {RO_OP_MATMUL, {0, 1, ro_attr_f32(0.5f), RO_DOT_CHUNK, RO_MASK_NONE}, 0};
    const vd_op sums = {RO_OP_EMBEDDING_GRAD, {0}, &leaf[TABLE].shape};
    const vd_op filter = {RO_OP_CONV2D_DW, {1, 1, 0, 0, 1, 1, 1}, &leaf[FILTER].shape};
    const vd_op to_integer = {RO_OP_CAST, {RO_I32}, NULL}, to_float = {RO_OP_CAST, {RO_F32}, NULL};
    const vd_value x = random_of(b, "x", 1, VD_SHAPE(RO_F32, rows, leaf[WEIGHTS].shape.dim[0]));
    const vd_value y = random_of(b, "y", 2, VD_SHAPE(RO_F32, rows, 3));
    const vd_value line = random_of(b, "line", 3, VD_SHAPE(RO_F32, rows));
    const ro_shape of_ids = VD_SHAPE(RO_F32, rows);
    const vd_op below = {RO_OP_UNIFORM, {7, 4, 0, ro_attr_f32(VOCAB)}, &of_ids};
    const vd_value image = random_of(b, "image", 5, VD_SHAPE(RO_F32, IMAGES, SIDE, SIDE, 2));
    const vd_value window = random_of(b, "window", 6, VD_SHAPE(RO_F32, IMAGES, SIDE, SIDE, 2));
    const vd_value ids = VD_EMIT(b, "ids", to_integer, vd_emit(b, "number", below, 0, NULL));
    const vd_value place = VD_EMIT(b, "argmax", ((vd_op){RO_OP_ARGMAX, {0}, NULL}), line);
    b->graph->output[WEIGHTS] = vd_add(b, "next", WEIGHTS, VD_EMIT(b, "product", product, x, y));
    b->graph->output[CANCELS] = cancelling(b, product, x, y);
    b->graph->output[TABLE] = VD_EMIT(b, "table", sums, y, ids);
    b->graph->output[FILTER] = VD_EMIT(b, "filter", filter, image, window);
    b->graph->output[PLACE] = VD_EMIT(b, "place", to_float, place);
}

void test_job_open_folds(test_job *job, int64_t steps, int64_t rows, int64_t columns) {
    vd_program *p = &job->program;
    vd_err err;
    *p = (vd_program){.seed = 7, .steps = steps, .checkpoint_interval = steps};
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    declare(&init, columns);
    p->init.output = calloc(LEAVES, sizeof *p->init.output);
    p->step.output = calloc(LEAVES, sizeof *p->step.output);
    cr_assert(p->init.output && p->step.output);
    build_init(&init);
    build_step(&step, rows);
    cr_assert(init.status == VD_OK && step.status == VD_OK, "%s%s", init.err.text, step.err.text);
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_hash(p, &job->hash, &err) == VD_OK, "%s", err.text);
    vd_builder_free(&init);
    vd_builder_free(&step);
}
