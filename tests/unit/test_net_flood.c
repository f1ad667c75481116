/* Whose requests are answered when there are too many connections or too many questions. */
#include "net_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

TestSuite(net_flood, .init = setup, .fini = teardown, .timeout = 120);

/* ---- slow connections: TLS, headers, then one byte of the body a second; redialled when cut
 * ---- */

enum { SLOW_MAX = 800, DESCRIPTORS_FOR_OTHERS = 400 };

typedef struct {
    SSL *ssl; /* NULL: not connected */
    int fd;
    bool shaken, sent_head;
    double next_s; /* not before this time */
} slow;

typedef struct {
    pthread_t thread;
    SSL_CTX *context;
    int port, count;
    atomic_bool stopping;
    atomic_int dialled, served; /* served: connections that have sent their headers */
    slow conn[SLOW_MAX];
} flood;

static void slow_close(slow *s) {
    SSL_free(s->ssl);
    close(s->fd);
    *s = (slow){.next_s = vd_seconds() + 0.05};
}

static void slow_dial(flood *f, slow *s) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    s->ssl = SSL_new(f->context);
    if (connect(s->fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)
        s->next_s = vd_seconds() + 0.1;
    SSL_set_fd(s->ssl, s->fd);
    SSL_set_connect_state(s->ssl);
    atomic_fetch_add(&f->dialled, 1);
}

/* Returns false if the connection has ended. */
static bool goes_on(slow *s, int result) {
    int error = SSL_get_error(s->ssl, result);
    return result > 0 || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static bool slow_step(flood *f, slow *s) {
    static const char head[] = "POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
    int result = s->shaken ? 1 : SSL_do_handshake(s->ssl);
    if (result > 0 && !s->shaken) {
        s->shaken = true;
        result = SSL_write(s->ssl, head, sizeof head - 1);
        s->sent_head = result > 0;
        atomic_fetch_add(&f->served, s->sent_head);
        s->next_s = vd_seconds() + 1;
    } else if (result > 0) {
        result = SSL_write(s->ssl, "x", 1);
        s->next_s = vd_seconds() + 1;
    } else {
        s->next_s = vd_seconds() + 0.005;
    }
    return goes_on(s, result);
}

static bool was_cut(const slow *s) {
    struct pollfd poll_fd = {.fd = s->fd, .events = POLLRDHUP};
    return s->shaken && poll(&poll_fd, 1, 0) == 1;
}

static void *flood_main(void *user) {
    flood *f = user;
    while (!atomic_load(&f->stopping)) {
        for (int i = 0; i < f->count; i++) {
            slow *s = &f->conn[i];
            if (s->ssl && was_cut(s))
                slow_close(s);
            if (vd_seconds() < s->next_s)
                continue;
            if (!s->ssl)
                slow_dial(f, s);
            else if (!slow_step(f, s))
                slow_close(s);
        }
        sleep_ms(2);
    }
    for (int i = 0; i < f->count; i++)
        if (f->conn[i].ssl)
            slow_close(&f->conn[i]);
    return NULL;
}

/* Raises the limit of descriptors as far as allowed and returns it. With the usual 1,024, about 600
 * slow connections fit. */
static int descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    return (int)limit.rlim_cur;
}

static flood *start_flood(int port) {
    flood *f = calloc(1, sizeof *f);
    int spare = descriptors() - DESCRIPTORS_FOR_OTHERS;
    signal(SIGPIPE, SIG_IGN);
    f->context = SSL_CTX_new(TLS_client_method());
    f->port = port;
    f->count = spare < SLOW_MAX ? spare : SLOW_MAX;
    cr_assert(pthread_create(&f->thread, NULL, flood_main, f) == 0);
    return f;
}

static void stop_flood(flood *f) {
    atomic_store(&f->stopping, true);
    pthread_join(f->thread, NULL);
    SSL_CTX_free(f->context);
    free(f);
}

/* Asks as a referee does: again and again, each time for as long as connecting may take. */
static int tries_until_answered(const vd_endpoint *to, double limit_s) {
    double start = vd_seconds();
    for (int tries = 1; vd_seconds() - start < limit_s; tries++) {
        vd_status status = outcome(to, "/echo", "1q", VD_NET_CONNECT_MS);
        if (status == VD_OK)
            return tries;
        cr_assert(status == VD_ERR_IO || status == VD_ERR_TIMEOUT);
        sleep_ms(300);
    }
    return 0;
}

/* All connections come from the asker's own address, which is the worst case. */
Test(net_flood, an_honest_question_is_answered_amid_800_slow_connections) {
    host h;
    start_host(&h, (vd_server_options){0});
    flood *f = start_flood(h.port);
    while (atomic_load(&f->served) < VD_NET_CONNECTION_MAX || atomic_load(&f->dialled) < f->count)
        sleep_ms(20);
    for (int i = 0; i < 3; i++) {
        vd_client_destroy(client); /* a new connection for each question */
        setup();
        int tries = tries_until_answered(&h.at, 25);
        cr_log_info("answered at try %d, %d dialled", tries, atomic_load(&f->dialled));
        cr_expect(tries > 0, "question %d was not answered", i);
    }
    stop_flood(f);
    stop_host(&h);
    cr_expect(atomic_load(&h.handled) >= 3);
}

/* ---- who gives way ---- */

static bool is_open(raw_client *raw) {
    struct pollfd poll_fd = {.fd = raw->fd, .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) == 0;
}

enum { CROWD = 24 };

static int count_open(raw_client *raw, int count) {
    int open = 0;
    for (int i = 0; i < count; i++)
        open += is_open(&raw[i]);
    return open;
}

static void close_all(raw_client *raw, int count) {
    for (int i = 0; i < count; i++)
        raw_close(&raw[i]);
}

/* The lone address came first and is idle, but must stay. */
Test(net_flood, an_address_with_one_connection_does_not_give_way_to_one_with_many) {
    host h;
    raw_client lone, crowd[CROWD];
    start_host(&h, (vd_server_options){.connection_max = 8});
    cr_assert(raw_try_from("127.0.0.2", &lone, h.port));
    for (int i = 0; i < CROWD; i++)
        cr_assert(raw_try(&crowd[i], h.port));
    cr_expect(is_open(&lone));
    char text[512];
    raw_send(&lone, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    raw_read(&lone, text, sizeof text);
    cr_expect(strstr(text, " 200 "), "%s", text);
    raw_close(&lone);
    close_all(crowd, CROWD);
    stop_host(&h);
}

Test(net_flood, an_address_holds_its_share_of_the_connections_at_most) {
    host h;
    raw_client crowd[8];
    start_host(&h, (vd_server_options){.connection_max = 8});
    for (int i = 0; i < 8; i++)
        cr_assert(raw_try(&crowd[i], h.port));
    for (int tries = 0; count_open(crowd, 8) > 4 && tries < 100; tries++)
        sleep_ms(VD_NET_SWEEP_MS);
    sleep_ms(4 * VD_NET_SWEEP_MS);
    cr_expect(count_open(crowd, 8) == 8 / VD_NET_ADDRESS_SHARE);
    cr_expect(is_open(&crowd[7]) && !is_open(&crowd[0]), "who came first goes first");
    close_all(crowd, 8);
    stop_host(&h);
}

Test(net_flood, a_body_slower_than_the_least_rate_is_cut_after_its_grace) {
    host h;
    start_host(&h, (vd_server_options){0});
    raw_client drips = raw_dial(h.port), flows = raw_dial(h.port);
    char piece[VD_NET_RATE_MIN / 2 + 1];
    memset(piece, 'x', sizeof piece);
    piece[sizeof piece - 1] = 0;
    raw_send(&drips, "POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    raw_send(&flows, "POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    double start = vd_seconds(), cut_s = 0;
    while (vd_seconds() - start < VD_NET_GRACE_MS / 1e3 + 3) {
        if (is_open(&drips))
            raw_send(&drips, "x");
        else if (!cut_s)
            cut_s = vd_seconds() - start;
        raw_send(&flows, piece);
        sleep_ms(250);
    }
    cr_expect(cut_s > VD_NET_GRACE_MS / 1e3 - 0.5 && cut_s < VD_NET_GRACE_MS / 1e3 + 2, "%f",
              cut_s);
    cr_expect(is_open(&flows));
    raw_close(&drips);
    raw_close(&flows);
    stop_host(&h);
}

static void send_zeros(raw_client *raw, size_t size) {
    char *zeros = calloc(1, size);
    SSL_write(raw->ssl, zeros, (int)size);
    free(zeros);
}

/* Chunked bodies also give way, whose bytes evhttp has already taken from its input. */
Test(net_flood, unfinished_bodies_give_way_when_memory_is_short) {
    host h;
    raw_client raw[4];
    start_host(&h, (vd_server_options){.request_max = 1 << 20, .held_max = 1 << 20});
    for (int i = 0; i < 4; i++) {
        raw[i] = raw_dial(h.port);
        raw_send(&raw[i], i % 2 ? "POST /echo HTTP/1.1\r\nContent-Length: 500000\r\n\r\n"
                                : "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "61a80\r\n");
        send_zeros(&raw[i], 400000);
    }
    int open = 4;
    for (int tries = 0; open == 4 && tries < 50; tries++) {
        sleep_ms(VD_NET_SWEEP_MS);
        for (int i = open = 0; i < 4; i++)
            open += is_open(&raw[i]);
    }
    cr_expect(open == 2 || open == 3, "%d", open);
    char *text = malloc(600001);
    memset(text, 'x', 600000);
    text[600000] = 0;
    cr_expect(outcome(&h.at, "/echo", text, 5000) == VD_OK);
    free(text);
    for (int i = 0; i < 4; i++)
        raw_close(&raw[i]);
    stop_host(&h);
}

/* ---- turns ---- */

/* The second byte of the body is the asker. `!` is refused at once, and `?` is a read. */
static vd_screened screen_by_body(void *user, const vd_request *request,
                                  uint8_t asker[VD_ASKER_SIZE], vd_response *response) {
    host *h = user;
    atomic_fetch_add(&h->screened, 1);
    asker[0] = request->body_size > 1 ? request->body[1] : 0;
    if (asker[0] != '!')
        return asker[0] == '?' ? VD_READS : VD_WAITS;
    response->status = 400;
    return VD_ANSWERED;
}

enum { ASKERS_MAX = 16 };

typedef struct {
    host h;
    raw_client raw[ASKERS_MAX];
    int count;
} turns;

/* Returns once the server has the request, so that the next one comes after it. */
static raw_client *post(turns *t, const char *path, char asker) {
    char text[160];
    int before = atomic_load(&t->h.screened);
    raw_client *raw = &t->raw[t->count++];
    *raw = raw_dial(t->h.port);
    snprintf(text, sizeof text,
             "POST %s HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n1%c", path, asker);
    raw_send(raw, text);
    while (atomic_load(&t->h.screened) == before)
        sleep_ms(1);
    return raw;
}

/* The first request occupies the worker until the release, while the others arrive. */
static void post_all(turns *t, int queue_max, const char *askers) {
    *t = (turns){.count = 0};
    start_host(&t->h, (vd_server_options){.screen = screen_by_body, .queue_max = queue_max});
    post(t, "/hold", '-');
    sleep_ms(50); /* the worker has it */
    for (const char *asker = askers; *asker; asker++)
        post(t, "/echo", *asker);
}

static void release(turns *t) {
    atomic_store(&t->h.released, true);
}

static int status_of(raw_client *raw) {
    char text[512];
    int status = 0;
    raw_read(raw, text, sizeof text);
    sscanf(text, "HTTP/1.1 %d", &status);
    return status;
}

static void end(turns *t) {
    for (int i = 0; i < t->count; i++)
        raw_close(&t->raw[i]);
    stop_host(&t->h);
}

Test(net_flood, those_who_ask_take_turns) {
    turns t;
    post_all(&t, 0, "aaaabccd");
    release(&t);
    for (int i = 0; i < t.count; i++)
        cr_expect(status_of(&t.raw[i]) == 200, "%d", i);
    end(&t);
    cr_expect_str_eq(t.h.order, "-abcdacaa");
}

Test(net_flood, who_has_most_waiting_makes_room_for_who_has_none) {
    turns t;
    post_all(&t, 4, "aaaabcde");
    release(&t);
    const int want[] = {200, 200, 503, 503, 503, 200, 200, 200, 503};
    for (int i = 0; i < t.count; i++) {
        int status = status_of(&t.raw[i]);
        cr_expect(status == want[i], "%d: %d", i, status);
    }
    end(&t);
    cr_expect_str_eq(t.h.order, "-abcd");
}

Test(net_flood, one_asker_has_a_bound_though_there_is_room) {
    turns t;
    post_all(&t, 0, "aaaaaaaaaab");
    release(&t);
    int refused = 0;
    for (int i = 0; i < t.count; i++)
        refused += status_of(&t.raw[i]) == 503;
    end(&t);
    cr_expect(refused == 10 - VD_NET_ASKER_MAX, "%d", refused);
    cr_expect_str_eq(t.h.order, "-abaaaaaaa");
}

Test(net_flood, what_the_screen_refuses_waits_for_nobody) {
    turns t;
    post_all(&t, 1, "a");
    cr_expect(status_of(post(&t, "/echo", '!')) == 400);
    cr_expect(atomic_load(&t.h.handled) == 0);
    release(&t);
    end(&t);
}

/* Returns once the server has decided about all requests so far: one thread screens them in
 * order. */
static void await_decisions(turns *t) {
    raw_client *fence = post(t, "/echo", '!');
    cr_expect(status_of(fence) == 400);
    raw_close(fence);
    t->count--;
}

Test(net_flood, who_hangs_up_gives_its_place_in_the_queue) {
    turns t;
    post_all(&t, 2, "ab");
    raw_reset(&t.raw[1]);
    t.raw[1] = t.raw[--t.count];
    raw_client *last = post(&t, "/echo", 'c');
    await_decisions(&t);
    for (int tries = 0; !is_open(last) && tries < 50; tries++) { /* 503 until noticed */
        raw_close(last);
        t.count--;
        sleep_ms(VD_NET_SWEEP_MS);
        last = post(&t, "/echo", 'c');
        await_decisions(&t);
    }
    release(&t);
    cr_expect(status_of(last) == 200);
    end(&t);
    cr_expect_str_eq(t.h.order, "-bc");
}

/* ---- reads ---- */

Test(net_flood, reads_never_wait_for_the_handler) {
    turns t = {.count = 0};
    start_host(&t.h, (vd_server_options){.screen = screen_by_body, .read = host_handler});
    post(&t, "/hold", '-');
    sleep_ms(50); /* the worker has it */
    raw_client *waits = post(&t, "/echo", 'a');
    cr_expect(status_of(post(&t, "/echo", '?')) == 200);
    cr_expect(atomic_load(&t.h.handled) == 1);
    release(&t);
    cr_expect(status_of(waits) == 200);
    end(&t);
    cr_expect_str_eq(t.h.order, "?-a");
}

/* Asks for an answer of `mib` MiB, and does not read it. */
static raw_client *post_big(turns *t, char mib, char asker) {
    char text[160];
    raw_client *raw = &t->raw[t->count++];
    *raw = raw_dial(t->h.port);
    snprintf(text, sizeof text,
             "POST /big HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n%c%c", mib,
             asker);
    raw_send(raw, text);
    return raw;
}

/* These 9 MiB do not fit into the kernel's buffers. */
Test(net_flood, reads_have_a_bound_of_memory_that_answers_do_not_share) {
    turns t = {.count = 0};
    start_host(&t.h, (vd_server_options){
                         .screen = screen_by_body, .read = host_handler, .read_max = 12 << 20});
    post_big(&t, '9', '?');
    while (atomic_load(&t.h.handled) < 1)
        sleep_ms(1);
    cr_expect(status_of(post_big(&t, '9', '?')) == 503);
    cr_expect(status_of(post_big(&t, '1', '?')) == 200);
    cr_expect(status_of(post_big(&t, '9', 'a')) == 200);
    raw_reset(&t.raw[0]);
    t.raw[0] = t.raw[--t.count];
    int status = 0;
    for (int tries = 0; status != 200 && tries < 50; tries++) { /* until the reset is noticed */
        sleep_ms(VD_NET_SWEEP_MS);
        t.count -= tries > 0;
        if (tries > 0)
            raw_close(&t.raw[t.count]);
        status = status_of(post_big(&t, '9', '?'));
    }
    cr_expect(status == 200);
    end(&t);
}

/* Such a read may be the proof of a large program. Its 9 MiB do not fit into the kernel's
 * buffers. */
Test(net_flood, a_read_that_is_larger_than_their_bound_goes_out_alone) {
    turns t = {.count = 0};
    start_host(&t.h, (vd_server_options){.screen = screen_by_body,
                                         .read = host_handler,
                                         .read_max = 4 << 20,
                                         .held_max = 8 << 20});
    cr_expect(status_of(post_big(&t, '9', 'a')) == 500, "it is no read");
    cr_expect(status_of(post_big(&t, '9', '?')) == 200);
    cr_expect(status_of(post_big(&t, '9', '?')) == 503);
    cr_expect(status_of(post_big(&t, '1', '?')) == 503);
    cr_expect(status_of(post_big(&t, '1', 'a')) == 200);
    end(&t);
}
