/* Structures that callers fill: what functions report for an invalid size, for a caller older than
 * the library, and for a newer one. */
#include "repops/src/sized.h"

#include "repops/free.h"
#include "repops/guard.h"
#include "repops/layers.h"
#include "repops/packed.h"
#include "repops/op_function.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 4, NUMBERS = 64, MORE = 16, BYTES = 512 };

static ro_ctx *ctx;
static char said[300];
static float t[12][NUMBERS];
static const float one = 1;
static const int32_t now = 1, turns[NUMBERS], position[NUMBERS];
_Alignas(64) static uint8_t packed[1 << 16];

static ro_status told(ro_status status) {
    snprintf(said, sizeof said, "%s", status == RO_OK ? "" : ro_ctx_error(ctx));
    return status;
}

/* ---- a valid structure of each kind, and the functions that take it ---- */

static const ro_options options = {.size = sizeof options, .threads = 1, .backend = "scalar"};
static const ro_linear_layer linear = {
    .size = sizeof linear, .rows = 2, .in = 3, .out = 4, .fixed_bits = RO_FIXED_24};
static const ro_attention attention = {.size = sizeof attention,
                                       .batch = 1,
                                       .heads = 1,
                                       .kv_heads = 1,
                                       .queries = 2,
                                       .keys = 2,
                                       .head_size = 4,
                                       .scale = 1};
static const ro_adamw_step adamw = {.size = sizeof adamw,
                                    .count = COUNT,
                                    .eps = 1,
                                    .clip = &one,
                                    .c1 = &one,
                                    .c2 = &one,
                                    .rate = &one};
static const ro_adamw_parameter parameter = {.size = sizeof parameter,
                                             .step = &adamw,
                                             .w = t[0],
                                             .m = t[1],
                                             .v = t[2],
                                             .gradient = t[3],
                                             .w_out = t[0],
                                             .m_out = t[1],
                                             .v_out = t[2]};
static const ro_adamw_rounding stochastic = {.size = sizeof stochastic, .step = &now};
static uint16_t half[3][NUMBERS];
static const ro_adamw_bf16_parameter bf16 = {.size = sizeof bf16,
                                             .step = &adamw,
                                             .rounding = &stochastic,
                                             .w = half[0],
                                             .m = half[1],
                                             .v = half[2],
                                             .gradient = t[3],
                                             .w_out = half[0],
                                             .m_out = half[1],
                                             .v_out = half[2]};
static const ro_sgd_step sgd = {.size = sizeof sgd, .count = COUNT, .clip = &one, .rate = &one};
static const ro_rotary_layer rotary = {
    .size = sizeof rotary, .batch = 1, .tokens = 2, .heads = 1, .head_size = 4};
static const ro_profile profile = {.size = sizeof profile, .name = "own", .lanes = 4};
static const ro_rounding rounding = {.size = sizeof rounding, .mode = RO_FREE_F64, .bits = 24};

static ro_status create(const void *given) {
    ro_ctx *made;
    const ro_status status = ro_ctx_create(given, &made);
    snprintf(said, sizeof said, "%s", status == RO_OK ? "" : ro_ctx_error(NULL));
    ro_ctx_destroy(made);
    return status;
}
static ro_status run_linear(const void *given) {
    return told(ro_linear(ctx, given, t[0], t[1], t[2], NULL, t[3]));
}
static ro_status linear_backward(const void *given) {
    const ro_gradient dx = {t[4], 0}, dw = {t[5], 0}, db = {t[6], 0};
    return told(ro_linear_backward(ctx, given, t[0], t[1], NULL, t[3], dx, dw, db));
}
static ro_status packed_size(const void *given) {
    return told(ro_linear_packed_size(ctx, given) ? RO_OK : RO_ERR_ARG);
}
static ro_status pack(const void *given) {
    return told(ro_linear_pack(ctx, given, t[1], packed));
}
static ro_status run_packed(const void *given) {
    cr_assert(ro_linear_pack(ctx, &linear, t[1], packed) == RO_OK);
    return told(ro_linear_packed(ctx, given, t[0], packed, t[2], NULL, t[3]));
}
static ro_status forward(const void *given) {
    return told(ro_attention_forward(ctx, given, t[0], t[1], t[2], t[3], t[4], t[5]));
}
static ro_status backward(const void *given) {
    return told(ro_attention_backward(ctx, given, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7],
                                      t[8], t[9]));
}
static ro_status run_adamw(const void *given) {
    return told(ro_adamw(ctx, given, t[0], t[1], t[2], t[3], t[0], t[1], t[2]));
}
static ro_status step_of_parameter(const void *given) {
    ro_adamw_parameter p = parameter;
    p.step = given;
    return told(ro_adamw_all(ctx, 1, &p));
}
static ro_status adamw_all(const void *given) {
    return told(ro_adamw_all(ctx, 1, given));
}
static ro_status adamw_bf16(const void *given) {
    return told(ro_adamw_bf16(ctx, given));
}
static ro_status step_of_bf16(const void *given) {
    ro_adamw_bf16_parameter p = bf16;
    p.step = given;
    return told(ro_adamw_bf16(ctx, &p));
}
static ro_status rounding_of_bf16(const void *given) {
    ro_adamw_bf16_parameter p = bf16;
    p.rounding = given;
    return told(ro_adamw_bf16(ctx, &p));
}
static ro_status run_sgd(const void *given) {
    return told(ro_sgd(ctx, given, t[0], t[1], t[2], t[0], t[1]));
}
static ro_status run_rotary(const void *given) {
    return told(ro_rotary(ctx, given, t[0], position, turns, t[1]));
}
static ro_status rotary_backward(const void *given) {
    return told(ro_rotary_backward(ctx, given, t[0], position, turns, (ro_gradient){t[1], 0}));
}
static void no_finding(void *user, const ro_guard_finding *finding) {
    (void)user, (void)finding;
}
static const ro_guard guard = {.size = sizeof guard, .found = no_finding};
static ro_status run_guard(const void *given) {
    return told(ro_ctx_guard(ctx, given));
}

static ro_status check_profile(const void *given) {
    *said = '\0';
    return ro_profile_check(given, said, sizeof said);
}
static ro_status open_profile(const void *given) {
    return told(ro_free_open(ctx, given));
}

static ro_status run_free(const void *of, const void *r, ro_free_report *report) {
    const ro_shape in = {RO_F32, 1, {COUNT}};
    const ro_call call = {RO_OP_TANH, 1, {0}, &in, in};
    return told(ro_free_run(ctx, of, r, &call, (const void *[]){t[0]}, t[1], report));
}
static ro_status profile_of_run(const void *given) {
    return run_free(given, &rounding, NULL);
}
static ro_status run_rounding(const void *given) {
    return run_free(&profile, given, NULL);
}

typedef struct {
    const char *name;
    const void *valid;
    const ro_sized *sized;
    uint32_t size, reserved; /* offset of the reserved member; 0: there is none */
    ro_status (*run)(const void *given);
} taker;

#define TAKES(structure, valid, reserved, run)                                                     \
    { "ro_" #structure, &(valid), &ro_sized_##structure, sizeof(ro_##structure), reserved, run }
#define RESERVED(structure) offsetof(ro_##structure, reserved)

static const taker takers[] = {
    TAKES(options, options, 0, create),
    TAKES(linear_layer, linear, 0, run_linear),
    TAKES(linear_layer, linear, 0, linear_backward),
    TAKES(linear_layer, linear, 0, packed_size),
    TAKES(linear_layer, linear, 0, pack),
    TAKES(linear_layer, linear, 0, run_packed),
    TAKES(attention, attention, RESERVED(attention), forward),
    TAKES(attention, attention, RESERVED(attention), backward),
    TAKES(adamw_step, adamw, RESERVED(adamw_step), run_adamw),
    TAKES(adamw_step, adamw, RESERVED(adamw_step), step_of_parameter),
    TAKES(adamw_step, adamw, RESERVED(adamw_step), step_of_bf16),
    TAKES(adamw_parameter, parameter, RESERVED(adamw_parameter), adamw_all),
    TAKES(adamw_bf16_parameter, bf16, RESERVED(adamw_bf16_parameter), adamw_bf16),
    TAKES(adamw_rounding, stochastic, 0, rounding_of_bf16),
    TAKES(sgd_step, sgd, 0, run_sgd),
    TAKES(rotary_layer, rotary, RESERVED(rotary_layer), run_rotary),
    TAKES(rotary_layer, rotary, RESERVED(rotary_layer), rotary_backward),
    TAKES(profile, profile, 0, check_profile),
    TAKES(profile, profile, 0, open_profile),
    TAKES(profile, profile, 0, profile_of_run),
    TAKES(rounding, rounding, RESERVED(rounding), run_rounding),
    TAKES(guard, guard, RESERVED(guard), run_guard),
};
enum { TAKERS = sizeof takers / sizeof takers[0] };

/* ---- error messages ---- */

static void open_context(void) {
    cr_assert(ro_ctx_create(&options, &ctx) == RO_OK);
}

static void close_context(void) {
    ro_ctx_destroy(ctx);
}

TestSuite(sized, .init = open_context, .fini = close_context);

/* Runs with a copy of the structure that has another size, and `value` in the 4-byte word at offset
 * `at`. */
static ro_status with(const taker *k, uint32_t size, uint32_t at, uint32_t value) {
    _Alignas(16) static uint8_t bytes[BYTES];
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, k->valid, k->size);
    memcpy(bytes, &size, sizeof size);
    if (at > 0)
        memcpy(bytes + at, &value, sizeof value);
    return k->run(bytes);
}

static void expect_refused(const taker *k, ro_status status, const char *words) {
    char start[80];
    snprintf(start, sizeof start, "%s", k->name);
    cr_expect(status == RO_ERR_ARG && strncmp(said, start, strlen(start)) == 0 &&
                  strstr(said, words),
              "%s, number %d: \"%s\", expected \"%s\"", k->name, (int)(k - takers), said, words);
}

Test(sized, every_function_takes_its_structure_by_its_size) {
    for (const taker *k = takers; k < takers + TAKERS; k++) {
        char set[80], unknown[120];
        snprintf(set, sizeof set, "set it to sizeof(%s)", k->name);
        snprintf(unknown, sizeof unknown,
                 " has members that this library (%s) does not know: byte %u of %u must be 0",
                 RO_VERSION, (unsigned)(k->size + MORE - 4), (unsigned)(k->size + MORE));
        cr_expect(with(k, k->size, 0, 0) == RO_OK, "%s: %s", k->name, said);
        cr_expect(with(k, k->size + MORE, 0, 0) == RO_OK, "%s: %s", k->name, said);
        expect_refused(k, with(k, 0, 0, 0), ".size is 0: ");
        expect_refused(k, with(k, 0, 0, 0), set);
        expect_refused(k, with(k, 4, 0, 0), set);
        expect_refused(k, with(k, k->sized->oldest - 4, 0, 0), set);
        cr_expect(with(k, k->sized->oldest, 0, 0) == RO_OK, "%s: %s", k->name, said);
        expect_refused(k, with(k, RO_SIZED_MAX + 1, 0, 0), ".size must be ");
        expect_refused(k, with(k, UINT32_MAX, 0, 0), "got 4294967295");
        expect_refused(k, with(k, k->size + MORE, k->size + MORE - 4, 1), unknown);
        if (k->reserved)
            expect_refused(k, with(k, k->size, k->reserved, 7), ".reserved must be 0, got 7");
    }
}

/* The caller has version 1 of a structure to which the library has added a member. */
Test(sized, what_an_older_caller_lacks_is_0) {
    typedef struct {
        uint32_t size, reserved;
        int64_t first, added;
    } grown;
    const ro_sized s = {"ro_grown", sizeof(grown), offsetof(grown, added),
                        offsetof(grown, reserved)};
    grown own, given = {offsetof(grown, added), 0, 5, -1}; /* -1: beyond the caller's */
    char why[200] = "";
    cr_expect(ro_sized_copy(&s, &given, &own, why, sizeof why) == RO_OK, "%s", why);
    cr_expect(own.size == sizeof own && own.first == 5 && own.added == 0);
    given.size = sizeof given;
    cr_expect(ro_sized_copy(&s, &given, &own, why, sizeof why) == RO_OK, "%s", why);
    cr_expect(own.first == 5 && own.added == -1);
    given.size = offsetof(grown, added) - 1;
    cr_expect(ro_sized_copy(&s, &given, &own, why, sizeof why) == RO_ERR_ARG);
    cr_expect_str_eq(why, "ro_grown.size must be 16..4096, got 15: set it to sizeof(ro_grown)");
}

/* The library writes nothing after the caller's structure, and writes 0 to members that only the
 * caller knows. */
Test(sized, a_report_is_as_large_as_the_caller_says) {
    const ro_rounding report_all = {.size = sizeof report_all, .mode = RO_FREE_REPORT, .bits = 24};
    union {
        ro_free_report report;
        uint8_t byte[sizeof(ro_free_report) + 2 * MORE];
    } u;
    memset(&u, 0xff, sizeof u);
    u.report.size = sizeof u.report + MORE;
    cr_expect(run_free(&profile, &report_all, &u.report) == RO_OK, "%s", said);
    cr_expect(u.report.size == sizeof u.report + MORE && u.report.reserved == 0);
    cr_expect(u.report.decided == 0 && u.report.call_count <= COUNT);
    for (size_t i = 0; i < 2 * MORE; i++)
        cr_expect(u.byte[sizeof u.report + i] == (i < MORE ? 0 : 0xff), "byte %d", (int)i);
    u.report.size = 0;
    cr_expect(run_free(&profile, &report_all, &u.report) == RO_ERR_ARG);
    cr_expect_str_eq(said, "ro_free_report.size is 0: set it to sizeof(ro_free_report)");
}

Test(sized, elements_of_an_array_lie_as_far_apart_as_the_first_one_says) {
    struct {
        ro_adamw_parameter p;
        int64_t more;
    } all[3];
    memset(all, 0, sizeof all);
    for (int i = 0; i < 3; i++) {
        all[i].p = parameter;
        all[i].p.size = sizeof all[0];
        all[i].p.w = all[i].p.w_out = t[i];
        all[i].p.m = all[i].p.m_out = t[3 + i];
        all[i].p.v = all[i].p.v_out = t[6 + i];
        all[i].p.gradient = t[9];
    }
    cr_expect(ro_adamw_all(ctx, 3, &all[0].p) == RO_OK, "%s", ro_ctx_error(ctx));
    all[2].more = 1;
    cr_expect(ro_adamw_all(ctx, 3, &all[0].p) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "does not know"), "%s", ro_ctx_error(ctx));
    all[2].more = 0;
    all[2].p.size = sizeof(ro_adamw_parameter);
    cr_expect(ro_adamw_all(ctx, 3, &all[0].p) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "the size of parameter 2 must be that of the first one"),
              "%s", ro_ctx_error(ctx));
}

/* A program may copy a built-in profile, so its size is that of version 1. */
Test(sized, a_built_in_profile_has_the_size_that_it_needs) {
    const ro_profile *p;
    for (int i = 0; (p = ro_profile_at(i)); i++)
        cr_expect(p->size == offsetof(ro_profile, device) + sizeof p->device, "%s", p->name);
    cr_expect(ro_profile_by_name("cuda")->size == ro_profile_at(0)->size);
}
