/* This file makes the role of a run with a rounding log, from options and the job. */
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/cli/run_command.h"

bool vd_has_log_options(const vd_log_options *l) {
    return l->role || l->profile || l->encoding || l->thresholds || l->trainer || l->bits ||
           l->key || l->trainer_key || l->contest;
}

/* Takes the job's settings, and refuses options that contradict them. */
static vd_status take_job(const vd_log_options *o, const vd_program_rounding *job, vd_log_role *out,
                          vd_err *err) {
    const char *encoding = job->encoding == VD_LOG_SYMBOLS ? "symbols" : "calls";
    if (o->bits && o->bits != job->bits)
        return vd_fail(err, VD_ERR_USAGE, "--bits is %ld, and the job's rounding.bits is %d",
                       o->bits, (int)job->bits);
    if (o->encoding && strcmp(o->encoding, encoding) != 0)
        return vd_fail(err, VD_ERR_USAGE, "--encoding is %s, and the job's rounding.encoding is %s",
                       o->encoding, encoding);
    if (o->thresholds)
        return vd_fail(err, VD_ERR_USAGE, "--thresholds are the job's, which has `rounding`");
    out->rounding.bits = job->bits;
    out->rounding.encoding = (vd_log_encoding)job->encoding;
    out->thresholds.bits = job->bits;
    memcpy(out->thresholds.of, job->threshold, sizeof job->threshold);
    out->rounding.thresholds = &out->thresholds;
    return VD_OK;
}

static vd_status take_encoding(const vd_log_options *o, vd_log_role *out, vd_err *err) {
    const char *encoding = o->encoding ? o->encoding : "calls";
    if (out->rounding.role == VD_AUDITOR)
        return o->bits || o->encoding || o->thresholds
                   ? vd_fail(err, VD_ERR_USAGE,
                             "--bits, --encoding and --thresholds are the trainer's: an auditor "
                             "takes them from its log")
                   : VD_OK;
    out->rounding.bits = o->bits ? (int32_t)o->bits : RO_ROUND_BITS_MAX;
    out->rounding.encoding = VD_LOG_CALLS;
    if (strcmp(encoding, "calls") == 0)
        return o->thresholds
                   ? vd_fail(err, VD_ERR_USAGE, "--thresholds belong to --encoding symbols")
                   : VD_OK;
    if (strcmp(encoding, "symbols") != 0)
        return vd_fail(err, VD_ERR_USAGE, "--encoding must be calls or symbols, got \"%s\"",
                       encoding);
    if (!o->thresholds)
        return vd_fail(err, VD_ERR_USAGE,
                       "--encoding symbols needs --thresholds FILE (verde calibrate makes it)");
    out->rounding.encoding = VD_LOG_SYMBOLS;
    out->rounding.thresholds = &out->thresholds;
    vd_status status = vd_thresholds_load(o->thresholds, &out->thresholds, err);
    if (status == VD_OK && out->thresholds.bits != out->rounding.bits)
        return vd_fail(err, VD_ERR_USAGE, "%s: thresholds for %d bits, and --bits is %d",
                       o->thresholds, (int)out->thresholds.bits, (int)out->rounding.bits);
    return status;
}

static vd_status take_keys(const vd_log_options *o, vd_log_role *out, vd_err *err) {
    const bool audits = out->rounding.role == VD_AUDITOR;
    if (audits ? o->key != NULL : o->trainer_key || o->contest)
        return vd_fail(err, VD_ERR_USAGE, "%s",
                       audits ? "--key is the trainer's"
                              : "--trainer-key and --contest are an "
                                "auditor's");
    out->rounding.contest = o->contest;
    vd_status status = o->trainer_key
                           ? vd_read_key("--trainer-key", o->trainer_key, &out->trainer_key, err)
                           : VD_OK;
    if (status != VD_OK)
        return status;
    out->rounding.trainer_key = o->trainer_key ? &out->trainer_key : NULL;
    status = o->key ? vd_load_key(o->key, &out->key, err) : VD_OK;
    out->rounding.key = out->key;
    return status;
}

vd_status vd_take_role(const vd_log_options *o, const vd_program_rounding *job, vd_log_role *out,
                       vd_err *err) {
    const char *role = o->role ? o->role : "trainer";
    const bool audits = strcmp(role, "auditor") == 0;
    *out = (vd_log_role){.rounding = {.role = audits ? VD_AUDITOR : VD_TRAINER}};
    if (!audits && strcmp(role, "trainer") != 0)
        return vd_fail(err, VD_ERR_USAGE, "--role must be trainer or auditor, got \"%s\"", role);
    if (audits != (o->trainer != NULL))
        return vd_fail(err, VD_ERR_USAGE, "--follow DIR and --role auditor go together");
    out->rounding.trainer = o->trainer;
    out->backend = (vd_run_backend){&vd_backend_log, &out->rounding, &out->result};
    vd_status status = vd_profile_find(o->profile ? o->profile : "sim-wide", &out->profile, err);
    out->rounding.profile = &out->profile;
    if (status == VD_OK)
        status = take_keys(o, out, err);
    if (status == VD_OK)
        status = job->bits ? take_job(o, job, out, err) : take_encoding(o, out, err);
    return status;
}
