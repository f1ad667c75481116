/* Orders and movements on numbers that can be checked by hand: SPEC.md sections 3 and 5. Sums hold
 * 2^24, to which adding 1 changes nothing and adding 2 does, so another order gives another
 * number. */
#include "ref_apply.h"
#include "repops/src/philox.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"

#include <math.h>

#define BIG 0x1p24f

static application a;

/* ---- dot products, 3.1 ---- */

static void product(int64_t trans, int64_t mask, ro_shape x, const void *p, ro_shape y,
                    const void *q) {
    apply(&a, RO_OP_MATMUL);
    ATTRS(&a, 0, trans, F(1), RO_DOT_CHUNK, mask);
    give(&a, x, p);
    give(&a, y, q);
}

Test(matmul, each_input_may_be_stored_transposed) {
    const float x[] = {1, 2, 3, 4, 5, 6}, xt[] = {1, 4, 2, 5, 3, 6};
    const float y[] = {7, 8, 9, 10, 11, 12}, yt[] = {7, 9, 11, 8, 10, 12};
    product(0, 0, shape2(2, 3), x, shape2(3, 2), y);
    EXPECT(&a, 58, 64, 139, 154);
    product(1, 0, shape2(3, 2), xt, shape2(3, 2), y);
    EXPECT(&a, 58, 64, 139, 154);
    product(2, 0, shape2(2, 3), x, shape2(2, 3), yt);
    EXPECT(&a, 58, 64, 139, 154);
    product(3, 0, shape2(3, 2), xt, shape2(2, 3), yt);
    EXPECT(&a, 58, 64, 139, 154);
}

Test(matmul, batches_are_independent) {
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 10, 2, 20};
    product(0, 0, shape_of(RO_F32, 3, 2, 2, 2, 0), x, shape_of(RO_F32, 3, 2, 2, 1, 0), y);
    a.call.attr[RO_MATMUL_BATCH_DIMS] = 1;
    EXPECT(&a, 21, 43, 130, 174);
}

Test(matmul, rows_of_several_dimensions_stay_as_they_stand) {
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, -1};
    product(0, 0, shape_of(RO_F32, 3, 2, 2, 2, 0), x, shape2(2, 1), y);
    EXPECT(&a, -1, -1, -1, -1);
    cr_expect(a.call.output.ndim == 3 && a.call.output.dim[1] == 2);
}

Test(matmul, masks_limit_k_by_the_row) {
    const float x[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, y[] = {1, 10, 100};
    product(0, RO_MASK_NONE, shape2(3, 3), x, shape2(3, 1), y);
    EXPECT(&a, 111, 111, 111);
    product(0, RO_MASK_UPTO_ROW, shape2(3, 3), x, shape2(3, 1), y);
    EXPECT(&a, 1, 11, 111);
    product(0, RO_MASK_FROM_ROW, shape2(3, 3), x, shape2(3, 1), y);
    EXPECT(&a, 111, 110, 100);
}

Test(matmul, masked_terms_are_absent_even_if_they_are_nan) {
    const float x[] = {1, NAN, INFINITY, 1}, y[] = {1, 1};
    product(0, RO_MASK_UPTO_ROW, shape2(2, 2), x, shape2(2, 1), y);
    EXPECT(&a, 1, INFINITY);
    product(0, RO_MASK_FROM_ROW, shape2(2, 2), x, shape2(2, 1), y);
    EXPECT_BITS(&a, RO_QNAN_BITS, ro_to_bits(1));
}

Test(matmul, chunks_are_summed_from_zero_and_added_in_order) {
    float x[300] = {BIG}, y[300];
    for (int k = 0; k < 300; k++)
        y[k] = 1;
    x[256] = x[257] = 1; /* in a chunk of their own: BIG + 2 */
    product(0, 0, shape2(1, 300), x, shape2(300, 1), y);
    EXPECT(&a, BIG + 2);
    x[257] = 0, x[255] = 1; /* in two chunks: BIG + 1, and then + 1, are both lost */
    product(0, 0, shape2(1, 300), x, shape2(300, 1), y);
    EXPECT(&a, BIG);
    x[256] = 0, x[255] = 0, x[128] = x[129] = 1;
    product(0, 0, shape2(1, 300), x, shape2(300, 1), y);
    EXPECT(&a, BIG);
    a.call.attr[RO_MATMUL_CHUNK] = RO_ATTN_BLOCK; /* now both are in one chunk */
    EXPECT(&a, BIG + 2);
}

/* Chunks start at multiples of 256 whatever the mask. Row 255 keeps one term of the first chunk. */
Test(matmul, a_mask_does_not_move_the_chunks) {
    static float x[258 * 258];
    float y[258];
    for (int k = 0; k < 258; k++)
        x[255 * 258 + k] = 1, y[k] = 0;
    y[255] = BIG, y[256] = y[257] = 1;
    product(0, RO_MASK_FROM_ROW, shape2(258, 258), x, shape2(258, 1), y);
    evaluate(&a);
    cr_expect(a.out.f[255] == BIG + 2);
}

Test(matmul, products_are_fused) {
    const float x[] = {-1, 0x1.000002p0f}, y[] = {0x1.000004p0f, 0x1.000002p0f};
    product(0, 0, shape2(1, 2), x, shape2(2, 1), y);
    EXPECT(&a, 0x1p-46f);
}

Test(matmul, alpha_comes_last_and_totals_are_never_minus_zero) {
    const float x[] = {-0.0f, -0.0f}, y[] = {1, 1}, big[] = {0x1p127f, 0x1p127f};
    product(0, 0, shape2(1, 2), x, shape2(2, 1), y);
    EXPECT(&a, 0.0f);
    a.call.attr[RO_MATMUL_ALPHA] = F(-1);
    EXPECT(&a, -0.0f);
    product(0, 0, shape2(1, 2), big, shape2(2, 1), y);
    a.call.attr[RO_MATMUL_ALPHA] = F(0.5f);
    EXPECT(&a, INFINITY);
}

/* ---- row reductions, 3.2 ---- */

static void reduce(int op, int64_t cols, int64_t block, ro_shape output) {
    apply(&a, op);
    ATTRS(&a, cols, block);
    a.call.output = output;
}

Test(reduce, each_block_of_each_row_gives_an_element) {
    const float x[] = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50};
    reduce(RO_OP_REDUCE_SUM, 5, 2, shape2(2, 3));
    give(&a, shape1(10), x);
    EXPECT(&a, 3, 7, 5, 30, 70, 50);
}

Test(reduce, lanes_are_128_apart_and_folded_from_far_to_near) {
    float x[1024] = {BIG};
    reduce(RO_OP_REDUCE_SUM, 1024, 1024, shape1(1));
    give(&a, shape1(1024), x);
    x[1] = x[65] = 1; /* both lanes hold 1, and the next fold gives 2 */
    EXPECT(&a, BIG + 2);
    x[65] = 0, x[129] = 1; /* same lane: 2 at once */
    EXPECT(&a, BIG + 2);
    x[129] = 0, x[128] = 1; /* lane 0 loses one, and the last fold the other */
    EXPECT(&a, BIG);
    x[1] = x[128] = 0, x[64] = x[32] = 1; /* each is added to lane 0 by itself */
    EXPECT(&a, BIG);
    x[32] = 0, x[64] = 0, x[16] = x[48] = 1; /* the fold of 32 joins them */
    EXPECT(&a, BIG + 2);
}

/* 3 + d * d differs when rounded once or twice. */
Test(reduce, terms_are_fused) {
    float x[129] = {0};
    const float zero = 0, d = 0x1.000002p0f, want = 0x1.000002p2f;
    x[0] = 0x1.bb67aep0f, x[128] = d; /* the first one's square rounds to 3 */
    reduce(RO_OP_REDUCE_SQDEV, 129, 1024, shape1(1));
    give(&a, shape1(129), x), give(&a, shape1(1), &zero);
    EXPECT(&a, want);
    reduce(RO_OP_REDUCE_DOT, 129, 1024, shape1(1));
    give(&a, shape1(129), x), give(&a, shape1(129), x);
    EXPECT(&a, want);
    cr_expect(d * d + 3 != want, "not a test");
}

Test(reduce, terms) {
    const float x[] = {1, 2, 3, 4}, mean[] = {1, 3}, weight[] = {10, 1}, rstd[] = {1, 2};
    const float dy[] = {1, 1, 2, 2};
    reduce(RO_OP_REDUCE_DOT, 2, 2, shape1(2));
    give(&a, shape2(2, 2), x), give(&a, shape1(2), weight);
    EXPECT(&a, 12, 34);
    reduce(RO_OP_REDUCE_SQDEV, 2, 2, shape1(2));
    give(&a, shape2(2, 2), x), give(&a, shape1(2), mean);
    EXPECT(&a, 1, 1);
    reduce(RO_OP_REDUCE_EXPSUM, 2, 2, shape1(2));
    give(&a, shape2(2, 2), x), give(&a, shape1(2), mean);
    EXPECT(&a, 1 + ro_exp(1), 1 + ro_exp(1));
    reduce(RO_OP_REDUCE_LN_GX, 2, 2, shape1(2));
    give(&a, shape2(2, 2), dy), give(&a, shape1(2), weight), give(&a, shape2(2, 2), x);
    give(&a, shape1(2), mean), give(&a, shape1(2), rstd);
    EXPECT(&a, 1, 4);
}

Test(reduce, the_second_operand_of_a_dot_repeats) {
    const float x[] = {1, 2, 3, 4, 5, 6}, three[] = {1, 10, 100};
    reduce(RO_OP_REDUCE_DOT, 2, 2, shape1(3));
    give(&a, shape2(2, 3), x), give(&a, shape1(3), three);
    EXPECT(&a, 21, 304, 650); /* 1 + 20, 300 + 4, 50 + 600 */
}

Test(reduce, max) {
    const float x[] = {-0.0f, 0.0f, -0.0f, -0.0f, -1, -INFINITY, INFINITY, 3};
    const uint32_t nan[] = {0x3f800000, 0xffc12345, 0x3f800000, 0x40000000};
    reduce(RO_OP_REDUCE_MAX, 8, 2, shape1(4));
    give(&a, shape1(8), x);
    EXPECT(&a, 0.0f, -0.0f, -1, INFINITY);
    reduce(RO_OP_REDUCE_MAX, 4, 2, shape1(2));
    give(&a, shape1(4), nan);
    EXPECT_BITS(&a, RO_QNAN_BITS, 0x40000000);
    a.call.attr[RO_ROWS_BLOCK] = 1, a.call.output = shape1(4);
    EXPECT_BITS(&a, 0x3f800000, RO_QNAN_BITS, 0x3f800000, 0x40000000);
}

/* ---- column reductions, 3.3 ---- */

Test(columns, rows_are_summed_in_groups_of_64) {
    float x[66][2] = {{BIG, 1}};
    x[63][0] = 1, x[64][0] = x[65][0] = 1;
    apply(&a, RO_OP_SUM_ROWS);
    ATTRS(&a, 2);
    a.call.output = shape2(2, 2);
    give(&a, shape2(66, 2), x);
    EXPECT(&a, BIG, 1, 2, 0);
}

Test(columns, gradient_of_gamma) {
    const float dy[] = {1, 2, 3, 4}, x[] = {5, 6, 7, 8}, mean[] = {4, 6}, rstd[] = {1, 2};
    apply(&a, RO_OP_LN_DGAMMA);
    ATTRS(&a, 2);
    a.call.output = shape2(1, 2);
    give(&a, shape2(2, 2), dy), give(&a, shape2(2, 2), x);
    give(&a, shape1(2), mean), give(&a, shape1(2), rstd);
    EXPECT(&a, 7, 20); /* 1 * 1 + 3 * 2, 2 * 2 + 4 * 4 */
}

Test(columns, terms_are_fused) {
    const float dy[] = {-1, 0x1.000002p0f}, x[] = {0x1.000004p0f, 0x1.000002p0f};
    const float mean[] = {0, 0}, rstd[] = {1, 1};
    apply(&a, RO_OP_LN_DGAMMA);
    ATTRS(&a, 1);
    a.call.output = shape1(1);
    give(&a, shape2(2, 1), dy), give(&a, shape2(2, 1), x);
    give(&a, shape1(2), mean), give(&a, shape1(2), rstd);
    EXPECT(&a, 0x1p-46f);
}

static void gradient_of_table(int64_t positions, const float *dy, const int32_t *ids) {
    apply(&a, RO_OP_EMBEDDING_GRAD);
    a.call.output = shape2(3, 1);
    give(&a, shape2(positions, 1), dy);
    give(&a, ints(positions), ids);
}

/* Two ids alternate. Groups count the rows of one id, not the positions. */
Test(columns, rows_of_an_embedding_are_grouped_by_id) {
    float dy[132] = {BIG};
    int32_t ids[132];
    for (int p = 0; p < 132; p++)
        ids[p] = p % 2 ? 7 : 1;
    dy[128] = dy[130] = 1; /* rows 64 and 65 of this id: a group of their own */
    gradient_of_table(132, dy, ids);
    EXPECT(&a, 0, BIG + 2, 0);
    dy[130] = 0, dy[126] = 1; /* row 63 and row 64 */
    EXPECT(&a, 0, BIG, 0);
}

/* The result is that of sum_rows, level by level, for three levels. */
Test(columns, levels_of_an_embedding_are_those_of_sum_rows) {
    enum { ROWS = 64 * 64 + 300 };
    static float dy[ROWS], level[ROWS];
    static int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++)
        dy[i] = (float)((double)case_word(1, 0, i) * 0x1p-40 - 0x1p23);
    gradient_of_table(ROWS, dy, ids);
    evaluate(&a);
    const float got = a.out.f[0];
    memcpy(level, dy, sizeof dy);
    for (int64_t rows = ROWS; rows > 1; rows = (rows + 63) / 64) {
        apply(&a, RO_OP_SUM_ROWS);
        ATTRS(&a, 1);
        a.call.output = shape1((rows + 63) / 64);
        give(&a, shape1(rows), level);
        evaluate(&a);
        memcpy(level, a.out.f, (size_t)(rows + 63) / 64 * sizeof *level);
    }
    cr_expect(got == level[0], "%a, expected %a", (double)got, (double)level[0]);
}

/* ---- movement, 5 ---- */

Test(movement, keeps_the_bits_of_nans) {
    const uint32_t x[] = {0xffc12345, 0x7f800001}, id[] = {1};
    apply(&a, RO_OP_FILL);
    ATTRS(&a, 0xff812345);
    a.call.output = shape1(2);
    EXPECT_BITS(&a, 0xff812345, 0xff812345);
    apply(&a, RO_OP_EMBEDDING);
    give(&a, shape2(2, 1), x), give(&a, ints(1), id);
    EXPECT_BITS(&a, 0x7f800001);
    apply(&a, RO_OP_CONCAT);
    give(&a, shape1(2), x), give(&a, shape1(1), x);
    EXPECT_BITS(&a, 0xffc12345, 0x7f800001, 0xffc12345);
}

Test(movement, ids_outside_the_table_give_nan) {
    const float table[] = {1, 2, 3, 4};
    const int32_t ids[] = {1, -1, 2, INT32_MIN, INT32_MAX};
    const uint32_t nan = RO_QNAN_BITS;
    apply(&a, RO_OP_EMBEDDING);
    give(&a, shape2(2, 2), table), give(&a, ints(5), ids);
    EXPECT_BITS(&a, 0x40400000, 0x40800000, nan, nan, nan, nan, nan, nan, nan, nan);
}

Test(movement, heads_are_split_and_joined) {
    float x[12], q[6], k[6]; /* B = 1, T = 1, P = 2, H = 2, D = 3 */
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    for (int64_t part = 0; part < 2; part++) {
        apply(&a, RO_OP_SPLIT_HEADS);
        ATTRS(&a, 2, part, 2);
        give(&a, shape_of(RO_F32, 3, 1, 1, 12, 0), x);
        evaluate(&a);
        memcpy(part ? k : q, a.out.f, sizeof q);
    }
    cr_expect(q[0] == 0 && q[5] == 5 && k[0] == 6 && k[5] == 11);
    apply(&a, RO_OP_JOIN_HEADS);
    give(&a, shape_of(RO_F32, 4, 1, 2, 1, 3), q), give(&a, shape_of(RO_F32, 4, 1, 2, 1, 3), k);
    EXPECT(&a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
}

Test(movement, heads_are_transposed_with_positions) {
    const float x[] = {0, 1, 2, 3, 4, 5, 6, 7}; /* B = 1, T = 2, P = 1, H = 2, D = 2 */
    apply(&a, RO_OP_SPLIT_HEADS);
    ATTRS(&a, 1, 0, 2);
    give(&a, shape_of(RO_F32, 3, 1, 2, 4, 0), x);
    EXPECT(&a, 0, 1, 4, 5, 2, 3, 6, 7);
}

Test(movement, iota_counts) {
    apply(&a, RO_OP_IOTA);
    a.call.output = ints(4);
    EXPECT_BITS(&a, 0, 1, 2, 3);
}

/* ---- batches, 5 ---- */

enum { TOKENS = 100, SEQUENCE = 7, WINDOWS = (TOKENS - 1) / SEQUENCE };
static uint16_t tokens[TOKENS];

static void read_rows(int32_t step, int64_t batch, int64_t first, int64_t rows, int64_t shift) {
    static int32_t at;
    at = step;
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (uint16_t)(1000 + i);
    apply(&a, RO_OP_READ_BATCH);
    ATTRS(&a, 42, 3, batch, first, shift);
    a.call.output = shape_of(RO_I32, 2, rows, SEQUENCE, 0, 0);
    give(&a, shape_of(RO_U16, 1, TOKENS, 0, 0, 0), tokens), give(&a, ints(1), &at);
    evaluate(&a);
}

Test(read_batch, an_epoch_reads_every_window_once_in_the_order_of_the_permutation) {
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        for (uint64_t i = 0; i < WINDOWS; i++) {
            const uint64_t window = ro_permute(42, 3, epoch, WINDOWS, i);
            read_rows((int32_t)(epoch * WINDOWS + i), 1, 0, 1, 0);
            for (int t = 0; t < SEQUENCE; t++)
                cr_assert(a.out.i[t] == 1000 + (int)window * SEQUENCE + t);
        }
}

Test(read_batch, targets_are_one_further) {
    int32_t inputs[5 * SEQUENCE];
    read_rows(9, 5, 0, 5, 0);
    memcpy(inputs, a.out.i, sizeof inputs);
    read_rows(9, 5, 0, 5, 1);
    for (int e = 0; e < 5 * SEQUENCE; e++)
        cr_assert(a.out.i[e] == inputs[e] + 1);
}

Test(read_batch, micro_batches_are_the_rows_of_the_batch) {
    int32_t whole[5 * SEQUENCE];
    read_rows(2, 5, 0, 5, 0);
    memcpy(whole, a.out.i, sizeof whole);
    read_rows(2, 5, 3, 2, 0);
    cr_expect(memcmp(a.out.i, whole + 3 * SEQUENCE, 2 * SEQUENCE * sizeof *whole) == 0);
}

/* The largest number of data tensors. A window never has tokens of two of them. */
enum { SHARDS = RO_MAX_INPUTS - 1 };
static int32_t shard[SHARDS][2 * SEQUENCE + 2];
static ro_shape shard_shape[RO_MAX_INPUTS];
static const void *shard_data[RO_MAX_INPUTS];

/* Shard q holds one or two windows of tokens 100 q, 100 q + 1, ..., and tokens that no window
 * reads. */
static uint64_t make_shards(const int32_t *step) {
    uint64_t windows = 0;
    for (int q = 0; q < SHARDS; q++) {
        const int held = 1 + q % 2;
        windows += (uint64_t)held;
        shard_shape[q] = (ro_shape){RO_I32, 1, {held * SEQUENCE + 2}};
        shard_data[q] = shard[q];
        for (int t = 0; t < 2 * SEQUENCE + 2; t++)
            shard[q][t] = 100 * q + t;
    }
    shard_shape[SHARDS] = ints(1);
    shard_data[SHARDS] = step;
    return windows;
}

Test(read_batch, windows_are_numbered_through_all_data_tensors) {
    int32_t step = 0, out[SEQUENCE];
    const uint64_t windows = make_shards(&step);
    const ro_call call = {
        RO_OP_READ_BATCH, SHARDS + 1, {42, 3, 1, 0, 1}, shard_shape, {RO_I32, 2, {1, SEQUENCE}}};
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    for (uint64_t i = 0; i < 2 * windows; i += 7) {
        const uint64_t w = ro_permute(42, 3, i / windows, windows, i % windows);
        const int q = (int)(w / 3 * 2 + (w % 3 > 0)), v = w % 3 == 2;
        step = (int32_t)i;
        cr_assert(ro_run(ctx, &call, shard_data, out) == RO_OK, "%s", ro_ctx_error(ctx));
        for (int t = 0; t < SEQUENCE; t++) {
            ro_ref_memory memory = {&call, shard_data};
            const ro_access in = {ro_ref_load_memory, &memory};
            cr_assert_eq(out[t], 100 * q + v * SEQUENCE + t + 1, "window %d", (int)w);
            cr_assert_eq(ro_ref_element(&call, t, &in), (uint32_t)out[t]);
        }
    }
    ro_ctx_destroy(ctx);
}

static void expect_refused_shards(const char *why) {
    char text[200] = "";
    ro_call call = {
        RO_OP_READ_BATCH, SHARDS + 1, {42, 3, 1, 0, 1}, shard_shape, {RO_I32, 2, {1, SEQUENCE}}};
    cr_expect(ro_infer(&call, text, sizeof text) != RO_OK && strstr(text, why), "%s", text);
}

Test(read_batch, data_tensors_of_other_types_without_a_window_or_with_too_many_are_refused) {
    static const int32_t step;
    make_shards(&step);
    shard_shape[SHARDS - 1].dtype = RO_U16;
    expect_refused_shards("must be i32, got u16");
    make_shards(&step);
    shard_shape[7].dim[0] = SEQUENCE;
    expect_refused_shards("no window");
    make_shards(&step);
    for (int q = 0; q < 8; q++)
        shard_shape[q].dim[0] = INT64_C(1) << 40;
    expect_refused_shards("2^40 windows");
}

/* A step is a number modulo 2^32, so -1 is a step like any other. */
Test(read_batch, any_step_reads_within_the_data) {
    const int32_t steps[] = {-1, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        read_rows(steps[i], INT32_MAX, INT32_MAX - 2, 2, 1);
        const uint64_t g = (uint64_t)(uint32_t)steps[i] * INT32_MAX + INT32_MAX - 2;
        const uint64_t w = ro_permute(42, 3, g / WINDOWS, WINDOWS, g % WINDOWS);
        cr_expect(a.out.i[0] == 1001 + (int)w * SEQUENCE);
    }
}
