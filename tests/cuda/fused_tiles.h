/* Products, linear layers and convolutions of sizes for which each tile of
 * repops/cuda/gemm/gemm_plan.cuh is the fastest, on one multiprocessor with the shared memory of
 * sm_90, and on 132 of them (H100, H200). Random sizes seldom select them; on other devices these
 * are ordinary cases. Part of fused.c. */
#ifndef TESTS_CUDA_FUSED_TILES_H
#define TESTS_CUDA_FUSED_TILES_H

#include "repops/op_image.h"
#include "repops/op_product.h"
#include "tests/cuda/fused_work.h"

static int64_t between(const work *w, int what, int64_t least, int64_t most) {
    return least + (int64_t)roll(w, what, (uint64_t)(most - least + 1));
}

/* Rows and columns that nearly fill one tile of 128 x 128 or 96 x 128, or three of 128 x 64; or one
 * of 64 x 64; or few rows. */
enum { SUITS_LARGE, SUITS_WIDE, SUITS_MEDIUM, SUITS_SMALL, SUITS_FLAT16, SUITS_FLAT8 };

static int64_t tile_rows(const work *w, int suits) {
    return suits == SUITS_LARGE    ? between(w, 0, 110, 128)
           : suits == SUITS_WIDE   ? between(w, 0, 70, 96)
           : suits == SUITS_MEDIUM ? between(w, 0, 321, 384)
           : suits == SUITS_SMALL  ? between(w, 0, 17, 64)
           : suits == SUITS_FLAT16 ? between(w, 0, 9, 16)
                                   : between(w, 0, 1, 8);
}

static int64_t tile_cols(const work *w, int suits) {
    return suits <= SUITS_WIDE ? between(w, 1, 110, 128) : between(w, 1, 33, 64);
}

/* Depths near a stage, and beyond a chunk. */
static int64_t tile_depth(const work *w) {
    static const int16_t depths[] = {1, 7, 15, 16, 17, 33, 50, 260};
    return pick(w, 2, depths, sizeof depths / sizeof *depths);
}

/* Runs the call on both sides. Its input shapes are set, and the output's if it is declared. */
static void run_call(work *w, ro_call *call) {
    const char *what = ro_op_describe(call->op)->name;
    char why[200];
    if (ro_infer(call, why, sizeof why) != RO_OK) {
        printf("  case %llu, %s: %s\n", (unsigned long long)w->seed, what, why);
        w->failed = 1;
        return;
    }
    const array *a = input(w, "a", ro_shape_numel(&call->input[0]), class_of(w));
    const array *b = input(w, "b", ro_shape_numel(&call->input[1]), class_of(w));
    const array *y = add(w, "y", ro_shape_numel(&call->output));
    const void *const here[] = {a->want, b->want}, *const there[] = {a->on_device, b->on_device};
    expect(w, ro_run(w->cpu, call, here, y->want), w->cpu);
    expect(w, ro_run(w->device, call, there, y->on_device), w->device);
    compare(w, y, what);
}

typedef struct {
    int64_t m, n, k;
} tile_size;

/* trans: bit 0 transposes a, bit 1 b. If b has 16-bit elements, they are the first half of words
 * made as f32. */
static void run_matmul(work *w, int trans, int masked, int b_dtype, tile_size s) {
    const int64_t mask = masked ? between(w, 3, 1, 2) : RO_MASK_NONE;
    const ro_shape in[] = {
        {.dtype = RO_F32, .ndim = 2, .dim = {trans & 1 ? s.k : s.m, trans & 1 ? s.m : s.k}},
        {.dtype = b_dtype, .ndim = 2, .dim = {trans & 2 ? s.n : s.k, trans & 2 ? s.k : s.n}}};
    ro_call call = {.op = RO_OP_MATMUL,
                    .input_count = 2,
                    .attr = {[RO_MATMUL_TRANS] = trans,
                             [RO_MATMUL_ALPHA] = ro_attr_f32(roll(w, 4, 2) ? 1.0f : -0.75f),
                             [RO_MATMUL_CHUNK] = roll(w, 5, 2) ? RO_DOT_CHUNK : RO_ATTN_BLOCK,
                             [RO_MATMUL_MASK] = mask},
                    .input = in};
    run_call(w, &call);
}

static void run_layer(work *w, int transposed, int fixed_bits, tile_size s) {
    const ro_linear_layer l = {.size = sizeof l,
                               .rows = s.m,
                               .in = s.k,
                               .out = s.n,
                               .transposed = transposed,
                               .activation = (ro_activation)roll(w, 4, 5),
                               .fixed_bits = fixed_bits};
    run_linear(w, &l);
}

static tile_size tile_size_of(const work *w, int suits) {
    return (tile_size){tile_rows(w, suits), tile_cols(w, suits), tile_depth(w)};
}

/* Transposes and sizes depend on the seed: each kernel runs once in 28 seeds. */
static void tiles_of(work *w, int b_dtype) {
    static const struct {
        int suits, masked;
    } kinds[] = {{SUITS_LARGE, 0}, {SUITS_WIDE, 0},   {SUITS_MEDIUM, 0}, {SUITS_FLAT16, 0},
                 {SUITS_FLAT8, 0}, {SUITS_MEDIUM, 1}, {SUITS_SMALL, 1}};
    const int kind = (int)(w->seed / 4 % 7);
    run_matmul(w, (int)(w->seed % 4), kinds[kind].masked, b_dtype,
               tile_size_of(w, kinds[kind].suits));
}

static void matmul_tiles(work *w) {
    tiles_of(w, RO_F32);
}

static void matmul_half_tiles(work *w) {
    tiles_of(w, roll(w, 6, 2) ? RO_BF16 : RO_F16);
}

/* Each kernel runs once in 6 seeds. */
static void linear_tiles(work *w) {
    run_layer(w, (int)(w->seed % 2), 0, tile_size_of(w, (int)(w->seed / 2 % 3)));
}

/* ---- convolutions of 3 x 3 ---- */

typedef struct {
    int64_t h, w, depth, filters, pad; /* of the image, in pixels */
    int bits;                          /* of a fixed convolution; 0: not fixed */
} tile_conv;

static int fixed_of(int op) {
    return op == RO_OP_CONV2D      ? RO_OP_CONV2D_FIXED
           : op == RO_OP_CONV2D_DX ? RO_OP_CONV2D_FIXED_DX
                                   : RO_OP_CONV2D_FIXED_DW;
}

static void run_conv(work *w, int op, const tile_conv *c) {
    const int64_t less = 2 - 2 * c->pad;
    const ro_shape x = {.dtype = RO_F32, .ndim = 4, .dim = {1, c->h, c->w, c->depth}};
    const ro_shape f = {.dtype = RO_F32, .ndim = 4, .dim = {3, 3, c->depth, c->filters}};
    const ro_shape y = {
        .dtype = RO_F32, .ndim = 4, .dim = {1, c->h - less, c->w - less, c->filters}};
    const ro_shape in[] = {op == RO_OP_CONV2D_DX ? y : x, op == RO_OP_CONV2D_DW ? y : f};
    ro_call call = {.op = c->bits ? fixed_of(op) : op,
                    .input_count = 2,
                    .attr = {1, 1, c->pad, c->pad, 1, 1, 1, c->bits},
                    .input = in,
                    .output = op == RO_OP_CONV2D_DX   ? x
                              : op == RO_OP_CONV2D_DW ? f
                                                      : (ro_shape){0}};
    run_call(w, &call);
}

/* The number of channels that are summed: with 16 and 32 a stage of the tile has one tap. */
static int64_t tap_depth(const work *w, int op) {
    static const int16_t depths[] = {1, 2, 3, 16, 32};
    return op == RO_OP_CONV2D_DW ? between(w, 6, 1, 3)
                                 : pick(w, 6, depths, sizeof depths / sizeof *depths);
}

/* Limits for a tile's rows, which are pixels or, for DW, taps times channels. */
typedef struct {
    int16_t h, least_w, most_w, least_depth, most_depth;
} conv_rows;

static void run_conv_rows(work *w, int op, const conv_rows *r, tile_conv c) {
    const int64_t many = c.filters, few = c.depth;
    const int64_t grown = op == RO_OP_CONV2D ? 2 - 2 * c.pad : 0; /* rows are counted in y */
    c.h = r->h + grown, c.w = between(w, 8, r->least_w, r->most_w) + grown;
    if (op == RO_OP_CONV2D_DX)
        c.depth = many, c.filters = few;
    if (op == RO_OP_CONV2D_DW)
        c = (tile_conv){3 + few, 4, between(w, 9, r->least_depth, r->most_depth), many, c.pad, 0};
    run_conv(w, op, &c);
}

static int conv_op_of(const work *w) {
    static const int ops[] = {RO_OP_CONV2D, RO_OP_CONV2D_DX, RO_OP_CONV2D_DW};
    return ops[w->seed / 3 % 3];
}

/* Each kernel runs once in 9 seeds. */
static void conv_tiles(work *w) {
    static const conv_rows rows[] = {{11, 10, 11, 12, 14}, {8, 9, 12, 8, 10}, {19, 17, 20, 36, 42}};
    const int op = conv_op_of(w), suits = (int)(w->seed % 3);
    const tile_conv c = {
        .depth = tap_depth(w, op), .filters = tile_cols(w, suits), .pad = between(w, 7, 0, 1)};
    run_conv_rows(w, op, &rows[suits], c);
}

/* Few pixels and long sums: there are more multiprocessors than tiles, so chunks are summed
 * separately. */
static void conv_units(work *w) {
    const tile_conv c = {between(w, 0, 3, 5),
                         between(w, 1, 3, 5),
                         between(w, 2, 4, 12),
                         between(w, 3, 60, 90),
                         1,
                         0};
    run_conv(w, RO_OP_CONV2D_DX, &c);
}

/* Fixed convolutions with many pixels, which take several slabs on the simulator. Each kernel runs
 * once in 9 seeds. */
static void conv_slabs(work *w) {
    const tile_conv c = {
        between(w, 0, 18, 26), between(w, 1, 18, 26), between(w, 2, 3, 10), between(w, 3, 3, 10), 1,
        w->seed % 2 ? 24 : 16};
    run_conv(w, conv_op_of(w), &c);
}

/* Fixed convolutions with more columns than blocks can read windows in place for (conv_fixed.cuh).
 * Each kernel runs once in 9 seeds. */
static void conv_wide(work *w) {
    static const int bits[] = {RO_FIXED_8, RO_FIXED_16, RO_FIXED_24};
    const int op = conv_op_of(w), digits = (int)(w->seed % 3);
    const int64_t few = between(w, 2, 1, 3);
    const int64_t many = digits == 2 ? between(w, 3, 513, 576) : between(w, 3, 193, 256);
    const int64_t dx = op == RO_OP_CONV2D_DX;
    const tile_conv c = {
        between(w, 0, 3, 5), between(w, 1, 3, 5), dx ? many : few, dx ? few : many, 1,
        bits[digits]};
    run_conv(w, op, &c);
}

/* ---- sizes for 132 multiprocessors: fractions of a second on a device, seconds on the shim, so
 * that they only run if asked for by name ---- */

/* 12 x 22 tiles of 128 x 128 or 96 x 128, two for each multiprocessor; or 4 x 99 of 128 x 64, three
 * for each: slightly too many for tiles of 96 x 128. */
static tile_size card_size(const work *w, int suits) {
    const int64_t depth = between(w, 2, 15, 50);
    return suits == SUITS_LARGE
               ? (tile_size){between(w, 0, 1409, 1536), between(w, 1, 2689, 2816), depth}
           : suits == SUITS_WIDE
               ? (tile_size){between(w, 0, 1057, 1152), between(w, 1, 2689, 2816), depth}
               : (tile_size){between(w, 0, 481, 512), between(w, 1, 6273, 6336), depth};
}

/* Each kernel runs once in 16 seeds. */
static void card_matmul(work *w) {
    const int kind = (int)(w->seed / 4 % 4), masked = kind == 3;
    run_matmul(w, (int)(w->seed % 4), masked, RO_F32, card_size(w, masked ? SUITS_MEDIUM : kind));
}

/* Each kernel runs once in 6 seeds. */
static void card_linear(work *w) {
    run_layer(w, (int)(w->seed % 2), 0, card_size(w, (int)(w->seed / 2 % 3)));
}

/* Each kernel runs once in 9 seeds. */
static void card_conv(work *w) {
    static const conv_rows rows[] = {
        {38, 38, 40, 157, 170}, {33, 33, 34, 118, 128}, {22, 22, 23, 54, 56}};
    const int suits = (int)(w->seed % 3);
    const tile_conv c = {.depth = between(w, 6, 2, 5), .filters = card_size(w, suits).n, .pad = 1};
    run_conv_rows(w, conv_op_of(w), &rows[suits], c);
}

/* Fixed products on GPUs with wgmma: more stages than a block's ring has, and several tiles for a
 * block (repops/cuda/gemm/wgmma.cuh). */
static void fixed_rings(work *w) {
    static const int bits[] = {RO_FIXED_24, RO_FIXED_16, RO_FIXED_8};
    const tile_size s = {between(w, 0, 100, 300), between(w, 1, 50, 210), between(w, 2, 500, 1300)};
    run_layer(w, (int)(w->seed / 3 % 2), bits[w->seed % 3], s);
}

/* Fixed layers and convolutions, in tiles of 64 x 64, with several chunks. */
static void card_fixed(work *w) {
    const int bits = w->seed % 2 ? RO_FIXED_16 : RO_FIXED_24;
    const tile_size s = {between(w, 0, 1000, 1100), between(w, 1, 1000, 1100),
                         between(w, 2, 250, 800)};
    const tile_conv c = {.h = between(w, 0, 28, 40),
                         .w = between(w, 1, 28, 40),
                         .depth = between(w, 2, 30, 70),
                         .filters = between(w, 3, 120, 200),
                         .pad = 1,
                         .bits = bits};
    if (w->seed / 2 % 2)
        run_layer(w, (int)(w->seed / 4 % 2), bits, s);
    else
        run_conv(w, RO_OP_CONV2D + (int)(w->seed / 4 % 3), &c);
}

#endif
