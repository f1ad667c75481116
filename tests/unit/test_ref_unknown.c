/* A definition that serves several operators gives NaN for every other one: the operator that was
 * written last must not stand for one that was forgotten. */
#include "repops/ref/bounded.h"
#include "repops/ref/ref.h"

#include <criterion/criterion.h>
#include <math.h>

static float numbers[2] = {0.5f, 0.25f};

static uint32_t load_number(void *user, int input, int64_t index) {
    (void)user, (void)index;
    return ro_to_bits(numbers[input % 2]);
}

static const ro_access access_to = {load_number, NULL};

/* One element, a row of one element, factor 1. */
static ro_call call_of(int op) {
    static const ro_shape one[RO_MAX_INPUTS] = {[0] = {RO_F32, 1, {1}}, [1] = {RO_F32, 1, {1}}};
    return (ro_call){
        .op = op, .attr = {1, 1}, .input_count = 2, .input = one, .output = {RO_F32, 1, {1}}};
}

static float value_of(ro_ref_finish_fn *definition, int op) {
    const ro_call call = call_of(op);
    const ro_acc acc = {0};
    return ro_from_bits(definition(&call, 0, &acc, &access_to));
}

static bool is_among(int op, const int *served, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (served[i] == op)
            return true;
    return false;
}

/* `definition` gives a number for the operators that it serves, and for no other. */
#define EXPECT_SERVES(definition, ...)                                                             \
    expect_serves(definition, #definition, (int[]){__VA_ARGS__},                                   \
                  sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void expect_serves(ro_ref_finish_fn *definition, const char *name, const int *served,
                          size_t count) {
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_op_describe(op))
            cr_expect(isnan(value_of(definition, op)) != is_among(op, served, count), "%s of %s",
                      name, ro_op_describe(op)->name);
}

Test(ref_unknown, definitions_of_elements_serve_their_operators_alone) {
    EXPECT_SERVES(ro_ref_arithmetic, RO_OP_ADD, RO_OP_SUB, RO_OP_MUL, RO_OP_DIV, RO_OP_MAX,
                  RO_OP_MIN);
    EXPECT_SERVES(ro_ref_function, RO_OP_EXP, RO_OP_LOG, RO_OP_SQRT, RO_OP_RSQRT, RO_OP_TANH,
                  RO_OP_ERF, RO_OP_SIGMOID, RO_OP_SILU, RO_OP_GELU_ERF, RO_OP_ABS);
    EXPECT_SERVES(ro_ref_slope, RO_OP_TANH_GRAD, RO_OP_ERF_GRAD, RO_OP_SIGMOID_GRAD,
                  RO_OP_SILU_GRAD, RO_OP_GELU_ERF_GRAD);
}

Test(ref_unknown, sums_of_rows_serve_their_operators_alone) {
    EXPECT_SERVES(ro_ref_reduce, RO_OP_REDUCE_SUM, RO_OP_REDUCE_DOT, RO_OP_REDUCE_SQDEV,
                  RO_OP_REDUCE_EXPSUM, RO_OP_REDUCE_LN_GX, RO_OP_REDUCE_RMS_GX);
}

Test(ref_unknown, bounds_of_elements_serve_their_operators_alone) {
    static const int pairs[] = {RO_OP_ADD, RO_OP_SUB, RO_OP_MUL, RO_OP_DIV};
    static const int singles[] = {RO_OP_SCALE, RO_OP_DIV_CONST, RO_OP_SQRT};
    for (int op = 1; op < RO_OP_END; op++) {
        ro_call call = call_of(op);
        call.attr[0] = ro_attr_f32(1);
        cr_expect(isnan(ro_bounded_arithmetic(&call, 0, &access_to).v) != is_among(op, pairs, 4));
        cr_expect(isnan(ro_bounded_single(&call, 0, &access_to).v) != is_among(op, singles, 3));
    }
}
