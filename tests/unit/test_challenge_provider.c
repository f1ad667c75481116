/* A provider's second run: which questions it answers from it, and what happens if the run is
 * interrupted. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    test_job job;
    test_provider a, b;
    vd_key *referee;
} bench;

/* `a` ran wrongly, and would run again honestly. */
static void bench_open(bench *b) {
    test_job_open(&b->job, VD_MODEL_MLP, 3, 1);
    vd_fault fault = test_fault(&b->job, "poison@1");
    test_provider_open(&b->a, &b->job, 1, &fault);
    test_provider_open(&b->b, &b->job, 2, NULL);
    test_provider_runs_again(&b->a, NULL);
    b->referee = test_referee_key();
}

static void bench_close(bench *b) {
    vd_key_destroy(b->referee);
    test_provider_close(&b->a);
    test_provider_close(&b->b);
    test_job_close(&b->job);
}

static vd_public_key public_of(const vd_key *key) {
    vd_public_key out;
    vd_key_public(key, &out);
    return out;
}

/* Returns a question to `a`, outside of any dispute. */
static vd_buf request_of(bench *b, bool challenge, const vd_question *question) {
    vd_buf assignment = {0}, payload = {0}, notes[2] = {0}, request = {0};
    vd_hash hash;
    vd_assignment a = {.program = b->job.hash,
                       .referee = public_of(b->referee),
                       .provider = {public_of(b->a.key), public_of(b->b.key)},
                       .provider_count = 2,
                       .challenge = challenge};
    cr_assert(vd_assignment_write(&a, &assignment, NULL) == VD_OK);
    cr_assert(vd_assignment_hash(assignment.data, assignment.size, &hash));
    cr_assert(vd_question_write(question, &hash, &payload, NULL) == VD_OK);
    cr_assert(vd_note_sign(b->referee, VD_TYPE_ASSIGNMENT, assignment.data, assignment.size,
                           &notes[0], NULL) == VD_OK);
    cr_assert(vd_note_sign(b->referee, VD_TYPE_QUESTION, payload.data, payload.size, &notes[1],
                           NULL) == VD_OK);
    cr_assert(vd_request_write(&notes[0], &notes[1], &request, NULL) == VD_OK);
    vd_buf_free(&assignment);
    vd_buf_free(&payload);
    vd_buf_free(&notes[0]);
    vd_buf_free(&notes[1]);
    return request;
}

static vd_status ask(bench *b, bool challenge, const vd_question *question, vd_buf *note) {
    vd_err err = {0};
    vd_buf request = request_of(b, challenge, question);
    vd_status status;
    while ((status = vd_provider_answer(&b->a.side, request.data, request.size, note, &err)) ==
               VD_ERR_IO &&
           strstr(err.text, "running"))
        usleep(1000);
    vd_buf_free(&request);
    return status;
}

static void expect_status(bench *b, bool challenge, const vd_question *question, vd_status expected,
                          const char *what) {
    vd_buf note = {0};
    vd_status status = ask(b, challenge, question, &note);
    cr_expect(status == expected, "%s: status %d, expected %d", what, status, expected);
    vd_buf_free(&note);
}

static vd_hash stated_root(bench *b, const vd_question *question) {
    vd_buf note = {0};
    vd_hash root = {0};
    cr_assert(ask(b, true, question, &note) == VD_OK);
    json_t *body = test_answer_body(&note);
    cr_assert(vd_json_get_hash(body, "root", &root));
    json_decref(body);
    vd_buf_free(&note);
    return root;
}

Test(again, answers_from_the_run_that_the_question_is_about) {
    bench b;
    bench_open(&b);
    vd_question q = {.kind = VD_ASK_OPEN, .tree = {.kind = VD_TREE_RUN}, .hi = 4, .depth = 2};
    vd_hash root = stated_root(&b, &q);
    cr_expect(vd_hash_equal(&root, &b.a.run.run_root), "first hearing");
    q.challenged = true;
    q.challenger = public_of(b.b.key);
    root = stated_root(&b, &q);
    cr_expect(vd_hash_equal(&root, &b.a.run.run_root), "challenged by the other one");
    q.challenger = public_of(b.a.key);
    root = stated_root(&b, &q);
    cr_expect(vd_hash_equal(&root, &b.b.run.run_root), "the challenger itself");
    q = (vd_question){.kind = VD_ASK_CHALLENGE, .challenged = true, .challenger = q.challenger};
    root = stated_root(&b, &q);
    cr_expect(vd_hash_equal(&root, &b.b.run.run_root), "the root of the second run");
    bench_close(&b);
}

/* Requests that are not questions by the referee are dropped at this low cost, before they take a
 * seat. */
Test(again, only_whole_questions_by_the_referee_pass_the_screen) {
    static const vd_question q = {.kind = VD_ASK_COMMIT};
    bench b;
    vd_public_key who = {{0}}, mine;
    vd_err err = {0};
    bench_open(&b);
    mine = public_of(b.referee);
    vd_buf request = request_of(&b, false, &q);
    cr_expect(vd_provider_screen(&b.a.side, request.data, request.size, &who, NULL) == VD_OK);
    cr_expect(memcmp(&who, &mine, sizeof who) == 0);
    b.a.side.referee = &mine;
    cr_expect(vd_provider_screen(&b.a.side, request.data, request.size, &who, NULL) == VD_OK);
    for (size_t i = 0; i < request.size; i += 7) {
        request.data[i] ^= 1;
        cr_expect(vd_provider_screen(&b.a.side, request.data, request.size, &who, &err) ==
                      VD_ERR_PEER,
                  "byte %zu", i);
        request.data[i] ^= 1;
        cr_expect(vd_provider_screen(&b.a.side, request.data, i, &who, NULL) == VD_ERR_PEER);
    }
    const vd_public_key other = public_of(b.b.key);
    b.a.side.referee = &other;
    cr_expect(vd_provider_screen(&b.a.side, request.data, request.size, &who, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "another referee"), "%s", err.text);
    b.a.side.referee = NULL;
    vd_buf_free(&request);
    bench_close(&b);
}

/* The root stated for a second run is never the first run's. */
Test(again, questions_of_a_hearing_that_cannot_be_are_refused) {
    static const vd_question open = {.kind = VD_ASK_OPEN,
                                     .tree = {.kind = VD_TREE_RUN},
                                     .hi = 4,
                                     .depth = 2,
                                     .challenged = true};
    bench b;
    bench_open(&b);
    vd_question q = {.kind = VD_ASK_CHALLENGE, .challenged = true};
    q.challenger = public_of(b.b.key);
    expect_status(&b, true, &q, VD_ERR_PEER, "somebody else's second run");
    q = open;
    q.challenger = public_of(b.referee);
    expect_status(&b, true, &q, VD_ERR_PEER, "a challenger that is no provider");
    q.challenger = public_of(b.b.key);
    expect_status(&b, false, &q, VD_ERR_PEER, "no challenge provided for, the other one's");
    q.challenger = public_of(b.a.key);
    expect_status(&b, false, &q, VD_ERR_PEER, "no challenge provided for, its own");
    bench_close(&b);
}

/* ---- interrupted runs ---- */

static char told[256];

static void remember(const char *line) {
    snprintf(told, sizeof told, "%s", line);
}

static void told_nothing(void) {
    told[0] = 0;
}

static void second_dir(const test_provider *p, char dir[80]) {
    snprintf(dir, 80, "%s/again", p->dir);
}

/* The refusal is signed, and given at the first question after the failure, so that nobody waits in
 * vain. */
static void expect_refusal(bench *b, const char *what) {
    vd_question q = {.kind = VD_ASK_CHALLENGE, .challenged = true};
    vd_buf note = {0};
    q.challenger = public_of(b->a.key);
    for (int i = 0; i < 2; i++) {
        note.size = 0;
        cr_assert(ask(b, true, &q, &note) == VD_OK, "%s", what);
        json_t *body = test_answer_body(&note);
        cr_expect(json_is_string(json_object_get(body, "refusal")) &&
                      !json_object_get(body, "root"),
                  "%s", what);
        json_decref(body);
    }
    vd_buf_free(&note);
    q = (vd_question){.kind = VD_ASK_OPEN, .tree = {.kind = VD_TREE_RUN}, .hi = 4, .depth = 2};
    expect_status(b, true, &q, VD_OK, "the first run is answered for all the same");
}

Test(again, that_holds_a_run_of_another_job_is_refused) {
    char dir[80];
    bench b;
    test_job other;
    vd_run_result result;
    vd_err err = {0};
    bench_open(&b);
    second_dir(&b.a, dir);
    test_job_open(&other, VD_MODEL_MLP, 2, 1);
    vd_exec exec = {.program = &other.program, .ro = b.b.ro, .data = other.data};
    vd_run_options options = {.exec = &exec, .dir = dir};
    cr_assert(vd_run(&options, &result, &err) == VD_OK, "%s", err.text);
    expect_refusal(&b, "a run of another job");
    test_job_close(&other);
    bench_close(&b);
}

/* As on a full disk, the first write fails. */
Test(again, that_cannot_be_written_is_refused, .init = told_nothing) {
    char dir[80];
    bench b;
    bench_open(&b);
    b.a.side.tell = remember;
    second_dir(&b.a, dir);
    FILE *in_its_way = fopen(dir, "w");
    cr_assert(in_its_way && fclose(in_its_way) == 0);
    expect_refusal(&b, "a file where its directory should be");
    cr_expect(strstr(told, "the second run failed: "), "told: %s", told);
    bench_close(&b);
}

/* The dispute ends at once, with the uncontested claim. */
Test(again, that_cannot_be_written_declines_the_challenge) {
    char dir[80];
    bench b;
    bench_open(&b);
    second_dir(&b.a, dir);
    FILE *in_its_way = fopen(dir, "w");
    cr_assert(in_its_way && fclose(in_its_way) == 0);
    test_dispute d = {.job = &b.job, .side = {&b.a.side, &b.b.side}, .challenge = true};
    test_settle(&d);
    cr_expect(d.status == VD_OK && d.outcome.challenge.end == VD_CHALLENGE_DECLINED);
    test_expect_convicted(&d, 0, VD_GRADE_WRONG_OUTPUT, "not contested");
    test_dispute_close(&d);
    bench_close(&b);
}

Test(again, that_was_stopped_goes_on_to_the_same_root) {
    char dir[80];
    test_job job;
    test_provider p;
    vd_source source;
    vd_err err = {0};
    vd_status status = VD_ERR_IO;
    test_job_open(&job, VD_MODEL_MLP, 40, 1);
    test_provider_open(&p, &job, 1, NULL);
    vd_exec exec = p.exec;
    second_dir(&p, dir);
    for (int life = 0; status == VD_ERR_IO && life < 1000; life++) {
        vd_again *again;
        cr_assert(vd_again_create(dir, &exec, NULL, 0, &again, NULL) == VD_OK);
        for (int i = 0; i <= life && (status = vd_again_source(again, &source, &err)) == VD_ERR_IO;
             i++)
            usleep(1000);
        if (status == VD_OK) {
            vd_hash state[41], first[41];
            cr_assert(source.run(source.user, state, &err) == VD_OK);
            cr_assert(p.side.source.run(p.side.source.user, first, &err) == VD_OK);
            cr_expect(memcmp(state, first, sizeof state) == 0, "after %d lives", life);
        }
        vd_again_destroy(again);
    }
    cr_expect(status == VD_OK, "%s", err.text);
    test_provider_close(&p);
    test_job_close(&job);
}

static int states_in(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    cr_assert(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += strncmp(e->d_name, "state-", 6) == 0;
    closedir(dir);
    return count;
}

/* If the first run keeps few states, the second run keeps as few. */
Test(again, keeps_as_many_states_as_the_first_run) {
    char dir[80];
    test_job job;
    test_provider p;
    vd_source source;
    vd_again *again;
    vd_err err = {0};
    vd_status status;
    test_job_open(&job, VD_MODEL_MLP, 12, 1);
    test_provider_open(&p, &job, 1, NULL);
    second_dir(&p, dir);
    cr_assert(vd_again_create(dir, &p.exec, NULL, 3, &again, NULL) == VD_OK);
    while ((status = vd_again_source(again, &source, &err)) == VD_ERR_IO)
        usleep(1000);
    cr_assert(status == VD_OK, "%s", err.text);
    cr_expect(states_in(p.dir) == 13 && states_in(dir) <= 3, "%d", states_in(dir));
    vd_again_destroy(again);
    test_provider_close(&p);
    test_job_close(&job);
}

/* An unreadable checkpoint is computed again; the first answer is already complete. */
Test(again, a_torn_checkpoint_is_no_trouble_of_an_answer) {
    test_job job;
    test_provider p;
    vd_hash state[3];
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    test_provider_open(&p, &job, 1, NULL);
    DIR *dir = opendir(p.dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", p.dir, e->d_name);
        if (strncmp(e->d_name, "state-", 6) == 0)
            cr_assert(truncate(path, 10) == 0);
    }
    closedir(dir);
    vd_source source = p.side.source;
    cr_assert(source.states(source.user, 2, 4, state, &err) == VD_OK);
    cr_expect(err.status == VD_OK, "%s", err.text);
    cr_expect(vd_hash_equal(&state[2], &p.run.final_state));
    test_provider_close(&p);
    test_job_close(&job);
}
