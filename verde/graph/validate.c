/* Checks what a program must satisfy, whoever wrote its bytes. PROTOCOL.md section 1.3. */
#include <stdlib.h>
#include <string.h>

#include "verde/graph/validate.h"

/* A state leaf or a data tensor. */
static vd_status check_leaf(const vd_leaf *leaf, const char *what, uint32_t index, vd_err *err) {
    if (!vd_valid_name(leaf->name, 0, 0))
        return vd_fail(err, VD_ERR_PEER,
                       "program: name of %s %u: expected at most %d bytes of printable ASCII", what,
                       index, VD_NAME_SIZE - 1);
    if (ro_dtype_size(leaf->shape.dtype) == 0) {
        const vd_text why = vd_say_type(leaf->shape.dtype);
        return vd_fail(err, why.status, "program: %s %u (%s): %s", what, index, leaf->name,
                       why.text);
    }
    if (!ro_shape_valid(&leaf->shape) || !vd_has_elements(&leaf->shape))
        return vd_fail(err, VD_ERR_PEER,
                       "program: shape of %s %u (%s): expected 1 to 2^40 elements", what, index,
                       leaf->name);
    return VD_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const vd_leaf *const *)a)->name, (*(const vd_leaf *const *)b)->name);
}

/* Checks that leaf names differ, because weights and results are looked up by name. */
static vd_status check_names(const vd_program *program, vd_err *err) {
    const uint32_t count = program->leaf_count;
    const vd_leaf **list = calloc((size_t)count + 1, sizeof *list);
    vd_status status = VD_OK;
    if (!list)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < count; i++)
        list[i] = &program->leaf[i];
    qsort(list, count, sizeof *list, by_name);
    for (uint32_t i = 1; status == VD_OK && i < count; i++)
        if (strcmp(list[i - 1]->name, list[i]->name) == 0)
            status = vd_fail(err, VD_ERR_PEER, "program: two state leaves have the name `%s`",
                             list[i]->name);
    free(list);
    return status;
}

static vd_status check_ranges(const vd_program *program, vd_err *err) {
    for (uint32_t i = 0; i < program->data_count; i++) {
        const vd_data *d = &program->data[i];
        if (!vd_valid_range(d))
            return vd_fail(
                err, VD_ERR_PEER,
                "program: range %lld to %lld of data tensor %u (%s), of type %s: expected "
                "a part, but not the whole, of a type of integers",
                (long long)d->range.least, (long long)d->range.greatest, i, d->tensor.name,
                ro_dtype_name(d->tensor.shape.dtype));
    }
    return VD_OK;
}

static vd_status check_sources(const vd_program *program, vd_err *err) {
    if (program->steps < 1 || program->steps > VD_STEPS_MAX || program->checkpoint_interval < 1 ||
        program->checkpoint_interval > program->steps)
        return vd_fail(err, VD_ERR_PEER,
                       "program: steps %lld, checkpoint interval %lld, expected 1 to %d steps and "
                       "an interval from 1 to as many",
                       (long long)program->steps, (long long)program->checkpoint_interval,
                       VD_STEPS_MAX);
    if (program->leaf_count == 0 || program->leaf_count > VD_LEAVES_MAX)
        return vd_fail(err, VD_ERR_PEER, "program: %u state leaves, expected 1 to %d",
                       program->leaf_count, VD_LEAVES_MAX);
    if (program->data_count > VD_DATA_MAX)
        return vd_fail(err, VD_ERR_PEER, "program: %u data tensors, expected at most %d",
                       program->data_count, VD_DATA_MAX);
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < program->leaf_count; i++)
        status = check_leaf(&program->leaf[i], "state leaf", i, err);
    for (uint32_t i = 0; status == VD_OK && i < program->data_count; i++)
        status = check_leaf(&program->data[i].tensor, "data tensor", i, err);
    if (status == VD_OK)
        status = check_names(program, err);
    return status == VD_OK ? check_ranges(program, err) : status;
}

static bool valid_rounding(const vd_program_rounding *r) {
    bool valid =
        r->bits == 0 || (r->bits >= 16 && r->bits <= 32 && (r->encoding == 1 || r->encoding == 2));
    for (int op = 0; op < RO_OP_END; op++)
        valid &= r->threshold[op] == 0 || (r->encoding == 2 && ro_op_describe(op) &&
                                           r->threshold[op] >= 0x1p-1022 && r->threshold[op] <= 1);
    return valid;
}

vd_status vd_program_validate(const vd_program *program, vd_err *err) {
    vd_status status = check_sources(program, err);
    if (status == VD_OK && program->rounding.encoding > 2)
        status = vd_fail(err, VD_ERR_VERSION,
                         "program: encoding %d of rounding logs is not known to this version",
                         (int)program->rounding.encoding);
    if (status == VD_OK && !valid_rounding(&program->rounding))
        status = vd_fail(err, VD_ERR_PEER, "program: rounding to %d bits in encoding %d",
                         (int)program->rounding.bits, (int)program->rounding.encoding);
    if (status != VD_OK)
        return status;
    ro_shape *shapes = calloc(RO_MAX_INPUTS, sizeof *shapes);
    if (!shapes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    status = vd_check_graph(program, &program->init, shapes, err);
    if (status == VD_OK)
        status = vd_check_graph(program, &program->step, shapes, err);
    free(shapes);
    return status;
}
