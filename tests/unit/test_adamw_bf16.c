/* AdamW of a bf16 parameter in one call has the same bytes as its operators run one by one. */
#include "repops/fused.h"
#include "repops/tools/op_data.h"
#include "repops/op_movement.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], LARGE = 70001 };

static const float clip = 0.7f, c1 = 0.19f, c2 = 0.0975f, rate = 1e-3f;
static const int32_t step = 41;
static uint16_t data[3][LARGE], want[3][LARGE], got[3][LARGE]; /* w, m, v */
static float gradient[LARGE], wide[3][LARGE];

static void run(ro_ctx *ctx, int op, int64_t first, int64_t second, ro_dtype from, int64_t count,
                const void *x, const void *last, void *out) {
    const ro_shape shape[] = {{from, 1, {count}}, {RO_I32, 1, {1}}};
    ro_call call = {op, last ? 2 : 1, {first, second}, shape, {0}};
    char why[200] = "";
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, (const void *[]){x, last}, out) == RO_OK);
}

static void by_operators(const ro_adamw_bf16_parameter *p) {
    const int64_t count = p->step->count;
    ro_ctx *ctx;
    cr_assert(
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "scalar", .threads = 1},
                      &ctx) == RO_OK);
    for (int i = 0; i < 3; i++)
        run(ctx, RO_OP_CAST, RO_F32, 0, RO_BF16, count, data[i], NULL, wide[i]);
    cr_assert(ro_adamw(ctx, p->step, wide[0], wide[1], wide[2], gradient, wide[0], wide[1],
                       wide[2]) == RO_OK);
    for (int i = 0; i < 3; i++)
        run(ctx, RO_OP_CAST_STOCHASTIC, (int64_t)p->rounding->seed, p->rounding->stream[i], RO_F32,
            count, wide[i], &step, want[i]);
    ro_ctx_destroy(ctx);
}

static void compare(int64_t count, const char *backend, const char *where) {
    static const char *const name[] = {"w", "m", "v"};
    for (int i = 0; i < 3; i++)
        cr_expect(memcmp(got[i], want[i], (size_t)count * 2) == 0, "%s of %lld on %s, %s", name[i],
                  (long long)count, backend, where);
}

static ro_adamw_bf16_parameter parameter_of(int64_t count) {
    static const ro_adamw_rounding rounding = {
        .size = sizeof rounding, .stream = {7, 8, 9}, .seed = 0x123456789abcdef, .step = &step};
    static ro_adamw_step adamw;
    adamw = (ro_adamw_step){.size = sizeof adamw,
                            .count = count,
                            .beta1 = 0.9f,
                            .beta2 = 0.95f,
                            .eps = 1e-8f,
                            .decay = 0.1f,
                            .clip = &clip,
                            .c1 = &c1,
                            .c2 = &c2,
                            .rate = &rate};
    return (ro_adamw_bf16_parameter){.size = sizeof(ro_adamw_bf16_parameter),
                                     .step = &adamw,
                                     .rounding = &rounding,
                                     .w = data[0],
                                     .m = data[1],
                                     .v = data[2],
                                     .gradient = gradient,
                                     .w_out = got[0],
                                     .m_out = got[1],
                                     .v_out = got[2]};
}

static void check(int64_t count, data_class class, int threads) {
    ro_adamw_bf16_parameter p = parameter_of(count);
    for (int64_t e = 0; e < count; e++) {
        for (int i = 0; i < 3; i++)
            data[i][e] = (uint16_t)(case_f32(case_word((uint64_t)count, i, e), class) >> 16);
        const uint32_t bits = case_f32(case_word((uint64_t)count, 3, e), class);
        memcpy(&gradient[e], &bits, sizeof bits);
    }
    by_operators(&p);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx;
        const ro_options options = {
            .size = sizeof options, .backend = backends[b], .threads = threads};
        if (ro_ctx_create(&options, &ctx) != RO_OK)
            continue;
        memset(got, 0, sizeof got);
        cr_assert(ro_adamw_bf16(ctx, &p) == RO_OK);
        compare(count, backends[b], "apart");
        memcpy(got, data, sizeof got);
        ro_adamw_bf16_parameter onto = p;
        onto.w = got[0], onto.m = got[1], onto.v = got[2];
        cr_assert(ro_adamw_bf16(ctx, &onto) == RO_OK);
        compare(count, backends[b], "in place");
        ro_ctx_destroy(ctx);
    }
}

Test(adamw_bf16, gives_the_bytes_of_its_operators) {
    static const int64_t counts[] = {0, 1, 7, 8, 9, 511, 512, 513, LARGE};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check(counts[i], (data_class) class, 1 + class % 3);
}

Test(adamw_bf16, refuses_a_count_below_zero) {
    const ro_adamw_bf16_parameter p = parameter_of(-1);
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    cr_expect(ro_adamw_bf16(ctx, &p) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "count") != NULL);
    ro_ctx_destroy(ctx);
}
