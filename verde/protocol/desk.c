/* Answers that take long, in a thread of their own: whoever asks is told to ask again. The same
 * question asked again finds its answer, and no question waits for another one to be told so.
 * PROTOCOL.md section 8.4. */
#include "verde/protocol/desk.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/inquiry.h"

typedef enum { FREE = 0, WAITING, WORKING, DONE } place_state;

/* A question that was asked, and its answer once it is there. */
typedef struct {
    place_state state;
    vd_inquiry inquiry; /* its `err` is the one below */
    vd_status status;
    vd_err err;
    vd_buf note;
    int failures, asks;
    uint64_t asked, began; /* when last, by the desk's count */
} place;

struct vd_desk {
    const vd_provider *provider;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool started, quit;
    uint64_t now; /* counts what happens */
    place place[VD_DESK_MAX];
};

/* ---- the worker ---- */

static bool same_referee(const place *a, const place *b) {
    return memcmp(&a->inquiry.assignment.referee, &b->inquiry.assignment.referee,
                  sizeof(vd_public_key)) == 0;
}

/* When this referee's turn was last, so that none gets more by asking more. */
static uint64_t last_turn(const vd_desk *d, const place *p) {
    uint64_t last = 0;
    for (int i = 0; i < VD_DESK_MAX; i++)
        if (d->place[i].state != FREE && d->place[i].began > last && same_referee(p, &d->place[i]))
            last = d->place[i].began;
    return last;
}

/* The next waiting question: of the referee whose last turn is longest ago. */
static place *next(vd_desk *d) {
    place *best = NULL;
    uint64_t turn = 0;
    for (int i = 0; i < VD_DESK_MAX; i++) {
        place *p = &d->place[i];
        if (p->state != WAITING)
            continue;
        const uint64_t last = last_turn(d, p);
        if (!best || last < turn) {
            best = p;
            turn = last;
        }
    }
    return best;
}

static void *work(void *user) {
    vd_desk *d = user;
    pthread_mutex_lock(&d->lock);
    while (!d->quit) {
        place *p = next(d);
        if (!p) {
            pthread_cond_wait(&d->work, &d->lock);
            continue;
        }
        p->state = WORKING;
        p->began = ++d->now;
        pthread_mutex_unlock(&d->lock);
        const vd_status status = vd_inquiry_answer(&p->inquiry, &p->note);
        pthread_mutex_lock(&d->lock);
        p->status = status;
        p->failures += status != VD_OK;
        p->state = DONE;
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static vd_status start(vd_desk *d, vd_err *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&d->thread, NULL, work, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return vd_fail(err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error));
    d->started = true;
    return VD_OK;
}

vd_status vd_desk_create(const vd_provider *provider, vd_desk **out, vd_err *err) {
    vd_desk *d = calloc(1, sizeof *d);
    if (!d)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    d->provider = provider;
    if (pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    }
    if (pthread_cond_init(&d->work, NULL) != 0) {
        pthread_mutex_destroy(&d->lock);
        free(d);
        return vd_fail(err, VD_ERR_LOCAL, "could not create a condition variable");
    }
    vd_status status = start(d, err);
    if (status == VD_OK)
        *out = d;
    else
        vd_desk_destroy(d);
    return status;
}

static void clear(place *p) {
    vd_inquiry_free(&p->inquiry);
    vd_buf_free(&p->note);
    *p = (place){.state = FREE};
}

static void stop_working(vd_desk *d) {
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    for (int i = 0; i < VD_DESK_MAX; i++) {
        const vd_source *s = &d->place[i].inquiry.source;
        if (d->place[i].state == WORKING && s->stop)
            s->stop(s->user);
    }
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
}

void vd_desk_destroy(vd_desk *d) {
    if (!d)
        return;
    if (d->started)
        stop_working(d);
    for (int i = 0; i < VD_DESK_MAX; i++)
        clear(&d->place[i]);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- asking ---- */

static place *find(vd_desk *d, const vd_hash *question) {
    for (int i = 0; i < VD_DESK_MAX; i++)
        if (d->place[i].state != FREE &&
            vd_hash_equal(&d->place[i].inquiry.question_hash, question))
            return &d->place[i];
    return NULL;
}

static int places_of(const vd_desk *d, const place *p) {
    int count = 0;
    for (int i = 0; i < VD_DESK_MAX; i++)
        count += d->place[i].state != FREE && same_referee(p, &d->place[i]);
    return count;
}

static bool goes_before(const vd_desk *d, const place *a, const place *b) {
    if (a->state == FREE || b->state == FREE)
        return b->state != FREE;
    const int of_a = places_of(d, a), of_b = places_of(d, b);
    if (of_a != of_b)
        return of_a > of_b;
    if (a->state != b->state)
        return a->state == DONE;
    return a->asked < b->asked;
}

/* A free place, or one of the referee who has most, so that nobody's many questions cost another
 * one its answer: what was answered, or else waits, and was asked for longest ago. Who still wants
 * an answer asks again. */
static place *make_room(vd_desk *d) {
    place *best = NULL;
    for (int i = 0; i < VD_DESK_MAX; i++)
        if (d->place[i].state != WORKING && (!best || goes_before(d, &d->place[i], best)))
            best = &d->place[i];
    clear(best);
    return best;
}

/* Answers are kept for who did not receive them, as far as memory goes. */
static void keep_few(vd_desk *d, const place *but) {
    size_t bytes = 0;
    for (int i = 0; i < VD_DESK_MAX; i++)
        bytes += d->place[i].state == DONE ? d->place[i].note.size : 0;
    while (bytes > VD_DESK_BYTES) {
        place *oldest = NULL;
        for (int i = 0; i < VD_DESK_MAX; i++) {
            place *p = &d->place[i];
            if (p != but && p->state == DONE && p->note.size &&
                (!oldest || p->asked < oldest->asked))
                oldest = p;
        }
        if (!oldest)
            return;
        bytes -= oldest->note.size;
        clear(oldest);
    }
}

static void put(vd_desk *d, place *p) {
    p->state = WAITING;
    p->inquiry.err = &p->err;
    p->note.size = 0;
    pthread_cond_signal(&d->work);
}

/* Takes the inquiry if the question is a new one. */
static place *seat(vd_desk *d, vd_inquiry *inquiry) {
    place *p = find(d, &inquiry->question_hash);
    if (!p) {
        p = make_room(d);
        p->inquiry = *inquiry;
        *inquiry = (vd_inquiry){.err = NULL};
        put(d, p);
    }
    p->asked = ++d->now;
    p->asks += p->asks < 2;
    return p;
}

static void look(const vd_desk *d, const place *p, vd_working *working) {
    const vd_source *s = &p->inquiry.source;
    *working = (vd_working){.working = p->failures < 2, .fresh = p->asks == 1};
    for (int i = 0; i < VD_DESK_MAX; i++)
        working->waits |= &d->place[i] != p && d->place[i].state == WORKING;
    if (p->state == WORKING && s->progress)
        s->progress(s->user, &working->done, &working->of);
}

static vd_status say_working(const vd_working *w, vd_err *err) {
    if (!w->working)
        return vd_fail(err, VD_ERR_IO, "trying again what has failed");
    if (w->waits)
        return vd_fail(err, VD_ERR_IO, "working on another question first");
    if (w->of > 0)
        return vd_fail(err, VD_ERR_IO, "computing again: step %lld of %lld", (long long)w->done,
                       (long long)w->of);
    return vd_fail(err, VD_ERR_IO, "computing again");
}

/* A failure is told once; then it is tried again. */
static vd_status take(vd_desk *d, place *p, vd_buf *out, vd_working *working, vd_err *err) {
    if (p->state != DONE) {
        look(d, p, working);
        return say_working(working, err);
    }
    if (p->status != VD_OK) {
        const vd_status status = vd_fail(err, p->status, "%s", p->err.text);
        put(d, p);
        return status;
    }
    vd_put(out, p->note.data, p->note.size);
    keep_few(d, p);
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_desk_answer(vd_desk *d, const void *request, size_t size, vd_buf *out,
                         vd_working *working, vd_err *err) {
    vd_inquiry inquiry;
    *working = (vd_working){.working = false};
    vd_status status = vd_inquiry_open(d->provider, request, size, &inquiry, err);
    working->working = status == VD_ERR_IO; /* a second run */
    if (status == VD_OK && vd_inquiry_is_quick(&inquiry)) {
        status = vd_inquiry_answer(&inquiry, out);
    } else if (status == VD_OK) {
        pthread_mutex_lock(&d->lock);
        status = take(d, seat(d, &inquiry), out, working, err);
        pthread_mutex_unlock(&d->lock);
    }
    vd_inquiry_free(&inquiry);
    return status;
}
