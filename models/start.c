/* The state that a training goes on from: leaves of another program, as data tensors of this one.
 */
#include <string.h>

#include "models/model.h"

static int64_t start_of(const vd_training *t, const char *leaf) {
    for (uint32_t i = 0; i < t->start_count; i++)
        if (strcmp(t->start[i].name, leaf) == 0)
            return i;
    return -1;
}

static vd_status check_leaf(const vd_training *t, const vd_leaf *leaf, bool may_lack, vd_err *err) {
    const int64_t at = start_of(t, leaf->name);
    char is[VD_SHAPE_TEXT], must[VD_SHAPE_TEXT];
    if (at < 0 && may_lack)
        return VD_OK;
    if (at < 0)
        return vd_fail(err, VD_ERR_USAGE, "the state to go on from has no tensor %s", leaf->name);
    if (ro_shape_equal(&t->start[at].shape, &leaf->shape))
        return VD_OK;
    vd_shape_text(&t->start[at].shape, is);
    vd_shape_text(&leaf->shape, must);
    return vd_fail(err, VD_ERR_USAGE,
                   "the state to go on from: the shape of %s is [%s], expected [%s]", leaf->name,
                   is, must);
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
    return VD_EMIT(b, leaf->name, same, vd_data_value(b, first + (uint32_t)at));
}
