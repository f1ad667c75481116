/* Layers of arithmetic and of functions of one element, with their backward nodes: SPEC 6. */
#include "verde/graph/tape.h"

/* ---- arithmetic: the second operand may repeat ---- */

static vd_value binary(vd_builder *b, const char *name, vd_layer layer, int op, vd_value x,
                       vd_value y) {
    vd_value out = VD_EMIT(b, name, ((vd_op){.op = op}), x, y);
    vd_tape_put(b, (vd_record){.layer = layer, .in = {x, y, VD_NONE}, .out = out});
    return out;
}

vd_value vd_add(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_ADD, RO_OP_ADD, x, y);
}

vd_value vd_mul(vd_builder *b, const char *name, vd_value x, vd_value y) {
    x = vd_stored_of(b, "left", x), y = vd_stored_of(b, "right", y);
    return binary(b, name, VD_LAYER_MUL, RO_OP_MUL, x, y);
}

vd_value vd_sub(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_SUB, RO_OP_SUB, x, y);
}

vd_value vd_div(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_DIV, RO_OP_DIV, x, y);
}

vd_value vd_max(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_MAX, RO_OP_MAX, x, y);
}

vd_value vd_min(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_MIN, RO_OP_MIN, x, y);
}

static vd_op scale_op(float factor) {
    return (vd_op){RO_OP_SCALE, {[RO_SCALE_FACTOR] = ro_attr_f32(factor)}, NULL};
}

vd_value vd_scale(vd_builder *b, const char *name, vd_value x, float factor) {
    vd_value out = VD_EMIT(b, name, scale_op(factor), x);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_SCALE,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .number = ro_attr_f32(factor)});
    return out;
}

/* The gradient of an operand that repeated is the sum over its repetitions. */
void vd_accumulate_repeated(vd_builder *b, vd_value y, vd_value dy) {
    if (!vd_wants_gradient(b, y))
        return;
    ro_shape shape = *vd_shape_of(b, y);
    if (!ro_shape_equal(&shape, vd_shape_of(b, dy)))
        dy = vd_column_sum(b, "d_bias", RO_OP_SUM_ROWS, &shape, 1, &dy);
    vd_accumulate(b, y, dy);
}

void vd_back_add(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], dy);
    vd_accumulate_repeated(b, r->in[1], dy);
}

void vd_back_mul(vd_builder *b, const vd_record *r, vd_value dy) {
    const vd_op mul = {.op = RO_OP_MUL};
    const vd_value left = r->in[0], right = r->in[1];
    if (vd_wants_gradient(b, left))
        vd_accumulate(b, left,
                      VD_EMIT(b, "d_left", mul, dy, vd_read_again(b, "right_again", right)));
    if (vd_wants_gradient(b, right))
        vd_accumulate_repeated(
            b, right, VD_EMIT(b, "d_right", mul, dy, vd_read_again(b, "left_again", left)));
}

void vd_back_sub(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], dy);
    if (vd_wants_gradient(b, r->in[1]))
        vd_accumulate_repeated(b, r->in[1], VD_EMIT(b, "d_right", scale_op(-1.0f), dy));
}

/* d(x / y) = dx / y - (dx / y) (x / y) */
void vd_back_div(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value dx = VD_EMIT(b, "d_left", ((vd_op){.op = RO_OP_DIV}), dy, r->in[1]);
    vd_accumulate(b, r->in[0], dx);
    if (!vd_wants_gradient(b, r->in[1]))
        return;
    vd_value right = VD_EMIT(b, "d_right", ((vd_op){.op = RO_OP_MUL}), dx, r->out);
    vd_accumulate_repeated(b, r->in[1], VD_EMIT(b, "d_right", scale_op(-1.0f), right));
}

void vd_back_scale(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_scale", scale_op(ro_attr_to_f32(r->number)), dy));
}

/* ---- functions: the record's number is the operator ---- */

/* Those of feed-forward layers, whose backward rule reads the argument. */
static bool stores_argument(int op) {
    return op == RO_OP_SILU || op == RO_OP_GELU || op == RO_OP_GELU_ERF || op == RO_OP_RELU;
}

static vd_value function(vd_builder *b, int op, vd_value x) {
    if (stores_argument(op))
        x = vd_stored_of(b, "argument", x);
    vd_value out = VD_EMIT(b, ro_op_describe(op)->name, ((vd_op){.op = op}), x);
    vd_tape_put(
        b, (vd_record){
               .layer = VD_LAYER_FUNCTION, .in = {x, VD_NONE, VD_NONE}, .out = out, .number = op});
    return out;
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

vd_value vd_tanh(vd_builder *b, vd_value x) {
    return function(b, RO_OP_TANH, x);
}

vd_value vd_erf(vd_builder *b, vd_value x) {
    return function(b, RO_OP_ERF, x);
}

vd_value vd_sigmoid(vd_builder *b, vd_value x) {
    return function(b, RO_OP_SIGMOID, x);
}

vd_value vd_silu(vd_builder *b, vd_value x) {
    return function(b, RO_OP_SILU, x);
}

vd_value vd_gelu(vd_builder *b, vd_value x) {
    return function(b, RO_OP_GELU, x);
}

vd_value vd_gelu_erf(vd_builder *b, vd_value x) {
    return function(b, RO_OP_GELU_ERF, x);
}

vd_value vd_relu(vd_builder *b, vd_value x) {
    return function(b, RO_OP_RELU, x);
}

vd_value vd_leaky_relu(vd_builder *b, vd_value x, float slope) {
    const vd_op op = {RO_OP_LEAKY_RELU, {[RO_LEAKY_RELU_SLOPE] = ro_attr_f32(slope)}, NULL};
    vd_value out = VD_EMIT(b, "leaky_relu", op, x);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_LEAKY_RELU,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .number = ro_attr_f32(slope)});
    return out;
}

void vd_back_leaky_relu(vd_builder *b, const vd_record *r, vd_value dy) {
    const vd_op op = {RO_OP_LEAKY_RELU_GRAD, {[RO_LEAKY_RELU_GRAD_SLOPE] = r->number}, NULL};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_leaky_relu", op, r->in[0], dy));
}

/* A gradient operator reads the function's argument, or its result, and dy. */
static vd_value slope(vd_builder *b, const char *name, int op, vd_value reads, vd_value dy) {
    return VD_EMIT(b, name, ((vd_op){.op = op}), reads, dy);
}

static vd_value zero_like(vd_builder *b, const char *name, vd_value x) {
    const ro_shape shape = *vd_shape_of(b, x);
    return vd_emit(b, name, (vd_op){.op = RO_OP_FILL, .shape = &shape}, 0, NULL);
}

/* dy, or -dy where x is below 0. */
static vd_value signed_like(vd_builder *b, vd_value x, vd_value dy) {
    vd_value up = vd_compare(b, "d_abs", x, zero_like(b, "d_abs", x), RO_AT_LEAST);
    vd_value down = VD_EMIT(b, "d_abs", scale_op(-1.0f), dy);
    return VD_EMIT(b, "d_abs", ((vd_op){.op = RO_OP_WHERE}), up, dy, down);
}

static vd_value no_rule(vd_builder *b, int64_t op) {
    const ro_op_info *info = op > 0 && op < RO_OP_END ? ro_op_describe((int)op) : NULL;
    vd_builder_fail(b, VD_ERR_USAGE, "no gradient rule for operator %lld (%s)", (long long)op,
                    info ? info->name : "unknown");
    return VD_NONE;
}

void vd_back_function(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value x = r->in[0], y = r->out, dx;
    if (stores_argument((int)r->number))
        x = vd_read_again(b, "argument_again", x);
    const vd_op mul = {.op = RO_OP_MUL}, div = {.op = RO_OP_DIV};
    switch (r->number) {
    case RO_OP_EXP: dx = VD_EMIT(b, "d_exp", mul, dy, y); break;
    case RO_OP_ABS: dx = signed_like(b, x, dy); break;
    case RO_OP_LOG: dx = VD_EMIT(b, "d_log", div, dy, x); break;
    case RO_OP_SQRT:
        dx = VD_EMIT(b, "d_sqrt", div, VD_EMIT(b, "d_sqrt", scale_op(0.5f), dy), y);
        break;
    case RO_OP_RSQRT: /* -y / (2 x) */
        dx = VD_EMIT(b, "d_rsqrt", div, VD_EMIT(b, "d_rsqrt", mul, dy, y), x);
        dx = VD_EMIT(b, "d_rsqrt", scale_op(-0.5f), dx);
        break;
    case RO_OP_TANH: dx = slope(b, "d_tanh", RO_OP_TANH_GRAD, y, dy); break;
    case RO_OP_SIGMOID: dx = slope(b, "d_sigmoid", RO_OP_SIGMOID_GRAD, y, dy); break;
    case RO_OP_ERF: dx = slope(b, "d_erf", RO_OP_ERF_GRAD, x, dy); break;
    case RO_OP_SILU: dx = slope(b, "d_silu", RO_OP_SILU_GRAD, x, dy); break;
    case RO_OP_GELU: dx = slope(b, "d_gelu", RO_OP_GELU_GRAD, x, dy); break;
    case RO_OP_GELU_ERF: dx = slope(b, "d_gelu", RO_OP_GELU_ERF_GRAD, x, dy); break;
    case RO_OP_RELU: dx = slope(b, "d_relu", RO_OP_RELU_GRAD, x, dy); break;
    default: dx = no_rule(b, r->number); break;
    }
    vd_accumulate(b, r->in[0], dx);
}

/* ---- choices ---- */

vd_value vd_compare(vd_builder *b, const char *name, vd_value x, vd_value y, ro_relation kind) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_COMPARE, {[RO_COMPARE_KIND] = kind}, NULL}), x, y);
}

vd_value vd_where(vd_builder *b, const char *name, vd_value choice, vd_value x, vd_value y) {
    vd_value out = VD_EMIT(b, name, ((vd_op){.op = RO_OP_WHERE}), choice, x, y);
    vd_tape_put(
        b,
        (vd_record){.layer = VD_LAYER_WHERE, .in = {x, y, VD_NONE}, .out = out, .saved = {choice}});
    return out;
}

/* dy goes to x where the choice is not 0, else to y, which may have repeated. */
static void share(vd_builder *b, const vd_record *r, vd_value choice, vd_value dy) {
    const vd_op where = {.op = RO_OP_WHERE};
    vd_value zero = zero_like(b, "d_zero", dy);
    if (vd_wants_gradient(b, r->in[0]))
        vd_accumulate(b, r->in[0], VD_EMIT(b, "d_left", where, choice, dy, zero));
    if (vd_wants_gradient(b, r->in[1]))
        vd_accumulate_repeated(b, r->in[1], VD_EMIT(b, "d_right", where, choice, zero, dy));
}

void vd_back_where(vd_builder *b, const vd_record *r, vd_value dy) {
    share(b, r, r->saved[0], dy);
}

/* The first of two that are equal has it all. */
void vd_back_max(vd_builder *b, const vd_record *r, vd_value dy) {
    share(b, r, vd_compare(b, "d_max", r->in[0], r->in[1], RO_AT_LEAST), dy);
}

void vd_back_min(vd_builder *b, const vd_record *r, vd_value dy) {
    share(b, r, vd_compare(b, "d_min", r->in[0], r->in[1], RO_AT_MOST), dy);
}
