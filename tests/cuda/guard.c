/* Checked sums of fixed products on a device (repops/guard.h): checks change no bit and report
 * nothing if nothing is wrong; a bit flip in packed numbers, scales or sums is found, reported and
 * corrected.
 *
 * Usage: guard [--device cuda:0] [--seeds N] [NAME...]: N products of each kind, and N flips of
 * each place. NAME `gpt2` computes products of GPT-2 124M, whose instructions the
 * emulator of PTX counts (PTX_REPORT). Plain C and librepops alone: machines with a GPU may have
 * nothing else. */
#include "repops/fused.h"
#include "repops/guard.h"
#include "repops/op_product.h"
#include "repops/tools/op_data.h"
#include "tests/cuda/guard_convs.h"
#include "tests/cuda/products.h"

enum { ELEMENTS = 1 << 22, FOUND_MOST = 16 };

typedef struct {
    int64_t batch, m, n, k;
    int trans, bits, layer; /* layer: a linear layer with GELU that stores its product */
    conv conv;              /* the convolution whose product it is; k are its steps */
} product;

/* Flips one bit at visit `first` of its place, or at every visit from there on. */
typedef struct {
    ro_guard_place place;
    int64_t first, seen, flipped;
    int for_ever;
    size_t byte;
    int bit;
    ro_guard_finding found[FOUND_MOST];
    int count;
} plant;

static void take(void *user, const ro_guard_finding *finding) {
    plant *p = user;
    if (p->count < FOUND_MOST)
        p->found[p->count++] = *finding;
}

static void alter(void *user, ro_guard_place place, void *data, size_t size) {
    plant *p = user;
    if (place != p->place || p->seen++ < p->first || (p->flipped && !p->for_ever))
        return;
    ((uint8_t *)data)[p->byte % size] ^= (uint8_t)(1u << p->bit);
    p->flipped++;
}

/* ---- products ---- */

static ro_status run_matmul(const tally *t, const product *p) {
    const int64_t m = p->m, n = p->n, k = p->k;
    const ro_shape in[2] = {{RO_F32, 3, {p->batch, p->trans & 1 ? k : m, p->trans & 1 ? m : k}},
                            {RO_F32, 3, {p->batch, p->trans & 2 ? n : k, p->trans & 2 ? k : n}}};
    ro_call call = {.op = RO_OP_MATMUL_FIXED, .input_count = 2, .input = in};
    call.attr[RO_MATMUL_FIXED_BATCH_DIMS] = 1;
    call.attr[RO_MATMUL_FIXED_TRANS] = p->trans;
    call.attr[RO_MATMUL_FIXED_ALPHA] = ro_attr_f32(0.5f);
    call.attr[RO_MATMUL_FIXED_BITS] = p->bits;
    return run_call(t, &call);
}

static ro_status run_layer(const tally *t, const product *p) {
    const ro_linear_layer l = {.size = sizeof l,
                               .rows = p->m,
                               .in = p->k,
                               .out = p->n,
                               .transposed = p->trans >> 1,
                               .activation = RO_ACTIVATION_GELU,
                               .fixed_bits = p->bits};
    return ro_linear(t->ctx, &l, t->a, t->b, NULL, t->z, t->out);
}

static size_t size_of(const product *p) {
    const ro_shape of_conv = conv_output(&p->conv);
    if (p->conv.op)
        return (size_t)ro_shape_numel(&of_conv) * sizeof(float);
    return (size_t)(p->batch * p->m * p->n) * sizeof(float);
}

static ro_status run(const tally *t, const product *p, float *to) {
    const ro_status status = p->conv.op ? run_conv(t, &p->conv, p->bits)
                             : p->layer ? run_layer(t, p)
                                        : run_matmul(t, p);
    return status == RO_OK ? ro_read(t->ctx, to, t->out, size_of(p)) : status;
}

static void fail(tally *t, const product *p, const char *what) {
    t->failed++;
    printf("  %s: %d bits, %lld of %lld x %lld x %lld, trans %d%s: %s\n", what, p->bits,
           (long long)p->batch, (long long)p->m, (long long)p->n, (long long)p->k, p->trans,
           p->conv.op ? ", a convolution"
           : p->layer ? ", a layer"
                      : "",
           ro_ctx_error(t->ctx));
}

/* Fills a and b, and computes the expected result without checks. uneven: two of three numbers are
 * small in every fifth line, so that these lines have two digits if integers have 8 bits. */
static ro_status fill(tally *t, const product *p, uint64_t seed, data_class class, int uneven) {
    const int64_t count[2] = {p->batch * p->m * p->k, p->batch * p->k * p->n};
    ro_status status = ro_ctx_guard(t->ctx, NULL);
    for (int i = 0; i < 2 && status == RO_OK; i++) {
        for (int64_t e = 0; e < count[i]; e++) {
            const uint32_t word = case_f32(case_word(seed, i, e), class);
            memcpy(&t->host[e], &word, sizeof word);
            const int64_t line = i ? e % p->n : e / p->k, k = i ? e / p->n : e % p->k;
            if (uneven && line % 5 == 0 && k % 3)
                t->host[e] *= 0x1p-7f;
        }
        status = ro_write(t->ctx, i ? t->b : t->a, t->host, (size_t)count[i] * sizeof *t->host);
    }
    return status == RO_OK ? run(t, p, t->want) : status;
}

/* Computes `p` with checks; *same: the result is the expected one. */
static ro_status compare(tally *t, const product *p, plant *x, int flips, int *same) {
    const ro_guard guard = {sizeof guard, 0, take, flips ? alter : NULL, x};
    ro_status status = ro_ctx_guard(t->ctx, &guard);
    memset(t->got, 0x5a, size_of(p));
    if (status == RO_OK)
        status = run(t, p, t->got);
    *same = memcmp(t->want, t->got, size_of(p)) == 0;
    return status;
}

/* ---- no flip ---- */

/* status: of filling. */
static void expect_nothing(tally *t, const product *p, ro_status status) {
    plant none = {0};
    int same = 0;
    if (status == RO_OK)
        status = compare(t, p, &none, 0, &same);
    if (status != RO_OK || !same || none.count)
        fail(t, p, status == RO_OK && same ? "something is found" : "other bits with checks");
    t->products++;
}

static void find_nothing(tally *t, uint64_t seed) {
    static const int64_t sizes[][4] = {{1, 1, 1, 1},    {2, 13, 33, 300}, {1, 140, 17, 513},
                                       {3, 9, 130, 57}, {1, 5, 16, 64},   {1, 20, 31, 1025}};
    const int64_t *s = sizes[seed % 6];
    const product p = {seed / 6 % 2 ? 1 : s[0],
                       s[1],
                       s[2],
                       s[3],
                       (int)(seed / 6 % 2 ? seed / 12 % 2 * 2 : seed / 12 % 4),
                       (int)(8 + seed % 3 * 8),
                       (int)(seed / 6 % 2)};
    expect_nothing(t, &p, fill(t, &p, seed, (data_class)(seed / 2 % DATA_END), seed % 2 == 0));
}

static product conv_product(uint64_t seed, int64_t images) {
    static const int ops[] = {RO_OP_CONV2D_FIXED, RO_OP_CONV2D_FIXED_DX, RO_OP_CONV2D_FIXED_DW};
    product p = {.bits = (int)(8 + seed % 3 * 8),
                 .conv = {ops[seed / 3 % 3], images, 9, 5 + (int64_t)(seed % 2), 33}};
    p.k = conv_steps(&p.conv);
    return p;
}

/* Fills both inputs of a convolution, and computes what is right, without checks. */
static ro_status fill_conv(tally *t, const product *p, uint64_t seed) {
    ro_status status = ro_ctx_guard(t->ctx, NULL);
    for (int i = 0; i < 2 && status == RO_OK; i++) {
        const ro_shape shape = conv_input(&p->conv, i);
        const int64_t count = ro_shape_numel(&shape);
        for (int64_t e = 0; e < count; e++) {
            const uint32_t word = case_f32(case_word(seed, i, e), DATA_NORMAL);
            memcpy(&t->host[e], &word, sizeof word);
        }
        status = ro_write(t->ctx, i ? t->b : t->a, t->host, (size_t)count * sizeof *t->host);
    }
    return status == RO_OK ? run(t, p, t->want) : status;
}

/* With 5 images the gradient of weights has too many steps for one of the simulator's slabs. */
static void find_nothing_in_convs(tally *t, uint64_t seed) {
    const product p = conv_product(seed, seed % 2 ? 5 : 3);
    expect_nothing(t, &p, fill_conv(t, &p, seed));
}

/* Products in layers of GPT-2 124M for 256 tokens, and a weight gradient. */
static void gpt2(tally *t, uint64_t seed) {
    static const int64_t sizes[][3] = {
        {256, 768, 768}, {256, 2304, 768}, {256, 3072, 768}, {256, 768, 3072}, {768, 3072, 256}};
    const int64_t *s = sizes[seed / 3 % 5];
    const product p = {1, s[0], s[1], s[2], 0, (int)(8 + seed % 3 * 8), 0};
    expect_nothing(t, &p, fill(t, &p, seed, DATA_NORMAL, 0));
}

/* ---- one bit flip ---- */

static const char *judge(const product *p, const plant *x, ro_status status, int same) {
    const ro_guard_finding *f = &x->found[0];
    const int sums = x->place == RO_GUARD_AT_SUMS;
    const int later = p->conv.op && x->first > 0; /* in row 0 of a later slab */
    if (x->flipped != 1)
        return "nothing was flipped";
    if (status != RO_OK || !same)
        return "a flip is not mended";
    if (x->count != 1 || f->again)
        return "a flip is not found, once";
    if (f->kind != (sums ? RO_GUARD_SUMS : RO_GUARD_PACKED) || f->product != 0 || f->chunk < 0 ||
        f->chunk >= (p->k + 255) / 256)
        return "a flip is found as another one";
    if (sums && ((later ? f->row < 1 : f->row != 0) || f->rows != 1 || f->cols > 1 ||
                 f->col != (f->cols ? (int64_t)(x->byte / 4) : -1)))
        return "a flip is found elsewhere";
    return NULL;
}

/* visit: of sums, a part of a chunk; visits count on through the chunks. */
static void flip(tally *t, const product *p, ro_guard_place place, int64_t visit, size_t byte,
                 int bit) {
    plant x = {.place = place, .first = visit, .byte = byte, .bit = bit};
    int same;
    const ro_status status = compare(t, p, &x, 1, &same);
    const char *const wrong = judge(p, &x, status, same);
    if (wrong) {
        fail(t, p, wrong);
        printf("    place %d, visit %d, byte %d, bit %d: %d found, kind %d, row %d, column %d of "
               "%d\n",
               (int)place, (int)visit, (int)byte, bit, x.count, (int)x.found[0].kind,
               (int)x.found[0].row, (int)x.found[0].col, (int)x.found[0].cols);
    }
    t->flips++;
}

static int parts_of(int bits) {
    return bits == RO_FIXED_24 ? 5 : 3;
}

/* Flips in each place of a product; a byte of sums belongs to column byte / 4. */
static void flip_places(tally *t, uint64_t seed) {
    const product p = {1, 35, 33, 290, 0, (int)(8 + seed % 3 * 8), (int)(seed / 3 % 2)};
    const int parts = parts_of(p.bits), uneven = p.bits == RO_FIXED_8;
    const int bit = (int)(seed / 3 % 32);
    if (fill(t, &p, seed, DATA_NORMAL, uneven) != RO_OK) {
        fail(t, &p, "data");
        return;
    }
    flip(t, &p, RO_GUARD_AT_A, 0, seed % 32 * 16 + (size_t)bit / 8, bit % 8);
    flip(t, &p, RO_GUARD_AT_B, 0, seed % 32 * 16 + (size_t)bit / 8, bit % 8);
    flip(t, &p, RO_GUARD_AT_SCALE, 0, seed % 16 * 4 + (size_t)bit / 8, bit % 8);
    flip(t, &p, RO_GUARD_AT_SUMS, (int64_t)(seed % (uint64_t)(2 * parts)),
         seed * 5 % 32 * 4 + (size_t)bit / 8, bit % 8);
}

/* Flips in windows, filters, their scales and sums of a slab. */
static void flip_slab(tally *t, uint64_t seed, int slab) {
    const product p = conv_product(seed, 3);
    const int bit = (int)(seed / 3 % 32);
    const int64_t sums = (p.k + 255) / 256 * parts_of(p.bits);
    if (fill_conv(t, &p, seed) != RO_OK) {
        fail(t, &p, "data");
        return;
    }
    flip(t, &p, RO_GUARD_AT_A, slab, seed % 32 * 16 + (size_t)bit / 8, bit % 8);
    flip(t, &p, RO_GUARD_AT_B, slab, seed % 32 * 16 + (size_t)bit / 8, bit % 8);
    flip(t, &p, RO_GUARD_AT_SCALE, slab, seed % 16 * 4 + (size_t)bit / 8, bit % 8);
    flip(t, &p, RO_GUARD_AT_SUMS, slab * sums, seed * 5 % 32 * 4 + (size_t)bit / 8, bit % 8);
}

static void flip_convs(tally *t, uint64_t seed) {
    flip_slab(t, seed, 0);
}

/* Only the simulator's slabs are so small that there is a second one. */
static void flip_second_slab(tally *t, uint64_t seed) {
    if (conv_product(seed, 3).conv.op != RO_OP_CONV2D_FIXED_DW)
        flip_slab(t, seed, 1);
}

/* Flips two bits of each sum of the first chunk in column 0, whose row and column have two
 * digits. */
static void flip_bits(tally *t, uint64_t seed) {
    const product p = {1, 17, 33, 260, 0, (int)(8 + seed % 3 * 8), 0};
    if (fill(t, &p, seed, DATA_NORMAL, 1) != RO_OK) {
        fail(t, &p, "data");
        return;
    }
    for (int part = 0; part < parts_of(p.bits); part++)
        for (int i = 0; i < 2; i++) {
            const int bit = (int)(seed / 3 % 16) + 16 * i;
            flip(t, &p, RO_GUARD_AT_SUMS, part, (size_t)bit / 8, bit % 8);
        }
}

/* ---- flips that repeat ---- */

static void flip_for_ever(tally *t, uint64_t seed) {
    const product p = {1, 17, 33, 260, 0, (int)(8 + seed % 3 * 8), 0};
    plant x = {.place = RO_GUARD_AT_SUMS, .for_ever = 1, .byte = 1, .bit = 3};
    int same;
    if (fill(t, &p, seed, DATA_NORMAL, 0) != RO_OK ||
        compare(t, &p, &x, 1, &same) != RO_ERR_DEVICE ||
        !strstr(ro_ctx_error(t->ctx), "computed twice") || x.count != 2 || x.found[0].again ||
        !x.found[1].again)
        fail(t, &p, "a product that does not fit twice goes on");
    t->flips++;
}

/* ---- all of them ---- */

static int run_all(tally *t, const options *o) {
    static const struct {
        const char *name;
        void (*run)(tally *t, uint64_t seed);
        int if_named;
    } all[] = {{"nothing", find_nothing, 0},   {"convs", find_nothing_in_convs, 0},
               {"conv_places", flip_convs, 0}, {"conv_slabs", flip_second_slab, 1},
               {"places", flip_places, 0},     {"bits", flip_bits, 0},
               {"for_ever", flip_for_ever, 0}, {"gpt2", gpt2, 1}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (uint64_t s = 0; is_wanted(o, all[i].name) && s < o->seeds; s++)
            if (!all[i].if_named || o->wanted_count > 0)
                all[i].run(t, o->first + s);
    printf("%s: %ld products with checks, %ld flips; %ld wrong\n", ro_ctx_device(t->ctx),
           t->products, t->flips, t->failed);
    return t->failed ? 1 : 0;
}

int main(int argc, char **argv) {
    options o = {.device = "cuda:0", .seeds = 24, .first = 0};
    tally t = {0};
    int code = 2;
    if (!parse_options(argc, argv, &o))
        fprintf(stderr, "usage: guard [--device NAME] [--seeds N] [--first SEED] [NAME...]\n");
    else if (open_all(&t, &o, "guard", ELEMENTS))
        code = run_all(&t, &o);
    close_all(&t);
    return code;
}
