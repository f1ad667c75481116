/* AdamW of a parameter in one call has the same bytes as its operators run one by one. */
#include "repops/fused.h"
#include "repops/tools/op_data.h"
#include "repops/op_optimizer.h"

#include <criterion/criterion.h>
#include <math.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], TENSORS = 4, LARGE = 70001 };

static uint32_t data[TENSORS][LARGE], want[3][LARGE], got[3][LARGE]; /* w, m, v and the gradient */

static void run_op(ro_ctx *ctx, int op, int inputs, const void *const *in, int64_t count,
                   float first, float second, void *out) {
    const ro_shape all = {RO_F32, 1, {count}}, one = {RO_F32, 1, {1}};
    const int whole = inputs / 2 + inputs % 2; /* inputs 2 of 3, or 3 of 6 */
    ro_shape shape[6];
    char why[200] = "";
    for (int i = 0; i < inputs; i++)
        shape[i] = i < whole ? all : one;
    ro_call call = {op, inputs, {ro_attr_f32(first), 0}, shape, {0}};
    if (inputs == 6)
        call.attr[1] = ro_attr_f32(second);
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, in, out) == RO_OK);
}

static void run_nodes(ro_ctx *ctx, const ro_adamw_step *s) {
    run_op(ctx, RO_OP_ADAMW_M, 3, (const void *[]){data[1], data[3], s->clip}, s->count, s->beta1,
           0, want[1]);
    run_op(ctx, RO_OP_ADAMW_V, 3, (const void *[]){data[2], data[3], s->clip}, s->count, s->beta2,
           0, want[2]);
    run_op(ctx, RO_OP_ADAMW_W, 6,
           (const void *[]){data[0], want[1], want[2], s->c1, s->c2, s->rate}, s->count, s->eps,
           s->decay, want[0]);
}

static void compare(ro_ctx *ctx, const ro_adamw_step *s, const char *where) {
    static const char *const name[] = {"w", "m", "v"};
    for (int i = 0; i < 3; i++)
        cr_expect(memcmp(got[i], want[i], (size_t)s->count * 4) == 0, "%s of %lld on %s, %s",
                  name[i], (long long)s->count, ro_ctx_backend(ctx), where);
    memset(got, 0, sizeof got);
}

static void check(int64_t count, data_class class, int threads) {
    static const float clip = 0.7f, c1 = 0.19f, c2 = 0.0975f, rate = 1e-3f;
    const ro_adamw_step s = {.size = sizeof s,
                             .count = count,
                             .beta1 = 0.9f,
                             .beta2 = 0.95f,
                             .eps = 1e-8f,
                             .decay = 0.1f,
                             .clip = &clip,
                             .c1 = &c1,
                             .c2 = &c2,
                             .rate = &rate};
    ro_ctx *ctx;
    for (int t = 0; t < TENSORS; t++)
        for (int64_t e = 0; e < count; e++)
            data[t][e] = case_f32(case_word((uint64_t)count, t, e), class);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    run_nodes(ctx, &s);
    ro_ctx_destroy(ctx);
    float *w = (float *)data[0], *m = (float *)data[1], *v = (float *)data[2];
    for (int b = 0; b < BACKENDS; b++) {
        if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options),
                                        .backend = backends[b],
                                        .threads = threads},
                          &ctx) != RO_OK)
            continue;
        cr_assert(ro_adamw(ctx, &s, w, m, v, (float *)data[3], (float *)got[0], (float *)got[1],
                           (float *)got[2]) == RO_OK);
        compare(ctx, &s, "apart");
        memcpy(got, data, sizeof got);
        cr_assert(ro_adamw(ctx, &s, (float *)got[0], (float *)got[1], (float *)got[2],
                           (float *)data[3], (float *)got[0], (float *)got[1],
                           (float *)got[2]) == RO_OK);
        compare(ctx, &s, "in place");
        ro_ctx_destroy(ctx);
    }
}

Test(adamw, gives_the_bytes_of_its_operators) {
    static const int64_t counts[] = {0, 1, 15, 16, 17, 1000, LARGE};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check(counts[i], (data_class) class, 1 + class % 3);
}

Test(adamw, steps_of_several_parameters_are_those_of_each) {
    static const float clip = 0.7f, c1 = 0.19f, c2 = 0.0975f, rate = 1e-3f;
    static const int64_t counts[] = {5, 0, 40000, 1};
    ro_adamw_step step[4];
    ro_adamw_parameter p[4];
    int64_t at = 0;
    ro_ctx *ctx;
    for (int t = 0; t < TENSORS; t++)
        for (int64_t e = 0; e < LARGE; e++)
            data[t][e] = case_f32(case_word(3, t, e), DATA_NORMAL);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ctx) ==
              RO_OK);
    for (int i = 0; i < 4; at += counts[i++]) {
        step[i] = (ro_adamw_step){.size = sizeof(ro_adamw_step),
                                  .count = counts[i],
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .eps = 1e-8f,
                                  .decay = i % 2 ? 0.1f : 0.0f,
                                  .clip = &clip,
                                  .c1 = &c1,
                                  .c2 = &c2,
                                  .rate = &rate};
        p[i] = (ro_adamw_parameter){.size = sizeof(ro_adamw_parameter),
                                    .step = &step[i],
                                    .w = (float *)data[0] + at,
                                    .m = (float *)data[1] + at,
                                    .v = (float *)data[2] + at,
                                    .gradient = (float *)data[3] + at,
                                    .w_out = (float *)got[0] + at,
                                    .m_out = (float *)got[1] + at,
                                    .v_out = (float *)got[2] + at};
        cr_assert(ro_adamw(ctx, &step[i], p[i].w, p[i].m, p[i].v, p[i].gradient,
                           (float *)want[0] + at, (float *)want[1] + at,
                           (float *)want[2] + at) == RO_OK);
    }
    cr_assert(ro_adamw_all(ctx, 4, p) == RO_OK);
    for (int t = 0; t < 3; t++)
        cr_expect(memcmp(got[t], want[t], (size_t)at * 4) == 0);
    ro_ctx_destroy(ctx);
}

/* Nothing clips this gradient. If the update were m / inf = 0, it would hide the overflow. */
Test(adamw, a_square_that_overflowed_shows_in_its_weight_alone) {
    const float w[] = {1, 1}, m[] = {0, 0}, v[] = {0, 0}, g[] = {1e20f, 1};
    const float clip = 1, c = 0.1f, rate = 1e-3f;
    const ro_adamw_step s = {.size = sizeof s,
                             .count = 2,
                             .beta1 = 0.9f,
                             .beta2 = 0.9f,
                             .eps = 1e-8f,
                             .decay = 0,
                             .clip = &clip,
                             .c1 = &c,
                             .c2 = &c,
                             .rate = &rate};
    for (int b = 0; b < BACKENDS; b++) {
        float out[3][2];
        ro_ctx *ctx;
        if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = backends[b]},
                          &ctx) != RO_OK)
            continue;
        cr_assert(ro_adamw(ctx, &s, w, m, v, g, out[0], out[1], out[2]) == RO_OK);
        cr_expect(isnan(out[0][0]) && isinf(out[2][0]) && fabsf(out[0][1] - 0.999f) < 1e-6f, "%s",
                  backends[b]);
        ro_ctx_destroy(ctx);
    }
}

Test(adamw, refuses_a_count_below_zero) {
    static const float one = 1;
    const ro_adamw_step s = {.size = sizeof s,
                             .count = -1,
                             .beta1 = 0.9f,
                             .beta2 = 0.95f,
                             .eps = 1e-8f,
                             .decay = 0.1f,
                             .clip = &one,
                             .c1 = &one,
                             .c2 = &one,
                             .rate = &one};
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    cr_expect(ro_adamw(ctx, &s, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "count") != NULL);
    ro_ctx_destroy(ctx);
}
