/* ro_chain: which operators it takes, and its checks. */
#include "repops/chain.h"

#include <string.h>

#include "repops/operators.h"
#include "repops/src/backend.h"
#include "repops/src/chain_plan.h"
#include "repops/src/fpenv.h"
#include "repops/src/operands.h"
#include "repops/src/sized.h"

typedef ro_chain_plan plan;

/* An operator that may be in a chain, and the index of its operand that may repeat, or NONE. Its
 * element e depends only on the elements at e of its operands, as column `reads` of operators.def
 * says. */
enum { NONE = RO_CHAIN_NONE, FOLLOWS = 0, DECLARED = 1 };
typedef struct {
    bool taken;
    int repeats;
} element_op;

static const struct {
    const char *reads;
    int declared;
} operators[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    [number] = {reads, shape},
#include "repops/src/operators.def"
};

/* Takes `fill`, `where`, operators that read "x[e]", and those that read "a[e]; b[e % numel(b)]"
 * with any letter for b. */
static element_op find(int op) {
    static const char two[] = "a[e]; b[e % numel(b)]";
    const char *reads = op > 0 && op < RO_OP_END ? operators[op].reads : NULL;
    if (op == RO_OP_FILL || op == RO_OP_WHERE)
        return (element_op){true, NONE};
    if (!reads || operators[op].declared)
        return (element_op){false, NONE};
    if (strcmp(reads, "x[e]") == 0)
        return (element_op){true, NONE};
    if (strlen(reads) != strlen(two))
        return (element_op){false, NONE};
    for (size_t i = 1; two[i]; i++)
        if (reads[i] != (two[i] == 'b' ? reads[6] : two[i]))
            return (element_op){false, NONE};
    return (element_op){true, 1};
}

int ro_chain_takes(int op) {
    return find(op).taken;
}

int ro_chain_repeats(int op, int i) {
    const element_op e = find(op);
    return e.repeats != NONE && e.repeats == i;
}

/* ---- plan ---- */

static ro_status refuse_step(ro_ctx *ctx, uint32_t i, const char *why) {
    return ro_fail(ctx, RO_ERR_ARG, "chain: step %u: %s", (unsigned)i, why);
}

/* Gives an operand's type and number of elements. Returns false if it is neither an input nor the
 * result of an earlier step. */
static bool look(const plan *p, uint32_t step, int32_t operand, int32_t *dtype, int64_t *count) {
    const int32_t result = operand - RO_CHAIN_RESULT;
    const bool is_input = operand >= 0 && (uint32_t)operand < p->inputs;
    if (!is_input && (result < 0 || (uint32_t)result >= step))
        return false;
    *dtype = is_input ? p->input[operand].dtype : p->dtype[result];
    *count = is_input ? p->input[operand].count : p->count;
    return true;
}

/* Gives the shapes of a step's operands as rows as long as the shortest operand, and that one as a
 * single row. Returns what is wrong, or NULL. */
static const char *find_shapes(const plan *p, uint32_t i, int repeats, ro_call *call,
                               ro_shape *shape) {
    int64_t row = p->count, count[RO_CHAIN_OPERANDS];
    for (int k = 0; k < call->input_count; k++) {
        if (!look(p, i, p->step[i].operand[k], &shape[k].dtype, &count[k]))
            return "an operand is no input and no step before it";
        if (count[k] != p->count && repeats != k)
            return "an operand repeats that may not";
        row = count[k] < row ? count[k] : row;
    }
    for (int k = 0; k < call->input_count; k++)
        shape[k] = count[k] == p->count ? (ro_shape){shape[k].dtype, 2, {p->count / row, row}}
                                        : (ro_shape){shape[k].dtype, 1, {row}};
    if (call->op == RO_OP_FILL)
        call->output = (ro_shape){RO_F32, 2, {1, row}};
    return NULL;
}

static ro_status check_step(plan *p, uint32_t i, const ro_chain_step *given) {
    char text[200];
    ro_shape shape[RO_CHAIN_OPERANDS];
    if (ro_size_of(given) != sizeof *given)
        return refuse_step(p->ctx, i, "its size must be sizeof(ro_chain_step)");
    const element_op e = find(given->op);
    if (!e.taken)
        return refuse_step(p->ctx, i, "its operator is none of single elements");
    p->step[i] = *given;
    p->operands[i] = ro_op_describe(given->op)->max_inputs;
    ro_call call = {.op = given->op, .input_count = p->operands[i], .input = shape};
    memcpy(call.attr, given->attr, sizeof call.attr);
    const char *why = find_shapes(p, i, e.repeats, &call, shape);
    if (!why && ro_infer(&call, text, sizeof text) != RO_OK)
        why = text;
    p->dtype[i] = call.output.dtype;
    if (!why && ro_dtype_size(p->dtype[i]) != 4)
        why = "it gives neither f32 nor i32";
    return why ? refuse_step(p->ctx, i, why) : RO_OK;
}

/* Returns whether the smaller of two counts divides the larger one. */
static bool nested(int64_t a, int64_t b) {
    return a < b ? b % a == 0 : a % b == 0;
}

static ro_status check_inputs(plan *p) {
    for (uint32_t i = 0; i < p->inputs; i++) {
        const ro_chain_input *x = &p->input[i];
        if (x->dtype != RO_F32 && x->dtype != RO_I32)
            return ro_fail(p->ctx, RO_ERR_ARG, "chain: input %u must be f32 or i32, got %s",
                           (unsigned)i, ro_dtype_name(x->dtype));
        if (x->count < 1 || x->count > p->count || p->count % x->count != 0)
            return ro_fail(p->ctx, RO_ERR_ARG,
                           "chain: input %u must divide %lld elements, got %lld", (unsigned)i,
                           (long long)p->count, (long long)x->count);
        for (uint32_t k = 0; k < i; k++)
            if (!nested(x->count, p->input[k].count))
                return ro_fail(p->ctx, RO_ERR_ARG,
                               "chain: inputs %u and %u repeat, and neither fits into the other",
                               (unsigned)k, (unsigned)i);
    }
    return RO_OK;
}

static ro_status check_memory(const plan *p) {
    ro_operand operands[RO_CHAIN_INPUTS + 1];
    const ro_chain_step *last = &p->step[p->steps - 1];
    uint32_t onto = 0;
    for (uint32_t i = 0; i < p->inputs; i++) {
        bool may = p->input[i].count == p->count;
        for (int32_t k = 0; k < p->operands[p->steps - 1]; k++)
            may &= last->operand[k] != (int32_t)i || (ro_op_in_place(last->op) >> k & 1);
        onto |= (uint32_t)may << i;
        operands[i] =
            (ro_operand){"input", ro_words(p->input[i].data, p->input[i].count), RO_READ, 0};
    }
    operands[p->inputs] = (ro_operand){"output", ro_words(p->output, p->count), RO_WRITTEN, onto};
    return ro_check_operands(p->ctx, "chain", operands, (int)p->inputs + 1);
}

ro_status ro_chain(ro_ctx *ctx, int64_t count, uint32_t inputs, const ro_chain_input *input,
                   uint32_t steps, const ro_chain_step *step, void *output) {
    if (!ctx || !step || (inputs > 0 && !input))
        return ro_missing(ctx, "chain", !ctx ? "ctx" : !step ? "step" : "input");
    if (ro_ctx_on(ctx))
        return ro_fail(ctx, RO_ERR_UNSUPPORTED, "chain: on CPUs only");
    if (count < 0 || count > INT64_C(1) << 40 || steps < 1 || steps > RO_CHAIN_STEPS ||
        inputs > RO_CHAIN_INPUTS)
        return ro_fail(ctx, RO_ERR_ARG,
                       "chain: expected 0..2^40 elements, 1..%d steps and at most %d inputs, got "
                       "%lld, %u and %u",
                       RO_CHAIN_STEPS, RO_CHAIN_INPUTS, (long long)count, (unsigned)steps,
                       (unsigned)inputs);
    plan p = {.ctx = ctx, .count = count, .inputs = inputs, .steps = steps, .input = input};
    p.output = output;
    ro_status status = count > 0 ? check_inputs(&p) : RO_OK;
    for (uint32_t i = 0; count > 0 && status == RO_OK && i < steps; i++)
        status = check_step(&p, i, &step[i]);
    if (status != RO_OK || count == 0)
        return status;
    status = check_memory(&p);
    return status == RO_OK ? ro_chain_run_plan(&p) : status;
}
