/* Movement, random numbers, rotations and SGD, against each other and against higher precision.
 * SPEC.md sections 5, 9 and 13. */
#include "ref_apply.h"

#include "repops/tools/golden.h"
#include "repops/op_attention.h"
#include "repops/op_movement.h"
#include "repops/op_optimizer.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>

static application a, b;

static float number(int64_t i) {
    return (float)((int64_t)(case_word(5, 0, i) % 2000) - 1000) / 64;
}

static void expect_same(const application *x, const void *want, int64_t count, const char *what) {
    cr_assert(ro_shape_numel(&x->call.output) == count, "%s", what);
    cr_expect(memcmp(x->out.bits, want, (size_t)count * 4) == 0, "%s", what);
}

/* ---- movement ---- */

Test(movement, the_inverse_permutation_of_dimensions_brings_a_tensor_back) {
    static uint32_t x[2 * 3 * 4 * 5];
    const ro_shape shape = {RO_F32, 5, {2, 3, 1, 4, 5}};
    for (uint32_t i = 0; i < 120; i++)
        x[i] = i;
    apply(&a, RO_OP_TRANSPOSE), ATTRS(&a, 3, 0, 4, 2, 1);
    give(&a, shape, x), evaluate(&a);
    apply(&b, RO_OP_TRANSPOSE), ATTRS(&b, 1, 4, 3, 0, 2);
    give(&b, a.call.output, a.out.bits), evaluate(&b);
    cr_expect(ro_shape_equal(&b.call.output, &shape));
    expect_same(&b, x, 120, "twice transposed");
}

/* <slice x, y> = <x, pad y>, so each is the gradient of the other. */
Test(movement, pad_is_the_transpose_of_slice) {
    float x[3 * 17 * 2], y[3 * 5 * 2];
    double left = 0, right = 0;
    for (int i = 0; i < 102; i++)
        x[i] = number(i);
    for (int i = 0; i < 30; i++)
        y[i] = number(1000 + i);
    apply(&a, RO_OP_SLICE), ATTRS(&a, 1, 2, 5, 3);
    give(&a, shape_of(RO_F32, 3, 3, 17, 2, 0), x), evaluate(&a);
    apply(&b, RO_OP_PAD), ATTRS(&b, 1, 2, 2, 3, 0);
    give(&b, shape_of(RO_F32, 3, 3, 5, 2, 0), y), evaluate(&b);
    cr_assert(ro_shape_equal(&b.call.output, &a.in[0]));
    for (int i = 0; i < 30; i++)
        left += (double)a.out.f[i] * (double)y[i];
    for (int i = 0; i < 102; i++)
        right += (double)x[i] * (double)b.out.f[i];
    cr_expect(left == right && left != 0, "%g, %g", left, right);
}

Test(movement, slices_of_a_concatenation_are_its_parts) {
    float x[2 * 3], y[2 * 4];
    for (int i = 0; i < 8; i++)
        x[i % 6] = number(i), y[i] = number(50 + i);
    apply(&a, RO_OP_CONCAT_AXIS), ATTRS(&a, 1);
    give(&a, shape2(2, 3), x), give(&a, shape2(2, 4), y), evaluate(&a);
    apply(&b, RO_OP_SLICE), ATTRS(&b, 1, 0, 3, 1);
    give(&b, a.call.output, a.out.f), evaluate(&b), expect_same(&b, x, 6, "first");
    apply(&b, RO_OP_SLICE), ATTRS(&b, 1, 3, 4, 1);
    give(&b, a.call.output, a.out.f), evaluate(&b), expect_same(&b, y, 8, "second");
}

Test(movement, gather_along_the_first_axis_is_embedding_and_so_are_their_gradients) {
    float table[5 * 3], dy[6 * 3];
    const int32_t ids[] = {4, 0, 5, 4, -1, 4};
    for (int i = 0; i < 18; i++)
        table[i % 15] = number(i), dy[i] = number(99 + i);
    apply(&a, RO_OP_GATHER), give(&a, shape2(5, 3), table), give(&a, ints(6), ids), evaluate(&a);
    apply(&b, RO_OP_EMBEDDING), give(&b, shape2(5, 3), table), give(&b, ints(6), ids);
    evaluate(&b), expect_same(&a, b.out.f, 18, "forward");
    apply(&a, RO_OP_GATHER_GRAD), a.call.output = shape2(5, 3);
    give(&a, shape2(6, 3), dy), give(&a, ints(6), ids), evaluate(&a);
    apply(&b, RO_OP_EMBEDDING_GRAD), b.call.output = shape2(5, 3);
    give(&b, shape2(6, 3), dy), give(&b, ints(6), ids), evaluate(&b);
    expect_same(&a, b.out.f, 15, "backward");
}

Test(cast, between_integers_cuts_off_at_the_ends) {
    const int32_t x[] = {-5, 0, 255, 256, 65535, 65536, INT32_MAX, INT32_MIN};
    apply(&a, RO_OP_CAST), ATTRS(&a, RO_U8), give(&a, ints(8), x);
    EXPECT_BITS(&a, 0, 0, 255, 255, 255, 255, 255, 0);
    apply(&a, RO_OP_CAST), ATTRS(&a, RO_U16), give(&a, ints(8), x);
    EXPECT_BITS(&a, 0, 0, 255, 256, 65535, 65535, 65535, 0);
}

Test(cast, of_f32_to_bytes_goes_toward_zero) {
    const float x[] = {-0.99f, 0.99f, 254.99f, 255, 255.5f, 1e30f, -1e30f, NAN};
    apply(&a, RO_OP_CAST), ATTRS(&a, RO_U8), give(&a, shape1(8), x);
    EXPECT_BITS(&a, 0, 0, 254, 255, 255, 255, 0, 0);
}

/* ---- random numbers ---- */

Test(uniform, has_the_moments_of_a_uniform_distribution_and_stays_below_one) {
    double sum = 0, squares = 0;
    apply(&a, RO_OP_UNIFORM), ATTRS(&a, 11, 2, F(0), F(1));
    a.call.output = shape1(OUT_MAX);
    evaluate(&a);
    for (int e = 0; e < OUT_MAX; e++) {
        cr_assert(a.out.f[e] >= 0 && a.out.f[e] < 1);
        sum += (double)a.out.f[e] / OUT_MAX;
        squares += (double)a.out.f[e] * (double)a.out.f[e] / OUT_MAX;
    }
    cr_expect(fabs(sum - 0.5) < 5 / sqrt(12.0 * OUT_MAX), "%g", sum);
    cr_expect(fabs(squares - 1 / 3.0) < 5 * sqrt(4 / 45.0 / OUT_MAX), "%g", squares);
}

Test(permutation, has_every_number_once_and_another_order_each_step) {
    enum { COUNT = 1000 };
    int32_t first[COUNT];
    int moved = 0;
    for (int32_t step = 0; step < 3; step++) {
        bool seen[COUNT] = {false};
        apply(&a, RO_OP_PERMUTATION), ATTRS(&a, 3, 4), give(&a, ints(1), &step);
        a.call.output = ints(COUNT);
        evaluate(&a);
        for (int e = 0; e < COUNT; e++) {
            cr_assert(a.out.i[e] >= 0 && a.out.i[e] < COUNT && !seen[a.out.i[e]]);
            seen[a.out.i[e]] = true;
            moved += step > 0 && a.out.i[e] != first[e];
            first[e] = a.out.i[e];
        }
    }
    cr_expect(moved > 2 * COUNT * 9 / 10, "%d", moved);
}

/* ---- rotary position embedding ---- */

static struct {
    uint32_t words[512];
    int32_t position[512];
} rotation;

static void find_turns(int64_t half, const int64_t attr[RO_MAX_ATTRS]) {
    apply(&b, RO_OP_ROPE_TURNS);
    memcpy(b.call.attr, attr, RO_MAX_ATTRS * sizeof *attr);
    b.call.output = shape_of(RO_I32, 2, half, 2, 0, 0);
    evaluate(&b);
    memcpy(rotation.words, b.out.bits, (size_t)half * 2 * sizeof *rotation.words);
}

static void rope(const float *x, int64_t positions, int64_t width, float base, int64_t first,
                 int64_t pairs, int64_t inverse) {
    find_turns(width / 2, (int64_t[RO_MAX_ATTRS]){F(base)});
    for (int64_t t = 0; t < positions; t++)
        rotation.position[t] = (int32_t)(first + t);
    apply(&a, RO_OP_ROPE);
    ATTRS(&a, pairs, inverse);
    give(&a, shape2(positions, width), x);
    give(&a, ints(positions), rotation.position);
    give(&a, shape_of(RO_I32, 2, width / 2, 2, 0, 0), rotation.words);
    evaluate(&a);
}

/* The error that SPEC.md section 13 states, measured with long double. */
static double rope_error(float base, int64_t half, int64_t position, int64_t pairs) {
    float x[512] = {0};
    double worst = 0;
    for (int64_t i = 0; i < half; i++)
        x[pairs ? 2 * i : i] = 1;
    rope(x, 1, 2 * half, base, position, pairs, 0);
    for (int64_t i = 0; i < half; i++) {
        const long double angle =
            (long double)position * powl((long double)base, -(long double)i / (long double)half);
        const double c = (double)a.out.f[pairs ? 2 * i : i];
        const double s = (double)a.out.f[pairs ? 2 * i + 1 : i + half];
        worst = fmax(worst, fabs(c - (double)cosl(angle)));
        worst = fmax(worst, fabs(s - (double)sinl(angle)));
    }
    return worst;
}

Test(rope, angles_are_exact_enough_at_every_position) {
    static const float base[] = {1, 1.5f, 10000, 500000, 1e6f, 0x1.fffffep31f};
    static const int64_t half[] = {1, 7, 32, 64, 100, 256};
    double worst = 0;
    for (int k = 0; k < 400; k++) {
        const int64_t position = (int64_t)(case_word(1, 0, k) % (UINT64_C(1) << (k % 25)));
        worst = fmax(worst, rope_error(base[k % 6], half[k / 6 % 6], position, k % 2));
    }
    worst = fmax(worst, rope_error(500000, 64, 131072, 0));
    cr_expect(worst < 2.8e-7 && worst > 1e-7, "%g", worst);
}

Test(rope, backwards_undoes_it) {
    float x[12 * 10], turned[12 * 10];
    for (int64_t pairs = 0; pairs < 2; pairs++) {
        for (int i = 0; i < 120; i++)
            x[i] = number(i);
        rope(x, 12, 10, 10000, 77, pairs, 0);
        memcpy(turned, a.out.f, sizeof turned);
        rope(turned, 12, 10, 10000, 77, pairs, 1);
        for (int i = 0; i < 120; i++)
            cr_expect(fabsf(a.out.f[i] - x[i]) < 2e-5f, "%g %g", (double)a.out.f[i], (double)x[i]);
    }
}

/* Decoding token by token relies on this. */
Test(rope, a_row_alone_at_its_position_has_the_same_bits) {
    float x[9 * 16], all[9 * 16];
    for (int i = 0; i < 144; i++)
        x[i] = number(i);
    rope(x, 9, 16, 10000, 1000, 0, 0);
    memcpy(all, a.out.f, sizeof all);
    for (int64_t t = 0; t < 9; t++) {
        rope(x + 16 * t, 1, 16, 10000, 1000 + t, 0, 0);
        expect_same(&a, all + 16 * t, 16, "row");
    }
}

/* Four golden cases, with their hashes, from when positions and turns were not yet inputs. */
Test(rope, has_the_bits_of_the_operator_that_counted_positions_itself) {
    static const struct {
        const char *name, *class, *hash;
        ro_shape shape;
        float base;
        int64_t first, pairs, inverse;
    } old[] = {
        {"rope_halves",
         "special",
         "0f50403762ce35f88ee6d351a3d016f8b70a50170017aadab70ae248ffdfa44d",
         {RO_F32, 4, {2, 3, 65, 64}},
         10000,
         0,
         0,
         0},
        {"rope_neighbours",
         "wide",
         "cf43f76552a40943aa4c2942459e82bf88cc805189c5873406fef52207ec4851",
         {RO_F32, 4, {2, 3, 33, 130}},
         500000,
         131000,
         1,
         0},
        {"rope_inverse",
         "special",
         "fbae6b4df576d32c53973c8d617e7fc000051c659952f06954243081be603ad1",
         {RO_F32, 3, {3, 129, 34}},
         10000,
         7,
         0,
         1},
        {"rope_far",
         "normal",
         "2754d786002982686cb84a158d53fdbcad8f154c6a93d18575804b600c490fa7",
         {RO_F32, 3, {5, 1, 256}},
         1e6f,
         INT32_MAX,
         1,
         1},
    };
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        op_case c = {.in = {old[i].shape}, .call = {.op = RO_OP_ROPE, .input_count = 1}};
        c.call.input = c.in, c.call.output = old[i].shape;
        cr_assert(case_fill(&c, golden_seed(old[i].name), golden_class(old[i].class)));
        const int64_t width = old[i].shape.dim[old[i].shape.ndim - 1];
        const int64_t positions = old[i].shape.dim[old[i].shape.ndim - 2];
        find_turns(width / 2, (int64_t[RO_MAX_ATTRS]){F(old[i].base)});
        for (int64_t t = 0; t < positions; t++)
            rotation.position[t] = (int32_t)(old[i].first + t);
        apply(&a, RO_OP_ROPE);
        ATTRS(&a, old[i].pairs, old[i].inverse);
        give(&a, old[i].shape, c.data[0]);
        give(&a, ints(positions), rotation.position);
        give(&a, shape_of(RO_I32, 2, width / 2, 2, 0, 0), rotation.words);
        evaluate(&a);
        uint8_t digest[32]; /* of little-endian elements: unit tests run on no other machines */
        char got[GOLDEN_HASH_TEXT];
        cr_assert(EVP_Digest(a.out.bits, (size_t)ro_shape_numel(&old[i].shape) * 4, digest, NULL,
                             EVP_sha256(), NULL) == 1);
        for (int k = 0; k < 32; k++)
            sprintf(got + 2 * k, "%02x", digest[k]);
        cr_expect_str_eq(got, old[i].hash, "%s", old[i].name);
        case_free(&c);
    }
}

Test(rope, sequences_of_a_batch_have_positions_of_their_own) {
    const int32_t position[2 * 3] = {0, 1, 2, 40, -7, INT32_MIN};
    float x[2 * 2 * 3 * 4], each[2 * 3 * 4];
    find_turns(2, (int64_t[RO_MAX_ATTRS]){F(100)});
    for (int i = 0; i < 48; i++)
        x[i] = number(i);
    apply(&a, RO_OP_ROPE), give(&a, shape_of(RO_F32, 4, 2, 2, 3, 4), x);
    give(&a, shape_of(RO_I32, 2, 2, 3, 0, 0), position);
    give(&a, shape_of(RO_I32, 2, 2, 2, 0, 0), rotation.words), evaluate(&a);
    for (int i = 0; i < 2; i++) {
        memcpy(each, x + 24 * i, sizeof each);
        apply(&b, RO_OP_ROPE), give(&b, shape_of(RO_F32, 3, 2, 3, 4, 0), each);
        give(&b, ints(3), position + 3 * i);
        give(&b, shape_of(RO_I32, 2, 2, 2, 0, 0), rotation.words), evaluate(&b);
        cr_expect(memcmp(b.out.bits, a.out.bits + 24 * i, sizeof each) == 0, "sequence %d", i);
    }
}

/* A rotation by -p undoes one by p, just as the inverse does. */
Test(rope, negative_positions_turn_the_other_way) {
    float x[16], turned[16];
    for (int i = 0; i < 16; i++)
        x[i] = number(i);
    rope(x, 1, 16, 10000, 1234, 0, 1);
    memcpy(turned, a.out.f, sizeof turned);
    rope(x, 1, 16, 10000, -1234, 0, 0);
    for (int i = 0; i < 16; i++)
        cr_expect(fabsf(a.out.f[i] - turned[i]) < 2e-6f * (1 + fabsf(x[i])), "%d", i);
}

static uint64_t turn_of_pair(int64_t i) {
    return (uint64_t)rotation.words[2 * i + 1] << 32 | rotation.words[2 * i];
}

/* The largest distance from the exact formula, as SPEC.md section 13 states it in terms of the
 * unscaled frequency. */
Test(rope, scaled_frequencies_are_those_of_the_formulas) {
    static const float factor[] = {1, 2, 8, 32, 3.3f, 1e6f}, low[] = {1, 0.25f}, high[] = {4, 1.5f};
    static const int64_t original[] = {8192, 4096, 1, 1 << 30};
    uint64_t plain[64];
    find_turns(64, (int64_t[RO_MAX_ATTRS]){F(500000)});
    for (int64_t i = 0; i < 64; i++)
        plain[i] = turn_of_pair(i);
    for (int k = 0; k < 96; k++) {
        const float by = factor[k % 6], l = low[k / 6 % 2], h = high[k / 12 % 2];
        const int64_t length = original[k / 24];
        find_turns(64, (int64_t[RO_MAX_ATTRS]){F(500000), RO_ROPE_LINEAR, F(by)});
        for (int64_t i = 0; i < 64; i++) {
            const long double off =
                (long double)plain[i] / (long double)by - (long double)turn_of_pair(i);
            cr_expect(off >= 0 && off < 1, "%Lg", off);
        }
        find_turns(64,
                   (int64_t[RO_MAX_ATTRS]){F(500000), RO_ROPE_LLAMA3, F(by), F(l), F(h), length});
        for (int64_t i = 0; i < 64; i++) {
            const long double f = (long double)plain[i], v = f * (long double)length * 0x1p-64L;
            const long double s = (v - (long double)l) / ((long double)h - (long double)l);
            const long double want = v < (long double)l   ? f / (long double)by
                                     : v > (long double)h ? f
                                                          : (1 - s) * f / (long double)by + s * f;
            const long double most = 2 + 0x1p-32L * (1 + 1 / ((long double)h - (long double)l)) * f;
            cr_expect(fabsl((long double)turn_of_pair(i) - want) <= most, "%d %d", k, (int)i);
        }
    }
}

/* The file has frequencies in radians, computed by transformers in f32:
 * tests/vectors/torch/rope.py. */
Test(rope, frequencies_are_those_of_transformers) {
    FILE *file = fopen("tests/vectors/torch/rope.txt", "r");
    int kind, half, checked = 0;
    long original;
    float base, by, low, high;
    cr_assert(file != NULL);
    while (fscanf(file, "%d %f %f %f %f %ld %d", &kind, &base, &by, &low, &high, &original,
                  &half) == 7) {
        cr_assert(half <= 256);
        find_turns(half, (int64_t[RO_MAX_ATTRS]){F(base), kind, F(by), F(low), F(high), original});
        for (int64_t i = 0; i < half; i++, checked++) {
            double want;
            cr_assert(fscanf(file, "%lf", &want) == 1);
            const double got = ldexp((double)turn_of_pair(i), -64) * 2 * M_PI;
            cr_expect(fabs(got - want) < 1e-6 * want, "kind %d, pair %d: %g, not %g", kind, (int)i,
                      got, want);
        }
    }
    fclose(file);
    cr_assert(checked > 100);
}

/* ---- SGD ---- */

Test(sgd, rounds_where_the_specification_rounds) {
    for (int64_t i = 0; i < 500; i++) {
        float v[6];
        for (int k = 0; k < 6; k++)
            v[k] = number(6 * i + k) / 3;
        const float m = v[0], g = v[1], w = v[2], clip = v[3], lr = v[4];
        const float d = ro_fma(1e-4f, w, g * clip), next = ro_fma(0.9f, m, d);
        apply(&a, RO_OP_SGD_M), ATTRS(&a, F(0.9f), F(1e-4f));
        give(&a, shape1(1), &m), give(&a, shape1(1), &g), give(&a, shape1(1), &w);
        give(&a, shape1(1), &clip);
        EXPECT(&a, next);
        apply(&a, RO_OP_SGD_W);
        give(&a, shape1(1), &w), give(&a, shape1(1), &next), give(&a, shape1(1), &lr);
        EXPECT(&a, ro_fma(-lr, next, w));
        apply(&a, RO_OP_SGD_NESTEROV), ATTRS(&a, F(0.9f), F(1e-4f));
        give(&a, shape1(1), &w), give(&a, shape1(1), &next), give(&a, shape1(1), &g);
        give(&a, shape1(1), &clip), give(&a, shape1(1), &lr);
        EXPECT(&a, ro_fma(-lr, ro_fma(0.9f, next, d), w));
    }
}
