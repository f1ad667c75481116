/* Handing the job to all providers at once, and watching them. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "verde/cli/delegation.h"
#include "verde/cli/stop.h"

enum { POLL_MIN_MS = 100, POLL_MAX_MS = 1000, DRAW_MS = 200, TELL_S = 5, RATE_AFTER_S = 1 };

static void sleep_for(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- one provider, on its thread ---- */

static void enter(vd_order *order, vd_order_state state, const char *why) {
    vd_delegation *d = order->delegation;
    pthread_mutex_lock(&d->lock);
    order->state = state;
    snprintf(order->why, sizeof order->why, "%s", why);
    pthread_mutex_unlock(&d->lock);
}

typedef struct {
    vd_order *order;
    uint64_t before; /* bytes of the parcels before this one */
    bool told;       /* it is known how much of this one was there */
} sending;

static void count_sent(void *user, uint64_t have) {
    sending *s = user;
    vd_delegation *d = s->order->delegation;
    pthread_mutex_lock(&d->lock);
    s->order->sent = s->before + have;
    s->order->found += s->told ? 0 : have; /* it is told of what is there, first */
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
    int wait_ms = POLL_MIN_MS; /* a job of a second is not to take two */
    for (;;) {
        vd_status status = vd_remote_ask_job(remote, d->id, &job, err);
        if (status != VD_OK)
            return status;
        pthread_mutex_lock(&d->lock);
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
                              .stop = &d->stop};
    vd_status status = upload_all(order, &remote, &err);
    if (status == VD_OK)
        status = submit(order, &remote, &err);
    if (status == VD_OK) {
        enter(order, VD_ORDER_RUNS, "");
        status = follow(order, &remote, &err);
    }
    if (status == VD_OK || !atomic_load(&d->stop)) /* whoever is stopped has not failed */
        enter(order, status == VD_OK ? VD_ORDER_DONE : VD_ORDER_FAILED, err.text);
    return NULL;
}

/* ---- telling ---- */

static void describe_run(const vd_remote_job *job, char *text, size_t size) {
    char left[32];
    int at = 0;
    if (job->state == VD_REMOTE_QUEUED) {
        snprintf(text, size, "waits for its turn");
        return;
    }
    if (job->prompts)
        at = snprintf(text, size, "prompts done %lld/%lld  ", (long long)job->prompts_done,
                      (long long)job->prompts);
    at += snprintf(text + at, size - (size_t)at, "step %lld/%lld", (long long)job->step,
                   (long long)job->steps);
    if (!isnan(job->loss))
        at += snprintf(text + at, size - (size_t)at, "  loss %.4f", job->loss);
    if (!isnan(job->rate))
        at += snprintf(text + at, size - (size_t)at, "  %.3g steps/s", job->rate);
    if (!isnan(job->seconds_left)) {
        vd_print_seconds(job->seconds_left, left);
        snprintf(text + at, size - (size_t)at, "  %s left", left);
    }
}

/* Of what this command has sent; what was there before came at no rate. */
static void describe_upload(const vd_delegation *d, const vd_order *order, char *text,
                            size_t size) {
    char sent[32], total[32], rate[32], left[32];
    const double seconds = vd_seconds() - order->since;
    const double each = (double)(order->sent - order->found) / seconds;
    vd_print_size(order->sent, sent);
    vd_print_size(d->parcel_bytes, total);
    const int at = snprintf(text, size, "upload: %s of %s", sent, total);
    if (order->since == 0 || seconds < RATE_AFTER_S || each < 1)
        return;
    vd_print_size((uint64_t)each, rate);
    vd_print_seconds((double)(d->parcel_bytes - order->sent) / each, left);
    snprintf(text + at, size - (size_t)at, "  %s/s  %s left", rate, left);
}

static void describe_order(const vd_delegation *d, const vd_order *order, char *text, size_t size) {
    char root[2 * VD_HASH_SIZE + 1];
    vd_hex(order->job.run_root.b, VD_HASH_SIZE, root);
    switch (order->state) {
    case VD_ORDER_UPLOADS: describe_upload(d, order, text, size); break;
    case VD_ORDER_RUNS: describe_run(&order->job, text, size); break;
    case VD_ORDER_DONE: snprintf(text, size, "done; it says run root %.16s...", root); break;
    case VD_ORDER_FAILED: snprintf(text, size, "%s", order->why); break;
    }
}

/* A line for each provider: on a terminal in place, else one that has something new to say. */
static void draw(vd_delegation *d, vd_order_state told[], bool now) {
    char text[700];
    if (vd_is_terminal() && d->drawn)
        fprintf(stderr, "\033[%dA", d->drawn);
    for (uint32_t i = 0; i < d->o->urls; i++) {
        const vd_order *order = &d->order[i];
        describe_order(d, order, text, sizeof text);
        if (vd_is_terminal())
            fprintf(stderr, "\r\033[Kprovider %u  %.100s\n", i + 1, text);
        else if (order->state != told[i] || (now && order->state < VD_ORDER_DONE))
            fprintf(stderr, "provider %u  %s\n", i + 1, text);
        told[i] = order->state;
    }
    d->drawn = (int)d->o->urls;
    fflush(stderr);
}

uint32_t vd_delegation_left(const vd_delegation *d) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < d->o->urls; i++)
        left += d->order[i].state != VD_ORDER_FAILED;
    return left;
}

/* With fewer than two there is nothing to wait for, which may be hours. */
static bool all_ended(const vd_delegation *d) {
    bool ended = true;
    for (uint32_t i = 0; i < d->o->urls; i++)
        ended &= d->order[i].state >= VD_ORDER_DONE;
    return ended || vd_delegation_left(d) < 2;
}

static void watch(vd_delegation *d) {
    vd_order_state told[VD_DOWNLOAD_PROVIDERS_MAX];
    double last = vd_seconds() - TELL_S;
    bool ended = false;
    for (uint32_t i = 0; i < d->o->urls; i++)
        told[i] = VD_ORDER_UPLOADS;
    while (!ended) {
        const bool now = vd_seconds() - last >= TELL_S;
        pthread_mutex_lock(&d->lock);
        ended = all_ended(d);
        draw(d, told, now);
        pthread_mutex_unlock(&d->lock);
        if (now)
            last = vd_seconds();
        if (!ended)
            sleep_for(DRAW_MS);
    }
}

/* ---- all of them ---- */

/* Signals are for the program's own thread. */
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

vd_status vd_delegation_order(vd_delegation *d) {
    vd_status status = VD_OK;
    if (pthread_mutex_init(&d->lock, NULL) != 0)
        return vd_fail(d->err, VD_ERR_LOCAL, "could not create a mutex");
    vd_stop_line("stopped; the providers go on with what they have, and so does `%s`",
                 vd_command_line());
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
