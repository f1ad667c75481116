#include "tests/unit/op_cases.h"
#include "tests/unit/op_cases_attention.h"
#include "tests/unit/op_cases_image.h"
#include "tests/unit/op_cases_movement.h"
#include "tests/unit/op_cases_rows.h"
#include "tests/unit/op_cases_sampling.h"
#include "repops/operators.h"
#include "tests/unit/valid_calls.h"

#include <string.h>

/* ---- valid calls ---- */

/* clang-format off */
#define SHAPE(type, ...) {type, (int32_t)(sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t)), {__VA_ARGS__}}
#define F32(...) SHAPE(RO_F32, __VA_ARGS__)
#define I32(...) SHAPE(RO_I32, __VA_ARGS__)
#define U8(...) SHAPE(RO_U8, __VA_ARGS__)
#define U16(...) SHAPE(RO_U16, __VA_ARGS__)
#define BF16(...) SHAPE(RO_BF16, __VA_ARGS__)
#define ATTRS(...) {__VA_ARGS__}
#define INPUTS(...) {__VA_ARGS__}

static const valid_call samples[] = {
#define RO_SAMPLE(NAME, cases, attrs, inputs, output) {RO_OP_##NAME, 0, attrs, inputs, output},
#include "repops/src/operators.def"
};
#undef SHAPE
#undef F32
#undef I32
#undef U8
#undef U16
#undef BF16
#undef ATTRS
#undef INPUTS
/* clang-format on */

/* Returns a call for an operator without a row here: all tensors have one shape, all attributes are
 * 1. */
static valid_call usual_call(int op) {
    const ro_op_info *info = ro_op_describe(op);
    const ro_shape usual = {RO_F32, 2, {3, 4}};
    valid_call v = {.op = op, .output = usual};
    for (int i = 0; i < info->min_inputs && i < 7; i++)
        v.input[i] = usual;
    for (int i = 0; i < info->attr_count; i++)
        v.attr[i] = info->attr[i].kind == 'f' ? FLOAT_1 : 1;
    return v;
}

valid_call valid_call_of(int op) {
    valid_call v = {.op = RO_OP_NONE};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (samples[i].op == op)
            v = samples[i];
    if (v.op == RO_OP_NONE)
        v = usual_call(op);
    while (v.input_count < 7 && v.input[v.input_count].ndim > 0)
        v.input_count++;
    return v;
}

/* ---- one element ---- */

/* Rolls one shape for all inputs, except those that have one element in the valid call. */
static void roll_elementwise(op_case *c, dice *d) {
    const ro_shape x = shape_of(RO_F32, 3, 1 + roll(d, 3), roll_dim(d, 60), roll_dim(d, 1100), 0);
    for (int i = 0; i < c->call.input_count; i++) {
        const int dtype = c->in[i].dtype;
        if (ro_shape_numel(&c->in[i]) > 1)
            c->in[i] = x;
        c->in[i].dtype = dtype;
    }
    roll_attributes(c, d);
}

/* Rolls two inputs, of which the second broadcasts along the first. */
static void roll_pair(op_case *c, dice *d) {
    roll_elementwise(c, d);
    const ro_shape a = c->in[0];
    c->in[1] = a;
    if (roll(d, 3))
        c->in[1] = roll(d, 3) == 0 ? shape1(1)
                   : roll(d, 2)    ? shape1(a.dim[2])
                                   : shape2(a.dim[1], a.dim[2]);
    c->in[1].dtype = a.dtype;
}

/* Rolls integers with few distinct values, so that some are equal. */
static void roll_compare(op_case *c, dice *d) {
    roll_pair(c, d);
    c->call.attr[RO_COMPARE_KIND] = roll(d, RO_AT_LEAST + 1);
    c->ids = 3;
    if (roll(d, 2))
        c->in[0].dtype = c->in[1].dtype = RO_I32;
}

/* Rolls any integers, or small ones, which are often 0 as divisors and useful as shift counts. */
static void roll_integer(op_case *c, dice *d) {
    roll_pair(c, d);
    c->call.attr[RO_INTEGER_KIND] = roll(d, RO_LARGER + 1);
    c->ids = roll(d, 2) ? 40 : 0;
}

static void roll_rounded(op_case *c, dice *d) {
    roll_elementwise(c, d);
    c->call.attr[RO_ROUND_KIND] = roll(d, RO_TOWARD_ZERO + 1);
}

static void roll_where(op_case *c, dice *d) {
    roll_elementwise(c, d);
    c->in[1].dtype = c->in[2].dtype = roll_type(d);
    c->ids = 2;
}

static void roll_dropout(op_case *c, dice *d) {
    roll_elementwise(c, d);
    c->call.attr[RO_DROPOUT_THRESHOLD] =
        roll(d, 3) ? roll(d, 1 << 30) * 4 : roll(d, 2) * UINT32_MAX;
}

static void roll_ln_rstd(op_case *c, dice *d) {
    roll_elementwise(c, d);
    c->call.attr[RO_LN_RSTD_N] = 1 + roll(d, roll(d, 2) ? 1100 : INT64_C(1) << 40);
}

static void roll_lr_schedule(op_case *c, dice *d) {
    roll_attributes(c, d);
    c->call.attr[RO_LR_SCHEDULE_KIND] = roll(d, 3);
    c->call.attr[RO_LR_SCHEDULE_WARMUP] = roll(d, 2) ? roll(d, 3000) : 0;
    if (c->call.attr[RO_LR_SCHEDULE_KIND] != RO_LR_CONSTANT)
        c->call.attr[RO_LR_SCHEDULE_TOTAL] =
            c->call.attr[RO_LR_SCHEDULE_WARMUP] + 1 + roll(d, 3000);
}

/* ---- products ---- */

/* Rolls a product; some are large enough for several threads and blocks. Returns the number of
 * terms of an element. */
static int64_t roll_product(op_case *c, dice *d) {
    const int64_t trans = roll(d, 4), size = roll(d, 3);
    const int64_t most = size == 0 ? 40 : size == 1 ? 300 : 1100;
    const int64_t wide = size == 2 ? roll(d, 2) : 0; /* more columns than a block has */
    const int64_t m = roll_dim(d, size == 2 ? (wide ? 30 : 400) : most);
    const int64_t n = roll_dim(d, size == 2 ? (wide ? 1100 : 64) : most);
    const int64_t k = roll_dim(d, most), dims = size == 2 ? roll(d, 2) : roll(d, 3);
    const int64_t b0 = 1 + roll(d, 3), b1 = 1 + roll(d, 3);
    const ro_shape a = trans & 1 ? shape2(k, m) : shape2(m, k);
    const ro_shape b = trans & 2 ? shape2(n, k) : shape2(k, n);
    c->in[0] = dims == 0   ? a
               : dims == 1 ? shape_of(RO_F32, 3, b0, a.dim[0], a.dim[1], 0)
                           : shape_of(RO_F32, 4, b0, b1, a.dim[0], a.dim[1]);
    c->in[1] = dims == 0   ? b
               : dims == 1 ? shape_of(RO_F32, 3, b0, b.dim[0], b.dim[1], 0)
                           : shape_of(RO_F32, 4, b0, b1, b.dim[0], b.dim[1]);
    c->call.attr[RO_PRODUCT_BATCH_DIMS] = dims;
    c->call.attr[RO_PRODUCT_TRANS] = trans;
    c->call.attr[RO_PRODUCT_ALPHA] = roll(d, 3) ? ro_attr_f32(1.0f) : roll_f32(d, 1);
    return k;
}

static void roll_matmul(op_case *c, dice *d) {
    const int64_t k = roll_product(c, d);
    if (roll(d, 3) == 0)
        c->in[1].dtype = roll_float(d);
    c->call.attr[RO_MATMUL_CHUNK] = roll(d, 2) ? RO_DOT_CHUNK : RO_ATTN_BLOCK;
    c->call.attr[RO_MATMUL_MASK] = roll(d, 3);
    if (c->call.attr[RO_MATMUL_MASK] && roll(d, 2))
        c->call.attr[RO_MATMUL_WINDOW] = roll_dim(d, k);
}

static void roll_matmul_fixed(op_case *c, dice *d) {
    roll_product(c, d);
    c->call.attr[RO_MATMUL_FIXED_BITS] = 8 + 8 * roll(d, 3);
}

/* ---- all operators ---- */

/* Rolls shapes and attributes with the function that the operator's row RO_SAMPLE names; on entry c
 * has the inputs and output of the valid call. */
static void case_roll_call(op_case *c, dice *d) {
    static void (*const rollers[RO_OP_END])(op_case * c, dice * d) = {
#define RO_SAMPLE(NAME, cases, ...) [RO_OP_##NAME] = roll_##cases,
#include "repops/src/operators.def"
    };
    const int op = c->call.op;
    const valid_call v = valid_call_of(op);
    c->call.input_count = v.input_count;
    memcpy(c->in, v.input, sizeof v.input);
    c->call.output = v.output;
    (rollers[op] ? rollers[op] : roll_elementwise)(c, d);
    if (!ro_op_describe(op)->declared_shape)
        c->call.output = (ro_shape){0};
}

const char *case_roll(op_case *c, int op, uint64_t seed) {
    static char why[200];
    dice d = {seed, 0};
    memset(c, 0, sizeof *c);
    c->call.op = op;
    c->call.input = c->in;
    case_roll_call(c, &d);
    if (ro_infer(&c->call, why, sizeof why) != RO_OK)
        return why;
    case_fill(c, seed, (data_class)roll(&d, DATA_END));
    return NULL;
}
