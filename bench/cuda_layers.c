/* Linear layers beside our own product, addition and GELU one by one; fixed convolutions of
 * ResNet-50 (B=32, 224 x 224) beside ours in FP32; packing in fixed products. */
#include "bench/cuda.h"
#include "bench/cuda_packing.h"
#include "repops/fused.h"
#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_product.h"
#include "repops/op_function.h"

#include <stdio.h>

static const char *prefix_of(int fixed_bits) {
    return fixed_bits == 0 ? "" : fixed_bits == RO_FIXED_24 ? "fixed24 " : "fixed16 ";
}

/* ---- linear layers ---- */

typedef struct {
    const bench *b;
    ro_linear_layer layer;
    const float *x, *w, *bias;
    float *z, *y;
} layer_work;

static int run_layer(void *user, int times) {
    const layer_work *l = user;
    const int gelu = l->layer.activation != RO_ACTIVATION_NONE;
    for (int i = 0; i < times; i++)
        if (ro_linear(l->b->ctx, &l->layer, l->x, l->w, l->bias, gelu ? l->z : NULL, l->y) != RO_OK)
            return 0;
    return ro_wait(l->b->ctx) == RO_OK;
}

static int run_layer_operators(void *user, int times) {
    const layer_work *l = user;
    const ro_linear_layer *s = &l->layer;
    const ro_shape in[] = {{RO_F32, 2, {s->rows, s->in}}, {RO_F32, 2, {s->in, s->out}}};
    const ro_shape sum[] = {{RO_F32, 2, {s->rows, s->out}}, {RO_F32, 1, {s->out}}};
    const ro_call product = {s->fixed_bits ? RO_OP_MATMUL_FIXED : RO_OP_MATMUL,
                             2,
                             {0, 0, ro_attr_f32(1), s->fixed_bits ? s->fixed_bits : 256},
                             in,
                             sum[0]};
    const ro_call add = {RO_OP_ADD, 2, {0}, sum, sum[0]};
    const ro_call gelu = {RO_OP_GELU, 1, {0}, sum, sum[0]};
    for (int i = 0; i < times; i++)
        if (ro_run(l->b->ctx, &product, (const void *[]){l->x, l->w}, l->z) != RO_OK ||
            ro_run(l->b->ctx, &add, (const void *[]){l->z, l->bias}, l->z) != RO_OK ||
            (s->activation != RO_ACTIVATION_NONE &&
             ro_run(l->b->ctx, &gelu, (const void *[]){l->z}, l->y) != RO_OK))
            return 0;
    return ro_wait(l->b->ctx) == RO_OK;
}

static void bench_layer(const bench *b, const char *name, int64_t out, ro_activation activation,
                        int fixed_bits) {
    double ours, theirs;
    char note[80], work[40];
    const int64_t rows = b->small ? 40 : 8192, in = b->small ? 30 : 768;
    layer_work l = {.b = b,
                    .layer = {.size = sizeof l.layer,
                              .activation = activation,
                              .rows = rows,
                              .in = in,
                              .out = out,
                              .fixed_bits = fixed_bits}};
    snprintf(work, sizeof work, "%s%s", prefix_of(fixed_bits), name);
    float *const memory[] = {bench_memory(b, rows * in), bench_memory(b, in * out),
                             bench_memory(b, out), bench_memory(b, rows * out),
                             bench_memory(b, rows * out)};
    l.x = memory[0], l.w = memory[1], l.bias = memory[2], l.z = memory[3], l.y = memory[4];
    bench_times(b, (turn){run_layer, &l}, (turn){run_layer_operators, &l}, &ours, &theirs);
    snprintf(note, sizeof note, "%.1f TFLOP/s; beside our operators one by one",
             2e-12 * (double)rows * (double)in * (double)out / ours);
    bench_row(b, work, 1e3 * ours, 1e3 * theirs, theirs > 0 ? theirs / ours : 0, 1, note);
    for (int i = 0; i < 5; i++)
        ro_free(b->ctx, memory[i]);
}

void bench_layers(const bench *b) {
    static const int bits[] = {0, RO_FIXED_24, RO_FIXED_16};
    for (int i = 0; i < 3; i++) {
        bench_layer(b, "gpt2 qkv, bias", b->small ? 50 : 2304, RO_ACTIVATION_NONE, bits[i]);
        bench_layer(b, "gpt2 up, bias, gelu", b->small ? 50 : 3072, RO_ACTIVATION_GELU, bits[i]);
    }
}

/* ---- convolutions ---- */

typedef struct {
    const char *name;
    int op; /* conv2d or a gradient, in FP32 */
    int64_t image, depth, filters, kernel, stride;
} conv_shape;

static const conv_shape convolutions[] = {
    {"stem 7x7/2", RO_OP_CONV2D, 224, 3, 64, 7, 2},
    {"stage 1 3x3", RO_OP_CONV2D, 56, 64, 64, 3, 1},
    {"stage 1 1x1", RO_OP_CONV2D, 56, 64, 256, 1, 1},
    {"stage 2 3x3", RO_OP_CONV2D, 28, 128, 128, 3, 1},
    {"stage 2 3x3, dx", RO_OP_CONV2D_DX, 28, 128, 128, 3, 1},
    {"stage 2 3x3, dw", RO_OP_CONV2D_DW, 28, 128, 128, 3, 1},
    {"stage 3 3x3/2", RO_OP_CONV2D, 28, 256, 256, 3, 2},
    {"stage 3 3x3/2, dx", RO_OP_CONV2D_DX, 28, 256, 256, 3, 2},
    {"stage 3 3x3/2, dw", RO_OP_CONV2D_DW, 28, 256, 256, 3, 2},
    {"stage 4 3x3", RO_OP_CONV2D, 7, 512, 512, 3, 1},
    {"stage 4 1x1", RO_OP_CONV2D, 7, 512, 2048, 1, 1},
};
static const conv_shape small_convolutions[] = {
    {"3x3", RO_OP_CONV2D, 6, 8, 16, 3, 1},
    {"3x3/2, dx", RO_OP_CONV2D_DX, 6, 8, 16, 3, 2},
    {"3x3, dw", RO_OP_CONV2D_DW, 6, 8, 16, 3, 1},
};

typedef struct {
    const bench *b;
    ro_shape in[2];
    ro_call call;
    const float *a, *w;
    float *out;
} conv_work;

static int run_conv(void *user, int times) {
    const conv_work *c = user;
    for (int i = 0; i < times; i++)
        if (ro_run(c->b->ctx, &c->call, (const void *[]){c->a, c->w}, c->out) != RO_OK)
            return 0;
    return ro_wait(c->b->ctx) == RO_OK;
}

static void set_call(conv_work *c, const conv_shape *s, int fixed_bits) {
    const int64_t images = c->b->small ? 2 : 32, pad = s->kernel / 2;
    const int64_t size = (s->image + 2 * pad - s->kernel) / s->stride + 1;
    const ro_shape x = {RO_F32, 4, {images, s->image, s->image, s->depth}};
    const ro_shape w = {RO_F32, 4, {s->kernel, s->kernel, s->depth, s->filters}};
    const ro_shape y = {RO_F32, 4, {images, size, size, s->filters}};
    c->in[0] = s->op == RO_OP_CONV2D_DX ? y : x, c->in[1] = s->op == RO_OP_CONV2D_DW ? y : w;
    c->call = (ro_call){.op = s->op + (fixed_bits ? RO_OP_CONV2D_FIXED - RO_OP_CONV2D : 0),
                        .input_count = 2,
                        .attr = {s->stride, s->stride, pad, pad, 1, 1, 1, fixed_bits},
                        .input = c->in,
                        .output = s->op == RO_OP_CONV2D_DX   ? x
                                  : s->op == RO_OP_CONV2D_DW ? w
                                                             : y};
}

/* Returns the number of scalar multiplications, those with padding included. */
static double products_of(const conv_work *c, const conv_shape *s) {
    const ro_shape *y = s->op == RO_OP_CONV2D      ? &c->call.output
                        : s->op == RO_OP_CONV2D_DX ? &c->in[0]
                                                   : &c->in[1];
    return (double)ro_shape_numel(y) * (double)(s->kernel * s->kernel * s->depth);
}

static void bench_conv(const bench *b, const conv_shape *s, int fixed_bits) {
    double ours, theirs;
    char note[80], name[40], why[80];
    conv_work fixed = {.b = b}, plain;
    set_call(&fixed, s, fixed_bits);
    snprintf(name, sizeof name, "%s%s", prefix_of(fixed_bits), s->name);
    if (ro_infer(&fixed.call, why, sizeof why) != RO_OK) {
        bench_failed(b, name, why);
        return;
    }
    float *const memory[] = {bench_memory(b, ro_shape_numel(&fixed.in[0])),
                             bench_memory(b, ro_shape_numel(&fixed.in[1])),
                             bench_memory(b, ro_shape_numel(&fixed.call.output))};
    fixed.a = memory[0], fixed.w = memory[1], fixed.out = memory[2];
    plain = fixed;
    set_call(&plain, s, 0);
    bench_times(b, (turn){run_conv, &fixed}, (turn){run_conv, &plain}, &ours, &theirs);
    snprintf(note, sizeof note, "%.1f TFLOP/s; beside ours in FP32",
             2e-12 * products_of(&fixed, s) / ours);
    bench_row(b, name, 1e3 * ours, 1e3 * theirs, theirs > 0 ? theirs / ours : 0, 1, note);
    for (int i = 0; i < 3; i++)
        ro_free(b->ctx, memory[i]);
}

void bench_convolutions(const bench *b) {
    const size_t count = b->small ? sizeof small_convolutions / sizeof *small_convolutions
                                  : sizeof convolutions / sizeof *convolutions;
    for (size_t i = 0; i < count; i++)
        for (int bits = RO_FIXED_24; bits >= RO_FIXED_16; bits -= 8)
            bench_conv(b, b->small ? &small_convolutions[i] : &convolutions[i], bits);
}

/* ---- packing ---- */

typedef struct {
    const bench *b;
    int bits;
    packing_operand operand[2];
    void *packed;
} packing_work;

static int run_packing(void *user, int times) {
    const packing_work *p = user;
    for (int i = 0; i < times; i++)
        if (!packing_run(p->bits, &p->operand[0], p->packed) ||
            !packing_run(p->bits, &p->operand[1], p->packed))
            return 0;
    return packing_wait();
}

/* Times packing of both operands of a product beside the whole product. trans: bit 0: a is k x m;
 * bit 1: b is n x k. */
static void bench_packing_of(const bench *b, const char *name, int trans, int64_t m, int64_t n,
                             int64_t k, int bits) {
    double ours, theirs;
    char note[80], what[40];
    const ro_shape in[] = {{RO_F32, 2, {trans & 1 ? k : m, trans & 1 ? m : k}},
                           {RO_F32, 2, {trans & 2 ? n : k, trans & 2 ? k : n}}};
    conv_work product = {.b = b, .in = {in[0], in[1]}};
    float *const memory[] = {bench_memory(b, m * k), bench_memory(b, k * n), bench_memory(b, m * n),
                             bench_memory(b, (m > n ? m : n) * (k + 256) + 4096)};
    product.call = (ro_call){
        RO_OP_MATMUL_FIXED, 2, {0, trans, ro_attr_f32(1), bits}, product.in, {RO_F32, 2, {m, n}}};
    product.a = memory[0], product.w = memory[1], product.out = memory[2];
    packing_work p = {
        b, bits, {{memory[0], m, k, !(trans & 1)}, {memory[1], n, k, trans & 2}}, memory[3]};
    bench_times(b, (turn){run_packing, &p}, (turn){run_conv, &product}, &ours, &theirs);
    snprintf(what, sizeof what, "%s%s, packing", prefix_of(bits), name);
    snprintf(note, sizeof note, "%.2f TB/s; beside the whole product: a share",
             1e-12 * (double)((m + n) * k) * (4 + bits / 8 + 0.125) / ours);
    bench_row(b, what, 1e3 * ours, 1e3 * theirs, theirs > 0 ? ours / theirs : 0, 0, note);
    for (int i = 0; i < 4; i++)
        ro_free(b->ctx, memory[i]);
}

/* Does nothing on the shim, whose memory the packing kernel, on a device, cannot read. */
void bench_packing(const bench *b) {
    for (int bits = RO_FIXED_24; bits >= RO_FIXED_16 && !b->small; bits -= 8) {
        bench_packing_of(b, "4096", 0, 4096, 4096, 4096, bits);
        bench_packing_of(b, "gpt2 up", 0, 8192, 3072, 768, bits);
        bench_packing_of(b, "gpt2 up, dx", 2, 8192, 768, 3072, bits);
        bench_packing_of(b, "gpt2 up, dw", 1, 768, 3072, 8192, bits);
        bench_packing_of(b, "gpt2 logits", 2, 8192, 50257, 768, bits);
    }
}
