/* Checked sums of fixed products: bits are flipped in every kind of memory that a product uses, and
 * must be found. */
#include "repops/guard.h"
#include "repops/op_image.h"
#include "repops/op_product.h"
#include "repops/packed.h"
#include "repops/src/guard.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], MOST = 1 << 20, FOUND_MOST = 64 };

/* Flips one bit at every `every`-th visit of a place from visit `first` on, at most `times`
 * times. */
typedef struct {
    ro_guard_place place;
    int64_t first, every, times;
    size_t byte; /* modulo the size of the data */
    bool from_end;
    int bit;
    int64_t seen, flipped;
    ro_guard_finding found[FOUND_MOST];
    int count;
} plant;

static float a[MOST], b[MOST], want[MOST], got[MOST];

static void take(void *user, const ro_guard_finding *finding) {
    plant *p = user;
    if (p->count < FOUND_MOST)
        p->found[p->count++] = *finding;
}

static void alter(void *user, ro_guard_place place, void *data, size_t size) {
    plant *p = user;
    if (place != p->place)
        return;
    const int64_t visit = p->seen++ - p->first;
    if (visit < 0 || visit % p->every != 0 || p->flipped == p->times)
        return;
    const size_t at = p->byte % size;
    ((uint8_t *)data)[p->from_end ? size - 1 - at : at] ^= (uint8_t)(1u << p->bit);
    p->flipped++;
}

static void fill(float *to, int input, int64_t count, data_class class) {
    for (int64_t e = 0; e < count; e++)
        ((uint32_t *)to)[e] = case_f32(case_word((uint64_t)count, input, e), class);
}

typedef struct {
    int64_t batch, m, n, k;
    int trans, bits;
} product;

static ro_status multiply(ro_ctx *ctx, const product *p, float *out) {
    const int64_t m = p->m, n = p->n, k = p->k;
    const ro_shape in[2] = {{RO_F32, 3, {p->batch, p->trans & 1 ? k : m, p->trans & 1 ? m : k}},
                            {RO_F32, 3, {p->batch, p->trans & 2 ? n : k, p->trans & 2 ? k : n}}};
    ro_call call = {.op = RO_OP_MATMUL_FIXED, .input_count = 2, .input = in};
    call.attr[RO_MATMUL_FIXED_BATCH_DIMS] = 1;
    call.attr[RO_MATMUL_FIXED_TRANS] = p->trans;
    call.attr[RO_MATMUL_FIXED_ALPHA] = ro_attr_f32(0.5f);
    call.attr[RO_MATMUL_FIXED_BITS] = p->bits;
    char why[200];
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    return ro_run(ctx, &call, (const void *const[]){a, b}, out);
}

static ro_ctx *open_ctx(const char *backend, int threads) {
    ro_ctx *ctx = NULL;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static void guard(ro_ctx *ctx, plant *p) {
    const ro_guard g = {sizeof g, 0, take, p->times ? alter : NULL, p};
    cr_assert(ro_ctx_guard(ctx, &g) == RO_OK, "%s", ro_ctx_error(ctx));
}

/* Multiplies without and with checks. *same says whether both gave the same bits. */
static ro_status compare(ro_ctx *ctx, const product *x, plant *p, bool *same) {
    const size_t size = (size_t)(x->batch * x->m * x->n) * sizeof *want;
    cr_assert(ro_ctx_guard(ctx, NULL) == RO_OK);
    cr_assert(multiply(ctx, x, want) == RO_OK);
    guard(ctx, p);
    memset(got, 0x5a, size);
    const ro_status status = multiply(ctx, x, got);
    *same = memcmp(want, got, size) == 0;
    return status;
}

/* Calls test(ctx, bits) for each kernel that checks. Returns how many there are. */
static int with_checks(void (*test)(ro_ctx *ctx, int bits), int threads) {
    int ran = 0;
    for (int i = 0; i < BACKENDS; i++)
        for (int bits = RO_FIXED_8; bits <= RO_FIXED_24; bits += 8) {
            ro_ctx *ctx = open_ctx(backends[i], threads);
            if (ctx && ro_ctx_guards(ctx, bits))
                test(ctx, bits), ran++;
            ro_ctx_destroy(ctx);
        }
    return ran;
}

static int kernels_expected(void) {
#if defined(__x86_64__)
    const int vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
                     !__builtin_cpu_supports("amx-int8");
    return (__builtin_cpu_supports("avx2") ? 3 : 0) + (vnni ? 3 : 0);
#else
    return 0;
#endif
}

/* ---- no faults ---- */

static void find_nothing(ro_ctx *ctx, int bits) {
    static const int64_t sizes[][4] = {{1, 1, 1, 1},      {2, 13, 33, 300}, {1, 600, 70, 513},
                                       {3, 70, 530, 257}, {1, 5, 16, 0},    {1, 100, 31, 1025}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int class = 0; class < DATA_END; class ++) {
            const int64_t *s = sizes[i];
            const product x = {s[0], s[1], s[2], s[3], (int)(i + (size_t) class) % 4, bits};
            plant p = {0};
            bool same;
            fill(a, 0, x.batch * x.m * x.k, class);
            fill(b, 1, x.batch * x.n * x.k, class);
            cr_expect(compare(ctx, &x, &p, &same) == RO_OK && same && p.count == 0,
                      "%s, %d bits, %d x %d x %d: %d found, %s", ro_ctx_backend(ctx), bits,
                      (int)x.m, (int)x.n, (int)x.k, p.count, same ? "same" : "other bits");
        }
}

Test(guard, finds_nothing_where_nothing_is_wrong) {
    cr_expect(with_checks(find_nothing, 1) == kernels_expected());
    cr_expect(with_checks(find_nothing, 2) == kernels_expected());
}

/* ---- one flip ---- */

static const product square = {1, 100, 96, 600, 0, 0};

static void fill_square(void) {
    fill(a, 0, square.m * square.k, DATA_NORMAL);
    fill(b, 1, square.n * square.k, DATA_NORMAL);
}

/* Makes two of three numbers small in every fifth row of a and in every `each`-th column of b. With
 * 8 bits, these rows and columns need two digits. */
static void make_uneven(int64_t each) {
    for (int64_t k = 0; k < square.k; k++) {
        if (k % 3 == 0)
            continue;
        for (int64_t i = 0; i < square.m; i += 5)
            a[i * square.k + k] *= 0x1p-7f;
        for (int64_t i = 0; i < square.n; i += each)
            b[k * square.n + i] *= 0x1p-7f;
    }
}

/* Flips one bit at one visit of a place in each round. If `expected`, every flip is found and no
 * output changes; else none is found. */
static void flip(ro_ctx *ctx, int bits, ro_guard_place place, size_t stride, int rounds,
                 bool expected) {
    product x = square;
    x.bits = bits;
    for (int i = 0; i < rounds; i++) {
        plant p = {.place = place, .first = i % 5, .every = 1, .times = 1};
        bool same;
        p.byte = (size_t)(i / 8) * stride + (size_t)(i % 4), p.bit = i % 8;
        if (!expected) /* the highest byte, whose flips no rounding hides */
            p.byte = (size_t)(i / 8) * stride + 3;
        const ro_status status = compare(ctx, &x, &p, &same);
        cr_assert(p.flipped == 1);
        cr_expect(status == RO_OK, "%s", ro_ctx_error(ctx));
        cr_expect(p.count == expected && same == expected,
                  "%s, %d bits, place %d, byte %d, bit %d: %d found, %s", ro_ctx_backend(ctx), bits,
                  (int)place, (int)p.byte, p.bit, p.count, same ? "same" : "other bits");
        for (int f = 0; f < p.count; f++)
            cr_expect(p.found[f].again == 0 && p.found[f].chunk >= 0 && p.found[f].chunk < 3);
    }
}

static void flip_all(ro_ctx *ctx, int bits) {
    fill_square();
    flip(ctx, bits, RO_GUARD_AT_A, 2, 64, true);
    flip(ctx, bits, RO_GUARD_AT_B, 4, 64, true);
    flip(ctx, bits, RO_GUARD_AT_SCALE, 8, 64, true);
    flip(ctx, bits, RO_GUARD_AT_SUMS, 4, 64, true);
    flip(ctx, bits, RO_GUARD_AT_TOTAL, 4, 16, false);
    flip(ctx, bits, RO_GUARD_AT_OUTPUT, 4, 16, false);
}

/* Flips bits where all columns, or every fifth one, have two digits. */
static void flip_all_uneven(ro_ctx *ctx, int bits) {
    for (int64_t each = 1; each <= 5; each += 4) {
        fill_square();
        make_uneven(each);
        flip(ctx, bits, RO_GUARD_AT_A, 2, 64, true);
        flip(ctx, bits, RO_GUARD_AT_B, 4, 64, true);
        flip(ctx, bits, RO_GUARD_AT_SCALE, 8, 64, true);
        flip(ctx, bits, RO_GUARD_AT_SUMS, 4, 64, true);
    }
}

Test(guard, finds_a_flip_where_lines_have_two_digits) {
    cr_expect(with_checks(flip_all_uneven, 1) == kernels_expected());
}

/* Flips any bits of packed numbers and the data beside them. Not every flip has an effect. */
static void flip_anywhere(ro_ctx *ctx, int bits) {
    product x = square;
    int found = 0;
    x.bits = bits;
    fill_square();
    make_uneven(5);
    for (int i = 0; i < 600; i++) {
        plant p = {.place = i % 2 ? RO_GUARD_AT_A : RO_GUARD_AT_B, .every = 1, .times = 1};
        const uint64_t word = case_word(600, 2, i);
        bool same;
        p.first = i % 9, p.byte = (size_t)(word >> 8), p.bit = (int)(word & 7);
        if (i < 200) /* where groups describe their additional parts */
            p.from_end = true, p.byte %= 400;
        cr_expect(compare(ctx, &x, &p, &same) == RO_OK && same,
                  "%s, %d bits, place %d, byte %zu, bit %d: %d found, visit %d, %s",
                  ro_ctx_backend(ctx), bits, (int)p.place, p.byte, p.bit, p.count, (int)p.first,
                  same ? "same" : "other bits");
        found += p.count > 0;
    }
    cr_expect(found > 200, "%s, %d bits: %d found", ro_ctx_backend(ctx), bits, found);
}

Test(guard, lets_no_flip_of_packed_numbers_change_the_output) {
    cr_expect(with_checks(flip_anywhere, 1) == kernels_expected());
}

/* Totals and outputs are floats, which have no checksums: their sums depend on the order. */
Test(guard, finds_a_flip_in_packed_numbers_scales_and_sums_and_computes_again) {
    cr_expect(with_checks(flip_all, 1) == kernels_expected());
}

/* ---- every bit of a sum, and its position ---- */

/* Flips each bit of part `part` of the first tile's sums. */
static void flip_part(ro_ctx *ctx, const product *x, int part) {
    const int bits = x->bits;
    for (int bit = 0; bit < 32; bit++) {
        plant p = {.place = RO_GUARD_AT_SUMS, .first = part, .every = 1, .times = 1};
        bool same;
        p.byte = (size_t)bit / 8 + 4 * 5, p.bit = bit % 8; /* row 0, column 5 */
        cr_expect(compare(ctx, x, &p, &same) == RO_OK && same);
        cr_expect(p.count == 1, "part %d, bit %d: %d found", part, bit, p.count);
        const ro_guard_finding *f = &p.found[0];
        cr_expect(f->kind == RO_GUARD_SUMS && f->row == 0 && f->rows == 1 && f->col == 5 &&
                      f->cols == 1 && f->chunk == 0 && f->product == 0,
                  "%s, %d bits, bit %d: row %d of %d, column %d of %d", ro_ctx_backend(ctx), bits,
                  bit, (int)f->row, (int)f->rows, (int)f->col, (int)f->cols);
    }
}

/* A product of 8 bits has several parts where rows or columns have two digits. */
static void flip_each_bit(ro_ctx *ctx, int bits) {
    const int of_8 = strcmp(ro_ctx_backend(ctx), "avx2") == 0 ? 2 : 4;
    product x = square;
    x.bits = bits, x.m = 12;
    fill_square();
    for (int part = 0; part < (bits == RO_FIXED_24 ? 3 : bits == RO_FIXED_16 ? 2 : 1); part++)
        flip_part(ctx, &x, part);
    make_uneven(5);
    for (int part = 0; bits == RO_FIXED_8 && part < of_8; part++)
        flip_part(ctx, &x, part);
}

Test(guard, finds_every_bit_of_a_sum_and_its_place) {
    cr_expect(with_checks(flip_each_bit, 1) == kernels_expected());
}

/* ---- errors that persist ---- */

static void flip_for_ever(ro_ctx *ctx, int bits) {
    product x = square;
    x.bits = bits;
    fill_square();
    plant p = {.place = RO_GUARD_AT_SUMS, .every = 1, .times = 1 << 30, .byte = 1, .bit = 3};
    bool same;
    cr_expect(compare(ctx, &x, &p, &same) == RO_ERR_DEVICE);
    cr_expect(strstr(ro_ctx_error(ctx), "computed twice"), "%s", ro_ctx_error(ctx));
    cr_expect(p.count >= 2 && p.found[0].again == 0 && p.found[1].again == 1);
}

Test(guard, ends_a_product_that_does_not_fit_twice) {
    cr_expect(with_checks(flip_for_ever, 1) == kernels_expected());
}

/* ---- operands that are packed once for several blocks ---- */

static void flip_shared(ro_ctx *ctx, int bits) {
    const product x = {1, 530, 540, 300, 0, bits};
    fill(a, 0, x.m * x.k, DATA_NORMAL);
    fill(b, 1, x.n * x.k, DATA_NORMAL);
    for (int place = RO_GUARD_AT_A; place <= RO_GUARD_AT_SCALE; place++) {
        plant p = {.place = (ro_guard_place)place, .every = 1, .times = 1, .byte = 4, .bit = 4};
        bool same;
        cr_expect(compare(ctx, &x, &p, &same) == RO_OK && same, "%s", ro_ctx_error(ctx));
        cr_expect(p.flipped == 1 && p.count >= 1, "%s, %d bits, place %d", ro_ctx_backend(ctx),
                  bits, place);
        for (int f = 0; f < p.count; f++)
            cr_expect(p.found[f].again == 0);
    }
}

Test(guard, packs_anew_what_several_blocks_read) {
    cr_expect(with_checks(flip_shared, 1) == kernels_expected());
}

/* ---- convolutions ---- */

enum { IMAGES = 3, SIDE = 11, CHANNELS = 20, FILTERS = 24, KERNEL = 3 };

/* Computes the gradient of weights (3 x 3), or a convolution of single pixels (1 x 1) whose pixels
 * are the rows of a product. */
static ro_status convolve(ro_ctx *ctx, int op, int bits, float *out, size_t *size) {
    const int64_t kernel = op == RO_OP_CONV2D_FIXED ? 1 : KERNEL, pad = kernel / 2;
    const ro_shape of_x = {RO_F32, 4, {IMAGES, SIDE, SIDE, CHANNELS}};
    const ro_shape of_y = {RO_F32, 4, {IMAGES, SIDE, SIDE, FILTERS}};
    const ro_shape of_w = {RO_F32, 4, {kernel, kernel, CHANNELS, FILTERS}};
    const ro_shape in[2] = {of_x, op == RO_OP_CONV2D_FIXED ? of_w : of_y};
    ro_call call = {.op = op, .input_count = 2, .input = in};
    char why[200];
    call.attr[RO_CONV2D_STRIDE_H] = call.attr[RO_CONV2D_STRIDE_W] = 1;
    call.attr[RO_CONV2D_DILATION_H] = call.attr[RO_CONV2D_DILATION_W] = 1;
    call.attr[RO_CONV2D_PAD_H] = call.attr[RO_CONV2D_PAD_W] = pad;
    call.attr[RO_CONV2D_GROUPS] = 1;
    call.attr[RO_CONV_FIXED_BITS] = bits;
    if (op == RO_OP_CONV2D_FIXED_DW)
        call.output = of_w;
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    *size = (size_t)ro_shape_numel(&call.output) * sizeof *out;
    return ro_run(ctx, &call, (const void *const[]){a, b}, out);
}

/* Without a flip nothing is found; with one at a place, exactly this flip is found. */
static void flip_convolution(ro_ctx *ctx, int op, int bits) {
    size_t size;
    fill(a, 0, IMAGES * SIDE * SIDE * CHANNELS, DATA_NORMAL);
    fill(b, 1, IMAGES * SIDE * SIDE * FILTERS, DATA_NORMAL);
    cr_assert(ro_ctx_guard(ctx, NULL) == RO_OK && convolve(ctx, op, bits, want, &size) == RO_OK);
    for (int place = 0; place <= RO_GUARD_AT_SUMS; place++)
        for (int bit = 0; bit < 32; bit += 5) {
            plant p = {.place = (ro_guard_place)place, .every = 1, .times = place ? 1 : 0};
            p.byte = (size_t)bit / 8, p.bit = bit % 8;
            guard(ctx, &p);
            memset(got, 0x5a, size);
            cr_expect(convolve(ctx, op, bits, got, &size) == RO_OK, "%s", ro_ctx_error(ctx));
            cr_expect(memcmp(want, got, size) == 0, "%s, operator %d, %d bits, place %d, bit %d",
                      ro_ctx_backend(ctx), op, bits, place, bit);
            cr_expect(p.count == (place != 0) && p.flipped == (place != 0),
                      "%s, operator %d, %d bits, place %d, bit %d: %d found", ro_ctx_backend(ctx),
                      op, bits, place, bit, p.count);
            if (place == RO_GUARD_AT_SUMS)
                cr_expect(p.found[0].kind == RO_GUARD_SUMS && p.found[0].row == 0 &&
                          p.found[0].rows == 1 && p.found[0].col == 0 && p.found[0].cols == 1);
        }
    plant p = {.place = RO_GUARD_AT_SUMS, .every = 1, .times = 1 << 30, .byte = 1};
    guard(ctx, &p);
    cr_expect(convolve(ctx, op, bits, got, &size) == RO_ERR_DEVICE);
}

static void flip_convolutions(ro_ctx *ctx, int bits) {
    flip_convolution(ctx, RO_OP_CONV2D_FIXED, bits);
    flip_convolution(ctx, RO_OP_CONV2D_FIXED_DW, bits);
}

Test(guard, finds_flips_in_convolutions_whose_windows_are_rows) {
    cr_expect(with_checks(flip_convolutions, 1) == kernels_expected());
}

/* ---- packed weights that are kept ---- */

static void flip_kept(ro_ctx *ctx, int bits) {
    const ro_linear_layer l = {
        .size = sizeof l, .rows = 40, .in = 300, .out = 70, .fixed_bits = bits};
    fill(a, 0, l.rows * l.in, DATA_NORMAL);
    fill(b, 1, l.in * l.out, DATA_NORMAL);
    const size_t size = ro_linear_packed_size(ctx, &l);
    uint8_t *packed = aligned_alloc(64, (size + 63) / 64 * 64);
    plant p = {0};
    guard(ctx, &p);
    cr_assert(ro_linear_pack(ctx, &l, b, packed) == RO_OK);
    cr_expect(ro_linear_packed(ctx, &l, a, packed, NULL, NULL, want) == RO_OK && p.count == 0);
    packed[128 + 40] ^= 4; /* in the data after the header */
    cr_expect(ro_linear_packed(ctx, &l, a, packed, NULL, NULL, got) == RO_ERR_DEVICE);
    cr_expect(p.count == 2 && p.found[0].kind == RO_GUARD_PACKED && p.found[0].col == 0 &&
              p.found[1].again == 1);
    free(packed);
}

Test(guard, finds_kept_weights_that_changed) {
    cr_expect(with_checks(flip_kept, 1) == kernels_expected());
}

Test(guard, reports_a_second_mismatch_after_many_first_ones) {
    plant p = {0};
    const ro_guard g = {sizeof g, 0, take, NULL, &p};
    ro_ctx *ctx = open_ctx("scalar", 1);
    ro_guard_log log = {.guard = &g};
    for (int row = 0; row < 40; row++)
        ro_guard_note(&log, &(ro_guard_finding){.row = row, .again = row == 20 || row == 30});
    cr_expect(ro_guard_end(ctx, &log) == RO_ERR_DEVICE);
    cr_expect(p.count == 16 && p.found[14].row == 14 && p.found[15].row == 20);
    ro_ctx_destroy(ctx);
}

Test(guard, refuses_a_structure_without_found) {
    ro_ctx *ctx = open_ctx("scalar", 1);
    ro_guard g = {.size = sizeof g};
    cr_expect(ro_ctx_guard(ctx, &g) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "found"));
    g = (ro_guard){.found = take};
    cr_expect(ro_ctx_guard(ctx, &g) == RO_ERR_ARG);
    cr_expect(ro_ctx_guard(NULL, NULL) == RO_ERR_ARG);
    cr_expect(ro_ctx_guards(ctx, RO_FIXED_16) == 0);
    ro_ctx_destroy(ctx);
}
