/* The state that a training continues from: leaves of one program, data tensors of another. */
#include <string.h>

#include "repops/op_movement.h"
#include "models/model.h"

static int64_t start_of(const vd_training *t, const char *leaf) {
    for (uint32_t i = 0; i < t->start_count; i++)
        if (strcmp(t->start[i].name, leaf) == 0)
            return i;
    return -1;
}

/* Checks a tensor's shape and type. A state stores f32 or bf16, and either fits. */
static vd_status check_shape(const vd_file_tensor *have, const ro_shape *wanted, vd_err *err) {
    char is[VD_SHAPE_TEXT], must[VD_SHAPE_TEXT];
    ro_shape alike = *wanted;
    if (have->shape.dtype == RO_F32 || have->shape.dtype == RO_BF16)
        alike.dtype = have->shape.dtype;
    if (ro_shape_equal(&have->shape, &alike))
        return VD_OK;
    vd_shape_text(&have->shape, is);
    vd_shape_text(wanted, must);
    return vd_fail(err, VD_ERR_USAGE,
                   "the state to go on from: the shape of %s is [%s], expected [%s]", have->name,
                   is, must);
}

static vd_status check_leaf(const vd_training *t, const vd_leaf *leaf, bool may_lack, vd_err *err) {
    const int64_t at = start_of(t, leaf->name);
    if (at < 0 && may_lack)
        return VD_OK;
    if (at < 0)
        return vd_fail(err, VD_ERR_USAGE, "the state to go on from has no tensor %s", leaf->name);
    return check_shape(&t->start[at], &leaf->shape, err);
}

static bool program_has(const vd_program *program, const char *leaf) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (strcmp(program->leaf[i].name, leaf) == 0)
            return true;
    return false;
}

vd_status vd_check_start(const vd_training *t, const vd_parameters *all, const vd_program *program,
                         vd_err *err) {
    const uint32_t buffers = program->leaf_count - all->buffer_count;
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < program->leaf_count && status == VD_OK; i++)
        status = check_leaf(t, &program->leaf[i],
                            t->start_bare && i >= all->trained_count && i < buffers, err);
    for (uint32_t i = 0; i < t->start_count && status == VD_OK; i++)
        if (!program_has(program, t->start[i].name))
            status = vd_fail(err, VD_ERR_USAGE,
                             "the state to go on from has a tensor %s, which the job has not",
                             t->start[i].name);
    return status;
}

/* ---- evaluation ---- */

bool vd_in_start(const vd_training *t, const vd_parameter *p) {
    return t->start && start_of(t, p->name) >= 0;
}

static vd_status freeze_one(const vd_training *t, vd_parameter *p, uint32_t first, uint32_t *taken,
                            vd_err *err) {
    const int64_t at = start_of(t, p->name);
    if (at < 0)
        return p->data ? VD_OK
                       : vd_fail(err, VD_ERR_USAGE,
                                 "%s: nothing says what it is: `weights` is missing", p->name);
    p->data = first + (uint32_t)at;
    p->layout = VD_FILE_SAME;
    (*taken)++;
    return check_shape(&t->start[at], &p->shape, err);
}

vd_status vd_freeze_start(const vd_training *t, vd_parameters *all, vd_err *err) {
    const uint32_t first = vd_data_count(all);
    uint32_t taken = 0;
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < all->count && status == VD_OK; i++)
        status = freeze_one(t, &all->parameter[i], first, &taken, err);
    if (status == VD_OK && taken != t->start_count)
        status = vd_fail(err, VD_ERR_USAGE,
                         "the state to evaluate has %u tensors, and the job's model %u of them",
                         t->start_count, taken);
    return status;
}

/* ---- the state's tensors as data tensors of the program ---- */

void vd_put_start(const vd_training *t, uint32_t first, vd_program *out) {
    for (uint32_t i = 0; i < t->start_count; i++) {
        vd_data *to = &out->data[first + i];
        snprintf(to->tensor.name, sizeof to->tensor.name, "%s", t->start[i].name);
        to->tensor.shape = t->start[i].shape;
        memcpy(to->root, t->start[i].root, sizeof to->root);
    }
}

vd_value vd_from_start(vd_builder *b, const vd_training *t, uint32_t first, const vd_leaf *leaf) {
    const int64_t at = start_of(t, leaf->name);
    const vd_op same = {.op = RO_OP_RESHAPE, .shape = &leaf->shape};
    if (at < 0)
        return VD_NONE;
    const vd_value x = vd_data_value(b, first + (uint32_t)at);
    return t->start[at].shape.dtype == leaf->shape.dtype
               ? VD_EMIT(b, leaf->name, same, x)
               : vd_cast(b, leaf->name, x, leaf->shape.dtype);
}
