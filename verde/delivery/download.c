/* Creates and destroys downloads, and keeps track of each provider. */
#include "verde/delivery/download_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/delivery/signed.h"

/* ---- create, destroy ---- */

static vd_status make_connections(vd_download *d, vd_err *err) {
    const vd_download_options *o = &d->options;
    for (uint32_t p = 0; p < o->provider_count; p++)
        for (int i = 0; i < o->connections; i++) {
            vd_connection *c = &d->connection[d->connection_count];
            c->download = d;
            c->provider = p;
            vd_status status = vd_client_create(o->ca, &c->client, err);
            if (status != VD_OK)
                return status;
            d->connection_count++;
        }
    return VD_OK;
}

static bool make_lock(vd_download *d) {
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    const bool made = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(&d->changed, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    if (made && pthread_mutex_init(&d->lock, NULL) == 0)
        return true;
    if (made)
        pthread_cond_destroy(&d->changed);
    return false;
}

vd_status vd_download_create(const vd_download_options *options, vd_download **out, vd_err *err) {
    *out = NULL;
    if (options->provider_count < 1 || options->provider_count > VD_DOWNLOAD_PROVIDERS_MAX ||
        options->connections > VD_DOWNLOAD_CONNECTIONS_MAX)
        return vd_fail(err, VD_ERR_USAGE, "1 to %d providers, and at most %d connections to each",
                       VD_DOWNLOAD_PROVIDERS_MAX, VD_DOWNLOAD_CONNECTIONS_MAX);
    vd_download *d = calloc(1, sizeof *d);
    if (!d || !make_lock(d)) {
        free(d);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    d->options = *options;
    if (d->options.connections <= 0)
        d->options.connections = VD_DOWNLOAD_CONNECTIONS;
    if (d->options.patience_s <= 0)
        d->options.patience_s = VD_DOWNLOAD_PATIENCE_S;
    for (uint32_t p = 0; p < options->provider_count; p++)
        snprintf(d->provider[p].name, sizeof d->provider[p].name, "provider %u (%s)",
                 options->number ? options->number[p] : p + 1, options->provider[p].url);
    vd_status status = make_connections(d, err);
    if (status == VD_OK)
        *out = d;
    else
        vd_download_destroy(d);
    return status;
}

void vd_download_destroy(vd_download *d) {
    if (!d)
        return;
    for (uint32_t i = 0; i < d->connection_count; i++)
        vd_client_destroy(d->connection[i].client);
    vd_pieces_free(d);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

const char *vd_download_dropped(const vd_download *d, uint32_t provider) {
    return d->provider[provider].dropped ? d->provider[provider].why : NULL;
}

uint64_t vd_download_received(const vd_download *d, uint32_t provider) {
    return d->provider[provider].received;
}

/* ---- providers ---- */

static void download_tell(vd_download *d, const char *line) {
    if (d->options.tell)
        d->options.tell(d->options.user, line);
}

void vd_download_heard(vd_download *d, uint32_t provider) {
    pthread_mutex_lock(&d->lock);
    vd_download_provider *p = &d->provider[provider];
    p->trouble = 0;
    p->last_why[0] = 0;
    pthread_mutex_unlock(&d->lock);
}

void vd_download_drop(vd_download *d, uint32_t provider, bool wrong, const char *why) {
    char line[1200];
    pthread_mutex_lock(&d->lock);
    vd_download_provider *p = &d->provider[provider];
    if (!p->dropped) {
        p->dropped = true;
        p->wrong = wrong;
        snprintf(p->why, sizeof p->why, "%s", why);
        snprintf(line, sizeof line, "%s is dropped: %s", p->name, p->why);
        download_tell(d, line);
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void vd_download_fail(vd_download *d, const vd_err *err) {
    pthread_mutex_lock(&d->lock);
    if (d->err.status == VD_OK)
        d->err = *err;
    atomic_store(&d->stop, true);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

struct timespec vd_download_in(int ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long ns = until.tv_nsec + ms % 1000 * 1000000L;
    until.tv_sec += ms / 1000 + ns / 1000000000L;
    until.tv_nsec = ns % 1000000000L;
    return until;
}

void vd_download_pause(vd_download *d, int ms) {
    const struct timespec until = vd_download_in(ms);
    pthread_mutex_lock(&d->lock);
    while (!atomic_load(&d->stop) &&
           pthread_cond_timedwait(&d->changed, &d->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&d->lock);
}

vd_status vd_download_nobody(const vd_download *d, const char *what, vd_err *err) {
    const vd_download_provider *said = &d->provider[0];
    for (uint32_t p = 0; p < d->options.provider_count; p++)
        if (d->provider[p].wrong && !said->wrong)
            said = &d->provider[p];
    return vd_fail(err, said->wrong ? VD_ERR_PEER : VD_ERR_IO, "no provider gives %s; %s: %s", what,
                   said->name, said->why);
}

/* ---- silence ---- */

static void begin_asking(vd_download *d, uint32_t provider) {
    pthread_mutex_lock(&d->lock);
    vd_download_provider *p = &d->provider[provider];
    if (p->asking++ == 0 && p->trouble == 0)
        p->silent = vd_seconds();
    pthread_mutex_unlock(&d->lock);
}

static void end_asking(vd_download *d, uint32_t provider, bool answered) {
    pthread_mutex_lock(&d->lock);
    vd_download_provider *p = &d->provider[provider];
    p->asking--;
    if (answered) {
        p->silent = vd_seconds();
        p->told = 0;
    }
    pthread_mutex_unlock(&d->lock);
}

/* Returns the seconds of silence. After trouble only an answer ends it: bytes that are sent again
 * may not arrive anywhere. */
static double silent_for(vd_download_provider *p) {
    const uint64_t moved = atomic_load(&p->moved);
    if (p->dropped || (p->asking == 0 && p->trouble == 0))
        return 0;
    if (moved != p->moved_then && p->trouble == 0)
        p->silent = vd_seconds();
    p->moved_then = moved;
    return vd_seconds() - p->silent;
}

void vd_download_tell_silence(vd_download *d) {
    char line[900], since[32];
    for (uint32_t i = 0; i < d->options.provider_count; i++) {
        vd_download_provider *p = &d->provider[i];
        const double seconds = silent_for(p);
        if (seconds < VD_DOWNLOAD_SILENT_S ||
            (p->told > 0 && vd_seconds() - p->told < VD_DOWNLOAD_TELL_S))
            continue;
        p->told = vd_seconds();
        vd_print_seconds(seconds, since);
        snprintf(line, sizeof line, "%s: no answer for %s%s%s", p->name, since,
                 p->last_why[0] ? ": " : "", p->last_why);
        download_tell(d, line);
    }
}

/* ---- one question ---- */

static vd_got troubled(vd_download *d, uint32_t provider, const char *why) {
    char line[1200];
    pthread_mutex_lock(&d->lock);
    vd_download_provider *p = &d->provider[provider];
    const bool first = p->trouble == 0;
    if (first)
        p->trouble = vd_seconds();
    snprintf(p->last_why, sizeof p->last_why, "%.299s", why);
    const bool patient = vd_seconds() - p->trouble < d->options.patience_s;
    if (first && !p->dropped) {
        snprintf(line, sizeof line, "%s: %s; asking again for up to %d s", p->name, why,
                 d->options.patience_s);
        download_tell(d, line);
    }
    pthread_mutex_unlock(&d->lock);
    if (!patient)
        vd_download_drop(d, provider, false, why);
    return patient ? VD_TROUBLE : VD_DROPPED;
}

vd_got vd_download_ask(vd_download *d, uint32_t provider, vd_client *client, const char *rest,
                       size_t answer_max, vd_answer *answer) {
    char path[VD_NET_PATH_MAX + 1], why[512];
    snprintf(path, sizeof path, "/v1/jobs/%.200s%s", d->options.job, rest);
    const vd_exchange exchange = {.to = &d->options.provider[provider],
                                  .path = path,
                                  .deadline_ms = VD_DOWNLOAD_DEADLINE_MS,
                                  .answer_max = answer_max,
                                  .stop = &d->stop,
                                  .moved = &d->provider[provider].moved};
    begin_asking(d, provider);
    vd_signed_ask(client, d->options.key, &exchange, answer);
    end_asking(d, provider, answer->err.status == VD_OK);
    if (answer->err.status == VD_OK)
        return VD_GOT;
    if (atomic_load(&d->stop))
        return VD_FAILED;
    if (answer->http_status)
        vd_answer_why(answer, why, sizeof why);
    else
        snprintf(why, sizeof why, "%s", vd_answer_reason(&exchange, answer));
    const bool refused = answer->http_status > 200 && answer->http_status < 500;
    const bool stranger = answer->other_key || answer->unknown_host || answer->untrusted;
    if (refused || stranger || answer->err.status == VD_ERR_PEER) {
        vd_download_drop(d, provider, !stranger, why);
        return VD_DROPPED;
    }
    if (answer->err.status != VD_ERR_LOCAL && answer->err.status != VD_ERR_USAGE)
        return troubled(d, provider, why);
    vd_download_fail(d, &answer->err);
    return VD_FAILED;
}
