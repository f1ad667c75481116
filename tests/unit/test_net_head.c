/* Requests that are judged by their heads, before their bodies are read. */
#include "net_peers.h"

TestSuite(net_head, .init = setup, .fini = teardown, .timeout = 300);

/* Accepts requests with the header "Pass: yes", which wait their turn, or "Pass: now", which do
 * not. */
static vd_head_screened judge(void *user, const vd_request *request, vd_response *response) {
    host *h = user;
    const char *pass = vd_request_header(request, "pass");
    atomic_fetch_add(&h->screened, 1);
    cr_expect(request->body == NULL && request->body_size > 0);
    if (pass && strcmp(pass, "yes") == 0)
        return VD_HEAD_WAITS;
    if (pass && strcmp(pass, "now") == 0)
        return VD_HEAD_PASSES;
    response->status = 401;
    vd_printf(&response->body, "%s %s of %zu bytes may not", request->method, request->path,
              request->body_size);
    return VD_HEAD_REFUSED;
}

static const vd_server_options options = {
    .head_screen = judge, .writes = true, .request_max = 1 << 20};

static vd_answer put(host *h, const char *method, const char *header, const void *body,
                     size_t size) {
    const vd_exchange exchange = {.to = &h->at,
                                  .path = "/echo",
                                  .body = body,
                                  .body_size = size,
                                  .method = method,
                                  .header = header,
                                  .deadline_ms = 5000};
    vd_answer answer;
    vd_client_ask(client, 1, &exchange, &answer);
    return answer;
}

Test(net_head, what_passes_is_handled_whole) {
    host h;
    start_host(&h, options);
    vd_answer answer = put(&h, "PUT", "Pass: yes", "hello", 5);
    cr_expect(answer.err.status == VD_OK && is_text(&answer.body, "hello"), "%s", answer.err.text);
    vd_answer_free(&answer);
    char *body = calloc(1, 1 << 20);
    answer = put(&h, "PUT", "PASS:yes", body, 1 << 20);
    cr_expect(answer.err.status == VD_OK && answer.body.size == 1 << 20, "%s", answer.err.text);
    vd_answer_free(&answer);
    free(body);
    answer = put(&h, "DELETE", NULL, NULL, 0);
    cr_expect(answer.err.status == VD_OK, "%s", answer.err.text);
    vd_answer_free(&answer);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 3 && atomic_load(&h.screened) == 2);
}

Test(net_head, what_does_not_is_answered_and_its_body_thrown_away) {
    host h;
    char *body = calloc(1, 1 << 20);
    start_host(&h, options);
    for (int i = 0; i < 20; i++) {
        vd_answer answer = put(&h, "PUT", i % 2 ? "Pass: no" : "Other: yes", body, 1 << 20);
        cr_expect(answer.http_status == 401, "%s", answer.err.text);
        cr_expect(is_text(&answer.body, "PUT /echo of 1048576 bytes may not"));
        vd_answer_free(&answer);
        answer = put(&h, "PUT", "Pass: yes", "hello", 5);
        cr_expect(answer.err.status == VD_OK && is_text(&answer.body, "hello"));
        vd_answer_free(&answer);
    }
    free(body);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 20);
}

/* The connection goes on after a refused body, however its bytes are split. */
Test(net_head, a_refusal_comes_before_the_body) {
    static const char head[] = "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nPass: no\r\n\r\n";
    host h;
    char text[8192] = "";
    start_host(&h, options);
    raw_client raw = raw_dial(h.port);
    for (size_t i = 0; i < sizeof head - 1; i++)
        raw_send(&raw, (char[2]){head[i], 0});
    int size = SSL_read(raw.ssl, text, sizeof text - 1);
    cr_expect(size > 0 && strstr(text, " 401 "), "%s", text);
    raw_send(&raw, "GET / HTTP");
    raw_send(&raw, "POST /echo HTTP/1.1\r\nPass: yes\r\nContent-Length: 2\r\n"
                   "Connection: close\r\n\r\n3c");
    raw_read(&raw, text, sizeof text);
    cr_expect(strstr(text, " 200 ") && strstr(text, "\r\n\r\n3c"), "%s", text);
    raw_close(&raw);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 1);
}

Test(net_head, a_body_that_waits_for_100_continue_is_not_asked_for) {
    host h;
    char text[4096] = "";
    start_host(&h, options);
    raw_client raw = raw_dial(h.port);
    raw_send(&raw, "PUT /a HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    cr_expect(SSL_read(raw.ssl, text, sizeof text - 1) > 0 && strstr(text, "HTTP/1.1 401 "));
    raw_close(&raw);
    raw = raw_dial(h.port);
    raw_send(&raw, "PUT /echo HTTP/1.1\r\nContent-Length: 2\r\nPass: yes\r\n"
                   "Expect: 100-continue\r\nConnection: close\r\n\r\n");
    cr_expect(SSL_read(raw.ssl, text, sizeof text - 1) > 0 && strstr(text, "HTTP/1.1 100 "));
    raw_send(&raw, "1a");
    raw_read(&raw, text, sizeof text);
    cr_expect(strstr(text, " 200 ") && strstr(text, "1a"), "%s", text);
    raw_close(&raw);
    stop_host(&h);
}

/* evhttp's own message says what is wrong, as without a screen. */
Test(net_head, malformed_heads_are_refused_as_ever) {
    static const struct {
        const char *request, *want;
    } bad[] = {
        {"nonsense\r\n\r\n", " 400 "},
        {"PUT / HTTP/1.1\r\nContent-Length: 1x\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nContent-Length: +1\r\n\r\nx", "digits alone"},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nContent-Length: -0\r\n\r\n", " 400 "},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nContent-Length: 0x1\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nContent-Length: 1 1\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", " 400 "},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
         " 411 "},
        {"PUT / HTTP/1.1\r\nno colon\r\n\r\n", " 400 "},
        {"PATCH / HTTP/1.1\r\n\r\n", " 405 "},
        {"DELETE / HTTP/1.1\r\nPass: yes\r\nContent-Length: 1\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nContent-Length: 1048577\r\n\r\nx", ""},
        {"PUT / HTTP/1.1\r\nPass: yes\r\nContent-Length: 99999999999999999999\r\n\r\nx", ""},
    };
    host h;
    char text[4096];
    start_host(&h, options);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        raw_client raw = raw_dial(h.port);
        raw_send(&raw, bad[i].request);
        raw_read(&raw, text, sizeof text);
        cr_expect(strstr(text, bad[i].want), "%s -> %s", bad[i].request, text);
        cr_expect(!strstr(text, " 200 "), "%s", bad[i].request);
        raw_close(&raw);
    }
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 0);
}

/* The head is longer than allowed, and its rest is not kept. */
Test(net_head, a_head_without_an_end_is_refused) {
    host h;
    char text[4096], *long_head = malloc(40001);
    start_host(&h, options);
    raw_client raw = raw_dial(h.port);
    memset(long_head, 'x', 40000);
    memcpy(long_head, "PUT / HTTP/1.1\r\nA: ", 19);
    long_head[40000] = 0;
    raw_send(&raw, long_head);
    raw_read(&raw, text, sizeof text);
    cr_expect(!strstr(text, " 200 "), "%s", text);
    raw_close(&raw);
    free(long_head);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 0 && atomic_load(&h.screened) == 0);
}

typedef struct {
    host *at;
    char *body;
    bool came;
} upload;

static void *put_whole(void *user) {
    upload *u = user;
    const vd_exchange exchange = {.to = &u->at->at,
                                  .path = "/echo",
                                  .body = u->body,
                                  .body_size = 1 << 20,
                                  .method = "PUT",
                                  .header = "Pass: yes",
                                  .deadline_ms = 20000};
    vd_answer answer;
    vd_client *own;
    cr_assert(vd_client_create(NULL, &own, NULL) == VD_OK);
    vd_client_ask(own, 1, &exchange, &answer);
    u->came = answer.err.status == VD_OK && answer.body.size == 1 << 20 &&
              memcmp(answer.body.data, u->body, 1 << 20) == 0;
    vd_answer_free(&answer);
    vd_client_destroy(own);
    return NULL;
}

/* Far more bodies than there is room for: each waits for its turn, and none is cut off. */
Test(net_head, bodies_wait_for_room) {
    enum { COUNT = 24 };
    vd_server_options few = options;
    host h;
    pthread_t thread[COUNT];
    upload u[COUNT];
    few.bodies_max = 2 << 20;
    start_host(&h, few);
    for (int i = 0; i < COUNT; i++) {
        u[i] = (upload){.at = &h, .body = malloc(1 << 20)};
        memset(u[i].body, i, 1 << 20);
        cr_assert(pthread_create(&thread[i], NULL, put_whole, &u[i]) == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(thread[i], NULL);
        cr_expect(u[i].came, "body %d", i);
        free(u[i].body);
    }
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == COUNT);
}

/* A client that has room and does not use it is cut off at its deadline. One that waits and hangs
 * up is forgotten. */
Test(net_head, room_is_given_back) {
    static const char head[] = "PUT /echo HTTP/1.1\r\nContent-Length: 1000000\r\nPass: yes\r\n\r\n";
    vd_server_options few = options;
    host h;
    few.bodies_max = 1 << 20;
    few.request_ms = 600;
    start_host(&h, few);
    raw_client holds = raw_dial(h.port), waits = raw_dial(h.port);
    raw_send(&holds, head);
    sleep_ms(100);
    raw_send(&waits, head);
    sleep_ms(100);
    raw_close(&waits);
    vd_answer answer = put(&h, "PUT", "Pass: now", "hello", 5);
    cr_expect(answer.err.status == VD_OK && is_text(&answer.body, "hello"), "%s", answer.err.text);
    vd_answer_free(&answer);
    answer = put(&h, "PUT", "Pass: yes", "hello", 5); /* after both of them */
    cr_expect(answer.err.status == VD_OK && is_text(&answer.body, "hello"), "%s", answer.err.text);
    vd_answer_free(&answer);
    raw_close(&holds);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 2);
}
