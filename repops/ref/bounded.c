/* The table of bounded elements, and the values that they admit. SPEC.md section 14.5. */
#include "repops/ref/bounded.h"
#include "repops/free.h"
#include "repops/src/fpenv.h"
#include "repops/src/rounding.h"

#define RO_OPERATOR(number, NAME, name, ...)                                                       \
    extern RO_HIDDEN const ro_bounded_op ro_bounded_op_##name;
#include "repops/src/operators.def"

/* An entry is NULL if the operator has a fixed order, or does not exist. */
#define ROW_FIXED(number, name)
#define ROW_FREE(number, name) [number] = &ro_bounded_op_##name,

static const ro_bounded_op *const table[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, ...) ROW_##order(number, name)
#include "repops/src/operators.def"
};

/* Replaces a NaN by one pattern, since machines create different ones. */
static double canonical(double x) {
    return x != x ? ro_from_bits64(UINT64_C(0x7ff8000000000000)) : x;
}

/* Enlarges a bound by 2^-9, for the rounding errors made in computing it; kernels' bounds
 * (free_bound in repops/free/real.h) are enlarged by more. Not inlined: compilers ignore rounding
 * modes, and could move a product out of the part that sets one. */
static __attribute__((noinline)) ro_bounded enlarged(approx y) {
    return (ro_bounded){canonical(y.v), canonical((1 + 0x1p-9) * ap_error(y))};
}

/* ---- folds: the state is a sum, a sum of magnitudes, and the number of terms ---- */

static bounded_sum sum_in(const ro_acc *acc) {
    return (bounded_sum){ro_from_bits64(get64(acc, 0)), ro_from_bits64(get64(acc, 2)),
                         get64(acc, 4)};
}

size_t ro_ref_bounded_state_size(const ro_call *call) {
    return ro_ref_steps(call) > 0 ? 24 : 0;
}

void ro_ref_bounded_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                         const ro_access *in) {
    const ro_fpenv env = ro_fpenv_enter();
    bounded_sum s = sum_in(acc);
    table[call->op]->step(call, element, step, &s, in);
    ro_fpenv_leave(env);
    put64(acc, 0, ro_bits64(canonical(s.sum)));
    put64(acc, 2, ro_bits64(canonical(s.size)));
    put64(acc, 4, s.terms);
}

ro_bounded ro_ref_bounded_finish(const ro_call *call, const ro_acc *acc) {
    const ro_fpenv env = ro_fpenv_enter();
    const bounded_sum s = sum_in(acc);
    const ro_bounded y = enlarged(table[call->op]->finish(call, &s));
    ro_fpenv_leave(env);
    return y;
}

static ro_bounded fold(const ro_call *call, int64_t element, const ro_access *in) {
    const int64_t steps = ro_ref_steps(call);
    ro_acc acc;
    ro_ref_begin(call, element, &acc);
    for (int64_t j = 0; j < steps; j++)
        ro_ref_bounded_step(call, element, j, &acc, in);
    return ro_ref_bounded_finish(call, &acc);
}

ro_bounded ro_ref_bounded(const ro_call *call, int64_t element, const ro_access *in) {
    const ro_bounded_op *op = call->op > 0 && call->op < RO_OP_END ? table[call->op] : NULL;
    if (!op)
        return (ro_bounded){0, canonical(__builtin_nan(""))};
    if (op->step)
        return fold(call, element, in);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_bounded y = enlarged(op->element(call, element, in));
    ro_fpenv_leave(env);
    return y;
}

static int64_t place_of(double x, int bits) {
    return ro_place(ro_canon(ro_round_any(x, ro_magic(bits))), bits);
}

/* Returns the first and last place on the grid that the element may have. No order changes a NaN,
 * an infinity or an exact number, and adding a bound of 0 would turn an exact -0 into +0. */
static __attribute__((noinline)) ro_places places(ro_bounded r, int bits) {
    const int64_t place = place_of(r.value, bits);
    if (r.value - r.value != 0 || r.bound == 0)
        return (ro_places){place, place};
    const double reach = r.bound < 0x1p200 ? 2 * r.bound : 0x1p201; /* a NaN counts as infinite */
    return (ro_places){place_of(r.value - reach, bits), place_of(r.value + reach, bits)};
}

ro_places ro_bounded_places(ro_bounded r, int bits) {
    const ro_fpenv env = ro_fpenv_enter();
    const ro_places v = places(r, bits);
    ro_fpenv_leave(env);
    return v;
}

/* Returns whether the element admits this value. If rounding decides the sign of an infinity's
 * factor, the element is not finite in any profile. */
int ro_bounded_admits(ro_bounded r, int bits, uint32_t value) {
    const ro_places v = ro_bounded_places(r, bits);
    const int64_t place = ro_place(ro_from_bits(value), bits);
    const uint32_t beyond = bits < 32 ? value & ((UINT32_C(1) << (32 - bits)) - 1) : 0;
    if (r.value - r.value != 0)
        return value == RO_QNAN_BITS || (value & UINT32_C(0x7fffffff)) == UINT32_C(0x7f800000);
    return beyond == 0 && place >= v.low && place <= v.high;
}
