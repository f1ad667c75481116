/* The transport against itself and against peers that misbehave, over loopback. */
#include "net_peers.h"

#include <signal.h>
#include <sys/resource.h>

static vd_client *client;

static void setup(void) {
    cr_assert(vd_client_create(NULL, &client, NULL) == VD_OK);
}

static void teardown(void) {
    vd_client_destroy(client);
}

TestSuite(net, .init = setup, .fini = teardown, .timeout = 30);

static vd_answer ask(const vd_endpoint *to, const char *path, const char *body, int deadline_ms) {
    vd_exchange exchange = {.to = to, .path = path, .deadline_ms = deadline_ms};
    exchange.body = body;
    exchange.body_size = body ? strlen(body) : 0;
    vd_answer answer;
    vd_client_ask(client, 1, &exchange, &answer);
    return answer;
}

/* Asks, frees the answer and tells the status. */
static vd_status outcome(const vd_endpoint *to, const char *path, const char *body,
                         int deadline_ms) {
    vd_answer answer = ask(to, path, body, deadline_ms);
    vd_status status = answer.err.status;
    if (status != VD_OK)
        cr_log_info("%s", answer.err.text);
    vd_answer_free(&answer);
    return status;
}

static bool is_text(const vd_buf *buf, const char *text) {
    return buf->size == strlen(text) && memcmp(buf->data, text, buf->size) == 0;
}

/* ---- endpoints ---- */

#define KEY "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

Test(net, endpoints_are_taken_apart) {
    vd_endpoint at;
    cr_assert(vd_endpoint_parse("https://example.org", &at, NULL) == VD_OK);
    cr_expect_str_eq(at.url, "https://example.org:443");
    cr_expect(!at.pinned);
    cr_assert(vd_endpoint_parse("https://[::1]:8443/#" KEY, &at, NULL) == VD_OK);
    cr_expect_str_eq(at.url, "https://[::1]:8443");
    cr_expect(at.pinned && strncmp(at.pin, "sha256//", 8) == 0 && at.key.b[0] == 0xd7);
}

Test(net, other_endpoints_are_refused) {
    static const char *const bad[] = {
        "",
        "example.org",
        "http://example.org",
        "HTTPS://example.org",
        "https://",
        "https://:443",
        "https://user@example.org",
        "https://user:word@example.org",
        "https://exa mple.org",
        "https://example.org\n",
        "https://-x",
        "https://[::1",
        "https://[::1%25lo]",
        "https://[example.org]",
        "https://example.org:0",
        "https://example.org:",
        "https://example.org:65536",
        "https://example.org:0443",
        "https://example.org:+443",
        "https://example.org:1234567",
        "https://example.org/path",
        "https://example.org?query",
        "https://example.org//",
        "https://example.org#",
        "https://example.org#" KEY "00",
        "https://example.org#D75A980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        /* the neutral element of the curve */
        "https://example.org#0100000000000000000000000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_endpoint at;
        vd_err err = {0};
        cr_expect(vd_endpoint_parse(bad[i], &at, &err) == VD_ERR_USAGE, "%s", bad[i]);
        cr_expect(err.status == VD_ERR_USAGE && strstr(err.text, "endpoint `"), "%s", err.text);
    }
}

/* ---- honest both ---- */

Test(net, post_and_get_come_through) {
    host h;
    start_host(&h, (vd_server_options){0});
    vd_answer answer = ask(&h.at, "/echo", "hello", 5000);
    cr_expect(answer.err.status == VD_OK, "%s", answer.err.text);
    cr_expect(is_text(&answer.body, "hello") && answer.http_status == 200);
    cr_expect(answer.bytes_out > 50 && answer.bytes_in > 50 && answer.seconds > 0);
    vd_answer_free(&answer);
    answer = ask(&h.at, "/echo", NULL, 5000);
    cr_expect(answer.err.status == VD_OK && answer.body.size == 0, "%s", answer.err.text);
    vd_answer_free(&answer);
    cr_expect(outcome(&h.at, "/none", "x", 5000) == VD_ERR_PEER);
    cr_expect(outcome(&h.at, "/echo", "", 5000) == VD_OK);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 4);
}

Test(net, the_largest_bodies_come_through_and_are_counted) {
    host h;
    start_host(&h, (vd_server_options){0});
    char *body = calloc(1, VD_NET_REQUEST_MAX);
    vd_exchange exchange = {&h.at, "/echo", body, VD_NET_REQUEST_MAX, NULL, 10000, 0};
    vd_answer answer;
    vd_client_ask(client, 1, &exchange, &answer);
    cr_expect(answer.err.status == VD_OK, "%s", answer.err.text);
    cr_expect(answer.body.size == VD_NET_REQUEST_MAX);
    cr_expect(answer.bytes_out > VD_NET_REQUEST_MAX && answer.bytes_in > VD_NET_REQUEST_MAX);
    cr_expect(answer.bytes_out < VD_NET_REQUEST_MAX + 1000);
    vd_answer_free(&answer);
    free(body);
    stop_host(&h);
}

Test(net, a_wrong_pin_is_refused) {
    host h;
    start_host(&h, (vd_server_options){0});
    identity other = make_identity();
    vd_endpoint wrong = endpoint_at(h.port, other.hex);
    cr_expect(outcome(&wrong, "/echo", "x", 2000) == VD_ERR_IO);
    remove_identity(&other);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 0);
}

Test(net, connections_are_kept_but_not_for_another_pin) {
    rogue r;
    start_rogue(&r, (script){"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .keep = true});
    for (int i = 0; i < 10; i++)
        cr_expect(outcome(&r.at, "/", "x", 2000) == VD_OK);
    cr_expect(atomic_load(&r.connections) == 1);
    vd_endpoint wrong = r.at;
    strcpy(wrong.pin, endpoint_at(1, KEY).pin);
    cr_expect(outcome(&wrong, "/", "x", 500) != VD_OK);
    vd_client_destroy(client); /* hangs up */
    stop_rogue(&r);
    setup();
}

Test(net, a_certificate_counts_where_no_key_is_given) {
    host h;
    start_host(&h, (vd_server_options){0});
    vd_endpoint named = endpoint_at(h.port, NULL);
    vd_client *trusting;
    cr_assert(vd_client_create(h.self.cert, &trusting, NULL) == VD_OK);
    cr_expect(outcome(&named, "/echo", "x", 2000) == VD_ERR_IO);
    vd_exchange exchange = {.to = &named, .path = "/echo", .deadline_ms = 2000};
    vd_answer answer;
    vd_client_ask(trusting, 1, &exchange, &answer);
    cr_expect(answer.err.status == VD_OK, "%s", answer.err.text);
    vd_answer_free(&answer);
    vd_client_destroy(trusting);
    stop_host(&h);
}

Test(net, parallel_asks_take_the_longest_not_the_sum) {
    host h[2];
    vd_exchange exchange[2];
    vd_answer answer[2];
    for (int i = 0; i < 2; i++) {
        start_host(&h[i], (vd_server_options){0});
        exchange[i] = (vd_exchange){&h[i].at, "/nap", "Z", 1, NULL, 5000, 0}; /* 420 ms */
    }
    double start = vd_seconds();
    vd_client_ask(client, 2, exchange, answer);
    double seconds = vd_seconds() - start;
    for (int i = 0; i < 2; i++) {
        cr_expect(answer[i].err.status == VD_OK, "%s", answer[i].err.text);
        vd_answer_free(&answer[i]);
        stop_host(&h[i]);
    }
    cr_expect(seconds >= 0.42 && seconds < 0.78, "%f", seconds);
}

Test(net, one_silent_peer_does_not_hold_up_another) {
    host slow, quick;
    start_host(&slow, (vd_server_options){0});
    start_host(&quick, (vd_server_options){0});
    vd_exchange exchange[3] = {
        {&slow.at, "/nap", "z", 1, NULL, 300, 0}, /* 740 ms */
        {&quick.at, "/echo", "x", 1, NULL, 5000, 0},
        {&quick.at, "no path", "x", 1, NULL, 5000, 0},
    };
    vd_answer answer[3];
    double start = vd_seconds();
    vd_client_ask(client, 3, exchange, answer);
    cr_expect(vd_seconds() - start < 0.7);
    cr_expect(answer[0].err.status == VD_ERR_TIMEOUT, "%s", answer[0].err.text);
    cr_expect(answer[1].err.status == VD_OK, "%s", answer[1].err.text);
    cr_expect(answer[1].seconds < 0.3);
    cr_expect(answer[2].err.status == VD_ERR_USAGE, "%s", answer[2].err.text);
    for (int i = 0; i < 3; i++)
        vd_answer_free(&answer[i]);
    stop_host(&slow);
    stop_host(&quick);
}

/* ---- the worker ---- */

Test(net, requests_are_handled_one_by_one_in_order_of_arrival) {
    host h;
    raw_client raw[4];
    char text[512];
    start_host(&h, (vd_server_options){0});
    for (int i = 0; i < 4; i++) {
        raw[i] = raw_dial(h.port);
        snprintf(text, sizeof text,
                 "POST /nap HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n%c%c",
                 i ? '0' : '9', 'a' + i);
        raw_send(&raw[i], text);
        sleep_ms(20);
    }
    for (int i = 3; i >= 0; i--) {
        raw_read(&raw[i], text, sizeof text);
        cr_expect(strstr(text, "200 OK"), "%s", text);
        raw_close(&raw[i]);
    }
    stop_host(&h);
    cr_expect_str_eq(h.order, "abcd");
}

Test(net, a_full_queue_answers_503) {
    host h;
    start_host(&h, (vd_server_options){.queue_max = 1});
    vd_exchange exchange[4];
    vd_answer answer[4];
    int busy = 0;
    for (int i = 0; i < 4; i++)
        exchange[i] = (vd_exchange){&h.at, "/nap", "Z", 1, NULL, 5000, 0};
    vd_client_ask(client, 4, exchange, answer);
    for (int i = 0; i < 4; i++) {
        busy += answer[i].err.status == VD_ERR_IO && answer[i].http_status == 503;
        vd_answer_free(&answer[i]);
    }
    stop_host(&h);
    cr_expect(busy == 2 || busy == 3, "%d", busy); /* 3: all came before the worker woke up */
    cr_expect(atomic_load(&h.handled) == 4 - busy);
}

Test(net, a_client_that_left_is_not_waited_for) {
    host h;
    start_host(&h, (vd_server_options){0});
    for (int i = 0; i < 3; i++) /* the first is being handled, the others wait behind it */
        cr_expect(outcome(&h.at, "/nap", "Z?", 50) == VD_ERR_TIMEOUT);
    cr_expect(outcome(&h.at, "/echo", "x", 2000) == VD_OK);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 2, "%d", atomic_load(&h.handled));
}

Test(net, stopping_lets_the_running_request_end) {
    host h;
    start_host(&h, (vd_server_options){0});
    raw_client raw[3];
    for (int i = 0; i < 3; i++) {
        raw[i] = raw_dial(h.port);
        raw_send(&raw[i], "POST /nap HTTP/1.1\r\nContent-Length: 1\r\n\r\nZ");
    }
    sleep_ms(100);
    double start = vd_seconds();
    stop_host(&h);
    cr_expect(vd_seconds() - start < 0.6);
    cr_expect(atomic_load(&h.handled) == 1);
    for (int i = 0; i < 3; i++)
        raw_close(&raw[i]);
}

static vd_server *to_stop;

static void on_alarm(int signal_number) {
    (void)signal_number;
    vd_server_stop(to_stop);
}

Test(net, a_signal_handler_may_stop_the_server) {
    identity self = make_identity();
    vd_server_options options = {
        .listen = "[::1]:0", .cert_path = self.cert, .key_path = self.key_file};
    if (vd_server_create(&options, host_handler, NULL, &to_stop, NULL) != VD_OK) {
        options.listen = "127.0.0.1:0"; /* a machine without IPv6 */
        cr_assert(vd_server_create(&options, host_handler, NULL, &to_stop, NULL) == VD_OK);
    }
    signal(SIGALRM, on_alarm);
    ualarm(50000, 0);
    cr_expect(vd_server_run(to_stop, NULL) == VD_OK);
    vd_server_destroy(to_stop);
    remove_identity(&self);
}

Test(net, a_server_says_what_is_wrong_with_its_options) {
    identity self = make_identity(), other = make_identity();
    host h;
    start_host(&h, (vd_server_options){0});
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%d", h.port);
    const struct {
        const char *listen, *cert, *key;
        vd_status want;
    } bad[] = {
        {"127.0.0.1", self.cert, self.key_file, VD_ERR_USAGE},
        {"127.0.0.1:65536", self.cert, self.key_file, VD_ERR_USAGE},
        {"localhost:1234", self.cert, self.key_file, VD_ERR_USAGE},
        {"::1:0", self.cert, self.key_file, VD_ERR_USAGE},
        {"[127.0.0.1]:0", self.cert, self.key_file, VD_ERR_USAGE},
        {NULL, self.cert, self.key_file, VD_ERR_USAGE},
        {taken, self.cert, self.key_file, VD_ERR_IO},
        {"127.0.0.1:0", "/nonexistent", self.key_file, VD_ERR_USAGE},
        {"127.0.0.1:0", self.cert, self.cert, VD_ERR_USAGE},
        {"127.0.0.1:0", self.cert, other.key_file, VD_ERR_USAGE},
        {"127.0.0.1:0", self.cert, NULL, VD_ERR_USAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_server_options options = {
            .listen = bad[i].listen, .cert_path = bad[i].cert, .key_path = bad[i].key};
        vd_server *server;
        vd_err err = {0};
        cr_expect(vd_server_create(&options, host_handler, NULL, &server, &err) == bad[i].want,
                  "%zu: %s", i, err.text);
        cr_expect(!server && *err.text);
    }
    stop_host(&h);
    remove_identity(&self);
    remove_identity(&other);
}

/* ---- servers that misbehave ---- */

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define PLAIN(text)                                                                                \
    { text, NULL, 0 }
#define FLOOD(head, repeat)                                                                        \
    { head, repeat, 0 }
#define DRIP(head, repeat)                                                                         \
    { head, repeat, 40 }

static const struct {
    const char *what;
    script script;
    vd_status want;
} rogues[] = {
    {"no TLS handshake", {NULL, NULL, 0}, VD_ERR_TIMEOUT},
    {"silent after the request", DRIP("", ""), VD_ERR_TIMEOUT},
    {"hangs up", PLAIN(""), VD_ERR_IO},
    {"a byte now and then", DRIP(OK_HEAD "Content-Length: 99\r\n\r\n", "0"), VD_ERR_TIMEOUT},
    {"a header byte now and then", DRIP(OK_HEAD "X: ", "y"), VD_ERR_TIMEOUT},
    {"stops half way", PLAIN(OK_HEAD "Content-Length: 9\r\n\r\n123"), VD_ERR_IO},
    {"announces too much", PLAIN(OK_HEAD "Content-Length: 100001\r\n\r\n"), VD_ERR_PEER},
    {"announces 2^64", PLAIN(OK_HEAD "Content-Length: 18446744073709551616\r\n\r\n"), VD_ERR_PEER},
    {"announces -1", PLAIN(OK_HEAD "Content-Length: -1\r\n\r\n"), VD_ERR_PEER},
    {"never ends", FLOOD(OK_HEAD "\r\n", "0"), VD_ERR_PEER},
    {"chunks never end", FLOOD(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n", "4\r\nabcd\r\n"),
     VD_ERR_PEER},
    {"headers never end", FLOOD(OK_HEAD, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"), VD_ERR_PEER},
    {"interim answers never end", FLOOD("", "HTTP/1.1 103 Wait\r\n\r\n"), VD_ERR_PEER},
    {"a header never ends", FLOOD(OK_HEAD "X: ", "y"), VD_ERR_IO},
    {"HTTP/0.9", PLAIN("hello\r\n\r\n"), VD_ERR_PEER},
    {"not even text", FLOOD("", "\x01\xff"), VD_ERR_PEER},
    {"redirect to a file",
     PLAIN("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
     VD_ERR_PEER},
    {"status 404", PLAIN("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), VD_ERR_PEER},
    {"status 500", PLAIN("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), VD_ERR_IO},
    {"status 204", PLAIN("HTTP/1.1 204 Nothing\r\n\r\n"), VD_ERR_PEER},
};

Test(net, answers_of_rogue_servers_are_cut_and_blamed) {
    for (size_t i = 0; i < sizeof rogues / sizeof *rogues; i++) {
        rogue r;
        start_rogue(&r, rogues[i].script);
        bool slow = rogues[i].want == VD_ERR_TIMEOUT;
        vd_exchange exchange = {&r.at, "/", "x", 1, NULL, slow ? 200 : 3000, 100000};
        vd_answer answer;
        vd_client_ask(client, 1, &exchange, &answer);
        cr_expect(answer.err.status == rogues[i].want, "%s: %d, %s", rogues[i].what,
                  (int)answer.err.status, answer.err.text);
        cr_expect(answer.body.size <= 100000);
        cr_expect(!slow || answer.seconds < 0.5, "%s: %f s", rogues[i].what, answer.seconds);
        vd_answer_free(&answer);
        stop_rogue(&r);
    }
}

Test(net, a_redirect_is_not_followed) {
    host h;
    rogue r;
    char text[512];
    start_host(&h, (vd_server_options){0});
    snprintf(text, sizeof text, "HTTP/1.1 307 Go\r\nLocation: %s/echo\r\nContent-Length: 0\r\n\r\n",
             h.at.url);
    start_rogue(&r, (script)PLAIN(text));
    cr_expect(outcome(&r.at, "/", "x", 2000) == VD_ERR_PEER);
    stop_rogue(&r);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 0);
}

Test(net, compressed_bodies_stay_as_they_are) {
    rogue r;
    start_rogue(&r, (script)PLAIN(OK_HEAD "Content-Encoding: gzip\r\n"
                                          "Content-Length: 3\r\n\r\nabc"));
    vd_answer answer = ask(&r.at, "/", "x", 2000);
    cr_expect(answer.err.status == VD_OK && is_text(&answer.body, "abc"), "%s", answer.err.text);
    vd_answer_free(&answer);
    stop_rogue(&r);
}

Test(net, the_environment_names_no_proxy) {
    host h;
    start_host(&h, (vd_server_options){0});
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    cr_expect(outcome(&h.at, "/echo", "x", 2000) == VD_OK);
    stop_host(&h);
}

Test(net, nobody_at_home_is_trouble_of_the_connection) {
    vd_endpoint nobody = endpoint_at(1, KEY);
    cr_expect(outcome(&nobody, "/", "x", 2000) == VD_ERR_IO);
}

/* ---- clients that misbehave ---- */

#define POST(headers, body) "POST /echo HTTP/1.1\r\n" headers "\r\n" body

Test(net, malformed_requests_are_refused_without_the_handler) {
    static const struct {
        const char *request, *want; /* want "": closed without a word, or a refusal lost in it */
    } bad[] = {
        {"DELETE / HTTP/1.1\r\n\r\n", " 501 "},
        {"BREW / HTTP/1.1\r\n\r\n", " 501 "},
        {"GET http://localhost/ HTTP/1.1\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", " 400 "},
        {"GET / HTTP/2.0\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nno colon\r\n\r\n", " 400 "},
        {"nonsense\r\n\r\n", " 400 "},
        {POST("Content-Length: -1\r\n", ""), " 400 "},
        {POST("Content-Length: 99999999999999999999\r\n", ""), ""},
        {POST("Content-Length: 1000001\r\n", "x"), ""},
        {POST("Content-Length: 1x\r\n", "x"), " 400 "},
        {POST("Content-Length: 1\r\nContent-Length: 2\r\n", "xy"), " 400 "},
        {POST("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n"),
         " 400 "},
        {POST("Transfer-Encoding: chunked\r\n", "ffffffffff\r\nx"), ""},
        {POST("Transfer-Encoding: chunked\r\n", "-1\r\nx"), ""},
        {POST("Expect: miracles\r\nContent-Length: 1\r\n", "x"), " 417 "},
    };
    host h;
    char text[4096];
    start_host(&h, (vd_server_options){.request_max = 1000000});
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        raw_client raw = raw_dial(h.port);
        raw_send(&raw, bad[i].request);
        raw_read(&raw, text, sizeof text);
        cr_expect(strstr(text, bad[i].want), "%s -> %s", bad[i].request, text);
        cr_expect(!strstr(text, " 200 "), "%s", bad[i].request);
        raw_close(&raw);
    }
    cr_expect(outcome(&h.at, "/echo", "x", 2000) == VD_OK);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 1);
}

/* Sends `repeat` again and again; tells after how many seconds the server hung up. */
static double seconds_until_cut(int port, const char *head, const char *repeat, long pause_ms) {
    raw_client raw = raw_dial(port);
    double start = vd_seconds();
    raw_send(&raw, head);
    signal(SIGPIPE, SIG_IGN);
    while (vd_seconds() - start < 5 && raw_send(&raw, repeat))
        sleep_ms(pause_ms);
    double seconds = vd_seconds() - start;
    raw_close(&raw);
    return seconds;
}

Test(net, a_request_in_drips_is_cut_at_its_deadline) {
    host h;
    start_host(&h, (vd_server_options){.request_ms = 400});
    double seconds = seconds_until_cut(h.port, POST("Content-Length: 1000\r\n", ""), "x", 20);
    cr_expect(seconds > 0.35 && seconds < 1.2, "%f", seconds);
    seconds = seconds_until_cut(h.port, "GET / HTTP/1.1\r\nX: ", "y", 20);
    cr_expect(seconds > 0.35 && seconds < 1.2, "%f", seconds);
    cr_expect(outcome(&h.at, "/nap", "Z", 2000) == VD_OK); /* handling is not receiving */
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 1);
}

Test(net, floods_are_cut_early_or_at_the_deadline) {
    static char flood[65536];
    memset(flood, 'y', sizeof flood - 1);
    host h;
    start_host(&h, (vd_server_options){.request_max = 1 << 20, .request_ms = 500});
    cr_expect(seconds_until_cut(h.port, "GET /", flood, 0) < 0.4);
    cr_expect(seconds_until_cut(h.port, "GET / HTTP/1.1\r\nX: ", flood, 0) < 0.4);
    size_t before = vd_peak_bytes();
    cr_expect(seconds_until_cut(h.port, POST("Transfer-Encoding: chunked\r\n", ""), flood, 0) < 2);
    cr_expect(vd_peak_bytes() - before < 16 << 20);
    stop_host(&h);
}

Test(net, silent_and_idle_connections_are_closed) {
    host h;
    char text[4096];
    start_host(&h, (vd_server_options){.handshake_ms = 200, .idle_ms = 300});
    double start = vd_seconds();
    int silent = dial(h.port);
    raw_client unasked = raw_dial(h.port), asked = raw_dial(h.port);
    raw_send(&asked, POST("Content-Length: 2\r\n", "ab"));
    cr_expect(read(silent, text, sizeof text) <= 0);
    cr_expect(raw_read(&unasked, text, sizeof text) == 0);
    cr_expect(vd_seconds() - start < 0.8);
    raw_read(&asked, text, sizeof text);
    cr_expect(strstr(text, " 200 ") && strstr(text, "\r\n\r\nab"), "%s", text);
    cr_expect(vd_seconds() - start > 0.25 && vd_seconds() - start < 1.2);
    close(silent);
    raw_close(&unasked);
    raw_close(&asked);
    stop_host(&h);
}

Test(net, idle_connections_give_way_when_all_places_are_taken) {
    host h;
    raw_client raw[6];
    start_host(&h, (vd_server_options){.connection_max = 3});
    for (int i = 0; i < 6; i++)
        raw[i] = raw_dial(h.port);
    cr_expect(outcome(&h.at, "/echo", "x", 3000) == VD_OK);
    for (int i = 0; i < 6; i++)
        raw_close(&raw[i]);
    stop_host(&h);
}

Test(net, a_server_out_of_descriptors_waits_without_spinning) {
    host h;
    struct rlimit before, few = {64, 64};
    int spare[64], count = 0;
    start_host(&h, (vd_server_options){0});
    raw_client early = raw_dial(h.port);
    getrlimit(RLIMIT_NOFILE, &before);
    few.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_NOFILE, &few);
    int last = dup(0);
    while (count < 64 && (spare[count] = dup(0)) >= 0)
        count++;
    close(last);
    int waiting = dial(h.port); /* takes the last one */
    double cpu = vd_cpu_seconds();
    sleep_ms(300);
    cr_expect(vd_cpu_seconds() - cpu < 0.15);
    while (count > 0)
        close(spare[--count]);
    setrlimit(RLIMIT_NOFILE, &before);
    cr_expect(outcome(&h.at, "/echo", "x", 3000) == VD_OK);
    close(waiting);
    raw_close(&early);
    stop_host(&h);
}

Test(net, a_client_that_does_not_read_is_cut) {
    host h;
    start_host(&h, (vd_server_options){.send_ms = 300});
    raw_client raw = raw_dial(h.port);
    raw_send(&raw, "POST /big HTTP/1.1\r\nContent-Length: 1\r\n\r\nZ");
    sleep_ms(700);
    char *text = malloc(48 << 20);
    cr_expect(raw_read(&raw, text, 48 << 20) < 40 << 20);
    free(text);
    raw_close(&raw);
    cr_expect(outcome(&h.at, "/big", "9", 5000) == VD_OK);
    stop_host(&h);
}

Test(net, requests_may_follow_each_other_on_a_connection) {
    host h;
    char text[8192];
    start_host(&h, (vd_server_options){0});
    raw_client raw = raw_dial(h.port);
    raw_send(&raw, POST("Content-Length: 2\r\n", "1a") POST("Content-Length: 2\r\n", "2b")
                       POST("Content-Length: 2\r\nConnection: close\r\n", "3c"));
    raw_read(&raw, text, sizeof text);
    cr_expect(strstr(text, "1a") && strstr(text, "2b") && strstr(text, "3c"), "%s", text);
    raw_close(&raw);
    stop_host(&h);
    cr_expect_str_eq(h.order, "abc");
}

Test(net, a_client_may_wait_for_100_continue) {
    host h;
    char text[4096];
    start_host(&h, (vd_server_options){0});
    raw_client raw = raw_dial(h.port);
    raw_send(&raw, POST("Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n", ""));
    int size = SSL_read(raw.ssl, text, sizeof text - 1);
    cr_expect(size > 0 && strncmp(text, "HTTP/1.1 100 ", 13) == 0);
    raw_send(&raw, "1a");
    raw_read(&raw, text, sizeof text);
    cr_expect(strstr(text, " 200 ") && strstr(text, "\r\n\r\n1a"), "%s", text);
    raw_close(&raw);
    stop_host(&h);
}

/* Plain text, random bytes and resets at every point of a conversation. */
Test(net, garbage_on_the_port_does_no_harm) {
    host h;
    unsigned seed = 1;
    start_host(&h, (vd_server_options){0});
    for (int round = 0; round < 200; round++) {
        char bytes[600];
        size_t size = (size_t)(rand_r(&seed) % (int)sizeof bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)rand_r(&seed);
        if (round % 3 == 0)
            size = (size_t)snprintf(bytes, sizeof bytes, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        else if (round % 3 == 1 && size > 5)
            memcpy(bytes, "\x16\x03\x01\x01\x00", 5); /* a handshake record */
        int fd = dial(h.port);
        cr_expect(send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        close(fd);
    }
    cr_expect(outcome(&h.at, "/echo", "x", 2000) == VD_OK);
    stop_host(&h);
}

Test(net, resets_within_tls_do_no_harm) {
    static const char *const part[] = {"",
                                       "G",
                                       "GET / HTTP/1.1\r\n",
                                       POST("Content-Length: 10\r\n", "abc"),
                                       POST("Content-Length: 1\r\n", "1"),
                                       "POST /nap HTTP/1.1\r\nContent-Length: 1\r\n\r\n3",
                                       "POST /big HTTP/1.1\r\nContent-Length: 1\r\n\r\n4"};
    host h;
    start_host(&h, (vd_server_options){0});
    for (int round = 0; round < 42; round++) {
        raw_client raw = raw_dial(h.port);
        if (*part[round % 7])
            raw_send(&raw, part[round % 7]);
        sleep_ms(round % 3 * 5);
        raw_reset(&raw);
    }
    cr_expect(outcome(&h.at, "/echo", "x", 3000) == VD_OK);
    stop_host(&h);
}

/* ---- everything at once ---- */

static const char *const fragment[] = {"GET / HTTP/1.1\r\n",
                                       "POST /echo HTTP/1.1\r\n",
                                       "\r\n",
                                       "Content-Length: 5\r\n\r\n12345",
                                       "Content-Length: 70000\r\n\r\n",
                                       "Transfer-Encoding: chunked\r\n\r\n",
                                       "4\r\nabcd\r\n",
                                       "0\r\n\r\n",
                                       "Expect: 100-continue\r\n",
                                       "Connection: close\r\n",
                                       " folded\r\n",
                                       "X: y\r\n",
                                       "HEAD / HTTP/1.1\r\n\r\n",
                                       "CONNECT a:1 HTTP/1.1\r\n\r\n",
                                       "GET http://x/ HTTP/1.0\r\n\r\n",
                                       "junk",
                                       "GET /?a#b%zz HTTP/1.0\r\n\r\n",
                                       "Host: [::\r\n",
                                       "fffffffffffffff\r\n",
                                       "GET //// HTTP/1.-5\r\n\r\n",
                                       "\r\n\r\nGET / HTTP/1.1\r\n\r\n"};

typedef struct {
    pthread_t thread;
    unsigned seed;
    int port;
    atomic_bool *stopping;
} attacker;

static void attack_once(attacker *self) {
    raw_client raw;
    char text[512] = "";
    bool open = raw_try(&raw, self->port);
    for (int left = rand_r(&self->seed) % 12; open && left > 0; left--) {
        strcat(text, fragment[rand_r(&self->seed) % (sizeof fragment / sizeof *fragment)]);
        if (left > 1 && rand_r(&self->seed) % 3)
            continue;
        text[rand_r(&self->seed) % (unsigned)strlen(text)] ^= rand_r(&self->seed) % 20 == 0;
        open = raw_send(&raw, text);
        *text = 0;
    }
    if (rand_r(&self->seed) % 4 == 0)
        shutdown(raw.fd, SHUT_WR);
    if (rand_r(&self->seed) % 4 == 0)
        raw_read(&raw, text, sizeof text);
    (rand_r(&self->seed) % 2 ? raw_reset : raw_close)(&raw);
}

static void *attacker_main(void *user) {
    attacker *self = user;
    while (!atomic_load(self->stopping))
        attack_once(self);
    return NULL;
}

/* What it leaves behind, LeakSanitizer tells. */
Test(net, an_honest_client_is_served_amid_random_conversations_until_the_stop) {
    for (unsigned round = 0; round < 8; round++) {
        host h;
        attacker a[4];
        atomic_bool stopping = false;
        start_host(&h, (vd_server_options){.request_ms = 400, .idle_ms = 300});
        for (unsigned i = 0; i < 4; i++) {
            a[i] = (attacker){.seed = 100 * round + i, .port = h.port, .stopping = &stopping};
            pthread_create(&a[i].thread, NULL, attacker_main, &a[i]);
        }
        for (double start = vd_seconds(); vd_seconds() - start < 0.15;)
            cr_expect(outcome(&h.at, "/echo", "x", 3000) == VD_OK);
        stop_host(&h);
        atomic_store(&stopping, true);
        for (int i = 0; i < 4; i++)
            pthread_join(a[i].thread, NULL);
    }
}
