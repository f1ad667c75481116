/* Typed calls: each one is ro_infer and ro_run of its operator, and allocates its output. */
#include "repops/operators.h"
#include "repops/typed.h"
#include "repops/device.h"
#include "repops/tools/op_data.h"
#include "tests/unit/each_operator.h"
#include "tests/unit/valid_calls.h"
#include "typed_cases.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], THREADS = 2 };

static ro_ctx *context(const char *backend) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = THREADS};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static ro_ctx *scalar(void) {
    ro_ctx *ctx = context("scalar");
    cr_assert(ctx != NULL);
    return ctx;
}

static void expect_error(const ro_ctx *ctx, ro_status status, ro_status want, const char *words) {
    cr_expect(status == want && strstr(ro_ctx_error(ctx), words), "%d: %s, expected %s",
              (int)status, ro_ctx_error(ctx), words);
}

/* ---- every operator ---- */

/* Runs a valid call by ro_run, and returns its case. */
static op_case run_case(ro_ctx *ctx, const valid_call *from) {
    op_case c = {
        .call = {.op = from->op, .input_count = from->input_count, .output = from->output}};
    memcpy(c.call.attr, from->attr, sizeof from->attr);
    memcpy(c.in, from->input, sizeof from->input);
    c.call.input = c.in;
    cr_assert(case_fill(&c, (uint64_t)from->op, DATA_NORMAL));
    cr_assert(ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_OK, "%s",
              ro_ctx_error(ctx));
    return c;
}

static void check_case(ro_ctx *ctx, const valid_call *from) {
    const ro_op_info *info = ro_op_describe(from->op);
    op_case c = run_case(ctx, from);
    ro_tensor in[CASE_INPUTS], out = {0};
    for (int i = 0; i < from->input_count; i++)
        in[i] = (ro_tensor){c.in[i], c.data[i]};
    if (info->declared_shape) {
        cr_expect(typed_case(ctx, from->op, from->attr, from->input_count, in, &out) == RO_ERR_ARG,
                  "%s without its declared shape", info->name);
        out.shape = from->output;
    }
    for (int turn = 0; turn < 2; turn++) { /* first allocates the output, then uses it again */
        const void *before = out.data;
        const ro_status status = typed_case(ctx, from->op, from->attr, from->input_count, in, &out);
        cr_assert(status == RO_OK, "%s: %s", info->name, ro_ctx_error(ctx));
        cr_expect(ro_shape_equal(&out.shape, &from->output) && (!before || before == out.data),
                  "%s, turn %d", info->name, turn);
        cr_expect(memcmp(out.data, c.out, case_out_bytes(&c)) == 0, "%s on %s", info->name,
                  ro_ctx_backend(ctx));
        memset(out.data, 0x5a, case_out_bytes(&c));
    }
    ro_tensor_free(ctx, &out);
    case_free(&c);
}

Test(typed, calls_of_every_operator_are_ro_run) {
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b]);
        for (int op = next_operator(0); ctx && op; op = next_operator(op)) {
            const valid_call v = valid_call_of(op);
            check_case(ctx, &v);
        }
        ro_ctx_destroy(ctx);
    }
}

/* ---- default attributes ---- */

static float a[4 * 600], b[600 * 3];

static void fill_operands(void) {
    for (size_t e = 0; e < sizeof a / sizeof *a; e++)
        ((uint32_t *)a)[e] = case_f32(case_word(1, 0, (int64_t)e), DATA_NORMAL);
    for (size_t e = 0; e < sizeof b / sizeof *b; e++)
        ((uint32_t *)b)[e] = case_f32(case_word(1, 1, (int64_t)e), DATA_NORMAL);
}

static const ro_tensor left = {{RO_F32, 2, {4, 600}}, a}, right = {{RO_F32, 2, {600, 3}}, b};

static void expect_same(const ro_tensor *x, const ro_tensor *y) {
    cr_assert(x->data && y->data && ro_shape_equal(&x->shape, &y->shape));
    cr_expect(memcmp(x->data, y->data, (size_t)ro_shape_numel(&x->shape) * 4) == 0);
}

Test(typed, a_product_without_attributes_has_the_usual_ones) {
    ro_ctx *ctx = scalar();
    fill_operands();
    ro_tensor none = {0}, zeros = {0}, usual = {0}, half = {0};
    const ro_op_matmul_attrs all = {0, 0, 1, RO_DOT_CHUNK, RO_MASK_NONE};
    cr_assert(ro_op_matmul(ctx, &left, &right, NULL, &none) == RO_OK);
    cr_assert(ro_op_matmul(ctx, &left, &right, &(ro_op_matmul_attrs){0}, &zeros) == RO_OK);
    cr_assert(ro_op_matmul(ctx, &left, &right, &all, &usual) == RO_OK);
    cr_assert(ro_op_matmul(ctx, &left, &right, &(ro_op_matmul_attrs){.alpha = 0.5f}, &half) ==
              RO_OK);
    expect_same(&none, &usual);
    expect_same(&zeros, &usual);
    for (int e = 0; e < 12; e++)
        cr_expect(((float *)half.data)[e] == 0.5f * ((float *)usual.data)[e]);
    ro_tensor *const made[] = {&none, &zeros, &usual, &half};
    for (int i = 0; i < 4; i++)
        ro_tensor_free(ctx, made[i]);
    ro_ctx_destroy(ctx);
}

Test(typed, a_reduction_without_attributes_is_of_the_last_dimension) {
    ro_ctx *ctx = scalar();
    fill_operands();
    ro_tensor none = {.shape = {RO_F32, 1, {4}}}, all = none;
    cr_assert(ro_op_reduce_sum(ctx, &left, NULL, &none) == RO_OK, "%s", ro_ctx_error(ctx));
    cr_assert(ro_op_reduce_sum(ctx, &left, &(ro_op_reduce_sum_attrs){600, 1024}, &all) == RO_OK);
    expect_same(&none, &all);
    ro_tensor_free(ctx, &none);
    ro_tensor_free(ctx, &all);
    ro_ctx_destroy(ctx);
}

Test(typed, required_attributes_are_taken_as_they_are) {
    ro_ctx *ctx = scalar();
    fill_operands();
    ro_tensor out = {0};
    expect_error(ctx, ro_op_scale(ctx, &left, NULL, &out), RO_ERR_ARG,
                 "scale: `attrs` must not be NULL");
    cr_expect(out.data == NULL && out.shape.ndim == 0);
    cr_assert(ro_op_scale(ctx, &left, &(ro_op_scale_attrs){0}, &out) == RO_OK);
    for (int e = 0; e < 4 * 600; e++)
        cr_expect(((float *)out.data)[e] == 0);
    ro_tensor_free(ctx, &out);
    ro_ctx_destroy(ctx);
}

/* ---- outputs ---- */

Test(typed, an_output_may_be_an_input_where_the_operator_says_so) {
    ro_ctx *ctx = scalar();
    float x[3] = {1, 2, 3};
    ro_tensor t = {{RO_F32, 1, {3}}, x};
    cr_assert(ro_op_add(ctx, &t, &t, &t) == RO_OK);
    cr_expect(x[0] == 2 && x[1] == 4 && x[2] == 6);
    expect_error(ctx, ro_op_transpose(ctx, &t, &(ro_op_transpose_attrs){0}, &t), RO_ERR_ARG,
                 "overlaps");
    ro_ctx_destroy(ctx);
}

Test(typed, a_call_that_fails_leaves_the_output_as_it_was) {
    ro_ctx *ctx = scalar();
    fill_operands();
    ro_tensor empty = {0}, wrong = {.shape = {RO_F32, 2, {3, 4}}};
    const ro_tensor no_data = {.shape = {RO_F32, 2, {600, 3}}};
    expect_error(ctx, ro_op_matmul(ctx, &left, &left, NULL, &empty), RO_ERR_ARG, "matmul");
    expect_error(ctx, ro_op_matmul(ctx, &left, &right, NULL, &wrong), RO_ERR_ARG, "matmul");
    expect_error(ctx, ro_op_matmul(ctx, &left, &no_data, NULL, &empty), RO_ERR_ARG, "NULL");
    cr_expect(empty.data == NULL && empty.shape.ndim == 0);
    cr_expect(wrong.data == NULL && wrong.shape.dim[0] == 3);
    ro_ctx_destroy(ctx);
}

Test(typed, what_is_missing_is_named) {
    ro_ctx *ctx = scalar();
    ro_tensor out = {0};
    expect_error(ctx, ro_op_add(ctx, &left, NULL, &out), RO_ERR_ARG, "add: input 1");
    expect_error(ctx, ro_op_add(ctx, &left, &left, NULL), RO_ERR_ARG, "add: `out`");
    expect_error(ctx, ro_op_concat(ctx, NULL, 2, &out), RO_ERR_ARG,
                 "concat: input 0 must not be NULL");
    expect_error(ctx, ro_op_concat(ctx, &left, 0, &out), RO_ERR_ARG, "concat: count must be 1..");
    expect_error(ctx, ro_op_concat(ctx, &left, -1, &out), RO_ERR_ARG, "got -1");
    expect_error(ctx, ro_op_join_heads(ctx, &left, 9, &out), RO_ERR_ARG, "count must be 1..8");
    expect_error(NULL, ro_op_add(NULL, &left, &left, &out), RO_ERR_ARG, "add: `ctx`");
    expect_error(NULL, ro_op_concat(NULL, &left, 1, &out), RO_ERR_ARG, "concat: `ctx`");
    ro_ctx_destroy(ctx);
}

Test(typed, lists_of_inputs_may_be_long) {
    ro_ctx *ctx = scalar();
    float x[RO_MAX_INPUTS];
    ro_tensor in[RO_MAX_INPUTS], out = {0};
    for (int i = 0; i < RO_MAX_INPUTS; i++) {
        x[i] = (float)i;
        in[i] = (ro_tensor){{RO_F32, 1, {1}}, &x[i]};
    }
    cr_assert(ro_op_concat(ctx, in, RO_MAX_INPUTS, &out) == RO_OK, "%s", ro_ctx_error(ctx));
    cr_expect(memcmp(out.data, x, sizeof x) == 0);
    ro_tensor_free(ctx, &out);
    ro_ctx_destroy(ctx);
}

/* ---- tensors ---- */

Test(typed, tensors_of_the_context_are_zero_and_their_memory_is_checked) {
    ro_ctx *ctx = scalar();
    for (int64_t n = 0; n < 9; n++) {
        ro_tensor t = {.shape = {RO_U8, 1, {n}}};
        cr_assert(ro_tensor_alloc(ctx, &t) == RO_OK && t.data != NULL);
        for (int64_t e = 0; e < n; e++)
            cr_expect(((uint8_t *)t.data)[e] == 0);
        expect_error(ctx, ro_tensor_alloc(ctx, &t), RO_ERR_ARG, "has memory already");
        ro_tensor_free(ctx, &t);
        cr_expect(t.data == NULL && t.shape.ndim == 0);
    }
    ro_tensor none = {0};
    expect_error(ctx, ro_tensor_alloc(ctx, &none), RO_ERR_ARG, "no valid shape");
    expect_error(ctx, ro_tensor_alloc(ctx, NULL), RO_ERR_ARG, "`t`");
    expect_error(NULL, ro_tensor_alloc(NULL, &none), RO_ERR_ARG, "`ctx`");
    ro_tensor_free(ctx, &none);
    ro_tensor_free(ctx, NULL);
    ro_ctx_destroy(ctx);
}

static int blocks, refused;

static void *counted_alloc(void *user, size_t size, size_t alignment) {
    if (*(int *)user)
        return refused++, NULL;
    blocks++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void counted_free(void *user, void *block) {
    (void)user;
    blocks--;
    free(block);
}

Test(typed, memory_comes_from_the_context_and_goes_back) {
    int empty = 0;
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options,
                                .threads = 1,
                                .backend = "scalar",
                                .alloc = counted_alloc,
                                .free = counted_free,
                                .user = &empty};
    cr_assert(ro_ctx_create(&options, &ctx) == RO_OK);
    fill_operands();
    ro_tensor out = {0}, wide = {0}, zeros = {.shape = {RO_F32, 1, {3}}};
    cr_assert(ro_op_relu(ctx, &left, &out) == RO_OK);
    const int before = blocks;
    empty = 1;
    expect_error(ctx, ro_op_relu(ctx, &left, &wide), RO_ERR_MEMORY, "no memory");
    expect_error(ctx, ro_op_concat(ctx, &left, 1, &wide), RO_ERR_MEMORY, "no memory");
    expect_error(ctx, ro_tensor_alloc(ctx, &zeros), RO_ERR_MEMORY, "no memory");
    cr_expect(blocks == before && refused == 3 && wide.data == NULL && zeros.data == NULL);
    empty = 0;
    ro_tensor_free(ctx, &out);
    ro_ctx_destroy(ctx);
    cr_expect(blocks == 0);
}
