/* A client's uploads, submissions and questions to daemons that give arbitrary answers. */
#include <math.h>

#include "tests/unit/net_peers.h"
#include "verde/delivery/remote.h"

/* The daemon's answers, one after the other. The last one repeats. */
typedef struct {
    identity self;
    vd_server *server;
    pthread_t thread;
    vd_endpoint at;
    struct {
        int status;
        const char *body;
    } answer[8];
    int count;
    atomic_int asked, puts;
    uint64_t last_from;
    bool unsigned_request;
} daemon_host;

static daemon_host host_;
static vd_key *client_key;
static vd_remote remote;
static uint8_t bytes[3 * VD_REMOTE_CHUNK_BYTES / 2];
static vd_parcel parcel;

static void daemon_answer(void *user, const vd_request *request, vd_response *response) {
    daemon_host *h = user;
    int i = atomic_fetch_add(&h->asked, 1);
    i = i < h->count ? i : h->count - 1;
    const char *from = strstr(request->path, "from=");
    if (strcmp(request->method, "PUT") == 0) {
        atomic_fetch_add(&h->puts, 1);
        h->last_from = from ? strtoull(from + 5, NULL, 10) : 0;
    }
    h->unsigned_request |= !vd_request_header(request, "Verde-Request");
    response->status = h->answer[i].status;
    vd_put(&response->body, h->answer[i].body, strlen(h->answer[i].body));
}

static void *daemon_main(void *user) {
    cr_assert(vd_server_run(((daemon_host *)user)->server, NULL) == VD_OK);
    return NULL;
}

static void start_daemon(void) {
    daemon_host *h = &host_;
    *h = (daemon_host){.self = make_identity()};
    const vd_server_options options = {.listen = "127.0.0.1:0",
                                       .cert_path = h->self.cert,
                                       .key_path = h->self.key_file,
                                       .writes = true};
    cr_assert(vd_server_create(&options, daemon_answer, h, &h->server, NULL) == VD_OK);
    h->at = endpoint_at(vd_server_port(h->server), h->self.hex);
    cr_assert(pthread_create(&h->thread, NULL, daemon_main, h) == 0);
    cr_assert(vd_key_generate(&client_key, NULL) == VD_OK);
    setup();
    remote = (vd_remote){.at = &h->at, .key = client_key, .client = client, .patience_s = 1};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    parcel = (vd_parcel){.bytes = bytes, .size = sizeof bytes};
    cr_assert(vd_hash_tagged(NULL, bytes, sizeof bytes, &parcel.hash));
}

static void stop_daemon(void) {
    vd_server_stop(host_.server);
    pthread_join(host_.thread, NULL);
    vd_server_destroy(host_.server);
    remove_identity(&host_.self);
    cr_expect(!host_.unsigned_request);
    vd_key_destroy(client_key);
    teardown();
}

TestSuite(remote, .init = start_daemon, .fini = stop_daemon);

static void says(int status, const char *body) {
    host_.answer[host_.count].status = status;
    host_.answer[host_.count++].body = body;
}

static void expect_upload(vd_status status, const char *words) {
    vd_err err = {0};
    vd_status got = vd_remote_upload(&remote, &parcel, NULL, NULL, &err);
    cr_expect(got == status && strstr(err.text, words), "%d: %s", got, err.text);
}

Test(remote, what_is_there_is_not_sent) {
    says(200, "{\"complete\":true,\"have\":6291456,\"size\":6291456}");
    expect_upload(VD_OK, "");
    cr_expect(atomic_load(&host_.puts) == 0);
}

Test(remote, an_upload_goes_on_where_it_was) {
    says(200, "{\"complete\":false,\"have\":5000000,\"size\":6291456}");
    says(200, "{\"complete\":true,\"have\":6291456,\"size\":6291456}");
    expect_upload(VD_OK, "");
    cr_expect(atomic_load(&host_.puts) == 1 && host_.last_from == 5000000);
}

Test(remote, a_chunk_that_does_not_fit_moves_it) {
    says(200, "{\"complete\":false,\"have\":0,\"size\":null}");
    says(409, "{\"error\":\"no\",\"have\":6000000}");
    says(200, "{\"complete\":true,\"have\":6291456,\"size\":6291456}");
    expect_upload(VD_OK, "");
    cr_expect(host_.last_from == 6000000);
}

Test(remote, trouble_passes_or_is_told) {
    says(200, "{\"complete\":false,\"have\":0,\"size\":null}");
    says(503, "{\"error\":\"trouble of this provider\"}");
    says(200, "{\"complete\":true,\"have\":6291456,\"size\":6291456}");
    expect_upload(VD_OK, "");
    host_.count = 0;
    says(503, "{\"error\":\"trouble of this provider\"}");
    expect_upload(VD_ERR_IO, "HTTP status 503: trouble of this provider");
}

Test(remote, a_refusal_is_told_at_once) {
    static const int status[] = {400, 403, 404, 413, 422, 507};
    says(0, "{\"error\":\"the reason\"}");
    for (size_t i = 0; i < sizeof status / sizeof status[0]; i++) {
        host_.answer[0].status = status[i];
        const int before = atomic_load(&host_.asked);
        expect_upload(VD_ERR_PEER, ": the reason");
        cr_expect(atomic_load(&host_.asked) == before + 1, "%d", status[i]);
    }
}

/* The first request may have been sent twice by curl. The second has a new nonce. */
Test(remote, a_refused_signature_is_made_again_once) {
    says(401, "{\"error\":\"it was sent before\"}");
    says(200, "{\"complete\":true,\"have\":6291456,\"size\":6291456}");
    expect_upload(VD_OK, "");
    host_.count = 1;
    expect_upload(VD_ERR_PEER, "it was sent before");
}

Test(remote, an_upload_that_comes_nowhere_ends) {
    says(200, "{\"complete\":false,\"have\":0,\"size\":6291456}");
    expect_upload(VD_ERR_PEER, "has no more");
    host_.answer[0].body = "{\"complete\":false,\"have\":6291456,\"size\":6291456}";
    expect_upload(VD_ERR_PEER, "has no more");
}

Test(remote, answers_that_make_no_sense_are_said) {
    static const char *const body[] = {"",
                                       "{}",
                                       "[]",
                                       "{\"have\":-1}",
                                       "{\"have\":6291457}",
                                       "{\"have\":1.5}",
                                       "{\"have\":\"1\"}",
                                       "{\"complete\":true}",
                                       "not json"};
    says(200, "");
    for (size_t i = 0; i < sizeof body / sizeof body[0]; i++) {
        host_.answer[0].body = body[i];
        expect_upload(VD_ERR_PEER, host_.at.url);
    }
}

static vd_status ask_job(const char *body, vd_remote_job *out, vd_err *err) {
    host_.count = 0;
    says(200, body);
    return vd_remote_ask_job(&remote, "id", out, err);
}

#define ROOT "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(remote, a_job_is_read_as_it_is_told) {
    vd_remote_job job;
    cr_assert(ask_job("{\"state\":\"running\",\"step\":3,\"steps\":9,\"loss\":\"nan\",\"rate\":2}",
                      &job, NULL) == VD_OK);
    cr_expect(job.state == VD_REMOTE_RUNNING && job.step == 3 && job.steps == 9);
    cr_expect(isnan(job.loss) && job.rate == 2 && isnan(job.seconds_left));
    cr_assert(ask_job("{\"state\":\"done\",\"run_root\":\"" ROOT "\"}", &job, NULL) == VD_OK);
    cr_expect(job.run_root.b[0] == 0x01 && job.run_root.b[31] == 0xef);
    cr_assert(ask_job("{\"state\":\"failed\",\"error\":\"a\\u001b[2Jb\"}", &job, NULL) == VD_OK);
    cr_expect_str_eq(job.error, "a?[2Jb");
}

Test(remote, jobs_that_make_no_sense_are_said) {
    static const char *const body[] = {"{}", "{\"state\":\"finished\"}", "{\"state\":\"done\"}",
                                       "{\"state\":\"done\",\"run_root\":\"12\"}", "{\"state\":4}"};
    vd_remote_job job;
    vd_err err = {0};
    for (size_t i = 0; i < sizeof body / sizeof body[0]; i++)
        cr_expect(ask_job(body[i], &job, &err) == VD_ERR_PEER && strstr(err.text, "how the job is"),
                  "%s", body[i]);
}

Test(remote, a_submission_is_given_a_name) {
    char id[VD_REMOTE_ID_SIZE];
    vd_buf text = {0};
    vd_err err = {0};
    vd_printf(&text, "{}");
    says(200, "{\"job\":\"" ROOT "\"}");
    cr_expect(vd_remote_submit(&remote, &text, id, &err) == VD_OK);
    cr_expect_str_eq(id, ROOT);
    host_.answer[0].body = "{\"job\":\"../x\"}";
    cr_expect(vd_remote_submit(&remote, &text, id, &err) == VD_ERR_PEER);
    host_.answer[0].status = 422;
    host_.answer[0].body = "{\"error\":\"program: no\"}";
    cr_expect(vd_remote_submit(&remote, &text, id, &err) == VD_ERR_PEER &&
              strstr(err.text, "program: no"));
    vd_buf_free(&text);
}

Test(remote, a_stop_ends_it) {
    vd_err err = {0};
    atomic_bool stop = true;
    remote.stop = &stop;
    says(503, "{}");
    cr_expect(vd_remote_upload(&remote, &parcel, NULL, NULL, &err) == VD_ERR_TIMEOUT);
}
