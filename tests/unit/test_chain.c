/* Chains of elementwise operators have the bytes of the operators run one after another. */
#include "repops/chain.h"
#include "repops/operators.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum {
    BACKENDS = sizeof backends / sizeof backends[0],
    MOST = 9000,
    CASES = 400,
    INPUTS = 4,
    STEPS = 16
};

static float data[INPUTS][MOST], results[STEPS][MOST], got[MOST];
static int ops[RO_OP_END], op_count; /* all operators that a chain takes */
static int times[RO_OP_END];         /* how often each was a step */

static uint64_t state;

static int64_t draw(int64_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(state >> 33) % below;
}

typedef struct {
    int64_t count;
    ro_chain_input input[INPUTS];
    ro_chain_step step[STEPS];
    int32_t dtype[STEPS];
    uint32_t steps;
} chain;

static void fill_inputs(chain *c, data_class class) {
    static const int64_t counts[] = {1, 2, 6, 60, 2040, 6000, 6120, 8400};
    c->count = counts[draw(8)];
    int64_t before = c->count;
    for (int i = 0; i < INPUTS; i++) {
        static const int64_t parts[] = {1, 2, 4, 60, 8400};
        const int64_t part = parts[draw(5)];
        const int64_t count = i > 1 && before % part == 0 ? before / part : i > 1 ? 1 : c->count;
        c->input[i] = (ro_chain_input){count, draw(3) > 0 ? RO_F32 : RO_I32, 0, data[i]};
        before = i > 1 ? count : before;
        for (int64_t e = 0; e < count; e++)
            ((uint32_t *)data[i])[e] = case_f32(case_word((uint64_t)draw(1 << 30), i, e), class);
    }
}

static int64_t count_of(const chain *c, int32_t operand) {
    return operand < RO_CHAIN_RESULT ? c->input[operand].count : c->count;
}

static int32_t dtype_of(const chain *c, int32_t operand) {
    return operand < RO_CHAIN_RESULT ? c->input[operand].dtype
                                     : c->dtype[operand - RO_CHAIN_RESULT];
}

static void *memory_of(const chain *c, int32_t operand) {
    return operand < RO_CHAIN_RESULT ? (void *)(uintptr_t)c->input[operand].data
                                     : results[operand - RO_CHAIN_RESULT];
}

/* Runs the operator alone; returns false if it does not take these operands. */
static bool run_alone(ro_ctx *ctx, chain *c, uint32_t i) {
    const ro_chain_step *s = &c->step[i];
    ro_shape shape[RO_CHAIN_OPERANDS];
    const void *in[RO_CHAIN_OPERANDS];
    ro_call call = {.op = s->op, .input_count = ro_op_describe(s->op)->max_inputs, .input = shape};
    char why[200];
    int64_t row = c->count;
    memcpy(call.attr, s->attr, sizeof call.attr);
    for (int k = 0; k < call.input_count; k++)
        row = count_of(c, s->operand[k]) < row ? count_of(c, s->operand[k]) : row;
    for (int k = 0; k < call.input_count; k++) {
        const int64_t count = count_of(c, s->operand[k]);
        if (count != c->count && !ro_chain_repeats(s->op, k))
            return false;
        shape[k] = count == c->count ? (ro_shape){RO_F32, 2, {count / row, row}}
                                     : (ro_shape){RO_F32, 1, {row}};
        shape[k].dtype = dtype_of(c, s->operand[k]);
        in[k] = memory_of(c, s->operand[k]);
    }
    if (s->op == RO_OP_FILL)
        call.output = (ro_shape){RO_F32, 2, {1, c->count}};
    if (ro_infer(&call, why, sizeof why) != RO_OK || ro_dtype_size(call.output.dtype) != 4)
        return false;
    c->dtype[i] = call.output.dtype;
    return ro_run(ctx, &call, in, results[i]) == RO_OK;
}

static void add_step(ro_ctx *ctx, chain *c) {
    do {
        ro_chain_step *s = &c->step[c->steps];
        *s = (ro_chain_step){.size = sizeof *s, .op = ops[draw(op_count)]};
        for (int k = 0; k < RO_CHAIN_OPERANDS; k++)
            s->operand[k] = c->steps > 0 && draw(3) > 0 ? RO_CHAIN_RESULT + (int32_t)draw(c->steps)
                                                        : (int32_t)draw(INPUTS);
        const ro_op_info *info = ro_op_describe(s->op);
        s->attr[0] = s->op == RO_OP_CAST         ? (draw(2) ? RO_I32 : RO_F32)
                     : info->attr_count == 0     ? 0
                     : info->attr[0].kind == 'i' ? draw(6)
                                                 : ro_attr_f32((float)draw(9) - 4);
    } while (!run_alone(ctx, c, c->steps));
    times[c->step[c->steps].op]++;
    c->steps++;
}

/* Adds a clamp: a number, and the minimum or maximum of it and the last result or first input;
 * sometimes with other steps in between. */
static void add_clamp(ro_ctx *ctx, chain *c) {
    const uint32_t first = c->steps;
    const bool result = first > 0 && c->dtype[first - 1] == RO_F32;
    const int32_t value = result ? RO_CHAIN_RESULT + (int32_t)first - 1 : 0;
    const int32_t number = RO_CHAIN_RESULT + (int32_t)first;
    if (!result && c->input[0].dtype != RO_F32)
        return;
    c->step[first] = (ro_chain_step){.op = RO_OP_FILL};
    c->step[first].attr[0] = ro_attr_f32((float)draw(5) - 2);
    c->step[first + 1] = (ro_chain_step){.op = RO_OP_COMPARE, .operand = {value, number}};
    c->step[first + 1].attr[0] = draw(4) ? RO_LESS + 2 * draw(2) : draw(6);
    c->step[first + 2] = (ro_chain_step){.op = RO_OP_WHERE, .operand = {number + 1, number, value}};
    if (draw(6) == 0)
        c->step[first + 2].operand[1] = value;
    for (; c->steps < first + 3; c->steps++) {
        c->step[c->steps].size = sizeof c->step[0];
        cr_assert(run_alone(ctx, c, c->steps));
        times[c->step[c->steps].op]++;
    }
}

static int run_chain(ro_ctx *ctx, const chain *c, void *output) {
    return ro_chain(ctx, c->count, INPUTS, c->input, c->steps, c->step, output);
}

static void compare_cases(const char *backend, int clamps) {
    ro_ctx *ctx;
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2, .backend = backend},
                      &ctx) != RO_OK)
        return;
    state = 7;
    for (int i = 0; i < CASES; i++) {
        chain c = {0};
        fill_inputs(&c, (data_class)draw(DATA_END));
        if (clamps) /* clamps need f32 */
            c.input[0].dtype = RO_F32;
        for (int64_t steps = 1 + draw(clamps ? STEPS - 2 : STEPS / 2); c.steps < steps;)
            if (clamps && draw(3) == 0)
                add_clamp(ctx, &c);
            else
                add_step(ctx, &c);
        const size_t size = (size_t)c.count * 4;
        cr_assert(run_chain(ctx, &c, got) == RO_OK, "case %d: %s", i, ro_ctx_error(ctx));
        cr_expect(memcmp(got, results[c.steps - 1], size) == 0, "case %d on %s", i, backend);
        /* The output may replace an input, if allowed. */
        if (run_chain(ctx, &c, data[0]) == RO_OK)
            cr_expect(memcmp(data[0], results[c.steps - 1], size) == 0, "case %d, in place", i);
    }
    ro_ctx_destroy(ctx);
}

static void find_ops(void) {
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_chain_takes(op))
            ops[op_count++] = op;
}

/* The operators that chains take follow from the operators' table. */
Test(chain, takes_operators_of_elements) {
    static const int taken[] = {
        RO_OP_FILL,  RO_OP_CAST,    RO_OP_ADD,     RO_OP_SUB,   RO_OP_MUL,       RO_OP_DIV,
        RO_OP_MAX,   RO_OP_MIN,     RO_OP_ABS,     RO_OP_RELU,  RO_OP_SCALE,     RO_OP_COMPARE,
        RO_OP_WHERE, RO_OP_IADD,    RO_OP_SQRT,    RO_OP_RSQRT, RO_OP_EXP,       RO_OP_LOG,
        RO_OP_TANH,  RO_OP_ERF,     RO_OP_SIGMOID, RO_OP_SILU,  RO_OP_GELU,      RO_OP_GELU_ERF,
        RO_OP_SIN,   RO_OP_INTEGER, RO_OP_ROUND,   RO_OP_POW,   RO_OP_DIV_CONST, RO_OP_LEAKY_RELU};
    static const int others[] = {RO_OP_RESHAPE,
                                 RO_OP_DROPOUT,
                                 RO_OP_SOFTMAX,
                                 RO_OP_REDUCE_SUM,
                                 RO_OP_MATMUL,
                                 RO_OP_RELU_GRAD,
                                 RO_OP_EXPAND,
                                 0,
                                 -1,
                                 RO_OP_END};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        cr_expect(ro_chain_takes(taken[i]), "%s", ro_op_describe(taken[i])->name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_expect(!ro_chain_takes(others[i]) && !ro_chain_repeats(others[i], 1), "%d", others[i]);
    cr_expect(ro_chain_repeats(RO_OP_SUB, 1) && !ro_chain_repeats(RO_OP_SUB, 0));
    cr_expect(!ro_chain_repeats(RO_OP_WHERE, 1) && !ro_chain_repeats(RO_OP_EXP, 0));
}

Test(chain, gives_the_bytes_of_its_operators) {
    find_ops();
    for (int i = 0; i < BACKENDS; i++)
        compare_cases(backends[i], 0);
    for (int i = 0; i < op_count; i++)
        cr_expect(times[ops[i]] > 0, "%s is in no case", ro_op_describe(ops[i])->name);
}

/* Arithmetic, whose results stay in registers, and operators that interrupt it. */
Test(chain, gives_the_bytes_of_arithmetic) {
    static const int all[] = {RO_OP_ADD,   RO_OP_ADD,       RO_OP_SUB,  RO_OP_MUL, RO_OP_DIV,
                              RO_OP_SCALE, RO_OP_DIV_CONST, RO_OP_RELU, RO_OP_ABS};
    memcpy(ops, all, sizeof all);
    op_count = sizeof all / sizeof all[0];
    for (int i = 0; i < BACKENDS; i++)
        compare_cases(backends[i], 1);
}

static void expect_refusal(const chain *c, void *output, const char *why) {
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(NULL, &ctx) == RO_OK);
    cr_assert(run_chain(ctx, c, output) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), why), "%s", ro_ctx_error(ctx));
    ro_ctx_destroy(ctx);
}

Test(chain, refuses_what_it_cannot_run) {
    chain c = {.count = 6, .steps = 1};
    for (int i = 0; i < INPUTS; i++)
        c.input[i] = (ro_chain_input){6, RO_F32, 0, data[i]};
    c.step[0] = (ro_chain_step){.size = sizeof c.step[0], .op = RO_OP_SUB, .operand = {0, 1}};
    chain bad = c;
    bad.input[2].count = 4;
    expect_refusal(&bad, got, "input 2 must divide 6 elements, got 4");
    bad = c, bad.input[1].count = 3, bad.input[2].count = 2;
    expect_refusal(&bad, got, "inputs 1 and 2 repeat, and neither fits into the other");
    bad = c, bad.input[3].dtype = RO_BF16;
    expect_refusal(&bad, got, "input 3 must be f32 or i32, got bf16");
    bad = c, bad.input[0].count = 3;
    expect_refusal(&bad, got, "step 0: an operand repeats that may not");
    bad = c, bad.step[0].operand[1] = RO_CHAIN_RESULT;
    expect_refusal(&bad, got, "step 0: an operand is no input and no step before it");
    bad = c, bad.step[0].op = RO_OP_SOFTMAX;
    expect_refusal(&bad, got, "step 0: its operator is none of single elements");
    bad = c, bad.step[0].size = 0;
    expect_refusal(&bad, got, "step 0: its size must be");
    bad = c, bad.steps = 0;
    expect_refusal(&bad, got, "1..32 steps");
    expect_refusal(&c, NULL, "`output` must not be NULL");
    expect_refusal(&c, data[0] + 1, "overlap");
    c.step[0].op = RO_OP_COMPARE;
    expect_refusal(&c, data[0], "overlap");
}
