/* A referee's questions make a daemon compute: a child accounts for the time, and a referee that
 * used too much is refused. Here the child is a thread. */
#include "provide_dir.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "verde/net/server_internal.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/signed_request.h"
#include "verde/provide/frames.h"
#include "verde/provide/internal.h"

TestSuite(provide_account, .init = setup, .fini = teardown, .timeout = 60);

typedef struct {
    vd_daemon daemon;
    vd_key *referee[2], *key;
    int64_t count; /* the number of the last question */
    vd_hash program;
    char job[VD_ID_SIZE];
    int child; /* the child's end of the socket pair */
    pthread_t thread;
    atomic_int asked, accounts;
    atomic_llong us; /* microseconds of the first referee in the next account */
} bench;

static bench b;
static int overruns; /* number of lines about a referee that used too much */

static void hear(const char *format, ...) {
    va_list args;
    char line[600];
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    overruns += strstr(line, "that they may take in a day") != NULL;
}

static vd_public_key public_of(const vd_key *key) {
    vd_public_key out;
    vd_key_public(key, &out);
    return out;
}

static void give_account(void) {
    const vd_public_key first = public_of(b.referee[0]);
    vd_buf out = {0};
    vd_put_u64(&out, 1000);
    vd_put(&out, first.b, VD_KEY_SIZE);
    vd_put_u64(&out, (uint64_t)atomic_exchange(&b.us, 0));
    cr_assert(vd_frame_put(b.child, out.data, out.size, NULL) == VD_OK);
    vd_buf_free(&out);
    atomic_fetch_add(&b.accounts, 1);
}

static void *be_child(void *unused) {
    static const uint8_t reply[VD_REPLY_HEAD + 2] = {[VD_REPLY_HEAD] = '{', '}'};
    vd_buf in = {0};
    (void)unused;
    while (vd_frame_get(b.child, VD_FRAME_MAX, -1, &in, NULL) == VD_OK) {
        if (in.size == 0) {
            give_account();
        } else {
            atomic_fetch_add(&b.asked, 1);
            cr_assert(vd_frame_put(b.child, reply, sizeof reply, NULL) == VD_OK);
        }
        in.size = 0;
    }
    vd_buf_free(&in);
    return NULL;
}

static void put_job(void) {
    char key[2][VD_ID_SIZE];
    vd_job_record job = {.state = VD_JOB_QUEUED};
    memset(job.id, '7', VD_ID_SIZE - 1);
    memcpy(b.job, job.id, VD_ID_SIZE);
    snprintf(job.client, VD_ID_SIZE, "%s", alice);
    snprintf(job.program, VD_ID_SIZE, "%s", bob);
    vd_hex(b.program.b, VD_HASH_SIZE, job.program_hash);
    for (int i = 0; i < 2; i++)
        vd_hex(public_of(b.referee[i]).b, VD_KEY_SIZE, key[i]);
    const char *blobs[] = {bob, NULL}, *referees[] = {key[0], key[1], NULL};
    cr_assert(vd_ledger_put_job(ledger, &job, blobs, referees, NULL) == VD_OK);
    job.state = VD_JOB_DONE;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
}

/* Opens a daemon with a child that loaded its job a second ago. */
static void bench_open(void) {
    int ends[2];
    vd_answerer *a = &b.daemon.answers.place[0];
    for (int i = 0; i < 2; i++) {
        uint8_t seed[32] = {(uint8_t)(i + 1)};
        cr_assert(vd_key_from_seed(seed, &b.referee[i], NULL) == VD_OK);
    }
    memset(b.program.b, 9, VD_HASH_SIZE);
    cr_assert(vd_key_from_seed((const uint8_t[32]){3}, &b.key, NULL) == VD_OK);
    vd_key_public(b.key, &b.daemon.key);
    b.daemon.ledger = ledger;
    b.daemon.options.say = hear;
    b.daemon.options.limits.referee_seconds = VD_REFEREE_MEASURED;
    b.daemon.trouble = (vd_trouble){.lock = PTHREAD_MUTEX_INITIALIZER};
    overruns = 0;
    put_job();
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    *a = (vd_answerer){.questions = ends[0],
                       .ready = true,
                       .used = vd_seconds(),
                       .started = vd_seconds() - 1,
                       .charged = vd_seconds() - 1};
    memcpy(a->job, b.job, VD_ID_SIZE);
    b.child = ends[1];
    cr_assert(pthread_create(&b.thread, NULL, be_child, NULL) == 0);
}

static void bench_close_child(void) {
    close(b.daemon.answers.place[0].questions);
    b.daemon.answers.place[0] = (vd_answerer){.pid = 0};
    pthread_join(b.thread, NULL);
    close(b.child);
    b.child = -1;
}

static void bench_close(void) {
    if (b.child >= 0)
        bench_close_child();
    for (int i = 0; i < 2; i++)
        vd_key_destroy(b.referee[i]);
    vd_key_destroy(b.key);
    b = (bench){.count = 0};
}

static void put_header(int referee, const vd_buf *body, int64_t count, vd_buf *out) {
    cr_assert(vd_ask_sign(b.referee[referee], &b.daemon.key, body->data, body->size, count, out,
                          NULL) == VD_OK);
    vd_put_u8(out, 0);
}

/* Asks question number `count`. Returns the response's status, with its body in `why`. */
static int ask_with(int referee, int64_t count, char why[256]) {
    vd_buf payload = {0}, notes[2] = {0}, body = {0}, header = {0};
    vd_response response = {.status = 200};
    vd_headers headers = {.own = {{VD_REQUEST_HEADER, NULL}}, .count = 1};
    const vd_assignment a = {.program = b.program,
                             .referee = public_of(b.referee[referee]),
                             .provider = {public_of(b.referee[0]), public_of(b.referee[1])},
                             .provider_count = 2};
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    for (int i = 0; i < 2; i++)
        cr_assert(vd_note_sign(b.referee[referee], i ? VD_TYPE_QUESTION : VD_TYPE_ASSIGNMENT,
                               payload.data, payload.size, &notes[i], NULL) == VD_OK);
    cr_assert(vd_request_write(&notes[0], &notes[1], &body, NULL) == VD_OK);
    put_header(referee, &body, count, &header);
    headers.own[0].value = (const char *)header.data;
    const vd_request request = {.body = body.data, .body_size = body.size, .headers = &headers};
    vd_serve_ask(&b.daemon, &request, &response);
    snprintf(why, 256, "%.*s", (int)response.body.size, (const char *)response.body.data);
    vd_buf_free(&response.body);
    vd_buf_free(&payload);
    vd_buf_free(&notes[0]);
    vd_buf_free(&notes[1]);
    vd_buf_free(&body);
    vd_buf_free(&header);
    return response.status;
}

static int ask(int referee, char why[256]) {
    return ask_with(referee, ++b.count, why);
}

/* Once the first referee has used its 1,000 us of the day, none of its questions are answered that
 * day. */
Test(provide_account, a_referee_that_has_had_its_seconds_is_refused) {
    char why[256];
    bench_open();
    atomic_store(&b.us, 999);
    cr_expect(ask(0, why) == 200, "%s", why);
    cr_expect(ask(0, why) == 200, "%s", why);
    atomic_store(&b.us, 1);
    cr_expect(ask(0, why) == 200, "%s", why); /* the account comes with the answer */
    cr_expect(overruns == 0);
    cr_expect(ask(0, why) == 429 && strstr(why, "that they may take in a day"), "%s", why);
    cr_expect(ask(0, why) == 429, "%s", why);
    cr_expect(overruns == 1, "told %d times", overruns);
    cr_expect(ask(1, why) == 200, "%s", why);
    cr_expect(atomic_load(&b.asked) == 4);
    reopen(); /* the daemon starts again */
    b.daemon.ledger = ledger;
    b.daemon.trouble = (vd_trouble){.lock = PTHREAD_MUTEX_INITIALIZER};
    cr_expect(ask(0, why) == 429 && overruns == 2, "%s", why);
    bench_close();
}

/* The user's limit replaces the child's. 0 means no limit. */
Test(provide_account, a_limit_of_the_users_own) {
    char why[256];
    bench_open();
    atomic_store(&b.us, 600000);
    cr_expect(ask(0, why) == 200, "%s", why);
    b.daemon.options.limits.referee_seconds = 1;
    cr_expect(ask(0, why) == 200, "%s", why);
    b.daemon.options.limits.referee_seconds = 0;
    cr_expect(ask(0, why) == 200, "%s", why);
    b.daemon.options.limits.referee_seconds = VD_REFEREE_MEASURED;
    cr_expect(ask(0, why) == 429, "%s", why);
    bench_close();
}

/* A repeated request costs nothing and is charged to nobody. */
Test(provide_account, a_request_that_comes_again_is_refused) {
    char why[256];
    bench_open();
    cr_expect(ask_with(0, 7, why) == 200, "%s", why);
    cr_expect(ask_with(0, 7, why) == 409 && strstr(why, "\"have\":7"), "%s", why);
    cr_expect(ask_with(0, 6, why) == 409, "%s", why);
    cr_expect(ask_with(1, 6, why) == 200, "%s", why); /* another referee counts by itself */
    cr_expect(ask_with(0, 8, why) == 200, "%s", why);
    cr_expect(atomic_load(&b.asked) == 3 && atomic_load(&b.accounts) == 3);
    bench_close();
}

/* The failure is the daemon's own. It must not cost a referee its answer, nor end the child. */
Test(provide_account, a_ledger_that_cannot_be_written_costs_no_answer) {
    char why[256], path[128];
    sqlite3 *db;
    bench_open();
    vd_ledger_close(ledger);
    snprintf(path, sizeof path, "%s/ledger.db", provide_dir);
    cr_assert(sqlite3_open(path, &db) == SQLITE_OK);
    cr_assert(sqlite3_exec(db,
                           "CREATE TRIGGER full BEFORE INSERT ON asked BEGIN SELECT "
                           "RAISE(ABORT, 'database or disk is full'); END;",
                           NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    open_ledger();
    b.daemon.ledger = ledger;
    cr_expect(ask(0, why) == 200 && ask(0, why) == 200, "%s", why);
    cr_expect(atomic_load(&b.asked) == 2 && b.daemon.answers.place[0].job[0]);
    bench_close();
}

static int64_t charged_us(int referee) {
    char key[VD_ID_SIZE];
    vd_charge out = {.day = vd_unix_time() / 86400};
    vd_hex(public_of(b.referee[referee]).b, VD_KEY_SIZE, key);
    cr_assert(vd_ledger_charged(ledger, b.job, key, &out, NULL) == VD_OK);
    return out.us;
}

/* A child can account for no more than the time that has passed, however often it is asked. */
Test(provide_account, accounts_of_years_count_for_the_time_that_has_passed) {
    char why[256];
    const double before = vd_seconds();
    bench_open();
    b.daemon.options.limits.referee_seconds = 0;
    for (int i = 0; i < 20; i++) {
        atomic_store(&b.us, INT64_MAX);
        cr_expect(ask(1, why) == 200, "%s", why);
    }
    const double most = (1 + vd_seconds() - before) * 1e6;
    cr_expect(charged_us(0) >= 1000000 && (double)charged_us(0) <= most, "%lld of %.0f",
              (long long)charged_us(0), most);
    bench_close();
}

/* ---- whose child gives way ---- */

static void *end_at_once(void *unused) {
    return unused;
}

/* Puts a child of alice or bob here, last asked `idle_s` seconds ago. */
static void put_child(int place, const char *client, double idle_s) {
    int ends[2];
    vd_answerer *a = &b.daemon.answers.place[place];
    const pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    cr_assert(pid > 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    *a = (vd_answerer){.pid = pid, .questions = ends[0], .signatures = ends[1]};
    cr_assert(pthread_create(&a->signer, NULL, end_at_once, NULL) == 0);
    a->used = vd_seconds() - idle_s;
    snprintf(a->client, VD_ID_SIZE, "%s", client);
    memset(a->job, '1' + place, VD_ID_SIZE - 1);
}

/* alice asks about one more job. Returns which child is ended for it; 4: none; -1: several. */
static int who_gives_way(const double alices[4], const double bobs[4]) {
    static char *nothing[] = {"/bin/false", NULL};
    char why[256];
    int place = 0, gone = VD_ANSWERERS_MAX, count = 0;
    b.daemon.options.dir = provide_dir;
    b.daemon.options.answer_argv = nothing;
    for (int i = 0; i < 4; i++)
        if (alices[i] >= 0)
            put_child(place++, alice, alices[i]);
    for (int i = 0; i < 4; i++)
        if (bobs[i] >= 0)
            put_child(place++, bob, bobs[i]);
    cr_assert(place == VD_ANSWERERS_MAX);
    cr_expect(ask(0, why) == 503);
    for (int i = 0; i < VD_ANSWERERS_MAX; i++)
        if (b.daemon.answers.place[i].job[0] != '1' + i) {
            gone = i;
            count++;
        }
    cr_expect((strstr(why, "other jobs are answered first") != NULL) == (count == 0), "%s", why);
    vd_answers_close(&b.daemon.answers);
    return count > 1 ? -1 : gone;
}

Test(provide_account, whose_child_gives_way) {
    enum { NO = -1 };
    const struct {
        double alices[4], bobs[4];
        int gone;
    } of[] = {
        {{0, 0, 0, NO}, {60, NO, NO, NO}, 4},  /* bob may be waiting for a slow rival */
        {{0, 0, 0, NO}, {301, NO, NO, NO}, 3}, /* but not for ever */
        {{0, 6, 0, NO}, {60, NO, NO, NO}, 1},  /* alice's own child goes first */
        {{NO, NO, NO, NO}, {1, 0, 0, 0}, 0},   /* bob has four, alice has none */
        {{0, NO, NO, NO}, {0, 1, 0, NO}, 2},   /* bob has two more than alice */
        {{0, 0, NO, NO}, {0, 6, NO, NO}, 3},   /* each has two */
        {{0, 0, NO, NO}, {0, 1, NO, NO}, 4},
    };
    bench_open();
    bench_close_child();
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        const int gone = who_gives_way(of[i].alices, of[i].bobs);
        cr_expect(gone == of[i].gone, "%zu: %d", i, gone);
    }
    bench_close();
}
