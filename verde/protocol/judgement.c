/* The referee's judgements, and the sentences that state them. PROTOCOL.md section 5. */
#include <stdarg.h>

#include "verde/protocol/dispute.h"
#include "verde/protocol/referee.h"

const char *vd_standing_name(vd_standing standing) {
    static const char *const names[] = {"stands", "convicted", "forfeited", "dismissed"};
    return names[standing];
}

const char *vd_grade_name(vd_grade grade) {
    static const char *const names[] = {
        "none",          "wrong-output",   "wrong-input", "wrong-graph", "bad-proof",
        "contradiction", "log-incomplete", "conceded",    "timeout",     "dismissed"};
    return names[grade];
}

const char *vd_result_name(vd_result result) {
    static const char *const names[] = {"none",    "agreed",       "convicted",
                                        "forfeit", "inconclusive", "dismissed"};
    return names[result];
}

const char *vd_challenge_name(vd_challenge_end end) {
    static const char *const names[] = {"none",   "declined", "confirmed",
                                        "failed", "upheld",   "inconclusive"};
    return names[end];
}

void vd_story(vd_referee *r, const char *format, ...) {
    char line[512];
    va_list args;
    if (!r->options.story)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    r->options.story(r->options.user, line);
}

/* Records a judgement; of a challenger in the second hearing, who is already convicted, it is the
 * second run's. The first judgement stays, unless only the later one is proven. */
static void judge(vd_referee *r, uint32_t p, vd_grade grade, const char *why) {
    struct vd_party_outcome *party = &r->outcome.party[p];
    struct vd_challenge_outcome *challenge = &r->outcome.challenge;
    bool second = challenge->end != VD_CHALLENGE_NONE && r->challenger == &r->party[p];
    vd_grade *stated = second ? &challenge->grade : &party->grade;
    char *reason = second ? challenge->reason : party->reason;
    r->party[p].out = true;
    if (*stated != VD_GRADE_NONE && (*stated != VD_GRADE_TIMEOUT || grade == VD_GRADE_TIMEOUT))
        return;
    if (!second)
        party->standing = grade == VD_GRADE_TIMEOUT     ? VD_FORFEITED
                          : grade == VD_GRADE_DISMISSED ? VD_DISMISSED
                                                        : VD_CONVICTED;
    *stated = grade;
    snprintf(reason, sizeof party->reason, "%s", why);
}

void vd_convict(vd_referee *r, uint32_t p, vd_grade grade, const char *format, ...) {
    char why[sizeof r->outcome.party[p].reason];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    judge(r, p, grade, why);
}

void vd_forfeit(vd_referee *r, uint32_t p, const char *why) {
    judge(r, p, VD_GRADE_TIMEOUT, why);
}

void vd_dismiss(vd_referee *r, uint32_t p, const char *why) {
    judge(r, p, VD_GRADE_DISMISSED, why);
}

void vd_trouble(vd_referee *r, const char *what) {
    if (r->failed == VD_OK)
        r->failed = vd_fail(&r->err, VD_ERR_LOCAL, "referee: %s", what);
}

void vd_inconclusive(vd_referee *r, const char *why) {
    if (!r->challenger) /* in a second hearing somebody is convicted already */
        r->outcome.result = VD_RESULT_INCONCLUSIVE;
    vd_story(r, "%s", why);
    r->phase = VD_PHASE_DONE;
}

bool vd_all_stand(const vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        if (r->party[p].out)
            return false;
    return true;
}
