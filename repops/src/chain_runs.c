/* Groups the steps of a chain into runs: arithmetic whose results only the next steps read becomes
 * stages (stages.h). */
#include <string.h>

#include "repops/operators.h"
#include "repops/src/chain_plan.h"
#include "repops/src/inline.h"

enum { FEWEST_STEPS = 2 /* steps that are worth a run of stages */ };

/* A run that grows from step `first` on; `value` is the result of its last step, or NONE. */
typedef struct {
    ro_chain_plan *p;
    uint32_t first;
    int32_t x, value;
    uint32_t first_stage;
    uint32_t end[RO_CHAIN_STEPS]; /* index after the last stage that computes each step's result */
    int32_t kept;                 /* the one result that a stage keeps for later stages, or NONE */
} builder;

static bool put_stage(builder *b, uint32_t at, ro_chain_stage stage) {
    ro_chain_plan *p = b->p;
    if (p->stages == RO_CHAIN_STAGES)
        return false;
    memmove(&p->stage[at + 1], &p->stage[at], (p->stages - at) * sizeof p->stage[0]);
    p->stage[at] = stage;
    p->stages++;
    return true;
}

/* Returns whether the operand is a single number, and gives it. */
static bool number_of(const ro_chain_plan *p, int32_t operand, float *number) {
    if (operand >= RO_CHAIN_RESULT) {
        const uint32_t step = (uint32_t)(operand - RO_CHAIN_RESULT);
        *number = ro_attr_to_f32(p->step[step].attr[RO_FILL_VALUE]);
        return ro_chain_is_number(p, step);
    }
    const ro_chain_input *x = &p->input[operand];
    if (x->count != 1 || x->dtype != RO_F32 || !x->data)
        return false;
    memcpy(number, x->data, sizeof *number);
    return true;
}

/* Lets a stage keep the result of a step. Returns false if another one is kept already. */
static bool keep(builder *b, int32_t operand) {
    if (b->kept != RO_CHAIN_NONE)
        return b->kept == operand;
    const uint32_t step = (uint32_t)(operand - RO_CHAIN_RESULT), at = b->end[step];
    if (!put_stage(b, at, (ro_chain_stage){{.kind = RO_STAGE_KEEP}, RO_CHAIN_NONE}))
        return false;
    for (uint32_t i = step; i < RO_CHAIN_STEPS; i++)
        b->end[i]++;
    b->kept = operand;
    return true;
}

/* Describes an operand other than the run's value: a number, a kept result or memory. Returns false
 * if stages cannot read it. */
static bool find_operand(builder *b, int32_t operand, ro_chain_stage *s) {
    const ro_chain_plan *p = b->p;
    const bool result = operand >= RO_CHAIN_RESULT;
    const uint32_t at = (uint32_t)(result ? operand - RO_CHAIN_RESULT : operand);
    s->operand = RO_CHAIN_NONE;
    if (number_of(p, operand, &s->stage.number)) {
        s->stage.source = RO_STAGE_NUMBER;
        return true;
    }
    if (result && at >= b->first) {
        s->stage.source = RO_STAGE_KEPT;
        return keep(b, operand);
    }
    s->stage.source = RO_STAGE_MEMORY, s->operand = operand;
    return (result ? p->dtype[at] : p->input[at].dtype) == RO_F32;
}

/* Returns whether an operand in memory can be the value that a run starts from. */
static bool begins(const builder *b, int32_t operand) {
    const ro_chain_plan *p = b->p;
    if (operand >= RO_CHAIN_RESULT) {
        const uint32_t step = (uint32_t)(operand - RO_CHAIN_RESULT);
        return p->dtype[step] == RO_F32 && !ro_chain_is_number(p, step);
    }
    return p->input[operand].dtype == RO_F32 && p->input[operand].count == p->count;
}

/* Returns which operand of step i is the run's value, or NONE. The first step of a run makes an
 * operand the value. */
static int value_at(builder *b, uint32_t i, int operands) {
    for (int k = 0; k < operands; k++) {
        const int32_t operand = b->p->step[i].operand[k];
        if (b->value == RO_CHAIN_NONE && begins(b, operand))
            b->x = b->value = operand;
        if (b->value == operand)
            return k;
    }
    return RO_CHAIN_NONE;
}

/* ---- steps as stages ---- */

static bool put_arithmetic(builder *b, uint32_t i, ro_stage_kind kind, ro_stage_kind turned) {
    const int value = value_at(b, i, 2);
    ro_chain_stage s = {{.kind = value == 1 ? turned : kind, .canon = 1}, RO_CHAIN_NONE};
    return value != RO_CHAIN_NONE && find_operand(b, b->p->step[i].operand[1 - value], &s) &&
           put_stage(b, b->p->stages, s);
}

/* Adds a stage that needs no second operand, or whose second operand is an attribute. */
static bool put_single(builder *b, uint32_t i, ro_stage_kind kind, float number) {
    const ro_stage stage = {.kind = kind, .canon = kind != RO_STAGE_RELU, .number = number};
    return value_at(b, i, 1) == 0 &&
           put_stage(b, b->p->stages, (ro_chain_stage){stage, RO_CHAIN_NONE});
}

static uint32_t next_step(const ro_chain_plan *p, uint32_t i) {
    do
        i++;
    while (i < p->steps && ro_chain_is_number(p, i));
    return i;
}

/* Adds a stage for where(v < c, c, v), which are step i (compare) and step *last (where). */
static bool put_cut(builder *b, uint32_t i, uint32_t *last) {
    const ro_chain_plan *p = b->p;
    const int64_t kind = p->step[i].attr[RO_COMPARE_KIND];
    const uint32_t where = next_step(p, i);
    float bound, other;
    if ((kind != RO_LESS && kind != RO_GREATER) || where == p->steps || value_at(b, i, 1) != 0 ||
        p->step[where].op != RO_OP_WHERE || p->last[i] != where)
        return false;
    const int32_t *operand = p->step[where].operand;
    if (operand[0] != RO_CHAIN_RESULT + (int32_t)i || operand[2] != b->value ||
        !number_of(p, p->step[i].operand[1], &bound) || !number_of(p, operand[1], &other) ||
        memcmp(&bound, &other, sizeof bound) != 0)
        return false;
    const ro_stage stage = {.kind = kind == RO_LESS ? RO_STAGE_CUT_BELOW : RO_STAGE_CUT_ABOVE,
                            .number = bound};
    *last = where;
    return put_stage(b, p->stages, (ro_chain_stage){stage, RO_CHAIN_NONE});
}

/* Adds the stages of steps i to *last. Returns false if stages cannot compute step i. */
static bool put_step(builder *b, uint32_t i, uint32_t *last) {
    const ro_chain_step *s = &b->p->step[i];
    *last = i;
    switch (s->op) {
    case RO_OP_ADD: return put_arithmetic(b, i, RO_STAGE_ADD, RO_STAGE_ADD);
    case RO_OP_SUB: return put_arithmetic(b, i, RO_STAGE_SUB, RO_STAGE_SUB_FROM);
    case RO_OP_MUL: return put_arithmetic(b, i, RO_STAGE_MUL, RO_STAGE_MUL);
    case RO_OP_DIV: return put_arithmetic(b, i, RO_STAGE_DIV, RO_STAGE_DIV_INTO);
    case RO_OP_SCALE:
        return put_single(b, i, RO_STAGE_MUL, ro_attr_to_f32(s->attr[RO_SCALE_FACTOR]));
    case RO_OP_DIV_CONST:
        return put_single(b, i, RO_STAGE_DIV, ro_attr_to_f32(s->attr[RO_DIV_CONST_DIVISOR]));
    case RO_OP_RELU: return put_single(b, i, RO_STAGE_RELU, 0);
    case RO_OP_COMPARE: return put_cut(b, i, last);
    default: return false;
    }
}

/* ---- runs ---- */

/* Returns whether no step after `last` reads the result of a step before `last`. */
static bool is_closed(const builder *b, uint32_t last) {
    for (uint32_t i = b->first; i < last; i++)
        if (!ro_chain_is_number(b->p, i) && b->p->last[i] > last)
            return false;
    return true;
}

/* Stages need to make a NaN canonical only if no later stage does. */
static void leave_nans(ro_chain_stage *stage, uint32_t count) {
    bool seen = true;
    for (uint32_t i = count; i-- > 0;) {
        const bool makes = stage[i].stage.canon || stage[i].stage.kind == RO_STAGE_RELU;
        stage[i].stage.canon = stage[i].stage.canon && seen;
        seen = seen && !makes;
    }
}

/* Finds the longest run of stages from step `first` on. Returns false if there is none. */
static bool find_run(ro_chain_plan *p, uint32_t first, ro_chain_run *run) {
    builder b = {.p = p, .first = first, .first_stage = p->stages};
    b.x = b.value = b.kept = RO_CHAIN_NONE;
    uint32_t steps = 0;
    bool found = false;
    *run = (ro_chain_run){.first_stage = b.first_stage};
    for (uint32_t i = first, last; i < p->steps && put_step(&b, i, &last); i = next_step(p, last)) {
        b.value = RO_CHAIN_RESULT + (int32_t)last;
        for (uint32_t k = last; k < RO_CHAIN_STEPS; k++)
            b.end[k] = p->stages;
        steps += 1 + (last > i);
        if (steps < FEWEST_STEPS || !is_closed(&b, last))
            continue;
        run->last = last, run->x = b.x, found = true;
    }
    run->stages = found ? b.end[run->last] - b.first_stage : 0;
    p->stages = b.first_stage + run->stages;
    leave_nans(&p->stage[b.first_stage], run->stages);
    return found;
}

void ro_chain_find_runs(ro_chain_plan *p) {
    for (uint32_t i = 0; i < p->steps; i = next_step(p, p->run[p->runs++].last)) {
        ro_chain_run *run = &p->run[p->runs];
        if (ro_chain_is_number(p, i))
            i = next_step(p, i);
        if (!find_run(p, i, run))
            *run = (ro_chain_run){.last = i};
    }
}
