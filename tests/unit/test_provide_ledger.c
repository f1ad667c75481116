/* What the daemon must not forget when it restarts. */
#include "provide_dir.h"

#include <sqlite3.h>

TestSuite(provide_ledger, .init = setup, .fini = teardown, .timeout = 30);

static const char program[] = "1111111111111111111111111111111111111111111111111111111111111111";
enum { DAY = 20000 }; /* days since 1970 */

static const char text[] = "2222222222222222222222222222222222222222222222222222222222222222";

static vd_job_record job_of(char digit, const char *client) {
    vd_job_record job = {.state = VD_JOB_QUEUED, .steps = 12, .memory = 100, .disk = 1000};
    memset(job.id, digit, VD_ID_SIZE - 1);
    snprintf(job.client, VD_ID_SIZE, "%s", client);
    snprintf(job.program, VD_ID_SIZE, "%s", program);
    snprintf(job.program_hash, VD_ID_SIZE, "%s", text);
    snprintf(job.name, sizeof job.name, "toy's \"%c\"; DROP TABLE job", digit);
    return job;
}

static void put(const vd_job_record *job) {
    const char *blobs[] = {program, text, text, NULL}, *referees[] = {bob, NULL};
    vd_err err = {0};
    cr_assert(vd_ledger_put_job(ledger, job, blobs, referees, &err) == VD_OK, "%s", err.text);
}

static vd_job_record get(const char *client, const char *id, bool expected) {
    vd_job_record job;
    bool found;
    cr_assert(vd_ledger_get_job(ledger, client, id, &job, &found, NULL) == VD_OK);
    cr_expect(found == expected);
    return job;
}

Test(provide_ledger, a_nonce_is_taken_once_also_over_a_restart) {
    vd_err err = {0};
    cr_expect(vd_ledger_take_nonce(ledger, alice, "00", 1000, 400, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_ledger_take_nonce(ledger, alice, "00", 1000, 400, &err) == VD_ERR_PEER);
    cr_expect(vd_ledger_take_nonce(ledger, bob, "00", 1000, 400, &err) == VD_OK);
    reopen();
    cr_expect(vd_ledger_take_nonce(ledger, alice, "00", 1600, 1000, &err) == VD_ERR_PEER);
    cr_expect(vd_ledger_take_nonce(ledger, alice, "00", 1601, 1001, &err) == VD_OK);
}

/* The clock goes twelve minutes forward, which forgets the nonce, and back again, with restarts in
 * between. */
Test(provide_ledger, a_clock_that_goes_back_lets_no_old_request_in_again) {
    vd_err err = {0};
    const int64_t then = 1000, ahead = then + 720;
    cr_assert(vd_ledger_take_nonce(ledger, alice, "00", then, then - 600, &err) == VD_OK);
    cr_assert(vd_ledger_take_nonce(ledger, bob, "00", then - 50, then - 600, &err) == VD_OK);
    reopen();
    cr_assert(vd_ledger_take_nonce(ledger, alice, "01", ahead, ahead - 600, &err) == VD_OK);
    reopen();
    cr_expect(vd_ledger_take_nonce(ledger, alice, "00", then, then - 600, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "its clock was ahead"), "%s", err.text);
    cr_expect(vd_ledger_take_nonce(ledger, alice, "02", then + 1, then - 600, &err) == VD_OK,
              "what comes after the forgotten ones is taken: %s", err.text);
    cr_expect(vd_ledger_take_nonce(ledger, bob, "02", then, then - 600, &err) == VD_OK,
              "another client's requests are no matter: %s", err.text);
    cr_expect(vd_ledger_take_nonce(ledger, bob, "00", then - 50, then - 600, &err) == VD_ERR_PEER);
}

Test(provide_ledger, two_daemons_do_not_share_one) {
    vd_ledger *second;
    vd_err err = {0};
    cr_expect(vd_ledger_open(provide_dir, &second, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "another daemon"), "%s", err.text);
}

Test(provide_ledger, a_job_is_its_clients_and_outlives_a_restart) {
    const vd_job_record job = job_of('7', alice);
    put(&job);
    reopen();
    const vd_job_record back = get(alice, job.id, true);
    cr_expect_str_eq(back.name, job.name);
    cr_expect(back.state == VD_JOB_QUEUED && back.steps == 12 && back.disk == 1000);
    get(bob, job.id, false);
    get(NULL, job.id, true);
}

Test(provide_ledger, a_job_goes_through_its_states) {
    vd_job_record job = job_of('7', alice), run;
    bool found;
    put(&job);
    cr_expect(vd_ledger_find_run(ledger, text, bob, &run, &found, NULL) == VD_OK && !found);
    job.state = VD_JOB_RUNNING;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    reopen();
    cr_assert(vd_ledger_requeue(ledger, NULL) == VD_OK);
    cr_expect(get(alice, job.id, true).state == VD_JOB_QUEUED);
    job.state = VD_JOB_DONE;
    job.seconds = 5;
    snprintf(job.run_root, VD_ID_SIZE, "%s", bob);
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    put(&job); /* submitted again, it stays done */
    cr_expect(get(alice, job.id, true).state == VD_JOB_DONE);
    cr_expect(vd_ledger_find_run(ledger, text, bob, &run, &found, NULL) == VD_OK && found);
    cr_expect_str_eq(run.run_root, bob);
    cr_expect(vd_ledger_find_run(ledger, text, alice, &run, &found, NULL) == VD_OK && !found);
    cr_expect(vd_ledger_find_run(ledger, program, bob, &run, &found, NULL) == VD_OK && !found);
}

Test(provide_ledger, what_failed_may_be_submitted_again) {
    vd_job_record job = job_of('7', alice);
    put(&job);
    job.state = VD_JOB_FAILED;
    snprintf(job.error, sizeof job.error, "out of memory");
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    put(&job);
    const vd_job_record back = get(alice, job.id, true);
    cr_expect(back.state == VD_JOB_QUEUED && !back.error[0]);
}

Test(provide_ledger, cancelling) {
    vd_job_record waits = job_of('7', alice), runs = job_of('8', alice);
    put(&waits);
    put(&runs);
    runs.state = VD_JOB_RUNNING;
    cr_assert(vd_ledger_set_job(ledger, &runs, NULL) == VD_OK);
    cr_assert(vd_ledger_cancel_job(ledger, waits.id, NULL) == VD_OK);
    cr_assert(vd_ledger_cancel_job(ledger, runs.id, NULL) == VD_OK);
    cr_expect(get(alice, waits.id, true).state == VD_JOB_CANCELLED);
    cr_expect(get(alice, runs.id, true).state == VD_JOB_RUNNING);
    cr_expect(get(alice, runs.id, true).cancel);
    cr_assert(vd_ledger_requeue(ledger, NULL) == VD_OK); /* as if the daemon had been killed */
    cr_expect(get(alice, runs.id, true).state == VD_JOB_CANCELLED);
}

Test(provide_ledger, only_what_is_queued_starts) {
    const vd_job_record job = job_of('7', alice);
    bool started;
    put(&job);
    cr_expect(vd_ledger_start_job(ledger, job.id, &started, NULL) == VD_OK && started);
    cr_expect(get(alice, job.id, true).state == VD_JOB_RUNNING);
    cr_expect(vd_ledger_start_job(ledger, job.id, &started, NULL) == VD_OK && !started);
    cr_assert(vd_ledger_requeue(ledger, NULL) == VD_OK);
    cr_assert(vd_ledger_cancel_job(ledger, job.id, NULL) == VD_OK);
    cr_expect(vd_ledger_start_job(ledger, job.id, &started, NULL) == VD_OK && !started);
    cr_expect(get(alice, job.id, true).state == VD_JOB_CANCELLED);
    cr_assert(vd_ledger_delete_job(ledger, job.id, 1, NULL) == VD_OK);
    cr_expect(vd_ledger_start_job(ledger, job.id, &started, NULL) == VD_OK && !started);
}

Test(provide_ledger, files_count_in_blocks) {
    static const int64_t sizes[] = {1, 4095, 4096, 4097, 8192, 1 << 30},
                         blocks[] = {2, 2, 2, 3, 3, (1 << 18) + 1};
    for (int i = 0; i < 6; i++)
        cr_expect(vd_disk_bytes(sizes[i]) == blocks[i] * VD_DISK_BLOCK, "%d", i);
}

static vd_usage usage_of(const char *client) {
    vd_usage usage;
    cr_assert(vd_ledger_usage(ledger, client, &usage, NULL) == VD_OK);
    return usage;
}

Test(provide_ledger, what_a_client_has_taken) {
    vd_job_record job = job_of('7', alice);
    cr_assert(vd_ledger_begin_blob(ledger, alice, text, 300, 1, NULL) == VD_OK);
    put(&job);
    cr_expect(usage_of(alice).bytes == 1000 + 2 * VD_DISK_BLOCK);
    cr_expect(usage_of(alice).blobs == 1 && usage_of(alice).jobs == 1);
    cr_expect(usage_of(bob).bytes == 0 && usage_of(bob).jobs == 0);
    job.state = VD_JOB_FAILED;
    job.seconds = 40;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    cr_expect(usage_of(alice).jobs == 0 && usage_of(alice).seconds == 40);
    cr_assert(vd_ledger_delete_job(ledger, job.id, 1, NULL) == VD_OK);
    cr_expect(usage_of(alice).bytes == vd_disk_bytes(300) && usage_of(alice).seconds == 40);
    get(alice, job.id, false);
}

Test(provide_ledger, what_a_job_writes_counts_while_it_runs) {
    vd_job_record job = job_of('7', alice), other = job_of('8', bob);
    int64_t unwritten;
    put(&job);
    put(&other);
    cr_assert(vd_ledger_unwritten(ledger, "", &unwritten, NULL) == VD_OK);
    cr_expect(unwritten == 2000);
    job.state = VD_JOB_RUNNING;
    job.written = 600;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    cr_assert(vd_ledger_unwritten(ledger, "", &unwritten, NULL) == VD_OK);
    cr_expect(unwritten == 1400 && usage_of(alice).bytes == 1000, "it may write 1000");
    cr_assert(vd_ledger_unwritten(ledger, job.id, &unwritten, NULL) == VD_OK);
    cr_expect(unwritten == 1000);
    job.written = 1100;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    cr_expect(usage_of(alice).bytes == 1100 && usage_of(bob).bytes == 1000);
    cr_assert(vd_ledger_unwritten(ledger, other.id, &unwritten, NULL) == VD_OK);
    cr_expect(unwritten == 0);
    cr_assert(vd_ledger_run_again(ledger, job.id, NULL) == VD_OK);
    cr_expect(usage_of(alice).bytes == 2200, "a second run takes as much again");
    cr_expect(get(alice, job.id, true).again && get(alice, job.id, true).written == 1100);
}

static bool add_id(void *user, const vd_job_record *job) {
    char *ids = user;
    ids[strlen(ids)] = job->id[0]; /* the buffer is all zeros behind it */
    return strlen(user) < 3;
}

static void expect_charged(const char *id, const char *referee, int64_t us, int64_t most) {
    vd_charge out = {.day = DAY};
    cr_assert(vd_ledger_charged(ledger, id, referee, &out, NULL) == VD_OK);
    cr_expect(out.us == us && out.us_max == most, "%lld of %lld", (long long)out.us,
              (long long)out.us_max);
}

static void charge(const char *id, const char *referee, int64_t day, int64_t us, int64_t most) {
    const vd_charge c = {day, us, most};
    vd_err err = {0};
    cr_expect(vd_ledger_charge(ledger, id, referee, &c, &err) == VD_OK, "%s", err.text);
}

Test(provide_ledger, what_a_referee_has_taken) {
    const vd_job_record job = job_of('7', alice);
    put(&job);
    expect_charged(job.id, bob, 0, 0);
    charge(job.id, bob, DAY, 700, 1000);
    charge(job.id, bob, DAY, 50, 2000);
    charge(job.id, alice, DAY, 50, 2000); /* the submission does not name alice as a referee */
    reopen();
    expect_charged(job.id, bob, 750, 2000);
    expect_charged(job.id, alice, 0, 0);
    charge(job.id, bob, DAY - 1, 7, 2000); /* as after the clock was set back */
    expect_charged(job.id, bob, 0, 0);
    charge(job.id, bob, DAY, 9, 2000);
    expect_charged(job.id, bob, 9, 2000);
    cr_assert(vd_ledger_delete_job(ledger, job.id, 0, NULL) == VD_OK);
    expect_charged(job.id, bob, 9, 2000); /* kept in case the same job is submitted again */
}

Test(provide_ledger, judging_is_charged_to_its_client) {
    cr_assert(vd_ledger_charge_judging(ledger, alice, 1900000, NULL) == VD_OK);
    cr_assert(vd_ledger_charge_judging(ledger, alice, 200000, NULL) == VD_OK);
    reopen();
    cr_expect(usage_of(alice).seconds == 2 && usage_of(bob).seconds == 0);
}

#define BEFORE_4                                                                                   \
    "DROP TABLE judged; DROP TABLE forgotten; ALTER TABLE job DROP COLUMN written; "               \
    "ALTER TABLE job DROP COLUMN again; "

static void change_file(const char *sql) {
    char path[128];
    sqlite3 *db;
    vd_ledger_close(ledger);
    snprintf(path, sizeof path, "%s/ledger.db", provide_dir);
    cr_assert(sqlite3_open(path, &db) == SQLITE_OK);
    cr_assert(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static void change_closed_ledger(const char *sql) {
    change_file(sql);
    open_ledger();
}

Test(provide_ledger, of_a_later_version_stays_as_it_is) {
    vd_err err = {0};
    change_file("PRAGMA user_version=5;");
    cr_expect(vd_ledger_open(provide_dir, &ledger, &err) == VD_ERR_VERSION);
    cr_expect(
        strstr(err.text, "ledger.db: version 5 of a ledger; this verde reads versions 1 to 4"),
        "%s", err.text);
    change_file("PRAGMA user_version=4;");
    open_ledger();
}

/* An older ledger is used on: from before it kept accounts of referees, and from before it kept the
 * bytes written. */
Test(provide_ledger, an_older_one_goes_on) {
    const vd_job_record job = job_of('7', alice);
    vd_err err = {0};
    put(&job);
    change_closed_ledger(BEFORE_4 "DROP TABLE asked; PRAGMA user_version=1;");
    get(alice, job.id, true);
    charge(job.id, bob, DAY, 700, 1000);
    expect_charged(job.id, bob, 700, 1000);
    cr_assert(vd_ledger_take_nonce(ledger, alice, "00", 1000, 400, &err) == VD_OK);
    change_closed_ledger(BEFORE_4 "PRAGMA user_version=3;");
    expect_charged(job.id, bob, 700, 1000);
    cr_expect(get(alice, job.id, true).written == 0 && !get(alice, job.id, true).again);
    cr_expect(vd_ledger_take_nonce(ledger, alice, "00", 1000, 400, &err) == VD_ERR_PEER);
}

static void take_count(const char *referee, int64_t count, vd_status expected, int64_t had) {
    const vd_job_record job = job_of('7', alice);
    int64_t have;
    vd_err err = {0};
    cr_expect(vd_ledger_take_count(ledger, job.id, referee, count, &have, &err) == expected, "%s",
              err.text);
    cr_expect(have == had, "%lld", (long long)have);
}

Test(provide_ledger, counts_of_questions_only_grow) {
    const vd_job_record job = job_of('7', alice);
    put(&job);
    charge(job.id, bob, DAY, 700, 1000);
    take_count(bob, 5, VD_OK, 0);
    take_count(bob, 5, VD_ERR_PEER, 5);
    take_count(bob, 1, VD_ERR_PEER, 5);
    take_count(alice, 1, VD_OK, 0); /* each referee has a count of its own */
    take_count(bob, 6, VD_OK, 0);
    charge(job.id, bob, DAY, 1, 1000);
    reopen();
    take_count(bob, 6, VD_ERR_PEER, 6);
    take_count(bob, 7, VD_OK, 0);
    cr_assert(vd_ledger_delete_job(ledger, job.id, 0, NULL) == VD_OK);
    put(&job);
    take_count(bob, 7, VD_ERR_PEER, 7); /* the same job, submitted again */
    take_count(bob, INT64_C(1) << 53, VD_OK, 0);
    expect_charged(job.id, bob, 701, 1000);
}

Test(provide_ledger, lists_are_in_the_order_of_submission) {
    const char digits[] = "9371";
    char mine[8] = "", all[8] = "";
    for (int i = 0; i < 4; i++) {
        const vd_job_record job = job_of(digits[i], i % 2 ? alice : bob);
        put(&job);
    }
    cr_assert(vd_ledger_list_jobs(ledger, alice, add_id, mine, NULL) == VD_OK);
    cr_assert(vd_ledger_list_jobs(ledger, NULL, add_id, all, NULL) == VD_OK);
    cr_expect_str_eq(mine, "31");
    cr_expect_str_eq(all, "937"); /* the visitor stopped after three */
}

static void add_dropped(void *user, const char *client, const char *hash) {
    char *to = user;
    to[strlen(to)] = client ? client[0] : hash[0];
}

static const char *collect(int64_t before, char dropped[16]) {
    memset(dropped, 0, 16);
    cr_assert(vd_ledger_collect(ledger, before, add_dropped, dropped, NULL) == VD_OK);
    return dropped;
}

static void own(const char *client, const char *hash, int64_t now) {
    cr_assert(vd_ledger_begin_blob(ledger, client, hash, 10, now, NULL) == VD_OK);
    cr_assert(vd_ledger_end_blob(ledger, client, hash, now, NULL) == VD_OK);
}

Test(provide_ledger, blobs_go_when_no_job_of_their_client_needs_them) {
    vd_job_record job = job_of('7', alice);
    char dropped[16];
    own(alice, program, 10);
    own(alice, text, 10);
    own(bob, text, 10);
    put(&job);
    cr_expect_str_eq(collect(10, dropped), ""); /* not yet old enough */
    cr_expect_str_eq(collect(11, dropped), ""); /* bob's row goes, but the file stays for alice */
    vd_blob blob;
    cr_expect(vd_ledger_find_blob(ledger, bob, text, &blob, NULL) == VD_OK);
    cr_expect(blob.size == -1 && blob.on_disk);
    job.state = VD_JOB_DONE;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    cr_expect_str_eq(collect(1000, dropped), ""); /* a dispute may need it */
    cr_assert(vd_ledger_delete_job(ledger, job.id, 50, NULL) == VD_OK);
    cr_expect_str_eq(collect(50, dropped), "");
    cr_expect_str_eq(collect(51, dropped), "12");
    cr_expect(vd_ledger_begin_blob(ledger, bob, text, 10, 60, NULL) == VD_OK);
    cr_expect_str_eq(collect(61, dropped), "b"); /* an abandoned upload */
}

/* The disk blocks of the ledger's files. More blocks are what a full disk would refuse. */
static int64_t blocks_of_ledger(void) {
    int64_t blocks = 0;
    for (int i = 0; i < 2; i++) {
        char path[128];
        struct stat info;
        snprintf(path, sizeof path, "%s/ledger.db%s", provide_dir, i ? "-wal" : "");
        cr_assert(stat(path, &info) == 0);
        blocks += info.st_blocks;
    }
    return blocks;
}

Test(provide_ledger, a_full_disk_does_not_stop_it) {
    const int64_t before = blocks_of_ledger();
    const vd_job_record job = job_of('7', alice);
    for (int i = 0; i < 3000; i++) {
        char nonce[33];
        snprintf(nonce, sizeof nonce, "%032x", (unsigned)i);
        cr_assert(vd_ledger_take_nonce(ledger, alice, nonce, i, 0, NULL) == VD_OK);
    }
    put(&job);
    cr_assert(vd_ledger_delete_job(ledger, job.id, 1, NULL) == VD_OK);
    cr_expect(blocks_of_ledger() == before, "%lld blocks, and %lld before",
              (long long)blocks_of_ledger(), (long long)before);
}

/* When a file is about to be removed, its row must be gone already. */
static void see_row_gone(void *user, const char *client, const char *hash) {
    vd_blob blob;
    (void)client;
    cr_expect(vd_ledger_find_blob(ledger, alice, hash, &blob, NULL) == VD_OK && blob.size == -1);
    ++*(int *)user;
}

Test(provide_ledger, files_go_after_their_rows) {
    int count = 0;
    own(alice, text, 1);
    cr_assert(vd_ledger_collect(ledger, 2, see_row_gone, &count, NULL) == VD_OK);
    cr_expect(count == 1);
}

Test(provide_ledger, many_are_collected_at_once) {
    char dropped[400] = "", hash[VD_ID_SIZE];
    for (int i = 0; i < 150; i++) {
        snprintf(hash, sizeof hash, "%064x", (unsigned)i);
        own(alice, hash, 1);
    }
    cr_assert(vd_ledger_collect(ledger, 2, add_dropped, dropped, NULL) == VD_OK);
    cr_expect(strlen(dropped) == 150);
}

Test(provide_ledger, totals) {
    vd_ledger_totals totals;
    const vd_job_record job = job_of('7', alice);
    put(&job);
    own(alice, text, 1);
    own(bob, text, 1);
    cr_assert(vd_ledger_begin_blob(ledger, bob, program, 5, 1, NULL) == VD_OK);
    cr_assert(vd_ledger_count(ledger, &totals, NULL) == VD_OK);
    cr_expect(totals.jobs[VD_JOB_QUEUED] == 1 && totals.jobs[VD_JOB_DONE] == 0);
    cr_expect(totals.blobs == 1 && totals.blob_bytes == 10 && totals.uploads == 1);
}
