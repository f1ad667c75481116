/* This file takes the numbers that a step reports, while it runs. */
#include <math.h>
#include <stdlib.h>

#include "repops/op_optimizer.h"
#include "repops/op_reduce.h"
#include "repops/op_sampling.h"
#include "verde/exec/choice.h"
#include "verde/exec/executor.h"
#include "verde/exec/memory.h"

vd_status vd_read_number(const vd_execution *x, const void *from, float *to, bool *has,
                         vd_err *err) {
    *has = true;
    return vd_memory_read(x->memory, to, from, sizeof *to, err);
}

/* Finds whether the text had ended before the step, so that the chosen token is ignored. In a
 * foreign graph the leaf may have been freed already; then it counts as not stopped. */
static vd_status is_stopped(const vd_execution *x, bool *out, vd_err *err) {
    const ro_shape one = {RO_I32, 1, {1}};
    const uint32_t leaf = vd_stopped_leaf(x->program);
    int32_t word = 0;
    const bool there =
        leaf != UINT32_MAX && x->value[leaf] && ro_shape_equal(&x->program->leaf[leaf].shape, &one);
    const vd_status status =
        there ? vd_memory_read(x->memory, &word, x->value[leaf], sizeof word, err) : VD_OK;
    *out = word != 0;
    return status;
}

static vd_status take_choice(const vd_execution *x, uint32_t node, vd_err *err) {
    void *copy = NULL;
    int32_t chosen;
    bool stopped = false;
    vd_status status = is_stopped(x, &stopped, err);
    if (status != VD_OK || stopped)
        return status;
    const uint32_t from = vd_node_input(x->graph, node, 0);
    const size_t size = vd_shape_bytes(vd_value_shape(x->program, x->graph, from));
    const void *input = vd_memory_in_host(x->memory, x->value[from], size, &copy, err);
    status =
        input ? vd_memory_read(x->memory, &chosen, x->value[x->sources + node], sizeof chosen, err)
              : VD_ERR_LOCAL;
    if (status == VD_OK)
        x->exec->numbers->void_choice = !vd_choice_follows(x->program, node, input, &chosen);
    free(copy);
    return status;
}

/* Takes the learning rate and the norm where they are computed, and checks whether a chosen token
 * follows from its logits. */
vd_status vd_take_numbers(const vd_execution *x, uint32_t node, vd_err *err) {
    vd_step_numbers *n = x->exec->numbers;
    const int op = vd_node_stored(x->graph, node)->op;
    if (n && (op == RO_OP_ARGMAX || op == RO_OP_DRAW) && x->step >= 0 &&
        vd_choosing_node(x->program) == node)
        return take_choice(x, node, err);
    if (!n || (op != RO_OP_LR_SCHEDULE && op != RO_OP_CLIP_SCALE))
        return VD_OK;
    if (op == RO_OP_LR_SCHEDULE)
        return vd_read_number(x, x->value[x->sources + node], &n->lr, &n->has_lr, err);
    vd_status status = vd_read_number(x, x->input[0], &n->grad_norm, &n->has_grad_norm, err);
    n->grad_norm = sqrtf(n->grad_norm); /* the input is the sum of squares */
    return status;
}
