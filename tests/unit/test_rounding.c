/* Rounding to b bits, places, and close calls (SPEC.md section 14), against definitions that search
 * for the result. */
#include <criterion/criterion.h>
#include <math.h>

#include "repops/src/backend.h"
#include "repops/src/emit.h"

/* Scales until the grid is the integers. This is exact, and uses other operations than ro_round. */
static float round_by_definition(double y, int bits) {
    if (isnan(y))
        return ro_from_bits(RO_QNAN_BITS);
    if (y == 0 || isinf(y))
        return (float)y;
    int exponent = ilogb(y);
    exponent = (exponent < -126 ? -126 : exponent) - (bits - 9);
    const double whole = rint(scalbn(fabs(y), -exponent)), r = scalbn(whole, exponent);
    return (float)copysign(r >= 0x1p128 ? INFINITY : r, y);
}

static void check(double y, int bits) {
    const float got = ro_round(y, bits), want = round_by_definition(y, bits);
    cr_assert(ro_to_bits(got) == ro_to_bits(want), "rnd_%d(%a) = %a, expected %a", bits, y,
              (double)got, (double)want);
}

/* Checks an exponent, with mantissas around each boundary of the grid and of binades. */
static void check_exponent(int exponent, int bits) {
    const int64_t last = INT64_C(1) << (61 - bits); /* the grid's spacing in last places */
    static const int64_t places[] = {0, 1, 2, 3};
    for (int p = 0; p < 4; p++)
        for (int side = 0; side < 5; side++)
            for (int64_t off = -2; off <= 2; off++) {
                const int64_t near = side == 4 ? (INT64_C(1) << 52) - places[p] * last / 2
                                               : places[p] * last + side * last / 4;
                const int64_t mantissa = near + off;
                if (mantissa < 0 || mantissa >= INT64_C(1) << 52)
                    continue;
                const double y =
                    ro_from_bits64((uint64_t)(exponent + 1023) << 52 | (uint64_t)mantissa);
                check(y, bits);
                check(-y, bits);
            }
}

Test(rounding, nearest_of_the_grid) {
    for (int bits = RO_ROUND_BITS_MIN; bits <= RO_ROUND_BITS_MAX; bits++) {
        for (int exponent = -160; exponent <= 135; exponent++)
            check_exponent(exponent, bits);
        static const double special[] = {0.0,   -0.0,   INFINITY, -INFINITY, NAN,
                                         1e300, -1e300, 5e-324,   -5e-324,   0x1.8p1023};
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
            check(special[i], bits);
    }
}

Test(rounding, of_32_bits_is_the_conversion) {
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 1000000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        const double y = ro_from_bits64((bits & ~(UINT64_C(0x7ff) << 52)) |
                                        (uint64_t)(1023 - 160 + bits % 300) << 52);
        cr_assert(ro_to_bits(ro_round(y, 32)) == ro_to_bits((float)y), "%a", y);
    }
}

Test(rounding, places_are_in_the_order_of_numbers) {
    for (int bits = RO_ROUND_BITS_MIN; bits <= RO_ROUND_BITS_MAX; bits++) {
        const int64_t end = ro_place(INFINITY, bits);
        for (int64_t p = -1 - end; p <= end; p += p > -9 && p < 9 ? 1 : 1 + end / 4099) {
            const float x = ro_at_place(p, bits);
            cr_assert(ro_place(x, bits) == p);
            cr_assert(ro_to_bits(ro_round((double)x, bits)) == ro_to_bits(x));
            if (p == -1 - end || p == end || p == -1)
                continue;
            const float above = ro_round_next(x, bits, 1);
            cr_assert(above > x && ro_round_next(above, bits, -1) == x, "%a %a %a", (double)x,
                      (double)above, (double)ro_round_next(above, bits, -1));
            const double middle = ((double)x + (double)above) / 2;
            cr_assert(isinf(above) || ro_round(middle, bits) == x ||
                      ro_round(middle, bits) == above);
        }
        cr_assert(ro_round_next(INFINITY, bits, 1) == INFINITY);
        cr_assert(isnan(ro_round_next(NAN, bits, -1)));
    }
}

/* ---- close calls: for any two values within the bounds, following gives the reporter's bits
 * ---- */

static double random_unit(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

/* Draws two values within `bound` of `exact`: the reporter rounds one, and the follower the other.
 * Returns the number of close calls. */
static int follow(double exact, double bound, int bits, uint64_t *state) {
    const double mine = exact + (2 * random_unit(state) - 1) * bound;
    const double other = exact + (2 * random_unit(state) - 1) * bound;
    float out, followed;
    ro_ctx *ctx;
    static ro_ctx *kept;
    if (!kept)
        cr_assert(ro_ctx_create(NULL, &kept) == RO_OK);
    ctx = kept;
    ro_rounding report = {.size = sizeof report, .mode = RO_FREE_REPORT, .bits = bits};
    ro_emitter t = {.rounding = &report,
                    .out = &out,
                    .magic = ro_magic(bits),
                    .half = 0.5 * ro_grid(bits),
                    .ctx = ctx};
    ro_emit_f64(&t, 0, &mine, &bound, 1);
    cr_assert(ro_to_bits(out) == ro_to_bits(ro_round(mine, bits)));
    ro_close_call call;
    const int calls = (int)t.calls;
    if (calls) {
        /* keep only what a log keeps */
        call = (ro_close_call){0, t.call[0].place, t.call[0].bits};
        cr_assert(call.bits == 32 || call.place >> call.bits == 0);
        ro_host_free(ctx, t.call);
    }
    ro_rounding replay = {.size = sizeof replay,
                          .mode = RO_FREE_REPLAY,
                          .bits = bits,
                          .call = &call,
                          .call_count = calls};
    ro_emitter f = {.rounding = &replay,
                    .out = &followed,
                    .magic = ro_magic(bits),
                    .half = 0.5 * ro_grid(bits),
                    .ctx = ctx};
    ro_emit_f64(&f, 0, &other, NULL, 1);
    cr_assert((f.calls == 1) == (ro_to_bits(followed) != ro_to_bits(ro_round(other, bits))));
    if (f.calls) {
        cr_assert(f.call[0].bits == 32 &&
                  (int32_t)f.call[0].place == (int32_t)ro_place(ro_round(other, bits), bits));
        ro_host_free(ctx, f.call);
    }
    cr_assert(ro_to_bits(out) == ro_to_bits(followed),
              "b = %d, exact %a, bound %a: %a, %a -> %a and %a", bits, exact, bound, mine, other,
              (double)out, (double)followed);
    return calls;
}

Test(rounding, followers_get_the_bits_of_the_reporter) {
    uint64_t state = 42;
    int calls = 0, none = 0;
    for (int i = 0; i < 2000000; i++) {
        const int bits = 16 + i % 17;
        const int exponent = (int)(random_unit(&state) * 285) - 155;
        double x = scalbn(1 + random_unit(&state), exponent);
        if (i % 3 == 1) /* at a boundary, or at a power of two */
            x = (double)ro_round(x, bits) * (1 + scalbn(1, -(bits - 8)));
        if (i % 3 == 2)
            x = (double)ro_round(scalbn(1, exponent), bits) *
                (1 + (random_unit(&state) - 0.5) * scalbn(1, -bits));
        if (x == 0 || isinf(x)) /* sums start from +0 in every order */
            continue;
        if (i % 5 == 0)
            x = -x;
        const double bound =
            fabs(x) * scalbn(random_unit(&state), -(int)(random_unit(&state) * 60));
        if (follow(x, i % 7 ? bound : scalbn(bound, 40), bits, &state))
            calls++;
        else
            none++;
    }
    cr_assert(calls > 100000 && none > 100000, "%d close, %d not", calls, none);
}

/* No more is reported than the bounds demand: far from every boundary, nothing is. */
Test(rounding, no_report_without_a_boundary_within_reach) {
    uint64_t state = 7;
    for (int i = 0; i < 100000; i++) {
        const float x = ro_round(1 + random_unit(&state), 32);
        cr_assert(follow((double)x, 0x1p-27, 32, &state) == 0);
    }
}
