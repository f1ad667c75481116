/* Memory that the caller passes: NULL and overlaps are errors, never a crash or other bits. */
#include "each_operator.h"
#include "repops/device.h"
#include "repops/free.h"
#include "repops/fused.h"
#include "repops/src/operands.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "random_calls.h"
#include "repops/op_function.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ro_ctx *ctx;

static void open_context(void) {
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ctx) ==
              RO_OK);
}

static void close_context(void) {
    ro_ctx_destroy(ctx);
}

TestSuite(operands, .init = open_context, .fini = close_context);

static void expect_error(ro_status status, const char *part) {
    cr_expect(status == RO_ERR_ARG, "status %d instead of \"%s\"", (int)status, part);
    cr_expect(strstr(ro_ctx_error(ctx), part), "\"%s\" lacks \"%s\"", ro_ctx_error(ctx), part);
}

/* ---- whether pieces overlap ---- */

static int meet_byte_by_byte(const ro_pieces *a, const ro_pieces *b) {
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < b->rows; j++) {
            const intptr_t x = (intptr_t)a->at + i * a->step, y = (intptr_t)b->at + j * b->step;
            if (x < y + b->width && y < x + a->width)
                return 1;
        }
    return 0;
}

static ro_pieces random_pieces(uint64_t *state) {
    const uint64_t h = random_word(state);
    const int64_t width = 1 + (int64_t)(h >> 8) % 9;
    const int64_t step = h % 3 ? 12 : width + (int64_t)(h >> 16) % 9;
    return (ro_pieces){(void *)(uintptr_t)(1000 + (h >> 24) % 60), (int64_t)(h >> 32) % 5, step,
                       width};
}

Test(operands, pieces_meet_where_they_share_a_byte) {
    uint64_t state = 1;
    int met = 0;
    for (int i = 0; i < 200000; i++) {
        const ro_pieces a = random_pieces(&state), b = random_pieces(&state);
        const int want = meet_byte_by_byte(&a, &b);
        met += want;
        cr_assert(ro_pieces_meet(&a, &b) == want, "%d: %d", i, want);
    }
    cr_expect(met > 20000 && met < 180000);
}

/* ---- ro_run ---- */

static int64_t bytes_of(const ro_shape *s) {
    return ro_shape_numel(s) * (int64_t)ro_dtype_size(s->dtype);
}

typedef struct {
    any_call c;
    const void *in[8];
    char *block; /* the inputs, then the output, `ROOM` bytes each */
} application;

enum { ROOM = 1 << 20 };

static application make(const valid_call *v) {
    static application a;
    copy_call(&a.c, v);
    a.block = calloc(9, ROOM);
    for (int i = 0; i < v->input_count; i++) {
        cr_assert(bytes_of(&v->input[i]) <= ROOM - 64);
        a.in[i] = a.block + i * ROOM;
    }
    a.c.call.input = a.c.input;
    return a;
}

static void *output_of(const application *a) {
    return a->block + 8 * ROOM;
}

Test(operands, a_call_without_an_output_shape_is_refused) {
    const ro_shape in[] = {{RO_F32, 2, {2, 2}}, {RO_F32, 2, {2, 2}}};
    const float x[4] = {1, 2, 3, 4};
    float y[4] = {0};
    ro_call call = {RO_OP_ADD, 2, {0}, in, {0}};
    expect_error(ro_run(ctx, &call, (const void *[]){x, x}, y),
                 "add: the call has no output shape");
    cr_expect(y[0] == 0);
    cr_assert(ro_infer(&call, NULL, 0) == RO_OK);
    cr_expect(ro_run(ctx, &call, (const void *[]){x, x}, y) == RO_OK && y[3] == 8);
}

Test(operands, null_is_refused_but_where_there_are_no_elements) {
    const ro_shape in[] = {{RO_F32, 2, {2, 2}}, {RO_F32, 2, {2, 2}}};
    const float x[4] = {1, 2, 3, 4};
    float y[4];
    ro_call call = {RO_OP_ADD, 2, {0}, in, {RO_F32, 2, {2, 2}}};
    expect_error(ro_run(ctx, NULL, (const void *[]){x, x}, y), "run: `call` must not be NULL");
    expect_error(ro_run(ctx, &call, NULL, y), "add: `input` must not be NULL");
    expect_error(ro_run(ctx, &call, (const void *[]){x, NULL}, y), "add: input 1 must not be NULL");
    expect_error(ro_run(ctx, &call, (const void *[]){x, x}, NULL),
                 "add: `output` must not be NULL");
    cr_expect(ro_run(NULL, &call, (const void *[]){x, x}, y) == RO_ERR_ARG);
    cr_expect_str_eq(ro_ctx_error(NULL), "run: `ctx` must not be NULL");
    const ro_shape none[] = {{RO_F32, 2, {3, 0}}, {RO_F32, 2, {0, 2}}};
    ro_call product = {RO_OP_MATMUL, 2, {0, 0, FLOAT_1, 256}, none, {RO_F32, 2, {3, 2}}};
    float z[6];
    cr_expect(ro_run(ctx, &product, (const void *[]){NULL, NULL}, z) == RO_OK && z[5] == 0);
}

/* Places the output on input i, from its first byte on. */
static void run_onto_inputs(const valid_call *v) {
    application a = make(v);
    const ro_call *call = &a.c.call;
    const char *name = ro_op_describe(v->op)->name;
    for (int i = 0; i < v->input_count; i++) {
        const int allowed = (ro_op_in_place(v->op) >> i & 1) &&
                            ro_shape_numel(&v->input[i]) == ro_shape_numel(&v->output);
        const ro_status status = ro_run(ctx, call, a.in, (void *)(uintptr_t)a.in[i]);
        cr_expect(status == (allowed ? RO_OK : RO_ERR_ARG), "%s onto input %d", name, i);
        char *end = (char *)(uintptr_t)a.in[i] + bytes_of(&v->input[i]);
        expect_error(ro_run(ctx, call, a.in, end - ro_dtype_size(v->input[i].dtype)),
                     "overlaps input");
        char *behind = end + (-(uintptr_t)end & 15); /* aligned for any type */
        cr_expect(bytes_of(&v->output) > ROOM - 128 || ro_run(ctx, call, a.in, behind) == RO_OK,
                  "%s behind input %d: %s", name, i, ro_ctx_error(ctx));
    }
    cr_expect(ro_run(ctx, call, a.in, output_of(&a)) == RO_OK, "%s", ro_ctx_error(ctx));
    free(a.block);
}

Test(operands, an_output_overlaps_no_input_but_where_the_operator_allows_it) {
    for (int op = next_operator(0); op; op = next_operator(op)) {
        const valid_call v = valid_call_of(op);
        run_onto_inputs(&v);
    }
}

Test(operands, a_transpose_onto_its_own_input_is_refused) {
    float x[16] = {0, 1, 2, 3, 4};
    const ro_shape in = {RO_F32, 2, {4, 4}};
    ro_call call = {RO_OP_TRANSPOSE, 1, {1, 0}, &in, {RO_F32, 2, {4, 4}}};
    expect_error(ro_run(ctx, &call, (const void *[]){x}, x),
                 "transpose: the output overlaps input 0");
    cr_expect(x[1] == 1 && x[4] == 4);
}

/* ---- functions that are no operators: each pointer NULL, each output onto each other tensor ----
 */

enum { TENSORS = 12, N = 8, WORDS = 4096 };

typedef struct {
    const char *name;
    int count; /* number of tensors; outputs come last */
    int outputs;
    uint32_t optional;      /* bit i: tensor i may be NULL */
    uint32_t onto[TENSORS]; /* for tensor i: a mask of tensors whose memory it may share */
    const char *tensor[TENSORS];
    ro_status (*run)(float *const t[TENSORS]);
} function;

static ro_status linear(float *const t[TENSORS]) {
    const ro_linear_layer layer = {
        .size = sizeof layer, .activation = RO_ACTIVATION_RELU, .rows = N, .in = N, .out = N};
    return ro_linear(ctx, &layer, t[0], t[1], t[2], t[3], t[4]);
}
static ro_attention heads(float *bias) {
    return (ro_attention){.size = sizeof(ro_attention),
                          .batch = 1,
                          .heads = 2,
                          .kv_heads = 2,
                          .queries = N,
                          .keys = N,
                          .head_size = N,
                          .scale = 1,
                          .key_bias = bias};
}
static ro_status forward(float *const t[TENSORS]) {
    const ro_attention a = heads(t[3]);
    return ro_attention_forward(ctx, &a, t[0], t[1], t[2], t[4], t[5], t[6]);
}
static ro_status backward(float *const t[TENSORS]) {
    const ro_attention a = heads(t[3]);
    return ro_attention_backward(ctx, &a, t[0], t[1], t[2], t[4], t[5], t[6], t[7], t[8], t[9],
                                 t[10]);
}
static ro_status cross_entropy(float *const t[TENSORS]) {
    return ro_cross_entropy(ctx, N, N, t[0], (int32_t *)(void *)t[1], RO_IGNORE_NONE, t[2], t[3],
                            t[4], t[5], t[6]);
}
static ro_status layer_norm(float *const t[TENSORS]) {
    return ro_layer_norm(ctx, N, N, 1, t[0], t[1], t[2], t[3], t[4], t[5]);
}
static ro_status softmax(float *const t[TENSORS]) {
    return ro_softmax(ctx, N, N, t[0], t[1], t[2], t[3]);
}
static ro_status log_softmax(float *const t[TENSORS]) {
    return ro_log_softmax(ctx, N, N, t[0], t[1], t[2], t[3]);
}
static ro_status layer_norm_backward(float *const t[TENSORS]) {
    return ro_layer_norm_backward(ctx, N, N, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
}
static ro_status softmax_backward(float *const t[TENSORS]) {
    return ro_softmax_backward(ctx, N, N, t[0], t[1], t[2]);
}
static ro_status log_softmax_backward(float *const t[TENSORS]) {
    return ro_log_softmax_backward(ctx, N, N, t[0], t[1], t[2]);
}
static ro_status adamw(float *const t[TENSORS]) {
    const ro_adamw_step step = {.size = sizeof step,
                                .count = N * N,
                                .beta1 = 0,
                                .beta2 = 0,
                                .eps = 1,
                                .decay = 0,
                                .clip = t[4],
                                .c1 = t[5],
                                .c2 = t[6],
                                .rate = t[7]};
    return ro_adamw(ctx, &step, t[0], t[1], t[2], t[3], t[8], t[9], t[10]);
}
static ro_status adamw_bf16(float *const t[TENSORS]) {
    uint16_t *half[TENSORS];
    for (int i = 0; i < TENSORS; i++)
        half[i] = (uint16_t *)(void *)t[i];
    const ro_adamw_step step = {.size = sizeof step,
                                .count = N * N,
                                .beta1 = 0,
                                .beta2 = 0,
                                .eps = 1,
                                .decay = 0,
                                .clip = t[4],
                                .c1 = t[5],
                                .c2 = t[6],
                                .rate = t[7]};
    const ro_adamw_rounding rounding = {.size = sizeof rounding,
                                        .step = (const int32_t *)(const void *)t[8]};
    const ro_adamw_bf16_parameter p = {.size = sizeof p,
                                       .step = &step,
                                       .rounding = &rounding,
                                       .w = half[0],
                                       .m = half[1],
                                       .v = half[2],
                                       .gradient = t[3],
                                       .w_out = half[9],
                                       .m_out = half[10],
                                       .v_out = half[11]};
    return ro_adamw_bf16(ctx, &p);
}
static ro_status sgd(float *const t[TENSORS]) {
    const ro_sgd_step step = {.size = sizeof step, .count = N * N, .clip = t[3], .rate = t[4]};
    return ro_sgd(ctx, &step, t[0], t[1], t[2], t[5], t[6]);
}
static ro_status sgemm(float *const t[TENSORS]) {
    return ro_sgemm(ctx, 0, 0, N, N, N, 1, t[0], N, t[1], N, 0, t[2], N);
}
static ro_status sgemm_batch(float *const t[TENSORS]) {
    return ro_sgemm_batch(ctx, 0, 0, N, N, N, 1, t[0], N, t[1], N, 0, t[2], N, N * N, 0, N * N, 3);
}
static ro_status copy(float *const t[TENSORS]) {
    return ro_copy(ctx, t[1], t[0], N);
}
static ro_status to_device(float *const t[TENSORS]) {
    return ro_write(ctx, t[1], t[0], N);
}
static ro_status from_device(float *const t[TENSORS]) {
    return ro_read(ctx, t[1], t[0], N);
}

static const function functions[] = {
    {"linear", 5, 2, 1 << 2 | 1 << 3, {0}, {"x", "w", "bias", "z", "y"}, linear},
    {"attention",
     7,
     3,
     1 << 3 | 3 << 5,
     {0},
     {"q", "k", "v", "key_bias", "out", "m", "l"},
     forward},
    {"attention",
     11,
     3,
     1 << 3,
     {0},
     {"q", "k", "v", "key_bias", "out", "m", "l", "dout", "dq", "dk", "dv"},
     backward},
    {"cross_entropy",
     7,
     4,
     7 << 4,
     {[6] = 1 << 0},
     {"x", "ids", "dloss", "loss", "m", "l", "dx"},
     cross_entropy},
    {"layer_norm", 6, 3, 0, {0}, {"x", "gamma", "beta", "y", "mean", "rstd"}, layer_norm},
    {"softmax", 4, 3, 0, {0}, {"x", "y", "m", "l"}, softmax},
    {"log_softmax", 4, 3, 0, {0}, {"x", "y", "m", "l"}, log_softmax},
    {"layer_norm_backward",
     8,
     3,
     0,
     {[5] = 1 << 0 | 1 << 4},
     {"x", "gamma", "mean", "rstd", "dy", "dx", "dgamma", "dbeta"},
     layer_norm_backward},
    {"softmax_backward", 3, 1, 0, {[2] = 3}, {"y", "dy", "dx"}, softmax_backward},
    {"log_softmax_backward", 3, 1, 0, {[2] = 3}, {"y", "dy", "dx"}, log_softmax_backward},
    {"adamw",
     11,
     3,
     0,
     {[8] = 1, [9] = 2, [10] = 4},
     {"w", "m", "v", "gradient", "clip", "c1", "c2", "rate", "w_out", "m_out", "v_out"},
     adamw},
    {"adamw_bf16",
     12,
     3,
     0,
     {[9] = 1, [10] = 2, [11] = 4},
     {"w", "m", "v", "gradient", "clip", "c1", "c2", "rate", "step", "w_out", "m_out", "v_out"},
     adamw_bf16},
    {"sgd",
     7,
     2,
     0,
     {[5] = 1, [6] = 2},
     {"w", "m", "gradient", "clip", "rate", "w_out", "m_out"},
     sgd},
    {"sgemm", 3, 1, 0, {0}, {"a", "b", "c"}, sgemm},
    {"sgemm", 3, 1, 0, {0}, {"a", "b", "c"}, sgemm_batch},
    {"copy", 2, 1, 0, {0}, {"from", "to"}, copy},
    {"write", 2, 1, 0, {0}, {"from", "to"}, to_device},
    {"read", 2, 1, 0, {0}, {"from", "to"}, from_device},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static float memory[TENSORS * WORDS];

static void place(float *t[TENSORS]) {
    memset(memory, 0, sizeof memory);
    for (int i = 0; i < TENSORS; i++)
        t[i] = memory + i * WORDS;
}

Test(operands, every_function_refuses_null_but_for_what_is_optional) {
    for (int f = 0; f < FUNCTIONS; f++)
        for (int i = 0; i < functions[f].count; i++) {
            const function *x = &functions[f];
            float *t[TENSORS];
            char part[64];
            place(t);
            t[i] = NULL;
            snprintf(part, sizeof part, "%s: `%s` must not be NULL", x->name, x->tensor[i]);
            if (x->optional >> i & 1)
                cr_expect(x->run(t) == RO_OK, "%s, %s: %s", x->name, x->tensor[i],
                          ro_ctx_error(ctx));
            else if (i == 2 && x->run == cross_entropy)
                expect_error(x->run(t), "dx needs dloss");
            else
                expect_error(x->run(t), part);
        }
}

Test(operands, no_output_overlaps_another_tensor_but_where_the_header_allows_it) {
    for (int f = 0; f < FUNCTIONS; f++)
        for (int i = functions[f].count - functions[f].outputs; i < functions[f].count; i++)
            for (int k = 0; k < functions[f].count; k++) {
                const function *x = &functions[f];
                float *t[TENSORS];
                if (k == i)
                    continue;
                place(t);
                t[i] = t[k];
                cr_expect(x->run(t) == (x->onto[i] >> k & 1 ? RO_OK : RO_ERR_ARG), "%s: %s on %s",
                          x->name, x->tensor[i], x->tensor[k]);
                t[i] = (float *)(void *)((char *)t[k] + 1); /* never allowed, and never read */
                expect_error(x->run(t), "overlaps");
            }
}

/* ---- submatrices of one matrix ---- */

Test(operands, matrices_side_by_side_in_one_matrix_are_no_overlap) {
    float m[64 * 32] = {1, 2, 3};
    const int ld = 32;
    cr_expect(ro_sgemm(ctx, 0, 0, 16, 8, 8, 1, m, ld, m + 8, ld, 1, m + 16, ld) == RO_OK, "%s",
              ro_ctx_error(ctx));
    cr_expect(ro_sgemm(ctx, 0, 1, 16, 8, 8, 1, m, ld, m + 8, ld, 1, m + 32 * 16, ld) == RO_OK);
    expect_error(ro_sgemm(ctx, 0, 0, 16, 8, 8, 1, m, ld, m + 8, ld, 1, m + 7, ld),
                 "`c` overlaps that of `a`");
    expect_error(ro_sgemm(ctx, 0, 0, 16, 8, 8, 1, m, ld, m + 8, ld, 1, m + 15, ld),
                 "`c` overlaps that of `b`");
    expect_error(ro_sgemm(ctx, 0, 0, 16, 8, 8, 1, m, ld, m + 8, ld, 1, m + 10 * ld + 7, 2 * ld),
                 "`c` overlaps that of `a`");
    cr_expect(ro_sgemm(ctx, 0, 0, 16, 8, 8, 1, m, ld, m + 8, ld, 1, m + 24, 2 * ld) == RO_OK);
    /* b is a column of the matrix, and c lies in a row of it. */
    cr_expect(ro_sgemm(ctx, 0, 0, 8, 1, 8, 1, m + 1, ld, m, ld, 0, m + 16, 1) == RO_OK, "%s",
              ro_ctx_error(ctx));
    /* With alpha = 0 or k = 0, a and b are not read. */
    cr_expect(ro_sgemm(ctx, 0, 0, 16, 8, 8, 0, m, ld, m, ld, 1, m, ld) == RO_OK);
    cr_expect(ro_sgemm(ctx, 0, 0, 16, 8, 0, 1, NULL, ld, NULL, ld, 1, m, ld) == RO_OK);
}

Test(operands, products_of_a_batch_share_no_element_of_c) {
    float a[4 * 64] = {0}, c[4 * 64];
    cr_expect(ro_sgemm_batch(ctx, 0, 0, 8, 8, 8, 1, a, 8, a, 8, 0, c, 8, 0, 0, 64, 4) == RO_OK);
    cr_expect(ro_sgemm_batch(ctx, 0, 0, 8, 8, 8, 1, a, 8, a, 8, 0, c, 32, 0, 0, 8, 4) == RO_OK);
    expect_error(ro_sgemm_batch(ctx, 0, 0, 8, 8, 8, 1, a, 8, a, 8, 0, c, 32, 0, 0, 7, 4),
                 "`c` of two products overlaps");
    expect_error(ro_sgemm_batch(ctx, 0, 0, 8, 8, 8, 1, a, 8, a, 8, 0, c, 8, 0, 0, 0, 4),
                 "`c` of two products overlaps");
}

Test(operands, gradients_of_attention_lie_side_by_side_in_rows) {
    enum { WIDTH = 2 * N };
    static float qkv[N * 3 * WIDTH], d[N * 3 * WIDTH], out[N * WIDTH], s[2 * N];
    ro_attention a = heads(NULL);
    a.q_row = a.k_row = a.v_row = 3 * WIDTH;
    cr_expect(ro_attention_forward(ctx, &a, qkv, qkv + WIDTH, qkv + 2 * WIDTH, out, s, NULL) ==
                  RO_OK,
              "%s", ro_ctx_error(ctx));
    cr_expect(ro_attention_backward(ctx, &a, qkv, qkv + WIDTH, qkv + 2 * WIDTH, out, s, s, out, d,
                                    d + WIDTH, d + 2 * WIDTH) == RO_OK,
              "%s", ro_ctx_error(ctx));
    expect_error(ro_attention_backward(ctx, &a, qkv, qkv + WIDTH, qkv + 2 * WIDTH, out, s, s, out,
                                       d, d + WIDTH - 1, d + 2 * WIDTH),
                 "`dk`");
}

Test(operands, parameters_of_one_step_share_what_they_read_alone) {
    enum { PARAMETERS = 5 };
    static float t[PARAMETERS][7][N];
    const float one = 1;
    const ro_adamw_step step = {.size = sizeof step,
                                .count = N,
                                .beta1 = 0,
                                .beta2 = 0,
                                .eps = 1,
                                .decay = 0,
                                .clip = &one,
                                .c1 = &one,
                                .c2 = &one,
                                .rate = &one};
    ro_adamw_parameter p[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++)
        p[i] = (ro_adamw_parameter){.size = sizeof *p,
                                    .step = &step,
                                    .w = t[i][0],
                                    .m = t[i][1],
                                    .v = t[i][2],
                                    .gradient = t[i][3],
                                    .w_out = t[i][0],
                                    .m_out = t[i][5],
                                    .v_out = t[i][6]};
    p[3].gradient = p[1].gradient;
    cr_expect(ro_adamw_all(ctx, PARAMETERS, p) == RO_OK, "%s", ro_ctx_error(ctx));
    p[4].m_out = t[2][6] + N - 1;
    expect_error(ro_adamw_all(ctx, PARAMETERS, p), "overlaps memory of number");
    p[4].m_out = t[4][5];
    p[2].gradient = t[0][6] + 1;
    expect_error(ro_adamw_all(ctx, PARAMETERS, p), "overlaps memory of number 2");
}

/* ---- free kernels ---- */

Test(operands, free_kernels_check_what_they_read_and_write_beside_the_tensors) {
    const ro_shape in = {RO_F32, 1, {N}};
    const ro_profile *profile = ro_profile_at(0);
    ro_call call = {RO_OP_TANH, 1, {0}, &in, {RO_F32, 1, {N}}};
    float x[2 * N] = {0}, y[N];
    double values[N];
    const void *data[] = {x};
    ro_rounding r = {.size = sizeof r, .mode = RO_FREE_REPORT, .bits = 24};
    cr_expect(ro_free_run(ctx, profile, &r, &call, data, x, NULL) == RO_OK, "%s",
              ro_ctx_error(ctx));
    expect_error(ro_free_run(ctx, profile, &r, &call, data, x + 1, NULL), "overlaps input 0");
    expect_error(ro_free_run(ctx, NULL, &r, &call, data, y, NULL), "`profile` must not be NULL");
    expect_error(ro_free_run(ctx, profile, NULL, &call, data, y, NULL), "`rounding` must not");
    expect_error(ro_free_run(ctx, profile, &r, &call, data, NULL, NULL),
                 "`output` must not be NULL");
    r = (ro_rounding){.size = sizeof(ro_rounding), .mode = RO_FREE_VALUES};
    expect_error(ro_free_run(ctx, profile, &r, &call, data, NULL, NULL),
                 "`value` must not be NULL");
    r.value = values;
    cr_expect(ro_free_run(ctx, profile, &r, &call, data, NULL, NULL) == RO_OK, "%s",
              ro_ctx_error(ctx));
    r.bound = values + N - 1;
    expect_error(ro_free_run(ctx, profile, &r, &call, data, NULL, NULL), "`bound`");
    r = (ro_rounding){
        .size = sizeof(ro_rounding), .mode = RO_FREE_SYMBOLS, .bits = 24, .symbol = (uint8_t *)y};
    expect_error(ro_free_run(ctx, profile, &r, &call, data, y, NULL), "`symbol` overlaps");
    r = (ro_rounding){
        .size = sizeof(ro_rounding), .mode = RO_FREE_REPLAY, .bits = 24, .call_count = 1};
    expect_error(ro_free_run(ctx, profile, &r, &call, data, y, NULL), "`call` must not be NULL");
    call.output = (ro_shape){0};
    expect_error(ro_free_run(ctx, profile, &r, &call, data, y, NULL), "no output shape");
}

Test(operands, what_has_no_context_says_so) {
    cr_expect(ro_ctx_create(NULL, NULL) == RO_ERR_ARG);
    cr_expect_str_eq(ro_ctx_error(NULL), "ctx_create: `out` must not be NULL");
    cr_expect(ro_softmax(NULL, 0, 0, NULL, NULL, NULL, NULL) == RO_ERR_ARG);
    cr_expect(ro_wait(NULL) == RO_ERR_ARG && ro_alloc(NULL, 1) == NULL);
    cr_expect(ro_op_by_name(NULL) == RO_OP_NONE && ro_profile_by_name(NULL) == NULL);
    cr_expect(ro_infer(NULL, NULL, 0) == RO_ERR_ARG &&
              ro_profile_check(NULL, NULL, 0) == RO_ERR_ARG);
}
