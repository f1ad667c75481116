/* A daemon over TLS whose judge is slow: referees' questions do not wait for it. The judge and the
 * answering child are shell scripts. */
#include "net_peers.h"

#include <openssl/sha.h>
#include <sys/stat.h>

#include "verde/protocol/provider.h"
#include "verde/protocol/signed_request.h"
#include "verde/provide/internal.h"
#include "verde/provide/ledger_internal.h"

TestSuite(provide_lanes, .timeout = 120);

/* The judge waits until file "go" exists, and then reports that the blob is no program. It appends
 * each program's name to file "order". */
static char judge_script[] = "echo \"${2##*/}\" >> \"${2%/blobs/*}/order\"; until [ -e "
                             "\"${2%/*}/go\" ]; do sleep 0.01; done; "
                             "printf '\\003\\000\\000\\000\\002no' >&3";
/* The child's messages for one question: ready, an account, and an answer of two bytes. */
static char answer_script[] =
    "printf '\\000\\000\\000\\000\\010\\000\\000\\000' >&3; head -c 8 /dev/zero >&3; "
    "printf '\\024\\000\\000\\000' >&3; head -c 18 /dev/zero >&3; printf '{}' >&3; exec sleep 60";
static char *judge_argv[] = {"/bin/sh", "-c", judge_script, "judge", NULL};
static char *answer_argv[] = {"/bin/sh", "-c", answer_script, "answer", NULL};

typedef struct {
    identity self;
    char dir[64];
    vd_key *key, *client_key[2], *referee;
    vd_public_key provider, client_public[2];
    vd_daemon *daemon;
    pthread_t thread;
    vd_endpoint at;
} bench;

static void keep_quiet(const char *format, ...) {
    (void)format;
}

static void *serve(void *user) {
    bench *b = user;
    cr_assert(vd_daemon_run(b->daemon, NULL) == VD_OK);
    return NULL;
}

static vd_public_key public_of(const vd_key *key) {
    vd_public_key out;
    vd_key_public(key, &out);
    return out;
}

static const vd_hash job_program = {{9}};

/* Puts a finished job into the ledger before the daemon opens it. */
static void put_job(const bench *b) {
    char path[200], key[VD_ID_SIZE];
    vd_ledger *ledger;
    vd_job_record job = {.state = VD_JOB_QUEUED};
    cr_assert(vd_ledger_open(b->dir, &ledger, NULL) == VD_OK);
    memset(job.id, '7', VD_ID_SIZE - 1);
    memset(job.program, '8', VD_ID_SIZE - 1);
    vd_hex(b->client_public[0].b, VD_KEY_SIZE, job.client);
    vd_hex(job_program.b, VD_HASH_SIZE, job.program_hash);
    vd_hex(public_of(b->referee).b, VD_KEY_SIZE, key);
    const char *blobs[] = {job.program, NULL}, *referees[] = {key, NULL};
    cr_assert(vd_ledger_put_job(ledger, &job, blobs, referees, NULL) == VD_OK);
    job.state = VD_JOB_DONE;
    cr_assert(vd_ledger_set_job(ledger, &job, NULL) == VD_OK);
    vd_ledger_close(ledger);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/jobs%s%s", b->dir, i ? "/" : "", i ? job.id : "");
        cr_assert(mkdir(path, 0700) == 0);
    }
}

static void open_bench(bench *b) {
    vd_err err = {0};
    *b = (bench){.self = make_identity(), .dir = "/tmp/verde-lanes-XXXXXX"};
    cr_assert(mkdtemp(b->dir));
    cr_assert(vd_key_load(b->self.key_file, &b->key, NULL) == VD_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert(vd_key_generate(&b->client_key[i], NULL) == VD_OK);
        b->client_public[i] = public_of(b->client_key[i]);
    }
    cr_assert(vd_key_generate(&b->referee, NULL) == VD_OK);
    b->provider = public_of(b->key);
    put_job(b);
    const vd_daemon_options options = {.dir = b->dir,
                                       .listen = "127.0.0.1:0",
                                       .cert_path = b->self.cert,
                                       .key_path = b->self.key_file,
                                       .key = b->key,
                                       .client = b->client_public,
                                       .client_count = 2,
                                       .limits = {.client_bytes = 1 << 30,
                                                  .client_blobs = 100,
                                                  .client_jobs = 10,
                                                  .memory = 1 << 30,
                                                  .keep_s = 86400},
                                       .jobs = 1,
                                       .run_argv = answer_argv,
                                       .answer_argv = answer_argv,
                                       .judge_argv = judge_argv,
                                       .say = keep_quiet};
    cr_assert(vd_daemon_create(&options, &b->daemon, &err) == VD_OK, "%s", err.text);
    b->at = endpoint_at(vd_daemon_port(b->daemon), b->self.hex);
    cr_assert(pthread_create(&b->thread, NULL, serve, b) == 0);
}

static void close_bench(bench *b) {
    char command[96];
    vd_daemon_stop(b->daemon);
    pthread_join(b->thread, NULL);
    vd_daemon_destroy(b->daemon);
    vd_key_destroy(b->key);
    vd_key_destroy(b->client_key[0]);
    vd_key_destroy(b->client_key[1]);
    vd_key_destroy(b->referee);
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    cr_expect(system(command) == 0);
    remove_identity(&b->self);
}

/* Returns the status of a request that a client signs. */
static int call(const bench *b, int who, vd_client *with, const char *method, const char *path,
                const char *body) {
    static atomic_int count;
    char line[8192] = VD_REQUEST_HEADER ": ";
    const size_t size = body ? strlen(body) : 0;
    const uint8_t nonce[VD_NONCE_SIZE] = {(uint8_t)atomic_fetch_add(&count, 1)};
    const vd_request_head head = {method, path, size};
    vd_buf value = {0};
    vd_answer answer;
    cr_assert(vd_request_sign(b->client_key[who], &b->provider, &head, body, time(NULL), nonce,
                              &value, NULL) == VD_OK);
    snprintf(line + strlen(line), sizeof line - strlen(line), "%.*s", (int)value.size,
             (const char *)value.data);
    const vd_exchange exchange = {.to = &b->at,
                                  .path = path,
                                  .body = body,
                                  .body_size = size,
                                  .method = method,
                                  .header = line,
                                  .deadline_ms = 30000};
    vd_client_ask(with, 1, &exchange, &answer);
    const int status = answer.http_status;
    vd_answer_free(&answer);
    vd_buf_free(&value);
    return status;
}

/* A client that submits on a thread of its own, and the status of the answer. */
typedef struct {
    const bench *b;
    int who;
    char body[300];
    atomic_int status; /* 0: still waiting */
    pthread_t thread;
} submitting;

/* Uploads `bytes`, which are no valid program. hex gets their SHA-256. */
static void upload(submitting *s, const bench *b, int who, const char *bytes, const char *name,
                   char hex[VD_ID_SIZE]) {
    uint8_t hash[32];
    char path[200];
    *s = (submitting){.b = b, .who = who};
    SHA256((const uint8_t *)bytes, strlen(bytes), hash);
    vd_hex(hash, sizeof hash, hex);
    snprintf(s->body, sizeof s->body,
             "{\"data\":[],\"name\":\"%s\",\"program\":\"%s\",\"referees\":[],\"verde\":1}", name,
             hex);
    snprintf(path, sizeof path, "/v1/blobs/%s?size=%zu&from=0", hex, strlen(bytes));
    cr_assert(call(b, who, client, "PUT", path, bytes) == 200);
}

static void *submit(void *user) {
    submitting *s = user;
    vd_client *with;
    cr_assert(vd_client_create(NULL, &with, NULL) == VD_OK);
    atomic_store(&s->status, call(s->b, s->who, with, "POST", "/v1/jobs", s->body));
    vd_client_destroy(with);
    return NULL;
}

/* Returns once the daemon has the submission. */
static void start_submitting(submitting *s) {
    atomic_llong *requests = &s->b->daemon->meter.requests;
    const long long before = atomic_load(requests);
    cr_assert(pthread_create(&s->thread, NULL, submit, s) == 0);
    for (int i = 0; atomic_load(requests) == before && i < 3000; i++)
        sleep_ms(10);
    cr_assert(call(s->b, s->who, client, "GET", "/v1/jobs", NULL) == 200);
}

static int ask_as_referee(const bench *b) {
    vd_buf payload = {0}, notes[2] = {0}, body = {0}, header = {0};
    vd_answer answer;
    const vd_assignment a = {.program = job_program,
                             .referee = public_of(b->referee),
                             .provider = {b->provider, b->client_public[0]},
                             .provider_count = 2};
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    for (int i = 0; i < 2; i++)
        cr_assert(vd_note_sign(b->referee, i ? VD_TYPE_QUESTION : VD_TYPE_ASSIGNMENT, payload.data,
                               payload.size, &notes[i], NULL) == VD_OK);
    cr_assert(vd_request_write(&notes[0], &notes[1], &body, NULL) == VD_OK);
    vd_printf(&header, VD_REQUEST_HEADER ": ");
    cr_assert(vd_ask_sign(b->referee, &b->provider, body.data, body.size, 1, &header, NULL) ==
              VD_OK);
    vd_put_u8(&header, 0);
    const vd_exchange exchange = {.to = &b->at,
                                  .path = VD_ASK_PATH,
                                  .body = body.data,
                                  .body_size = body.size,
                                  .header = (const char *)header.data,
                                  .deadline_ms = 20000};
    vd_client_ask(client, 1, &exchange, &answer);
    const int status = is_text(&answer.body, "{}") ? answer.http_status : -answer.http_status;
    vd_answer_free(&answer);
    vd_buf_free(&payload);
    vd_buf_free(&notes[0]);
    vd_buf_free(&notes[1]);
    vd_buf_free(&body);
    vd_buf_free(&header);
    return status;
}

static void wait_for_the_judge(const bench *b) {
    char path[120];
    snprintf(path, sizeof path, "%s/judge.log", b->dir);
    for (int i = 0; access(path, F_OK) != 0 && i < 3000; i++)
        sleep_ms(10);
    cr_assert(access(path, F_OK) == 0);
}

static void let_the_judge_speak(const bench *b) {
    char path[300];
    snprintf(path, sizeof path, "%s/blobs/go", b->dir);
    FILE *file = fopen(path, "w");
    cr_assert(file && fclose(file) == 0);
}

Test(provide_lanes, a_question_is_answered_while_a_program_is_judged) {
    bench b;
    char hex[VD_ID_SIZE];
    submitting s;
    setup();
    open_bench(&b);
    upload(&s, &b, 0, "no program at all", "slow", hex);
    start_submitting(&s);
    wait_for_the_judge(&b);
    cr_expect(ask_as_referee(&b) == 200);
    cr_expect(call(&b, 0, client, "GET", "/v1/jobs", NULL) == 200);
    cr_expect(atomic_load(&s.status) == 0, "the submission did not wait: %d",
              atomic_load(&s.status));
    let_the_judge_speak(&b);
    pthread_join(s.thread, NULL);
    cr_expect(atomic_load(&s.status) == 422, "%d", atomic_load(&s.status));
    close_bench(&b);
    teardown();
}

static bool health_is(const bench *b, const char *status) {
    char wanted[64];
    vd_answer answer;
    const vd_exchange exchange = {.to = &b->at, .path = "/v1/health", .deadline_ms = 30000};
    vd_client_ask(client, 1, &exchange, &answer);
    vd_put_u8(&answer.body, 0);
    snprintf(wanted, sizeof wanted, "\"status\":\"%s\"", status);
    const bool is = answer.http_status == 200 && vd_buf_ok(&answer.body) &&
                    strstr((const char *)answer.body.data, wanted);
    vd_answer_free(&answer);
    return is;
}

/* Waits up to a minute for this status. */
static bool health_becomes(const bench *b, const char *status) {
    bool is = false;
    for (int i = 0; !is && i < 600; i++) {
        is = health_is(b, status);
        sleep_ms(100);
    }
    return is;
}

/* Makes the ledger's writes fail, as on a full disk. */
static void trigger(const bench *b, const char *sql) {
    cr_assert(sqlite3_exec(b->daemon->ledger->db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

Test(provide_lanes, health_says_that_the_ledger_cannot_be_written_and_when_it_can_again) {
    bench b;
    setup();
    open_bench(&b);
    cr_expect(health_is(&b, "ok") && call(&b, 0, client, "GET", "/v1/jobs", NULL) == 200);
    trigger(&b, "CREATE TRIGGER full_1 BEFORE INSERT ON nonce BEGIN SELECT RAISE(ABORT, 'full'); "
                "END; CREATE TRIGGER full_2 BEFORE INSERT ON judged BEGIN SELECT RAISE(ABORT, "
                "'full'); END;");
    cr_expect(health_becomes(&b, "no ledger"), "though nobody asks for anything");
    cr_expect(call(&b, 0, client, "GET", "/v1/jobs", NULL) == 503);
    cr_expect(health_is(&b, "no ledger"));
    trigger(&b, "DROP TRIGGER full_1; DROP TRIGGER full_2;");
    cr_expect(health_becomes(&b, "ok"));
    cr_expect(call(&b, 0, client, "GET", "/v1/jobs", NULL) == 200);
    close_bench(&b);
    teardown();
}

/* A client without other submissions is judged right after the current one. */
Test(provide_lanes, many_submissions_of_one_client_make_another_wait_for_one) {
    enum { MANY = 4 };
    static const char *const names[MANY] = {"a", "b", "c", "d"};
    bench b;
    char slow[VD_ID_SIZE], other[VD_ID_SIZE], path[120], wanted[8 * VD_ID_SIZE];
    submitting s[MANY + 1];
    vd_buf order = {0};
    vd_err err = {0};
    setup();
    open_bench(&b);
    for (int i = 0; i < MANY; i++) {
        upload(&s[i], &b, 0, "no program at all", names[i], slow);
        start_submitting(&s[i]);
    }
    wait_for_the_judge(&b);
    upload(&s[MANY], &b, 1, "none either", "tiny", other);
    start_submitting(&s[MANY]);
    let_the_judge_speak(&b);
    for (int i = 0; i <= MANY; i++) {
        pthread_join(s[i].thread, NULL);
        cr_expect(atomic_load(&s[i].status) == 422, "%d", atomic_load(&s[i].status));
    }
    snprintf(path, sizeof path, "%s/order", b.dir);
    cr_assert(vd_read_file(path, sizeof wanted, &order, &err) == VD_OK, "%s", err.text);
    snprintf(wanted, sizeof wanted, "%s\n%s\n%s\n%s\n%s\n", slow, other, slow, slow, slow);
    cr_expect(is_text(&order, wanted), "%.*s", (int)order.size, (const char *)order.data);
    vd_buf_free(&order);
    close_bench(&b);
    teardown();
}
