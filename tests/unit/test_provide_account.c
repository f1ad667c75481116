/* What a referee's questions may make a daemon compute, from a child's account to what is told. The
 * child is a thread. */
#include "provide_dir.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "verde/protocol/provider.h"
#include "verde/provide/frames.h"
#include "verde/provide/internal.h"

TestSuite(provide_account, .init = setup, .fini = teardown, .timeout = 60);

typedef struct {
    vd_daemon daemon;
    vd_key *referee[2];
    vd_hash program;
    char job[VD_ID_SIZE];
    int child; /* its end */
    pthread_t thread;
    atomic_int asked, accounts;
    atomic_llong us; /* what the next account says of the first referee */
} bench;

static bench b;
static int overruns; /* lines that tell of one */

static void hear(const char *format, ...) {
    va_list args;
    char line[600];
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    overruns += strstr(line, "which is more than disputes take") != NULL;
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

/* A child that loaded its job a second ago. */
static void bench_open(void) {
    int ends[2];
    vd_answerer *a = &b.daemon.answers.place[0];
    for (int i = 0; i < 2; i++) {
        uint8_t seed[32] = {(uint8_t)(i + 1)};
        cr_assert(vd_key_from_seed(seed, &b.referee[i], NULL) == VD_OK);
    }
    memset(b.program.b, 9, VD_HASH_SIZE);
    b.daemon.ledger = ledger;
    b.daemon.options.say = hear;
    overruns = 0;
    put_job();
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    *a = (vd_answerer){
        .questions = ends[0], .ready = true, .used = vd_seconds(), .started = vd_seconds() - 1};
    memcpy(a->job, b.job, VD_ID_SIZE);
    b.child = ends[1];
    cr_assert(pthread_create(&b.thread, NULL, be_child, NULL) == 0);
}

static void bench_close(void) {
    close(b.daemon.answers.place[0].questions);
    pthread_join(b.thread, NULL);
    close(b.child);
    for (int i = 0; i < 2; i++)
        vd_key_destroy(b.referee[i]);
}

/* The status of the response, with its body's end in `why`. */
static int ask(int referee, char why[256]) {
    vd_buf payload = {0}, notes[2] = {0}, body = {0};
    vd_response response = {.status = 200};
    const vd_assignment a = {.program = b.program,
                             .referee = public_of(b.referee[referee]),
                             .provider = {public_of(b.referee[0]), public_of(b.referee[1])},
                             .provider_count = 2};
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    for (int i = 0; i < 2; i++)
        cr_assert(vd_note_sign(b.referee[referee], i ? VD_TYPE_QUESTION : VD_TYPE_ASSIGNMENT,
                               payload.data, payload.size, &notes[i], NULL) == VD_OK);
    cr_assert(vd_request_write(&notes[0], &notes[1], &body, NULL) == VD_OK);
    const vd_request request = {.body = body.data, .body_size = body.size};
    vd_serve_ask(&b.daemon, &request, &response);
    snprintf(why, 256, "%.*s", (int)response.body.size, (const char *)response.body.data);
    vd_buf_free(&response.body);
    vd_buf_free(&payload);
    vd_buf_free(&notes[0]);
    vd_buf_free(&notes[1]);
    vd_buf_free(&body);
    return response.status;
}

/* Of 1,000 us the first referee has them all: it is told of once, and both are answered on. */
Test(provide_account, a_referee_that_has_had_its_seconds_is_told_of) {
    char why[256];
    bench_open();
    atomic_store(&b.us, 999);
    cr_expect(ask(0, why) == 200, "%s", why);
    cr_expect(ask(0, why) == 200, "%s", why);
    atomic_store(&b.us, 1);
    cr_expect(ask(0, why) == 200, "%s", why);
    cr_expect(overruns == 0);
    cr_expect(ask(0, why) == 200 && ask(0, why) == 200, "%s", why);
    cr_expect(overruns == 1, "told %d times", overruns);
    cr_expect(ask(1, why) == 200, "%s", why);
    cr_expect(atomic_load(&b.asked) == 6 && overruns == 1);
    reopen(); /* a daemon that is started again */
    b.daemon.ledger = ledger;
    b.daemon.trouble = (vd_trouble){.lock = PTHREAD_MUTEX_INITIALIZER};
    cr_expect(ask(0, why) == 200 && overruns == 2, "%s", why);
    bench_close();
}

/* No child can say more than what it had time for. */
Test(provide_account, an_account_of_years_counts_for_the_childs_age) {
    char why[256], key[VD_ID_SIZE];
    int64_t us, us_max;
    bench_open();
    atomic_store(&b.us, INT64_MAX);
    cr_expect(ask(1, why) == 200, "%s", why);
    vd_hex(public_of(b.referee[0]).b, VD_KEY_SIZE, key);
    cr_assert(vd_ledger_charged(ledger, b.job, key, &us, &us_max, NULL) == VD_OK);
    cr_expect(us >= 1000000 && us < 60000000 && us_max == 1000, "%lld", (long long)us);
    bench_close();
}
