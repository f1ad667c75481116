/* Operators whose outputs are too large for any cache store aligned vectors past the caches
 * (cpu/stream.h). Unaligned outputs of that size, and all stores without vectors, do not. The bytes
 * must be the same. */
#include "repops/tools/op_data.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], SHIFT = 4 /* bytes */ };

typedef struct {
    const char *name;
    ro_call call;
    ro_shape in[7];
} streamed;

#define F(...)                                                                                     \
    {                                                                                              \
        RO_F32, sizeof((int[]){__VA_ARGS__}) / sizeof(int), {                                      \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* Outputs of at least 2^22 elements. Rows are whole cache lines unless the name says otherwise. */
static const streamed cases[] = {
    {"expand, rows", {RO_OP_EXPAND, 1, .attr = {0, 4100}}, {F(1, 1040)}},
    {"expand, groups of rows", {RO_OP_EXPAND, 1, .attr = {1, 1400}}, {F(3, 1, 1008)}},
    {"expand, odd rows", {RO_OP_EXPAND, 1, .attr = {0, 4300}}, {F(1, 1001)}},
    {"transpose", {RO_OP_TRANSPOSE, 1, .attr = {1, 0}}, {F(1040, 4112)}},
    {"transpose, odd", {RO_OP_TRANSPOSE, 1, .attr = {1, 0}}, {F(1041, 4101)}},
    {"transpose heads", {RO_OP_TRANSPOSE, 1, .attr = {0, 2, 1, 3}}, {F(4, 1400, 12, 64)}},
    {"depthwise",
     {RO_OP_CONV2D, 2, .attr = {1, 1, 1, 1, 1, 1, 96}},
     {F(44, 32, 32, 96), F(3, 3, 1, 96)}},
    {"batch norm", {RO_OP_BATCHNORM, 5}, {F(15000, 304), F(304), F(304), F(304), F(304)}},
    {"batch norm, gradient",
     {RO_OP_BN_DX, 7},
     {F(15000, 304), F(15000, 304), F(304), F(304), F(304), F(304), F(304)}},
};

static ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx = NULL;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static void run(ro_ctx *ctx, const op_case *c, void *out) {
    memset(out, 0x5a, case_out_bytes(c));
    cr_assert(ro_run(ctx, &c->call, (const void *const *)c->data, out) == RO_OK, "%s",
              ro_ctx_error(ctx));
}

static void check(const streamed *s) {
    op_case c = {.call = s->call};
    memcpy(c.in, s->in, sizeof s->in);
    c.call.input = c.in;
    char why[200];
    cr_assert(ro_infer(&c.call, why, sizeof why) == RO_OK, "%s: %s", s->name, why);
    cr_assert(ro_shape_numel(&c.call.output) >= 1 << 22, "%s", s->name);
    cr_assert(case_fill(&c, 5, DATA_SPECIAL));
    const size_t size = case_out_bytes(&c);
    char *out = aligned_alloc(64, size / 64 * 64 + 128);
    cr_assert(out != NULL);
    ro_ctx *scalar = context("scalar", 1);
    run(scalar, &c, c.out);
    ro_ctx_destroy(scalar);
    for (int b = 0; b < 2 * BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b / 2], 1 + b % 2);
        for (int shift = 0; ctx && shift <= SHIFT; shift += SHIFT) {
            run(ctx, &c, out + shift);
            cr_expect(memcmp(out + shift, c.out, size) == 0, "%s, %s, %d bytes off", s->name,
                      backends[b / 2], shift);
        }
        ro_ctx_destroy(ctx);
    }
    free(out);
    case_free(&c);
}

Test(streamed, outputs_that_no_cache_keeps_have_the_bytes_of_scalar) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}
