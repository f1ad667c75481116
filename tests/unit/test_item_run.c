/* Runs of tokens on disk: a run that stops anywhere resumes and gives the same files; images of the
 * state; memory whose bits flip. */
#include "tests/support/dispute.h"
#include "tests/support/random_model.h"
#include "verde/exec/estimate.h"
#include "verde/exec/item_run.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = VD_IMAGE_STEPS + 44, PROMPT = 3 };

typedef struct {
    test_model model;
    int32_t prompt[PROMPT];
    const void *data[TEST_MODEL_DATA_MAX];
    vd_program program;
    vd_hash hash;
    ro_ctx *ro;
} world;

static world *open_world(void) {
    world *w = calloc(1, sizeof *w);
    const vd_generation how = {.max_tokens = TOKENS,
                               .greedy = 1,
                               .temperature = 1,
                               .top_p = VD_TOP_P_ONE,
                               .repetition_penalty = 1.5f,
                               .best = 1};
    const vd_prompt_form form = {.count = PROMPT};
    vd_err err = {0};
    test_model_open(&w->model, &test_models[1]);
    cr_assert(vd_generation_program(&w->model.training, &how, &form, &w->program, &err) == VD_OK,
              "%s", err.text);
    cr_assert(vd_program_hash(&w->program, &w->hash, &err) == VD_OK);
    w->data[0] = w->prompt;
    for (uint32_t i = 0; i < w->model.count; i++)
        w->data[1 + i] = w->model.weight[i];
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &w->ro) ==
              RO_OK);
    return w;
}

static void close_world(world *w) {
    ro_ctx_destroy(w->ro);
    vd_program_free(&w->program);
    test_model_close(&w->model);
    free(w);
}

/* ---- a run in a directory ---- */

typedef struct {
    const world *w;
    vd_item_run run;
    int64_t stop; /* the step after which the run stops; -1: never */
    int64_t flip; /* the step after which a bit of the first cache flips; -1: never */
    bool last;
} item;

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    item *it = user;
    if (s->state->step == it->flip)
        ((uint8_t *)s->state->tensor[0])[5] ^= 4;
    const vd_status status = vd_item_run_reached(&it->run, it->w->ro, s, err);
    it->last = s->last;
    if (status == VD_OK && s->state->step == it->stop)
        return vd_fail(err, VD_ERR_TIMEOUT, "stopped");
    return status;
}

/* Starts or resumes the run in `dir` and goes on to its end, or until something stops it. */
static vd_status go_on(const world *w, const char *dir, int64_t stop, int64_t flip, vd_err *err) {
    item it = {.w = w, .stop = stop, .flip = flip};
    const vd_exec exec = {.program = &w->program, .ro = w->ro, .data = w->data};
    const vd_batch_options options = {1, 2, reached, &it};
    vd_batch *b = NULL;
    vd_state from;
    vd_status status = vd_item_run_open(w->ro, dir, &w->program, &it.run, &from, err);
    const bool finished = status == VD_OK && vd_item_run_finished(&it.run, &w->program);
    if (status == VD_OK && !finished)
        status = vd_batch_create(&exec, &options, &b, err);
    if (status == VD_OK && !finished)
        status = vd_batch_add(b, 0, &w->program, w->data, from.tensor ? &from : NULL, err);
    while (status == VD_OK && b && vd_batch_count(b))
        status = vd_batch_pass(b, err);
    vd_state_free(&from);
    vd_batch_destroy(b);
    vd_item_run_close(&it.run);
    return status;
}

static void new_dir(char dir[64]) {
    strcpy(dir, "/tmp/vd-item-XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
}

static vd_buf file_in(const char *dir, const char *name) {
    char path[128];
    vd_buf bytes = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    cr_assert(vd_read_file(path, 64 << 20, &bytes, NULL) == VD_OK, "%s", path);
    return bytes;
}

static void expect_same_file(const char *a, const char *b, const char *name, int64_t stop) {
    vd_buf x = file_in(a, name), y = file_in(b, name);
    cr_expect(x.size == y.size && memcmp(x.data, y.data, x.size) == 0, "%s, stopped at %d", name,
              (int)stop);
    vd_buf_free(&x);
    vd_buf_free(&y);
}

static void run_whole(const world *w, char dir[64]) {
    vd_err err = {0};
    new_dir(dir);
    cr_assert(go_on(w, dir, -1, -1, &err) == VD_OK, "%s", err.text);
}

/* A provider that runs strangers' programs needs the estimate before it starts. */
Test(item_run, a_journal_is_no_larger_than_was_estimated) {
    world *w = open_world();
    char dir[64];
    run_whole(w, dir);
    vd_buf journal = file_in(dir, "journal");
    const uint64_t estimate = vd_estimate_journal(&w->program);
    cr_expect(journal.size <= estimate && estimate < 2 * journal.size, "%zu bytes, estimated %llu",
              journal.size, (unsigned long long)estimate);
    vd_buf_free(&journal);
    test_remove_dir(dir);
    close_world(w);
}

/* ---- stops ---- */

Test(item_run, one_that_stops_anywhere_goes_on_to_the_same_files) {
    static const int64_t stops[] = {0, 1, 7, 255, 256, 257, TOKENS - 1, TOKENS};
    world *w = open_world();
    char whole[64], dir[64], path[128];
    run_whole(w, whole);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        vd_err err = {0};
        new_dir(dir);
        cr_assert(go_on(w, dir, stops[i], -1, &err) == VD_ERR_TIMEOUT, "%s", err.text);
        cr_assert(go_on(w, dir, -1, -1, &err) == VD_OK, "%s", err.text);
        expect_same_file(whole, dir, "journal", stops[i]);
        expect_same_file(whole, dir, "run.json", stops[i]);
        test_remove_dir(dir);
    }
    cr_expect(go_on(w, whole, -1, -1, NULL) == VD_OK); /* a finished run */
    new_dir(dir);
    cr_assert(go_on(w, dir, -1, -1, NULL) == VD_OK);
    snprintf(path, sizeof path, "%s/run.json", dir); /* stopped before writing it */
    cr_assert(unlink(path) == 0 && go_on(w, dir, -1, -1, NULL) == VD_OK);
    expect_same_file(whole, dir, "run.json", -1);
    test_remove_dir(dir);
    test_remove_dir(whole);
    close_world(w);
}

/* The end of the journal, which was not on disk yet, is lost in the middle of a record. */
Test(item_run, a_lost_tail_is_computed_again) {
    world *w = open_world();
    char whole[64], dir[64], path[128];
    vd_err err = {0};
    run_whole(w, whole);
    for (int64_t cut = 0; cut < 5; cut++) {
        new_dir(dir);
        cr_assert(go_on(w, dir, 40 + cut, -1, &err) == VD_ERR_TIMEOUT);
        vd_buf journal = file_in(dir, "journal");
        snprintf(path, sizeof path, "%s/journal", dir);
        cr_assert(truncate(path, (off_t)(journal.size - 1 - (size_t)cut * 9000)) == 0);
        vd_buf_free(&journal);
        cr_assert(go_on(w, dir, -1, -1, &err) == VD_OK, "%s", err.text);
        expect_same_file(whole, dir, "journal", cut);
        expect_same_file(whole, dir, "run.json", cut);
        test_remove_dir(dir);
    }
    test_remove_dir(whole);
    close_world(w);
}

/* ---- states ---- */

static void expect_states(const world *w, const char *dir) {
    static const int64_t steps[] = {0, 1, 100, 255, 256, 257, TOKENS};
    vd_run_log log = {0};
    vd_err err = {0};
    cr_assert(vd_store_load_log(dir, &log, &err) == VD_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        vd_state state;
        vd_hash got;
        cr_assert(vd_store_load_state(w->ro, dir, &w->program, &w->hash, steps[i],
                                      &log.state[steps[i]], &state, &err) == VD_OK,
                  "%s", err.text);
        cr_assert(vd_state_hash(NULL, &w->program, &w->hash, &state, NULL, &got, NULL) == VD_OK);
        cr_expect(vd_hash_equal(&got, &log.state[steps[i]]) && state.step == steps[i]);
        vd_state_free(&state);
    }
    log.state[9].b[0] ^= 1;
    vd_state state;
    cr_expect(vd_store_load_state(w->ro, dir, &w->program, &w->hash, 9, &log.state[9], &state,
                                  &err) == VD_ERR_IO);
    vd_run_log_free(&log);
}

static void image_path(const world *w, const char *dir, char path[1024]) {
    vd_run_log log = {0};
    cr_assert(vd_store_load_log(dir, &log, NULL) == VD_OK);
    vd_store_state_path(path, dir, &log.state[VD_IMAGE_STEPS]);
    vd_run_log_free(&log);
    (void)w;
}

Test(item_run, every_state_is_made_again_with_images_or_without) {
    world *w = open_world();
    char dir[64], image[1024];
    run_whole(w, dir);
    image_path(w, dir, image);
    cr_assert(access(image, F_OK) == 0);
    expect_states(w, dir);
    cr_assert(truncate(image, 1000) == 0);
    vd_state state;
    vd_journal j;
    cr_assert(vd_journal_open(dir, &w->program, &w->hash, 0, &j, NULL) == VD_OK);
    cr_assert(vd_journal_state(w->ro, dir, &j, &w->hash, TOKENS, &state, NULL) == VD_OK);
    vd_state_free(&state);
    vd_journal_close(&j);
    cr_assert(unlink(image) == 0);
    expect_states(w, dir);
    test_remove_dir(dir);
    close_world(w);
}

/* ---- trouble ---- */

/* The run forgets everything that follows from the flipped bit. When resumed, it gives the same
 * files. */
Test(item_run, memory_that_changes_by_itself_stops_the_run_and_is_named) {
    static const int64_t flips[] = {100, VD_IMAGE_STEPS + 20};
    static const char *const found[] = {"h.0.k of the state at step 256",
                                        "h.0.k of the state at step 300"};
    world *w = open_world();
    char whole[64], dir[64];
    vd_err err = {0};
    run_whole(w, whole);
    for (int i = 0; i < 2; i++) {
        new_dir(dir);
        cr_expect(go_on(w, dir, -1, flips[i], &err) == VD_ERR_LOCAL);
        cr_expect(strstr(err.text, found[i]), "%s", err.text);
        cr_expect(go_on(w, dir, -1, -1, &err) == VD_OK, "%s", err.text);
        expect_same_file(whole, dir, "journal", flips[i]);
        expect_same_file(whole, dir, "run.json", flips[i]);
        test_remove_dir(dir);
    }
    test_remove_dir(whole);
    close_world(w);
}

Test(item_run, damage_before_an_image_is_an_error) {
    world *w = open_world();
    char dir[64], path[128];
    vd_err err = {0};
    new_dir(dir);
    cr_assert(go_on(w, dir, VD_IMAGE_STEPS + 5, -1, &err) == VD_ERR_TIMEOUT);
    vd_buf journal = file_in(dir, "journal");
    journal.data[journal.size / 2] ^= 8;
    snprintf(path, sizeof path, "%s/journal", dir);
    cr_assert(vd_write_file(path, journal.data, journal.size, 0644, NULL) == VD_OK);
    cr_expect(go_on(w, dir, -1, -1, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "is damaged, and was on disk whole"), "%s", err.text);
    vd_buf_free(&journal);
    test_remove_dir(dir);
    close_world(w);
}
