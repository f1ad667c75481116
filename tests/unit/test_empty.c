/* Tensors without elements: repops/SPEC.md section 4. */
#include "repops/ref.h"
#include "valid_calls.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
#define I(n, ...) {RO_I32, n, {__VA_ARGS__}}
#define U(n, ...) {RO_U8, n, {__VA_ARGS__}}
/* clang-format on */

enum { MINUS_INFINITY = (int)0xff800000 };

/* Every element of the output is `want`. Inputs that have elements are all zeros. */
typedef struct {
    const char *shows;
    int op;
    int64_t attr[RO_MAX_ATTRS];
    int input_count;
    ro_shape input[7], output;
    uint32_t want;
} empty_case;

static const empty_case cases[] = {
    {"fill", RO_OP_FILL, {FLOAT_1}, 0, {{0}}, F(2, 0, 3), 0},
    {"normal", RO_OP_NORMAL, {0, 0, 0, 0}, 0, {{0}}, F(1, 0), 0},
    {"uniform", RO_OP_UNIFORM, {0, 0, 0, 0}, 0, {{0}}, F(1, 0), 0},
    {"iota", RO_OP_IOTA, {0}, 0, {{0}}, I(1, 0), 0},
    {"permutation", RO_OP_PERMUTATION, {0, 0}, 1, {I(1, 1)}, I(1, 0), 0},
    {"embedding, no ids", RO_OP_EMBEDDING, {0}, 2, {F(2, 3, 4), I(1, 0)}, F(2, 0, 4), 0},
    {"embedding, no rows",
     RO_OP_EMBEDDING,
     {0},
     2,
     {F(2, 0, 4), I(1, 2)},
     F(2, 2, 4),
     RO_QNAN_BITS},
    {"embedding_grad, no ids", RO_OP_EMBEDDING_GRAD, {0}, 2, {F(2, 0, 4), I(1, 0)}, F(2, 3, 4), 0},
    {"embedding_grad, no columns",
     RO_OP_EMBEDDING_GRAD,
     {0},
     2,
     {F(2, 5, 0), I(1, 5)},
     F(2, 3, 0),
     0},
    {"split_heads", RO_OP_SPLIT_HEADS, {3, 0, 2}, 1, {F(3, 2, 0, 12)}, F(4, 2, 2, 0, 2), 0},
    {"join_heads", RO_OP_JOIN_HEADS, {0}, 1, {F(4, 2, 2, 3, 0)}, F(3, 2, 3, 0), 0},
    {"concat", RO_OP_CONCAT, {0}, 3, {F(2, 0, 5), F(1, 2), F(1, 0)}, F(1, 2), 0},
    {"transpose", RO_OP_TRANSPOSE, {1, 2, 0}, 1, {F(3, 2, 0, 3)}, F(3, 0, 3, 2), 0},
    {"slice to nothing", RO_OP_SLICE, {1, 4, 0, 1}, 1, {U(2, 3, 4)}, U(2, 3, 0), 0},
    {"slice of nothing", RO_OP_SLICE, {0, 0, 0, 3}, 1, {F(2, 0, 4)}, F(2, 0, 4), 0},
    {"pad of nothing", RO_OP_PAD, {1, 2, 3, 7, FLOAT_1}, 1, {F(2, 2, 0)}, F(2, 2, 5), FLOAT_1},
    {"pad elsewhere", RO_OP_PAD, {0, 2, 3, 1, FLOAT_1}, 1, {F(2, 2, 0)}, F(2, 7, 0), 0},
    {"gather from nothing", RO_OP_GATHER, {1}, 2, {F(2, 2, 0), I(1, 3)}, F(2, 2, 3), RO_QNAN_BITS},
    {"gather nothing", RO_OP_GATHER, {0}, 2, {F(2, 2, 3), I(2, 0, 4)}, F(3, 0, 4, 3), 0},
    {"gather_grad of nothing", RO_OP_GATHER_GRAD, {1}, 2, {F(2, 2, 0), I(1, 0)}, F(2, 2, 3), 0},
    {"concat_axis", RO_OP_CONCAT_AXIS, {1}, 3, {F(2, 2, 0), F(2, 2, 3), F(2, 2, 0)}, F(2, 2, 3), 0},
    {"cast", RO_OP_CAST, {RO_U8}, 1, {F(2, 0, 3)}, U(2, 0, 3), 0},
    {"reshape", RO_OP_RESHAPE, {0}, 1, {F(2, 0, 3)}, F(1, 0), 0},
    {"rope", RO_OP_ROPE, {FLOAT_1, 0, 0, 0}, 1, {F(2, 0, 4)}, F(2, 0, 4), 0},
    {"add", RO_OP_ADD, {0}, 2, {F(2, 0, 4), F(1, 4)}, F(2, 0, 4), 0},
    {"add of nothing to nothing", RO_OP_ADD, {0}, 2, {F(2, 4, 0), F(1, 0)}, F(2, 4, 0), 0},
    {"gelu", RO_OP_GELU, {0}, 1, {F(1, 0)}, F(1, 0), 0},
    {"dropout", RO_OP_DROPOUT, {0, 0, 5, FLOAT_1}, 2, {F(1, 0), I(1, 1)}, F(1, 0), 0},
    {"matmul, K = 0",
     RO_OP_MATMUL,
     {0, 0, 0xc0000000, 256, 0},
     2,
     {F(2, 3, 0), F(2, 0, 5)},
     F(2, 3, 5),
     0x80000000},
    {"matmul, K = 0, transposed and masked",
     RO_OP_MATMUL,
     {1, 3, FLOAT_1, 128, 2},
     2,
     {F(3, 2, 0, 3), F(3, 2, 5, 0)},
     F(3, 2, 3, 5),
     0},
    {"matmul, M = 0",
     RO_OP_MATMUL,
     {0, 0, FLOAT_1, 256, 0},
     2,
     {F(2, 0, 4), F(2, 4, 5)},
     F(2, 0, 5),
     0},
    {"matmul, no batch",
     RO_OP_MATMUL,
     {1, 0, FLOAT_1, 256, 0},
     2,
     {F(3, 0, 3, 4), F(3, 0, 4, 5)},
     F(3, 0, 3, 5),
     0},
    {"reduce_sum of empty rows", RO_OP_REDUCE_SUM, {0, 1024}, 1, {F(2, 3, 0)}, F(2, 3, 1), 0},
    {"reduce_sum of no rows", RO_OP_REDUCE_SUM, {7, 1024}, 1, {F(2, 0, 7)}, F(2, 0, 1), 0},
    {"reduce_max of empty rows",
     RO_OP_REDUCE_MAX,
     {0, 1},
     1,
     {F(2, 3, 0)},
     F(1, 3),
     (uint32_t)MINUS_INFINITY},
    {"reduce_dot of empty rows", RO_OP_REDUCE_DOT, {0, 128}, 2, {F(2, 3, 0), F(1, 0)}, F(1, 3), 0},
    {"reduce_sqdev of empty rows",
     RO_OP_REDUCE_SQDEV,
     {0, 128},
     2,
     {F(2, 3, 0), F(1, 3)},
     F(1, 3),
     0},
    {"reduce_expsum of empty rows",
     RO_OP_REDUCE_EXPSUM,
     {0, 128},
     2,
     {F(2, 3, 0), F(1, 3)},
     F(1, 3),
     0},
    {"reduce_ln_gx of empty rows",
     RO_OP_REDUCE_LN_GX,
     {0, 128},
     5,
     {F(2, 3, 0), F(1, 0), F(2, 3, 0), F(1, 3), F(1, 3)},
     F(1, 3),
     0},
    {"sum_rows of no rows", RO_OP_SUM_ROWS, {5}, 1, {F(2, 0, 5)}, F(2, 1, 5), 0},
    {"sum_rows of no columns", RO_OP_SUM_ROWS, {0}, 1, {F(2, 5, 0)}, F(1, 0), 0},
    {"ln_dgamma of no rows",
     RO_OP_LN_DGAMMA,
     {5},
     4,
     {F(2, 0, 5), F(2, 0, 5), F(1, 0), F(1, 0)},
     F(1, 5),
     0},
    {"ln_rstd", RO_OP_LN_RSTD, {4, 0}, 1, {F(2, 0, 1)}, F(2, 0, 1), 0},
    {"layernorm of no columns",
     RO_OP_LAYERNORM,
     {0},
     5,
     {F(2, 3, 0), F(1, 3), F(1, 3), F(1, 0), F(1, 0)},
     F(2, 3, 0),
     0},
    {"ln_dx of no rows",
     RO_OP_LN_DX,
     {0},
     7,
     {F(2, 0, 4), F(1, 4), F(2, 0, 4), F(1, 0), F(1, 0), F(1, 0), F(1, 0)},
     F(2, 0, 4),
     0},
    {"xent without classes",
     RO_OP_XENT,
     {0},
     4,
     {F(2, 3, 0), F(1, 3), F(1, 3), I(1, 3)},
     F(1, 3),
     RO_QNAN_BITS},
    {"xent_grad",
     RO_OP_XENT_GRAD,
     {0},
     5,
     {F(2, 0, 4), F(1, 0), F(1, 0), I(1, 0), F(1, 0)},
     F(2, 0, 4),
     0},
    {"attn_max of no keys", RO_OP_ATTN_MAX, {0}, 1, {F(3, 2, 3, 0)}, F(3, 2, 3, 0), 0},
    {"attn_exp of no keys",
     RO_OP_ATTN_EXP,
     {0},
     2,
     {F(3, 2, 3, 0), F(3, 2, 3, 0)},
     F(3, 2, 3, 0),
     0},
    {"attn_av of no keys",
     RO_OP_ATTN_AV,
     {0},
     2,
     {F(3, 2, 3, 0), F(3, 2, 0, 4)},
     F(4, 2, 3, 0, 4),
     0},
    {"attn_l of no blocks", RO_OP_ATTN_L, {0}, 2, {F(3, 2, 3, 0), F(3, 2, 3, 0)}, F(3, 2, 3, 1), 0},
    {"attn_out of no blocks",
     RO_OP_ATTN_OUT,
     {0},
     3,
     {F(3, 2, 3, 0), F(4, 2, 3, 0, 4), F(3, 2, 3, 1)},
     F(3, 2, 3, 4),
     0},
    {"attn_prob of no queries",
     RO_OP_ATTN_PROB,
     {1},
     3,
     {F(3, 2, 0, 0), F(3, 2, 0, 1), F(3, 2, 0, 1)},
     F(3, 2, 0, 0),
     0},
    {"attn_dscore",
     RO_OP_ATTN_DSCORE,
     {1},
     3,
     {F(3, 2, 0, 0), F(3, 2, 0, 0), F(3, 2, 0, 1)},
     F(3, 2, 0, 0),
     0},
    {"adamw_w",
     RO_OP_ADAMW_W,
     {0, 0},
     6,
     {F(1, 0), F(1, 0), F(1, 0), F(1, 1), F(1, 1), F(1, 1)},
     F(1, 0),
     0},
    {"sgd_w", RO_OP_SGD_W, {0}, 3, {F(1, 0), F(1, 0), F(1, 1)}, F(1, 0), 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static ro_call call_of(const empty_case *x) {
    char why[200] = "";
    ro_call call = {x->op, x->input_count, {0}, x->input, {0}};
    memcpy(call.attr, x->attr, sizeof call.attr);
    if (ro_op_describe(x->op)->declared_shape)
        call.output = x->output;
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s: %s", x->shows, why);
    cr_assert(ro_shape_equal(&call.output, &x->output), "%s: another shape", x->shows);
    return call;
}

static uint32_t nothing_to_load(void *user, int input, int64_t index) {
    const empty_case *x = user;
    cr_assert(index >= 0 && index < ro_shape_numel(&x->input[input]), "%s: input %d, element %lld",
              x->shows, input, (long long)index);
    return 0;
}

Test(empty, the_reference_has_a_result_and_reads_no_element_that_is_not_there) {
    for (int i = 0; i < CASES; i++) {
        const empty_case *x = &cases[i];
        const ro_call call = call_of(x);
        const ro_access in = {nothing_to_load, (void *)(uintptr_t)x};
        cr_expect((ro_ref_state_size(&call) > 0) == (ro_ref_steps(&call) > 0), "%s", x->shows);
        for (int64_t e = 0; e < ro_shape_numel(&call.output); e++)
            cr_expect(ro_ref_element(&call, e, &in) == x->want, "%s: %08x", x->shows,
                      ro_ref_element(&call, e, &in));
    }
}

/* Inputs are as small as they say, so that sanitizers see what is read beyond. */
static void run(ro_ctx *ctx, const empty_case *x) {
    const ro_call call = call_of(x);
    const int64_t count = ro_shape_numel(&call.output);
    void *data[7] = {NULL};
    for (int i = 0; i < call.input_count; i++)
        data[i] = calloc((size_t)ro_shape_numel(&call.input[i]) + 1, 4);
    uint32_t *out = malloc((size_t)(count + 1) * 4);
    memset(out, 0xa5, (size_t)(count + 1) * 4);
    cr_assert(ro_run(ctx, &call, (const void *const *)data, out) == RO_OK, "%s: %s", x->shows,
              ro_ctx_error(ctx));
    for (int64_t e = 0; e < count; e++)
        cr_expect(out[e] == x->want, "%s: %08x", x->shows, out[e]);
    cr_expect(out[count] == 0xa5a5a5a5, "%s wrote beyond its output", x->shows);
    for (int i = 0; i < call.input_count; i++)
        free(data[i]);
    free(out);
}

Test(empty, kernels_give_the_same) {
    static const char *const backend[] = {"scalar", "avx2", "avx512", "cpu"};
    for (int b = 0; b < 4; b++) {
        ro_ctx *ctx;
        if (ro_ctx_create(&(ro_options){.backend = backend[b], .threads = 2}, &ctx) != RO_OK)
            continue; /* not on this processor */
        for (int i = 0; i < CASES; i++)
            run(ctx, &cases[i]);
        ro_ctx_destroy(ctx);
    }
}

/* Products of dimensions stay below 2^40, empty or not. */
Test(empty, a_dimension_of_0_hides_no_overflow) {
    cr_expect(ro_shape_valid(&(ro_shape)F(2, 0, RO_MAX_NUMEL)));
    cr_expect(!ro_shape_valid(&(ro_shape)F(3, 0, RO_MAX_NUMEL, 2)));
    cr_expect(!ro_shape_valid(&(ro_shape)F(3, RO_MAX_NUMEL, 0, RO_MAX_NUMEL)));
}
