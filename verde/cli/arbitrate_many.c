/* A tournament over the network: the sittings of one level at the same time, and what is told of
 * them. PROTOCOL.md section 5.8. */
#include <stdlib.h>
#include <string.h>

#include "verde/base/thread.h"
#include "verde/cli/arbitrate.h"
#include "verde/cli/story.h"

/* One sitting, in a thread of its own with a client of its own. */
typedef struct {
    vd_court court;
    char name[24];
    pthread_t thread;
    bool started;
    vd_status status;
    vd_err err;
} held;

static void *hold(void *user) {
    held *h = user;
    h->status = vd_court_sit(&h->court, h->court.said ? h->name : NULL);
    return NULL;
}

static vd_status start_holding(vd_arbitration *x, const vd_sitting *sitting, held *h) {
    char text[VD_SITTING_TEXT];
    vd_sitting_text(sitting, text);
    if (sitting->game)
        vd_tell(NULL, text);
    vd_court_open(&h->court, x, sitting->referee, sitting->provider,
                  sitting->game ? 2 : x->assignment.provider_count);
    h->court.client = NULL;
    h->court.err = &h->err;
    h->court.said = sitting->game > 0;
    snprintf(h->name, sizeof h->name, "game %u", sitting->game);
    h->status = vd_client_create(x->a->ca, &h->court.client, &h->err);
    if (h->status != VD_OK)
        return vd_fail(x->err, h->status, "%s", h->err.text);
    const int error = vd_thread_start(&h->thread, hold, h);
    h->started = error == 0;
    return h->started
               ? VD_OK
               : vd_fail(x->err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error));
}

/* The first trouble is told. */
static vd_status end_holding(vd_arbitration *x, held *h, vd_status status) {
    if (h->started)
        pthread_join(h->thread, NULL);
    vd_client_destroy(h->court.client);
    x->mistaken |= h->court.mistaken;
    x->cost.bytes_in += h->court.bytes_in;
    x->cost.bytes_out += h->court.bytes_out;
    if (status == VD_OK && h->status != VD_OK)
        status = vd_fail(x->err, h->status, "%s", h->err.text);
    return status;
}

static vd_status hold_all(vd_arbitration *x, const vd_sitting *sitting, size_t count) {
    held *all = calloc(count, sizeof *all);
    vd_status status = all ? VD_OK : vd_fail(x->err, VD_ERR_LOCAL, "out of memory");
    for (size_t i = 0; i < count && status == VD_OK; i++)
        status = start_holding(x, &sitting[i], &all[i]);
    for (size_t i = 0; i < count && all; i++)
        status = end_holding(x, &all[i], status);
    free(all);
    return status;
}

/* ---- who claims what ---- */

/* Claims are numbered in the order of the providers. */
static uint32_t number_of_claim(const vd_outcome *o, uint32_t provider) {
    uint32_t number = 0;
    for (uint32_t p = 0; p <= provider; p++) {
        bool first = o->party[p].claimed;
        for (uint32_t q = 0; q < p && first; q++)
            first = !(o->party[q].claimed &&
                      vd_hash_equal(&o->party[q].run_root, &o->party[p].run_root));
        number += first;
        if (o->party[p].claimed &&
            vd_hash_equal(&o->party[p].run_root, &o->party[provider].run_root))
            return number;
    }
    return number;
}

static void tell_claim(const vd_arbitration *x, const vd_outcome *o, uint32_t p) {
    char line[480], claim[12] = "-", root[2 * VD_HASH_SIZE + 1] = "-";
    if (o->party[p].claimed) {
        snprintf(claim, sizeof claim, "%u", number_of_claim(o, p));
        vd_hex(o->party[p].run_root.b, VD_HASH_SIZE, root);
    }
    snprintf(line, sizeof line, "%8u  %5s  %-8.8s  %-9s  %s", p + 1, claim, root,
             vd_standing_name(o->party[p].standing), x->endpoint[p].url);
    vd_tell(NULL, line);
}

static void tell_claims(const vd_arbitration *x) {
    const vd_outcome *o = vd_tournament_outcome(x->tournament);
    vd_tell(NULL, "provider  claim  run root  standing   address");
    for (uint32_t p = 0; p < o->party_count; p++)
        tell_claim(x, o, p);
}

/* ---- the course ---- */

vd_status vd_arbitrate_many(vd_arbitration *x) {
    vd_sitting sitting[VD_PARTIES_MAX];
    size_t count;
    vd_status status;
    for (int level = 0;
         (status = vd_tournament_next(x->tournament, sitting, &count, x->err)) == VD_OK; level++) {
        if (level == 1)
            tell_claims(x);
        if (count == 0 || (status = hold_all(x, sitting, count)) != VD_OK || x->mistaken)
            break;
    }
    return status;
}
