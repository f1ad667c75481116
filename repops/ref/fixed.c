/* Products by exact sums of integers. SPEC.md section 3.5. */
#include "repops/src/fixed.h"
#include "repops/ref/ref.h"
#include "repops/src/conv.h"
#include "repops/src/matmul.h"

/* The numbers of one operand in a chunk, which are read only once. */
typedef struct {
    float x[RO_DOT_CHUNK];
    int exponent, bits;
} operand;

static void read_operand(operand *o, int64_t count, int bits) {
    uint32_t most = 0;
    int small = 0, numbers = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t size = ro_to_bits(ro_abs(o->x[i]));
        most = size > most ? size : most;
    }
    o->exponent = ro_fixed_exponent(most);
    o->bits = bits;
    if (o->exponent == RO_FIXED_NONE)
        return;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t size = ro_to_bits(ro_abs(o->x[i]));
        numbers += size != 0;
        small += size != 0 && size < ro_fixed_small(o->exponent);
    }
    o->bits = ro_fixed_line_bits(bits, small, numbers);
}

static float chunk_of(operand *a, operand *b, int64_t count, int bits) {
    int64_t sum = 0;
    read_operand(a, count, bits);
    read_operand(b, count, bits);
    if (a->exponent == RO_FIXED_NONE || b->exponent == RO_FIXED_NONE)
        return RO_F32_NAN;
    for (int64_t i = 0; i < count; i++)
        sum += (int64_t)ro_fixed_integer(a->x[i], a->bits, a->exponent) *
               ro_fixed_integer(b->x[i], b->bits, b->exponent);
    return ro_fixed_term(sum, a->bits + b->bits, a->exponent, b->exponent);
}

/* Adds one chunk to the total. */
static void matmul_fixed_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                              const ro_access *in) {
    const ro_matmul v = ro_matmul_of(call);
    const int64_t n = e % v.n, m = e / v.n % v.m, batch = e / v.n / v.m;
    operand a, b;
    int64_t from, to;
    ro_ref_step_range(step, v.k, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const ro_ref_factors at = ro_ref_matmul_factors(&v, batch, m, n, k);
        a.x[k - from] = loadf(in, 0, at.a);
        b.x[k - from] = loadf(in, 1, at.b);
    }
    acc->word[0] = result(ro_from_bits(acc->word[0]) + chunk_of(&a, &b, to - from, v.bits));
}
RO_REFERENCE(matmul_fixed, .finish = ro_ref_matmul, .steps = ro_ref_matmul_steps,
             .step = matmul_fixed_step, .words = 1)

/* Adds one chunk to the total. A pixel outside the image counts as +0. */
static void conv2d_fixed_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                              const ro_access *in) {
    const ro_conv v = ro_conv_of(call);
    operand a, b;
    int64_t from, to;
    ro_ref_step_range(step, ro_ref_conv_terms(call, &v), &from, &to);
    for (int64_t k = from; k < to; k++) {
        const ro_ref_factors at = ro_ref_conv_factors(call, &v, e, k);
        a.x[k - from] = at.present ? loadf(in, 0, at.a) : 0.0f;
        b.x[k - from] = loadf(in, 1, at.b);
    }
    acc->word[0] = result(ro_from_bits(acc->word[0]) + chunk_of(&a, &b, to - from, v.bits));
}
RO_REFERENCE(conv2d_fixed, .finish = ro_ref_conv2d, .steps = ro_ref_conv2d_steps,
             .step = conv2d_fixed_step, .words = 1)
RO_REFERENCE(conv2d_fixed_dx, .finish = ro_ref_conv2d, .steps = ro_ref_conv2d_steps,
             .step = conv2d_fixed_step, .words = 1)
RO_REFERENCE(conv2d_fixed_dw, .finish = ro_ref_conv2d, .steps = ro_ref_conv2d_steps,
             .step = conv2d_fixed_step, .words = 1)
