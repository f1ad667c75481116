/* The kernels that compute FP32 products element by element (ro_ctx_plain of repops/guard.h) have
 * the bits of the usual kernels.
 *
 * Usage: plain [--device cuda:0] [--seeds N] [--first SEED]
 * Plain C and librepops alone: machines with a GPU may have nothing else. */
#include "repops/fused.h"
#include "repops/guard.h"
#include "repops/op_image.h"
#include "repops/op_product.h"
#include "repops/tools/op_data.h"
#include "tests/cuda/products.h"

enum { FILLED = 1 << 17 /* elements of each of a, b and the output */ };

static ro_status run_matmul(const tally *t, uint64_t seed) {
    const int64_t m = 1 + (int64_t)(seed * 7 % 40), n = 1 + (int64_t)(seed * 13 % 40);
    const int64_t k = (int64_t)(seed * 11 % 600), trans = (int64_t)(seed % 4);
    const ro_dtype of_b = seed / 4 % 3 == 0 ? RO_F32 : seed / 4 % 3 == 1 ? RO_BF16 : RO_F16;
    const ro_shape in[2] = {{RO_F32, 3, {2, trans & 1 ? k : m, trans & 1 ? m : k}},
                            {of_b, 3, {2, trans & 2 ? n : k, trans & 2 ? k : n}}};
    ro_call call = {.op = RO_OP_MATMUL, .input_count = 2, .input = in};
    call.attr[RO_MATMUL_BATCH_DIMS] = 1, call.attr[RO_MATMUL_TRANS] = trans;
    call.attr[RO_MATMUL_ALPHA] = ro_attr_f32(0.5f);
    call.attr[RO_MATMUL_CHUNK] = seed % 2 ? 256 : 128;
    return run_call(t, &call);
}

static ro_status run_layer(const tally *t, uint64_t seed) {
    const ro_linear_layer l = {.size = sizeof l,
                               .rows = 1 + (int64_t)(seed * 7 % 40),
                               .in = 1 + (int64_t)(seed * 11 % 600),
                               .out = 1 + (int64_t)(seed * 13 % 40),
                               .transposed = (int)(seed % 2),
                               .activation = seed % 3 ? RO_ACTIVATION_GELU : RO_ACTIVATION_NONE};
    return ro_linear(t->ctx, &l, t->a, t->b, t->a, l.activation ? t->z : NULL, t->out);
}

static ro_status run_conv(const tally *t, uint64_t seed) {
    const int64_t groups = 1 + (int64_t)(seed / 4 % 2), size = 3 - 2 * (int64_t)(seed / 8 % 2);
    const ro_shape in[2] = {{RO_F32, 4, {2, 9, 7, 4 * groups}},
                            {RO_F32, 4, {size, size, 4, 6 * groups}}};
    ro_call call = {.op = RO_OP_CONV2D, .input_count = 2, .input = in};
    call.attr[RO_CONV2D_STRIDE_H] = call.attr[RO_CONV2D_STRIDE_W] = 1 + (int64_t)(seed / 2 % 2);
    call.attr[RO_CONV2D_DILATION_H] = call.attr[RO_CONV2D_DILATION_W] = 1;
    call.attr[RO_CONV2D_PAD_H] = call.attr[RO_CONV2D_PAD_W] = size / 2;
    call.attr[RO_CONV2D_GROUPS] = groups;
    return run_call(t, &call);
}

/* Fills a and b, which may be read as bf16 and f16, too. */
static ro_status fill(const tally *t, uint64_t seed) {
    const data_class class = seed % 5 ? DATA_NORMAL : DATA_SPECIAL;
    ro_status status = RO_OK;
    for (int i = 0; i < 2 && status == RO_OK; i++) {
        for (int e = 0; e < FILLED; e++) {
            const uint32_t word = case_f32(case_word(seed, i, e), class);
            memcpy(&t->host[e], &word, sizeof word);
        }
        status = ro_write(t->ctx, i ? t->b : t->a, t->host, FILLED * sizeof *t->host);
    }
    return status;
}

/* Runs a product with the usual kernels, then element by element. */
static void compare(tally *t, uint64_t seed) {
    static ro_status (*const kinds[])(const tally *, uint64_t) = {run_matmul, run_layer, run_conv};
    const size_t size = FILLED * sizeof(float);
    ro_status status = fill(t, seed);
    for (int on = 0; on < 2 && status == RO_OK; on++) {
        memset(t->host, 0x5a, size);
        status = ro_write(t->ctx, t->out, t->host, size);
        if (!ro_ctx_plain(t->ctx, on))
            t->failed++, printf("  the device has no kernels of single elements\n");
        if (status == RO_OK)
            status = kinds[seed % 3](t, seed / 3);
        if (status == RO_OK)
            status = ro_read(t->ctx, on ? t->got : t->want, t->out, size);
    }
    ro_ctx_plain(t->ctx, 0);
    if (status != RO_OK || memcmp(t->want, t->got, size) != 0) {
        t->failed++;
        printf("  seed %llu: single elements differ: %s\n", (unsigned long long)seed,
               status == RO_OK ? "other bits" : ro_ctx_error(t->ctx));
    }
    t->products++;
}

static int run_all(tally *t, const options *o) {
    for (uint64_t s = 0; s < o->seeds; s++)
        compare(t, o->first + s);
    printf("%s: %ld products by single elements; %ld differ\n", ro_ctx_device(t->ctx), t->products,
           t->failed);
    return t->failed ? 1 : 0;
}

int main(int argc, char **argv) {
    options o = {.device = "cuda:0", .seeds = 72, .first = 0};
    tally t = {0};
    int code = 2;
    if (!parse_options(argc, argv, &o) || o.wanted_count > 0)
        fprintf(stderr, "usage: plain [--device NAME] [--seeds N] [--first SEED]\n");
    else if (open_all(&t, &o, "plain", FILLED))
        code = run_all(&t, &o);
    close_all(&t);
    return code;
}
