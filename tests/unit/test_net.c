/* The transport between honest sides, over loopback. */
#include "net_peers.h"

#include <signal.h>

TestSuite(net, .init = setup, .fini = teardown, .timeout = 300);

/* ---- endpoints ---- */

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
    cr_expect(outcome(&h.at, "/none", "x", 5000) == VD_ERR_IO);
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
    vd_answer answer = ask(&wrong, "/echo", "x", 2000);
    cr_expect(answer.err.status == VD_ERR_IO && answer.other_key);
    cr_expect(strstr(answer.err.text, other.hex), "expected: %s", answer.err.text);
    cr_expect(strstr(answer.err.text, h.self.hex), "presented: %s", answer.err.text);
    vd_answer_free(&answer);
    remove_identity(&other);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 0);
}

/* A certificate with another kind of key, as web servers have. */
Test(net, a_key_that_no_provider_could_have_is_named_by_its_kind) {
    host h;
    identity other = make_identity();
    char command[512];
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x "
             "-keyout %s -out %s 2> /dev/null",
             other.key_file, other.cert);
    if (system(command) != 0)
        cr_skip("no openssl command");
    h = (host){.self = other};
    vd_server_options options = {.listen = "127.0.0.1:0", .cert_path = other.cert};
    options.key_path = other.key_file;
    cr_assert(vd_server_create(&options, host_handler, &h, &h.server, NULL) == VD_OK);
    cr_assert(pthread_create(&h.thread, NULL, host_main, &h) == 0);
    vd_endpoint wrong = endpoint_at(vd_server_port(h.server), KEY);
    vd_answer answer = ask(&wrong, "/echo", "x", 2000);
    cr_expect(answer.other_key && strstr(answer.err.text, "a key of type EC"), "%s",
              answer.err.text);
    vd_answer_free(&answer);
    stop_host(&h);
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
    vd_client_destroy(client); /* closes the connection */
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
    cr_expect(busy == 2 || busy == 3, "%d", busy); /* 3 if all came before the worker woke up */
    cr_expect(atomic_load(&h.handled) == 4 - busy);
}

Test(net, a_client_that_left_is_not_waited_for) {
    host h;
    start_host(&h, (vd_server_options){0});
    for (int i = 0; i < 3; i++) /* the first is being handled, and the others are queued */
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
