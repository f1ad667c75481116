/* Which of the roots that providers came to is accepted: that of who stands in every dispute. */
#include <string.h>
#include <unistd.h>

#include "verde/cli/delegation.h"
#include "verde/cli/story.h"

enum { NOBODY = -1 };

void vd_delegation_verdict(const vd_delegation *d, uint32_t i, char path[1100]) {
    if (i == 0)
        snprintf(path, 1100, "%.900s/verdict.json", d->o->out);
    else
        snprintf(path, 1100, "%.900s/verdict-%u.json", d->o->out, i + 1);
}

/* ---- one dispute ---- */

static bool is_between(const vd_delegation *d, const vd_verdict *v, uint32_t a, uint32_t b) {
    const vd_public_key *key = v->assignment.provider;
    return vd_hash_equal(&v->program, &d->program) && v->assignment.provider_count == 2 &&
           memcmp(&key[0], &d->endpoint[a].key, VD_KEY_SIZE) == 0 &&
           memcmp(&key[1], &d->endpoint[b].key, VD_KEY_SIZE) == 0;
}

/* A verdict of an earlier command, about these two. Only what is accepted is settled. */
static bool is_settled(const vd_delegation *d, const char *path, uint32_t a, uint32_t b,
                       vd_verdict *out) {
    char referee[2 * VD_KEY_SIZE + 1];
    vd_err unread = {0};
    vd_hex(d->client.b, VD_KEY_SIZE, referee);
    return access(path, F_OK) == 0 &&
           vd_load_verdict(path, referee, false, out, &unread) == VD_OK &&
           is_between(d, out, a, b) && out->outcome.accepted;
}

static vd_status arbitrate(vd_delegation *d, uint32_t a, uint32_t b, vd_verdict *out) {
    char path[1100], referee[2 * VD_KEY_SIZE + 1];
    const vd_delegate_options *o = d->o;
    vd_delegation_verdict(d, d->verdicts, path);
    if (!is_settled(d, path, a, b, out)) {
        const vd_arbitrate_arguments options = {.job = o->job,
                                                .verdict = path,
                                                .key_dir = o->key_dir,
                                                .url = {o->url[a], o->url[b]},
                                                .urls = 2,
                                                .question_s = o->question_s,
                                                .budget_s = o->budget_s,
                                                .no_challenge = o->no_challenge,
                                                .force = true,
                                                .quiet = o->common.json,
                                                .common = o->common};
        unlink(path); /* one of another outcome, or of others */
        const vd_exit code = vd_arbitrate(&options);
        d->no_verdict = access(path, F_OK) != 0;
        if (d->no_verdict)
            d->code = code;
    }
    vd_hex(d->client.b, VD_KEY_SIZE, referee);
    vd_status status =
        d->no_verdict ? VD_ERR_IO : vd_load_verdict(path, referee, false, out, d->err);
    d->verdicts += status == VD_OK;
    return status;
}

/* ---- all of them ---- */

/* The provider whose claim a verdict accepts. */
static int winner_of(const vd_outcome *o, uint32_t a, uint32_t b) {
    const uint32_t provider[2] = {a, b};
    for (uint32_t p = 0; p < o->party_count && o->accepted; p++)
        if (o->party[p].claimed && vd_hash_equal(&o->party[p].run_root, &o->run_root))
            return (int)provider[p];
    return NOBODY;
}

static void take_code(vd_delegation *d, const vd_outcome *outcome) {
    const vd_exit code = vd_exit_of(outcome);
    if (d->code == VD_EXIT_OK)
        d->code = code;
}

static bool is_done(const vd_delegation *d, uint32_t i) {
    return d->order[i].state == VD_ORDER_DONE;
}

/* Nobody's root is accepted before it was committed to: each is in a dispute, unless it claims, for
 * what a claim is worth, what was accepted already. */
vd_status vd_delegation_settle(vd_delegation *d, bool *accepted) {
    int best = NOBODY;
    bool settled = false;
    *accepted = false;
    for (uint32_t i = 0; i < d->o->urls; i++) {
        vd_verdict verdict;
        if (!is_done(d, i))
            continue;
        if (best == NOBODY) {
            best = (int)i;
            settled = false;
            continue;
        }
        if (settled && vd_hash_equal(&d->order[i].job.run_root, &d->run_root))
            continue;
        vd_status status = arbitrate(d, (uint32_t)best, i, &verdict);
        if (status != VD_OK)
            return status;
        take_code(d, &verdict.outcome);
        best = winner_of(&verdict.outcome, (uint32_t)best, i);
        settled = best != NOBODY;
        d->run_root = verdict.outcome.run_root;
    }
    *accepted = settled;
    return VD_OK;
}
