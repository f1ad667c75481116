/* The server against clients that misbehave. */
#include "net_peers.h"

#include <signal.h>
#include <sys/resource.h>

TestSuite(net_server, .init = setup, .fini = teardown, .timeout = 300);

#define POST(headers, body) "POST /echo HTTP/1.1\r\n" headers "\r\n" body

Test(net_server, malformed_requests_are_refused_without_the_handler) {
    static const struct {
        const char *request, *want; /* want "": closed without an answer, or the refusal is lost */
    } bad[] = {
        {"DELETE / HTTP/1.1\r\n\r\n", " 405 "},
        {"HEAD / HTTP/1.1\r\n\r\n", " 405 "},
        {"OPTIONS /echo HTTP/1.0\r\n\r\n", " 405 "},
        {"BREW / HTTP/1.1\r\n\r\n", " 501 "},
        {"GET http://localhost/ HTTP/1.1\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", " 400 "},
        {"GET / HTTP/2.0\r\n\r\n", " 400 "},
        {"GET / HTTP/0.9\r\n\r\n", "HTTP/1.1 400 "},
        {"POST /echo HTTP/0.1\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 400 "},
        {"GET / HTTP/1.7\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nno colon\r\n\r\n", " 400 "},
        {"nonsense\r\n\r\n", " 400 "},
        {POST("Content-Length: -1\r\n", ""), " 400 "},
        {POST("Content-Length: 99999999999999999999\r\n", ""), ""},
        {POST("Content-Length: 1000001\r\n", "x"), ""},
        {POST("Content-Length: 1x\r\n", "x"), " 400 "},
        {POST("Content-Length: 1\r\nContent-Length: 2\r\n", "xy"), " 400 "},
        {POST("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n"),
         " 400 "},
        {POST("transfer-encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n"), " 411 "},
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

/* Sends `repeat` again and again. Returns the seconds until the server hung up. */
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

Test(net_server, a_request_in_drips_is_cut_at_its_deadline) {
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

Test(net_server, floods_are_cut_early_or_at_the_deadline) {
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

Test(net_server, silent_and_idle_connections_are_closed) {
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

Test(net_server, idle_connections_give_way_when_all_places_are_taken) {
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

Test(net_server, a_server_out_of_descriptors_waits_without_spinning) {
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
    int waiting = dial(h.port); /* takes the last descriptor */
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

Test(net_server, a_client_that_does_not_read_is_cut) {
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

Test(net_server, requests_may_follow_each_other_on_a_connection) {
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

Test(net_server, a_client_may_wait_for_100_continue) {
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

/* Plain text, random bytes, and resets at every point of a conversation. */
Test(net_server, garbage_on_the_port_does_no_harm) {
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

Test(net_server, resets_within_tls_do_no_harm) {
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

/* LeakSanitizer reports what the server does not free. */
Test(net_server, an_honest_client_is_served_amid_random_conversations_until_the_stop) {
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
