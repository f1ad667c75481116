/* Hands the job to all providers at once, and watches them. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "verde/delegate/delegation.h"
#include "verde/tell/stop.h"

enum { POLL_MIN_MS = 100, POLL_MAX_MS = 1000, DRAW_MS = 200 };

static void sleep_for(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- one provider, on its thread ---- */

static void enter(vd_order *order, vd_order_state state, const char *why) {
    vd_delegation *d = order->delegation;
    pthread_mutex_lock(&d->lock);
    if (order->state != VD_ORDER_LATE) {
        order->state = state;
        order->took = vd_seconds() - d->start;
        order->new_at = vd_seconds();
        snprintf(order->why, sizeof order->why, "%s", why);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Records whether the provider answers. Called on the thread that asks it. */
static void hear(void *user, vd_remote_news news, const char *why) {
    vd_order *order = user;
    vd_silence *s = &order->silence;
    pthread_mutex_lock(&order->delegation->lock);
    if (news == VD_REMOTE_ANSWERED)
        *s = (vd_silence){0};
    else if (news == VD_REMOTE_TROUBLE)
        snprintf(s->why, sizeof s->why, "%s", why);
    else if (s->asked == 0)
        *s = (vd_silence){.asked = vd_seconds(), .moved_at = vd_seconds()};
    pthread_mutex_unlock(&order->delegation->lock);
}

typedef struct {
    vd_order *order;
    uint64_t before; /* bytes of all earlier parcels */
    bool told;       /* how much the provider had of this parcel is known */
} sending;

static void count_sent(void *user, uint64_t have) {
    sending *s = user;
    vd_delegation *d = s->order->delegation;
    pthread_mutex_lock(&d->lock);
    s->order->sent = s->before + have;
    s->order->found += s->told ? 0 : have; /* the first call states what it had before */
    s->told = true;
    if (s->order->since == 0)
        s->order->since = vd_seconds();
    pthread_mutex_unlock(&d->lock);
}

static vd_status upload_all(vd_order *order, const vd_remote *remote, vd_err *err) {
    const vd_delegation *d = order->delegation;
    sending s = {.order = order};
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < d->parcel_count && status == VD_OK; i++) {
        s.told = false;
        status = vd_remote_upload(remote, &d->parcel[i], count_sent, &s, err);
        s.before += d->parcel[i].size;
    }
    return status;
}

static vd_status submit(const vd_order *order, const vd_remote *remote, vd_err *err) {
    const vd_delegation *d = order->delegation;
    char id[VD_REMOTE_ID_SIZE];
    vd_status status = vd_remote_submit(remote, &d->submission, id, err);
    if (status == VD_OK && strcmp(id, d->id) != 0)
        status = vd_fail(err, VD_ERR_PEER, "%s: gives the job another name than its own",
                         d->endpoint[order->index].url);
    return status;
}

static vd_status follow(vd_order *order, const vd_remote *remote, vd_err *err) {
    vd_delegation *d = order->delegation;
    vd_remote_job job;
    int wait_ms = POLL_MIN_MS; /* short at first, for jobs that take a second */
    for (;;) {
        vd_status status = vd_remote_ask_job(remote, d->id, &job, err);
        if (status == VD_OK && !d->prompts && job.steps != d->loaded.program.steps)
            status =
                vd_fail(err, VD_ERR_PEER, "%s: says that the job has %lld steps, expected %lld",
                        d->endpoint[order->index].url, (long long)job.steps,
                        (long long)d->loaded.program.steps);
        if (status != VD_OK)
            return status;
        pthread_mutex_lock(&d->lock);
        if (job.state != order->job.state || job.step != order->job.step ||
            job.prompts_done != order->job.prompts_done)
            order->new_at = vd_seconds();
        order->job = job;
        pthread_mutex_unlock(&d->lock);
        if (job.state == VD_REMOTE_DONE)
            return VD_OK;
        if (job.state == VD_REMOTE_FAILED)
            return vd_fail(err, VD_ERR_PEER, "the job failed there: %s", job.error);
        if (job.state == VD_REMOTE_CANCELLED)
            return vd_fail(err, VD_ERR_PEER, "the job was cancelled there");
        sleep_for(wait_ms);
        wait_ms = 3 * wait_ms / 2 < POLL_MAX_MS ? 3 * wait_ms / 2 : POLL_MAX_MS;
    }
}

static void *order_main(void *user) {
    vd_order *order = user;
    vd_delegation *d = order->delegation;
    vd_err err = {0};
    const vd_remote remote = {.at = &d->endpoint[order->index],
                              .key = d->key,
                              .client = order->client,
                              .patience_s = (int)d->o->patience_s,
                              .stop = &d->stop,
                              .moved = &order->moved,
                              .news = hear,
                              .user = order};
    vd_status status = upload_all(order, &remote, &err);
    if (status == VD_OK)
        status = submit(order, &remote, &err);
    if (status == VD_OK) {
        enter(order, VD_ORDER_RUNS, "");
        status = follow(order, &remote, &err);
    }
    if (status == VD_OK || !atomic_load(&d->stop)) /* a stopped order has not failed */
        enter(order, status == VD_OK ? VD_ORDER_DONE : VD_ORDER_FAILED, err.text);
    return NULL;
}

/* ---- watching them ---- */

uint32_t vd_delegation_left(const vd_delegation *d) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < d->o->urls; i++)
        left += d->order[i].state <= VD_ORDER_DONE;
    return left;
}

/* Returns true if there is nobody left to wait for, or fewer than a result needs, which would make
 * a wait of hours useless. */
static bool all_ended(const vd_delegation *d) {
    bool ended = true;
    for (uint32_t i = 0; i < d->o->urls; i++)
        ended &= d->order[i].state >= VD_ORDER_DONE;
    return ended || vd_delegation_left(d) < vd_delegation_least(d);
}

static void watch(vd_delegation *d) {
    vd_delegation_lines lines = {0};
    bool ended = false;
    while (!ended) {
        pthread_mutex_lock(&d->lock);
        vd_delegation_end_wait(d);
        ended = all_ended(d);
        vd_delegation_tell(d, &lines);
        pthread_mutex_unlock(&d->lock);
        if (!ended)
            sleep_for(DRAW_MS);
    }
}

/* ---- all of them ---- */

/* Starts the thread of one provider. Signals are handled by the main thread. */
static vd_status start_order(vd_delegation *d, uint32_t i) {
    vd_order *order = &d->order[i];
    sigset_t all, before;
    order->delegation = d;
    order->index = i;
    vd_status status = vd_client_create(NULL, &order->client, d->err);
    if (status != VD_OK)
        return status;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&order->thread, NULL, order_main, order);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    order->started = error == 0;
    return error ? vd_fail(d->err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error))
                 : VD_OK;
}

/* Tells how to cancel the job: stopping this command does not stop the providers. */
static void tell_how_to_stop(const vd_delegation *d) {
    vd_buf cancel = {0};
    vd_printf(&cancel, "verde jobs cancel %.12s --key ", d->id);
    vd_put_word(&cancel, d->o->key_dir);
    for (uint32_t i = 0; i < d->o->urls; i++) {
        vd_printf(&cancel, " --provider ");
        vd_put_word(&cancel, d->o->url[i]);
    }
    vd_stop_line("stopped; the providers go on with what they have, and so does `%s`; to end the "
                 "job there: `%.*s`",
                 vd_command_line(), vd_buf_ok(&cancel) ? (int)cancel.size : 0,
                 (const char *)cancel.data);
    vd_buf_free(&cancel);
}

vd_status vd_delegation_order(vd_delegation *d) {
    vd_status status = VD_OK;
    if (pthread_mutex_init(&d->lock, NULL) != 0)
        return vd_fail(d->err, VD_ERR_LOCAL, "could not create a mutex");
    tell_how_to_stop(d);
    d->start = vd_seconds();
    for (uint32_t i = 0; i < d->o->urls && status == VD_OK; i++)
        status = start_order(d, i);
    if (status == VD_OK)
        watch(d);
    atomic_store(&d->stop, true);
    for (uint32_t i = 0; i < d->o->urls; i++) {
        if (d->order[i].started)
            pthread_join(d->order[i].thread, NULL);
        vd_client_destroy(d->order[i].client);
        d->order[i].client = NULL;
    }
    pthread_mutex_destroy(&d->lock);
    return status;
}
