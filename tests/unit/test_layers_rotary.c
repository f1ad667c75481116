/* ro_rotary and ro_rotary_backward (repops/layers.h) against their operators, run one by one. */
#include "repops/layers.h"
#include "repops/src/backend.h"
#include "repops/tools/op_data.h"
#include "repops/op_attention.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum {
    BACKENDS = sizeof backends / sizeof backends[0],
    MOST = 1 << 15,
    SIZE = sizeof(ro_rotary_layer)
};

static float x[MOST], before[MOST], heads[MOST], want[MOST], got[MOST];
static int32_t position[MOST], turns[MOST];

static ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static void fill(const ro_rotary_layer *l, int64_t count, data_class class) {
    cr_assert(count <= MOST && l->batch * l->tokens <= MOST);
    for (int64_t e = 0; e < count; e++) {
        ((uint32_t *)x)[e] = case_f32(case_word(1, 0, e), class);
        ((uint32_t *)before)[e] = case_f32(case_word(1, 1, e), class);
    }
    for (int64_t e = 0; e < l->batch * l->tokens; e++)
        position[e] = (int32_t)(case_word(1, 2, e) % 5000) - 1000;
    for (int64_t e = 0; e < l->head_size; e++)
        ((uint32_t *)turns)[e] = (uint32_t)case_word(1, 3, e);
}

static void run(ro_ctx *ctx, int op, const int64_t attr[3], int count, const ro_shape *shape,
                const void *const *data, float *out) {
    char why[256];
    ro_call call = {op, count, {attr[0], attr[1], attr[2]}, shape, {0}};
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, data, out) == RO_OK, "%s", ro_ctx_error(ctx));
}

static void turn(ro_ctx *ctx, const ro_rotary_layer *l, int inverse, const float *from, float *to) {
    const ro_shape shape[] = {{RO_F32, 4, {l->batch, l->heads, l->tokens, l->head_size}},
                              l->each ? (ro_shape){RO_I32, 2, {l->batch, l->tokens}}
                                      : (ro_shape){RO_I32, 1, {l->tokens}},
                              {RO_I32, 2, {l->head_size / 2, 2}}};
    run(ctx, RO_OP_ROPE, (int64_t[]){l->neighbours, inverse, 0}, 3, shape,
        (const void *[]){from, position, turns}, to);
}

static void forward_by_operators(ro_ctx *ctx, const ro_rotary_layer *l) {
    const ro_shape rows = {RO_F32, 3, {l->batch, l->tokens, l->heads * l->head_size}};
    run(ctx, RO_OP_SPLIT_HEADS, (int64_t[]){1, 0, l->heads}, 1, &rows, (const void *[]){x}, heads);
    turn(ctx, l, 0, heads, want);
}

static void backward_by_operators(ro_ctx *ctx, const ro_rotary_layer *l, int64_t count, int add) {
    const ro_shape shape = {RO_F32, 4, {l->batch, l->heads, l->tokens, l->head_size}};
    const ro_shape flat[] = {{RO_F32, 1, {count}}, {RO_F32, 1, {count}}};
    turn(ctx, l, 1, x, heads);
    run(ctx, RO_OP_JOIN_HEADS, (int64_t[]){0, 0, 0}, 1, &shape, (const void *[]){heads}, want);
    if (add)
        run(ctx, RO_OP_ADD, (int64_t[]){0, 0, 0}, 2, flat, (const void *[]){before, want}, want);
}

static void check_on(ro_ctx *ctx, ro_ctx *reference, const ro_rotary_layer *l, int64_t count) {
    forward_by_operators(reference, l);
    cr_assert(ro_rotary(ctx, l, x, position, turns, got) == RO_OK, "%s", ro_ctx_error(ctx));
    cr_expect(memcmp(got, want, (size_t)count * 4) == 0, "%lld x %lld x %lld x %lld on %s",
              (long long)l->batch, (long long)l->tokens, (long long)l->heads,
              (long long)l->head_size, ro_ctx_backend(ctx));
    for (int add = 0; add < 2; add++) {
        backward_by_operators(reference, l, count, add);
        memcpy(got, before, (size_t)count * 4);
        cr_assert(ro_rotary_backward(ctx, l, x, position, turns, (ro_gradient){got, add}) == RO_OK,
                  "%s", ro_ctx_error(ctx));
        cr_expect(memcmp(got, want, (size_t)count * 4) == 0, "backward, add %d, on %s", add,
                  ro_ctx_backend(ctx));
    }
}

static void check(const ro_rotary_layer *l, data_class class, int threads) {
    const int64_t count = l->batch * l->tokens * l->heads * l->head_size;
    ro_ctx *reference = context("scalar", 1);
    fill(l, count, class);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], threads);
        if (ctx)
            check_on(ctx, reference, l, count);
        ro_ctx_destroy(ctx);
    }
    ro_ctx_destroy(reference);
}

Test(layers_rotary, is_its_operators) {
    static const int64_t of[][4] = {
        {1, 1, 1, 2}, {2, 3, 4, 6}, {3, 17, 2, 64}, {1, 70, 3, 128}, {2, 200, 5, 14}};
    int turn_of = 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            for (int kind = 0; kind < 4; kind++, turn_of++) {
                const ro_rotary_layer l = {SIZE,     0,        of[i][0], of[i][1],
                                           of[i][2], of[i][3], kind & 1, kind >> 1};
                check(&l, (data_class) class, 1 + turn_of % 3);
            }
}

static void expect_refused(const ro_ctx *ctx, ro_status status, const char *words) {
    cr_expect(status == RO_ERR_ARG && strstr(ro_ctx_error(ctx), words), "%s, expected %s",
              ro_ctx_error(ctx), words);
}

Test(layers_rotary, what_makes_no_sense_is_refused) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_rotary_layer l = {SIZE, 0, 1, 2, 1, 4, 0, 0}, odd = {SIZE, 0, 1, 2, 1, 3, 0, 0},
                          none = {SIZE, 0, 0, 2, 1, 4, 0, 0},
                          no_heads = {SIZE, 0, 1, 2, 0, 4, 0, 0};
    const ro_rotary_layer wrong[] = {{SIZE, 0, -1, 1, 1, 2, 0, 0},
                                     {SIZE, 0, 1, INT64_MAX, 1, 2, 0, 0},
                                     {SIZE, 0, 1, 1, INT64_MAX, INT64_MAX, 0, 0}};
    const ro_gradient to = {got, 0}, onto = {x, 1};
    fill(&l, 8, DATA_NORMAL);
    for (int i = 0; i < 3; i++)
        expect_refused(ctx, ro_rotary(ctx, &wrong[i], x, position, turns, got), "0..2^40");
    expect_refused(ctx, ro_rotary(ctx, &odd, x, position, turns, got), "head_size");
    expect_refused(ctx, ro_rotary(ctx, &no_heads, x, position, turns, got), "heads must");
    expect_refused(ctx, ro_rotary(ctx, &l, x, NULL, turns, got), "`position`");
    expect_refused(ctx, ro_rotary(ctx, &l, x, position, NULL, got), "`turns`");
    expect_refused(ctx, ro_rotary(ctx, &l, x, position, turns, x), "overlaps");
    expect_refused(ctx, ro_rotary(ctx, NULL, x, position, turns, got), "`layer`");
    expect_refused(NULL, ro_rotary(NULL, &l, x, position, turns, got), "`ctx`");
    expect_refused(ctx, ro_rotary_backward(ctx, &l, NULL, position, turns, to), "`dy`");
    expect_refused(ctx, ro_rotary_backward(ctx, &l, x, position, turns, onto), "overlaps");
    cr_expect(ro_rotary(ctx, &none, NULL, NULL, turns, NULL) ==
              RO_ERR_ARG); /* positions are still required */
    cr_expect(ro_rotary(ctx, &none, NULL, position, turns, NULL) == RO_OK);
    ro_ctx_destroy(ctx);
}
