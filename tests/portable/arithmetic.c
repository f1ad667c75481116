#include "portable.h"
#include "repops/operators.h"
#include "repops/ref.h"
#include "repops/src/math.h"
#include "repops/tools/op_data.h"
#include "tests/unit/hostile_modes.h"

/* ---- fma in software, for machines without an fma instruction, compared with this machine's
 * ---- */

static void check_fma(uint32_t a, uint32_t b, uint32_t c) {
    volatile float x = ro_from_bits(a), y = ro_from_bits(b), z = ro_from_bits(c);
    const uint32_t soft = ro_to_bits(ro_canon(ro_fma_soft(x, y, z)));
    const uint32_t own = ro_to_bits(ro_canon(ro_fma(x, y, z)));
    CHECK(soft == own, "fma(%08x, %08x, %08x) is %08x, in software %08x", a, b, c, own, soft);
}

static void check_soft_fma(void) {
    static const data_class classes[] = {DATA_NORMAL, DATA_WIDE, DATA_SPECIAL, DATA_TINY};
    for (int k = 0; k < 4; k++) {
        for (int64_t i = 0; i < 20000; i++) {
            uint32_t x[3];
            for (int t = 0; t < 3; t++)
                x[t] = case_f32(case_word(11, t, i), classes[k]);
            check_fma(x[0], x[1], x[2]);
        }
    }
}

/* ---- floating-point modes of the caller ---- */

#if defined(HOSTILE)
static uint32_t sum_of_tiny(ro_ctx *ctx) {
    float x[2] = {0x1.000002p-126f, 1.0f}, y[2] = {-0x1p-126f, 0x1p-24f}, out[2];
    ro_shape shape[2] = {{RO_F32, 1, {2}}, {RO_F32, 1, {2}}};
    ro_call call = {.op = RO_OP_ADD, .input_count = 2, .input = shape};
    CHECK(ro_infer(&call, NULL, 0) == RO_OK, "add");
    CHECK(ro_run(ctx, &call, (const void *const[]){x, y}, out) == RO_OK, "%s", ro_ctx_error(ctx));
    return ro_to_bits(out[0]) ^ ro_to_bits(out[1]);
}

static void check_mode(uint64_t mode) {
    ro_ctx *ctx;
    char why[200];
    CHECK(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) == RO_OK,
          "%s", ro_ctx_error(NULL));
    const uint64_t before = ro_fp_read();
    ro_fp_write(mode);
    const ro_status test = ro_ref_self_test(why, sizeof why);
    const uint32_t got = sum_of_tiny(ctx);
    const uint64_t after = ro_fp_read();
    ro_fp_write(before);
    CHECK(test != RO_OK, "the self-test does not see that modes %llx are wrong",
          (unsigned long long)mode);
    CHECK(got == (0x1u ^ 0x3f800000u), "under modes %llx: %08x", (unsigned long long)mode, got);
    CHECK((after & ~(uint64_t)RO_FP_STICKY) == (mode & ~(uint64_t)RO_FP_STICKY),
          "the caller's modes are %llx afterwards", (unsigned long long)after);
    ro_ctx_destroy(ctx);
}

/* So large that several threads work, each with roundings and subnormals. */
static const struct {
    int op;
    data_class class;
    ro_call call;
    ro_shape in[2];
} mode_cases[] = {
    {RO_OP_ADD, DATA_TINY, {.input_count = 2}, {{RO_F32, 1, {65537}}, {RO_F32, 1, {65537}}}},
    {RO_OP_EXP, DATA_NORMAL, {.input_count = 1}, {{RO_F32, 1, {65537}}}},
    {RO_OP_REDUCE_SUM,
     DATA_TINY,
     {.input_count = 1, .attr = {1025, 1024}, .output = {RO_F32, 2, {64, 2}}},
     {{RO_F32, 2, {64, 1025}}}},
    {RO_OP_MATMUL,
     DATA_NORMAL,
     {.input_count = 2, .attr = {0, 0, 0x3f800000, RO_DOT_CHUNK, 0}},
     {{RO_F32, 2, {70, 300}}, {RO_F32, 2, {300, 65}}}},
    {RO_OP_MATMUL,
     DATA_TINY,
     {.input_count = 2, .attr = {0, 0, 0x7f000000, RO_DOT_CHUNK, 0}},
     {{RO_F32, 2, {70, 300}}, {RO_F32, 2, {300, 65}}}},
};
enum { MODE_CASES = sizeof mode_cases / sizeof mode_cases[0] };

/* Runs the case into c->out with threads of a new context, which start under the mode. */
static void run_under(uint64_t mode, const char *backend, int threads, op_case *c) {
    ro_ctx *ctx;
    const uint64_t before = ro_fp_read();
    ro_fp_write(mode);
    ro_status status = ro_ctx_create(
        &(ro_options){.size = sizeof(ro_options), .threads = threads, .backend = backend}, &ctx);
    if (status == RO_OK)
        status = ro_run(ctx, &c->call, (const void *const *)c->data, c->out);
    ro_fp_write(before);
    CHECK(status == RO_OK, "%s", ro_ctx_error(ctx));
    ro_ctx_destroy(ctx);
}

static void check_mode_case(int i, const char *backend) {
    static const uint64_t modes[] = HOSTILE_MODES;
    op_case c = {.call = mode_cases[i].call};
    c.call.op = mode_cases[i].op;
    c.call.input = c.in;
    memcpy(c.in, mode_cases[i].in, sizeof mode_cases[i].in);
    CHECK(ro_infer(&c.call, NULL, 0) == RO_OK, "case %d", i);
    CHECK(case_fill(&c, 7, mode_cases[i].class), "no memory");
    run_under(RO_FP_DEFAULT, backend, 1, &c);
    void *want = malloc(case_out_bytes(&c));
    memcpy(want, c.out, case_out_bytes(&c));
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        memset(c.out, 0x5a, case_out_bytes(&c));
        run_under(modes[m], backend, 3, &c);
        CHECK(memcmp(c.out, want, case_out_bytes(&c)) == 0, "%s on %s under modes %llx",
              ro_op_describe(c.call.op)->name, backend, (unsigned long long)modes[m]);
    }
    free(want);
    case_free(&c);
}

static void check_modes(void) {
    static const uint64_t modes[] = HOSTILE_MODES;
    static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
        check_mode(modes[m]);
    for (int b = 0; b < 4; b++) {
        ro_ctx *ctx;
        if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = backends[b]},
                          &ctx) != RO_OK)
            continue; /* not on this processor */
        ro_ctx_destroy(ctx);
        for (int i = 0; i < MODE_CASES; i++)
            check_mode_case(i, backends[b]);
    }
}
#else
static void check_modes(void) {}
#endif

void check_arithmetic(void) {
    char why[200] = "";
    CHECK(ro_ref_self_test(why, sizeof why) == RO_OK, "%s", why);
    check_soft_fma();
    check_modes();
}
