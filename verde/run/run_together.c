/* This file runs prompts together, each with a run of its own in DIR/prompts/KEY. */
#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "verde/exec/item_run.h"
#include "verde/run/run_items.h"

/* A prompt with an open run. */
typedef struct {
    uint32_t prompt;
    vd_program program;
    void *data[VD_PACK_OWN_MAX]; /* copies of its own data tensors; owned */
    vd_item_run run;
    bool ended;
} member;

typedef struct {
    const vd_together *t;
    vd_program first;    /* program of the first prompt, for the batch */
    const void **shared; /* data of `first` */
    vd_batch *batch;
    member **member; /* prompts with open runs */
    uint32_t count;
    vd_items_progress more; /* progress since the last report */
} together;

static void free_member(member *m) {
    vd_item_run_close(&m->run);
    vd_program_free(&m->program);
    for (uint32_t i = 0; i < VD_PACK_OWN_MAX; i++)
        free(m->data[i]);
    free(m);
}

/* Returns the context whose threads hash states, which are always in host memory. NULL if it is a
 * device's: then the caller's thread hashes. */
static ro_ctx *hashing(const together *g) {
    ro_ctx *ro = g->t->run->loaded->ro;
    return ro_ctx_in_host_memory(ro) ? ro : NULL;
}

/* ---- states ---- */

static vd_status end_member(together *g, member *m, const vd_state *state, vd_err *err) {
    const vd_exec exec = {.program = &m->program};
    vd_hash root, final;
    vd_status status = vd_run_root(&exec, &m->run.log, &root, &final, err);
    m->ended = true;
    g->more.ended++;
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
    g->more.made += s->state->step > 0 && s->written_count > 0;
    g->more.passed += s->state->step > 0;
    g->more.void_choices += s->void_choice;
    const vd_status status = vd_item_run_reached(&m->run, hashing(g), s, err);
    return status == VD_OK && s->last ? end_member(g, m, s->state, err) : status;
}

/* ---- starting prompts ---- */

static vd_status copy_own(const together *g, member *m, vd_err *err) {
    const vd_loaded *l = g->t->run->loaded;
    for (uint32_t i = 0; i < g->t->run->own_data; i++) {
        const size_t size = vd_shape_bytes(&l->program.data[i].tensor.shape);
        m->data[i] = malloc(size);
        if (!m->data[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        memcpy(m->data[i], l->exec.data[i], size);
    }
    return VD_OK;
}

/* Loads a prompt's program. *fits: whether the batch accepts it. */
static vd_status load_program(const together *g, uint32_t prompt, bool *fits, vd_err *err) {
    const vd_items_run *r = g->t->run;
    vd_err why = {0};
    vd_items_drop(r->loaded);
    vd_status status = r->load(r->user, prompt, err);
    if (status != VD_OK)
        return status;
    status = vd_batch_takes(g->batch, &r->loaded->program, &why);
    *fits = status == VD_OK;
    if (status == VD_ERR_USAGE)
        g->t->refused(g->t->user, prompt, why.text);
    return *fits || status == VD_ERR_USAGE ? VD_OK : vd_fail(err, status, "%s", why.text);
}

/* Opens a prompt's run, and moves the loaded program into the member. */
static vd_status open_run(together *g, member *m, vd_state *from, vd_err *err) {
    vd_loaded *l = g->t->run->loaded;
    char dir[1024];
    vd_items_path(dir, g->t->run->dir, g->t->run->items->key[m->prompt]);
    vd_status status = copy_own(g, m, err);
    if (status == VD_OK)
        status = vd_item_run_open(hashing(g), dir, &l->program, &m->run, from, err);
    if (status == VD_OK)
        status = vd_save_data(dir, l, err);
    m->program = l->program;
    l->program = (vd_program){0};
    m->run.journal.program = &m->program;
    return status;
}

static vd_status join(together *g, uint32_t prompt, vd_err *err) {
    bool fits = false;
    vd_state from = {0};
    vd_status status = load_program(g, prompt, &fits, err);
    if (!fits)
        return status;
    member *m = calloc(1, sizeof *m);
    if (!m)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    m->prompt = prompt;
    m->run.journal.fd = -1;
    g->member[g->count++] = m;
    status = open_run(g, m, &from, err);
    g->more.found += m->run.log.count ? m->run.log.count - 1 : 0;
    if (status == VD_OK && vd_item_run_finished(&m->run, &m->program))
        status = end_member(g, m, &from, err);
    else if (status == VD_OK)
        status = vd_batch_add(g->batch, prompt, &m->program, (const void *const *)m->data,
                              from.tensor ? &from : NULL, err);
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

/* ---- all prompts ---- */

static vd_status open_batch(together *g, vd_err *err) {
    vd_loaded *l = g->t->run->loaded;
    vd_items_drop(l);
    vd_status status = g->t->run->load(g->t->run->user, 0, err);
    if (status != VD_OK)
        return status;
    g->shared = calloc((size_t)l->program.data_count + 1, sizeof *g->shared);
    g->member = calloc((size_t)g->t->run->together + 1, sizeof *g->member);
    if (!g->shared || !g->member)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    memcpy(g->shared, l->exec.data, l->program.data_count * sizeof *g->shared);
    g->first = l->program;
    l->program = (vd_program){0};
    const vd_exec exec = {.program = &g->first, .ro = l->ro, .data = g->shared};
    const vd_batch_options options = {.own_data = g->t->run->own_data,
                                      .chunk = VD_TOGETHER_ROWS,
                                      .reached = reached,
                                      .user = g,
                                      .strange = l->packed};
    vd_err why = {0};
    status = vd_batch_create(&exec, &options, &g->batch, &why);
    for (uint32_t i = 0; status == VD_ERR_USAGE && i < g->t->run->items->count; i++)
        g->t->refused(g->t->user, i, why.text);
    return status == VD_OK || status == VD_ERR_USAGE ? VD_OK : vd_fail(err, status, "%s", why.text);
}

static void tell(together *g) {
    g->t->made(g->t->user, &g->more);
    g->more = (vd_items_progress){.ended = g->more.ended};
}

static vd_status run_all(together *g, vd_err *err) {
    vd_status status = VD_OK;
    uint32_t next = 0;
    while (status == VD_OK && (next < g->t->run->items->count || g->count > 0)) {
        while (status == VD_OK && next < g->t->run->items->count &&
               g->count < g->t->run->together) {
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
    if (status == VD_OK && g.batch)
        status = run_all(&g, err);
    vd_batch_destroy(g.batch); /* before its programs' memory is freed */
    for (uint32_t i = 0; i < g.count; i++)
        free_member(g.member[i]);
    free(g.member);
    free(g.shared);
    vd_program_free(&g.first);
    return status;
}
