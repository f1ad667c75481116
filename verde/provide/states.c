/* This file loads what finished jobs offer for download, and keeps the last few. */
#include "verde/provide/states.h"

#include <string.h>

#include "verde/provide/internal.h"

vd_status vd_states_open(vd_states *states, vd_err *err) {
    *states = (vd_states){.used = 0};
    return pthread_mutex_init(&states->lock, NULL) == 0
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
}

static void forget(vd_offered_job *place) {
    vd_offer_destroy(place->offer);
    *place = (vd_offered_job){.used = 0};
}

void vd_states_close(vd_states *states) {
    for (int i = 0; i < VD_OFFERS_MAX; i++)
        forget(&states->place[i]);
    pthread_mutex_destroy(&states->lock);
}

void vd_states_forget(vd_states *states, const char *job) {
    pthread_mutex_lock(&states->lock);
    for (int i = 0; i < VD_OFFERS_MAX; i++)
        if (strcmp(states->place[i].job, job) == 0)
            forget(&states->place[i]);
    pthread_mutex_unlock(&states->lock);
}

/* Loads an offer, which the job's child has made: its hashes are ready. */
static vd_status load_offer(const vd_daemon *daemon, const char *job, vd_offer **out, vd_err *err) {
    char path[1200], dir[1200];
    vd_job_path(daemon, job, VD_JOB_OFFER, path);
    vd_job_path(daemon, job, VD_JOB_RUN, dir);
    return vd_offer_load(path, dir, out, err);
}

/* Returns NULL if there is no offer; *err says why. */
static const vd_offer *find_offer(vd_states *states, const vd_daemon *daemon, const char *job,
                                  vd_err *err) {
    vd_offered_job *oldest = &states->place[0];
    for (int i = 0; i < VD_OFFERS_MAX; i++) {
        vd_offered_job *place = &states->place[i];
        if (strcmp(place->job, job) == 0) {
            place->used = ++states->used;
            return place->offer;
        }
        if (place->used < oldest->used)
            oldest = place;
    }
    forget(oldest);
    if (load_offer(daemon, job, &oldest->offer, err) != VD_OK)
        return NULL;
    snprintf(oldest->job, VD_ID_SIZE, "%s", job);
    oldest->used = ++states->used;
    return oldest->offer;
}

void vd_states_answer(vd_states *states, vd_daemon *daemon, const char *job, const char *rest,
                      vd_response *response) {
    vd_err err = {0};
    pthread_mutex_lock(&states->lock);
    const vd_offer *offer = find_offer(states, daemon, job, &err);
    if (offer)
        vd_offer_answer(offer, rest, response);
    else
        vd_reply_trouble(daemon, response, &err);
    pthread_mutex_unlock(&states->lock);
}
