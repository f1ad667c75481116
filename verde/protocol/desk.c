/* A thread computes the answers that take long, and the referee is told to ask again. Asking the
 * same question again fetches its answer. Every caller is replied to at once, even while another
 * question is computed. PROTOCOL.md section 8.4. */
#include "verde/protocol/desk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/desk_seats.h"
#include "verde/base/thread.h"

struct vd_desk {
    const vd_provider *provider;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool started, quit;
    vd_desk_seats seats;
};

/* ---- the worker ---- */

static void *work(void *user) {
    vd_desk *d = user;
    pthread_mutex_lock(&d->lock);
    while (!d->quit) {
        vd_desk_seat *p = vd_seats_next(&d->seats);
        if (!p) {
            pthread_cond_wait(&d->work, &d->lock);
            continue;
        }
        p->state = VD_SEAT_WORKING;
        p->charged = vd_seconds();
        pthread_mutex_unlock(&d->lock);
        const vd_status status = vd_inquiry_answer(&p->inquiry, &p->note);
        pthread_mutex_lock(&d->lock);
        vd_seats_charge(&d->seats, p, vd_seconds());
        p->status = status;
        p->failures += status != VD_OK;
        p->state = VD_SEAT_DONE;
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static vd_status start(vd_desk *d, vd_err *err) {
    const int error = vd_thread_start(&d->thread, work, d);
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

static void stop_working(vd_desk *d) {
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    for (int i = 0; i < VD_DESK_MAX; i++) {
        const vd_desk_seat *p = &d->seats.seat[i];
        const vd_source *s = &p->inquiry.source;
        if (p->state == VD_SEAT_WORKING && s->stop)
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
        vd_seat_clear(&d->seats.seat[i]);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- asking ---- */

static void put(vd_desk *d, vd_desk_seat *p) {
    p->state = VD_SEAT_WAITING;
    p->taken = false;
    p->inquiry.err = &p->err;
    p->note.size = 0;
    pthread_cond_signal(&d->work);
}

/* Returns the question's seat. A new one is moved in if there is room; NULL: there is none. */
static vd_desk_seat *seat(vd_desk *d, vd_inquiry *inquiry) {
    vd_desk_seat *p = vd_seats_find(&d->seats, &inquiry->question_hash);
    if (!p) {
        p = vd_seats_make_room(&d->seats, &inquiry->assignment.referee);
        if (!p)
            return NULL;
        p->inquiry = *inquiry;
        *inquiry = (vd_inquiry){.err = NULL};
        put(d, p);
    }
    vd_seats_note_asked(&d->seats, p);
    return p;
}

static void look(const vd_desk *d, const vd_desk_seat *p, vd_working *working) {
    const vd_source *s = &p->inquiry.source;
    *working = (vd_working){.working = p->failures < 2, .fresh = p->asks == 1};
    for (int i = 0; i < VD_DESK_MAX; i++)
        working->waits |= &d->seats.seat[i] != p && d->seats.seat[i].state == VD_SEAT_WORKING;
    if (p->state == VD_SEAT_WORKING && s->progress)
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

/* Fetches an answer. A failure is reported once, and the question is then queued again. */
static vd_status take(vd_desk *d, vd_desk_seat *p, vd_buf *out, vd_working *working, vd_err *err) {
    if (!p)
        return vd_fail(err, VD_ERR_IO, "all places are taken by referees that came before");
    if (p->state != VD_SEAT_DONE) {
        look(d, p, working);
        return say_working(working, err);
    }
    if (p->status != VD_OK) {
        const vd_status status = vd_fail(err, p->status, "%s", p->err.text);
        put(d, p);
        return status;
    }
    vd_put(out, p->note.data, p->note.size);
    vd_seats_note_taken(&d->seats, p);
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_desk_answer(vd_desk *d, const void *request, size_t size, vd_buf *out,
                         vd_working *working, vd_err *err) {
    vd_inquiry inquiry = {0};
    *working = (vd_working){.working = false};
    vd_status status = vd_inquiry_open(d->provider, request, size, &inquiry, err);
    working->working = status == VD_ERR_IO; /* a second run is not finished yet */
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

void vd_desk_settle(vd_desk *d, vd_desk_charge charge, void *user) {
    pthread_mutex_lock(&d->lock);
    vd_desk_seats *seats = &d->seats;
    for (int i = 0; i < VD_DESK_MAX; i++)
        if (seats->seat[i].state == VD_SEAT_WORKING)
            vd_seats_charge(seats, &seats->seat[i], vd_seconds());
    for (int i = 0; i < seats->account_count; i++)
        charge(user, &seats->account[i].referee, seats->account[i].seconds);
    seats->account_count = 0;
    pthread_mutex_unlock(&d->lock);
}
