/* A daemon over TLS whose judge takes its time: what referees ask does not wait for it. Judge and
 * answering child are shell scripts. */
#include "net_peers.h"

#include <openssl/sha.h>
#include <sys/stat.h>

#include "verde/protocol/provider.h"
#include "verde/protocol/signed_request.h"
#include "verde/provide/daemon.h"

TestSuite(provide_lanes, .timeout = 120);

/* The judge says nothing until the file is there, and then that it is no program. */
static char judge_script[] =
    "until [ -e \"$2.go\" ]; do sleep 0.01; done; printf '\\003\\000\\000\\000\\002no' >&3";
/* All that the child says to one question: ready, an account, an answer of two bytes. */
static char answer_script[] =
    "printf '\\000\\000\\000\\000\\010\\000\\000\\000' >&3; head -c 8 /dev/zero >&3; "
    "printf '\\024\\000\\000\\000' >&3; head -c 18 /dev/zero >&3; printf '{}' >&3; exec sleep 60";
static char *judge_argv[] = {"/bin/sh", "-c", judge_script, "judge", NULL};
static char *answer_argv[] = {"/bin/sh", "-c", answer_script, "answer", NULL};

typedef struct {
    identity self;
    char dir[64];
    vd_key *key, *client_key, *referee;
    vd_public_key provider, client_public;
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

/* A job that is done, in the ledger before the daemon opens it. */
static void put_job(const bench *b) {
    char path[200], key[VD_ID_SIZE];
    vd_ledger *ledger;
    vd_job_record job = {.state = VD_JOB_QUEUED};
    cr_assert(vd_ledger_open(b->dir, &ledger, NULL) == VD_OK);
    memset(job.id, '7', VD_ID_SIZE - 1);
    memset(job.program, '8', VD_ID_SIZE - 1);
    vd_hex(b->client_public.b, VD_KEY_SIZE, job.client);
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
    cr_assert(vd_key_generate(&b->client_key, NULL) == VD_OK);
    cr_assert(vd_key_generate(&b->referee, NULL) == VD_OK);
    b->provider = public_of(b->key);
    b->client_public = public_of(b->client_key);
    put_job(b);
    const vd_daemon_options options = {.dir = b->dir,
                                       .listen = "127.0.0.1:0",
                                       .cert_path = b->self.cert,
                                       .key_path = b->self.key_file,
                                       .key = b->key,
                                       .client = &b->client_public,
                                       .client_count = 1,
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
    vd_key_destroy(b->client_key);
    vd_key_destroy(b->referee);
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    cr_expect(system(command) == 0);
    remove_identity(&b->self);
}

/* The status of a request that the client signs. */
static int call(const bench *b, vd_client *with, const char *method, const char *path,
                const char *body) {
    static atomic_int count;
    char line[8192] = VD_REQUEST_HEADER ": ";
    const size_t size = body ? strlen(body) : 0;
    const uint8_t nonce[VD_NONCE_SIZE] = {(uint8_t)atomic_fetch_add(&count, 1)};
    const vd_request_head head = {method, path, size};
    vd_buf value = {0};
    vd_answer answer;
    cr_assert(vd_request_sign(b->client_key, &b->provider, &head, body, time(NULL), nonce, &value,
                              NULL) == VD_OK);
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

#define PROGRAM "no program at all"
/* SHA-256 of it, and the submission that names it. */
static void submission(char hex[VD_ID_SIZE], char out[300]) {
    uint8_t hash[32];
    SHA256((const uint8_t *)PROGRAM, strlen(PROGRAM), hash);
    vd_hex(hash, sizeof hash, hex);
    snprintf(out, 300,
             "{\"data\":[],\"name\":\"slow\",\"program\":\"%s\",\"referees\":[],\"verde\":1}", hex);
}

typedef struct {
    const bench *b;
    char body[300];
    atomic_int status; /* 0: it waits */
} submitting;

static void *submit(void *user) {
    submitting *s = user;
    vd_client *with;
    cr_assert(vd_client_create(NULL, &with, NULL) == VD_OK);
    atomic_store(&s->status, call(s->b, with, "POST", "/v1/jobs", s->body));
    vd_client_destroy(with);
    return NULL;
}

static int ask_as_referee(const bench *b) {
    vd_buf payload = {0}, notes[2] = {0}, body = {0}, header = {0};
    vd_answer answer;
    const vd_assignment a = {.program = job_program,
                             .referee = public_of(b->referee),
                             .provider = {b->provider, b->client_public},
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

static void let_the_judge_speak(const bench *b, const char *hex) {
    char path[300];
    snprintf(path, sizeof path, "%s/blobs/%s.go", b->dir, hex);
    FILE *file = fopen(path, "w");
    cr_assert(file && fclose(file) == 0);
}

Test(provide_lanes, a_question_is_answered_while_a_program_is_judged) {
    bench b;
    char path[200], hex[VD_ID_SIZE];
    submitting s = {.b = &b};
    pthread_t thread;
    setup();
    open_bench(&b);
    submission(hex, s.body);
    snprintf(path, sizeof path, "/v1/blobs/%s?size=%zu&from=0", hex, strlen(PROGRAM));
    cr_assert(call(&b, client, "PUT", path, PROGRAM) == 200);
    cr_assert(pthread_create(&thread, NULL, submit, &s) == 0);
    wait_for_the_judge(&b);
    cr_expect(ask_as_referee(&b) == 200);
    cr_expect(call(&b, client, "GET", "/v1/jobs", NULL) == 200);
    cr_expect(atomic_load(&s.status) == 0, "the submission did not wait: %d",
              atomic_load(&s.status));
    let_the_judge_speak(&b, hex);
    pthread_join(thread, NULL);
    cr_expect(atomic_load(&s.status) == 422, "%d", atomic_load(&s.status));
    close_bench(&b);
    teardown();
}
