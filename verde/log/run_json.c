/* This file reads and writes the members `rounding` and `party` of run.json. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/log/emitter.h"

const char *const vd_log_members[] = {"rounding", "party", NULL};

const vd_log_kept *vd_log_kept_of(const vd_run_log *log) {
    return log->backend == &vd_backend_log ? log->of_backend : NULL;
}

const char *vd_role_name(vd_role role) {
    static const char *const roles[] = {"", "trainer", "auditor"};
    return roles[role];
}

/* ---- writing ---- */

static json_t *rounding_json(const vd_log_run *r) {
    return json_pack("{ss si so so}", "encoding",
                     r->encoding == VD_LOG_SYMBOLS ? "symbols" : "calls", "bits", (int)r->bits,
                     "run", vd_hash_text(&r->run), "thresholds", vd_hash_text(&r->thresholds));
}

static json_t *party_json(const vd_run_party *party) {
    const ro_profile *p = &party->profile;
    json_t *out =
        json_pack("{ss ss s{ss si si si si si si si} sb}", "role", vd_role_name(party->role),
                  "backend", party->backend, "profile", "name", p->name, "lanes", (int)p->lanes,
                  "split", (int)p->split, "pairwise", (int)p->pairwise, "contract",
                  (int)p->contract, "descending", (int)p->descending, "estrin", (int)p->estrin,
                  "device", (int)p->device, "contest", party->contest);
    if (party->difference.found)
        json_object_set_new(out, "difference",
                            json_pack("{sI ss}", "step", (json_int_t)party->difference.step, "text",
                                      party->difference.text));
    return out;
}

void vd_log_write_json(const vd_run_log *log, json_t *root) {
    const vd_log_kept *kept = vd_log_kept_of(log);
    json_object_set_new(root, "rounding", rounding_json(&kept->rounding));
    if (kept->party.role)
        json_object_set_new(root, "party", party_json(&kept->party));
}

const char *vd_log_ran_on(const vd_run_log *log) {
    const vd_log_kept *kept = vd_log_kept_of(log);
    return kept->party.role ? kept->party.backend : NULL;
}

/* ---- reading ---- */

static bool get_rounding(const json_t *value, vd_log_run *r) {
    const char *encoding = json_string_value(json_object_get(value, "encoding"));
    r->encoding = encoding && !strcmp(encoding, "calls")     ? VD_LOG_CALLS
                  : encoding && !strcmp(encoding, "symbols") ? VD_LOG_SYMBOLS
                                                             : 0;
    return r->encoding && vd_json_get_number(value, "bits", &r->bits) &&
           r->bits >= RO_ROUND_BITS_MIN && r->bits <= RO_ROUND_BITS_MAX &&
           vd_json_get_hash(value, "run", &r->run) &&
           vd_json_get_hash(value, "thresholds", &r->thresholds);
}

static void copy_text(char *to, size_t size, const json_t *value) {
    const char *text = json_string_value(value);
    snprintf(to, size, "%s", text ? text : "");
}

static bool get_party(const json_t *value, vd_run_party *out) {
    const char *role = json_string_value(json_object_get(value, "role"));
    const json_t *profile = json_object_get(value, "profile");
    const json_t *difference = json_object_get(value, "difference");
    ro_profile *p = &out->profile;
    char why[128];
    p->size = sizeof *p;
    for (int i = VD_TRAINER; role && i <= VD_AUDITOR; i++)
        if (strcmp(role, vd_role_name((vd_role)i)) == 0)
            out->role = (vd_role)i;
    const bool numbers = vd_json_get_number(profile, "lanes", &p->lanes) &&
                         vd_json_get_number(profile, "split", &p->split) &&
                         vd_json_get_number(profile, "pairwise", &p->pairwise) &&
                         vd_json_get_number(profile, "contract", &p->contract) &&
                         vd_json_get_number(profile, "descending", &p->descending) &&
                         vd_json_get_number(profile, "estrin", &p->estrin) &&
                         vd_json_get_number(profile, "device", &p->device);
    copy_text(p->name, sizeof p->name, json_object_get(profile, "name"));
    copy_text(out->backend, sizeof out->backend, json_object_get(value, "backend"));
    const json_t *contest = json_object_get(value, "contest");
    out->contest = json_is_true(contest);
    out->difference.found = difference != NULL;
    out->difference.step = json_integer_value(json_object_get(difference, "step"));
    copy_text(out->difference.text, sizeof out->difference.text,
              json_object_get(difference, "text"));
    return !value || (out->role && numbers && (!contest || json_is_boolean(contest)) &&
                      ro_profile_check(p, why, sizeof why) == RO_OK);
}

/* Checks the names of members within members. */
static vd_status check_names(const json_t *root, vd_err *err) {
    static const char *const of_rounding[] = {"encoding", "bits", "run", "thresholds", NULL};
    static const char *const of_party[] = {"role",    "backend",    "profile",
                                           "contest", "difference", NULL};
    static const char *const of_profile[] = {
        "name", "lanes", "split", "pairwise", "contract", "descending", "estrin", "device", NULL};
    static const char *const of_difference[] = {"step", "text", NULL};
    const json_t *party = json_object_get(root, "party");
    const struct {
        const json_t *value;
        const char *place;
        const char *const *names;
    } inner[] = {{json_object_get(root, "rounding"), "rounding", of_rounding},
                 {party, "party", of_party},
                 {json_object_get(party, "profile"), "party.profile", of_profile},
                 {json_object_get(party, "difference"), "party.difference", of_difference}};
    vd_status status = VD_OK;
    for (size_t i = 0; i < sizeof inner / sizeof *inner && status == VD_OK; i++)
        if (inner[i].value)
            status = vd_json_known(inner[i].value, inner[i].place, inner[i].names, err);
    return status;
}

vd_status vd_log_read_json(const json_t *root, vd_run_log *log, vd_err *err) {
    const json_t *rounding = json_object_get(root, "rounding");
    vd_log_kept kept = {0};
    const vd_status status = check_names(root, err);
    if (status != VD_OK)
        return status;
    if ((rounding && !get_rounding(rounding, &kept.rounding)) ||
        !get_party(json_object_get(root, "party"), &kept.party))
        return vd_fail(err, VD_ERR_PEER, "not the log of a run");
    if (!rounding)
        return VD_OK;
    vd_log_kept *copy = log->of_backend = malloc(sizeof *copy);
    if (!copy)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    (void)vd_json_get_hash(root, "program", &kept.rounding.program);
    *copy = kept;
    log->backend = &vd_backend_log;
    log->name = kept.rounding.run;
    return VD_OK;
}
