/* Valid calls, and the shapes they infer: repops/SPEC.md sections 3 to 9 and 11. */
#include "repops/ref.h"
#include "repops/operators.h"
#include "each_operator.h"
#include "random_calls.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST RO_MAX_NUMEL

static const char *name_of(int op) {
    const ro_op_info *info = ro_op_describe(op);
    return info ? info->name : "no operator";
}

/* ---- operators ---- */

Test(operators, names_lead_back_to_numbers) {
    for (int op = next_operator(0); op; op = next_operator(op)) {
        const ro_op_info *info = ro_op_describe(op);
        cr_expect(ro_op_by_name(info->name) == op, "%s", info->name);
        cr_expect(info->min_inputs >= 0 && info->min_inputs <= info->max_inputs);
        cr_expect(info->max_inputs <= RO_MAX_INPUTS && info->attr_count <= RO_MAX_ATTRS);
    }
    cr_expect(ro_op_by_name("subtract") == RO_OP_NONE);
    cr_expect(ro_op_describe(INT32_MIN) == NULL && ro_op_describe(INT32_MAX) == NULL &&
              ro_op_describe(-1) == NULL && ro_op_describe(RO_OP_END) == NULL);
}

/* ---- valid calls ---- */

Test(infer, every_operator_has_a_valid_call_and_gives_its_shape) {
    static any_call c;
    char why[200];
    for (int op = next_operator(0); op; op = next_operator(op)) {
        const valid_call v = valid_call_of(op);
        copy_call(&c, &v);
        cr_assert(ro_infer(&c.call, why, sizeof why) == RO_OK,
                  "%s: is its row RO_SAMPLE in operators.def right, or missing?", why);
        cr_expect(ro_shape_equal(&c.call.output, &v.output), "%s", name_of(op));
        c.call.output = (ro_shape){0};
        const int declared = ro_op_describe(op)->declared_shape;
        const ro_status status = ro_infer(&c.call, why, sizeof why);
        cr_expect(status == (declared ? RO_ERR_ARG : RO_OK), "%s without a shape", name_of(op));
        cr_expect(declared || ro_shape_equal(&c.call.output, &v.output), "%s", name_of(op));
    }
}

/* clang-format off */
#define S(type, n, ...) {type, n, {__VA_ARGS__}}
#define F(n, ...) S(RO_F32, n, __VA_ARGS__)
#define I(n, ...) S(RO_I32, n, __VA_ARGS__)
/* clang-format on */

Test(infer, matmul_views_inputs_as_matrices) {
    const struct {
        int64_t batch_dims, trans;
        ro_shape a, b, want;
    } table[] = {
        {0, 0, F(2, 3, 4), F(2, 4, 5), F(2, 3, 5)},
        {0, 1, F(2, 4, 3), F(2, 4, 5), F(2, 3, 5)},
        {0, 2, F(2, 3, 4), F(2, 5, 4), F(2, 3, 5)},
        {0, 3, F(2, 4, 3), F(2, 5, 4), F(2, 3, 5)},
        {0, 0, F(3, 2, 3, 4), F(2, 4, 5), F(3, 2, 3, 5)},
        {0, 1, F(3, 2, 3, 4), F(3, 2, 3, 5), F(2, 4, 5)}, /* gradient of the weight */
        {0, 0, F(2, 3, 4), F(3, 2, 2, 5), F(2, 3, 5)},    /* b is flattened to rows */
        {2, 2, F(4, 2, 3, 4, 5), F(4, 2, 3, 6, 5), F(4, 2, 3, 4, 6)},
        {3, 0, F(5, 2, 3, 1, 4, 5), F(5, 2, 3, 1, 5, 6), F(5, 2, 3, 1, 4, 6)},
        {1, 3, F(3, 2, 4, 3), F(3, 2, 5, 4), F(3, 2, 3, 5)},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char why[200];
        const ro_shape in[] = {table[i].a, table[i].b};
        ro_call call = {
            RO_OP_MATMUL, 2, {table[i].batch_dims, table[i].trans, FLOAT_1, 256, 0}, in, {0}};
        cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "row %zu: %s", i, why);
        cr_expect(ro_shape_equal(&call.output, &table[i].want), "row %zu", i);
    }
}

Test(infer, an_operand_repeats_as_trailing_dimensions_or_as_one_element) {
    const ro_shape a = F(3, 2, 3, 4);
    const ro_shape fits[] = {F(1, 1),       F(4, 1, 1, 1, 1), F(1, 4),       F(2, 1, 4), F(2, 3, 4),
                             F(3, 2, 3, 4), F(3, 1, 3, 4),    F(3, 1, 1, 4), F(1, 12),   F(1, 24)};
    const ro_shape others[] = {F(1, 2),    F(1, 3),       F(1, 6),       F(1, 8),
                               F(2, 4, 3), F(2, 4, 1),    F(2, 1, 12),   F(3, 2, 1, 4),
                               F(2, 3, 1), F(3, 2, 3, 1), F(3, 2, 1, 1), F(4, 1, 2, 3, 4)};
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        const ro_shape in[] = {a, fits[i]};
        ro_call call = {RO_OP_ADD, 2, {0}, in, {0}};
        cr_expect(ro_infer(&call, NULL, 0) == RO_OK, "row %zu", i);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const ro_shape in[] = {a, others[i]};
        ro_call call = {RO_OP_ADD, 2, {0}, in, {0}};
        cr_expect(ro_infer(&call, NULL, 0) == RO_ERR_ARG, "row %zu", i);
    }
}

Test(infer, an_operand_per_row_has_the_leading_dimensions_or_one) {
    const ro_shape x = F(3, 2, 3, 5);
    const ro_shape fits[] = {F(1, 6), F(2, 2, 3), F(3, 2, 3, 1), F(2, 6, 1), F(4, 2, 1, 3, 1)};
    const ro_shape others[] = {F(2, 3, 2), F(3, 3, 2, 1), F(1, 3), F(3, 2, 3, 5)};
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        const ro_shape in[] = {x, fits[i], fits[i]};
        ro_call call = {RO_OP_SOFTMAX, 3, {0}, in, {0}};
        cr_expect(ro_infer(&call, NULL, 0) == RO_OK, "row %zu", i);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const ro_shape in[] = {x, fits[0], others[i]};
        ro_call call = {RO_OP_SOFTMAX, 3, {0}, in, {0}};
        cr_expect(ro_infer(&call, NULL, 0) == RO_ERR_ARG, "row %zu", i);
    }
}

/* ---- refusals: a valid call, one change to it, and a part of the message ---- */

typedef enum { ATTR, INPUT, OUTPUT, COUNT } place;

typedef struct {
    int op;
    place place;
    int64_t index, value; /* COUNT: number of inputs */
    ro_shape shape;
    const char *why;
} refusal;

static const refusal refusals[] = {
    {RO_OP_FILL, COUNT, 0, 1, {0}, "takes 0..0 inputs"},
    {RO_OP_FILL, ATTR, 0, -1, {0}, "value must be"},
    {RO_OP_FILL, ATTR, 0, INT64_C(1) << 32, {0}, "value must be"},
    {RO_OP_FILL, ATTR, 1, 1, {0}, "unused attribute"},
    {RO_OP_FILL, ATTR, 5, INT64_MIN, {0}, "unused attribute"},
    {RO_OP_FILL, OUTPUT, 0, 0, I(1, 3), "output must be f32"},
    {RO_OP_FILL, OUTPUT, 0, 0, {0}, "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, F(2, MOST, 2), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, F(2, INT64_MAX, INT64_MAX), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, F(3, 0, MOST, 2), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, F(2, 3, -1), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, F(1, 3, 4), "no valid shape"}, /* an unused dimension */
    {RO_OP_FILL, OUTPUT, 0, 0, F(9, 1, 1, 1, 1, 1, 1, 1, 1), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, F(-1, 1), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, S(0, 1, 1), "no valid shape"},
    {RO_OP_FILL, OUTPUT, 0, 0, S(8, 1, 1), "no valid shape"},
    {RO_OP_NORMAL, ATTR, 1, -1, {0}, "stream must be"},
    {RO_OP_NORMAL, ATTR, 1, INT64_C(1) << 32, {0}, "stream must be"},
    {RO_OP_NORMAL, ATTR, 2, -1, {0}, "mean must be"},
    {RO_OP_NORMAL, ATTR, 3, INT64_MAX, {0}, "std must be"},
    {RO_OP_NORMAL, OUTPUT, 0, 0, I(1, 3), "output must be f32"},
    {RO_OP_IOTA, OUTPUT, 0, 0, F(1, 3), "output must be i32"},
    {RO_OP_IOTA, OUTPUT, 0, 0, I(2, 3, 3), "one dimension"},
    {RO_OP_IOTA, OUTPUT, 0, 0, I(1, (INT64_C(1) << 31) + 1), "2^31"},
    {RO_OP_READ_BATCH, INPUT, 0, 0, F(1, 9), "u8, u16 or i32"},
    {RO_OP_READ_BATCH, INPUT, 0, 0, S(RO_I8, 1, 9), "u8, u16 or i32"},
    {RO_OP_READ_BATCH, INPUT, 0, 0, S(RO_U8, 2, 9, 9), "one dimension"},
    {RO_OP_READ_BATCH, INPUT, 0, 0, S(RO_U8, 1, 4), "no window"},
    {RO_OP_READ_BATCH, INPUT, 1, 0, F(1, 1), "must be i32"},
    {RO_OP_READ_BATCH, INPUT, 1, 0, I(1, 2), "must have one element"},
    {RO_OP_READ_BATCH, ATTR, 1, -1, {0}, "stream must be"},
    {RO_OP_READ_BATCH, ATTR, 2, 0, {0}, "batch must be"},
    {RO_OP_READ_BATCH, ATTR, 2, 4, {0}, "first + rows"},
    {RO_OP_READ_BATCH, ATTR, 2, INT64_C(1) << 31, {0}, "batch must be"},
    {RO_OP_READ_BATCH, ATTR, 3, 3, {0}, "first + rows"},
    {RO_OP_READ_BATCH, ATTR, 3, -1, {0}, "first must be"},
    {RO_OP_READ_BATCH, ATTR, 3, INT64_MAX, {0}, "first must be"},
    {RO_OP_READ_BATCH, ATTR, 4, 2, {0}, "shift must be"},
    {RO_OP_READ_BATCH, ATTR, 5, 1, {0}, "unused attribute"},
    {RO_OP_READ_BATCH, OUTPUT, 0, 0, I(1, 3), "rows, sequence"},
    {RO_OP_READ_BATCH, OUTPUT, 0, 0, I(2, MOST, 1), "first + rows"},
    {RO_OP_READ_BATCH, OUTPUT, 0, 0, I(2, 3, 9), "no window"},
    {RO_OP_READ_BATCH, OUTPUT, 0, 0, F(2, 3, 4), "output must be i32"},
    {RO_OP_EMBEDDING, INPUT, 0, 0, F(1, 15), "[V, C]"},
    {RO_OP_EMBEDDING, INPUT, 0, 0, I(2, 5, 3), "must be f32, bf16 or f16"},
    {RO_OP_EMBEDDING, INPUT, 1, 0, F(2, 2, 4), "must be i32"},
    {RO_OP_EMBEDDING, INPUT, 1, 0, I(8, 1, 1, 1, 1, 1, 1, 1, 2), "at most 7"},
    {RO_OP_EMBEDDING, INPUT, 1, 0, I(1, MOST), "2^40"},
    {RO_OP_EMBEDDING, OUTPUT, 0, 0, F(3, 2, 4, 4), "another shape"},
    {RO_OP_EMBEDDING_GRAD, INPUT, 1, 0, I(1, 7), "each of 8 rows of [2, 4, 3]"},
    {RO_OP_EMBEDDING_GRAD, INPUT, 1, 0, F(2, 2, 4), "must be i32"},
    {RO_OP_EMBEDDING_GRAD, OUTPUT, 0, 0, F(2, 5, 4), "[V, C]"},
    {RO_OP_EMBEDDING_GRAD, OUTPUT, 0, 0, F(1, 15), "[V, C]"},
    {RO_OP_SPLIT_HEADS, INPUT, 0, 0, F(2, 8, 18), "[B, T, n]"},
    {RO_OP_SPLIT_HEADS, INPUT, 0, 0, F(3, 2, 4, 20), "multiple of 6"},
    {RO_OP_SPLIT_HEADS, ATTR, 0, 0, {0}, "parts must be"},
    {RO_OP_SPLIT_HEADS, ATTR, 0, 9, {0}, "parts must be"},
    {RO_OP_SPLIT_HEADS, ATTR, 1, 3, {0}, "part must be"},
    {RO_OP_SPLIT_HEADS, ATTR, 1, -1, {0}, "part must be"},
    {RO_OP_SPLIT_HEADS, ATTR, 2, 0, {0}, "heads must be"},
    {RO_OP_SPLIT_HEADS, ATTR, 2, INT64_MAX, {0}, "heads must be"},
    {RO_OP_JOIN_HEADS, COUNT, 0, 0, {0}, "takes 1..8"},
    {RO_OP_JOIN_HEADS, COUNT, 0, 9, {0}, "takes 1..8"},
    {RO_OP_JOIN_HEADS, INPUT, 0, 0, F(3, 2, 2, 4), "[B, H, T, D]"},
    {RO_OP_JOIN_HEADS, INPUT, 1, 0, F(4, 2, 2, 4, 4), "same shape"},
    {RO_OP_CONCAT, COUNT, 0, 0, {0}, "takes 1..1024"},
    {RO_OP_CONCAT, COUNT, 0, 1025, {0}, "takes 1..1024"},
    {RO_OP_CONCAT, INPUT, 2, 0, I(1, 4), "must be f32"},
    {RO_OP_CONCAT, INPUT, 0, 0, F(1, MOST), "2^40"},
    {RO_OP_TRANSPOSE, ATTR, 0, 3, {0}, "d0 must be 0..2"},
    {RO_OP_TRANSPOSE, ATTR, 0, -1, {0}, "d0 must be"},
    {RO_OP_TRANSPOSE, ATTR, 0, 1, {0}, "named once"},
    {RO_OP_TRANSPOSE, ATTR, 3, 3, {0}, "d3 must be 0..0"},
    {RO_OP_TRANSPOSE, OUTPUT, 0, 0, I(3, 4, 2, 3), "another shape"},
    {RO_OP_SLICE, ATTR, 0, 2, {0}, "axis must be 0..1"},
    {RO_OP_SLICE, ATTR, 0, -1, {0}, "axis must be"},
    {RO_OP_SLICE, ATTR, 1, -1, {0}, "start must be"},
    {RO_OP_SLICE, ATTR, 1, 8, {0}, "below 8"},
    {RO_OP_SLICE, ATTR, 1, 4, {0}, "below 8"},
    {RO_OP_SLICE, ATTR, 2, -1, {0}, "length must be"},
    {RO_OP_SLICE, ATTR, 2, 4, {0}, "below 8"},
    {RO_OP_SLICE, ATTR, 2, INT64_MAX, {0}, "length must be"},
    {RO_OP_SLICE, ATTR, 3, 0, {0}, "step must be"},
    {RO_OP_SLICE, ATTR, 3, MOST, {0}, "below 8"},
    {RO_OP_PAD, ATTR, 0, 2, {0}, "axis must be 0..1"},
    {RO_OP_PAD, ATTR, 1, -1, {0}, "before must be"},
    {RO_OP_PAD, ATTR, 1, MOST, {0}, "2^40"},
    {RO_OP_PAD, ATTR, 2, MOST + 1, {0}, "after must be"},
    {RO_OP_PAD, ATTR, 3, 0, {0}, "step must be"},
    {RO_OP_PAD, ATTR, 3, MOST, {0}, "2^40"},
    {RO_OP_PAD, ATTR, 4, -1, {0}, "value must be"},
    {RO_OP_PAD, INPUT, 0, 0, S(RO_U16, 1, 3), "value must be 0..65535"},
    {RO_OP_PAD, INPUT, 0, 0, S(RO_I8, 1, 3), "value must be 0..255"},
    {RO_OP_GATHER, ATTR, 0, 2, {0}, "axis must be 0..1"},
    {RO_OP_GATHER, INPUT, 1, 0, F(1, 5), "must be i32"},
    {RO_OP_GATHER, INPUT, 1, 0, I(8, 1, 1, 1, 1, 1, 1, 1, 1), "more than 8 dimensions"},
    {RO_OP_GATHER, INPUT, 1, 0, I(1, MOST), "2^40"},
    {RO_OP_CONCAT_AXIS, ATTR, 0, 2, {0}, "axis must be 0..1"},
    {RO_OP_CONCAT_AXIS, COUNT, 0, 0, {0}, "takes 1..1024"},
    {RO_OP_CONCAT_AXIS, INPUT, 1, 0, F(2, 3, 1), "must be i32"},
    {RO_OP_CONCAT_AXIS, INPUT, 2, 0, I(1, 3), "must have 2 dimensions"},
    {RO_OP_CONCAT_AXIS, INPUT, 2, 0, I(2, 4, 2), "dimension 0 of input 2 must be 3"},
    {RO_OP_CAST, ATTR, 0, 0, {0}, "dtype must be 1..7"},
    {RO_OP_CAST, ATTR, 0, 8, {0}, "dtype must be"},
    {RO_OP_CAST, OUTPUT, 0, 0, F(2, 3, 4), "another shape"},
    {RO_OP_ADD, INPUT, 1, 0, F(1, 5), "does not repeat into"},
    {RO_OP_ADD, INPUT, 1, 0, F(1, 24), "does not repeat into"},
    {RO_OP_ADD, INPUT, 1, 0, I(1, 4), "must be f32"},
    {RO_OP_ADD, COUNT, 0, 1, {0}, "takes 2..2"},
    {RO_OP_ADD, COUNT, 0, -1, {0}, "takes 2..2"},
    {RO_OP_ADD, COUNT, 0, INT32_MAX, {0}, "takes 2..2"},
    {RO_OP_ADD, ATTR, 0, 1, {0}, "unused attribute"},
    {RO_OP_ADD, OUTPUT, 0, 0, F(1, 12), "another shape"},
    {RO_OP_ADD, OUTPUT, 0, 0, F(2, 3, 4, 1), "no valid shape"},
    {RO_OP_DIV_CONST, ATTR, 0, -1, {0}, "divisor must be"},
    {RO_OP_GELU, INPUT, 0, 0, S(RO_U8, 1, 4), "must be f32"},
    {RO_OP_GELU_GRAD, INPUT, 1, 0, F(1, 12), "same shape"},
    {RO_OP_RELU, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_RELU_GRAD, INPUT, 1, 0, F(2, 4, 3), "same shape"},
    {RO_OP_MAX, INPUT, 1, 0, F(1, 5), "does not repeat into"},
    {RO_OP_MIN, INPUT, 0, 0, I(2, 3, 4), "must be f32"},
    {RO_OP_ABS, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_COMPARE, INPUT, 0, 0, S(RO_U8, 2, 3, 4), "must be f32 or i32"},
    {RO_OP_COMPARE, INPUT, 1, 0, I(1, 4), "must be f32"},
    {RO_OP_COMPARE, INPUT, 1, 0, F(1, 5), "does not repeat into"},
    {RO_OP_COMPARE, ATTR, RO_COMPARE_KIND, 6, {0}, "kind must be"},
    {RO_OP_WHERE, INPUT, 0, 0, F(2, 3, 4), "must be i32"},
    {RO_OP_WHERE, INPUT, 0, 0, I(1, 12), "same dimensions"},
    {RO_OP_WHERE, INPUT, 2, 0, I(2, 3, 4), "same shape"},
    {RO_OP_IADD, INPUT, 0, 0, F(2, 3, 4), "must be i32"},
    {RO_OP_IADD, INPUT, 1, 0, F(1, 4), "must be i32"},
    {RO_OP_IADD, INPUT, 1, 0, I(1, 5), "does not repeat into"},
    {RO_OP_PUT_ROWS, ATTR, RO_PUT_ROWS_AXIS, 3, {0}, "axis must be 0..2"},
    {RO_OP_PUT_ROWS, INPUT, 1, 0, I(3, 2, 3, 4), "must be f32"},
    {RO_OP_PUT_ROWS, INPUT, 1, 0, F(3, 2, 3, 5), "dimension 2 of input 1 must be 4"},
    {RO_OP_PUT_ROWS, INPUT, 1, 0, F(2, 3, 4), "must have 3 dimensions"},
    {RO_OP_PUT_ROWS, INPUT, 2, 0, F(1, 1), "must be i32"},
    {RO_OP_PUT_ROWS, INPUT, 2, 0, I(1, 2), "must have one element"},
    {RO_OP_ATTN_MAX_AT, INPUT, 0, 0, F(1, 4), "[..., T, S]"},
    {RO_OP_ATTN_MAX_AT, INPUT, 0, 0, F(3, 2, 4, 3), "T must be at most S, got 4 and 3"},
    {RO_OP_ATTN_MAX_AT, INPUT, 1, 0, I(1, 2), "must have one element"},
    {RO_OP_ATTN_MAX_AT, ATTR, RO_PLACED_WINDOW, -1, {0}, "window must be 0.."},
    {RO_OP_ATTN_MAX_AT, ATTR, 1, 1, {0}, "unused attribute"},
    {RO_OP_ATTN_EXP_AT, INPUT, 1, 0, F(3, 2, 3, 1), "must be [2, 3, 2], got [2, 3, 1]"},
    {RO_OP_ATTN_EXP_AT, INPUT, 2, 0, F(1, 1), "must be i32"},
    {RO_OP_ATTN_AV_AT, INPUT, 0, 0, I(3, 2, 3, 130), "must be f32"},
    {RO_OP_ATTN_AV_AT, INPUT, 1, 0, F(3, 2, 129, 4), "must be [..., 130, D]"},
    {RO_OP_ATTN_AV_AT, ATTR, RO_PLACED_WINDOW, MOST + 1, {0}, "window must be 0.."},
    {RO_OP_WEIGHT, INPUT, 0, 0, I(2, 3, 5), "must be f32"},
    {RO_OP_WEIGHT, INPUT, 1, 0, F(2, 3, 2), "one element for each of 3 rows"},
    {RO_OP_TOP_K, INPUT, 0, 0, F(2, 3, 5), "must be i32"},
    {RO_OP_TOP_K, INPUT, 0, 0, I(1, INT64_C(1) << 31), "rows of at most"},
    {RO_OP_TOP_K, ATTR, RO_TOP_K_K, 0, {0}, "k must be 1..2147483647"},
    {RO_OP_TOP_K, ATTR, RO_TOP_K_K, INT64_C(1) << 31, {0}, "k must be"},
    {RO_OP_TOP_P, INPUT, 0, 0, S(RO_U16, 2, 3, 5), "must be i32"},
    {RO_OP_TOP_P, ATTR, RO_TOP_P_P, 0, {0}, "p must be 1..16777216"},
    {RO_OP_TOP_P, ATTR, RO_TOP_P_P, (1 << 24) + 1, {0}, "p must be"},
    {RO_OP_KEEP_TOP, INPUT, 1, 0, I(2, 3, 3), "must be [3, 2], got [3, 3]"},
    {RO_OP_KEEP_TOP, INPUT, 1, 0, F(2, 3, 2), "must be i32"},
    {RO_OP_RANDOM_WORDS, INPUT, 0, 0, I(2, 3, 3), "must be [..., 2]"},
    {RO_OP_RANDOM_WORDS, INPUT, 1, 0, I(1, 2), "must have one element"},
    {RO_OP_RANDOM_WORDS, ATTR, RO_RANDOM_WORDS_STREAM, -1, {0}, "stream must be"},
    {RO_OP_DRAW, INPUT, 0, 0, F(2, 3, 5), "must be i32"},
    {RO_OP_DRAW, INPUT, 0, 0, I(2, 3, 0), "nothing to draw from"},
    {RO_OP_DRAW, INPUT, 1, 0, I(2, 2, 2), "must be [3, 2], got [2, 2]"},
    {RO_OP_LEAKY_RELU, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_LEAKY_RELU, ATTR, RO_LEAKY_SLOPE, -1, {0}, "slope must be"},
    {RO_OP_LEAKY_RELU_GRAD, INPUT, 1, 0, F(2, 4, 3), "same shape"},
    {RO_OP_LEAKY_RELU_GRAD, ATTR, RO_LEAKY_SLOPE, -1, {0}, "slope must be"},
    {RO_OP_CAST_STOCHASTIC, INPUT, 0, 0, S(RO_BF16, 2, 3, 4), "must be f32"},
    {RO_OP_CAST_STOCHASTIC, INPUT, 1, 0, F(1, 1), "must be i32"},
    {RO_OP_CAST_STOCHASTIC, INPUT, 1, 0, I(1, 2), "must have one element"},
    {RO_OP_CAST_STOCHASTIC, ATTR, 1, -1, {0}, "stream must be"},
    {RO_OP_CAST_STOCHASTIC, OUTPUT, 0, 0, F(2, 3, 4), "another shape"},
    {RO_OP_DROPOUT, INPUT, 1, 0, F(1, 1), "must be i32"},
    {RO_OP_DROPOUT, INPUT, 1, 0, I(1, 2), "must have one element"},
    {RO_OP_DROPOUT, ATTR, 1, -1, {0}, "stream must be"},
    {RO_OP_DROPOUT, ATTR, 2, INT64_C(1) << 32, {0}, "threshold must be"},
    {RO_OP_DROPOUT, ATTR, 3, -1, {0}, "scale must be"},
    {RO_OP_MUL, INPUT, 1, 0, F(1, 5), "does not repeat into"},
    {RO_OP_MUL, ATTR, 0, 1, {0}, "unused attribute"},
    {RO_OP_SUB, INPUT, 0, 0, I(2, 3, 4), "must be f32"},
    {RO_OP_SUB, COUNT, 0, 3, {0}, "takes 2..2"},
    {RO_OP_DIV, INPUT, 1, 0, I(1, 1), "must be f32"},
    {RO_OP_DIV, INPUT, 1, 0, F(1, 24), "does not repeat into"},
    {RO_OP_SCALE, ATTR, 0, -1, {0}, "factor must be"},
    {RO_OP_SCALE, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_EXP, INPUT, 0, 0, S(RO_U8, 1, 4), "must be f32"},
    {RO_OP_LOG, COUNT, 0, 2, {0}, "takes 1..1"},
    {RO_OP_SQRT, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_RSQRT, ATTR, 0, 1, {0}, "unused attribute"},
    {RO_OP_MATMUL, ATTR, 0, -1, {0}, "batch_dims must be"},
    {RO_OP_MATMUL, ATTR, 0, 7, {0}, "batch_dims must be"},
    {RO_OP_MATMUL, ATTR, 0, 2, {0}, "beyond the 2"},
    {RO_OP_MATMUL, ATTR, 1, 4, {0}, "trans must be"},
    {RO_OP_MATMUL, ATTR, 1, 0, {0}, "inner dimensions differ: 5 and 6"},
    {RO_OP_MATMUL, ATTR, 2, -1, {0}, "alpha must be"},
    {RO_OP_MATMUL, ATTR, 3, 0, {0}, "chunk must be"},
    {RO_OP_MATMUL, ATTR, 3, 127, {0}, "chunk must be"},
    {RO_OP_MATMUL, ATTR, 3, 512, {0}, "chunk must be"},
    {RO_OP_MATMUL, ATTR, 4, 3, {0}, "mask must be"},
    {RO_OP_MATMUL, ATTR, RO_MATMUL_WINDOW, -1, {0}, "window must be 0.."},
    {RO_OP_MATMUL, INPUT, 0, 0, F(4, 3, 3, 4, 5), "batch dimension 0"},
    {RO_OP_MATMUL, INPUT, 1, 0, F(2, 6, 5), "beyond the 1"},
    {RO_OP_MATMUL, INPUT, 1, 0, I(3, 2, 6, 5), "must be f32, bf16 or f16"},
    {RO_OP_MATMUL, INPUT, 0, 0, S(RO_BF16, 4, 2, 3, 4, 5), "must be f32, got bf16"},
    {RO_OP_MATMUL_FIXED, ATTR, RO_MATMUL_FIXED_BITS, 23, {0}, "bits must be 8, 16 or 24, got 23"},
    {RO_OP_MATMUL_FIXED, ATTR, RO_MATMUL_FIXED_BITS, 0, {0}, "bits must be 8, 16 or 24, got 0"},
    {RO_OP_MATMUL_FIXED, ATTR, RO_MATMUL_FIXED_TRANS, 4, {0}, "trans must be"},
    {RO_OP_MATMUL_FIXED, ATTR, RO_MATMUL_FIXED_TRANS, 0, {0}, "inner dimensions differ: 5 and 6"},
    {RO_OP_MATMUL_FIXED, ATTR, RO_MATMUL_FIXED_ALPHA, -1, {0}, "alpha must be"},
    {RO_OP_MATMUL_FIXED, ATTR, 4, 1, {0}, "unused attribute"},
    {RO_OP_MATMUL_FIXED, INPUT, 1, 0, S(RO_BF16, 3, 2, 6, 5), "must be f32"},
    {RO_OP_REDUCE_SUM, ATTR, 0, 0, {0}, "cols must divide"},
    {RO_OP_ADD, INPUT, 1, 0, F(1, 0), "does not repeat into"},
    {RO_OP_READ_BATCH, INPUT, 0, 0, S(RO_U8, 1, 0), "no window"},
    {RO_OP_READ_BATCH, OUTPUT, 0, 0, I(2, 3, 0), "at least one token"},
    {RO_OP_CLIP_SCALE, INPUT, 0, 0, F(1, 0), "must have one element"},
    {RO_OP_REDUCE_SUM, ATTR, 0, 5, {0}, "cols must divide"},
    {RO_OP_REDUCE_SUM, ATTR, 0, -6, {0}, "cols must divide"},
    {RO_OP_REDUCE_SUM, ATTR, 1, 0, {0}, "block must be"},
    {RO_OP_REDUCE_SUM, ATTR, 1, 1025, {0}, "block must be"},
    {RO_OP_REDUCE_SUM, OUTPUT, 0, 0, F(1, 3), "6 elements"},
    {RO_OP_REDUCE_SUM, OUTPUT, 0, 0, I(1, 6), "output must be f32"},
    {RO_OP_REDUCE_MAX, INPUT, 0, 0, I(2, 3, 6), "must be f32"},
    {RO_OP_REDUCE_DOT, INPUT, 1, 0, F(1, 5), "does not repeat into"},
    {RO_OP_REDUCE_SQDEV, INPUT, 1, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_REDUCE_EXPSUM, INPUT, 1, 0, F(1, 1), "each of 3 rows of [3, 6]"},
    {RO_OP_REDUCE_LN_GX, INPUT, 1, 0, F(1, 3), "must be [6]"},
    {RO_OP_REDUCE_LN_GX, INPUT, 2, 0, F(1, 6), "same shape"},
    {RO_OP_REDUCE_LN_GX, INPUT, 3, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_REDUCE_LN_GX, INPUT, 4, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_SUM_ROWS, ATTR, 0, 3, {0}, "cols must divide"},
    {RO_OP_SUM_ROWS, ATTR, 1, 64, {0}, "unused attribute"},
    {RO_OP_SUM_ROWS, OUTPUT, 0, 0, F(1, 2), "4 elements"},
    {RO_OP_LN_DGAMMA, INPUT, 1, 0, F(1, 2), "same shape"},
    {RO_OP_LN_DGAMMA, INPUT, 2, 0, F(1, 2), "each of 64 rows of [64, 2]"},
    {RO_OP_LN_DGAMMA, INPUT, 3, 0, F(1, 2), "each of 64 rows of [64, 2]"},
    {RO_OP_LN_RSTD, ATTR, 0, 0, {0}, "n must be"},
    {RO_OP_LN_RSTD, ATTR, 0, MOST + 1, {0}, "n must be"},
    {RO_OP_LN_RSTD, ATTR, 1, -1, {0}, "eps must be"},
    {RO_OP_LAYERNORM, INPUT, 1, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_LAYERNORM, INPUT, 2, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_LAYERNORM, INPUT, 3, 0, F(1, 3), "must be [6]"},
    {RO_OP_LAYERNORM, INPUT, 4, 0, F(1, 3), "must be [6]"},
    {RO_OP_LN_DX, INPUT, 1, 0, F(1, 3), "must be [6]"},
    {RO_OP_LN_DX, INPUT, 2, 0, F(1, 18), "same shape"},
    {RO_OP_LN_DX, INPUT, 6, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_XENT, INPUT, 1, 0, F(1, 5), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_XENT, INPUT, 3, 0, F(1, 6), "must be i32"},
    {RO_OP_XENT, INPUT, 3, 0, I(1, 5), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_XENT_GRAD, INPUT, 4, 0, F(1, 1), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_ATTN_MAX, ATTR, 0, 2, {0}, "causal must be"},
    {RO_OP_ATTN_MAX, ATTR, RO_ATTN_MAX_WINDOW, (INT64_C(1) << 40) + 1, {0}, "window must be 0.."},
    {RO_OP_ATTN_MAX, INPUT, 0, 0, F(3, 2, 3, 4), "T = S"},
    {RO_OP_ATTN_MAX, INPUT, 0, 0, F(1, 4), "[..., T, S]"},
    {RO_OP_ATTN_EXP, ATTR, 0, 1, {0}, "T = S"},
    {RO_OP_ATTN_EXP, INPUT, 1, 0, F(3, 2, 3, 1), "must be [2, 3, 2], got [2, 3, 1]"},
    {RO_OP_ATTN_AV, INPUT, 1, 0, F(3, 2, 129, 4), "must be [..., 130, D]"},
    {RO_OP_ATTN_AV, INPUT, 1, 0, F(3, 3, 130, 4), "dimension 0"},
    {RO_OP_ATTN_AV, INPUT, 1, 0, F(2, 130, 4), "must be [..., 130, D]"},
    {RO_OP_ATTN_L, INPUT, 1, 0, F(3, 2, 3, 1), "same shape"},
    {RO_OP_ATTN_OUT, INPUT, 1, 0, F(4, 2, 3, 4, 4), "one more dimension"},
    {RO_OP_ATTN_OUT, INPUT, 1, 0, F(3, 2, 3, 5), "one more dimension"},
    {RO_OP_ATTN_OUT, INPUT, 2, 0, F(1, 30), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_ATTN_PROB, INPUT, 1, 0, F(3, 2, 4, 4), "each of 8 rows of [2, 4, 4]"},
    {RO_OP_ATTN_PROB, INPUT, 2, 0, F(1, 4), "each of 8 rows of [2, 4, 4]"},
    {RO_OP_ATTN_DSCORE, INPUT, 1, 0, F(3, 2, 4, 1), "same shape"},
    {RO_OP_ATTN_DSCORE, INPUT, 2, 0, F(1, 4), "each of 8 rows of [2, 4, 4]"},
    {RO_OP_REPEAT_HEADS, ATTR, 0, 0, {0}, "times must be 1..1024"},
    {RO_OP_REPEAT_HEADS, ATTR, 0, 1025, {0}, "times must be 1..1024"},
    {RO_OP_REPEAT_HEADS, INPUT, 0, 0, F(3, 2, 4, 3), "[B, H, T, D]"},
    {RO_OP_REPEAT_HEADS_GRAD, ATTR, 0, 0, {0}, "times must be 1..1024"},
    {RO_OP_REPEAT_HEADS_GRAD, ATTR, 0, 4, {0}, "multiple of 4 heads, got 6"},
    {RO_OP_REPEAT_HEADS_GRAD, INPUT, 0, 0, F(2, 6, 3), "[B, H, T, D]"},
    {RO_OP_LR_SCHEDULE, ATTR, 0, 3, {0}, "kind must be"},
    {RO_OP_LR_SCHEDULE, ATTR, 0, 0, {0}, "total must be 0..0"},
    {RO_OP_LR_SCHEDULE, ATTR, 3, -1, {0}, "warmup must be"},
    {RO_OP_LR_SCHEDULE, ATTR, 3, 10, {0}, "total must be 11"},
    {RO_OP_LR_SCHEDULE, ATTR, 4, INT64_C(1) << 31, {0}, "total must be"},
    {RO_OP_LR_SCHEDULE, INPUT, 0, 0, F(1, 1), "must be i32"},
    {RO_OP_BIAS_CORRECTION, INPUT, 0, 0, F(1, 2), "must have one element"},
    {RO_OP_CLIP_SCALE, INPUT, 0, 0, F(1, 2), "must have one element"},
    {RO_OP_ADAMW_M, INPUT, 1, 0, F(1, 12), "same shape"},
    {RO_OP_ADAMW_M, INPUT, 2, 0, F(2, 3, 4), "must have one element"},
    {RO_OP_ADAMW_V, INPUT, 2, 0, F(1, 2), "must have one element"},
    {RO_OP_ADAMW_W, INPUT, 2, 0, F(1, 12), "same shape"},
    {RO_OP_ADAMW_W, INPUT, 4, 0, F(1, 2), "must have one element"},
    {RO_OP_ADAMW_W, INPUT, 5, 0, I(1, 1), "must be f32"},
    {RO_OP_ADAMW_W, ATTR, 1, INT64_MIN, {0}, "decay must be"},
    {RO_OP_TANH, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_ERF, ATTR, 0, 1, {0}, "unused attribute"},
    {RO_OP_SIGMOID, INPUT, 0, 0, I(1, 4), "must be f32"},
    {RO_OP_SILU, COUNT, 0, 2, {0}, "takes 1..1"},
    {RO_OP_GELU_ERF, OUTPUT, 0, 0, F(1, 12), "another shape"},
    {RO_OP_TANH_GRAD, INPUT, 1, 0, F(1, 12), "same shape"},
    {RO_OP_ERF_GRAD, INPUT, 1, 0, F(2, 4, 3), "same shape"},
    {RO_OP_SIGMOID_GRAD, INPUT, 1, 0, I(2, 3, 4), "must be f32"},
    {RO_OP_SILU_GRAD, INPUT, 1, 0, F(1, 4), "same shape"},
    {RO_OP_GELU_ERF_GRAD, INPUT, 1, 0, F(3, 2, 3, 2), "same shape"},
    {RO_OP_SGD_M, INPUT, 2, 0, F(1, 12), "same shape"},
    {RO_OP_SGD_M, INPUT, 3, 0, F(1, 2), "must have one element"},
    {RO_OP_SGD_M, ATTR, 1, -1, {0}, "decay must be"},
    {RO_OP_SGD_W, INPUT, 1, 0, F(1, 12), "same shape"},
    {RO_OP_SGD_W, INPUT, 2, 0, F(2, 3, 4), "must have one element"},
    {RO_OP_SGD_NESTEROV, INPUT, 2, 0, F(1, 12), "same shape"},
    {RO_OP_SGD_NESTEROV, INPUT, 4, 0, F(1, 2), "must have one element"},
    {RO_OP_SGD_NESTEROV, ATTR, 0, -1, {0}, "momentum must be"},
    {RO_OP_UNIFORM, ATTR, 1, -1, {0}, "stream must be"},
    {RO_OP_UNIFORM, ATTR, 2, -1, {0}, "low must be"},
    {RO_OP_UNIFORM, ATTR, 3, INT64_MAX, {0}, "high must be"},
    {RO_OP_UNIFORM, OUTPUT, 0, 0, I(1, 3), "output must be f32"},
    {RO_OP_PERMUTATION, ATTR, 1, INT64_C(1) << 32, {0}, "stream must be"},
    {RO_OP_PERMUTATION, INPUT, 0, 0, F(1, 1), "must be i32"},
    {RO_OP_PERMUTATION, INPUT, 0, 0, I(1, 2), "must have one element"},
    {RO_OP_PERMUTATION, OUTPUT, 0, 0, F(1, 7), "output must be i32"},
    {RO_OP_PERMUTATION, OUTPUT, 0, 0, I(1, (INT64_C(1) << 31) + 1), "2^31"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_BASE, 0x3f7fffff, {0}, "base must be"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_BASE, 0x4f800000, {0}, "base must be"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_BASE, RO_QNAN_BITS, {0}, "base must be"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_KIND, 3, {0}, "kind must be 0..2"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_KIND, 1, {0}, "low must be 0..0"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_KIND, 0, {0}, "factor must be 0..0"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_FACTOR, 0x3f7fffff, {0}, "factor must be"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_LOW, 0, {0}, "low must be at least"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_LOW, 0x40800000, {0}, "low must be below high"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_HIGH, 0x46800000, {0}, "high must be"},
    {RO_OP_ROPE_TURNS, ATTR, RO_ROPE_TURNS_ORIGINAL, 0, {0}, "original must be 1.."},
    {RO_OP_ROPE_TURNS, OUTPUT, 0, 0, F(2, 4, 2), "output must be i32"},
    {RO_OP_ROPE_TURNS, OUTPUT, 0, 0, I(2, 2, 4), "[h, 2]"},
    {RO_OP_ROPE_TURNS, OUTPUT, 0, 0, I(2, (1 << 19) + 1, 2), "[h, 2]"},
    {RO_OP_ROPE, ATTR, RO_ROPE_PAIRS, 2, {0}, "pairs must be"},
    {RO_OP_ROPE, ATTR, RO_ROPE_INVERSE, 2, {0}, "inverse must be"},
    {RO_OP_ROPE, INPUT, 0, 0, F(2, 3, 3), "even D"},
    {RO_OP_ROPE, INPUT, 0, 0, F(1, 4), "[..., T, D]"},
    {RO_OP_ROPE, INPUT, 0, 0, I(2, 3, 4), "must be f32"},
    {RO_OP_ROPE, INPUT, 0, 0, F(2, 3, 4), "input 1 must be [3]"},
    {RO_OP_ROPE, INPUT, 1, 0, F(1, 3), "must be i32"},
    {RO_OP_ROPE, INPUT, 1, 0, I(2, 3, 2), "input 1 must be [2, 3]"},
    {RO_OP_ROPE, INPUT, 2, 0, I(2, 2, 3), "input 2 must be [2, 2]"},
    {RO_OP_ROPE, INPUT, 2, 0, F(2, 2, 2), "must be i32"},
    {RO_OP_SOFTMAX, INPUT, 1, 0, F(1, 5), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_SOFTMAX, INPUT, 2, 0, F(3, 2, 3, 5), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_SOFTMAX_GRAD, INPUT, 1, 0, F(1, 15), "same shape"},
    {RO_OP_SOFTMAX_GRAD, INPUT, 2, 0, F(1, 5), "each of 3 rows of [3, 5]"},
    {RO_OP_LOG_SOFTMAX, INPUT, 1, 0, I(1, 3), "must be f32"},
    {RO_OP_LOG_SOFTMAX_GRAD, INPUT, 2, 0, F(1, 5), "each of 1 rows of [5]"},
    {RO_OP_XENT_IGNORE, ATTR, 0, INT64_C(1) << 31, {0}, "ignore must be"},
    {RO_OP_XENT_IGNORE, INPUT, 3, 0, F(1, 6), "must be i32"},
    {RO_OP_XENT_IGNORE, INPUT, 3, 0, I(1, 5), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_XENT_IGNORE_GRAD, ATTR, 0, INT64_MIN, {0}, "ignore must be"},
    {RO_OP_XENT_IGNORE_GRAD, INPUT, 4, 0, F(1, 1), "each of 6 rows of [2, 3, 5]"},
    {RO_OP_KEPT, INPUT, 0, 0, F(1, 6), "must be i32"},
    {RO_OP_KEPT, ATTR, 0, INT64_C(1) << 32, {0}, "ignore must be"},
    {RO_OP_SUM_AXIS, ATTR, 0, 3, {0}, "axis must be 0..2"},
    {RO_OP_SUM_AXIS, INPUT, 0, 0, I(3, 3, 130, 2), "must be f32"},
    {RO_OP_SUM_AXIS, OUTPUT, 0, 0, F(3, 3, 1, 2), "another shape"},
    {RO_OP_MAX_AXIS, ATTR, 0, -1, {0}, "axis must be"},
    {RO_OP_ARGMAX, ATTR, 0, 3, {0}, "axis must be"},
    {RO_OP_ARGMAX, INPUT, 0, 0, F(2, 2, (INT64_C(1) << 31) + 1), "2^31"},
    {RO_OP_ARGMAX, INPUT, 0, 0, F(2, 2, 0), "got 0"},
    {RO_OP_MAX_GRAD, ATTR, 0, 3, {0}, "axis must be"},
    {RO_OP_MAX_GRAD, ATTR, 1, -1, {0}, "count must be"},
    {RO_OP_MAX_GRAD, ATTR, 1, (INT64_C(1) << 31) + 1, {0}, "count must be"},
    {RO_OP_MAX_GRAD, INPUT, 0, 0, F(3, 3, 1, 2), "must be i32"},
    {RO_OP_MAX_GRAD, INPUT, 1, 0, F(3, 3, 2, 1), "length 1"},
    {RO_OP_MAX_GRAD, INPUT, 1, 0, F(1, 1), "length 1"},
    {RO_OP_EXPAND, INPUT, 0, 0, F(2, 2, 2), "length 1"},
    {RO_OP_EXPAND, ATTR, 1, -1, {0}, "count must be"},
    {RO_OP_EXPAND, ATTR, 1, MOST, {0}, "2^40"},
    {RO_OP_RMSNORM, INPUT, 1, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_RMSNORM, INPUT, 2, 0, F(1, 3), "must be [6]"},
    {RO_OP_RMS_DX, INPUT, 1, 0, F(1, 3), "must be [6]"},
    {RO_OP_RMS_DX, INPUT, 2, 0, F(1, 18), "same shape"},
    {RO_OP_RMS_DX, INPUT, 4, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_REDUCE_RMS_GX, INPUT, 1, 0, F(1, 3), "must be [6]"},
    {RO_OP_REDUCE_RMS_GX, INPUT, 2, 0, F(1, 6), "same shape"},
    {RO_OP_REDUCE_RMS_GX, INPUT, 3, 0, F(1, 6), "each of 3 rows of [3, 6]"},
    {RO_OP_RMS_DGAMMA, INPUT, 1, 0, F(1, 2), "same shape"},
    {RO_OP_RMS_DGAMMA, INPUT, 2, 0, F(1, 2), "each of 64 rows of [64, 2]"},
    {RO_OP_RESHAPE, OUTPUT, 0, 0, F(2, 3, 5), "12 elements"},
    {RO_OP_RESHAPE, OUTPUT, 0, 0, I(1, 12), "output must be f32"},
    {RO_OP_GATHER_GRAD, ATTR, 0, 2, {0}, "axis must be 0..1"},
    {RO_OP_GATHER_GRAD, INPUT, 0, 0, F(3, 3, 6, 5), "what a gather"},
    {RO_OP_GATHER_GRAD, INPUT, 1, 0, F(2, 5, 6), "must be i32"},
    {RO_OP_GATHER_GRAD, INPUT, 1, 0, I(1, (INT64_C(1) << 31) + 1), "2^31"},
    {RO_OP_GATHER_GRAD, OUTPUT, 0, 0, F(2, 2, 4), "what a gather"},
    {RO_OP_GATHER_GRAD, OUTPUT, 0, 0, I(2, 3, 4), "output must be f32"},
    {RO_OP_CONV2D, ATTR, 0, 0, {0}, "stride_h must be"},
    {RO_OP_CONV2D, ATTR, 1, 65537, {0}, "stride_w must be"},
    {RO_OP_CONV2D, ATTR, 2, -1, {0}, "pad_h must be"},
    {RO_OP_CONV2D, ATTR, 3, 65537, {0}, "pad_w must be"},
    {RO_OP_CONV2D, ATTR, 4, 0, {0}, "dilation_h must be"},
    {RO_OP_CONV2D, ATTR, 4, 4, {0}, "does not fit"},
    {RO_OP_CONV2D, ATTR, 5, INT64_MAX, {0}, "dilation_w must be"},
    {RO_OP_CONV2D, ATTR, 6, 0, {0}, "groups must be"},
    {RO_OP_CONV2D, ATTR, 6, 3, {0}, "3 groups"},
    {RO_OP_CONV2D, ATTR, 7, 1, {0}, "unused attribute"},
    {RO_OP_CONV2D, INPUT, 0, 0, F(3, 5, 9, 6), "[N, H, W, C]"},
    {RO_OP_CONV2D, INPUT, 0, 0, F(4, 2, 5, 9, 7), "of 7 channels"},
    {RO_OP_CONV2D, INPUT, 1, 0, F(4, 3, 3, 3, 5), "5 filters"},
    {RO_OP_CONV2D, INPUT, 1, 0, F(4, 8, 3, 3, 4), "does not fit"},
    {RO_OP_CONV2D, INPUT, 1, 0, F(4, MOST / 12, 1, 3, 4), "does not fit"},
    {RO_OP_CONV2D, INPUT, 1, 0, F(4, 3, 0, 3, 4), "no tap"},
    {RO_OP_CONV2D, INPUT, 1, 0, I(4, 3, 3, 3, 4), "must be f32"},
    {RO_OP_CONV2D, OUTPUT, 0, 0, F(4, 2, 7, 3, 4), "another shape"},
    {RO_OP_CONV2D_DX, INPUT, 0, 0, F(4, 2, 4, 7, 4), "dy must be [2, 3, 7, 4]"},
    {RO_OP_CONV2D_DX, OUTPUT, 0, 0, F(3, 5, 9, 6), "[N, H, W, C]"},
    {RO_OP_CONV2D_DX, OUTPUT, 0, 0, I(4, 2, 5, 9, 6), "output must be f32"},
    {RO_OP_CONV2D_DX, ATTR, 0, 1, {0}, "dy must be"},
    {RO_OP_CONV2D_DW, INPUT, 1, 0, F(4, 2, 3, 7, 5), "dy must be"},
    {RO_OP_CONV2D_DW, OUTPUT, 0, 0, F(4, 3, 3, 3, 6), "dy must be"},
    {RO_OP_CONV2D_DW, OUTPUT, 0, 0, F(4, 3, 3, 4, 4), "weights must be"},
    {RO_OP_CONV2D_FIXED, ATTR, RO_CONV_FIXED_BITS, 0, {0}, "bits must be 8, 16 or 24, got 0"},
    {RO_OP_CONV2D_FIXED, ATTR, RO_CONV_FIXED_BITS, 32, {0}, "bits must be 8, 16 or 24, got 32"},
    {RO_OP_CONV2D_FIXED, ATTR, 0, 0, {0}, "stride_h must be"},
    {RO_OP_CONV2D_FIXED, ATTR, 6, 3, {0}, "3 groups"},
    {RO_OP_CONV2D_FIXED, INPUT, 1, 0, S(RO_BF16, 4, 3, 3, 3, 4), "must be f32"},
    {RO_OP_CONV2D_FIXED, OUTPUT, 0, 0, F(4, 2, 7, 3, 4), "another shape"},
    {RO_OP_CONV2D_FIXED_DX, ATTR, RO_CONV_FIXED_BITS, 9, {0}, "bits must be 8, 16 or 24, got 9"},
    {RO_OP_CONV2D_FIXED_DX, INPUT, 0, 0, F(4, 2, 4, 7, 4), "dy must be [2, 3, 7, 4]"},
    {RO_OP_CONV2D_FIXED_DX, OUTPUT, 0, 0, I(4, 2, 5, 9, 6), "output must be f32"},
    {RO_OP_CONV2D_FIXED_DW,
     ATTR,
     RO_CONV_FIXED_BITS,
     -16,
     {0},
     "bits must be 8, 16 or 24, got -16"},
    {RO_OP_CONV2D_FIXED_DW, INPUT, 1, 0, F(4, 2, 3, 7, 5), "dy must be"},
    {RO_OP_CONV2D_FIXED_DW, OUTPUT, 0, 0, F(4, 3, 3, 4, 4), "weights must be"},
    {RO_OP_MAX_POOL2D, ATTR, 0, 0, {0}, "kernel_h must be"},
    {RO_OP_MAX_POOL2D, ATTR, 0, 4097, {0}, "kernel_h must be"},
    {RO_OP_MAX_POOL2D, ATTR, 0, 2049, {0}, "at most 4096"},
    {RO_OP_MAX_POOL2D, ATTR, 0, 9, {0}, "does not fit"},
    {RO_OP_MAX_POOL2D, ATTR, 2, 0, {0}, "stride_h must be"},
    {RO_OP_MAX_POOL2D, ATTR, 4, 2, {0}, "pad_h must be 0..1"},
    {RO_OP_MAX_POOL2D, ATTR, 6, 1, {0}, "unused attribute"},
    {RO_OP_MAX_POOL2D, INPUT, 0, 0, F(3, 6, 4, 5), "[N, H, W, C]"},
    {RO_OP_MAX_POOL2D, INPUT, 0, 0, F(4, 2, 0, 4, 5), "no pixel"},
    {RO_OP_MAX_POOL2D_INDEX, INPUT, 0, 0, I(4, 2, 6, 4, 5), "must be f32"},
    {RO_OP_MAX_POOL2D_INDEX, OUTPUT, 0, 0, F(4, 2, 3, 3, 5), "another shape"},
    {RO_OP_MAX_POOL2D_GRAD, INPUT, 0, 0, F(4, 2, 3, 4, 5), "dy must be [2, 3, 3, 5]"},
    {RO_OP_MAX_POOL2D_GRAD, INPUT, 1, 0, F(4, 2, 3, 3, 5), "must be i32"},
    {RO_OP_MAX_POOL2D_GRAD, INPUT, 1, 0, I(4, 2, 3, 4, 5), "shape of dy"},
    {RO_OP_MAX_POOL2D_GRAD, OUTPUT, 0, 0, F(3, 6, 4, 5), "[N, H, W, C]"},
    {RO_OP_AVG_POOL2D, ATTR, 6, 2, {0}, "count_pad must be"},
    {RO_OP_AVG_POOL2D_GRAD, INPUT, 0, 0, F(4, 2, 3, 3, 6), "dy must be"},
    {RO_OP_AVG_POOL2D_GRAD, OUTPUT, 0, 0, I(4, 2, 6, 4, 5), "output must be f32"},
    {RO_OP_BN_MEAN, ATTR, 0, 4, {0}, "cols must divide"},
    {RO_OP_BN_MEAN, OUTPUT, 0, 0, F(1, 3), "6 elements"},
    {RO_OP_BN_SQDEV, INPUT, 1, 0, F(1, 3), "must be [2, 3]"},
    {RO_OP_BN_MERGE_MEAN, ATTR, 0, -1, {0}, "cols must be"},
    {RO_OP_BN_MERGE_MEAN, ATTR, 0, 0, {0}, "must be [2, 0]"},
    {RO_OP_BN_MERGE_MEAN, ATTR, 1, 129, {0}, "must be [3, 3]"},
    {RO_OP_BN_MERGE_MEAN, ATTR, 2, 0, {0}, "per must be"},
    {RO_OP_BN_MERGE_MEAN, ATTR, 2, 90, {0}, "must be [1, 3]"},
    {RO_OP_BN_MERGE_SQDEV, INPUT, 1, 0, F(1, 3), "same shape"},
    {RO_OP_BN_MERGE_SQDEV, OUTPUT, 0, 0, F(2, 2, 3), "3 elements"},
    {RO_OP_BATCHNORM, INPUT, 4, 0, F(1, 9), "must be [3]"},
    {RO_OP_BN_DGAMMA, INPUT, 1, 0, F(2, 2, 3), "same shape"},
    {RO_OP_BN_DGAMMA, INPUT, 3, 0, F(1, 90), "must be [3]"},
    {RO_OP_BN_DX, INPUT, 1, 0, F(2, 90, 3), "same shape"},
    {RO_OP_BN_DX, INPUT, 6, 0, F(1, 1), "must be [3]"},
    {RO_OP_BN_RUNNING, INPUT, 1, 0, F(1, 4), "same shape"},
    {RO_OP_READ_IMAGES, INPUT, 0, 0, S(RO_U16, 1, 70), "must be u8"},
    {RO_OP_READ_IMAGES, INPUT, 0, 0, S(RO_U8, 1, 25), "no record"},
    {RO_OP_READ_IMAGES, INPUT, 0, 0, S(RO_U8, 1, 0), "no record"},
    {RO_OP_READ_IMAGES, INPUT, 1, 0, I(1, 2), "must have one element"},
    {RO_OP_READ_IMAGES, ATTR, 2, 4, {0}, "first + rows"},
    {RO_OP_READ_IMAGES, ATTR, 4, 24, {0}, "do not fit"},
    {RO_OP_READ_IMAGES, ATTR, 5, 3, {0}, "do not fit"},
    {RO_OP_READ_IMAGES, ATTR, 7, -1, {0}, "shift must be"},
    {RO_OP_READ_IMAGES, OUTPUT, 0, 0, F(3, 3, 2, 4), "[rows, H, W, C]"},
    {RO_OP_READ_IMAGES, OUTPUT, 0, 0, I(4, 3, 2, 4, 3), "must be f32"},
    {RO_OP_READ_LABELS, ATTR, 5, 26, {0}, "do not fit"},
    {RO_OP_READ_LABELS, OUTPUT, 0, 0, I(2, 3, 1), "[rows]"},
    {RO_OP_READ_LABELS, OUTPUT, 0, 0, F(1, 3), "must be i32"},
    /* the right number of elements in the wrong order */
    {RO_OP_ADD, INPUT, 1, 0, F(2, 3, 1), "[3, 1] does not repeat into [3, 4]"},
    {RO_OP_SUB, INPUT, 1, 0, F(1, 3), "[3] does not repeat into [3, 4]"},
    {RO_OP_MUL, INPUT, 1, 0, F(1, 2), "[2] does not repeat into [3, 4]"},
    {RO_OP_DIV, INPUT, 1, 0, F(2, 4, 3), "[4, 3] does not repeat into [3, 4]"},
    {RO_OP_ADD, INPUT, 1, 0, F(3, 1, 1, 4), "[1, 1, 4] does not repeat into [3, 4]"},
    {RO_OP_REDUCE_DOT, INPUT, 1, 0, F(2, 3, 1), "[3, 1] does not repeat into [3, 6]"},
    {RO_OP_LAYERNORM, INPUT, 3, 0, F(2, 2, 3), "must be [6], got [2, 3]"},
    {RO_OP_LN_DX, INPUT, 1, 0, F(2, 3, 2), "must be [6], got [3, 2]"},
    {RO_OP_RMSNORM, INPUT, 2, 0, F(2, 2, 3), "must be [6], got [2, 3]"},
    {RO_OP_RMS_DX, INPUT, 1, 0, F(2, 2, 3), "must be [6], got [2, 3]"},
    {RO_OP_REDUCE_LN_GX, INPUT, 1, 0, F(2, 2, 3), "must be [6], got [2, 3]"},
    {RO_OP_REDUCE_RMS_GX, INPUT, 2, 0, F(2, 6, 3), "same shape"},
    {RO_OP_XENT, INPUT, 1, 0, F(2, 3, 2), "each of 6 rows of [2, 3, 5], got [3, 2]"},
    {RO_OP_XENT, INPUT, 3, 0, I(2, 3, 2), "each of 6 rows of [2, 3, 5], got [3, 2]"},
    {RO_OP_XENT_GRAD, INPUT, 4, 0, F(2, 3, 2), "each of 6 rows of [2, 3, 5], got [3, 2]"},
    {RO_OP_SOFTMAX, INPUT, 1, 0, F(2, 3, 2), "each of 6 rows of [2, 3, 5], got [3, 2]"},
    {RO_OP_LOG_SOFTMAX, INPUT, 2, 0, F(1, 5), "each of 3 rows of [3, 5], got [5]"},
    {RO_OP_ATTN_EXP, INPUT, 1, 0, F(3, 2, 2, 3), "must be [2, 3, 2], got [2, 2, 3]"},
    {RO_OP_ATTN_OUT, INPUT, 2, 0, F(2, 3, 2), "each of 6 rows of [2, 3, 5], got [3, 2]"},
    {RO_OP_ATTN_PROB, INPUT, 1, 0, F(2, 4, 2), "each of 8 rows of [2, 4, 4], got [4, 2]"},
    {RO_OP_ATTN_DSCORE, INPUT, 2, 0, F(2, 4, 2), "each of 8 rows of [2, 4, 4], got [4, 2]"},
    {RO_OP_LN_DGAMMA, INPUT, 1, 0, F(2, 2, 64), "same shape"},
    {RO_OP_LN_DGAMMA, INPUT, 2, 0, F(2, 8, 8), "each of 64 rows of [64, 2], got [8, 8]"},
    {RO_OP_EMBEDDING_GRAD, INPUT, 1, 0, I(2, 4, 2), "each of 8 rows of [2, 4, 3], got [4, 2]"},
    {RO_OP_BN_SQDEV, INPUT, 1, 0, F(2, 3, 2), "must be [2, 3], got [3, 2]"},
    {RO_OP_BN_MERGE_MEAN, ATTR, 0, MOST, {0}, "must be [2, 1099511627776]"},
    {RO_OP_BN_MERGE_MEAN, INPUT, 0, 0, F(2, 3, 2), "must be [2, 3], got [3, 2]"},
    {RO_OP_BN_MERGE_SQDEV, INPUT, 1, 0, F(2, 3, 2), "same shape"},
    {RO_OP_BN_DGAMMA, INPUT, 1, 0, F(4, 2, 9, 5, 3), "same shape"},
};

static void change(any_call *c, const refusal *r) {
    switch (r->place) {
    case ATTR: c->call.attr[r->index] = r->value; break;
    case INPUT: c->input[r->index] = r->shape; break;
    case OUTPUT: c->call.output = r->shape; break;
    case COUNT: c->call.input_count = (int32_t)r->value; break;
    }
    /* An input must be refused by itself, not because the output's shape no longer fits. */
    if (r->place != OUTPUT && !ro_op_describe(r->op)->declared_shape)
        c->call.output = (ro_shape){0};
}

Test(infer, refusals_say_what_was_wrong) {
    static any_call c;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const refusal *r = &refusals[i];
        char why[200] = "accepted";
        const valid_call from = valid_call_of(r->op);
        copy_call(&c, &from);
        change(&c, r);
        cr_expect(ro_infer(&c.call, why, sizeof why) == RO_ERR_ARG, "%s, row %zu", name_of(r->op),
                  i);
        cr_expect(strncmp(why, name_of(r->op), strlen(name_of(r->op))) == 0, "%s", why);
        cr_expect(strstr(why, r->why), "row %zu: \"%s\" lacks \"%s\"", i, why, r->why);
    }
}

Test(infer, an_unknown_operator_is_refused) {
    const int unknown[] = {RO_OP_NONE, -1, RO_OP_END - 1, RO_OP_END, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        char why[100];
        ro_call call = {.op = unknown[i], .output = F(1, 1)};
        cr_expect(ro_infer(&call, why, sizeof why) == RO_ERR_ARG, "%d", unknown[i]);
    }
}

/* One element more than a finish may read (SPEC.md section 11). */
Test(infer, attention_over_too_many_blocks_is_refused) {
    for (int64_t blocks = 2047; blocks <= 2048; blocks++) {
        char why[100];
        const ro_shape in[] = {F(2, 3, blocks), F(2, 3, blocks)};
        ro_call call = {RO_OP_ATTN_L, 2, {0}, in, {0}};
        cr_expect(ro_infer(&call, why, sizeof why) == (blocks == 2047 ? RO_OK : RO_ERR_ARG));
        const ro_shape more[] = {F(2, 3, blocks), F(3, 3, blocks, 2), F(1, 3)};
        call = (ro_call){RO_OP_ATTN_OUT, 3, {0}, more, {0}};
        cr_expect(ro_infer(&call, why, sizeof why) == (blocks == 2047 ? RO_OK : RO_ERR_ARG));
    }
}

/* The fold's state counts rows in one 32-bit word. */
Test(infer, embedding_grad_over_too_many_positions_is_refused) {
    const int64_t most = INT64_C(1) << 31;
    for (int64_t rows = most; rows <= most + 1; rows++) {
        char why[100];
        const ro_shape in[] = {F(2, rows, 1), I(1, rows)};
        ro_call call = {RO_OP_EMBEDDING_GRAD, 2, {0}, in, F(2, 3, 1)};
        cr_expect(ro_infer(&call, why, sizeof why) == (rows == most ? RO_OK : RO_ERR_ARG));
    }
}

Test(infer, inputs_without_shapes_are_refused) {
    char why[100] = "";
    ro_call call = {.op = RO_OP_RELU, .input_count = 1};
    cr_expect(ro_infer(&call, why, sizeof why) == RO_ERR_ARG);
    cr_expect_str_eq(why, "relu: the shapes of the inputs are missing");
}

Test(infer, a_short_or_missing_place_for_the_sentence_is_fine) {
    ro_call call = {.op = RO_OP_RELU, .input_count = 0};
    char small[4] = "xyz";
    cr_expect(ro_infer(&call, NULL, 0) == RO_ERR_ARG);
    cr_expect(ro_infer(&call, small, 0) == RO_ERR_ARG);
    cr_expect_str_eq(small, "xyz");
    cr_expect(ro_infer(&call, small, sizeof small) == RO_ERR_ARG);
    cr_expect_str_eq(small, "rel");
}

/* ---- any bits ---- */

static void expect_within_limits(const ro_call *call) {
    const char *name = name_of(call->op);
    const int64_t numel = ro_shape_numel(&call->output), steps = ro_ref_steps(call);
    cr_assert(numel >= 0 && numel <= MOST, "%s", name);
    cr_assert(steps >= 0 && steps <= MOST, "%s", name);
    cr_assert(ro_ref_state_size(call) <= sizeof(ro_acc) &&
              (ro_ref_state_size(call) > 0) == (steps > 0));
    cr_assert(ro_ref_step_loads(call) <= RO_STEP_LOADS, "%s", name);
    cr_assert(ro_ref_finish_loads(call) <= RO_CRUMB_LOADS, "%s", name);
}

static bool accept(any_call *c) {
    char why[200] = "";
    if (ro_infer(&c->call, why, sizeof why) != RO_OK) {
        cr_assert(strlen(why) > 10, "a refusal without a sentence");
        return false;
    }
    const ro_shape output = c->call.output;
    expect_within_limits(&c->call);
    cr_assert(ro_infer(&c->call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_shape_equal(&output, &c->call.output));
    return true;
}

Test(infer, changed_calls_are_refused_or_within_the_limits) {
    static any_call c;
    uint64_t state = 1;
    for (int op = next_operator(0); op; op = next_operator(op)) {
        int accepted = 0;
        for (int i = 0; i < 1500; i++) {
            random_call(&c, op, &state);
            accepted += accept(&c);
        }
        cr_expect(accepted > 300 && accepted < 1200, "%s, %d accepted: not a test", name_of(op),
                  accepted);
    }
}

static void garbage(any_call *c, uint64_t *state) {
    uint8_t *byte = (uint8_t *)&c->call;
    for (size_t i = 0; i < sizeof c->call; i++)
        byte[i] = (uint8_t)random_word(state);
    for (int i = 0; i < 8; i++) {
        byte = (uint8_t *)&c->input[i];
        for (size_t k = 0; k < sizeof c->input[i]; k++)
            byte[k] = (uint8_t)random_word(state);
        if (random_word(state) % 4)
            c->input[i] = (ro_shape){RO_F32, 1 + i % 5, {2, i > 0, i > 1, i > 2, i > 3}};
    }
    c->call.input = c->input;
    c->call.op = (int32_t)(random_word(state) % RO_OP_END);
    if (random_word(state) % 4)
        c->call.input_count = (int32_t)(random_word(state) % 8);
}

Test(infer, garbage_does_no_harm) {
    static any_call c;
    uint64_t state = 2;
    for (int i = 0; i < 100000; i++) {
        garbage(&c, &state);
        accept(&c);
    }
}
