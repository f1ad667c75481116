/* The estimate is never below what kernels allocate for themselves. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "repops/repops.h"
#include "verde/exec/estimate.h"
#include "verde/graph/build.h"
#include "repops/op_product.h"
#include "repops/op_movement.h"
#include "repops/op_image.h"

static size_t taken; /* bytes that the context holds now */

typedef struct {
    size_t size;
    char pad[56]; /* keeps the blocks aligned */
} head;

static void *take(void *user, size_t size, size_t alignment) {
    (void)user;
    head *block =
        aligned_alloc(alignment, (sizeof *block + size + alignment - 1) / alignment * alignment);
    cr_assert(block && alignment <= sizeof *block);
    block->size = size;
    taken += size;
    return block + 1;
}

static void give(void *user, void *block) {
    (void)user;
    if (!block)
        return;
    taken -= ((head *)block - 1)->size;
    free((head *)block - 1);
}

typedef struct {
    vd_program program;
    ro_call call;
    ro_shape input[2];
} single;

static void open_single(single *o, vd_op op, const ro_shape *input) {
    *o = (single){.program = {0}};
    vd_builder b = vd_builder_of(&o->program, &o->program.step);
    const vd_value value[2] = {vd_add_leaf(&b, "a", &input[0]), vd_add_leaf(&b, "b", &input[1])};
    vd_emit(&b, "node", op, 2, value);
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    vd_builder_free(&b);
    vd_node_call(&o->program, &o->program.step, 0, &o->call, o->input);
}

/* The bytes that the call allocates. All elements are 0. */
static size_t truth(const single *o, int threads) {
    const ro_options options = {
        .size = sizeof options, .threads = threads, .alloc = take, .free = give};
    ro_ctx *ro;
    void *data[3];
    cr_assert(ro_ctx_create(&options, &ro) == RO_OK);
    for (int i = 0; i < 3; i++) {
        const ro_shape *shape = i < 2 ? &o->input[i] : &o->call.output;
        data[i] = calloc((size_t)ro_shape_numel(shape) + 16, 4);
        cr_assert(data[i]);
    }
    const size_t before = taken;
    const void *in[2] = {data[0], data[1]};
    cr_assert(ro_run(ro, &o->call, in, data[2]) == RO_OK, "%s", ro_ctx_error(ro));
    const size_t bytes = taken - before;
    ro_ctx_destroy(ro);
    for (int i = 0; i < 3; i++)
        free(data[i]);
    return bytes;
}

static void compare(vd_op op, const ro_shape *input) {
    single o;
    open_single(&o, op, input);
    for (int threads = 1; threads <= 8; threads *= 8) {
        const uint64_t estimate = vd_estimate_kernels(&o.program, threads);
        const size_t bytes = truth(&o, threads);
        cr_expect(bytes <= estimate,
                  "%s of %lld,%lld,... and %lld,%lld,...: %zu bytes, %llu estimated",
                  ro_op_describe(op.op)->name, (long long)input[0].dim[0],
                  (long long)input[0].dim[1], (long long)input[1].dim[0],
                  (long long)input[1].dim[1], bytes, (unsigned long long)estimate);
    }
    vd_program_free(&o.program);
}

static uint32_t number = 1;

static int64_t draw(int64_t most) {
    number = number * 1664525 + 1013904223;
    return 1 + (int64_t)(number >> 8) % most;
}

/* Draws a size, mostly a small one. Three sizes that share `room` = 2^20 have a product of at most
 * 2^20. */
static int64_t size(int64_t *room) {
    const int64_t most = *room < 4 ? *room : draw(4) == 1 ? *room : *room < 64 ? *room : 64;
    const int64_t n = draw(most);
    *room /= n;
    return n;
}

Test(estimate_kernels, products) {
    const int64_t one = ro_attr_f32(1);
    for (int i = 0; i < 150; i++) {
        int64_t room = 1 << 20, trans = draw(4) - 1;
        const int64_t m = size(&room), k = size(&room), n = size(&room);
        const ro_shape input[2] = {trans % 2 ? VD_SHAPE(RO_F32, k, m) : VD_SHAPE(RO_F32, m, k),
                                   trans / 2 ? VD_SHAPE(RO_F32, n, k) : VD_SHAPE(RO_F32, k, n)};
        compare((vd_op){RO_OP_MATMUL, {0, trans, one, 256}, NULL}, input);
        compare((vd_op){RO_OP_MATMUL_FIXED, {0, trans, one, draw(2) == 1 ? 16 : 24}, NULL}, input);
    }
}

static int is_too_large(const ro_shape *image, const ro_shape *kernel, const ro_shape *result) {
    const int64_t terms = ro_shape_numel(result) * ro_shape_numel(kernel) / kernel->dim[3];
    return terms > 1 << 21 || ro_shape_numel(image) > 1 << 20 || ro_shape_numel(kernel) > 1 << 20;
}

static void convolve(int forward) {
    const int64_t groups = draw(3) == 1 ? draw(16) : 1, depth = draw(40), width = draw(40);
    const int64_t stride = draw(2), pad = draw(8) - 1, dilation = draw(2);
    const int64_t height = draw(9), across = draw(draw(4) == 1 ? 600 : 40);
    const int64_t kernel[2] = {draw(height + 2 * pad), draw(across + 2 * pad)};
    const int64_t out[2] = {(height + 2 * pad - (kernel[0] - 1) * dilation - 1) / stride + 1,
                            (across + 2 * pad - (kernel[1] - 1) * dilation - 1) / stride + 1};
    if (height + 2 * pad <= (kernel[0] - 1) * dilation || out[0] < 1 ||
        across + 2 * pad <= (kernel[1] - 1) * dilation || out[1] < 1)
        return;
    const ro_shape x = VD_SHAPE(RO_F32, draw(3), height, across, groups * depth);
    const ro_shape w = VD_SHAPE(RO_F32, kernel[0], kernel[1], depth, groups * width);
    const ro_shape y = VD_SHAPE(RO_F32, x.dim[0], out[0], out[1], groups * width);
    if (is_too_large(&x, &w, &y))
        return;
    vd_op op = {
        forward,
        {stride, stride, pad, pad, dilation, dilation, groups, forward == RO_OP_CONV2D ? 0 : 24},
        NULL};
    compare(op, (ro_shape[]){x, w});
    op.op++, op.shape = &x;
    compare(op, (ro_shape[]){y, w});
    op.op++, op.shape = &w;
    compare(op, (ro_shape[]){x, y});
}

_Static_assert(RO_OP_CONV2D_DX == RO_OP_CONV2D + 1 && RO_OP_CONV2D_DW == RO_OP_CONV2D + 2, "");
_Static_assert(RO_OP_CONV2D_FIXED_DX == RO_OP_CONV2D_FIXED + 1 &&
                   RO_OP_CONV2D_FIXED_DW == RO_OP_CONV2D_FIXED + 2,
               "");

Test(estimate_kernels, convolutions) {
    for (int i = 0; i < 200; i++)
        convolve(i % 4 ? RO_OP_CONV2D : RO_OP_CONV2D_FIXED);
}

Test(estimate_kernels, large_operands) {
    const int64_t one = ro_attr_f32(1);
    const ro_shape a = VD_SHAPE(RO_F32, 300, 2000), half = VD_SHAPE(RO_BF16, 2000, 700);
    const ro_shape b = VD_SHAPE(RO_F32, 700, 2000);
    compare((vd_op){RO_OP_MATMUL, {0, 0, one, 256}, NULL}, (ro_shape[]){a, half});
    compare((vd_op){RO_OP_MATMUL, {0, 2, one, 256}, NULL}, (ro_shape[]){a, b});
    compare((vd_op){RO_OP_MATMUL_FIXED, {0, 2, one, 24}, NULL}, (ro_shape[]){a, b});
    const ro_shape wide = VD_SHAPE(RO_F32, 300, 5000), narrow = VD_SHAPE(RO_F32, 900, 300);
    compare((vd_op){RO_OP_MATMUL, {0, 0, one, 256}, NULL}, (ro_shape[]){narrow, wide});
    const ro_shape x = VD_SHAPE(RO_F32, 4, 24, 24, 64), w = VD_SHAPE(RO_F32, 3, 3, 64, 128);
    compare((vd_op){RO_OP_CONV2D, {1, 1, 1, 1, 1, 1, 1}, NULL}, (ro_shape[]){x, w});
    compare((vd_op){RO_OP_CONV2D_FIXED, {1, 1, 1, 1, 1, 1, 1, 24}, NULL}, (ro_shape[]){x, w});
}

Test(estimate_kernels, scattered_rows) {
    const ro_shape table = VD_SHAPE(RO_F32, 100000, 2);
    compare((vd_op){RO_OP_EMBEDDING_GRAD, {0}, &table},
            (ro_shape[]){VD_SHAPE(RO_F32, 5000, 2), VD_SHAPE(RO_I32, 5000)});
    const ro_shape axis = VD_SHAPE(RO_F32, 3, 70000, 2);
    compare((vd_op){RO_OP_GATHER_GRAD, {1}, &axis},
            (ro_shape[]){VD_SHAPE(RO_F32, 3, 9000, 2), VD_SHAPE(RO_I32, 9000)});
}
