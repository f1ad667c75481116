#include "portable.h"
#include "repops/ref.h"
#include "repops/src/math.h"
#include "repops/tools/op_data.h"
#include "tests/unit/hostile_modes.h"

/* ---- fma in software, for machines without it, against this machine's ---- */

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

/* ---- the caller's modes ---- */

#if defined(HOSTILE)
static uint32_t sum_of_tiny(ro_ctx *ctx) {
    float x[2] = {0x1.000002p-126f, 1.0f}, y[2] = {-0x1p-126f, 0x1p-24f}, out[2];
    ro_shape shape[2] = {{RO_F32, 1, {2}}, {RO_F32, 1, {2}}};
    ro_call call = {.op = RO_OP_ADD, .input_count = 2, .input = shape};
    CHECK(ro_infer(&call, NULL, 0) == RO_OK, "add");
    CHECK(ro_run(ctx, &call, (const void *const[]){x, y}, out) == RO_OK, "%s", ro_ctx_error(ctx));
    return ro_to_bits(out[0]) ^ ro_to_bits(out[1]);
}

static void check_modes(void) {
    ro_ctx *ctx;
    char why[200];
    CHECK(ro_ctx_create(&(ro_options){.threads = 1}, &ctx) == RO_OK, "%s", ro_ctx_error(NULL));
    const uint64_t before = ro_fp_read();
    ro_fp_write(HOSTILE);
    const ro_status test = ro_ref_self_test(why, sizeof why);
    const uint32_t got = sum_of_tiny(ctx);
    const uint64_t after = ro_fp_read();
    ro_fp_write(before);
    CHECK(test != RO_OK, "the self-test does not see that the modes are wrong");
    CHECK(got == (0x1u ^ 0x3f800000u), "under hostile modes: %08x", got);
    CHECK((after & ~(uint64_t)RO_FP_STICKY) == (HOSTILE & ~(uint64_t)RO_FP_STICKY),
          "the caller's modes are %llx afterwards", (unsigned long long)after);
    ro_ctx_destroy(ctx);
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
