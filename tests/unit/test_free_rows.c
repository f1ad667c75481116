/* Free kernels of sums along rows and columns. */
#include "free_cases.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"

Test(free_rows, reduce_sum) {
    check_free_operator(RO_OP_REDUCE_SUM, 1);
}

Test(free_rows, reduce_dot) {
    check_free_operator(RO_OP_REDUCE_DOT, 1);
}

Test(free_rows, reduce_sqdev) {
    check_free_operator(RO_OP_REDUCE_SQDEV, 1);
}

Test(free_rows, reduce_expsum) {
    check_free_operator(RO_OP_REDUCE_EXPSUM, 1);
}

Test(free_rows, gradients_of_norms) {
    check_free_operator(RO_OP_REDUCE_LN_GX, 1);
    check_free_operator(RO_OP_REDUCE_RMS_GX, 1);
}

Test(free_rows, columns) {
    check_free_operator(RO_OP_SUM_ROWS, 1);
    check_free_operator(RO_OP_SUM_AXIS, 1);
    check_free_operator(RO_OP_LN_DGAMMA, 1);
    check_free_operator(RO_OP_RMS_DGAMMA, 1);
}

/* Every member of a profile except `contract` and `estrin` changes the order of every sum. Users
 * may set values that no built-in profile has. */
static float sum_of(const ro_profile *p, const ro_call *call, const float *x) {
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_F32};
    float y[1];
    cr_assert(ro_free_run(free_context(0), p, &r, call, (const void *const *)&x, y, NULL) == RO_OK);
    return y[0];
}

static void check_members(int op, int64_t n) {
    float x[1024];
    const ro_shape in = op == RO_OP_REDUCE_SUM ? shape2(1, n) : shape2(n, 1);
    const ro_call call = {op, 1, {op == RO_OP_REDUCE_SUM ? n : 1, 1024}, &in, shape1(1)};
    int changed[4] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        for (int64_t i = 0; i < n; i++)
            x[i] = ro_from_bits(case_f32(case_word(seed, 0, i), DATA_NORMAL));
        const ro_profile base = {.size = sizeof base, .name = "base", .lanes = 4};
        ro_profile p[4] = {base, base, base, base};
        p[0].lanes = 8;
        p[1].split = n > 64 ? 64 : 0;
        p[2].pairwise = 1;
        p[3].descending = 1;
        for (int i = 0; i < 4; i++)
            changed[i] += sum_of(&base, &call, x) != sum_of(&p[i], &call, x);
    }
    for (int i = 0; i < 4; i++)
        cr_assert(changed[i] > 20 || (i == 1 && n <= 64), "member %d changes %d of 200", i,
                  changed[i]);
}

Test(free_rows, every_member_of_a_profile_changes_sums) {
    check_members(RO_OP_REDUCE_SUM, 1000);
    check_members(RO_OP_SUM_ROWS, 64);
}
