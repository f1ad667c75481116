/* Prompts of a job that run together, each with a run of its own in DIR/prompts/KEY. */
#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "verde/cli/run_prompts.h"
#include "verde/exec/item_run.h"

/* A prompt whose run is open. */
typedef struct {
    uint32_t prompt;
    vd_program program;
    int32_t key[2];
    const void *data[2]; /* its own data tensors */
    vd_item_run run;
    bool ended;
} member;

typedef struct {
    const vd_together *t;
    vd_program first;    /* the program of the first prompt, for the batch */
    const void **shared; /* its data */
    vd_batch *batch;
    member **member; /* those whose runs are open */
    uint32_t count;
    int64_t made; /* tokens since they were told */
    uint32_t ended;
} together;

bool vd_can_run_together(const vd_loaded *loaded) {
    return loaded->job.task == VD_JOB_GENERATES && ro_ctx_in_host_memory(loaded->ro);
}

static void free_member(member *m) {
    vd_item_run_close(&m->run);
    vd_program_free(&m->program);
    free(m);
}

/* ---- states ---- */

static vd_status end_member(together *g, member *m, const vd_state *state, vd_err *err) {
    const vd_exec exec = {.program = &m->program};
    vd_hash root, final;
    vd_status status = vd_run_root(&exec, &m->run.log, &root, &final, err);
    m->ended = true;
    g->ended++;
    return status == VD_OK ? g->t->ended(g->t->user, m->prompt, &m->program, state, &root, err)
                           : status;
}

static member *find(const together *g, uint64_t prompt) {
    uint32_t i = 0;
    while (g->member[i]->prompt != prompt)
        i++;
    return g->member[i];
}

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    together *g = user;
    member *m = find(g, s->item);
    g->made += s->state->step > 0 && s->written_count > 0;
    const vd_status status = vd_item_run_reached(&m->run, g->t->loaded->ro, s, err);
    return status == VD_OK && s->last ? end_member(g, m, s->state, err) : status;
}

/* ---- prompts that join ---- */

static vd_status open_program(together *g, member *m, vd_err *err) {
    vd_loaded *l = g->t->loaded;
    const vd_prompt *prompt = &l->prompts.list[m->prompt];
    m->data[0] = l->prompts.token + prompt->first;
    m->data[1] = m->key;
    vd_prompt_words(prompt, m->key);
    return vd_load_prompt(l, m->prompt, err);
}

/* The job's loaded program is the member's from then on. */
static vd_status open_run(together *g, member *m, vd_state *from, vd_err *err) {
    vd_loaded *l = g->t->loaded;
    char dir[1024];
    vd_items_path(dir, g->t->dir, g->t->items->key[m->prompt]);
    vd_status status = open_program(g, m, err);
    if (status == VD_OK)
        status = vd_item_run_open(l->ro, dir, &l->program, &m->run, from, err);
    if (status == VD_OK)
        status = vd_save_data(dir, l, err);
    m->program = l->program;
    l->program = (vd_program){0};
    m->run.journal.program = &m->program;
    return status;
}

static vd_status join(together *g, uint32_t prompt, vd_err *err) {
    member *m = calloc(1, sizeof *m);
    vd_state from = {0};
    if (!m)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    m->prompt = prompt;
    m->run.journal.fd = -1;
    g->member[g->count++] = m;
    vd_status status = open_run(g, m, &from, err);
    if (status == VD_OK && vd_item_run_finished(&m->run, &m->program))
        status = end_member(g, m, &from, err);
    else if (status == VD_OK)
        status =
            vd_batch_add(g->batch, prompt, &m->program, m->data, from.tensor ? &from : NULL, err);
    vd_state_free(&from);
    return status;
}

static void leave(together *g) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->member[i]->ended)
            free_member(g->member[i]);
        else
            g->member[left++] = g->member[i];
    }
    g->count = left;
}

/* ---- all of them ---- */

static vd_status open_batch(together *g, vd_err *err) {
    vd_loaded *l = g->t->loaded;
    vd_status status = vd_load_prompt(l, 0, err);
    if (status != VD_OK)
        return status;
    g->shared = calloc((size_t)l->program.data_count + 1, sizeof *g->shared);
    g->member = calloc((size_t)g->t->together + 1, sizeof *g->member);
    if (!g->shared || !g->member)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    memcpy(g->shared, l->exec.data, l->program.data_count * sizeof *g->shared);
    g->first = l->program;
    l->program = (vd_program){0};
    const bool draws =
        g->first.data_count > 1 && strcmp(g->first.data[1].tensor.name, VD_PROMPT_KEY) == 0;
    const vd_exec exec = {.program = &g->first, .ro = l->ro, .data = g->shared};
    const vd_batch_options options = {
        .own_data = draws ? 2 : 1, .chunk = VD_TOGETHER_ROWS, .reached = reached, .user = g};
    return vd_batch_create(&exec, &options, &g->batch, err);
}

static void tell(together *g) {
    g->t->made(g->t->user, g->made, g->ended);
    g->made = 0;
}

static vd_status run_all(together *g, vd_err *err) {
    vd_status status = VD_OK;
    uint32_t next = 0;
    while (status == VD_OK && (next < g->t->items->count || g->count > 0)) {
        while (status == VD_OK && next < g->t->items->count && g->count < g->t->together) {
            status = join(g, next++, err);
            leave(g);
        }
        if (status == VD_OK)
            status = vd_batch_pass(g->batch, err);
        leave(g);
        tell(g);
    }
    return status;
}

vd_status vd_run_together(const vd_together *t, vd_err *err) {
    together g = {.t = t};
    vd_status status = open_batch(&g, err);
    if (status == VD_OK)
        status = run_all(&g, err);
    vd_batch_destroy(g.batch); /* before what its programs read */
    for (uint32_t i = 0; i < g.count; i++)
        free_member(g.member[i]);
    free(g.member);
    free(g.shared);
    vd_program_free(&g.first);
    return status;
}
