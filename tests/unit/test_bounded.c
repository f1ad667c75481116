/* Every operator that is free has a reference with a bound, which judges all profiles right. */
#include "bounded_cases.h"

static uint32_t zero(void *user, int input, int64_t index) {
    (void)user, (void)input, (void)index;
    return 0;
}

/* Of other operators there is none. */
static void check_operators(int from, int to) {
    for (int op = from; op < to; op++) {
        const ro_access in = {zero, NULL};
        const ro_call call = {.op = op};
        if (!ro_op_describe(op))
            continue;
        if (ro_op_is_free(op))
            check_bounded_operator(op);
        else
            cr_assert(isnan(ro_ref_bounded(&call, 0, &in).bound), "%s", ro_op_describe(op)->name);
    }
}

Test(bounded, movement) {
    check_operators(1, RO_OP_ADD);
}

Test(bounded, arithmetic) {
    check_operators(RO_OP_ADD, RO_OP_MATMUL);
}

Test(bounded, matmul) {
    check_operators(RO_OP_MATMUL, RO_OP_REDUCE_SUM);
}

Test(bounded, reductions) {
    check_operators(RO_OP_REDUCE_SUM, RO_OP_ATTN_MAX);
}

Test(bounded, attention) {
    check_operators(RO_OP_ATTN_MAX, RO_OP_LR_SCHEDULE);
}

Test(bounded, optimizer_and_functions) {
    check_operators(RO_OP_LR_SCHEDULE, RO_OP_SOFTMAX);
}

Test(bounded, softmax_and_axes) {
    check_operators(RO_OP_SOFTMAX, RO_OP_CONV2D);
}

Test(bounded, convolution) {
    check_operators(RO_OP_CONV2D, RO_OP_MAX_POOL2D);
}

Test(bounded, images) {
    check_operators(RO_OP_MAX_POOL2D, RO_OP_RESHAPE);
}

Test(bounded, rope_and_gather) {
    check_operators(RO_OP_RESHAPE, RO_OP_END);
}
