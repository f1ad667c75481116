/* A definition that serves several operators gives NaN for any other operator. Otherwise its last
 * case could silently stand for one that was forgotten. */
#include "repops/ref/ref.h"
#include "repops/op_reduce.h"

#include <criterion/criterion.h>
#include <math.h>

static float numbers[2] = {0.5f, 0.25f};

static uint32_t load_number(void *user, int input, int64_t index) {
    (void)user, (void)index;
    return ro_to_bits(numbers[input % 2]);
}

static const ro_access access_to = {load_number, NULL};

/* Returns the value that the definition of `row` gives for `op`, called with one row of one element
 * and factor 1. */
static float value_of(int row, int op) {
    static const ro_shape one[RO_MAX_INPUTS] = {[0] = {RO_F32, 1, {1}}, [1] = {RO_F32, 1, {1}}};
    const ro_call call = {
        .op = op, .attr = {1, 1}, .input_count = 2, .input = one, .output = {RO_F32, 1, {1}}};
    const ro_acc acc = {0};
    return ro_from_bits(ro_ref_row(row)->finish(&call, 0, &acc, &access_to));
}

Test(ref_unknown, sums_of_rows_serve_their_operators_alone) {
    for (int op = 1; op < RO_OP_END; op++) {
        if (!ro_op_describe(op))
            continue;
        const bool served = ro_ref_row(op)->finish == ro_ref_row(RO_OP_REDUCE_SUM)->finish;
        cr_expect(isnan(value_of(RO_OP_REDUCE_SUM, op)) != served, "%s", ro_op_describe(op)->name);
    }
}
