/* The second hearing: a convicted provider may contest the claim left standing with a second run.
 * PROTOCOL.md section 5.7. */
#include "verde/protocol/dispute.h"

/* Returns which of two is convicted while the other's claim stands; r->parties: neither. */
static uint32_t may_challenge(const vd_referee *r) {
    const struct vd_party_outcome *party = r->outcome.party;
    for (uint32_t p = 0; p < r->parties; p++) {
        const struct vd_party_outcome *rival = &party[1 - p];
        if (party[p].standing == VD_CONVICTED && rival->standing == VD_STANDS && rival->claimed)
            return p;
    }
    return r->parties;
}

bool vd_challenge_due(const vd_referee *r) {
    return r->may_challenge && !r->challenger && may_challenge(r) < r->parties;
}

bool vd_challenge_ask(vd_referee *r, uint32_t p, vd_question *question) {
    if (p != may_challenge(r))
        return false;
    r->challenger = &r->party[p];
    r->outcome.challenge.challenger = p;
    question->kind = VD_ASK_CHALLENGE;
    vd_story(r, "Provider %u is convicted. It may run the job again and contest the other's claim.",
             p + 1);
    return true;
}

/* Opens the second hearing. Statements of the first one are not held against the second run. */
static void open_hearing(vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        r->party[p].out = false;
    vd_inputs_forget(r);
    r->place = &r->outcome.challenge.place;
    *r->place = VD_NO_PLACE;
    vd_dispute_runs(r);
}

void vd_challenge_take(vd_referee *r) {
    struct vd_challenge_outcome *challenge = &r->outcome.challenge;
    uint32_t p = challenge->challenger;
    vd_party *challenger = &r->party[p];
    challenge->end = VD_CHALLENGE_DECLINED;
    if (!challenger->body || !vd_json_get_hash(challenger->body, "root", &challenge->run_root)) {
        vd_story(r, "Provider %u does not contest it.", p + 1);
        return;
    }
    challenge->claimed = true;
    if (vd_hash_equal(&challenge->run_root, &r->party[1 - p].root)) {
        challenge->end = VD_CHALLENGE_CONFIRMED;
        vd_story(r, "Its second run has the root of the other's claim: nothing to contest.");
        return;
    }
    challenge->end = VD_CHALLENGE_FAILED;
    vd_story(r, "Its second run has another root: the claim left standing is now in dispute.");
    challenger->root = challenge->run_root;
    open_hearing(r);
}

/* ---- of many, all that are convicted at once ---- */

bool vd_contest_ask(vd_referee *r, uint32_t p, vd_question *question) {
    question->kind = VD_ASK_CHALLENGE;
    return r->party[p].again;
}

void vd_contest_take(vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++) {
        struct vd_party_outcome *party = &r->outcome.party[p];
        party->claimed =
            r->party[p].body && vd_json_get_hash(r->party[p].body, "root", &party->run_root);
    }
    r->phase = VD_PHASE_DONE;
}

/* ---- of two ---- */

/* Decides how a challenge ended: the claim fell, or the second run did, or neither. */
void vd_challenge_conclude(vd_referee *r) {
    struct vd_challenge_outcome *challenge = &r->outcome.challenge;
    if (challenge->end != VD_CHALLENGE_FAILED)
        return;
    if (r->outcome.party[1 - challenge->challenger].standing != VD_STANDS)
        challenge->end = VD_CHALLENGE_UPHELD;
    else if (vd_all_stand(r))
        challenge->end = VD_CHALLENGE_INCONCLUSIVE;
}
