/* The list of all mnemonics that the library may use, with their actions. A new one that nvcc emits
 * is refused by name until it is reviewed and listed here: nothing that approximates, flushes
 * subnormals, or leaves a rounding to a later compiler. */
#include <math.h>
#include <string.h>

#include "tests/ptx/asynchronous.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/transfers.h"

namespace ptx {

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/* Returns the number if one is a NaN; -0 is less than 0. */
template <class T> static T greater(T a, T b) {
    if (a != a || b != b)
        return a != a ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}
template <class T> static T smaller(T a, T b) {
    if (a != a || b != b)
        return a != a ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

/* Division by 0 gives a value that devices do not define; the least number divided by -1 wraps. */
template <class T> static T quotient(T a, T b) {
    if (b == 0)
        return (T) ~(T)0;
    return std::is_signed_v<T> && b == (T)-1 ? (T)(0 - (std::make_unsigned_t<T>)a) : (T)(a / b);
}
template <class T> static T remainder_of(T a, T b) {
    if (b == 0)
        return (T) ~(T)0;
    return std::is_signed_v<T> && b == (T)-1 ? (T)0 : (T)(a % b);
}

static s32 to_int(float a) {
    if (a != a)
        return 0;
    return a >= 2147483648.0f ? INT32_MAX : a < -2147483648.0f ? INT32_MIN : (s32)a;
}

static u32 insert_bits(u32 a, u32 b, u32 position, u32 length) {
    position &= 255, length &= 255;
    const u64 ones = length >= 32 ? 0xffffffffu : ((u64)1 << length) - 1;
    const u64 mask = position >= 32 ? 0 : ones << position;
    return (u32)((b & ~mask) | ((position >= 32 ? 0 : (u64)a << position) & mask));
}

static u64 insert_long_bits(u64 a, u64 b, u32 position, u32 length) {
    position &= 255, length &= 255;
    if (position >= 64)
        return b;
    const u64 ones = length >= 64 ? ~(u64)0 : ((u64)1 << length) - 1;
    return (b & ~(ones << position)) | ((a & ones) << position);
}

static u32 reverse_bits(u32 a) {
    u32 reversed = 0;
    for (int bit = 0; bit < 32; bit++)
        reversed |= (a >> bit & 1) << (31 - bit);
    return reversed;
}

static u32 permute_bytes(u32 a, u32 b, u32 selector) {
    const u64 bytes = (u64)b << 32 | a;
    u32 value = 0;
    for (int n = 0; n < 4; n++) {
        const u32 which = selector >> (4 * n) & 15;
        u32 byte = (u32)(bytes >> (8 * (which & 7))) & 255;
        if (which & 8)
            byte = byte & 128 ? 255 : 0;
        value |= byte << (8 * n);
    }
    return value;
}

/* Returns c plus the products of four signed bytes. */
static u32 sum_of_products(u32 a, u32 b, u32 c) {
    for (int n = 0; n < 4; n++)
        c += (u32)((int8_t)(a >> (8 * n)) * (int8_t)(b >> (8 * n)));
    return c;
}

#define COMPARE(name, type, T, holds) value("setp." name "." type, [](T a, T b) { return holds; })

static const operation arithmetic[] = {
    /* binary32, rounded to nearest */
    value("add.rn.f32", [](float a, float b) { return a + b; }),
    value("sub.rn.f32", [](float a, float b) { return a - b; }),
    value("mul.rn.f32", [](float a, float b) { return a * b; }),
    value("div.rn.f32", [](float a, float b) { return a / b; }),
    value("rcp.rn.f32", [](float a) { return 1.0f / a; }),
    value("sqrt.rn.f32", [](float a) { return __builtin_sqrtf(a); }),
    value("fma.rn.f32", [](float a, float b, float c) { return __builtin_fmaf(a, b, c); }),
    value("max.f32", [](float a, float b) { return greater(a, b); }),
    value("min.f32", [](float a, float b) { return smaller(a, b); }),
    value("neg.f32", [](u32 a) { return a ^ 0x80000000u; }),
    value("abs.f32", [](u32 a) { return a & 0x7fffffffu; }),
    value("cvt.rmi.f32.f32", [](float a) { return __builtin_floorf(a); }),
    value("cvt.rpi.f32.f32", [](float a) { return __builtin_ceilf(a); }),
    value("cvt.rni.f32.f32", [](float a) { return __builtin_rintf(a); }),
    value("cvt.rzi.f32.f32", [](float a) { return __builtin_truncf(a); }),
    /* binary64, used by free kernels, functions and running totals */
    value("add.rn.f64", [](double a, double b) { return a + b; }),
    value("sub.rn.f64", [](double a, double b) { return a - b; }),
    value("mul.rn.f64", [](double a, double b) { return a * b; }),
    value("div.rn.f64", [](double a, double b) { return a / b; }),
    value("rcp.rn.f64", [](double a) { return 1.0 / a; }),
    value("sqrt.rn.f64", [](double a) { return __builtin_sqrt(a); }),
    value("fma.rn.f64", [](double a, double b, double c) { return __builtin_fma(a, b, c); }),
    value("max.f64", [](double a, double b) { return greater(a, b); }),
    value("min.f64", [](double a, double b) { return smaller(a, b); }),
    value("neg.f64", [](u64 a) { return a ^ (u64)1 << 63; }),
    value("abs.f64", [](u64 a) { return a & ~((u64)1 << 63); }),
    /* integers */
    value("add.s32", [](u32 a, u32 b) { return a + b; }),
    value("add.s64", [](u64 a, u64 b) { return a + b; }),
    value("sub.s32", [](u32 a, u32 b) { return a - b; }),
    value("sub.s64", [](u64 a, u64 b) { return a - b; }),
    value("mul.lo.s32", [](u32 a, u32 b) { return a * b; }),
    value("mul.lo.s64", [](u64 a, u64 b) { return a * b; }),
    value("mul.hi.u32", [](u32 a, u32 b) { return (u32)((u64)a * b >> 32); }),
    value("mul.hi.u64", [](u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }),
    value("mul.wide.s32", [](s32 a, s32 b) { return (s64)a * b; }),
    value("mul.wide.u32", [](u32 a, u32 b) { return (u64)a * b; }),
    value("mad.lo.s32", [](u32 a, u32 b, u32 c) { return a * b + c; }),
    value("mad.lo.u32", [](u32 a, u32 b, u32 c) { return a * b + c; }),
    value("mad.wide.s32", [](s32 a, s32 b, s64 c) { return (s64)((u64)((s64)a * b) + (u64)c); }),
    value("dp4a.s32.s32", [](u32 a, u32 b, u32 c) { return sum_of_products(a, b, c); }),
    value("mul.hi.s64", [](s64 a, s64 b) { return (s64)((__int128)a * b >> 64); }),
    value("div.s32", [](s32 a, s32 b) { return quotient(a, b); }),
    value("div.u32", [](u32 a, u32 b) { return quotient(a, b); }),
    value("div.s64", [](s64 a, s64 b) { return quotient(a, b); }),
    value("div.u64", [](u64 a, u64 b) { return quotient(a, b); }),
    value("rem.s32", [](s32 a, s32 b) { return remainder_of(a, b); }),
    value("rem.u32", [](u32 a, u32 b) { return remainder_of(a, b); }),
    value("rem.s64", [](s64 a, s64 b) { return remainder_of(a, b); }),
    value("min.s32", [](s32 a, s32 b) { return a < b ? a : b; }),
    value("min.u32", [](u32 a, u32 b) { return a < b ? a : b; }),
    value("min.s64", [](s64 a, s64 b) { return a < b ? a : b; }),
    value("min.u64", [](u64 a, u64 b) { return a < b ? a : b; }),
    value("max.s32", [](s32 a, s32 b) { return a > b ? a : b; }),
    value("max.u32", [](u32 a, u32 b) { return a > b ? a : b; }),
    value("max.s64", [](s64 a, s64 b) { return a > b ? a : b; }),
    value("neg.s32", [](u32 a) { return 0 - a; }),
    value("neg.s64", [](u64 a) { return 0 - a; }),
    value("abs.s64", [](u64 a) { return (s64)a < 0 ? 0 - a : a; }),
    /* bits */
    value("and.b16", [](u16 a, u16 b) { return (u16)(a & b); }),
    value("or.b16", [](u16 a, u16 b) { return (u16)(a | b); }),
    value("and.b32", [](u32 a, u32 b) { return a & b; }),
    value("and.b64", [](u64 a, u64 b) { return a & b; }),
    value("and.pred", [](bool a, bool b) { return (bool)(a & b); }),
    value("or.b32", [](u32 a, u32 b) { return a | b; }),
    value("or.b64", [](u64 a, u64 b) { return a | b; }),
    value("or.pred", [](bool a, bool b) { return (bool)(a | b); }),
    value("xor.b32", [](u32 a, u32 b) { return a ^ b; }),
    value("xor.b64", [](u64 a, u64 b) { return a ^ b; }),
    value("xor.pred", [](bool a, bool b) { return a != b; }),
    value("not.b32", [](u32 a) { return ~a; }),
    value("not.b64", [](u64 a) { return ~a; }),
    value("not.pred", [](bool a) { return !a; }),
    value("shl.b32", [](u32 a, u32 b) { return b > 31 ? 0 : a << b; }),
    value("shl.b64", [](u64 a, u32 b) { return b > 63 ? 0 : a << b; }),
    value("shr.u32", [](u32 a, u32 b) { return b > 31 ? 0 : a >> b; }),
    value("shr.u64", [](u64 a, u32 b) { return b > 63 ? 0 : a >> b; }),
    value("shr.s32", [](s32 a, u32 b) { return a >> (b > 31 ? 31 : b); }),
    value("shr.s64", [](s64 a, u32 b) { return a >> (b > 63 ? 63 : b); }),
    value("shf.r.wrap.b32",
          [](u32 a, u32 b, u32 c) { return (u32)(((u64)b << 32 | a) >> (c & 31)); }),
    value("popc.b32", [](u32 a) { return (u32)__builtin_popcount(a); }),
    value("clz.b32", [](u32 a) { return a ? (u32)__builtin_clz(a) : 32u; }),
    value("brev.b32", [](u32 a) { return reverse_bits(a); }),
    value("bfind.shiftamt.u32", [](u32 a) { return a ? (u32)__builtin_clz(a) : ~0u; }),
    value("bfi.b32", [](u32 a, u32 b, u32 c, u32 d) { return insert_bits(a, b, c, d); }),
    value("bfi.b64", [](u64 a, u64 b, u32 c, u32 d) { return insert_long_bits(a, b, c, d); }),
    value("prmt.b32", [](u32 a, u32 b, u32 c) { return permute_bytes(a, b, c); }),
    /* choices and moves */
    value("selp.b32", [](u32 a, u32 b, bool p) { return p ? a : b; }),
    value("selp.u32", [](u32 a, u32 b, bool p) { return p ? a : b; }),
    value("selp.s32", [](u32 a, u32 b, bool p) { return p ? a : b; }),
    value("selp.f32", [](u32 a, u32 b, bool p) { return p ? a : b; }),
    value("selp.u16", [](u16 a, u16 b, bool p) { return p ? a : b; }),
    value("selp.b16", [](u16 a, u16 b, bool p) { return p ? a : b; }),
    value("selp.b64", [](u64 a, u64 b, bool p) { return p ? a : b; }),
    value("selp.u64", [](u64 a, u64 b, bool p) { return p ? a : b; }),
    value("selp.f64", [](u64 a, u64 b, bool p) { return p ? a : b; }),
    value("mov.pred", [](bool a) { return a; }),
    value("mov.u16", [](u16 a) { return a; }),
    value("mov.u32", [](u32 a) { return a; }),
    value("mov.b32", [](u32 a) { return a; }),
    value("mov.f32", [](u32 a) { return a; }),
    value("mov.u64", [](u64 a) { return a; }),
    value("mov.f64", [](u64 a) { return a; }),
    value("cvta.to.global.u64", [](u64 a) { return a; }),
    /* conversions; those to floating point round to nearest */
    value("cvt.s64.s32", [](s32 a) { return (s64)a; }),
    value("cvt.u64.u32", [](u32 a) { return (u64)a; }),
    value("cvt.u32.u64", [](u64 a) { return (u32)a; }),
    value("cvt.u32.u16", [](u16 a) { return (u32)a; }),
    value("cvt.u16.u32", [](u32 a) { return (u16)a; }),
    value("cvt.u16.u64", [](u64 a) { return (u16)a; }),
    value("cvt.rn.f32.s32", [](s32 a) { return (float)a; }),
    value("cvt.rn.f32.u32", [](u32 a) { return (float)a; }),
    value("cvt.rn.f32.u16", [](u16 a) { return (float)a; }),
    value("cvt.rn.f32.s16", [](s16 a) { return (float)a; }),
    value("cvt.rn.f32.s64", [](s64 a) { return (float)a; }),
    value("cvt.rn.f64.s32", [](s32 a) { return (double)a; }),
    value("cvt.rn.f64.s64", [](s64 a) { return (double)a; }),
    value("cvt.rn.f64.u64", [](u64 a) { return (double)a; }),
    value("cvt.rn.f32.f64", [](double a) { return (float)a; }),
    value("cvt.f64.f32", [](float a) { return (double)a; }),
    value("cvt.rzi.s32.f32", [](float a) { return to_int(a); }),
    /* comparisons; those with u are true if one is a NaN */
    COMPARE("eq", "f32", float, a == b),
    COMPARE("lt", "f32", float, a < b),
    COMPARE("le", "f32", float, a <= b),
    COMPARE("gt", "f32", float, a > b),
    COMPARE("ge", "f32", float, a >= b),
    COMPARE("neu", "f32", float, a != b),
    COMPARE("ltu", "f32", float, !(a >= b)),
    COMPARE("leu", "f32", float, !(a > b)),
    COMPARE("geu", "f32", float, !(a < b)),
    COMPARE("nan", "f32", float, a != a || b != b),
    COMPARE("gtu", "f32", float, !(a <= b)),
    COMPARE("eq", "f64", double, a == b),
    COMPARE("lt", "f64", double, a < b),
    COMPARE("le", "f64", double, a <= b),
    COMPARE("gt", "f64", double, a > b),
    COMPARE("ge", "f64", double, a >= b),
    COMPARE("nan", "f64", double, a != a || b != b),
    COMPARE("num", "f64", double, a == a && b == b),
    COMPARE("neu", "f64", double, a != b),
    COMPARE("ltu", "f64", double, !(a >= b)),
    COMPARE("leu", "f64", double, !(a > b)),
    COMPARE("gtu", "f64", double, !(a <= b)),
    COMPARE("geu", "f64", double, !(a < b)),
    COMPARE("eq", "s16", s16, a == b),
    COMPARE("ne", "s16", s16, a != b),
    COMPARE("lt", "u16", u16, a < b),
    COMPARE("gt", "u16", u16, a > b),
    COMPARE("eq", "b32", u32, a == b),
    COMPARE("eq", "s32", s32, a == b),
    COMPARE("ne", "s32", s32, a != b),
    COMPARE("lt", "s32", s32, a < b),
    COMPARE("le", "s32", s32, a <= b),
    COMPARE("gt", "s32", s32, a > b),
    COMPARE("ge", "s32", s32, a >= b),
    COMPARE("ne", "u32", u32, a != b),
    COMPARE("lt", "u32", u32, a < b),
    COMPARE("le", "u32", u32, a <= b),
    COMPARE("gt", "u32", u32, a > b),
    COMPARE("ge", "u32", u32, a >= b),
    COMPARE("eq", "b64", u64, a == b),
    COMPARE("eq", "s64", s64, a == b),
    COMPARE("ne", "s64", s64, a != b),
    COMPARE("lt", "s64", s64, a < b),
    COMPARE("le", "s64", s64, a <= b),
    COMPARE("gt", "s64", s64, a > b),
    COMPARE("ge", "s64", s64, a >= b),
    COMPARE("lt", "u64", u64, a < b),
    COMPARE("gt", "u64", u64, a > b),
    COMPARE("ge", "u64", u64, a >= b),
};

/* Floats are moved as bits. The hint .cs (used once) does not affect values. */
static const operation memory_access[] = {
    load<space::GLOBAL, u32>("ld.global.f32"),
    load<space::GLOBAL, u32>("ld.global.cs.f32"),
    load<space::GLOBAL, u32>("ld.global.u32"),
    load<space::GLOBAL, u32>("ld.global.nc.u32"), /* reads tables */
    load<space::GLOBAL, u32>("ld.global.s32"),
    load<space::GLOBAL, u16>("ld.global.u16"),
    load<space::GLOBAL, uint8_t>("ld.global.u8"),
    load<space::GLOBAL, int8_t>("ld.global.s8"),
    load<space::GLOBAL, u64>("ld.global.u64"),
    load<space::GLOBAL, u64>("ld.global.f64"),
    load<space::GLOBAL, u32, 4>("ld.global.v4.f32"),
    load<space::GLOBAL, u32, 4>("ld.global.v4.u32"),
    load<space::SHARED, u32>("ld.shared.f32"),
    load<space::SHARED, u32>("ld.shared.u32"),
    load<space::SHARED, u32>("ld.shared.s32"),
    load<space::SHARED, u16>("ld.shared.u16"),
    load<space::SHARED, uint8_t>("ld.shared.u8"),
    load<space::SHARED, u64>("ld.shared.u64"),
    load<space::SHARED, u64>("ld.shared.f64"),
    load<space::SHARED, u32, 2>("ld.shared.v2.f32"),
    load<space::SHARED, u32, 2>("ld.shared.v2.u32"),
    load<space::SHARED, u64, 2>("ld.shared.v2.u64"),
    load<space::SHARED, u32, 4>("ld.shared.v4.f32"),
    load<space::SHARED, u32, 4>("ld.shared.v4.u32"),
    load<space::PARAMETER, u32>("ld.param.f32"),
    load<space::PARAMETER, u32>("ld.param.u32"),
    load<space::PARAMETER, u32>("ld.param.s32"),
    load<space::PARAMETER, u16>("ld.param.u16"),
    load<space::PARAMETER, uint8_t>("ld.param.u8"),
    load<space::PARAMETER, int8_t>("ld.param.s8"),
    load<space::PARAMETER, u64>("ld.param.u64"),
    load<space::PARAMETER, u64>("ld.param.f64"),
    load<space::PARAMETER, u32, 2>("ld.param.v2.f32"),
    load<space::PARAMETER, u32, 2>("ld.param.v2.u32"),
    load<space::PARAMETER, uint8_t, 2>("ld.param.v2.u8"),
    load<space::PARAMETER, uint8_t, 4>("ld.param.v4.u8"),
    load<space::CONSTANT, u32>("ld.const.u32"),
    load<space::GENERIC, u32>("ld.u32"),
    load<space::GENERIC, u16>("ld.u16"),
    load<space::GENERIC, u64>("ld.u64"),
    load<space::GENERIC, uint8_t>("ld.u8"),
    load<space::GENERIC, u32, 4>("ld.v4.u32"),
    store_to<space::GLOBAL, u32>("st.global.f32"),
    store_to<space::GLOBAL, u32>("st.global.cs.f32"),
    store_to<space::GLOBAL, u32>("st.global.u32"),
    store_to<space::GLOBAL, u16>("st.global.u16"),
    store_to<space::GLOBAL, uint8_t>("st.global.u8"),
    store_to<space::GLOBAL, u64>("st.global.u64"),
    store_to<space::GLOBAL, u64>("st.global.f64"),
    store_to<space::GLOBAL, u32, 4>("st.global.v4.f32"),
    store_to<space::GLOBAL, u32, 4>("st.global.v4.u32"),
    store_to<space::SHARED, u32>("st.shared.f32"),
    store_to<space::SHARED, u32>("st.shared.u32"),
    store_to<space::SHARED, u16>("st.shared.u16"),
    store_to<space::SHARED, uint8_t>("st.shared.u8"),
    store_to<space::SHARED, u64>("st.shared.u64"),
    store_to<space::SHARED, u64>("st.shared.f64"),
    store_to<space::SHARED, u32, 2>("st.shared.v2.u32"),
    store_to<space::SHARED, u64, 2>("st.shared.v2.u64"),
    store_to<space::SHARED, u32, 4>("st.shared.v4.f32"),
    store_to<space::SHARED, u32, 4>("st.shared.v4.u32"),
    atomic<space::GLOBAL>("atom.global.max.u32", [](u32 old, u32 a) { return old > a ? old : a; }),
    atomic<space::GLOBAL>("atom.global.add.u32", [](u32 old, u32 a) { return old + a; }),
    atomic<space::SHARED>("atom.shared.add.u32", [](u32 old, u32 a) { return old + a; }),
    {"cp.async.ca.shared.global", copy_async, form::COPY, flow::NEXT, 4, {}},
    {"cp.async.cg.shared.global", copy_async, form::COPY, flow::NEXT, 4, {}},
    {"cp.async.commit_group", commit_copies, form::GROUPS, flow::NEXT, 0, {}},
    {"cp.async.wait_group", wait_copies, form::GROUPS, flow::NEXT, 1, {}},
};

static constexpr auto same = [](u64 a) { return a; };
static const operation control[] = {
    {"mov.b64",
     apply<decltype(same)>,
     form::PACK,
     flow::NEXT,
     2,
     {width::DOUBLE, width::DOUBLE},
     pack,
     unpack},
    {"bra", nullptr, form::TARGET, flow::BRANCH, 1, {}},
    {"bra.uni", nullptr, form::TARGET, flow::BRANCH, 1, {}},
    {"ret", nullptr, form::NOTHING, flow::RETURN, 0, {}},
    {"bar.sync", nullptr, form::MEET, flow::BLOCK_BARRIER, 1, {}},
    {"bar.red.or.pred", nullptr, form::MEET_OR, flow::BLOCK_BARRIER, 3, {}},
    {"bar.warp.sync", meet_warp, form::MEET_WARP, flow::WARP_EXCHANGE, 1, {}},
    {"shfl.sync.idx.b32", shuffle<IDX>, form::EXCHANGE, flow::WARP_EXCHANGE, 5, {}},
    {"shfl.sync.bfly.b32", shuffle<BFLY>, form::EXCHANGE, flow::WARP_EXCHANGE, 5, {}},
    {"shfl.sync.up.b32", shuffle<UP>, form::EXCHANGE, flow::WARP_EXCHANGE, 5, {}},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
     multiply_bytes<16>,
     form::MATRIX,
     flow::WARP_EXCHANGE,
     4,
     {}},
    {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
     multiply_bytes<8>,
     form::MATRIX,
     flow::WARP_EXCHANGE,
     2,
     {}},
    {"vote.sync.ballot.b32", ballot, form::VOTE, flow::WARP_EXCHANGE, 3, {}},
    {"redux.sync.min.u32", reduce<false>, form::REDUCE, flow::WARP_EXCHANGE, 3, {}},
    {"redux.sync.max.u32", reduce<true>, form::REDUCE, flow::WARP_EXCHANGE, 3, {}},
};

/* Describes an instruction of sm_90a (asynchronous.h). */
static operation beside(const char *mnemonic, action *run, form shape, int count = 0) {
    return {mnemonic, run, shape, flow::NEXT, count, {}};
}
static operation by_all_lanes(const char *mnemonic, action *run, form shape, int count = 0) {
    return {mnemonic, run, shape, flow::WARP_EXCHANGE, count, {}};
}
#define PRODUCT(columns)                                                                           \
    by_all_lanes("wgmma.mma_async.sync.aligned.m64n" #columns "k32.s32.s8.s8", issue_product,      \
                 form::PRODUCT, columns)
static const operation of_90a[] = {
    beside("mbarrier.init.shared::cta.b64", init_barrier, form::INIT),
    beside("mbarrier.arrive.shared::cta.b64", arrive_barrier, form::ARRIVE, 2),
    beside("mbarrier.arrive.expect_tx.shared::cta.b64", arrive_barrier, form::ARRIVE, 3),
    beside("mbarrier.try_wait.parity.shared::cta.b64", wait_barrier, form::AWAIT),
    beside("fence.mbarrier_init.release.cluster", fence_barriers, form::NOTHING),
    beside("fence.proxy.async.shared::cta", fence_barriers, form::NOTHING),
    beside("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", copy_bulk,
           form::BULK),
    by_all_lanes("setmaxnreg.inc.sync.aligned.u32", more_registers, form::GROUPS, 1),
    by_all_lanes("setmaxnreg.dec.sync.aligned.u32", fewer_registers, form::GROUPS, 1),
    by_all_lanes("wgmma.fence.sync.aligned", fence_products, form::NOTHING),
    by_all_lanes("wgmma.commit_group.sync.aligned", commit_products, form::NOTHING),
    by_all_lanes("wgmma.wait_group.sync.aligned", wait_for_products, form::GROUPS, 1),
    PRODUCT(8),
    PRODUCT(64),
    PRODUCT(96),
};

/* ---- looking it up ---- */

template <size_t n>
static void add(std::unordered_map<std::string, const operation *> &all,
                const operation (&list)[n]) {
    for (const operation &o : list)
        if (!all.insert({o.mnemonic, &o}).second)
            die("%s stands in the list twice", o.mnemonic);
}

const operation *find_operation(const std::string &mnemonic) {
    static const auto all = [] {
        std::unordered_map<std::string, const operation *> m;
        add(m, arithmetic);
        add(m, memory_access);
        add(m, control);
        add(m, of_90a);
        return m;
    }();
    const auto found = all.find(mnemonic);
    return found == all.end() ? nullptr : found->second;
}

const char *refusal(const std::string &mnemonic) {
    const auto has = [&](const char *part) { return mnemonic.find(part) != std::string::npos; };
    const std::string verb = mnemonic.substr(0, mnemonic.find('.'));
    if (has(".ftz"))
        return "is refused: it flushes subnormals";
    if (has(".approx"))
        return "is refused: it approximates";
    if ((has(".f32") || has(".f64")) && !has(".r") &&
        (verb == "add" || verb == "sub" || verb == "mul" || verb == "fma"))
        return "is refused: it does not say .rn, and a compiler may contract it";
    return "is not in the list of tests/ptx/mnemonics.cc";
}

} // namespace ptx
