/* The grid members that a value with a bound admits, SPEC.md section 14.5, for numbers written
 * here. */
#include <criterion/criterion.h>
#include <math.h>

#include "repops/free.h"
#include "repops/ref.h"
#include "repops/src/rounding.h"
#include "repops/op_product.h"

static int admits(double value, double bound, int bits, float x) {
    return ro_bounded_admits((ro_bounded){value, bound}, bits, ro_to_bits(x));
}

static int64_t members(double value, double bound, int bits) {
    const ro_places v = ro_bounded_places((ro_bounded){value, bound}, bits);
    return v.high - v.low + 1;
}

Test(bounded_places, one_member_away_from_boundaries) {
    cr_assert(members(1.0, 0x1p-50, 32) == 1);
    cr_assert(admits(1.0, 0x1p-50, 32, 1.0f) && !admits(1.0, 0x1p-50, 32, 1.0f + 0x1p-23f));
    cr_assert(!admits(1.0, 0x1p-50, 32, -1.0f) && !admits(1.0, 0x1p-50, 32, NAN));
    cr_assert(!admits(1.0, 0x1p-50, 32, INFINITY));
}

Test(bounded_places, two_at_a_boundary) {
    const double middle = 1 + 0x1p-24;
    cr_assert(members(middle, 0x1p-50, 32) == 2);
    cr_assert(admits(middle, 0x1p-50, 32, 1.0f) && admits(middle, 0x1p-50, 32, 1.0f + 0x1p-23f));
    cr_assert(!admits(middle, 0x1p-50, 32, 1.0f + 0x1p-22f));
    /* up to two bounds away */
    cr_assert(members(middle + 0x1p-49, 0x1p-50, 32) == 2);
    cr_assert(members(middle + 0x1.8p-49, 0x1p-50, 32) == 1);
}

Test(bounded_places, exact_values_round_to_the_nearest_alone) {
    cr_assert(members(1 + 0x1p-24, 0, 32) == 1 && admits(1 + 0x1p-24, 0, 32, 1.0f));
    cr_assert(admits(0.0, 0, 32, 0.0f) && !admits(0.0, 0, 32, -0.0f));
    cr_assert(admits(-0.0, 0, 32, -0.0f) && !admits(-0.0, 0, 32, 0.0f));
    cr_assert(members(0.0, 0x1p-1000, 32) == 2 && admits(0.0, 0x1p-1000, 32, -0.0f));
}

Test(bounded_places, only_members_of_the_grid) {
    for (int bits = 16; bits < 32; bits++)
        cr_assert(!admits(1.0, 0.125, bits, 1.0f + 0x1p-23f) && admits(1.0, 0.125, bits, 1.0f));
    cr_assert(admits(1.0, 0.125, 16, 1.0f + 0x1p-7f));
}

Test(bounded_places, what_is_not_finite) {
    cr_assert(members(INFINITY, 0, 32) == 1 && members(NAN, 0, 32) == 1);
    for (int i = 0; i < 2; i++) {
        const double y = i ? INFINITY : NAN;
        cr_assert(admits(y, NAN, 16, INFINITY) && admits(y, NAN, 16, -INFINITY));
        cr_assert(ro_bounded_admits((ro_bounded){y, NAN}, 16, RO_QNAN_BITS));
        cr_assert(!ro_bounded_admits((ro_bounded){y, NAN}, 32, UINT32_C(0xffc00000)));
        cr_assert(!admits(y, NAN, 16, 0x1.fep127f));
    }
    cr_assert(admits(0x1.ffffffp127, 0x1p80, 32, INFINITY));
    cr_assert(admits(0x1.ffffffp127, 0x1p80, 32, 0x1.fffffep127f));
    cr_assert(!admits(0x1p120, 0x1p80, 32, INFINITY));
}

Test(bounded_places, without_a_bound_everything_could_be_right) {
    cr_assert(admits(1.0, NAN, 32, -INFINITY) && admits(1.0, INFINITY, 20, 0.0f));
    cr_assert(!admits(1.0, NAN, 32, NAN), "but not what no finite number is rounded to");
}

Test(bounded_places, reports_are_followed) {
    const ro_close_call odd = {.place = (ro_to_bits(1.0f) & 1) + 1, .bits = 1}, even = {.bits = 1};
    const ro_close_call all = {.place = ro_to_bits(3.0f), .bits = 32};
    cr_assert(ro_round_called(1 + 0x1p-24, 32, &even) == 1.0f);
    cr_assert(ro_round_called(1 + 0x1p-24, 32, &odd) == 1.0f + 0x1p-23f);
    cr_assert(ro_round_called(1 - 0x1p-25 - 0x1p-30, 32, &odd) == 1.0f - 0x1p-24f);
    cr_assert(ro_round_called(1.0, 32, &all) == 3.0f);
    cr_assert(isinf(ro_round_called(INFINITY, 32, &all)));
    cr_assert(isnan(ro_round_called(NAN, 32, &all)));
}

/* ---- zeros whose sign depends on rounding ---- */

static ro_bounded element_of(const ro_call *call, const void *const *data) {
    ro_ref_memory memory = {call, data};
    const ro_access in = {ro_ref_load_memory, &memory};
    return ro_ref_bounded(call, 0, &in);
}

/* (1 + u - 1 - u) * 0: the sum is 0, or differs from it by a rounding. */
Test(bounded_places, a_sum_of_either_sign_times_zero) {
    const float a[4] = {1, 0x1p-30f, -1, -0x1p-30f}, b[4] = {1, 0x1p-30f, 1, 0x1p-30f};
    const float sure[4] = {1, 1, 1, 1};
    const ro_shape in[2] = {{RO_F32, 2, {1, 4}}, {RO_F32, 2, {4, 1}}};
    const ro_call call = {RO_OP_MATMUL, 2, {0, 0, 0, 256, 0}, in, {RO_F32, 2, {1, 1}}};
    const void *unsure_data[] = {a, b}, *sure_data[] = {sure, sure};
    const ro_bounded unsure = element_of(&call, unsure_data), plus = element_of(&call, sure_data);
    cr_assert(unsure.value == 0 && members(unsure.value, unsure.bound, 32) == 2);
    cr_assert(plus.value == 0 && members(plus.value, plus.bound, 32) == 1);
}
