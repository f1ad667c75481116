/* Programs run together have the same states as alone, whatever is run beside them. */
#include "tests/support/dispute.h"
#include "tests/support/random_text.h"
#include "verde/exec/batch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 9, TOKENS = TEST_TEXT_TOKENS, LEAVES_MAX = TEST_TEXT_LEAVES_MAX };

static const int64_t lengths[PROMPTS] = {1, 2, 150, 3, 64, 65, 1, 33, 129};

/* ---- running together ---- */

typedef struct {
    test_text *alone;
    int64_t reached[PROMPTS];             /* step of the last state */
    uint8_t *shadow[PROMPTS][LEAVES_MAX]; /* copies, updated by what the batch reports as written */
    const char *what;
} together;

static void follow_writes(together *t, const vd_batch_state *s) {
    uint8_t **shadow = t->shadow[s->item];
    for (uint32_t i = 0; i < s->program->leaf_count && !shadow[s->program->leaf_count - 1]; i++)
        shadow[i] = calloc(1, vd_shape_bytes(&s->program->leaf[i].shape));
    for (uint32_t i = 0; i < s->written_count; i++) {
        const vd_written *w = &s->written[i];
        memcpy(shadow[w->leaf] + w->from, (uint8_t *)s->state->tensor[w->leaf] + w->from, w->size);
    }
    for (uint32_t i = 0; i < s->program->leaf_count; i++)
        cr_assert(
            memcmp(shadow[i], s->state->tensor[i], vd_shape_bytes(&s->program->leaf[i].shape)) == 0,
            "%s: prompt %d: %s", t->what, (int)s->item, s->program->leaf[i].name);
}

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    together *t = user;
    const test_text *a = &t->alone[s->item];
    (void)err;
    cr_assert(s->program == &a->program && s->state->step == t->reached[s->item] + 1);
    t->reached[s->item] = s->state->step;
    cr_assert(vd_hash_equal(s->commitment, &a->state[s->state->step]),
              "%s: prompt %d of %d tokens, step %d", t->what, (int)s->item, (int)lengths[s->item],
              (int)s->state->step);
    cr_assert(s->last == (s->state->step == a->program.steps));
    follow_writes(t, s);
    return VD_OK;
}

typedef struct {
    uint32_t size;
    int64_t chunk;
    int threads;
    const char *isa;
    uint32_t from; /* number of the first prompt to join */
} batch_case;

static void add(vd_batch *b, test_text *a, uint32_t item) {
    vd_err err = {0};
    cr_assert(vd_batch_add(b, item, &a[item].program, a[item].data, NULL, &err) == VD_OK, "%s",
              err.text);
}

static void run_together(test_text *a, uint32_t own_data, const batch_case *c) {
    char what[80];
    together t = {.alone = a, .what = what};
    ro_ctx *ro;
    vd_batch *b;
    vd_err err = {0};
    snprintf(what, sizeof what, "batch %u, chunk %d, %d threads, %s", c->size, (int)c->chunk,
             c->threads, c->isa ? c->isa : "own");
    for (int i = 0; i < PROMPTS; i++)
        t.reached[i] = -1;
    if (ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .threads = c->threads, .backend = c->isa},
            &ro) != RO_OK)
        return; /* this machine lacks the instruction set */
    const vd_exec exec = {.program = &a[0].program, .ro = ro, .data = a[0].data};
    const vd_batch_options options = {own_data, c->chunk, reached, &t};
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    for (uint32_t next = 0; next < PROMPTS || vd_batch_count(b) > 0;) {
        while (next < PROMPTS && vd_batch_count(b) < c->size)
            add(b, a, (c->from + next++) % PROMPTS);
        cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s: %s", what, err.text);
    }
    for (int i = 0; i < PROMPTS; i++) {
        cr_expect(t.reached[i] == a[i].program.steps, "%s: prompt %d", what, i);
        for (uint32_t k = 0; k < a[i].program.leaf_count; k++)
            free(t.shadow[i][k]);
    }
    vd_batch_destroy(b);
    ro_ctx_destroy(ro);
}

static const batch_case cases[] = {
    {1, 64, 1, NULL, 0},      {2, 1, 2, NULL, 3},      {7, 64, 3, NULL, 5},
    {64, 4096, 2, NULL, 0},   {64, 7, 2, "scalar", 1}, {3, 4096, 2, "avx2", 2},
    {64, 64, 1, "avx512", 4},
};

static void open_all(test_text *a, const test_model *m, const vd_generation *how) {
    ro_ctx *ro;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ro) == RO_OK);
    for (int i = 0; i < PROMPTS; i++) {
        test_text_open(&a[i], m, how, i, lengths[i]);
        test_text_run(&a[i], ro);
    }
    ro_ctx_destroy(ro);
}

static void check_all(const vd_model *model, bool greedy, bool all) {
    const vd_generation how = test_text_how(greedy, all);
    test_text *a = calloc(PROMPTS, sizeof *a);
    test_model *m = malloc(sizeof *m);
    test_model_open(m, model);
    open_all(a, m, &how);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_together(a, greedy ? 1 : 2, &cases[i]);
    for (int i = 0; i < PROMPTS; i++)
        test_text_close(&a[i]);
    test_model_close(m);
    free(m);
    free(a);
}

/* ---- stops ---- */

static uint32_t leaf_of(const vd_program *p, const char *name) {
    uint32_t i = 0;
    while (strcmp(p->leaf[i].name, name) != 0)
        i++;
    return i;
}

/* Makes a program's second token a stop token, perhaps among others. */
static void stop_early(test_text *a, vd_generation *how) {
    const uint32_t text = leaf_of(&a->program, "text");
    how->stop[0] = ((const int32_t *)a->last[text])[1];
    how->stop_count = 1;
}

Test(batch, a_stop_ends_a_program_early) {
    vd_generation how = test_text_how(false, false);
    test_text *a = calloc(PROMPTS, sizeof *a);
    test_model *m = malloc(sizeof *m);
    int stopped = 0;
    test_model_open(m, &test_models[0]);
    how.stop_count = 0;
    open_all(a, m, &how);
    stop_early(&a[3], &how);
    for (int i = 0; i < PROMPTS; i++)
        test_text_close(&a[i]);
    open_all(a, m, &how);
    for (int i = 0; i < PROMPTS; i++) {
        const int32_t count = *(const int32_t *)a[i].last[leaf_of(&a[i].program, "count")];
        stopped += count < TOKENS;
        cr_expect(i != 3 || count <= 2);
    }
    cr_expect(stopped > 0 && stopped < PROMPTS, "%d of %d", stopped, PROMPTS);
    run_together(a, 2, &cases[2]);
    run_together(a, 2, &cases[3]);
    for (int i = 0; i < PROMPTS; i++)
        test_text_close(&a[i]);
    test_model_close(m);
    free(m);
    free(a);
}

/* ---- continuing, refusals ---- */

typedef struct {
    test_text *alone;
    int64_t at, next; /* step of the kept state; next step to be reached */
    vd_state kept;
} resumed;

static vd_status keep_state(void *user, const vd_batch_state *s, vd_err *err) {
    resumed *r = user;
    (void)err;
    cr_assert(s->state->step == r->next++);
    cr_assert(vd_hash_equal(s->commitment, &r->alone->state[s->state->step]));
    if (s->state->step != r->at)
        return VD_OK;
    r->kept = (vd_state){.step = r->at, .count = s->state->count};
    r->kept.tensor = calloc(r->kept.count, sizeof *r->kept.tensor);
    for (uint32_t i = 0; i < r->kept.count; i++) {
        const size_t size = vd_shape_bytes(&s->program->leaf[i].shape);
        r->kept.tensor[i] = aligned_alloc(64, (size + 63) / 64 * 64);
        memcpy(r->kept.tensor[i], s->state->tensor[i], size);
    }
    return VD_OK;
}

Test(batch, a_program_goes_on_from_any_of_its_states) {
    const vd_generation how = test_text_how(false, true);
    test_model *m = malloc(sizeof *m);
    test_text *a = calloc(1, sizeof *a);
    ro_ctx *ro;
    vd_err err = {0};
    test_model_open(m, &test_models[1]);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ro) == RO_OK);
    test_text_open(a, m, &how, 4, 20);
    test_text_run(a, ro);
    for (int64_t at = 0; at <= TOKENS; at++) {
        resumed r = {.alone = a, .at = at};
        const vd_exec exec = {.program = &a->program, .ro = ro, .data = a->data};
        const vd_batch_options options = {2, 8, keep_state, &r};
        vd_batch *b;
        cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK);
        cr_assert(vd_batch_add(b, 0, &a->program, a->data, NULL, &err) == VD_OK);
        while (!r.kept.tensor)
            cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s", err.text);
        vd_batch_destroy(b);
        r.at = -1, r.next = at + 1;
        cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK);
        cr_assert(vd_batch_add(b, 0, &a->program, a->data, &r.kept, &err) == VD_OK);
        cr_expect(!r.kept.tensor && vd_batch_count(b) == (at < TOKENS));
        while (vd_batch_count(b))
            cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s", err.text);
        cr_expect(r.next == TOKENS + 1);
        vd_batch_destroy(b);
    }
    test_text_close(a);
    ro_ctx_destroy(ro);
    test_model_close(m);
    free(a);
    free(m);
}

static void expect_refused(vd_batch *b, const test_model *m, const vd_generation *how,
                           const char *what) {
    test_text *a = calloc(1, sizeof *a);
    vd_err err = {0};
    test_text_open(a, m, how, 5, 6);
    cr_expect(vd_batch_add(b, 5, &a->program, a->data, NULL, &err) == VD_ERR_USAGE, "%s", what);
    cr_expect(strstr(err.text, "is not that of the others"), "%s", err.text);
    test_text_close(a);
    free(a);
}

Test(batch, a_program_of_another_step_does_not_join) {
    vd_generation how = test_text_how(false, true);
    test_model *m = malloc(sizeof *m);
    test_text *a = calloc(1, sizeof *a);
    ro_ctx *ro;
    vd_batch *b;
    vd_err err = {0};
    test_model_open(m, &test_models[1]);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ro) == RO_OK);
    test_text_open(a, m, &how, 4, 20);
    const vd_exec exec = {.program = &a->program, .ro = ro, .data = a->data};
    const vd_batch_options options = {.own_data = 2, .chunk = 8};
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK);
    how.top_k++;
    expect_refused(b, m, &how, "top_k");
    how = test_text_how(false, true), how.seed++;
    expect_refused(b, m, &how, "seed");
    how = test_text_how(false, true), how.stop_count--;
    expect_refused(b, m, &how, "stops");
    cr_expect(vd_batch_count(b) == 0 && vd_batch_pass(b, &err) == VD_OK);
    vd_batch_destroy(b);
    vd_batch_destroy(NULL);
    test_text_close(a);
    ro_ctx_destroy(ro);
    test_model_close(m);
    free(a);
    free(m);
}

Test(batch, a_step_of_training_is_not_taken_together) {
    test_job job;
    ro_ctx *ro;
    vd_batch *b;
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_GPT2, 2, 1);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ro) == RO_OK);
    const vd_exec exec = {.program = &job.program, .ro = ro, .data = job.data};
    const vd_batch_options options = {.own_data = 1, .chunk = 8};
    cr_expect(vd_batch_create(&exec, &options, &b, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "steps cannot be taken together"), "%s", err.text);
    ro_ctx_destroy(ro);
    test_job_close(&job);
}

/* ---- all prompts, in many ways ---- */

Test(batch, states_are_those_of_each_program_alone) {
    for (int i = 0; i < TEST_MODELS; i++) {
        check_all(&test_models[i], true, false);
        check_all(&test_models[i], false, false);
    }
}

Test(batch, so_they_are_with_stops_penalties_and_log_probabilities) {
    check_all(&test_models[0], true, true);
    check_all(&test_models[1], false, true);
}
