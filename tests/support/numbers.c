/* Nodes for operators on integers, operators computed in binary64, and indices along an axis: the
 * result depends on all of them, and no number is NaN or so large that it hides another. */
#include "repops/op_along.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_number.h"
#include "tests/support/numbers.h"

/* The axis along which numbers are ordered. */
enum { FIRST = 0 };

/* Adds a function's values to a sum that stays small. */
static vd_value added(vd_builder *b, vd_value sum, vd_value more) {
    return vd_scale(b, "part", vd_add(b, "sum", sum, more), 0.5f);
}

/* Adds all functions of one or two numbers, of u in (0, 0.9]; acosh is of 1 / u. */
static vd_value wide_functions(vd_builder *b, vd_value u) {
    const vd_value one = VD_EMIT(b, "one", ((vd_op){.op = RO_OP_DIV}), u, u);
    vd_value sum = u;
    for (int op = RO_OP_SIN; op <= RO_OP_EXP2; op++) {
        const vd_op node = {.op = op};
        const vd_value x = op == RO_OP_ACOSH ? vd_div(b, "large", one, u) : u;
        sum = added(b, sum, VD_EMIT(b, ro_op_describe(op)->name, node, x));
    }
    sum = added(b, sum, VD_EMIT(b, "angle", ((vd_op){.op = RO_OP_ATAN2}), sum, u));
    return added(b, sum, VD_EMIT(b, "power", ((vd_op){.op = RO_OP_POW}), u, sum));
}

/* Numbers near 0 that are drawn in each step. */
static vd_value drawn(vd_builder *b, const ro_shape *shape) {
    const vd_op normal = {RO_OP_NORMAL_AT, {5, 7, 0, ro_attr_f32(1)}, shape};
    const vd_op uniform = {RO_OP_UNIFORM_AT, {5, 8, ro_attr_f32(-1), ro_attr_f32(1)}, shape};
    return vd_add(b, "drawn", VD_EMIT(b, "normal", normal, vd_step_value(b)),
                  VD_EMIT(b, "uniform", uniform, vd_step_value(b)));
}

/* Sorts the numbers, and writes running sums of them back to their places. */
static vd_value put_back(vd_builder *b, vd_value x) {
    const vd_op order = {RO_OP_ARGSORT, {FIRST, 1}, NULL};
    const vd_op take = {RO_OP_TAKE_ALONG, {FIRST}, NULL};
    const vd_op run = {RO_OP_RUNNING, {FIRST, RO_RUNNING_SUM}, NULL};
    const vd_op put = {RO_OP_PUT_ALONG, {FIRST, RO_PUT_SUM}, NULL};
    const vd_value places = VD_EMIT(b, "places", order, x);
    const vd_value sums = VD_EMIT(b, "running", run, VD_EMIT(b, "ordered", take, x, places));
    return VD_EMIT(b, "put", put, x, places, sums);
}

/* The numbers in thousandths, modulo the sum of their column. */
static vd_value remainders(vd_builder *b, vd_value x) {
    const vd_op whole = {RO_OP_ROUND, {RO_NEAREST}, NULL},
                to_integer = {RO_OP_CAST, {RO_I32}, NULL};
    const vd_op to_float = {RO_OP_CAST, {RO_F32}, NULL}, sum = {RO_OP_ISUM, {FIRST}, NULL};
    const vd_op modulo = {RO_OP_INTEGER, {RO_FLOOR_REMAINDER}, NULL};
    const vd_value rounded = VD_EMIT(b, "whole", whole, vd_scale(b, "thousandths", x, 1000));
    const vd_value number = VD_EMIT(b, "integer", to_integer, rounded);
    const ro_shape *shape = vd_shape_of(b, x), columns = VD_SHAPE(RO_I32, shape->dim[1]);
    const vd_value sums = vd_reshape(b, "sums", VD_EMIT(b, "sums", sum, number), columns);
    return VD_EMIT(b, "number", to_float, VD_EMIT(b, "left", modulo, number, sums));
}

vd_value test_numbers(vd_builder *b, vd_value x, const ro_shape *shape) {
    const vd_value less = vd_scale(b, "less", x, 0x1p-7f);
    const vd_value size = vd_abs(b, vd_add(b, "moved", less, drawn(b, shape)));
    const vd_value small = vd_exp(b, vd_scale(b, "minus", size, -1));
    const vd_value y = wide_functions(b, vd_scale(b, "inside", small, 0.9f));
    return vd_add(b, "numbers", vd_scale(b, "part", remainders(b, y), 0x1p-7f), put_back(b, y));
}
