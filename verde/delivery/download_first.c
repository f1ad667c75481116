/* Gets the first good answer of several providers. One that hangs costs only a few seconds: the
 * next one is then asked, too. */
#include <string.h>

#include "verde/base/thread.h"
#include "verde/delivery/download_internal.h"

typedef struct {
    vd_download *d;
    const vd_first *how;
    double start;
    pthread_mutex_t taking;                       /* held while an answer is examined */
    bool over;                                    /* protected by `taking`: one answer was good */
    uint32_t provider;                            /* the provider that gave it */
    bool gave_nothing[VD_DOWNLOAD_PROVIDERS_MAX]; /* asked in vain, or dropped; under d->lock */
    uint32_t asking;                              /* threads still asking; under d->lock */
} first_search;

typedef struct {
    first_search *search;
    uint32_t provider;
    pthread_t thread;
    bool started;
} first_asker;

/* Returns true if `p` is asked before `other`. Providers that were silent earlier come last. */
static bool comes_before(const vd_download *d, uint32_t p, uint32_t other) {
    const bool late = d->provider[p].late, other_late = d->provider[other].late;
    return late != other_late ? other_late : p < other;
}

/* Returns true when a provider's turn has come. The lock is held. */
static bool is_turn(const first_search *s, uint32_t provider) {
    int before = 0, silent = 0;
    for (uint32_t p = 0; p < s->d->options.provider_count; p++)
        if (comes_before(s->d, p, provider)) {
            before++;
            silent += !s->gave_nothing[p];
        }
    return silent == 0 || vd_seconds() - s->start >= (double)before * VD_DOWNLOAD_STEAL_S;
}

static void wait_for_turn(first_search *s, uint32_t provider) {
    vd_download *d = s->d;
    pthread_mutex_lock(&d->lock);
    while (!atomic_load(&d->stop) && !is_turn(s, provider)) {
        const struct timespec until = vd_download_in(VD_DOWNLOAD_RETRY_MS);
        pthread_cond_timedwait(&d->changed, &d->lock, &until);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Examines an answer. If it is good, all others stop. */
static vd_got take_first(first_search *s, uint32_t provider, vd_answer *answer) {
    pthread_mutex_lock(&s->taking);
    const vd_got got = s->over ? VD_FAILED : s->how->take(s->d, provider, answer, s->how->user);
    if (got == VD_GOT) {
        s->over = true;
        s->provider = provider;
        atomic_store(&s->d->stop, true);
    }
    pthread_mutex_unlock(&s->taking);
    return got;
}

static void *first_main(void *user) {
    first_asker *a = user;
    first_search *s = a->search;
    vd_download *d = s->d;
    vd_got got = VD_TROUBLE;
    wait_for_turn(s, a->provider);
    while (got == VD_TROUBLE && !atomic_load(&d->stop)) {
        vd_answer answer = {0};
        got = s->how->ask(d, a->provider, &answer, s->how->user);
        if (got == VD_GOT)
            got = take_first(s, a->provider, &answer);
        vd_answer_free(&answer);
        pthread_mutex_lock(&d->lock);
        s->gave_nothing[a->provider] = true;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        if (got == VD_TROUBLE)
            vd_download_pause(d, VD_DOWNLOAD_RETRY_MS);
    }
    pthread_mutex_lock(&d->lock);
    s->asking--;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void start_askers(first_search *s, first_asker *asker) {
    vd_download *d = s->d;
    for (uint32_t p = 0; p < d->options.provider_count; p++) {
        asker[p] = (first_asker){.search = s, .provider = p};
        s->gave_nothing[p] = vd_download_dropped(d, p) != NULL;
    }
    pthread_mutex_lock(&d->lock);
    for (uint32_t p = 0; p < d->options.provider_count; p++)
        if (!vd_download_dropped(d, p)) {
            asker[p].started = vd_thread_start(&asker[p].thread, first_main, &asker[p]) == 0;
            s->asking += asker[p].started;
        }
    pthread_mutex_unlock(&d->lock);
}

/* Waits until all have ended, and meanwhile reports who is silent. */
static void watch_askers(first_search *s) {
    vd_download *d = s->d;
    pthread_mutex_lock(&d->lock);
    while (s->asking > 0) {
        const struct timespec until = vd_download_in(VD_DOWNLOAD_RETRY_MS);
        pthread_cond_timedwait(&d->changed, &d->lock, &until);
        if (!atomic_load(&d->stop))
            vd_download_tell_silence(d);
    }
    pthread_mutex_unlock(&d->lock);
}

vd_got vd_download_first(vd_download *d, const vd_first *how, uint32_t *provider) {
    first_search s = {.d = d, .how = how, .start = vd_seconds()};
    first_asker asker[VD_DOWNLOAD_PROVIDERS_MAX] = {0};
    if (pthread_mutex_init(&s.taking, NULL) != 0)
        return VD_FAILED;
    start_askers(&s, asker);
    watch_askers(&s);
    for (uint32_t p = 0; p < d->options.provider_count; p++)
        if (asker[p].started)
            pthread_join(asker[p].thread, NULL);
    pthread_mutex_destroy(&s.taking);
    *provider = s.provider;
    for (uint32_t p = 0; s.over && p < d->options.provider_count; p++)
        d->provider[p].late |= comes_before(d, p, s.provider) && !vd_download_dropped(d, p);
    if (d->err.status == VD_OK)
        atomic_store(&d->stop, false);
    return s.over ? VD_GOT : d->err.status != VD_OK ? VD_FAILED : VD_DROPPED;
}
