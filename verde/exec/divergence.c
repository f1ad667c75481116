/* This file finds the first checkpoint and step at which two runs differ. */
#include "verde/exec/divergence_internal.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/backend.h"

const vd_graph *vd_parting_graph(const vd_parting *p, int side) {
    const vd_program *program = p->side[side].program;
    return p->out->step < 0 ? &program->init : &program->step;
}

uint32_t vd_parting_leaf(const vd_parting *p, uint32_t leaf) {
    return p->pairs ? p->pairs->leaf.of[0][leaf] : leaf;
}

uint32_t vd_parting_node(const vd_parting *p, uint32_t node) {
    if (!p->pairs)
        return node;
    return (p->out->step < 0 ? &p->pairs->init : &p->pairs->step)->of[0][node];
}

vd_status vd_parting_unread(const vd_parting *p, vd_status status) {
    if (status != VD_ERR_IO)
        return status;
    snprintf(p->out->unread, sizeof p->out->unread, "%.299s", p->err ? p->err->text : "a state");
    if (p->err)
        *p->err = (vd_err){0};
    return VD_OK;
}

vd_status vd_parting_memory(const vd_parting *p) {
    return vd_fail(p->err, VD_ERR_LOCAL, "out of memory for the comparison of two runs");
}

/* ---- checkpoints ---- */

/* States that each side commits to, as far as both have come. */
typedef struct {
    vd_hash *state[2];
    uint32_t count;
} committed;

static void committed_free(committed *c) {
    free(c->state[0]);
    free(c->state[1]);
}

static vd_status read_committed(const vd_parting *p, committed *c) {
    vd_status status = VD_OK;
    const uint32_t a = p->side[0].checkpoints, b = p->side[1].checkpoints;
    *c = (committed){.count = a < b ? a : b};
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_source *s = &p->side[side].source;
        c->state[side] = calloc((size_t)p->side[side].checkpoints + 1, sizeof(vd_hash));
        status = c->state[side] ? s->run(s->user, c->state[side], p->err) : vd_parting_memory(p);
    }
    return status;
}

/* Index of the first checkpoint whose states differ; c->count: none. */
static uint32_t first_checkpoint(const committed *c) {
    uint32_t i = 0;
    while (i < c->count && vd_hash_equal(&c->state[0][i], &c->state[1][i]))
        i++;
    return i;
}

static void name_checkpoints(vd_parting *p, uint32_t i) {
    const vd_program *program = p->side[0].program;
    p->out->equal_at = i > 0 ? vd_run_leaf_step(program, i - 1) : -1;
    p->out->differs_at = vd_run_leaf_step(program, i);
}

/* Compares what was emitted by contents, because commitments to it contain the runs' names. */
static vd_status compare_emitted(vd_parting *p, uint32_t checkpoints, bool *found) {
    const vd_backend *both = p->side[1].backend ? p->side[0].backend : NULL;
    vd_status status = VD_OK;
    for (uint32_t i = 0; both && i < checkpoints && status == VD_OK && !*found; i++) {
        status = both->compare(p->side, i, p->out, found, p->err);
        if (*found)
            name_checkpoints(p, i);
    }
    return status;
}

/* ---- without execution ---- */

static vd_status leaves_at(const vd_parting *p, int side, int64_t step, vd_hash **out) {
    const vd_source *s = &p->side[side].source;
    *out = calloc((size_t)p->side[side].program->leaf_count + 1, sizeof **out);
    return *out ? s->leaves(s->user, step, *out, p->err) : vd_parting_memory(p);
}

/* Whether the state that a side has stored is the one that it commits to. */
static vd_status look_at_held(const vd_parting *p, int side, int64_t step, const vd_hash *state,
                              bool *same) {
    const vd_diverge_side *s = &p->side[side];
    vd_hash *leaf = NULL, held;
    vd_status status = leaves_at(p, side, step, &leaf);
    if (status == VD_OK)
        status =
            vd_state_commit(&s->program_hash, step, leaf, s->program->leaf_count, &held, p->err);
    *same = status == VD_OK && vd_hash_equal(&held, state);
    free(leaf);
    return status;
}

/* Stops at a checkpoint. Stored states may be equal although the commitments differ. */
static vd_status stop_at_checkpoint(vd_parting *p, const committed *c, uint32_t i) {
    const bool held = p->side[0].holds(p->side[0].user, i) && p->side[1].holds(p->side[1].user, i);
    p->out->kind = VD_DIVERGE_CHECKPOINT;
    vd_status status = held ? vd_parting_leaves(p, p->out->differs_at) : VD_OK;
    for (int side = 0; side < 2 && held && status == VD_OK && !p->out->of_leaf; side++) {
        bool same = true;
        status = look_at_held(p, side, p->out->differs_at, &c->state[side][i], &same);
        p->out->broken[side] = !same;
        p->out->kind = VD_DIVERGE_COMMITMENT;
    }
    if (status == VD_ERR_IO)
        p->out->kind = VD_DIVERGE_CHECKPOINT;
    return vd_parting_unread(p, status);
}

/* ---- the step ---- */

/* Finds the first step after which states differ, from the last equal checkpoint up to the step
 * before the differing one, whose own state would only be read. Takes the last step if no states
 * differ. */
static vd_status find_step(vd_parting *p, vd_hash *after[2], bool *given) {
    const int64_t from = p->out->equal_at, count = p->out->differs_at - from;
    vd_hash *state[2] = {calloc((size_t)count, sizeof(vd_hash)),
                         calloc((size_t)count, sizeof(vd_hash))};
    vd_status status = state[0] && state[1] ? VD_OK : vd_parting_memory(p);
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_source *s = &p->side[side].source;
        status = s->states(s->user, from, from + count - 1, state[side], p->err);
    }
    int64_t i = 0;
    while (status == VD_OK && i < count && vd_hash_equal(&state[0][i], &state[1][i]))
        i++;
    if (status == VD_OK && i == 0)
        status = vd_fail(p->err, VD_ERR_PEER,
                         "the state of step %lld, which both runs commit to, is not there, and "
                         "execution does not give it",
                         (long long)from);
    *given = i < count;
    p->out->step = from + i - 1;
    for (int side = 0; side < 2 && *given; side++)
        *after[side] = state[side][i];
    free(state[0]);
    free(state[1]);
    return status;
}

/* ---- states that differ although all nodes agree ---- */

/* Finds what a side, whose nodes do not make the state that it commits to, has stored after the
 * step: the state before it, or the one that its nodes make. */
static vd_status look_at_next(vd_parting *p, int side, const vd_hash *made, bool *holds_made) {
    const size_t size = p->side[side].program->leaf_count * sizeof *made;
    const int64_t step = p->out->step;
    vd_hash *before = NULL, *after = NULL;
    vd_status status = step < 0 ? VD_OK : leaves_at(p, side, step, &before);
    if (status == VD_OK)
        status = leaves_at(p, side, step + 1, &after);
    if (status == VD_OK)
        p->out->skipped[side] = step >= 0 && memcmp(before, after, size) == 0;
    *holds_made = status == VD_OK && memcmp(after, made, size) == 0;
    free(before);
    free(after);
    return status;
}

/* Explains states after nodes that all agree. `given`: both sides executed the step as a whole;
 * otherwise its state was only read. */
static vd_status explain_next(vd_parting *p, bool given, vd_hash *made[2]) {
    bool named = false;
    vd_status status = VD_OK;
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        bool holds_made = false;
        if (p->out->broken[side])
            status = look_at_next(p, side, made[side], &holds_made);
        named |= holds_made;
    }
    const bool skipped = p->out->skipped[0] || p->out->skipped[1];
    p->out->kind = given || skipped ? VD_DIVERGE_NEXT
                   : named          ? VD_DIVERGE_COMMITMENT
                                    : VD_DIVERGE_STORED;
    p->out->has_step = p->out->kind == VD_DIVERGE_NEXT ||
                       p->out->differs_at - p->out->equal_at == 1 || p->out->step < 0;
    if (status != VD_OK || p->out->kind == VD_DIVERGE_COMMITMENT)
        return status;
    status = vd_parting_leaves(p, p->out->step + 1);
    const bool stored = p->out->kind == VD_DIVERGE_STORED && p->out->has_step;
    const bool one = p->out->broken[0] != p->out->broken[1];
    return status == VD_OK && stored && one && p->out->tensor.known ? vd_parting_refer_leaf(p)
                                                                    : status;
}

/* Checks whether the state after the step is what the side's nodes made. */
static vd_status judge_next(vd_parting *p, vd_hash *made[2], const vd_hash *after[2]) {
    vd_status status = VD_OK;
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_diverge_side *s = &p->side[side];
        vd_hash state;
        status = vd_state_commit(&s->program_hash, p->out->step + 1, made[side],
                                 s->program->leaf_count, &state, p->err);
        p->out->broken[side] = status == VD_OK && !vd_hash_equal(&state, after[side]);
    }
    return status;
}

static vd_status find_node(vd_parting *p, bool given, const vd_hash *after[2]) {
    vd_hash *made[2] = {calloc((size_t)p->side[0].program->leaf_count + 1, sizeof(vd_hash)),
                        calloc((size_t)p->side[1].program->leaf_count + 1, sizeof(vd_hash))};
    bool found = false;
    vd_status status =
        made[0] && made[1] ? vd_parting_find_node(p, made, &found) : vd_parting_memory(p);
    if (status == VD_OK)
        status = judge_next(p, made, after);
    p->out->has_step = true;
    if (status == VD_OK && found) {
        p->out->kind = VD_DIVERGE_NODE;
        status = vd_parting_outputs(p);
    } else if (status == VD_OK) {
        status = explain_next(p, given, made);
    }
    free(made[0]);
    free(made[1]);
    return status;
}

static vd_status find_in_interval(vd_parting *p, const committed *c, uint32_t i) {
    vd_hash state[2] = {c->state[0][i], c->state[1][i]};
    bool given = false;
    vd_status status = VD_OK;
    p->out->step = -1;
    if (i > 0)
        status = find_step(p, (vd_hash *[2]){&state[0], &state[1]}, &given);
    return status == VD_OK ? find_node(p, given, (const vd_hash *[2]){&state[0], &state[1]})
                           : status;
}

static vd_status diverge_in_one(vd_parting *p, bool executes) {
    committed c = {0};
    bool found = false;
    vd_status status = read_committed(p, &c);
    const uint32_t i = status == VD_OK ? first_checkpoint(&c) : 0;
    if (status == VD_OK)
        status = compare_emitted(p, i, &found);
    if (status == VD_OK && !found && i < c.count) {
        name_checkpoints(p, i);
        status = executes ? find_in_interval(p, &c, i) : stop_at_checkpoint(p, &c, i);
    }
    committed_free(&c);
    return status;
}

vd_status vd_diverge(const vd_diverge_side side[2], const vd_alignment *pairs, bool executes,
                     vd_divergence *out, vd_err *err) {
    vd_parting p = {side, pairs, out, err};
    *out = (vd_divergence){.equal_at = -1, .differs_at = -1};
    return pairs ? vd_parting_programs(&p, executes) : diverge_in_one(&p, executes);
}
