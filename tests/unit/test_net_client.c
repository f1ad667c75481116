/* The client against servers that misbehave. */
#include "net_peers.h"

TestSuite(net_client, .init = setup, .fini = teardown, .timeout = 300);

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
    {"announces -1", PLAIN(OK_HEAD "Content-Length: -1\r\n\r\n"), VD_ERR_IO},
    {"never ends", FLOOD(OK_HEAD "\r\n", "0"), VD_ERR_PEER},
    {"chunks never end", FLOOD(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n", "4\r\nabcd\r\n"),
     VD_ERR_PEER},
    {"headers never end", FLOOD(OK_HEAD, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"), VD_ERR_PEER},
    {"interim answers never end", FLOOD("", "HTTP/1.1 103 Wait\r\n\r\n"), VD_ERR_PEER},
    {"a header never ends", FLOOD(OK_HEAD "X: ", "y"), VD_ERR_IO},
    {"HTTP/0.9", PLAIN("hello\r\n\r\n"), VD_ERR_IO},
    {"not even text", FLOOD("", "\x01\xff"), VD_ERR_IO},
    {"redirect to a file",
     PLAIN("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
     VD_ERR_IO},
    {"status 400", PLAIN("HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"), VD_ERR_PEER},
    {"status 404", PLAIN("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), VD_ERR_IO},
    {"status 411", PLAIN("HTTP/1.1 411 No\r\nContent-Length: 0\r\n\r\n"), VD_ERR_IO},
    {"a chunk that is none", PLAIN(OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), VD_ERR_IO},
    {"status 500", PLAIN("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), VD_ERR_IO},
    {"status 204", PLAIN("HTTP/1.1 204 Nothing\r\n\r\n"), VD_ERR_IO},
};

Test(net_client, answers_of_rogue_servers_are_cut_and_blamed) {
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

Test(net_client, a_redirect_is_not_followed) {
    host h;
    rogue r;
    char text[512];
    start_host(&h, (vd_server_options){0});
    snprintf(text, sizeof text, "HTTP/1.1 307 Go\r\nLocation: %s/echo\r\nContent-Length: 0\r\n\r\n",
             h.at.url);
    start_rogue(&r, (script)PLAIN(text));
    cr_expect(outcome(&r.at, "/", "x", 2000) == VD_ERR_IO);
    stop_rogue(&r);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) == 0);
}

Test(net_client, compressed_bodies_stay_as_they_are) {
    rogue r;
    start_rogue(&r, (script)PLAIN(OK_HEAD "Content-Encoding: gzip\r\n"
                                          "Content-Length: 3\r\n\r\nabc"));
    vd_answer answer = ask(&r.at, "/", "x", 2000);
    cr_expect(answer.err.status == VD_OK && is_text(&answer.body, "abc"), "%s", answer.err.text);
    vd_answer_free(&answer);
    stop_rogue(&r);
}

Test(net_client, the_environment_names_no_proxy) {
    host h;
    start_host(&h, (vd_server_options){0});
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    cr_expect(outcome(&h.at, "/echo", "x", 2000) == VD_OK);
    stop_host(&h);
}

Test(net_client, nobody_at_home_is_trouble_of_the_connection) {
    vd_endpoint nobody = endpoint_at(1, KEY);
    cr_expect(outcome(&nobody, "/", "x", 2000) == VD_ERR_IO);
}
