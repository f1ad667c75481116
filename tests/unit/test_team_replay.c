/* A run that a team executes again gives the same answers, byte by byte, as one process. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/forked_team.h"
#include "tests/unit/small_models.h"
#include "verde/exec/run.h"
#include "verde/team/replays.h"

static uint8_t text[1000];
static const void *const data[] = {text};

static void fill_text(void) {
    for (int i = 0; i < 1000; i++)
        text[i] = (uint8_t)(i * i % 11 % 5);
}

static vd_program program_for(vd_model_kind kind, int64_t micro) {
    vd_program program;
    vd_err err = {0};
    vd_training t = recipe(kind, micro);
    t.steps = STATES - 1;
    t.checkpoint_interval = t.steps; /* one interval holds all steps */
    cr_assert(vd_training_program(&t, &program, &err) == VD_OK, "%s", err.text);
    return program;
}

/* ---- questions ---- */

typedef struct {
    const vd_program *program;
    vd_source source;
    vd_buf said; /* all answers, one after the other */
    vd_err *err;
} asking;

static vd_status ask_trace(asking *a, int64_t step) {
    const vd_records *records;
    const vd_status status = a->source.trace(a->source.user, step, &records, a->err);
    if (status == VD_OK)
        vd_put(&a->said, records->bytes.data, records->bytes.size);
    return status;
}

static vd_status ask_value(asking *a, int64_t step, uint32_t value) {
    const vd_graph *g = step < 0 ? &a->program->init : &a->program->step;
    const void *bytes;
    const vd_status status = a->source.tensor(a->source.user, step, value, &bytes, a->err);
    if (status == VD_OK)
        vd_put(&a->said, bytes, vd_shape_bytes(vd_value_shape(a->program, g, value)));
    return status;
}

/* Asks for all sources of the step, then for about 40 of its nodes. */
static vd_status ask_values(asking *a, int64_t step) {
    const vd_graph *g = &a->program->step;
    const uint32_t sources = vd_source_count(a->program, g);
    const uint32_t stride = g->node_count / 40 + 1;
    vd_status status = VD_OK;
    for (uint32_t v = 0; status == VD_OK && v < sources; v++)
        status = ask_value(a, step, v);
    for (uint32_t n = 0; status == VD_OK && n < g->node_count; n += stride)
        status = ask_value(a, step, sources + n);
    return status;
}

static vd_status ask_states(asking *a) {
    const vd_source *s = &a->source;
    const uint32_t leaves = a->program->leaf_count;
    vd_hash state[STATES], *leaf = calloc(leaves, sizeof *leaf);
    vd_status status = s->states(s->user, 0, STATES - 1, state, a->err);
    vd_put(&a->said, state, sizeof state);
    if (status == VD_OK)
        status = s->leaves(s->user, 1, leaf, a->err);
    vd_put(&a->said, leaf, leaves * sizeof *leaf);
    free(leaf);
    return status;
}

static vd_status ask_all(asking *a, vd_hash *out) {
    vd_status status = ask_states(a);
    for (int64_t step = -1; status == VD_OK && step < STATES - 1; step++)
        status = ask_trace(a, step);
    if (status == VD_OK)
        status = ask_value(a, -1, vd_source_count(a->program, &a->program->init));
    if (status == VD_OK)
        status = ask_values(a, 1);
    a->source.forget(a->source.user);
    if (status == VD_OK)
        status = ask_trace(a, 2);
    cr_assert(vd_hash_tagged(NULL, a->said.data, a->said.size, out));
    vd_buf_free(&a->said);
    return status;
}

/* ---- by one process, or by several ---- */

typedef struct {
    const vd_program *program;
    const char *dir;
    uint32_t ranks;
    vd_fault fault;
    const vd_program *other; /* program of the last rank; NULL: the same */
} replay_run;

static vd_status answer(const replay_run *run, const vd_exec *exec, const vd_replay_team *team,
                        vd_hash *out, vd_err *err) {
    vd_replay *replay = NULL;
    vd_pace pace;
    vd_status status = vd_replay_create(run->dir, exec, &replay, err);
    if (status != VD_OK)
        return status;
    vd_replay_share(replay, team);
    asking a = {.program = run->program, .source = vd_replay_source(replay), .err = err};
    status = vd_replay_measure(replay, &pace, err);
    if (status == VD_OK)
        status = ask_all(&a, out);
    vd_replay_destroy(replay);
    return status;
}

static vd_status lead(const replay_run *run, const vd_exec *exec, vd_member *m, vd_hash *out,
                      vd_err *err) {
    vd_replays replays;
    vd_err ignored;
    vd_status status = vd_replays_open(&replays, m, NULL, NULL, err);
    const vd_replay_team team = vd_replays_team(&replays);
    if (status == VD_OK)
        status = answer(run, exec, &team, out, err);
    const vd_status closed = vd_replays_close(&replays, status == VD_OK ? err : &ignored);
    return status == VD_OK ? closed : status;
}

static vd_status work(const void *job, uint32_t rank, const vd_transport *transport, outcome *out,
                      vd_err *err) {
    const replay_run *run = job;
    const vd_program *p = run->other && rank == run->ranks - 1 ? run->other : run->program;
    vd_exec exec = {.program = p, .data = data, .fault = run->fault};
    vd_team_plan plan;
    vd_member member;
    vd_status status = vd_team_plan_create(p, run->ranks, &plan, err);
    if (status != VD_OK)
        return status;
    vd_member_open(&member, &plan, transport);
    exec.part = &member.part;
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) != RO_OK)
        status = vd_fail(err, VD_ERR_LOCAL, "no context");
    if (status == VD_OK)
        status = rank == 0 ? lead(run, &exec, &member, &out->root, err)
                           : vd_replays_follow(&member, &exec, err);
    out->received = member.received;
    ro_ctx_destroy(exec.ro);
    vd_team_plan_free(&plan);
    return status;
}

static void run_alone(const replay_run *run, vd_hash *out) {
    vd_exec exec = {.program = run->program, .data = data, .fault = run->fault};
    const vd_run_options options = {.exec = &exec, .dir = run->dir};
    vd_run_result result;
    vd_err err = {0};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    cr_assert(vd_run(&options, &result, &err) == VD_OK, "%s", err.text);
    cr_assert(answer(run, &exec, NULL, out, &err) == VD_OK, "%s", err.text);
    ro_ctx_destroy(exec.ro);
}

static void remove_dir(const char *dir) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert(system(command) == 0);
}

static void expect_same_answers(const vd_program *p, vd_fault fault, uint32_t most) {
    char dir[] = "/tmp/team-replay-XXXXXX";
    outcome out[RANKS_MAX];
    vd_hash want;
    cr_assert(mkdtemp(dir));
    replay_run run = {.program = p, .dir = dir, .fault = fault};
    run_alone(&run, &want);
    for (run.ranks = 2; run.ranks <= most; run.ranks++) {
        run_forked(&(forked_team){run.ranks, UINT32_MAX, work, &run}, out);
        for (uint32_t r = run.ranks; r-- > 0;) {
            cr_expect(out[r].ok, "rank %u of %u: %s", r, run.ranks, out[r].error);
            cr_expect(out[r].received > 0, "rank %u of %u has no part", r, run.ranks);
        }
        cr_expect(vd_hash_equal(&out[0].root, &want), "%u ranks", run.ranks);
    }
    remove_dir(dir);
}

Test(team_replay, answers_are_the_bytes_of_one_process) {
    fill_text();
    for (int k = 0; k < KINDS; k++) {
        vd_program p = program_for(kinds[k], 5);
        expect_same_answers(&p, (vd_fault){0}, 4);
        vd_program_free(&p);
    }
}

/* Every kind of fault of a step, including those that unroll the step's graph. */
Test(team_replay, a_fault_is_answered_about_as_by_one_process) {
    static const char *const faults[] = {"element@1", "attr@1",   "lr@1",    "seed@1",
                                         "skip@1",    "poison@1", "weights", "history"};
    vd_program p = program_for(VD_MODEL_GPT2, 4);
    vd_err err = {0};
    fill_text();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        vd_fault fault;
        cr_assert(vd_fault_parse(faults[i], &p, &fault, &err) == VD_OK, "%s", err.text);
        expect_same_answers(&p, fault, 3);
    }
    vd_program_free(&p);
}

Test(team_replay, ranks_with_different_runs_refuse) {
    vd_program p = program_for(VD_MODEL_GPT2, 4), q = program_for(VD_MODEL_LLAMA, 4);
    char dir[] = "/tmp/team-replay-XXXXXX";
    outcome out[RANKS_MAX];
    vd_hash alone;
    fill_text();
    cr_assert(mkdtemp(dir));
    const replay_run run = {.program = &p, .dir = dir, .ranks = 3, .other = &q};
    run_alone(&run, &alone);
    run_forked(&(forked_team){3, UINT32_MAX, work, &run}, out);
    cr_expect(!out[0].ok);
    cr_expect_str_eq(out[2].error, "process 2 of 3 has another run than process 0: do both read "
                                   "the same files?");
    remove_dir(dir);
    vd_program_free(&p);
    vd_program_free(&q);
}

Test(team_replay, a_rank_that_dies_ends_the_team) {
    vd_program p = program_for(VD_MODEL_GPT2, 4);
    char dir[] = "/tmp/team-replay-XXXXXX";
    outcome out[RANKS_MAX];
    vd_hash alone;
    fill_text();
    cr_assert(mkdtemp(dir));
    const replay_run run = {.program = &p, .dir = dir, .ranks = 3};
    run_alone(&run, &alone);
    run_forked(&(forked_team){3, 1, work, &run}, out);
    cr_expect(!out[0].ok && !out[2].ok);
    /* The first rank to notice names process 1. The other may notice that rank's end first. */
    static const char died[] = "process 1 of 3 ended before the others";
    cr_expect(strcmp(out[0].error, died) == 0 || strcmp(out[2].error, died) == 0, "%s; %s",
              out[0].error, out[2].error);
    remove_dir(dir);
    vd_program_free(&p);
}
