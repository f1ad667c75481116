/* Runs a chain in strips that stay in the L1 cache through all steps. */
#include <string.h>

#include "repops/operators.h"
#include "repops/src/backend.h"
#include "repops/src/chain_plan.h"

enum { NONE = RO_CHAIN_NONE, STRIP = RO_CHAIN_STRIP };
enum { STRIPS_PER_PIECE = 4 /* strips that a thread takes at a time */ };
/* Estimated microseconds per element of one step: of arithmetic, of a function, of a stage. */
static const double PLAIN_US = 1.5e-4, FUNCTION_US = 1e-3, STAGE_US = 5e-5;
typedef ro_chain_plan plan;

/* ---- slots of a thread's memory ---- */

/* Finds the last step that reads each result. */
static void find_last(plan *p) {
    for (uint32_t i = 0; i < p->steps; i++) {
        p->last[i] = i;
        for (int32_t k = 0; k < p->operands[i]; k++)
            if (p->step[i].operand[k] >= RO_CHAIN_RESULT)
                p->last[p->step[i].operand[k] - RO_CHAIN_RESULT] = i;
    }
}

/* Gives slots to numbers that kernels read, and to inputs that stages read and that repeat within a
 * strip. These slots are filled once per piece of work. */
static void place_filled(plan *p) {
    for (uint32_t i = 0; i < p->inputs; i++)
        p->tile[i] = NONE;
    for (uint32_t i = 0; i < p->runs; i++) {
        const ro_chain_step *s = &p->step[p->run[i].last];
        for (int32_t k = 0; p->run[i].stages == 0 && k < p->operands[p->run[i].last]; k++)
            if (s->operand[k] >= RO_CHAIN_RESULT)
                p->filled[s->operand[k] - RO_CHAIN_RESULT] = true;
    }
    for (uint32_t i = 0; i < p->steps; i++)
        if (p->filled[i] && (p->filled[i] = ro_chain_is_number(p, i)))
            p->slot[i] = p->slots++;
    for (uint32_t i = 0; i < p->stages; i++) {
        const int32_t operand = p->stage[i].operand;
        if (operand != NONE && operand < RO_CHAIN_RESULT && p->tile[operand] == NONE &&
            p->input[operand].count <= STRIP && p->input[operand].count < p->count)
            p->tile[operand] = p->slots++;
    }
}

/* Gives slots to results. A slot is free again after the last step that reads it. */
static void place_results(plan *p) {
    uint32_t until[RO_CHAIN_STEPS + RO_CHAIN_INPUTS];
    place_filled(p);
    for (int32_t i = 0; i < p->slots; i++)
        until[i] = p->steps;
    for (uint32_t i = 0; i < p->runs; i++) {
        const uint32_t step = p->run[i].last;
        int32_t slot = 0;
        while (slot < p->slots && until[slot] >= step)
            slot++;
        p->slot[step] = step + 1 == p->steps ? NONE : slot;
        until[slot] = p->last[step];
        p->slots += slot == p->slots;
    }
}

/* Chooses strips so that inputs that repeat within a strip repeat a whole number of times, and
 * blocks so that a longer repeating input restarts with each block. */
static void lay_strips(plan *p) {
    int64_t small = 1;
    p->block = p->count;
    for (uint32_t i = 0; i < p->inputs; i++) {
        const int64_t count = p->input[i].count;
        if (count <= STRIP && count > small)
            small = count;
        if (count > STRIP && count < p->block)
            p->block = count;
    }
    p->strip = STRIP / small * small;
    p->per_block = (p->block + p->strip - 1) / p->strip;
}

/* ---- running ---- */

/* Returns whether the operator takes long; any other is counted as arithmetic. */
static bool is_function(int op) {
    static const int slow[] = {RO_OP_RSQRT,   RO_OP_EXP,   RO_OP_LOG,   RO_OP_TANH,     RO_OP_ERF,
                               RO_OP_SIGMOID, RO_OP_SILU,  RO_OP_GELU,  RO_OP_GELU_ERF, RO_OP_SIN,
                               RO_OP_COS,     RO_OP_TAN,   RO_OP_ASIN,  RO_OP_ACOS,     RO_OP_ATAN,
                               RO_OP_SINH,    RO_OP_COSH,  RO_OP_ASINH, RO_OP_ACOSH,    RO_OP_ATANH,
                               RO_OP_LOG1P,   RO_OP_EXPM1, RO_OP_LOG2,  RO_OP_EXP2,     RO_OP_ATAN2,
                               RO_OP_POW};
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
        if (slow[i] == op)
            return true;
    return false;
}

static char *slot_of(const plan *p, int worker, int32_t slot) {
    return p->memory + ((size_t)worker * (size_t)p->slots + (size_t)slot) * STRIP * 4;
}

/* Runs elements [at, at + length) through one step. */
static void run_step(const plan *p, int worker, uint32_t i, int64_t at, int64_t length) {
    ro_shape shape[RO_CHAIN_OPERANDS];
    const void *in[RO_CHAIN_OPERANDS];
    const ro_chain_step *s = &p->step[i];
    ro_call call = {.op = s->op, .input_count = p->operands[i], .input = shape};
    memcpy(call.attr, s->attr, sizeof call.attr);
    call.output = (ro_shape){p->dtype[i], 1, {length}};
    for (int32_t k = 0; k < p->operands[i]; k++) {
        const int32_t operand = s->operand[k], result = operand - RO_CHAIN_RESULT;
        shape[k] = (ro_shape){RO_F32, 1, {length}};
        if (result >= 0) {
            shape[k].dtype = p->dtype[result];
            in[k] = slot_of(p, worker, p->slot[result]);
            continue;
        }
        const ro_chain_input *x = &p->input[operand];
        shape[k].dtype = x->dtype;
        in[k] = (const char *)x->data + (size_t)(at % x->count) * 4;
        if (x->count < length)
            shape[k].dim[0] = x->count;
    }
    void *out = p->slot[i] == NONE ? p->output + (size_t)at * 4 : slot_of(p, worker, p->slot[i]);
    const ro_job job = {p->ctx, &call, in, out};
    ro_ctx_table(p->ctx)->kernel[s->op].range(&job, 0, length);
}

/* Returns where element `at` of a stage's operand lies. */
static const float *memory_at(const plan *p, int worker, int32_t operand, int64_t at) {
    const int32_t slot =
        operand >= RO_CHAIN_RESULT ? p->slot[operand - RO_CHAIN_RESULT] : p->tile[operand];
    if (slot != NONE)
        return (const float *)(const void *)slot_of(p, worker, slot);
    const ro_chain_input *x = &p->input[operand];
    return (const float *)x->data + at % x->count;
}

static void run_stages(const plan *p, int worker, const ro_chain_run *run, int64_t at,
                       int64_t length) {
    ro_stage stage[RO_CHAIN_STAGES];
    for (uint32_t i = 0; i < run->stages; i++) {
        const ro_chain_stage *s = &p->stage[run->first_stage + i];
        stage[i] = s->stage;
        if (s->operand != NONE)
            stage[i].at = memory_at(p, worker, s->operand, at);
    }
    const int32_t slot = p->slot[run->last];
    char *out = slot == NONE ? p->output + (size_t)at * 4 : slot_of(p, worker, slot);
    ro_ctx_table(p->ctx)->stages(stage, (int)run->stages, memory_at(p, worker, run->x, at), length,
                                 (float *)(void *)out);
}

static void fill_slots(const plan *p, int worker) {
    for (uint32_t i = 0; i < p->steps; i++)
        if (p->filled[i])
            run_step(p, worker, i, 0, STRIP);
    const int64_t length = p->strip < p->count ? p->strip : p->count;
    for (uint32_t i = 0; i < p->inputs; i++)
        for (int64_t at = 0; p->tile[i] != NONE && at < length; at += p->input[i].count)
            memcpy(slot_of(p, worker, p->tile[i]) + at * 4, p->input[i].data,
                   (size_t)p->input[i].count * 4);
}

static void run_strips(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    fill_slots(p, worker);
    for (int64_t n = first; n < last; n++) {
        const int64_t inside = n % p->per_block * p->strip, left = p->block - inside;
        const int64_t at = n / p->per_block * p->block + inside;
        const int64_t length = left < p->strip ? left : p->strip;
        for (uint32_t i = 0; i < p->runs; i++)
            if (p->run[i].stages > 0)
                run_stages(p, worker, &p->run[i], at, length);
            else
                run_step(p, worker, p->run[i].last, at, length);
    }
}

static double cost_us(const plan *p) {
    double us = 0;
    for (uint32_t i = 0; i < p->runs; i++)
        us += p->run[i].stages > 0                      ? STAGE_US * p->run[i].stages
              : is_function(p->step[p->run[i].last].op) ? FUNCTION_US
                                                        : PLAIN_US;
    return us * (double)p->count;
}

ro_status ro_chain_run_plan(plan *p) {
    const int threads = ro_ctx_threads(p->ctx);
    find_last(p);
    ro_chain_find_runs(p);
    place_results(p);
    lay_strips(p);
    p->memory = ro_workspace(p->ctx, (size_t)p->slots * (size_t)threads * STRIP * 4);
    if (!p->memory)
        return RO_ERR_MEMORY;
    const int64_t strips = p->count / p->block * p->per_block;
    const int64_t share = (strips + threads - 1) / threads;
    const int64_t grain = share < STRIPS_PER_PIECE ? share : STRIPS_PER_PIECE;
    ro_parallel_for(p->ctx, strips, grain, cost_us(p), run_strips, p);
    return RO_OK;
}
