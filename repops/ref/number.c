/* Operators on integers, and rounding to whole numbers: SPEC.md section 6. */
#include "repops/op_number.h"
#include "repops/ref/ref.h"
#include "repops/src/integer.h"

static uint32_t integer(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const int32_t a = (int32_t)load(in, 0, e), b = (int32_t)load(in, 1, e % numel(call, 1));
    (void)acc;
    return (uint32_t)ro_integer((int)call->attr[RO_INTEGER_KIND], a, b);
}
RO_REFERENCE(integer, .finish = integer)

/* Returns `size` rounded to nearest even; from 2^23 on every number is whole. */
static float to_nearest(float size) {
    return size < 0x1p23f ? size + 0x1p23f - 0x1p23f : size;
}

static float toward_zero(float size) {
    return size < 0x1p23f ? (float)(int32_t)size : size;
}

static uint32_t round_to(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const uint32_t bits = load(in, 0, e), sign = bits & UINT32_C(1) << 31;
    const int64_t kind = call->attr[RO_ROUND_KIND];
    const float size = ro_from_bits(bits ^ sign), whole = toward_zero(size);
    const int away = kind == (sign ? RO_DOWN : RO_UP) && whole < size;
    (void)acc;
    if (size != size)
        return RO_QNAN_BITS;
    const float y = kind == RO_NEAREST ? to_nearest(size) : away ? whole + 1 : whole;
    return ro_to_bits(y) | sign;
}
RO_REFERENCE(round, .finish = round_to)
