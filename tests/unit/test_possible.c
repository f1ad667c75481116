/* The possible values of an element, and what the log says of them (PROTOCOL.md 12.1): an honest
 * trainer's value is always possible, and its log names it. */
#include "repops/src/backend.h"
#include "repops/src/emit.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static double unit(uint64_t *state) {
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

/* A device's value, and its report with a bound of at least twice the reference's. */
typedef struct {
    float rounded;
    ro_close_call call;
    bool reported;
} device;

static device report(double y, double bound, int bits) {
    static ro_ctx *ctx;
    device out = {.rounded = 0};
    if (!ctx)
        cr_assert(ro_ctx_create(NULL, &ctx) == RO_OK);
    const ro_rounding rounding = {.size = sizeof rounding, .mode = RO_FREE_REPORT, .bits = bits};
    ro_emitter t = {.rounding = &rounding,
                    .out = &out.rounded,
                    .magic = ro_magic(bits),
                    .half = 0.5 * ro_grid(bits),
                    .ctx = ctx};
    ro_emit_f64(&t, 0, &y, &bound, 1);
    out.reported = t.calls == 1;
    if (t.calls) {
        out.call = (ro_close_call){0, t.call[0].place, t.call[0].bits};
        ro_host_free(ctx, t.call);
    }
    return out;
}

static uint8_t symbol_of(double y, float r, double threshold) {
    return fabs(y - (double)r) > ro_binade(y) * threshold ? (y < (double)r ? 2 : 0) : 1;
}

typedef struct {
    double exact, bound;
    int bits;
} element;

/* Draws values at boundaries, near powers of two and anywhere, of every magnitude that f32 has. */
static element draw(uint64_t *state, int i) {
    const int bits = 16 + i % 17, exponent = (int)(unit(state) * 285) - 155;
    double x = scalbn(1 + unit(state), exponent);
    if (i % 3 == 1)
        x = (double)ro_round(x, bits) * (1 + scalbn(1, -(bits - 8)));
    if (i % 3 == 2)
        x = (double)ro_round(scalbn(1, exponent), bits) *
            (1 + (unit(state) - 0.5) * scalbn(1, -bits));
    const double bound = fabs(x) * scalbn(unit(state), -(int)(unit(state) * 52));
    return (element){i % 5 ? x : -x, bound, bits};
}

static double within(const element *e, uint64_t *state) {
    return e->exact + (2 * unit(state) - 1) * e->bound * (1 - 0x1p-20);
}

Test(possible, honest_values_are_possible_and_named) {
    uint64_t state = 11;
    int several = 0, single = 0, owed = 0;
    for (int i = 0; i < 1000000; i++) {
        const element e = draw(&state, i);
        if (e.exact == 0 || isinf(e.exact) || e.bound < fabs(e.exact) * 0x1p-51)
            continue;
        const double y = within(&e, &state), threshold = scalbn(1, -e.bits);
        const device d = report(y, 2 * (1 + 0x1p-8) * e.bound, e.bits);
        const vd_possible v = vd_possible_of((ro_bounded){within(&e, &state), e.bound}, e.bits);
        const uint32_t word = ro_to_bits(d.rounded);
        vd_log_section calls = {.call = d.reported ? (ro_close_call *)&d.call : NULL,
                                .count = d.reported};
        uint8_t symbol = symbol_of(y, d.rounded, threshold);
        const vd_log_section symbols = {.symbol = &symbol};
        cr_assert(vd_possible_has(&v, word), "%a, %a, b = %d", y, e.bound, e.bits);
        single += !vd_possible_several(&v);
        if (!vd_possible_several(&v))
            continue;
        several++;
        const int64_t place = vd_possible_place(&v, word);
        vd_told told = vd_possible_told(&v, &calls, 0, 0);
        cr_assert(told.recorded && !told.missing && told.low == place && told.high == place,
                  "%a, %a, b = %d: %d %d %lld", y, e.bound, e.bits, told.recorded, told.missing,
                  (long long)(told.low - place));
        told = vd_possible_told(&v, &symbols, threshold, 0);
        cr_assert(!told.missing && told.low <= place && place <= told.high,
                  "%a, %a, b = %d: symbol %d, %lld..%lld", y, e.bound, e.bits, symbol,
                  (long long)(told.low - place), (long long)(told.high - place));
        symbol = 1;
        owed += vd_possible_told(&v, &symbols, threshold, 0).missing;
    }
    cr_expect(several > 100000 && single > 100000 && owed > 10000, "%d, %d, %d", several, single,
              owed);
}

/* The value is the 16-bit number after 1, with a bound that makes both its neighbours possible
 * too. */
static vd_possible three(void) {
    return vd_possible_of((ro_bounded){1 + 0x1p-7, 0x1p-8 * 1.1}, 16);
}

static vd_told told_by(const vd_possible *v, uint32_t place, uint32_t bits) {
    ro_close_call call = {0, place & (uint32_t)((UINT64_C(1) << bits) - 1), bits};
    const vd_log_section section = {.call = &call, .count = 1};
    return vd_possible_told(v, &section, 0, 0);
}

Test(possible, a_call_that_names_several_is_a_missing_record_and_one_that_names_none_another) {
    const vd_possible v = three();
    const uint32_t middle = (uint32_t)v.low + 1;
    cr_assert(v.high - v.low == 2);
    cr_expect(told_by(&v, middle, 1).low == middle && !told_by(&v, middle, 1).missing);
    cr_expect(told_by(&v, middle + 1, 1).missing, "both neighbours of the middle");
    cr_expect(!told_by(&v, middle + 1, 2).missing && told_by(&v, middle + 1, 2).low == v.high);
    cr_expect(told_by(&v, middle + 2, 2).low > told_by(&v, middle + 2, 2).high);
    cr_expect(told_by(&v, middle + 1000, 32).low > told_by(&v, middle + 1000, 32).high);
    const vd_log_section empty = {.count = 0};
    cr_expect(vd_possible_told(&v, &empty, 0, 0).missing);
}

Test(possible, zeros_infinities_and_what_is_no_number) {
    const double inf = INFINITY;
    const uint32_t nan = 0x7fc00000;
    vd_possible v = vd_possible_of((ro_bounded){-0.0, 0}, 32);
    cr_expect(vd_possible_has(&v, 0x80000000) && !vd_possible_has(&v, 0));
    v = vd_possible_of((ro_bounded){0, 0x1p-160}, 32);
    cr_expect(vd_possible_has(&v, 0x80000000) && vd_possible_has(&v, 0) && !vd_possible_has(&v, 1));
    v = vd_possible_of((ro_bounded){inf, NAN}, 20);
    cr_expect(vd_possible_has(&v, 0x7f800000) && vd_possible_has(&v, nan) &&
              !vd_possible_has(&v, 0x7f7fffff));
    const vd_log_section empty = {.count = 0};
    vd_told told = vd_possible_told(&v, &empty, 0, 0);
    cr_expect(!told.missing && told.low <= vd_possible_place(&v, 0xff800000) &&
                  told.high >= vd_possible_place(&v, nan),
              "any of them");
    v = vd_possible_of((ro_bounded){NAN, NAN}, 20);
    cr_expect(vd_possible_has(&v, nan) && vd_possible_has(&v, 0xff800000) &&
              !vd_possible_has(&v, 0) && !vd_possible_several(&v));
    v = vd_possible_of((ro_bounded){0x1.ffffffp127, 0x1p102}, 32);
    cr_expect(vd_possible_has(&v, 0x7f800000) && vd_possible_has(&v, 0x7f7fffff));
    v = vd_possible_of((ro_bounded){1, NAN}, 32);
    cr_expect(vd_possible_has(&v, nan) && vd_possible_has(&v, 7) &&
                  !vd_possible_told(&v, &empty, 0, 0).missing,
              "no bound: nothing is known");
    v = vd_possible_of((ro_bounded){1, 0x1p-20}, 16);
    cr_expect(!vd_possible_has(&v, 0x3f800001), "not a number of the grid");
}
