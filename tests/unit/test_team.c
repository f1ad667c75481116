/* Teams of processes give the states of one process, whatever their number. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/forked_team.h"
#include "tests/unit/small_models.h"
#include "verde/team/member.h"

static uint8_t text[1000];
static const void *const data[] = {text};

static void fill_text(void) {
    for (int i = 0; i < 1000; i++)
        text[i] = (uint8_t)(i * i % 11 % 5);
}

static vd_training many_steps(vd_model_kind kind, int64_t micro) {
    vd_training t = recipe(kind, micro);
    t.steps = STATES - 1;
    return t;
}

static vd_program program_for(vd_model_kind kind, int64_t micro) {
    vd_program program;
    vd_err err = {0};
    const vd_training t = many_steps(kind, micro);
    cr_assert(vd_training_program(&t, &program, &err) == VD_OK, "%s", err.text);
    return program;
}

/* ---- a run by a team's member or by one process ---- */

static vd_status hash_state(const vd_exec *exec, vd_member *m, const vd_hash *program_hash,
                            const vd_state *state, vd_hash *out, vd_err *err) {
    if (m)
        return vd_member_hash(m, exec->ro, program_hash, state, NULL, out, err);
    return vd_state_hash(exec->ro, exec->program, program_hash, state, NULL, out, err);
}

static vd_status run_states(const vd_exec *exec, vd_member *m, vd_hash *out, vd_err *err) {
    vd_state state = {0};
    vd_hash program_hash;
    vd_status status = vd_program_hash(exec->program, &program_hash, err);
    if (status == VD_OK)
        status = vd_exec_init(exec, NULL, &state, err);
    if (status == VD_OK && m)
        vd_member_thin(m, &state);
    if (status == VD_OK)
        status = hash_state(exec, m, &program_hash, &state, &out[0], err);
    for (int i = 1; status == VD_OK && i < STATES; i++) {
        status = vd_exec_step(exec, NULL, &state, NULL, err);
        if (status == VD_OK)
            status = hash_state(exec, m, &program_hash, &state, &out[i], err);
    }
    vd_state_free(&state);
    return status;
}

static void run_alone(const vd_program *p, vd_hash *out) {
    vd_exec exec = {.program = p, .data = data};
    vd_err err = {0};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    cr_assert(run_states(&exec, NULL, out, &err) == VD_OK, "%s", err.text);
    ro_ctx_destroy(exec.ro);
}

typedef struct {
    const vd_program *program;
    uint32_t ranks;
    bool unfused;
    vd_fault fault;
    uint32_t faulty;         /* the rank that has the fault */
    uint32_t dies;           /* a rank that ends before its first step; UINT32_MAX: none */
    const char *dir;         /* directory that rank 0 writes; NULL: none */
    int64_t stop_at;         /* step after which rank 0 stops; 0: never */
    const vd_program *other; /* program of all ranks but 0; NULL: the same */
} team_run;

/* ---- a run in a directory ---- */

static bool goes_on(void *user, const vd_progress *progress) {
    const team_run *run = user;
    return run->stop_at == 0 || progress->step < run->stop_at;
}

static vd_status run_in_dir(const team_run *run, const vd_exec *exec, const vd_run_team *team,
                            vd_hash *root, vd_err *err) {
    vd_run_result result;
    const vd_run_options options = {.exec = exec,
                                    .dir = run->dir,
                                    .progress = goes_on,
                                    .user = (void *)(uintptr_t)run,
                                    .team = team};
    const vd_status status = vd_run(&options, &result, err);
    *root = result.run_root;
    return status;
}

static vd_status share_run(const team_run *run, const vd_exec *exec, vd_member *m, vd_hash *root,
                           vd_err *err) {
    const vd_run_team team = vd_member_lead(m);
    return m->transport.rank == 0 ? run_in_dir(run, exec, &team, root, err)
                                  : vd_member_follow(m, exec, err);
}

static vd_status run_member(const team_run *run, uint32_t rank, const vd_transport *transport,
                            outcome *out, vd_err *err) {
    const vd_program *p = run->other && rank > 0 ? run->other : run->program;
    vd_exec exec = {.program = p, .data = data, .unfused = run->unfused};
    vd_team_plan plan;
    vd_member member;
    vd_status status = vd_team_plan_create(p, run->ranks, &plan, err);
    if (status != VD_OK)
        return status;
    vd_member_open(&member, &plan, transport);
    exec.part = &member.part;
    exec.fault = rank == run->faulty ? run->fault : (vd_fault){0};
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) != RO_OK)
        status = vd_fail(err, VD_ERR_LOCAL, "no context");
    if (status == VD_OK)
        status = run->dir ? share_run(run, &exec, &member, &out->root, err)
                          : run_states(&exec, &member, out->state, err);
    out->sent = member.sent_bytes;
    out->received = member.received;
    ro_ctx_destroy(exec.ro);
    vd_team_plan_free(&plan);
    return status;
}

/* The work of a forked team's member. */
static vd_status work(const void *run, uint32_t rank, const vd_transport *transport, outcome *out,
                      vd_err *err) {
    return run_member(run, rank, transport, out, err);
}

static void run_team(const team_run *run, outcome *out) {
    run_forked(&(forked_team){run->ranks, run->dies, work, run}, out);
}

static void expect_states(const team_run *run, const vd_hash *want) {
    outcome out[RANKS_MAX];
    run_team(run, out);
    for (uint32_t r = run->ranks; r-- > 0;)
        cr_expect(out[r].ok, "rank %u of %u: %s", r, run->ranks, out[r].error);
    for (int i = 0; i < STATES; i++)
        cr_expect(vd_hash_equal(&out[0].state[i], &want[i]), "%u ranks, %u nodes: state %d",
                  run->ranks, run->program->step.node_count, i);
}

static void expect_same_of_all_sizes(vd_model_kind kind, int64_t micro, uint32_t most,
                                     bool unfused) {
    vd_program p = program_for(kind, micro);
    vd_hash want[STATES];
    run_alone(&p, want);
    cr_assert(!vd_hash_equal(&want[0], &want[STATES - 1]));
    for (uint32_t ranks = 1; ranks <= most && ranks <= micro; ranks++)
        expect_states(&(team_run){&p, ranks, unfused, .dies = UINT32_MAX}, want);
    vd_program_free(&p);
}

Test(team, gpt2_has_the_states_of_one_process) {
    fill_text();
    for (int i = 0; i < 3; i++)
        expect_same_of_all_sizes(VD_MODEL_GPT2, (int64_t[]){4, 6, 12}[i], 4, false);
}

Test(team, each_kind_of_model_has_the_states_of_one_process) {
    fill_text();
    for (int k = 0; k < KINDS; k++)
        expect_same_of_all_sizes(kinds[k], 7, RANKS_MAX, false);
}

Test(team, nodes_run_one_by_one_have_the_same_states) {
    fill_text();
    for (int k = 0; k < KINDS; k++)
        expect_same_of_all_sizes(kinds[k], 5, 3, true);
}

Test(team, a_fault_on_one_rank_changes_the_state) {
    vd_program p = program_for(VD_MODEL_GPT2, 4);
    vd_hash want[STATES];
    outcome out[RANKS_MAX];
    fill_text();
    run_alone(&p, want);
    team_run run = {&p, 4, .faulty = 2, .dies = UINT32_MAX};
    run.fault = (vd_fault){VD_FAULT_ELEMENT, 1, 0, 0, 3};
    /* A gradient of micro-batch 2, which rank 2 computes. */
    run.fault.node = vd_node_number(&p.step, p.step.sum[1].node, 2);
    run_team(&run, out);
    for (uint32_t r = 0; r < 4; r++)
        cr_assert(out[r].ok, "%s", out[r].error);
    cr_expect(vd_hash_equal(&out[0].state[1], &want[1]));
    cr_expect(!vd_hash_equal(&out[0].state[2], &want[2]));
    vd_program_free(&p);
}

Test(team, a_rank_that_dies_is_named_and_all_others_end) {
    vd_program p = program_for(VD_MODEL_GPT2, 4);
    outcome out[RANKS_MAX];
    fill_text();
    run_team(&(team_run){&p, 4, .dies = 2}, out);
    bool named = false;
    for (uint32_t r = 0; r < 4; r++) {
        cr_expect(!out[r].ok);
        named |= strcmp(out[r].error, "process 2 of 4 ended before the others") == 0;
    }
    cr_expect(named);
    vd_program_free(&p);
}

/* Ranks send what the plan says, and every message is received in its step. */
Test(team, bytes_sent_and_messages_taken_are_those_of_the_plan) {
    vd_program p = program_for(VD_MODEL_GPT2, 8);
    vd_team_plan plan;
    vd_err err = {0};
    outcome out[RANKS_MAX];
    uint64_t planned[RANKS_MAX] = {0}, messages[RANKS_MAX] = {0};
    fill_text();
    cr_assert(vd_team_plan_create(&p, 4, &plan, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < plan.message_count; i++) {
        planned[plan.message[i].from] +=
            vd_shape_bytes(vd_value_shape(&p, &p.step, plan.message[i].value));
        messages[plan.message[i].to]++;
    }
    run_team(&(team_run){&p, 4, .dies = UINT32_MAX}, out);
    for (uint32_t r = 0; r < 4; r++) {
        cr_assert(out[r].ok, "%s", out[r].error);
        cr_expect(out[r].sent == (STATES - 1) * planned[r]);
        cr_expect(out[r].received == (STATES - 1) * messages[r]);
    }
    vd_team_plan_free(&plan);
    vd_program_free(&p);
}

/* ---- initialisation ---- */

static void expect_kept(const vd_program *p, const vd_state *whole, const vd_exec *exec,
                        const vd_team_plan *plan, uint32_t rank) {
    vd_state state;
    vd_err err = {0};
    cr_assert(vd_exec_init(exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        const bool kept = vd_team_keeps(plan, rank, i);
        cr_expect(kept == (state.tensor[i] != NULL), "rank %u: %s", rank, p->leaf[i].name);
        cr_expect(!kept || memcmp(state.tensor[i], whole->tensor[i],
                                  vd_shape_bytes(&p->leaf[i].shape)) == 0);
    }
    vd_state_free(&state);
}

Test(team, a_rank_initialises_what_it_keeps) {
    for (int k = 0; k < KINDS; k++) {
        vd_program p = program_for(kinds[k], 4);
        vd_exec exec = {.program = &p, .data = data};
        vd_team_plan plan;
        vd_state whole;
        vd_err err = {0};
        uint32_t left_out = 0;
        cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1},
                                &exec.ro) == RO_OK);
        cr_assert(vd_exec_init(&exec, NULL, &whole, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_team_plan_create(&p, 4, &plan, &err) == VD_OK, "%s", err.text);
        for (uint32_t r = 0; r < 4; r++) {
            vd_member member;
            vd_member_open(&member, &plan, &(vd_transport){.rank = r, .ranks = 4});
            exec.part = &member.part;
            expect_kept(&p, &whole, &exec, &plan, r);
            for (uint32_t i = 0; i < p.leaf_count; i++)
                left_out += !vd_team_keeps(&plan, r, i);
        }
        cr_expect(left_out > 0);
        vd_team_plan_free(&plan);
        vd_state_free(&whole);
        ro_ctx_destroy(exec.ro);
        vd_program_free(&p);
    }
}

/* ---- runs in a directory ---- */

static void make_dir(char dir[32]) {
    snprintf(dir, 32, "/tmp/team-XXXXXX");
    cr_assert(mkdtemp(dir));
}

static void remove_dir(const char *dir) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert(system(command) == 0);
}

static vd_hash root_alone(const vd_program *p) {
    vd_exec exec = {.program = p, .data = data};
    char dir[32];
    vd_hash root;
    vd_err err = {0};
    make_dir(dir);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    const team_run run = {.dir = dir};
    cr_assert(run_in_dir(&run, &exec, NULL, &root, &err) == VD_OK, "%s", err.text);
    ro_ctx_destroy(exec.ro);
    remove_dir(dir);
    return root;
}

/* Teams of all sizes but the last begin or continue the run and stop. The last one finishes it. */
static void expect_root(const vd_program *p, const uint32_t *sizes, int count) {
    const vd_hash want = root_alone(p);
    outcome out[RANKS_MAX];
    char dir[32];
    make_dir(dir);
    for (int i = 0; i < count; i++) {
        const bool stops = i < count - 1;
        run_team(
            &(team_run){p, sizes[i], .dies = UINT32_MAX, .dir = dir, .stop_at = stops ? i + 1 : 0},
            out);
        cr_expect(out[0].ok != stops, "%s", out[0].error);
        if (stops)
            cr_expect(strncmp(out[0].error, "stopped after step", 18) == 0, "%s", out[0].error);
    }
    cr_expect(vd_hash_equal(&out[0].root, &want), "%d sizes, last of %u", count, sizes[count - 1]);
    remove_dir(dir);
}

Test(team, a_directory_has_the_root_of_one_process) {
    fill_text();
    for (int k = 0; k < KINDS; k++) {
        vd_program p = program_for(kinds[k], 6);
        for (uint32_t ranks = 1; ranks <= 4; ranks++)
            expect_root(&p, &ranks, 1);
        vd_program_free(&p);
    }
}

Test(team, a_run_goes_on_with_another_number_of_processes) {
    fill_text();
    for (int k = 0; k < KINDS; k++) {
        vd_program p = program_for(kinds[k], 6);
        expect_root(&p, (uint32_t[]){4, 3, 2}, 3);
        expect_root(&p, (uint32_t[]){1, 6}, 2);
        expect_root(&p, (uint32_t[]){5, 1}, 2);
        vd_program_free(&p);
    }
}

Test(team, a_finished_run_is_only_reported) {
    vd_program p = program_for(VD_MODEL_GPT2, 4);
    outcome out[RANKS_MAX];
    char dir[32];
    fill_text();
    make_dir(dir);
    const team_run run = {&p, 2, .dies = UINT32_MAX, .dir = dir};
    run_team(&run, out);
    const vd_hash root = out[0].root;
    run_team(&run, out);
    for (uint32_t r = 0; r < 2; r++)
        cr_expect(out[r].ok && out[r].sent == 0, "%s", out[r].error);
    cr_expect(vd_hash_equal(&out[0].root, &root));
    remove_dir(dir);
    vd_program_free(&p);
}

Test(team, ranks_with_different_jobs_refuse) {
    vd_program p = program_for(VD_MODEL_GPT2, 4), q = program_for(VD_MODEL_LLAMA, 4);
    /* Each rank has its own run, and rank 1 the other program. */
    team_run run = {&p, 2, .dies = UINT32_MAX, .other = &q};
    outcome out[RANKS_MAX];
    char dir[32];
    fill_text();
    make_dir(dir);
    run.dir = dir;
    run_team(&run, out);
    cr_expect(!out[0].ok && !out[1].ok);
    cr_expect_str_eq(out[1].error, "process 1 of 2 has another job than process 0: do both read "
                                   "the same files?");
    remove_dir(dir);
    vd_program_free(&p);
    vd_program_free(&q);
}

/* Two threads use a transport. Whatever error one of them meets, the other one is told as well. */
Test(team, each_wait_is_told_who_ended, .timeout = 60) {
    static const char ended[] = "process 1 of 2 ended before the others";
    int both[2];
    uint8_t byte = 0;
    test_sockets *s;
    vd_err err[3] = {{0}};
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    cr_assert(test_sockets_create(0, 2, (int[]){-1, both[0]}, 1000, &s, &err[0]) == VD_OK);
    const vd_transport t = test_sockets_transport(s);
    close(both[1]);
    cr_expect(t.receive(t.user, 1, 1, &byte, 1, &err[0]) == VD_ERR_IO);
    cr_expect(t.receive(t.user, 1, 2, &byte, 1, &err[1]) == VD_ERR_IO);
    cr_expect(t.await(t.user, 1, 3, &err[2]) == VD_ERR_IO);
    for (int i = 0; i < 3; i++)
        cr_expect_str_eq(err[i].text, ended);
    test_sockets_destroy(s, false);
}
