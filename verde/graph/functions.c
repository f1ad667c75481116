/* Single operators as layers. The operator table names most of their gradients; a few functions
 * have gradients of several operators, which are written here. */
#include <string.h>

#include "repops/op_elementwise.h"
#include "verde/graph/tape.h"
#include "repops/op_function.h"

/* ---- forward ---- */

static bool is_stored(const ro_op_info *info) {
    return info->gradient && info->gradient_reads == RO_READS_STORED;
}

vd_value vd_apply(vd_builder *b, const char *name, vd_op op, int32_t input_count,
                  const vd_value *input) {
    const ro_op_info *info = ro_op_describe(op.op);
    vd_value stored;
    if (info && is_stored(info) && input_count == 1) {
        stored = vd_stored_of(b, "argument", input[0]);
        input = &stored;
    }
    const vd_value out = vd_emit(b, name, op, input_count, input);
    /* One record per input: layers with a backward rule read one input. */
    for (int32_t i = 0; i < input_count; i++) {
        vd_record record = {.layer = VD_LAYER_OPERATOR,
                            .in = {input[i], VD_NONE, VD_NONE},
                            .out = out,
                            .number = op.op};
        memcpy(record.attr, op.attr, sizeof record.attr);
        vd_tape_put(b, record);
    }
    return out;
}

static vd_value function(vd_builder *b, int op, vd_value x) {
    return VD_APPLY(b, ro_op_describe(op)->name, ((vd_op){.op = op}), x);
}

vd_value vd_exp(vd_builder *b, vd_value x) {
    return function(b, RO_OP_EXP, x);
}

vd_value vd_log(vd_builder *b, vd_value x) {
    return function(b, RO_OP_LOG, x);
}

vd_value vd_sqrt(vd_builder *b, vd_value x) {
    return function(b, RO_OP_SQRT, x);
}

vd_value vd_rsqrt(vd_builder *b, vd_value x) {
    return function(b, RO_OP_RSQRT, x);
}

vd_value vd_abs(vd_builder *b, vd_value x) {
    return function(b, RO_OP_ABS, x);
}

/* ---- backward ---- */

/* Builds the gradient's operator. It copies the attributes that both operators have, by name. */
static vd_op gradient_of(const ro_op_info *info, const int64_t *attr) {
    const ro_op_info *gradient = ro_op_describe(info->gradient);
    vd_op op = {.op = info->gradient};
    for (int i = 0; i < gradient->attr_count; i++)
        for (int k = 0; k < info->attr_count; k++)
            if (strcmp(gradient->attr[i].name, info->attr[k].name) == 0)
                op.attr[i] = attr[k];
    return op;
}

/* Names the gradient's node. Names are part of a program's hash, so both kinds of gelu must keep
 * the one name that they have always had. */
static void name_gradient(char *name, const ro_op_info *info, int64_t op) {
    snprintf(name, VD_NAME_SIZE, "d_%s", op == RO_OP_GELU_ERF ? "gelu" : info->name);
}

static vd_value by_table(vd_builder *b, const vd_record *r, const ro_op_info *info, vd_value dy) {
    char name[VD_NAME_SIZE];
    vd_value reads = info->gradient_reads == RO_READS_RESULT ? r->out : r->in[0];
    name_gradient(name, info, r->number);
    if (is_stored(info))
        reads = vd_read_again(b, "argument_again", reads);
    return VD_EMIT(b, name, gradient_of(info, r->attr), reads, dy);
}

/* dy, or -dy where x is below 0. */
static vd_value signed_like(vd_builder *b, vd_value x, vd_value dy) {
    vd_value up = vd_compare(b, "d_abs", x, vd_zero_like(b, "d_abs", x), RO_AT_LEAST);
    vd_value down = VD_EMIT(b, "d_abs", vd_scale_op(-1.0f), dy);
    return VD_EMIT(b, "d_abs", ((vd_op){.op = RO_OP_WHERE}), up, dy, down);
}

static vd_value no_rule(vd_builder *b, int64_t op, const ro_op_info *info) {
    const char *why = !info               ? "there is no such number"
                      : info->no_gradient ? info->no_gradient
                                          : "only a layer of its own may have one";
    vd_builder_fail(b, VD_ERR_USAGE, "no gradient rule for operator %lld (%s): %s", (long long)op,
                    info ? info->name : "unknown", why);
    return VD_NONE;
}

static vd_value composed(vd_builder *b, const vd_record *r, const ro_op_info *info, vd_value dy) {
    const vd_op mul = {.op = RO_OP_MUL}, div = {.op = RO_OP_DIV};
    const vd_value x = r->in[0], y = r->out;
    vd_value dx;
    switch (r->number) {
    case RO_OP_EXP: return VD_EMIT(b, "d_exp", mul, dy, y);
    case RO_OP_ABS: return signed_like(b, x, dy);
    case RO_OP_LOG: return VD_EMIT(b, "d_log", div, dy, x);
    case RO_OP_SQRT:
        dx = VD_EMIT(b, "d_sqrt", vd_scale_op(0.5f), dy);
        return VD_EMIT(b, "d_sqrt", div, dx, y);
    case RO_OP_RSQRT: /* -y / (2 x) */
        dx = VD_EMIT(b, "d_rsqrt", mul, dy, y);
        dx = VD_EMIT(b, "d_rsqrt", div, dx, x);
        return VD_EMIT(b, "d_rsqrt", vd_scale_op(-0.5f), dx);
    default: return no_rule(b, r->number, info);
    }
}

void vd_back_operator(vd_builder *b, const vd_record *r, vd_value dy) {
    const bool may_be = r->number > 0 && r->number < RO_OP_END;
    const ro_op_info *info = may_be ? ro_op_describe((int)r->number) : NULL;
    const bool has_row = info && info->gradient;
    vd_accumulate(b, r->in[0], has_row ? by_table(b, r, info, dy) : composed(b, r, info, dy));
}
