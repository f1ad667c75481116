/* A run writes a state while it runs the next step: what happens to the state if that step fails.
 * The team is one process. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "small_models.h"
#include "verde/exec/run.h"

TestSuite(run_beside, .timeout = 120);

enum { STEPS = 6, INTERVAL = 2, FAILS = 2 /* the step from S_2 to S_3 */ };

typedef struct {
    vd_program program;
    vd_exec exec;
    vd_exec_part part;
    char dir[64];
    int64_t fails_at;   /* the step that fails; -1: none */
    bool unwritable;    /* the state written during the failing step cannot be written */
    int64_t steps_seen; /* number of steps that have passed on the value */
    uint32_t value;
    atomic_bool failed;
    const vd_state *saved;
} bench;

static uint8_t text[1000];
static const void *const data[] = {text};

/* ---- a part that covers the whole step, and may fail in a step ---- */

static bool yes(void *user, uint32_t what) {
    (void)user, (void)what;
    return true;
}

static bool no(void *user, uint32_t what) {
    (void)user, (void)what;
    return false;
}

static bool sends(void *user, uint32_t value) {
    return value == ((bench *)user)->value;
}

static vd_status send_value(void *user, uint32_t value, const void *bytes, size_t size,
                            vd_err *err) {
    bench *b = user;
    (void)value, (void)bytes, (void)size;
    if (b->steps_seen++ != b->fails_at)
        return VD_OK;
    atomic_store(&b->failed, true);
    return vd_fail(err, VD_ERR_LOCAL, "the step failed");
}

/* ---- a team ---- */

static vd_status begin(void *user, vd_state *state, bool resumed, vd_err *err) {
    (void)user, (void)state, (void)resumed, (void)err;
    return VD_OK;
}

/* The state that is written during the failing step finishes after the failure. */
static vd_status hash(void *user, ro_ctx *ro, const vd_hash *program_hash, const vd_state *state,
                      vd_hash *out, vd_err *err) {
    bench *b = user;
    while (state->step == b->fails_at && !atomic_load(&b->failed))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (state->step == b->fails_at && b->unwritable)
        return vd_fail(err, VD_ERR_IO, "the state cannot be written");
    return vd_state_hash(ro, &b->program, program_hash, state, NULL, out, err);
}

static const void *take(void *user, uint32_t leaf, vd_err *err) {
    (void)err;
    return ((bench *)user)->saved->tensor[leaf];
}

static void drop(void *user) {
    (void)user;
}

static vd_leaf_stream leaves(void *user, const vd_state *state) {
    bench *b = user;
    b->saved = state;
    return (vd_leaf_stream){take, drop, b};
}

/* ---- runs ---- */

static void open_bench(bench *b) {
    vd_training t = recipe(VD_MODEL_MLP, 1);
    vd_err err = {0};
    *b = (bench){.dir = "/tmp/verde-beside-XXXXXX", .fails_at = -1};
    t.steps = STEPS;
    t.checkpoint_interval = INTERVAL;
    for (int i = 0; i < 1000; i++)
        text[i] = (uint8_t)(i * i % 11);
    cr_assert(mkdtemp(b->dir));
    cr_assert(vd_training_program(&t, &b->program, &err) == VD_OK, "%s", err.text);
    const vd_graph *g = &b->program.step;
    b->value = vd_source_count(&b->program, g);
    b->part = (vd_exec_part){yes, no, yes, sends, send_value, NULL, b};
    b->exec = (vd_exec){.program = &b->program, .data = data, .part = &b->part, .unfused = true};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &b->exec.ro) ==
              RO_OK);
}

static void close_bench(bench *b) {
    char command[96];
    ro_ctx_destroy(b->exec.ro);
    vd_program_free(&b->program);
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    cr_expect(system(command) == 0);
}

static vd_status run_once(bench *b, int64_t fails_at, vd_run_result *result, vd_err *err) {
    const vd_run_team team = {begin, hash, leaves, b};
    const vd_run_options options = {.exec = &b->exec, .dir = b->dir, .team = &team};
    *err = (vd_err){0};
    b->fails_at = fails_at;
    b->steps_seen = 0;
    atomic_store(&b->failed, false);
    return vd_run(&options, result, err);
}

static uint32_t stored(const bench *b) {
    vd_run_log log = {.count = 0};
    cr_assert(vd_store_load_log(b->dir, &log, NULL) == VD_OK);
    const uint32_t count = log.count;
    vd_run_log_free(&log);
    return count;
}

Test(run_beside, a_state_survives_the_failure_of_the_step_beside_it) {
    bench b, undisturbed;
    vd_run_result whole, cut, again;
    vd_err err;
    open_bench(&undisturbed);
    cr_assert(run_once(&undisturbed, -1, &whole, &err) == VD_OK, "%s", err.text);
    close_bench(&undisturbed);
    open_bench(&b);
    cr_expect(run_once(&b, FAILS, &cut, &err) == VD_ERR_LOCAL);
    cr_expect(strcmp(err.text, "the step failed") == 0, "%s", err.text);
    cr_expect(stored(&b) == 2, "%u", stored(&b));
    cr_assert(run_once(&b, -1, &again, &err) == VD_OK, "%s", err.text);
    cr_expect(again.resumed_at == FAILS, "%lld", (long long)again.resumed_at);
    cr_expect(vd_hash_equal(&again.run_root, &whole.run_root));
    close_bench(&b);
}

Test(run_beside, if_both_fail_the_step_is_told_of) {
    bench b;
    vd_run_result cut;
    vd_err err;
    open_bench(&b);
    b.unwritable = true;
    cr_expect(run_once(&b, FAILS, &cut, &err) == VD_ERR_LOCAL);
    cr_expect(strcmp(err.text, "the step failed") == 0, "%s", err.text);
    cr_expect(stored(&b) == 1, "%u", stored(&b));
    close_bench(&b);
}
