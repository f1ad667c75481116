/* Sockets between ranks. Every call moves bytes in both directions, so that no two ranks wait for
 * each other to read. A call holds the lock, except while it sleeps. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/sockets.h"

enum { FRAME_BYTES_MAX = INT32_MAX, REST_NS = 100000 };
#define ENDS UINT32_MAX /* instead of a number: the sender has ended properly */

typedef struct {
    uint32_t number, size;
} head;

/* A message in transit, in either direction. */
typedef struct frame {
    struct frame *next;
    head h;
    size_t done; /* bytes of the header and then of the content that have been moved */
    uint8_t bytes[];
} frame;

typedef struct {
    int fd;
    frame *first_out, **last_out;
    head in; /* header of the message being received */
    size_t in_done;
    frame *coming;
    frame *first_in, **last_in; /* received and not yet taken */
    bool ended, failed;
} peer;

struct test_sockets {
    uint32_t rank, ranks;
    int patience_ms;
    peer *peer;
    struct pollfd *poll;
    double moved; /* vd_seconds() when any thread last moved bytes */
    pthread_mutex_t lock;
};

static frame *new_frame(uint32_t number, size_t size) {
    frame *f = malloc(sizeof *f + size);
    if (f)
        *f = (frame){.h = {number, (uint32_t)size}};
    return f;
}

static void free_frames(frame *f) {
    while (f) {
        frame *next = f->next;
        free(f);
        f = next;
    }
}

static bool would_block(ssize_t n) {
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* ---- sending ---- */

static bool is_out(const frame *f) {
    return f->done == sizeof f->h + f->h.size;
}

/* Sends what can be sent. Returns false if no more can be sent now. */
static bool push(peer *p) {
    frame *f = p->first_out;
    const bool of_head = f->done < sizeof f->h;
    const uint8_t *from =
        of_head ? (const uint8_t *)&f->h + f->done : f->bytes + (f->done - sizeof f->h);
    const size_t left = of_head ? sizeof f->h - f->done : sizeof f->h + f->h.size - f->done;
    const ssize_t n = send(p->fd, from, left, MSG_NOSIGNAL);
    p->failed |= n < 0 && !would_block(n) && !p->ended;
    f->done += n > 0 ? (size_t)n : 0;
    if (is_out(f)) {
        p->first_out = f->next;
        if (!f->next)
            p->last_out = &p->first_out;
        free(f);
    }
    return n > 0;
}

static void push_all(peer *p) {
    while (p->first_out && !p->failed && push(p))
        ;
}

/* ---- receiving ---- */

static void arrived(peer *p) {
    frame *f = p->coming;
    p->ended |= f->h.number == ENDS;
    *p->last_in = f;
    p->last_in = &f->next;
    p->coming = NULL;
    p->in_done = 0;
}

static void take_head(peer *p) {
    if (p->in.size > FRAME_BYTES_MAX || p->ended ||
        !(p->coming = new_frame(p->in.number, p->in.size)))
        p->failed = true;
    else if (p->in.size == 0)
        arrived(p);
}

static bool pull(peer *p) {
    frame *f = p->coming;
    uint8_t *to = f ? f->bytes + f->done : (uint8_t *)&p->in + p->in_done;
    const size_t left = f ? f->h.size - f->done : sizeof p->in - p->in_done;
    const ssize_t n = recv(p->fd, to, left, 0);
    /* A rank that has ended may leave messages unread: that is not a failure. */
    p->failed |= !p->ended && n <= 0 && !would_block(n);
    if (n <= 0)
        return false;
    if (f) {
        f->done += (size_t)n;
        if (f->done == f->h.size)
            arrived(p);
        return true;
    }
    p->in_done += (size_t)n;
    if (p->in_done == sizeof p->in)
        take_head(p);
    return true;
}

static void pull_all(peer *p) {
    while (!p->failed && pull(p))
        ;
}

/* ---- both directions ---- */

static void set_poll(test_sockets *s) {
    for (uint32_t r = 0; r < s->ranks; r++) {
        const peer *p = &s->peer[r];
        const bool open = r != s->rank && !p->failed && !p->ended;
        s->poll[r] = (struct pollfd){.fd = open ? p->fd : -1};
        s->poll[r].events = (short)(POLLIN | (p->first_out ? POLLOUT : 0));
    }
}

static void rest(test_sockets *s) {
    pthread_mutex_unlock(&s->lock);
    nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    pthread_mutex_lock(&s->lock);
}

static vd_status say_ended(const test_sockets *s, uint32_t rank, vd_err *err) {
    return vd_fail(err, VD_ERR_IO, "process %u of %u ended before the others", rank, s->ranks);
}

/* Moves what can be moved, or else sleeps. VD_ERR_IO: a rank has failed, or nothing has moved for
 * patience_ms (-1: no limit). This thread has waited since `since`. */
static vd_status move(test_sockets *s, uint32_t waits_for, int patience_ms, double since,
                      vd_err *err) {
    const double still = since > s->moved ? since : s->moved;
    set_poll(s);
    const int ready = poll(s->poll, s->ranks, 0);
    if (ready < 0 && errno != EINTR)
        return vd_fail(err, VD_ERR_LOCAL, "poll: %s", strerror(errno));
    if (ready <= 0 && patience_ms >= 0 && 1e3 * (vd_seconds() - still) > patience_ms)
        return vd_fail(err, VD_ERR_IO, "process %u of %u: nothing came of it in %d ms", waits_for,
                       s->ranks, s->patience_ms);
    if (ready <= 0) {
        rest(s);
        return VD_OK;
    }
    s->moved = vd_seconds();
    for (uint32_t r = 0; r < s->ranks; r++) {
        if (s->poll[r].fd < 0 || s->poll[r].revents == 0)
            continue;
        push_all(&s->peer[r]);
        pull_all(&s->peer[r]);
        if (s->peer[r].failed)
            return say_ended(s, r, err);
    }
    return VD_OK;
}

static vd_status put(test_sockets *s, uint32_t to, uint32_t number, const void *data, size_t size,
                     vd_err *err) {
    peer *p = &s->peer[to];
    frame *f = size > FRAME_BYTES_MAX ? NULL : new_frame(number, size);
    if (!f)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for a message of %zu bytes, at most %d", size,
                       FRAME_BYTES_MAX);
    if (size > 0)
        memcpy(f->bytes, data, size);
    *p->last_out = f;
    p->last_out = &f->next;
    push_all(p);
    return p->failed ? say_ended(s, to, err) : VD_OK;
}

static vd_status sockets_send(void *user, uint32_t to, uint32_t number, const void *data,
                              size_t size, vd_err *err) {
    test_sockets *s = user;
    pthread_mutex_lock(&s->lock);
    const vd_status status = put(s, to, number, data, size, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* Waits until no message to a rank is in transit. Another thread may have found that the rank
 * failed. */
static vd_status flush_to(test_sockets *s, uint32_t to, vd_err *err) {
    const peer *p = &s->peer[to];
    const double since = vd_seconds();
    vd_status status = VD_OK;
    while (status == VD_OK && p->first_out && !p->ended)
        status = p->failed ? say_ended(s, to, err) : move(s, to, s->patience_ms, since, err);
    return status;
}

static vd_status sockets_give(void *user, uint32_t to, uint32_t number, const void *data,
                              size_t size, vd_err *err) {
    test_sockets *s = user;
    pthread_mutex_lock(&s->lock);
    vd_status status = put(s, to, number, data, size, err);
    if (status == VD_OK)
        status = flush_to(s, to, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static frame **find(peer *p, uint32_t number) {
    frame **at = &p->first_in;
    while (*at && (*at)->h.number != number)
        at = &(*at)->next;
    return at;
}

/* Takes a message from those received; NULL: it is not there yet. */
static frame *taken(peer *p, uint32_t number) {
    frame **at = find(p, number);
    frame *f = *at;
    if (!f)
        return NULL;
    *at = f->next;
    if (p->last_in == &f->next)
        p->last_in = at;
    return f;
}

static vd_status wait_for(test_sockets *s, uint32_t from, uint32_t number, int patience_ms,
                          vd_err *err) {
    const peer *p = &s->peer[from];
    const double since = vd_seconds();
    vd_status status = VD_OK;
    while (status == VD_OK && !*find(&s->peer[from], number))
        status = p->ended || p->failed ? say_ended(s, from, err)
                                       : move(s, from, patience_ms, since, err);
    return status;
}

static vd_status sockets_await(void *user, uint32_t from, uint32_t number, vd_err *err) {
    test_sockets *s = user;
    pthread_mutex_lock(&s->lock);
    const vd_status status = wait_for(s, from, number, -1, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static vd_status sockets_receive(void *user, uint32_t from, uint32_t number, void *data,
                                 size_t size, vd_err *err) {
    test_sockets *s = user;
    pthread_mutex_lock(&s->lock);
    const vd_status status = wait_for(s, from, number, s->patience_ms, err);
    frame *f = status == VD_OK ? taken(&s->peer[from], number) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (!f)
        return status;
    const uint32_t got = f->h.size;
    if (got == size && size > 0)
        memcpy(data, f->bytes, size);
    free(f);
    return got == size ? VD_OK
                       : vd_fail(err, VD_ERR_PEER,
                                 "process %u of %u sent %u bytes as message %u, expected %zu", from,
                                 s->ranks, got, number, size);
}

static vd_status sockets_flush(void *user, vd_err *err) {
    test_sockets *s = user;
    vd_status status = VD_OK;
    pthread_mutex_lock(&s->lock);
    for (uint32_t r = 0; status == VD_OK && r < s->ranks; r++)
        if (r != s->rank)
            status = flush_to(s, r, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static bool open_peer(peer *p, int fd) {
    const int flags = fcntl(fd, F_GETFL);
    p->fd = fd;
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

vd_status test_sockets_create(uint32_t rank, uint32_t ranks, const int *socket, int patience_ms,
                              test_sockets **out, vd_err *err) {
    test_sockets *s = calloc(1, sizeof *s);
    *out = NULL;
    if (s) {
        *s = (test_sockets){.rank = rank, .ranks = ranks, .patience_ms = patience_ms};
        s->peer = calloc(ranks, sizeof *s->peer);
        s->poll = calloc(ranks, sizeof *s->poll);
        pthread_mutex_init(&s->lock, NULL);
    }
    vd_status status =
        s && s->peer && s->poll ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t r = 0; status == VD_OK && r < ranks; r++) {
        peer *p = &s->peer[r];
        p->fd = -1;
        p->last_out = &p->first_out;
        p->last_in = &p->first_in;
    }
    for (uint32_t r = 0; status == VD_OK && r < ranks; r++)
        if (r != rank && !open_peer(&s->peer[r], socket[r]))
            status = vd_fail(err, VD_ERR_LOCAL, "socket to process %u: %s", r, strerror(errno));
    if (status == VD_OK)
        *out = s;
    else
        test_sockets_destroy(s, false);
    return status;
}

static void say_end(test_sockets *s) {
    vd_err ignored;
    for (uint32_t r = 0; r < s->ranks; r++)
        if (r != s->rank && sockets_send(s, r, ENDS, NULL, 0, &ignored) != VD_OK)
            s->peer[r].failed = true;
    if (sockets_flush(s, &ignored) != VD_OK) /* no rank is left to be told */
        return;
}

void test_sockets_destroy(test_sockets *s, bool whole) {
    if (!s)
        return;
    if (whole)
        say_end(s);
    for (uint32_t r = 0; s->peer && r < s->ranks; r++) {
        free_frames(s->peer[r].first_out);
        free_frames(s->peer[r].first_in);
        free(s->peer[r].coming);
        if (r != s->rank && s->peer[r].fd >= 0)
            close(s->peer[r].fd);
    }
    pthread_mutex_destroy(&s->lock);
    free(s->peer);
    free(s->poll);
    free(s);
}

vd_transport test_sockets_transport(test_sockets *s) {
    return (vd_transport){s,
                          s->rank,
                          s->ranks,
                          sockets_send,
                          sockets_give,
                          sockets_receive,
                          sockets_await,
                          sockets_flush};
}
