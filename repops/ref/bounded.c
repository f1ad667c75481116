/* The table of bounded elements, and what they admit. SPEC.md section 14.5. */
#include "repops/ref/bounded.h"
#include "repops/src/rounding.h"

static ro_bounded_fn *const table[RO_OP_END] = {
    [RO_OP_MATMUL] = ro_bounded_matmul,  [RO_OP_ATTN_AV] = ro_bounded_attn_av,
    [RO_OP_CONV2D] = ro_bounded_conv,    [RO_OP_CONV2D_DX] = ro_bounded_conv,
    [RO_OP_CONV2D_DW] = ro_bounded_conv, [RO_OP_ADD] = ro_bounded_arithmetic,
    [RO_OP_SUB] = ro_bounded_arithmetic, [RO_OP_MUL] = ro_bounded_arithmetic,
    [RO_OP_DIV] = ro_bounded_arithmetic, [RO_OP_DIV_CONST] = ro_bounded_single,
    [RO_OP_SCALE] = ro_bounded_single,   [RO_OP_SQRT] = ro_bounded_single,
};

/* The bound is computed with rounding errors of its own: 2^-9 covers them; the kernels' (free_bound
 * in repops/free/kernel.h) is enlarged by more. */
ro_bounded ro_ref_bounded(const ro_call *call, int64_t element, const ro_access *in) {
    ro_bounded_fn *of = call->op > 0 && call->op < RO_OP_END ? table[call->op] : NULL;
    if (!of)
        return (ro_bounded){0, __builtin_nan("")};
    const approx y = of(call, element, in);
    return (ro_bounded){y.v, (1 + 0x1p-9) * y.e};
}

static int64_t place_of(double x, int bits) {
    return ro_place(ro_canon(ro_round_any(x, ro_magic(bits))), bits);
}

/* No order changes a NaN or an infinity; the sum of an exact -0 and 0 would be +0. */
ro_places ro_bounded_places(ro_bounded r, int bits) {
    const int64_t place = place_of(r.value, bits);
    if (r.value - r.value != 0 || r.bound == 0)
        return (ro_places){place, place};
    const double reach = r.bound < 0x1p200 ? 2 * r.bound : 0x1p201; /* a NaN counts as infinite */
    return (ro_places){place_of(r.value - reach, bits), place_of(r.value + reach, bits)};
}

int ro_bounded_admits(ro_bounded r, int bits, uint32_t value) {
    const ro_places v = ro_bounded_places(r, bits);
    const int64_t place = ro_place(ro_from_bits(value), bits);
    const uint32_t beyond = bits < 32 ? value & ((UINT32_C(1) << (32 - bits)) - 1) : 0;
    return beyond == 0 && place >= v.low && place <= v.high;
}
