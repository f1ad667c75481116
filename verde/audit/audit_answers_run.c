/* Runs the passes over prompts and answers. */
#include <stdlib.h>
#include <string.h>

#include "verde/audit/audit_answers.h"
#include "verde/exec/batch.h"

enum { PASS_ROWS = 2048 };

/* A prompt of the group that one pass checks. */
typedef struct {
    uint32_t prompt;
    vd_program program;
    void *data[VD_PACK_OWN_MAX]; /* copies of the prompt's own data tensors; owned */
    vd_answer_claim claim;
    int64_t rows;
} member;

typedef struct {
    vd_answers_check *c;
    vd_program first;    /* the program of the batch */
    const void **shared; /* its data tensors; the array is owned */
    vd_batch *batch;
    member *member;
    uint32_t count;
} checking;

static void free_members(checking *k) {
    for (uint32_t m = 0; m < k->count; m++) {
        vd_program_free(&k->member[m].program);
        vd_answer_claim_free(&k->member[m].claim);
        for (uint32_t i = 0; i < VD_PACK_OWN_MAX; i++)
            free(k->member[m].data[i]);
        k->member[m] = (member){0};
    }
    k->count = 0;
}

/* ---- the batch ---- */

static void close_batch(checking *k) {
    vd_batch_destroy(k->batch);
    vd_program_free(&k->first);
    free(k->shared);
    k->batch = NULL;
    k->shared = NULL;
}

/* Opens a batch for the loaded program, and takes ownership of the program. */
static vd_status open_batch(checking *k) {
    vd_loaded *l = &k->c->loaded;
    close_batch(k);
    k->shared = calloc((size_t)l->program.data_count + 1, sizeof *k->shared);
    if (!k->shared)
        return vd_fail(k->c->err, VD_ERR_LOCAL, "out of memory");
    memcpy(k->shared, l->exec.data, l->program.data_count * sizeof *k->shared);
    k->first = l->program;
    l->program = (vd_program){0};
    const vd_exec exec = {.program = &k->first, .ro = l->ro, .data = k->shared};
    const vd_batch_options options = {.own_data = vd_prompt_own_data(l), .chunk = PASS_ROWS};
    return vd_batch_create(&exec, &options, &k->batch, k->c->err);
}

/* ---- a group ---- */

static vd_status answered(void *user, uint32_t answer, const vd_state *state, int64_t stop,
                          vd_err *err) {
    const checking *k = user;
    const member *m = &k->member[answer];
    vd_answer_difference d = {.prompt = m->prompt, .key = vd_prompt_key(&k->c->loaded, m->prompt)};
    (void)err; /* same as k->c->err */
    k->c->checked++;
    k->c->tokens += m->claim.count;
    k->c->rows += m->program.data[0].tensor.shape.dim[0] - 1 + m->rows;
    if (!vd_answer_compare(&m->claim, &m->program, state, stop, m->rows, &d))
        return VD_OK;
    return vd_answers_differ(k->c, &d);
}

static vd_status check_group(checking *k) {
    vd_batch_answer *answer = calloc((size_t)k->count + 1, sizeof *answer);
    vd_status status = answer ? VD_OK : vd_fail(k->c->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; answer && i < k->count; i++) {
        const member *m = &k->member[i];
        answer[i] =
            (vd_batch_answer){&m->program, (const void *const *)m->data, m->claim.token, m->rows};
    }
    if (status == VD_OK && k->count > 0)
        status = vd_batch_answers(k->batch, answer, k->count, answered, k, k->c->err);
    free(answer);
    free_members(k);
    vd_answers_tell_progress(k->c);
    return status;
}

static vd_status copy_own(const checking *k, member *m) {
    const vd_loaded *l = &k->c->loaded;
    for (uint32_t i = 0; i < vd_prompt_own_data(l); i++) {
        const size_t size = vd_shape_bytes(&l->program.data[i].tensor.shape);
        m->data[i] = malloc(size);
        if (!m->data[i])
            return vd_fail(k->c->err, VD_ERR_LOCAL, "out of memory");
        memcpy(m->data[i], l->exec.data[i], size);
    }
    return VD_OK;
}

/* Ensures that the batch takes the loaded program. Programs with another step graph, for instance
 * with another window, need a batch of their own. */
static vd_status fit_batch(checking *k, uint32_t prompt) {
    vd_loaded *l = &k->c->loaded;
    vd_err why = {0};
    if (k->batch && vd_batch_takes(k->batch, &l->program, &why) == VD_OK)
        return VD_OK;
    vd_status status = check_group(k);
    if (status == VD_OK)
        status = open_batch(k);
    return status == VD_OK ? vd_load_prompt(l, prompt, k->c->err) : status;
}

static vd_status join(checking *k, uint32_t prompt, const vd_answer_line *line) {
    vd_loaded *l = &k->c->loaded;
    vd_status status = vd_load_prompt(l, prompt, k->c->err);
    if (status == VD_OK)
        status = fit_batch(k, prompt);
    if (status != VD_OK)
        return status;
    member *m = &k->member[k->count++];
    *m = (member){.prompt = prompt};
    status = copy_own(k, m);
    m->program = l->program;
    l->program = (vd_program){0};
    if (status == VD_OK)
        status = vd_answer_claim_read(&k->c->lines, line, &l->job.generation, &m->claim, k->c->err);
    m->rows = vd_answer_steps(&m->claim, m->program.steps, l->job.training.model.vocab);
    return status;
}

vd_status vd_answers_run(vd_answers_check *c) {
    checking k = {.c = c};
    k.member = calloc((size_t)c->a->together + 1, sizeof *k.member);
    vd_status status = k.member ? VD_OK : vd_fail(c->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < c->drawn_count; i++) {
        const uint32_t prompt = c->drawn[i];
        const vd_answer_line *line =
            vd_answer_line_of(&c->lines, vd_prompt_key(&c->loaded, prompt));
        if (line)
            status = join(&k, prompt, line);
        if (status == VD_OK && k.count == (uint32_t)c->a->together)
            status = check_group(&k);
    }
    if (status == VD_OK)
        status = check_group(&k);
    if (k.member)
        free_members(&k);
    free(k.member);
    close_batch(&k);
    return status;
}
