#include "tests/graphs/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/graphs/values.h"
#include "verde/exec/batch.h"

/* Two prompts with the program, and one with a similar program. */
enum { PROMPTS = 3, STEPS_MAX = 8 };

typedef struct {
    const vd_program *program[PROMPTS];
    values v[PROMPTS];
    const void **data[PROMPTS]; /* own data first, then those shared with prompt 0 */
    uint32_t own;
    bool joins[PROMPTS];
    vd_hash state[PROMPTS][STEPS_MAX + 1]; /* states of each when run alone */
} prompts;

static bool makes_tokens(const vd_program *p) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, "token") == 0)
            return p->steps <= STEPS_MAX && p->data_count > 1;
    return false;
}

static void open_prompts(prompts *x, uint64_t seed) {
    const vd_program *first = x->program[0];
    x->own = strcmp(first->data[1].tensor.name, "key") == 0 ? 2 : 1;
    for (int i = 0; i < PROMPTS; i++) {
        const vd_program *p = x->program[i];
        values_make(p, seed + (uint64_t)i, &x->v[i]);
        x->data[i] = calloc(p->data_count + 1, sizeof *x->data[i]);
        for (uint32_t k = 0; x->data[i] && k < p->data_count && k < first->data_count; k++)
            x->data[i][k] = x->v[k < x->own ? i : 0].data[k];
    }
}

static void close_prompts(prompts *x) {
    for (int i = 0; i < PROMPTS; i++) {
        values_free(x->program[i], &x->v[i]);
        free(x->data[i]);
    }
}

static vd_status run_alone(prompts *x, int number, ro_ctx *ro, vd_err *err) {
    const vd_program *p = x->program[number];
    const vd_exec exec = {.program = p, .ro = ro, .data = x->data[number], .unfused = true};
    vd_state state = {0};
    vd_hash program;
    vd_status status = vd_program_hash(p, &program, err);
    if (status == VD_OK)
        status = vd_exec_init(&exec, NULL, &state, err);
    for (int64_t s = 0; status == VD_OK && s <= p->steps; s++) {
        if (s > 0)
            status = vd_exec_step(&exec, NULL, &state, NULL, err);
        if (status == VD_OK)
            status = vd_state_hash(ro, p, &program, &state, NULL, &x->state[number][s], err);
    }
    vd_state_free(&state);
    return status;
}

static vd_status compare(void *user, const vd_batch_state *s, vd_err *err) {
    prompts *x = user;
    if (vd_hash_equal(s->commitment, &x->state[s->item][s->state->step]))
        return VD_OK;
    return vd_fail(err, VD_ERR_LOCAL, "prompt %d, state %d has another commitment than alone",
                   (int)s->item, (int)s->state->step);
}

static vd_status run_together(prompts *x, vd_batch *b, vd_err *err) {
    vd_status status = VD_OK;
    for (int i = 0; status == VD_OK && i < PROMPTS; i++)
        if (x->joins[i])
            status = vd_batch_add(b, (uint64_t)i, x->program[i], x->data[i], NULL, err);
    while (status == VD_OK && vd_batch_count(b) > 0)
        status = vd_batch_pass(b, err);
    return status;
}

/* Runs all prompts that may run together, alone and together. */
static vd_status run_all(prompts *x, const machines *m, vd_batch *b, int *ran, vd_err *err) {
    vd_status status = VD_OK;
    vd_err why = {0};
    for (int i = 0; status == VD_OK && i < PROMPTS; i++) {
        const vd_program *p = x->program[i];
        x->joins[i] = p->steps <= STEPS_MAX && vd_batch_takes(b, p, &why) == VD_OK;
        *ran += x->joins[i];
        if (x->joins[i])
            status = run_alone(x, i, m->reference, err);
    }
    return status == VD_OK ? run_together(x, b, err) : status;
}

bool together_agree(const machines *m, const vd_program *p, const vd_program *similar,
                    uint64_t seed, int *ran, ways_why *why) {
    static prompts x;
    vd_batch *b = NULL;
    vd_err err = {0};
    *ran = 0;
    if (!makes_tokens(p) || similar->data_count == 0)
        return true;
    x = (prompts){.program = {p, p, similar}};
    open_prompts(&x, seed);
    const vd_exec exec = {.program = p, .ro = m->two, .data = x.data[0]};
    const vd_batch_options options = {.own_data = x.own,
                                      .chunk = 1 + (int64_t)(seed % 4),
                                      .reached = compare,
                                      .user = &x,
                                      .strange = true};
    vd_status status = vd_batch_create(&exec, &options, &b, &err);
    if (status == VD_OK)
        status = run_all(&x, m, b, ran, &err);
    if (*ran && status != VD_OK)
        snprintf(why->text, sizeof why->text, "together: %s", err.text);
    vd_batch_destroy(b);
    close_prompts(&x);
    return *ran == 0 || status == VD_OK;
}
