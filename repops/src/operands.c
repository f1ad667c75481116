/* Checks of the memory that callers pass. */
#include "repops/src/operands.h"
#include "repops/src/backend.h"

/* ---- overlap ---- */

static int is_empty(const ro_pieces *p) {
    return p->rows <= 0 || p->width <= 0;
}

/* Returns the address after the last byte, or the highest address if the memory would reach beyond
 * it. */
static uintptr_t end_of(const ro_pieces *p) {
    uintptr_t reach, end;
    if (__builtin_mul_overflow((uintptr_t)(p->rows - 1), (uintptr_t)p->step, &reach) ||
        __builtin_add_overflow(reach, (uintptr_t)p->width, &reach) ||
        __builtin_add_overflow((uintptr_t)p->at, reach, &end))
        return UINTPTR_MAX;
    return end;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Returns nonzero if two matrices of the same step share a byte: piece i of a and piece j of b do
 * if -a.width < distance + (i - j) step < b.width. */
static int meet_at_one_step(const ro_pieces *a, const ro_pieces *b, int64_t step) {
    const int64_t distance = (int64_t)((uintptr_t)a->at - (uintptr_t)b->at);
    int64_t low = floor_div(-a->width - distance, step) + 1;
    int64_t high = floor_div(b->width - distance - 1, step);
    low = low < 1 - b->rows ? 1 - b->rows : low;
    high = high > a->rows - 1 ? a->rows - 1 : high;
    return low <= high;
}

/* Returns nonzero if matrices of different steps share a byte. Walks once through both. */
static int meet_at_two_steps(const ro_pieces *a, const ro_pieces *b) {
    uintptr_t x = (uintptr_t)a->at, y = (uintptr_t)b->at;
    for (int64_t i = 0, j = 0; i < a->rows && j < b->rows;) {
        if (x + (uintptr_t)a->width <= y)
            i++, x += (uintptr_t)a->step;
        else if (y + (uintptr_t)b->width <= x)
            j++, y += (uintptr_t)b->step;
        else
            return 1;
    }
    return 0;
}

int ro_pieces_meet(const ro_pieces *a, const ro_pieces *b) {
    if (is_empty(a) || is_empty(b) || end_of(a) <= (uintptr_t)b->at ||
        end_of(b) <= (uintptr_t)a->at)
        return 0;
    if (a->rows == 1 && b->rows == 1)
        return 1;
    const int64_t step = a->rows == 1 ? b->step : a->step;
    return b->rows == 1 || b->step == step ? meet_at_one_step(a, b, step) : meet_at_two_steps(a, b);
}

/* ---- checks ---- */

ro_status ro_missing(ro_ctx *ctx, const char *function, const char *what) {
    return ro_fail(ctx, RO_ERR_ARG, "%s: `%s` must not be NULL", function, what);
}

static int same_memory(const ro_pieces *a, const ro_pieces *b) {
    return a->at == b->at && a->rows == b->rows && a->step == b->step && a->width == b->width;
}

/* Compares output i with all other operands; each pair of outputs is compared once. */
static ro_status check_output(ro_ctx *ctx, const char *function, const ro_operand *operand, int i,
                              int count) {
    for (int k = 0; k < count; k++) {
        const ro_operand *out = &operand[i], *o = &operand[k];
        const int twice = (o->use & RO_WRITTEN) && k <= i;
        if (twice || !o->memory.at || !ro_pieces_meet(&out->memory, &o->memory) ||
            ((out->onto >> k & 1) && same_memory(&out->memory, &o->memory)))
            continue;
        return ro_fail(ctx, RO_ERR_ARG, "%s: the memory of `%s` overlaps that of `%s`", function,
                       out->name, o->name);
    }
    return RO_OK;
}

ro_status ro_check_operands(ro_ctx *ctx, const char *function, const ro_operand *operand,
                            int count) {
    for (int i = 0; i < count; i++)
        if (!operand[i].memory.at && !(operand[i].use & RO_OPTIONAL) &&
            !is_empty(&operand[i].memory))
            return ro_missing(ctx, function, operand[i].name);
    for (int i = 0; i < count; i++) {
        ro_status status = RO_OK;
        if ((operand[i].use & RO_WRITTEN) && operand[i].memory.at)
            status = check_output(ctx, function, operand, i, count);
        if (status != RO_OK)
            return status;
    }
    return RO_OK;
}

static ro_pieces tensor(const void *at, const ro_shape *shape) {
    const int64_t size = ro_shape_numel(shape) * (int64_t)ro_dtype_size(shape->dtype);
    return (ro_pieces){at, 1, size, size};
}

/* Returns nonzero if ro_op_in_place allows that input i is overwritten. */
static int is_in_place(const ro_call *call, int i, const void *input, const void *output) {
    return i < 32 && (ro_op_in_place(call->op) >> i & 1) && input == output &&
           ro_shape_numel(&call->input[i]) == ro_shape_numel(&call->output);
}

ro_status ro_check_tensors(ro_ctx *ctx, const ro_call *call, const void *const *input,
                           const void *output) {
    const char *name = ro_op_describe(call->op)->name;
    if (call->output.ndim < 1 || call->output.ndim > RO_MAX_DIMS)
        return ro_fail(ctx, RO_ERR_ARG, "%s: the call has no output shape: ro_infer gives it",
                       name);
    const ro_pieces out = tensor(output, &call->output);
    if (is_empty(&out)) /* with an empty output nothing is read either */
        return RO_OK;
    if (!output)
        return ro_missing(ctx, name, "output");
    if (call->input_count > 0 && (!input || !call->input))
        return ro_missing(ctx, name, input ? "call->input" : "input");
    for (int i = 0; i < call->input_count; i++) {
        const ro_pieces in = tensor(input[i], &call->input[i]);
        if (!is_empty(&in) && !input[i])
            return ro_fail(ctx, RO_ERR_ARG, "%s: input %d must not be NULL", name, i);
        if (ro_pieces_meet(&out, &in) && !is_in_place(call, i, input[i], output))
            return ro_fail(ctx, RO_ERR_ARG, "%s: the output overlaps input %d", name, i);
    }
    return RO_OK;
}
