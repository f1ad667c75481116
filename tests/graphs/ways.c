#include "tests/graphs/ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repops/ref.h"
#include "tests/graphs/dice.h"
#include "tests/graphs/values.h"
#include "verde/exec/memory.h"
#include "verde/exec/source.h"

enum { ELEMENTS = 2 }; /* elements of each node that the reference computes */

#define SAY(why, ...) snprintf((why)->text, sizeof(why)->text, __VA_ARGS__)

static bool open_one(const char *backend, int threads, ro_ctx **out, ways_why *why) {
    const ro_options options = {.size = sizeof options, .threads = threads, .backend = backend};
    if (ro_ctx_create(&options, out) == RO_OK)
        return true;
    SAY(why, "%s", ro_ctx_error(NULL));
    return false;
}

bool ways_open(const char *backend, machines *out, ways_why *why) {
    *out = (machines){0};
    return open_one("scalar", 1, &out->reference, why) && open_one(backend, 1, &out->one, why) &&
           open_one(backend, 2, &out->two, why);
}

void ways_close(machines *m) {
    ro_ctx_destroy(m->reference);
    ro_ctx_destroy(m->one);
    ro_ctx_destroy(m->two);
}

/* ---- node by node: nodes are compared with the reference ---- */

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    dice d;
    bool wrong;
    ways_why *why;
} watch;

static uint32_t word_of(const ro_shape *shape, const void *tensor, int64_t element) {
    const ro_ref_memory memory = {&(ro_call){.input = shape}, &tensor};
    return ro_ref_load_memory((void *)&memory, 0, element);
}

/* Does the last part of a fold, as a provider would state it in a dispute, give the element? */
static bool fold_agrees(watch *w, uint32_t node, int64_t element, uint32_t want,
                        const void *const *input) {
    vd_fold fold;
    vd_records parts = {0};
    vd_err err = {0};
    if (!vd_fold_open(&fold, w->program, w->graph, node, element))
        return true;
    if (vd_fold_run(&fold, input, &parts, &err) != VD_OK) {
        SAY(w->why, "a fold: %s", err.text);
        return false;
    }
    size_t size;
    const uint32_t got = vd_fold_element(&fold, vd_records_at(&parts, fold.parts - 1, &size));
    vd_records_free(&parts);
    if (got != want)
        SAY(w->why, "%s, element %lld: its fold gives %08x, its reference %08x",
            vd_node_name(w->graph, node).text, (long long)element, got, want);
    return got == want;
}

static bool element_agrees(watch *w, uint32_t node, const ro_call *call, int64_t element,
                           const void *const *input, const void *output) {
    const ro_ref_memory memory = {call, input};
    const uint32_t got = word_of(&call->output, output, element);
    uint32_t want = 0;
    vd_err err = {0};
    if (vd_leaf_element(call, element, ro_ref_load_memory, (void *)&memory, &want, &err) != VD_OK) {
        SAY(w->why, "%s", err.text);
        return false;
    }
    if (got != want)
        SAY(w->why, "%s (%s), element %lld: kernel %08x, reference %08x",
            vd_node_name(w->graph, node).text, ro_op_describe(call->op)->name, (long long)element,
            got, want);
    return got == want && fold_agrees(w, node, element, want, input);
}

static bool compare_node(void *user, uint32_t node, const void *const *input, const void *output) {
    watch *w = user;
    static ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_node_call(w->program, w->graph, node, &call, shapes);
    const uint64_t count = (uint64_t)ro_shape_numel(&call.output);
    for (int i = 0; i < ELEMENTS && !w->wrong; i++)
        w->wrong =
            !element_agrees(w, node, &call, (int64_t)(dice_word(&w->d) % count), input, output);
    return !w->wrong;
}

/* ---- a run's results ---- */

typedef struct {
    vd_state state; /* in host memory */
    vd_step_numbers numbers;
} result;

static vd_status to_host(const vd_program *p, vd_state *state, vd_err *err) {
    vd_state host = {.step = state->step, .count = state->count};
    vd_status status = VD_OK;
    if (!state->memory)
        return VD_OK;
    host.tensor = calloc(state->count, sizeof *host.tensor);
    for (uint32_t i = 0; status == VD_OK && i < state->count; i++) {
        const size_t size = vd_shape_bytes(&p->leaf[i].shape);
        host.tensor[i] = vd_memory_alloc(NULL, size);
        status = vd_memory_read(state->memory, host.tensor[i], state->tensor[i], size, err);
    }
    vd_state_free(state);
    *state = host;
    return status;
}

typedef struct {
    const char *name;
    bool unfused;
    bool keeps;  /* keeps the previous state */
    bool starts; /* initialisation instead of a step */
} way;

/* Executes in one way on `ro`. */
static vd_status execute(const way *by, const vd_program *p, ro_ctx *ro, const values *v,
                         const vd_observer *observer, result *out, vd_err *err) {
    vd_exec exec = {.program = p,
                    .ro = ro,
                    .data = (const void *const *)v->data,
                    .unfused = by->unfused,
                    .numbers = &out->numbers};
    vd_state before = values_copy(p, &v->state);
    *out = (result){0};
    vd_status status = vd_exec_place(&exec, err);
    if (status == VD_OK)
        status = vd_state_place(&exec, &before, err);
    if (status == VD_OK && by->starts)
        status = vd_exec_init(&exec, observer, &out->state, err);
    else if (status == VD_OK && by->keeps)
        status = vd_exec_next(&exec, &before, &out->state, NULL, err);
    else if (status == VD_OK) {
        status = vd_exec_step(&exec, observer, &before, NULL, err);
        out->state = before;
        before = (vd_state){0};
    }
    if (status == VD_OK && out->state.tensor)
        status = to_host(p, &out->state, err);
    vd_state_free(&before);
    vd_exec_drop(&exec);
    return status;
}

/* ---- comparing ---- */

static bool same_states(const vd_program *p, const vd_state *want, const vd_state *got,
                        const char *name, ways_why *why) {
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        const ro_shape *shape = &p->leaf[i].shape;
        if (memcmp(want->tensor[i], got->tensor[i], vd_shape_bytes(shape)) == 0)
            continue;
        int64_t e = 0;
        while (word_of(shape, want->tensor[i], e) == word_of(shape, got->tensor[i], e))
            e++;
        SAY(why, "%s: leaf %u (%s), element %lld is %08x, node by node %08x", name, i,
            p->leaf[i].name, (long long)e, word_of(shape, got->tensor[i], e),
            word_of(shape, want->tensor[i], e));
        return false;
    }
    return true;
}

/* Compares members one by one, as there is padding between them. */
static bool same_numbers(const vd_step_numbers *a, const vd_step_numbers *b) {
    return memcmp(&a->loss, &b->loss, sizeof a->loss) == 0 &&
           memcmp(&a->lr, &b->lr, sizeof a->lr) == 0 &&
           memcmp(&a->grad_norm, &b->grad_norm, sizeof a->grad_norm) == 0 &&
           a->has_loss == b->has_loss && a->has_lr == b->has_lr &&
           a->has_grad_norm == b->has_grad_norm && a->void_choice == b->void_choice;
}

static bool agrees_by(const way *by, const vd_program *p, ro_ctx *ro, const values *v,
                      const result *want, ways_why *why) {
    result got;
    vd_err err = {0};
    bool same = execute(by, p, ro, v, NULL, &got, &err) == VD_OK;
    if (!same)
        SAY(why, "%s: %s", by->name, err.text);
    else
        same = same_states(p, &want->state, &got.state, by->name, why);
    if (same && !same_numbers(&want->numbers, &got.numbers)) {
        SAY(why, "%s: loss %a, node by node %a, or another number of the step", by->name,
            (double)got.numbers.loss, (double)want->numbers.loss);
        same = false;
    }
    vd_state_free(&got.state);
    return same;
}

static bool agree(const machines *m, const vd_program *p, const values *v, bool starts,
                  uint64_t seed, ways_why *why) {
    const way watched = {"node by node", true, false, starts};
    const way fused = {"fused", false, false, starts};
    const way kept = {"fused, two threads, the state stays", false, !starts, starts};
    const way unfused = {"unfused, two threads", true, false, starts};
    watch w = {p, starts ? &p->init : &p->step, {seed}, false, why};
    result want;
    vd_err err = {0};
    bool same = execute(&watched, p, m->reference, v, &(vd_observer){compare_node, &w}, &want,
                        &err) == VD_OK;
    if (!same)
        SAY(why, "node by node: %s", err.text);
    same = same && !w.wrong && agrees_by(&fused, p, m->one, v, &want, why) &&
           agrees_by(&kept, p, m->two, v, &want, why) &&
           agrees_by(&unfused, p, m->two, v, &want, why);
    vd_state_free(&want.state);
    return same;
}

bool ways_agree(const machines *m, const vd_program *p, uint64_t seed, ways_why *why) {
    values v;
    values_make(p, seed, &v);
    const bool same = agree(m, p, &v, true, seed + 1, why) && agree(m, p, &v, false, seed + 2, why);
    values_free(p, &v);
    return same;
}
