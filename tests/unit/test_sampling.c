/* Cuts and draws of rows of weights, on every instruction set, against results obtained by sorting:
 * tests/vectors/sampling/make.py. */
#include "repops/tools/op_data.h"
#include "repops/op_sampling.h"

#include <criterion/criterion.h>
#include <stdio.h>

typedef struct {
    long long seed, kind, length, k, p;
    unsigned words[2];
    int cut_k[2], count_k, cut_p[2], count_p, drawn, drawn_of_kept;
} expected;

static int read_line(FILE *file, expected *x) {
    return fscanf(file, "%lld %lld %lld %lld %lld %u %u %d %d %d %d %d %d %d %d", &x->seed,
                  &x->kind, &x->length, &x->k, &x->p, &x->words[0], &x->words[1], &x->cut_k[0],
                  &x->cut_k[1], &x->count_k, &x->cut_p[0], &x->cut_p[1], &x->count_p, &x->drawn,
                  &x->drawn_of_kept) == 15;
}

/* The same formula as `weight` of make.py. */
static int32_t weight_of(long long kind, uint64_t h) {
    switch (kind) {
    case 0: return (int32_t)(h >> 33);
    case 1: return (int32_t)(h % 4);
    case 2: return (int32_t)(h >> (33 + h % 31));
    case 3: return INT32_MAX;
    case 4: return h % 997 == 0;
    default: return (int32_t)((int64_t)(h >> 32) - (INT64_C(1) << 31));
    }
}

static void apply(ro_ctx *ctx, int op, int64_t attr, const expected *x, const void *second,
                  const int32_t *q, int32_t *out) {
    ro_shape in[] = {{RO_I32, 1, {x->length}}, {RO_I32, 1, {2}}};
    const void *const data[] = {q, second};
    ro_call call = {op, ro_op_describe(op)->min_inputs, {attr}, in, {0}};
    char why[200];
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, data, out) == RO_OK, "%s", ro_ctx_error(ctx));
}

/* Applies the cut to q. Returns how many elements it keeps. */
static int keep(ro_ctx *ctx, const expected *x, const int32_t cut[2], int32_t *q) {
    int kept = 0;
    for (long long i = 0; i < x->length; i++) {
        const int32_t counted = q[i] > 0 ? q[i] : 0;
        kept += counted > cut[0] || (counted == cut[0] && i < cut[1]);
    }
    apply(ctx, RO_OP_KEEP_TOP, 0, x, cut, q, q);
    return kept;
}

static void check_line(ro_ctx *ctx, const char *backend, const expected *x, int32_t *q,
                       int32_t *rest) {
    int32_t cut_k[2], cut_p[2], drawn;
    for (long long i = 0; i < x->length; i++)
        rest[i] = q[i] = weight_of(x->kind, case_word((uint64_t)x->seed, 0, i));
    apply(ctx, RO_OP_TOP_K, x->k, x, NULL, q, cut_k);
    apply(ctx, RO_OP_TOP_P, x->p, x, NULL, q, cut_p);
    apply(ctx, RO_OP_DRAW, 0, x, x->words, q, &drawn);
    cr_expect(memcmp(cut_k, x->cut_k, sizeof cut_k) == 0, "%s, seed %lld: top_k gives (%d, %d)",
              backend, x->seed, cut_k[0], cut_k[1]);
    cr_expect(memcmp(cut_p, x->cut_p, sizeof cut_p) == 0, "%s, seed %lld: top_p gives (%d, %d)",
              backend, x->seed, cut_p[0], cut_p[1]);
    cr_expect(drawn == x->drawn, "%s, seed %lld: %d is drawn", backend, x->seed, drawn);
    cr_expect(keep(ctx, x, cut_k, rest) == x->count_k, "%s, seed %lld", backend, x->seed);
    memcpy(rest, q, (size_t)x->length * sizeof *q);
    cr_expect(keep(ctx, x, cut_p, rest) == x->count_p, "%s, seed %lld", backend, x->seed);
    apply(ctx, RO_OP_KEEP_TOP, 0, x, cut_k, rest, rest);
    apply(ctx, RO_OP_DRAW, 0, x, x->words, rest, &drawn);
    cr_expect(drawn == x->drawn_of_kept, "%s, seed %lld: %d is drawn of what is kept", backend,
              x->seed, drawn);
}

Test(sampling, cuts_and_draws_are_those_of_a_sorted_row) {
    static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
    static int32_t q[151936], rest[151936];
    int lines = 0;
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        ro_ctx *ctx;
        const ro_options options = {.size = sizeof options, .threads = 1, .backend = backends[i]};
        if (ro_ctx_create(&options, &ctx) != RO_OK)
            continue; /* this machine lacks the backend */
        FILE *file = fopen("tests/vectors/sampling/draws.txt", "r");
        cr_assert(file);
        for (expected x; read_line(file, &x); lines++)
            check_line(ctx, backends[i], &x, q, rest);
        fclose(file);
        ro_ctx_destroy(ctx);
    }
    cr_expect(lines >= 72, "only %d lines", lines);
}
