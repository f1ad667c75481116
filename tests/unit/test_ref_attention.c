/* Attention, operator by operator, and as a layer against softmax in double precision: SPEC.md
 * section 8. */
#include "ref_apply.h"
#include "repops/op_attention.h"
#include "repops/op_reduce.h"

#include <math.h>

static application a;

enum { T = 130 }; /* two blocks of keys, the second with 2 keys */

static void scores(int op, int64_t causal, int64_t queries, int64_t keys, const float *s) {
    apply(&a, op);
    a.call.attr[RO_MASKED_CAUSAL] = causal;
    give(&a, shape2(queries, keys), s);
}

/* ---- pieces ---- */

Test(attention, max_of_each_block_over_admitted_keys) {
    static float s[T * T];
    for (int e = 0; e < T * T; e++)
        s[e] = (float)(e % T); /* a score is its key's number */
    scores(RO_OP_ATTN_MAX, 1, T, T, s);
    evaluate(&a);
    cr_expect(a.out.f[0] == 0 && a.out.f[1] == -INFINITY);
    cr_expect(a.out.f[127 * 2] == 127 && a.out.f[127 * 2 + 1] == -INFINITY);
    cr_expect(a.out.f[128 * 2] == 127 && a.out.f[128 * 2 + 1] == 128);
    a.call.attr[RO_MASKED_CAUSAL] = 0;
    evaluate(&a);
    cr_expect(a.out.f[0] == 127 && a.out.f[1] == 129);
}

Test(attention, excluded_keys_do_not_count_even_if_they_are_nan) {
    const float s[] = {2, NAN, 3, 1}, mc[] = {2, 3}, v[] = {1, 10, NAN, 5};
    scores(RO_OP_ATTN_MAX, 1, 2, 2, s);
    EXPECT(&a, 2, 3);
    scores(RO_OP_ATTN_EXP, 1, 2, 2, s), give(&a, shape2(2, 1), mc);
    EXPECT(&a, 1, 0.0f, 1, ro_exp(-2));
    scores(RO_OP_ATTN_AV, 1, 2, 2, s), give(&a, shape2(2, 2), v);
    EXPECT(&a, 2, 20, ro_from_bits(RO_QNAN_BITS), 35);
}

Test(attention, a_block_of_minus_infinities_gives_zeros) {
    const float s[] = {-INFINITY, -INFINITY}, m = -INFINITY, l = 0;
    scores(RO_OP_ATTN_MAX, 0, 1, 2, s);
    EXPECT(&a, -INFINITY);
    scores(RO_OP_ATTN_EXP, 0, 1, 2, s), give(&a, shape1(1), &m);
    EXPECT(&a, 0.0f, 0.0f);
    scores(RO_OP_ATTN_PROB, 0, 1, 2, s), give(&a, shape1(1), &m), give(&a, shape1(1), &l);
    EXPECT(&a, 0.0f, 0.0f);
}

Test(attention, values_of_a_block_are_one_chunk_from_zero) {
    static float e[T], v[T];
    for (int j = 0; j < T; j++)
        e[j] = 1, v[j] = 0;
    v[0] = 0x1p24f, v[127] = v[128] = v[129] = 1;
    scores(RO_OP_ATTN_AV, 0, 1, T, e), give(&a, shape2(T, 1), v);
    EXPECT(&a, 0x1p24f, 2);
}

Test(attention, blocks_merge_ascending_and_empty_ones_are_skipped) {
    const float none = -INFINITY, mc[] = {none, 1, none, 3, 2}, lc[] = {9, 5, 9, 7, 4};
    const float b1 = ro_exp(-2), b2 = ro_exp(-1); /* the block maxima 1 and 2, against 3 */
    const float l = ro_fma(ro_fma(5, b1, 1 * 7.0f), 1, b2 * 4);
    scores(RO_OP_ATTN_L, 0, 1, 5, mc), give(&a, shape2(1, 5), lc);
    EXPECT(&a, l);
    const float ac[] = {9, 9, 5, 50, 9, 9, 7, 70, 4, 40}, two = 2;
    scores(RO_OP_ATTN_OUT, 0, 1, 5, mc), give(&a, shape_of(RO_F32, 3, 1, 5, 2, 0), ac);
    give(&a, shape1(1), &two);
    EXPECT(&a, l * 0.5f, ro_fma(ro_fma(50, b1, 70), 1, b2 * 40) * 0.5f);
}

static float draw(int input, int64_t i) {
    return (float)((double)case_word(5, input, i) * 0x1p-62 +
                   0x1p-10); /* positive, at most a little more than 4 */
}

/* The running maximum stays when a later block's is smaller. The reciprocal of l is rounded. */
Test(attention, merging_rounds_where_the_specification_rounds) {
    for (int64_t i = 0; i < 500; i++) {
        const float mc[] = {1 + draw(0, i), draw(1, i) / 4, draw(2, i)};
        const float x[] = {draw(3, i), draw(4, i), draw(5, i)}, l = draw(6, i);
        const float m = mc[1] > mc[0] ? mc[1] : mc[0], last = mc[2] > m ? mc[2] : m;
        const float b1 = ro_exp(mc[1] - m) * x[1], b2 = ro_exp(mc[2] - last) * x[2];
        const float two = ro_fma(x[0], ro_exp(mc[0] - m), b1);
        const float three = ro_fma(two, ro_exp(m - last), b2), reciprocal = 1 / l;
        scores(RO_OP_ATTN_L, 0, 1, 3, mc), give(&a, shape2(1, 3), x);
        EXPECT(&a, three);
        scores(RO_OP_ATTN_OUT, 0, 1, 3, mc), give(&a, shape_of(RO_F32, 3, 1, 3, 1, 0), x);
        give(&a, shape1(1), &l);
        EXPECT(&a, three * reciprocal);
        scores(RO_OP_ATTN_PROB, 0, 1, 3, x), give(&a, shape1(1), mc), give(&a, shape1(1), &l);
        EXPECT(&a, ro_exp(x[0] - mc[0]) * reciprocal, ro_exp(x[1] - mc[0]) * reciprocal,
               ro_exp(x[2] - mc[0]) * reciprocal);
    }
}

Test(attention, a_single_block_is_taken_as_it_is) {
    const float mc[] = {-INFINITY, 3}, lc[] = {NAN, 5};
    scores(RO_OP_ATTN_L, 0, 1, 2, mc), give(&a, shape2(1, 2), lc);
    EXPECT(&a, 5);
}

Test(attention, of_no_block_is_zero) {
    const float mc[] = {-INFINITY, -INFINITY}, x[] = {NAN, 1}, l = 0;
    scores(RO_OP_ATTN_L, 0, 1, 2, mc), give(&a, shape2(1, 2), x);
    EXPECT(&a, 0.0f);
    scores(RO_OP_ATTN_OUT, 0, 1, 2, mc), give(&a, shape_of(RO_F32, 3, 1, 2, 1, 0), x);
    give(&a, shape1(1), &l);
    EXPECT(&a, 0.0f);
}

Test(attention, probabilities_and_gradients_of_scores) {
    const float s[] = {1, 9, 2, 3}, m[] = {1, 3}, l[] = {2, 4};
    const float p[] = {0.5f, NAN, 0.25f, 1}, dp[] = {3, NAN, 6, 1}, delta[] = {1, 2};
    scores(RO_OP_ATTN_PROB, 1, 2, 2, s), give(&a, shape2(2, 1), m), give(&a, shape2(2, 1), l);
    EXPECT(&a, 0.5f, 0.0f, ro_exp(-1) * 0.25f, 0.25f);
    scores(RO_OP_ATTN_DSCORE, 1, 2, 2, p), give(&a, shape2(2, 2), dp);
    give(&a, shape2(2, 1), delta);
    EXPECT(&a, 1, 0.0f, 1, -1);
}

Test(attention, queries_of_every_head_start_at_the_first_key) {
    const float s[] = {1, 2, 3, 4, 5, 6, 7, 8}, v[] = {1, 10, 100, 1000};
    apply(&a, RO_OP_ATTN_AV);
    a.call.attr[RO_MASKED_CAUSAL] = 1;
    give(&a, shape_of(RO_F32, 3, 2, 2, 2, 0), s), give(&a, shape_of(RO_F32, 3, 2, 2, 1, 0), v);
    EXPECT(&a, 1, 43, 500, 8700);
    const float zeros[8] = {0}, none[4] = {0};
    apply(&a, RO_OP_ATTN_EXP);
    a.call.attr[RO_MASKED_CAUSAL] = 1;
    give(&a, shape_of(RO_F32, 3, 2, 2, 2, 0), zeros),
        give(&a, shape_of(RO_F32, 3, 2, 2, 1, 0), none);
    EXPECT(&a, 1, 0.0f, 1, 1, 1, 0.0f, 1, 1);
}

/* ---- a layer ---- */

enum { D = 3 };
static float s[T * T], v[T * D], mc[T * 2], e[T * T], lc[T * 2], ac[T * 2 * D], m[T], l[T];

static void keep(float *to, size_t count) {
    evaluate(&a);
    memcpy(to, a.out.f, count * sizeof *to);
}

static void layer(int64_t causal) {
    for (int i = 0; i < T * T; i++)
        s[i] = (float)((double)case_word(1, 0, i) * 0x1p-61 - 4);
    for (int i = 0; i < T * D; i++)
        v[i] = (float)((double)case_word(1, 1, i) * 0x1p-63 - 1);
    scores(RO_OP_ATTN_MAX, causal, T, T, s), keep(mc, T * 2);
    scores(RO_OP_ATTN_EXP, causal, T, T, s), give(&a, shape2(T, 2), mc), keep(e, T * T);
    scores(RO_OP_REDUCE_SUM, 0, T, T, e), ATTRS(&a, T, 128);
    a.call.output = shape2(T, 2), keep(lc, T * 2);
    scores(RO_OP_ATTN_AV, causal, T, T, e), give(&a, shape2(T, D), v), keep(ac, T * 2 * D);
    scores(RO_OP_REDUCE_MAX, 0, T, 2, mc), ATTRS(&a, 2, 1024);
    a.call.output = shape2(T, 1), keep(m, T);
    scores(RO_OP_ATTN_L, 0, T, 2, mc), give(&a, shape2(T, 2), lc), keep(l, T);
}

static void expect_softmax(int64_t causal) {
    static float out[T * D];
    scores(RO_OP_ATTN_OUT, 0, T, 2, mc), give(&a, shape_of(RO_F32, 3, T, 2, D, 0), ac);
    give(&a, shape2(T, 1), l), keep(out, T * D);
    scores(RO_OP_ATTN_PROB, causal, T, T, s), give(&a, shape2(T, 1), m);
    give(&a, shape2(T, 1), l), evaluate(&a);
    for (int i = 0; i < T; i++) {
        double sum = 0, o[D] = {0};
        const int keys = causal ? i + 1 : T;
        for (int j = 0; j < keys; j++)
            sum += exp((double)s[i * T + j]);
        for (int j = 0; j < T; j++) {
            const double p = j < keys ? exp((double)s[i * T + j]) / sum : 0;
            cr_expect(fabs((double)a.out.f[i * T + j] - p) < 1e-6, "p[%d, %d]", i, j);
            for (int d = 0; d < D; d++)
                o[d] += p * (double)v[j * D + d];
        }
        for (int d = 0; d < D; d++)
            cr_expect(fabs((double)out[i * D + d] - o[d]) < 2e-6, "o[%d, %d]", i, d);
    }
}

Test(attention, a_layer_is_softmax) {
    layer(0);
    expect_softmax(0);
}

Test(attention, a_causal_layer_is_softmax_over_the_past) {
    layer(1);
    expect_softmax(1);
}
